//! A stack: addresses of our own on a device, and the TCP that speaks for them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tcp::{ConnectOptions, Counters, Endpoint, ListenOptions};

use crate::device::{Device, MAX_PACKET};
use crate::discovery::Discovery;
use crate::driver::Driver;
use crate::engine::{Engine, StackCounters};
use crate::listener::TcpListener;
use crate::options::StackOptions;
use crate::routes::Routes;
use crate::shared::{Shared, User};
use crate::stream::TcpStream;
use crate::waiters::Waiters;
use crate::{Error, InterfaceAddress};

/// TCP in user space on a link or a TUN device. Clones are the same stack.
///
/// It is driven by a task of the runtime in which it was opened, until it is shut down or the last
/// of its clones, streams and listeners is dropped.
#[derive(Debug, Clone)]
pub struct Stack {
    user: User,
}

/// What a stack is made of, as told by [`Stack::info`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackInfo {
    /// The addresses that it was opened with.
    pub addresses: Vec<InterfaceAddress>,
    /// Streams that are open, or were dropped and are still ending.
    pub streams: usize,
    /// How many listeners there are.
    pub listeners: usize,
    /// What the stack has seen and dropped below TCP.
    pub counters: StackCounters,
}

impl Stack {
    /// Opens a stack in the calling thread's network namespace, and spawns its driver on the
    /// current tokio runtime.
    ///
    /// # Errors
    /// [`Error::NoRuntime`]; [`Error::Device`] without rights or for a missing interface;
    /// [`Error::Down`], [`Error::NotEthernet`]; [`Error::NoAddress`], [`Error::Gateway`],
    /// [`Error::OwnedByKernel`] for addresses that cannot be the stack's; [`Error::System`].
    pub fn open(options: StackOptions) -> Result<Stack, Error> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
        let routes = Routes::new(options.addresses, options.gateways)?;
        let opened = Device::open(&options.device, routes.addresses())?;
        let discovery = opened.link.map(|link| Discovery::new(link, &options.neighbours));
        let mut config = options.tcp;
        config.mtu = config.mtu.min(opened.mtu);
        config.max_super_segment = match (opened.super_segments, config.max_super_segment) {
            (false, _) => 0,
            (true, 0) => MAX_PACKET,
            (true, bytes) => bytes.min(MAX_PACKET),
        };
        let seed = options.seed.map_or_else(random_seed, Ok)?;
        let failed = |doing| move |source| Error::System { doing, source };
        let descriptors = opened.device.duplicate().map_err(failed("duplicating a descriptor"))?;
        tracing::debug!(device = ?options.device, mtu = config.mtu, "stack opened");
        let engine = Engine::new(Endpoint::new(config, seed), opened, routes, discovery);
        let shared = Shared::new(engine, options.linger);
        let user = User::new(Arc::clone(&shared));
        let driver =
            Driver::new(shared, descriptors, options.spin).map_err(failed("watching a device"))?;
        runtime.spawn(driver);
        Ok(Stack { user })
    }

    /// Listens on `local`: an address of the stack, or the unspecified one of a family for all of
    /// it.
    ///
    /// # Errors
    /// [`Error::NotOurs`], [`Error::Listen`] if the port is taken, [`Error::Closed`].
    pub fn listen(&self, local: SocketAddr, options: ListenOptions) -> Result<TcpListener, Error> {
        let id = self.user.act(|engine, _| {
            if engine.is_closing() {
                return Err(Error::Closed);
            }
            if !local.ip().is_unspecified() && !engine.routes.owns(local.ip()) {
                return Err(Error::NotOurs { address: local.ip() });
            }
            let id = engine.endpoint.listen(local, options)?;
            engine.listeners.insert(id, Vec::new());
            Ok(id)
        })?;
        Ok(TcpListener::new(self.user.clone(), id, local))
    }

    /// Connects to `remote` from the stack's address that is nearest and a free port. The SYN is
    /// out when this returns; [`TcpStream::connected`] waits for the answer.
    ///
    /// # Errors
    /// [`Error::NoRoute`], [`Error::Connect`] if there is no room or port, [`Error::Closed`].
    pub fn connect(&self, remote: SocketAddr, options: ConnectOptions) -> Result<TcpStream, Error> {
        self.connect_from(None, remote, options)
    }

    /// As [`Stack::connect`], from `local` if given; its port 0 stands for any.
    ///
    /// # Errors
    /// As [`Stack::connect`]; [`Error::NotOurs`].
    pub fn connect_from(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: ConnectOptions,
    ) -> Result<TcpStream, Error> {
        let (id, local) = self.user.act(|engine, now| {
            if engine.is_closing() {
                return Err(Error::Closed);
            }
            let no_route = Error::NoRoute { destination: remote.ip() };
            // Packets to ourselves would have to turn round within the stack.
            let source = match engine.routes.source(remote.ip()) {
                Some(source) if !engine.routes.owns(remote.ip()) => source,
                _ => return Err(no_route),
            };
            let local = local.unwrap_or(SocketAddr::new(source, 0));
            if !engine.routes.owns(local.ip()) {
                return Err(Error::NotOurs { address: local.ip() });
            }
            let id = engine.endpoint.connect(now, local, remote, options)?;
            engine.streams.insert(id, Waiters::default());
            let local = engine.endpoint.info(id).map_or(local, |info| info.local);
            Ok((id, local))
        })?;
        Ok(TcpStream::new(self.user.clone(), id, local, remote))
    }

    /// The stack's addresses, and what goes on below TCP.
    #[must_use]
    pub fn info(&self) -> StackInfo {
        let mut engine = self.user.lock();
        StackInfo {
            addresses: engine.routes.addresses().to_vec(),
            streams: engine.streams.len(),
            listeners: engine.listeners.len(),
            counters: engine.counters(),
        }
    }

    /// What TCP has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.user.lock().endpoint.counters()
    }

    /// The address from which the stack would speak to `remote`; `None` if there is no way.
    #[must_use]
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        self.user.lock().routes.source(remote)
    }

    /// Shuts the stack down: no more connections, and those there are end in order, with what they
    /// have buffered. After [`StackOptions::linger`] the rest is reset. Everything that waits on
    /// the stack then ends with an error.
    pub async fn shutdown(&self) {
        let ended = self.user.ended.notified();
        tokio::pin!(ended);
        // Before closing, so that the end is not missed.
        ended.as_mut().enable();
        if self.user.lock().ended {
            return;
        }
        self.user.close();
        ended.await;
    }
}

/// A seed that nobody can guess, from the operating system.
fn random_seed() -> Result<[u8; 32], Error> {
    let mut seed = [0u8; 32];
    // SAFETY: pointer and length describe `seed`.
    let got = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    // getrandom(2): up to 256 bytes always come whole.
    if got == seed.len().cast_signed() {
        Ok(seed)
    } else {
        Err(Error::last("asking for random bytes"))
    }
}
