//! Clients and servers of one library each, which begin connections of any group.

use tls::ech::{self, Case, Client, Endpoint, Keys, Offer, RawKey, Server};

use super::endpoint::{BuiltIn, DriverEndpoint};
use super::{EchClient, EchServer};
use crate::driver::{Context, EchConfig, Library};
use crate::job::Identity;
use crate::suite::{Cipher, Group, Key, Suite, Version};
use crate::{DriverError, function};

/// A side of a connection.
type Side = Box<dyn Endpoint<DriverError>>;

/// What is pinned for a driver.
fn suite(group: Group) -> Suite {
    Suite { version: Version::Tls13, key: Key::EcdsaP256, group, cipher: Cipher::Aes128Gcm }
}

/// An identity as drivers take it; `name` is what clients ask for.
fn in_pem(identity: &tls::Identity, name: &str) -> Result<Identity, DriverError> {
    Ok(Identity {
        chain: identity.chain_pem()?,
        key: identity.private_key_pem()?,
        roots: identity.root_pem()?,
        name: name.to_owned(),
    })
}

/// Clients of one library.
pub(super) enum Clients {
    BuiltIn { library: ech::ClientLibrary, roots: Vec<Vec<u8>> },
    Driver { library: Library, identity: Identity },
}

impl Clients {
    pub(super) fn new(of: &EchClient, identity: &tls::Identity) -> Result<Self, DriverError> {
        Ok(match of {
            EchClient::BuiltIn(library) => {
                Clients::BuiltIn { library: *library, roots: identity.roots() }
            }
            EchClient::Driver(object) => {
                let library = Library::load(object)?;
                library.must_have_ech(false)?;
                Clients::Driver { library, identity: in_pem(identity, "")? }
            }
        })
    }

    /// Functions of the library that matter here.
    pub(super) fn functions(&self) -> u64 {
        match self {
            Clients::BuiltIn { .. } => function::POST_QUANTUM,
            Clients::Driver { library, .. } => library.described().functions,
        }
    }

    /// Begins a connection to `name`.
    pub(super) fn start(
        &self,
        group: Group,
        name: &str,
        offer: &Offer,
    ) -> Result<Side, DriverError> {
        match self {
            Clients::BuiltIn { library, roots } => {
                let client =
                    Client { library: *library, groups: vec![group], roots: roots.clone() };
                Ok(Box::new(BuiltIn(client.start(name, offer)?)))
            }
            Clients::Driver { library, identity } => {
                let ech = match offer {
                    Offer::Nothing => EchConfig::Without,
                    Offer::Placeholder => EchConfig::Placeholder,
                    Offer::Sealed(list) => {
                        // What a server gave may be anything.
                        ech::check(list)?;
                        EchConfig::Sealed(list)
                    }
                };
                let identity = Identity { name: name.to_owned(), ..identity.clone() };
                let context = Context::with_ech(library, false, suite(group), &identity, &ech)?;
                Ok(Box::new(DriverEndpoint::new(&context, false)?))
            }
        }
    }
}

/// Servers of one library, with a key that clients know, a new one, or none.
pub(super) enum Servers {
    BuiltIn { known: Keys, new: Keys, servers: [Server; 3] },
    Driver { library: Library, identity: Identity, known: RawKey, new: RawKey },
}

impl Servers {
    pub(super) fn new(
        of: &EchServer,
        identity: &tls::Identity,
        public_name: &str,
    ) -> Result<Self, DriverError> {
        Ok(match of {
            EchServer::BuiltIn => {
                let (known, new) =
                    (Keys::generate(public_name, 1)?, Keys::generate(public_name, 2)?);
                let server = |keys: Option<&Keys>| Server::new(identity, keys);
                let servers = [server(Some(&known))?, server(Some(&new))?, server(None)?];
                Servers::BuiltIn { known, new, servers }
            }
            EchServer::Driver(object) => {
                let library = Library::load(object)?;
                library.must_have_ech(true)?;
                Servers::Driver {
                    library,
                    identity: in_pem(identity, "")?,
                    known: RawKey::generate(public_name, 1)?,
                    new: RawKey::generate(public_name, 2)?,
                }
            }
        })
    }

    /// Functions of the library that matter here.
    pub(super) fn functions(&self) -> u64 {
        match self {
            Servers::BuiltIn { .. } => function::POST_QUANTUM,
            Servers::Driver { library, .. } => library.described().functions,
        }
    }

    /// The list that clients have read.
    pub(super) fn published(&self) -> &[u8] {
        match self {
            Servers::BuiltIn { known, .. } => known.config_list(),
            Servers::Driver { known, .. } => known.config_list(),
        }
    }

    /// The list of the new key.
    pub(super) fn new_list(&self) -> &[u8] {
        match self {
            Servers::BuiltIn { new, .. } => new.config_list(),
            Servers::Driver { new, .. } => new.config_list(),
        }
    }

    /// Begins a connection with the key that the server has in this case.
    pub(super) fn accept(&self, case: Case, group: Group) -> Result<Side, DriverError> {
        match self {
            Servers::BuiltIn { servers: [known, new, without], .. } => {
                let server = case.server_key(known, new).unwrap_or(without);
                Ok(Box::new(BuiltIn(server.accept()?)))
            }
            Servers::Driver { library, identity, known, new } => {
                let key = case.server_key(known, new);
                let ech = key.map_or(EchConfig::Without, EchConfig::Key);
                let context = Context::with_ech(library, true, suite(group), identity, &ech)?;
                Ok(Box::new(DriverEndpoint::new(&context, true)?))
            }
        }
    }
}
