//! What a client is told.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use rustls::client::{ClientSessionMemoryCache, ClientSessionStore};

use super::push::PushLimits;
use crate::{
    Bottleneck, Failure, Priority, Protocol, QuicSettings, Settings, TcpSettings, UserTcp,
};

/// Tickets kept per host.
const TICKETS_PER_HOST: usize = 8;

/// The sessions that a browser remembers between connections and loads, for all hosts. Clones share them.
/// Those of QUIC are apart, as they are in browsers, and those of [`tls::Session`]s: over our own TCP, with early data,
/// or of OpenSSL. Up to eight TLS 1.3 tickets per host are kept, and each is used once.
#[derive(Clone)]
pub struct Tickets {
    pub(super) tcp: Arc<dyn ClientSessionStore>,
    pub(super) quic: Arc<dyn ClientSessionStore>,
    sessions: Arc<Mutex<SessionTickets>>,
}

/// Tickets of sessions by host, the newest last.
struct SessionTickets {
    most_hosts: usize,
    of: HashMap<String, VecDeque<tls::Ticket>>,
}

impl Tickets {
    /// Room for the sessions of so many hosts. It is for connections of one [`crate::Client`]: another's
    /// would not be offered them.
    #[must_use]
    pub fn new(hosts: usize) -> Self {
        let sessions = hosts.saturating_mul(TICKETS_PER_HOST);
        let cache = || Arc::new(ClientSessionMemoryCache::new(sessions));
        let sessions = SessionTickets { most_hosts: hosts, of: HashMap::new() };
        Tickets { tcp: cache(), quic: cache(), sessions: Arc::new(Mutex::new(sessions)) }
    }

    /// Those of a host, for sessions.
    pub(super) fn of(&self, host: &str) -> TicketsOf {
        TicketsOf { tickets: Arc::clone(&self.sessions), host: host.to_owned() }
    }
}

/// A host's tickets for sessions.
#[derive(Clone)]
pub(crate) struct TicketsOf {
    tickets: Arc<Mutex<SessionTickets>>,
    host: String,
}

impl TicketsOf {
    /// The newest. One of TLS 1.3 is for one use (RFC 8446 §C.4), one of TLS 1.2 stays.
    pub(crate) fn take(&self) -> Option<tls::Ticket> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = tickets.of.get_mut(&self.host)?;
        match kept.back() {
            Some(ticket) if ticket.version() == tls::Version::Tls12 => Some(ticket.clone()),
            _ => kept.pop_back(),
        }
    }

    /// Keeps one; the oldest goes where there are too many, and a host beyond the limit has none.
    pub(crate) fn put(&self, ticket: tls::Ticket) {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.of.len() >= tickets.most_hosts && !tickets.of.contains_key(&self.host) {
            return;
        }
        let kept = tickets.of.entry(self.host.clone()).or_default();
        if kept.len() >= TICKETS_PER_HOST {
            kept.pop_front();
        }
        kept.push_back(ticket);
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

/// One connection: where to, by what, with which settings.
#[derive(Debug, Clone)]
pub struct ConnectPlan {
    /// The server's address.
    pub address: SocketAddr,
    /// The name that its certificate must carry; sent as SNI (RFC 6066 §3).
    pub name: String,
    /// What is offered by ALPN, preferred first. HTTP/3 and HTTP/1.1 in clear stand alone.
    pub protocols: Vec<Protocol>,
    /// Sessions to resume, and where new ones go; `None` always makes the full handshake.
    pub tickets: Option<Tickets>,
    /// Windows, concurrency and limits.
    pub settings: Settings,
    /// What is taken of what the server pushes, over SPDY and HTTP/2; `None` takes nothing, and says so.
    pub push: Option<PushLimits>,
    /// What QUIC alone has.
    pub quic: QuicSettings,
    /// Options of the socket.
    pub tcp: TcpSettings,
    /// This side's address, of the kernel's TCP; the route's if not given. The kernel keeps its Fast Open
    /// cookies by both addresses.
    pub source: Option<IpAddr>,
    /// Whether the first requests leave as early data where a ticket allows it (TLS 1.3 over the kernel's TCP,
    /// and QUIC). For one protocol.
    pub early_data: bool,
    /// Our TCP in place of the kernel's, for one protocol in TLS; `tcp` is nothing to it.
    pub user_tcp: Option<UserTcp>,
    /// Says until when packets to the server wait at the bottleneck, where that is known: until then no
    /// request's body counts as stalled, on a window or on TCP.
    pub bottleneck: Option<Bottleneck>,
    /// Limits of time.
    pub timeouts: ClientTimeouts,
}

/// Limits of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// Until the connection is ready.
    pub connect: Duration,
    /// For each exchange as a whole.
    pub exchange: Duration,
    /// QUIC's idle timeout.
    pub idle: Duration,
}

impl Default for ClientTimeouts {
    /// 30 s to connect, 10 minutes for an exchange, 60 s idle.
    fn default() -> Self {
        ClientTimeouts {
            connect: Duration::from_secs(30),
            exchange: Duration::from_secs(600),
            idle: Duration::from_secs(60),
        }
    }
}

impl ConnectPlan {
    /// To `name` at `address` by `protocol` alone; no tickets, default settings.
    #[must_use]
    pub fn new(address: SocketAddr, name: &str, protocol: Protocol) -> Self {
        ConnectPlan {
            address,
            name: name.to_owned(),
            protocols: vec![protocol],
            tickets: None,
            settings: Settings::default(),
            push: None,
            quic: QuicSettings::default(),
            tcp: TcpSettings::default(),
            source: None,
            early_data: false,
            user_tcp: None,
            bottleneck: None,
            timeouts: ClientTimeouts::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        let wrong = |what: &str| Err(Failure::Plan(what.to_owned()));
        if self.protocols.is_empty() {
            return wrong("there is no protocol to connect by");
        }
        let over_tls =
            |protocol: &Protocol| protocol.is_over_tcp() && *protocol != Protocol::Http1Clear;
        if self.user_tcp.is_some()
            && !(self.protocols.len() == 1 && self.protocols.iter().all(over_tls))
        {
            return wrong("our TCP carries one protocol in TLS");
        }
        if self.early_data
            && (self.protocols.len() > 1 || self.protocols.contains(&Protocol::Http1Clear))
        {
            return wrong("early data is for one protocol, in TLS");
        }
        for protocol in &self.protocols {
            match protocol {
                Protocol::Http1Clear | Protocol::Http3 if self.protocols.len() > 1 => {
                    return wrong(
                        "HTTP/3 and unencrypted HTTP/1.1 cannot be offered together with others",
                    );
                }
                _ => self.settings.check(*protocol)?,
            }
        }
        Ok(())
    }
}

/// A request, as it is to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The request's method (RFC 9110 §9).
    pub method: Method,
    /// The host, with the port if it is not the scheme's.
    pub authority: String,
    /// The path with its query.
    pub path: String,
    /// Header fields beside those that the protocol needs.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Sent as `priority` (RFC 9218 §5), over SPDY as the priority of its frame, where `None` is the default;
    /// elsewhere `None` sends none.
    pub priority: Option<Priority>,
    /// Bytes to send as the request's body.
    pub upload: u64,
    /// Bytes that the response's body must have; another length is a failure.
    pub expected: Option<u64>,
    /// Whether the response's body is hashed.
    pub digest: bool,
}

impl Request {
    /// GET of `path` from `authority`.
    #[must_use]
    pub fn get(authority: &str, path: &str) -> Self {
        Request {
            method: Method::GET,
            authority: authority.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            priority: None,
            upload: 0,
            expected: None,
            digest: false,
        }
    }

    /// POST of `upload` bytes to `path`.
    #[must_use]
    pub fn post(authority: &str, path: &str, upload: u64) -> Self {
        Request { method: Method::POST, upload, ..Request::get(authority, path) }
    }

    /// Whether it may be early data, which may reach the server twice: it has a safe method (RFC 9110 §9.2.1)
    /// and no body (RFC 8470 §4).
    pub(super) fn may_be_early(&self) -> bool {
        self.method.is_safe() && self.upload == 0
    }

    /// The head. `absolute`: with scheme and authority in the URI, else with `host`.
    pub(super) fn head(&self, absolute: bool) -> Result<http::Request<()>, Failure> {
        let wrong = |error: http::Error| Failure::Plan(format!("the request: {error}"));
        let uri = http::Uri::builder().path_and_query(self.path.as_str());
        let uri =
            if absolute { uri.scheme("https").authority(self.authority.as_str()) } else { uri };
        let uri = uri.build().map_err(wrong)?;
        let mut builder = http::Request::builder().method(&self.method).uri(uri);
        if !absolute {
            builder = builder.header(http::header::HOST, self.authority.as_str());
        }
        if let Some(priority) = self.priority {
            builder = builder.header("priority", priority.value());
        }
        if self.upload > 0 || self.method == Method::POST || self.method == Method::PUT {
            builder = builder.header(http::header::CONTENT_LENGTH, self.upload);
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        builder.body(()).map_err(wrong)
    }
}
