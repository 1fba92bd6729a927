//! The real programs, each against another implementation that says what it saw. A runtime that is not
//! on the machine is skipped, with the reason.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runtimes::{
    ClientPlan, Counts, Error, Extent, Identity, Pins, Program, Runtime, ServerPlan, Workload,
    measure,
};

const NAME: &str = "server.test";

fn identity(rsa: bool) -> Identity {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, RsaKeySize};
    let root_key = KeyPair::generate().unwrap();
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, "root of a test");
    let roots = root.self_signed(&root_key).unwrap().pem();
    let issuer = Issuer::new(root, root_key);
    let leaf_key = if rsa {
        KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap()
    } else {
        KeyPair::generate().unwrap()
    };
    let mut leaf = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    leaf.distinguished_name.push(DnType::CommonName, NAME);
    let chain = leaf.signed_by(&leaf_key, &issuer).unwrap().pem();
    Identity { chain, key: leaf_key.serialize_pem(), roots, name: NAME.to_owned() }
}

/// TLS 1.3 or 1.2 with AES-128-GCM.
fn pins(tls13: bool, rsa: bool, group: u16) -> Pins {
    let cipher = match (tls13, rsa) {
        (true, _) => 0x1301,
        (false, true) => 0xc02f,
        (false, false) => 0xc02b,
    };
    let version = if tls13 { 0x0304 } else { 0x0303 };
    Pins { version, cipher, group, signature: if rsa { 0x0804 } else { 0x0403 } }
}

/// The program, or none with the reason on standard error.
fn program(runtime: Runtime) -> Option<Program> {
    match runtime.available() {
        Ok(toolchain) => Some(toolchain.build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap()),
        Err(error @ Error::NotHere { .. }) => {
            lab_test::skipped(lab_test::Need::Host, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn programs() -> Vec<Program> {
    Runtime::ALL.iter().filter_map(|runtime| program(*runtime)).collect()
}

fn server(pins: Pins, identity: &Identity) -> ServerPlan {
    ServerPlan { pins, identity: identity.clone(), threads: 2, tickets: true, body: 100 }
}

fn client(pins: Pins, identity: &Identity, workload: Workload) -> ClientPlan {
    ClientPlan {
        pins,
        identity: identity.clone(),
        threads: 2,
        at_once: 2,
        workload,
        warm: 0,
        extent: Extent::Connections(20),
    }
}

/// Whether a tool answers; its absence is told.
fn tool(name: &str, question: &str) -> bool {
    let here =
        Command::new(name).arg(question).output().is_ok_and(|output| output.status.success());
    if !here {
        lab_test::skipped(lab_test::Need::of_program(name), &format!("{name} is not installed"));
    }
    here
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(identity: &Identity) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("roots", &identity.roots), ("chain", &identity.chain), ("key", &identity.key)]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// One connection of `openssl s_client`: what it printed.
fn s_client(to: SocketAddr, files: &Files, tls13: bool, more: &[&str]) -> String {
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &to.to_string(),
            "-servername",
            NAME,
            "-verify_hostname",
            NAME,
        ])
        .args([
            "-verify_return_error",
            "-ign_eof",
            if tls13 { "-tls1_3" } else { "-tls1_2" },
            "-CAfile",
        ])
        .arg(files.path("roots"))
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"GET / HTTP/1.1\r\nHost: server.test\r\n\r\n").unwrap();
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

/// OpenSSL's client sees what was pinned, and that the second connection is resumed.
#[test]
fn servers_serve_openssl_and_resume() {
    if !tool("openssl", "version") {
        return;
    }
    for program in programs() {
        for rsa in [false, true] {
            let identity = identity(rsa);
            let files = Files::new(&identity);
            for tls13 in [true, false] {
                for (group, groups, name) in
                    [(29, "X25519:P-256", "X25519"), (23, "P-256", "ECDH, prime256v1")]
                {
                    let what = format!("{} rsa {rsa} tls13 {tls13} {name}", program.runtime());
                    let mut serving =
                        program.serve(&server(pins(tls13, rsa, group), &identity)).unwrap();
                    let session = files.path("session");
                    let session = session.to_str().unwrap();
                    let said = s_client(
                        serving.address(),
                        &files,
                        tls13,
                        &["-groups", groups, "-sess_out", session],
                    );
                    assert!(said.contains("HTTP/1.1 200 OK"), "{what}: {said}");
                    assert!(said.contains("Verify return code: 0 (ok)"), "{what}: {said}");
                    assert!(said.contains(&format!("Server Temp Key: {name}")), "{what}: {said}");
                    let cipher = match (tls13, rsa) {
                        (true, _) => "TLS_AES_128_GCM_SHA256",
                        (false, true) => "ECDHE-RSA-AES128-GCM-SHA256",
                        (false, false) => "ECDHE-ECDSA-AES128-GCM-SHA256",
                    };
                    assert!(
                        said.contains(&format!(
                            "New, TLSv1.{}, Cipher is {cipher}",
                            2 + u8::from(tls13)
                        )),
                        "{what}: {said}"
                    );
                    let said = s_client(
                        serving.address(),
                        &files,
                        tls13,
                        &["-groups", groups, "-sess_in", session],
                    );
                    assert!(said.contains("Reused, TLSv1."), "{what}: {said}");
                    // The client may be done a little before the server has counted.
                    let until = Instant::now() + Duration::from_secs(60);
                    let mut counts = serving.counts().unwrap();
                    while counts.done + counts.failed < 2 && Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(10));
                        counts = serving.counts().unwrap();
                    }
                    assert_eq!(
                        (counts.done, counts.failed, counts.resumed),
                        (2, 0, 1),
                        "{what}: {counts:?}"
                    );
                    serving.stop().unwrap();
                }
            }
        }
    }
}

#[test]
fn curl_gets_an_answer_from_each() {
    if !tool("curl", "--version") {
        return;
    }
    for program in programs() {
        let identity = identity(false);
        let files = Files::new(&identity);
        let serving = program.serve(&server(pins(true, false, 29), &identity)).unwrap();
        let port = serving.address().port();
        let output = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--http1.1",
                "--max-time",
                "30",
                "--resolve",
                &format!("{NAME}:{port}:127.0.0.1"),
            ])
            .arg("--cacert")
            .arg(files.path("roots"))
            .arg(format!("https://{NAME}:{port}/"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}: {output:?}", program.runtime());
        assert_eq!(output.stdout, [b'x'; 100]);
    }
}

/// A server of OpenSSL's that prints what each connection was, and its port.
struct SServer {
    child: std::process::Child,
    port: u16,
}

impl SServer {
    fn new(files: &Files, tls13: bool) -> Self {
        use std::io::{BufRead, BufReader};
        let mut child = Command::new("openssl")
            .args([
                "s_server",
                "-accept",
                "127.0.0.1:0",
                "-www",
                if tls13 { "-tls1_3" } else { "-tls1_2" },
                "-cert",
            ])
            .arg(files.path("chain"))
            .arg("-key")
            .arg(files.path("key"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines
            .find(|line| line.as_ref().is_ok_and(|line| line.starts_with("ACCEPT")))
            .unwrap()
            .unwrap();
        let port = line.rsplit(':').next().unwrap().trim().parse().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }
}

impl Drop for SServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Clients against OpenSSL's server: they verify, resume where asked, and not otherwise.
#[test]
fn clients_connect_to_openssl_and_resume() {
    if !tool("openssl", "version") {
        return;
    }
    let own = identity(false);
    let files = Files::new(&own);
    for tls13 in [true, false] {
        let server = SServer::new(&files, tls13);
        let to = SocketAddr::from(([127, 0, 0, 1], server.port));
        // OpenSSL takes the client's order; Go's, which nobody can pin, has AES-128 first.
        let pins = pins(tls13, false, 29);
        for program in programs() {
            for workload in [Workload::Full, Workload::Resume] {
                let (_, counts) =
                    program.connect(&client(pins, &own, workload), to, |_| Ok(())).unwrap();
                let what = format!("{} tls13 {tls13} {workload:?} {counts:?}", program.runtime());
                assert_eq!(counts.failed, 0, "{what}");
                assert!(counts.done > 0, "{what}");
                let resumed = if workload == Workload::Resume { counts.done } else { 0 };
                assert_eq!(counts.resumed, resumed, "{what}");
            }
            let stranger = identity(false);
            let (_, counts) =
                program.connect(&client(pins, &stranger, Workload::Full), to, |_| Ok(())).unwrap();
            assert!(
                counts.done == 0 && counts.failed > 0 && !counts.failure.is_empty(),
                "{counts:?}"
            );
            let misled = Identity { name: "other.test".to_owned(), ..own.clone() };
            let (_, counts) =
                program.connect(&client(pins, &misled, Workload::Full), to, |_| Ok(())).unwrap();
            assert!(counts.done == 0 && counts.failed > 0, "{counts:?}");
        }
    }
}

/// Go and Java, each as server and as client: both say the same.
#[test]
fn both_sides_agree_on_what_was_resumed() {
    let identity = identity(false);
    for server_program in programs() {
        for client_program in programs() {
            for tls13 in [true, false] {
                for workload in [Workload::Full, Workload::Resume] {
                    let pins = pins(tls13, false, 29);
                    let what = format!(
                        "{} to {} tls13 {tls13} {workload:?}",
                        client_program.runtime(),
                        server_program.runtime()
                    );
                    let served = server(pins, &identity);
                    let made_plan = client(pins, &identity, workload);
                    let measured = measure(&server_program, &served, &client_program, &made_plan)
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                    let (served, made) = (&measured.served, &measured.made);
                    assert_eq!((served.failed, made.failed), (0, 0), "{what}: {measured:?}");
                    assert!(made.done >= 20 && made.wall_ns > 0, "{what}: {measured:?}");
                    // The server's window holds the client's.
                    assert!(served.done > 0, "{what}: {measured:?}");
                    // Java 17's client resumes nothing that Go's server gives out in TLS 1.2; both see it.
                    let pair = (client_program.runtime(), server_program.runtime());
                    let lacks = !tls13 && pair == (Runtime::Java, Runtime::Go);
                    let resumes = workload == Workload::Resume && !lacks;
                    let resumed = |counts: &Counts| if resumes { counts.done } else { 0 };
                    assert_eq!(made.resumed, resumed(made), "{what}: {measured:?}");
                    // Connections that fetched the first tickets may end at the server when its window
                    // has begun.
                    let late = resumed(served).abs_diff(served.resumed);
                    assert!(late <= made_plan.at_once as u64, "{what}: {measured:?}");
                    assert_eq!(
                        (served.misreported, made.misreported),
                        (0, 0),
                        "{what}: {measured:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_a_runtime_lacks_is_unsupported() {
    let identity = identity(false);
    for program in programs() {
        for pins in [
            Pins { group: 0x11ec, ..pins(false, false, 29) },
            Pins { group: 24, ..pins(true, false, 29) },
            Pins { cipher: 0x1304, ..pins(true, false, 29) },
        ] {
            let error = program.serve(&server(pins, &identity)).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{pins:x?}: {error}");
        }
        // Newer runtimes have it, older ones say that they have not.
        let hybrid = server(pins(true, false, 0x11ec), &identity);
        match program.serve(&hybrid) {
            Ok(_) => {
                let made = client(hybrid.pins, &identity, Workload::Full);
                let measured = measure(&program, &hybrid, &program, &made).unwrap();
                assert!(measured.made.done > 0 && measured.made.failed == 0, "{measured:?}");
            }
            Err(Error::Unsupported { why, .. }) => assert!(why.contains("X25519MLKEM768"), "{why}"),
            Err(error) => panic!("{error}"),
        }
        let broken = Identity { key: "no key".to_owned(), ..identity.clone() };
        let error = program.serve(&server(pins(true, false, 29), &broken)).unwrap_err();
        assert!(matches!(error, Error::Failed { .. }), "{error}");
    }
}

/// A server that is dropped is gone.
#[test]
fn a_dropped_server_listens_no_more() {
    for program in programs() {
        let identity = identity(false);
        let serving = program.serve(&server(pins(true, false, 29), &identity)).unwrap();
        let address = serving.address();
        std::net::TcpStream::connect(address).unwrap();
        drop(serving);
        assert!(std::net::TcpStream::connect(address).is_err());
        let (_, counts) = program
            .connect(&client(pins(true, false, 29), &identity, Workload::Full), address, |_| Ok(()))
            .unwrap();
        assert!(counts.done == 0 && counts.failed > 0, "{counts:?}");
    }
}
