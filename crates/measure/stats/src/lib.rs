//! What samples say, and how sure they are of it.
//!
//! Pure: no clock, no files, no OS randomness. Where chance is needed (the bootstrap) the seed is
//! an argument, and the same input with the same seed gives the same output, bit for bit.
//!
//! | question | here | method |
//! |---|---|---|
//! | where do the samples lie? | [`Sample`], [`median`] | median, quantiles (type 7), MAD; [`median_estimate`] with the exact order-statistic interval |
//! | how does time grow with RTT? | [`fit_medians`] | least absolute deviations over cell medians, seeded bootstrap inside each cell |
//! | is it what was specified? | [`Estimate::is_within`] | the whole interval inside the tolerance, or outside; else it cannot be told |
//! | how long when some never finished? | [`Survival`] | Kaplan-Meier quantiles, "not reached" where the samples end |
//! | which group is best, and may one say so? | [`claims`] | exact sign tests over all pairs of groups, Holm |
//! | A or B, measured A B A B? | [`compare_paired`] | median difference, ratio, Wilcoxon signed-rank |
//! | yesterday's run or today's? | [`compare_cells`] | Mann-Whitney, Hodges-Lehmann shift, Benjamini-Hochberg over the cells |
//! | do more attempts fail? | [`fisher_exact`] | Fisher's exact test |
//! | is this share another one now? | [`compare_shares`] | Newcombe's interval, Fisher's exact test |
//! | what does it mean for my users? | [`Distribution`], [`ClientRtts`] | expectation over their RTTs; the file of `--rtt-out` |
//! | how is it drawn? | [`ecdf`], [`histogram`] | bounded numbers of points |
//!
//! # Which interval, and why
//!
//! For **one median** the interval comes from order statistics: the number of samples below the
//! true median is binomial(n, 1/2) whatever the distribution, so the interval between two ranks
//! has a coverage that is known exactly and needs no resampling. It is the honest one for small
//! samples: with five or fewer samples no interval reaches 95 %, and [`Estimate::confidence`] then
//! says what the range from least to greatest does reach. (Hahn and Meeker, *Statistical
//! Intervals*, §5.2.)
//!
//! For **what is computed from several medians** (a line, a weighted saving) there is no such
//! exact form; there the percentile bootstrap resamples inside each cell. BCa is not offered: its
//! acceleration comes from the jackknife, and the jackknife is inconsistent for a median (Efron
//! 1979 §3; the leave-one-out medians take two or three values only), so the correction would be
//! noise that looks like care.
#![forbid(unsafe_code)]

mod bootstrap;
mod cells;
pub mod claims;
mod client_rtts;
mod distribution;
mod error;
mod estimate;
mod exact;
mod fit;
mod paired;
mod plot;
mod ranks;
mod sample;
mod shares;
mod survival;
mod unpaired;

pub use bootstrap::{Bootstrap, bootstrap_medians};
pub use cells::{
    CellVerdict, CompareOptions, Comparison, Verdict, benjamini_hochberg, compare_cells, verdict,
};
pub use client_rtts::{ClientRtts, RttError, RttPoint, RttQuantile};
pub use distribution::{Distribution, DistributionError};
pub use error::Error;
pub use estimate::{BoundedEstimate, Confidence, Estimate, Holds};
pub use exact::fisher_exact;
pub use fit::{Cell, Line, LineFit, Residual, fit_line, fit_medians};
pub use paired::{PairedComparison, compare_paired, wilcoxon_signed_rank};
pub use plot::{Bin, EcdfPoint, ecdf, histogram};
pub use sample::{Sample, median, median_estimate};
pub use shares::{ShareShift, compare_shares};
pub use survival::{Observation, Survival};
pub use unpaired::{Shift, hodges_lehmann, mann_whitney};
