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
  wiretax sequence load.pcapng                      with its secrets in it, as --keep-captures keeps it
  wiretax sequence trace.pcap --key-log keys.txt
  wiretax sequence trace.pcap --key-log keys.txt --connection 2 --all | less
  wiretax sequence load.pcapng --json | jq '.connections[].server_sends'

First what can be read of windows: which are announced, when they are given back, how near one was to
being shut. Then a ladder of the frames of the connection with most data. Windows are those at the place
of the capture: captured at a sender they are its own. SPDY/3, SPDY/3.1 and HTTP/2 over TCP are read, in
clear and in TLS 1.3 and 1.2 (suites with AEAD) whose secrets are given; HTTP/3 is not.", &MEANINGS))]
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
    /// Every connection and every frame, not what fits a screen
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub json: JsonArg,
}
