//! One load as both sides of a lane see it.

use std::future::Future;
use std::time::{Duration, SystemTime};

use lab::{Link, Node};
use page::{Loaded, ObjectId};
use units::{Bytes, Delay, Time};
use web::{ConnectionRecord, Counters, Log, Snapshot, Stalled, StreamRecord, TcpStall};

use crate::Error;
use crate::cross::{Crossed, Neighbours};

/// Most readings of the counters of a link and of cross traffic until nothing passes between.
const READINGS: u32 = 20;

/// What the two sides saw of one load.
#[derive(Debug)]
pub struct Seen {
    /// The browser's side, in times since the load's begin.
    pub loaded: Loaded,
    /// When the load event was fired, in a browser that has one.
    pub load_event: Option<Delay>,
    /// What Chromium says of each object, in the page's order; empty where it did not load.
    pub fetched: Vec<chromium::Fetched>,
    /// When it began, by CLOCK_MONOTONIC.
    pub begin: Time,
    /// When it ended, by CLOCK_REALTIME.
    pub ended: SystemTime,
    /// Each request with a body that ended: how long that stalled. Chromium does not say.
    pub uploads: Vec<Upload>,
    /// The streams that the server finished meanwhile.
    pub streams: Vec<StreamRecord>,
    /// The connections that were opened in it, as the server saw them until their end.
    pub connections: Vec<ConnectionRecord>,
    /// When the server's TCP stalled within the load, or QUIC's congestion control held it back, by connection; also of
    /// those that were opened before it. `None` where the load had no connection, or the link does not say when packets
    /// wait.
    pub tcp_stalls: Option<Vec<TcpStalls>>,
    /// CPU time of the server's node: its kernel's share included as far as it runs in the node's
    /// thread.
    pub server_cpu: Duration,
    /// What the server's protocols read and wrote above TLS, and the memory that its connections held at the end.
    pub above_tls: AboveTls,
    /// Frame bytes that the link delivered to the server, without those of cross traffic.
    pub up: Bytes,
    /// Frame bytes that the link delivered to the client, without those of cross traffic.
    pub down: Bytes,
    /// What cross traffic carried meanwhile, where there was any.
    pub cross: Option<Crossed>,
}

impl Seen {
    /// Bytes pushed in vain: of what was cancelled, what the server had given to the transport by the load's
    /// end, and of what came, what was not needed.
    #[must_use]
    pub fn pushed_in_vain(&self) -> Bytes {
        let needed = self.loaded.pushed().map(|object| object.received.count());
        Bytes(self.above_tls.pushed_bytes.count().saturating_sub(needed.sum()))
    }

    /// Page load time: until everything was fetched, or until the load event if that came later.
    #[must_use]
    pub fn load_time(&self) -> Delay {
        self.loaded.load_time().max(self.load_event.unwrap_or_default())
    }
}

/// When one connection's TCP or QUIC stalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpStalls {
    /// The connection's number on the server.
    pub connection: u64,
    /// In order of time.
    pub stalls: Vec<TcpStall>,
}

/// A request with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Of which object.
    pub object: ObjectId,
    /// For how long its body waited for a flow-control window of the server's, by CLOCK_MONOTONIC.
    pub stalled: Stalled,
    /// When the client's TCP stalled from the request to the end of the response, or QUIC's congestion control held it
    /// back. `None` where the link does not say when packets wait.
    pub tcp_stalls: Option<Vec<TcpStall>>,
}

/// A load above TLS or QUIC, as the server counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AboveTls {
    /// Bytes read: requests, and what else the client's frames say.
    pub read: Bytes,
    /// Bytes written around response bodies: heads and frames.
    pub around_bodies: Bytes,
    /// Responses that were pushed.
    pub pushed: u64,
    /// Bytes of their bodies given to the transport by the load's end, also of those that were cancelled.
    pub pushed_bytes: Bytes,
    /// An estimate of the memory of connections open at the load's end ([`Snapshot::memory`]).
    pub memory: Bytes,
}

impl AboveTls {
    fn between(before: &Snapshot, after: &Snapshot) -> AboveTls {
        let around =
            |counted: &Snapshot| counted.bytes_written.saturating_sub(counted.body_bytes_sent);
        AboveTls {
            read: Bytes(after.bytes_read.saturating_sub(before.bytes_read)),
            around_bodies: Bytes(around(after).saturating_sub(around(before))),
            pushed: after.pushed.saturating_sub(before.pushed),
            pushed_bytes: Bytes(after.pushed_bytes.saturating_sub(before.pushed_bytes)),
            memory: Bytes(after.memory),
        }
    }
}

/// What a browser tells of a load.
pub(crate) struct Told {
    pub(crate) loaded: Loaded,
    pub(crate) load_event: Option<Delay>,
    pub(crate) fetched: Vec<chromium::Fetched>,
    pub(crate) uploads: Vec<Upload>,
}

impl Told {
    pub(crate) fn of(loaded: Loaded) -> Told {
        Told { loaded, load_event: None, fetched: Vec::new(), uploads: Vec::new() }
    }
}

/// Puts each connection's record to the load in which it was opened: it came when the connection ended,
/// perhaps loads later.
pub(crate) fn give_to_their_loads(all: &mut [Seen], last: Vec<ConnectionRecord>) {
    let early = all.iter_mut().flat_map(|seen| std::mem::take(&mut seen.connections));
    let records: Vec<_> = early.chain(last).collect();
    for seen in all.iter_mut() {
        seen.tcp_stalls = tcp_stalls(seen, &records);
    }
    for record in records {
        let opened_in = all.iter_mut().rev().find(|seen| seen.begin <= record.accepted);
        if let Some(seen) = opened_in {
            seen.connections.push(record);
        }
    }
}

/// When TCP stalled while a load went on, by connection.
fn tcp_stalls(seen: &Seen, records: &[ConnectionRecord]) -> Option<Vec<TcpStalls>> {
    let end = seen.begin + seen.load_time().duration();
    let within = |stall: &TcpStall| {
        let (from, to) = (stall.from.max(seen.begin), stall.to.min(end));
        (from < to).then_some(TcpStall { from, to, ..*stall })
    };
    let is_open = |record: &&ConnectionRecord| record.accepted < end && seen.begin < record.closed;
    let all: Vec<TcpStalls> = records
        .iter()
        .filter(is_open)
        .filter_map(|record| {
            let stalls = record.tcp_stalls.as_ref()?.iter().filter_map(within).collect();
            Some(TcpStalls { connection: record.connection, stalls })
        })
        .collect();
    (!all.is_empty()).then_some(all)
}

/// What is looked at besides the browser.
pub(crate) struct Sides {
    pub(crate) link: Link,
    pub(crate) server: Node,
    pub(crate) log: Log,
    pub(crate) counters: Counters,
    pub(crate) neighbours: Option<Neighbours>,
}

impl Sides {
    /// A load, with cross traffic beside it if there is to be any.
    pub(crate) async fn watch(
        &self,
        load: impl Future<Output = Result<Told, Error>>,
    ) -> Result<Seen, Error> {
        let download = match &self.neighbours {
            Some(neighbours) => Some(neighbours.begin(&self.link).await?),
            None => None,
        };
        self.link.restart()?;
        let seen = self.load(load).await;
        let Some(download) = download else { return seen };
        let steady = download.steady;
        download.end(&self.link).await?;
        let mut seen = seen?;
        seen.cross = seen.cross.map(|cross| Crossed { steady, ..cross });
        Ok(seen)
    }

    async fn load(&self, load: impl Future<Output = Result<Told, Error>>) -> Result<Seen, Error> {
        drop(self.log.take_streams());
        let (cpu, before) = (self.server.cpu_time(), self.carried());
        let counted = self.counters.snapshot();
        let begin = conn::now();
        let Told { loaded, load_event, fetched, uploads } = load.await?;
        let (ended, after) = (SystemTime::now(), self.carried());
        let above_tls = AboveTls::between(&counted, &self.counters.snapshot());
        let meanwhile = |of: fn(&Carried) -> Bytes| {
            Bytes(of(&after).count().saturating_sub(of(&before).count()))
        };
        let cross = self.neighbours.as_ref().map(|_| Crossed {
            steady: false,
            up: meanwhile(|carried| carried.cross.0),
            down: meanwhile(|carried| carried.cross.1),
        });
        let other = cross.unwrap_or_default();
        let own = |all: Bytes, other: Bytes| Bytes(all.count().saturating_sub(other.count()));
        let spent = self.server.cpu_time().unwrap_or_default();
        Ok(Seen {
            loaded,
            load_event,
            fetched,
            begin,
            ended,
            uploads,
            streams: self.log.take_streams(),
            connections: self.log.take_connections(),
            tcp_stalls: None,
            server_cpu: spent.saturating_sub(cpu.unwrap_or_default()),
            above_tls,
            up: own(meanwhile(|carried| carried.link.0), other.up),
            down: own(meanwhile(|carried| carried.link.1), other.down),
            cross,
        })
    }

    /// Reads both counters at one moment: again where cross traffic passed between.
    fn carried(&self) -> Carried {
        let delivered = |stats: &pump::DirectionStats| Bytes(stats.link.delivered.bytes);
        let link = || {
            let stats = self.link.stats().ok();
            let both = stats.map(|stats| (delivered(&stats.forward), delivered(&stats.backward)));
            both.unwrap_or_default()
        };
        let cross = || self.neighbours.as_ref().and_then(Neighbours::carried).unwrap_or_default();
        let mut carried = Carried { link: link(), cross: cross() };
        for _ in 0..READINGS {
            let before = carried.cross;
            carried = Carried { link: link(), cross: cross() };
            if carried.cross == before {
                break;
            }
        }
        carried
    }
}

/// Frame bytes delivered so far, up and down.
struct Carried {
    /// All that the link carried.
    link: (Bytes, Bytes),
    /// Of it, cross traffic.
    cross: (Bytes, Bytes),
}
