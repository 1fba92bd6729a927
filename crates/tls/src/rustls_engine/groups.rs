//! The groups of a provider, and how many get a key share.

use core::fmt;

use rustls::NamedGroup;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};

use crate::{CallerError, Error, Group, Library};

/// The groups in the order given. rustls sends a share for the first, and with it one for X25519 when
/// the first is the hybrid with X25519 and X25519 is offered too: two shares are that pair or nothing.
pub(crate) fn kx_groups(
    groups: &[Group],
    key_shares: usize,
) -> Result<Vec<&'static dyn SupportedKxGroup>, Error> {
    let hybrid_pair =
        groups.first() == Some(&Group::X25519MlKem768) && groups.contains(&Group::X25519);
    if key_shares > 1 && !(key_shares == 2 && hybrid_pair) {
        return Err(CallerError::Unsupported {
            library: Library::Rustls,
            feature: "a choice of key shares (RFC 8446 §4.2.8) beyond the first group's",
            hint: "set key_shares to 1, or use OpenSSL",
        }
        .into());
    }
    Ok(groups
        .iter()
        .map(|group| match group {
            Group::X25519 => kx_group::X25519,
            Group::Secp256r1 => kx_group::SECP256R1,
            Group::X25519MlKem768 if key_shares > 1 => kx_group::X25519MLKEM768,
            Group::X25519MlKem768 => &HybridAlone as &dyn SupportedKxGroup,
        })
        .collect())
}

/// X25519MLKEM768 without the second share for its X25519 half.
struct HybridAlone;

impl fmt::Debug for HybridAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        kx_group::X25519MLKEM768.fmt(f)
    }
}

impl SupportedKxGroup for HybridAlone {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Ok(Box::new(ActiveAlone(kx_group::X25519MLKEM768.start()?)))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, rustls::Error> {
        kx_group::X25519MLKEM768.start_and_complete(peer)
    }

    fn ffdhe_group(&self) -> Option<rustls::ffdhe_groups::FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        kx_group::X25519MLKEM768.name()
    }

    fn usable_for_version(&self, version: rustls::ProtocolVersion) -> bool {
        kx_group::X25519MLKEM768.usable_for_version(version)
    }
}

/// As the wrapped exchange, but `hybrid_component` keeps its default, `None`.
struct ActiveAlone(Box<dyn ActiveKeyExchange>);

impl ActiveKeyExchange for ActiveAlone {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, rustls::Error> {
        self.0.complete(peer_pub_key)
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}
