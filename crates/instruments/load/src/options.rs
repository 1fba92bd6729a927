//! What a run is told, and the checks on it.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tls::{Group, Trust, Version};

use crate::Error;
use crate::h2;
use crate::suite::Suite;

/// What sets the pace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Closed loop: each connection is followed by the next one as soon as it ends.
    Closed,
    /// Open loop: this many starts per second, whether or not the server keeps up. Latency counts from
    /// when a start was due.
    Open {
        /// Starts per second.
        rate: f64,
    },
}

/// The version of HTTP, and so what the load is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http {
    /// HTTP/1.1: the load is made of connections, each with its requests one after the other.
    #[default]
    One,
    /// HTTP/2: the load is made of requests. Connections stay open, and carry several requests at once.
    Two {
        /// Requests at once on each connection.
        streams: usize,
    },
}

/// How a connection is closed once its work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Close {
    /// close(2): a FIN. Where the server has not closed first, the port stays in TIME_WAIT.
    #[default]
    Fin,
    /// SO_LINGER 0: a RST, and no TIME_WAIT.
    Reset,
    /// A close_notify alert first, then as `Fin` (RFC 8446 §6.1).
    Notify,
    /// As `Fin`, but only after the server has closed, so that TIME_WAIT is on its side.
    Server,
}

/// The most of some things.
pub mod limits {
    use std::time::Duration;

    /// Connections at once.
    pub const CONNECTIONS: usize = 100_000;
    /// Threads that work at once.
    pub const THREADS: usize = 1024;
    /// Requests at once on a connection (HTTP/2).
    pub const STREAMS: usize = 10_000;
    /// Addresses of a server.
    pub const ADDRESSES: usize = 64;
    /// Starts per second.
    pub const RATE: f64 = 10_000_000.0;
    /// The longest run.
    pub const DURATION: Duration = Duration::from_secs(7 * 24 * 3600);
    /// The longest request, in bytes.
    pub const REQUEST: usize = 64 * 1024;
    /// Tickets kept by each thread.
    pub const TICKETS: usize = 4096;
}

/// What a run does. [`Options::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to connect: the addresses of one server, preferred first. The first that answers is loaded.
    pub addresses: Vec<SocketAddr>,
    /// The DNS name or address that the certificate must carry; a DNS name is sent as SNI.
    pub server_name: String,
    /// Whether to connect without TLS: HTTP/2 with prior knowledge (RFC 9113 §3.3) only.
    pub plaintext: bool,
    /// The version of HTTP.
    pub http: Http,
    /// The request sent, whole; `None` ends each connection after its handshake. In HTTP/2 a header block (HPACK)
    /// without references to the dynamic table.
    pub request: Option<Vec<u8>>,
    /// Requests on each connection; the last one is `last_request` if that is set. In HTTP/1.1 they follow one
    /// another, and 0 is none; in HTTP/2 0 is no limit.
    pub requests_per_connection: u32,
    /// The last request of a connection (with `Connection: close`), if it differs from the others.
    pub last_request: Option<Vec<u8>>,
    /// What sets the pace, of connections or of HTTP/2's requests.
    pub pace: Pace,
    /// Connections at once, over all threads.
    pub connections: usize,
    /// Threads that make connections.
    pub threads: usize,
    /// Start nothing after this time.
    pub duration: Option<Duration>,
    /// Start no more connections than this; in HTTP/2 requests.
    pub count: Option<u64>,
    /// The time in which the load grows to its full height. What starts in it is left out of latencies
    /// and rates, but not of failures.
    pub ramp: Duration,
    /// The share of connections that are to resume a session, 0 to 1.
    pub resume: f64,
    /// The TLS versions offered.
    pub versions: Vec<Version>,
    /// The groups offered, preferred first; the first gets the key share.
    pub groups: Vec<Group>,
    /// The cipher suites offered, preferred first; empty for all that there are.
    pub suites: Vec<Suite>,
    /// The application protocol offered (ALPN), if any; HTTP/2 always offers its own.
    pub alpn: Option<Vec<u8>>,
    /// What the server's certificate is verified by.
    pub trust: Trust,
    /// The certificate shown to a server that asks for one.
    pub client_certificate: Option<tls::ClientIdentity>,
    /// Give a connection up after this time from its start; in HTTP/2 a request, too.
    pub timeout: Duration,
    /// Local addresses to connect from, in turn; the system's choice if there are none.
    pub sources: Vec<IpAddr>,
    /// How connections are closed.
    pub close: Close,
    /// Whether addresses beyond this machine and private networks may be loaded.
    pub allow_remote: bool,
}

impl Options {
    /// Full TLS 1.3 handshakes (1.2 where the server has no 1.3) with X25519, closed loop, 32
    /// connections, a thread for each core, 10 seconds, certificates verified by the system's roots,
    /// no request.
    #[must_use]
    pub fn new(address: SocketAddr, server_name: &str) -> Options {
        Options {
            addresses: vec![address],
            server_name: server_name.to_owned(),
            plaintext: false,
            http: Http::One,
            request: None,
            requests_per_connection: 1,
            last_request: None,
            pace: Pace::Closed,
            connections: 32,
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            duration: Some(Duration::from_secs(10)),
            count: None,
            ramp: Duration::ZERO,
            resume: 0.0,
            versions: vec![Version::Tls13, Version::Tls12],
            groups: vec![Group::X25519, Group::Secp256r1, Group::X25519MlKem768],
            suites: Vec::new(),
            alpn: None,
            trust: Trust::System,
            client_certificate: None,
            timeout: Duration::from_secs(10),
            sources: Vec::new(),
            close: Close::Fin,
            allow_remote: false,
        }
    }

    /// `GET path` for `host` on each connection, this many times.
    pub fn get(&mut self, host: &str, path: &str, requests: u32) {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: wiretax\r\nAccept: */*\r\n"
        );
        self.request = Some(format!("{head}\r\n").into_bytes());
        self.last_request = Some(format!("{head}Connection: close\r\n\r\n").into_bytes());
        self.requests_per_connection = requests;
    }

    /// `GET path` for `host` over HTTP/2, `streams` at once on each connection. A connection stays open until
    /// the end, or until it has carried `requests`.
    pub fn get_http2(&mut self, host: &str, path: &str, streams: usize, requests: Option<u32>) {
        let scheme = if self.plaintext { "http" } else { "https" };
        self.http = Http::Two { streams };
        self.request = Some(h2::get(scheme, host, path));
        self.last_request = None;
        self.requests_per_connection = requests.unwrap_or(0);
    }

    /// Requests at once on each connection, where the load is made of requests.
    pub(crate) fn streams(&self) -> Option<usize> {
        match self.http {
            Http::Two { streams } if self.request.is_some() => Some(streams),
            _ => None,
        }
    }

    /// The protocols offered (ALPN).
    pub(crate) fn protocols(&self) -> Vec<Vec<u8>> {
        match self.http {
            Http::One => self.alpn.iter().cloned().collect(),
            Http::Two { .. } => vec![b"h2".to_vec()],
        }
    }

    /// Connections at once: no more than there are requests.
    pub(crate) fn connections(&self) -> usize {
        match (self.streams(), self.count) {
            (Some(_), Some(count)) => {
                self.connections.min(usize::try_from(count).unwrap_or(usize::MAX)).max(1)
            }
            _ => self.connections,
        }
    }

    /// Threads that have connections.
    pub(crate) fn workers(&self) -> usize {
        self.threads.min(self.connections())
    }

    /// The addresses that may be loaded, from where it shall come.
    pub(crate) fn candidates(&self) -> Vec<SocketAddr> {
        let suits = |address: &&SocketAddr| {
            let near = self.allow_remote || is_near(address.ip());
            near && self.sources.iter().all(|source| source.is_ipv4() == address.is_ipv4())
        };
        self.addresses.iter().filter(suits).copied().take(limits::ADDRESSES).collect()
    }

    /// # Errors
    /// [`Error::Options`] or [`Error::Remote`], the caller's fault.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |detail: String| Err(Error::Options(detail));
        let Some(first) = self.addresses.first() else {
            return wrong("there is no address to connect to".to_owned());
        };
        if !self.allow_remote && !self.addresses.iter().any(|address| is_near(address.ip())) {
            return Err(Error::Remote(first.ip()));
        }
        if !(1..=limits::CONNECTIONS).contains(&self.connections) {
            return wrong(format!("connections can be 1 to {}", limits::CONNECTIONS));
        }
        if !(1..=limits::THREADS).contains(&self.threads) {
            return wrong(format!("threads can be 1 to {}", limits::THREADS));
        }
        if let Pace::Open { rate } = self.pace
            && !(rate > 0.0 && rate <= limits::RATE)
        {
            return wrong(format!("the rate is above 0 and at most {} a second", limits::RATE));
        }
        if self.duration.is_none() && self.count.is_none() {
            return wrong("a run needs a duration or a count".to_owned());
        }
        if self.duration.is_some_and(|time| time.is_zero() || time > limits::DURATION) {
            return wrong("the duration is above 0 and at most 7 days".to_owned());
        }
        if self.count == Some(0) {
            return wrong("the count is 0, so there is nothing to do".to_owned());
        }
        if self.duration.is_some_and(|time| self.ramp >= time) || self.ramp > limits::DURATION {
            return wrong("the ramp must be shorter than the duration".to_owned());
        }
        if self.timeout.is_zero() || self.timeout > limits::DURATION {
            return wrong("the timeout is above 0 and at most 7 days".to_owned());
        }
        if !(0.0..=1.0).contains(&self.resume) {
            return wrong("the share of resumed handshakes lies within 0 and 100%".to_owned());
        }
        self.check_request()?;
        self.check_tls()?;
        self.check_sources()
    }

    fn check_request(&self) -> Result<(), Error> {
        let requests = [&self.request, &self.last_request];
        if requests.into_iter().flatten().any(|request| request.len() > limits::REQUEST) {
            let most = limits::REQUEST;
            return Err(Error::Options(format!("the request is longer than {most} bytes")));
        }
        if let Http::Two { streams } = self.http {
            if !(1..=limits::STREAMS).contains(&streams) {
                let most = limits::STREAMS;
                return Err(Error::Options(format!("streams can be 1 to {most}")));
            }
        } else if self.plaintext {
            let text = "without TLS only HTTP/2 is spoken (prior knowledge)";
            return Err(Error::Options(text.to_owned()));
        }
        if self.plaintext && self.request.is_none() {
            return Err(Error::Options("without TLS there is no handshake to load".to_owned()));
        }
        let none = self.requests_per_connection == 0 && self.http == Http::One;
        if self.request.as_ref().is_some_and(Vec::is_empty) || none {
            return Err(Error::Options("a connection carries at least one request".to_owned()));
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), Error> {
        if self.versions.is_empty() || self.groups.is_empty() {
            return Err(Error::Options("at least one TLS version and one group".to_owned()));
        }
        let tls13 = self.versions.contains(&Version::Tls13);
        let tls12 = self.versions.contains(&Version::Tls12);
        let suits = |suite: &Suite| if suite.is_tls13() { tls13 } else { tls12 };
        if let Some(suite) = self.suites.iter().find(|suite| !suits(suite)) {
            return Err(Error::Options(format!("{suite} is of a TLS version that is not offered")));
        }
        let hybrid = |group: &Group| *group == Group::X25519MlKem768;
        if !tls13 && self.groups.iter().all(hybrid) {
            return Err(Error::Options("x25519mlkem768 is for TLS 1.3 only".to_owned()));
        }
        Ok(())
    }

    fn check_sources(&self) -> Result<(), Error> {
        if self.candidates().is_empty()
            && let Some(address) = self.addresses.first()
            && let Some(source) = self.sources.iter().find(|it| it.is_ipv4() != address.is_ipv4())
        {
            return Err(Error::Options(format!(
                "{source} cannot connect to {}: one is IPv4, the other IPv6",
                address.ip()
            )));
        }
        let foreign = |source: &&IpAddr| {
            let bound = UdpSocket::bind((**source, 0));
            bound.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
        };
        match self.sources.iter().find(foreign) {
            None => Ok(()),
            Some(source) => {
                Err(Error::Options(format!("{source} is not an address of this machine")))
            }
        }
    }
}

/// Whether an address is this machine's or of a private network: loopback, RFC 1918, RFC 4193,
/// link-local.
#[must_use]
pub fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_near_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_near_v4(v4),
            None => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        },
    }
}

fn is_near_v4(v4: Ipv4Addr) -> bool {
    v4.is_loopback() || v4.is_private() || v4.is_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options::new(SocketAddr::from(([127, 0, 0, 1], 443)), "server.test")
    }

    #[test]
    fn only_near_addresses_are_loaded_unasked() {
        for near in
            ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.0.1", "::1", "fd00::1", "fe80::1"]
        {
            assert!(is_near(near.parse().unwrap()), "{near}");
        }
        for far in
            ["192.0.2.1", "172.32.0.1", "8.8.8.8", "2001:db8::1", "::ffff:8.8.8.8", "0.0.0.0"]
        {
            assert!(!is_near(far.parse().unwrap()), "{far}");
        }
        let mut options = options();
        options.addresses = vec![SocketAddr::from(([192, 0, 2, 1], 443))];
        assert!(matches!(options.check(), Err(Error::Remote(_))));
        // Of a name with both, only the near one is loaded.
        let near = SocketAddr::from(([127, 0, 0, 1], 443));
        options.addresses.push(near);
        options.check().unwrap();
        assert_eq!(options.candidates(), [near]);
        options.allow_remote = true;
        options.check().unwrap();
        assert_eq!(options.candidates(), options.addresses);
    }

    #[test]
    fn http2_is_loaded_by_requests() {
        let mut options = options();
        options.plaintext = true;
        assert!(matches!(options.check(), Err(Error::Options(_))));
        options.get_http2("server.test", "/", 4, None);
        options.check().unwrap();
        assert_eq!((options.streams(), options.connections()), (Some(4), 32));
        options.count = Some(3);
        assert_eq!((options.connections(), options.workers() <= 3), (3, true));
        options.http = Http::Two { streams: 0 };
        assert!(matches!(options.check(), Err(Error::Options(_))));
    }

    #[test]
    fn nonsense_is_refused() {
        options().check().unwrap();
        let wrong: [fn(&mut Options); 17] = [
            |o| o.connections = 0,
            |o| o.threads = 0,
            |o| o.pace = Pace::Open { rate: 0.0 },
            |o| o.pace = Pace::Open { rate: f64::NAN },
            |o| o.duration = None,
            |o| o.duration = Some(Duration::ZERO),
            |o| o.count = Some(0),
            |o| o.ramp = Duration::from_secs(10),
            |o| o.timeout = Duration::ZERO,
            |o| o.resume = f64::NAN,
            |o| o.request = Some(Vec::new()),
            |o| o.versions.clear(),
            |o| o.sources = vec!["::1".parse().unwrap()],
            |o| o.sources = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
            |o| o.addresses.clear(),
            |o| o.sources = vec!["192.0.2.1".parse().unwrap()],
            |o| {
                o.versions = vec![Version::Tls12];
                o.suites = vec!["TLS_AES_128_GCM_SHA256".parse().unwrap()];
            },
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            let mut options = options();
            change(&mut options);
            assert!(matches!(options.check(), Err(Error::Options(_))), "{number}");
        }
    }
}
