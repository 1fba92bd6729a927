//! When to sleep, when to spin, when to rest: decisions without a clock.
//!
//! A blocked thread wakes some tens of microseconds after its timer. So the pump sets its timer
//! early by a margin and spins for the rest. Three limits keep that harmless: a spin is no longer
//! than [`MAX_MARGIN`]; spinning takes less than half of any 100 ms ([`SpinBudget`]); and a
//! real-time thread that is busy without pause gives 6 % of the time to others of its own accord
//! ([`Rest`]), before the kernel's throttle (95 %, sched(7)) stops it for 50 ms.

use std::time::Duration;

use units::Time;

/// The longest spin.
pub(crate) const MAX_MARGIN: Duration = Duration::from_micros(200);
/// Below this a spin does not make up for a late timer.
const MIN_MARGIN: Duration = Duration::from_micros(20);

/// How long after a frame a spinning pump looks for the next one before it sleeps: about what
/// waking it up costs its sender.
const LINGER: Duration = Duration::from_micros(20);

/// What to do until something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Something is due: go on.
    No,
    /// Look at clock and rings until this time.
    Spin {
        /// The due time.
        until: Time,
    },
    /// Wait for frames, at most until this time.
    Sleep {
        /// The time of the timer; none if nothing is under way.
        until: Option<Time>,
    },
    /// Give others the processor, whatever waits.
    Rest(Duration),
}

/// Decides how to wait.
#[derive(Debug)]
pub(crate) struct Pacer {
    spins: bool,
    margin: Margin,
    budget: SpinBudget,
    rest: Option<Rest>,
    last_frame: Time,
}

impl Pacer {
    /// `spins`: whether it may spin at all; `realtime`: whether it must leave room for others.
    pub(crate) fn new(spins: bool, realtime: bool, now: Time) -> Self {
        Pacer {
            spins,
            margin: Margin::default(),
            budget: SpinBudget::new(now),
            rest: realtime.then(|| Rest::new(now)),
            last_frame: Time::ZERO,
        }
    }

    /// What to do at `now` if the next frame is due at `next_due`.
    pub(crate) fn plan(&mut self, now: Time, next_due: Option<Time>) -> Wait {
        if let Some(pause) = self.rest.as_mut().and_then(|rest| rest.wanted(now)) {
            return Wait::Rest(pause);
        }
        let wait = self.wait_for(now, next_due);
        let linger = self.last_frame + LINGER;
        if matches!(wait, Wait::Sleep { .. }) && now < linger && self.may_linger(now) {
            return Wait::Spin { until: next_due.map_or(linger, |due| due.min(linger)) };
        }
        wait
    }

    fn wait_for(&mut self, now: Time, next_due: Option<Time>) -> Wait {
        let Some(due) = next_due else {
            return Wait::Sleep { until: None };
        };
        let ahead = due.saturating_since(now);
        if ahead.is_zero() {
            return Wait::No;
        }
        let margin = self.margin.now().min(self.budget.available(now));
        if !self.spins || margin < MIN_MARGIN {
            return Wait::Sleep { until: Some(due) };
        }
        if ahead <= margin {
            Wait::Spin { until: due }
        } else {
            Wait::Sleep { until: Some(due - margin) }
        }
    }

    /// Lingering leaves half of the budget to due times.
    fn may_linger(&mut self, now: Time) -> bool {
        self.spins && self.budget.available(now) > SpinBudget::CAPACITY / 2
    }

    /// Tells that a frame came in.
    pub(crate) fn frame_came(&mut self, now: Time) {
        self.last_frame = now;
    }

    /// Tells that the thread spun.
    pub(crate) fn spun(&mut self, from: Time, to: Time) {
        self.budget.charge(to, to.saturating_since(from));
    }

    /// Tells that the thread slept, and if a timer woke it, for when that was set.
    pub(crate) fn slept(&mut self, from: Time, to: Time, timer: Option<Time>) {
        if let Some(timer) = timer.filter(|timer| *timer <= to) {
            self.margin.learn(to.saturating_since(timer));
        }
        if let Some(rest) = &mut self.rest {
            rest.slept(to.saturating_since(from));
        }
    }
}

/// How early the timer is set: a little more than timers have been late of late.
#[derive(Debug)]
struct Margin {
    /// Largest lateness seen, fading by 1/64 with every wake-up.
    peak: Duration,
}

impl Default for Margin {
    fn default() -> Self {
        Margin { peak: MAX_MARGIN }
    }
}

impl Margin {
    fn learn(&mut self, late: Duration) {
        self.peak = late.min(MAX_MARGIN).max(self.peak - self.peak / 64);
    }

    fn now(&self) -> Duration {
        (self.peak + self.peak / 4 + Duration::from_micros(5)).clamp(MIN_MARGIN, MAX_MARGIN)
    }
}

/// A token bucket of time to spin: 4 ms, refilled with 45 % of the time that passes, so no
/// 100 ms see more than 49 ms of spinning.
#[derive(Debug)]
struct SpinBudget {
    tokens: Duration,
    at: Time,
}

impl SpinBudget {
    const CAPACITY: Duration = Duration::from_millis(4);

    fn new(now: Time) -> Self {
        SpinBudget { tokens: Self::CAPACITY, at: now }
    }

    fn available(&mut self, now: Time) -> Duration {
        let passed = now.saturating_since(self.at).min(Self::CAPACITY * 3);
        self.tokens = (self.tokens + passed * 45 / 100).min(Self::CAPACITY);
        self.at = self.at.max(now);
        self.tokens
    }

    fn charge(&mut self, now: Time, spun: Duration) {
        let available = self.available(now);
        self.tokens = available.saturating_sub(spun);
    }
}

/// Makes a busy real-time thread leave 6 % of the time to others: 0.6 ms in every 10 ms.
#[derive(Debug)]
pub(crate) struct Rest {
    window: Time,
    slept: Duration,
}

impl Rest {
    const WINDOW: Duration = Duration::from_millis(10);
    const SHARE: Duration = Duration::from_micros(600);
    /// A wait shorter than this found something ready at once and gave nobody the processor.
    const SHORTEST: Duration = Duration::from_micros(20);

    pub(crate) fn new(now: Time) -> Self {
        Rest { window: now, slept: Duration::ZERO }
    }

    fn slept(&mut self, time: Duration) {
        if time >= Self::SHORTEST {
            self.slept += time;
        }
    }

    pub(crate) fn wanted(&mut self, now: Time) -> Option<Duration> {
        if now.saturating_since(self.window) < Self::WINDOW - Self::SHARE {
            return None;
        }
        let missing = Self::SHARE.saturating_sub(self.slept);
        *self = Rest::new(now + missing);
        (!missing.is_zero()).then_some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn blocks_until_the_due_time_where_it_must_not_spin() {
        let now = Time::from_millis(5);
        let mut pacer = Pacer::new(false, false, now);
        assert_eq!(pacer.plan(now, None), Wait::Sleep { until: None });
        assert_eq!(pacer.plan(now, Some(now)), Wait::No);
        assert_eq!(pacer.plan(now, Some(now - us(1))), Wait::No);
        for ahead in [us(1), us(100), us(10_000)] {
            let due = now + ahead;
            assert_eq!(pacer.plan(now, Some(due)), Wait::Sleep { until: Some(due) });
        }
    }

    #[test]
    fn sleeps_to_the_margin_and_spins_the_rest() {
        let now = Time::from_millis(5);
        let mut pacer = Pacer::new(true, false, now);
        let due = now + us(10_000);
        assert_eq!(pacer.plan(now, Some(due)), Wait::Sleep { until: Some(due - MAX_MARGIN) });
        let woken = due - us(170);
        pacer.slept(now, woken, Some(due - MAX_MARGIN));
        assert_eq!(pacer.plan(woken, Some(due)), Wait::Spin { until: due });
    }

    #[test]
    fn lingers_for_the_next_frame_if_it_may_spin() {
        let now = Time::from_millis(5);
        for (spins, first) in
            [(true, Wait::Spin { until: now + LINGER }), (false, Wait::Sleep { until: None })]
        {
            let mut pacer = Pacer::new(spins, false, now);
            pacer.frame_came(now);
            assert_eq!(pacer.plan(now, None), first);
            assert_eq!(pacer.plan(now + LINGER, None), Wait::Sleep { until: None });
        }
    }

    #[test]
    fn the_margin_follows_how_late_timers_are() {
        let mut margin = Margin::default();
        assert_eq!(margin.now(), MAX_MARGIN);
        for _ in 0..1000 {
            margin.learn(us(24));
        }
        assert_eq!(margin.now(), us(24) + us(6) + us(5));
        margin.learn(us(5_000));
        assert_eq!(margin.now(), MAX_MARGIN);
    }

    #[test]
    fn a_busy_real_time_thread_rests_six_percent_of_the_time() {
        let mut now = Time::from_millis(1);
        let mut pacer = Pacer::new(true, true, now);
        let (mut rested, end) = (Duration::ZERO, now + Duration::from_secs(1));
        while now < end {
            match pacer.plan(now, Some(now)) {
                Wait::No => now += us(64),
                Wait::Rest(pause) => {
                    rested += pause;
                    now += pause;
                }
                wait => panic!("{wait:?} although a frame is due"),
            }
        }
        assert!(rested >= us(57_000) && rested <= us(63_000), "{rested:?}");
    }

    #[test]
    fn an_idle_real_time_thread_is_not_told_to_rest() {
        let mut now = Time::from_millis(1);
        let mut pacer = Pacer::new(true, true, now);
        for _ in 0..1000 {
            assert_eq!(pacer.plan(now, Some(now)), Wait::No);
            pacer.slept(now, now + us(900), None);
            now += us(1_000);
        }
    }

    proptest! {
        /// Frames due at any spacing, timers late by any time: no 100 ms see 50 ms of spinning,
        /// no spin is longer than the margin, and none ends after its due time.
        #[test]
        fn spinning_is_bounded(
            gaps in proptest::collection::vec(1u64..3_000, 200..1500),
            lates in proptest::collection::vec(0u64..300, 16),
        ) {
            let start = Time::from_millis(1);
            let (mut now, mut due) = (start, start);
            let mut pacer = Pacer::new(true, false, now);
            let mut spins: Vec<(Time, Time)> = Vec::new();
            for (turn, gap) in gaps.iter().enumerate() {
                due += us(*gap);
                pacer.frame_came(now);
                loop {
                    match pacer.plan(now, Some(due)) {
                        Wait::No => break,
                        Wait::Spin { until } => {
                            prop_assert!(until > now && until <= due);
                            prop_assert!(until.saturating_since(now) <= MAX_MARGIN);
                            pacer.spun(now, until);
                            spins.push((now, until));
                            now = until;
                        }
                        Wait::Sleep { until } => {
                            let timer = until.unwrap();
                            prop_assert!(timer > now && timer <= due);
                            let woken = timer + us(lates[turn % lates.len()]);
                            pacer.slept(now, woken, until);
                            now = woken;
                        }
                        Wait::Rest(_) => prop_assert!(false, "not a real-time thread"),
                    }
                }
            }
            for (first, (from, _)) in spins.iter().enumerate() {
                let end = *from + Duration::from_millis(100);
                let spun: Duration = spins[first..]
                    .iter()
                    .take_while(|(start, _)| *start < end)
                    .map(|(start, stop)| (*stop).min(end).saturating_since(*start))
                    .sum();
                prop_assert!(spun < Duration::from_millis(50), "{spun:?}");
            }
        }
    }
}
