//! What comes before the page tells of it: pushed by a server, or asked for because of a hint.
//!
//! Such an object has its request, or none, as any other; but what it tells of is found only when the
//! page has told of itself: a style sheet that nobody refers to yet applies to nothing.

use units::Bytes;

use crate::cache::Lookup;
use crate::load::event::{Action, PushId};
use crate::load::timeline::Outcome;
use crate::load::{Load, Phase};
use crate::memory::ConnectionId;
use crate::page::ObjectId;

impl Load {
    /// A response's head names an object.
    pub(super) fn on_hinted(&mut self, by: ObjectId, target: &str) -> Option<()> {
        let at = self.since_begin();
        self.under_way(by)?;
        let Some(id) = self.page.resolve(by, target) else { return Some(()) };
        if id == self.page.root() || self.is_upload(id) || self.is_fresh(id) {
            return Some(());
        }
        let state = self.states.get_mut(id.index())?;
        if !matches!(state.phase, Phase::Unknown | Phase::Computing) {
            return Some(());
        }
        state.ahead = true;
        state.timeline.found.get_or_insert(at);
        state.timeline.queued = Some(at);
        state.timeline.hinted = Some(at);
        self.counts.unfinished += 1;
        self.ask(id);
        Some(())
    }

    /// A server pushes: it is taken, or refused.
    pub(super) fn on_pushed(
        &mut self,
        connection: ConnectionId,
        push: PushId,
        (host, path): (&str, &str),
    ) -> Option<()> {
        let action = match self.wanted_push(connection, host, path) {
            Some(object) => {
                self.take(object, connection);
                Action::Take { push, object }
            }
            None => Action::Refuse { push },
        };
        self.actions.push_back(action);
        Some(())
    }

    /// The object that is pushed, if it is of use: one of the page's that is neither in the cache nor asked
    /// for yet, from a server that may speak for its host (RFC 9113 §8.4, §10.1).
    fn wanted_push(
        &mut self,
        connection: ConnectionId,
        host: &str,
        path: &str,
    ) -> Option<ObjectId> {
        // In the lab a host's server has a port of its own.
        let host = host.split(':').next()?;
        let id = self.page.find(host, path)?;
        let object = self.page.object(id)?;
        let open = self.pool.get(connection)?;
        // HTTP/1.1 has no push.
        let speaks = open.is_multiplexed()
            && (open.host == Some(object.host) || open.certificate.covers(host));
        let phase = self.states.get(id.index())?.phase;
        let is_early =
            matches!(phase, Phase::Unknown | Phase::Computing | Phase::Held | Phase::Queued);
        let of_use = speaks && is_early && id != self.page.root();
        (of_use && !self.is_upload(id) && !self.is_fresh(id)).then_some(id)
    }

    fn is_upload(&self, id: ObjectId) -> bool {
        self.page.object(id).is_some_and(|object| object.upload.is_some())
    }

    /// Whether the cache has it, fresh.
    fn is_fresh(&mut self, id: ObjectId) -> bool {
        let Some(object) = self.page.object(id) else { return false };
        let key = self.page.key(object);
        matches!(self.memory.cache.look_up(&key, self.now), Lookup::Fresh { .. })
    }

    /// A push takes the place of an object's request.
    fn take(&mut self, id: ObjectId, connection: ConnectionId) {
        let at = self.since_begin();
        let Some(state) = self.states.get_mut(id.index()) else { return };
        let (host, place) = (state.host, (state.treatment.urgency, state.order, id));
        match state.phase {
            Phase::Held => self.held.remove(host, place),
            Phase::Queued => {
                if let Some(host) = self.hosts.get_mut(host.index()) {
                    host.queue.remove(&place);
                }
                self.dirty.insert(host);
            }
            _ => {
                state.ahead = true;
                self.counts.unfinished += 1;
            }
        }
        state.phase = Phase::UnderWay;
        state.by_push = true;
        state.timeline.pushed = Some(at);
        state.timeline.sending = Some(at);
        state.timeline.sent = Some(at);
        state.timeline.connection = Some(connection);
        // What nobody waits for yet holds nothing back.
        let is_waited_for = !state.ahead || state.reached;
        if is_waited_for {
            self.count(id);
        }
        if let Some(open) = self.pool.get_mut(connection) {
            open.pushed.insert(id);
        }
    }

    /// Counts an object among those under way.
    pub(super) fn count(&mut self, id: ObjectId) {
        let Some(state) = self.states.get_mut(id.index()) else { return };
        if std::mem::replace(&mut state.counted, true) {
            return;
        }
        self.counts.under_way += 1;
        if let Some(host) = self.hosts.get_mut(state.host.index()) {
            host.under_way += 1;
        }
    }

    /// The page has told of an object that was asked for or pushed before: what came of it is used.
    pub(super) fn reach(&mut self, id: ObjectId) {
        let at = self.since_begin();
        let Some(state) = self.states.get_mut(id.index()) else { return };
        let (phase, by_push) = (state.phase, state.by_push);
        let received = state.timeline.received.count();
        let failed = matches!(state.timeline.outcome, Outcome::Failed(_));
        match phase {
            Phase::Done => {
                if by_push {
                    state.timeline.end = Some(at);
                }
                if !failed {
                    self.tell(id, u64::MAX);
                }
            }
            Phase::UnderWay => {
                if by_push {
                    self.count(id);
                }
                self.tell(id, received);
            }
            Phase::Unknown | Phase::Computing | Phase::Held | Phase::Queued => {}
        }
        self.counts.unfinished -= 1;
        self.held.changed = true;
    }

    /// A push that was taken breaks off: as if there had been none.
    pub(super) fn push_failed(&mut self, id: ObjectId) {
        let at = self.since_begin();
        let order = self.next_order;
        let Some(state) = self.states.get_mut(id.index()) else { return };
        let (down, _) = std::mem::take(&mut state.unlisted);
        self.arrivals.end(at, id, down);
        state.by_push = false;
        state.storage = None;
        let timeline = &mut state.timeline;
        timeline.received = Bytes(0);
        (timeline.pushed, timeline.sending, timeline.sent) = (None, None, None);
        (timeline.first_byte, timeline.status, timeline.connection) = (None, None, None);
        if state.ahead && !state.reached && !state.counted {
            state.ahead = false;
            state.phase = if state.told_of { Phase::Computing } else { Phase::Unknown };
            self.counts.unfinished -= 1;
            self.held.changed = true;
            return;
        }
        state.phase = Phase::Queued;
        state.order = order;
        state.timeline.released.get_or_insert(at);
        let (host, place) = (state.host, (state.treatment.urgency, order, id));
        self.next_order += 1;
        self.count(id);
        if let Some(host) = self.hosts.get_mut(host.index()) {
            host.queue.insert(place);
        }
        self.dirty.insert(host);
    }
}
