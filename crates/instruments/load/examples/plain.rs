//! A plain client on the TLS library of `wiretax load`: blocking sockets, a thread for each connection
//! under way, a full TLS 1.3 handshake and one request a connection. `scripts/compare-load.sh` puts it
//! beside `wiretax load`: with the same library, what differs is the generator.
//!
//! usage: `plain ADDRESS SERVER_NAME ROOT.pem CONNECTIONS SECONDS`

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};

/// The suite and group of the comparison; no session is resumed.
fn configuration(root: &str) -> Result<ClientConfig, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(root)?)?;
    let provider = CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![kx_group::X25519],
        ..aws_lc_rs::default_provider()
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// One connection, one request, and its answer to the end.
fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    name: &ServerName<'static>,
) -> Result<(), Box<dyn Error>> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut session = ClientConnection::new(Arc::clone(config), name.clone())?;
    let mut stream = Stream::new(&mut session, &mut socket);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Some servers close without an alert.
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(error.into()),
        _ if answer.starts_with(b"HTTP/1.1 200") => Ok(()),
        _ => Err("the answer is not 200".into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, name, root, connections, seconds] = arguments.as_slice() else {
        return Err("usage: plain ADDRESS SERVER_NAME ROOT.pem CONNECTIONS SECONDS".into());
    };
    let (address, connections): (SocketAddr, usize) = (address.parse()?, connections.parse()?);
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let name = ServerName::try_from(name.clone())?;
    let config = Arc::new(configuration(root)?);
    let threads = (0..connections).map(|_| {
        let (config, name) = (Arc::clone(&config), name.clone());
        std::thread::spawn(move || {
            let (mut done, mut failed) = (0u64, 0u64);
            while Instant::now() < end {
                match connect(address, &config, &name) {
                    Ok(()) => done += 1,
                    Err(_) => failed += 1,
                }
            }
            (done, failed)
        })
    });
    let threads: Vec<_> = threads.collect();
    let counts = threads.into_iter().filter_map(|thread| thread.join().ok());
    let (done, failed) = counts.fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    println!("{done} connections, {failed} failed");
    Ok(())
}
