//! The command line of `wiretax stacks`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use stacks::{Tool, parse_workload};
use tls_drivers::{Cipher, Contexts, Group, Key, Locks, Version, Wire};

use crate::args::{JsonArg, OutArgs};
use crate::exit::{Exit, epilogue};
use crate::value::value;

/// What the exit status means.
const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Done, "done"),
    (Exit::Usage, "the command line or an input file is wrong"),
    (Exit::Machine, "this machine cannot do it: no library is built"),
    (Exit::Results, "the results could not be written or read"),
    (Exit::Measurement, "nothing could be measured"),
    (Exit::Interrupted, "interrupted: what was measured is kept"),
];

/// `wiretax stacks`.
#[derive(Debug, Args)]
#[command(
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    after_help = epilogue("Examples:
  wiretax stacks                         the default set of libraries: under five minutes
  wiretax stacks --scale quick           the same in a minute
  wiretax stacks --libraries 'openssl-*,boringssl' --out results/openssl
  wiretax stacks --scale full --libraries all          everything: some hours
  wiretax stacks --workload full --threads powers --wire loopback --key rsa-2048
  wiretax stacks --workload full,resume --locks count --connections 100 --libraries openssl-3.0.2
  wiretax stacks --load 20000            machines for 20,000 new connections a second
  wiretax stacks --resume results/openssl

Libraries are drivers: `wiretax drivers list` says which there are, `make drivers` builds the default
set. `go` and `java` are measured over loopback where their toolchains are. A library that crashes,
hangs or lies is reported by name, and the others go on.", &MEANINGS)
)]
pub struct StacksArgs {
    #[command(subcommand)]
    pub command: Option<StacksCommand>,
    /// Libraries: names, patterns such as openssl-*, `default`, `built`, `all`, or the path of a
    /// driver of your own [default: as the plan says]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub libraries: Vec<String>,
    /// The built-in plan, or the scale in the plan file: quick, default (default) or full
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// A plan file (TOML) in place of the built-in one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub plan: Option<PathBuf>,
    /// New connections a second that machines are reckoned for [default: 100000]
    #[arg(long, value_name = "N", value_parser = load)]
    pub load: Option<f64>,
    /// Seed of every random draw [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// The folder of the drivers' sources [default: drivers/ here or beside the program's build]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub drivers: Option<PathBuf>,
    #[command(flatten)]
    pub axes: StacksAxes,
    #[command(flatten)]
    pub out: OutArgs,
    #[command(flatten)]
    pub json: JsonArg,
}

/// What else there is under `wiretax stacks`.
#[derive(Debug, Subcommand)]
pub enum StacksCommand {
    /// HAProxy itself on each library, in the document's two scenarios
    Haproxy(Box<crate::haproxy::HaproxyArgs>),
}

/// Connections that callgrind counts if not told, once: no two differ by much, and it is slow.
const COUNTED: u64 = 10;

/// The axes of the study; any of these replaces the plan by one sweep.
#[derive(Debug, Args)]
#[command(next_help_heading = "Axes (any of these replaces the plan by one sweep)")]
pub struct StacksAxes {
    /// Workloads: full, resume, chain:PROXIES, bulk:BYTES a record, footprint:CONNECTIONS; numbers may
    /// be left out
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = workload)]
    pub workload: Vec<String>,
    /// Threads: numbers, `cores`, `2xcores`, or `powers` (1, 2, 4 ... and the cores)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    pub threads: Vec<String>,
    /// How the bytes go: memory, loopback
    #[arg(value_parser = value::<Wire>, long, value_delimiter = ',', value_name = "WAYS")]
    pub wire: Vec<Wire>,
    /// Versions of TLS: tls1.2, tls1.3
    #[arg(value_parser = value::<Version>, long = "version", alias = "tls", value_delimiter = ',', value_name = "VERSIONS")]
    pub tls: Vec<Version>,
    /// Keys: rsa-2048, rsa-4096, ecdsa-p256
    #[arg(value_parser = value::<Key>, long, value_delimiter = ',', value_name = "KEYS")]
    pub key: Vec<Key>,
    /// Groups: x25519, secp256r1, x25519mlkem768
    #[arg(value_parser = value::<Group>, long, value_delimiter = ',', value_name = "GROUPS")]
    pub group: Vec<Group>,
    /// Record ciphers: aes-128-gcm, aes-256-gcm, chacha20-poly1305
    #[arg(value_parser = value::<Cipher>, long, value_delimiter = ',', value_name = "CIPHERS")]
    pub cipher: Vec<Cipher>,
    /// The client's library: same, reference (one for all, that takes few locks; for go and java the
    /// load generator), or a name
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub client: Vec<String>,
    /// Tickets that the server issues in a handshake of TLS 1.3 [default: 1]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    pub tickets: Vec<u32>,
    /// One context for all threads, or one a thread: shared, per-thread
    #[arg(value_parser = value::<Contexts>, long, value_delimiter = ',', value_name = "KINDS")]
    pub contexts: Vec<Contexts>,
    /// What stands under the locks: pthread, light, count (then nothing is timed)
    #[arg(value_parser = value::<Locks>, long, value_delimiter = ',', value_name = "KINDS")]
    pub locks: Vec<Locks>,
    /// What counts: host (clocks), callgrind (instructions and atomic operations)
    #[arg(long, value_name = "NAME")]
    pub tool: Option<Tool>,
    /// Time of a measurement in milliseconds [default: 500]
    #[arg(long, value_name = "N", conflicts_with = "connections")]
    pub ms: Option<u64>,
    /// Connections of a measurement, a thread, in place of a time [default with callgrind: 10]
    #[arg(long, value_name = "N")]
    pub connections: Option<u64>,
    /// Measurements a point [default: 5, with callgrind 1]
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,
}

fn workload(text: &str) -> Result<String, stacks::UnknownValue> {
    parse_workload(text).map(stacks::workload_name)
}

/// Connections a second: `20000`, `20000/s`.
pub fn load(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse::<f64>();
    number
        .ok()
        .filter(|rate| rate.is_finite() && (1.0..=1e12).contains(rate))
        .ok_or_else(|| "it is not a number of connections a second from 1 to 10^12".to_owned())
}

impl StacksAxes {
    /// Whether any was given.
    pub fn any(&self) -> bool {
        let lists = [
            self.workload.len(),
            self.threads.len(),
            self.wire.len(),
            self.tls.len(),
            self.key.len(),
            self.group.len(),
            self.cipher.len(),
            self.client.len(),
            self.tickets.len(),
            self.contexts.len(),
            self.locks.len(),
        ];
        lists.iter().any(|len| *len > 0)
            || self.tool.is_some()
            || self.ms.is_some()
            || self.connections.is_some()
            || self.repeat.is_some()
    }

    /// Puts what was given into a sweep.
    pub fn overwrite(&self, sweep: &mut stacks::Sweep) {
        fn set<T: Clone>(list: &mut Vec<T>, given: &[T]) {
            if !given.is_empty() {
                *list = given.to_vec();
            }
        }
        set(&mut sweep.workload, &self.workload);
        set(&mut sweep.threads, &self.threads);
        set(&mut sweep.wire, &self.wire);
        set(&mut sweep.version, &self.tls);
        set(&mut sweep.key, &self.key);
        set(&mut sweep.group, &self.group);
        set(&mut sweep.cipher, &self.cipher);
        set(&mut sweep.client, &self.client);
        set(&mut sweep.tickets, &self.tickets);
        set(&mut sweep.contexts, &self.contexts);
        set(&mut sweep.locks, &self.locks);
        sweep.tool = self.tool.unwrap_or(sweep.tool);
        (sweep.ms, sweep.connections) = (self.ms, self.connections);
        if sweep.tool == Tool::Callgrind && self.ms.is_none() {
            sweep.connections = sweep.connections.or(Some(COUNTED));
            sweep.repeat = 1;
        }
        sweep.repeat = self.repeat.unwrap_or(sweep.repeat);
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn instructions_are_counted_over_connections() {
        let swept = |given: &[&str]| {
            let line = ["wiretax", "stacks"].iter().chain(given);
            let matches = crate::args::command().try_get_matches_from(line).unwrap();
            let cli = crate::args::Cli::from_arg_matches(&matches).unwrap();
            let crate::args::Command::Stacks(args) = cli.command else { panic!("it is another") };
            let mut sweep = stacks::Plan::single_sweep("cli");
            args.axes.overwrite(&mut sweep);
            (sweep.ms, sweep.connections, sweep.repeat)
        };
        let callgrind = ["--tool", "callgrind"];
        assert_eq!(swept(&callgrind), (None, Some(COUNTED), 1));
        let told = [&callgrind[..], &["--connections", "3", "--repeat", "2"]].concat();
        assert_eq!(swept(&told), (None, Some(3), 2));
        assert_eq!(swept(&["--tool", "host"]), (None, None, 5));
    }

    #[test]
    fn a_load_is_a_rate() {
        assert_eq!(load("20000"), Ok(20_000.0));
        assert_eq!(load("20000/s"), Ok(20_000.0));
        for wrong in ["0", "-1", "many", "inf", "nan", ""] {
            assert!(load(wrong).is_err(), "{wrong}");
        }
    }
}
