//! `wiretax ech` as a user runs it.

use std::net::UdpSocket;

use crate::support::{data, run, talk};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&["ech"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", talk(&output));
    serde_json::from_str(&data(&output)).unwrap()
}

fn visit<'a>(value: &'a Value, library: &str, case: &str) -> &'a Value {
    let mut visits = value["visits"].as_array().unwrap().iter();
    visits.find(|one| one["library"] == library && one["case"] == case).unwrap()
}

#[test]
fn a_retry_is_a_connection_more_and_an_accepted_hello_costs_bytes_alone() {
    let value = json(&["--rtt", "50ms", "--retries", "10%"]);
    for library in ["rustls", "aws-lc"] {
        for (case, connections, flights, tcp, quic, hidden) in [
            ("plain", 1, 3, 2, 1, false),
            ("placeholder", 1, 3, 2, 1, false),
            ("accepted", 1, 3, 2, 1, true),
            ("new-key", 2, 6, 4, 2, true),
            ("dropped", 2, 6, 4, 2, false),
        ] {
            let one = visit(&value, library, case);
            assert_eq!(one["connections"], connections, "{library}, {case}");
            assert_eq!(one["flights"], flights, "{library}, {case}");
            assert_eq!(one["tcp_round_trips"], tcp, "{library}, {case}");
            assert_eq!(one["quic_round_trips"], quic, "{library}, {case}");
            assert_eq!(one["hidden"], hidden, "{library}, {case}");
        }
        let bytes = |case: &str| visit(&value, library, case)["client_bytes"].as_u64().unwrap();
        assert!(bytes("accepted") > bytes("plain") && bytes("new-key") > bytes("accepted"));
    }
    // A tenth of two round trips over TCP, of one over QUIC; no record was waited for.
    let costs = &value["costs"][0];
    assert_eq!((&costs["retry_tcp_ms"], &costs["retry_quic_ms"]), (&100.0.into(), &50.0.into()));
    assert_eq!((&costs["mean_tcp_ms"], &costs["mean_quic_ms"]), (&10.0.into(), &5.0.into()));
    for hello in value["hellos"].as_array().unwrap() {
        let bytes = |offer: &str| hello[offer]["bytes"].as_u64().unwrap();
        assert!(bytes("ech") > bytes("plain") && bytes("placeholder") > bytes("plain"), "{hello}");
    }
}

#[test]
fn what_is_wrong_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let refuses = |arguments: &[&str], code: i32, says: &str| {
        let output = run(folder.path(), &[&["ech"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", talk(&output));
        assert!(talk(&output).contains(says), "{arguments:?}: {}", talk(&output));
    };
    refuses(&["--public-name", "no name"], 2, "no public name");
    refuses(&["--name", "192.0.2.1"], 2, "192.0.2.1");
    refuses(&["192.0.2.1"], 2, "hint: give the server's name");
    refuses(&["x.example", "--dns-server", "nobody"], 2, "no address");
    // A port that is bound and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    refuses(&["x.example", "--dns-server", &address, "--timeout", "200ms"], 1, "no answer");
}
