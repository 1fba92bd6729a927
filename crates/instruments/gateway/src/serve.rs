//! The serving side: TLS on our TCP, in SYNs or after them, becomes plaintext over the kernel's TCP
//! to an unmodified server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics::{MetricsServer, Page};
use packet::privileges::Identity;
use sslmtcp::{SslmTcpListener, SslmTcpStream};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::complaints::Complaints;
use crate::device::{Device, Purpose};
use crate::figures;
use crate::metrics::{Failure, Metrics};
use crate::options::{Common, ServeOptions};
use crate::places::{Limit, Places};
use crate::relay::{Broken, Carriage, Side, relay};
use crate::shutdown::{Ended, Stage};
use crate::{Error, Summary, memory};

/// The longest that the server behind may take to accept.
const BACKEND: Duration = Duration::from_secs(5);

/// What every connection shares.
struct Shared {
    options: ServeOptions,
    metrics: Metrics,
    complaints: Complaints,
}

/// Serves until it is asked to end. `ready` is called when peers can come.
///
/// # Errors
/// What keeps it from beginning, or from going on.
pub async fn serve(
    options: ServeOptions,
    mut ended: Ended,
    ready: impl FnOnce(),
) -> Result<Summary, Error> {
    let metrics_server = match options.common.metrics {
        Some(address) => {
            let server = MetricsServer::bind(address).await;
            Some(server.map_err(|source| Error::listen(address, source))?)
        }
        None => None,
    };
    let purpose = Purpose::Listen { at: options.listen, allowed: &options.allowed };
    let device = Device::open(&options.common, purpose)?;
    let listen_options = sslmtcp::ListenOptions {
        timeout: options.common.handshake,
        ..sslmtcp::ListenOptions::default()
    };
    let tls = options.tls.clone();
    let listener = SslmTcpListener::bind(&device.stack, options.listen, tls, listen_options)?;
    give_up_rights()?;
    let listener = Arc::new(listener);
    let metrics_at = metrics_server.as_ref().and_then(MetricsServer::address);
    let to = options.to;
    let shared =
        Arc::new(Shared { options, metrics: Metrics::default(), complaints: Complaints::new() });
    let metrics_task = metrics_server.map(|server| {
        let (shared, stack) = (Arc::clone(&shared), device.stack.clone());
        let listener = Arc::downgrade(&listener);
        let page: Page = Arc::new(move || {
            if let Some(counters) = listener.upgrade().map(|listener| listener.counters()) {
                shared.metrics.take_over(&counters);
            }
            shared.metrics.page("serve", &figures::of(&stack))
        });
        tokio::spawn(server.serve(page))
    });
    let memory_task = tokio::spawn(memory::give_back(device.stack.clone()));
    tracing::info!(listen = %listener.local_addr(), %to, via = %device.described, "serving");
    if let Some(address) = metrics_at {
        tracing::info!("metrics at http://{address}/metrics");
    }
    ready();

    let mut tasks = JoinSet::new();
    let places = Places::new(shared.options.common.max_connections, shared.options.max_per_source);
    let lost = loop {
        tokio::select! {
            biased;
            () = ended.reached(Stage::Draining) => break None,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) => match places.hold(stream.peer_addr().ip().into()) {
                    Ok(place) => {
                        // What is still to be sent when the relay ends counts too.
                        stream.keep(place);
                        let shared = Arc::clone(&shared);
                        tasks.spawn(async move { carry(&shared, stream).await });
                    }
                    Err(limit) => {
                        match limit {
                            Limit::All => shared.metrics.refused_limit.increment(),
                            Limit::Source => shared.metrics.refused_source.increment(),
                        }
                        stream.abort();
                    }
                },
                // The stack has ended; handshakes that fail are counted, not told.
                Err(error) => break Some(error.into()),
            },
        }
    };
    drop(listener);
    let left = drain(&mut tasks, &mut ended, shared.options.common.drain, lost.is_some()).await;
    for _ in 0..left {
        shared.metrics.failed(Failure::CutOff);
    }
    memory_task.abort();
    device.stack.shutdown().await;
    if let Some(task) = metrics_task {
        task.abort();
    }
    lost.map_or(Ok(Summary { cut_off: left }), Err)
}

/// Packet sockets, TUN devices and the netlink socket that owns a redirect's rules need no right once
/// they are open.
pub(crate) fn give_up_rights() -> Result<(), Error> {
    let dropped = packet::privileges::drop_privileges().map_err(Error::Privileges)?;
    if let Some(Identity { user, group }) = dropped.identity {
        tracing::info!("continues as user {user} of group {group}");
    }
    Ok(())
}

/// Lets open connections end; how many had to be cut off.
pub(crate) async fn drain(
    tasks: &mut JoinSet<()>,
    ended: &mut Ended,
    bound: Duration,
    at_once: bool,
) -> usize {
    if !at_once && !tasks.is_empty() {
        let (open, seconds) = (tasks.len(), bound.as_secs());
        tracing::info!("no new connections; {open} open, with {seconds} s to end");
        let all = async { while tasks.join_next().await.is_some() {} };
        ended.drained(all, bound).await;
    }
    // Those that are done but were not looked at are no loss.
    while tasks.try_join_next().is_some() {}
    let left = tasks.len();
    tasks.shutdown().await;
    left
}

/// One connection, from its handshake to its end.
async fn carry(shared: &Shared, mut peer: SslmTcpStream) {
    let _open = shared.metrics.open.hold();
    let report = peer.report();
    shared.metrics.carried(report.carried);
    if let Some(took) = report.timeline.since_start(report.timeline.ready) {
        shared.metrics.handshake.observe(took);
    }
    let early = report.facts.early_data == tls::EarlyData::Accepted;
    if early {
        shared.metrics.early_accepted.increment();
    }
    let with = peer.peer_addr();
    tracing::debug!(%with, carried = ?report.carried, early, "accepted");
    let mut local = match open_backend(&shared.options, with).await {
        Ok(stream) => Local::new(stream, &shared.options.common),
        Err(error) => {
            shared.metrics.failed(Failure::Unreachable);
            let to = shared.options.to;
            let why = format!("{error} (check whether the server at {to} is running)");
            shared.complaints.say(with, "the server behind cannot be reached", &why);
            peer.abort();
            return;
        }
    };
    let carriage = Carriage {
        first: Vec::new(),
        to_peer: &shared.metrics.bytes_to_peer,
        from_peer: &shared.metrics.bytes_from_peer,
        idle: shared.options.common.idle,
    };
    match relay(&mut local.stream, &mut peer, carriage, |_| ()).await {
        Ok(()) => local.whole(),
        Err(broken) => {
            broke(&shared.metrics, &shared.complaints, with, &broken);
            peer.abort();
        }
    }
}

async fn open_backend(options: &ServeOptions, peer: SocketAddr) -> std::io::Result<TcpStream> {
    let connecting = timeout(BACKEND, TcpStream::connect(options.to));
    let mut local = connecting.await.map_err(|_| std::io::ErrorKind::TimedOut)??;
    if options.proxy_protocol {
        local.write_all(proxy_line(peer, options.listen).as_bytes()).await?;
    }
    Ok(local)
}

/// The line of the PROXY protocol, version 1 (HAProxy's document, §2.1).
fn proxy_line(peer: SocketAddr, listen: SocketAddr) -> String {
    let family = if peer.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (peer.ip(), listen.ip());
    format!("PROXY {family} {from} {to} {} {}\r\n", peer.port(), listen.port())
}

/// Counts and logs a connection that broke off. That a peer goes away is not worth a line.
pub(crate) fn broke(metrics: &Metrics, complaints: &Complaints, with: SocketAddr, broken: &Broken) {
    match broken {
        Broken::Connection { side: Side::Peer, source } => {
            let truncated = source.kind() == std::io::ErrorKind::UnexpectedEof;
            metrics.failed(if truncated { Failure::Truncated } else { Failure::Broken });
            tracing::debug!(%with, "{broken}");
        }
        _ => {
            metrics.failed(Failure::Broken);
            complaints.say(with, "connection cut short", broken);
        }
    }
}

/// SO_RCVBUF of a kernel's socket, in bytes, of which it makes twice as much. Left to itself the kernel lets
/// megabytes wait for a relay that does not read.
pub(crate) const KERNEL_RECEIVES: usize = 256 << 10;
/// SO_SNDBUF, the same.
pub(crate) const KERNEL_SENDS: usize = 128 << 10;

/// A connection over the kernel's TCP. Unless it is [`Local::whole`] when it is dropped, it ends by a
/// RST, so that its other end does not take a stream that was cut short for a whole one.
pub(crate) struct Local {
    pub(crate) stream: TcpStream,
    whole: bool,
}

impl Local {
    pub(crate) fn new(stream: TcpStream, common: &Common) -> Local {
        let socket = socket2::SockRef::from(&stream);
        let keep_alive = common.keep_alive;
        let keep_alive = socket2::TcpKeepalive::new()
            .with_time(keep_alive.idle)
            .with_interval(keep_alive.interval)
            .with_retries(keep_alive.probes);
        // A connection without them carries as much. The other end waits for what is written: no delay.
        let _ = socket.set_tcp_nodelay(true);
        let _ = socket.set_tcp_keepalive(&keep_alive);
        let _ = socket.set_recv_buffer_size(KERNEL_RECEIVES);
        let _ = socket.set_send_buffer_size(KERNEL_SENDS);
        Local { stream, whole: false }
    }

    /// Both directions have ended as they should.
    pub(crate) fn whole(&mut self) {
        self.whole = true;
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if !self.whole {
            // Without it the connection ends less clearly; there is nothing else to do about it.
            let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_is_named_to_the_server_behind() {
        let of =
            |peer: &str, listen: &str| proxy_line(peer.parse().unwrap(), listen.parse().unwrap());
        assert_eq!(
            of("198.51.100.7:40000", "192.0.2.10:443"),
            "PROXY TCP4 198.51.100.7 192.0.2.10 40000 443\r\n"
        );
        assert_eq!(
            of("[2001:db8::7]:1", "[2001:db8::1]:2"),
            "PROXY TCP6 2001:db8::7 2001:db8::1 1 2\r\n"
        );
    }
}
