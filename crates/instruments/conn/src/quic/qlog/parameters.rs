//! Transport parameters as the schema has them (draft-ietf-quic-qlog-quic-events §5.3).

use quinn_proto::transport_parameters::TransportParameters;
use serde_json::{Map, Value, json};
use wire::Reader;
use wire::quic::read_varint;

use super::hex;

const FORMAT: &str = "QUIC transport parameters";
/// The default of `ack_delay_exponent` (RFC 9000 §18.2).
pub(super) const ACK_DELAY_EXPONENT: u32 = 3;

/// How a parameter's value is written.
#[derive(Clone, Copy)]
enum Form {
    /// A variable-length integer.
    Number,
    /// Bytes in hexadecimal.
    Bytes,
    /// Nothing: it is there or not.
    Flag,
}

/// RFC 9000 §18.2, RFC 9221 §3, RFC 9287 §3.
const KNOWN: [(u64, &str, Form); 18] = [
    (0x00, "original_destination_connection_id", Form::Bytes),
    (0x01, "max_idle_timeout", Form::Number),
    (0x02, "stateless_reset_token", Form::Bytes),
    (0x03, "max_udp_payload_size", Form::Number),
    (0x04, "initial_max_data", Form::Number),
    (0x05, "initial_max_stream_data_bidi_local", Form::Number),
    (0x06, "initial_max_stream_data_bidi_remote", Form::Number),
    (0x07, "initial_max_stream_data_uni", Form::Number),
    (0x08, "initial_max_streams_bidi", Form::Number),
    (0x09, "initial_max_streams_uni", Form::Number),
    (0x0a, "ack_delay_exponent", Form::Number),
    (0x0b, "max_ack_delay", Form::Number),
    (0x0c, "disable_active_migration", Form::Flag),
    (0x0e, "active_connection_id_limit", Form::Number),
    (0x0f, "initial_source_connection_id", Form::Bytes),
    (0x10, "retry_source_connection_id", Form::Bytes),
    (0x20, "max_datagram_frame_size", Form::Number),
    (0x2ab2, "grease_quic_bit", Form::Flag),
];

/// The parameters by their names, those of other names under `unknown_parameters`.
pub(super) fn parameters(of: &TransportParameters) -> Map<String, Value> {
    let mut bytes = Vec::new();
    of.write(&mut bytes);
    read(&bytes)
}

/// The exponent of its ACK delays that a side announces.
pub(super) fn ack_delay_exponent(parameters: &Map<String, Value>) -> u32 {
    let announced = parameters.get("ack_delay_exponent").and_then(Value::as_u64);
    announced.and_then(|exponent| u32::try_from(exponent).ok()).unwrap_or(ACK_DELAY_EXPONENT)
}

/// Reads the extension's bytes, up to the first parameter that is cut (RFC 9000 §18).
pub(super) fn read(bytes: &[u8]) -> Map<String, Value> {
    let (mut reader, mut fields, mut unknown) = (Reader::new(FORMAT, bytes), Map::new(), vec![]);
    while !reader.is_empty() {
        let Some((id, value)) = one(&mut reader) else { break };
        let known = KNOWN.iter().find(|(known, ..)| *known == id);
        let read = known.and_then(|(_, name, form)| Some((*name, shown(*form, value)?)));
        match read {
            Some((name, value)) => drop(fields.insert(name.to_owned(), value)),
            None => unknown.push(json!({ "id": id, "value": hex(value) })),
        }
    }
    if !unknown.is_empty() {
        fields.insert("unknown_parameters".to_owned(), unknown.into());
    }
    fields
}

fn one<'a>(reader: &mut Reader<'a>) -> Option<(u64, &'a [u8])> {
    let id = read_varint(reader).ok()?;
    let length = usize::try_from(read_varint(reader).ok()?).ok()?;
    Some((id, reader.take(length).ok()?))
}

fn shown(form: Form, value: &[u8]) -> Option<Value> {
    match form {
        Form::Number => read_varint(&mut Reader::new(FORMAT, value)).ok().map(Value::from),
        Form::Bytes => Some(hex(value).into()),
        Form::Flag => Some(true.into()),
    }
}
