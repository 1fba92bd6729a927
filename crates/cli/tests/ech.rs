//! `wiretax ech` as a user runs it.

use std::net::UdpSocket;

use crate::support::{data, run, talk, wiretax};
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
    refuses(&["--public-name", "no name"], 2, "not a DNS name");
    refuses(&["--name", "192.0.2.1"], 2, "192.0.2.1");
    refuses(&["192.0.2.1"], 2, "hint: give the server's name");
    refuses(&["x.example", "--dns-server", "nobody"], 2, "no address");
    // A port that is bound and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    refuses(&["x.example", "--dns-server", &address, "--timeout", "200ms"], 1, "no answer");
}

/// `wiretax ech --library` with a cache in which nothing is built.
#[test]
fn a_library_that_is_not_there_is_one_error_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("null.so"), tls_drivers::NULL).unwrap();
    for (library, code, says, remedy) in [
        ("nonsense", 2, "there is no library `nonsense`", "`wiretax drivers build NAME`"),
        ("./none.so", 2, "there is no library `./none.so`", "`wiretax drivers build NAME`"),
        (
            "openssl-4.0.3",
            3,
            "`openssl-4.0.3` is not built",
            "`wiretax drivers build openssl-4.0.3`",
        ),
        ("built", 3, "no library with ECH is built", "`wiretax drivers build openssl-4.0.3"),
        ("./null.so", 2, "the driver of `null` has no ECH", "boringssl"),
    ] {
        let mut command = wiretax(folder.path());
        command.env("XDG_CACHE_HOME", folder.path().join("cache"));
        let output = command.args(["ech", "--library", library]).output().unwrap();
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(code), "{library}: {said}");
        assert_eq!(said.matches("error:").count(), 1, "{library}: {said}");
        // The sentences are wrapped.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(says) && said.contains(remedy), "{library}: {said}");
        assert!(data(&output).is_empty(), "{library}: {}", data(&output));
    }
}

/// With libraries that are built for minutes: `.ci/run` runs it.
mod real {
    use super::*;

    /// The libraries with ECH on both sides. The first is built here: other tests need it too; the others take part
    /// where they are built.
    const LIBRARIES: [&str; 3] = ["awslc-5.12.0", "boringssl", "openssl-4.0.3"];

    fn visits<'a>(value: &'a Value, client: &str, server: &str) -> Vec<&'a Value> {
        let all = value["visits"].as_array().unwrap().iter();
        all.filter(|one| one["library"] == client && one["server"] == server).collect()
    }

    #[test]
    #[ignore = "builds TLS libraries for minutes: .ci/run runs it"]
    fn each_client_meets_each_server() {
        let folder = tempfile::tempdir().unwrap();
        let cached = |arguments: &[&str]| data(&crate::real::succeeds(folder.path(), arguments));
        cached(&["drivers", "build", LIBRARIES[0]]);
        let value: Value =
            serde_json::from_str(&cached(&["ech", "--library", "built", "--json"])).unwrap();
        assert_eq!(value["failures"], serde_json::json!([]));
        let libraries = value["libraries"].as_array().unwrap().iter();
        let built: Vec<&str> = libraries.filter_map(|library| library["name"].as_str()).collect();
        assert!(built.contains(&LIBRARIES[0]), "{built:?}");
        for missing in LIBRARIES.iter().filter(|name| !built.contains(name)) {
            println!("{missing} is not built, and takes no part");
        }
        for client in ["rustls", "aws-lc"].iter().chain(&built) {
            for server in ["aws-lc"].iter().chain(&built) {
                let visits = visits(&value, client, server);
                let cases: Vec<_> = visits
                    .iter()
                    .map(|one| {
                        let count = |what: &str| one[what].as_u64().unwrap();
                        let trips = (count("tcp_round_trips"), count("quic_round_trips"));
                        (one["case"].as_str().unwrap(), count("connections"), trips, &one["hidden"])
                    })
                    .collect();
                let (yes, no) = (&Value::Bool(true), &Value::Bool(false));
                let expected = [
                    ("plain", 1, (2, 1), no),
                    ("placeholder", 1, (2, 1), no),
                    ("accepted", 1, (2, 1), yes),
                    ("new-key", 2, (4, 2), yes),
                    ("dropped", 2, (4, 2), no),
                ];
                assert_eq!(cases, expected, "{client} with {server}");
            }
        }
        let text = cached(&["ech", "--library", LIBRARIES[0]]);
        assert!(text.contains("Bytes of a whole visit") && text.contains(LIBRARIES[0]), "{text}");
    }
}
