//! `wiretax probe` against a TLS server of our own on the loopback interface.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{data, has, run, talk, wait_until, wiretax};
use serde_json::Value;

/// `openssl s_server`, stopped at the end.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with a certificate for `test.example`, made on the spot: its own, or one of a CA.
fn serve(folder: &Path, name: &str, address: &str, certificate_of_ca: bool) -> Server {
    let address: SocketAddr = TcpListener::bind(address).unwrap().local_addr().unwrap();
    let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
    let ca =
        format!("basicConstraints=critical,CA:{}", certificate_of_ca.to_string().to_uppercase());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=test.example", "-addext", "subjectAltName=DNS:test.example"])
        .args(["-addext", &ca, "-keyout", &key, "-out", &certificate])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", talk(&made));
    let accept = address.to_string();
    let child = Command::new("openssl")
        .args(["s_server", "-www", "-accept", &accept, "-cert", &certificate, "-key", &key])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server { child, address };
    wait_until("the server listens", || TcpStream::connect(address).is_ok());
    server
}

/// Options that keep a probe of a server without QUIC short.
const SHORT: [&str; 4] = ["--repeat", "2", "--timeout", "1s"];

fn probe(folder: &Path, target: &str, more: &[&str]) -> std::process::Output {
    run(folder, &[&["probe", target], &SHORT[..], more].concat())
}

#[test]
fn a_live_server_is_measured_and_compared_from_several_places() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "own", "127.0.0.1:0", false);
    let target = server.address.to_string();
    let trusted = ["--ca", "own.pem", "--name", "test.example"];
    let output = probe(folder.path(), &target, &trusted);
    let text = data(&output);
    assert!(output.status.success(), "{}", talk(&output));
    for part in
        ["as test.example", "TLS 1.2        yes", "TLS 1.3        yes", "; trusted", "resumed"]
    {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(talk(&output).contains(" left)"), "progress: {}", talk(&output));

    let mut files = Vec::new();
    for place in ["here", "there"] {
        let output = probe(folder.path(), &target, &[&trusted[..], &["--json", "-q"]].concat());
        assert_eq!(talk(&output), "", "quiet");
        let report: Value = serde_json::from_str(&data(&output)).unwrap();
        for field in ["schema", "host", "address", "path", "versions", "modes", "connections"] {
            assert!(!report[field].is_null(), "`{field}` is missing in {report:#}");
        }
        assert!(report["connections"].as_u64().unwrap() < 40, "a small bounded number");
        assert_eq!(report["versions"]["tls13"], "supported");
        assert_eq!(report["certificates"]["trusted"], true);
        let mode = |name: &str| {
            let modes = report["modes"].as_array().unwrap().iter();
            modes.clone().find(|mode| mode["mode"] == name).unwrap().clone()
        };
        assert!(mode("tls13")["ready"]["median_ms"].as_f64().unwrap() > 0.0);
        assert_eq!(mode("tls12-resumed")["verdict"], "supported");
        let file = format!("{place}.json");
        fs::write(folder.path().join(&file), data(&output)).unwrap();
        files.push(file);
    }
    let output = run(folder.path(), &["probe", "--compare", &files[0], &files[1]]);
    let text = data(&output);
    assert!(output.status.success(), "{}", talk(&output));
    assert!(text.contains("here: 127.0.0.1") && text.contains("there: 127.0.0.1"), "{text}");
    assert!(text.contains("TLS 1.3 resumed"), "{text}");
    let output = run(folder.path(), &["probe", "--json", "--compare", &files[0], &files[1]]);
    let both: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(both.as_array().unwrap().len(), 2);

    fs::write(folder.path().join("other.json"), "{}").unwrap();
    let output = run(folder.path(), &["probe", "--compare", "here.json", "other.json"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("other.json is not a probe result"), "{}", talk(&output));
    assert!(talk(&output).contains("hint: make one by"), "{}", talk(&output));
}

#[test]
fn a_certificate_that_is_not_trusted_is_said_with_what_to_do() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own = serve(folder.path(), "own", "127.0.0.1:0", false);
    let target = own.address.to_string();
    let output = probe(folder.path(), &target, &["--name", "test.example"]);
    assert!(data(&output).contains("NOT trusted"), "{}", data(&output));
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
    assert!(
        talk(&output).contains("hint: ") && talk(&output).contains("--ca"),
        "{}",
        talk(&output)
    );
    let output = probe(folder.path(), &target, &["--name", "other.example", "--ca", "own.pem"]);
    assert!(data(&output).contains("NOT trusted: it is for another name"), "{}", data(&output));
    let output = probe(folder.path(), &target, &["--insecure"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert!(data(&output).contains("TLS 1.3        yes"), "{}", data(&output));

    let ca = serve(folder.path(), "ca", "127.0.0.1:0", true);
    let arguments = ["--name", "test.example", "--ca", "ca.pem"];
    let output = probe(folder.path(), &ca.address.to_string(), &arguments);
    assert!(talk(&output).contains("CA:FALSE"), "{}{}", data(&output), talk(&output));
    let widest = data(&output).lines().map(|line| line.chars().count()).max();
    assert!(widest < Some(200), "reasons do not blow the table up: {}", data(&output));
}

#[test]
fn a_closed_port_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = probe(folder.path(), &closed.to_string(), &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
    assert!(talk(&output).contains("connection refused"), "{}", talk(&output));
    assert_eq!(talk(&output).matches("error:").count(), 1, "{}", talk(&output));
    assert_eq!(data(&output), "");
}

#[test]
fn an_ipv6_address_is_written_in_brackets() {
    if !has("openssl") {
        return;
    }
    if TcpListener::bind("[::1]:0").is_err() {
        lab_test::skip!(lab_test::Need::Ipv6, "no IPv6 here");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "own", "[::1]:0", false);
    let trusted = ["--name", "test.example", "--ca", "own.pem"];
    let output = probe(folder.path(), &server.address.to_string(), &trusted);
    assert!(output.status.success(), "{}", talk(&output));
    assert!(data(&output).contains("TLS 1.3        yes"), "{}", data(&output));
    let output = probe(folder.path(), &server.address.to_string(), &["-4"]);
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
    assert!(talk(&output).contains("no IPv4 address"), "{}", talk(&output));
}

#[test]
fn an_interrupted_probe_prints_nothing_half() {
    // Takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = silent.local_addr().unwrap().to_string();
    let mut command = wiretax(folder.path());
    command.args(["probe", &target, "--json", "--timeout", "60s"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The signal's listener stands before the first connection is made.
    let _taken = silent.accept().unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    wait_until("the probe ends", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", talk(&output));
    assert_eq!(data(&output), "");
    assert!(talk(&output).contains("error: interrupted"), "{}", talk(&output));
}

/// A server that answers everything by the same bytes, for as long as the test runs.
fn answering(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    address
}

#[test]
fn a_server_without_tls_is_named_by_probe_and_chain() {
    let folder = tempfile::tempdir().unwrap();
    for (answer, text, hint) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "not a TLS server: it answered in plain HTTP",
            "hint: choose the port of HTTPS",
        ),
        (b"220 mx.test ESMTP\r\n", "the server speaks SMTP", "hint: use --starttls smtp"),
    ] {
        let target = answering(answer).to_string();
        let output = probe(folder.path(), &target, &[]);
        assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
        let said = talk(&output);
        assert!(said.contains(text) && said.contains(hint), "{said}");
        assert_eq!(said.matches(text).count(), 1, "said once: {said}");
        let output = run(folder.path(), &["chain", "--server", &target]);
        assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
        let said = talk(&output);
        assert!(said.contains(text) && said.contains(hint), "{said}");
        assert!(!said.contains("no TCP connection"), "{said}");
    }
}

#[test]
fn chain_shows_what_it_saw_and_advises_by_the_fault() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "own", "127.0.0.1:0", false);
    let target = server.address.to_string();
    let ca = ["--ca", "own.pem"];
    let output = run(folder.path(), &[&["chain", "--server", &target], &ca[..]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    assert!(data(&output).contains("rustls   verifies"), "{}", data(&output));
    let other = ["--name", "other.example"];
    let output = run(folder.path(), &[&["chain", "--server", &target], &ca[..], &other].concat());
    let said = talk(&output);
    assert!(said.contains("it is for another name: test.example"), "{said}");
    assert!(said.contains("hint: ask for a name that it carries: --name test.example"), "{said}");
    assert!(!said.contains("--ca"), "a root does not help: {said}");
}

#[test]
fn groups_and_clients_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in [["--group", "curve"], ["--client", "netscape"]] {
        let output = probe(folder.path(), "127.0.0.1", &wrong);
        assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    }
}
