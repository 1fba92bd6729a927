//! A closed UDP port answers by ICMP, which a connected socket hears and QUIC does not.

use std::future::pending;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

/// Bytes of a datagram that a QUIC server answers by version negotiation (RFC 9000 §14.1, §6.1).
const DATAGRAM: usize = 1200;

/// Returns when the server's machine says that its UDP port is closed; never else.
pub(super) async fn udp_refused(server: SocketAddr) {
    if ask(server).await.is_none() {
        pending::<()>().await;
    }
}

/// Sends one datagram, and waits for an error; `None` if there is another one, or an answer.
async fn ask(server: SocketAddr) -> Option<()> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(&unknown_version()).await.ok()?;
    let mut buffer = [0; 64];
    let error = socket.recv(&mut buffer).await.err()?;
    (error.raw_os_error() == Some(libc::ECONNREFUSED)).then_some(())
}

/// A long header of a version that is reserved for this (RFC 9000 §15), padded.
fn unknown_version() -> [u8; DATAGRAM] {
    let mut datagram = [0; DATAGRAM];
    let header = [0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    if let Some(start) = datagram.first_chunk_mut() {
        *start = header;
    }
    datagram
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_closed_port_is_heard_and_an_open_one_says_nothing() {
        let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = closed.local_addr().unwrap();
        // Open, and silent.
        let silent = tokio::time::timeout(Duration::from_millis(50), udp_refused(address)).await;
        assert!(silent.is_err());
        drop(closed);
        tokio::time::timeout(Duration::from_secs(10), udp_refused(address)).await.unwrap();
    }
}
