//! The options of `wiretax lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use units::{Delay, Probability, Rate};

use super::path::{PerWay, QueueArg};
use crate::exit::{Exit, epilogue};
use crate::options::LinkBackend;
use crate::value::value;

/// What its own exit status means, beside the program's.
const MEANINGS: [(Exit, &str); 3] = [
    (Exit::Usage, "the command line or an input file is wrong"),
    (Exit::Machine, "this machine cannot do it (`wiretax doctor` says what is missing)"),
    (Exit::Results, "a file could not be written"),
];

fn end_of_help() -> String {
    epilogue(
        "Examples:
  wiretax lab --rtt 50ms --loss 1% --rate 20mbit --serve 'iperf3 -s -1' -- iperf3 -c server
  wiretax lab --rtt 30ms --rate 20mbit/5mbit --serve 'iperf3 -s -1' -- iperf3 -c server -R
  wiretax lab --link lte --serve 'python3 -m http.server 80' -- curl -so /dev/null http://server/
  wiretax lab --trace-down att.down --trace-up att.up --rtt 40ms --pcap run.pcapng --shell client
  sudo wiretax lab --rtt 300ms --outside -- curl -sI https://example.org

The program runs on the node `client`, the command of --serve on the node `server`, which programs
reach by that name (its IPv6 address is called server6). They see themselves as root, whose rights
end at the lab, with an empty /run and no other network. Down is from the server to the client.

At the end the counters of the path go to stderr. Where a TCP connection did not fill the path, they
say what held it: receive window, send buffer, queue, loss or the emulator, each as it was counted.
`--profiles` lists the named links and shows the format of a profile file.

The exit status is the program's own: 128 + n if signal n ended it, 127 if there is no such
program. Signals go to the program. One that runs on for 5 s after SIGTERM, or until a second one, is
killed: 143. If it did not run:",
        &MEANINGS,
    )
}

/// `wiretax lab`.
#[derive(Debug, Args)]
#[command(after_help = end_of_help())]
pub struct LabCommandArgs {
    /// The program to run on the node `client`, with its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments,
          required_unless_present_any = ["shell", "profiles"], conflicts_with_all = ["shell", "profiles"])]
    pub program: Vec<OsString>,
    #[command(flatten)]
    pub path: PathArgs,
    /// A shell command to run on the node `server` meanwhile; it is ended with the program
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString, help_heading = "Programs")]
    pub serve: Option<String>,
    /// Run an interactive shell on this node instead of a program
    #[arg(long, value_enum, value_name = "NODE", help_heading = "Programs")]
    pub shell: Option<Side>,
    /// Give the node `client` the machine's own network, through the path (needs root and nft)
    #[arg(long, help_heading = "Programs")]
    pub outside: bool,
    /// List the named links and the format of a profile file, and run nothing
    #[arg(long, help_heading = "Path", conflicts_with_all = ["serve", "shell", "outside", "pcap", "stats"])]
    pub profiles: bool,
    /// Write the packets at the node `client` to this file (pcapng)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub pcap: Option<PathBuf>,
    /// Write the counters to this file as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub stats: Option<PathBuf>,
}

/// What the path is like.
#[derive(Debug, Args)]
#[command(next_help_heading = "Path")]
pub struct PathArgs {
    /// Round-trip time, half each way, as 50ms
    #[arg(long, value_parser = value::<Delay>, value_name = "TIME")]
    pub rtt: Option<Delay>,
    /// Frames lost each way, as 1%; or down/up, as 1%/0.1%
    #[arg(long, value_parser = value::<PerWay<Probability>>, value_name = "SHARE")]
    pub loss: Option<PerWay<Probability>>,
    /// Rate each way, as 20mbit (of Ethernet frames; 20mbit/ip counts IP packets); or down/up, as 20mbit/5mbit
    #[arg(long, value_parser = value::<PerWay<Rate>>, value_name = "RATE")]
    pub rate: Option<PerWay<Rate>>,
    /// Rate to the client, in place of that of --rate
    #[arg(long, value_parser = value::<Rate>, value_name = "RATE")]
    pub down: Option<Rate>,
    /// Rate to the server, in place of that of --rate
    #[arg(long, value_parser = value::<Rate>, value_name = "RATE")]
    pub up: Option<Rate>,
    /// Queue each way: packets as 1000, bytes as 64kB, codel or unlimited; or down/up [default: 1000]
    #[arg(long, value_parser = value::<PerWay<QueueArg>>, value_name = "QUEUE")]
    pub queue: Option<PerWay<QueueArg>>,
    /// A named link (lan, wlan, cable, lte, 3g, satellite; 3g-0.9, bus and others of `wiretax page`), or a
    /// profile file (TOML); the options above and below change it
    #[arg(long, value_name = "LINK")]
    pub link: Option<String>,
    /// A capacity trace in mahimahi's format, for the way to the server
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace_up: Option<PathBuf>,
    /// A capacity trace for the way back
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace_down: Option<PathBuf>,
    /// Bytes of the longest IP packet
    #[arg(long, default_value_t = 1500, value_name = "BYTES")]
    pub mtu: u32,
    /// Seed of every random draw
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// How frames are carried
    #[arg(long, value_enum, default_value_t = LinkBackend::Auto, value_name = "KIND")]
    pub backend: LinkBackend,
}

/// A node of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Where the program runs.
    Client,
    /// Where `--serve` runs.
    Server,
}
