//! OpenSSL's command line as the other end: the distribution's build, not the one that is linked.

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conn::{
    ClientPlan, ClientTransport, Outcome, Server, ServerPlan, ServerRecord, ServerTransport,
};
use lab::{Lab, Link, Node};
use tls::{EarlyData, Identity, KeyType, Library, Trust, Version};

use lab_test::net::sleeping;
use lab_test::{Need, Test, TestResult, skip};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("s_server_serves_and_resumes_our_clients", s_server),
        Test::inside("s_server_rejects_early_data_of_our_clients", s_server_rejects_early_data),
        Test::inside("s_client_is_served_and_resumed_by_our_servers", s_client),
        Test::inside("s_client_sends_early_data_to_our_servers", s_client_early_data),
    ]
}

const NAME: &str = "server.wiretax.test";
const PORT: u16 = 4433;
const LIBRARIES: [Library; 2] = [Library::Rustls, Library::OpenSsl];
const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER: &str = "WIRETAX ANSWERS\n";
const MAX_EARLY_DATA: u32 = 1024;

/// Two nodes, a certificate on disk, and the program to be started on either node.
struct Stage {
    folder: tempfile::TempDir,
    identity: Arc<Identity>,
    client: Node,
    server: Node,
    _link: Link,
    _lab: Lab,
}

impl Stage {
    fn new() -> TestResult<Stage> {
        if Command::new("openssl").arg("version").output().is_err() {
            return skip(
                Need::Openssl,
                "there is no openssl program; install it to have handshakes judged",
            );
        }
        let mut lab = Lab::new(sleeping(81))?;
        let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
        let link = lab.connect(&client, &server, &linkmodel::Path::default())?;
        let folder = tempfile::tempdir()?;
        let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[NAME])?);
        std::fs::write(folder.path().join("chain.pem"), identity.chain_pem()?)?;
        std::fs::write(folder.path().join("root.pem"), identity.root_pem()?)?;
        std::fs::write(folder.path().join("key.pem"), identity.private_key_pem()?)?;
        Ok(Stage { folder, identity, client, server, _link: link, _lab: lab })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts `openssl` on a node: a process that it starts is in its network namespace.
    fn start(&self, node: &Node, arguments: &[&str]) -> TestResult<Program> {
        let output = self.path("output");
        let file = File::create(&output)?;
        let mut command = Command::new("openssl");
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::piped());
        command.stdout(file.try_clone()?).stderr(file);
        let mut child = node.run(move || command.spawn())??;
        let stdin = child.stdin.take();
        Ok(Program { child, stdin, output })
    }

    fn s_server(&self, version: Version, more: &[&str]) -> TestResult<Program> {
        let port = PORT.to_string();
        let common =
            ["s_server", "-4", "-accept", &port, "-cert", "chain.pem", "-key", "key.pem", "-rev"];
        let arguments = [&common, [flag(version)].as_slice(), more].concat();
        let program = self.start(&self.server, &arguments)?;
        program.wait_for("ACCEPT")?;
        Ok(program)
    }

    /// One connection of ours to s_server, that sends back a line turned round.
    fn connect(
        &self,
        client: &tls::Client,
        ticket: Option<tls::Ticket>,
        early_data: bool,
    ) -> TestResult<Outcome> {
        let address = SocketAddr::new(IpAddr::V4(self.server.addr4()?), PORT);
        let client = client.clone();
        let attempt = self.client.spawn(move || async move {
            let plan = ClientPlan {
                ticket,
                early_data,
                request: b"abc\n".to_vec(),
                response_len: 4,
                await_ticket: Some(Duration::from_secs(2)),
                ..ClientPlan::new(address, ClientTransport::tls(&client))
            };
            conn::connect(plan).await
        });
        let outcome = attempt.join()??;
        assert_eq!(outcome.response, b"cba\n");
        Ok(outcome)
    }

    fn client_config(&self, library: Library, version: Version) -> tls::ClientConfig {
        let trust = Trust::Roots(self.identity.roots());
        let mut config = tls::ClientConfig::new(library, NAME, trust);
        config.versions = vec![version];
        config
    }

    /// Our server, on the server's node.
    fn serve(
        &self,
        library: Library,
        version: Version,
        max_early_data: u32,
    ) -> TestResult<conn::Running> {
        let mut config = tls::ServerConfig::new(library, Arc::clone(&self.identity));
        config.versions = vec![version];
        config.max_early_data = max_early_data;
        let transport = ServerTransport::tls(tls::Server::new(&config)?);
        let plan = ServerPlan { response: ANSWER.into(), ..ServerPlan::new(transport) };
        let address = SocketAddr::new(IpAddr::V4(self.server.addr4()?), 0);
        let running = self
            .server
            .spawn(move || async move { Server::bind(address, plan).map(Server::spawn) });
        Ok(running.join()??)
    }

    /// One connection of s_client to our server: what it printed, and the server's record.
    fn s_client(
        &self,
        server: &conn::Running,
        version: Version,
        more: &[&str],
        request: &str,
    ) -> TestResult<(String, ServerRecord)> {
        let address = server.address().to_string();
        let common = ["s_client", "-connect", &address, "-servername", NAME, "-CAfile", "root.pem"];
        let checked = ["-verify_return_error", flag(version)];
        let arguments = [common.as_slice(), &checked, more].concat();
        let mut program = self.start(&self.client, &arguments)?;
        program.say(request)?;
        program.wait_for(ANSWER.trim_end())?;
        let output = program.end()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(record) = server.log().drain().pop() {
                return Ok((output, record));
            }
            if Instant::now() > deadline {
                return Err("the server logged no connection".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn flag(version: Version) -> &'static str {
    match version {
        Version::Tls12 => "-tls1_2",
        Version::Tls13 => "-tls1_3",
    }
}

/// An openssl that runs. Killed when dropped.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    output: PathBuf,
}

impl Program {
    fn output(&self) -> TestResult<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(Path::new(&self.output))?).into_owned())
    }

    fn say(&mut self, text: &str) -> TestResult {
        let stdin = self.stdin.as_mut().ok_or("its input is closed")?;
        stdin.write_all(text.as_bytes())?;
        Ok(stdin.flush()?)
    }

    /// Looks until it has printed `text`, for a bounded time.
    fn wait_for(&self, text: &str) -> TestResult {
        let deadline = Instant::now() + PATIENCE;
        while !self.output()?.contains(text) {
            if Instant::now() > deadline {
                return Err(format!("openssl did not print `{text}`:\n{}", self.output()?).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Closes its input, at which s_client ends; what it printed.
    fn end(mut self) -> TestResult<String> {
        self.stdin = None;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                return Err(format!("openssl does not end:\n{}", self.output()?).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.output()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn facts(outcome: &Outcome) -> TestResult<&tls::Facts> {
    outcome.facts.as_ref().ok_or_else(|| "no TLS".into())
}

fn s_server() -> TestResult {
    let stage = Stage::new()?;
    for version in [Version::Tls12, Version::Tls13] {
        let _server = stage.s_server(version, &[])?;
        for library in LIBRARIES {
            let client = tls::Client::new(&stage.client_config(library, version))?;
            let mut first = stage.connect(&client, None, false)?;
            let full = facts(&first)?;
            assert_eq!((full.version, full.resumed), (Some(version), false), "{library}");
            let ticket = first.tickets.pop();
            assert!(ticket.is_some(), "{library}, {version}: no ticket");
            let again = stage.connect(&client, ticket, false)?;
            assert!(facts(&again)?.resumed, "{library}, {version}");
        }
    }
    Ok(())
}

/// Its tickets allow early data, but it reads none: resumed, and the request is sent again.
fn s_server_rejects_early_data() -> TestResult {
    let stage = Stage::new()?;
    let _server = stage.s_server(Version::Tls13, &["-max_early_data", "1024"])?;
    for library in LIBRARIES {
        let mut config = stage.client_config(library, Version::Tls13);
        config.early_data = true;
        let client = tls::Client::new(&config)?;
        let ticket = stage.connect(&client, None, false)?.tickets.pop();
        let again = stage.connect(&client, ticket, true)?;
        assert!(again.early_request && again.timeline.request_resent.is_some(), "{library}");
        let facts = facts(&again)?;
        assert_eq!((facts.resumed, facts.early_data), (true, EarlyData::Rejected), "{library}");
    }
    Ok(())
}

fn s_client() -> TestResult {
    let stage = Stage::new()?;
    for version in [Version::Tls12, Version::Tls13] {
        for library in LIBRARIES {
            let server = stage.serve(library, version, 0)?;
            let out = ["-sess_out", "session.pem"];
            let (printed, record) = stage.s_client(&server, version, &out, "?")?;
            assert!(printed.contains("New, TLSv1."), "{library}: {printed}");
            assert!(printed.contains("Verify return code: 0 (ok)"), "{library}: {printed}");
            assert!(!record.facts.as_ref().is_some_and(|facts| facts.resumed), "{library}");

            let back = ["-sess_in", "session.pem"];
            let (printed, record) = stage.s_client(&server, version, &back, "?")?;
            assert!(printed.contains("Reused, TLSv1."), "{library}: {printed}");
            assert!(record.facts.is_some_and(|facts| facts.resumed), "{library}");
            std::fs::remove_file(stage.path("session.pem"))?;
        }
    }
    Ok(())
}

fn s_client_early_data() -> TestResult {
    let stage = Stage::new()?;
    std::fs::write(stage.path("early"), "?")?;
    for library in LIBRARIES {
        let server = stage.serve(library, Version::Tls13, MAX_EARLY_DATA)?;
        let out = ["-sess_out", "session.pem"];
        stage.s_client(&server, Version::Tls13, &out, "?")?;
        let early = ["-sess_in", "session.pem", "-early_data", "early"];
        let (printed, record) = stage.s_client(&server, Version::Tls13, &early, "")?;
        assert!(printed.contains("Early data was accepted"), "{library}: {printed}");
        assert!(record.early_request, "{library}");
        let facts = record.facts.ok_or("no TLS")?;
        assert_eq!((facts.resumed, facts.early_data), (true, EarlyData::Accepted), "{library}");
        std::fs::remove_file(stage.path("session.pem"))?;
    }
    Ok(())
}
