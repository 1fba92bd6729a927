//! rustls over aws-lc-rs.

mod accept;
mod client;
mod flow;
mod groups;
mod noting;
mod server;
mod store;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::{AlertDescription, SupportedProtocolVersion};

pub use accept::AcceptAnyCertificate;
pub(crate) use client::{Client, tls_config as client_tls_config};
pub(crate) use server::{Server, tls_config as server_tls_config};
pub(crate) use store::TicketStore;

use self::groups::kx_groups;
use crate::config::KeyLog;
use crate::error::alert_name;
use crate::offer::NamedGroup;
use crate::{
    CallerError, CertificateError, CertificateFault, CipherSuite, Error, Facts, Group, KeyExchange,
    Library, PeerError, Version,
};

/// The provider with the pinned cipher suites and the given groups; never the process's default.
pub(crate) fn provider(
    versions: &[Version],
    key_exchange: KeyExchange,
    groups: &[Group],
    key_shares: usize,
) -> Result<Arc<CryptoProvider>, Error> {
    if key_exchange == KeyExchange::Rsa && versions.contains(&Version::Tls12) {
        return Err(CallerError::Unsupported {
            library: Library::Rustls,
            feature: "RSA key exchange (RFC 5246 §7.4.7.1)",
            hint: "use OpenSSL, or ECDHE",
        }
        .into());
    }
    Ok(Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ],
        kx_groups: kx_groups(groups, key_shares)?,
        ..aws_lc_rs::default_provider()
    }))
}

/// The provider with rustls's own suites and the given groups.
pub(crate) fn usual_provider(groups: &[NamedGroup]) -> Result<Arc<CryptoProvider>, Error> {
    let known = |group: &NamedGroup| {
        let all = aws_lc_rs::ALL_KX_GROUPS.iter().copied();
        all.clone().find(|known| u16::from(known.name()) == group.0).ok_or_else(|| {
            Error::from(CallerError::Unsupported {
                library: Library::Rustls,
                feature: "one of these groups",
                hint: "offer x25519, p256, p384, x25519mlkem768 or secp256r1mlkem768, or use OpenSSL",
            })
        })
    };
    let kx_groups = groups.iter().map(known).collect::<Result<_, _>>()?;
    Ok(Arc::new(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() }))
}

pub(crate) fn protocol_versions(versions: &[Version]) -> Vec<&'static SupportedProtocolVersion> {
    versions
        .iter()
        .map(|version| match version {
            Version::Tls12 => &rustls::version::TLS12,
            Version::Tls13 => &rustls::version::TLS13,
        })
        .collect()
}

/// What both sides of rustls tell in the same way; the rest is the caller's to fill in.
pub(crate) fn common_facts(state: &rustls::CommonState) -> Facts {
    Facts {
        library: Library::Rustls,
        version: state.protocol_version().and_then(|version| match version {
            rustls::ProtocolVersion::TLSv1_2 => Some(Version::Tls12),
            rustls::ProtocolVersion::TLSv1_3 => Some(Version::Tls13),
            _ => None,
        }),
        cipher_suite: state
            .negotiated_cipher_suite()
            .map(|suite| CipherSuite(u16::from(suite.suite()))),
        group: state
            .negotiated_key_exchange_group()
            .and_then(|group| Group::from_id(u16::from(group.name()))),
        resumed: state.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        early_data: crate::EarlyData::NotOffered,
        hello_retry_request: false,
        alpn: state.alpn_protocol().map(<[u8]>::to_vec),
        server_name: None,
        key_shares: Vec::new(),
        client_hello_len: 0,
        certificates: 0,
        ticket_promised: false,
    }
}

/// Writes lines in the format of draft-ietf-tls-keylogfile.
#[derive(Debug)]
pub(crate) struct KeyLogLines(pub(crate) KeyLog);

impl rustls::KeyLog for KeyLogLines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.0.line(&format!("{label} {} {}", hex(client_random), hex(secret)));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whose fault a rustls error is.
pub(crate) fn error(error: rustls::Error) -> Error {
    use rustls::Error as E;
    let detail = error.to_string();
    match error {
        E::InvalidCertificate(cause) => {
            let detail = match &cause {
                // The verifier's own words.
                rustls::CertificateError::Other(other) => other.to_string(),
                cause => cause.to_string(),
            };
            CertificateError { reason: certificate_fault(&cause), detail }.into()
        }
        E::AlertReceived(alert) => alert_error(alert),
        E::NoApplicationProtocol => PeerError::NoApplicationProtocol.into(),
        E::PeerIncompatible(_) => PeerError::Incompatible(detail).into(),
        E::InvalidMessage(rustls::InvalidMessage::HandshakePayloadTooLarge) => {
            PeerError::LongMessage.into()
        }
        E::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => PeerError::NotTls.into(),
        E::PeerMisbehaved(_)
        | E::InvalidMessage(_)
        | E::InappropriateMessage { .. }
        | E::InappropriateHandshakeMessage { .. }
        | E::NoCertificatesPresented
        | E::DecryptError
        | E::PeerSentOversizedRecord => PeerError::Misbehaved(detail).into(),
        E::InconsistentKeys(_) | E::BadMaxFragmentSize => CallerError::Config(detail).into(),
        _ => Error::Library { library: Library::Rustls, detail },
    }
}

fn alert_error(alert: AlertDescription) -> Error {
    let code = u8::from(alert);
    PeerError::Alert { code, name: alert_name(code) }.into()
}

fn certificate_fault(cause: &rustls::CertificateError) -> CertificateFault {
    use rustls::CertificateError as C;
    match cause {
        C::UnknownIssuer => CertificateFault::UnknownIssuer,
        C::NotValidForName | C::NotValidForNameContext { .. } => CertificateFault::WrongName,
        C::Expired | C::ExpiredContext { .. } => CertificateFault::Expired,
        C::NotValidYet | C::NotValidYetContext { .. } => CertificateFault::NotYetValid,
        // By name: webpki's errors are of a crate that is not ours to use.
        C::Other(other) if other.to_string() == "CaUsedAsEndEntity" => CertificateFault::CaAsServer,
        _ => CertificateFault::Other,
    }
}

/// rustls refuses bytes when its own buffers are full; they are drained after each call, so the peer
/// sent a message beyond the library's limits.
fn buffer_full(cause: std::io::Error) -> Error {
    PeerError::Misbehaved(cause.to_string()).into()
}

pub(crate) fn library(cause: std::io::Error) -> Error {
    Error::Library { library: Library::Rustls, detail: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use rustls::{CertificateError as C, OtherError};

    use super::*;

    #[test]
    fn a_cas_certificate_is_told_in_words() {
        let of = |text: &str| {
            let cause = C::Other(OtherError(Arc::new(std::io::Error::other(text.to_owned()))));
            error(rustls::Error::InvalidCertificate(cause)).to_string()
        };
        let text = of("CaUsedAsEndEntity");
        assert!(text.contains("the certificate of a CA") && !text.contains("Other"), "{text}");
        assert!(of("BadDer").contains("it is refused (BadDer)"));
    }
}
