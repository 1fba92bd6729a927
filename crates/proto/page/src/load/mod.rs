//! A browser loading one page.

mod ahead;
mod event;
mod hold;
mod objects;
mod pool;
mod serve;
mod timeline;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::net::IpAddr;

use units::{Delay, Time};

use crate::cache::{Storage, Validator};
use crate::memory::{Carries, ConnectionId, MAX_ADDRESSES, Memory, Resolved};
use crate::page::{HostId, ObjectId, Page};
use crate::policy::{Policy, Treatment};

pub use event::{Action, Event, PushId, Ready};
pub use timeline::{
    Arrival, ConnectionTimeline, Failure, Loaded, Opening, Outcome, Phases, Span, Timeline,
};

use hold::{Held, Place};
use pool::{Connection, Pool, State};
use timeline::Progress;

/// How far an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing told of it yet.
    Unknown,
    /// It was found, and computation goes on.
    Computing,
    /// It is wanted and held back.
    Held,
    /// It waits for a connection.
    Queued,
    /// It was asked for.
    UnderWay,
    /// It is there, or failed.
    Done,
}

/// What is known of an object.
#[derive(Debug)]
struct ObjectState {
    host: HostId,
    treatment: Treatment,
    phase: Phase,
    /// Its place among those that are as urgent.
    order: u32,
    /// Whether it counts as one that can be delayed while it is under way.
    delayable: bool,
    /// Whether the connection that it was sent on had carried a request before.
    on_reused: bool,
    /// It wants a new connection: it failed on one that was used before.
    wants_new: bool,
    /// It is fetched before the page told of it: because of a hint, or pushed.
    ahead: bool,
    /// The page told of it.
    told_of: bool,
    /// The computation after that is done: what it tells of is found as it comes.
    reached: bool,
    /// Its response is pushed.
    by_push: bool,
    /// It counts as one that is under way.
    counted: bool,
    /// It counts as one that rendering waits for.
    blocks: bool,
    /// What a stored response is checked by.
    validator: Option<Validator>,
    storage: Option<Storage>,
    /// How many of its children were told of.
    told: usize,
    /// Bytes that the list of arrivals, or of uploads, had no room for.
    unlisted: (u64, u64),
    timeline: Timeline,
}

/// What is known of a host's name.
#[derive(Debug)]
enum Name {
    Unknown,
    Asked(Delay),
    Known(Vec<IpAddr>),
}

/// What is known of a host.
#[derive(Debug)]
struct HostState {
    name: Name,
    /// When its name was looked up in this load, until an object has it in its timeline.
    dns: Option<Span>,
    /// Requests that wait for a connection.
    queue: BTreeSet<Place>,
    /// Requests that wait for one or have one.
    under_way: usize,
    /// Whether it multiplexes, once that is known.
    multiplexes: Option<bool>,
    /// A connection could not be opened, or was of no use; none was ready since.
    failing: bool,
    /// A connection of another host that serves this one.
    shared: Option<ConnectionId>,
    /// Connections to open beyond those that are needed.
    spare: usize,
}

/// How many objects are what.
#[derive(Debug, Default)]
struct Counts {
    /// Found and not done; those that were fetched ahead count once more until they are reached.
    unfinished: usize,
    /// Waiting for a connection, or on one.
    under_way: usize,
    /// Of these, those that can be delayed, to hosts without multiplexing.
    delayable: usize,
    /// Found and not done, and rendering waits for it.
    blocking: usize,
    /// The page itself has begun to come.
    root_begun: bool,
}

/// A browser loading one page, as a state machine without a clock or sockets: the caller owns
/// resolver, connections and time.
///
/// Call [`poll`](Load::poll) until it gives `None` and do each [`Action`]; wait for something to happen
/// or for [`wakeup`](Load::wakeup); tell it by [`handle`](Load::handle); again until
/// [`is_done`](Load::is_done), then [`finish`](Load::finish). Times may not go back; if one does, it
/// counts as the latest before it.
#[derive(Debug)]
pub struct Load {
    page: Page,
    policy: Policy,
    memory: Memory,
    begin: Time,
    now: Time,
    states: Vec<ObjectState>,
    hosts: Vec<HostState>,
    pool: Pool,
    held: Held,
    counts: Counts,
    actions: VecDeque<Action>,
    /// Objects whose computation goes on, by its end.
    computing: BinaryHeap<Reverse<(Time, ObjectId)>>,
    /// Objects whose computation is done.
    wanted: VecDeque<ObjectId>,
    /// Hosts for whose requests there may be a connection now, or one to open.
    dirty: BTreeSet<HostId>,
    /// Hosts whose requests wait for a connection.
    waiting: BTreeSet<HostId>,
    /// Of these, those that may not open one because there are too many.
    starved: BTreeSet<HostId>,
    next_order: u32,
    arrivals: Progress,
    uploads: Progress,
    ignored: u64,
}

impl Load {
    /// Begins to load a page at `now`, with what is kept from loads before.
    #[must_use]
    pub fn new(page: &Page, policy: Policy, memory: Memory, now: Time) -> Load {
        let mut load = Load {
            states: page.objects().iter().map(|object| ObjectState::new(object, &policy)).collect(),
            hosts: page.hosts().iter().map(|host| HostState::new(host, &memory)).collect(),
            page: page.clone(),
            policy: policy.with_some_connections(),
            memory,
            begin: now,
            now,
            pool: Pool::default(),
            held: Held::default(),
            counts: Counts::default(),
            actions: VecDeque::new(),
            computing: BinaryHeap::new(),
            wanted: VecDeque::new(),
            dirty: BTreeSet::new(),
            waiting: BTreeSet::new(),
            starved: BTreeSet::new(),
            next_order: 0,
            arrivals: Progress::default(),
            uploads: Progress::default(),
            ignored: 0,
        };
        load.take_kept_connections();
        let root = page.root();
        let host = page.object(root).map(|object| object.host.index());
        if let Some(host) = host.and_then(|host| load.hosts.get_mut(host)) {
            host.spare = load.policy.speculative;
        }
        load.find(root, Delay::ZERO);
        load.settle();
        load
    }

    /// What to do next; `None` until something happens.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle`](Load::handle) with [`Event::Wake`] if nothing happens before.
    #[must_use]
    pub fn wakeup(&self) -> Option<Time> {
        self.computing.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether everything that was found was fetched or has failed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.counts.unfinished == 0
    }

    /// How many events told of something of which nothing was expected: late ones, or a mistake of
    /// the caller's.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// The first address of a host's name, once it is known: where [`Action::Open`] leads.
    #[must_use]
    pub fn address(&self, host: HostId) -> Option<IpAddr> {
        match &self.hosts.get(host.index())?.name {
            Name::Known(addresses) => addresses.first().copied(),
            Name::Unknown | Name::Asked(_) => None,
        }
    }

    /// How many connections are open or being opened.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.pool.len()
    }

    /// Tells what happened at `now`.
    pub fn handle(&mut self, event: Event, now: Time) {
        self.now = self.now.max(now);
        self.wake();
        if self.on_event(event).is_none() {
            self.ignored = self.ignored.saturating_add(1);
        }
        self.settle();
    }

    /// Ends the load: what became of it, and what is kept for the next one. What has not come by now
    /// has failed. A connection that is not among [`Memory::connections`] after this is to be closed.
    #[must_use]
    pub fn finish(mut self, now: Time) -> (Loaded, Memory) {
        self.now = self.now.max(now);
        for id in self.page.ids() {
            let phase = self.states.get(id.index()).map_or(Phase::Unknown, |state| state.phase);
            if !matches!(phase, Phase::Unknown | Phase::Done) {
                self.end(id, Outcome::Failed(Failure::Unfinished));
            }
            // What was pushed and never needed is no part of the page as it was loaded.
            let state = self.states.get_mut(id.index());
            let is_needless = |state: &&mut ObjectState| {
                state.by_push && !state.reached && state.timeline.hinted.is_none()
            };
            if let Some(state) = state.filter(is_needless) {
                state.timeline.outcome = Outcome::Unreached;
                state.timeline.end = None;
            }
        }
        let (connections, kept) = self.pool.finish();
        self.memory.connections.extend(kept);
        let loaded = Loaded {
            objects: self.states.into_iter().map(|state| state.timeline).collect(),
            connections,
            arrivals: self.arrivals.into_list(),
            uploads: self.uploads.into_list(),
        };
        (loaded, self.memory)
    }

    /// Now, since the load's begin.
    fn since_begin(&self) -> Delay {
        self.now.saturating_since(self.begin).into()
    }

    /// Computations that are done.
    fn wake(&mut self) {
        while let Some(Reverse((at, id))) = self.computing.peek().copied() {
            if at > self.now {
                return;
            }
            self.computing.pop();
            self.wanted.push_back(id);
        }
    }

    /// Does all that what happened makes possible.
    fn settle(&mut self) {
        loop {
            if let Some(id) = self.wanted.pop_front() {
                self.want(id);
            } else if self.held.changed {
                self.release();
            } else if let Some(host) = self.dirty.pop_first() {
                self.serve(host);
            } else {
                return;
            }
        }
    }

    /// `None` if nothing was expected of what the event tells of.
    fn on_event(&mut self, event: Event) -> Option<()> {
        match event {
            Event::Resolved { host, addresses, valid_for } => {
                let begin = self.asked(host)?;
                let valid_for = valid_for.unwrap_or(self.policy.names_for);
                let addresses: Vec<_> = addresses.into_iter().take(MAX_ADDRESSES).collect();
                let resolved =
                    Resolved { addresses: addresses.clone(), until: self.now + valid_for };
                self.memory.keep_addresses(self.page.host(host)?, resolved);
                let end = self.since_begin();
                let state = self.hosts.get_mut(host.index())?;
                state.dns = Some(Span { begin, end });
                state.name = Name::Known(addresses);
                self.dirty.insert(host);
            }
            Event::NotResolved { host } => {
                self.asked(host)?;
                self.hosts.get_mut(host.index())?.name = Name::Unknown;
                self.fail_waiting(host, Failure::Name);
            }
            Event::Ready { connection, ready } => self.on_ready(connection, ready)?,
            Event::Ticket { host } => {
                let name = self.page.host(host)?;
                self.memory.has_ticket(name);
            }
            Event::Limit { connection, limit } => {
                let open = self.pool.get_mut(connection)?;
                let Carries::Many { limit: old } = &mut open.carries else { return None };
                *old = limit;
                self.room_on(connection);
            }
            Event::GoAway { connection } => self.on_go_away(connection)?,
            Event::Closed { connection } => self.on_closed(connection)?,
            Event::Sent { object } => {
                let at = self.since_begin();
                self.under_way(object)?.timeline.sent = Some(at);
            }
            Event::Uploaded { object, bytes } => self.on_uploaded(object, bytes)?,
            Event::Head { object, status, storage } => self.on_head(object, status, storage)?,
            Event::Body { object, bytes } => self.on_body(object, bytes)?,
            Event::Complete { object, reusable } => self.on_complete(object, reusable)?,
            Event::Failed { object, refused } => self.on_failed(object, refused)?,
            Event::Hinted { by, target } => self.on_hinted(by, &target)?,
            Event::Pushed { connection, push, host, path } => {
                self.on_pushed(connection, push, (&host, &path))?;
            }
            Event::Wake => {}
        }
        Some(())
    }

    /// When a host's name was asked for, if its answer is expected.
    fn asked(&self, host: HostId) -> Option<Delay> {
        match self.hosts.get(host.index())?.name {
            Name::Asked(at) => Some(at),
            Name::Unknown | Name::Known(_) => None,
        }
    }

    /// An object's state, if it was asked for and is not done.
    fn under_way(&mut self, id: ObjectId) -> Option<&mut ObjectState> {
        self.states.get_mut(id.index()).filter(|state| state.phase == Phase::UnderWay)
    }
}

impl HostState {
    fn new(host: &str, memory: &Memory) -> HostState {
        HostState {
            name: Name::Unknown,
            dns: None,
            queue: BTreeSet::new(),
            under_way: 0,
            multiplexes: memory.multiplexes(host),
            failing: false,
            shared: None,
            spare: 0,
        }
    }
}
