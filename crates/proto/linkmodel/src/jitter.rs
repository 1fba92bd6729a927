//! What is added to the base delay.

use std::sync::Arc;
use std::time::Duration;

use fault::Explain;
use rand::Rng;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Delay;

use crate::config::MAX_DELAY;
use crate::error::ConfigError;
use crate::text::text_or_table;

/// Jitter: a random time added to the base delay, drawn for each frame. It never makes the delay
/// smaller than the base delay, and is cut at [`MAX_DELAY`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// None. Written `"none"`.
    #[default]
    None,
    /// Uniform from zero to this. Written `{ uniform = "2ms" }`.
    Uniform(Delay),
    /// The magnitude of a normal variable. Written `{ normal = "2ms" }` (mean zero: the
    /// half-normal distribution) or `{ normal = { mean = "6ms", deviation = "2ms" } }`.
    Normal(Normal),
    /// Pareto, moved so that it begins at zero (Lomax): long-tailed. Written
    /// `{ pareto = "2ms" }` (its mean; shape 3) or `{ pareto = { mean = "2ms", shape = 2.5 } }`.
    Pareto(Pareto),
    /// One of a table of measured values, each as likely. Written `{ table = ["0.1ms", "3ms"] }`.
    Table(DelayTable),
}

/// `|N(mean, deviation)|`. With a mean of three deviations or more it is normal for all
/// practical purposes; netem's `delay 20ms 2ms distribution normal` is a base delay of 14 ms with
/// mean 6 ms and deviation 2 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Normal {
    /// Mean of the normal variable.
    pub mean: Delay,
    /// Its standard deviation.
    pub deviation: Delay,
}

/// `scale * (U^(-1/shape) - 1)` with scale `mean * (shape - 1)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pareto {
    /// Mean of the jitter.
    pub mean: Delay,
    /// Tail index, above 1: the smaller, the longer the tail. The variance is finite above 2.
    pub shape: f64,
}

impl Pareto {
    /// The shape when none is given; netem's table has the same.
    pub const DEFAULT_SHAPE: f64 = 3.0;
}

impl From<Delay> for Normal {
    fn from(deviation: Delay) -> Self {
        Normal { mean: Delay::ZERO, deviation }
    }
}

impl From<Delay> for Pareto {
    fn from(mean: Delay) -> Self {
        Pareto { mean, shape: Pareto::DEFAULT_SHAPE }
    }
}

/// Measured delays to draw from. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayTable(Arc<[Delay]>);

impl DelayTable {
    /// At most this many values.
    pub const MAX_LEN: usize = 1 << 20;

    /// A table of these values.
    ///
    /// # Errors
    /// If there are none, or more than [`DelayTable::MAX_LEN`], or one is above [`MAX_DELAY`].
    pub fn new(values: Vec<Delay>) -> Result<Self, ConfigError> {
        let error = |problem: String| {
            ConfigError::new("jitter.table", problem, "give 1 to 1048576 delays of at most 1h")
        };
        if values.is_empty() || values.len() > Self::MAX_LEN {
            return Err(error(format!("has {} values", values.len())));
        }
        if let Some(long) = values.iter().find(|value| value.duration() > MAX_DELAY) {
            return Err(error(format!("has {long}")));
        }
        Ok(DelayTable(values.into()))
    }

    /// Reads measured delays from a text, one per line: `3.5` in milliseconds, or with a unit, as
    /// `150us`. Empty lines and lines that begin with `#` are passed over.
    ///
    /// # Errors
    /// Names the line that is not a delay; otherwise as for [`DelayTable::new`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut values = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bare = line.ends_with(|last: char| last.is_ascii_digit());
            let parsed = if bare { format!("{line}ms").parse() } else { line.parse() };
            let delay = parsed.map_err(|error: units::ParseError| {
                let problem = format!("has an error in line {}: {error}", at + 1);
                ConfigError::new("jitter.table", problem, "give one delay in milliseconds per line")
            })?;
            values.push(delay);
            if values.len() > Self::MAX_LEN {
                break; // `new` refuses it; there is no need to read on.
            }
        }
        DelayTable::new(values)
    }

    /// The delays, in the order given: 1 to [`DelayTable::MAX_LEN`] of them.
    #[must_use]
    pub fn values(&self) -> &[Delay] {
        &self.0
    }
}

impl Serialize for DelayTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl<'de> Deserialize<'de> for DelayTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = Vec::<Delay>::deserialize(deserializer)?;
        DelayTable::new(values).map_err(|error| serde::de::Error::custom(error.in_one_text()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NormalTable {
    #[serde(default)]
    mean: Delay,
    deviation: Delay,
}

impl From<NormalTable> for Normal {
    fn from(table: NormalTable) -> Self {
        Normal { mean: table.mean, deviation: table.deviation }
    }
}

impl<'de> Deserialize<'de> for Normal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expecting = "a deviation such as \"2ms\", or { mean = \"6ms\", deviation = \"2ms\" }";
        text_or_table::<_, Delay, NormalTable, Normal>(deserializer, expecting)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParetoTable {
    mean: Delay,
    #[serde(default = "default_shape")]
    shape: f64,
}

fn default_shape() -> f64 {
    Pareto::DEFAULT_SHAPE
}

impl From<ParetoTable> for Pareto {
    fn from(table: ParetoTable) -> Self {
        Pareto { mean: table.mean, shape: table.shape }
    }
}

impl<'de> Deserialize<'de> for Pareto {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expecting = "a mean such as \"2ms\", or { mean = \"2ms\", shape = 2.5 }";
        text_or_table::<_, Delay, ParetoTable, Pareto>(deserializer, expecting)
    }
}

impl Jitter {
    pub(crate) fn sample(&self, rng: &mut Pcg64Mcg) -> Duration {
        match self {
            Jitter::None => Duration::ZERO,
            Jitter::Uniform(max) => capped(nanos(*max) * rng.random::<f64>()),
            Jitter::Normal(Normal { mean, deviation }) => {
                let standard: f64 = rng.sample(StandardNormal);
                capped((nanos(*mean) + nanos(*deviation) * standard).abs())
            }
            Jitter::Pareto(Pareto { mean, shape }) => {
                // 1 - [0, 1) is never zero.
                let uniform = 1.0 - rng.random::<f64>();
                let scale = nanos(*mean) * (shape - 1.0);
                capped(scale * (uniform.powf(-1.0 / shape) - 1.0))
            }
            Jitter::Table(DelayTable(values)) => {
                let at = rng.random_range(0..values.len().max(1));
                values.get(at).map_or(Duration::ZERO, |value| value.duration())
            }
        }
    }
}

fn nanos(delay: Delay) -> f64 {
    delay.duration().as_nanos() as f64
}

/// `nanos` as a duration of at most [`MAX_DELAY`]. Rounds to 1 ns.
fn capped(nanos: f64) -> Duration {
    // The cast saturates.
    Duration::from_nanos(nanos.round() as u64).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::rng;

    const DRAWS: usize = 400_000;

    /// Mean and standard deviation in milliseconds, and the share above `threshold` ms.
    fn moments(jitter: &Jitter, seed: u64, threshold: f64) -> (f64, f64, f64) {
        let mut rng = rng(seed, 0);
        let draws: Vec<f64> =
            (0..DRAWS).map(|_| jitter.sample(&mut rng).as_nanos() as f64 / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64;
        let above = draws.iter().filter(|x| **x > threshold).count() as f64 / DRAWS as f64;
        (mean, variance.sqrt(), above)
    }

    fn ms(text: &str) -> Delay {
        text.parse().unwrap()
    }

    fn assert_close(what: &str, got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "{what}: {got}, not {want} +- {tolerance}");
    }

    #[test]
    fn uniform_has_its_moments() {
        let (mean, deviation, above) = moments(&Jitter::Uniform(ms("4ms")), 1, 3.0);
        assert_close("mean", mean, 2.0, 0.01);
        assert_close("deviation", deviation, 4.0 / 12f64.sqrt(), 0.01);
        assert_close("above 3 ms", above, 0.25, 0.005);
    }

    #[test]
    fn half_normal_has_its_moments() {
        let (mean, deviation, above) = moments(&Jitter::Normal(ms("2ms").into()), 2, 4.0);
        let pi = std::f64::consts::PI;
        assert_close("mean", mean, 2.0 * (2.0 / pi).sqrt(), 0.01);
        assert_close("deviation", deviation, 2.0 * (1.0 - 2.0 / pi).sqrt(), 0.01);
        assert_close("beyond two deviations", above, 0.0455, 0.002);
    }

    #[test]
    fn normal_far_from_zero_has_its_moments() {
        let normal = Normal { mean: ms("10ms"), deviation: ms("2ms") };
        let (mean, deviation, above) = moments(&Jitter::Normal(normal), 3, 12.0);
        assert_close("mean", mean, 10.0, 0.02);
        assert_close("deviation", deviation, 2.0, 0.02);
        assert_close("above one deviation", above, 0.1587, 0.004);
    }

    #[test]
    fn pareto_has_its_mean_and_its_tail() {
        let pareto = Pareto { mean: ms("2ms"), shape: 5.0 };
        let (mean, deviation, above) = moments(&Jitter::Pareto(pareto), 4, 8.0);
        // Lomax with scale 8: deviation = mean * sqrt(shape / (shape - 2)), tail (1 + x/8)^-5.
        assert_close("mean", mean, 2.0, 0.02);
        assert_close("deviation", deviation, 2.0 * (5.0f64 / 3.0).sqrt(), 0.1);
        assert_close("above 8 ms", above, 2f64.powi(-5), 0.0015);
    }

    #[test]
    fn a_table_gives_each_of_its_values_as_often() {
        let values = vec![ms("1ms"), ms("2ms"), ms("2ms"), ms("9ms")];
        let jitter = Jitter::Table(DelayTable::new(values).unwrap());
        let (mean, _, above) = moments(&jitter, 5, 2.0);
        assert_close("mean", mean, 3.5, 0.03);
        assert_close("above 2 ms", above, 0.25, 0.004);
    }

    #[test]
    fn a_file_of_measured_delays_is_a_table() {
        let table = DelayTable::parse("# one way, in ms\n0.5\n\n 12.25 \n150us\n").unwrap();
        assert_eq!(table.values(), [ms("0.5ms"), ms("12.25ms"), ms("150us")]);
        for (text, what) in
            [("1\ntwo\n", "line 2"), ("", "0 values"), ("1\n-2\n", "line 2"), ("99min", "5940s")]
        {
            let message = DelayTable::parse(text).unwrap_err().to_string();
            assert!(message.contains(what), "{text:?}: {message}");
        }
    }

    #[test]
    fn the_longest_tail_is_cut() {
        let pareto = Pareto { mean: ms("60min"), shape: 1.01 };
        let (mean, ..) = moments(&Jitter::Pareto(pareto), 6, 0.0);
        assert!(mean <= MAX_DELAY.as_millis() as f64);
    }
}
