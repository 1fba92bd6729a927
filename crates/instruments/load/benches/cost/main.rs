//! What a connection costs the load generator beside what its TLS library takes alone: `cargo bench
//! --workspace --bench cost [-- --rounds N --connections N]`.
//!
//! In turns (A B C D A B C D …), each a full TLS 1.3 handshake with a request and its answer, 16 at a time,
//! of the client's thread alone:
//!
//! - the library in memory, as the generator configures it: a chain that was verified is known again;
//! - the library in memory as it comes: every chain is verified anew;
//! - sockets without TLS: the same bytes by the fewest system calls that nonblocking sockets take;
//! - the generator, over loopback.
//!
//! Without `--bench` (as `cargo test --benches` runs it): shortened.
#![allow(missing_docs)]

mod memory;
mod server;
mod sockets;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::{Control, Options};
use packet::thread::{allowed_cpus, pin};
use rustls::ClientConfig;
use tls::{Group, Identity, KeyType, Library, ServerConfig, Trust, Version};

use crate::memory::Memory;
use crate::server::Served;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The name in the certificate.
const NAME: &str = "server.test";
/// Connections at a time.
pub const CONCURRENT: usize = 16;
/// What the server answers.
pub const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// What the command line asks for.
struct Arguments {
    rounds: usize,
    connections: u64,
}

fn arguments() -> Result<Arguments> {
    let mut read = Arguments { rounds: 1, connections: 32 };
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--bench") {
        read = Arguments { rounds: 7, connections: 3000 };
    }
    for (name, value) in words.iter().zip(words.iter().skip(1)) {
        match name.as_str() {
            "--rounds" => read.rounds = value.parse()?,
            "--connections" => read.connections = value.parse()?,
            _ => {}
        }
    }
    Ok(read)
}

fn options(identity: &Identity, address: SocketAddr, connections: u64) -> Result<Options> {
    let mut options = Options::new(address, NAME);
    options.get(NAME, "/", 1);
    options.trust = Trust::Roots(identity.roots());
    options.versions = vec![Version::Tls13];
    options.groups = vec![Group::X25519];
    options.suites = vec!["TLS_AES_128_GCM_SHA256".parse()?];
    options.threads = 1;
    options.connections = CONCURRENT;
    options.duration = None;
    options.count = Some(connections);
    options.timeout = Duration::from_secs(60);
    Ok(options)
}

/// The CPU time of the generator's thread per connection, in microseconds.
fn generator(identity: &Identity, address: SocketAddr, connections: u64) -> Result<f64> {
    let options = options(identity, address, connections)?;
    let report = load::run(&options, &Control::default())?;
    if report.completed != connections {
        return Err(format!("{} of {connections} completed: {report:?}", report.completed).into());
    }
    report.cpu.us_per_connection.ok_or_else(|| "the generator has no CPU time".into())
}

/// The library's own verifier in place of the generator's.
fn as_it_comes(identity: &Identity, generators: &ClientConfig) -> Result<Arc<ClientConfig>> {
    let mut roots = rustls::RootCertStore::empty();
    for root in identity.roots() {
        roots.add(root.into())?;
    }
    let provider = Arc::clone(generators.crypto_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

fn main() -> Result<()> {
    let Arguments { rounds, connections } = arguments()?;
    let key = KeyType::EcdsaP256;
    let identity = Arc::new(Identity::generate(key, 2, &[NAME])?);
    let mut config = ServerConfig::new(Library::Rustls, Arc::clone(&identity));
    config.tickets = false;
    let server = Arc::new(tls::Server::new(&config)?);

    // Servers on one processor, what is measured on another, where there are two.
    let cpus = allowed_cpus();
    if let (Some(first), 2..) = (cpus.first(), cpus.len()) {
        pin(*first)?;
    }
    let of_tls = Served::tls(&server)?;
    let options = options(&identity, of_tls.address, 1)?;
    let request = options.last_request.clone().unwrap_or_default();
    let generators = load::client_config(&options)?;
    let known = Memory::new(Arc::clone(&generators), Arc::clone(&server), NAME, request.clone())?;
    let anew = as_it_comes(&identity, &generators)?;
    let anew = Memory::new(anew, Arc::clone(&server), NAME, request)?;
    let (_, lengths) = known.run(1)?;
    let of_bytes = Served::bytes(lengths)?;
    if let (Some(last), 2..) = (cpus.last(), cpus.len()) {
        pin(*last)?;
    }

    let names = ["library", "library, chain verified anew", "sockets", "generator"];
    let mut values: [Vec<f64>; 4] = Default::default();
    for round in 0..=rounds {
        let measured = [
            known.run(connections)?.0,
            anew.run(connections)?.0,
            sockets::run(of_bytes.address, lengths, connections)?,
            generator(&identity, of_tls.address, connections)?,
        ];
        // The first warms up.
        if round > 0 || rounds == 0 {
            values.iter_mut().zip(measured).for_each(|(all, one)| all.push(one));
        }
    }
    println!(
        "{key}, {connections} connections a round, {CONCURRENT} at a time; bytes: {lengths:?}\n"
    );
    println!("| CPU time per connection | median, us | each round |\n|---|---:|---|");
    let medians = values.each_ref().map(|values| stats::median(values).unwrap_or(f64::NAN));
    for ((name, median), each) in names.iter().zip(medians).zip(&values) {
        let each: Vec<String> = each.iter().map(|value| format!("{value:.0}")).collect();
        println!("| {name} | {median:.1} | {} |", each.join(", "));
    }
    let [library, anew, sockets, generator] = medians;
    println!("\nthe generator of the library: {:.2}", generator / library);
    println!("of the library that verifies chains anew: {:.2}", generator / anew);
    println!("of library and sockets together: {:.2}", generator / (library + sockets));
    Ok(())
}
