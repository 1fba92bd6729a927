//! `wiretax chain` as a user runs it.

use std::fs;
use std::path::Path;

use crate::support::{data, files_below, has, run, talk};
use serde_json::Value;
use tls::{Identity, KeyType, Validity};

const NAME: &str = "server.test";

/// A chain's file, and that of the root it leads to.
fn written(folder: &Path, identity: &Identity) {
    fs::write(folder.join("chain.pem"), identity.chain_pem().unwrap()).unwrap();
    fs::write(folder.join("root.pem"), identity.root_pem().unwrap()).unwrap();
}

fn made(key: KeyType, length: usize) -> Identity {
    Identity::generate(key, length, &[NAME]).unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[&["chain"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", talk(&output));
    serde_json::from_str(&data(&output)).unwrap()
}

fn way<'a>(chain: &'a Value, carrier: &str, compression: Option<&str>) -> &'a Value {
    let ways = chain["ways"].as_array().unwrap().iter();
    let mut ways = ways.filter(|way| way["carrier"] == carrier);
    ways.find(|way| way["compression"].as_str() == compression).unwrap()
}

#[test]
fn a_file_is_examined_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let identity = made(KeyType::Rsa4096, 3);
    written(folder.path(), &identity);
    let value = json(folder.path(), &["chain.pem", "--ca", "root.pem"]);
    let chain = &value["chains"][0];
    let bytes: Vec<u64> = identity.chain_der().iter().map(|der| der.len() as u64).collect();
    assert_eq!(chain["bytes"], bytes.iter().sum::<u64>());
    assert_eq!(chain["signature_bytes"], 512);
    for (one, bytes) in chain["certificates"].as_array().unwrap().iter().zip(bytes) {
        assert_eq!((&one["bytes"], &one["key"]), (&bytes.into(), &"RSA-4096".into()));
    }
    for verdict in chain["verdicts"].as_array().unwrap() {
        assert!(verdict["refused"].is_null(), "{verdict}");
    }
    assert_eq!(way(chain, "tls1.3", None)["round_trips"], 2);
    assert_eq!(way(chain, "tls1.2", None)["round_trips"], 3);
    // More than 3600 bytes: RFC 9000 §8.1. RSA's keys and signatures cannot be compressed.
    assert_eq!(way(chain, "quic", None)["round_trips"], 2);
    let text = data(&run(folder.path(), &["chain", "chain.pem", "--ca", "root.pem"]));
    assert!(text.contains("rustls   verifies") && text.contains("openssl  verifies"), "{text}");
    // The system trusts none of ours.
    let output = run(folder.path(), &["chain", "chain.pem"]);
    if output.status.success() {
        assert!(data(&output).contains("does NOT verify"), "{}", data(&output));
    }
    assert_eq!(files_below(folder.path()), ["chain.pem", "root.pem"]);
}

#[test]
fn a_small_window_costs_round_trips_and_the_hint_says_which_takes_none() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &made(KeyType::Rsa4096, 3));
    let arguments = ["chain.pem", "--ca", "root.pem", "--initial-window", "2", "--rtt", "100ms"];
    let value = json(folder.path(), &arguments);
    let plain = way(&value["chains"][0], "tls1.3", None);
    assert_eq!(plain["round_trips"], 3);
    assert_eq!(plain["limit_bytes"], 2 * 1448);
    let advice = value["chains"][0]["advice"].as_array().unwrap();
    let need = plain["flight_bytes"].as_u64().unwrap().div_ceil(1448);
    let hint = advice[0].as_str().unwrap();
    assert!(hint.contains(&format!("initcwnd {need}")), "{hint}");
    assert!(hint.contains("100 ms at 100ms"), "{hint}");
}

/// How many ways of showing chains the lab counted as computed, how many it disturbed, and how many are at a
/// window's edge.
fn compared(value: &Value) -> (usize, usize, usize) {
    let (mut counted, mut disturbed, mut at_edge) = (0, 0, 0);
    for chain in value["chains"].as_array().unwrap() {
        for way in chain["ways"].as_array().unwrap() {
            let measured = &way["measured"];
            if measured["retransmitted"] != 0 {
                disturbed += 1;
                continue;
            }
            counted += 1;
            let what = format!("{}: {way:#}", chain["name"]);
            let number = |value: &Value| value.as_u64().unwrap();
            let computed = number(&way["least_round_trips"])..=number(&way["round_trips"]);
            assert!(computed.contains(&number(&measured["round_trips"])), "{what}");
            at_edge += usize::from(computed.start() < computed.end());
            if way["carrier"] != "quic" {
                assert_eq!(measured["flight_bytes"], way["flight_bytes"], "{what}");
            }
        }
    }
    (counted, disturbed, at_edge)
}

#[test]
fn what_is_computed_is_what_the_lab_counts() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &made(KeyType::Rsa2048, 3));
    // The last but one is as long as a window's edge over QUIC: there it depends on how the client acknowledges.
    let made =
        "ecdsa-p256,ml-dsa-44,ml-dsa-87,ml-dsa-44/slh-dsa-sha2-128f,ml-dsa-44/slh-dsa-sha2-256s";
    let arguments = ["chain.pem", "--ca", "root.pem", "--make", made, "--measure"];
    let value = json(folder.path(), &arguments);
    let (counted, disturbed, at_edge) = compared(&value);
    // The path loses nothing: what was sent again, a machine that stood still explains.
    assert!(counted > 30 && disturbed <= counted / 8, "{counted} counted, {disturbed} not");
    assert!(at_edge <= counted / 8, "{at_edge} of {counted} are at an edge");
}

#[test]
fn a_hybrid_group_is_computed_and_counted_too() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &made(KeyType::Rsa2048, 2));
    let arguments = ["chain.pem", "--ca", "root.pem", "--make", "ml-dsa-65", "--measure"];
    let plain = json(folder.path(), &["chain.pem", "--ca", "root.pem"]);
    let value = json(folder.path(), &[&arguments[..], &["--group", "x25519mlkem768"]].concat());
    let (counted, disturbed, _) = compared(&value);
    assert!(counted > 8 && disturbed <= counted / 4, "{counted} counted, {disturbed} not");
    // FIPS 203 §8: the ciphertext of ML-KEM-768 has 1088 bytes, and the server's share carries it.
    for carrier in ["tls1.3", "quic"] {
        let flight = |chains: &Value| {
            way(&chains["chains"][0], carrier, None)["flight_bytes"].as_u64().unwrap()
        };
        let more = flight(&value) - flight(&plain);
        assert!((1088..1300).contains(&more), "{carrier}: {more}");
    }
}

#[test]
fn oddities_are_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let identity = made(KeyType::EcdsaP256, 3);
    let pem = identity.chain_pem().unwrap();
    let end = "-----END CERTIFICATE-----\n";
    let mut parts: Vec<&str> = pem.split_inclusive(end).collect();
    parts.swap(1, 2);
    fs::write(folder.path().join("swapped.pem"), parts.concat()).unwrap();
    let old = Identity::generate_with(KeyType::EcdsaP256, 1, &[NAME], Validity::Expired).unwrap();
    fs::write(folder.path().join("old.pem"), old.chain_pem().unwrap()).unwrap();
    let whole = pem.clone() + &identity.root_pem().unwrap();
    fs::write(folder.path().join("whole.pem"), whole).unwrap();
    fs::write(folder.path().join("root.pem"), identity.root_pem().unwrap()).unwrap();
    for (file, says) in [
        ("swapped.pem", ["warning: swapped.pem: certificate 1", "put the leaf first"]),
        ("old.pem", ["has expired", "renew it"]),
        ("whole.pem", ["is a root", "leave it out"]),
    ] {
        let output = run(folder.path(), &["chain", file, "--ca", "root.pem"]);
        let text = talk(&output);
        assert!(output.status.success(), "{file}: {text}");
        assert!(says.iter().all(|part| text.contains(part)), "{file}: {text}");
    }
}

#[test]
fn what_is_no_chain_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let identity = made(KeyType::EcdsaP256, 1);
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("key.pem", identity.private_key_pem().unwrap().as_bytes());
    write("chain.p12", &[&[0x30, 0x82, 0x01, 0x00, 0x02, 0x01, 0x03][..], &[0; 249]].concat());
    write("large.pem", &vec![b'x'; 10 << 20]);
    write("many.pem", identity.chain_pem().unwrap().repeat(11).as_bytes());
    write("empty.pem", b"");
    for (arguments, says) in [
        (&["key.pem"][..], &["key.pem: there is no certificate", "BEGIN CERTIFICATE"][..]),
        (&["chain.p12"], &["PKCS #12", "openssl pkcs12 -nokeys -in FILE -out chain.pem"]),
        (&["large.pem"], &["large.pem", "MiB", "not a list of roots"]),
        (&["many.pem"], &["11 certificates"]),
        (&["empty.pem"], &["empty.pem: there is no certificate"]),
        (&["nowhere.pem"], &["nowhere.pem", "No such file", "as fullchain.pem"]),
        (&["key.pem", "--measure"], &["key.pem: there is no certificate"]),
        (&["--make", "dsa"], &["dsa", "ml-dsa-65"]),
        (&["--make", "slh-dsa-sha2-128s"], &["slh-dsa", "ml-dsa-65"]),
        (&["--make", "ecdsa-p256", "--length", "11"], &["11"]),
        (&["--make", "ecdsa-p256", "--rtt", "20"], &["no unit"]),
        (&["--make", "ecdsa-p256", "--initial-window", "0"], &["0 is not in"]),
        (&["--server", "a b"], &["a b", "names no server"]),
        (&[], &["<FILE>"]),
    ] {
        let output = run(folder.path(), &[&["chain"], arguments].concat());
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(says.iter().all(|part| text.contains(part)), "{arguments:?}: {text}");
        assert_eq!(text.matches("error:").count(), 1, "{arguments:?}: {text}");
        assert_eq!(data(&output), "", "{arguments:?}");
    }
    let output = run(folder.path(), &["chain", "--server", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
}

/// Another implementation made and reads these.
#[test]
fn openssls_own_files_are_read() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "key.pem"])
        .args(["-out", "both.pem", "-days", "2", "-subj", "/CN=server.test"])
        .args(["-addext", "subjectAltName=DNS:server.test"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let value = json(folder.path(), &["both.pem"]);
    let chain = &value["chains"][0];
    assert_eq!(chain["certificates"][0]["key"], "ED25519");
    assert_eq!(chain["signature_bytes"], 64);
}
