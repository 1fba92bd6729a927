//! Probing through STARTTLS and proxies, by servers made of byte scripts.

use std::net::SocketAddr;
use std::time::Duration;

use conn::probe::{Mode, Options, ProbeError, Report, Target, Verdict, chain, probe};
use conn::{Running, Server, ServerPlan, ServerTransport};
use fault::{Explain, Fault};
use starttls::Protocol;
use tls::{Library, Trust, Version};

use crate::common::*;
use crate::fronts::{self, Turn};

const TCP_MODES: [Mode; 5] =
    [Mode::Tcp, Mode::Tls12, Mode::Tls12Resumed, Mode::Tls13, Mode::Tls13Resumed];

/// A server of both versions that takes no ALPN but that of a web server.
fn tls_server() -> Running {
    let mut config = server_config(Library::Rustls, Version::Tls13);
    config.versions = vec![Version::Tls12, Version::Tls13];
    config.alpn = vec![b"http/1.1".to_vec()];
    let server = tls::Server::new(&config).unwrap();
    Server::bind(loopback(), ServerPlan::new(ServerTransport::tls(server))).unwrap().spawn()
}

fn options() -> Options {
    let pause = Duration::from_millis(1);
    Options { repeats: 1, timeout: PATIENCE, pause, deadline: 3 * PATIENCE, ..Options::default() }
}

fn target(address: SocketAddr, starttls: Option<Protocol>) -> Target {
    let trust = Trust::Roots(identity().roots().to_vec());
    let server_name = Some(NAME.to_owned());
    Target { port: address.port(), server_name, trust, starttls, ..Target::new("127.0.0.1") }
}

/// A server that only the proxy knows.
fn behind(proxy: &str, address: SocketAddr, starttls: Option<Protocol>) -> Target {
    let proxy = format!("{proxy}{address}").parse().unwrap();
    let target = target(address, starttls);
    Target { host: "server.invalid".to_owned(), port: 4433, proxy: Some(proxy), ..target }
}

fn assert_supported(report: &Report, modes: &[Mode]) {
    for mode in modes {
        let measured = report.mode(*mode).unwrap();
        assert!(measured.verdict.is_supported(), "{mode:?}: {:?}", measured.verdict);
    }
}

fn assert_left_out(report: &Report, mode: Mode, part: &str) {
    match &report.mode(mode).unwrap().verdict {
        Verdict::NotTested { reason } => assert!(reason.contains(part), "{mode:?}: {reason}"),
        other => panic!("{mode:?}: {other:?}"),
    }
}

/// What a server of each protocol says up to TLS. Of a client's commands only the length counts here.
fn turns(protocol: Protocol) -> Vec<Turn> {
    let xmpp = |namespace: &str| {
        format!(
            "<?xml version='1.0'?><stream:stream to='{NAME}' version='1.0' xml:lang='en' \
             xmlns='{namespace}' xmlns:stream='http://etherx.jabber.org/streams'>"
        )
    };
    let features = b"<stream:stream><stream:features><starttls/></stream:features>".to_vec();
    let starttls = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".len();
    let stream = |namespace: &str| {
        let header = xmpp(namespace).len();
        vec![(vec![], header), (features.clone(), starttls), (b"<proceed/>".to_vec(), 0)]
    };
    let of = |turns: &[(&[u8], &str)]| {
        turns.iter().map(|(said, heard)| (said.to_vec(), heard.len())).collect()
    };
    match protocol {
        Protocol::Smtp => of(&[
            (b"220 hi\r\n", "EHLO [127.0.0.1]\r\n"),
            (b"250-a\r\n250 STARTTLS\r\n", "STARTTLS\r\n"),
            (b"220 go\r\n", ""),
        ]),
        Protocol::Imap => of(&[
            (b"* OK hi\r\n", "a1 CAPABILITY\r\n"),
            (b"* CAPABILITY STARTTLS\r\na1 OK\r\n", "a2 STARTTLS\r\n"),
            (b"a2 OK go\r\n", ""),
        ]),
        Protocol::Pop3 => of(&[
            (b"+OK hi\r\n", "CAPA\r\n"),
            (b"+OK\r\nSTLS\r\n.\r\n", "STLS\r\n"),
            (b"+OK go\r\n", ""),
        ]),
        Protocol::Ftp => of(&[(b"220 hi\r\n", "AUTH TLS\r\n"), (b"234 go\r\n", "")]),
        Protocol::Ldap => {
            vec![(vec![], 31), (b"\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\0\x04\0\x04\0".to_vec(), 0)]
        }
        Protocol::Xmpp => stream("jabber:client"),
        Protocol::XmppServer => stream("jabber:server"),
        Protocol::Postgres => vec![(vec![], 8), (b"S".to_vec(), 0)],
        Protocol::Mysql => {
            let greeting = b"\x16\0\0\0\x0a8.4.3\0\x01\0\0\0saltsalt\0\xff\xff";
            vec![(greeting.to_vec(), 36)]
        }
        Protocol::Sieve => {
            of(&[(b"\"STARTTLS\"\r\nOK\r\n", "STARTTLS\r\n"), (b"OK \"go\"\r\n", "")])
        }
        Protocol::Nntp => of(&[
            (b"200 hi\r\n", "CAPABILITIES\r\n"),
            (b"101 x\r\nSTARTTLS\r\n.\r\n", "STARTTLS\r\n"),
            (b"382 go\r\n", ""),
        ]),
    }
}

#[tokio::test]
async fn every_protocol_is_measured_behind_starttls() {
    let server = tls_server();
    for protocol in Protocol::ALL {
        let front = fronts::script(turns(*protocol), Some(server.address()));
        let report = probe(&target(front, Some(*protocol)), &options(), |_| {}).await.unwrap();
        assert_supported(&report, &TCP_MODES);
        let before = report.before_tls.as_ref().unwrap();
        assert_eq!(before.starttls.as_deref(), Some(protocol.name()));
        assert_eq!(before.proxy, None);
        // A request of HTTP, data in the SYN and QUIC have no place there.
        assert_left_out(&report, Mode::Tls13EarlyData, protocol.title());
        assert_left_out(&report, Mode::FastOpen, "STARTTLS");
        assert_left_out(&report, Mode::Quic, "STARTTLS");
        let offer = report.offer.as_ref().unwrap();
        assert_eq!((offer.version.as_str(), &offer.alpn), ("TLS 1.3", &None), "{protocol}");
        let full = report.mode(Mode::Tls13).unwrap();
        let sample = full.samples.first().unwrap();
        assert!(full.before_tls.is_some() && sample.before_tls_ms.is_some(), "{protocol}");
        // STARTTLS counts as time, and not as TLS's round trips; on a loopback there are none.
        let alone = sample.ready_ms.unwrap() - sample.before_tls_ms.unwrap();
        let connect = report.path.connect_ms.unwrap();
        match full.ready_round_trips {
            Some(trips) => assert!((trips - alone / connect).abs() < 1e-6, "{protocol}"),
            None => assert!(connect < 1.0, "{protocol}: {connect} ms"),
        }
        let tcp = report.mode(Mode::Tcp).unwrap();
        assert_eq!(tcp.samples.first().unwrap().before_tls_ms, None);
    }
}

#[tokio::test]
async fn proxies_resolve_the_name_and_are_not_taken_for_the_server() {
    let server = tls_server();
    let login = Some("dXNlcjpzZUBjcmV0"); // user:se@cret
    let http = fronts::http_proxy(4433, server.address(), login);
    let socks = fronts::socks5_proxy(server.address(), Some(("user", "se@cret")));
    for (proxy, address, shown) in [
        ("http://user:se%40cret@", http, format!("http://{http}")),
        ("socks5h://user:se%40cret@", socks, format!("socks5://{socks}")),
    ] {
        let report = probe(&behind(proxy, address, None), &options(), |_| {}).await.unwrap();
        assert_supported(&report, &TCP_MODES);
        assert_left_out(&report, Mode::Quic, "QUIC knows no proxy");
        assert_left_out(&report, Mode::FastOpen, "with proxy");
        let before = report.before_tls.as_ref().unwrap();
        assert_eq!((before.proxy.as_deref(), before.port), (Some(shown.as_str()), Some(4433)));
        assert_eq!((report.address, &report.dns), (address, &None));
        // The round trip to the server is not known.
        assert!(report.path.connect_ms.is_some());
        assert!(report.modes.iter().all(|mode| mode.ready_round_trips.is_none()));
        let json = serde_json::to_string(&report).unwrap();
        assert!(!json.contains("cret"), "{json}");
        let offer = report.offer.unwrap();
        assert_eq!(offer.alpn.as_deref(), Some("http/1.1"));
    }
}

#[tokio::test]
async fn starttls_works_behind_a_proxy() {
    let server = tls_server();
    let front = fronts::script(turns(Protocol::Smtp), Some(server.address()));
    // The greeting may come with the proxy's answer.
    let mut together = turns(Protocol::Smtp);
    together[0].0 = [b"HTTP/1.1 200 OK\r\n\r\n", together[0].0.as_slice()].concat();
    let request = "CONNECT server.invalid:4433 HTTP/1.1\r\nHost: server.invalid:4433\r\n\r\n";
    together.insert(0, (vec![], request.len()));
    let together = fronts::script(together, Some(server.address()));
    for (proxy, address) in [
        ("http://", fronts::http_proxy(4433, front, None)),
        ("socks5://", fronts::socks5_proxy(front, None)),
        ("http://", together),
    ] {
        let target = behind(proxy, address, Some(Protocol::Smtp));
        let chain = chain(&target, PATIENCE).await.unwrap();
        assert_eq!(chain.chain, identity().chain_der());
        let report = probe(&target, &options(), |_| {}).await.unwrap();
        assert_supported(&report, &TCP_MODES);
    }
}

/// The error of a probe and of `chain`, which is the same.
async fn refused(target: &Target, patience: Duration) -> ProbeError {
    let error = chain(target, patience).await.unwrap_err();
    let other = Options { timeout: patience, ..options() };
    let other = probe(target, &other, |_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), other.to_string());
    error
}

#[tokio::test]
async fn refusals_are_read_out() {
    let smtp = |turns: &[(&[u8], &str)]| {
        let turns = turns.iter().map(|(said, heard)| (said.to_vec(), heard.len())).collect();
        target(fronts::script(turns, None), Some(Protocol::Smtp))
    };
    let ehlo = "EHLO [127.0.0.1]\r\n";
    for (target, part) in [
        (smtp(&[(b"220 hi\r\n", ehlo), (b"250 a\r\n", "")]), "the server offers no STARTTLS"),
        (smtp(&[(b"", "")]), "the SMTP greeting did not come within 500ms"),
        (smtp(&[(b"220 hi\r\n", ehlo)]), "the answer to EHLO did not come within 500ms"),
        (smtp(&[(b"554 5.7.1 no\r\n", "")]), "turns the connection away: 554 5.7.1 no"),
        (smtp(&[(b"HTTP/1.1 400 Bad\r\n\r\n", "")]), "the server answered in plain HTTP"),
        (
            smtp(&[
                (b"220 hi\r\n", ehlo),
                (b"250-a\r\n250 STARTTLS\r\n", "STARTTLS\r\n"),
                (b"220 go\r\n250 evil\r\n", ""),
            ]),
            "10 bytes of plaintext after its go-ahead for TLS: `250 evil`",
        ),
    ] {
        // Only a silent server is waited for.
        let patience = if part.contains("500ms") { Duration::from_millis(500) } else { PATIENCE };
        let error = refused(&target, patience).await;
        assert!(matches!(error, ProbeError::Opening { .. }), "{error:?}");
        assert!(error.to_string().contains(part), "`{error}` lacks `{part}`");
        assert_eq!(error.fault(), Fault::Peer);
    }
}

/// Plaintext that comes later than the go-ahead, in place of the server's first record.
#[tokio::test]
async fn late_plaintext_behind_the_go_ahead_is_no_fault_of_tls() {
    let mut turns = turns(Protocol::Smtp);
    // The go-ahead, the record header of a ClientHello, then the injected reply.
    turns.last_mut().unwrap().1 = 5;
    turns.push((b"250 evil\r\n".to_vec(), 0));
    let target = target(fronts::script(turns, None), Some(Protocol::Smtp));
    let part = "10 bytes of plaintext after its go-ahead for TLS: `250 evil`";
    let error = chain(&target, PATIENCE).await.unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
    let report = probe(&target, &options(), |_| {}).await.unwrap();
    for verdict in [&report.versions.tls12, &report.versions.tls13] {
        match verdict {
            Verdict::Refused { reason } => assert!(reason.contains(part), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_proxys_refusals_are_read_out() {
    let server = tls_server();
    let http = fronts::http_proxy(4433, server.address(), Some("dXNlcjpzZWNyZXQ="));
    let other = fronts::http_proxy(1, server.address(), None);
    let socks = fronts::socks5_proxy(server.address(), Some(("user", "secret")));
    let open = fronts::socks5_proxy(server.address(), None);
    let unknown = Target { host: "other.invalid".to_owned(), ..behind("socks5://", open, None) };
    for (target, part) in [
        (behind("http://", http, None), "the proxy asks for user and password: 407"),
        (behind("http://user:wrong@", http, None), "the proxy refuses user and password: 407"),
        (behind("http://", other, None), "the proxy does not allow this host and port: 403"),
        (behind("socks5://", socks, None), "the proxy asks for user and password"),
        (behind("socks5://user:hunter@", socks, None), "the proxy refuses user and password"),
        (unknown, "the proxy cannot reach the server: the host"),
    ] {
        let text = refused(&target, PATIENCE).await.to_string();
        assert!(text.contains(part), "`{text}` lacks `{part}`");
        assert!(!text.contains("wrong") && !text.contains("hunter"), "{text}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let listener = std::net::TcpListener::bind(loopback()).unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let text = refused(&behind("http://", closed, None), PATIENCE).await.to_string();
    assert!(text.contains("no TCP connection to the proxy 127.0.0.1"), "{text}");
    assert!(text.contains("refused"), "{text}");
}
