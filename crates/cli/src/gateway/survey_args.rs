//! The command line of `wiretax gateway survey`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use tcpio::InterfaceAddress;
use units::Delay;

use super::args::listening;
use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;
use crate::value::value;

/// What the exit status means.
const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Done, "done"),
    (Exit::Found, "data did not get through, or nobody answered"),
    (Exit::Usage, "the command line or a file is wrong"),
    (Exit::Machine, "this machine cannot do it: rights, a port in use, no packet filter"),
    (Exit::Results, "a file could not be written"),
    (Exit::Interrupted, "interrupted: results until then are in the file"),
];

fn end_of_help() -> String {
    epilogue(
        "Examples:
  wiretax gateway survey serve --listen 192.0.2.10:443 --listen 192.0.2.10:8443 --redirect
  wiretax gateway survey 192.0.2.10 --port 443,8443 --redirect --network home --out home.jsonl
  wiretax gateway survey merge home.jsonl office.jsonl

Both machines must be yours: the server answers nothing but these surveys. Three ways are tried in
turn: plain TCP, data in the SYN as SSLmTCP sends it, and Fast Open with a cookie.",
        &MEANINGS,
    )
}

/// `wiretax gateway survey`.
#[derive(Debug, Args)]
#[command(
    after_help = end_of_help(),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub struct SurveyArgs {
    /// Other survey commands.
    #[command(subcommand)]
    pub other: Option<SurveyCommand>,
    /// The machine that answers
    #[arg(value_name = "HOST", required = true, value_hint = ValueHint::Hostname)]
    pub host: Option<String>,
    /// Ports to connect to
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_value = "443",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// Bytes of data in the SYN; with 40 bytes of headers in IPv4, 1420 fill a packet of 1500
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "20,512,1024,1400",
          value_parser = clap::value_parser!(u16).range(20..=4096))]
    pub size: Vec<u16>,
    /// Bytes requested in the SYN+ACK; a server sends at most three times what it received
    #[arg(long, value_name = "BYTES", default_value_t = 1024,
          value_parser = clap::value_parser!(u16).range(0..=4096))]
    pub answer: u16,
    /// Connections for each way, port and size
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Give a connection up after this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = value::<Delay>)]
    pub timeout: Delay,
    /// What to call this network in the results
    #[arg(long, value_name = "NAME", default_value = "", help_heading = "Results")]
    pub network: String,
    /// Add a line of JSON for each connection to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArg,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Other survey commands.
#[derive(Debug, Subcommand)]
pub enum SurveyCommand {
    /// Answer the surveys of another machine of yours, until SIGTERM or SIGINT
    #[command(after_help = end_of_help())]
    Serve(SurveyServeArgs),
    /// Put the results of several surveys into one table
    #[command(after_help = end_of_help())]
    Merge(SurveyMergeArgs),
}

/// `wiretax gateway survey serve`.
#[derive(Debug, Args)]
pub struct SurveyServeArgs {
    /// Address to listen on, as 192.0.2.10:443; may be repeated for several ports of one address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening, required = true)]
    pub listen: Vec<SocketAddr>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `wiretax gateway survey merge`.
#[derive(Debug, Args)]
pub struct SurveyMergeArgs {
    /// Files that `survey --out` has written
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// Where packets go, as of the gateway's sides.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where our packets go")]
pub struct PlaceArgs {
    /// The interface towards the other machine [default: by the routes]
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// A TUN device of this name, to which you route the address
    #[arg(long, value_name = "NAME", conflicts_with_all = ["interface", "redirect"])]
    pub tun: Option<String>,
    /// Share this machine's own address (IPv4): only the packets of this survey are taken
    #[arg(long)]
    pub redirect: bool,
    /// An address of its own, as 192.0.2.77/24: one that no machine has
    #[arg(long, value_name = "ADDRESS/PREFIX", value_parser = value::<InterfaceAddress>, conflicts_with = "redirect")]
    pub address: Option<InterfaceAddress>,
    /// The router to other networks [default: the kernel's]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["redirect", "tun"])]
    pub router: Option<IpAddr>,
}
