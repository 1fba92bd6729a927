//! A session on TLS 1.2 over a blocking socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use rustls::Connection;
use spdy::{Event, Session, Version};
use units::Time;

pub struct Carrier {
    socket: TcpStream,
    tls: Connection,
    pub session: Session,
}

impl Carrier {
    /// A session on a socket, after the handshake, which must have negotiated its version.
    pub fn new(socket: TcpStream, mut tls: Connection, session: Session) -> Carrier {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        tls.set_buffer_limit(None);
        let mut carrier = Carrier { socket, tls, session };
        while carrier.tls.is_handshaking() {
            carrier.tls.complete_io(&mut carrier.socket).unwrap();
        }
        let version = carrier.tls.alpn_protocol().and_then(Version::of_alpn);
        assert_eq!(version, Some(carrier.session.version()), "what ALPN negotiated");
        assert_eq!(carrier.tls.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));
        carrier
    }

    /// Sends what waits.
    pub fn send(&mut self) {
        while self.session.wants_write() {
            let mut out = vec![];
            self.session.write_to(&mut out, 16 << 10);
            self.tls.writer().write_all(&out).unwrap();
            while self.tls.wants_write() {
                self.tls.write_tls(&mut self.socket).unwrap();
            }
        }
    }

    /// Sends what waits, then waits for bytes; their events, or `None` at the end.
    pub fn turn(&mut self) -> Option<Vec<Event>> {
        self.send();
        // A peer that has what it wants may reset the connection.
        let count = self.tls.read_tls(&mut self.socket).unwrap_or(0);
        let state = self.tls.process_new_packets().unwrap();
        if count == 0 {
            return None;
        }
        let mut bytes = vec![0; state.plaintext_bytes_to_read()];
        self.tls.reader().read_exact(&mut bytes).unwrap();
        self.session.receive(Bytes::from(bytes));
        Some(std::iter::from_fn(|| self.session.poll_event(Time::ZERO)).collect())
    }
}
