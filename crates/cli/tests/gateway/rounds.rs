//! Round trips, counted in a capture: no clock decides.

use lab_test::TestResult;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use lab::{Capture, CaptureOptions, Direction, Node, OwnedFrame};

/// More than any server's handshake has: from this on it is the response. Less than three times the
/// SYN, which is all that a server sends before it knows the client's address.
const RESPONSE: usize = 2_500;

/// A capture under way.
pub struct Watch {
    capture: Capture,
    frames: Receiver<OwnedFrame>,
    /// Which way the client's segments go here.
    of_client: Direction,
}

impl Watch {
    /// At the client.
    pub fn start(node: &Node) -> TestResult<Watch> {
        Watch::at(node, Direction::Outbound)
    }

    /// At the server: what it sent before it had heard more. A response to early data that is late
    /// by a moment comes to the client after its next flight has left, but has been sent before.
    pub fn at_server(node: &Node) -> TestResult<Watch> {
        Watch::at(node, Direction::Inbound)
    }

    fn at(node: &Node, of_client: Direction) -> TestResult<Watch> {
        let (capture, frames) = node.capture_channel(&CaptureOptions::default(), 100_000)?;
        Ok(Watch { capture, frames, of_client })
    }

    /// Round trips from each connection's SYN until its response came, in the order of the
    /// connections.
    pub fn rounds(self) -> TestResult<Vec<usize>> {
        let stats = self.capture.stop()?;
        if stats.kernel_drops + stats.channel_drops > 0 {
            return Err(format!("the capture lost frames: {stats:?}").into());
        }
        let mut connections: Vec<Connection> = Vec::new();
        let mut by_ports: BTreeMap<(u16, u16), usize> = BTreeMap::new();
        for frame in self.frames.try_iter() {
            let Some(segment) = Segment::read(&frame, self.of_client) else { continue };
            if segment.of_client && segment.syn {
                by_ports.entry(segment.ports).or_insert_with(|| {
                    connections.push(Connection::default());
                    connections.len() - 1
                });
            }
            let known = by_ports.get(&segment.ports).and_then(|at| connections.get_mut(*at));
            if let Some(connection) = known {
                connection.see(&segment);
            }
        }
        Ok(connections.iter().map(|connection| connection.rounds).collect())
    }
}

/// A TCP segment over IPv4.
struct Segment {
    of_client: bool,
    /// The client's and the server's.
    ports: (u16, u16),
    syn: bool,
    payload: usize,
}

impl Segment {
    fn read(frame: &OwnedFrame, client: Direction) -> Option<Segment> {
        let bytes = &frame.bytes;
        let number = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        if number(12)? != 0x0800 || *bytes.get(23)? != 6 {
            return None;
        }
        let ip = 14;
        let tcp = ip + 4 * usize::from(bytes.get(ip)? & 15);
        let data = tcp + 4 * usize::from(bytes.get(tcp + 12)? >> 4);
        let of_client = frame.direction == client;
        let (from, to) = (number(tcp)?, number(tcp + 2)?);
        Some(Segment {
            of_client,
            ports: if of_client { (from, to) } else { (to, from) },
            syn: bytes.get(tcp + 13)? & 2 != 0,
            payload: (ip + usize::from(number(ip + 2)?)).checked_sub(data)?,
        })
    }
}

/// A connection as far as it was read.
#[derive(Default)]
struct Connection {
    rounds: usize,
    /// Whether the client spoke after the server did.
    asked: bool,
    answer: usize,
    response: bool,
}

impl Connection {
    /// A round trip begins when the client sends a SYN or data after what it got; a bare
    /// acknowledgment asks for nothing.
    fn see(&mut self, segment: &Segment) {
        if self.response {
            return;
        }
        if segment.of_client {
            if (segment.syn || segment.payload > 0) && !self.asked {
                self.rounds += 1;
                (self.asked, self.answer) = (true, 0);
            }
        } else {
            self.asked = false;
            self.answer += segment.payload;
            self.response = self.answer > RESPONSE;
        }
    }
}
