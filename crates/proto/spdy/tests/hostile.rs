//! Peers that do not keep to the draft: what each gets back, and that memory stays bounded.

use bytes::Bytes;
use spdy::{
    Config, Event, FloodLimit, FlowControl, Headers, Priority, ResetReason, Role, RstStatus,
    SessionError, Setting, SettingId, Version,
};
use wire::spdy::{Frame, FrameType, Header};

use crate::common::{Peer, Sent, get, id, ok};

/// What a peer does to a session, and what it must get.
struct Case {
    what: &'static str,
    role: Role,
    version: Version,
    act: fn(&mut Peer),
    expect: Expect,
}

enum Expect {
    /// A stream error: RST_STREAM with this status for this stream; the session goes on.
    Stream(u32, RstStatus),
    /// A session error: GOAWAY with its status, and nothing after.
    Session(SessionError),
    /// Nothing: it is passed over.
    Nothing,
}

use Expect::{Nothing, Session, Stream};
use Role::{Client, Server};
use Version::{V3, V3_1};

fn block(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = (pairs.len() as u32).to_be_bytes().to_vec();
    for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend((part.len() as u32).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// A client that has asked for stream 1 and had its reply.
fn replied(peer: &mut Peer) {
    peer.session.open(&get("/"), Priority::HIGHEST, true).unwrap();
    peer.sent();
    peer.reply(1, &ok(), false);
}

fn control(peer: &mut Peer, kind: FrameType, data: &[u8]) {
    let header = Header::Control { kind, flags: 0, length: data.len() as u32 };
    peer.bytes(&[&header.to_bytes()[..], data].concat());
}

fn case(what: &'static str, role: Role, act: fn(&mut Peer), expect: Expect) -> Case {
    Case { what, role, version: V3_1, act, expect }
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let own = |number| Session(SessionError::StreamId(number));
    vec![
        // §2.3.2: identifiers.
        case("an even stream from a client", Server, |p| drop(p.syn(2, &get("/"), true)), own(2)),
        case("stream 0", Server, |p| drop(p.syn(0, &get("/"), true)), own(0)),
        case("a lower identifier", Server, |p| { p.syn(5, &get("/"), true); p.syn(3, &get("/"), true); }, own(3)),
        case("the same identifier", Server, |p| { p.syn(5, &get("/"), true); p.syn(5, &get("/"), true); },
            Stream(5, RstStatus::PROTOCOL_ERROR)),
        case("an odd stream from a server", Client, |p| { replied(p); p.push(3, 1, &get("/")); }, own(3)),
        // §2.2.2: data.
        case("data on stream 0", Server, |p| drop(p.data(0, b"x", false)), Session(SessionError::StreamZero)),
        case("data on a stream that never was", Server, |p| drop(p.data(9, b"x", false)),
            Stream(9, RstStatus::INVALID_STREAM)),
        case("data before the reply", Client,
            |p| { p.session.open(&get("/"), Priority::HIGHEST, true).unwrap(); p.sent(); p.data(1, b"x", false); },
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        // §2.3.6, §2.3.7.
        case("data after the last", Server, |p| { p.syn(1, &get("/"), true); p.data(1, b"x", false); },
            Stream(1, RstStatus::STREAM_ALREADY_CLOSED)),
        case("data on a closed stream", Server,
            |p| { p.syn(1, &get("/"), true); p.session.reply(id(1), &ok(), true).unwrap(); p.sent(); p.data(1, b"x", false); },
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        case("data on the way when the stream was reset", Server,
            |p| { p.syn(1, &get("/"), false); p.session.reset(id(1), RstStatus::CANCEL).unwrap(); p.sent(); p.data(1, b"x", true); },
            Nothing),
        // §2.6.2, §2.6.3, §3.2.2: replies.
        case("a reply to nothing", Client, |p| drop(p.reply(1, &ok(), false)), Stream(1, RstStatus::INVALID_STREAM)),
        case("a second reply", Client, |p| { replied(p); p.reply(1, &ok(), false); }, Stream(1, RstStatus::STREAM_IN_USE)),
        case("a reply to the peer's own stream", Server, |p| { p.syn(1, &get("/"), false); p.reply(1, &ok(), false); },
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        case("a reply without status", Client,
            |p| { p.session.open(&get("/"), Priority::HIGHEST, false).unwrap(); p.sent(); p.reply(1, &get("/"), false); },
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        // §2.6.7.
        case("headers for nothing", Server, |p| drop(p.more(7, &ok(), false)), Stream(7, RstStatus::INVALID_STREAM)),
        case("headers after the last frame", Server, |p| { p.syn(1, &get("/"), true); p.more(1, &ok(), false); },
            Stream(1, RstStatus::STREAM_ALREADY_CLOSED)),
        // §2.6.10: blocks.
        case("an upper-case name", Server, |p| drop(p.syn_block(1, &block(&[(b"Host", b"a")]), true)),
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        case("a name twice", Server, |p| drop(p.syn_block(1, &block(&[(b"a", b"1"), (b"a", b"2")]), true)),
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        case("an empty name", Server, |p| drop(p.syn_block(1, &block(&[(b"", b"1")]), true)),
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        case("lengths beyond the block", Server, |p| drop(p.syn_block(1, &[0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff], true)),
            Stream(1, RstStatus::PROTOCOL_ERROR)),
        case("a block that is no zlib", Server,
            |p| control(p, FrameType::SYN_STREAM, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef]),
            Session(SessionError::Compression)),
        // §2.6.8: windows.
        case("a stream's window too wide", Client,
            |p| { replied(p); p.session.open(&get("/"), Priority::HIGHEST, false).unwrap(); p.sent(); p.window(3, 0x7fff_ffff); },
            Stream(3, RstStatus::FLOW_CONTROL_ERROR)),
        case("a window widened by nothing", Server, |p| { p.syn(1, &get("/"), true); p.window(1, 0); },
            Stream(1, RstStatus::FLOW_CONTROL_ERROR)),
        case("the session's window too wide", Server, |p| drop(p.window(0, 0x7fff_ffff)), Session(SessionError::WindowOverflow)),
        Case { what: "a session's window in SPDY/3", role: Server, version: V3,
            act: |p| drop(p.window(0, 0x7fff_ffff)), expect: Nothing },
        case("a window for a stream that never was", Server, |p| drop(p.window(9, 1)), Stream(9, RstStatus::INVALID_STREAM)),
        case("a window for a stream that is closed", Client, |p| { replied(p); p.data(1, b"", true); p.window(1, 5); }, Nothing),
        case("an initial window beyond 2^31 - 1", Server,
            |p| drop(p.settings(&[Setting::new(SettingId::INITIAL_WINDOW_SIZE, 0x8000_0000)])),
            Session(SessionError::WindowOverflow)),
        case("an initial window that makes a stream's too wide", Server,
            |p| { p.syn(1, &get("/"), true); p.window(1, 0x7000_0000);
                p.settings(&[Setting::new(SettingId::INITIAL_WINDOW_SIZE, 0x7fff_ffff)]); },
            Stream(1, RstStatus::FLOW_CONTROL_ERROR)),
        // §3.3: pushes.
        case("a push that belongs to stream 0", Client, |p| drop(p.push(2, 0, &get("/"))), Session(SessionError::StreamZero)),
        case("a push that belongs to no open stream", Client, |p| drop(p.push(2, 1, &get("/"))),
            Stream(2, RstStatus::INVALID_STREAM)),
        case("a push that names no resource", Client, |p| { replied(p); p.push(2, 1, &ok()); },
            Stream(2, RstStatus::PROTOCOL_ERROR)),
        // §2.2.1 and the lengths of §2.6.
        case("HTTP/1.1", Server, |p| drop(p.bytes(b"\xc7ET / HTTP/1.1\r\n\r\n")), Session(SessionError::Version)),
        case("SPDY/2", Server, |p| drop(p.bytes(&[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])), Session(SessionError::Version)),
        case("a type that is unknown", Server, |p| control(p, FrameType(0x1234), &[1; 100]), Nothing),
        case("a credential", Server, |p| control(p, FrameType::CREDENTIAL, &[0; 100]), Nothing),
        case("a reset of stream 0", Server, |p| control(p, FrameType::RST_STREAM, &[0, 0, 0, 0, 0, 0, 0, 5]),
            Session(SessionError::StreamZero)),
        case("a reset of a stream that never was", Server, |p| control(p, FrameType::RST_STREAM, &[0, 0, 0, 9, 0, 0, 0, 5]), Nothing),
    ]
}

#[test]
fn each_misuse_has_its_answer() {
    for Case { what, role, version, act, expect } in cases() {
        let mut peer = Peer::of(role, version, &Config::default());
        act(&mut peer);
        let sent = peer.sent();
        match expect {
            Nothing => assert_eq!((sent, peer.session.failed()), (vec![], None), "{what}"),
            Stream(stream, status) => {
                assert_eq!(sent, [Sent::Rst(stream, status.0)], "{what}");
                assert_eq!(peer.session.failed(), None, "{what}");
                // The session goes on: a ping is answered.
                let id = if role == Server { 1 } else { 2 };
                peer.frame(Frame::Ping { id });
                assert_eq!(peer.sent(), [Sent::Ping(id)], "{what}");
            }
            Session(error) => {
                assert_eq!(peer.session.failed(), Some(error), "{what}");
                let last = sent.last().unwrap_or_else(|| panic!("{what}: no GOAWAY"));
                assert!(
                    matches!(last, Sent::GoAway(_, status) if *status == error.status().0),
                    "{what}: {last:?}"
                );
                assert!(peer.session.is_over(), "{what}");
                assert_eq!(peer.syn(101, &get("/"), true), [], "{what}: it is deaf");
            }
        }
    }
}

#[test]
fn wrong_lengths_are_session_errors() {
    for (kind, length) in
        [(1, 9), (2, 3), (3, 7), (3, 9), (4, 3), (4, 5), (6, 5), (7, 4), (8, 0), (9, 12)]
    {
        let mut server = Peer::server();
        control(&mut server, FrameType(kind), &vec![0; length]);
        assert!(
            matches!(server.session.failed(), Some(SessionError::Malformed(_))),
            "{kind} {length}"
        );
        assert_eq!(server.sent(), [Sent::GoAway(0, 1)]);
    }
}

#[test]
fn streams_beyond_the_limit_are_refused_and_leave_compression_in_step() {
    let config = Config { max_peer_streams: 2, ..Config::default() };
    let mut server = Peer::of(Role::Server, Version::V3_1, &config);
    for stream in [1, 3, 5, 7] {
        server.syn(stream, &get("/"), true);
    }
    let refused = RstStatus::REFUSED_STREAM.0;
    assert_eq!(server.sent(), [Sent::Rst(5, refused), Sent::Rst(7, refused)]);
    server.session.reply(id(1), &ok(), true).unwrap();
    let events = server.syn(9, &get("/again"), true);
    let [Event::Opened { headers, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(headers.get(":path"), Some(&b"/again"[..]));
}

#[test]
fn data_above_the_window_end_the_stream_or_the_session() {
    let flow = FlowControl { stream_window: 100_000, session_window: 200_000, update_divisor: 2 };
    let config = Config { flow, ..Config::default() };
    let mut server = Peer::of(Role::Server, Version::V3_1, &config);
    server.syn(1, &get("/"), false);
    server.data(1, &vec![0; 100_000], false);
    assert_eq!(server.session.receive_window(Some(id(1))), Some(0));
    let misused = ResetReason::Misused(RstStatus::FLOW_CONTROL_ERROR);
    assert_eq!(server.data(1, b"x", false), [Event::Reset { stream: id(1), reason: misused }]);
    // What the stream had not consumed is given back to the session with it.
    let sent = [Sent::Rst(1, RstStatus::FLOW_CONTROL_ERROR.0), Sent::Window(0, 100_001)];
    assert_eq!(server.sent(), sent);
    assert_eq!(server.session.receive_window(None), Some(200_000));
    for stream in [3, 5] {
        server.syn(stream, &get("/"), false);
        server.data(stream, &vec![0; 100_000], false);
    }
    server.syn(7, &get("/"), false);
    assert_eq!(server.session.failed(), None);
    server.data(7, b"x", false);
    assert_eq!(server.session.failed(), Some(SessionError::WindowViolated));
}

#[test]
fn a_client_that_did_not_know_of_a_small_window_is_borne() {
    let flow = FlowControl { stream_window: 16 << 10, session_window: 0, update_divisor: 2 };
    let config = Config { flow, ..Config::default() };
    let mut server = Peer::of(Role::Server, Version::V3, &config);
    server.syn(1, &get("/"), false);
    // §2.6.8: the second option: 64 KB are taken, and -48 KB counted.
    server.data(1, &vec![0; 64 << 10], false);
    assert_eq!(server.session.receive_window(Some(id(1))), Some(-(48 << 10)));
    server.session.consume(id(1), 16 << 10);
    assert_eq!(server.sent(), [Sent::Window(1, 16 << 10)]);
    server.data(1, &vec![0; (16 << 10) + 1], false);
    assert_eq!(server.sent(), [Sent::Rst(1, RstStatus::FLOW_CONTROL_ERROR.0)]);
}

#[test]
fn a_compression_bomb_ends_the_session() {
    let mut server = Peer::server();
    let bomb = server.compress(&block(&[(b"a", &vec![b'a'; 8 << 20])]));
    assert!(bomb.len() < 20_000);
    server.frame(Frame::SynStream {
        stream: id(1),
        associated: id(0),
        priority: Priority::HIGHEST,
        fin: true,
        unidirectional: false,
        block: &bomb,
    });
    // §2.6.3: "senders of FRAME_TOO_LARGE MUST close the session".
    assert_eq!(server.sent(), [Sent::Rst(1, RstStatus::FRAME_TOO_LARGE.0), Sent::GoAway(0, 1)]);
    assert_eq!(server.session.failed(), Some(SessionError::TooLarge));
}

#[test]
fn a_control_frame_longer_than_is_taken_ends_the_session_before_it_is_held() {
    for (kind, sent) in [
        (
            FrameType::SYN_STREAM,
            vec![Sent::Rst(1, RstStatus::FRAME_TOO_LARGE.0), Sent::GoAway(0, 1)],
        ),
        (FrameType::SETTINGS, vec![Sent::GoAway(0, 1)]),
    ] {
        let mut server = Peer::server();
        let header = Header::Control { kind, flags: 0, length: 0x00ff_ffff };
        server.bytes(&[&header.to_bytes()[..], &[0, 0, 0, 1]].concat());
        assert_eq!(server.sent(), sent);
    }
}

/// Sends the frame with this number.
type Act = fn(&mut Peer, u32);

/// Sends frames until the session fails; how many it took.
fn flood(
    peer: &mut Peer,
    mut frame: impl FnMut(&mut Peer, u32),
    read: bool,
) -> (u32, SessionError) {
    for count in 0..100_000 {
        if let Some(error) = peer.session.failed() {
            return (count, error);
        }
        frame(peer, count);
        if read {
            peer.sent();
        }
    }
    panic!("a flood without end");
}

#[test]
fn floods_end_the_session_though_the_peer_reads() {
    let config = Config {
        flood: FloodLimit { burst: 50, per_second: 10 },
        max_peer_streams: 10,
        ..Config::default()
    };
    let floods: [(&str, Act); 7] = [
        ("PING", |p, _| drop(p.frame(Frame::Ping { id: 1 }))),
        ("SETTINGS", |p, n| drop(p.settings(&[Setting::new(SettingId::INITIAL_WINDOW_SIZE, n)]))),
        ("refused SYN_STREAM", |p, n| drop(p.syn(2 * n + 1, &get("/"), true))),
        ("SYN_STREAM and RST_STREAM", |p, n| {
            p.syn(2 * n + 1, &get("/"), true);
            p.frame(Frame::RstStream { stream: id(2 * n + 1), status: RstStatus::CANCEL });
        }),
        ("RST_STREAM", |p, _| {
            drop(p.frame(Frame::RstStream { stream: id(1), status: RstStatus::CANCEL }))
        }),
        ("HEADERS", |p, _| {
            p.syn(1, &get("/"), false);
            p.more(1, &Headers::new(), false);
        }),
        ("data of no length", |p, n| {
            if n == 0 {
                p.syn(1, &get("/"), false);
            }
            p.data(1, b"", false);
        }),
    ];
    for (what, frame) in floods {
        let mut server = Peer::of(Role::Server, Version::V3_1, &config);
        let (count, error) = flood(&mut server, frame, true);
        assert_eq!(error, SessionError::Flood, "{what}");
        assert!((10..=62).contains(&count), "{what}: {count}");
        assert!(server.session.is_over() && server.session.open_streams() == 0, "{what}");
    }
}

#[test]
fn answers_that_nobody_reads_end_the_session() {
    let flood_limit = FloodLimit { burst: u32::MAX, per_second: 0 };
    let config = Config { flood: flood_limit, max_answers: 6000, ..Config::default() };
    let floods: [(&str, Act); 2] = [
        ("PING", |p, _| drop(p.frame(Frame::Ping { id: 1 }))),
        ("data on streams that never were", |p, n| drop(p.data(2 * n + 1, b"", true))),
    ];
    for (what, frame) in floods {
        let mut server = Peer::of(Role::Server, Version::V3_1, &config);
        let (count, error) = flood(&mut server, frame, false);
        assert_eq!(error, SessionError::AnswersUnread, "{what}");
        assert!(count <= 501, "{what}: {count}");
    }
}

#[test]
fn an_idle_session_may_be_pinged_for_ever() {
    let mut server = Peer::server();
    for second in 0..5000 {
        let mut ping = vec![];
        Frame::Ping { id: 1 }.emit(&mut ping).unwrap();
        server.session.receive(Bytes::from(ping));
        crate::common::events_at(&mut server.session, units::Time::from_millis(second * 1000));
        assert_eq!(server.sent(), [Sent::Ping(1)]);
    }
}
