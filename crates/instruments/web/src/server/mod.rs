//! The server: listens, negotiates, answers, counts.

mod date;
mod h1;
mod h1_rules;
mod h2;
mod h3;
mod h3_streams;
mod link;
mod plan;
mod push;
mod spdy;
mod tcp;

pub use plan::{Bottleneck, ServerPlan, ServerTimeouts, TlsPlan, UserTcpPlan};

use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sslmtcp::SslmTcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, spawn_local};

use crate::counters::Counters;
use crate::log::Log;
use crate::{Failure, Protocol, QuicSettings, Settings, Site, TcpSettings};

/// A running server. Dropped, it ends at once, with its connections.
pub struct Server {
    shared: Rc<Shared>,
    secure: Vec<SocketAddr>,
    clear: Vec<SocketAddr>,
    endpoints: Vec<quinn::Endpoint>,
    listeners: Vec<AbortHandle>,
}

/// What all connections of a server share.
pub(crate) struct Shared {
    site: Arc<dyn Site>,
    settings: Settings,
    tcp: TcpSettings,
    /// Bytes that quinn holds of a connection until they are acknowledged.
    send_buffer: u64,
    timeouts: ServerTimeouts,
    sample: Option<Duration>,
    bottleneck: Option<Bottleneck>,
    log: Log,
    counters: Counters,
    slots: Arc<Semaphore>,
    max_connections: u32,
    next_connection: Cell<u64>,
    stopping: Cell<bool>,
    stopped: Notify,
    /// Ends every connection at once.
    aborted: Cell<bool>,
    abort: Notify,
}

impl Shared {
    /// Resolves when connections are to end in good order.
    async fn stopping(&self) {
        while !self.stopping.get() {
            self.stopped.notified().await;
        }
    }

    /// Resolves when connections are to end at once.
    async fn aborting(&self) {
        while !self.aborted.get() {
            self.abort.notified().await;
        }
    }

    fn number(&self) -> u64 {
        let id = self.next_connection.get();
        self.next_connection.set(id + 1);
        id
    }

    fn abort(&self) {
        self.aborted.set(true);
        self.abort.notify_waiters();
    }
}

impl Server {
    /// Listens, and serves in tasks of the current [`tokio::task::LocalSet`] until it is stopped or
    /// dropped.
    ///
    /// # Errors
    /// [`Failure::Plan`], [`Failure::Unsupported`]: the plan cannot work; [`Failure::Transport`]: an
    /// address is taken or not there, or the TLS configuration cannot work.
    pub fn start(plan: ServerPlan) -> Result<Server, Failure> {
        plan.check()?;
        let max_connections = u32::try_from(plan.max_connections).unwrap_or(u32::MAX >> 3);
        let shared = Rc::new(Shared {
            site: Arc::clone(&plan.site),
            settings: plan.settings,
            tcp: plan.tcp,
            send_buffer: plan.quic.send_window,
            timeouts: plan.timeouts,
            sample: plan.sample,
            bottleneck: plan.bottleneck,
            log: Log::new(plan.log_capacity),
            counters: Counters::default(),
            slots: Arc::new(Semaphore::new(max_connections as usize)),
            max_connections,
            next_connection: Cell::new(1),
            stopping: Cell::new(false),
            stopped: Notify::new(),
            aborted: Cell::new(false),
            abort: Notify::new(),
        });
        let mut server = Server {
            shared,
            secure: Vec::new(),
            clear: Vec::new(),
            endpoints: Vec::new(),
            listeners: Vec::new(),
        };
        for address in &plan.clear {
            let local = server.listen(*address, None)?;
            server.clear.push(local);
        }
        if let Some(tls) = &plan.tls {
            server.listen_securely(tls, &plan.quic)?;
        }
        Ok(server)
    }

    /// Listens at `address` over TCP: in TLS, or in clear.
    fn listen(
        &mut self,
        address: SocketAddr,
        tls: Option<tcp::Acceptor>,
    ) -> Result<SocketAddr, Failure> {
        let (listener, local) = tcp::listen(address, &self.shared.tcp)?;
        let task = spawn_local(tcp::accept(listener, tls, Rc::clone(&self.shared)));
        self.listeners.push(task.abort_handle());
        Ok(local)
    }

    fn listen_securely(&mut self, plan: &TlsPlan, quic: &QuicSettings) -> Result<(), Failure> {
        let over_tcp: Vec<_> =
            plan.protocols.iter().copied().filter(|protocol| protocol.is_over_tcp()).collect();
        let over_quic = plan.protocols.contains(&Protocol::Http3);
        let acceptor = match over_tcp.is_empty() || plan.addresses.is_empty() {
            true => None,
            false => {
                let alpn = over_tcp.iter().map(|protocol| protocol.alpn().to_vec()).collect();
                let config = tls::ServerConfig { alpn, ..plan.config.clone() };
                Some(tcp::Acceptor::new(&config)?)
            }
        };
        let config = match over_quic && !plan.addresses.is_empty() {
            false => None,
            true => Some(h3::config(&plan.config, &self.shared, quic)?),
        };
        for address in &plan.addresses {
            let mut local = *address;
            if let Some(acceptor) = &acceptor {
                local = self.listen(local, Some(acceptor.clone()))?;
            }
            if let Some(config) = &config {
                let failed = |error| Failure::from_io("bind", "opening the socket", &error);
                let socket = UdpSocket::bind(local).map_err(failed)?;
                local = socket.local_addr().map_err(failed)?;
                let endpoint = crate::quic::endpoint(socket, Some(config.clone()))?;
                let task = spawn_local(h3::accept(endpoint.clone(), Rc::clone(&self.shared)));
                self.listeners.push(task.abort_handle());
                self.endpoints.push(endpoint);
            }
            self.secure.push(local);
        }
        match &plan.user_tcp {
            Some(user) => self.listen_by_user_tcp(plan, user),
            None => Ok(()),
        }
    }

    /// Listens over our TCP.
    fn listen_by_user_tcp(&mut self, plan: &TlsPlan, user: &UserTcpPlan) -> Result<(), Failure> {
        let over_tcp = plan.protocols.iter().filter(|protocol| protocol.is_over_tcp());
        let alpn = over_tcp.map(|protocol| protocol.alpn().to_vec()).collect();
        let config = tls::ServerConfig { alpn, ..plan.config.clone() };
        let server = tls::Server::new(&config).map_err(conn::Failure::from)?;
        for address in &user.addresses {
            let options = sslmtcp::ListenOptions {
                timeout: self.shared.timeouts.handshake,
                ..sslmtcp::ListenOptions::default()
            };
            let bound = SslmTcpListener::bind(&user.stack, *address, server.clone(), options);
            let listener = bound.map_err(conn::user_tcp::failure)?;
            self.secure.push(listener.local_addr());
            let task = spawn_local(tcp::accept_user_tcp(listener, Rc::clone(&self.shared)));
            self.listeners.push(task.abort_handle());
        }
        Ok(())
    }

    /// Where it listens for TLS and QUIC, in the plan's order, our TCP's addresses last.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.secure
    }

    /// Where it listens in clear, in the plan's order.
    #[must_use]
    pub fn clear_addresses(&self) -> &[SocketAddr] {
        &self.clear
    }

    /// A handle to its log of connections and streams.
    #[must_use]
    pub fn log(&self) -> Log {
        self.shared.log.clone()
    }

    /// A handle to its counters, which go on counting.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.counters.clone()
    }

    /// Ends in good order: nothing new is accepted, connections are told (GOAWAY, `connection: close`),
    /// and requests under way are served, for `grace` at most; then all ends at once. Returns whether
    /// every connection ended in that time.
    pub async fn stop(mut self, grace: Duration) -> bool {
        for listener in self.listeners.drain(..) {
            listener.abort();
        }
        self.shared.stopping.set(true);
        self.shared.stopped.notify_waiters();
        let all = self.shared.slots.acquire_many(self.shared.max_connections);
        let is_over = tokio::time::timeout(grace, all).await.is_ok();
        self.shared.abort();
        for endpoint in &self.endpoints {
            endpoint.close(quinn::VarInt::from_u32(h3::NO_ERROR), b"");
        }
        if is_over {
            // The close has to go out; what is not acknowledged by then is of no use.
            let idle = self.endpoints.iter().map(quinn::Endpoint::wait_idle);
            let idle = futures_util::future::join_all(idle);
            let _ = tokio::time::timeout(Duration::from_millis(100), idle).await;
        }
        is_over
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for listener in &self.listeners {
            listener.abort();
        }
        self.shared.abort();
        for endpoint in &self.endpoints {
            // Connections close by themselves; new ones are refused.
            endpoint.set_server_config(None);
        }
    }
}
