//! The connecting side: ordinary TCP of unmodified programs becomes TLS on our TCP, whose handshake
//! rides in TCP's.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fault::Explain;
use metrics::{MetricsServer, Page};
use sslmtcp::{Carried, Embedding, SslmTcpStream};
use tls::{EarlyData, Ticket};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::complaints::Complaints;
use crate::device::{Device, Purpose};
use crate::early::{First, MAX_HEAD, look};
use crate::figures;
use crate::metrics::{Failure, Metrics};
use crate::options::ConnectOptions;
use crate::relay::{Carriage, relay};
use crate::serve::{Local, broke, drain, give_up_rights};
use crate::shutdown::{Ended, Stage};
use crate::tickets::Tickets;
use crate::{Error, Summary, memory};

/// What every connection shares.
struct Shared {
    options: ConnectOptions,
    stack: tcpio::Stack,
    mtu: u16,
    metrics: Metrics,
    complaints: Complaints,
    tickets: Tickets<Ticket>,
}

/// Connects until it is asked to end. `ready` is called when programs can come.
///
/// # Errors
/// What keeps it from beginning, or from going on.
pub async fn connect(
    options: ConnectOptions,
    mut ended: Ended,
    ready: impl FnOnce(),
) -> Result<Summary, Error> {
    let listener = TcpListener::bind(options.listen).await;
    let listener = listener.map_err(|source| Error::listen(options.listen, source))?;
    let listening = listener.local_addr();
    let listening = listening.map_err(|source| Error::listen(options.listen, source))?;
    let metrics_server = match options.common.metrics {
        Some(address) => {
            let server = MetricsServer::bind(address).await;
            Some(server.map_err(|source| Error::listen(address, source))?)
        }
        None => None,
    };
    let device = Device::open(&options.common, Purpose::Connect(options.to))?;
    give_up_rights()?;
    let metrics_at = metrics_server.as_ref().and_then(MetricsServer::address);
    let shared = Arc::new(Shared {
        options,
        stack: device.stack.clone(),
        mtu: device.mtu,
        metrics: Metrics::default(),
        complaints: Complaints::new(),
        tickets: Tickets::default(),
    });
    let metrics_task = metrics_server.map(|server| {
        let shared = Arc::clone(&shared);
        let page: Page = Arc::new(move || {
            shared.metrics.tickets.set(shared.tickets.len() as u64);
            shared.metrics.page("connect", &figures::of(&shared.stack))
        });
        tokio::spawn(server.serve(page))
    });
    let memory_task = tokio::spawn(memory::give_back(device.stack.clone()));
    let (to, profile) = (shared.options.to, shared.options.embedding);
    tracing::info!(listen = %listening, %to, %profile, via = %device.described, "connecting");
    if let Some(address) = metrics_at {
        tracing::info!("metrics at http://{address}/metrics");
    }
    ready();

    let mut tasks = JoinSet::new();
    let permits = Arc::new(Semaphore::new(shared.options.common.max_connections));
    loop {
        tokio::select! {
            biased;
            () = ended.reached(Stage::Draining) => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            (permit, accepted) = next(&permits, &listener) => match accepted {
                Ok((local, _)) => {
                    let shared = Arc::clone(&shared);
                    tasks.spawn(async move {
                        let local = Local::new(local, &shared.options.common);
                        carry(&shared, local, permit).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(hint = "raise `ulimit -n`", "no connection could be accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    let left = drain(&mut tasks, &mut ended, shared.options.common.drain, false).await;
    for _ in 0..left {
        shared.metrics.failed(Failure::CutOff);
    }
    memory_task.abort();
    device.stack.shutdown().await;
    if let Some(task) = metrics_task {
        task.abort();
    }
    Ok(Summary { cut_off: left })
}

type Accepted = std::io::Result<(TcpStream, SocketAddr)>;

/// The next connection, when there may be another; until then the kernel keeps it waiting.
async fn next(
    permits: &Arc<Semaphore>,
    listener: &TcpListener,
) -> (Option<OwnedSemaphorePermit>, Accepted) {
    // The semaphore is never closed.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    (permit, listener.accept().await)
}

/// One connection of a program, to its end.
async fn carry(shared: &Shared, mut local: Local, permit: Option<OwnedSemaphorePermit>) {
    let _open = shared.metrics.open.hold();
    let (first, mut peer) = match reach(shared, &mut local.stream).await {
        Ok(reached) => reached,
        Err(error) => {
            let failure = match &error {
                sslmtcp::Error::Tls(tls::Error::Certificate(_)) => Failure::Certificate,
                sslmtcp::Error::Tls(_) => Failure::Handshake,
                _ => Failure::Unreachable,
            };
            shared.metrics.failed(failure);
            shared.complaints.say(shared.options.to, "no connection", &error.in_one_text());
            return;
        }
    };
    // What is still to be sent when the relay ends counts too.
    peer.keep(permit);
    let mut tally = Tally::default();
    tally.count(shared, &peer);
    let carriage = Carriage {
        first,
        to_peer: &shared.metrics.bytes_to_peer,
        from_peer: &shared.metrics.bytes_from_peer,
        idle: shared.options.common.idle,
    };
    let ended = relay(&mut local.stream, &mut peer, carriage, |peer| {
        if let Some(ticket) = peer.take_ticket() {
            shared.tickets.put(Instant::now(), ticket);
        }
        tally.count(shared, peer);
    });
    match ended.await {
        Ok(()) => local.whole(),
        Err(broken) => {
            broke(&shared.metrics, &shared.complaints, shared.options.to, &broken);
            peer.abort();
        }
    }
}

/// What of a connection was counted: with early data some of it is known only later.
#[derive(Default)]
struct Tally {
    carried: bool,
    early: bool,
}

impl Tally {
    fn count(&mut self, shared: &Shared, peer: &SslmTcpStream) {
        if self.carried && self.early {
            return;
        }
        let report = peer.report();
        if !self.carried && report.carried != Carried::Pending {
            self.carried = true;
            shared.metrics.carried(report.carried);
            if let Some(took) = report.timeline.since_start(report.timeline.ready) {
                shared.metrics.handshake.observe(took);
            }
        }
        if !self.early && report.facts.early_data != EarlyData::Pending {
            self.early = true;
            if report.facts.early_data == EarlyData::Accepted {
                shared.metrics.early_accepted.increment();
            }
        }
    }
}

/// Connects to the peer; also gives the first bytes that were read and did not go as early data.
async fn reach(
    shared: &Shared,
    local: &mut TcpStream,
) -> Result<(Vec<u8>, SslmTcpStream), sslmtcp::Error> {
    let _handshake = shared.metrics.handshaking.hold();
    let options = &shared.options;
    let ticket = shared.tickets.take(Instant::now());
    let mut first = Vec::new();
    let mut early = Vec::new();
    if options.embedding == Embedding::ZeroRtt
        && let Some(ticket) = &ticket
    {
        let room = ticket.max_early_data() as usize;
        if room > 0 {
            // What it has not sent in this time, or cannot be read, goes the ordinary way.
            let _ = timeout(options.first_bytes, read_head(local, &mut first)).await;
            if let First::Safe(len) = look(&first)
                && len <= room
            {
                early = first.drain(..len).collect();
                shared.metrics.early_sent.increment();
            }
        }
    }
    let connecting = SslmTcpStream::connect_ssl(
        &shared.stack,
        options.to,
        &options.tls,
        sslmtcp::ConnectOptions {
            embedding: options.embedding,
            ticket: ticket.as_ref(),
            early_data: early,
            timeout: options.common.handshake,
            mtu: shared.mtu,
            ..sslmtcp::ConnectOptions::default()
        },
    );
    Ok((first, connecting.await?))
}

/// Reads until the first bytes can be judged.
async fn read_head(local: &mut TcpStream, first: &mut Vec<u8>) -> std::io::Result<()> {
    while look(first) == First::Unfinished && first.len() < MAX_HEAD {
        // Read or not: nothing is lost when the time is up in between.
        if local.read_buf(first).await? == 0 {
            break;
        }
    }
    Ok(())
}
