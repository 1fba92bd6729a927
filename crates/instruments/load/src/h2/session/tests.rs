//! A connection, by the bytes of a server.

use proptest::prelude::*;

use super::*;
use crate::h2::get;

const HEADERS: u8 = 1;
const DATA: u8 = 0;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header =
        Header { length: payload.len() as u32, kind: FrameType(kind), flags, stream }.to_bytes();
    [&header[..], payload].concat()
}

fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entries = entries.iter().flat_map(|(id, value)| {
        id.to_be_bytes().into_iter().chain(value.to_be_bytes()).collect::<Vec<u8>>()
    });
    frame(4, 0, 0, &entries.collect::<Vec<u8>>())
}

/// A connection with so many requests under way, whose server has sent its settings.
fn session(streams: usize) -> Session {
    let mut session = untold(streams);
    assert_eq!(feed(&mut session, &settings(&[])), Ok(vec![]));
    session.out.clear();
    session
}

/// The same, before the server's settings.
fn untold(streams: usize) -> Session {
    let mut session = Session::new(streams, None);
    let block = get("https", "server.test", "/");
    for due in 0..streams as u64 {
        session.request(&block, due, due);
    }
    session.out.clear();
    session
}

fn feed(session: &mut Session, bytes: &[u8]) -> Result<Vec<Outcome>, Violation> {
    let mut outcomes = Vec::new();
    session.receive(bytes, 9, &mut |outcome| outcomes.push(outcome)).map(|()| outcomes)
}

fn kinds(outcomes: &[Outcome]) -> String {
    let letters = outcomes.iter().map(|outcome| match outcome {
        Outcome::Begun(_) => 'b',
        Outcome::Answered(_) => 'a',
        Outcome::Reset(..) => 'r',
        Outcome::Malformed(..) => 'm',
        Outcome::TimedOut(_) => 't',
        Outcome::Unprocessed(_) => 'u',
    });
    letters.collect()
}

#[test]
fn it_begins_with_the_preface_and_wide_windows() {
    let session = Session::new(1, None);
    let frames = session.out.strip_prefix(PREFACE).unwrap();
    let frames: Vec<_> = wire::http2::Frames::new(frames).map(Result::unwrap).collect();
    assert_eq!(frames[0].0.kind, FrameType::SETTINGS);
    let increment = MAX_WINDOW - DEFAULT_WINDOW;
    assert_eq!(frames[1].1, wire::http2::Frame::WindowUpdate { increment });
}

#[test]
fn responses_end_as_they_may_end() {
    let ok = frame(HEADERS, 4, 1, &[0x88]);
    for (bytes, want) in [
        (frame(HEADERS, 5, 1, &[0x88]), "ba"),
        ([ok.clone(), frame(DATA, 1, 1, b"body")].concat(), "ba"),
        ([ok.clone(), frame(DATA, 0, 1, b"body"), frame(DATA, 1, 1, b"")].concat(), "ba"),
        // Padding, and trailers.
        ([ok.clone(), frame(DATA, 9, 1, b"\x02ok\0\0")].concat(), "ba"),
        ([ok.clone(), frame(HEADERS, 5, 1, b"\x00\x01a\x01b")].concat(), "ba"),
        // Priority and padding before the block.
        (frame(HEADERS, 0x2d, 1, &[1, 0, 0, 0, 0, 9, 0x88, 0]), "ba"),
        // Interim responses.
        ([frame(HEADERS, 4, 1, b"\x08\x03100"), ok.clone(), frame(DATA, 1, 1, b"")].concat(), "ba"),
        // In pieces.
        (
            [frame(HEADERS, 1, 1, b"\x08\x03"), frame(9, 0, 1, b""), frame(9, 4, 1, b"404")]
                .concat(),
            "ba",
        ),
        // Unknown frames and what is left of closed streams are passed over.
        (
            [frame(200, 7, 5, b"what"), frame(HEADERS, 5, 1, &[0x88]), frame(DATA, 0, 1, b"late")]
                .concat(),
            "ba",
        ),
        (ok.clone(), "b"),
        (frame(3, 0, 1, &8u32.to_be_bytes()), "r"),
        (frame(3, 0, 1, &7u32.to_be_bytes()), "u"),
        // What breaks HTTP/2 is the stream's alone.
        (frame(DATA, 1, 1, b"body"), "m"),
        (frame(HEADERS, 5, 1, b"\x00\x01a\x01b"), "m"),
        ([ok.clone(), frame(HEADERS, 4, 1, b"\x00\x01a\x01b")].concat(), "bm"),
        ([ok.clone(), frame(HEADERS, 5, 1, &[0x88])].concat(), "bm"),
        (frame(HEADERS, 5, 1, b"\x08\x03100"), "m"),
        (frame(8, 0, 1, &[0; 4]), "m"),
    ] {
        let mut session = session(2);
        let outcomes = feed(&mut session, &bytes).unwrap();
        assert_eq!(kinds(&outcomes), want, "{bytes:x?}");
        let resets = session.out.windows(4).any(|bytes| bytes == [0, 4, 3, 0]);
        assert_eq!(resets, want.ends_with('m'), "{bytes:x?}");
        assert_eq!(session.open(), 2 - usize::from(want != "b"), "{bytes:x?}");
    }
}

#[test]
fn what_breaks_the_connection_ends_it() {
    let protocol = code::PROTOCOL_ERROR;
    for (bytes, want) in [
        (frame(DATA, 0, 0, b"x"), protocol),
        (frame(DATA, 0, 2, b"x"), protocol),
        (frame(DATA, 8, 1, &[1]), protocol),
        (frame(DATA, 8, 1, &[]), protocol),
        (frame(HEADERS, 5, 99, &[0x88]), protocol),
        (frame(HEADERS, 0x0d, 1, &[9, 0x88]), protocol),
        (frame(HEADERS, 5, 1, &[0x80]), code::COMPRESSION_ERROR),
        ([frame(HEADERS, 1, 1, &[]), frame(6, 0, 0, &[0; 8])].concat(), protocol),
        ([frame(HEADERS, 1, 1, &[]), frame(9, 4, 3, &[0x88])].concat(), protocol),
        (frame(9, 4, 1, &[0x88]), protocol),
        (frame(5, 4, 1, &[0, 0, 0, 2, 0x82]), protocol),
        (frame(6, 0, 0, &[0; 7]), code::FRAME_SIZE_ERROR),
        (frame(4, 0, 0, &[0; 5]), code::FRAME_SIZE_ERROR),
        (frame(3, 0, 1, &[0; 5]), code::FRAME_SIZE_ERROR),
        (frame(0, 0, 1, &[0; 16_385]), code::FRAME_SIZE_ERROR),
        (frame(8, 0, 0, &[0; 4]), protocol),
        (settings(&[(2, 1)]), protocol),
        (settings(&[(4, 1 << 31)]), code::FLOW_CONTROL_ERROR),
        (settings(&[(5, 100)]), protocol),
    ] {
        let mut session = session(2);
        let violation = feed(&mut session, &bytes).unwrap_err();
        assert_eq!(violation.code, want, "{bytes:x?}: {}", violation.text);
        assert!(session.out.windows(4).any(|bytes| bytes == [0, 8, 7, 0]), "GOAWAY: {bytes:x?}");
    }
    for (first, says) in
        [(&b"HTTP/1.1 400 Bad Request\r\n"[..], "HTTP/1.1"), (&frame(6, 0, 0, &[0; 8]), "SETTINGS")]
    {
        let violation = feed(&mut untold(1), first).unwrap_err();
        assert!(violation.text.contains(says), "{}", violation.text);
    }
}

#[test]
fn an_endless_header_block_is_given_up() {
    for piece in [&[0u8; 1000][..], &[]] {
        let mut session = session(1);
        feed(&mut session, &frame(HEADERS, 1, 1, &[])).unwrap();
        let ended = (0..2000).find_map(|_| feed(&mut session, &frame(9, 0, 1, piece)).err());
        assert_eq!(ended.map(|violation| violation.code), Some(code::ENHANCE_YOUR_CALM));
    }
}

#[test]
fn a_server_that_asks_and_does_not_read_is_given_up() {
    let mut session = session(1);
    let ping = frame(6, 0, 0, &[7; 8]);
    let ended = (0..100_000).find_map(|_| feed(&mut session, &ping).err());
    assert_eq!(ended.map(|violation| violation.code), Some(code::ENHANCE_YOUR_CALM));
}

#[test]
fn the_servers_limit_of_streams_holds() {
    let mut session = Session::new(300, None);
    let block = get("https", "server.test", "/");
    let fill = |session: &mut Session| {
        let mut sent = 0;
        while session.has_room() {
            session.request(&block, 0, 0);
            sent += 1;
        }
        sent
    };
    // Before its settings 100; then as many as it says.
    assert_eq!(fill(&mut session), 100);
    feed(&mut session, &settings(&[(3, 150)])).unwrap();
    assert_eq!(fill(&mut session), 50);
    feed(&mut session, &settings(&[(3, 0)])).unwrap();
    assert!(!session.has_room() && session.may_go_on());
    feed(&mut session, &settings(&[(3, u32::MAX)])).unwrap();
    assert_eq!(fill(&mut session), 150);
    // A refusal from before the settings is no failure; a later one is.
    let refused = |id| frame(3, 0, id, &7u32.to_be_bytes());
    assert_eq!(kinds(&feed(&mut session, &refused(1)).unwrap()), "u");
    assert_eq!(kinds(&feed(&mut session, &refused(201)).unwrap()), "r");
}

#[test]
fn goaway_gives_back_what_was_not_looked_at() {
    let mut session = session(4);
    let goaway = frame(7, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(kinds(&feed(&mut session, &goaway).unwrap()), "uu");
    assert_eq!((session.open(), session.going(), session.may_go_on()), (2, Some(0), false));
    let rest = [frame(HEADERS, 5, 1, &[0x88]), frame(HEADERS, 5, 3, &[0x88])].concat();
    assert_eq!(kinds(&feed(&mut session, &rest).unwrap()), "baba");
    assert_eq!((session.open(), session.answered()), (0, 2));
}

#[test]
fn a_slow_stream_keeps_its_place() {
    let mut session = session(1);
    session.most = 2;
    let block = get("https", "server.test", "/");
    for _ in 0..1000 {
        session.request(&block, 0, 0);
        let id = session.next - 2;
        assert_ne!(id, 1);
        assert_eq!(kinds(&feed(&mut session, &frame(HEADERS, 5, id, &[0x88])).unwrap()), "ba");
    }
    assert_eq!(kinds(&feed(&mut session, &frame(HEADERS, 5, 1, &[0x88])).unwrap()), "ba");
    assert_eq!(session.open(), 0);
}

#[test]
fn requests_that_take_too_long_are_cancelled() {
    let mut session = session(3);
    let mut outcomes = Vec::new();
    // Started at 0, 1 and 2; the server was heard at 9.
    let dead = session.expire(101, 100, &mut |outcome| outcomes.push(outcome));
    assert_eq!((kinds(&outcomes).as_str(), dead, session.open()), ("tt", false, 1));
    assert!(session.out.windows(4).any(|bytes| bytes == [0, 4, 3, 0]), "RST_STREAM");
    session.request(&get("https", "a", "/"), 20, 20);
    outcomes.clear();
    let dead = session.expire(500, 100, &mut |outcome| outcomes.push(outcome));
    assert_eq!((kinds(&outcomes).as_str(), dead, session.open()), ("tt", true, 0));
}

#[test]
fn windows_are_opened_again() {
    let mut session = session(1);
    feed(&mut session, &frame(HEADERS, 4, 1, &[0x88])).unwrap();
    session.out.clear();
    // As if that much had come.
    session.received = USED - 1;
    session.streams.iter_mut().for_each(|stream| stream.received = USED - 1);
    feed(&mut session, &frame(DATA, 0, 1, b"x")).unwrap();
    let frames: Vec<_> = wire::http2::Frames::new(&session.out).map(Result::unwrap).collect();
    let updates: Vec<u32> = frames.iter().map(|(header, _)| header.stream).collect();
    assert_eq!(updates, [0, 1]);
    assert!(
        frames
            .iter()
            .all(|(_, frame)| *frame == wire::http2::Frame::WindowUpdate { increment: USED })
    );
}

#[test]
fn a_long_request_goes_out_in_pieces_behind_a_change_of_the_table() {
    let mut session = session(1);
    session.most = 2;
    feed(&mut session, &settings(&[(1, 0)])).unwrap();
    session.out.clear();
    session.request(&get("https", "a", &format!("/{}", "x".repeat(40_000))), 0, 0);
    let frames: Vec<_> = wire::http2::Frames::new(&session.out).map(Result::unwrap).collect();
    let found: Vec<_> = frames.iter().map(|(header, _)| (header.kind.0, header.flags)).collect();
    assert_eq!(found, [(1, 1), (9, 0), (9, 4)]);
    assert_eq!(session.out[9], 0x20);
    assert!(frames.iter().all(|(header, _)| header.length <= 16_384));
}

proptest! {
    #[test]
    fn any_bytes_stay_bounded(first: u8, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        crate::h2::fuzz(&[&[first][..], &settings(&[]), &bytes].concat());
    }

    #[test]
    fn any_frames_stay_bounded(
        first: u8,
        frames in proptest::collection::vec((0u8..11, any::<u8>(), 0u32..8, proptest::collection::vec(any::<u8>(), 0..12)), 0..30),
    ) {
        let frames = frames.iter().flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload));
        let bytes: Vec<u8> = [first].into_iter().chain(settings(&[])).chain(frames).collect();
        crate::h2::fuzz(&bytes);
    }
}
