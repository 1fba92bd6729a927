//! Records by the drafts' letter.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::file::Records;
use super::trace::{Initiator, Level, Packet, Trace, Vantage};
use super::{frames, packets, parameters};
use crate::now;

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The records of a file: each begins with RS and ends with LF (RFC 7464 §2.1).
fn records(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    let records = text.strip_prefix('\u{1e}').unwrap().split('\u{1e}');
    records
        .map(|record| {
            let line = record.strip_suffix('\n').unwrap();
            assert!(!line.contains('\n'));
            serde_json::from_str(line).unwrap()
        })
        .collect()
}

#[test]
fn records_begin_with_rs_and_end_with_lf() {
    let (to, trace) = (Shared::default(), Trace::new(Vantage::Client));
    trace.keys(Level::Initial, None);
    trace.write_to(Records::new(Box::new(to.clone()), "8394c8f03e515708", Vantage::Client));
    let header = [&[0xc3, 0, 0, 0, 1, 2, 7, 8, 1, 9, 0, 0x44, 0x9e][..], &[0, 0, 0, 2]].concat();
    let payload = [&[0x06, 0, 3][..], b"abc", &[0; 20], &[0x02, 5, 8, 0, 2]].concat();
    let level = Level::Initial;
    let packet = Packet { level, number: 2, header: &header, payload: &payload, length: 1200 };
    trace.packet(Initiator::Local, now(), packet);
    let close = Packet { level: Level::OneRtt, payload: &[0x1d, 0, 0], ..packet };
    trace.packet(Initiator::Remote, now(), Packet { header: &[0x61, 5, 6, 0, 3], ..close });
    let records = records(&to.0.lock().unwrap());
    let (head, events) = records.split_first().unwrap();
    assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(head["serialization_format"], "application/qlog+json-seq");
    assert_eq!(head["trace"]["event_schemas"], json!(["urn:ietf:params:qlog:events:quic-12"]));
    assert_eq!(head["trace"]["vantage_point"]["type"], "client");
    assert_eq!(head["trace"]["common_fields"]["group_id"], "8394c8f03e515708");
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    let expected = [
        "quic:key_updated",
        "quic:key_updated",
        "quic:packet_sent",
        "quic:packet_received",
        "quic:connection_closed",
        "quic:connection_state_updated",
    ];
    assert_eq!(names, expected);
    let sent = json!({
        "header": {
            "packet_type": "initial", "packet_number": 2, "packet_number_length": 4,
            "version": "00000001", "dcil": 2, "dcid": "0708", "scil": 1, "scid": "09",
        },
        "frames": [
            { "frame_type": "crypto", "offset": 0, "raw": { "length": 3 } },
            { "frame_type": "padding", "raw": { "payload_length": 20 } },
            { "frame_type": "ack", "ack_delay": 0.064, "acked_ranges": [[3, 5]] },
        ],
        "raw": { "length": 1200, "payload_length": 31 },
    });
    assert_eq!(events[2]["data"], sent);
    let header = json!({
        "packet_type": "1RTT", "packet_number": 2, "packet_number_length": 2, "spin_bit": true,
        "key_phase_bit": false, "dcil": 2, "dcid": "0506",
    });
    assert_eq!(events[3]["data"]["header"], header);
    let closed = json!({
        "application_error": "unknown", "error_code": 0, "initiator": "remote", "reason": "",
        "trigger": "application",
    });
    assert_eq!(events[4]["data"], closed);
    assert_eq!(events[5]["data"], json!({ "new": "closed" }));
}

#[test]
fn errors_have_the_names_of_the_schema() {
    let error = |code| Value::from(frames::error(false, code));
    assert_eq!(error(0xa), json!({ "error": "protocol_violation" }));
    assert_eq!(error(0x128), json!({ "error": "crypto_error_0x128" }));
    assert_eq!(error(0x4000), json!({ "error": "unknown", "error_code": 0x4000 }));
    assert_eq!(frames::error(true, 0xa), frames::error(true, 0xa));
    assert_eq!(Value::from(frames::error(true, 1)), json!({ "error": "unknown", "error_code": 1 }));
}

#[test]
fn parameters_have_the_names_of_the_schema() {
    let bytes = [
        &[0x01, 2, 0x67, 0x10][..],
        &[0x0c, 0, 0x0f, 2, 1, 2, 0x0a, 1, 5],
        &[0x80, 0, 0x2a, 0xb2, 0],
        &[0x40, 0x99, 1, 7],
        &[0x03, 9],
    ];
    let read = parameters::read(&bytes.concat());
    assert_eq!(parameters::ack_delay_exponent(&read), 5);
    let expected = json!({
        "max_idle_timeout": 10_000,
        "disable_active_migration": true,
        "initial_source_connection_id": "0102",
        "ack_delay_exponent": 5,
        "grease_quic_bit": true,
        "unknown_parameters": [{ "id": 0x99, "value": "07" }],
    });
    assert_eq!(Value::from(read), expected);
}

proptest::proptest! {
    #[test]
    fn any_bytes_do_not_panic(
        header in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60),
        payload in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
    ) {
        packets::header(&header, 7, Level::Initial);
        frames::frames(&payload, 63);
        parameters::read(&payload);
        frames::close(&payload);
    }
}
