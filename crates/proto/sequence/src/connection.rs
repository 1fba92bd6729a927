//! One connection, from its bytes to its events.

use units::Time;

use crate::chart::Gap;
use crate::event::{Event, Kind};
use crate::frames::{Frame, FrameReader, NotFrames};
use crate::protocol::Protocol;
use crate::windows::{Sending, Windows};

/// Gaps of a connection that are kept.
const GAPS: usize = 8;

/// A connection whose protocol is known.
#[derive(Debug)]
pub(crate) struct Talk {
    protocol: Protocol,
    /// The client's and the server's.
    readers: [FrameReader; 2],
    sending: [Sending; 2],
    events: Vec<Event>,
    left_out: u64,
    gaps: Vec<Gap>,
}

/// What is left of a connection when it is over.
pub(crate) struct Told {
    pub(crate) protocol: Protocol,
    pub(crate) events: Vec<Event>,
    pub(crate) left_out: u64,
    /// Of what the client sends, and of what the server does.
    pub(crate) windows: [Windows; 2],
    pub(crate) gaps: Vec<Gap>,
}

/// Where the client's, or the server's, is.
const fn place(from_client: bool) -> usize {
    if from_client { 0 } else { 1 }
}

impl Talk {
    pub(crate) fn new(protocol: Protocol) -> Self {
        Talk {
            protocol,
            readers: [FrameReader::new(protocol, true), FrameReader::new(protocol, false)],
            sending: [Sending::new(protocol), Sending::new(protocol)],
            events: Vec::new(),
            left_out: 0,
            gaps: Vec::new(),
        }
    }

    /// Takes a side's next bytes; `room` is counted down by each event that is kept.
    pub(crate) fn bytes(
        &mut self,
        at: Time,
        from_client: bool,
        mut bytes: &[u8],
        room: &mut usize,
    ) {
        loop {
            let Some(reader) = self.readers.get_mut(place(from_client)) else { return };
            match reader.next(&mut bytes) {
                None => return,
                Some(Ok(frame)) => self.frame(at, from_client, frame, room),
                Some(Err(NotFrames)) => {
                    let why = format!("what follows are no frames of {}", self.protocol);
                    self.gap(at, from_client, why);
                }
            }
        }
    }

    /// Takes the settings of a client's HTTP2-Settings, which count as a SETTINGS frame (RFC 7540 §3.2.1).
    pub(crate) fn upgraded(&mut self, at: Time, entries: Vec<(u32, u32)>, room: &mut usize) {
        let length = 6 * entries.len() as u64;
        let kind = Kind::Settings { ack: false, entries };
        self.frame(at, true, Frame { kind, stream: 0, length }, room);
    }

    /// From here on a direction is not read.
    pub(crate) fn gap(&mut self, at: Time, from_client: bool, why: String) {
        if self.gaps.len() < GAPS {
            self.gaps.push(Gap { at, from_client, why });
        }
    }

    fn frame(&mut self, at: Time, from_client: bool, frame: Frame, room: &mut usize) {
        let Frame { kind, stream, length } = frame;
        let (stream_window, connection_window) =
            self.windows(at, from_client, &kind, stream, length);
        let Some(left) = room.checked_sub(1) else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        *room = left;
        self.events.push(Event {
            at,
            until: at,
            from_client,
            kind,
            stream,
            length,
            frames: 1,
            bytes: length,
            stream_window,
            connection_window,
        });
    }

    /// What a frame makes of windows: what may be sent on after it.
    fn windows(
        &mut self,
        at: Time,
        from_client: bool,
        kind: &Kind,
        stream: u32,
        length: u64,
    ) -> (Option<i64>, Option<i64>) {
        let [client, server] = &mut self.sending;
        let (own, peers) = if from_client { (client, server) } else { (server, client) };
        let left = match kind {
            Kind::Data { .. } => own.data(at, stream, length),
            Kind::WindowUpdate { increment } => {
                if stream == 0 && self.protocol == Protocol::Spdy3 {
                    // SPDY/3 has no session window: without ALPN this shows that it is SPDY/3.1, too
                    // late to know what was sent.
                    return (None, None);
                }
                peers.update(stream, *increment)
            }
            Kind::Settings { ack: false, entries } => {
                let id = self.protocol.initial_window_id();
                let mut of_window = entries.iter().filter(|(number, _)| *number == id);
                // Of several SPDY takes the first (§2.6.4), HTTP/2 the last (RFC 9113 §6.5.3).
                let chosen = match self.protocol {
                    Protocol::Http2 => of_window.next_back(),
                    Protocol::Spdy3 | Protocol::Spdy31 => of_window.next(),
                };
                peers.settings(chosen.map(|(_, bytes)| *bytes))
            }
            Kind::RstStream { .. } => {
                own.close(stream);
                peers.close(stream);
                (None, None)
            }
            _ => (None, None),
        };
        if kind.is_last() {
            own.close(stream);
        }
        left
    }

    /// What is left of it.
    pub(crate) fn told(self) -> Told {
        let Talk { protocol, events, left_out, gaps, sending: [client, server], .. } = self;
        Told { protocol, events, left_out, windows: [client.told(), server.told()], gaps }
    }
}
