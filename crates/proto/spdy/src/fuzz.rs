//! Entry points for fuzzing: any bytes in; a panic, a hang or a broken promise is the finding.

use bytes::Bytes;
use units::Time;
use wire::spdy::{Frame, Header};

use crate::compress::Compressor;
use crate::{
    Config, Event, FloodLimit, FlowControl, Headers, Priority, Role, RstStatus, Session, Version,
};

const MAX_STREAMS: u32 = 8;
const MAX_BLOCK: usize = 4 << 10;
const SEND_QUEUE: usize = 2 << 10;
const WINDOW: u32 = 4 << 10;

fn config() -> Config {
    Config {
        flow: FlowControl { stream_window: WINDOW, session_window: 0, update_divisor: 2 },
        max_frame: 1000,
        send_queue: SEND_QUEUE,
        max_peer_streams: MAX_STREAMS,
        max_own_streams: MAX_STREAMS,
        max_header_block: MAX_BLOCK,
        max_answers: 1 << 10,
        flood: FloodLimit { burst: 100, per_second: 10 },
        trace_windows: true,
        ..Config::default()
    }
}

/// Any bytes to a session. The first byte chooses role, version, whether the bytes are as on the wire or
/// have their header blocks uncompressed, and the length of the pieces that they come in.
pub fn session(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let role = if choice & 1 == 0 { Role::Server } else { Role::Client };
    let version = if choice & 2 == 0 { Version::V3_1 } else { Version::V3 };
    let Ok(mut session) = Session::new(role, version, config()) else { return };
    let compressed;
    let bytes = match choice & 4 {
        0 => bytes,
        _ => {
            compressed = compress(bytes);
            &compressed
        }
    };
    let Ok(headers) = Headers::from_pairs([(":status", "200"), (":version", "HTTP/1.1")]) else {
        return;
    };
    for priority in 0..3 {
        let priority = Priority::new(priority).unwrap_or(Priority::LOWEST);
        if let Ok(stream) = session.open(&headers, priority, false) {
            let _ = session.write(stream, &mut Bytes::from_static(&[7; 3000]), true);
        }
    }
    let length = 1 + usize::from(choice >> 3) * 40;
    for (turn, piece) in bytes.chunks(length).enumerate() {
        step(&mut session, turn as u64, piece, &headers);
    }
    session.go_away(wire::spdy::GoAwayStatus::OK);
    let mut out = Vec::new();
    for round in 0.. {
        assert!(round < 10_000, "output without end");
        if session.write_to(&mut out, 4096) == 0 {
            break;
        }
    }
    assert!(wire::spdy::Frames::new(&out).all(|frame| frame.is_ok()), "it wrote no frames");
    assert!(!session.wants_write(), "it wants to write and does not");
}

/// A piece of input, what a program does with the events, and some output.
fn step(session: &mut Session, turn: u64, piece: &[u8], headers: &Headers) {
    let now = Time::from_millis(turn * 10);
    session.receive(Bytes::copy_from_slice(piece));
    let mut data = 0;
    while let Some(event) = session.poll_event(now) {
        match event {
            Event::Opened { stream, .. } => {
                let _ = session.reply(stream, headers, false);
                let _ = session.write(stream, &mut Bytes::from_static(&[7; 3000]), true);
                let _ = session.push(stream, headers, Priority::LOWEST, false);
            }
            Event::Data { stream, data: payload, .. } => {
                data += payload.len();
                if payload.len() % 3 > 0 {
                    session.consume(stream, payload.len());
                }
            }
            Event::Headers { stream, .. } => {
                let _ = session.headers(stream, headers, false);
                let _ = session.reset(stream, RstStatus::CANCEL);
            }
            Event::Failed(_) => assert!(session.open_streams() == 0, "streams after the end"),
            _ => {}
        }
    }
    assert!(data <= piece.len() + MAX_BLOCK, "more data than came");
    assert!(session.open_streams() <= 2 * MAX_STREAMS as usize, "more streams than allowed");
    for (stream, _) in session.stalled().collect::<Vec<_>>() {
        assert!(session.queued(stream) > 0, "stalled without data");
        let shut = |window: Option<i64>| window.is_some_and(|size| size <= 0);
        let open = !shut(session.send_window(Some(stream))) && !shut(session.send_window(None));
        assert!(!open, "stalled with open windows");
    }
    if turn.is_multiple_of(3) {
        let mut out = Vec::new();
        session.write_to(&mut out, 1500);
    }
    while session.poll_change().is_some() {}
}

/// The frames with their header blocks compressed; what is no frame goes as it is.
fn compress(mut bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut block) = (Vec::new(), Vec::new());
    let Ok(mut compressor) = Compressor::new(1, 9) else { return out };
    while let Some((front, rest)) = bytes.split_first_chunk() {
        let Ok(header) = Header::parse(front) else { break };
        let (data, rest) = rest.split_at(header.length().min(rest.len()));
        let Ok(mut frame) = Frame::parse(header, data) else { break };
        if let Frame::SynStream { block: plain, .. }
        | Frame::SynReply { block: plain, .. }
        | Frame::Headers { block: plain, .. } = &mut frame
        {
            block.clear();
            if compressor.compress(plain, &mut block).is_err() {
                break;
            }
            *plain = &block;
        }
        if frame.emit(&mut out).is_err() {
            break;
        }
        bytes = rest;
    }
    out.extend_from_slice(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_keep_the_session_s_word(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            session(&bytes);
        }

        #[test]
        fn any_frames_keep_the_session_s_word(
            choice: u8,
            frames in proptest::collection::vec(
                (prop::option::of(1u8..11), 0u32..8, 0u8..4, proptest::collection::vec(0u8..9, 0..40)), 0..60,
            ),
        ) {
            let mut bytes = vec![choice | 4];
            for (kind, stream, flags, data) in frames {
                let block = [0, 0, 0, 1, 0, 0, 0, 1, b'a', 0, 0, 0, 1, b'b'];
                let id = stream.to_be_bytes();
                let data = match kind {
                    Some(1) => [&id[..], &[0, 0, 0, data.len() as u8 % 4, 0, 0], &block].concat(),
                    Some(2 | 8) => [&id[..], &block].concat(),
                    Some(3 | 7 | 9) => [&id[..], &[0, 0, data.len() as u8, flags]].concat(),
                    Some(4) => [&[0, 0, 0, 1, 0, 0, 0, 7, 0, 0][..], &id[2..], &[][..]].concat(),
                    Some(6) => id.to_vec(),
                    _ => data,
                };
                match kind {
                    Some(kind) => bytes.extend([0x80, 3, 0, kind]),
                    None => bytes.extend(id),
                }
                bytes.extend([flags, 0, 0, data.len() as u8]);
                bytes.extend(data);
            }
            session(&bytes);
        }
    }
}
