//! The options of `wiretax ech`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use units::{Delay, Probability};

use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;
use crate::value::{dns_name, value};

/// What the exit status means.
const MEANINGS: [(Exit, &str); 7] = [
    (Exit::Done, "done"),
    (Exit::Found, "the name server does not answer, or not so that it can be read"),
    (Exit::Usage, "the command line is wrong"),
    (Exit::Machine, "this machine cannot do it (`wiretax doctor` says what is missing)"),
    (Exit::Results, "the result could not be written"),
    (Exit::Measurement, "the measurement failed"),
    (Exit::Interrupted, "interrupted: nothing is printed"),
];

/// The port of DNS.
const DNS: u16 = 53;

/// `wiretax ech`.
#[derive(Debug, Clone, Args)]
#[command(after_help = epilogue("Examples:
  wiretax ech --rtt 80ms
  wiretax ech example.org --rtt 20ms,80ms --retries 1%
  wiretax ech example.org --dns-server 192.0.2.1 --json
  wiretax ech --library openssl-4.0.3,boringssl,awslc-5.12.0

Handshakes are made in memory and counted: clients are rustls and AWS-LC, the server is AWS-LC's.
With --library there are more, and each client meets each server: `wiretax drivers build NAME` first.
With HOST one question each for A, AAAA and HTTPS goes to the name server, nothing to the host.", &MEANINGS))]
pub struct EchArgs {
    /// Ask for this name's HTTPS record: whether it has ECH, and how much later than the address it comes
    #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub host: Option<String>,
    /// Your users' round-trip times
    #[arg(long, value_parser = value::<Delay>, value_name = "TIME", value_delimiter = ',',
          default_value = "20ms,80ms", help_heading = "Path")]
    pub rtt: Vec<Delay>,
    /// How many of the connections meet a key that the server has no more, and must begin again
    #[arg(long, value_parser = value::<Probability>, value_name = "SHARE", default_value = "1%",
          help_heading = "Path")]
    pub retries: Probability,
    /// Bytes of payload in a full segment: 1448 at an MTU of 1500 with timestamps
    #[arg(long, default_value_t = 1448, value_name = "BYTES", help_heading = "Path",
          value_parser = clap::value_parser!(u16).range(88..=65495))]
    pub mss: u16,
    /// Names to hide
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = dns_name,
        help_heading = "Names",
        default_value = "a.example,www.example.org,a-name-of-forty-letters-and-more.example.org"
    )]
    pub name: Vec<String>,
    /// The name that hellos show outside
    #[arg(long, value_name = "NAME", value_parser = dns_name, default_value = "public.example",
          help_heading = "Names")]
    pub public_name: String,
    /// Count these libraries too, each as client and as server: names of built drivers, `built` for all that have ECH,
    /// or your own
    #[arg(
        long,
        alias = "libraries",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Libraries"
    )]
    pub library: Vec<String>,
    /// The folder of the drivers' sources [default: drivers/ beside the program's build or in its source tree]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "library",
          help_heading = "Libraries")]
    pub drivers: Option<PathBuf>,
    /// The name server, an address with a port if it is not 53; else the system's first
    #[arg(long, value_parser = name_server, value_name = "ADDRESS", requires = "host",
          help_heading = "DNS")]
    pub dns_server: Option<SocketAddr>,
    /// Wait so long for the name server's answers
    #[arg(long, value_parser = value::<Delay>, value_name = "TIME", default_value = "5s",
          help_heading = "DNS")]
    pub timeout: Delay,
    #[command(flatten)]
    pub json: JsonArg,
}

fn name_server(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse::<IpAddr>().map(|address| (address, DNS).into());
    address.or_else(|_| text.parse()).map_err(|_| {
        format!("`{text}` is no address: write 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:53")
    })
}

#[cfg(test)]
pub(super) mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: EchArgs,
    }

    pub(in crate::ech) fn args(given: &[&str]) -> EchArgs {
        Line::parse_from([&["ech"], given].concat()).args
    }

    #[test]
    fn libraries_are_a_list() {
        assert!(args(&[]).library.is_empty());
        let given = args(&["--library", "a,b", "--library", "built", "--drivers", "d"]);
        assert_eq!(given.library, ["a", "b", "built"]);
        assert!(Line::try_parse_from(["ech", "--drivers", "d"]).is_err());
    }
}
