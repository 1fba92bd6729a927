//! The command line, defined once: help, man pages and completions all come from here.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use units::{Delay, Probability};

use crate::value::value;

/// What stands at the end of a command's help: examples, and how it ends.
pub fn epilogue(text: &str) -> String {
    crate::exit::epilogue(text.trim_end(), &crate::exit::MEANINGS)
}

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// Measures what security costs on the wire, and how to get it back.
#[derive(Debug, Parser)]
#[command(
    name = "wiretax",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = epilogue(
        "Examples:
  wiretax run                 begin here: every study, 4 minutes at most, and a report
  wiretax probe example.org   ask your own server"
    )
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// The options that every command has.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Say more on stderr; twice for traces of the machinery
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub verbose: u8,
    /// No progress and no notes on stderr, errors only
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
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The command line as it is parsed. Its help is still to be completed; see [`documented`].
pub fn command() -> clap::Command {
    crate::studies::attach(Cli::command(), false)
}

/// The command line as it is printed: with the studies' examples, which say what plans come to.
pub fn documented() -> clap::Command {
    crate::studies::attach(Cli::command(), true)
}

/// The hidden command of a measurement's own process.
pub use tls_drivers::hosts::HOST;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure with every study at a quick scale and write one report (4 minutes at most)
    #[command(display_order = 0)]
    Run(RunArgs),
    /// Build the report of results again, without measuring
    Report(ReportArgs),
    /// Say what got slower between two results, and how sure that is
    Compare(CompareArgs),
    /// Say what this machine can do, what is missing and how to get it
    #[command(after_help = epilogue(
        "Examples:
  wiretax doctor
  wiretax doctor --json | jq '.[] | select(.ok | not)'"
    ))]
    Doctor(JsonArg),
    /// How long real clients take to set up TLS, from captures or an interface
    Observe(Box<crate::observe_args::ObserveArgs>),
    /// Measure a live server's handshakes from here: few connections, read-only, no root
    Probe(ProbeArgs),
    /// Load a TLS server: connections by the thousand a second, at a number or a rate
    Load(Box<crate::load_args::LoadArgs>),
    /// Carry unmodified programs' connections over SSLmTCP: one gateway at each end
    Gateway(crate::gateway_args::GatewayArgs),
    /// Print a completion script for a shell
    #[command(after_help = epilogue(
        "Examples:
  wiretax completions bash > ~/.local/share/bash-completion/completions/wiretax
  wiretax completions zsh > ~/.zfunc/_wiretax   (with ~/.zfunc in fpath)
  wiretax completions fish > ~/.config/fish/completions/wiretax.fish"
    ))]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder
    #[command(after_help = epilogue(
        "Examples:
  wiretax man ~/.local/share/man/man1 && man wiretax-probe"
    ))]
    Man {
        /// The folder.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// List the TLS libraries that can be measured, and build them
    Drivers(crate::drivers_args::DriversArgs),
    /// Answer one question about a driver: what `wiretax stacks` starts for each measurement
    // By a name that no typo is taken for.
    #[command(hide = true, name = HOST)]
    StacksHost,
    /// Rewrite the figures in a Markdown file from committed results
    #[command(hide = true)]
    Figures(FiguresArgs),
}

/// `wiretax figures`: for the project's own README.
#[derive(Debug, Args)]
pub struct FiguresArgs {
    /// The Markdown file, with `<!-- figures:NAME -->` and `<!-- /figures -->` in it.
    pub markdown: PathBuf,
    /// The folder of results.
    pub results: PathBuf,
    /// Change nothing; fail if the file would change.
    #[arg(long)]
    pub check: bool,
}

/// Machine-readable output.
#[derive(Debug, Args)]
pub struct JsonArg {
    /// Print JSON on stdout instead of text (docs/json.md has the fields)
    #[arg(long, help_heading = "Results")]
    pub json: bool,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub struct OutArgs {
    /// Folder for the results; a new one under ./results if not given
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
    /// What carries the frames of emulated links
    #[arg(long, value_enum, default_value_t = LinkBackend::Auto, value_name = "KIND")]
    pub backend: LinkBackend,
    /// Leave out the lab's measurement of itself (about 3 seconds); the report will say so
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

/// `wiretax run`.
#[derive(Debug, Args)]
#[command(after_help = epilogue(
    "Examples:
  wiretax run                      everything, quick scale, 4 minutes at most
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
    /// Seed of every random draw [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// The scale of each study's plan: quick, or smoke (some seconds each, to see that all works)
    #[arg(long, default_value = "quick", value_name = "NAME")]
    pub scale: String,
}

/// `wiretax report`.
#[derive(Debug, Args)]
#[command(after_help = epilogue(
    "Examples:
  wiretax report results/today
  wiretax report results/today --html today.html --from tcp+tls13 --clients rtts.txt"
))]
pub struct ReportArgs {
    /// A folder of results
    #[arg(value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// Where to write the report; report.html in the folder if not given
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// `wiretax compare`.
#[derive(Debug, Args)]
#[command(after_help = epilogue(
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

/// `wiretax probe`.
#[derive(Debug, Args)]
#[command(after_help = epilogue(
    "Examples:
  wiretax probe example.org
  wiretax probe example.org:8443 --repeat 5
  wiretax probe 127.0.0.1:4433 --name test.example --ca ca.pem
  wiretax probe example.org --json > from-here.json
  wiretax probe --compare from-here.json from-there.json"
))]
pub struct ProbeArgs {
    /// The server: a name or an address, with a port if it is not 443
    #[arg(value_name = "HOST[:PORT]", value_hint = ValueHint::Hostname, required_unless_present = "compare")]
    pub target: Option<String>,
    /// Measure nothing: print results of `--json` from several places side by side
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath, conflicts_with = "target")]
    pub compare: Vec<PathBuf>,
    /// Connections for each step, 1 to 10
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub repeat: u32,
    /// Give a connection up after this time
    #[arg(value_parser = value::<Delay>, long, default_value = "5s", value_name = "TIME")]
    pub timeout: Delay,
    /// The name that the certificate must carry (and SNI), if not HOST
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Trust the certificates in this PEM file in place of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Dangerous: accept any certificate
    #[arg(long)]
    pub insecure: bool,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
    #[command(flatten)]
    pub json: JsonArg,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        documented().debug_assert();
    }
}
