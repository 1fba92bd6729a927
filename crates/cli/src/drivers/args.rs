//! The command line of `wiretax drivers`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;

/// What the exit status means.
const MEANINGS: [(Exit, &str); 5] = [
    (Exit::Done, "done"),
    (Exit::Usage, "the command line is wrong, or a driver's description"),
    (Exit::Machine, "this machine cannot do it: a driver was not built, or no sources are found"),
    (Exit::Results, "the list could not be printed"),
    (Exit::Interrupted, "interrupted: what was built is kept"),
];

/// `wiretax drivers`.
#[derive(Debug, Args)]
#[command(after_help = epilogue("Examples:
  wiretax drivers list                     which exist, and which are built
  wiretax drivers build                    the default set (some 20 minutes on two cores)
  wiretax drivers build 'openssl-3.*' s2n  some more
  wiretax drivers build all

Each library is built separately into ~/.cache/wiretax/drivers (XDG_CACHE_HOME moves it). Finished
ones stay if a later one fails, and an interrupted build resumes. Sources come from the package
registries.", &MEANINGS))]
pub struct DriversArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DriversCommand,
    /// The folder of the drivers' sources [default: drivers/ beside the program's build or in its source tree]
    #[arg(long, global = true, value_hint = ValueHint::DirPath)]
    pub drivers: Option<PathBuf>,
}

/// What to do with drivers.
#[derive(Debug, Subcommand)]
pub enum DriversCommand {
    /// List the libraries, and which are built
    List(JsonArg),
    /// Build some, or the default set
    Build {
        /// Names, prefixes with a star, `default` or `all`.
        #[arg(default_value = "default")]
        names: Vec<String>,
    },
}
