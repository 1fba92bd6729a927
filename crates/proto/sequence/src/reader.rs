//! Captured frames in, a chart out.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tracker::{LinkType, StreamEvent, StreamFact, StreamLimits, Streams};
use units::Time;

use crate::chart::{Chart, Connection, Unread};
use crate::connection::{Talk, Told};
use crate::opening::{Found, Opening, Piece};
use crate::protocol::Protocol;

/// Connections that are named as unread.
const UNREAD: usize = 100;

/// What bounds a [`Reader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// What bounds the streams below.
    pub streams: StreamLimits,
    /// Connections in a chart.
    pub connections: usize,
    /// Events in a chart, of all connections together: about 130 bytes each.
    pub events: usize,
}

impl Default for Limits {
    /// 1024 connections at once, 4096 in all, and 500,000 events.
    fn default() -> Self {
        let streams = StreamLimits { connections: 1024, ..StreamLimits::default() };
        Limits { streams, connections: 4096, events: 500_000 }
    }
}

/// A connection under way.
#[derive(Debug)]
struct Open {
    client: SocketAddr,
    server: SocketAddr,
    begun: Time,
    server_name: Option<String>,
    tls: Option<String>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Its protocol is not known.
    New(Opening),
    Ours(Box<Talk>),
    /// It speaks something else, or is counted already.
    Other,
}

/// Reads a capture.
#[derive(Debug)]
pub struct Reader {
    streams: Streams,
    open: BTreeMap<u64, Open>,
    /// Those that are over, by their numbers.
    over: BTreeMap<u64, Connection>,
    chart: Chart,
    connections: usize,
    /// Events that there is room for.
    room: usize,
}

impl Reader {
    /// Nothing read yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Reader {
            streams: Streams::new(limits.streams),
            open: BTreeMap::new(),
            over: BTreeMap::new(),
            chart: Chart::default(),
            connections: limits.connections,
            room: limits.events,
        }
    }

    /// Takes TLS secrets, in the format of SSLKEYLOGFILE: before the frames that need them. Gives how
    /// many secrets were taken in all.
    pub fn add_keys(&mut self, lines: &[u8]) -> u64 {
        self.streams.add_keys(lines);
        self.streams.key_log().taken
    }

    /// Takes a frame captured at `at`, as far as it was captured.
    pub fn handle_packet(&mut self, at: Time, link_type: LinkType, bytes: &[u8]) {
        self.streams.handle_packet(at, link_type, bytes);
        self.drain();
    }

    /// The chart, as if the capture ended here.
    #[must_use]
    pub fn finish(mut self) -> Chart {
        self.streams.close();
        self.drain();
        let counters = *self.streams.counters();
        let mut chart = self.chart;
        chart.connections = self.over.into_values().collect();
        chart.left_out = chart.left_out.saturating_add(counters.over_limit);
        chart.stray_segments = counters.stray_segments;
        chart.datagrams = counters.datagrams;
        chart.frames = counters.frames;
        chart
    }

    fn drain(&mut self) {
        while let Some(event) = self.streams.poll_event() {
            self.event(event);
        }
    }

    fn event(&mut self, event: StreamEvent) {
        let StreamEvent { connection, at, fact } = event;
        if let StreamFact::Began { client, server } = fact {
            let state = State::New(Opening::default());
            let open = Open { client, server, begun: at, server_name: None, tls: None, state };
            self.open.insert(connection, open);
            return;
        }
        if let StreamFact::Ended(_) = fact {
            if let Some(open) = self.open.remove(&connection) {
                self.end(connection, open);
            }
            return;
        }
        let Some(open) = self.open.get_mut(&connection) else { return };
        match fact {
            StreamFact::Tls { version, server_name, .. } => {
                open.tls = Some(version.to_string());
                open.server_name = server_name;
            }
            StreamFact::Alpn(Some(name)) => {
                let protocol = Protocol::of_alpn(&name);
                self.chart.others = self.chart.others.saturating_add(protocol.is_none().into());
                open.state = State::of(protocol);
            }
            StreamFact::Data { from_client, bytes } => {
                open.bytes(at, from_client, &bytes, &mut self.room, &mut self.chart);
            }
            StreamFact::Unreadable { from_client, why } => match &mut open.state {
                State::Ours(talk) => talk.gap(at, from_client, why.to_string()),
                State::New(_) => {
                    let Open { client, server, .. } = *open;
                    let unread = Unread {
                        client,
                        server,
                        server_name: open.server_name.clone(),
                        why: why.to_string(),
                    };
                    if self.chart.unread.len() < UNREAD {
                        self.chart.unread.push(unread);
                    } else {
                        self.chart.more_unread = self.chart.more_unread.saturating_add(1);
                    }
                    open.state = State::Other;
                }
                State::Other => {}
            },
            _ => {}
        }
    }

    fn end(&mut self, number: u64, open: Open) {
        let Open { client, server, begun, server_name, tls, state } = open;
        let talk = match state {
            State::Ours(talk) => talk,
            // It never said enough to be known.
            State::New(_) => {
                self.chart.others = self.chart.others.saturating_add(1);
                return;
            }
            State::Other => return,
        };
        let Told { protocol, events, left_out, windows: [client_sends, server_sends], gaps } =
            talk.told();
        if self.over.len() >= self.connections {
            self.room = self.room.saturating_add(events.len());
            self.chart.left_out = self.chart.left_out.saturating_add(1);
            return;
        }
        let connection = Connection {
            client,
            server,
            server_name,
            tls,
            protocol,
            begun,
            events,
            left_out,
            client_sends,
            server_sends,
            gaps,
        };
        self.over.insert(number, connection);
    }
}

impl State {
    fn of(protocol: Option<Protocol>) -> State {
        protocol.map_or(State::Other, |protocol| State::Ours(Box::new(Talk::new(protocol))))
    }
}

impl Open {
    /// Takes a side's next bytes.
    fn bytes(
        &mut self,
        at: Time,
        from_client: bool,
        bytes: &[u8],
        room: &mut usize,
        chart: &mut Chart,
    ) {
        let State::New(opening) = &mut self.state else {
            if let State::Ours(talk) = &mut self.state {
                talk.bytes(at, from_client, bytes, room);
            }
            return;
        };
        match opening.bytes(at, from_client, bytes) {
            Found::NotYet => {}
            Found::Other => {
                chart.others = chart.others.saturating_add(1);
                self.state = State::Other;
            }
            Found::Ours { protocol, settings, bytes } => {
                let mut talk = Talk::new(protocol);
                if let Some((at, entries)) = settings {
                    talk.upgraded(at, entries, room);
                }
                for Piece { at, from_client, bytes } in bytes {
                    talk.bytes(at, from_client, &bytes, room);
                }
                self.state = State::Ours(Box::new(talk));
            }
        }
    }
}
