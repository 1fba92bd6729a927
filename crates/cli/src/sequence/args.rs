//! `wiretax sequence`: its part of the command line.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;

/// What the exit status means.
const MEANINGS: [(Exit, &str); 4] = [
    (Exit::Done, "done"),
    (Exit::Usage, "the command line or an input file is wrong, or nothing in it could be read"),
    (Exit::Results, "the result could not be written"),
    (Exit::Interrupted, "interrupted: nothing is printed"),
];

/// `wiretax sequence`.
#[derive(Debug, Args)]
#[command(after_help = epilogue("Examples:
  wiretax sequence load.pcapng                      with its secrets, as --keep-captures writes it
  wiretax sequence trace.pcap --key-log keys.txt
  wiretax sequence trace.pcap --key-log keys.txt --connection 2 --all | less
  wiretax sequence load.pcapng --json | jq '.connections[].server_sends'

First it summarises the windows: which are announced, when they are given back, how close one came
to being full. Then it draws the frames of the connection with most data as a sequence chart.
Windows are as seen where the capture was made: at a sender they are its own. It reads SPDY/3,
SPDY/3.1 and HTTP/2 over TCP, unencrypted (upgrades from HTTP/1.1 too) or in TLS 1.3 and 1.2 (AEAD
suites) whose secrets are given, but not HTTP/3.", &MEANINGS))]
pub struct SequenceArgs {
    /// Capture files: pcap or pcapng, also gzip or zstd; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// TLS secrets, as programs write them to SSLKEYLOGFILE; those in a pcapng are read too
    #[arg(long, visible_alias = "keys", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_log: Option<PathBuf>,
    /// Only this connection, by its number
    #[arg(long, value_name = "N")]
    pub connection: Option<usize>,
    /// Show every connection and every frame, not only what fits a screen
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub json: JsonArg,
}
