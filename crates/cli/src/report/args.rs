//! The options of `wiretax report`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::exit::usual_epilogue;
use crate::options::JsonArg;

/// `wiretax report`.
#[derive(Debug, Args)]
#[command(after_help = usual_epilogue(
    "Examples:
  wiretax report results/today
  wiretax report results/today --html today.html --from tcp+tls13 --clients rtts.txt"
))]
pub struct ReportArgs {
    /// A folder of results
    #[arg(value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// Write the report to this file [default: report.html in the folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArg,
}
