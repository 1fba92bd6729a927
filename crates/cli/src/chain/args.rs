//! The options of `wiretax chain`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flight::TcpWindow;
use tls::Group;
use units::Delay;

use super::made::Recipe;
use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;
use crate::reach::ReachArgs;
use crate::value::{server_name, value};

/// What the exit status means.
const MEANINGS: [(Exit, &str); 7] = [
    (Exit::Done, "done"),
    (Exit::Found, "the server cannot be reached, or shows no certificate"),
    (Exit::Usage, "the command line or a file is wrong"),
    (Exit::Machine, "this machine cannot do it (`wiretax doctor` says what is missing)"),
    (Exit::Results, "the result could not be written"),
    (Exit::Measurement, "the measurement failed"),
    (Exit::Interrupted, "interrupted: nothing is printed"),
];

/// `wiretax chain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = epilogue("Examples:
  wiretax chain fullchain.pem --rtt 80ms
  wiretax chain --server example.org --save chain.pem
  wiretax chain --server mail.example.org --starttls smtp
  wiretax chain chain.pem --make ml-dsa-44,ml-dsa-65,ml-dsa-87 --measure
  wiretax chain chain.pem --make ml-dsa-65/slh-dsa-sha2-128s --group x25519mlkem768 --json

No private key is needed: only sizes matter, and --measure serves the file's own certificates in
the lab with signatures of the right length. Chains of --make have keys: they are served
and verified.", &MEANINGS))]
pub struct ChainArgs {
    /// Files (PEM, DER, PKCS #7), each with the chain that a server sends, leaf first
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath,
          required_unless_present_any = ["make", "server"])]
    pub files: Vec<PathBuf>,
    /// Take the chain that this server sends, HOST or HOST:PORT: one connection, without a request (more
    /// if a browser's hello fails)
    #[arg(long, value_name = "HOST", value_hint = ValueHint::Hostname, conflicts_with = "measure")]
    pub server: Option<String>,
    /// Write the server's chain to this file (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "server")]
    pub save: Option<PathBuf>,
    /// Chains to make for comparison: ecdsa-p256, rsa-2048, rsa-4096, ml-dsa-44, -65 or -87; after a
    /// slash the key of the issuers, as ml-dsa-44/slh-dsa-sha2-128s
    #[arg(long, value_parser = value::<Recipe>, value_name = "KEY", value_delimiter = ',')]
    pub make: Vec<Recipe>,
    /// Number of certificates in a chain of --make
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=10))]
    pub length: u8,
    /// Your users' round-trip times
    #[arg(long, value_parser = value::<Delay>, value_name = "TIME", value_delimiter = ',',
          default_value = "20ms,80ms", help_heading = "Path")]
    pub rtt: Vec<Delay>,
    /// Segments that the server's TCP may send at first (Linux: initcwnd)
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Path",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub initial_window: u16,
    /// Bytes of payload in a full segment: 1448 at an MTU of 1500 with timestamps
    #[arg(long, default_value_t = 1448, value_name = "BYTES", help_heading = "Path",
          value_parser = clap::value_parser!(u16).range(88..=65495))]
    pub mss: u16,
    /// The key exchange; the hybrid one also sends an X25519 share, as browsers do
    #[arg(long, value_parser = value::<Group>, default_value = "x25519", value_name = "GROUP",
          help_heading = "Path")]
    pub group: Group,
    /// Verify the chain against these roots only (PEM) [default: the system's]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Certificates")]
    pub ca: Option<PathBuf>,
    /// The name that the leaf must carry [default: the host of --server, else the first name in it]
    #[arg(long, value_name = "NAME", value_parser = server_name, help_heading = "Certificates")]
    pub name: Option<String>,
    /// Also serve the chains in the lab, and count bytes and round trips there (about 10 seconds)
    #[arg(long, help_heading = "Lab")]
    pub measure: bool,
    #[command(flatten)]
    pub json: JsonArg,
    #[command(flatten)]
    pub reach: ReachArgs,
}

impl ChainArgs {
    /// What the server's TCP may send at first.
    pub fn window(&self) -> TcpWindow {
        TcpWindow { initial: self.initial_window.into(), segment: self.mss.into() }
    }
}
