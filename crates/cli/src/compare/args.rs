//! The options of `wiretax compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use export::TimeRange;
use units::Probability;

use crate::exit::usual_epilogue;
use crate::options::JsonArg;
use crate::value::value;

/// `wiretax compare`.
#[derive(Debug, Args)]
#[command(after_help = usual_epilogue(
    "Examples:
  wiretax compare results/before results/after
  wiretax compare --threshold 10% results/before results/after || echo slower
  wiretax compare before.json after.json        records of `wiretax observe`
  wiretax compare records --before ..2026-11-21T13:00 --after 2026-11-21T13:15..

Results of studies are compared cell by cell. Records of `wiretax observe` (--json or --parquet) are
compared by handshake time, share of resumptions and share of failures: overall, by version and
class, by client network and by server name. Times without a zone are UTC."
))]
pub struct CompareArgs {
    /// Results to compare with, or records of `observe`
    #[arg(value_hint = ValueHint::AnyPath)]
    pub before: PathBuf,
    /// Results to judge [with --before and --after: the same records]
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "after_time")]
    pub after: Option<PathBuf>,
    /// For records: the time range to compare with; either end may be omitted
    #[arg(id = "before_time", long = "before", value_parser = value::<TimeRange>, value_name = "A..B", requires = "after_time")]
    pub before_time: Option<TimeRange>,
    /// For records: the time range to judge
    #[arg(id = "after_time", long = "after", value_parser = value::<TimeRange>, value_name = "C..D", requires = "before_time")]
    pub after_time: Option<TimeRange>,
    /// Changes smaller than this share do not count
    #[arg(value_parser = value::<Probability>, long, default_value = "5%", value_name = "SHARE")]
    pub threshold: Probability,
    /// The value to compare, by its name in the samples [default: each study's main one]; for records
    /// tls_handshake_ms, hello_to_data_ms, handshake_ms or tls_round_trips
    #[arg(long, value_name = "NAME")]
    pub value: Option<String>,
    #[command(flatten)]
    pub json: JsonArg,
}
