//! How long a client thinks between two connections.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fault::{Explain, Fault};
use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use thiserror::Error;
use units::Delay;

/// The word for none.
const NONE: &str = "none";
/// The longest typical pause.
const LONGEST: Duration = Duration::from_secs(10);
/// No pause is longer than so many typical ones.
const MOST: f64 = 10.0;
/// Deviation of the logarithm.
const SIGMA: f64 = 1.0;

units::named! {
    /// How pauses are distributed.
    pub enum Law: "distribution of pauses" {
        /// Each has this length.
        Constant = "constant",
        /// Exponentially, with this mean: a client that comes at random.
        Exponential = "exponential",
        /// Log-normally, with this median, the logarithm's deviation being 1: people.
        LogNormal = "lognormal",
    }
}

/// The time that a client lets pass between two of its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pause {
    /// Each connection is a client of its own.
    #[default]
    None,
    /// Drawn for each connection.
    Drawn {
        /// How pauses are distributed.
        law: Law,
        /// Its constant, mean or median.
        typical: Delay,
    },
}

impl Pause {
    /// Draws one, to the microsecond; at most ten typical ones.
    pub(super) fn draw(self, rng: &mut impl Rng) -> Duration {
        let Pause::Drawn { law, typical } = self else { return Duration::ZERO };
        let factor: f64 = match law {
            Law::Constant => 1.0,
            Law::Exponential => Exp1.sample(rng),
            Law::LogNormal => {
                let normal: f64 = StandardNormal.sample(rng);
                (SIGMA * normal).exp()
            }
        };
        let micros = typical.duration().as_secs_f64() * 1e6 * factor.min(MOST);
        Duration::from_micros(micros.round() as u64)
    }

    /// Its constant, mean or median.
    pub(super) fn typical(self) -> Duration {
        match self {
            Pause::None => Duration::ZERO,
            Pause::Drawn { typical, .. } => typical.duration(),
        }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pause::None => f.pad(NONE),
            Pause::Drawn { law, typical } => write!(f, "{law}:{typical}"),
        }
    }
}

/// A text that is no pause. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoPause(String);

impl Explain for NoPause {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write none, or a distribution and a time, as exponential:200ms".into())
    }
}

impl FromStr for Pause {
    type Err = NoPause;

    fn from_str(text: &str) -> Result<Pause, NoPause> {
        if text.eq_ignore_ascii_case(NONE) {
            return Ok(Pause::None);
        }
        let no_time = || NoPause("expected a distribution, a colon and a time".to_owned());
        let (law, typical) = text.split_once(':').ok_or_else(no_time)?;
        let law: Law =
            law.trim().parse().map_err(|e: units::UnknownName| NoPause(e.to_string()))?;
        let typical: Delay =
            typical.trim().parse().map_err(|e: units::ParseError| NoPause(e.to_string()))?;
        if !(Duration::from_millis(1)..=LONGEST).contains(&typical.duration()) {
            return Err(NoPause("a pause is 1 ms to 10 s long".to_owned()));
        }
        Ok(Pause::Drawn { law, typical })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn draws(text: &str, seed: u64, count: usize) -> Vec<Duration> {
        let pause: Pause = text.parse().unwrap();
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        (0..count).map(|_| pause.draw(&mut rng)).collect()
    }

    fn mean_and_median(mut draws: Vec<Duration>) -> (f64, f64) {
        draws.sort_unstable();
        let mean = draws.iter().sum::<Duration>().as_secs_f64() / draws.len() as f64;
        (mean * 1e3, draws[draws.len() / 2].as_secs_f64() * 1e3)
    }

    #[test]
    fn each_law_has_its_own_middle() {
        assert_eq!(draws("constant:200ms", 1, 3), [Duration::from_millis(200); 3]);
        let (mean, median) = mean_and_median(draws("exponential:200ms", 1, 20_000));
        assert!((mean - 200.0).abs() < 5.0, "{mean}");
        assert!((median - 200.0 * std::f64::consts::LN_2).abs() < 5.0, "{median}");
        let (mean, median) = mean_and_median(draws("lognormal:200ms", 1, 20_000));
        assert!((median - 200.0).abs() < 6.0, "{median}");
        // A log-normal's mean is its median times e^(1/2), somewhat less for the cut.
        assert!((280.0..330.0).contains(&mean), "{mean}");
        let longest = draws("lognormal:200ms", 1, 20_000).into_iter().max().unwrap();
        assert_eq!(longest, Duration::from_secs(2));
        assert!(draws("none", 1, 3).iter().all(Duration::is_zero));
    }

    #[test]
    fn a_seed_gives_the_same_pauses() {
        for law in ["exponential:100ms", "lognormal:100ms"] {
            assert_eq!(draws(law, 7, 50), draws(law, 7, 50));
            assert_ne!(draws(law, 7, 50), draws(law, 8, 50));
        }
    }

    #[test]
    fn pauses_are_written_as_they_are_read() {
        for text in ["none", "constant:200ms", "exponential:1.5s", "lognormal:10ms"] {
            assert_eq!(text.parse::<Pause>().unwrap().to_string(), text);
        }
        assert_eq!("Exponential:0.2s".parse::<Pause>().unwrap().to_string(), "exponential:200ms");
        for wrong in ["", "200ms", "normal:1s", "constant:1", "constant:0ms", "constant:11s"] {
            assert!(wrong.parse::<Pause>().unwrap_err().remedy().is_some(), "{wrong}");
        }
    }
}
