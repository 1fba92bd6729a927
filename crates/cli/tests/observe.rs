//! `wiretax observe` on captures whose answers other tools have given.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{data, run, talk, wait_until, wiretax};
use serde_json::Value;

fn capture(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data");
    folder.join(name).display().to_string()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The lines of `--json`, those of connections.
fn connections(output: &std::process::Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", talk(output));
    let lines: Vec<Value> =
        data(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.into_iter().filter(|line| line["kind"] == "connection").collect()
}

#[test]
fn each_connection_is_listed_and_the_answer_comes_with_it() {
    let folder = folder();
    let output = run(folder.path(), &["observe", &capture("tls13_psk_succesfull.pcap")]);
    assert!(output.status.success(), "{}", talk(&output));
    let text = data(&output);
    for wanted in ["192.168.178.80:54220", "TLS_CHACHA20_POLY1305_SHA256", "resumed", "34.436"] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert_eq!(talk(&output), "");
}

#[test]
fn rows_say_what_the_wire_does_and_several_files_are_one_capture() {
    let folder = folder();
    let (one, other) = (capture("tls1.2.pcap"), capture("tls-13draft19-early-data.pcap"));
    let rows = connections(&run(folder.path(), &["observe", &other, &one, "--json"]));
    let versions: Vec<_> = rows.iter().map(|row| row["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["TLS 1.2", "TLS 1.3 draft 19", "TLS 1.3 draft 19"], "{rows:?}");
    let early: Vec<_> = rows.iter().map(|row| row["early_data"].as_str().unwrap()).collect();
    assert_eq!(early, ["not_offered", "accepted", "not_offered"]);
    assert!(rows.iter().all(|row| row["uncertain"] == serde_json::json!([])), "{rows:?}");
}

/// A pcap file of one frame.
fn file_of(folder: &std::path::Path, link: u32, frame: &[u8]) -> String {
    let mut pcap = lab_test::Pcap::new(link);
    pcap.push(1_000_000_000, frame);
    let path = folder.join("one.pcap");
    std::fs::write(&path, pcap.as_bytes()).unwrap();
    path.display().to_string()
}

#[test]
fn a_link_type_that_is_not_read_is_called_by_its_name_and_is_an_error_where_nothing_else_is() {
    let folder = folder();
    let file = file_of(folder.path(), 105, &[8; 60]);
    let alone = run(folder.path(), &["observe", &file]);
    assert_eq!(alone.status.code(), Some(5), "{}", talk(&alone));
    assert!(talk(&alone).contains("nothing was read"), "{}", talk(&alone));
    assert!(talk(&alone).contains("link type 105 (IEEE 802.11)"), "{}", talk(&alone));
    let both = run(folder.path(), &["observe", &file, &capture("tls1.2.pcap")]);
    assert!(both.status.success() && talk(&both).contains("1 frame of link type 105"));
}

#[test]
fn a_wrapping_that_is_not_read_is_called_by_its_name() {
    let folder = folder();
    // ESP between two addresses.
    let mut frame = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, 50, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    frame.resize(60, 7);
    let alone = run(folder.path(), &["observe", &file_of(folder.path(), 101, &frame)]);
    assert_eq!(alone.status.code(), Some(5), "{}", talk(&alone));
    assert!(talk(&alone).contains("1 frame wrapped in IPsec ESP: not read"), "{}", talk(&alone));
    assert!(talk(&alone).contains("1 frame, none with TCP or UDP over IP"), "{}", talk(&alone));
    assert!(data(&alone).contains("wrapped in IPsec ESP: not read"), "{}", data(&alone));
}

#[test]
fn quic_of_a_version_that_is_not_read_is_counted_and_noted() {
    let folder = folder();
    // IPv4 and UDP headers, then a long header of draft 21 in a datagram of 1250 bytes.
    let [high, low] = 1278u16.to_be_bytes();
    let [udp_high, udp_low] = 1258u16.to_be_bytes();
    let mut frame = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    frame.extend([0xc3, 0x50, 1, 0xbb, udp_high, udp_low, 0, 0]);
    frame.extend([0xc3, 0xff, 0, 0, 21, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    frame.resize(1278, 9);
    let file = file_of(folder.path(), 101, &frame);
    let text = run(folder.path(), &["observe", &file]);
    assert!(data(&text).contains("QUIC, draft 21: not read"), "{}", data(&text));
    let json = run(folder.path(), &["observe", &file, "--json"]);
    assert!(json.status.success() && data(&json).is_empty());
    assert!(talk(&json).contains("draft 21: 1"), "{}", talk(&json));
}

#[test]
fn a_capture_may_be_compressed_or_come_by_a_pipe() {
    let folder = folder();
    let plain = connections(&run(folder.path(), &["observe", &capture("tls1.2.pcap"), "--json"]));
    let bytes = std::fs::read(capture("tls1.2.pcap")).unwrap();
    let gzip = Command::new("gzip").arg("-c").arg(capture("tls1.2.pcap")).output().unwrap();
    for bytes in [bytes, gzip.stdout] {
        let mut child = wiretax(folder.path())
            .args(["observe", "-", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let rows = connections(&child.wait_with_output().unwrap());
        let facts =
            |rows: &[Value]| rows.iter().map(|r| r["tls_handshake"].clone()).collect::<Vec<_>>();
        assert_eq!(facts(&rows), facts(&plain));
    }
}

#[test]
fn addresses_are_hidden_everywhere() {
    let folder = folder();
    let file = capture("tls1.2.pcap");
    let html = folder.path().join("r.html").display().to_string();
    for how in ["truncate", "hash"] {
        let how = format!("--anonymise={how}");
        let arguments = ["observe", &file, &how, "--anonymise-names", "--html", &html];
        let output = run(folder.path(), &arguments);
        assert!(output.status.success(), "{}", talk(&output));
        let report = std::fs::read_to_string(&html).unwrap();
        // The report states the command, which names no address.
        for text in [data(&output), report] {
            assert!(!text.contains("10.0.0.80") && !text.contains("68.233.76.12"), "{how}");
        }
    }
}

#[test]
fn the_report_s_command_can_be_given_to_a_shell() {
    let folder = folder();
    std::fs::copy(capture("tls1.2.pcap"), folder.path().join("of today; $HOME.pcap")).unwrap();
    let output = run(folder.path(), &["observe", "of today; $HOME.pcap", "--html", "r.html"]);
    assert!(output.status.success(), "{}", talk(&output));
    let report = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    let report = report.replace("&#39;", "'").replace("&#x27;", "'");
    assert!(report.contains("observe 'of today; $HOME.pcap' --html r.html"));
}

#[test]
fn without_rights_the_hint_is_printed_once() {
    let folder = folder();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let program = folder.path().join("wiretax");
    std::fs::copy(wiretax(folder.path()).get_program(), &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["observe", "--interface", "lo"])
        .env("NO_COLOR", "1")
        .output();
    let Ok(output) = output else {
        lab_test::skip!(lab_test::Need::UtilLinux, "setpriv is not on this machine");
    };
    let text = talk(&output);
    if text.contains("setpriv: ") {
        lab_test::skip!(lab_test::Need::Root, "this user may not become another: {text}");
    }
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert_eq!(text.matches("setcap").count(), 1, "{text}");
    assert_eq!(text.matches("CAP_NET_RAW").count(), 0, "{text}");
    assert!(text.lines().any(|line| line.starts_with("hint: ")), "{text}");
}

#[test]
fn metrics_are_for_this_machine_unless_others_are_allowed() {
    let folder = folder();
    let arguments = ["observe", &capture("tls1.2.pcap"), "--prometheus", "0.0.0.0:0"];
    let output = run(folder.path(), &arguments);
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--prometheus 0.0.0.0:0: other machines could come there"), "{text}");
    assert!(text.contains("hint: write 127.0.0.1, or add --allow-remote"), "{text}");
    let output = run(folder.path(), &[&arguments[..], &["--allow-remote"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
}

#[test]
fn the_clients_round_trips_are_weights_for_the_handshake_study() {
    let folder = folder();
    let output = run(folder.path(), &["observe", &capture("tls1.2.pcap"), "--rtt-out", "c.json"]);
    assert!(output.status.success(), "{}", talk(&output));
    let text = std::fs::read_to_string(folder.path().join("c.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["connections"], 1);
    let ms = value["points"][0]["ms"].as_f64().unwrap();
    assert!((36.4..37.3).contains(&ms), "{ms}");
}

#[test]
fn parquet_is_partitioned_by_the_hour_of_the_capture() {
    let folder = folder();
    let output = run(folder.path(), &["observe", &capture("tls1.2.pcap"), "--parquet", "rows"]);
    assert!(output.status.success(), "{}", talk(&output));
    let files = crate::support::files_below(&folder.path().join("rows"));
    for file in files.iter().filter(|file| file.ends_with(".parquet")) {
        // Addresses are in them.
        let file = folder.path().join("rows").join(file);
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "{}", file.display());
    }
    let of = |table: &str| {
        files.iter().filter(|file| file.starts_with(table) && file.ends_with(".parquet")).count()
    };
    assert_eq!((of("connections/date="), of("endings/date=")), (1, 1), "{files:?}");
}

#[test]
fn bad_input_is_one_error_and_what_is_whole_is_read() {
    let folder = folder();
    let whole = std::fs::read(capture("tls1.2.pcap")).unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("cut.pcap"), &whole[..whole.len() - 10]).unwrap();
    std::fs::write(at("text"), "no capture").unwrap();
    std::fs::write(at("empty"), "").unwrap();
    let output = run(folder.path(), &["observe", "cut.pcap", "--json"]);
    assert_eq!(connections(&output).len(), 1);
    assert!(talk(&output).contains("ends within a record"), "{}", talk(&output));
    let expected: BTreeMap<&str, &str> =
        [("text", "text"), ("missing.pcap", "missing.pcap"), (".", "cannot be")].into();
    for (file, wanted) in expected {
        let output = run(folder.path(), &["observe", file]);
        assert_eq!(output.status.code(), Some(2), "{file}: {}", talk(&output));
        assert!(talk(&output).contains(wanted), "{file}: {}", talk(&output));
    }
    for arguments in [
        &["observe", "cut.pcap", "--bin", "0ms"][..],
        &["observe", "cut.pcap", "--prefix", "64,64"],
        &["observe", "cut.pcap", "--max-connections", "0"],
        &["observe", "cut.pcap", "--interface", "lo"],
        &["observe", "cut.pcap", "--anonymise=rot13"],
        &["observe", "cut.pcap", "--key-log", "text"],
        &["observe"],
    ] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", talk(&output));
    }
    let output = run(folder.path(), &["observe", "cut.pcap", "--html", "no/where.html"]);
    assert_eq!(output.status.code(), Some(4), "{}", talk(&output));
}

#[test]
fn prometheus_reads_histograms_while_a_pipe_is_open() {
    let folder = folder();
    let mut child = wiretax(folder.path())
        .args(["observe", "-", "--prometheus", "127.0.0.1:0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The header alone: the pipe stays open.
    let bytes = std::fs::read(capture("tls1.2.pcap")).unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&bytes[..24]).unwrap();
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    while !said.contains("/metrics\n") {
        let mut byte = [0];
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{said}");
        said.push(char::from(byte[0]));
    }
    let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let page = || {
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        Some(page)
    };
    wait_until("a page", || {
        page().is_some_and(|page| page.contains("# TYPE wiretax_tls_handshake_seconds histogram"))
    });
    drop(pipe);
    // No frame came.
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(5));
}

#[test]
fn the_labs_known_clients_are_recognised_and_their_report_is_built_again() {
    let folder = folder();
    let arguments = ["observe", "lab", "--out", "truth", "--keep-captures", "--json"];
    let output = run(folder.path(), &arguments);
    if output.status.code() == Some(3) {
        lab_test::skip!(lab_test::Need::Lab, "{}", talk(&output));
    }
    assert!(output.status.success(), "{}", talk(&output));
    let value: Value = serde_json::from_str(&data(&output)).unwrap();
    // The lab measures itself here as for every study over its links.
    let delays = value["manifest"]["calibration"]["delays"].as_array();
    assert!(delays.is_some_and(|delays| !delays.is_empty()), "{}", talk(&output));
    let agreement = &value["observe"]["agreement"];
    assert!(agreement["made"].as_u64().unwrap() > 200, "{agreement}");
    for what in ["logged", "recorded", "classified"] {
        assert_eq!(agreement[what], agreement["made"], "{what}: {agreement}");
    }
    assert_eq!(agreement["strangers"], 0, "{agreement}");
    assert_eq!(agreement["unplanned"], serde_json::json!([]), "{agreement}");
    assert_eq!(agreement["uncertain"], serde_json::json!({}), "{agreement}");
    let again = run(folder.path(), &["report", "truth", "--json"]);
    assert!(again.status.success(), "{}", talk(&again));
    let again: Value = serde_json::from_str(&data(&again)).unwrap();
    assert_eq!(again["observe"], value["observe"]);
    let captures = crate::support::files_below(&folder.path().join("truth/captures"));
    assert_eq!(captures, ["cellular.pcapng", "wifi.pcapng"]);
    // The same records, from the files that were kept.
    let files = captures.iter().map(|name| format!("truth/captures/{name}"));
    let arguments: Vec<String> =
        ["observe".to_owned(), "--json".to_owned()].into_iter().chain(files).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let rows = connections(&run(folder.path(), &arguments));
    let seen = |what: &str| agreement[what].as_u64().unwrap();
    // Who met a box came twice, and the sample is the second connection's.
    let costs = agreement["fallbacks"].as_array().unwrap();
    let twice: u64 = costs.iter().map(|cost| cost["count"].as_u64().unwrap()).sum();
    assert!(twice > 0, "{agreement}");
    assert_eq!(rows.len() as u64, seen("recorded") + twice);
}

/// A capture in which each frame is cut to so many bytes.
fn cut_to(folder: &std::path::Path, name: &str, snap: usize) -> String {
    let bytes = std::fs::read(capture(name)).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut cut = bytes[..24].to_vec();
    let mut at = 24;
    while at < bytes.len() {
        let (captured, next) = (word(at + 8).min(snap), at + 16 + word(at + 8));
        cut.extend(&bytes[at..at + 8]);
        cut.extend((captured as u32).to_le_bytes());
        cut.extend(&bytes[at + 12..at + 16 + captured]);
        at = next;
    }
    let path = folder.join("cut.pcap");
    std::fs::write(&path, cut).unwrap();
    path.display().to_string()
}

#[test]
fn frames_that_were_cut_short_are_said_to_be_and_their_tls_is_no_other_protocol() {
    let folder = folder();
    let file = cut_to(folder.path(), "tls1.2.pcap", 128);
    let output = run(folder.path(), &["observe", &file]);
    let text = data(&output);
    assert!(output.status.success(), "{}", talk(&output));
    let count = |name: &str| {
        let line =
            text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(count("connections without TLS"), "0", "{text}");
    assert_eq!(count("TLS of which too little was captured"), "1", "{text}");
    let said = talk(&output);
    assert!(said.matches("cut short").count() == 1 && said.contains("tcpdump -s 0"), "{said}");
}

/// Outputs are made as any program makes them, and nothing that is no file becomes one.
#[test]
fn outputs_keep_what_their_names_are() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("plain"), "").unwrap();
    std::fs::write(at("linked"), "old").unwrap();
    std::os::unix::fs::symlink("linked", at("link")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = at("fifo");
        move || std::fs::read_to_string(fifo)
    });
    let file = capture("tls1.2.pcap");
    let first = ["observe", &file, "--html", "new.html", "--rtt-out", "link"];
    let output = run(folder.path(), &first);
    assert!(output.status.success(), "{}", talk(&output));
    let mode = |name: &str| std::fs::metadata(at(name)).unwrap().mode();
    assert_eq!(mode("new.html"), mode("plain"));
    assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_ne!(std::fs::read_to_string(at("linked")).unwrap(), "old");
    let output = run(folder.path(), &["observe", &file, "--html", "fifo"]);
    assert!(output.status.success(), "{}", talk(&output));
    assert!(reader.join().unwrap().unwrap().contains("</html>"));
    assert!(!std::fs::symlink_metadata(at("fifo")).unwrap().is_file());
}

#[test]
fn a_capture_is_not_read_into_a_folder_twice() {
    let folder = folder();
    std::fs::copy(capture("tls1.2.pcap"), folder.path().join("a.pcap")).unwrap();
    std::fs::copy(capture("tls1.2.pcap"), folder.path().join("b.pcap")).unwrap();
    let observe = |arguments: &[&str]| run(folder.path(), &[&["observe"], arguments].concat());
    let first = observe(&["a.pcap", "--parquet", "rows"]);
    assert!(first.status.success(), "{}", talk(&first));
    let second = observe(&["b.pcap", "--parquet", "rows"]);
    assert_eq!(second.status.code(), Some(2), "{}", talk(&second));
    let said = "the records of b.pcap are in this folder already: it begins as a.pcap";
    assert!(talk(&second).contains(said), "{}", talk(&second));
    assert!(talk(&second).contains("add --again"), "{}", talk(&second));
    let both = observe(&["a.pcap", "b.pcap", "--parquet", "both"]);
    assert_eq!(both.status.code(), Some(2), "{}", talk(&both));
    let again = observe(&["b.pcap", "--parquet", "rows", "--again"]);
    assert!(again.status.success(), "{}", talk(&again));
    // Another capture is added.
    let other = observe(&[&capture("tls13_psk_succesfull.pcap"), "--parquet", "rows"]);
    assert!(other.status.success(), "{}", talk(&other));
    // By a pipe nothing is known beforehand.
    let mut child = wiretax(folder.path());
    child.args(["observe", "-", "--parquet", "rows"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = child.spawn().unwrap();
    let bytes = std::fs::read(capture("tls1.2.pcap")).unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_clock_that_was_set_is_said() {
    let folder = folder();
    let mut pcap = lab_test::Pcap::new(101);
    let frame = [&[0x45, 0, 0, 40][..], &[0; 5], &[6], &[0; 30]].concat();
    for second in [1_000, 2_000, 1_000_000_000, 1_000_000_001] {
        pcap.push(second * 1_000_000_000, &frame);
    }
    std::fs::write(folder.path().join("leap.pcap"), pcap.as_bytes()).unwrap();
    let text = talk(&run(folder.path(), &["observe", "leap.pcap"]));
    assert!(text.contains("1 frame more than a day later than all frames before"), "{text}");
}
