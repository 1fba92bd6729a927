//! A seeded generator of a mobile link's capacity, as a moving vehicle sees it: two-state fading, and
//! handovers during which nothing is sent.

use std::time::Duration;

use rand::Rng;
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Mcg;
use units::{CountedBytes, Delay, Rate};

use crate::config::MAX_DELAY;
use crate::error::ConfigError;
use crate::seed;
use crate::trace::Trace;

/// What the capacity of a mobile link is drawn from.
///
/// Fading is a Markov process with two states, as Gilbert's channel is (E. N. Gilbert, "Capacity of a
/// burst-noise channel", 1960), with a capacity in place of a loss: the time in a state is exponential. Apart
/// from that the vehicle changes cells: from the beginning of one handover to that of the next it takes half to
/// one and a half of [`Handover::every`], and the link is down for a time between
/// [`Handover::shortest`] and [`Handover::longest`], both uniform. Capacities count IP bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drive {
    /// The state with a clear signal.
    pub good: Level,
    /// The state with a faded one.
    pub poor: Level,
    /// Changes of cell.
    pub handover: Handover,
    /// How long it is until it repeats, in whole milliseconds.
    pub length: Delay,
}

/// A state of the fading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Capacity to the vehicle.
    pub down: Rate,
    /// Capacity from the vehicle.
    pub up: Rate,
    /// Mean time in this state.
    pub stay: Delay,
}

/// Changes of cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// Mean time from one's beginning to the next one's.
    pub every: Delay,
    /// The shortest outage.
    pub shortest: Delay,
    /// The longest outage.
    pub longest: Delay,
}

/// What the link is like for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// As [`Drive::good`] says.
    Good,
    /// As [`Drive::poor`] says.
    Poor,
    /// A handover: nothing is sent.
    Down,
}

/// A while in one state. Times are since the drive's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// When it begins, from the drive's start.
    pub from: Duration,
    /// When it ends, from the drive's start.
    pub until: Duration,
    /// What the link is like meanwhile.
    pub state: State,
}

/// A drive's capacity: both traces are equally long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// To the vehicle.
    pub down: Trace,
    /// From the vehicle.
    pub up: Trace,
}

/// The shortest time in a state, in milliseconds; a trace knows no less.
const LEAST_STAY: u64 = 1;
/// Bits times milliseconds per second of one opportunity.
const OPPORTUNITY: u64 = Trace::OPPORTUNITY * 8 * 1000;

impl Drive {
    /// A city bus on WiBro (IEEE 802.16e), ten minutes long. Published:
    ///
    /// - Poor: 512 kbit/s down and 128 kbit/s up, what Korea's Ministry of Information and Communication
    ///   required at a cell's boundary at 60 km/h (licence criteria of July 2004).
    /// - Good: 3 Mbit/s down, the upper end of the 1 to 3 Mbit/s that users were to get at first (S. Cherry,
    ///   "South Korea pushes mobile broadband", IEEE Spectrum, September 2005).
    /// - Shadowing is the same over about 50 m (ITU-R M.2135, urban macro cells without line of sight), and
    ///   traffic in Seoul moves at 26.4 km/h (the city's figure for 2013): the process forgets its state, to
    ///   1/e, within 6.8 s, which is half of the mean stay where both states have the same one.
    /// - The shortest outage, 50 ms, is what WiMAX Forum's "Mobile WiMAX – Part I" (2006) gives for an
    ///   optimised handover.
    ///
    /// Our choice: that good and poor states are as frequent, 1 Mbit/s up in the good one, a handover
    /// each minute (cells of about 440 m), outages up to 3 s, since a handover that is not optimised enters the
    /// network anew.
    #[must_use]
    pub fn wibro_bus() -> Drive {
        let stay = Duration::from_millis(13_600).into();
        Drive {
            good: Level { down: ip_kbit(3000), up: ip_kbit(1000), stay },
            poor: Level { down: ip_kbit(512), up: ip_kbit(128), stay },
            handover: Handover {
                every: Duration::from_secs(60).into(),
                shortest: Duration::from_millis(50).into(),
                longest: Duration::from_secs(3).into(),
            },
            length: Duration::from_secs(600).into(),
        }
    }

    /// Whether a drive can be made of it.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Drive { good, poor, handover, length } = self;
        let whole = length.duration().as_nanos().is_multiple_of(1_000_000);
        if !whole || length.duration().is_zero() || length.duration() > MAX_DELAY {
            let works = "give whole milliseconds, 1ms to 60min";
            return Err(ConfigError::new("length", format!("is {length}"), works));
        }
        for (name, level) in [("good", good), ("poor", poor)] {
            level.validate(*length).map_err(|error| error.inside(name))?;
        }
        handover.validate().map_err(|error| error.inside("handover"))
    }

    /// What the link is like from beginning to end: no gap, no two neighbours in one state. Handovers come
    /// the same whatever the fading is, and the other way round.
    ///
    /// # Errors
    /// As for [`Drive::validate`].
    pub fn stretches(&self, seed: u64) -> Result<Vec<Stretch>, ConfigError> {
        self.validate()?;
        let length = millis(self.length);
        let fading = self.fading(&mut seed::rng(seed, 1), length);
        let outages = self.handover.outages(&mut seed::rng(seed, 2), length);
        let mut cuts: Vec<u64> = fading.iter().map(|(from, _)| *from).collect();
        cuts.extend(outages.iter().flat_map(|(from, until)| [*from, *until]));
        cuts.retain(|cut| *cut < length);
        cuts.sort_unstable();
        cuts.dedup();
        let mut stretches: Vec<Stretch> = Vec::with_capacity(cuts.len());
        for (at, from) in cuts.iter().copied().enumerate() {
            let until = Duration::from_millis(cuts.get(at + 1).copied().unwrap_or(length));
            let state = match last_begun(&outages, from) {
                Some((_, end)) if from < end => State::Down,
                _ => last_begun(&fading, from).map_or(State::Good, |(_, state)| state),
            };
            match stretches.last_mut() {
                Some(last) if last.state == state => last.until = until,
                _ => stretches.push(Stretch { from: Duration::from_millis(from), until, state }),
            }
        }
        Ok(stretches)
    }

    /// The capacity each way. Each trace ends with the drive, where it has an opportunity whatever the
    /// state, so that both repeat together.
    ///
    /// # Errors
    /// As for [`Drive::validate`].
    pub fn capacity(&self, seed: u64) -> Result<Capacity, ConfigError> {
        let stretches = self.stretches(seed)?;
        let trace = |rate: fn(&Level) -> Rate| {
            let of = |state| match state {
                State::Good => rate(&self.good).bits_per_second(),
                State::Poor => rate(&self.poor).bits_per_second(),
                State::Down => 0,
            };
            let times = opportunities(&stretches, of, millis(self.length));
            let works = "give a lower rate or a shorter drive";
            Trace::from_millis(times)
                .map_err(|error| ConfigError::new("length", format!("is wrong: {error}"), works))
        };
        Ok(Capacity { down: trace(|level| level.down)?, up: trace(|level| level.up)? })
    }

    /// The mean capacity each way that the parameters come to, down first, in bit/s: what long drives
    /// come near to.
    #[must_use]
    pub fn mean(&self) -> (f64, f64) {
        let (good, poor) = (seconds(self.good.stay), seconds(self.poor.stay));
        let up = 1.0 - self.handover.mean() / seconds(self.handover.every);
        let of = |rate: fn(&Level) -> Rate| {
            let (clear, faded) = (rate(&self.good), rate(&self.poor));
            let sum = clear.bits_per_second() as f64 * good + faded.bits_per_second() as f64 * poor;
            sum / (good + poor) * up
        };
        (of(|level| level.down), of(|level| level.up))
    }

    /// The states of the fading in turn, with their beginnings. It begins as likely in a state as it is in
    /// it at any time.
    fn fading(&self, rng: &mut Pcg64Mcg, length: u64) -> Vec<(u64, State)> {
        let (good, poor) = (seconds(self.good.stay), seconds(self.poor.stay));
        let mut state =
            if rng.random::<f64>() < good / (good + poor) { State::Good } else { State::Poor };
        let (mut states, mut at) = (Vec::new(), 0);
        while at < length {
            states.push((at, state));
            let (stay, next) = match state {
                State::Good => (self.good.stay, State::Poor),
                State::Poor | State::Down => (self.poor.stay, State::Good),
            };
            let draw: f64 = Exp1.sample(rng);
            // Saturates where it is beyond any drive.
            at += ((draw * seconds(stay) * 1e3).round() as u64).clamp(LEAST_STAY, length);
            state = next;
        }
        states
    }
}

impl Level {
    fn validate(&self, length: Delay) -> Result<(), ConfigError> {
        if self.stay.duration() < Duration::from_millis(10) || self.stay.duration() > MAX_DELAY {
            let works = "give 10ms to 60min";
            return Err(ConfigError::new("stay", format!("is {}", self.stay), works));
        }
        for (name, rate) in [("down", self.down), ("up", self.up)] {
            if rate.counted() != CountedBytes::Ip {
                let works = "let it count IP bytes, as in 3mbit/ip";
                return Err(ConfigError::new(name, format!("is {rate}"), works));
            }
            let most = Trace::MAX_LEN as f64 * (Trace::OPPORTUNITY * 8) as f64 / seconds(length);
            if rate.bits_per_second() as f64 >= most {
                let works = "give a lower rate or a shorter drive: 10000000 packets at most";
                return Err(ConfigError::new(name, format!("is {rate}"), works));
            }
        }
        Ok(())
    }
}

impl Handover {
    fn validate(&self) -> Result<(), ConfigError> {
        let Handover { every, shortest, longest } = self;
        if every.duration() < Duration::from_millis(10) || every.duration() > MAX_DELAY {
            return Err(ConfigError::new("every", format!("is {every}"), "give 10ms to 60min"));
        }
        if longest < shortest || longest.duration() * 2 >= every.duration() {
            let problem = format!("is {longest} with {shortest} at least and one per {every}");
            let works = "give more than the shortest and less than half of `every`";
            return Err(ConfigError::new("longest", problem, works));
        }
        Ok(())
    }

    /// The mean outage in seconds.
    fn mean(&self) -> f64 {
        f64::midpoint(seconds(self.shortest), seconds(self.longest))
    }

    /// When the link goes down and when it is up again, in milliseconds.
    fn outages(&self, rng: &mut Pcg64Mcg, length: u64) -> Vec<(u64, u64)> {
        let (every, mut outages) = (millis(self.every), Vec::new());
        // The vehicle may be anywhere in its first cell.
        let mut at = rng.random_range(0..every.max(1));
        while at < length {
            let down = rng.random_range(millis(self.shortest)..=millis(self.longest));
            if down > 0 {
                outages.push((at, at + down));
            }
            at += rng.random_range(every - every / 2..=every + every / 2).max(1);
        }
        outages
    }
}

/// The last of these that began by `at`.
fn last_begun<T: Copy>(all: &[(u64, T)], at: u64) -> Option<(u64, T)> {
    let begun = all.partition_point(|(from, _)| *from <= at);
    all.get(begun.checked_sub(1)?).copied()
}

/// When a packet's worth of capacity has come together, each time; and the end.
fn opportunities(stretches: &[Stretch], rate: impl Fn(State) -> u64, end: u64) -> Vec<u64> {
    let (mut times, mut credit) = (Vec::new(), 0u64);
    for stretch in stretches {
        let bits = rate(stretch.state);
        for at in stretch.from.as_millis() as u64 + 1..=stretch.until.as_millis() as u64 {
            credit += bits;
            while credit >= OPPORTUNITY {
                credit -= OPPORTUNITY;
                times.push(at);
            }
        }
    }
    if times.last() != Some(&end) {
        times.push(end);
    }
    times
}

const fn ip_kbit(kbit: u64) -> Rate {
    match Rate::new(kbit * 1000, CountedBytes::Ip) {
        Some(rate) => rate,
        None => unreachable!(),
    }
}

fn millis(delay: Delay) -> u64 {
    delay.duration().as_millis() as u64
}

fn seconds(delay: Delay) -> f64 {
    delay.duration().as_secs_f64()
}
