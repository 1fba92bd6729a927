//! What a chart says of conversations whose windows are known.

use bytes::Bytes;
use sequence::{Connection, Event, Kind, Limits, Protocol, fold, text};
use spdy::{Config, FlowControl, Headers, Priority, Role, Session, StreamId, Version};
use units::Time;
use wire::http2;

use crate::talk::Talk;

fn get() -> Headers {
    let pairs = [(":method", "GET"), (":path", "/"), (":version", "HTTP/1.1")];
    Headers::from_pairs(pairs.into_iter().chain([(":host", "a.test"), (":scheme", "https")]))
        .unwrap()
}

fn ok() -> Headers {
    Headers::from_pairs([(":status", "200 OK"), (":version", "HTTP/1.1")]).unwrap()
}

/// Carries what waits, both ways, until nothing does; data are consumed in pieces of so many bytes.
fn carry(talk: &mut Talk, sessions: &mut [Session; 2], piece: usize) {
    while sessions.iter().any(Session::wants_write) {
        for from in [0, 1] {
            let mut out = vec![];
            sessions[from].write_to(&mut out, 20_000);
            talk.send(from, &out);
            let to = &mut sessions[1 - from];
            to.receive(Bytes::from(out));
            while let Some(event) = to.poll_event(Time::ZERO) {
                if let spdy::Event::Data { stream, data, .. } = event {
                    let mut left = data.len();
                    while left > 0 {
                        to.consume(stream, left.min(piece));
                        left -= left.min(piece);
                    }
                }
            }
        }
    }
}

/// A download of so many bytes by SPDY/3 in clear, and what the server's session says of the stream.
fn download(flow: FlowControl, bytes: usize, piece: usize) -> (Connection, Option<i64>) {
    let config = Config { flow, send_queue: bytes, ..Config::default() };
    let mut sessions = [Role::Client, Role::Server]
        .map(|role| Session::new(role, Version::V3, config.clone()).unwrap());
    let mut talk = Talk::new();
    let stream = sessions[0].open(&get(), Priority::HIGHEST, true).unwrap();
    carry(&mut talk, &mut sessions, piece);
    sessions[1].reply(stream, &ok(), false).unwrap();
    sessions[1].write(stream, &mut Bytes::from(vec![7; bytes]), false).unwrap();
    carry(&mut talk, &mut sessions, piece);
    let left = sessions[1].send_window(Some(stream));
    let mut chart = talk.read();
    assert_eq!((chart.connections.len(), chart.others, chart.unread.len()), (1, 0, 0));
    (chart.connections.remove(0), left)
}

/// What was left on a stream after the last event that says so.
fn last_left(connection: &Connection, stream: StreamId) -> Option<i64> {
    let of_stream =
        |event: &&Event| event.stream == stream.value() && event.stream_window.is_some();
    connection.events.iter().rev().find(of_stream).and_then(|event| event.stream_window)
}

#[test]
fn the_presets_windows_are_read_from_the_wire() {
    const MB: i64 = 1 << 20;
    for (flow, bytes, announced, share) in [
        (FlowControl::CHROMIUM, 12 << 20, Some(10 * MB), 0.5),
        (FlowControl::GOOGLE, 2 << 20, Some(MB), 0.5),
        (FlowControl::MOD_SPDY, 1 << 20, None, 0.125),
    ] {
        let (connection, left) = download(flow, bytes, 1);
        assert_eq!(connection.protocol, Protocol::Spdy3);
        assert_eq!(connection.gaps, []);
        let windows = &connection.server_sends;
        assert_eq!(windows.start_bytes, 64 << 10);
        assert_eq!(windows.announced_bytes.map(i64::from), announced);
        assert_eq!((windows.data_bytes, windows.overruns), (bytes as u64, 0));
        // The byte above the part makes the update due: no more than that one.
        let window = announced.unwrap_or(64 << 10);
        let expected = (window as f64 * share) as u32 + 1;
        let updates = windows.stream_updates;
        assert_eq!((updates.least_bytes, updates.largest_bytes), (Some(expected), Some(expected)));
        assert!((updates.median_share.unwrap() - share).abs() < 1e-3);
        assert_eq!(left, last_left(&connection, StreamId::new(1)), "{flow:?}");
        // The server consumes nothing, and announces what it would take.
        assert_eq!(connection.client_sends.announced_bytes.map(i64::from), announced);
        assert_eq!(connection.client_sends.data_frames, 0);
    }
}

#[test]
fn a_chart_is_written_on_a_screen_and_in_full() {
    let (connection, _) = download(FlowControl::MOD_SPDY, 1 << 20, 1);
    let folded = fold(&connection.events);
    assert!(folded.len() > 100 && folded.len() <= connection.events.len());
    let frames = connection.events.len();
    let chart = sequence::Chart { connections: vec![connection], ..Default::default() };
    let screen = text::chart(&chart, Some(40));
    println!("{screen}");
    assert!(screen.lines().count() <= 40);
    let whole = text::chart(&chart, None);
    let arrows = |text: &str| text.lines().filter(|line| line.contains('\u{2500}')).count();
    assert_eq!(arrows(&whole), frames);
    for said in [
        "client announces no window: streams keep 64 KiB",
        "WINDOW_UPDATE after 8,193 bytes of a stream (0.125 of its window, 127 times)",
        "server sends 1 MiB in",
        "DATA 1, 16,384 bytes  [left: stream 48 KiB]",
        "WINDOW_UPDATE 1 +8,193",
    ] {
        assert!(whole.contains(said), "{said}: {screen}");
    }
    let json = serde_json::to_string(&chart).unwrap();
    assert_eq!(serde_json::from_str::<sequence::Chart>(&json).unwrap(), chart);
}

/// A frame of HTTP/2.
fn frame(kind: http2::FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = http2::Header { length: payload.len() as u32, kind, flags, stream };
    [&header.to_bytes()[..], payload].concat()
}

/// A conversation by HTTP/2 whose every window is known.
fn http2_talk() -> Talk {
    use http2::FrameType;
    let mut talk = Talk::new();
    let settings = [0, 4, 0, 0, 0x03, 0xe8];
    talk.send(0, http2::PREFACE);
    talk.send(0, &frame(FrameType::SETTINGS, 0, 0, &[]));
    talk.send(0, &frame(FrameType::WINDOW_UPDATE, 0, 0, &1000u32.to_be_bytes()));
    talk.send(0, &frame(FrameType::HEADERS, 5, 1, &[0x82]));
    talk.send(1, &frame(FrameType::SETTINGS, 0, 0, &[]));
    talk.send(1, &frame(FrameType::SETTINGS, 1, 0, &[]));
    talk.send(1, &frame(FrameType::HEADERS, 4, 1, &[0x88]));
    talk.send(1, &frame(FrameType::DATA, 0, 1, &[0; 500]));
    talk.send(0, &frame(FrameType::SETTINGS, 0, 0, &settings));
    // 5 bytes of padding and their length count too.
    talk.send(1, &frame(FrameType::DATA, 8, 1, &[&[5][..], &[0; 299]].concat()));
    talk.send(0, &frame(FrameType::WINDOW_UPDATE, 0, 1, &800u32.to_be_bytes()));
    talk.send(0, &frame(FrameType::WINDOW_UPDATE, 0, 0, &800u32.to_be_bytes()));
    talk.send(1, &frame(FrameType::DATA, 1, 1, &[0; 1000]));
    talk
}

#[test]
fn every_window_of_http2_is_known() {
    let chart = http2_talk().read();
    let connection = &chart.connections[0];
    assert_eq!(connection.protocol, Protocol::Http2);
    let of = |kind: fn(&Kind) -> bool| -> Vec<_> {
        let events = connection.events.iter().filter(|event| kind(&event.kind));
        events.map(|event| (event.length, event.stream_window, event.connection_window)).collect()
    };
    // 65,535 + 1000 for the connection; SETTINGS take 64,535 from the open stream.
    let data = of(|kind| matches!(kind, Kind::Data { .. }));
    assert_eq!(
        data,
        [
            (500, Some(65_035), Some(66_035)),
            (300, Some(200), Some(65_735)),
            (1000, Some(0), Some(65_535)),
        ]
    );
    let updates = of(|kind| matches!(kind, Kind::WindowUpdate { .. }));
    let left: Vec<_> = updates.iter().map(|(_, stream, whole)| (*stream, *whole)).collect();
    assert_eq!(left, [(None, Some(66_535)), (Some(1000), Some(65_735)), (None, Some(66_535))]);
    let windows = &connection.server_sends;
    assert_eq!((windows.start_bytes, windows.announced_bytes), (65_535, Some(1000)));
    assert_eq!(
        (windows.connection_start_bytes, windows.connection_bytes),
        (Some(65_535), Some(66_535))
    );
    assert_eq!(windows.stream_updates.median_share, Some(0.8));
    assert_eq!((windows.connection_updates.count, windows.shut), (1, 1));
    assert_eq!(windows.before_settings_bytes, 0);
}

#[test]
fn a_gap_is_said_and_the_other_direction_goes_on() {
    let mut talk = http2_talk();
    // The server's second DATA frame.
    let lost = talk.packets.len() - 4;
    talk.packets.remove(lost);
    let chart = talk.read();
    let connection = &chart.connections[0];
    let [gap] = &connection.gaps[..] else { panic!("{:?}", connection.gaps) };
    assert!(!gap.from_client && gap.why.contains("not in the capture"), "{gap:?}");
    let from_client = |event: &&Event| event.from_client;
    assert_eq!(connection.events.iter().filter(from_client).count(), 6);
    assert_eq!(connection.server_sends.data_frames, 1);
    assert!(text::chart(&chart, Some(40)).contains("not read to the end"));
}

#[test]
fn what_is_not_ours_is_counted_and_what_is_closed_is_named() {
    let mut other = Talk::new();
    other.send(0, b"GET / HTTP/1.1\r\n\r\n");
    let chart = other.read();
    assert_eq!((chart.connections.len(), chart.others), (0, 1));
    // A ServerHello without a ClientHello that could be found in a key log.
    let mut closed = Talk::new();
    let random = [7; 32];
    let hello = wire::tls::ClientHelloRepr {
        legacy_version: 0x0303,
        random,
        session_id: &[],
        cipher_suites: vec![0x1301],
        extensions: vec![],
    };
    let mut message = vec![0; hello.buffer_len()];
    hello.emit(&mut message).unwrap();
    let record = |message: &[u8]| [&[22, 3, 3, 0, message.len() as u8][..], message].concat();
    closed.send(0, &record(&message));
    let hello = wire::tls::ServerHelloRepr {
        legacy_version: 0x0303,
        random,
        session_id: &[],
        cipher_suite: 0x1301,
        extensions: vec![],
    };
    let mut message = vec![0; hello.buffer_len()];
    hello.emit(&mut message).unwrap();
    closed.send(1, &record(&message));
    let chart = closed.read();
    assert_eq!((chart.connections.len(), chart.unread.len()), (0, 1));
    assert!(text::chart(&chart, Some(40)).contains("there are no TLS secrets of it"));
}

#[test]
fn events_are_bounded_and_windows_are_not() {
    let talk = http2_talk();
    let (all, few) = (talk.read(), talk.read_with(Limits { events: 3, ..Limits::default() }));
    let (all, few) = (&all.connections[0], &few.connections[0]);
    assert_eq!((few.events.len(), few.left_out as usize), (3, all.events.len() - 3));
    assert_eq!(few.server_sends, all.server_sends);
}

/// A conversation whose server sends its SETTINGS before the client's preface (RFC 9113 §3.4).
#[test]
fn a_server_may_speak_first() {
    use http2::FrameType;
    let settings = frame(FrameType::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 100]);
    let mut talk = Talk::new();
    // In pieces, none of which is a frame.
    talk.send(1, &settings[..4]);
    talk.send(1, &settings[4..]);
    talk.send(0, &http2::PREFACE[..9]);
    talk.send(0, &http2::PREFACE[9..]);
    talk.send(0, &frame(FrameType::SETTINGS, 0, 0, &[]));
    talk.send(0, &frame(FrameType::DATA, 1, 1, &[0; 30]));
    let chart = talk.read();
    assert_eq!((chart.connections.len(), chart.others), (1, 0));
    let connection = &chart.connections[0];
    let seen: Vec<_> = connection.events.iter().map(|e| (e.from_client, e.kind.name())).collect();
    assert_eq!(seen, [(false, "SETTINGS"), (true, "SETTINGS"), (true, "DATA")]);
    // Three packets made the connection.
    assert_eq!(connection.events[0].at, Time::from_millis(4));
    assert_eq!(connection.client_sends.announced_bytes, Some(100));
    assert_eq!(connection.events[2].stream_window, Some(70));
    assert_eq!(connection.gaps, []);
}

/// An upgrade from HTTP/1.1, with a body and an interim answer or without.
#[test]
fn an_upgrade_from_http_1_1_is_followed() {
    use http2::FrameType;
    // INITIAL_WINDOW_SIZE 1000.
    let fields = "Host: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                  HTTP2-Settings: AAQAAAPo\r\n";
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";
    for (request, answer) in [
        (format!("GET / HTTP/1.1\r\n{fields}\r\n"), switch.to_owned()),
        (
            format!("POST / HTTP/1.1\r\nContent-Length: 5\r\n{fields}\r\nhello"),
            interim.to_owned() + switch,
        ),
        (
            format!(
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{fields}\r\n2\r\nhi\r\n0\r\n\r\n"
            ),
            switch.to_owned(),
        ),
    ] {
        // Whole, or a byte at a time; the answer's frames in the packet of its head.
        for piece in [1400, 1] {
            let mut talk = Talk::new();
            let mut send = |side, bytes: &[u8]| {
                bytes.chunks(piece).for_each(|bytes| talk.send(side, bytes));
            };
            send(0, request.as_bytes());
            let settings = frame(FrameType::SETTINGS, 0, 0, &[]);
            send(1, &[answer.as_bytes(), &settings].concat());
            send(0, &[&http2::PREFACE[..], &settings].concat());
            send(1, &frame(FrameType::HEADERS, 4, 1, &[0x88]));
            send(1, &frame(FrameType::DATA, 1, 1, &[0; 300]));
            let chart = talk.read();
            assert_eq!((chart.connections.len(), chart.others), (1, 0), "{request}");
            let connection = &chart.connections[0];
            assert_eq!(connection.gaps, [], "{request}");
            let seen = connection.events.iter().map(|e| (e.from_client, e.kind.name()));
            let expected = [
                (true, "SETTINGS"),
                (false, "SETTINGS"),
                (true, "SETTINGS"),
                (false, "HEADERS"),
                (false, "DATA"),
            ];
            assert!(seen.eq(expected), "{request}: {:?}", connection.events);
            assert_eq!(connection.server_sends.announced_bytes, Some(1000), "{request}");
            assert_eq!(connection.events[4].stream_window, Some(700), "{request}");
        }
    }
}

#[test]
fn an_upgrade_that_is_refused_is_something_else() {
    let request = "GET / HTTP/1.1\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n";
    for (request, answer) in [
        (request, "HTTP/1.1 200 OK\r\n\r\n"),
        (request, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
        (
            "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        ),
        ("GET / HTTP/1.1\r\nUpgrade: h2c", ""),
        ("", "220 mail.test ESMTP\r\n"),
        ("", ""),
    ] {
        let mut talk = Talk::new();
        talk.send(0, request.as_bytes());
        talk.send(1, answer.as_bytes());
        talk.send(0, &[0x80; 20]);
        let chart = talk.read();
        assert_eq!((chart.connections.len(), chart.others), (0, 1), "{request} {answer}");
    }
    // More than is held of a server that speaks first.
    let mut talk = Talk::new();
    (0..60).for_each(|_| talk.send(1, &[b'a'; 1400]));
    talk.send(0, http2::PREFACE);
    assert_eq!((talk.read().connections.len(), talk.read().others), (0, 1));
}

proptest::proptest! {
    #[test]
    fn any_opening_does_not_panic(
        pieces in proptest::collection::vec(
            (proptest::prelude::any::<bool>(), "(GET / HTTP/1.1|Upgrade: h2c|HTTP2-Settings: AAQ|HTTP/1.1 10[01] |[\r\n:, PRI*]){0,6}"),
            0..12,
        ),
    ) {
        let mut talk = Talk::new();
        for (side, text) in &pieces {
            talk.send(usize::from(*side), text.as_bytes());
        }
        talk.read();
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        sequence::fuzz::connection(&bytes);
    }
}
