//! An outside judge: tshark's fields of every capture in `data`.

use lab_test::{Need, skip};
use std::collections::BTreeMap;
use std::process::Command;

use crate::common::{frames, observe};
use tracker::Connection;
use units::Time;

/// A hello as tshark reads it: fields by name, several values joined by commas.
type Hello = BTreeMap<&'static str, String>;

const FIELDS: [&str; 10] = [
    "tcp.srcport",
    "tcp.dstport",
    "frame.time_relative",
    "tls.handshake.type",
    "tls.handshake.version",
    "tls.handshake.extensions.supported_version",
    "tls.handshake.ciphersuite",
    "tls.handshake.extensions_server_name",
    "tls.handshake.extensions_alpn_str",
    "tls.handshake.ja3",
];

/// The first ClientHello, or the last ServerHello, of each connection by the client's port; `None`
/// without tshark.
fn hellos(path: &str, client: bool) -> Option<BTreeMap<u16, Hello>> {
    let mut command = Command::new("tshark");
    let kind = if client { 1 } else { 2 };
    command.args(["-n", "-r", path, "-d", "tcp.port==14430-14437,tls"]);
    command.args(["-T", "fields", "-E", "separator=;"]);
    command.args(["-Y", &format!("tls.handshake.type=={kind}")]);
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        other => other.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let hello: Hello = FIELDS.into_iter().zip(line.split(';').map(str::to_owned)).collect();
        let port = if client { "tcp.srcport" } else { "tcp.dstport" };
        let port = hello[port].parse().unwrap();
        if !client || !found.contains_key(&port) {
            found.insert(port, hello);
        }
    }
    Some(found)
}

/// The codes in a field, in hexadecimal with 0x, GREASE left out.
fn codes(hello: &Hello, field: &str) -> Vec<u16> {
    let code = |text: &str| u16::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let all = hello[field].split(',').filter(|text| !text.is_empty()).map(code);
    all.filter(|code| !wire::tls::is_grease(*code)).collect()
}

/// "1.205691000" as a time.
fn time(hello: &Hello) -> Option<Time> {
    let (seconds, nanos) = hello["frame.time_relative"].split_once('.')?;
    let nanos: u64 = format!("{nanos:0<9}").parse().unwrap();
    Some(Time::from_nanos(seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanos))
}

fn compare(connection: &Connection, client: &Hello, server: Option<&Hello>) {
    let tls = connection.tls.as_ref().expect("tshark sees TLS");
    println!("{} {client:?}", connection.client);
    let offered: Vec<u16> = tls.versions_offered.iter().map(|version| version.0).collect();
    let mut listed = codes(client, "tls.handshake.extensions.supported_version");
    let field = codes(client, "tls.handshake.version");
    if listed.is_empty() {
        listed.clone_from(&field);
    }
    assert_eq!(offered, listed);
    assert_eq!(tls.legacy_version.map(|version| version.0), field.first().copied());
    let suites: Vec<u16> = tls.cipher_suites.iter().map(|suite| suite.0).collect();
    assert_eq!(suites, codes(client, "tls.handshake.ciphersuite"));
    let name = &client["tls.handshake.extensions_server_name"];
    assert_eq!(tls.server_name.as_deref().unwrap_or_default(), name);
    assert_eq!(tls.alpn_offered.join(","), client["tls.handshake.extensions_alpn_str"]);
    assert_eq!(tls.ja3.as_ref(), Some(&client["tls.handshake.ja3"]));
    assert_eq!(tls.client_hello_end, time(client));
    let Some(server) = server else { return };
    let chosen = codes(server, "tls.handshake.extensions.supported_version");
    let field = codes(server, "tls.handshake.version");
    assert_eq!(tls.version.map(|version| version.0), chosen.first().or(field.first()).copied());
    let suite = tls.cipher_suite.map(|suite| suite.0);
    assert_eq!(suite, codes(server, "tls.handshake.ciphersuite").first().copied());
    assert_eq!(tls.server_hello_end, time(server));
}

#[test]
fn every_capture_reads_as_tshark_reads_it() {
    let folder = format!("{}/tests/data", env!("CARGO_MANIFEST_DIR"));
    let mut compared = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".pcap") {
            continue;
        }
        let path = format!("{folder}/{name}");
        let (Some(clients), Some(servers)) = (hellos(&path, true), hellos(&path, false)) else {
            skip!(Need::Tshark, "tshark is not installed");
        };
        let connections = observe(&frames(&name));
        for (port, client) in &clients {
            let connection = connections.iter().find(|c| c.client.port() == *port);
            compare(connection.expect("a connection"), client, servers.get(port));
            compared += 1;
        }
        let with_tls = connections.iter().filter(|c| c.tls.is_some()).count();
        assert_eq!(with_tls, clients.len(), "{name}");
    }
    assert_eq!(compared, 22);
}
