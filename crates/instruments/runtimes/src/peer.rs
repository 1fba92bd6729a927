//! A program as a server and as a client.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::child::Talker;
use crate::toolchain::NO_FIGURES;
use crate::{
    ClientPlan, Counts, Described, Error, Extent, Identity, Pins, Runtime, ServerPlan, Toolchain,
    Workload,
};

/// What a program may take to start and to answer: a virtual machine on a busy computer is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one connection may take on the average, where they are counted.
const SLOWEST: Duration = Duration::from_millis(100);

/// One line of a program's.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
enum Message {
    Described(Described),
    Listening { port: u16 },
    Measuring {},
    Counts(Counts),
    Unsupported { why: String },
    Failed { why: String },
}

/// A built program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    toolchain: Toolchain,
    folder: PathBuf,
}

/// What both sides counted in the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// The server's runtime.
    pub server: Described,
    /// The client's runtime.
    pub client: Described,
    /// The server's part.
    pub served: Counts,
    /// The client's part.
    pub made: Counts,
}

impl Program {
    pub(crate) fn new(toolchain: Toolchain, folder: PathBuf) -> Self {
        Self { toolchain, folder }
    }

    /// Of which runtime.
    #[must_use]
    pub const fn runtime(&self) -> Runtime {
        self.toolchain.runtime
    }

    /// Where it is: the folder holds Go's program `peer` or Java's classes.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn command(&self) -> Command {
        match &self.toolchain.launcher {
            Some(java) => {
                let mut command = Command::new(java);
                // Bounded memory; otherwise a server's defaults. Threads that compile and collect stay,
                // for the CPU time of one that has ended is lost to the count.
                command
                    .args([
                        "-server",
                        NO_FIGURES,
                        "-Xmx512m",
                        "-XX:-UseDynamicNumberOfCompilerThreads",
                    ])
                    .args(["-XX:-UseDynamicNumberOfGCThreads", "-cp"])
                    .arg(&self.folder)
                    .arg("Peer");
                command
                    .env_remove("JAVA_TOOL_OPTIONS")
                    .env_remove("JDK_JAVA_OPTIONS")
                    .env_remove("CLASSPATH");
                command
            }
            None => {
                let mut command = Command::new(self.folder.join("peer"));
                command.env_remove("GODEBUG").env_remove("GOGC").env_remove("GOMAXPROCS");
                command
            }
        }
    }

    fn start(&self, job: &str) -> Result<(Talker, Described), Error> {
        let mut talker = Talker::start(self.runtime(), &mut self.command())?;
        talker.say(job);
        match hear(&mut talker, PATIENCE)? {
            Message::Described(described) => Ok((talker, described)),
            other => Err(unexpected(self.runtime(), &other)),
        }
    }

    /// What its runtime says of itself.
    ///
    /// # Errors
    /// What came of the program.
    pub fn describe(&self) -> Result<Described, Error> {
        self.start("mode=describe\nthreads=1\n\n").map(|(_, described)| described)
    }

    /// Starts it as a server on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the runtime lacks what is pinned; otherwise what came of the program.
    pub fn serve(&self, plan: &ServerPlan) -> Result<Serving, Error> {
        let mut job = job("serve", plan.pins, &plan.identity);
        put(&mut job, "threads", plan.threads.max(1));
        put(&mut job, "tickets", u8::from(plan.tickets));
        put(&mut job, "body", plan.body);
        put(&mut job, "chain", &plan.identity.chain);
        put(&mut job, "key", &plan.identity.key);
        job.push('\n');
        let (mut talker, described) = self.start(&job)?;
        match hear(&mut talker, PATIENCE)? {
            Message::Listening { port } if port != 0 => {
                Ok(Serving { talker, described, address: (Ipv4Addr::LOCALHOST, port).into() })
            }
            other => Err(unexpected(self.runtime(), &other)),
        }
    }

    /// Runs it as a client to its end. `at` is called before the measured time begins and after it has
    /// ended; connections are under way both times.
    ///
    /// # Errors
    /// As [`Program::serve`], and those of `at`; a failing connection is counted, and no error here.
    pub fn connect(
        &self,
        plan: &ClientPlan,
        to: SocketAddr,
        mut at: impl FnMut(Moment) -> Result<(), Error>,
    ) -> Result<(Described, Counts), Error> {
        let mut job = job("connect", plan.pins, &plan.identity);
        put(&mut job, "address", to);
        put(&mut job, "threads", plan.threads.max(1));
        put(&mut job, "at_once", plan.at_once.max(1));
        put(&mut job, "tickets", 1);
        put(&mut job, "resume", u8::from(plan.workload == Workload::Resume));
        put(&mut job, "warm", plan.warm);
        let (milliseconds, connections) = match plan.extent {
            Extent::Time(time) => (time.as_millis(), 0),
            Extent::Connections(connections) => (0, connections),
        };
        put(&mut job, "milliseconds", milliseconds);
        put(&mut job, "connections", connections);
        put(&mut job, "roots", &plan.identity.roots);
        job.push('\n');
        let (mut talker, described) = self.start(&job)?;
        match hear(&mut talker, PATIENCE.saturating_add(SLOWEST.saturating_mul(plan.warm)))? {
            Message::Measuring {} => {
                at(Moment::Begins)?;
                talker.say("begin\n");
            }
            other => return Err(unexpected(self.runtime(), &other)),
        }
        let patience = match plan.extent {
            Extent::Time(time) => PATIENCE.saturating_add(time),
            Extent::Connections(connections) => {
                PATIENCE.saturating_add(SLOWEST.saturating_mul(connections))
            }
        };
        match hear(&mut talker, patience)? {
            Message::Counts(counts) => {
                at(Moment::Ends)?;
                Ok((described, counts))
            }
            other => Err(unexpected(self.runtime(), &other)),
        }
    }
}

/// When a client calls back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The measured time begins when the call returns.
    Begins,
    /// It has ended.
    Ends,
}

/// A server that runs; killed when dropped.
#[derive(Debug)]
pub struct Serving {
    talker: Talker,
    described: Described,
    address: SocketAddr,
}

impl Serving {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it runs on.
    #[must_use]
    pub const fn described(&self) -> &Described {
        &self.described
    }

    /// Its counts begin anew.
    ///
    /// # Errors
    /// What came of the program.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.talker.say("restart\n");
        match hear(&mut self.talker, PATIENCE)? {
            Message::Measuring {} => Ok(()),
            other => Err(unexpected(self.talker.runtime, &other)),
        }
    }

    /// What it has counted since it was started, or since its counts began anew.
    ///
    /// # Errors
    /// What came of the program.
    pub fn counts(&mut self) -> Result<Counts, Error> {
        self.talker.say("count\n");
        match hear(&mut self.talker, PATIENCE)? {
            Message::Counts(counts) => Ok(counts),
            other => Err(unexpected(self.talker.runtime, &other)),
        }
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// [`Error::Hung`] if it does not end.
    pub fn stop(mut self) -> Result<(), Error> {
        self.talker.say("stop\n");
        let runtime = self.talker.runtime;
        self.talker.wait(PATIENCE).map(|_| ()).ok_or(Error::Hung { runtime, after: PATIENCE })
    }
}

/// Both sides in the same measured time.
///
/// # Errors
/// What came of either program.
pub fn measure(
    server: &Program,
    served: &ServerPlan,
    client: &Program,
    made: &ClientPlan,
) -> Result<Measured, Error> {
    let mut serving = server.serve(served)?;
    let (mut served, to) = (None, serving.address());
    let (described, made) = client.connect(made, to, |moment| {
        match moment {
            Moment::Begins => serving.restart()?,
            // Before the client is gone with connections that would fail at the server.
            Moment::Ends => served = Some(serving.counts()?),
        }
        Ok(())
    })?;
    let served = match served {
        Some(counts) => counts,
        None => serving.counts()?,
    };
    let server = serving.described.clone();
    serving.stop()?;
    Ok(Measured { server, client: described, served, made })
}

/// The part of a job that both sides have.
fn job(mode: &str, pins: Pins, identity: &Identity) -> String {
    let mut job = String::new();
    put(&mut job, "mode", mode);
    put(&mut job, "version", pins.version);
    put(&mut job, "cipher", pins.cipher);
    put(&mut job, "group", pins.group);
    put(&mut job, "signature", pins.signature);
    put(&mut job, "certificate_group", pins.certificate_group());
    put(&mut job, "name", &identity.name);
    job
}

/// A line of a job: what stands in the value for a line's end is read as one.
fn put(job: &mut String, key: &str, value: impl std::fmt::Display) {
    let value = value.to_string().replace('\r', "").replace('\n', "\\n");
    // A String takes all that is written to it.
    let _ = writeln!(job, "{key}={value}");
}

fn hear(talker: &mut Talker, patience: Duration) -> Result<Message, Error> {
    let line = talker.hear(patience)?;
    let runtime = talker.runtime;
    match serde_json::from_str(&line) {
        Ok(Message::Unsupported { why }) => Err(Error::Unsupported { runtime, why }),
        Ok(Message::Failed { why }) => Err(Error::Failed { runtime, why }),
        Ok(message) => Ok(message),
        Err(_) => Err(Error::Rubbish { runtime, line: line.chars().take(120).collect() }),
    }
}

fn unexpected(runtime: Runtime, message: &Message) -> Error {
    Error::Rubbish { runtime, line: format!("{message:?}").chars().take(120).collect() }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A shell script in a program's place.
    fn fake(script: &str) -> (tempfile::TempDir, Program) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peer");
        lab_test::executable(&path, &format!("#!/bin/sh\n{script}\n"));
        let toolchain = Toolchain {
            runtime: Runtime::Go,
            compiler: "go".into(),
            launcher: None,
            version: String::new(),
        };
        let program = Program::new(toolchain, folder.path().to_path_buf());
        (folder, program)
    }

    fn plan() -> ServerPlan {
        let text = String::new;
        ServerPlan {
            pins: Pins { version: 0x0304, cipher: 0x1301, group: 29, signature: 0x0403 },
            identity: Identity { chain: text(), key: text(), roots: text(), name: text() },
            threads: 1,
            tickets: false,
            body: 0,
        }
    }

    const DESCRIBED: &str = r#"echo '{"event":"described","library":"l","version":"v","build_flags":"","cpu_features":"","functions":0,"notes":[]}'"#;

    #[test]
    fn a_crash_is_reported_with_its_last_words() {
        for before in ["", DESCRIBED] {
            let (_folder, program) = fake(&format!("{before}\necho 'out of luck' >&2\nexit 7"));
            match program.serve(&plan()).unwrap_err() {
                Error::Crashed { runtime: Runtime::Go, status, stderr } => {
                    assert!(status.contains('7'), "{status}");
                    assert_eq!(stderr, "out of luck");
                }
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn rubbish_is_reported_and_bounded() {
        let port = format!(
            "{DESCRIBED}\necho '{{\"event\":\"listening\",\"port\":70000}}'; exec sleep 60"
        );
        let order = format!("{DESCRIBED}\n{DESCRIBED}; exec sleep 60");
        for script in [
            "echo hello; exec sleep 60",
            "echo '{\"event\":\"counts\"}'; exec sleep 60",
            "yes | tr -d '\\n'",
            &port,
            &order,
        ] {
            let (_folder, program) = fake(script);
            match program.serve(&plan()).unwrap_err() {
                Error::Rubbish { runtime: Runtime::Go, line } => {
                    assert!(line.chars().count() <= 720, "{line}")
                }
                other => panic!("{script}: {other}"),
            }
        }
    }

    #[test]
    fn a_program_that_says_nothing_is_killed() {
        let (_folder, program) = fake("exec sleep 600");
        let mut talker = Talker::start(Runtime::Go, &mut program.command()).unwrap();
        let error = hear(&mut talker, Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, Error::Hung { runtime: Runtime::Go, .. }), "{error}");
        assert!(talker.wait(Duration::ZERO).is_some(), "it still runs");
    }

    #[test]
    fn its_own_words_come_through() {
        let (_folder, program) =
            fake(&format!("{DESCRIBED}\necho '{{\"event\":\"unsupported\",\"why\":\"no\"}}'"));
        let error = program.serve(&plan()).unwrap_err();
        assert_eq!(error.to_string(), "go cannot do this: no");
        let (_folder, program) = fake("echo '{\"event\":\"failed\",\"why\":\"tired\"}'");
        assert_eq!(program.serve(&plan()).unwrap_err().to_string(), "go failed: tired");
    }

    #[test]
    fn a_key_goes_in_one_line() {
        let mut job = String::new();
        put(&mut job, "key", "-----BEGIN\r\nabc\n");
        assert_eq!(job, "key=-----BEGIN\\nabc\\n\n");
    }
}
