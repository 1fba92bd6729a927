//! What the tests share: identities, configurations, what every timeline must obey.
#![allow(dead_code)] // Each test file uses its own part.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use conn::Timeline;
use tls::{ClientConfig, Identity, KeyType, Library, ServerConfig, Trust, Version};

pub const NAME: &str = "server.test";

/// Long enough for a slow machine: a test that fails by it would hang otherwise.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn identity() -> Arc<Identity> {
    static IDENTITY: OnceLock<Arc<Identity>> = OnceLock::new();
    let make =
        || Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[NAME, "127.0.0.1"]).unwrap());
    Arc::clone(IDENTITY.get_or_init(make))
}

pub fn rsa_identity() -> Arc<Identity> {
    static IDENTITY: OnceLock<Arc<Identity>> = OnceLock::new();
    let make = || Arc::new(Identity::generate(KeyType::Rsa2048, 1, &[NAME]).unwrap());
    Arc::clone(IDENTITY.get_or_init(make))
}

pub fn client_config(library: Library, version: Version) -> ClientConfig {
    let trust = Trust::Roots(identity().roots().to_vec());
    ClientConfig { versions: vec![version], ..ClientConfig::new(library, NAME, trust) }
}

pub fn server_config(library: Library, version: Version) -> ServerConfig {
    ServerConfig { versions: vec![version], ..ServerConfig::new(library, identity()) }
}

pub fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Both libraries on both sides.
pub fn library_pairs() -> impl Iterator<Item = (Library, Library)> {
    let pair = |client: &Library| Library::ALL.iter().map(|server| (*client, *server)).collect();
    Library::ALL.iter().flat_map(move |client| -> Vec<_> { pair(client) })
}

/// The order that an exchange without Fast Open and early data has; every step but those listed as
/// missing is there.
pub fn assert_in_order(timeline: &Timeline) {
    let steps = [
        timeline.started,
        timeline.connected,
        timeline.hello_sent,
        timeline.ready,
        timeline.request_sent,
        timeline.first_response_byte,
        timeline.closed,
    ];
    let happened: Vec<_> = steps.into_iter().flatten().collect();
    assert!(happened.is_sorted(), "{timeline:?}");
}
