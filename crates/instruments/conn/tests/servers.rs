//! What a probe says of servers as they are met: OpenSSL in many configurations, and scripts of bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::*;
use conn::probe::{ChainSeen, Client, Kind, Options, ProbeError, Report, Target, chain, probe};
use lab_test::{Need, skip};
use tls::Trust;

fn target(address: SocketAddr) -> Target {
    let server_name = Some("server.test".to_owned());
    let trust = Trust::Insecure;
    Target { port: address.port(), server_name, trust, ..Target::new("127.0.0.1") }
}

fn options(timeout: Duration) -> Options {
    let pause = Duration::from_millis(1);
    Options { repeats: 1, timeout, pause, deadline: 6 * PATIENCE, ..Options::default() }
}

async fn report(address: SocketAddr) -> Report {
    probe(&target(address), &options(PATIENCE), |_| {}).await.unwrap()
}

/// A server that treats each connection by a function of its number, from 0.
fn script(treat: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(loopback()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let treat = std::sync::Arc::new(treat);
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let treat = std::sync::Arc::clone(&treat);
            std::thread::spawn(move || treat(number, stream));
        }
    });
    address
}

/// A server that says this as soon as a client is there.
fn greets(greeting: &'static [u8]) -> SocketAddr {
    script(move |_, mut stream| {
        let _ = stream.write_all(greeting);
        // Closing with unread bytes is RST, which could overtake the greeting.
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.read(&mut [0; 4096]);
    })
}

#[tokio::test]
async fn servers_that_speak_first_are_named_with_the_option() {
    let cases: [(&[u8], &str, &str); 6] = [
        (b"220 mx.test ESMTP\r\n", "SMTP", "--starttls smtp"),
        (b"* OK IMAP4rev1 ready\r\n", "IMAP", "--starttls imap"),
        (b"+OK ready\r\n", "POP3", "--starttls pop3"),
        (b"\x4a\0\0\0\x0a8.0.36\0aaaaaaaaaaaaaaaa", "MySQL", "--starttls mysql"),
        (b"220 (vsFTPd 3.0.5)\r\n", "FTP", "--starttls ftp"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "SSH", "choose the port"),
    ];
    for (greeting, title, advice) in cases {
        let report = report(greets(greeting)).await;
        let finding = report.finding.unwrap();
        assert_eq!(finding.kind, Kind::SpeaksFirst, "{finding:?}");
        assert!(finding.text.contains(title) && finding.remedy.contains(advice), "{finding:?}");
        assert!(report.hints.iter().any(|hint| hint.contains(advice)), "{:?}", report.hints);
        assert!(report.connections < 8, "{}", report.connections);
    }
}

#[tokio::test]
async fn plain_http_is_named_though_the_server_closes_without_a_word() {
    let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    let at_once = script(move |_, mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(answer);
    });
    let picky = script(move |_, mut stream| {
        let mut request = [0; 4096];
        let count = stream.read(&mut request).unwrap_or(0);
        if request[..count].starts_with(b"HEAD ") {
            let _ = stream.write_all(answer);
        }
    });
    for address in [at_once, picky] {
        let finding = report(address).await.finding.unwrap();
        assert_eq!(finding.text, "not a TLS server: it answered in plain HTTP");
    }
}

/// A relay to a server that drops, or resets, what begins with a long hello.
fn picky_box(server: SocketAddr, most: usize) -> SocketAddr {
    script(move |_, mut client| {
        let mut first = vec![0; 16 * 1024];
        let Ok(mut count) = client.read(&mut first) else { return };
        client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        while let Ok(more @ 1..) = client.read(&mut first[count..]) {
            count += more;
        }
        client.set_read_timeout(None).unwrap();
        if count > most {
            return;
        }
        let Ok(mut there) = TcpStream::connect(server) else { return };
        let _ = there.write_all(&first[..count]);
        let (mut back, mut from) = (client.try_clone().unwrap(), there.try_clone().unwrap());
        let copied = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut back);
            let _ = back.shutdown(std::net::Shutdown::Write);
        });
        let _ = std::io::copy(&mut client, &mut there);
        let _ = there.shutdown(std::net::Shutdown::Write);
        let _ = copied.join();
    })
}

#[tokio::test]
async fn a_box_that_takes_no_long_hello() {
    let server = own_server();
    let address = picky_box(server.address(), 1000);
    let report = report(address).await;
    let finding = report.finding.as_ref().unwrap();
    assert_eq!(finding.kind, Kind::LongHello, "{report:?}");
    assert!(report.versions.tls13.is_supported(), "{:?}", report.versions);
    assert!(!report.hints.iter().any(|hint| hint.contains("not speak")), "{:?}", report.hints);
}

#[tokio::test]
async fn a_server_of_post_quantum_groups_alone_takes_a_browsers_hello() {
    let mut config = server_config(tls::Library::Rustls, tls::Version::Tls13);
    config.groups = vec![tls::Group::X25519MlKem768];
    let plan = conn::ServerTransport::tls(tls::Server::new(&config).unwrap());
    let server = conn::Server::bind(loopback(), conn::ServerPlan::new(plan)).unwrap().spawn();
    let report = report(server.address()).await;
    let finding = report.finding.as_ref().unwrap();
    assert_eq!(finding.kind, Kind::BrowserOnly, "{finding:?}");
    assert!(report.versions.tls13.is_supported(), "{:?}", report.versions);
    let options = Options { client: Client::Browser, ..options(PATIENCE) };
    let report = probe(&target(server.address()), &options, |_| {}).await.unwrap();
    assert_eq!(report.finding, None);
    assert!(report.mode(conn::probe::Mode::Tls13).unwrap().verdict.is_supported());
}

#[tokio::test]
async fn a_server_that_swallows_everything_is_silent() {
    let address = script(|_, mut stream| {
        let mut buffer = [0; 4096];
        while matches!(stream.read(&mut buffer), Ok(1..)) {}
    });
    let options = options(Duration::from_millis(100));
    let report = probe(&target(address), &options, |_| {}).await.unwrap();
    let finding = report.finding.unwrap();
    assert_eq!(finding.kind, Kind::Silent, "{finding:?}");
    assert!(finding.text.contains("no answer to any hello"), "{finding:?}");
}

/// A TLS server of this project, of both versions.
fn own_server() -> conn::Running {
    let mut config = server_config(tls::Library::Rustls, tls::Version::Tls13);
    config.versions = vec![tls::Version::Tls12, tls::Version::Tls13];
    let server = tls::Server::new(&config).unwrap();
    let plan = conn::ServerPlan::new(conn::ServerTransport::tls(server));
    conn::Server::bind(loopback(), plan).unwrap().spawn()
}

#[tokio::test]
async fn a_server_that_stops_after_some_connections() {
    let server = own_server();
    let address = server.address();
    let left = AtomicUsize::new(6);
    let limited = script(move |_, mut client| {
        let spend = |left: usize| left.checked_sub(1);
        if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend).is_err() {
            return;
        }
        let Ok(mut there) = TcpStream::connect(address) else { return };
        let (mut back, mut from) = (client.try_clone().unwrap(), there.try_clone().unwrap());
        let copied = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut back);
            let _ = back.shutdown(std::net::Shutdown::Write);
        });
        let _ = std::io::copy(&mut client, &mut there);
        let _ = there.shutdown(std::net::Shutdown::Write);
        let _ = copied.join();
    });
    let options = Options { repeats: 3, ..options(PATIENCE) };
    let report = probe(&target(limited), &options, |_| {}).await.unwrap();
    let finding = report.finding.unwrap();
    assert_eq!(finding.kind, Kind::Limited, "{finding:?} {:?}", report.tried);
    assert!(finding.text.contains("the server answered 6 connections"), "{finding:?}");
}

#[tokio::test]
async fn a_server_of_3des_alone_is_found_by_its_server_hello() {
    let address = script(|_, mut stream| {
        let mut hello = vec![0; 4096];
        let Ok(count) = stream.read(&mut hello) else { return };
        let has_3des = hello[..count].windows(2).any(|suite| suite == [0x00, 0x0a]);
        let is_old = hello[..count].windows(2).any(|suite| suite == [0x00, 0x05]);
        if has_3des && is_old {
            let mut answer = vec![22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
            answer.extend([9; 32]);
            answer.extend([0, 0, 0x0a, 0]);
            let _ = stream.write_all(&answer);
        } else {
            let _ = stream.write_all(&[21, 3, 1, 0, 2, 2, 40]);
        }
        let _ = stream.read(&mut hello);
    });
    let finding = report(address).await.finding.unwrap();
    assert_eq!(finding.kind, Kind::Unusual, "{finding:?}");
    assert!(finding.text.contains("3DES") && finding.text.contains("TLS 1.0"), "{finding:?}");
}

#[tokio::test]
async fn a_closed_udp_port_is_heard_by_icmp() {
    let server = own_server();
    let report = report(server.address()).await;
    let quic = format!("{:?}", report.versions.quic);
    assert!(quic.contains("nothing listens at UDP port"), "{quic}");
}

#[tokio::test]
async fn a_chain_is_shown_by_its_server_or_the_verdict_is() {
    let server = own_server();
    let ChainSeen { chain: seen, finding } =
        chain(&target(server.address()), PATIENCE).await.unwrap();
    assert_eq!((seen.len(), finding), (1, None));
    let http = script(|_, mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let error = chain(&target(http), PATIENCE).await.unwrap_err();
    assert!(matches!(error, ProbeError::NoChain { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("plain HTTP") && !text.contains("no TCP connection"), "{text}");
}

/// `openssl s_server`, killed at the end.
struct Openssl {
    child: Child,
    address: SocketAddr,
}

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn have_openssl() -> bool {
    let mut command = Command::new("openssl");
    command.arg("version").stdout(Stdio::null());
    command.status().is_ok_and(|it| it.success())
}

/// A self-signed certificate for `server.test`, of a key with these options of `openssl req -newkey`.
fn certificate(folder: &Path, name: &str, key: &[&str]) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=server.test"])
        .args(["-addext", "subjectAltName=DNS:server.test", "-newkey"])
        .args(key)
        .args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success(), "openssl req {key:?}");
}

fn openssl(folder: &Path, certificate: &str, arguments: &[&str]) -> Openssl {
    let mut child = Command::new("openssl")
        .args(["s_server", "-accept", "127.0.0.1:0", "-www"])
        .args(["-cert", &format!("{certificate}.pem"), "-key", &format!("{certificate}.key")])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // "ACCEPT 127.0.0.1:41234"
    let address = lines
        .map_while(Result::ok)
        .take(20)
        .find_map(|line| line.strip_prefix("ACCEPT ")?.split_whitespace().next()?.parse().ok());
    let address = address.unwrap_or_else(|| {
        let _ = child.kill();
        panic!("s_server {arguments:?} does not listen")
    });
    Openssl { child, address }
}

#[tokio::test]
async fn openssl_with_what_clients_do_not_offer() {
    if !have_openssl() {
        skip!(Need::Openssl, "no `openssl` program here");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    certificate(folder, "rsa", &["rsa:2048"]);
    certificate(folder, "weak", &["rsa:1024"]);
    certificate(folder, "ed448", &["ed448"]);
    let weak = "@SECLEVEL=0";
    let all = format!("ALL:{weak}");
    let cases: [(&str, &[&str], &str); 6] = [
        ("rsa", &["-groups", "P-521"], "secp521r1"),
        ("rsa", &["-groups", "ffdhe2048", "-tls1_3"], "ffdhe2048"),
        ("rsa", &["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"], "TLS_DHE_RSA"),
        ("rsa", &["-tls1", "-cipher", &all], "TLS 1.0"),
        ("ed448", &[], "ED448"),
        ("weak", &["-cipher", &all], "RSA-1024"),
    ];
    for (certificate, arguments, word) in cases {
        let server = openssl(folder, certificate, arguments);
        let report = report(server.address).await;
        let finding = report.finding.unwrap_or_else(|| panic!("{arguments:?}: {:?}", report.tried));
        assert_eq!(finding.kind, Kind::Unusual, "{arguments:?}: {finding:?} {:?}", report.tried);
        assert!(finding.text.contains(word), "{arguments:?}: {finding:?}");
        let versions = format!("{:?}", report.versions);
        assert!(!format!("{finding:?}{versions}").contains("BadSignature"), "{versions}");
        assert_eq!(report.certificates.map(|it| it.count), Some(1), "{arguments:?}");
    }
    // What browsers take and rustls does not is another kind.
    let server = openssl(folder, "rsa", &["-tls1_2", "-cipher", "AES128-SHA"]);
    let older = report(server.address).await;
    let finding = older.finding.unwrap();
    assert_eq!(finding.kind, Kind::OldSuites, "{finding:?}");
    assert!(finding.text.contains("TLS_RSA_WITH_AES_128_CBC_SHA"), "{finding:?}");
    assert!(finding.remedy.contains("--client browser"), "{finding:?}");
    for client in [Client::Browser, Client::Everything] {
        let options = Options { client, ..options(PATIENCE) };
        let report = probe(&target(server.address), &options, |_| {}).await.unwrap();
        assert!(report.versions.tls12.is_supported(), "{client}: {:?}", report.versions);
    }
}

#[tokio::test]
async fn openssl_with_p_384_alone_works_after_a_hello_retry_request() {
    if !have_openssl() {
        skip!(Need::Openssl, "no `openssl` program here");
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "rsa", &["rsa:2048"]);
    let server = openssl(folder.path(), "rsa", &["-groups", "P-384"]);
    let report = report(server.address).await;
    assert_eq!(report.finding, None);
    assert!(report.versions.tls13.is_supported() && report.versions.tls12.is_supported());
    let mode = report.mode(conn::probe::Mode::Tls13).unwrap();
    assert!(mode.hello_retry_request);
    assert_eq!(report.offer.unwrap().group.as_deref(), Some("secp384r1"));
    let only = tls::named_group("p256").into_iter().collect();
    let options = Options { groups: only, ..options(PATIENCE) };
    let report = probe(&target(server.address), &options, |_| {}).await.unwrap();
    assert!(!report.mode(conn::probe::Mode::Tls13).unwrap().verdict.is_supported());
}

#[tokio::test]
async fn openssl_that_requires_a_client_certificate() {
    if !have_openssl() {
        skip!(Need::Openssl, "no `openssl` program here");
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "rsa", &["rsa:2048"]);
    for version in ["-tls1_2", "-tls1_3"] {
        let server = openssl(folder.path(), "rsa", &["-Verify", "1", version]);
        let required = report(server.address).await;
        let finding = required.finding.as_ref().unwrap();
        assert_eq!(finding.kind, Kind::CertificateRequired, "{version}: {finding:?}");
        assert!(finding.remedy.contains("--cert FILE --key FILE"), "{finding:?}");
        assert!(!required.versions.tls13.is_supported(), "{:?}", required.versions);
        let optional = openssl(folder.path(), "rsa", &["-verify", "1", version]);
        let report = report(optional.address).await;
        assert_eq!(report.finding, None, "{version}");
        assert!(report.hints.iter().any(|hint| hint.contains("asks for a client")), "{version}");
    }
}

#[tokio::test]
async fn openssl_without_tickets_gave_none() {
    if !have_openssl() {
        skip!(Need::Openssl, "no `openssl` program here");
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "rsa", &["rsa:2048"]);
    let off = ["-no_ticket", "-no_cache", "-tls1_2"];
    let server = openssl(folder.path(), "rsa", &off);
    let report = report(server.address).await;
    let resumed = format!("{:?}", report.mode(conn::probe::Mode::Tls12Resumed).unwrap().verdict);
    assert!(resumed.contains("gave no ticket") && !resumed.contains("gave a ticket"), "{resumed}");
}

#[tokio::test]
async fn openssl_that_knows_one_name_only() {
    if !have_openssl() {
        skip!(Need::Openssl, "no `openssl` program here");
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "rsa", &["rsa:2048"]);
    let names = ["-servername", "known.test", "-servername_fatal"];
    let names = [&names[..], &["-cert2", "rsa.pem", "-key2", "rsa.key"]].concat();
    let server = openssl(folder.path(), "rsa", &names);
    let report = report(server.address).await;
    let finding = report.finding.unwrap();
    assert_eq!(finding.kind, Kind::UnknownName, "{finding:?}");
    assert!(finding.remedy.contains("--name"), "{finding:?}");
}

#[tokio::test]
async fn openssl_with_certificates_of_96_kilobytes() {
    if !have_openssl() {
        skip!(Need::Openssl, "no `openssl` program here");
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "rsa", &["rsa:2048"]);
    let one = std::fs::read(folder.path().join("rsa.pem")).unwrap();
    std::fs::write(folder.path().join("many.pem"), one.repeat(120)).unwrap();
    let server = openssl(folder.path(), "rsa", &["-cert_chain", "many.pem"]);
    let report = report(server.address).await;
    let finding = report.finding.unwrap();
    assert_eq!(finding.kind, Kind::LongCertificates, "{finding:?} {:?}", report.tried);
    assert!(finding.text.contains(" bytes)"), "{finding:?}");
}
