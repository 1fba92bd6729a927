//! Entry points for fuzzing: any bytes in; a panic, a hang or a broken promise is the finding.

use units::Time;

use crate::connection::{Talk, Told};
use crate::protocol::Protocol;
use crate::{Chart, fold, text};

/// Events that a fuzzed connection keeps.
const EVENTS: usize = 64;

/// Any bytes as the two directions of a connection. The first byte chooses the protocol, and whether
/// HTTP/2's preface stands before all; then pieces, each behind a byte for direction and length.
pub fn connection(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let protocol = match choice & 3 {
        0 => Protocol::Spdy3,
        1 => Protocol::Spdy31,
        _ => Protocol::Http2,
    };
    let (mut talk, mut room) = (Talk::new(protocol), EVENTS);
    if choice & 4 != 0 && protocol == Protocol::Http2 {
        talk.bytes(Time::ZERO, true, wire::http2::PREFACE, &mut room);
    }
    let (mut rest, mut at, mut given) = (bytes, 0, 0u64);
    while let Some((control, after)) = rest.split_first() {
        let len = usize::from(control & 0x7f).min(after.len());
        let (piece, next) = after.split_at(len);
        at += 1;
        given += len as u64;
        talk.bytes(Time::from_millis(at), control & 0x80 != 0, piece, &mut room);
        rest = next;
    }
    let Told { events, left_out, windows: [client_sends, server_sends], gaps, .. } = talk.told();
    assert!(events.len() + room == EVENTS, "an event is counted");
    assert!(left_out == 0 || room == 0, "left out while there is room");
    let bodies = client_sends.data_bytes + server_sends.data_bytes;
    assert!(bodies <= given, "more data than bytes");
    let folded = fold(&events);
    let sum = |events: &[crate::Event]| events.iter().map(|event| event.bytes).sum::<u64>();
    assert!(sum(&folded) == sum(&events), "folding loses bytes");
    let connection = crate::Connection {
        client: ([127, 0, 0, 1], 1).into(),
        server: ([127, 0, 0, 1], 2).into(),
        server_name: None,
        tls: None,
        protocol,
        begun: Time::ZERO,
        events: folded,
        left_out,
        client_sends,
        server_sends,
        gaps,
    };
    for line in text::ladder(&connection, Some(20)) {
        assert!(!line.contains('\n'), "one line is one line");
    }
    let chart = Chart { connections: vec![connection], ..Chart::default() };
    assert!(!text::chart(&chart, Some(40)).is_empty(), "it is written");
}
