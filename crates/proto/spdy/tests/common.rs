//! Two sessions joined, and a peer whose frames are written by hand.

use bytes::Bytes;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use spdy::{Config, DICTIONARY, Event, Headers, Priority, Role, Session, StreamId, Version};
use units::Time;
use wire::spdy::{Frame, Frames};

/// Bytes that are taken from a session at once.
pub const CHUNK: usize = 64 << 10;

pub fn get(path: &str) -> Headers {
    Headers::from_pairs([
        (":method", "GET"),
        (":path", path),
        (":version", "HTTP/1.1"),
        (":host", "example.org"),
        (":scheme", "https"),
    ])
    .unwrap()
}

pub fn ok() -> Headers {
    Headers::from_pairs([(":status", "200 OK"), (":version", "HTTP/1.1")]).unwrap()
}

pub fn session(role: Role, config: &Config) -> Session {
    Session::new(role, Version::V3_1, config.clone()).unwrap()
}

pub fn id(number: u32) -> StreamId {
    StreamId::new(number)
}

/// All events that wait.
pub fn events(session: &mut Session) -> Vec<Event> {
    events_at(session, Time::ZERO)
}

pub fn events_at(session: &mut Session, now: Time) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event(now)).collect()
}

/// All output that waits.
pub fn output(session: &mut Session) -> Vec<u8> {
    let mut out = vec![];
    while session.write_to(&mut out, CHUNK) > 0 {}
    out
}

/// A peer whose frames are written by hand, with compression as the draft has it.
pub struct Peer {
    pub session: Session,
    compress: Compress,
    decompress: Decompress,
}

/// A frame that the session sent, its headers in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    Data(u32, Vec<u8>, bool),
    Syn { stream: u32, associated: u32, priority: u8, fin: bool, headers: Headers },
    Reply(u32, Headers, bool),
    Headers(u32, Headers, bool),
    Rst(u32, u32),
    Settings(Vec<(u32, u32, bool, bool)>),
    Ping(u32),
    GoAway(u32, u32),
    Window(u32, u32),
}

impl Peer {
    /// A peer of a session, whose first frames (SETTINGS, the session's window) are read and left out.
    pub fn of(role: Role, version: Version, config: &Config) -> Peer {
        let mut peer = Peer::fresh(role, version, config);
        peer.sent();
        peer
    }

    pub fn fresh(role: Role, version: Version, config: &Config) -> Peer {
        let mut compress = Compress::new(Compression::best(), true);
        compress.set_dictionary(&DICTIONARY).unwrap();
        Peer {
            session: Session::new(role, version, config.clone()).unwrap(),
            compress,
            decompress: Decompress::new(true),
        }
    }

    pub fn server() -> Peer {
        Peer::of(Role::Server, Version::V3_1, &Config::default())
    }

    pub fn client() -> Peer {
        Peer::of(Role::Client, Version::V3_1, &Config::default())
    }

    /// Gives the session bytes, and has its events.
    pub fn bytes(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.session.receive(Bytes::copy_from_slice(bytes));
        events(&mut self.session)
    }

    pub fn frame(&mut self, frame: Frame<'_>) -> Vec<Event> {
        let mut bytes = vec![];
        frame.emit(&mut bytes).unwrap();
        self.bytes(&bytes)
    }

    pub fn compress(&mut self, block: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(block.len() + 256);
        self.compress.compress_vec(block, &mut out, FlushCompress::Sync).unwrap();
        assert!(out.len() < out.capacity());
        out
    }

    pub fn syn(&mut self, stream: u32, headers: &Headers, fin: bool) -> Vec<Event> {
        self.syn_block(stream, headers.block(), fin)
    }

    pub fn syn_block(&mut self, stream: u32, block: &[u8], fin: bool) -> Vec<Event> {
        let block = self.compress(block);
        self.frame(Frame::SynStream {
            stream: id(stream),
            associated: id(0),
            priority: Priority::HIGHEST,
            fin,
            unidirectional: false,
            block: &block,
        })
    }

    pub fn push(&mut self, stream: u32, associated: u32, headers: &Headers) -> Vec<Event> {
        let block = self.compress(headers.block());
        self.frame(Frame::SynStream {
            stream: id(stream),
            associated: id(associated),
            priority: Priority::LOWEST,
            fin: false,
            unidirectional: true,
            block: &block,
        })
    }

    pub fn reply(&mut self, stream: u32, headers: &Headers, fin: bool) -> Vec<Event> {
        let block = self.compress(headers.block());
        self.frame(Frame::SynReply { stream: id(stream), fin, block: &block })
    }

    pub fn more(&mut self, stream: u32, headers: &Headers, fin: bool) -> Vec<Event> {
        let block = self.compress(headers.block());
        self.frame(Frame::Headers { stream: id(stream), fin, block: &block })
    }

    pub fn data(&mut self, stream: u32, payload: &[u8], fin: bool) -> Vec<Event> {
        self.frame(Frame::Data { stream: id(stream), fin, payload })
    }

    pub fn window(&mut self, stream: u32, delta: u32) -> Vec<Event> {
        self.frame(Frame::WindowUpdate { stream: id(stream), delta })
    }

    pub fn settings(&mut self, entries: &[spdy::Setting]) -> Vec<Event> {
        let mut bytes = vec![];
        Frame::emit_settings(false, entries, &mut bytes).unwrap();
        self.bytes(&bytes)
    }

    /// What the session has sent since the last call.
    pub fn sent(&mut self) -> Vec<Sent> {
        let bytes = output(&mut self.session);
        self.read(&bytes)
    }

    pub fn read(&mut self, bytes: &[u8]) -> Vec<Sent> {
        Frames::new(bytes).map(|frame| self.sent_frame(frame.unwrap())).collect()
    }

    fn sent_frame(&mut self, frame: Frame<'_>) -> Sent {
        match frame {
            Frame::Data { stream, fin, payload } => {
                Sent::Data(stream.value(), payload.to_vec(), fin)
            }
            Frame::SynStream { stream, associated, priority, fin, block, .. } => Sent::Syn {
                stream: stream.value(),
                associated: associated.value(),
                priority: priority.value(),
                fin,
                headers: self.headers(block),
            },
            Frame::SynReply { stream, fin, block } => {
                Sent::Reply(stream.value(), self.headers(block), fin)
            }
            Frame::Headers { stream, fin, block } => {
                Sent::Headers(stream.value(), self.headers(block), fin)
            }
            Frame::RstStream { stream, status } => Sent::Rst(stream.value(), status.0),
            Frame::Settings { entries, .. } => Sent::Settings(
                entries.iter().map(|s| (s.id.0, s.value, s.persist, s.persisted)).collect(),
            ),
            Frame::Ping { id } => Sent::Ping(id),
            Frame::GoAway { last_good, status } => Sent::GoAway(last_good.value(), status.0),
            Frame::WindowUpdate { stream, delta } => Sent::Window(stream.value(), delta),
            other => panic!("no session sends {other:?}"),
        }
    }

    fn headers(&mut self, block: &[u8]) -> Headers {
        let mut out = Vec::with_capacity(CHUNK);
        let mut rest = block;
        loop {
            let before = self.decompress.total_in();
            let result = self.decompress.decompress_vec(rest, &mut out, FlushDecompress::Sync);
            rest = &rest[(self.decompress.total_in() - before) as usize..];
            match result {
                Ok(_) => break,
                Err(error) => {
                    assert_eq!(error.needs_dictionary(), Some(0xe3c6_a7c2));
                    self.decompress.set_dictionary(&DICTIONARY).unwrap();
                }
            }
        }
        assert!(rest.is_empty());
        Headers::from_block(out).unwrap()
    }
}

/// Two sessions joined.
pub struct Pair {
    pub client: Session,
    pub server: Session,
}

impl Pair {
    pub fn new(version: Version, client: &Config, server: &Config) -> Pair {
        Pair {
            client: Session::new(Role::Client, version, client.clone()).unwrap(),
            server: Session::new(Role::Server, version, server.clone()).unwrap(),
        }
    }

    /// Moves what the client has to say, up to a limit; the server's events.
    pub fn reach_server(&mut self, limit: usize) -> Vec<Event> {
        let mut out = vec![];
        self.client.write_to(&mut out, limit);
        self.server.receive(Bytes::from(out));
        events(&mut self.server)
    }

    pub fn reach_client(&mut self, limit: usize) -> Vec<Event> {
        let mut out = vec![];
        self.server.write_to(&mut out, limit);
        self.client.receive(Bytes::from(out));
        events(&mut self.client)
    }
}
