//! A server of any transport: listens, answers, logs.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::log::ServerLog;
use crate::{Failure, Running, ServerPlan, ServerTransport, quic, sslmtcp, tcp};

/// A listening server.
pub struct Server {
    listener: Listener,
    local: SocketAddr,
    plan: Arc<ServerPlan>,
    log: ServerLog,
}

enum Listener {
    Tcp(tokio::net::TcpListener, Option<tls::Server>),
    UserTcp(::sslmtcp::SslmTcpListener),
    Quic(quinn::Endpoint, bool),
}

impl Server {
    /// Listens at `address`, and only there, in the calling thread's network namespace (with our TCP: at
    /// its stack). Must be called within the tokio runtime that will serve.
    ///
    /// # Errors
    /// [`Failure::Environment`]: the address is taken or not there, the kernel lacks an option;
    /// [`Failure::Tls`], [`Failure::Plan`]: QUIC's configuration cannot work.
    pub fn bind(address: SocketAddr, plan: ServerPlan) -> Result<Self, Failure> {
        let (listener, local) = match &plan.transport {
            ServerTransport::Tcp { fast_open, tls } => {
                let (listener, local) = tcp::listen(address, *fast_open)?;
                (Listener::Tcp(listener, tls.clone()), local)
            }
            ServerTransport::UserTcp { stack, tls } => {
                let listener = sslmtcp::listen(stack, address, tls.clone())?;
                let local = listener.local_addr();
                (Listener::UserTcp(listener), local)
            }
            ServerTransport::Quic { tls, retry } => {
                let (endpoint, local) = quic::listen(address, tls, plan.timeout)?;
                (Listener::Quic(endpoint, *retry), local)
            }
        };
        let log = ServerLog::new(plan.log_capacity);
        Ok(Server { listener, local, plan: Arc::new(plan), log })
    }

    /// Where it listens; with the port that the kernel chose if 0 was asked for.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves in a task of the current runtime until the returned guard is dropped, which also ends the
    /// connections being served.
    #[must_use]
    pub fn spawn(self) -> Running {
        let Server { listener, local, plan, log } = self;
        let logged = log.clone();
        let task = match listener {
            Listener::Tcp(listener, tls) => tokio::spawn(tcp::serve(listener, tls, plan, logged)),
            Listener::UserTcp(listener) => tokio::spawn(sslmtcp::serve(listener, plan, logged)),
            Listener::Quic(endpoint, retry) => {
                tokio::spawn(quic::serve(endpoint, retry, plan, logged))
            }
        };
        Running::new(local, log, task)
    }
}
