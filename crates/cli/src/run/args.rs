//! The options of `wiretax run`.

use clap::Args;

use crate::exit::usual_epilogue;
use crate::options::{JsonArg, LabArgs, OutArgs};

/// `wiretax run`.
#[derive(Debug, Args)]
#[command(after_help = usual_epilogue(
    "Examples:
  wiretax run                      every study at a quick scale, 4 minutes at most
  wiretax run --tables             with every table on the terminal
  wiretax run --out results/today  into a folder of your choice
  wiretax run --resume results/today"
))]
pub struct RunArgs {
    #[command(flatten)]
    pub out: OutArgs,
    #[command(flatten)]
    pub lab: LabArgs,
    #[command(flatten)]
    pub json: JsonArg,
    /// Print each study's tables, too: the summary alone fits a screen of 80 x 40
    #[arg(long, conflicts_with = "json", help_heading = "Results")]
    pub tables: bool,
    /// Seed of every random draw [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// The scale of each study's plan: quick, or smoke (a few seconds each, to check that all works)
    #[arg(long, default_value = "quick", value_name = "NAME")]
    pub scale: String,
}
