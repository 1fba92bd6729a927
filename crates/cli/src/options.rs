//! Options that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// The options that every command has.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// More diagnostics on stderr; twice for internal traces
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub verbose: u8,
    /// Only errors on stderr: no progress and no notes
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    pub quiet: bool,
    /// Colour on stderr
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", help_heading = GLOBAL)]
    pub color: Colour,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// If stderr is a terminal and NO_COLOR is not set.
    Auto,
    /// In colour, wherever it goes.
    Always,
    /// Without colour.
    Never,
}

/// Machine-readable output.
#[derive(Debug, Clone, Args)]
pub struct JsonArg {
    /// Print JSON on stdout instead of text (docs/json.md has the fields)
    #[arg(long, help_heading = "Results")]
    pub json: bool,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub struct OutArgs {
    /// Folder for the results [default: a new one in ./results]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Continue an interrupted run in this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "out")]
    pub resume: Option<PathBuf>,
}

/// How the emulated path is made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Lab")]
pub struct LabArgs {
    /// How the frames of emulated links are carried
    #[arg(long, value_enum, default_value_t = LinkBackend::Auto, value_name = "KIND")]
    pub backend: LinkBackend,
    /// Skip the lab's calibration (about 3 seconds); the report will say so
    #[arg(long)]
    pub no_calibration: bool,
}

/// What carries the frames of emulated links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkBackend {
    /// TAP where this user may, veth otherwise.
    Auto,
    /// veth pairs and packet sockets.
    Veth,
    /// TAP devices (needs access to /dev/net/tun).
    Tap,
    /// The kernel's netem instead of the link pump.
    Netem,
}

impl From<LinkBackend> for lab::Backend {
    fn from(kind: LinkBackend) -> lab::Backend {
        match kind {
            LinkBackend::Auto => lab::Backend::Auto,
            LinkBackend::Veth => lab::Backend::Veth,
            LinkBackend::Tap => lab::Backend::Tap,
            LinkBackend::Netem => lab::Backend::Netem,
        }
    }
}
