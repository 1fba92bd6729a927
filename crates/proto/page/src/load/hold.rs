//! Which requests are held back for more important ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::load::{Load, Phase};
use crate::page::{HostId, ObjectId, Urgency};

/// The order in which objects are asked for: the more urgent first, then in the order in which they
/// were wanted.
pub(super) type Place = (Urgency, u32, ObjectId);

/// The requests that are held back, by host.
#[derive(Debug, Default)]
pub(super) struct Held {
    by_host: BTreeMap<HostId, BTreeSet<Place>>,
    /// Whether something changed that may release one.
    pub(super) changed: bool,
}

impl Held {
    pub(super) fn insert(&mut self, host: HostId, place: Place) {
        self.by_host.entry(host).or_default().insert(place);
        self.changed = true;
    }

    fn first(&self, host: HostId) -> Option<Place> {
        self.by_host.get(&host)?.first().copied()
    }

    pub(super) fn remove(&mut self, host: HostId, place: Place) {
        if let Some(places) = self.by_host.get_mut(&host) {
            places.remove(&place);
            if places.is_empty() {
                self.by_host.remove(&host);
            }
        }
    }
}

impl Load {
    /// Releases every held request that may start now, the most important first.
    pub(super) fn release(&mut self) {
        if !std::mem::take(&mut self.held.changed) {
            return;
        }
        let firsts = self.held.by_host.iter();
        let mut heads: BinaryHeap<Reverse<(Place, HostId)>> =
            firsts.filter_map(|(host, places)| Some(Reverse((*places.first()?, *host)))).collect();
        while let Some(Reverse((place, host))) = heads.pop() {
            // What keeps one request of a host back keeps the others of it back too.
            if !self.may_start(host) {
                continue;
            }
            self.held.remove(host, place);
            self.admit(place.2);
            heads.extend(self.held.first(host).map(|next| Reverse((next, host))));
        }
    }

    /// Whether a held request to this host may start.
    fn may_start(&self, host: HostId) -> bool {
        let hold = &self.policy.hold;
        let Some(host) = self.hosts.get(host.index()) else { return true };
        let multiplexed = host.multiplexes == Some(true);
        let blocking = !self.counts.root_begun || self.counts.blocking > 0;
        let full = |limit: Option<usize>, count| limit.is_some_and(|limit| count >= limit);
        let counts = hold.on_multiplexed || !multiplexed;
        if blocking && counts && full(hold.while_blocking, self.counts.under_way) {
            return false;
        }
        multiplexed
            || !(full(hold.in_all, self.counts.delayable) || full(hold.per_host, host.under_way))
    }

    /// Lets a request wait for a connection.
    pub(super) fn admit(&mut self, id: ObjectId) {
        let at = self.since_begin();
        let Some(state) = self.states.get_mut(id.index()) else { return };
        let Some(host) = self.hosts.get_mut(state.host.index()) else { return };
        state.phase = Phase::Queued;
        state.counted = true;
        state.timeline.released = Some(at);
        state.delayable = state.treatment.held && host.multiplexes != Some(true);
        self.counts.under_way += 1;
        self.counts.delayable += usize::from(state.delayable);
        host.under_way += 1;
        host.queue.insert((state.treatment.urgency, state.order, id));
        self.dirty.insert(state.host);
    }
}
