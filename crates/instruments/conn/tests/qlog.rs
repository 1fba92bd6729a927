//! qlog files of whole connections: a program of its own, since the folder is the process's.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use common::*;
use conn::{ClientPlan, ClientTransport, Server, ServerPlan, ServerTransport, connect, qlog};
use serde_json::Value;
use tls::{Library, Version};

/// The records of a file: each begins with RS and ends with LF (RFC 7464 §2.1).
fn records(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let records = text.strip_prefix('\u{1e}').unwrap().split('\u{1e}');
    records
        .map(|record| serde_json::from_str(record.strip_suffix('\n').unwrap()).unwrap())
        .collect()
}

/// The files of a folder by their names.
fn files(folder: &Path) -> BTreeMap<String, Vec<Value>> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), records(&path)))
        .collect()
}

fn is_closed(events: &[Value]) -> bool {
    events.iter().any(|event| event["name"] == "quic:connection_closed")
}

/// Packets by type and number, and their frames' names.
fn packets(events: &[Value], name: &str) -> BTreeMap<(String, u64), Vec<String>> {
    let named = events.iter().filter(|event| event["name"] == name);
    let numbered = named.filter(|event| event["data"]["header"]["packet_number"].is_u64());
    numbered
        .map(|event| {
            let header = &event["data"]["header"];
            let kind = header["packet_type"].as_str().unwrap().to_owned();
            let frames = event["data"]["frames"].as_array().unwrap().iter();
            let frames = frames.map(|frame| frame["frame_type"].as_str().unwrap().to_owned());
            ((kind, header["packet_number"].as_u64().unwrap()), frames.collect())
        })
        .collect()
}

/// What any event must have (main schema §7).
fn check_schema(name: &str, records: &[Value]) {
    let (head, events) = records.split_first().unwrap();
    assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential", "{name}");
    let vantage = head["trace"]["vantage_point"]["type"].as_str().unwrap();
    let group = head["trace"]["common_fields"]["group_id"].as_str().unwrap();
    assert!(name.starts_with(&format!("{group}_{vantage}")), "{name}");
    const NAMES: [&str; 12] = [
        "quic:connection_started",
        "quic:version_information",
        "quic:parameters_set",
        "quic:connection_state_updated",
        "quic:key_updated",
        "quic:packet_sent",
        "quic:packet_received",
        "quic:packet_dropped",
        "quic:alpn_information",
        "quic:recovery_metrics_updated",
        "quic:connection_closed",
        "quic:key_discarded",
    ];
    for event in events {
        let fields: Vec<&String> = event.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["data", "name", "time"], "{name}");
        assert!(NAMES.contains(&event["name"].as_str().unwrap()), "{event}");
        assert!(event["time"].is_f64() && event["data"].is_object(), "{event}");
    }
    // A server's first packet came before its connection was there.
    let times: Vec<f64> = events.iter().map(|event| event["time"].as_f64().unwrap()).collect();
    assert!(times.iter().skip(12).is_sorted(), "{name}: {times:?}");
}

/// Makes a connection, by Retry or not; the client's and the server's files.
async fn connection(folder: &Path, retry: bool) -> (Vec<Value>, Vec<Value>) {
    qlog::write_to(Some(folder)).unwrap();
    let tls = server_config(Library::Rustls, Version::Tls13);
    let transport = ServerTransport::Quic { tls: Box::new(tls), retry };
    let plan = ServerPlan { response: vec![b'r'; 5000], ..ServerPlan::new(transport) };
    let server = Server::bind(loopback(), plan).unwrap().spawn();
    let tls = tls::quic::client_config(&client_config(Library::Rustls, Version::Tls13)).unwrap();
    let plan = ClientPlan::new(server.address(), ClientTransport::Quic { tls });
    let plan = ClientPlan { response_len: 5000, timeout: PATIENCE, ..plan };
    let outcome = connect(plan).await.unwrap();
    server.log().wait_for(outcome.local, PATIENCE).await.expect("a record");
    // The server writes its file when it has the client's CONNECTION_CLOSE.
    let begun = Instant::now();
    let written = loop {
        let written = files(folder);
        if written.len() == 2 && written.values().all(|events| is_closed(events)) {
            break written;
        }
        assert!(begun.elapsed() < PATIENCE, "{:?}", written.keys());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    qlog::write_to(None).unwrap();
    written.iter().for_each(|(name, records)| check_schema(name, records));
    let mut written = written.into_values();
    (written.next().unwrap(), written.next().unwrap())
}

#[test]
fn both_sides_of_a_connection_tell_the_same_packets() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for retry in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (client, server) = runtime.block_on(connection(folder.path(), retry));
        // One group: the client's file sorts first.
        assert_eq!(client[0]["trace"]["common_fields"], server[0]["trace"]["common_fields"]);
        for (from, to) in [(&client, &server), (&server, &client)] {
            let sent = packets(from, "quic:packet_sent");
            let received = packets(to, "quic:packet_received");
            assert!(received.len() > 4, "{received:?}");
            for (packet, frames) in &received {
                assert_eq!(sent.get(packet), Some(frames), "{packet:?}");
            }
        }
        let received: Vec<&Value> =
            client.iter().filter(|event| event["name"] == "quic:packet_received").collect();
        let is_retry = |event: &&&Value| event["data"]["header"]["packet_type"] == "retry";
        assert_eq!(received.iter().filter(is_retry).count(), usize::from(retry));
        // The stream's bytes, once each on a loopback without loss.
        let stream: u64 = received
            .iter()
            .filter_map(|event| event["data"]["frames"].as_array())
            .flatten()
            .filter(|frame| frame["frame_type"] == "stream")
            .map(|frame| frame["raw"]["length"].as_u64().unwrap())
            .sum();
        assert!(stream >= 5000, "{stream}");
        for side in [&client, &server] {
            let states: Vec<_> = side
                .iter()
                .filter(|event| event["name"] == "quic:connection_state_updated")
                .map(|event| event["data"]["new"].as_str().unwrap())
                .collect();
            let expected = [
                "attempted",
                "handshake_started",
                "handshake_complete",
                "handshake_confirmed",
                "closed",
            ];
            assert_eq!(states, expected);
            let parameters: Vec<_> =
                side.iter().filter(|event| event["name"] == "quic:parameters_set").collect();
            let initiators: Vec<_> =
                parameters.iter().map(|event| &event["data"]["initiator"]).collect();
            assert_eq!(initiators, ["local", "remote"]);
            assert!(parameters.iter().all(|event| event["data"]["initial_max_data"].is_u64()));
        }
        assert!(client.iter().any(|event| event["name"] == "quic:recovery_metrics_updated"));
    }
}
