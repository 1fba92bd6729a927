//! Connections of a load: opened, used, closed.

use std::collections::BTreeSet;
use std::ops::Bound;

use units::Time;

use crate::load::event::{Action, Ready};
use crate::load::timeline::{ConnectionTimeline, Failure, Opening, Outcome};
use crate::load::{Connection, Load, Name, Phase, State};
use crate::memory::{Carries, Certificate, ConnectionId};
use crate::page::{HostId, ObjectId, Page};

impl Connection {
    /// Whether it carries nothing and shall carry nothing more.
    pub(super) fn is_drained(&self) -> bool {
        self.state == State::Draining && self.active.is_empty() && self.pushed.is_empty()
    }
}

impl Load {
    /// Takes over the connections of the load before; those that were idle for too long are closed.
    pub(super) fn take_kept_connections(&mut self) {
        for kept in std::mem::take(&mut self.memory.connections) {
            if self.now.saturating_since(kept.idle_since) > self.policy.idle {
                self.actions.push_back(Action::Close { connection: kept.id });
                continue;
            }
            let host = self.page.hosts().iter().position(|host| *host == kept.host);
            let timeline = ConnectionTimeline {
                id: kept.id,
                host: kept.host,
                opening: None,
                kept: true,
                multiplexed: matches!(kept.carries, Carries::Many { .. }),
                resumed: false,
                requests: 0,
                closed: None,
            };
            let connection = Connection {
                host: host.map(|host| HostId(host as u32)),
                state: State::Ready,
                carries: kept.carries,
                address: kept.address,
                certificate: kept.certificate,
                opened: Time::ZERO,
                idle_since: kept.idle_since,
                active: BTreeSet::new(),
                pushed: BTreeSet::new(),
                timeline,
            };
            self.pool.insert(kept.id, connection);
        }
    }

    /// Gives the waiting requests of a host to connections, and opens what is missing.
    pub(super) fn serve(&mut self, host: HostId) {
        self.give(host);
        if !self.is_waiting(host) {
            return;
        }
        let known = match self.hosts.get(host.index()).map(|state| &state.name) {
            Some(Name::Known(_)) => true,
            Some(Name::Unknown) => self.know_name(host),
            Some(Name::Asked(_)) | None => false,
        };
        if !known {
            return;
        }
        // Its addresses may be those of a connection that is there.
        self.give(host);
        if self.is_waiting(host) {
            self.open_for(host);
        }
    }

    fn is_waiting(&mut self, host: HostId) -> bool {
        let waiting = self.hosts.get(host.index()).is_some_and(|state| !state.queue.is_empty());
        if waiting {
            self.waiting.insert(host);
        } else {
            self.waiting.remove(&host);
            self.starved.remove(&host);
        }
        waiting
    }

    /// Takes a host's addresses from memory, or asks for them.
    fn know_name(&mut self, host: HostId) -> bool {
        let at = self.since_begin();
        let Some(name) = self.page.host(host) else { return false };
        let known = self.memory.addresses(name, self.now).map(<[_]>::to_vec);
        let Some(state) = self.hosts.get_mut(host.index()) else { return false };
        match known {
            Some(addresses) => {
                state.name = Name::Known(addresses);
                true
            }
            None => {
                state.name = Name::Asked(at);
                self.actions.push_back(Action::Resolve { host });
                false
            }
        }
    }

    /// Sends as many waiting requests as connections have room for, the most urgent first.
    fn give(&mut self, host: HostId) {
        let Some(state) = self.hosts.get(host.index()) else { return };
        let mut next = state.queue.first().copied();
        while let Some(place) = next {
            let new = self.states.get(place.2.index()).is_some_and(|state| state.wants_new);
            let own = self.pool.own_with_room(host, new);
            let connection = own.or_else(|| self.shared_with_room(host, new));
            match connection {
                Some(connection) => {
                    if let Some(state) = self.hosts.get_mut(host.index()) {
                        state.queue.remove(&place);
                    }
                    self.send(place.2, connection);
                }
                // Another may use what this one may not.
                None if new => {}
                None => return,
            }
            let queue = self.hosts.get(host.index()).map(|state| &state.queue);
            let after = (Bound::Excluded(place), Bound::Unbounded);
            next = queue.and_then(|queue| queue.range(after).next().copied());
        }
    }

    /// A connection to another host that may serve this one and has room.
    fn shared_with_room(&mut self, host: HostId, new: bool) -> Option<ConnectionId> {
        let state = self.hosts.get_mut(host.index())?;
        let Name::Known(addresses) = &state.name else { return None };
        if !self.policy.coalesce {
            return None;
        }
        let usable = |id: &ConnectionId| {
            self.pool.get(*id).is_some_and(|connection| connection.state == State::Ready)
        };
        state.shared = state.shared.filter(usable);
        if state.shared.is_none() {
            state.shared = self.pool.shared(self.page.host(host)?, addresses);
        }
        state.shared.filter(|id| self.pool.has_room(*id, new))
    }

    /// Hands a request to a connection.
    fn send(&mut self, id: ObjectId, connection: ConnectionId) {
        let at = self.since_begin();
        let Some(state) = self.states.get_mut(id.index()) else { return };
        let Some(open) = self.pool.get_mut(connection) else { return };
        let Some(host) = self.hosts.get_mut(state.host.index()) else { return };
        state.phase = Phase::UnderWay;
        state.on_reused = open.is_reused();
        let timeline = &mut state.timeline;
        timeline.sending = Some(at);
        timeline.connection = Some(connection);
        timeline.requests += 1;
        timeline.dns = host.dns.take().or(timeline.dns);
        if open.timeline.requests == 0 {
            timeline.connect = open.timeline.opening;
        }
        open.timeline.requests = open.timeline.requests.saturating_add(1);
        open.active.insert(id);
        self.actions.push_back(Action::Send {
            object: id,
            connection,
            urgency: state.treatment.urgency,
            incremental: state.treatment.incremental,
            validator: state.validator.clone(),
        });
    }

    /// Opens the connections that a host's waiting requests need and may have.
    fn open_for(&mut self, host: HostId) {
        let Some(state) = self.hosts.get_mut(host.index()) else { return };
        if self.pool.own_multiplexed(host) || state.shared.is_some() {
            return;
        }
        let opening = self.pool.of(host).filter(|(_, open)| open.state == State::Opening).count();
        if state.failing && self.pool.of(host).any(|(_, open)| open.is_busy()) {
            return;
        }
        let wanted = match state.multiplexes {
            Some(true) => 1,
            _ => state.queue.len().saturating_add(std::mem::take(&mut state.spare)),
        };
        for _ in opening..wanted {
            if !self.make_room(host) {
                return;
            }
            if self.pool.ever() > self.most_connections() {
                return self.fail_waiting(host, Failure::Connection);
            }
            self.open(host);
        }
    }

    /// No load needs more: one per request, one more where a request is repeated, and room for some
    /// that were of no use.
    fn most_connections(&self) -> usize {
        4 * Page::MAX_OBJECTS.min(self.states.len())
            + self.policy.connections.min(Page::MAX_OBJECTS)
    }

    /// Whether one connection more to this host may be opened; an idle one may have to go for it.
    fn make_room(&mut self, host: HostId) -> bool {
        if self.pool.of(host).count() >= self.policy.connections_per_host {
            // One is idle only if the requests that wait may not use it.
            let Some(idle) = self.pool.idle_of(host) else { return false };
            self.close(idle);
        }
        if self.pool.len() >= self.policy.connections {
            let Some(idle) = self.pool.longest_idle() else {
                self.starved.insert(host);
                return false;
            };
            self.close(idle);
        }
        true
    }

    fn open(&mut self, host: HostId) {
        let Some(name) = self.page.host(host) else { return };
        let id = self.memory.next_connection();
        let timeline = ConnectionTimeline {
            id,
            host: name.to_owned(),
            opening: None,
            kept: false,
            multiplexed: false,
            resumed: false,
            requests: 0,
            closed: None,
        };
        let connection = Connection {
            host: Some(host),
            state: State::Opening,
            carries: Carries::One,
            address: None,
            certificate: Certificate::default(),
            opened: self.now,
            idle_since: self.now,
            active: BTreeSet::new(),
            pushed: BTreeSet::new(),
            timeline,
        };
        self.pool.insert(id, connection);
        let ticket = self.policy.tickets && self.memory.ticket(name);
        self.actions.push_back(Action::Open { connection: id, host, ticket });
    }

    pub(super) fn on_ready(&mut self, id: ConnectionId, ready: Ready) -> Option<()> {
        let (begin, now) = (self.begin, self.now);
        let open = self.pool.get_mut(id).filter(|open| open.state == State::Opening)?;
        let since = |time: Time| time.saturating_since(begin).into();
        open.state = State::Ready;
        open.carries = ready.carries;
        open.address = ready.address;
        open.certificate = ready.certificate;
        open.idle_since = now;
        let multiplexed = open.is_multiplexed();
        open.timeline.multiplexed = multiplexed;
        open.timeline.resumed = ready.resumed;
        open.timeline.opening = Some(Opening {
            begin: since(open.opened),
            tcp: ready.tcp.map(|tcp| since(tcp.clamp(open.opened, now))),
            ready: since(now),
        });
        let host = open.host?;
        let name = self.page.host(host)?;
        self.memory.expect(name, multiplexed);
        let state = self.hosts.get_mut(host.index())?;
        state.multiplexes = Some(multiplexed);
        state.failing = false;
        self.held.changed = true;
        let another = |(other, open): (ConnectionId, &Connection)| {
            other != id && open.state == State::Ready && open.is_multiplexed()
        };
        if multiplexed && self.pool.of(host).any(another) {
            // Opened before it was known that one is enough.
            self.close(id);
        } else {
            self.room_on(id);
        }
        Some(())
    }

    /// A connection has room: those whom it may serve are looked at.
    pub(super) fn room_on(&mut self, id: ConnectionId) {
        let Some(open) = self.pool.get(id) else { return };
        self.dirty.extend(open.host);
        if open.is_multiplexed() && self.policy.coalesce {
            let may = |host: &&HostId| {
                let state = self.hosts.get(host.index());
                state.is_some_and(|state| state.shared.is_none_or(|shared| shared == id))
            };
            self.dirty.extend(self.waiting.iter().filter(may));
        }
        // An idle one may go for a host that may open none.
        self.dirty.append(&mut self.starved);
    }

    pub(super) fn on_go_away(&mut self, id: ConnectionId) -> Option<()> {
        let open = self.pool.get_mut(id)?;
        if open.state == State::Opening {
            return None;
        }
        open.state = State::Draining;
        let host = open.host;
        if open.is_drained() {
            self.actions.push_back(Action::Close { connection: id });
            self.on_closed(id);
        }
        self.dirty.extend(host);
        self.dirty.extend(self.waiting.iter());
        Some(())
    }

    /// A connection is gone, and with it the requests on it.
    pub(super) fn on_closed(&mut self, id: ConnectionId) -> Option<()> {
        let closed = self.pool.remove(id, self.since_begin())?;
        for object in closed.active {
            self.fail_or_retry(object, false);
        }
        for object in closed.pushed {
            self.push_failed(object);
        }
        self.dirty.append(&mut self.starved);
        self.dirty.extend(self.waiting.iter());
        let host = closed.host?;
        self.dirty.insert(host);
        if !closed.timeline.kept && closed.timeline.requests == 0 {
            self.hosts.get_mut(host.index())?.failing = true;
            if !self.pool.of(host).any(|(_, open)| open.is_busy()) {
                self.fail_waiting(host, Failure::Connection);
            }
        }
        Some(())
    }

    /// Closes a connection that carries nothing.
    pub(super) fn close(&mut self, id: ConnectionId) {
        let Some(closed) = self.pool.remove(id, self.since_begin()) else { return };
        for object in closed.pushed {
            self.push_failed(object);
        }
        self.actions.push_back(Action::Close { connection: id });
        self.dirty.extend(closed.host);
        self.dirty.append(&mut self.starved);
    }

    /// What waits for a connection to this host has failed.
    pub(super) fn fail_waiting(&mut self, host: HostId, failure: Failure) {
        let Some(state) = self.hosts.get_mut(host.index()) else { return };
        state.failing = false;
        for (_, _, object) in std::mem::take(&mut state.queue) {
            self.end(object, Outcome::Failed(failure));
        }
        self.is_waiting(host);
    }
}
