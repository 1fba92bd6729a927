//! `wiretax gateway survey merge` as a user runs it: files of several networks.

use std::fs;
use std::path::Path;

use gateway::survey::{Fate, RECORD_SCHEMA, Record, Way};
use serde_json::Value;

use crate::support::{data, run, talk};

fn record(network: &str, port: u16, syn: Fate) -> Record {
    Record {
        schema: RECORD_SCHEMA,
        at_unix_ms: 0,
        network: network.to_owned(),
        server: "server.test".to_owned(),
        port,
        way: Way::SynData,
        syn_bytes: 1000,
        syn_ack_bytes: 0,
        syn,
        syn_ack: Fate::NotSent,
        connect_ms: (syn != Fate::Failed).then_some(20.0),
        syn_retransmissions: 0,
        failure: None,
    }
}

fn written(path: &Path, records: &[Record]) {
    let lines: Vec<String> =
        records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn two_networks_are_two_paths() {
    let folder = tempfile::tempdir().unwrap();
    let home = [
        record("home", 443, Fate::Carried),
        record("home", 443, Fate::Carried),
        record("home", 8443, Fate::Carried),
    ];
    let office = [record("office", 443, Fate::Stripped), record("office", 8443, Fate::Carried)];
    written(&folder.path().join("home.jsonl"), &home);
    written(&folder.path().join("office.jsonl"), &office);
    let merge = ["gateway", "survey", "merge", "home.jsonl", "office.jsonl"];
    let output = run(folder.path(), &[&merge[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    let groups: Vec<Value> = serde_json::from_str(&data(&output)).unwrap();
    let said: Vec<[u64; 4]> = groups
        .iter()
        .map(|group| {
            ["port", "connections", "paths", "paths_carried"]
                .map(|field| group[field].as_u64().unwrap())
        })
        .collect();
    assert_eq!(said, [[443, 3, 2, 1], [8443, 2, 2, 2]]);
    assert_eq!(groups[0]["syn"], serde_json::json!({ "carried": 2, "stripped": 1 }));
    let text = data(&run(folder.path(), &merge));
    assert!(text.contains("1 of 2") && text.contains("2 of 2"), "{text}");
    assert!(text.contains("2 carried, 1 stripped"), "{text}");
}

#[test]
fn what_is_no_survey_s_file_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    written(&folder.path().join("home.jsonl"), &[record("home", 443, Fate::Carried)]);
    fs::write(folder.path().join("cut.jsonl"), "{\"schema\":1,\n").unwrap();
    let old = Record { schema: RECORD_SCHEMA + 1, ..record("home", 443, Fate::Carried) };
    written(&folder.path().join("other.jsonl"), &[old]);
    for (file, says) in [
        ("cut.jsonl", "cut.jsonl, line 1: "),
        ("other.jsonl", "other.jsonl, line 1: it is of another version"),
        ("none.jsonl", "none.jsonl"),
    ] {
        let output = run(folder.path(), &["gateway", "survey", "merge", "home.jsonl", file]);
        assert_eq!(output.status.code(), Some(2), "{file}: {}", talk(&output));
        assert!(talk(&output).contains(says), "{file}: {}", talk(&output));
        assert_eq!(data(&output), "", "{file}");
    }
}
