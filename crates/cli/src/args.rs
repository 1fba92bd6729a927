//! The command line, defined once: help, man pages and completions all come from here.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use handshake::{Peer, Visit};
use linkmodel::Middlebox;
use tls::{Group, KeyType, Library};
use units::{Delay, Probability, Rate};

use crate::value::value;

/// What stands at the end of a command's help: examples, and how it ends.
fn epilogue(text: &str) -> String {
    crate::exit::epilogue(text, &crate::exit::MEANINGS)
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
  wiretax run                 begin here: every study, 5 minutes at most, and a report
  wiretax probe example.org   ask your own server"
    )
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
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
    Cli::command()
}

/// The command line as it is printed: with the times that the built-in plans take. To reckon them
/// takes longer than all else of a start, and each measurement starts a process.
pub fn documented() -> clap::Command {
    command().mut_subcommand("handshake", |handshake| {
        let text = handshake.get_after_help().map(ToString::to_string).unwrap_or_default();
        let text = text.replace("QUICK", &plan_size("quick")).replace("FULL", &plan_size("full"));
        handshake.after_help(text)
    })
}

/// What a built-in plan comes to: `400 connections, about 70 seconds`.
fn plan_size(scale: &str) -> String {
    let plan = handshake::Plan::built_in(scale).map(|plan| plan.expected());
    let Ok((connections, time)) = plan else { return String::new() };
    let time = match time.as_secs() {
        seconds @ 0..120 => format!("{} seconds", (seconds + 5) / 10 * 10),
        seconds => format!("{} minutes", (seconds + 30) / 60),
    };
    format!("{connections} connections, about {time}")
}

/// The hidden command of a measurement's own process.
pub const HOST: &str = "__host";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure with every study at a quick scale and write one report (5 minutes at most)
    Run(RunArgs),
    /// What setting up a secure connection costs, by mode and round-trip time
    Handshake(Box<HandshakeArgs>),
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
    /// Which TLS library to build on: cost, locks and threads of each (under five minutes)
    Stacks(Box<crate::stacks_args::StacksArgs>),
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
    /// Go on with an interrupted run in this folder
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
  wiretax run                      everything, quick scale, about 5 minutes at most
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
}

/// `wiretax handshake`.
#[derive(Debug, Args)]
#[command(after_help = epilogue(
    "Examples:
  wiretax handshake        the quick plan: QUICK
  wiretax handshake --rtt 0.4ms,11.6ms,85.5ms --repeat 20
  wiretax handshake --mode tcp+tls12,quic --rtt 50ms --loss 0%,1%,3% --repeat 100 --concurrent 50
  wiretax handshake --mode tcp+tls13 --group x25519,x25519mlkem768 --key rsa-4096 --chain 1,3
  wiretax handshake --from tcp+tls12 --clients rtts.txt   what would my clients save?
  wiretax handshake --scale full --out results/full
                           every axis: FULL

Modes: tcp, tfo and tfo-nocookie, each alone or with +tls12-rsa, +tls12, +tls12-resumed, +tls13,
+tls13-hrr, +tls13-resumed or +tls13-0rtt; quic and quic-0rtt; over our own TCP sslmtcp-paper,
sslmtcp-tls13 and sslmtcp-0rtt, and their controls usertcp+tls12-rsa, +tls13 and +tls13-0rtt."
))]
pub struct HandshakeArgs {
    /// The built-in plan, or the scale in the plan file: quick (default) or full
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// A plan file (TOML) in place of the built-in one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub plan: Option<PathBuf>,
    /// Rate of the path each way, as 10mbit, 10mbit/ip or 10mbit/wire; unlimited if not given
    #[arg(value_parser = value::<Rate>, long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Jitter, rate, queue and loss of a named profile (lan, cable, lte, 3g, wlan, satellite), or of
    /// a profile file (TOML); its RTT too, unless --rtt is given
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub profile: Option<String>,
    /// Capacity from client to server by a trace: the millisecond of each 1500-byte packet, one a
    /// line, as mahimahi has them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rate")]
    pub trace_up: Option<PathBuf>,
    /// Capacity from server to client by a trace
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rate")]
    pub trace_down: Option<PathBuf>,
    /// Give a connection up after this time [default: 60s]; it stays in as a censored sample
    #[arg(value_parser = value::<Delay>, long, value_name = "TIME")]
    pub timeout: Option<Delay>,
    /// Seed of every random draw [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// The mode that you run today: savings are counted from it
    #[arg(long, default_value = "tcp+tls12", value_name = "MODE")]
    pub from: String,
    /// Your clients' round-trip times: what `wiretax observe --rtt-out` writes, or one a line (`25ms`, or
    /// `25ms 0.7` with a weight)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub clients: Option<PathBuf>,
    /// Keep the packet captures (pcapng) beside the samples
    #[arg(long)]
    pub keep_captures: bool,
    #[command(flatten)]
    pub axes: AxisArgs,
    #[command(flatten)]
    pub out: OutArgs,
    #[command(flatten)]
    pub lab: LabArgs,
    #[command(flatten)]
    pub json: JsonArg,
}

/// The axes of the study; any of these replaces the plan by one sweep.
#[derive(Debug, Args)]
#[command(next_help_heading = "Axes (any of these replaces the plan by one sweep)")]
pub struct AxisArgs {
    /// Modes, or `all`
    #[arg(long, value_delimiter = ',', value_name = "MODES")]
    pub mode: Vec<String>,
    /// Round-trip times, as 11.6ms
    #[arg(value_parser = value::<Delay>, long, value_delimiter = ',', value_name = "TIMES")]
    pub rtt: Vec<Delay>,
    /// Loss each way, as 1%
    #[arg(value_parser = value::<Probability>, long, value_delimiter = ',', value_name = "SHARES")]
    pub loss: Vec<Probability>,
    /// Keys: rsa-2048, rsa-4096, ecdsa-p256
    #[arg(value_parser = value::<KeyType>, long, value_delimiter = ',', value_name = "KEYS")]
    pub key: Vec<KeyType>,
    /// Groups: x25519, secp256r1, x25519mlkem768
    #[arg(value_parser = value::<Group>, long, value_delimiter = ',', value_name = "GROUPS")]
    pub group: Vec<Group>,
    /// Libraries on both sides: openssl, rustls
    #[arg(value_parser = value::<Library>, long, value_delimiter = ',', value_name = "LIBRARIES")]
    pub library: Vec<Library>,
    /// Certificates that the server sends
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    pub chain: Vec<usize>,
    /// Middleboxes on the way: none, drop-syn-data, strip-syn-data
    #[arg(value_parser = value::<Middlebox>, long, value_delimiter = ',', value_name = "KINDS")]
    pub middlebox: Vec<Middlebox>,
    /// Servers: same (it does what the mode does), plain (the kernel's TCP without Fast Open, then TLS)
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    pub peer: Vec<Peer>,
    /// SSLmTCP: first (what was learnt of the path is forgotten), remembered
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    pub visit: Vec<Visit>,
    /// Connections a point
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,
    /// Connections under way at once (for long sweeps under loss)
    #[arg(long, value_name = "N")]
    pub concurrent: Option<u32>,
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
    /// The mode that you run today: savings are counted from it
    #[arg(long, default_value = "tcp+tls12", value_name = "MODE")]
    pub from: String,
    /// Your clients' round-trip times, one a line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub clients: Option<PathBuf>,
    /// New connections a second that machines are reckoned for [default: 100000]
    #[arg(long, value_name = "N", value_parser = crate::stacks_args::load)]
    pub load: Option<f64>,
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
    /// The value to compare
    #[arg(long, default_value = "first_response_ms", value_name = "NAME")]
    pub value: String,
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

    #[test]
    fn the_help_states_what_the_plans_come_to() {
        let mut command = documented();
        let found = command.find_subcommand_mut("handshake").expect("it is there");
        let help = found.render_long_help().to_string();
        for scale in ["quick", "full"] {
            let (connections, _) = handshake::Plan::built_in(scale).unwrap().expected();
            assert!(help.contains(&format!("{connections} connections, about ")), "{help}");
        }
        assert!(!help.contains("QUICK") && !help.contains("FULL"), "{help}");
    }
}
