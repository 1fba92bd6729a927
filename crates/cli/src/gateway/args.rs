//! The command line of `wiretax gateway`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use sslmtcp::Embedding;
use tcpio::InterfaceAddress;
use units::{Bytes, Delay};

pub use super::survey_args::SurveyArgs;
use crate::exit::Exit;
use crate::value::{Refused, server_name, value};
/// What the exit status of a gateway means.
const MEANINGS: [(Exit, &str); 4] = [
    (Exit::Done, "ended as requested"),
    (Exit::Usage, "the command line or a file is wrong"),
    (Exit::Machine, "this machine cannot do it: rights, a port in use, no packet filter"),
    (Exit::Interrupted, "ended at once, after a second signal"),
];

/// How a gateway ends, below the examples of its help.
fn epilogue(text: &str) -> String {
    let signals = "SIGTERM or SIGINT: accepts no new connections, and gives the open ones the time of --drain; \
                   a second signal ends at once.";
    crate::exit::epilogue(&format!("{text}\n\n{signals}"), &MEANINGS)
}

/// `wiretax gateway`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = epilogue(
        "Examples:
  wiretax gateway serve --listen 192.0.2.10:443 --to 127.0.0.1:80 \\
      --certificate chain.pem --key key.pem --redirect
  wiretax gateway connect --listen 127.0.0.1:8080 --to example.org:443 --redirect
  curl http://127.0.0.1:8080/
  wiretax gateway survey 192.0.2.10 --redirect"
    )
)]
pub struct GatewayArgs {
    /// Which side to run.
    #[command(subcommand)]
    pub side: Side,
}

/// The two sides.
#[derive(Debug, Subcommand)]
pub enum Side {
    /// Terminate SSLmTCP and ordinary TLS in front of an unmodified server
    #[command(after_help = epilogue(
        "Examples:
  wiretax gateway serve --listen 192.0.2.10:443 --to 127.0.0.1:80 \\
      --certificate chain.pem --key key.pem                 an address that no machine has
  wiretax gateway serve ... --redirect                      one port of this machine's address
  wiretax gateway serve ... --redirect --metrics 127.0.0.1:9464"
    ))]
    Serve(Box<ServeArgs>),
    /// Carry the connections of unmodified programs over SSLmTCP
    #[command(after_help = epilogue(
        "Examples:
  wiretax gateway connect --listen 127.0.0.1:8080 --to example.org:443 --redirect
  wiretax gateway connect --listen 127.0.0.1:8080 --to 192.0.2.10:443 --name example.org \\
      --ca roots.pem --interface eth0 --address 192.0.2.77/24
  curl http://127.0.0.1:8080/"
    ))]
    Connect(Box<ConnectArgs>),
    /// Find out whether data in SYN and SYN+ACK get through a path of yours
    Survey(Box<SurveyArgs>),
}

/// `wiretax gateway serve`.
#[derive(Debug, Args)]
#[command(override_usage = "wiretax gateway serve [OPTIONS] --listen <ADDRESS:PORT> \\
       --to <HOST:PORT> --certificate <FILE> --key <FILE>")]
pub struct ServeArgs {
    /// Address to listen on, as 192.0.2.10:443: one of the network that no machine has, or with
    /// --redirect this machine's
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening)]
    pub listen: SocketAddr,
    /// The unmodified server, plaintext, as 127.0.0.1:80
    #[arg(long, value_name = "HOST:PORT", value_hint = ValueHint::Hostname)]
    pub to: String,
    /// The certificate and its intermediates (PEM, the server's own first)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub certificate: PathBuf,
    /// The certificate's private key (PEM), not readable by everyone
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: PathBuf,
    /// Accept requests as early data in the SYN, once per ticket; read about replay in
    /// docs/gateway.md first
    #[arg(long, conflicts_with = "paper")]
    pub early_data: bool,
    /// Serve the profile `paper` too: TLS 1.2 with RSA key exchange, which has no forward secrecy
    #[arg(long)]
    pub paper: bool,
    /// Begin each connection to the server with a line that names the peer (PROXY protocol, v1)
    #[arg(long)]
    pub proxy_protocol: bool,
    /// With --redirect: take packets from this network only, as 198.51.100.0/24; may be repeated
    /// [default: from anywhere]
    #[arg(
        value_parser = value::<InterfaceAddress>, long,
        value_name = "NET",
        requires = "redirect",
        help_heading = "Where our packets go"
    )]
    pub allow: Vec<InterfaceAddress>,
    /// Maximum number of connections at once from one IPv4 address, or one IPv6 /64 [default: a
    /// quarter of --max-connections]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000), value_name = "N", help_heading = "Running")]
    pub max_per_source: Option<u32>,
    /// SYNs with data accepted per second (their sender may be forged); further ones are answered
    /// like SYNs without data, which takes one round trip more
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000), value_name = "N", help_heading = "Running")]
    pub syn_data_rate: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `wiretax gateway connect`.
#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// Where programs connect to, as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub listen: SocketAddr,
    /// The other gateway, or any server of TLS 1.3
    #[arg(long, value_name = "HOST:PORT", value_hint = ValueHint::Hostname)]
    pub to: String,
    /// The name that the certificate must carry, if not the host of --to
    // The other name is that of earlier versions.
    #[arg(long, alias = "server-name", value_name = "NAME", value_parser = server_name)]
    pub name: Option<String>,
    /// Trust the certificates in this PEM file in place of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Dangerous: accept any certificate
    #[arg(long)]
    pub insecure: bool,
    /// How the handshake is carried: tls13, 0rtt (safe requests as early data, which can be
    /// replayed), paper, or none (after TCP's)
    #[arg(value_parser = value::<Embedding>, long, default_value = "tls13", value_name = "NAME")]
    pub profile: Embedding,
    /// With 0rtt: how long to wait for a program's first request
    #[arg(value_parser = value::<Delay>, long, default_value = "10ms", value_name = "TIME")]
    pub first_bytes_wait: Delay,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What both sides have.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// The interface towards the peers [default: by the routes]
    #[arg(long, value_name = "NAME", help_heading = "Where our packets go")]
    pub interface: Option<String>,
    /// A TUN device of this name, to which you route the gateway's address
    #[arg(long, value_name = "NAME", conflicts_with_all = ["interface", "redirect"], help_heading = "Where our packets go")]
    pub tun: Option<String>,
    /// Share this machine's own address (IPv4): only the packets of this service are taken from
    /// the kernel; they bypass this machine's firewall
    #[arg(long, help_heading = "Where our packets go")]
    pub redirect: bool,
    /// An address for the gateway, as 192.0.2.77/24: one that no machine has
    #[arg(
        value_parser = value::<InterfaceAddress>, long,
        value_name = "ADDRESS/PREFIX",
        conflicts_with = "redirect",
        help_heading = "Where our packets go"
    )]
    pub address: Option<InterfaceAddress>,
    /// The router to other networks [default: the kernel's]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["redirect", "tun"], help_heading = "Where our packets go")]
    pub router: Option<IpAddr>,
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, help_heading = "Running")]
    pub metrics: Option<SocketAddr>,
    /// Accept connections from other machines on --metrics, and on the --listen of `connect`
    #[arg(long, help_heading = "Running")]
    pub allow_remote: bool,
    /// Maximum number of connections at once
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000), value_name = "N", help_heading = "Running")]
    pub max_connections: u32,
    /// How long open connections may continue after SIGTERM
    #[arg(value_parser = value::<Delay>, long, default_value = "30s", value_name = "TIME", help_heading = "Running")]
    pub drain: Delay,
    /// Time limit for a handshake
    #[arg(value_parser = value::<Delay>, long, default_value = "10s", value_name = "TIME", help_heading = "Running")]
    pub handshake_timeout: Delay,
    /// Close a connection idle for this long (at the latest after twice this)
    #[arg(value_parser = value::<Delay>, long, default_value = "600s", value_name = "TIME", help_heading = "Running")]
    pub idle_timeout: Delay,
    /// Memory of all connections together for data to send, beside 64 KiB of each
    #[arg(value_parser = value::<Bytes>, long, default_value = "256MiB", value_name = "SIZE", help_heading = "Running")]
    pub send_memory: Bytes,
    /// Memory of all connections together for data received and not read yet, beside 128 KiB of each
    #[arg(value_parser = value::<Bytes>, long, default_value = "256MiB", value_name = "SIZE", help_heading = "Running")]
    pub receive_memory: Bytes,
    /// Log lines as JSON
    #[arg(long, help_heading = "Running")]
    pub json: bool,
}

pub(super) fn address(text: &str) -> Result<SocketAddr, Refused> {
    let remedy = "write 192.0.2.10:443 or [2001:db8::1]:443";
    text.parse().map_err(|_| Refused::new("not an address and a port", remedy))
}

/// An address with a port that peers can know.
pub(super) fn listening(text: &str) -> Result<SocketAddr, Refused> {
    let address = address(text)?;
    if address.port() == 0 {
        return Err(Refused::new("peers cannot connect to port 0", "write one from 1 to 65535"));
    }
    Ok(address)
}
