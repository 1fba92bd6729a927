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
    (Exit::Found, "every connection failed"),
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

With --rate (an open loop) latency counts from when each connection was due, so that time lost to a
stall of the server is included. Failures of some connections are part of the result.", &MEANINGS))]
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
    /// Open loop: start this many connections per second, whether or not the server keeps up
    #[arg(short, long, value_name = "N")]
    pub rate: Option<f64>,
    /// Worker threads [default: one per core]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<usize>,
    /// Start no connection after this time [default: 10s, unless --count is given]
    #[arg(value_parser = value::<Delay>, short, long, value_name = "TIME")]
    pub duration: Option<Delay>,
    /// Start at most this many connections
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<u64>,
    /// Grow to the full load over this time, which does not count in rates and latencies
    #[arg(value_parser = value::<Delay>, long, value_name = "TIME", default_value = "0s")]
    pub ramp: Delay,
    /// Give a connection up after this time
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
    /// Requests on each connection, the last with `Connection: close`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_connection: u32,
    /// No request: end each connection after its handshake
    #[arg(long, conflicts_with = "requests_per_connection")]
    pub handshake_only: bool,
    /// How connections are closed
    #[arg(long, value_enum, value_name = "HOW", default_value_t = CloseArg::Fin)]
    pub close: CloseArg,
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
    /// Application protocol offered (ALPN) [default: none]
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
