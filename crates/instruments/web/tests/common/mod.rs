//! What the tests share: a site, a server, a client, a runtime as a node of the lab has it.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use tls::{Identity, KeyType, Library, Trust, Version};
use web::{
    Answer, Client, ConnectPlan, Connection, Outcome, Protocol, Request, RequestHead, Server,
    ServerPlan, TlsPlan,
};

pub const NAME: &str = "www.server.test";
pub const OTHER: &str = "img.server.test";

/// Long enough for a slow machine: a test that fails by it would hang otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What runs over TLS 1.2 and 1.3, and the rest.
pub const KINDS: [(Protocol, Version); 9] = [
    (Protocol::Http1Clear, Version::Tls13),
    (Protocol::Http1, Version::Tls12),
    (Protocol::Http1, Version::Tls13),
    (Protocol::Spdy3, Version::Tls12),
    (Protocol::Spdy31, Version::Tls12),
    (Protocol::Spdy31, Version::Tls13),
    (Protocol::Http2, Version::Tls12),
    (Protocol::Http2, Version::Tls13),
    (Protocol::Http3, Version::Tls13),
];

/// What has windows whose stalls both sides count.
pub const WINDOWED: [Protocol; 3] = [Protocol::Http2, Protocol::Spdy3, Protocol::Spdy31];

pub fn identity() -> Arc<Identity> {
    static IDENTITY: OnceLock<Arc<Identity>> = OnceLock::new();
    let names = [NAME, OTHER, "127.0.0.1"];
    let make = || Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &names).unwrap());
    Arc::clone(IDENTITY.get_or_init(make))
}

/// `/N` is a body of N bytes; `/think` waits; `/cached` has an entity tag.
pub fn site(request: &RequestHead<'_>) -> Answer {
    match request.path() {
        "/cached" => Answer {
            etag: Some(HeaderValue::from_static("\"v1\"")),
            cache_control: Some(HeaderValue::from_static("max-age=60")),
            ..Answer::new(5000)
        },
        "/think" => Answer { think: Duration::from_millis(30), ..Answer::new(10) },
        path => match path.trim_start_matches('/').parse() {
            Ok(length) => Answer {
                content_type: Some(HeaderValue::from_static("image/png")),
                ..Answer::new(length)
            },
            Err(_) => Answer::not_found(),
        },
    }
}

pub fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Serves every protocol.
pub fn server_plan() -> ServerPlan {
    let config = tls::ServerConfig {
        versions: vec![Version::Tls12, Version::Tls13],
        ..tls::ServerConfig::new(Library::Rustls, identity())
    };
    let protocols =
        vec![Protocol::Http2, Protocol::Spdy31, Protocol::Spdy3, Protocol::Http1, Protocol::Http3];
    ServerPlan {
        tls: Some(TlsPlan { addresses: vec![loopback()], config, protocols, user_tcp: None }),
        clear: vec![loopback()],
        ..ServerPlan::new(Arc::new(site))
    }
}

pub fn serve(change: impl FnOnce(&mut ServerPlan)) -> Server {
    let mut plan = server_plan();
    change(&mut plan);
    Server::start(plan).unwrap()
}

pub fn client(version: Version) -> Client {
    let trust = Trust::Roots(identity().roots());
    let config = tls::ClientConfig {
        versions: vec![version],
        ..tls::ClientConfig::new(Library::Rustls, NAME, trust)
    };
    Client::new(&config).unwrap()
}

pub fn address(server: &Server, protocol: Protocol) -> SocketAddr {
    match protocol {
        Protocol::Http1Clear => server.clear_addresses()[0],
        _ => server.addresses()[0],
    }
}

pub fn plan(server: &Server, protocol: Protocol) -> ConnectPlan {
    let mut plan = ConnectPlan::new(address(server, protocol), NAME, protocol);
    plan.timeouts.connect = PATIENCE;
    plan.timeouts.exchange = PATIENCE;
    plan
}

pub async fn connect(server: &Server, protocol: Protocol, version: Version) -> Connection {
    client(version).connect(&plan(server, protocol)).await.unwrap()
}

pub async fn get(connection: &Connection, path: &str) -> Outcome {
    connection.request(Request { digest: true, ..Request::get(NAME, path) }).finish().await
}

/// Runs a test as a node of the lab runs its tasks: on one thread.
pub fn on_a_node<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let limited = async { tokio::time::timeout(4 * PATIENCE, test).await.expect("in time") };
    local.block_on(&runtime, limited);
}

/// Waits until `look` finds something.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let search = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, search).await.unwrap_or_else(|_| panic!("no {what}"))
}
