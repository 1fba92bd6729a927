//! All connections and listeners of one host's TCP.

mod api;
mod limits;
mod receive;
mod table;
#[cfg(test)]
mod tests;
mod time_wait;

use std::collections::{BTreeMap, VecDeque};

use units::Time;

use crate::config::{Config, ListenOptions};
use crate::connection::{Connection, Pending};
use crate::destinations::Destinations;
use crate::event::{ConnectionId, Event, EventKind, ListenerId};
use crate::info::{Counters, State, Transmit};
use crate::secrets::Secrets;
use crate::segment::Outgoing;
use crate::time_wait::TimeWait;
use limits::{Bucket, Pool};
use table::Table;

/// Answers that belong to no connection wait here at most; more are dropped, as a busy router would.
const MAX_REPLIES: usize = 512;

/// An answer that belongs to no connection: RST, SYN cookie, ACK of TIME-WAIT.
#[derive(Debug)]
struct Stray {
    outgoing: Outgoing<'static>,
    cookie: Option<[u8; 8]>,
}

#[derive(Debug)]
struct Listener {
    local: std::net::SocketAddr,
    options: ListenOptions,
    /// Waiting for accept().
    waiting: VecDeque<ConnectionId>,
}

/// All connections and listeners of one host's TCP, demultiplexed. Pure: packets and the time in,
/// packets, timers and events out.
///
/// Order of calls: whatever is done ([`Endpoint::handle_packet`], [`Endpoint::handle_timeout`],
/// [`Endpoint::write`] …), ask [`Endpoint::poll_event`] and [`Endpoint::poll_transmit`] until there
/// is nothing more, and then [`Endpoint::next_timeout`].
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    secrets: Secrets,
    table: Table,
    listeners: BTreeMap<ListenerId, Listener>,
    /// How many listeners there were: each has a name of its own.
    listened: u32,
    destinations: Destinations,
    time_wait: TimeWait,
    replies: VecDeque<Stray>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Connections that have events.
    events: VecDeque<u32>,
    counters: Counters,
    /// Half-open connections whose SYN had data, the oldest first.
    opened_with_data: VecDeque<(Time, ConnectionId)>,
    /// Those of them that a RST has ended: until when they count.
    reset_with_data: VecDeque<Time>,
    /// SYNs with data that may be taken of addresses that are not validated.
    unvalidated: Bucket,
    /// Connections whose application is gone and that had data to send, the oldest first.
    orphans: VecDeque<ConnectionId>,
    /// [`Config::receive_memory`] and [`Config::send_memory`].
    receive_pool: Pool,
    send_pool: Pool,
    /// SYN cookies are accepted until then.
    cookies_until: Time,
}

impl Endpoint {
    /// An endpoint without connections. Sequence numbers, ports and cookies follow from `seed`,
    /// which strangers must not know.
    #[must_use]
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        let secrets = Secrets::new(&seed);
        let key = secrets.table;
        Endpoint {
            table: Table::new(key),
            listeners: BTreeMap::new(),
            listened: 0,
            destinations: Destinations::new(config.max_destinations, config.black_hole_memory, key),
            time_wait: TimeWait::new(config.max_time_wait, key),
            replies: VecDeque::new(),
            ready: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            cookies_until: Time::ZERO,
            opened_with_data: VecDeque::new(),
            reset_with_data: VecDeque::new(),
            unvalidated: Bucket::new(config.unvalidated_rate),
            orphans: VecDeque::new(),
            receive_pool: Pool::new(config.own_receive_memory(), config.receive_memory),
            send_pool: Pool::new(config.send_initial, config.send_memory),
            secrets,
            config,
        }
    }

    /// What has been counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether no connection is open or half-open and nothing waits to be sent. TIME-WAIT does not
    /// count.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.table.has_none_live() && self.replies.is_empty() && self.ready.is_empty()
    }

    /// Writes the next packet to the front of `buffer`, which must hold the largest
    /// ([`Config::mtu`], [`Config::max_super_segment`]). To be called until there is none.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        if let Some(stray) = self.replies.pop_front() {
            self.counters.segments_out += 1;
            return emit_stray(&stray, buffer);
        }
        while let Some(index) = self.ready.pop_front() {
            let Some(connection) = self.table.at_mut(index) else { continue };
            let before = connection.retransmissions();
            let transmit = connection.poll_transmit(now, &self.config, buffer);
            self.counters.retransmissions += connection.retransmissions().saturating_sub(before);
            match transmit {
                Some(transmit) => {
                    // The others have their turn before its next one.
                    self.ready.push_back(index);
                    self.counters.segments_out += 1;
                    return Some(transmit);
                }
                None => {
                    connection.queued = false;
                    self.settle(now, index);
                }
            }
        }
        None
    }

    /// When [`Endpoint::handle_timeout`] is to be called next. It may come out a little early.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        [self.table.next_timeout(), self.time_wait.next_timeout()].into_iter().flatten().min()
    }

    /// Lets the timers fire that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.time_wait.expire(now);
        // Each entry once: a timer that stays due is the next call's.
        for _ in 0..self.table.timers_len() {
            let Some(index) = self.table.pop_due(now) else { return };
            let Some(connection) = self.table.at_mut(index) else { continue };
            if connection.next_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now, &self.config, &mut self.destinations);
                if connection.is_overdue(now) {
                    connection.abort_pending = true;
                    self.counters.orphans_ended += 1;
                }
                self.touch(now, index);
            } else {
                self.table.schedule(index);
            }
        }
    }

    /// What happened since it was asked last; to be called until there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(index) = self.events.front().copied() {
            let id = self.table.id(index);
            let Some((connection, id)) = self.table.at_mut(index).zip(id) else {
                self.events.pop_front();
                continue;
            };
            let Some(pending) = connection.pending.take() else {
                connection.reported = false;
                self.events.pop_front();
                self.reap(index);
                continue;
            };
            if let Some(kind) = kind_of(connection, pending) {
                return Some(Event { connection: id, kind });
            }
        }
        None
    }

    /// After something happened to a connection: it may send, tell, wait or be over.
    fn touch(&mut self, now: Time, index: u32) {
        self.abort_if_asked(index);
        let Some(connection) = self.table.at_mut(index) else { return };
        if !connection.queued {
            connection.queued = true;
            self.ready.push_back(index);
        }
        self.settle(now, index);
    }

    fn abort_if_asked(&mut self, index: u32) {
        let Some(connection) = self.table.at_mut(index) else { return };
        if connection.abort_pending && connection.closed.is_none() {
            let reset = connection.reset_segment();
            connection.close(crate::CloseReason::Aborted);
            self.push_reset(reset);
        }
    }

    fn push_reset(&mut self, reset: Option<Outgoing<'static>>) {
        if let Some(outgoing) = reset
            && self.replies.len() < MAX_REPLIES
        {
            self.counters.resets_out += 1;
            self.replies.push_back(Stray { outgoing, cookie: None });
        }
    }

    /// Brings queues, timers and tables up to date with a connection.
    fn settle(&mut self, now: Time, index: u32) {
        self.count_half_open(now, index);
        self.count_orphan(index);
        self.count_held(index);
        let Some(connection) = self.table.at_mut(index) else { return };
        if connection.pending.is_empty() {
            // Nothing to tell.
        } else if !connection.reported {
            connection.reported = true;
            self.events.push_back(index);
        }
        if connection.state == State::TimeWait || connection.closed.is_some() {
            self.detach(now, index);
        }
        self.offer(index);
        self.table.schedule(index);
        self.reap(index);
    }

    /// A connection that is over gives its addresses free; TIME-WAIT keeps them.
    fn detach(&mut self, now: Time, index: u32) {
        let Some(connection) = self.table.at_mut(index) else { return };
        let tuple = (connection.local, connection.remote);
        let waits = connection.state == State::TimeWait;
        let numbers = connection.final_numbers();
        if self.table.detach(index) && waits {
            self.time_wait.insert(now, tuple, numbers, self.config.time_wait);
        }
    }

    /// Puts a connection before accept(), once it is told as incoming.
    fn offer(&mut self, index: u32) {
        let Some(id) = self.table.id(index) else { return };
        let Some(connection) = self.table.at_mut(index) else { return };
        if !connection.pending.has(Pending::INCOMING) || connection.offered {
            return;
        }
        connection.offered = true;
        let listener = connection.listener.and_then(|id| self.listeners.get_mut(&id));
        match listener {
            Some(listener) if listener.waiting.len() < listener.options.backlog => {
                listener.waiting.push_back(id);
            }
            // Nobody takes it: it is reset.
            _ => {
                connection.abort_pending = true;
                self.abort_if_asked(index);
            }
        }
    }

    /// Forgets a connection that nobody needs any more.
    fn reap(&mut self, index: u32) {
        let Some(connection) = self.table.at_mut(index) else { return };
        let reported = connection.pending.is_empty() || !connection.owned;
        let quiet = !connection.queued && !connection.reported;
        if connection.is_done() && reported && quiet {
            self.uncount_held(index);
            self.table.remove(index);
            self.counters.connections = self.table.len();
        }
    }
}

/// The event for a pending bit; none if it says nothing any more.
fn kind_of(connection: &Connection, pending: Pending) -> Option<EventKind> {
    Some(match pending {
        Pending::INCOMING => EventKind::Incoming(connection.listener.unwrap_or(ListenerId(0))),
        Pending::REFUSED => EventKind::SynDataRefused,
        Pending::CONNECTED => EventKind::Connected,
        Pending::ESTABLISHED => EventKind::Established,
        Pending::READABLE => EventKind::Readable,
        Pending::WRITABLE => EventKind::Writable,
        Pending::FINISHED => EventKind::PeerFinished,
        _ => EventKind::Closed(connection.closed?),
    })
}

fn emit_stray(stray: &Stray, buffer: &mut [u8]) -> Option<Transmit> {
    let mut outgoing: Outgoing<'_> = stray.outgoing;
    if let Some(cookie) = &stray.cookie {
        let option = wire::tcp::FastOpen { cookie, experimental: false };
        outgoing.options.fast_open = Some(option);
    }
    outgoing.emit(buffer, 0, usize::MAX, |_| ())
}
