//! What happened when, in stretches that widen when there are too many.

use std::collections::BTreeMap;
use std::time::Duration;

use units::Time;

use super::top::Add;

/// Stretches of time and what is counted in each.
#[derive(Debug, Clone)]
pub(crate) struct OverTime<V> {
    width: u64,
    limit: usize,
    stretches: BTreeMap<u64, V>,
}

impl<V: Add> OverTime<V> {
    pub(crate) fn new(width: Duration, limit: usize) -> Self {
        let width = u64::try_from(width.as_nanos()).unwrap_or(u64::MAX).max(1);
        OverTime { width, limit: limit.max(2), stretches: BTreeMap::new() }
    }

    pub(crate) fn at(&mut self, time: Time) -> &mut V {
        let nanos = time.as_nanos();
        while !self.stretches.contains_key(&(nanos / self.width))
            && self.stretches.len() >= self.limit
        {
            self.widen();
        }
        self.stretches.entry(nanos / self.width).or_default()
    }

    fn widen(&mut self) {
        // At the greatest width there is one stretch, and no need to widen it.
        self.width = self.width.saturating_mul(2);
        let width = self.width;
        let old = std::mem::take(&mut self.stretches);
        for (stretch, value) in old {
            // Half the width before: two stretches become one.
            let to = if width == u64::MAX { 0 } else { stretch / 2 };
            self.stretches.entry(to).or_default().add(&value);
        }
    }

    pub(crate) fn merge(&mut self, mut other: OverTime<V>) {
        // Both began with one width, so that one is the other doubled some times.
        while self.width < other.width {
            self.widen();
        }
        while other.width < self.width {
            other.widen();
        }
        for (stretch, value) in other.stretches {
            self.stretches.entry(stretch).or_default().add(&value);
        }
        while self.stretches.len() > self.limit {
            self.widen();
        }
    }

    pub(crate) fn width(&self) -> Duration {
        Duration::from_nanos(self.width)
    }

    /// When each stretch begins, and what was counted in it.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (Time, &V)> {
        let width = self.width;
        let begins = move |stretch: u64| Time::from_nanos(stretch.saturating_mul(width));
        self.stretches.iter().map(move |(stretch, value)| (begins(*stretch), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Sum(u64);
    impl Add for Sum {
        fn add(&mut self, other: &Self) {
            self.0 += other.0;
        }
    }

    #[test]
    fn too_many_stretches_become_wider_ones() {
        let mut over = OverTime::<Sum>::new(Duration::from_secs(1), 4);
        for second in 0..16 {
            over.at(Time::from_millis(second * 1000)).0 += 1;
        }
        assert_eq!(over.width(), Duration::from_secs(4));
        let counts: Vec<_> = over.stretches().map(|(at, sum)| (at.as_nanos(), sum.0)).collect();
        assert_eq!(counts.len(), 4);
        assert_eq!(counts[1], (4_000_000_000, 4));
        over.at(Time::from_nanos(u64::MAX)).0 += 1;
        let total: u64 = over.stretches().map(|(_, sum)| sum.0).sum();
        assert_eq!(total, 17);
        let mut fine = OverTime::<Sum>::new(Duration::from_secs(1), 4);
        fine.at(Time::ZERO).0 += 1;
        fine.merge(over);
        assert_eq!(fine.stretches().map(|(_, sum)| sum.0).sum::<u64>(), 18);
    }
}
