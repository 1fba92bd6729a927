//! The server: listens, accepts, answers, logs.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::serve::serve_connection;
use super::{FastOpen, socket};
use crate::clock::now;
use crate::log::{DEFAULT_LOG_CAPACITY, ServerLog};
use crate::{Failure, Running};

/// How long to wait before accepting again after an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Errors of accept() in a row after which the server gives up.
const ACCEPT_PATIENCE: u32 = 500;

/// How a server answers.
#[derive(Clone)]
pub struct ServerPlan {
    /// The TLS server; `None` is plain TCP.
    pub tls: Option<tls::Server>,
    /// Bytes that make a request. More are read and ignored.
    pub request_len: usize,
    /// The response, sent as soon as the request is there.
    pub response: Vec<u8>,
    /// A connection that lives longer is closed.
    pub timeout: Duration,
    /// Connections served at once; others wait in the backlog.
    pub max_connections: usize,
    /// The listener's backlog.
    pub backlog: u16,
    /// Whether data in a SYN is taken. The sysctl `net.ipv4.tcp_fastopen` must have bit 0x2 too.
    pub fast_open: FastOpen,
    /// Fast Open connections that may wait for their third handshake packet.
    pub fast_open_queue: u16,
    /// Records that the log holds.
    pub log_capacity: usize,
}

impl Default for ServerPlan {
    /// Plain TCP: one byte there, one byte back.
    fn default() -> Self {
        ServerPlan {
            tls: None,
            request_len: 1,
            response: b"!".to_vec(),
            timeout: Duration::from_secs(30),
            max_connections: 1024,
            backlog: 1024,
            fast_open: FastOpen::Off,
            fast_open_queue: 256,
            log_capacity: DEFAULT_LOG_CAPACITY,
        }
    }
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    local: SocketAddr,
    plan: Arc<ServerPlan>,
    log: ServerLog,
}

impl Server {
    /// Listens at `address`, and only there, in the calling thread's network namespace. Must be called
    /// within the tokio runtime that will serve.
    ///
    /// # Errors
    /// [`Failure::Environment`]: the address is taken or not there, the kernel lacks an option.
    pub fn bind(address: SocketAddr, plan: ServerPlan) -> Result<Self, Failure> {
        let listener =
            socket::listener(address, plan.backlog.into(), plan.fast_open, plan.fast_open_queue)?;
        let failed = |error| Failure::from_io("listen", "listening", &error);
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let log = ServerLog::new(plan.log_capacity);
        Ok(Server { listener, local, plan: Arc::new(plan), log })
    }

    /// Where it listens; with the port that the kernel chose if 0 was asked for.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A handle to the log of finished connections.
    #[must_use]
    pub fn log(&self) -> ServerLog {
        self.log.clone()
    }

    /// Serves until it is dropped, which also ends the connections being served.
    ///
    /// # Errors
    /// accept() failed too often in a row.
    pub async fn serve(self) -> Result<Infallible, Failure> {
        let slots = Arc::new(Semaphore::new(self.plan.max_connections.max(1)));
        let mut connections = JoinSet::new();
        let mut failures = 0;
        loop {
            let slot = Arc::clone(&slots).acquire_owned().await;
            let (stream, peer) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) if failures < ACCEPT_PATIENCE => {
                    tracing::warn!(%error, "accept failed");
                    failures += 1;
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
                Err(error) => return Err(Failure::from_io("accept", "accepting", &error)),
            };
            let accepted = now();
            failures = 0;
            let (plan, log) = (Arc::clone(&self.plan), self.log.clone());
            connections.spawn(async move {
                serve_connection(stream, peer, accepted, &plan, &log).await;
                drop(slot);
            });
            while connections.try_join_next().is_some() {}
        }
    }

    /// Serves in a task of the current runtime until the returned guard is dropped.
    #[must_use]
    pub fn spawn(self) -> Running {
        let (address, log) = (self.local, self.log());
        Running::new(
            address,
            log,
            tokio::spawn(async move {
                let Err(error) = self.serve().await;
                tracing::error!(%error, "the server stopped");
            }),
        )
    }
}
