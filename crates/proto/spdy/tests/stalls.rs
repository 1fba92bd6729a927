//! What a session says of data that wait for a window.

use bytes::Bytes;
use spdy::{Change, Config, FlowControl, Priority, Role, RstStatus, Version, Window};

use crate::common::{Pair, Peer, get, id, ok};

fn changes(peer: &mut spdy::Session) -> Vec<Change> {
    std::iter::from_fn(|| peer.poll_change()).collect()
}

/// A client with this many bytes queued on stream 1, all of which has been written that could be.
fn uploading(version: Version, bytes: usize) -> Peer {
    let config = Config { send_queue: 1 << 20, ..Config::default() };
    let mut client = Peer::of(Role::Client, version, &config);
    let stream = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
    client.session.write(stream, &mut Bytes::from(vec![0; bytes]), true).unwrap();
    client.sent();
    client
}

#[test]
fn a_stall_begins_when_the_window_is_spent_and_data_are_left() {
    let stream = id(1);
    let mut client = uploading(Version::V3, (64 << 10) + 10);
    let window = Window::Stream;
    assert_eq!(client.session.stalled().collect::<Vec<_>>(), [(stream, window)]);
    assert_eq!(changes(&mut client.session), [Change::StallBegan { stream, window }]);
    assert_eq!(client.session.queued(stream), 10);
    // Open again, though not for all that waits.
    client.window(1, 4);
    assert_eq!(changes(&mut client.session), [Change::StallEnded { stream, window }]);
    client.sent();
    assert_eq!(changes(&mut client.session), [Change::StallBegan { stream, window }]);
    client.window(1, 100);
    client.sent();
    assert_eq!(changes(&mut client.session), [Change::StallEnded { stream, window }]);
    assert_eq!(client.session.stalled().count(), 0);
}

#[test]
fn a_window_that_is_spent_by_the_last_byte_stalls_nobody() {
    let mut client = uploading(Version::V3, 64 << 10);
    assert_eq!(client.session.send_window(Some(id(1))), Some(0));
    assert_eq!(changes(&mut client.session), []);
}

#[test]
fn the_session_s_window_is_told_from_the_stream_s() {
    let mut client = uploading(Version::V3_1, 40 << 10);
    let other = client.session.open(&get("/"), Priority::LOWEST, false).unwrap();
    client.session.write(other, &mut Bytes::from(vec![0; 40 << 10]), true).unwrap();
    client.sent();
    // 64 KiB of the session: 40 KiB of the first stream, 24 KiB of the second, whose own has 40 left.
    assert_eq!(client.session.send_window(None), Some(0));
    assert_eq!(client.session.send_window(Some(other)), Some(40 << 10));
    let window = Window::Session;
    assert_eq!(changes(&mut client.session), [Change::StallBegan { stream: other, window }]);
    assert!(client.session.is_session_stalled());
    client.window(0, 1 << 20);
    assert_eq!(changes(&mut client.session), [Change::StallEnded { stream: other, window }]);
    assert!(!client.session.is_session_stalled());
    assert_eq!(client.sent().len(), 1);
}

#[test]
fn a_stall_ends_with_its_stream() {
    let stream = id(1);
    for reset in [true, false] {
        let mut client = uploading(Version::V3_1, 100 << 10);
        let window = Window::Stream;
        assert_eq!(changes(&mut client.session), [Change::StallBegan { stream, window }]);
        match reset {
            true => client.session.reset(stream, RstStatus::CANCEL).unwrap(),
            false => drop(client.bytes(b"\xff\xff no frame")),
        }
        assert_eq!(changes(&mut client.session), [Change::StallEnded { stream, window }]);
    }
}

#[test]
fn windows_can_be_traced() {
    let flow = FlowControl { stream_window: 64 << 10, session_window: 0, update_divisor: 2 };
    let config = Config { flow, trace_windows: true, ..Config::default() };
    let mut pair = Pair::new(Version::V3_1, &config, &config);
    let stream = pair.client.open(&get("/"), Priority::HIGHEST, true).unwrap();
    pair.reach_server(usize::MAX);
    pair.server.reply(stream, &ok(), false).unwrap();
    pair.server.write(stream, &mut Bytes::from(vec![0; 40_000]), false).unwrap();
    pair.reach_client(usize::MAX);
    pair.client.consume(stream, 40_000);
    pair.reach_server(usize::MAX);
    let of_stream = |changes: Vec<Change>, send: bool| -> Vec<i64> {
        changes
            .into_iter()
            .filter_map(|change| match change {
                Change::SendWindow { stream: Some(_), size } if send => Some(size),
                Change::ReceiveWindow { stream: Some(_), size } if !send => Some(size),
                _ => None,
            })
            .collect()
    };
    // Frames of 16 KiB; consumed at once, told at once since it is more than half.
    let down = [65_536, 65_536 - 16_384, 65_536 - 32_768, 65_536 - 40_000, 65_536];
    assert_eq!(of_stream(changes(&mut pair.client), false), down);
    assert_eq!(of_stream(changes(&mut pair.server), true), down);
    assert_eq!(pair.client.lost_changes(), 0);
}
