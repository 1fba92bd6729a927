//! Texts of strangers on the terminal: shown, and not obeyed.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use gateway::survey::{Fate, RECORD_SCHEMA, Record, Way};
use serde_json::{Value, json};

use crate::documented::{files_below, root};
use crate::support::{copy_folder, data, has, run, talk, wait_until, wiretax};

/// A window's title, a cleared screen, red by a C1 control, an overwritten and a reversed line, a line
/// of its own.
const STRANGER: &str = "x\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\r\u{7f}\u{202e}\u{2066}\nFAKE";

/// What is printed neither steers a terminal nor has a line that begins as the stranger's second.
fn assert_harmless(what: &str, output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found: Vec<char> = text.chars().filter(|c| fault::steers(*c)).collect();
        assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("FAKE")), "{what}: {text:?}");
        assert!(!text.contains("panicked"), "{what}: {text}");
    }
}

/// Runs with these arguments; the stranger's text must be shown, and be harmless.
fn shows(folder: &Path, arguments: &[&str]) -> Output {
    let output = run(folder, arguments);
    let what = format!("{arguments:?}");
    assert_harmless(&what, &output);
    let shown = data(&output) + &talk(&output);
    assert!(shown.contains("FAKE"), "{what} does not show it: {shown}");
    output
}

#[test]
fn arguments_are_quoted_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = |template: &str| template.replace('@', STRANGER);
    for line in [
        // What clap quotes, and what parsers of ours do.
        "@",
        "--color=@",
        "handshake --@",
        "handshake @",
        "handshake --repeat @",
        "handshake --rtt @",
        "handshake --mode @",
        "run --scale @",
        "lab --loss @ true",
        "gateway serve --listen @",
        "completions @",
        // What commands quote.
        "handshake --scale @",
        "handshake --plan @",
        "handshake --resume @",
        "handshake --rtt 1ms --profile @",
        "handshake --rtt 1ms --clients @",
        "page --har @",
        "report @",
        "compare @ b",
        "observe @",
        "observe tickets @",
        "observe query @ x",
        "sequence @",
        "probe @",
        "probe 127.0.0.1 --ca @",
        "probe --compare @ b",
        "chain @",
        "ech --public-name @",
        "load @",
        "explain @",
        "drivers build @",
        "lab --stats nowhere/@ true",
        "gateway survey merge @",
        "man /proc/@",
    ] {
        let arguments: Vec<String> = line.split(' ').map(hostile).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = shows(folder.path(), &arguments);
        assert!(!output.status.success(), "{line}");
    }
    // A name that is no text at all.
    let name = OsString::from_vec(b"\x9b31m\xff".to_vec());
    for command in ["report", "observe", "sequence", "chain", "explain"] {
        let output = wiretax(folder.path()).arg(command).arg(&name).output().unwrap();
        assert_harmless(command, &output);
    }
}

/// Every text in a JSON value has the stranger's behind it; names of fields stay.
fn spoiled(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(STRANGER),
        Value::Array(values) => values.iter_mut().for_each(spoiled),
        Value::Object(fields) => fields.values_mut().for_each(spoiled),
        _ => {}
    }
}

#[test]
fn files_are_quoted_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    let escaped = |text: &str| json!(text).to_string();
    let stranger = escaped(STRANGER);
    let mut har = json!({ "log": {
        "version": "1.2", "creator": { "name": "x", "version": "1" },
        "pages": [{ "startedDateTime": "2026-01-31T10:11:12.000Z", "id": "p", "title": "t" }],
        "entries": [{ "startedDateTime": "2026-01-31T10:11:12.000Z", "time": 6.0, "pageref": "p",
            "request": { "method": "GET", "url": "https://www.example.com/", "headers": [] },
            "response": { "status": 200, "headers": [], "content": { "size": 1 }, "bodySize": 1 },
            "timings": { "send": 1, "wait": 4, "receive": 1 },
        }],
    }});
    spoiled(&mut har);
    let cases: [(&str, &[&str], Vec<u8>); 8] = [
        ("plan.toml", &["handshake", "--plan"], format!("[scale.quick]\n{STRANGER}").into()),
        ("key.toml", &["handshake", "--plan"], format!("[scale.quick]\n{stranger} = 1\n").into()),
        (
            "path.toml",
            &["handshake", "--rtt", "1ms", "--profile"],
            format!("{stranger} = 1").into(),
        ),
        ("clients.txt", &["handshake", "--rtt", "1ms", "--clients"], STRANGER.into()),
        ("up.trace", &["handshake", "--rtt", "1ms", "--trace-up"], STRANGER.into()),
        ("har.json", &["page", "--har"], har.to_string().into()),
        ("survey.jsonl", &["gateway", "survey", "merge"], format!("{{{stranger}:1}}\n").into()),
        (
            "probe.json",
            &["probe", "--compare", "other"],
            format!("{{{stranger}:{stranger}}}").into(),
        ),
    ];
    for (name, arguments, contents) in cases {
        fs::write(folder.path().join(name), contents).unwrap();
        let output = run(folder.path(), &[arguments, &[name]].concat());
        assert_harmless(name, &output);
        assert!(!output.status.success(), "{name}: {}{}", data(&output), talk(&output));
    }
}

#[test]
fn results_of_a_stranger_are_shown_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    let good = root().join("docs/results/link-guest");
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(good.join("manifest.json")).unwrap()).unwrap();
    let sample = fs::read_to_string(good.join("samples.jsonl")).unwrap();
    let samples: Vec<Value> =
        sample.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Each part of a folder is spoiled on its own, so that the others are read.
    let spoil_samples = |field: &str| -> Vec<Value> {
        let mut spoilt = samples.clone();
        spoilt.iter_mut().for_each(|sample| spoiled(&mut sample[field]));
        spoilt
    };
    let warned = |field: &str| {
        let mut manifest = manifest.clone();
        match field {
            "plan" => manifest["plan"][STRANGER] = json!(STRANGER),
            "warnings" => spoiled(&mut manifest["warnings"]),
            "schema" => manifest["schema"] = json!(STRANGER),
            _ => {
                let session = &mut manifest["sessions"][0];
                ["command", "tool", "environment"]
                    .iter()
                    .for_each(|part| spoiled(&mut session[part]));
            }
        }
        manifest
    };
    let mut folders = vec![("session", warned("session"), samples.clone())];
    for part in ["plan", "warnings", "schema"] {
        folders.push((part, warned(part), samples.clone()));
    }
    for part in ["study", "point", "command"] {
        folders.push((part, manifest.clone(), spoil_samples(part)));
    }
    for (name, manifest, samples) in folders {
        let at = folder.path().join(name);
        copy_folder(&good, &at);
        fs::write(at.join("manifest.json"), manifest.to_string()).unwrap();
        let lines: Vec<String> = samples.iter().map(Value::to_string).collect();
        fs::write(at.join("samples.jsonl"), lines.join("\n") + "\n").unwrap();
        for arguments in [&["report", name][..], &["report", name, "--json"]] {
            assert_harmless(&format!("{arguments:?}"), &run(folder.path(), arguments));
        }
        let report = fs::read_to_string(at.join("report.html")).unwrap_or_default();
        assert!(!report.contains(fault::steers), "{name}: report.html");
    }
    assert_harmless("compare", &run(folder.path(), &["compare", "session", "point"]));
    assert_harmless("compare", &run(folder.path(), &["compare", "point", "point", "--json"]));
}

#[test]
fn a_probe_of_a_stranger_is_shown_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    let refused = json!({ "refused": { "reason": STRANGER } });
    let report = json!({
        "schema": 1, "host": STRANGER, "address": "192.0.2.1:443", "server_name": STRANGER,
        "at_unix_ms": 0, "dns": null,
        "path": { "connect_ms": null, "min_rtt_ms": null, "retransmits": 0, "send_mss": null },
        "versions": { "tls12": refused, "tls13": refused, "quic": refused },
        "modes": [{
            "mode": "tls13", "verdict": refused, "ready": null, "first_byte": null,
            "ready_round_trips": null, "first_byte_round_trips": null, "samples": [],
        }],
        "offer": null, "certificates": null, "connections": 1, "hints": [STRANGER],
    });
    fs::write(folder.path().join("a.json"), report.to_string()).unwrap();
    fs::write(folder.path().join("b.json"), report.to_string()).unwrap();
    let output = shows(folder.path(), &["probe", "--compare", "a.json", "b.json"]);
    assert!(talk(&output).contains("hint: a: x"), "{}", talk(&output));
    // JSON is the same data.
    let output = shows(folder.path(), &["probe", "--json", "--compare", "a.json", "b.json"]);
    let both: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(both[0][1]["host"], STRANGER);
    assert_eq!(both[1][1]["hints"][0], STRANGER);
}

#[test]
fn records_and_captures_of_a_stranger_are_shown_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    let record = Record {
        schema: RECORD_SCHEMA,
        at_unix_ms: 0,
        network: STRANGER.to_owned(),
        server: STRANGER.to_owned(),
        port: 443,
        way: Way::SynData,
        syn_bytes: 1,
        syn_ack_bytes: 0,
        syn: Fate::Carried,
        syn_ack: Fate::NotSent,
        connect_ms: None,
        syn_retransmissions: 0,
        failure: Some(STRANGER.to_owned()),
    };
    fs::write(folder.path().join("s.jsonl"), serde_json::to_string(&record).unwrap()).unwrap();
    assert_harmless("survey", &run(folder.path(), &["gateway", "survey", "merge", "s.jsonl"]));
    let hello = client_hello(b"x\x1b]0;x\x07\x1b[2J\r\nFAKE.example");
    for (name, contents) in [("tls", hello), ("clear", STRANGER.as_bytes().to_vec())] {
        let file = capture(folder.path(), name, &contents);
        for arguments in [
            &["observe", &file][..],
            &["observe", &file, "--json"],
            &["sequence", &file],
            &["sequence", &file, "--all"],
        ] {
            assert_harmless(&format!("{arguments:?}"), &run(folder.path(), arguments));
        }
    }
    let output = shows(folder.path(), &["observe", "tls.pcap", "--json"]);
    let row: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(row["sni"], "x\u{1b}]0;x\u{7}\u{1b}[2J\r\nFAKE.example");
    shows(folder.path(), &["observe", "tls.pcap"]);
}

/// A ClientHello of TLS 1.3 with this server name (RFC 8446 §4.1.2, RFC 6066 §3).
fn client_hello(name: &[u8]) -> Vec<u8> {
    let sized = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let names = sized(&[&[0][..], &sized(name)].concat());
    let extension = |kind: u16, body: &[u8]| [&kind.to_be_bytes()[..], &sized(body)].concat();
    let extensions = [extension(0, &names), extension(43, &[2, 3, 4])].concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(sized(&extensions));
    let length = (body.len() as u32).to_be_bytes();
    let message = [&[1][..], &length[1..], &body].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

/// A capture of a connection on which a client says this.
fn capture(folder: &Path, name: &str, said: &[u8]) -> String {
    let mut pcap = lab_test::Pcap::new(lab_test::Pcap::IP);
    let mut packet = |number: u64, from: u8, flags: u8, next: [u32; 2], payload: &[u8]| {
        let mut packet = vec![0x45, 0];
        packet.extend((40 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from]);
        let ports = if from == 1 { [40_000_u16, 443] } else { [443, 40_000] };
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend(next.iter().flat_map(|number| number.to_be_bytes()));
        packet.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);
        pcap.push(1_000_000_000 + number * 1_000_000, &packet);
    };
    packet(0, 1, 2, [100, 0], &[]);
    packet(1, 2, 18, [200, 101], &[]);
    packet(2, 1, 16, [101, 201], said);
    let after = 101 + said.len() as u32;
    packet(3, 2, 17, [201, after], &[]);
    packet(4, 1, 17, [after, 202], &[]);
    fs::write(folder.join(format!("{name}.pcap")), pcap.as_bytes()).unwrap();
    format!("{name}.pcap")
}

#[test]
fn a_strange_server_is_shown_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    // A mail server's greeting, an error of a web server's, a refusal on top.
    let banner = format!("220 {STRANGER}\r\nHTTP/1.1 400 {STRANGER}\r\n\r\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let banner = banner.clone();
            std::thread::spawn(move || answer(stream, &banner));
        }
    });
    let short = ["--repeat", "1", "--timeout", "1s", "--insecure"];
    assert_harmless("probe", &run(folder.path(), &[&["probe", &address], &short[..]].concat()));
    let url = format!("https://{address}/");
    let load = ["load", &url, "--insecure", "--count", "2", "--timeout", "1s"];
    assert_harmless("load", &run(folder.path(), &load));
}

fn answer(mut stream: TcpStream, banner: &str) {
    let _ = stream.write_all(banner.as_bytes());
    let mut some = [0; 512];
    let _ = stream.read(&mut some);
}

#[test]
fn a_strange_certificate_is_shown_harmlessly() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-utf8", "-days", "2", "-subj", &format!("/O={STRANGER}/CN={STRANGER}")])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", talk(&made));
    shows(folder.path(), &["chain", "cert.pem"]);
    shows(folder.path(), &["chain", "cert.pem", "--json"]);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut server = Command::new("openssl")
        .args(["s_server", "-www", "-accept", &address, "-cert", "cert.pem", "-key", "key.pem"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the server listens", || TcpStream::connect(&address).is_ok());
    let short = ["--repeat", "1", "--timeout", "1s", "--name", "test.example"];
    let output = run(folder.path(), &[&["probe", &address], &short[..]].concat());
    let _ = server.kill();
    let _ = server.wait();
    assert_harmless("probe", &output);
}

/// Only `output` of this program writes on stdout and stderr, so that nothing gets round it.
#[test]
fn one_place_writes_on_the_terminal() {
    // A guest's console, messages between processes, the user's own `/dev/stdout`, and what tests print.
    const OTHERS: [&str; 5] = [
        "crates/cli/src/output.rs",
        "crates/guest/src/inside/",
        "crates/host/src/serve.rs",
        "crates/outfile/src/place.rs",
        "crates/lab-test/src/",
    ];
    // Cut in two, for this file is read as well.
    let words = ["print", "eprint"].map(|name| [format!("{name}!("), format!("{name}ln!(")]);
    let handles = ["stdout()", "stderr()"].map(|name| format!("io::{name}"));
    let words: Vec<String> = words.into_iter().flatten().chain(handles).collect();
    let mut sources = Vec::new();
    for part in ["crates", "studies"] {
        files_below(&root().join(part), &["rs"], &mut sources);
    }
    let mut found = Vec::new();
    for path in sources {
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        let is_program = shown.contains("/src/") && !shown.ends_with("tests.rs");
        if !is_program || OTHERS.iter().any(|other| shown.starts_with(other)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
        let lines = lines.filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        found.extend(lines.map(|(at, line)| format!("{shown}:{}: {line}", at + 1)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
