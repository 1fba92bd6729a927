//! Comments at the frames of a capture with which something happened: a handshake was done, a first byte
//! came. They are read from the frames themselves.

use std::collections::VecDeque;
use std::mem;

use packet::capture::{Captured, Direction};
use tracker::{Connection, HandOut, Limits, LinkType, Output, Tracker, Transport};
use units::Time;

/// Bytes of frames that are held until what happened with them is known. Of a slower handshake the first
/// comments are missing.
const HELD_BYTES: usize = 16 << 20;
/// Connections that are followed at once.
const CONNECTIONS: usize = 4096;
/// Characters of a server's name in a comment.
const NAME: usize = 100;

/// A frame that is held.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) at: Time,
    pub(crate) direction: Direction,
    pub(crate) bytes: Box<[u8]>,
    pub(crate) original_len: usize,
    pub(crate) comments: Vec<String>,
}

/// Holds frames until their comments are known.
#[derive(Debug)]
pub(crate) struct Comments {
    tracker: Tracker,
    held: VecDeque<Held>,
    bytes: usize,
}

impl Comments {
    pub(crate) fn new() -> Comments {
        let limits = Limits {
            connections: CONNECTIONS,
            hand_out: HandOut::AfterHandshake,
            ..Limits::default()
        };
        Comments { tracker: Tracker::new(limits), held: VecDeque::new(), bytes: 0 }
    }

    /// Adds TLS secrets, in the format of SSLKEYLOGFILE, for the frames that follow.
    pub(crate) fn secrets(&mut self, lines: &[u8]) {
        self.tracker.add_keys(lines);
    }

    /// Takes a frame; those that are held no longer come from [`Comments::due`].
    pub(crate) fn take(&mut self, frame: &Captured<'_>) {
        let Captured { at, direction, bytes, original_len } = *frame;
        self.bytes += bytes.len() + mem::size_of::<Held>();
        let (owned, comments) = (bytes.into(), Vec::new());
        self.held.push_back(Held { at, direction, bytes: owned, original_len, comments });
        self.tracker.handle_packet(at, LinkType::Ethernet, bytes, original_len);
        self.comment();
    }

    /// The next frame that is written now; none is left behind at the end.
    pub(crate) fn due(&mut self, at_end: bool) -> Option<Held> {
        if !at_end && self.bytes <= HELD_BYTES {
            return None;
        }
        let frame = self.held.pop_front()?;
        self.bytes = self.bytes.saturating_sub(frame.bytes.len() + mem::size_of::<Held>());
        Some(frame)
    }

    /// Nothing more comes: what is known of open connections is said.
    pub(crate) fn close(&mut self) {
        self.tracker.close();
        self.comment();
    }

    fn comment(&mut self) {
        while let Some(output) = self.tracker.poll_output() {
            let Output::Connection(connection) = output else { continue };
            for (at, text) in milestones(&connection) {
                // In order of time, but for a clock that was set.
                let from = self.held.partition_point(|frame| frame.at < at);
                if let Some(frame) = self.held.get_mut(from).filter(|frame| frame.at == at) {
                    frame.comments.push(format!("{}: {text}", connection.client));
                }
            }
        }
    }
}

/// Events by frame.
fn milestones(connection: &Connection) -> Vec<(Time, String)> {
    let mut steps: Vec<(Option<Time>, String)> = Vec::new();
    let mut step = |at: Option<Time>, text: &str| steps.push((at, text.to_owned()));
    if let Some(tcp) = &connection.tcp {
        step(tcp.handshake_ack, "TCP handshake done");
    }
    let is_quic = connection.transport == Transport::Quic;
    if let Some(quic) = &connection.quic {
        step(quic.retry, "QUIC Retry");
        // RFC 9001 §5.7: a client sends 1-RTT packets when its handshake is complete.
        step(quic.client_one_rtt, "QUIC handshake done, first 1-RTT packet of the client");
    }
    if let Some(tls) = &connection.tls {
        let name = tls.server_name.as_deref().unwrap_or("no server name");
        let name: String = name.chars().filter(|letter| !letter.is_control()).take(NAME).collect();
        step(tls.client_hello_end, &format!("ClientHello ({name})"));
        step(tls.hello_retry_request, "HelloRetryRequest");
        let version = tls.version.map_or_else(String::new, |version| format!(" ({version})"));
        step(tls.server_hello, &format!("ServerHello{version}"));
        step(tls.early_data_sent, "early data");
        step(tls.client_finished, "TLS handshake done, Finished of the client");
        step(tls.server_finished.filter(|_| !is_quic), "Finished of the server");
        for alert in &tls.alerts {
            let by = if alert.from_client { "client" } else { "server" };
            step(
                Some(alert.at),
                &format!("TLS alert of the {by}: {}", alert.name.unwrap_or("encrypted")),
            );
        }
    }
    step(connection.client_data, "first byte of the request");
    step(connection.server_data, "first byte of the response");
    steps.into_iter().filter_map(|(at, text)| Some((at?, text))).collect()
}
