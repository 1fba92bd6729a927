//! Entry points for fuzzing: bytes of strangers into what reads them. None may panic, or hold more
//! than its bound.

use units::Time;

use crate::envelope::{self, Decoder};
use crate::testing::{Script, ScriptedEngine};
use crate::{Carrier, Embedding, Plan, padding};

/// An envelope decoder on bytes in two cuts: the result does not depend on the cut.
///
/// # Panics
/// If it does.
pub fn envelope(bytes: &[u8]) {
    let step = bytes.first().map_or(1, |&byte| usize::from(byte) + 1);
    let read = |step: usize| {
        let mut decoder = Decoder::new(2);
        let mut out = Vec::new();
        for mut piece in bytes.chunks(step) {
            loop {
                match decoder.next(&mut piece) {
                    Ok(Some(payload)) => out.extend_from_slice(payload),
                    Ok(None) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(out)
    };
    assert_eq!(read(step), read(bytes.len().max(1)), "the cut made a difference");
}

/// The lengthening of a flight: never longer than its room, and harmless to what is no hello.
///
/// # Panics
/// If the room is exceeded.
pub fn pad(bytes: &[u8]) {
    let padded = padding::pad(bytes, padding::TARGET, 1400);
    assert!(padded.len() <= bytes.len().max(1400), "longer than its room");
}

/// A server's and a client's carriage on a stream of a stranger. The first byte says how.
pub fn carrier(bytes: &[u8]) {
    let Some((&first, stream)) = bytes.split_first() else { return };
    let segment = if first & 1 == 0 { envelope::MIN_SEGMENT } else { 0 };
    let step = usize::from(first >> 2) * 16 + 1;
    let mut server = Carrier::server(ScriptedEngine::server(Script::resumed(1)), segment);
    feed(&mut server, stream, step);
    let embedding = match first & 3 {
        0 => Embedding::Paper,
        1 => Embedding::Tls13,
        2 => Embedding::ZeroRtt,
        _ => Embedding::None,
    };
    let plan = Plan { embedding, early_data: b"early".to_vec(), syn_room: 1400, ..Plan::default() };
    let engine = ScriptedEngine::client(Script::resumed(1));
    if let Ok(mut client) = Carrier::client(Time::ZERO, engine, plan) {
        let syn = client.syn();
        if client.syn_answered(Time::ZERO, !syn.is_empty()).is_ok() {
            feed(&mut client, stream, step);
        }
    }
}

fn feed(carrier: &mut Carrier<ScriptedEngine>, stream: &[u8], step: usize) {
    let mut data = Vec::new();
    for piece in stream.chunks(step) {
        if carrier.read(Time::ZERO, piece).is_err() || carrier.receive(&mut data).is_err() {
            break;
        }
        carrier.consume(carrier.outgoing().len());
    }
    let _ = carrier.read_end();
    let _ = carrier.close(Time::ZERO);
}
