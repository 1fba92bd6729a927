//! The options of `wiretax explain`.

use clap::Args;

use crate::exit::{Exit, epilogue};

/// What the exit status means.
const MEANINGS: [(Exit, &str); 3] = [
    (Exit::Done, "done"),
    (Exit::Usage, "there is no such term"),
    (Exit::Results, "the text could not be printed"),
];

/// `wiretax explain`.
#[derive(Debug, Args)]
#[command(after_help = epilogue(
    "Examples:
  wiretax explain              every term
  wiretax explain c
  wiretax explain window stall",
    &MEANINGS
))]
pub struct ExplainArgs {
    /// The term; without it all are listed
    #[arg(value_name = "TERM")]
    pub term: Vec<String>,
}
