//! Other implementations decide: curl, nghttp, h2spec, ngtcp2's client, aioquic, nginx.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use futures_util::future::join_all;
use lab_test::{Need, program, skip};
use tls::{Library, Trust, Version};
use web::{Client, ConnectPlan, Protocol};

use crate::common::*;

/// A server in a thread of its own, since the judges' programs block.
struct Serving {
    secure: SocketAddr,
    clear: SocketAddr,
    log: web::Log,
    _stop: tokio::sync::oneshot::Sender<()>,
}

fn serving() -> Serving {
    serving_with(|_| {})
}

/// One that takes early data.
fn serving_early() -> Serving {
    serving_with(|plan| plan.tls.as_mut().unwrap().config.max_early_data = 16_384)
}

fn serving_with(change: impl FnOnce(&mut web::ServerPlan) + Send + 'static) -> Serving {
    let (sender, started) = mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let server = serve(change);
            sender
                .send((server.addresses()[0], server.clear_addresses()[0], server.log()))
                .unwrap();
            let _ = stopped.await;
        });
    });
    let (secure, clear, log) = started.recv().unwrap();
    Serving { secure, clear, log, _stop: stop }
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The root's certificate as a file.
fn root(folder: &Path) -> String {
    let path = folder.join("root.pem");
    std::fs::write(&path, identity().root_pem().unwrap()).unwrap();
    path.display().to_string()
}

#[test]
fn curl_loads_by_http1_and_http2_over_both_versions_of_tls() {
    let Some(curl) = program("curl") else { skip!(Need::Curl, "curl is not installed") };
    let folder = tempfile::tempdir().unwrap();
    let (server, root) = (serving(), root(folder.path()));
    let port = server.secure.port();
    let resolve = format!("{NAME}:{port}:127.0.0.1");
    for (protocol, number) in [("--http1.1", "1.1"), ("--http2", "2")] {
        for version in ["1.2", "1.3"] {
            let only = format!("--tlsv{version}");
            let url = format!("https://{NAME}:{port}");
            let upload = folder.path().join("upload");
            std::fs::write(&upload, vec![b'u'; 300_000]).unwrap();
            let upload = format!("@{}", upload.display());
            let written = "%{http_version} %{http_code} %{size_download} %{num_connects}\n";
            let common = [
                "-sS",
                protocol,
                &only,
                "--tls-max",
                version,
                "--cacert",
                &root,
                "--resolve",
                &resolve,
                "-o",
                "/dev/null",
                "-o",
                "/dev/null",
                "-o",
                "/dev/null",
                "-w",
                written,
            ];
            let urls = [format!("{url}/0"), format!("{url}/100000"), format!("{url}/10000000")];
            let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
            let output = run(&curl, &[&common[..], &urls].concat());
            let expected =
                format!("{number} 200 0 1\n{number} 200 100000 0\n{number} 200 10000000 0\n");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
            let post = ["-H", "expect:", "--data-binary", &upload, &format!("{url}/77")];
            let output = run(&curl, &[&common[..], &post].concat());
            let expected = format!("{number} 200 77 1\n");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
            let tags = ["-H", "if-none-match: \"v1\"", &format!("{url}/cached")];
            let output = run(&curl, &[&common[..], &tags].concat());
            let expected = format!("{number} 304 0 1\n");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        }
    }
    let clear = format!("http://{}/1000", server.clear);
    let output = run(&curl, &["-sS", "-o", "/dev/null", "-w", "%{size_download}", &clear]);
    assert_eq!(output.stdout, b"1000");
    let received: Vec<u64> =
        server.log.take_streams().iter().map(|stream| stream.received).filter(|n| *n > 0).collect();
    assert_eq!(received, [300_000; 4]);
}

/// RFC 9113 and RFC 7541 clause by clause, in h2spec's order.
#[test]
fn h2spec_finds_nothing_wrong_with_our_http2() {
    let h2spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/judges/h2spec/h2spec");
    if !h2spec.exists() {
        skip!(Need::H2spec, "h2spec is not built (scripts/go-judges.sh)");
    }
    let server = serving();
    let port = server.secure.port().to_string();
    // The time limit is for answers that never come: a busy machine's are late.
    let arguments = ["-h", "127.0.0.1", "-p", &port, "-t", "-k", "-P", "/1000", "-o", "5"];
    let output = run(&h2spec.display().to_string(), &arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("145 tests, 145 passed, 0 skipped, 0 failed"), "{said}");
}

#[test]
fn nghttp_finds_nothing_wrong_with_our_http2() {
    let Some(nghttp) = program("nghttp") else {
        skip!(Need::Nghttp, "nghttp is not installed (nghttp2-client)")
    };
    let server = serving();
    let url = |path: &str| format!("https://{}/{path}", server.secure);
    // Twenty times each at once, windows of 64 KB, and all that is wrong is printed as an error.
    let (large, small) = (url("300000"), url("100"));
    let arguments = ["-n", "-v", "-m", "20", "-w", "16", "-W", "16", &large, &small];
    let output = run(&nghttp, &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches(":status: 200").count(), 40, "{text}");
    for wrong in ["PROTOCOL_ERROR", "FLOW_CONTROL_ERROR", "[ERROR]", "INVALID", "RST_STREAM"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    let streams = server.log.take_streams();
    assert_eq!(streams.len(), 40);
    let sent: u64 = streams.iter().map(|stream| stream.sent).sum();
    assert_eq!(sent, 20 * 300_100);
}

#[test]
fn ngtcp2_loads_by_http3() {
    let Some(client) = program("gtlsclient") else {
        skip!(Need::Ngtcp2, "gtlsclient is not installed (ngtcp2-client)")
    };
    let server = serving();
    let port = server.secure.port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let download = format!("--download={}", folder.path().display());
    let urls =
        ["0", "100", "100000", "3000000"].map(|path| format!("https://{NAME}:{port}/{path}"));
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let options = ["-q", "--exit-on-all-streams-close", &download, "127.0.0.1", &port];
    run(&client, &[&options[..], &urls].concat());
    for length in [100, 100_000, 3_000_000] {
        let file = std::fs::read(folder.path().join(length.to_string())).unwrap();
        let digest: [u8; 32] = sha2::Digest::finalize(sha2::Digest::chain_update(
            <sha2::Sha256 as sha2::Digest>::new(),
            &file,
        ))
        .into();
        assert_eq!((file.len() as u64, digest), (length, web::digest(length)));
    }
    assert_eq!(server.log.take_streams().len(), 4);
}

/// The answers to early data of the connections that the server has seen the end of.
fn answers(server: &Serving, count: usize) -> Vec<tls::EarlyData> {
    let mut answers = Vec::new();
    let look = || {
        let records = server.log.take_connections();
        answers.extend(records.iter().filter_map(|record| Some(record.tls.as_ref()?.early_data)));
        Ok((answers.len() >= count).then_some(()))
    };
    lab_test::until("records", PATIENCE, look).unwrap();
    answers
}

#[test]
fn ngtcp2_sends_a_request_in_0rtt() {
    let Some(client) = program("gtlsclient") else {
        skip!(Need::Ngtcp2, "gtlsclient is not installed (ngtcp2-client)")
    };
    let server = serving_early();
    let port = server.secure.port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let session = format!("--session-file={}", file("session"));
    let parameters = format!("--tp-file={}", file("parameters"));
    let (download, url) =
        (format!("--download={}", file("")), format!("https://{NAME}:{port}/100000"));
    for _ in 0..2 {
        let options = ["-q", "--exit-on-all-streams-close", &session, &parameters, &download];
        run(&client, &[&options[..], &["127.0.0.1", &port, &url]].concat());
        assert_eq!(std::fs::read(file("100000")).unwrap().len(), 100_000);
        std::fs::remove_file(file("100000")).unwrap();
    }
    assert_eq!(answers(&server, 2), [tls::EarlyData::NotOffered, tls::EarlyData::Accepted]);
    assert_eq!(server.log.take_streams().len(), 2);
}

#[test]
fn openssl_sends_a_request_as_early_data() {
    let Some(openssl) = program("openssl") else {
        skip!(Need::Openssl, "openssl is not installed")
    };
    let folder = tempfile::tempdir().unwrap();
    let (server, root) = (serving_early(), root(folder.path()));
    let file = |name: &str| folder.path().join(name).display().to_string();
    let request = format!("GET /100 HTTP/1.1\r\nhost: {NAME}\r\nconnection: close\r\n\r\n");
    std::fs::write(file("request"), &request).unwrap();
    let (at, session, early) = (server.secure.to_string(), file("session"), file("request"));
    let common = ["s_client", "-connect", &at, "-servername", NAME, "-CAfile", &root];
    let common = [&common[..], &["-alpn", "http/1.1", "-tls1_3", "-verify_return_error"]].concat();
    let asked = |more: &[&str], input: &str| {
        let mut child = Command::new(&openssl)
            .args([&common[..], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        // Open until the server has closed, which is the end of the client.
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let first = asked(&["-sess_out", &session], &request);
    assert!(first.contains("HTTP/1.1 200 OK"), "{first}");
    let second = asked(&["-sess_in", &session, "-early_data", &early], "");
    assert!(second.contains("Early data was accepted"), "{second}");
    assert!(second.contains("HTTP/1.1 200 OK"), "{second}");
    // The server takes a session's early data once: a replay is refused.
    let third = asked(&["-sess_in", &session, "-early_data", &early], &request);
    assert!(third.contains("Early data was rejected"), "{third}");
    assert!(third.contains("HTTP/1.1 200 OK"), "{third}");
    use tls::EarlyData::{Accepted, NotOffered, Rejected};
    assert_eq!(answers(&server, 3), [NotOffered, Accepted, Rejected]);
    assert_eq!(server.log.take_streams().len(), 3);
}

#[test]
fn aioquic_loads_by_http3_and_resumes() {
    let python =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/judges/python/bin/python3");
    if !python.exists() {
        skip!(Need::Aioquic, "aioquic is not installed (scripts/python-judges.sh)");
    }
    let folder = tempfile::tempdir().unwrap();
    let (server, root) = (serving(), root(folder.path()));
    let (script, port) =
        (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/aioquic_get.py"), server.secure.port());
    let lengths: [u64; 4] = [100, 0, 100_000, 3_000_000];
    let asked = lengths.map(|length| length.to_string());
    let line = |length: u64| {
        let hash: String = web::digest(length).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{length} 200 {length} {hash}\n")
    };
    let expected: String = lengths.into_iter().chain([100]).map(line).collect();
    // A window that never binds, and one that is opened many times.
    for window in ["16777216", "32768"] {
        let arguments = [script, &root, NAME, &port.to_string(), window];
        let arguments: Vec<&str> =
            arguments.into_iter().chain(asked.iter().map(String::as_str)).collect();
        let output = run(&python.display().to_string(), &arguments);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("{expected}resumed\n"), "{window}");
    }
    let streams = server.log.take_streams();
    assert_eq!(streams.len(), 10);
    assert!(streams.iter().all(|stream| stream.urgency == 2));
}

/// nginx with a folder of files, over TLS and in clear.
struct Nginx {
    child: std::process::Child,
    _folder: tempfile::TempDir,
    secure: u16,
    clear: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn nginx(program: &str) -> Nginx {
    let folder = tempfile::tempdir().unwrap();
    let (secure, clear) = {
        let free = || std::net::TcpListener::bind(loopback()).unwrap();
        let port = |listener: &std::net::TcpListener| listener.local_addr().unwrap().port();
        let both = (free(), free());
        (port(&both.0), port(&both.1))
    };
    let write = |name: &str, bytes: &[u8]| {
        let mut file = std::fs::File::create(folder.path().join(name)).unwrap();
        file.write_all(bytes).unwrap();
    };
    write("cert.pem", identity().chain_pem().unwrap().as_bytes());
    write("key.pem", identity().private_key_pem().unwrap().as_bytes());
    for length in [0, 1, 100_000, 10_000_000] {
        write(&length.to_string(), &vec![b'n'; length]);
    }
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {kind};"))
        .concat();
    let config = format!(
        "daemon off; master_process off; pid pid; error_log stderr crit;
         events {{ }}
         http {{
             access_log off; {temporary} root .; etag on; client_max_body_size 1m;
             server {{
                 listen 127.0.0.1:{secure} ssl http2; listen 127.0.0.1:{clear};
                 ssl_certificate cert.pem; ssl_certificate_key key.pem;
                 ssl_protocols TLSv1.2 TLSv1.3;
                 location /post {{ return 200 \"ok\"; }}
             }}
         }}"
    );
    write("nginx.conf", config.as_bytes());
    let path = folder.path().display().to_string();
    let arguments = ["-p", &path, "-e", "stderr", "-c", "nginx.conf"];
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).spawn().unwrap();
    let listens = || std::net::TcpStream::connect(("127.0.0.1", secure)).ok();
    let look = || Ok(listens());
    lab_test::until("nginx", PATIENCE, look).unwrap();
    Nginx { child, _folder: folder, secure, clear }
}

#[test]
fn our_client_loads_from_nginx() {
    let Some(program) = program("nginx") else { skip!(Need::Nginx, "nginx is not installed") };
    let nginx = nginx(&program);
    on_a_node(async {
        for (protocol, version) in KINDS {
            if [Protocol::Http3, Protocol::Spdy3, Protocol::Spdy31].contains(&protocol) {
                continue;
            }
            let port = if protocol == Protocol::Http1Clear { nginx.clear } else { nginx.secure };
            let config = tls::ClientConfig {
                versions: vec![version],
                ..tls::ClientConfig::new(Library::Rustls, NAME, Trust::Roots(identity().roots()))
            };
            let plan = ConnectPlan::new(([127, 0, 0, 1], port).into(), NAME, protocol);
            let connection = Client::new(&config).unwrap().connect(&plan).await.unwrap();
            assert_eq!(connection.facts().protocol, protocol);
            for length in [0, 1, 100_000, 10_000_000] {
                let outcome = get(&connection, &format!("/{length}")).await;
                assert!(outcome.failure.is_none(), "{protocol} {version}: {outcome:?}");
                assert_eq!((outcome.status(), outcome.body), (Some(200), length));
            }
            let etag = get(&connection, "/1").await.head.unwrap().headers["etag"].clone();
            let headers = vec![(http::header::IF_NONE_MATCH, etag)];
            let request = web::Request { headers, ..web::Request::get(NAME, "/1") };
            assert_eq!(connection.request(request).finish().await.status(), Some(304));
            let post = web::Request::post(NAME, "/post", 300_000);
            let outcome = connection.request(post).finish().await;
            assert_eq!((outcome.status(), outcome.body), (Some(200), 2), "{protocol} {version}");
            if protocol == Protocol::Http2 {
                let outcomes = join_all((0..50).map(|_| get(&connection, "/100000"))).await;
                assert!(outcomes.iter().all(|outcome| outcome.body == 100_000));
            }
        }
        let client = client(Version::Tls13);
        let address = ([127, 0, 0, 1], nginx.secure).into();
        let plan = ConnectPlan::new(address, "www.elsewhere.test", Protocol::Http2);
        assert_eq!(client.connect(&plan).await.unwrap_err().name(), "certificate");
    });
}
