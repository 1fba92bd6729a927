//! One connection that only looks: what a client of today's usual offer negotiates, and the chain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Target;
use super::report::OfferReport;
use crate::Failure;
use crate::opening::{FirstBytes, Opened, open};

const DURING: &str = "looking at the server's certificates";

/// What was seen: the offer's outcome and the chain (DER, the leaf first).
pub(super) async fn look(
    address: SocketAddr,
    target: &Target,
    patience: Duration,
) -> Result<(OfferReport, Vec<Vec<u8>>), Failure> {
    let connection = start(target)?;
    let opened = open(address, target.opening().as_deref(), patience).await?;
    tokio::time::timeout(patience, handshake(connection, opened))
        .await
        .map_err(|_| Failure::TimedOut { after: patience, timeline: Box::default() })?
}

async fn handshake(
    mut connection: ClientConnection,
    opened: Opened,
) -> Result<(OfferReport, Vec<Vec<u8>>), Failure> {
    let Opened { mut stream, rest, mut first } = opened;
    feed(&rest, &mut connection)?;
    let mut client_hello_len = 0;
    while connection.is_handshaking() {
        let mut flight = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut flight).map_err(|error| io_failure(&error))?;
        }
        if client_hello_len == 0 {
            client_hello_len = flight.len();
        }
        stream.write_all(&flight).await.map_err(|error| io_failure(&error))?;
        if connection.is_handshaking() && !read(&mut stream, &mut first, &mut connection).await? {
            return Err(Failure::Protocol("closed the connection during the handshake"));
        }
    }
    connection.send_close_notify();
    let mut end = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut end).map_err(|error| io_failure(&error))?;
    }
    // The connection has served its purpose, whatever becomes of its end.
    let _ = stream.write_all(&end).await;
    let _ = stream.shutdown().await;
    let chain = connection.peer_certificates().unwrap_or_default();
    let chain = chain.iter().map(|certificate| certificate.to_vec()).collect();
    Ok((report(&connection, client_hello_len), chain))
}

fn start(target: &Target) -> Result<ClientConnection, Failure> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    // Whether the chain is trusted is checked elsewhere; here it is only looked at.
    let verifier = tls::AcceptAnyCertificate::new(Arc::clone(&provider));
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Plan(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &target.identity {
        Some(identity) => builder.with_client_cert_resolver(identity.resolver()),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = target.alpn(&[b"h2", b"http/1.1"]);
    let server_name = target.name().to_owned();
    let name = ServerName::try_from(server_name.clone())
        .map_err(|_| tls::Error::from(tls::CallerError::ServerName(server_name)))?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| Failure::Plan(error.to_string()))
}

/// `false` at the end of the stream.
async fn read(
    stream: &mut TcpStream,
    first: &mut FirstBytes,
    connection: &mut ClientConnection,
) -> Result<bool, Failure> {
    let mut buffer = vec![0; 16 * 1024];
    let count = stream.read(&mut buffer).await.map_err(|error| io_failure(&error))?;
    let bytes = buffer.get(..count).unwrap_or_default();
    first.check(bytes)?;
    feed(bytes, connection)?;
    Ok(!bytes.is_empty())
}

fn feed(mut bytes: &[u8], connection: &mut ClientConnection) -> Result<(), Failure> {
    while !bytes.is_empty() {
        let taken = connection.read_tls(&mut bytes).map_err(|error| io_failure(&error))?;
        let misbehaved = |error: rustls::Error| {
            Failure::Tls(tls::PeerError::Misbehaved(error.to_string()).into())
        };
        connection.process_new_packets().map_err(misbehaved)?;
        if taken == 0 {
            break;
        }
    }
    Ok(())
}

fn report(connection: &ClientConnection, client_hello_len: usize) -> OfferReport {
    OfferReport {
        version: connection
            .protocol_version()
            .map(|version| format!("{version:?}").replace("TLSv1_", "TLS 1."))
            .unwrap_or_default(),
        cipher_suite: connection
            .negotiated_cipher_suite()
            .map(|suite| tls::CipherSuite(suite.suite().into()).to_string())
            .unwrap_or_default(),
        group: connection.negotiated_key_exchange_group().map(|it| format!("{:?}", it.name())),
        hello_retry_request: connection.handshake_kind()
            == Some(HandshakeKind::FullWithHelloRetryRequest),
        alpn: connection.alpn_protocol().map(|alpn| String::from_utf8_lossy(alpn).into_owned()),
        client_hello_len,
    }
}

fn io_failure(error: &std::io::Error) -> Failure {
    Failure::from_io("recv or send", DURING, error)
}
