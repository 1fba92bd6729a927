//! `--cert`, `--key`, `--starttls` and `--proxy` of `wiretax probe` and `wiretax chain --server`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::support::{data, has, run, talk, wait_until};
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

fn openssl(folder: &Path, arguments: &[&str]) {
    let made = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{arguments:?}: {}", talk(&made));
}

/// A certificate for `test.example` and its key: NAME.pem and NAME.key, readable by their owner alone.
fn certificate(folder: &Path, name: &str) {
    let (key, own) = (format!("{name}.key"), format!("{name}.pem"));
    openssl(
        folder,
        &[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=test.example",
            "-addext",
            "subjectAltName=DNS:test.example",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            &key,
            "-out",
            &own,
        ],
    );
    readable_by(folder, &key, 0o600);
}

fn readable_by(folder: &Path, file: &str, mode: u32) {
    fs::set_permissions(folder.join(file), fs::Permissions::from_mode(mode)).unwrap();
}

/// A server with the certificate `server`, and more options.
fn serve(folder: &Path, more: &[&str]) -> Server {
    certificate(folder, "server");
    let address: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let child = Command::new("openssl")
        .args(["s_server", "-www", "-accept", &address.to_string()])
        .args(["-cert", "server.pem", "-key", "server.key"])
        .args(more)
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

/// Serves each connection by `serve`, on threads that end with the test.
fn accept(serve: impl Fn(TcpStream) -> Option<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads up to an end of line.
fn line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        line.push(byte[0]);
    }
    String::from_utf8(line).ok()
}

/// A mail server that says this behind EHLO, before a server of TLS.
fn mail(keywords: &'static str, tls: Option<SocketAddr>) -> SocketAddr {
    accept(move |mut client| {
        client.write_all(b"220 test.example ESMTP\r\n").ok()?;
        line(&mut client)?.starts_with("EHLO ").then_some(())?;
        client.write_all(keywords.as_bytes()).ok()?;
        (line(&mut client)? == "STARTTLS\r\n").then_some(())?;
        client.write_all(b"220 go\r\n").ok()?;
        let mut server = TcpStream::connect(tls?).ok()?;
        let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
        let _ = std::io::copy(&mut server, &mut client);
        client.shutdown(std::net::Shutdown::Write).ok()
    })
}

const TRUSTED: [&str; 4] = ["--name", "test.example", "--ca", "server.pem"];

fn probe(folder: &Path, target: SocketAddr, more: &[&str]) -> std::process::Output {
    let short = ["--repeat", "1", "--timeout", "5s"];
    run(folder, &[&["probe", &target.to_string()], &short[..], &TRUSTED, more].concat())
}

#[test]
fn a_client_certificate_is_shown_and_its_files_are_checked() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    certificate(folder, "client");
    let demand = ["-Verify", "1", "-verify_return_error", "-CAfile", "client.pem"];
    let server = serve(folder, &demand);
    let own = ["--cert", "client.pem", "--key", "client.key"];
    let output = probe(folder, server.address, &own);
    assert!(output.status.success(), "{}{}", data(&output), talk(&output));
    for version in ["TLS 1.2        yes", "TLS 1.3        yes"] {
        assert!(data(&output).contains(version), "{}", data(&output));
    }
    assert!(!talk(&output).contains("private key"), "{}", talk(&output));
    let output = probe(folder, server.address, &[]);
    assert!(!data(&output).contains("TLS 1.2        yes"), "{}", data(&output));

    let address = server.address.to_string();
    let chain = [&["chain", "--server", &address], &TRUSTED[..], &own].concat();
    let output = run(folder, &chain);
    assert!(output.status.success(), "{}", talk(&output));

    readable_by(folder, "client.key", 0o644);
    let output = run(folder, &chain);
    assert!(talk(&output).contains("every user of this machine can read"), "{}", talk(&output));

    certificate(folder, "other");
    openssl(
        folder,
        &["ec", "-in", "client.key", "-aes128", "-passout", "pass:x", "-out", "locked.key"],
    );
    for (key, part) in [
        ("other.key", "does not belong to the certificate"),
        ("locked.key", "the private key is encrypted"),
        ("client.pem", "no private key"),
        ("missing.key", "cannot be read"),
    ] {
        let output = probe(folder, server.address, &["--cert", "client.pem", "--key", key]);
        assert_eq!(output.status.code(), Some(2), "{key}: {}", talk(&output));
        assert!(talk(&output).contains(part) && talk(&output).contains(key), "{}", talk(&output));
    }
}

#[test]
fn starttls_is_measured_and_its_lack_is_said() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = serve(folder, &[]);
    let offering = mail("250-test.example\r\n250 STARTTLS\r\n", Some(server.address));
    let starttls = ["--starttls", "smtp"];
    let output = probe(folder, offering, &starttls);
    let text = data(&output);
    assert!(output.status.success(), "{text}{}", talk(&output));
    for part in [
        "TLS 1.3        yes",
        "ms for STARTTLS (smtp)",
        "without STARTTLS",
        "QUIC knows no STARTTLS",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let output = probe(folder, offering, &[&starttls[..], &["--json", "-q"]].concat());
    let report: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(report["before_tls"]["starttls"], "smtp");
    assert_eq!(report["versions"]["tls12"], "supported");
    let address = offering.to_string();
    let output = run(folder, &[&["chain", "--server", &address], &TRUSTED[..], &starttls].concat());
    assert!(output.status.success(), "{}", talk(&output));

    let plain = mail("250 test.example\r\n", None);
    for command in [vec!["probe"], vec!["chain", "--server"]] {
        let address = plain.to_string();
        let output = run(folder, &[&command[..], &[&address], &starttls].concat());
        assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
        assert!(talk(&output).contains("the server offers no STARTTLS"), "{}", talk(&output));
        assert_eq!(talk(&output).matches("error:").count(), 1, "{}", talk(&output));
    }
    let output = run(folder, &["chain", "server.pem", "--starttls", "smtp"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("--server"), "{}", talk(&output));
}

#[test]
fn a_proxys_password_is_printed_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let refusing = accept(|mut client| {
        while line(&mut client)? != "\r\n" {}
        client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").ok()
    });
    for (proxy, status, part) in [
        (format!("http://user:hunter2@{refusing}"), 1, "refuses user and password: 407"),
        ("http://user:hunter2@proxy.test:x".to_owned(), 2, "port is not a number"),
        ("https://user:hunter2@proxy.test".to_owned(), 2, "is not supported"),
        ("user:hunter2@proxy.test".to_owned(), 2, "neither http nor socks5"),
    ] {
        for command in [vec!["probe"], vec!["chain", "--server"]] {
            let server = ["server.invalid", "--proxy", &proxy];
            let output = run(folder.path(), &[&command[..], &server].concat());
            assert_eq!(output.status.code(), Some(status), "{proxy}: {}", talk(&output));
            assert!(talk(&output).contains(part), "{proxy}: {}", talk(&output));
            assert!(!talk(&output).contains("hunter2"), "{}", talk(&output));
        }
    }
}
