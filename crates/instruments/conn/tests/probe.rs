//! Probing servers on loopback: our own, Debian's `openssl s_server`, and none.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::*;
use conn::probe::{Mode, Options, ProbeError, Report, Target, Verdict, probe};
use conn::{Running, Server, ServerPlan, ServerTransport};
use fault::{Explain, Fault};
use lab_test::{Need, skip};
use tls::{Library, Trust, Version};

fn target(address: SocketAddr) -> Target {
    let trust = Trust::Roots(identity().roots().to_vec());
    let server_name = Some(NAME.to_owned());
    Target { port: address.port(), server_name, trust, ..Target::new("127.0.0.1") }
}

fn options() -> Options {
    let pause = Duration::from_millis(1);
    Options { repeats: 2, timeout: PATIENCE, pause, deadline: 3 * PATIENCE, ..Options::default() }
}

/// A web server's answer to HEAD, over both versions, on TCP and, at the same port, QUIC.
fn serve(library: Library) -> (Running, Option<Running>) {
    let mut config = server_config(library, Version::Tls13);
    config.versions = vec![Version::Tls12, Version::Tls13];
    config.max_early_data = 16_384;
    let response = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_vec();
    let server = tls::Server::new(&config).unwrap();
    let plan = ServerPlan {
        request_len: 20,
        response: response.clone(),
        ..ServerPlan::new(ServerTransport::tls(server))
    };
    let over_tcp = Server::bind(loopback(), plan).unwrap().spawn();
    config.library = Library::Rustls;
    config.alpn = vec![b"h3".to_vec()];
    let plan = ServerPlan { response, ..ServerPlan::new(ServerTransport::quic(config)) };
    // The port may be taken by a program that has nothing to do with this test.
    let over_quic = Server::bind(over_tcp.address(), plan).ok().map(Server::spawn);
    (over_tcp, over_quic)
}

fn assert_supported(report: &Report, modes: &[Mode]) {
    for mode in modes {
        let measured = report.mode(*mode).unwrap();
        assert!(measured.verdict.is_supported(), "{mode:?}: {:?}", measured.verdict);
        assert_eq!(measured.samples.len(), 2, "{mode:?}");
        assert!(measured.ready.is_some(), "{mode:?}");
        // Below 1 ms of TCP connect, a time is this machine's work and no round trips.
        let round_trip = report.path.connect_ms.unwrap();
        assert_eq!(measured.ready_round_trips.is_some(), round_trip >= 1.0, "{mode:?}");
    }
}

#[tokio::test]
async fn our_own_server_supports_everything() {
    for library in Library::ALL {
        let (over_tcp, over_quic) = serve(*library);
        let mut steps = Vec::new();
        let options = Options { library: *library, ..options() };
        let report = probe(&target(over_tcp.address()), &options, |step| steps.push(step)).await;
        let report = report.unwrap();
        assert_supported(
            &report,
            &[
                Mode::Tcp,
                Mode::Tls12,
                Mode::Tls12Resumed,
                Mode::Tls13,
                Mode::Tls13Resumed,
                Mode::Tls13EarlyData,
            ],
        );
        if over_quic.is_some() {
            assert_supported(&report, &[Mode::Quic, Mode::QuicZeroRtt]);
        }
        assert!(report.mode(Mode::Tls13EarlyData).unwrap().first_byte.is_some());
        // Our listener did not ask for Fast Open.
        assert!(!report.mode(Mode::FastOpen).unwrap().verdict.is_supported());
        assert!(report.versions.tls12.is_supported() && report.versions.tls13.is_supported());
        let certificates = report.certificates.as_ref().unwrap();
        assert_eq!(certificates.key_type.as_deref(), Some("ECDSA P-256"));
        assert_eq!(certificates.count, identity().chain_der().len());
        assert_eq!(certificates.trusted, Some(true));
        let offer = report.offer.as_ref().unwrap();
        assert_eq!(offer.version, "TLS 1.3");
        // The server knows X25519 only, and a client of today sends a share for it too.
        assert_eq!((offer.group.as_deref(), offer.hello_retry_request), (Some("X25519"), false));
        assert!(report.path.connect_ms.is_some() && report.hints.is_empty(), "{report:?}");
        assert!(report.connections <= 40, "{}", report.connections);
        assert_eq!(steps.len(), Mode::ALL.len() + 1);
        let json = serde_json::to_string(&report).unwrap();
        let read: Report = serde_json::from_str(&json).unwrap();
        // Times may lose their last binary digit in JSON; everything else may not.
        assert_eq!((read.address, read.versions), (report.address, report.versions));
        assert_eq!(
            (read.modes.len(), read.certificates),
            (report.modes.len(), report.certificates)
        );
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_reported_and_measured_only_if_told_to() {
    let (server, _quic) = serve(Library::Rustls);
    let untrusting =
        Target { trust: Trust::Roots(rsa_identity().roots().to_vec()), ..target(server.address()) };
    let report = probe(&untrusting, &options(), |_| {}).await.unwrap();
    assert_eq!(report.finding, None);
    // The server speaks it: it is this client that gave up.
    assert!(matches!(report.versions.tls13, Verdict::NotTested { .. }), "{:?}", report.versions);
    let certificates = report.certificates.unwrap();
    assert_eq!((certificates.trusted, certificates.count), (Some(false), 1));
    assert!(certificates.problem.is_some());
    assert!(report.hints.iter().any(|hint| hint.contains("--insecure")), "{:?}", report.hints);

    let insecure = Target { trust: Trust::Insecure, ..target(server.address()) };
    let report = probe(&insecure, &options(), |_| {}).await.unwrap();
    assert_supported(&report, &[Mode::Tls13]);
    assert_eq!(report.certificates.unwrap().trusted, None);
}

#[tokio::test]
async fn a_port_that_speaks_no_tls() {
    let server = Server::bind(loopback(), ServerPlan::plain()).unwrap().spawn();
    let options = Options { timeout: Duration::from_millis(200), ..options() };
    let report = probe(&target(server.address()), &options, |_| {}).await.unwrap();
    assert_supported(&report, &[Mode::Tcp]);
    assert!(!report.versions.tls12.is_supported() && !report.versions.tls13.is_supported());
    let resumed = &report.mode(Mode::Tls13Resumed).unwrap().verdict;
    assert!(matches!(resumed, Verdict::NotTested { .. }), "{resumed:?}");
    assert!(report.offer.is_none() && report.certificates.is_none());
    let finding = report.finding.unwrap();
    assert!(finding.text.contains("not a TLS server"), "{finding:?}");
}

#[tokio::test]
async fn a_closed_port() {
    let listener = TcpListener::bind(loopback()).unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let error = probe(&target(closed), &options(), |_| {}).await.unwrap_err();
    assert!(matches!(error, ProbeError::NoConnection { .. }), "{error}");
    assert_eq!(error.fault(), Fault::Peer);
    assert!(error.to_string().contains("refused"), "{error}");
}

/// RFC 6761 §6.4: names under `invalid.` never resolve.
#[tokio::test]
async fn a_name_that_does_not_resolve() {
    let error = probe(&Target::new("no-such-host.invalid"), &options(), |_| {}).await.unwrap_err();
    assert!(matches!(error, ProbeError::UnknownHost { .. }), "{error}");
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
}

#[tokio::test]
async fn options_out_of_range() {
    for repeats in [0, 11] {
        let options = Options { repeats, ..options() };
        let error = probe(&Target::new("127.0.0.1"), &options, |_| {}).await.unwrap_err();
        assert_eq!(error.fault(), Fault::Caller);
    }
}

#[tokio::test]
async fn when_the_time_is_over_the_rest_is_not_tested() {
    let (server, _quic) = serve(Library::Rustls);
    let options = Options { deadline: Duration::ZERO, ..options() };
    let report = probe(&target(server.address()), &options, |_| {}).await.unwrap();
    let verdict = &report.mode(Mode::Tls13).unwrap().verdict;
    assert!(matches!(verdict, Verdict::NotTested { .. }), "{verdict:?}");
}

/// A child that is killed when the test is over.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether there is an `openssl` program.
fn have_openssl() -> bool {
    Command::new("openssl")
        .arg("version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
}

/// `openssl s_server`, another implementation; and the port that it listens at.
fn s_server(directory: &std::path::Path) -> (Killed, u16) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem", "-days", "2"])
        .args(["-subj", "/CN=server.test", "-addext", "subjectAltName=DNS:server.test"])
        .current_dir(directory)
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success(), "openssl req");
    let mut child = Command::new("openssl")
        .args(["s_server", "-accept", "127.0.0.1:0", "-www"])
        .args(["-cert", "certificate.pem", "-key", "key.pem"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let server = Killed(child);
    // "ACCEPT 127.0.0.1:41234"
    let port = lines.map_while(Result::ok).take(20).find_map(|line| {
        let address = line.strip_prefix("ACCEPT ")?.split_whitespace().next()?.to_owned();
        address.rsplit_once(':')?.1.parse().ok()
    });
    (server, port.expect("the line that says where s_server listens"))
}

#[tokio::test]
async fn openssl_s_server() {
    if !have_openssl() {
        skip!(Need::Openssl, "no `openssl` program here");
    }
    let directory = tempfile::tempdir().unwrap();
    let (_server, port) = s_server(directory.path());
    let target = Target { trust: Trust::Insecure, ..target(([127, 0, 0, 1], port).into()) };
    let options = Options { timeout: Duration::from_secs(2), ..options() };
    let report = probe(&target, &options, |_| {}).await.unwrap();
    assert_supported(
        &report,
        &[Mode::Tcp, Mode::Tls12, Mode::Tls12Resumed, Mode::Tls13, Mode::Tls13Resumed],
    );
    assert!(!report.versions.quic.is_supported());
    let certificates = report.certificates.unwrap();
    assert_eq!((certificates.count, certificates.key_type.as_deref()), (1, Some("ECDSA P-256")));
}
