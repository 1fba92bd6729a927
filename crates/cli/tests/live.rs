//! Live captures on a node of the lab: what is read when one stops, and what is left when one is killed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::{Lab, Node};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use serde_json::Value;

/// Connections of a round, one after the other.
const CONNECTIONS: usize = 10;
const PORT: u16 = 4433;
const NAME: &str = "server.test";
const MINUTES: Duration = Duration::from_secs(240);
const PATIENCE: Duration = Duration::from_secs(60);

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("a_capture_that_stops_has_every_connection", stops).within(MINUTES),
        Test::inside("a_capture_that_is_killed_leaves_its_rows", killed).within(MINUTES),
    ]
}

/// Client and server of a link, a TLS server and its client.
struct World {
    _lab: Lab,
    client: Node,
    server: Node,
    tls: tls::Client,
}

impl World {
    fn new() -> TestResult<World> {
        let mut lab = Lab::new(sleeping(31))?;
        let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
        lab.connect(&client, &server, &linkmodel::Path::default())?;
        let identity = Arc::new(tls::Identity::generate(tls::KeyType::EcdsaP256, 1, &[NAME])?);
        let library = tls::Library::Rustls;
        let accepts = tls::Server::new(&tls::ServerConfig::new(library, Arc::clone(&identity)))?;
        let trust = tls::Trust::Roots(identity.roots());
        let tls = tls::Client::new(&tls::ClientConfig::new(library, NAME, trust))?;
        let address = server.addr4()?;
        let listener = server.run(move || TcpListener::bind((address, PORT)))??;
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(session) = accepts.accept() else { return };
                // A client that fails is seen at the client.
                let _ = stream.and_then(|stream| talk(stream, session, false));
            }
        });
        Ok(World { _lab: lab, client, server, tls })
    }

    fn connections(&self) -> TestResult {
        let (tls, address) = (self.tls.clone(), self.server.addr4()?);
        Ok(self.client.run(move || {
            (0..CONNECTIONS).try_for_each(|_| {
                let session = tls.start(None).map_err(failed)?;
                talk(TcpStream::connect((address, PORT))?, session, true)
            })
        })??)
    }

    /// A capture at the server's end, once it captures.
    fn observe(&self, folder: &Path, arguments: &[&str]) -> TestResult<(Child, impl Read + use<>)> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wiretax"));
        command.args(["observe", "--interface", "link1"]).args(arguments).current_dir(folder);
        command.env("NO_COLOR", "1").env_remove("RUST_LOG").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.server.run(move || command.spawn())??;
        let mut said = BufReader::new(child.stderr.take().ok_or("no standard error")?);
        let mut line = String::new();
        while !line.contains("capturing on") {
            line.clear();
            assert!(said.read_line(&mut line)? > 0, "it ended before it captured");
        }
        Ok((child, said))
    }
}

fn failed(error: tls::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// A byte there and a byte back.
fn talk(mut stream: TcpStream, mut session: Box<dyn tls::Session>, asks: bool) -> io::Result<()> {
    let (mut said, mut got) = (false, Vec::new());
    loop {
        if !said && session.may_send() && (asks || !got.is_empty()) {
            session.send(b"?").map_err(failed)?;
            said = true;
        }
        let mut out = Vec::new();
        session.write_tls(&mut out).map_err(failed)?;
        stream.write_all(&out)?;
        if said && !got.is_empty() {
            return Ok(());
        }
        let mut bytes = [0; 8192];
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        session.read_tls(&bytes[..count]).map_err(failed)?;
        session.receive(&mut got).map_err(failed)?;
    }
}

fn signal(child: &Child, name: &str) -> TestResult {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status()?;
    assert!(sent.success());
    Ok(())
}

/// By SIGTERM at once after the last connection, on one thread and on two.
fn stops() -> TestResult {
    let world = World::new()?;
    let folder = tempfile::tempdir()?;
    for round in 0..12 {
        let threads = if round % 2 == 0 { "1" } else { "2" };
        let (child, mut said) = world.observe(folder.path(), &["--json", "--threads", threads])?;
        world.connections()?;
        signal(&child, "-TERM")?;
        let output = child.wait_with_output()?;
        let mut rest = String::new();
        said.read_to_string(&mut rest)?;
        assert!(output.status.success(), "{rest}");
        let text = String::from_utf8(output.stdout)?;
        let rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|row: &Value| row["kind"] == "connection")
            .collect();
        assert_eq!(rows.len(), CONNECTIONS, "round {round}: {text}{rest}");
        for row in &rows {
            assert_eq!(row["class"], "full", "round {round}: {row}");
            assert!(row["tls_handshake"].is_u64(), "round {round}: {row}");
        }
    }
    Ok(())
}

/// The rows of connections in a folder.
fn rows(folder: &Path) -> usize {
    let found = export::Records::open(&[folder], export::TimeRange::default());
    found.map_or(0, |records| records.flatten().count())
}

/// By SIGKILL: what was written at the interval stays.
fn killed() -> TestResult {
    let world = World::new()?;
    let folder = tempfile::tempdir()?;
    let arguments = ["--parquet", "rows", "--flush", "1s"];
    let (mut child, _said) = world.observe(folder.path(), &arguments)?;
    world.connections()?;
    let (kept, begun) = (folder.path().join("rows"), Instant::now());
    while rows(&kept) < CONNECTIONS {
        assert!(begun.elapsed() < PATIENCE, "{} rows", rows(&kept));
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&child, "-KILL")?;
    child.wait()?;
    assert_eq!(rows(&kept), CONNECTIONS);
    // Without the interval they are in memory, and the text says for how long.
    let (mut child, _said) = world.observe(folder.path(), &["--parquet", "usual"])?;
    world.connections()?;
    signal(&child, "-KILL")?;
    child.wait()?;
    assert_eq!(rows(&folder.path().join("usual")), 0);
    Ok(())
}
