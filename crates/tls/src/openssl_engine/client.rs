//! An OpenSSL client.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{
    Ssl, SslContext, SslContextBuilder, SslMethod, SslRef, SslSession, SslSessionCacheMode,
    SslVerifyMode, SslVersion,
};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;

use super::context::{alpn_list, browser, builder, everything, group_list, usual};
use super::fault::library;
use super::ffi;
use super::session::{ClientSide, OpenSslSession, Side};
use crate::config::{ClientConfig, Trust, system_roots};
use crate::error::config as config_error;
use crate::offer::{Offer, Witness};
use crate::ticket::{Origin, Secret};
use crate::{CallerError, ClientIdentity, Error, Session, Ticket, Version};

/// Where a connection's newest session is put by the callback.
#[derive(Clone, Default)]
pub(super) struct Newest(Arc<Mutex<Option<SslSession>>>);

impl Newest {
    fn put(&self, session: SslSession) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// The newest session, once.
    pub(super) fn take(&self, origin: &Arc<Origin>) -> Option<Ticket> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (version, max_early_data) = match session.protocol_version() {
            SslVersion::TLS1_3 => (Version::Tls13, session.max_early_data()),
            _ => (Version::Tls12, 0),
        };
        let secret = Secret::OpenSsl(session);
        Some(Ticket::new(version, max_early_data, Arc::clone(origin), secret))
    }
}

/// The slot of an SSL that [`Newest`] is kept in.
static NEWEST: LazyLock<Result<Index<Ssl, Newest>, ErrorStack>> = LazyLock::new(Ssl::new_ex_index);

fn newest_slot() -> Result<Index<Ssl, Newest>, Error> {
    NEWEST.as_ref().copied().map_err(library)
}

/// A prepared OpenSSL client.
pub(crate) struct Client {
    context: SslContext,
    server_name: String,
    nameless: bool,
    early_data: bool,
    origin: Arc<Origin>,
    witness: Option<Witness>,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, Error> {
        let groups = group_list(&config.groups, config.key_shares);
        let mut context = builder(
            SslMethod::tls_client(),
            &config.versions,
            config.key_exchange,
            &groups,
            config.key_log.as_ref(),
        )?;
        match &config.offer {
            Offer::Pinned => {}
            Offer::Usual(groups) => usual(&mut context, groups)?,
            Offer::Browser(groups) => browser(&mut context, groups)?,
            Offer::Everything { groups, old_versions } => {
                everything(&mut context, groups, *old_versions)?;
            }
        }
        match &config.trust {
            Trust::Roots(roots) => context.set_cert_store(store(roots.iter().map(Vec::as_slice))?),
            Trust::System => {
                let roots = system_roots()?;
                // As rustls does, leave out what this library cannot read.
                let usable =
                    roots.iter().map(AsRef::as_ref).filter(|der| X509::from_der(der).is_ok());
                context.set_cert_store(store(usable)?);
            }
            // The configuration's check lets no `Unchecked` come here.
            Trust::Insecure | Trust::Unchecked => {}
        }
        context.set_verify(match config.trust {
            Trust::Insecure | Trust::Unchecked => SslVerifyMode::NONE,
            Trust::Roots(_) | Trust::System => SslVerifyMode::PEER,
        });
        if let Some(identity) = &config.identity {
            identify(&mut context, identity)?;
        }
        if !config.alpn.is_empty() {
            context.set_alpn_protos(&alpn_list(&config.alpn)).map_err(library)?;
        }
        context
            .set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let slot = newest_slot()?;
        context.set_new_session_callback(move |ssl: &mut SslRef, session| {
            if let Some(newest) = ssl.ex_data(slot) {
                newest.put(session);
            }
        });
        Ok(Self {
            context: context.build(),
            server_name: config.server_name.clone(),
            nameless: config.nameless,
            early_data: config.early_data,
            origin: Arc::new(Origin),
            witness: config.witness.clone(),
        })
    }

    /// The same client for another name, on the same context.
    pub(crate) fn with_name(&self, name: &str) -> Self {
        Self {
            context: self.context.clone(),
            server_name: name.to_owned(),
            nameless: self.nameless,
            early_data: self.early_data,
            origin: Arc::clone(&self.origin),
            witness: self.witness.clone(),
        }
    }

    pub(crate) fn start(&self, ticket: Option<&Ticket>) -> Result<Box<dyn Session>, Error> {
        let mut ssl = Ssl::new(&self.context).map_err(library)?;
        ssl.set_connect_state();
        let newest = Newest::default();
        ssl.set_ex_data(newest_slot()?, newest.clone());
        let mut sni = None;
        match self.server_name.parse::<IpAddr>() {
            Ok(address) => ssl.param_mut().set_ip(address).map_err(library)?,
            Err(_) => {
                if !self.nameless {
                    ssl.set_hostname(&self.server_name).map_err(library)?;
                }
                ssl.param_mut().set_host(&self.server_name).map_err(library)?;
                sni = Some(self.server_name.clone());
            }
        }
        let mut early_room = 0;
        if let Some(ticket) = ticket {
            let Secret::OpenSsl(session) = ticket.redeem(&self.origin)? else {
                return Err(CallerError::ForeignTicket.into());
            };
            // A TLS 1.2 ticket may be offered again, but OpenSSL makes a session unusable when the server
            // renews its ticket: each connection gets a copy.
            let session = match ticket.version() {
                Version::Tls12 => {
                    ffi::duplicate(&session).ok_or_else(|| library("SSL_SESSION_dup"))?
                }
                Version::Tls13 => session,
            };
            // SAFETY: `redeem` gives only tickets of this client, so the session came from a connection
            // of this very context.
            unsafe { ssl.set_session(&session) }.map_err(library)?;
            if self.early_data {
                early_room = usize::try_from(ticket.max_early_data()).unwrap_or(usize::MAX);
            }
        }
        let side = Side::Client(ClientSide {
            newest,
            origin: Arc::clone(&self.origin),
            early_room,
            server_name: sni,
            witness: self.witness.clone(),
        });
        Ok(Box::new(OpenSslSession::new(ssl, side)?))
    }
}

/// Gives the context a client's chain and key.
fn identify(context: &mut SslContextBuilder, identity: &ClientIdentity) -> Result<(), Error> {
    let Some((own, issuers)) = identity.chain().split_first() else { return Ok(()) };
    context.set_certificate(own).map_err(library)?;
    for issuer in issuers {
        context.add_extra_chain_cert(issuer.clone()).map_err(library)?;
    }
    context.set_private_key(identity.key()).map_err(library)
}

fn store<'a>(
    roots: impl Iterator<Item = &'a [u8]>,
) -> Result<openssl::x509::store::X509Store, Error> {
    let mut store = X509StoreBuilder::new().map_err(library)?;
    for root in roots {
        let root = X509::from_der(root)
            .map_err(|cause| config_error(format!("trust: not a certificate: {cause}")))?;
        store.add_cert(root).map_err(library)?;
    }
    Ok(store.build())
}
