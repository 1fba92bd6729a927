//! Which frames are lost.

use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Probability;

use crate::error::ConfigError;
use crate::text::text_or_table;

/// The loss model. Written `"1%"`, `{ gilbert_elliott = { .. } }` or
/// `{ burst = { loss = "1%", length = 4 } }`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Each frame is lost with this probability, independently of the others.
    Bernoulli(Probability),
    /// Losses come in bursts.
    GilbertElliott(GilbertElliott),
}

impl Default for Loss {
    /// No frame is lost.
    fn default() -> Self {
        Loss::Bernoulli(Probability::ZERO)
    }
}

impl From<Probability> for Loss {
    fn from(probability: Probability) -> Self {
        Loss::Bernoulli(probability)
    }
}

impl Loss {
    /// Bursty loss from its mean and the mean length of a burst in frames: the simple Gilbert
    /// model, in which every frame of the bad state is lost and none of the good.
    ///
    /// # Errors
    /// If no such chain exists: `mean_burst` below 1, or `mean_loss` above
    /// `mean_burst / (mean_burst + 1)`.
    pub fn burst(mean_loss: Probability, mean_burst: f64) -> Result<Self, ConfigError> {
        GilbertElliott::from_burst(mean_loss, mean_burst).map(Loss::GilbertElliott)
    }

    /// The share of frames lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Bernoulli(probability) => probability.value(),
            Loss::GilbertElliott(chain) => chain.mean_loss(),
        }
    }
}

/// The Gilbert-Elliott chain: a good and a bad state, each with its own loss probability
/// (E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", Bell System
/// Technical Journal 42, 1963). A frame is lost by its state's probability, then the state may
/// change. The first state is drawn from the stationary distribution, so that a short run has
/// the same mean as a long one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability that the good state turns bad after a frame (`p`).
    pub to_bad: Probability,
    /// Probability that the bad state turns good after a frame (`r`).
    pub to_good: Probability,
    /// Loss probability in the good state (`1 - k`). Zero if not given.
    #[serde(default)]
    pub loss_good: Probability,
    /// Loss probability in the bad state (`1 - h`). One if not given.
    #[serde(default = "always")]
    pub loss_bad: Probability,
}

fn always() -> Probability {
    Probability::ONE
}

impl GilbertElliott {
    /// The simple Gilbert chain with this mean loss and mean burst length in frames.
    ///
    /// # Errors
    /// As for [`Loss::burst`].
    pub fn from_burst(mean_loss: Probability, mean_burst: f64) -> Result<Self, ConfigError> {
        let loss = mean_loss.value();
        if !(mean_burst.is_finite() && mean_burst >= 1.0) {
            let problem = format!("is {mean_burst}");
            return Err(ConfigError::new("burst.length", problem, "give 1 frame or more"));
        }
        let to_good = 1.0 / mean_burst;
        // Stationary share of the bad state: to_bad / (to_bad + to_good) = loss.
        let to_bad = if loss < 1.0 { to_good * loss / (1.0 - loss) } else { f64::INFINITY };
        match (Probability::new(to_bad), Probability::new(to_good)) {
            (Some(to_bad), Some(to_good)) => {
                let (loss_good, loss_bad) = (Probability::ZERO, Probability::ONE);
                Ok(GilbertElliott { to_bad, to_good, loss_good, loss_bad })
            }
            _ => Err(ConfigError::new(
                "burst.loss",
                format!("of {loss} is not possible with bursts of {mean_burst} frames"),
                "give a loss of at most length / (length + 1), or longer bursts",
            )),
        }
    }

    /// The share of time in the bad state; 0 if the chain never moves.
    #[must_use]
    pub fn share_bad(&self) -> f64 {
        let (to_bad, to_good) = (self.to_bad.value(), self.to_good.value());
        if to_bad == 0.0 { 0.0 } else { to_bad / (to_bad + to_good) }
    }

    /// The share of frames lost in the long run.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.loss_bad.value() + (1.0 - bad) * self.loss_good.value()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum LossTable {
    GilbertElliott(GilbertElliott),
    Burst(Burst),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Burst {
    loss: Probability,
    length: f64,
}

impl TryFrom<LossTable> for Loss {
    type Error = ConfigError;

    fn try_from(table: LossTable) -> Result<Self, ConfigError> {
        match table {
            LossTable::GilbertElliott(chain) => Ok(Loss::GilbertElliott(chain)),
            LossTable::Burst(burst) => Loss::burst(burst.loss, burst.length),
        }
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_or_table::<_, Probability, LossTable, Loss>(
            deserializer,
            "a probability such as \"1%\", { gilbert_elliott = .. } or { burst = .. }",
        )
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "snake_case")]
        enum Table<'a> {
            GilbertElliott(&'a GilbertElliott),
        }
        match self {
            Loss::Bernoulli(probability) => probability.serialize(serializer),
            Loss::GilbertElliott(chain) => Table::GilbertElliott(chain).serialize(serializer),
        }
    }
}

/// `true` with the given probability; no draw is made for 0 and 1, which are certain.
pub(crate) fn happens(probability: Probability, rng: &mut Pcg64Mcg) -> bool {
    match probability.value() {
        0.0 => false,
        1.0 => true,
        p => rng.random::<f64>() < p,
    }
}

/// The loss model at work: its random numbers and the state of the chain.
#[derive(Debug, Clone)]
pub(crate) struct LossProcess {
    rng: Pcg64Mcg,
    /// Whether the chain is in its bad state; `None` before its first frame.
    bad: Option<bool>,
}

impl LossProcess {
    pub(crate) fn new(rng: Pcg64Mcg) -> Self {
        LossProcess { rng, bad: None }
    }

    /// Whether the next frame is lost.
    pub(crate) fn next_is_lost(&mut self, model: &Loss) -> bool {
        match model {
            Loss::Bernoulli(probability) => happens(*probability, &mut self.rng),
            Loss::GilbertElliott(chain) => self.step(chain),
        }
    }

    fn step(&mut self, chain: &GilbertElliott) -> bool {
        let bad = match self.bad {
            Some(bad) => bad,
            None => self.rng.random::<f64>() < chain.share_bad(),
        };
        let (loss, leave) =
            if bad { (chain.loss_bad, chain.to_good) } else { (chain.loss_good, chain.to_bad) };
        let lost = happens(loss, &mut self.rng);
        self.bad = Some(bad != happens(leave, &mut self.rng));
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::rng;

    const FRAMES: usize = 400_000;

    fn p(value: f64) -> Probability {
        Probability::new(value).unwrap()
    }

    /// Share of frames lost and mean length of a run of losses.
    fn observe(loss: Loss, seed: u64) -> (f64, f64) {
        let mut process = LossProcess::new(rng(seed, 0));
        let fates: Vec<bool> = (0..FRAMES).map(|_| process.next_is_lost(&loss)).collect();
        let lost = fates.iter().filter(|lost| **lost).count();
        let ends = fates.windows(2).filter(|pair| pair[0] && !pair[1]).count();
        (lost as f64 / FRAMES as f64, lost as f64 / ends.max(1) as f64)
    }

    fn assert_close(what: &str, got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "{what}: {got}, not {want} +- {tolerance}");
    }

    #[test]
    fn bernoulli_loses_its_share() {
        let (lost, run) = observe(Loss::Bernoulli(p(0.03)), 1);
        // Five standard deviations of 400,000 draws.
        assert_close("loss", lost, 0.03, 5.0 * (0.03f64 * 0.97 / FRAMES as f64).sqrt());
        assert_close("run", run, 1.0 / 0.97, 0.02);
    }

    #[test]
    fn gilbert_loses_its_share_in_bursts_of_its_length() {
        let loss = Loss::burst(p(0.05), 4.0).unwrap();
        assert_close("mean", loss.mean(), 0.05, 1e-12);
        let (lost, run) = observe(loss, 2);
        assert_close("loss", lost, 0.05, 0.003);
        assert_close("run", run, 4.0, 0.15);
    }

    #[test]
    fn all_four_parameters_of_gilbert_elliott_count() {
        let chain = GilbertElliott {
            to_bad: p(0.02),
            to_good: p(0.08),
            loss_good: p(0.01),
            loss_bad: p(0.5),
        };
        // 0.2 of the time bad: 0.2 * 0.5 + 0.8 * 0.01.
        assert_close("mean", chain.mean_loss(), 0.108, 1e-12);
        let (lost, _) = observe(Loss::GilbertElliott(chain), 3);
        assert_close("loss", lost, 0.108, 0.006);
    }

    #[test]
    fn the_first_frame_sees_the_stationary_chain() {
        let loss = Loss::burst(p(0.25), 50.0).unwrap();
        let runs = 40_000;
        let lost = (0..runs).filter(|seed| LossProcess::new(rng(*seed, 0)).next_is_lost(&loss));
        assert_close("loss", lost.count() as f64 / runs as f64, 0.25, 0.011);
    }

    #[test]
    fn a_chain_that_cannot_be_is_refused() {
        for (loss, length) in [(0.1, 0.5), (0.9, 2.0), (1.0, 2.0), (0.1, f64::NAN)] {
            assert!(Loss::burst(p(loss), length).is_err(), "{loss} {length}");
        }
        assert_eq!(Loss::burst(p(0.0), 1.0).unwrap().mean(), 0.0);
    }
}
