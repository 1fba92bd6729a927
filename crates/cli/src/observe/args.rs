//! `wiretax observe`: its part of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use export::{Addresses, TimeRange};
use units::Delay;

use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;
use crate::value::{Refused, value};

/// What the exit status means.
const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Done, "done; a live capture ended by Ctrl-C too"),
    (Exit::Usage, "the command line or an input file is wrong"),
    (Exit::Machine, "this machine cannot do it (`wiretax doctor` says what is missing)"),
    (Exit::Results, "the results could not be written"),
    (Exit::Measurement, "nothing was read"),
    (Exit::Interrupted, "interrupted while reading files: what was read is printed"),
];

/// `wiretax observe`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = epilogue("Examples:
  wiretax observe trace.pcapng                  how long clients took, by TLS version
  wiretax observe up.pcap.gz down.pcap.zst --html report.html
  tcpdump -w - 'port 443' | wiretax observe -
  wiretax observe trace.pcap --json | jq 'select(.class == \"failed\")'
  sudo wiretax observe --interface eth0 --port 443 --duration 1h --prometheus 127.0.0.1:9464
  sudo wiretax observe --interface eth0 --parquet records --flush 10s
  wiretax observe trace.pcap --rtt-out clients.txt && wiretax handshake --clients clients.txt
  wiretax observe trace.pcap --parquet records && wiretax observe query records names
  wiretax observe lab                           how well observe reads captures with known answers

Nothing is decrypted, unless --key-log gives the keys. In TLS 1.3 the end of the handshake is
inferred from the sizes and order of encrypted records; uncertain connections are counted separately
(studies/observe/README.md says which).", &MEANINGS)
)]
pub struct ObserveArgs {
    /// Capture files: pcap or pcapng, also compressed by gzip or zstd; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "interface")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub picture: PictureArgs,
    #[command(flatten)]
    pub results: ResultArgs,
    #[command(flatten)]
    pub json: JsonArg,
    #[command(subcommand)]
    pub command: Option<ObserveCommand>,
}

/// Other commands on records.
#[derive(Debug, Subcommand)]
pub enum ObserveCommand {
    /// Ask the records of --parquet a question in SQL
    Query(QueryArgs),
    /// How long session tickets should live, from the records of clients that came back
    Tickets(TicketArgs),
}

/// A live capture.
#[derive(Debug, Args)]
#[command(next_help_heading = "Live capture")]
pub struct LiveArgs {
    /// Capture on this interface; may be given several times
    #[arg(short, long, value_name = "NAME")]
    pub interface: Vec<String>,
    /// Only these ports, TCP and UDP [default: all]; of a file: `tcpdump -r FILE -w - 'port 443' |
    /// wiretax observe -`
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PORTS",
        requires = "interface",
        conflicts_with = "files"
    )]
    pub port: Vec<u16>,
    /// Take frames that are for other hosts too
    #[arg(long, requires = "interface", conflicts_with = "files")]
    pub promiscuous: bool,
    /// Capture buffer per interface and thread, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=1024), requires = "interface", conflicts_with = "files")]
    pub ring: u32,
    /// End after this time [default: at Ctrl-C]
    #[arg(value_parser = value::<Delay>, long, value_name = "TIME", requires = "interface", conflicts_with = "files")]
    pub duration: Option<Delay>,
    /// Write the records at this interval: a kill loses no more. Each writes files of its own with
    /// --parquet [default: 5min; with --json every second]
    #[arg(value_parser = flush, long, value_name = "TIME", requires = "interface", conflicts_with = "files")]
    pub flush: Option<Delay>,
}

/// `wiretax observe tickets`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wiretax observe tickets records               what --parquet wrote
  wiretax observe tickets monday.json tuesday.json
  wiretax observe tickets records --time 2026-11-16..2026-11-23 --json

Simulates when each returning client's ticket would have been accepted, by ticket lifetime and by
how often the keys change. Many clients may share one address, so hits are an upper bound.")]
pub struct TicketArgs {
    /// Records: folders of --parquet, or files of --json, in order of time
    #[arg(value_name = "RECORDS", required = true, value_hint = ValueHint::AnyPath)]
    pub records: Vec<PathBuf>,
    /// Only records in this time range; either end may be omitted
    #[arg(long, value_parser = value::<TimeRange>, value_name = "A..B")]
    pub time: Option<TimeRange>,
    #[command(flatten)]
    pub json: JsonArg,
}

/// How frames become records.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadingArgs {
    /// Keys of the sessions, as programs write them to SSLKEYLOGFILE: checks the rule
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_log: Option<PathBuf>,
    /// Threads. Files give the same records on any number [default: one per processor]; interfaces
    /// split their flows among them (PACKET_FANOUT) [default: 1]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Connections followed at once; above that the oldest is dropped and counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = connections)]
    pub max_connections: usize,
}

/// What is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is shown")]
pub struct PictureArgs {
    /// Width of the distributions' bins
    #[arg(value_parser = value::<Delay>, long, value_name = "TIME", default_value = "10ms")]
    pub bin: Delay,
    /// Client networks: prefix lengths for IPv4 and IPv6
    #[arg(long, value_name = "V4,V6", default_value = "24,48", value_parser = prefixes)]
    pub prefix: (u8, u8),
    /// Also show how long session tickets should live, from clients that came back
    #[arg(long, conflicts_with = "json")]
    pub tickets: bool,
    /// Seed of every random draw
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Write the report to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write the records as Parquet, one folder per hour
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub parquet: Option<PathBuf>,
    /// Add the records of captures that --parquet already has
    #[arg(long, requires = "parquet")]
    pub again: bool,
    /// Serve histograms to Prometheus at this address, as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR")]
    pub prometheus: Option<SocketAddr>,
    /// Accept connections from other machines on --prometheus
    #[arg(long, requires = "prometheus")]
    pub allow_remote: bool,
    /// Write the clients' round-trip times, for `wiretax handshake --clients`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rtt_out: Option<PathBuf>,
    /// Hide addresses in all output: none, truncate, truncate:24/48, or hash (with a key; common
    /// prefixes stay common). Records of one client can still be linked: by ports, times, JA3 and
    /// JA4, by its hash, and by host names unless --anonymise-names is given
    #[arg(value_parser = value::<Addresses>, long, value_name = "HOW", default_value = "none", num_args = 0..=1, default_missing_value = "truncate", require_equals = true)]
    pub anonymise: Addresses,
    /// Hide host names too: replace them by tokens made with the key
    #[arg(long)]
    pub anonymise_names: bool,
    /// The key: 64 hexadecimal digits; without it a random key is used and not kept. Runs with the
    /// same key can be linked with each other
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub anonymise_key: Option<PathBuf>,
}

/// `wiretax observe query`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wiretax observe query records                 the standard questions
  wiretax observe query records names
  wiretax observe query records \"select sni, count(*) from connections group by sni\"
  wiretax observe query records names --json")]
pub struct QueryArgs {
    /// The folder that --parquet wrote
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub records: PathBuf,
    /// A standard question's name, or SQL over the tables `connections` and `endings`
    #[arg(value_name = "QUESTION|SQL")]
    pub question: Option<String>,
    #[command(flatten)]
    pub json: JsonArg,
}

fn connections(text: &str) -> Result<usize, Refused> {
    let wrong = || Refused::new("expected an integer of at least 1", "try 1000000");
    text.parse().ok().filter(|count| *count >= 1).ok_or_else(wrong)
}

/// The records' interval: one that does not fill a disk with small files.
fn flush(text: &str) -> Result<Delay, Refused> {
    let interval = value::<Delay>(text)?;
    let least = Delay::from(std::time::Duration::from_secs(1));
    let wrong = || Refused::new("records are written at most once a second", "try 10s");
    Some(interval).filter(|interval| *interval >= least).ok_or_else(wrong)
}

/// More would only share the frames out ever more finely.
const MAX_THREADS: usize = 64;

fn threads(text: &str) -> Result<usize, Refused> {
    let wrong = || Refused::new("expected an integer from 1 to 64", "try 2");
    text.parse().ok().filter(|count| (1..=MAX_THREADS).contains(count)).ok_or_else(wrong)
}

fn prefixes(text: &str) -> Result<(u8, u8), Refused> {
    let pair = text
        .split_once(',')
        .and_then(|(v4, v6)| Some((v4.trim().parse().ok()?, v6.trim().parse().ok()?)));
    let pair = pair.filter(|(v4, v6)| *v4 <= 32 && *v6 <= 128);
    pair.ok_or_else(|| Refused::new("expected a pair like 24,48", "give 32 and 128 at most"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_pairs_within_bounds() {
        assert_eq!(prefixes("16,32").unwrap(), (16, 32));
        for wrong in ["", "24", "33,48", "24,129", "a,b", "24,48,1"] {
            assert!(prefixes(wrong).is_err(), "{wrong}");
        }
        assert!(connections("0").is_err() && connections("-1").is_err());
        assert!(flush("10s").is_ok() && flush("999ms").is_err() && flush("0").is_err());
        assert!(threads("0").is_err() && threads("65").is_err() && threads("2").is_ok());
    }
}
