//! The connections of a load.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use units::{Delay, Time};

use crate::load::timeline::ConnectionTimeline;
use crate::memory::{Carries, Certificate, ConnectionId, Kept};
use crate::page::{HostId, ObjectId};

/// What a connection can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    Ready,
    /// It carries what it carries, and nothing more.
    Draining,
}

/// A connection that is open or being opened.
#[derive(Debug)]
pub(super) struct Connection {
    /// Whose it is; `None` for one of a host that is not the page's.
    pub(super) host: Option<HostId>,
    pub(super) state: State,
    pub(super) carries: Carries,
    pub(super) address: Option<IpAddr>,
    pub(super) certificate: Certificate,
    pub(super) opened: Time,
    pub(super) idle_since: Time,
    pub(super) active: BTreeSet<ObjectId>,
    /// What the server pushes on it and was taken.
    pub(super) pushed: BTreeSet<ObjectId>,
    pub(super) timeline: ConnectionTimeline,
}

impl Connection {
    pub(super) fn is_multiplexed(&self) -> bool {
        matches!(self.carries, Carries::Many { .. })
    }

    /// Whether it can carry one request more, which may want a new one.
    fn has_room(&self, new: bool) -> bool {
        let limit = match self.carries {
            Carries::One => 1,
            Carries::Many { limit } => limit,
        };
        self.state == State::Ready && self.active.len() < limit && self.is_usable(new)
    }

    /// Whether it may carry a request that failed on a connection closed while idle: on one that was
    /// idle itself the same may happen.
    fn is_usable(&self, new: bool) -> bool {
        !new || self.is_multiplexed() || !self.is_reused()
    }

    /// Whether something is expected of it.
    pub(super) fn is_busy(&self) -> bool {
        self.state == State::Opening || !self.active.is_empty() || !self.pushed.is_empty()
    }

    /// Whether it carried a request before in its life.
    pub(super) fn is_reused(&self) -> bool {
        self.timeline.kept || self.timeline.requests > 0
    }

    fn is_idle(&self) -> bool {
        self.can_be_kept() && self.pushed.is_empty()
    }

    /// Whether nothing on it is waited for. What is still being pushed is cancelled.
    fn can_be_kept(&self) -> bool {
        self.state == State::Ready && self.active.is_empty()
    }
}

/// The connections of a load.
#[derive(Debug, Default)]
pub(super) struct Pool {
    open: BTreeMap<ConnectionId, Connection>,
    by_host: BTreeMap<HostId, Vec<ConnectionId>>,
    closed: Vec<ConnectionTimeline>,
}

impl Pool {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// How many were opened or kept.
    pub(super) fn ever(&self) -> usize {
        self.open.len() + self.closed.len()
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.open.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.open.get_mut(&id)
    }

    pub(super) fn insert(&mut self, id: ConnectionId, connection: Connection) {
        if let Some(host) = connection.host {
            self.by_host.entry(host).or_default().push(id);
        }
        self.open.insert(id, connection);
    }

    /// Takes a connection out, which is closed at this time.
    pub(super) fn remove(&mut self, id: ConnectionId, at: Delay) -> Option<Connection> {
        let connection = self.open.remove(&id)?;
        if let Some(list) = connection.host.and_then(|host| self.by_host.get_mut(&host)) {
            list.retain(|other| *other != id);
        }
        self.closed.push(ConnectionTimeline { closed: Some(at), ..connection.timeline.clone() });
        Some(connection)
    }

    /// The connections that were opened to a host.
    pub(super) fn of(
        &self,
        host: HostId,
    ) -> impl DoubleEndedIterator<Item = (ConnectionId, &Connection)> {
        let ids = self.by_host.get(&host).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| Some((*id, self.open.get(id)?)))
    }

    /// A connection of the host itself that can carry a request: a multiplexed one, else the one that
    /// was idle for the shortest time.
    pub(super) fn own_with_room(&self, host: HostId, new: bool) -> Option<ConnectionId> {
        let with_room = self.of(host).filter(|(_, connection)| connection.has_room(new));
        let best = with_room.max_by_key(|(id, connection)| {
            (connection.is_multiplexed(), connection.idle_since, std::cmp::Reverse(*id))
        });
        best.map(|(id, _)| id)
    }

    /// Whether a multiplexed connection of the host itself is there, with room or not.
    pub(super) fn own_multiplexed(&self, host: HostId) -> bool {
        self.of(host)
            .any(|(_, connection)| connection.state == State::Ready && connection.is_multiplexed())
    }

    /// Whether a connection can serve one request more.
    pub(super) fn has_room(&self, id: ConnectionId, new: bool) -> bool {
        self.get(id).is_some_and(|connection| connection.has_room(new))
    }

    /// A multiplexed connection to another host that may serve this one too: it has one of its
    /// addresses, and its certificate is for it (RFC 9113 §9.1.1).
    pub(super) fn shared(&self, name: &str, addresses: &[IpAddr]) -> Option<ConnectionId> {
        let mut ready = self.open.iter().filter(|(_, connection)| {
            connection.state == State::Ready && connection.is_multiplexed()
        });
        let found = ready.find(|(_, connection)| {
            connection.address.is_some_and(|address| addresses.contains(&address))
                && connection.certificate.covers(name)
        });
        found.map(|(id, _)| *id)
    }

    /// The idle connection of a host, if there is one.
    pub(super) fn idle_of(&self, host: HostId) -> Option<ConnectionId> {
        self.of(host).find(|(_, connection)| connection.is_idle()).map(|(id, _)| id)
    }

    /// The connection that is idle for the longest time.
    pub(super) fn longest_idle(&self) -> Option<ConnectionId> {
        let idle = self.open.iter().filter(|(_, connection)| connection.is_idle());
        idle.min_by_key(|(_, connection)| connection.idle_since).map(|(id, _)| *id)
    }

    /// What happened to all, and those that are idle and can be kept.
    pub(super) fn finish(self) -> (Vec<ConnectionTimeline>, Vec<Kept>) {
        let (mut timelines, mut kept) = (self.closed, Vec::new());
        for (id, connection) in self.open {
            if connection.can_be_kept() {
                kept.push(Kept {
                    id,
                    host: connection.timeline.host.clone(),
                    carries: connection.carries,
                    address: connection.address,
                    certificate: connection.certificate,
                    idle_since: connection.idle_since,
                });
            }
            timelines.push(connection.timeline);
        }
        // A kept connection that nothing asked for has no part in the load.
        timelines.retain(|timeline| !timeline.kept || timeline.requests > 0);
        timelines.sort_unstable_by_key(|timeline| timeline.id);
        (timelines, kept)
    }
}
