//! What to connect to and what to answer, over whatever transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sslmtcp::Embedding;
use tcpio::Stack;
use tls::Ticket;

use crate::log::DEFAULT_LOG_CAPACITY;
use crate::opening::Opening;
use crate::{Attempt, Failure, FastOpen, quic, sslmtcp as user_tcp, tcp};

/// One connection: what to connect to, over what, and what to say.
#[derive(Clone)]
pub struct ClientPlan {
    /// The server's address.
    pub server: SocketAddr,
    /// What carries the connection, and the TLS client on it.
    pub transport: ClientTransport,
    /// The dialogs on the TCP connection before TLS, if any. With a proxy, `server` is the
    /// proxy's address. The kernel's TCP without Fast Open only.
    pub opening: Option<Arc<Opening>>,
    /// The ticket to resume by; it is used up.
    pub ticket: Option<Ticket>,
    /// Send the request as early data if the session has room for it (RFC 8446 §2.3; QUIC: RFC 9001
    /// §4.6). Rejected, it is sent again after the handshake.
    pub early_data: bool,
    /// The request; over QUIC on one bidirectional stream. Empty: none is sent, and the connection ends
    /// with the handshake.
    pub request: Vec<u8>,
    /// Bytes to read before the response counts as whole.
    pub response_len: usize,
    /// How long to wait between being ready and sending the request (plain TCP with Fast Open: the SYN
    /// waits too; our TCP: no early data then). The timer's grain is 1 ms;
    /// [`Timeline::think_time`](crate::Timeline::think_time) says what it was.
    pub think: Duration,
    /// After how long the attempt is given up. Covers everything up to the last response byte; QUIC's
    /// idle timeout too.
    pub timeout: Duration,
    /// How long to wait, after the response, for a ticket; `None` does not wait. For a connection that
    /// primes resumption.
    pub await_ticket: Option<Duration>,
    /// How long to wait, after the end was sent, for the server's: closing with unread bytes makes the
    /// kernel send RST. Zero closes at once. QUIC: for CONNECTION_CLOSE to have been sent and, if there
    /// is time, the connection drained (RFC 9000 §10.2); what is left of it goes on in the background.
    pub linger: Duration,
}

/// What carries a client's connection, and the TLS client on it. Cheap to clone.
#[derive(Clone)]
pub enum ClientTransport {
    /// The kernel's TCP.
    Tcp {
        /// Whether data may ride in the SYN.
        fast_open: FastOpen,
        /// The TLS client; `None` is plain TCP.
        tls: Option<tls::Client>,
    },
    /// Our own TCP, in user space.
    UserTcp {
        /// The TCP to connect by.
        stack: Stack,
        /// What of the TLS handshake rides in TCP's.
        embedding: Embedding,
        /// The TLS client.
        tls: tls::Client,
    },
    /// QUIC, with the TLS that it brings.
    Quic {
        /// The TLS client.
        tls: tls::quic::Client,
    },
}

impl ClientTransport {
    /// TLS over the kernel's TCP, without Fast Open.
    #[must_use]
    pub fn tls(client: &tls::Client) -> ClientTransport {
        ClientTransport::Tcp { fast_open: FastOpen::Off, tls: Some(client.clone()) }
    }
}

impl ClientPlan {
    /// To `server` over `transport`: one byte there, one byte back, 10 s of patience, 1 s of lingering
    /// (QUIC: 5 ms).
    #[must_use]
    pub fn new(server: SocketAddr, transport: ClientTransport) -> Self {
        let linger = match transport {
            ClientTransport::Quic { .. } => Duration::from_millis(5),
            _ => Duration::from_secs(1),
        };
        ClientPlan {
            server,
            transport,
            opening: None,
            ticket: None,
            early_data: false,
            request: b"?".to_vec(),
            response_len: 1,
            think: Duration::ZERO,
            timeout: Duration::from_secs(10),
            await_ticket: None,
            linger,
        }
    }

    /// Plain TCP to `server`, the rest as [`ClientPlan::new`] has it.
    #[must_use]
    pub fn plain(server: SocketAddr) -> Self {
        ClientPlan::new(server, ClientTransport::Tcp { fast_open: FastOpen::Off, tls: None })
    }
}

/// Makes one connection by `plan`.
///
/// # Errors
/// Every kind of [`Failure`]; the attempt's socket is closed by then. A closed UDP port
/// is one that does not answer, since QUIC does not trust ICMP: it times out.
pub async fn connect(plan: ClientPlan) -> Attempt {
    let takes_opening =
        matches!(plan.transport, ClientTransport::Tcp { fast_open: FastOpen::Off, .. });
    if plan.opening.is_some() && !takes_opening {
        let text = "a proxy and STARTTLS need the kernel's TCP without Fast Open";
        return Err(Failure::Plan(text.to_owned()));
    }
    match &plan.transport {
        ClientTransport::Tcp { fast_open, tls } => {
            tcp::connect(&plan, *fast_open, tls.as_ref()).await
        }
        ClientTransport::UserTcp { stack, embedding, tls } => {
            user_tcp::connect(&plan, stack, *embedding, tls).await
        }
        ClientTransport::Quic { tls } => quic::connect(&plan, tls).await,
    }
}

/// How a server answers, and over what.
#[derive(Clone)]
pub struct ServerPlan {
    /// What carries the connections, and the TLS server on it.
    pub transport: ServerTransport,
    /// Bytes that make a request. More are read and ignored.
    pub request_len: usize,
    /// The response, sent as soon as the request is there.
    pub response: Vec<u8>,
    /// A connection that lives longer is closed; QUIC's idle timeout too.
    pub timeout: Duration,
    /// Connections served at once; over TCP others wait in the backlog, over QUIC they are refused.
    pub max_connections: usize,
    /// Records that the log holds.
    pub log_capacity: usize,
}

/// What carries a server's connections, and the TLS server on it.
#[derive(Clone)]
pub enum ServerTransport {
    /// The kernel's TCP.
    Tcp {
        /// Whether data in a SYN is taken. The sysctl `net.ipv4.tcp_fastopen` must have bit 0x2 too.
        fast_open: FastOpen,
        /// The TLS server; `None` is plain TCP.
        tls: Option<tls::Server>,
    },
    /// Our own TCP, in user space: SSLmTCP and ordinary TCP and TLS on one port.
    UserTcp {
        /// The TCP to listen on.
        stack: Stack,
        /// The TLS server.
        tls: tls::Server,
    },
    /// QUIC, by quinn over UDP.
    Quic {
        /// Its TLS: rustls, version 1.3. `max_early_data` above 0 accepts 0-RTT, of any length (RFC
        /// 9001 §4.6.1).
        tls: Box<tls::ServerConfig>,
        /// Whether each client's address is validated by a Retry packet first (RFC 9000 §8.1.2), for
        /// one more round trip.
        retry: bool,
    },
}

impl ServerTransport {
    /// TLS over the kernel's TCP, without Fast Open.
    #[must_use]
    pub fn tls(server: tls::Server) -> ServerTransport {
        ServerTransport::Tcp { fast_open: FastOpen::Off, tls: Some(server) }
    }

    /// QUIC without Retry.
    #[must_use]
    pub fn quic(tls: tls::ServerConfig) -> ServerTransport {
        ServerTransport::Quic { tls: Box::new(tls), retry: false }
    }
}

impl ServerPlan {
    /// One byte there, one byte back, 30 s of patience, 1,024 connections at once.
    #[must_use]
    pub fn new(transport: ServerTransport) -> Self {
        ServerPlan {
            transport,
            request_len: 1,
            response: b"!".to_vec(),
            timeout: Duration::from_secs(30),
            max_connections: 1024,
            log_capacity: DEFAULT_LOG_CAPACITY,
        }
    }

    /// Plain TCP, the rest as [`ServerPlan::new`] has it.
    #[must_use]
    pub fn plain() -> Self {
        ServerPlan::new(ServerTransport::Tcp { fast_open: FastOpen::Off, tls: None })
    }
}
