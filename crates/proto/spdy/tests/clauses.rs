//! What the draft asks for, frame by frame.

use std::time::Duration;

use bytes::Bytes;
use spdy::{
    CallError, Config, Event, FlowControl, GoAwayStatus, Headers, Priority, ResetReason, Role,
    RstStatus, Setting, SettingId, Version,
};
use units::Time;
use wire::spdy::Frame;

use crate::common::{Pair, Peer, Sent, events_at, get, id, ok, output, session};

fn data(stream: u32, payload: &[u8], fin: bool) -> Event {
    Event::Data { stream: id(stream), data: Bytes::copy_from_slice(payload), fin }
}

fn reset(stream: u32, reason: ResetReason) -> Event {
    Event::Reset { stream: id(stream), reason }
}

#[test]
fn a_session_begins_with_settings_and_in_3_1_with_its_window() {
    let config = Config { flow: FlowControl::GOOGLE, ..Config::default() };
    let settings = Sent::Settings(vec![(4, 100, false, false), (7, 1 << 20, false, false)]);
    let mut old = Peer::fresh(Role::Client, Version::V3, &config);
    assert_eq!(old.sent(), std::slice::from_ref(&settings));
    let mut new = Peer::fresh(Role::Client, Version::V3_1, &config);
    assert_eq!(new.sent(), [settings, Sent::Window(0, (1 << 20) - (64 << 10))]);
    let config = Config { flow: FlowControl::MOD_SPDY, accept_push: false, ..Config::default() };
    let mut plain = Peer::fresh(Role::Client, Version::V3_1, &config);
    assert_eq!(plain.sent(), [Sent::Settings(vec![(4, 0, false, false)])]);
}

#[test]
fn the_bytes_of_a_get_are_those_of_the_figure() {
    let mut client = session(Role::Client, &Config { header_level: 0, ..Config::default() });
    output(&mut client);
    client.open(&get("/"), Priority::new(5).unwrap(), true).unwrap();
    let bytes = output(&mut client);
    // §2.6.1: version 3, type 1, FLAG_FIN, length, stream 1, no associated stream, priority 5, no slot.
    let length = (bytes.len() - 8) as u8;
    assert_eq!(bytes[..18], [0x80, 3, 0, 1, 1, 0, 0, length, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 0]);
    // RFC 1950 §2.2: the window of 11 bits, FDICT, the dictionary's checksum; then a stored block.
    assert_eq!(bytes[18] & 0x0f, 8);
    assert_eq!(bytes[19] & 0x20, 0x20);
    assert_eq!(bytes[20..24], [0xe3, 0xc6, 0xa7, 0xc2]);
    let block = get("/").block().to_vec();
    assert!(bytes.windows(block.len()).any(|window| window == block), "stored at level 0");
}

#[test]
fn a_request_and_its_response() {
    let mut server = Peer::server();
    let opened = Event::Opened {
        stream: id(1),
        associated: None,
        priority: Priority::HIGHEST,
        headers: get("/a"),
        fin: true,
    };
    assert_eq!(server.syn(1, &get("/a"), true), [opened]);
    let s = &mut server.session;
    // §2.3.2: nothing may be sent before the SYN_REPLY.
    assert_eq!(s.write(id(1), &mut Bytes::from_static(b"x"), false), Err(CallError::NotReplied));
    s.reply(id(1), &ok(), false).unwrap();
    assert_eq!(s.reply(id(1), &ok(), false), Err(CallError::NotAllowed));
    assert_eq!(s.write(id(1), &mut Bytes::from_static(b"body"), true), Ok(4));
    assert_eq!(s.write(id(1), &mut Bytes::from_static(b"x"), false), Err(CallError::Finished));
    assert_eq!(server.sent(), [Sent::Reply(1, ok(), false), Sent::Data(1, b"body".to_vec(), true)]);
    assert_eq!(server.session.open_streams(), 0);
}

#[test]
fn a_client_takes_reply_headers_and_data() {
    let mut client = Peer::client();
    let stream = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
    client.session.write(stream, &mut Bytes::from_static(b"up"), true).unwrap();
    let sent = client.sent();
    assert!(matches!(
        &sent[0],
        Sent::Syn { stream: 1, associated: 0, priority: 0, fin: false, .. }
    ));
    assert_eq!(sent[1], Sent::Data(1, b"up".to_vec(), true));
    assert_eq!(client.reply(1, &ok(), false), [Event::Reply { stream, headers: ok(), fin: false }]);
    let more = Headers::from_pairs([("x-trailer", "1")]).unwrap();
    assert_eq!(client.data(1, b"abc", false), [data(1, b"abc", false)]);
    assert_eq!(
        client.more(1, &more, true),
        [Event::Headers { stream, headers: more.clone(), fin: true }]
    );
    assert_eq!(client.session.open_streams(), 1, "what came is not consumed");
    client.session.consume(stream, 3);
    assert_eq!(client.session.open_streams(), 0);
}

#[test]
fn headers_behind_data_go_behind_them() {
    let mut server = Peer::server();
    server.syn(1, &get("/"), true);
    let trailer = Headers::from_pairs([("x-trailer", "1")]).unwrap();
    server.session.reply(id(1), &ok(), false).unwrap();
    server.session.write(id(1), &mut Bytes::from_static(b"abc"), false).unwrap();
    server.session.headers(id(1), &trailer, true).unwrap();
    assert_eq!(
        server.sent(),
        [
            Sent::Reply(1, ok(), false),
            Sent::Data(1, b"abc".to_vec(), false),
            Sent::Headers(1, trailer, true)
        ]
    );
    assert_eq!(server.session.open_streams(), 0);
}

#[test]
fn data_are_cut_when_they_are_written_and_go_by_priority_in_turns() {
    let config = Config { max_frame: 100, ..Config::default() };
    let mut client = Peer::of(Role::Client, Version::V3, &config);
    let mut streams = vec![];
    for priority in [7, 2, 2] {
        let priority = Priority::new(priority).unwrap();
        let stream = client.session.open(&get("/"), priority, false).unwrap();
        client.session.write(stream, &mut Bytes::from(vec![7; 150]), true).unwrap();
        streams.push(stream);
    }
    let order: Vec<_> = client
        .sent()
        .into_iter()
        .filter_map(|sent| match sent {
            Sent::Data(stream, payload, fin) => Some((stream, payload.len(), fin)),
            _ => None,
        })
        .collect();
    // §2.3.3.
    let expected = [
        (3, 100, false),
        (5, 100, false),
        (3, 50, true),
        (5, 50, true),
        (1, 100, false),
        (1, 50, true),
    ];
    assert_eq!(order, expected);
}

#[test]
fn output_keeps_to_its_limit_and_joins_pieces() {
    let mut client = Peer::client();
    let stream = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
    client.sent();
    for _ in 0..10 {
        client.session.write(stream, &mut Bytes::from(vec![1; 300]), false).unwrap();
    }
    let mut out = vec![];
    assert_eq!(client.session.write_to(&mut out, 1000), 1000);
    assert_eq!(client.read(&out), [Sent::Data(1, vec![1; 992], false)]);
    assert_eq!(client.sent(), [Sent::Data(1, vec![1; 2008], false)]);
    // A ping overtakes data that wait (§2.6.5).
    client.session.write(stream, &mut Bytes::from(vec![1; 30]), false).unwrap();
    client.frame(Frame::Ping { id: 2 });
    assert_eq!(client.sent(), [Sent::Ping(2), Sent::Data(1, vec![1; 30], false)]);
}

#[test]
fn a_full_queue_says_so_and_when_there_is_room() {
    let config = Config { send_queue: 1000, ..Config::default() };
    let mut client = Peer::of(Role::Client, Version::V3_1, &config);
    let stream = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
    let mut body = Bytes::from(vec![1; 1500]);
    assert_eq!(client.session.writable(stream), 1000);
    assert_eq!(client.session.write(stream, &mut body, true), Ok(1000));
    assert_eq!((body.len(), client.session.writable(stream)), (500, 0));
    assert_eq!(client.session.write(stream, &mut body, true), Ok(0));
    client.sent();
    assert_eq!(client.bytes(&[]), [Event::Writable { stream }]);
    assert_eq!(client.session.write(stream, &mut body, true), Ok(500));
    assert_eq!(client.sent(), [Sent::Data(1, vec![1; 500], true)]);
    // Nobody waits for room behind the end.
    let whole = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
    assert_eq!(client.session.write(whole, &mut Bytes::from(vec![1; 1000]), true), Ok(1000));
    client.sent();
    assert_eq!(client.bytes(&[]), []);
}

#[test]
fn a_ping_is_answered_alike_and_ones_own_is_timed() {
    let mut server = Peer::server();
    server.frame(Frame::Ping { id: 7 });
    // §2.6.5: an even one that the server did not send is ignored.
    server.frame(Frame::Ping { id: 8 });
    assert_eq!(server.sent(), [Sent::Ping(7)]);
    let ping = server.session.ping(Time::from_millis(100)).unwrap();
    assert_eq!((ping, server.sent()), (2, vec![Sent::Ping(2)]));
    let mut pong = vec![];
    Frame::Ping { id: 2 }.emit(&mut pong).unwrap();
    server.session.receive(Bytes::from(pong));
    let expected = Event::Pong { id: 2, round_trip: Duration::from_millis(30) };
    assert_eq!(events_at(&mut server.session, Time::from_millis(130)), [expected]);
}

#[test]
fn settings_are_persisted_by_a_client_and_returned() {
    let persist = Setting { persist: true, ..Setting::new(SettingId::CURRENT_CWND, 40) };
    let config = Config { settings: vec![persist], ..Config::default() };
    let mut pair = Pair::new(Version::V3, &Config::default(), &config);
    pair.reach_client(usize::MAX);
    let persisted = pair.client.persisted();
    assert_eq!(persisted, [Setting::new(SettingId::CURRENT_CWND, 40)]);
    // The next session returns it, flagged, and the server does not take it for the client's own.
    let config = Config { settings: persisted, ..Config::default() };
    let mut pair = Pair::new(Version::V3, &config, &Config::default());
    let events = pair.reach_server(usize::MAX);
    let [Event::Settings { clear: false, settings }] = &events[..] else { panic!("{events:?}") };
    let returned = Setting { persisted: true, ..Setting::new(SettingId::CURRENT_CWND, 40) };
    assert!(settings.contains(&returned));
    // §2.6.4: "servers MUST ignore persistence related flags sent by a client".
    let mut server = Peer::server();
    server.settings(&[persist]);
    assert_eq!(server.session.persisted(), []);
    // FLAG_SETTINGS_CLEAR_SETTINGS.
    let mut client = Peer::client();
    client.settings(&[persist]);
    let mut clear = vec![];
    Frame::emit_settings(true, &[], &mut clear).unwrap();
    client.bytes(&clear);
    assert_eq!(client.session.persisted(), []);
}

#[test]
fn of_two_values_for_a_setting_the_first_counts() {
    let mut client = Peer::client();
    client.settings(&[
        Setting::new(SettingId::MAX_CONCURRENT_STREAMS, 1),
        Setting::new(SettingId::MAX_CONCURRENT_STREAMS, 50),
    ]);
    client.session.open(&get("/"), Priority::HIGHEST, true).unwrap();
    assert_eq!(
        client.session.open(&get("/"), Priority::HIGHEST, true),
        Err(CallError::TooManyStreams(1))
    );
    client.reply(1, &ok(), true);
    assert!(client.session.open(&get("/"), Priority::HIGHEST, true).is_ok());
}

#[test]
fn a_changed_initial_window_changes_those_of_streams_below_zero_too() {
    let mut client = Peer::of(Role::Client, Version::V3, &Config::default());
    let stream = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
    client.session.write(stream, &mut Bytes::from(vec![0; 60 << 10]), false).unwrap();
    client.sent();
    // §2.6.8: 60 KB sent, then 16 KB announced: -44 KB.
    client.settings(&[Setting::new(SettingId::INITIAL_WINDOW_SIZE, 16 << 10)]);
    assert_eq!(client.session.send_window(Some(stream)), Some(-(44 << 10)));
    client.session.write(stream, &mut Bytes::from_static(b"more"), false).unwrap();
    assert_eq!(client.sent(), []);
    client.window(1, 44 << 10);
    assert_eq!(client.sent(), []);
    client.window(1, 3);
    assert_eq!(client.sent(), [Sent::Data(1, b"mor".to_vec(), false)]);
}

#[test]
fn an_end_without_data_passes_a_shut_window() {
    let mut client = Peer::of(Role::Client, Version::V3_1, &Config::default());
    let stream = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
    client.session.write(stream, &mut Bytes::from(vec![0; 64 << 10]), false).unwrap();
    client.sent();
    assert_eq!(client.session.send_window(None), Some(0));
    // §2.6.8: a frame of length zero with the flag may be sent.
    client.session.write(stream, &mut Bytes::new(), true).unwrap();
    assert_eq!(client.sent(), [Sent::Data(1, vec![], true)]);
}

#[test]
fn a_go_away_ends_what_it_did_not_take() {
    let mut client = Peer::client();
    for _ in 0..3 {
        client.session.open(&get("/"), Priority::HIGHEST, true).unwrap();
    }
    client.sent();
    let status = GoAwayStatus::OK;
    assert_eq!(
        client.frame(Frame::GoAway { last_good: id(1), status }),
        [
            Event::GoAway { last_good: id(1), status },
            reset(3, ResetReason::Unprocessed),
            reset(5, ResetReason::Unprocessed)
        ]
    );
    assert_eq!(client.session.open(&get("/"), Priority::HIGHEST, true), Err(CallError::GoingAway));
    assert!(!client.session.is_over());
    client.reply(1, &ok(), true);
    assert!(client.session.is_over());
}

#[test]
fn after_ones_own_go_away_new_streams_are_ignored() {
    let mut server = Peer::server();
    server.syn(1, &get("/"), true);
    server.session.go_away(GoAwayStatus::OK);
    assert_eq!(server.sent(), [Sent::GoAway(1, 0)]);
    assert_eq!(server.syn(3, &get("/late"), false), []);
    assert_eq!(server.data(3, b"late", true), []);
    assert_eq!(server.sent(), []);
    server.session.reply(id(1), &ok(), true).unwrap();
    // The compression state went on: the reply can be read, and so would be the next request.
    assert_eq!(server.sent(), [Sent::Reply(1, ok(), true)]);
    assert!(server.session.is_over());
}

#[test]
fn a_push_belongs_to_a_stream_and_ends_with_it() {
    let pushed = Headers::from_pairs([
        (":scheme", "https"),
        (":host", "example.org"),
        (":path", "/style.css"),
        (":status", "200"),
        (":version", "HTTP/1.1"),
    ])
    .unwrap();
    let mut pair = Pair::new(Version::V3_1, &Config::default(), &Config::default());
    let page = pair.client.open(&get("/"), Priority::HIGHEST, true).unwrap();
    pair.reach_server(usize::MAX);
    assert_eq!(
        pair.server.push(page, &ok(), Priority::LOWEST, false),
        Err(CallError::NotAllowed),
        "it names no resource"
    );
    let style = pair.server.push(page, &pushed, Priority::LOWEST, false).unwrap();
    pair.server.write(style, &mut Bytes::from_static(b"p{}"), true).unwrap();
    let script = pair.server.push(page, &pushed, Priority::LOWEST, false).unwrap();
    pair.server.reply(page, &ok(), false).unwrap();
    let events = pair.reach_client(usize::MAX);
    let opened = Event::Opened {
        stream: style,
        associated: Some(page),
        priority: Priority::LOWEST,
        headers: pushed.clone(),
        fin: false,
    };
    assert!(events.contains(&opened) && events.contains(&data(2, b"p{}", true)), "{events:?}");
    // §2.3.2.1: only the server may send on it.
    let nothing = pair.client.write(style, &mut Bytes::from_static(b"x"), false);
    assert!(nothing.is_err(), "{nothing:?}");
    // §3.3.2: to cancel the page cancels what is pushed with it.
    pair.client.reset(page, RstStatus::CANCEL).unwrap();
    let gone = reset(script.value(), ResetReason::WithAssociated);
    assert_eq!(crate::common::events(&mut pair.client), std::slice::from_ref(&gone));
    assert_eq!(
        pair.reach_server(usize::MAX),
        [reset(page.value(), ResetReason::Peer(RstStatus::CANCEL)), gone]
    );
    assert_eq!(pair.server.counters().sent.pushed_streams, 2);
}

#[test]
fn a_client_may_refuse_pushes() {
    let config = Config { accept_push: false, ..Config::default() };
    let mut client = Peer::of(Role::Client, Version::V3_1, &config);
    client.session.open(&get("/"), Priority::HIGHEST, true).unwrap();
    client.sent();
    assert_eq!(client.push(2, 1, &get("/style.css")), []);
    assert_eq!(client.sent(), [Sent::Rst(2, RstStatus::REFUSED_STREAM.0)]);
}

#[test]
fn a_session_can_move_to_the_task_that_carries_it() {
    fn moves<T: Send + 'static>(_: &T) {}
    moves(&session(Role::Client, &Config::default()));
}

#[test]
fn frames_are_counted_on_both_sides_alike() {
    let flow = FlowControl::MOD_SPDY;
    let config = Config { flow, ..Config::default() };
    let mut pair = Pair::new(Version::V3_1, &config, &config);
    let stream = pair.client.open(&get("/"), Priority::HIGHEST, false).unwrap();
    pair.client.write(stream, &mut Bytes::from(vec![0; 40_000]), false).unwrap();
    pair.client.ping(Time::ZERO).unwrap();
    pair.reach_server(usize::MAX);
    pair.server.consume(stream, 40_000);
    pair.server.reply(stream, &ok(), true).unwrap();
    pair.reach_client(usize::MAX);
    let (client, server) = (*pair.client.counters(), *pair.server.counters());
    assert_eq!((client.sent, client.received), (server.received, server.sent));
    // One for the stream and one for the session.
    assert_eq!((server.sent.window_updates, client.sent.data_frames), (2, 3));
    assert_eq!(client.sent.data_bytes, 40_000);
}

#[test]
fn identifiers_do_not_wrap() {
    let mut server = Peer::server();
    assert_eq!(server.syn(0x7fff_ffff, &get("/"), true).len(), 1);
    server.session.reply(id(0x7fff_ffff), &ok(), true).unwrap();
    assert_eq!(server.sent(), [Sent::Reply(0x7fff_ffff, ok(), true)]);
}

#[test]
fn header_compression_is_counted() {
    let mut pair = Pair::new(Version::V3_1, &Config::default(), &Config::default());
    for path in ["/a", "/b", "/c", "/d"] {
        pair.client.open(&get(path), Priority::HIGHEST, true).unwrap();
    }
    pair.reach_server(usize::MAX);
    let (sent, received) = (pair.client.counters().sent, pair.server.counters().received);
    assert_eq!((sent.header_blocks, received.header_blocks), (4, 4));
    assert_eq!(sent.header_bytes, 4 * get("/a").block().len() as u64);
    assert_eq!(sent.header_bytes, received.header_bytes);
    assert_eq!(sent.header_bytes_compressed, received.header_bytes_compressed);
    assert!(sent.header_bytes_compressed * 2 < sent.header_bytes, "{sent:?}");
}
