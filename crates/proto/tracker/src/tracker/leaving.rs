//! How connections leave: over, silent, dropped for room, or at the capture's end.

use std::time::Duration;

use units::Time;

use super::{Limits, Tracker};
use crate::flow::{Flow, Leave};
use crate::record::{Connection, Output};
use crate::table::Activity;

/// How often connections are looked through for silent ones, in the capture's time.
pub(crate) const EXPIRY_PERIOD: Duration = Duration::from_millis(1);

impl Tracker {
    /// What is to be given out: records, and with [`crate::HandOut::AfterHandshake`] endings too. The
    /// ending of a connection comes after its record.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// A connection that has ended, fallen silent or been dropped, or with
    /// [`crate::HandOut::AfterHandshake`] one of which all is told; endings are passed over.
    pub fn poll_connection(&mut self) -> Option<Connection> {
        loop {
            if let Output::Connection(connection) = self.ready.pop_front()? {
                return Some(*connection);
            }
        }
    }

    /// All connections not polled yet, in the order of their first frames, those still open too.
    /// Endings are passed over.
    #[must_use]
    pub fn finish(mut self) -> Vec<Connection> {
        self.close();
        let mut all: Vec<Connection> = Vec::new();
        while let Some(connection) = self.poll_connection() {
            all.push(connection);
        }
        all.sort_by_key(|connection| connection.first_frame);
        all
    }

    /// Gives out all connections, as if the capture ended here: poll them. Fragments that wait are
    /// dropped and counted. Connections come in the order in which they began.
    pub fn close(&mut self) {
        let before = self.ready.len();
        for list in [Activity::Closed, Activity::Reported, Activity::Open] {
            while let Some(oldest) = self.table.oldest(list) {
                self.give_out(oldest, Leave::CaptureEnded);
            }
        }
        let number = |output: &Output| match output {
            Output::Connection(connection) => connection.number,
            Output::Ending(ending) => ending.number,
        };
        if let Some(added) = self.ready.make_contiguous().get_mut(before..) {
            added.sort_by_key(number);
        }
        self.fragments.finish();
        self.count_fragments();
    }

    /// Drops the connection in these lists that was silent for longest. False if there is none.
    pub(super) fn drop_one(&mut self, lists: &[Activity]) -> bool {
        let mut best: Option<(Time, u32)> = None;
        for list in lists {
            let Some(place) = self.table.stalest(*list) else { continue };
            let Some(last) = self.table.get(place).map(|flow| flow.last_frame) else { continue };
            if best.is_none_or(|(earliest, _)| last < earliest) {
                best = Some((last, place));
            }
        }
        let Some((_, stalest)) = best else { return false };
        self.counters.dropped += 1;
        self.give_out(stalest, Leave::Dropped);
        true
    }

    /// Gives out what has been silent for long enough: looked at once a millisecond of the
    /// capture's time.
    pub(super) fn expire(&mut self) {
        if self.now < self.next_expiry {
            return;
        }
        self.next_expiry = self.now + EXPIRY_PERIOD;
        self.expire_now();
    }

    pub(super) fn expire_now(&mut self) {
        let Limits { linger, idle, .. } = self.limits;
        for (list, silence) in
            [(Activity::Closed, linger), (Activity::Reported, idle), (Activity::Open, idle)]
        {
            while let Some(oldest) = self.table.oldest(list) {
                let now = self.now;
                let due = |flow: &mut Flow| now.saturating_since(flow.last_frame) > silence;
                if !self.table.get(oldest).is_some_and(due) {
                    break;
                }
                self.give_out(oldest, Leave::Over);
            }
        }
        if self.fragments.waiting() > 0 {
            self.fragments.expire(self.now);
            self.count_fragments();
        }
    }

    pub(super) fn give_out(&mut self, place: u32, why: Leave) {
        let Some(flow) = self.table.remove(place) else { return };
        self.held = self.held.saturating_sub(flow.held_bytes());
        self.ready.push_back(flow.leave(why, &self.key_log));
    }
}
