//! The server's estimate of its memory beside what an allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;

use tls::{Identity, KeyType, Library, Trust, Version};
use web::{
    Answer, Client, ConnectPlan, Protocol, Request, RequestHead, Server, ServerPlan, TlsPlan,
};

/// Counts what the server's thread holds.
struct Counting;

static HELD: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static IS_SERVER: Cell<bool> = const { Cell::new(false) };
}

fn count(bytes: i64) {
    // A thread that ends has no such variable any more.
    if IS_SERVER.try_with(Cell::get).unwrap_or(false) {
        HELD.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NAME: &str = "server.test";
const CONNECTIONS: u64 = 50;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Bytes that one idle connection holds: as the server estimates, and as the allocator counts.
fn of_a_connection(protocol: Protocol) -> (u64, u64) {
    let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[NAME]).unwrap());
    let config = tls::ServerConfig::new(Library::Rustls, Arc::clone(&identity));
    let (sender, started) = mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        IS_SERVER.set(true);
        tokio::task::LocalSet::new().block_on(&runtime(), async {
            let addresses = vec![([127, 0, 0, 1], 0).into()];
            let protocols =
                vec![Protocol::Http2, Protocol::Http1, Protocol::Http3, Protocol::Spdy31];
            let site = |_: &RequestHead<'_>| Answer::new(1000);
            let mut plan = ServerPlan::new(Arc::new(site));
            plan.clear.clone_from(&addresses);
            plan.tls = Some(TlsPlan { addresses, config, protocols, user_tcp: None });
            plan.log_capacity = 0;
            let server = Server::start(plan).unwrap();
            let addresses = (server.addresses()[0], server.clear_addresses()[0]);
            sender.send((addresses, server.counters())).unwrap();
            let _ = stopped.await;
        });
        IS_SERVER.set(false);
    });
    let ((secure, clear), counters) = started.recv().unwrap();
    let address = if protocol == Protocol::Http1Clear { clear } else { secure };
    let trust = Trust::Roots(identity.roots());
    let client = Client::new(&tls::ClientConfig {
        versions: vec![Version::Tls13],
        ..tls::ClientConfig::new(Library::Rustls, NAME, trust)
    })
    .unwrap();
    let held = tokio::task::LocalSet::new().block_on(&runtime(), async {
        let plan = ConnectPlan::new(address, NAME, protocol);
        let ask = async || {
            let connection = client.connect(&plan).await.unwrap();
            let outcome = connection.request(Request::get(NAME, "/")).finish().await;
            assert_eq!(outcome.body, 1000);
            connection
        };
        // What all connections share is there with the first.
        let mut connections = vec![ask().await];
        let before = (counters.snapshot().memory, HELD.load(Ordering::Relaxed));
        for _ in 0..CONNECTIONS {
            connections.push(ask().await);
        }
        let after = (counters.snapshot().memory, HELD.load(Ordering::Relaxed));
        (after.0 - before.0, u64::try_from(after.1 - before.1).unwrap())
    });
    drop(stop);
    thread.join().unwrap();
    (held.0 / CONNECTIONS, held.1 / CONNECTIONS)
}

#[test]
fn the_estimate_is_within_a_factor_of_two_of_what_is_held() {
    let over_tls = [Protocol::Http1, Protocol::Spdy31, Protocol::Http2, Protocol::Http3];
    for protocol in [Protocol::Http1Clear].into_iter().chain(over_tls) {
        let (estimated, held) = of_a_connection(protocol);
        eprintln!("{protocol}: {estimated} bytes estimated, {held} held");
        assert!(estimated <= 2 * held && held <= 2 * estimated, "{protocol}: {estimated}, {held}");
    }
}
