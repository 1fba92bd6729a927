//! CoDel's state and control law (RFC 8289).

use std::time::Duration;

use units::Time;

use crate::config::Codel;

/// CoDel's state (RFC 8289 §5.2).
#[derive(Debug, Clone, Default)]
pub(crate) struct CodelState {
    /// When the sojourn time will have been above the target for an interval.
    first_above: Option<Time>,
    /// When to drop next.
    drop_next: Time,
    /// Frames dropped since the dropping state was entered.
    count: u64,
    /// `count` when that state was entered.
    last_count: u64,
    dropping: bool,
    /// Longest frame seen: what RFC 8289 calls MAXPACKET.
    max_packet: usize,
}

/// The queue as CoDel sees it.
pub(crate) trait Head {
    type Item;
    /// Takes the first frame: the frame, since when it waits, its length, and the bytes left in
    /// the queue.
    fn take(&mut self) -> Option<(Self::Item, Time, usize, usize)>;
    /// Drops a frame that was taken.
    fn drop_taken(&mut self, item: Self::Item);
}

impl CodelState {
    /// The queue was found empty: this ends the dropping state.
    pub(crate) fn found_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// Takes the next frame to send, dropping those before it that have waited too long
    /// (RFC 8289 §5.5, `dequeue`).
    pub(crate) fn dequeue<H: Head>(
        &mut self,
        codel: &Codel,
        now: Time,
        queue: &mut H,
    ) -> Option<H::Item> {
        let interval = codel.interval.duration();
        let (mut item, mut ok_to_drop) = self.take(codel, now, queue)?;
        if self.dropping {
            // The sojourn time is below the target: leave the dropping state.
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                queue.drop_taken(item);
                self.count += 1;
                (item, ok_to_drop) = self.take(codel, now, queue)?;
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            queue.drop_taken(item);
            self.enter(now, interval);
            (item, _) = self.take(codel, now, queue)?;
        }
        Some(item)
    }

    /// Enters the dropping state. If it was left not long ago, the drop rate that controlled the
    /// queue then is the best guess for now.
    fn enter(&mut self, now: Time, interval: Duration) {
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_since(self.drop_next) < interval * 16;
        self.dropping = true;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, interval, self.count);
        self.last_count = self.count;
    }

    /// Takes a frame and says whether it has been above the target for an interval (RFC 8289
    /// §5.6, `dodequeue`).
    fn take<H: Head>(
        &mut self,
        codel: &Codel,
        now: Time,
        queue: &mut H,
    ) -> Option<(H::Item, bool)> {
        let Some((item, since, len, left)) = queue.take() else {
            self.found_empty();
            return None;
        };
        self.max_packet = self.max_packet.max(len);
        let sojourn = now.saturating_since(since);
        if sojourn < codel.target.duration() || left <= self.max_packet {
            self.first_above = None;
            return Some((item, false));
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + codel.interval.duration());
                Some((item, false))
            }
            Some(first_above) => Some((item, now >= first_above)),
        }
    }
}

/// When to drop next: an interval over the square root of the drops so far (RFC 8289 §5.6).
fn control_law(from: Time, interval: Duration, count: u64) -> Time {
    from + Duration::from_nanos((interval.as_nanos() as f64 / (count as f64).sqrt()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that always holds `backlog` bytes of frames which have waited `sojourn`.
    struct Standing {
        now: Time,
        sojourn: Duration,
        backlog: usize,
        drops: usize,
    }

    impl Head for Standing {
        type Item = ();

        fn take(&mut self) -> Option<((), Time, usize, usize)> {
            Some(((), self.now - self.sojourn, 1000, self.backlog))
        }

        fn drop_taken(&mut self, (): ()) {
            self.drops += 1;
        }
    }

    struct Rig {
        codel: Codel,
        state: CodelState,
    }

    impl Rig {
        fn new() -> Self {
            Rig { codel: Codel::default(), state: CodelState::default() }
        }

        /// Takes a frame every millisecond in `millis`; the times at which frames were dropped.
        fn run(&mut self, millis: std::ops::Range<u64>, sojourn: u64, backlog: usize) -> Vec<u64> {
            let mut dropped_at = Vec::new();
            for at in millis {
                let (now, sojourn) = (Time::from_millis(at), Duration::from_millis(sojourn));
                let mut queue = Standing { now, sojourn, backlog, drops: 0 };
                assert_eq!(self.state.dequeue(&self.codel, now, &mut queue), Some(()));
                dropped_at.extend(std::iter::repeat_n(at, queue.drops));
            }
            dropped_at
        }
    }

    #[test]
    fn drops_after_an_interval_and_then_by_the_square_root() {
        // RFC 8289 §5.6: 1000 + 100, then + 100/sqrt(1) = 1200, + 100/sqrt(2) = 1270.7,
        // + 100/sqrt(3) = 1328.4, ...
        let dropped = Rig::new().run(1000..1500, 20, 50_000);
        assert_eq!(dropped, [1100, 1200, 1271, 1329, 1379, 1424, 1464]);
    }

    #[test]
    fn a_queue_below_the_target_or_of_one_packet_is_left_alone() {
        assert_eq!(Rig::new().run(0..1000, 4, 50_000), []);
        assert_eq!(Rig::new().run(0..1000, 20, 1000), []);
    }

    #[test]
    fn one_good_frame_starts_the_interval_anew() {
        let mut rig = Rig::new();
        assert_eq!(rig.run(1000..1099, 20, 50_000), []);
        assert_eq!(rig.run(1099..1100, 4, 50_000), []);
        assert_eq!(rig.run(1100..1201, 20, 50_000), [1200]);
    }

    #[test]
    fn soon_after_the_dropping_state_it_goes_on_at_the_old_rate() {
        let mut rig = Rig::new();
        // Drops 1 to 5 at 1100 to 1379; then the queue is good for a moment.
        assert_eq!(rig.run(1000..1400, 20, 50_000).len(), 5);
        assert_eq!(rig.run(1400..1401, 0, 50_000), []);
        // Five drops less the one of the entry before: count is 4, 100/sqrt(4) = 50 ms.
        let dropped = rig.run(1401..1600, 20, 50_000);
        assert_eq!(dropped, [1501, 1551, 1596]);
    }

    #[test]
    fn long_after_the_dropping_state_it_begins_at_the_slow_rate() {
        let mut rig = Rig::new();
        assert_eq!(rig.run(1000..1400, 20, 50_000).len(), 5);
        // drop_next is 1424; 16 intervals later it is forgotten.
        assert_eq!(rig.run(1400..3100, 0, 50_000), []);
        assert_eq!(rig.run(3100..3301, 20, 50_000), [3200, 3300]);
    }

    #[test]
    fn an_empty_queue_ends_the_dropping_state() {
        let mut rig = Rig::new();
        assert_eq!(rig.run(1000..1201, 20, 50_000), [1100, 1200]);
        rig.state.found_empty();
        assert_eq!(rig.run(1201..1301, 20, 50_000), []);
    }
}
