//! `wiretax load` against a TLS server on the loopback interface.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

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

/// A certificate for `test.example` in `cert.pem`, and its key in `key.pem`.
fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=test.example", "-addext", "subjectAltName=DNS:test.example"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", talk(&made));
}

/// A server with that certificate.
fn serve(folder: &Path) -> Server {
    serve_with(folder, &[])
}

fn serve_with(folder: &Path, more: &[&str]) -> Server {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    certificate(folder);
    let accept = address.to_string();
    let child = Command::new("openssl")
        .args(["s_server", "-www", "-accept", &accept, "-cert", "cert.pem", "-key", "key.pem"])
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

/// A load of few connections, one at a time: `s_server` serves one at a time.
fn load(folder: &Path, server: &Server, more: &[&str]) -> Output {
    let connect = server.address.to_string();
    let begin = ["load", "https://test.example/", "--connect-to", &connect, "-c", "1", "-n", "10"];
    run(folder, &[&begin[..], more].concat())
}

#[test]
fn a_server_is_loaded_and_the_result_printed() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let output = load(folder.path(), &server, &["--ca", "cert.pem"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let text = data(&output);
    for part in ["10 completed, 0 failed", "10 full, 0 resumed", "TLS 1.3", "TLS, full", "p99.9"] {
        assert!(text.contains(part), "no `{part}`:\n{text}");
    }

    let json = ["--ca", "cert.pem", "--json", "--resume", "100%"];
    let output = load(folder.path(), &server, &json);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let report: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(report["completed"], 10, "{report}");
    assert_eq!(report["handshakes"]["full"], 1, "{report}");
    assert_eq!(report["handshakes"]["resumed"], 9, "{report}");
    assert!(talk(&output).contains("1 had no ticket"), "{}", talk(&output));
}

#[test]
fn an_untrusted_certificate_is_refused_and_said() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let output = load(folder.path(), &server, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
    assert!(data(&output).contains("certificate not valid"), "{}", data(&output));
    for part in ["every connection failed", "--ca"] {
        assert!(talk(&output).contains(part), "no `{part}`:\n{}", talk(&output));
    }
    let output = load(folder.path(), &server, &["--insecure"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert!(talk(&output).contains("any certificate is accepted"), "{}", talk(&output));
}

#[test]
fn nobody_at_the_port_ends_with_its_own_status() {
    let folder = tempfile::tempdir().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("https://{address}/");
    let output = run(folder.path(), &["load", &url, "--insecure", "-c", "1", "-n", "3"]);
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
    assert!(data(&output).contains("connection refused"), "{}", data(&output));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_sent() {
    for (arguments, says) in [
        (&["load", "https://192.0.2.1/"][..], &["192.0.2.1", "--allow-remote"][..]),
        (&["load", "http://127.0.0.1/"], &["http", "https://host:port/path"]),
        (&["load", "https://127.0.0.1:1/", "--rat", "5"], &["--rat", "--rate"]),
        (&["load", "https://127.0.0.1:1/", "--rate", "0"], &["rate"]),
        (&["load", "https://127.0.0.1:1/", "--connections", "0"], &["connections can be 1"]),
        (&["load", "https://127.0.0.1:1/", "--resume", "150%"], &["more than 100%"]),
        (&["load", "https://127.0.0.1:1/", "--group", "ffdhe"], &["ffdhe", "x25519"]),
        (&["load", "https://127.0.0.1:1/", "--cipher", "RC4"], &["RC4", "TLS_AES_128_GCM_SHA256"]),
        (&["load", "https://127.0.0.1:1/", "--tls", "1.1"], &["1.1", "tls1.3"]),
        (&["load", "https://127.0.0.1:1/", "--ca", "nowhere.pem"], &["nowhere.pem"]),
        (&["load", "https://127.0.0.1:1/", "--duration", "10"], &["no unit"]),
        (&["load", "https://127.0.0.1:1/", "--ramp", "10s"], &["ramp must be shorter"]),
        (&["load", "https://127.0.0.1:1/", "--connect-to", "elsewhere"], &["not an address"]),
        (&["load", "https://127.0.0.1:1/", "--streams", "4"], &["HTTP/2", "--http h2"]),
        (&["load", "https://127.0.0.1:1/", "--http", "3"], &["1.1", "h2"]),
        (&["load", "https://127.0.0.1:1/", "--key", "k.pem"], &["--cert"]),
        (&["load", "https://127.0.0.1:1/", "--cert", "nowhere.pem"], &["nowhere.pem"]),
        (
            &["load", "http://127.0.0.1:1/", "--http", "h2", "--handshake-only"],
            &["without TLS there is no handshake"],
        ),
        (&["load", "https://127.0.0.1:1/", "--source", "::1", "--insecure"], &["IPv4", "IPv6"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = run(folder.path(), arguments);
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{text}");
        for part in says {
            assert!(text.contains(part), "{arguments:?} does not say `{part}`:\n{text}");
        }
        assert_eq!(data(&output), "", "{arguments:?}: no data");
    }
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let connect = server.address.to_string();
    let child = wiretax(folder.path())
        .args(["load", "https://test.example/", "--connect-to", &connect, "--ca", "cert.pem"])
        .args(["-c", "1", "--duration", "10min", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Not a wait for an event: however far it is, the interrupt ends it.
    std::thread::sleep(Duration::from_secs(2));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", talk(&output));
    let report: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(report["interrupted"], true, "{report}");
    assert!(talk(&output).contains("interrupted"), "{}", talk(&output));
}

#[test]
fn a_run_without_hope_ends_early_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for http in [&[][..], &["--http", "h2"]] {
        let url = format!("https://{address}/");
        // An hour, if it did not.
        let begin = ["load", &url, "--insecure", "--duration", "60min"];
        let output = run(folder.path(), &[&begin[..], http].concat());
        assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
        for part in ["stopped early", "connection refused"] {
            assert!(talk(&output).contains(part), "no `{part}`:\n{}", talk(&output));
        }
    }
}

#[test]
fn what_was_given_up_is_longer_than_the_limit() {
    // A server that takes connections and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let load = ["load", &url, "--insecure", "--rate", "100", "-n", "5", "--timeout", "300ms"];
    let output = run(folder.path(), &load);
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
    let text = data(&output);
    assert!(text.contains("> 3") && text.contains("given up"), "{text}");
    let output = run(folder.path(), &[&load[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&data(&output)).unwrap();
    let total = &report["latency"]["total"];
    assert_eq!((&total["censored"], &total["count"]), (&5.into(), &0.into()), "{total}");
    assert!(total["p90_us"].is_null(), "{total}");
    assert!(total["longer_than_us"].as_f64().unwrap() >= 300_000.0, "{total}");
}

#[test]
fn a_client_certificate_is_shown() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let openssl = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).current_dir(folder.path()).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{}", talk(&made));
    };
    // Without extensions it is of version 1, as many are.
    openssl(&[
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=client",
        "-keyout",
        "own.key",
        "-out",
        "own.csr",
    ]);
    openssl(&[
        "x509", "-req", "-in", "own.csr", "-signkey", "own.key", "-days", "2", "-out", "own.pem",
    ]);
    let server = serve_with(folder.path(), &["-Verify", "1"]);
    for extra in [&[][..], &["--handshake-only"]] {
        let begin = ["--ca", "cert.pem"];
        let output = load(folder.path(), &server, &[&begin[..], extra].concat());
        assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
        assert!(data(&output).contains("client certificate refused"), "{}", data(&output));
        assert!(talk(&output).contains("--cert and --key"), "{}", talk(&output));
        let own = ["--ca", "cert.pem", "--cert", "own.pem", "--key", "own.key"];
        let output = load(folder.path(), &server, &[&own[..], extra].concat());
        assert_eq!(output.status.code(), Some(0), "{}{}", data(&output), talk(&output));
        assert!(data(&output).contains("10 completed, 0 failed"), "{}", data(&output));
    }
}

#[test]
fn http2_is_loaded_by_requests() {
    if !has("nghttpd") || !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "hello").unwrap();
    certificate(folder.path());
    for tls in [true, false] {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let keys: &[&str] = if tls { &["key.pem", "cert.pem"] } else { &["--no-tls"] };
        let mut command = Command::new("nghttpd");
        command.args(["-a", "127.0.0.1", "-d", ".", &port.to_string()]).args(keys);
        let child = command.current_dir(folder.path()).stdin(Stdio::null()).spawn().unwrap();
        let server = Server { child, address: ([127, 0, 0, 1], port).into() };
        wait_until("the server listens", || TcpStream::connect(server.address).is_ok());
        let scheme = if tls { "https" } else { "http" };
        let url = format!("{scheme}://test.example/index.html");
        let connect = server.address.to_string();
        let to = ["load", &url, "--connect-to", &connect, "--http", "h2", "--streams", "7"];
        let rest = ["-c", "2", "-n", "500", "--ca", "cert.pem", "--json"];
        let output = run(folder.path(), &[&to[..], &rest].concat());
        assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
        let report: Value = serde_json::from_str(&data(&output)).unwrap();
        assert_eq!(report["requests"], 500, "{report}");
        assert_eq!(report["completed"], 2, "{report}");
        assert_eq!(report["latency"]["tls"]["count"], if tls { 2 } else { 0 }, "{report}");
    }
}
