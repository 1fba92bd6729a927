//! The options of `wiretax compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use units::Probability;

use crate::exit::usual_epilogue;
use crate::options::JsonArg;
use crate::value::value;

/// `wiretax compare`.
#[derive(Debug, Args)]
#[command(after_help = usual_epilogue(
    "Examples:
  wiretax compare results/before results/after
  wiretax compare --threshold 10% results/before results/after || echo slower"
))]
pub struct CompareArgs {
    /// Results to compare with
    #[arg(value_hint = ValueHint::DirPath)]
    pub before: PathBuf,
    /// Results that may be better or worse
    #[arg(value_hint = ValueHint::DirPath)]
    pub after: PathBuf,
    /// Changes smaller than this share do not count
    #[arg(value_parser = value::<Probability>, long, default_value = "5%", value_name = "SHARE")]
    pub threshold: Probability,
    /// The value to compare, by its name in the samples [default: each study's main one]
    #[arg(long, value_name = "NAME")]
    pub value: Option<String>,
    #[command(flatten)]
    pub json: JsonArg,
}
