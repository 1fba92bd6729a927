//! Load over QUIC: connections of quinn's, each with a handshake, a request over HTTP/3 and its end.
//!
//! A closed loop as that of `load`: so many connections are under way at any time, each from a port of its own
//! and followed by the next. None is resumed.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use conn::quic_tap;
use quinn::crypto::rustls::QuicClientConfig;
use tls::{ClientConfig, Group, Library, Trust};
use tokio::task::JoinSet;

use crate::run::Loaded;

/// Who is loaded.
pub(crate) struct Target<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) name: &'a str,
    /// Roots of its certificate, DER.
    pub(crate) roots: Vec<Vec<u8>>,
    pub(crate) group: Group,
}

/// How much, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
}

/// A connection is given up after this.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Sockets, of which some are of connections that have ended (RFC 9000 §10.2).
const SOCKETS: u64 = 16_384;
/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: quinn::VarInt = quinn::VarInt::from_u32(0x100);

/// What came of it.
///
/// # Errors
/// Why no connection could be tried.
pub(crate) fn load(
    target: &Target<'_>,
    extent: Extent,
    interrupted: &dyn Fn() -> bool,
) -> Result<Loaded, String> {
    let client = Client::of(target)?;
    // With fewer, a connection that finds none fails and is counted.
    load::raise_file_limit(SOCKETS);
    let stop = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let span = Span { began, until: began + extent.duration };
    let threads = extent.threads.clamp(1, extent.connections.max(1));
    let work = |thread: usize| {
        // The first ones have one more each, until all are given out.
        let own = extent.connections / threads + usize::from(thread < extent.connections % threads);
        let (client, stop) = (client.clone(), Arc::clone(&stop));
        move || thread_of(&client, own, span, &stop)
    };
    let tallies: Vec<Result<Tally, String>> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for number in 0..threads {
            let thread = std::thread::Builder::new().name(format!("quic {number}"));
            match thread.spawn_scoped(scope, work(number)) {
                Ok(started) => running.push(started),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return vec![Err(format!(
                        "a thread cannot be started (raise `ulimit -u`): {error}"
                    ))];
                }
            }
        }
        while !running.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            stop.fetch_or(interrupted(), Ordering::Relaxed);
            std::thread::sleep(
                LOOK.min(span.until.saturating_duration_since(Instant::now()))
                    .max(Duration::from_millis(1)),
            );
        }
        let joined = running.into_iter().map(|thread| thread.join());
        joined.map(|ended| ended.unwrap_or_else(|_| Err("a thread panicked".to_owned()))).collect()
    });
    let mut sum = Tally::default();
    for tally in tallies {
        sum.add(tally?);
    }
    Ok(sum.loaded(extent.duration))
}

/// When connections are begun.
#[derive(Debug, Clone, Copy)]
struct Span {
    began: Instant,
    until: Instant,
}

/// What every connection begins with.
#[derive(Clone)]
struct Client {
    tls: tls::quic::Client,
    address: SocketAddr,
}

impl Client {
    fn of(target: &Target<'_>) -> Result<Client, String> {
        let trust = Trust::Roots(target.roots.clone());
        let mut config = ClientConfig::new(Library::Rustls, target.name, trust);
        config.groups = vec![target.group];
        config.alpn = vec![b"h3".to_vec()];
        let tls = tls::quic::client_config(&config).map_err(|error| error.to_string())?;
        Ok(Client { tls, address: target.address })
    }
}

/// What one thread's connections came to.
#[derive(Debug, Default)]
struct Tally {
    /// How long each took that succeeded.
    took: Vec<Duration>,
    resumed: u64,
    failed: u64,
    first_failure: Option<String>,
    cpu: Duration,
    /// From the begin to the last end of a connection.
    last: Duration,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.took.extend(other.took);
        self.resumed += other.resumed;
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.cpu += other.cpu;
        self.last = self.last.max(other.last);
    }

    fn ended(&mut self, took: Duration, end: Result<bool, String>) {
        match end {
            Ok(resumed) => {
                self.took.push(took);
                self.resumed += u64::from(resumed);
            }
            Err(why) => {
                self.failed += 1;
                self.first_failure.get_or_insert(why);
            }
        }
    }

    /// What it comes to over `planned`, or longer where a first connection took that.
    fn loaded(mut self, planned: Duration) -> Loaded {
        self.took.sort_unstable();
        let completed = self.took.len() as u64;
        let at = |share: f64| {
            let last = self.took.len().saturating_sub(1);
            let index = (share * last as f64).round() as usize;
            self.took.get(index).map_or(0.0, |took| took.as_secs_f64() * 1e6)
        };
        let seconds = planned.max(self.last).as_secs_f64();
        Loaded {
            completed,
            failed: self.failed,
            first_failure: self.first_failure.clone().unwrap_or_else(|| "none was made".to_owned()),
            full: completed - self.resumed.min(completed),
            resumed: self.resumed,
            without_ticket: 0,
            per_second: if seconds > 0.0 { completed as f64 / seconds } else { 0.0 },
            elapsed_seconds: seconds,
            cpu_us: (completed > 0).then(|| self.cpu.as_secs_f64() * 1e6 / completed as f64),
            p50_us: at(0.5),
            p99_us: at(0.99),
        }
    }
}

/// A thread's connections, each followed by the next until the time is over.
fn thread_of(
    client: &Client,
    connections: usize,
    span: Span,
    stop: &Arc<AtomicBool>,
) -> Result<Tally, String> {
    let cpu = conn::thread_cpu();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("a runtime: {error}"))?;
    let mut sum = runtime.block_on(async {
        let mut running = JoinSet::new();
        for _ in 0..connections {
            running.spawn(one_after_another(client.clone(), span, Arc::clone(stop)));
        }
        let mut sum = Tally::default();
        loop {
            match tokio::time::timeout(LOOK, running.join_next()).await {
                Ok(None) => break sum,
                Ok(Some(ended)) => sum.add(ended.unwrap_or_default()),
                Err(_) if stop.load(Ordering::Relaxed) => running.abort_all(),
                Err(_) => {}
            }
        }
    });
    sum.cpu = conn::thread_cpu().saturating_sub(cpu);
    Ok(sum)
}

/// The first is waited for however long it takes, so that a short run says how long one takes; of the others,
/// one that is not over in time is in no rate.
async fn one_after_another(client: Client, span: Span, stop: Arc<AtomicBool>) -> Tally {
    let (mut tally, mut first) = (Tally::default(), true);
    while first || (Instant::now() < span.until && !stop.load(Ordering::Relaxed)) {
        let began = Instant::now();
        let left = span.until.saturating_duration_since(began);
        let patience = if first { PATIENCE } else { PATIENCE.min(left) };
        let end = tokio::time::timeout(patience, connection(&client)).await;
        let ended = Instant::now();
        if !first && ended >= span.until {
            break;
        }
        first = false;
        tally.last = ended - span.began;
        tally.ended(ended - began, end.unwrap_or_else(|_| Err("it took too long".to_owned())));
    }
    tally
}

type Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;
type Driver = h3::client::Connection<h3_quinn::Connection, Bytes>;

/// A connection: whether it was resumed.
async fn connection(client: &Client) -> Result<bool, String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let started = client.tls.start(None).map_err(text)?;
    let crypto = QuicClientConfig::try_from(started.tls).map_err(text)?;
    let config = quinn::ClientConfig::new(quic_tap::client(crypto));
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let endpoint = quinn::Endpoint::client(any).map_err(text)?;
    let connecting = endpoint.connect_with(config, client.address, client.tls.server_name());
    let quic = connecting.map_err(text)?.await.map_err(text)?;
    let asked = ask(&quic, client.tls.server_name()).await;
    let resumed = quic_tap::facts(&quic).is_some_and(|facts| facts.resumed);
    // What tells the server of the end is sent while the next connection begins; quinn keeps the socket until
    // nothing more can come (RFC 9000 §10.2).
    quic.close(NO_ERROR, b"");
    asked.map(|()| resumed)
}

/// A request and its whole response.
async fn ask(quic: &quinn::Connection, name: &str) -> Result<(), String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let over = h3_quinn::Connection::new(quic.clone());
    let begun: Result<(Driver, Sender), _> =
        h3::client::builder().send_grease(false).build(over).await;
    let (mut driver, mut sender) = begun.map_err(text)?;
    let driven = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    let request = http::Request::get(format!("https://{name}/")).body(()).map_err(text)?;
    let mut stream = sender.send_request(request).await.map_err(text)?;
    stream.finish().await.map_err(text)?;
    let response = stream.recv_response().await.map_err(text)?;
    let mut bytes = 0;
    while let Some(mut data) = stream.recv_data().await.map_err(text)? {
        bytes += data.remaining();
        data.advance(data.remaining());
    }
    driven.abort();
    match (response.status().is_success(), bytes) {
        (true, 1..) => Ok(()),
        (true, 0) => Err("the response is empty".to_owned()),
        (false, _) => Err(format!("the server says {}", response.status())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_come_to_rates_and_percentiles() {
        let mut sum = Tally::default();
        for millis in 1..=100 {
            let mut one = Tally { cpu: Duration::from_micros(500), ..Tally::default() };
            one.ended(Duration::from_millis(millis), Ok(false));
            sum.add(one);
        }
        sum.ended(Duration::ZERO, Err("refused".to_owned()));
        sum.ended(Duration::ZERO, Err("again".to_owned()));
        let loaded = sum.loaded(Duration::from_secs(2));
        assert_eq!((loaded.completed, loaded.failed, loaded.full), (100, 2, 100));
        assert_eq!((loaded.per_second, loaded.cpu_us), (50.0, Some(500.0)));
        assert_eq!((loaded.p50_us, loaded.p99_us), (51_000.0, 99_000.0));
        assert_eq!(loaded.first_failure, "refused");
        let late = Tally {
            took: vec![Duration::from_secs(4)],
            last: Duration::from_secs(4),
            ..Tally::default()
        };
        assert_eq!(late.loaded(Duration::from_secs(2)).per_second, 0.25);
        let none = Tally::default().loaded(Duration::ZERO);
        assert_eq!((none.completed, none.cpu_us, none.per_second), (0, None, 0.0));
    }

    #[test]
    fn nobody_there_is_a_failure_that_is_counted() {
        let identity = tls::Identity::generate(tls::KeyType::EcdsaP256, 1, &["a.example"]).unwrap();
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = Target {
            address: socket.local_addr().unwrap(),
            name: "a.example",
            roots: identity.roots(),
            group: Group::X25519,
        };
        let extent = Extent { connections: 2, threads: 2, duration: Duration::from_millis(100) };
        // It never answers, and the user stops before anything is given up.
        let loaded = load(&target, extent, &|| true).unwrap();
        assert_eq!(loaded.completed, 0);
    }
}
