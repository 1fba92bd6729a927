//! Objects of a load: found, wanted, answered, done.

use std::cmp::Reverse;

use units::{Bytes, Delay};

use crate::cache::{Lookup, Storage};
use crate::load::timeline::{Failure, Outcome, Timeline};
use crate::load::{Load, ObjectState, Phase};
use crate::memory::ConnectionId;
use crate::page::{Found, Object, ObjectId};
use crate::policy::Policy;

/// Most times that an object is asked for: once more where the first was of no effect.
const MOST_REQUESTS: u32 = 2;

impl ObjectState {
    pub(super) fn new(object: &Object, policy: &Policy) -> ObjectState {
        let mut treatment = policy.treatment(object);
        // Nothing is more important than the page itself, whatever it is.
        treatment.held = treatment.held && object.found.is_some();
        ObjectState {
            host: object.host,
            treatment,
            phase: Phase::Unknown,
            order: 0,
            delayable: false,
            on_reused: false,
            wants_new: false,
            ahead: false,
            told_of: false,
            reached: false,
            by_push: false,
            counted: false,
            blocks: false,
            validator: None,
            storage: None,
            told: 0,
            unlisted: (0, 0),
            timeline: Timeline::default(),
        }
    }
}

impl Load {
    /// An object is found; it is wanted after a computation.
    pub(super) fn find(&mut self, id: ObjectId, computation: Delay) {
        let at = self.since_begin();
        let Some(state) = self.states.get_mut(id.index()) else { return };
        if std::mem::replace(&mut state.told_of, true) {
            return;
        }
        if state.phase == Phase::Unknown {
            state.phase = Phase::Computing;
        }
        state.timeline.found.get_or_insert(at);
        self.counts.unfinished += 1;
        if state.phase != Phase::Done && blocks(&self.page, id, state) {
            state.blocks = true;
            self.counts.blocking += 1;
        }
        let wanted = self.now + computation.duration();
        if wanted <= self.now {
            self.wanted.push_back(id);
        } else {
            self.computing.push(Reverse((wanted, id)));
        }
    }

    /// An object is wanted: from the cache, or by a request, unless it is on its way already.
    pub(super) fn want(&mut self, id: ObjectId) {
        let at = self.since_begin();
        let Some(state) = self.states.get_mut(id.index()) else { return };
        state.timeline.queued.get_or_insert(at);
        state.timeline.reached = Some(at);
        state.reached = true;
        if state.ahead { self.reach(id) } else { self.ask(id) }
    }

    /// Takes an object from the cache, or lets it be asked for.
    pub(super) fn ask(&mut self, id: ObjectId) {
        let Some(object) = self.page.object(id) else { return };
        let Some(state) = self.states.get_mut(id.index()) else { return };
        let lookup = match object.upload {
            Some(_) => Lookup::Missing,
            None => self.memory.cache.look_up(&self.page.key(object), self.now),
        };
        match lookup {
            Lookup::Fresh { .. } => return self.end(id, Outcome::Fresh),
            Lookup::Stale { validator, .. } => state.validator = Some(validator),
            Lookup::Missing => {}
        }
        state.order = self.next_order;
        self.next_order += 1;
        if state.treatment.held {
            state.phase = Phase::Held;
            self.held.insert(state.host, (state.treatment.urgency, state.order, id));
        } else {
            self.admit(id);
        }
    }

    /// Tells of the children that a body of this many bytes lets be found. Those that need all of it
    /// are found when it is complete, and its connection free; those of one that was fetched ahead, when
    /// the page has told of it.
    pub(super) fn tell(&mut self, id: ObjectId, received: u64) {
        if !self.states.get(id.index()).is_some_and(|state| state.reached) {
            return;
        }
        let page = self.page.clone();
        let Some(object) = page.object(id) else { return };
        let children = page.children(id);
        loop {
            let Some(state) = self.states.get_mut(id.index()) else { return };
            let Some(child) = children.get(state.told) else { return };
            let found = page.object(*child).and_then(|child| child.found);
            let body = object.body.count();
            let enough = |found: &Found| {
                let needed = found.after.of(body);
                received == u64::MAX || (needed <= received && needed < body)
            };
            let Some(found) = found.filter(enough) else { return };
            state.told += 1;
            self.find(*child, found.delay);
        }
    }

    /// The page itself has begun to come.
    fn begun(&mut self, id: ObjectId) {
        if id == self.page.root() && !self.counts.root_begun {
            self.counts.root_begun = true;
            self.held.changed = true;
        }
    }

    pub(super) fn on_uploaded(&mut self, id: ObjectId, bytes: u64) -> Option<()> {
        let at = self.since_begin();
        self.under_way(id)?.timeline.uploaded += Bytes(bytes);
        let unlisted = self.uploads.note(at, id, bytes);
        let state = self.under_way(id)?;
        state.unlisted.1 = state.unlisted.1.saturating_add(unlisted);
        Some(())
    }

    pub(super) fn on_head(
        &mut self,
        id: ObjectId,
        status: u16,
        storage: Option<Storage>,
    ) -> Option<()> {
        let at = self.since_begin();
        let state = self.under_way(id)?;
        state.timeline.first_byte.get_or_insert(at);
        state.timeline.status = Some(status);
        state.storage = storage;
        Some(())
    }

    pub(super) fn on_body(&mut self, id: ObjectId, bytes: u64) -> Option<()> {
        let at = self.since_begin();
        let state = self.under_way(id)?;
        state.timeline.first_byte.get_or_insert(at);
        state.timeline.received += Bytes(bytes);
        let received = state.timeline.received.count();
        let unlisted = self.arrivals.note(at, id, bytes);
        let state = self.under_way(id)?;
        state.unlisted.0 = state.unlisted.0.saturating_add(unlisted);
        self.begun(id);
        self.tell(id, received);
        Some(())
    }

    pub(super) fn on_complete(&mut self, id: ObjectId, reusable: bool) -> Option<()> {
        let at = self.since_begin();
        let page = self.page.clone();
        let object = page.object(id)?;
        let state = self.under_way(id)?;
        state.timeline.first_byte.get_or_insert(at);
        let (status, storage) = (state.timeline.status, state.storage.take());
        let validated = status == Some(304) && state.validator.is_some();
        let (received, connection) = (state.timeline.received, state.timeline.connection);
        let key = page.key(object);
        if validated {
            self.memory.cache.revalidated(&key, storage, self.now);
        } else if object.upload.is_none() {
            // What came takes the place of what was stored (RFC 9111 §4.3.3).
            match storage.filter(|_| is_storable(status)) {
                Some(storage) => self.memory.cache.store(&key, received, storage, self.now),
                None => self.memory.cache.remove(&key),
            }
        }
        self.end(id, if validated { Outcome::Validated } else { Outcome::Fetched });
        self.leave(id, connection?, reusable);
        Some(())
    }

    /// A request failed: it is sent again where the first cannot have had an effect, else the object
    /// has failed.
    pub(super) fn fail_or_retry(&mut self, id: ObjectId, refused: bool) {
        let Some(state) = self.under_way(id) else { return };
        // A server may close an idle connection just as a request is sent on it: both browsers then
        // send it once more on a new one, whatever its method, as long as nothing was answered
        // (RFC 9112 §9.3.1; RFC 9110 §9.2.2 asks for knowledge that it was not applied).
        let again = (refused || state.on_reused)
            && state.timeline.first_byte.is_none()
            && state.timeline.requests < MOST_REQUESTS;
        if !again {
            return self.end(id, Outcome::Failed(Failure::Request));
        }
        state.wants_new = !refused;
        state.phase = Phase::Queued;
        state.timeline.sent = None;
        let (host, place) = (state.host, (state.treatment.urgency, state.order, id));
        if let Some(host) = self.hosts.get_mut(host.index()) {
            host.queue.insert(place);
        }
        self.dirty.insert(host);
    }

    pub(super) fn on_failed(&mut self, id: ObjectId, refused: bool) -> Option<()> {
        let state = self.under_way(id)?;
        let (connection, by_push) = (state.timeline.connection?, state.by_push);
        if by_push {
            self.push_failed(id);
            self.leave(id, connection, true);
            return Some(());
        }
        if self.pool.get(connection)?.is_multiplexed() {
            // The connection is there: what failed is this request (RFC 9113 §8.7).
            self.under_way(id)?.on_reused = false;
        }
        self.fail_or_retry(id, refused);
        self.leave(id, connection, false);
        Some(())
    }

    /// An object is done: what it tells of is found, and others may be released.
    pub(super) fn end(&mut self, id: ObjectId, outcome: Outcome) {
        let at = self.since_begin();
        let Some(state) = self.states.get_mut(id.index()) else { return };
        let was = std::mem::replace(&mut state.phase, Phase::Done);
        if matches!(was, Phase::Done | Phase::Unknown) {
            return;
        }
        state.timeline.end = Some(at);
        state.timeline.outcome = outcome;
        let (down, up) = std::mem::take(&mut state.unlisted);
        self.arrivals.end(at, id, down);
        self.uploads.end(at, id, up);
        self.counts.unfinished -= 1;
        if std::mem::take(&mut state.blocks) {
            self.counts.blocking -= 1;
        }
        if std::mem::take(&mut state.counted) {
            self.counts.under_way -= 1;
            self.counts.delayable -= usize::from(state.delayable);
            if let Some(host) = self.hosts.get_mut(state.host.index()) {
                host.under_way -= 1;
            }
        }
        self.held.changed = true;
        self.begun(id);
        if !matches!(outcome, Outcome::Failed(_)) {
            self.tell(id, u64::MAX);
        }
    }

    /// An object's request is no longer on a connection.
    fn leave(&mut self, id: ObjectId, connection: ConnectionId, reusable: bool) {
        let now = self.now;
        let Some(open) = self.pool.get_mut(connection) else { return };
        open.active.remove(&id);
        open.pushed.remove(&id);
        open.idle_since = now;
        let broken = !reusable && !open.is_multiplexed();
        if broken || open.is_drained() {
            self.close(connection);
        } else {
            self.room_on(connection);
        }
    }
}

/// Whether rendering waits for an object that was found. What is held back cannot hold others back.
fn blocks(page: &crate::page::Page, id: ObjectId, state: &ObjectState) -> bool {
    page.object(id).is_some_and(|object| object.blocking) && !state.treatment.held
}

/// Whether a response with this status is stored (RFC 9110 §15.1, less those that are rare).
fn is_storable(status: Option<u16>) -> bool {
    matches!(status, Some(200 | 203 | 301 | 308))
}
