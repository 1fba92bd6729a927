//! Packet headers as the schema has them (draft-ietf-quic-qlog-quic-events §8.7).

use serde_json::{Value, json};
use wire::quic::{Invariants, read_varint};

use super::hex;
use super::trace::Level;

/// The header of a packet whose protection is off: it ends with the packet number.
pub(super) fn header(header: &[u8], number: u64, level: Level) -> Value {
    let first = header.first().copied().unwrap_or(0);
    // RFC 9000 §17.2 and §17.3.1: of both forms the low two bits.
    let number_len = usize::from(first & 3) + 1;
    let mut value = json!({
        "packet_type": level.packet_type(),
        "packet_number": number,
        "packet_number_length": number_len,
    });
    let Some(fields) = value.as_object_mut() else { return value };
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    if let Ok(long) = Invariants::new_checked(header) {
        put("version", hex(&long.version.0.to_be_bytes()).into());
        put("dcil", long.destination.len().into());
        put("dcid", hex(long.destination).into());
        put("scil", long.source.len().into());
        put("scid", hex(long.source).into());
        if let Some(len) = token_len(long.rest).filter(|len| level == Level::Initial && *len > 0) {
            put("token", json!({ "raw": { "length": len } }));
        }
    } else {
        put("spin_bit", (first & 0x20 != 0).into());
        put("key_phase_bit", (first & 0x04 != 0).into());
        let end = header.len().saturating_sub(number_len);
        let destination = header.get(1..end).unwrap_or_default();
        put("dcil", destination.len().into());
        put("dcid", hex(destination).into());
    }
    value
}

/// Bytes of an Initial packet's token (RFC 9000 §17.2.2).
fn token_len(rest: &[u8]) -> Option<u64> {
    read_varint(&mut wire::Reader::new("QUIC", rest)).ok()
}
