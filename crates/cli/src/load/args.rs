//! `wiretax load`: its part of the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use load::{Suite, Target};
use tls::{Group, Version};
use units::{Delay, Probability};

use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;
use crate::value::{Refused, server_name, value};

/// What the exit status means.
const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Done, "done"),
    (Exit::Found, "every connection or request failed"),
    (Exit::Usage, "the command line is wrong"),
    (Exit::Machine, "this machine cannot do it"),
    (Exit::Results, "the result could not be printed"),
    (Exit::Interrupted, "interrupted: what was measured is printed"),
];

/// `wiretax load`.
#[derive(Debug, Args)]
#[command(after_help = epilogue("Examples:
  wiretax load https://localhost:8443/                       32 connections at once, 10 seconds
  wiretax load https://localhost:8443/ --rate 500 --ramp 5s --duration 30s
                                                             500 starts per second, whatever happens
  wiretax load https://localhost:8443/ --resume 80% --ca ca.pem
  wiretax load https://localhost:8443/ --handshake-only --count 10000 --json
  wiretax load https://test.example/ --connect-to 127.0.0.1:8443 --tls 1.3 --group x25519
  wiretax load https://localhost:8443/ --cert client.pem --key client.key
  wiretax load https://localhost:8443/ --http h2 --streams 20 -c 4 --rate 5000
                                                             5000 requests per second over 4 connections
  wiretax load http://localhost:8080/ --http h2              HTTP/2 without TLS (prior knowledge)

With --rate (an open loop) latency counts from when each connection was due, so that time lost to a
stall of the server is included; what was given up counts as longer than its limit. With --http h2 the
load is made of requests: connections stay open, and --rate, --count and --timeout are of requests.
Failures of some are part of the result. A run in which all fail alike ends after a second.", &MEANINGS))]
pub struct LoadArgs {
    /// The server
    #[arg(value_parser = value::<Target>, value_name = "https://HOST[:PORT][/PATH]", value_hint = ValueHint::Url)]
    pub target: Target,
    #[command(flatten)]
    pub pace: PaceArgs,
    #[command(flatten)]
    pub work: WorkArgs,
    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub route: RouteArgs,
    #[command(flatten)]
    pub json: JsonArg,
}

/// How much load, and for how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct PaceArgs {
    /// Connections at once [default: 32; with --rate at most 1000]
    #[arg(short, long, value_name = "N")]
    pub connections: Option<usize>,
    /// Open loop: start this many connections (with --http h2 requests) per second, whether or not the server
    /// keeps up
    #[arg(short, long, value_name = "N")]
    pub rate: Option<f64>,
    /// Worker threads [default: one per core]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<usize>,
    /// Start no connection after this time [default: 10s, unless --count is given]
    #[arg(value_parser = value::<Delay>, short, long, value_name = "TIME")]
    pub duration: Option<Delay>,
    /// Start at most this many connections (with --http h2 requests)
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<u64>,
    /// Grow to the full load over this time, which does not count in rates and latencies
    #[arg(value_parser = value::<Delay>, long, value_name = "TIME", default_value = "0s")]
    pub ramp: Delay,
    /// Give a connection up after this time; with --http h2 a request, too
    #[arg(value_parser = value::<Delay>, long, value_name = "TIME", default_value = "10s")]
    pub timeout: Delay,
}

/// What each connection does.
#[derive(Debug, Args)]
#[command(next_help_heading = "Each connection")]
pub struct WorkArgs {
    /// Share of connections that resume a session; the others make full handshakes
    #[arg(value_parser = value::<Probability>, long, value_name = "SHARE", default_value = "0%")]
    pub resume: Probability,
    /// HTTP version
    #[arg(long, value_enum, value_name = "VERSION", default_value_t = HttpArg::One)]
    pub http: HttpArg,
    /// Requests at once on each connection, with --http h2 [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: Option<u32>,
    /// Requests on each connection, the last with `Connection: close` [default: 1; with --http h2 no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_connection: Option<u32>,
    /// No request: end each connection after its handshake
    #[arg(long, conflicts_with_all = ["requests_per_connection", "streams"])]
    pub handshake_only: bool,
    /// How connections are closed
    #[arg(long, value_enum, value_name = "HOW", default_value_t = CloseArg::Fin)]
    pub close: CloseArg,
}

/// HTTP versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HttpArg {
    /// HTTP/1.1: one request after the other.
    #[value(name = "1.1", aliases = ["1", "h1"])]
    One,
    /// HTTP/2: many requests at once on connections that stay open.
    #[value(name = "h2", alias = "2")]
    Two,
}

/// How connections are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CloseArg {
    /// At once, by FIN; the port stays in TIME_WAIT unless the server closed first.
    Fin,
    /// At once, by RST (SO_LINGER 0): no TIME_WAIT.
    Reset,
    /// By a close_notify alert and FIN, as RFC 8446 §6.1 requires.
    Notify,
    /// By FIN after the server's, so that the server has the TIME_WAIT.
    Server,
}

/// TLS.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// TLS versions offered [default: 1.3,1.2]
    #[arg(value_parser = value::<Version>, long = "tls", value_delimiter = ',', value_name = "VERSIONS")]
    pub versions: Vec<Version>,
    /// Groups offered, preferred first; the first gets the key share [default: x25519,secp256r1,x25519mlkem768]
    #[arg(value_parser = value::<Group>, long = "group", value_delimiter = ',', value_name = "GROUPS")]
    pub groups: Vec<Group>,
    /// Cipher suites offered, preferred first, by their registered names [default: all, AES-128-GCM first]
    #[arg(value_parser = value::<Suite>, long = "cipher", value_delimiter = ',', value_name = "SUITES")]
    pub suites: Vec<Suite>,
    /// Application protocol offered (ALPN) [default: none; with --http h2 always h2]
    #[arg(long, value_name = "NAME")]
    pub alpn: Option<String>,
    /// The name that the certificate must carry (and SNI), if not HOST
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub name: Option<String>,
    /// Trust the certificates in this PEM file in place of the system's
    // The other name is that of earlier versions.
    #[arg(long, alias = "cacert", value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Dangerous: accept any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Client certificate for servers that ask for one: a PEM file with its chain
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cert: Option<PathBuf>,
    /// Private key of --cert, in PEM [default: from the same file]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    pub key: Option<PathBuf>,
}

/// Where connections go, and from where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Addresses")]
pub struct RouteArgs {
    /// Connect to this address (and port) in place of HOST's
    #[arg(long, visible_alias = "resolve", value_name = "ADDRESS[:PORT]", value_parser = endpoint)]
    pub connect_to: Option<(IpAddr, Option<u16>)>,
    /// Connect from these local addresses in turn, each with its own ports
    #[arg(long, value_delimiter = ',', value_name = "ADDRESSES")]
    pub source: Vec<IpAddr>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// Allow addresses outside of this machine and private networks: only with the owner's consent
    #[arg(long)]
    pub allow_remote: bool,
}

fn endpoint(text: &str) -> Result<(IpAddr, Option<u16>), Refused> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address.ip(), Some(address.port())));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(address) => Ok((address, None)),
        Err(_) => {
            Err(Refused::new("not an address", "write 127.0.0.1, 127.0.0.1:8443 or [::1]:8443"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(endpoint("127.0.0.1").unwrap(), (ip("127.0.0.1"), None));
        assert_eq!(endpoint("127.0.0.1:1").unwrap(), (ip("127.0.0.1"), Some(1)));
        assert_eq!(endpoint("[::1]:2").unwrap(), (ip("::1"), Some(2)));
        assert_eq!(endpoint("::1").unwrap(), (ip("::1"), None));
        assert_eq!(endpoint("[::1]").unwrap(), (ip("::1"), None));
        for wrong in ["", "host", "host:1", "127.0.0.1:x", "[::1"] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
