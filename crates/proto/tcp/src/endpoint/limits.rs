//! What is counted of connections, and bounded: half-open ones, orphans, memory of buffers.

use std::time::Duration;

use units::Time;

use super::Endpoint;
use crate::CloseReason;
use crate::connection::{HalfOpen, Memory};
use crate::event::ConnectionId;

/// So long a half-open connection keeps its place in a full table: its SYN-ACK went twice by then.
const HALF_OPEN_AGE: Duration = Duration::from_secs(3);
/// A token bucket of this much time: what comes after a quiet second may come at once.
const SAVED: Duration = Duration::from_secs(1);

/// A token bucket, by the time at which it is full: `rate` in a second, and as many at once after a
/// second without any.
#[derive(Debug)]
pub(super) struct Bucket {
    each: Option<Duration>,
    full_at: Time,
}

impl Bucket {
    pub(super) fn new(rate: u32) -> Self {
        Bucket { each: SAVED.checked_div(rate), full_at: Time::ZERO }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let Some(each) = self.each else { return false };
        let full_at = self.full_at.max(now) + each;
        let there = full_at <= now + SAVED;
        if there {
            self.full_at = full_at;
        }
        there
    }
}

/// Memory for the buffers of one direction: some is each connection's own, the rest is for all.
#[derive(Debug)]
pub(super) struct Pool {
    own: usize,
    most_shared: usize,
    shared: usize,
    held: usize,
}

impl Pool {
    /// `own` bytes for each connection and `most_shared` for all.
    pub(super) fn new(own: usize, most_shared: usize) -> Self {
        Pool { own, most_shared, shared: 0, held: 0 }
    }

    /// Bytes that are left for all.
    fn spare(&self) -> usize {
        self.most_shared.saturating_sub(self.shared)
    }

    /// Counts `now` bytes of a connection in place of `before`; bytes that all hold.
    fn recount(&mut self, before: usize, now: usize) -> usize {
        let beyond = |held: usize| held.saturating_sub(self.own);
        self.shared = self.shared + beyond(now) - beyond(before);
        self.held = self.held + now - before;
        self.held
    }
}

impl Endpoint {
    /// Takes the place of a connection whose SYN has data, unless it is validated, the table is full
    /// or too many came.
    pub(super) fn admit_with_data(&mut self, now: Time, validated: bool) -> bool {
        if !validated {
            self.make_room(now);
        }
        // RFC 7413 §5.1: those with a valid cookie have a bound too, twice as far.
        let limit = self.config.max_half_open_with_data * if validated { 2 } else { 1 };
        if self.with_data(now) >= limit {
            self.counters.opened_without_data += 1;
            return false;
        }
        if !validated && !self.unvalidated.take(now) {
            self.counters.syn_data_over_rate += 1;
            return false;
        }
        true
    }

    /// Half-open connections with data, and those that a RST ended not long ago.
    fn with_data(&mut self, now: Time) -> usize {
        while self.reset_with_data.front().is_some_and(|until| *until <= now) {
            self.reset_with_data.pop_front();
        }
        self.counters.half_open_reset = self.reset_with_data.len();
        self.counters.half_open_with_data + self.reset_with_data.len()
    }

    /// With the table of half-open connections with data full, those make room whose SYN-ACK has been
    /// without an answer for long.
    fn make_room(&mut self, now: Time) {
        while let Some((begun, id)) = self.opened_with_data.front().copied() {
            let half_open = self.is_half_open_with_data(id);
            let full = self.with_data(now) >= self.config.max_half_open_with_data;
            let stale = now.saturating_since(begun) >= HALF_OPEN_AGE;
            if half_open && !(full && stale) {
                // The queue holds no more than the table and what has left it since.
                if self.opened_with_data.len() > 2 * self.config.max_half_open_with_data + 64 {
                    let mut all = std::mem::take(&mut self.opened_with_data);
                    all.retain(|(_, id)| self.is_half_open_with_data(*id));
                    self.opened_with_data = all;
                }
                return;
            }
            self.opened_with_data.pop_front();
            if half_open && let Some(connection) = self.table.get_mut(id) {
                connection.close(CloseReason::TimedOut);
                self.counters.half_open_evicted += 1;
                self.touch(now, id.index);
            }
        }
    }

    fn is_half_open_with_data(&self, id: ConnectionId) -> bool {
        let half_open = self.table.get(id).and_then(|connection| connection.half_open);
        half_open.is_some_and(HalfOpen::is_with_data)
    }

    /// Keeps count of the half-open.
    pub(super) fn count_half_open(&mut self, now: Time, index: u32) {
        let Some(connection) = self.table.at_mut(index) else { return };
        if connection.is_half_open() {
            return;
        }
        let Some(was) = connection.half_open.take() else { return };
        let reset = connection.closed == Some(CloseReason::Reset);
        let count = match was.is_with_data() {
            true => &mut self.counters.half_open_with_data,
            false => &mut self.counters.half_open_plain,
        };
        *count = count.saturating_sub(1);
        // RFC 7413 §5.1: the sender of a forged SYN can send its RST too, and would have its place again.
        if was == HalfOpen::WithData && reset {
            self.reset_with_data.push_back(now + self.config.reset_counted);
            self.counters.half_open_reset = self.reset_with_data.len();
        }
    }

    /// Keeps count of the orphans.
    pub(super) fn count_orphan(&mut self, index: u32) {
        let id = self.table.id(index);
        let Some((connection, id)) = self.table.at_mut(index).zip(id) else { return };
        match (connection.orphan, connection.is_orphan()) {
            (false, true) => {
                connection.orphan = true;
                self.counters.orphans += 1;
                self.orphans.push_back(id);
            }
            (true, false) => {
                connection.orphan = false;
                self.counters.orphans = self.counters.orphans.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// With too many orphans the oldest are reset.
    pub(super) fn limit_orphans(&mut self, now: Time) {
        while let Some(id) = self.orphans.front().copied() {
            let lives = self.table.get(id).is_some_and(|connection| connection.orphan);
            if lives && self.counters.orphans <= self.config.max_orphans {
                // The queue holds no more than twice the orphans.
                if self.orphans.len() > 2 * self.counters.orphans + 64 {
                    let table = &self.table;
                    self.orphans.retain(|id| table.get(*id).is_some_and(|it| it.orphan));
                }
                return;
            }
            self.orphans.pop_front();
            if lives {
                self.counters.orphans_ended += 1;
                self.abort(now, id);
            }
        }
    }

    /// Bytes that are left for all.
    pub(super) fn spare(&self) -> Memory {
        Memory { receive: self.receive_pool.spare(), send: self.send_pool.spare() }
    }

    /// Keeps count of what connections hold.
    pub(super) fn count_held(&mut self, index: u32) {
        let Some(connection) = self.table.at_mut(index) else { return };
        let held = connection.memory();
        let before = std::mem::replace(&mut connection.held, held);
        self.counters.receive_held = self.receive_pool.recount(before.receive, held.receive);
        self.counters.send_held = self.send_pool.recount(before.send, held.send);
    }

    /// A connection is about to be forgotten, and what it held with it.
    pub(super) fn uncount_held(&mut self, index: u32) {
        let Some(connection) = self.table.at_mut(index) else { return };
        let before = std::mem::take(&mut connection.held);
        self.counters.receive_held = self.receive_pool.recount(before.receive, 0);
        self.counters.send_held = self.send_pool.recount(before.send, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_comes_at_once_and_then_one_by_one() {
        let mut bucket = Bucket::new(100);
        let mut take = |millis| bucket.take(Time::from_millis(millis));
        assert_eq!((0..1000).filter(|_| take(5000)).count(), 100);
        assert!(!take(5009) && take(5010) && !take(5010));
        assert_eq!((0..1000).filter(|_| take(5510)).count(), 50);
        assert_eq!((0..1000).filter(|_| take(60_000)).count(), 100);
    }

    #[test]
    fn a_rate_of_nothing_admits_nothing() {
        assert!(!Bucket::new(0).take(Time::from_millis(60_000)));
    }
}
