//! The gateway's two sides as processes of their own: this program again, with `--gateway` and a side.
//!
//! What they are told is what `wiretax gateway` tells them by default, but for three things: no session is resumed, by
//! the others' proxies neither; all connections come from one host; and SYNs with data have no bound per second, so
//! that every handshake of the profile is carried as it says.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway::{Common, ConnectOptions, Place, ServeOptions};
use lab_test::TestResult;
use sslmtcp::Embedding;
use tcp::KeepAlive;
use tls::{Client, ClientConfig, Identity, Library, Server, ServerConfig, Trust};

use super::site::{CHAIN, FOLDER, KEY, LOCAL, NAME, ORIGIN, ROOT_DER};

/// The first word of a side's command line.
pub const SIDE: &str = "--gateway";
/// The serving side.
pub const SERVE: &str = "serve";
/// The connecting side.
pub const CONNECT: &str = "connect";
/// The last word of one that has [`TIGHT_SEND_MEMORY`], metrics at [`METRICS`], and no patience with a silent peer.
pub const TIGHT: &str = "tight";
/// Bytes.
pub const TIGHT_SEND_MEMORY: usize = 512 << 10;
/// Where its metrics are, on either machine.
pub const METRICS: &str = "127.0.0.1:9464";
/// What a side prints when it is ready.
pub const READY: &str = "the gateway is ready";

/// The serving side's own address, which no kernel has.
pub const ADDRESS: &str = "10.77.1.102:8443";
const SERVE_NETWORK: &str = "10.77.1.102/24";
const CONNECT_NETWORK: &str = "10.77.1.101/24";
/// The interface of the lab's link on either node.
const INTERFACE: &str = "link1";

/// Runs a side if this process is one; to be asked first. It does not return then but at an end that nobody asked for.
pub fn side() -> Option<TestResult> {
    let mut words = std::env::args().skip(1);
    if words.next()? != SIDE {
        return None;
    }
    let (role, profile) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let tight = words.next().is_some_and(|word| word == TIGHT);
    Some(run(&role, &profile, tight))
}

fn run(role: &str, profile: &str, tight: bool) -> TestResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Held: without it the gateway ends.
    let (_ending, ended) = gateway::ending();
    let ready = || println!("{READY}");
    runtime.block_on(async {
        match role {
            SERVE => gateway::serve(serve_options(tight)?, ended, ready).await?,
            _ => gateway::connect(connect_options(profile, tight)?, ended, ready).await?,
        };
        Ok(())
    })
}

fn common(network: &str, tight: bool) -> TestResult<Common> {
    let place = Place::Interface { name: Some(INTERFACE.to_owned()) };
    let address = Some(network.parse()?);
    let usual = Common { address, max_connections: 8192, ..Common::new(place) };
    if !tight {
        return Ok(usual);
    }
    // Longer than a busy machine's pauses.
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(2), interval: Duration::from_millis(500), probes: 4 };
    let metrics = Some(METRICS.parse()?);
    Ok(Common { send_memory: TIGHT_SEND_MEMORY, keep_alive, metrics, ..usual })
}

fn file(name: &str) -> TestResult<Vec<u8>> {
    Ok(fs::read(Path::new(FOLDER).join(name))?)
}

fn serve_options(tight: bool) -> TestResult<ServeOptions> {
    let identity = Arc::new(Identity::from_pem(&file(CHAIN)?, &file(KEY)?)?);
    let config = ServerConfig { tickets: false, ..ServerConfig::new(Library::Rustls, identity) };
    Ok(ServeOptions {
        common: Common { syn_data_rate: 1_000_000, ..common(SERVE_NETWORK, tight)? },
        listen: ADDRESS.parse()?,
        to: ORIGIN.parse()?,
        allowed: Vec::new(),
        max_per_source: 8192,
        tls: Server::new(&config)?,
        proxy_protocol: false,
    })
}

fn connect_options(profile: &str, tight: bool) -> TestResult<ConnectOptions> {
    let trust = Trust::Roots(vec![file(ROOT_DER)?]);
    Ok(ConnectOptions {
        common: common(CONNECT_NETWORK, tight)?,
        listen: LOCAL.parse()?,
        to: ADDRESS.parse()?,
        tls: Client::new(&ClientConfig::new(Library::Rustls, NAME, trust))?,
        embedding: profile.parse::<Embedding>()?,
        first_bytes: Duration::from_millis(10),
    })
}
