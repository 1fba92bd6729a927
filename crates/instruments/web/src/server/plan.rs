//! What a server is told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use units::Time;

use crate::{Failure, Protocol, QuicSettings, Settings, Site, TcpSettings};

/// Where a server listens, what it speaks there, and what it answers.
#[derive(Clone)]
pub struct ServerPlan {
    /// What is served over TLS and QUIC, if anything.
    pub tls: Option<TlsPlan>,
    /// Addresses of HTTP/1.1 in clear. With port 0 the kernel chooses one.
    pub clear: Vec<SocketAddr>,
    /// What is answered.
    pub site: Arc<dyn Site>,
    /// Windows, concurrency and limits.
    pub settings: Settings,
    /// What QUIC alone has.
    pub quic: QuicSettings,
    /// Options of each connection's socket.
    pub tcp: TcpSettings,
    /// Connections served at once; over TCP others wait in the backlog, over QUIC they are refused.
    pub max_connections: usize,
    /// Limits of time.
    pub timeouts: ServerTimeouts,
    /// Records of streams, and of connections, that the log holds; 0 keeps no log.
    pub log_capacity: usize,
    /// How often TCP_INFO or quinn's counters are read while a connection lives; `None` only at its end.
    /// The first 10,000 readings of a connection are kept.
    pub sample: Option<Duration>,
    /// Says until when packets to the clients wait at the bottleneck, where that is known: until then no
    /// response counts as stalled on a window, and no connection on TCP.
    pub bottleneck: Option<Bottleneck>,
}

/// Says until when packets wait in a queue, or when they last did, on the monotonic clock ([`conn::now`]).
#[derive(Clone)]
pub struct Bottleneck(Arc<dyn Fn() -> Time + Send + Sync>);

impl std::fmt::Debug for Bottleneck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bottleneck").finish_non_exhaustive()
    }
}

impl Bottleneck {
    /// One that is asked so.
    pub fn new(waits_until: impl Fn() -> Time + Send + Sync + 'static) -> Bottleneck {
        Bottleneck(Arc::new(waits_until))
    }

    /// Until when packets wait, where some do now; else when the last did.
    #[must_use]
    pub fn waits_until(&self) -> Time {
        (self.0)()
    }
}

/// TLS and what is spoken over it.
#[derive(Clone)]
pub struct TlsPlan {
    /// Addresses; TCP and UDP alike, as the protocols need. With port 0 the kernel chooses one, the same
    /// for both.
    pub addresses: Vec<SocketAddr>,
    /// Certificate, versions, groups, tickets. Its `alpn` is set by `protocols`. HTTP/3 takes TLS 1.3 of
    /// it. One certificate may carry many names ([`tls::Identity::generate`]).
    pub config: tls::ServerConfig,
    /// What is offered by ALPN, preferred first. A client without ALPN gets HTTP/1.1 if that is in it.
    pub protocols: Vec<Protocol>,
    /// Where our TCP takes connections too, with and without SSLmTCP.
    pub user_tcp: Option<UserTcpPlan>,
}

/// Where our TCP takes connections.
#[derive(Clone)]
pub struct UserTcpPlan {
    /// The stack that listens.
    pub stack: tcpio::Stack,
    /// Addresses of its own, with ports.
    pub addresses: Vec<SocketAddr>,
}

/// Limits of time, against clients that are slow on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTimeouts {
    /// For the handshake of TLS, QUIC or HTTP/2.
    pub handshake: Duration,
    /// From a request's first byte to the end of its head (HTTP/1.1, HTTP/3).
    pub head: Duration,
    /// Without a request. The connection then ends in good order.
    pub idle: Duration,
    /// With a request under way and nothing moved for it.
    pub stall: Duration,
    /// For a request's body as a whole.
    pub upload: Duration,
}

impl Default for ServerTimeouts {
    /// 10 s for handshake and head, 60 s idle or stalled, 10 minutes for an upload.
    fn default() -> Self {
        ServerTimeouts {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            upload: Duration::from_secs(600),
        }
    }
}

impl ServerPlan {
    /// A plan that listens nowhere yet: default settings, 1024 connections, 65,536 records, no samples.
    #[must_use]
    pub fn new(site: Arc<dyn Site>) -> Self {
        ServerPlan {
            tls: None,
            clear: Vec::new(),
            site,
            settings: Settings::default(),
            quic: QuicSettings::default(),
            tcp: TcpSettings::default(),
            max_connections: 1024,
            timeouts: ServerTimeouts::default(),
            log_capacity: 65_536,
            sample: None,
            bottleneck: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        let wrong = |what: &str| Err(Failure::Plan(what.to_owned()));
        if self.max_connections == 0 {
            return wrong("max_connections is 0");
        }
        let Some(tls) = &self.tls else {
            return if self.clear.is_empty() { wrong("there is no address") } else { Ok(()) };
        };
        if tls.protocols.is_empty() {
            return wrong("there is no protocol to offer over TLS");
        }
        for protocol in &tls.protocols {
            match protocol {
                Protocol::Http1Clear => {
                    return wrong("HTTP/1.1 in clear has addresses of its own");
                }
                _ => self.settings.check(*protocol)?,
            }
        }
        Ok(())
    }
}
