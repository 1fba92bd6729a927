//! Frames as the schema has them (draft-ietf-quic-qlog-quic-events §8.13).

use serde_json::{Map, Value, json};
use wire::quic::{AnyFrame, AnyFrames, StreamType};

use super::hex;

/// The frames of a packet, up to the first that cannot be read.
pub(super) fn frames(payload: &[u8], ack_delay_exponent: u32) -> Vec<Value> {
    AnyFrames::new(payload).map_while(Result::ok).map(|f| frame(&f, ack_delay_exponent)).collect()
}

/// The code and the reason of the packet's CONNECTION_CLOSE, and whether the application's.
pub(super) fn close(payload: &[u8]) -> Option<(bool, u64, String)> {
    AnyFrames::new(payload).map_while(Result::ok).find_map(|frame| match frame {
        AnyFrame::Close { by_application, code, reason, .. } => {
            Some((by_application, code, String::from_utf8_lossy(reason).into_owned()))
        }
        _ => None,
    })
}

/// Whether the packet has HANDSHAKE_DONE.
pub(super) fn confirms(payload: &[u8]) -> bool {
    let mut frames = AnyFrames::new(payload).map_while(Result::ok);
    frames.any(|frame| frame == AnyFrame::HandshakeDone)
}

fn frame(frame: &AnyFrame<'_>, ack_delay_exponent: u32) -> Value {
    match frame {
        AnyFrame::Padding { count } => {
            json!({ "frame_type": "padding", "raw": { "payload_length": count } })
        }
        AnyFrame::Ping => json!({ "frame_type": "ping" }),
        AnyFrame::Ack { delay, ranges, ecn } => ack(*delay, ranges, *ecn, ack_delay_exponent),
        AnyFrame::ResetStream { stream, code, final_size } => json!({
            "frame_type": "reset_stream",
            "stream_id": stream,
            "error": "unknown",
            "error_code": code,
            "final_size": final_size,
        }),
        AnyFrame::StopSending { stream, code } => json!({
            "frame_type": "stop_sending",
            "stream_id": stream,
            "error": "unknown",
            "error_code": code,
        }),
        AnyFrame::Crypto { offset, data } => {
            json!({ "frame_type": "crypto", "offset": offset, "raw": { "length": data.len() } })
        }
        AnyFrame::NewToken { token } => json!({
            "frame_type": "new_token",
            "token": { "type": "resumption", "raw": { "length": token.len() } },
        }),
        AnyFrame::Stream { stream, offset, fin, data } => json!({
            "frame_type": "stream",
            "stream_id": stream,
            "offset": offset,
            "fin": fin,
            "raw": { "length": data.len() },
        }),
        AnyFrame::MaxData { maximum } => json!({ "frame_type": "max_data", "maximum": maximum }),
        AnyFrame::MaxStreamData { stream, maximum } => {
            json!({ "frame_type": "max_stream_data", "stream_id": stream, "maximum": maximum })
        }
        AnyFrame::MaxStreams { kind, maximum } => json!({
            "frame_type": "max_streams",
            "stream_type": stream_type(*kind),
            "maximum": maximum,
        }),
        AnyFrame::DataBlocked { limit } => json!({ "frame_type": "data_blocked", "limit": limit }),
        AnyFrame::StreamDataBlocked { stream, limit } => {
            json!({ "frame_type": "stream_data_blocked", "stream_id": stream, "limit": limit })
        }
        AnyFrame::StreamsBlocked { kind, limit } => json!({
            "frame_type": "streams_blocked",
            "stream_type": stream_type(*kind),
            "limit": limit,
        }),
        AnyFrame::NewConnectionId { sequence, retire_prior_to, id, token } => json!({
            "frame_type": "new_connection_id",
            "sequence_number": sequence,
            "retire_prior_to": retire_prior_to,
            "connection_id_length": id.len(),
            "connection_id": hex(id),
            "stateless_reset_token": hex(*token),
        }),
        AnyFrame::RetireConnectionId { sequence } => {
            json!({ "frame_type": "retire_connection_id", "sequence_number": sequence })
        }
        AnyFrame::PathChallenge { data } => {
            json!({ "frame_type": "path_challenge", "data": hex(*data) })
        }
        AnyFrame::PathResponse { data } => {
            json!({ "frame_type": "path_response", "data": hex(*data) })
        }
        AnyFrame::Close { by_application, code, frame_type, reason } => {
            let mut value = error(*by_application, *code);
            value.insert("frame_type".to_owned(), "connection_close".into());
            let space = if *by_application { "application" } else { "transport" };
            value.insert("error_space".to_owned(), space.into());
            value.insert("reason".to_owned(), String::from_utf8_lossy(reason).into());
            if let Some(kind) = frame_type {
                value.insert("trigger_frame_type".to_owned(), (*kind).into());
            }
            value.into()
        }
        AnyFrame::HandshakeDone => json!({ "frame_type": "handshake_done" }),
        AnyFrame::Datagram { data } => {
            json!({ "frame_type": "datagram", "raw": { "length": data.len() } })
        }
        AnyFrame::Unknown { kind, rest } => json!({
            "frame_type": "unknown",
            "frame_type_bytes": kind,
            "raw": { "length": rest.len() },
        }),
    }
}

/// An ACK. Its delay counts microseconds, shifted by the sender's exponent (RFC 9000 §18.2).
fn ack(delay: u64, ranges: &[(u64, u64)], ecn: Option<[u64; 3]>, exponent: u32) -> Value {
    let range = |(first, last): &(u64, u64)| match first == last {
        true => json!([first]),
        false => json!([first, last]),
    };
    let micros = delay.saturating_mul(1 << exponent.min(20));
    let mut value = json!({
        "frame_type": "ack",
        "ack_delay": micros as f64 / 1e3,
        "acked_ranges": ranges.iter().map(range).collect::<Vec<_>>(),
    });
    if let (Some([ect0, ect1, ce]), Some(value)) = (ecn, value.as_object_mut()) {
        for (name, count) in [("ect0", ect0), ("ect1", ect1), ("ce", ce)] {
            value.insert(name.to_owned(), count.into());
        }
    }
    value
}

fn stream_type(kind: StreamType) -> &'static str {
    match kind {
        StreamType::Bidirectional => "bidirectional",
        StreamType::Unidirectional => "unidirectional",
    }
}

/// TransportError by its code (RFC 9000 §20.1).
const TRANSPORT_ERRORS: [&str; 17] = [
    "no_error",
    "internal_error",
    "connection_refused",
    "flow_control_error",
    "stream_limit_error",
    "stream_state_error",
    "final_size_error",
    "frame_encoding_error",
    "transport_parameter_error",
    "connection_id_limit_error",
    "protocol_violation",
    "invalid_token",
    "application_error",
    "crypto_buffer_exceeded",
    "key_update_error",
    "aead_limit_reached",
    "no_viable_path",
];

/// The fields `error` and, where that has no name for it, `error_code`.
pub(super) fn error(by_application: bool, code: u64) -> Map<String, Value> {
    let known = usize::try_from(code).ok().and_then(|code| TRANSPORT_ERRORS.get(code));
    let name = match code {
        _ if by_application => None,
        // RFC 9001 §4.8.
        0x100..=0x1ff => Some(format!("crypto_error_0x{code:x}")),
        _ => known.map(|name| (*name).to_owned()),
    };
    let mut fields = Map::new();
    if name.is_none() {
        fields.insert("error_code".to_owned(), code.into());
    }
    fields.insert("error".to_owned(), name.unwrap_or_else(|| "unknown".to_owned()).into());
    fields
}
