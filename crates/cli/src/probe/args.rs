//! The options of `wiretax probe`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use conn::probe::Client;
use tls::NamedGroup;
use units::Delay;

use crate::exit::usual_epilogue;
use crate::options::JsonArg;
use crate::reach::ReachArgs;
use crate::value::{named_group, server_name, value};

/// `wiretax probe`.
#[derive(Debug, Args)]
#[command(after_help = usual_epilogue(
    "Examples:
  wiretax probe example.org
  wiretax probe example.org:8443 --repeat 5
  wiretax probe 127.0.0.1:4433 --name test.example --ca ca.pem
  wiretax probe example.org --qlog qlog            what QUIC sent, packet by packet
  wiretax probe mail.example.org --starttls smtp
  wiretax probe example.org --cert client.pem --key client-key.pem
  wiretax probe example.org --proxy http://proxy.example:3128
  wiretax probe old.example.org --client everything
  wiretax probe example.org --group x25519mlkem768,x25519
  wiretax probe example.org --json > from-here.json
  wiretax probe --compare from-here.json from-there.json"
))]
pub struct ProbeArgs {
    /// The server: a name or an address, with a port if it is not 443 (or that of --starttls)
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
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub name: Option<String>,
    /// Trust the certificates in this PEM file in place of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Dangerous: accept any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Write a qlog file (JSON-SEQ) for each QUIC connection
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "compare")]
    pub qlog: Option<PathBuf>,
    /// What the measured connections offer: `small` (X25519, P-256, P-384: one segment), `browser`
    /// (X25519MLKEM768 and older suites too), `everything` (all that OpenSSL has, for old servers)
    #[arg(long, value_parser = value::<Client>, default_value = "small", value_name = "CLIENT")]
    pub client: Client,
    /// The groups that they offer, preferred first, as x25519,p256,p384,p521,x448,ffdhe2048
    /// [default: those of --client]
    #[arg(long, value_parser = named_group, value_delimiter = ',', value_name = "GROUPS")]
    pub group: Vec<NamedGroup>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
    #[command(flatten)]
    pub json: JsonArg,
    #[command(flatten)]
    pub reach: ReachArgs,
}
