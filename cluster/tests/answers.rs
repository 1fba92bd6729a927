//! A scheduler and two executors answer what DataFusion answers in process.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use cluster::at;
use common::{Cell, cells, make};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use query::QUESTIONS;

/// How long a process may take until it listens, and a question to be answered: long enough for a
/// busy machine. Nothing is measured.
const PATIENCE: Duration = Duration::from_secs(120);
/// Partitions of an exchange between executors.
const PARTITIONS: usize = 4;

/// A process that ends with this one, or when dropped.
struct Process {
    child: Child,
    name: &'static str,
    port: u16,
}

impl Process {
    fn start(name: &'static str, program: &str, port: u16, more: &[&str]) -> Process {
        let child = Command::new(program)
            .arg(port.to_string())
            .args(more)
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut process = Process { child, name, port };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(at(port)).is_err() {
            let ended = process.child.try_wait().expect("a child of ours");
            assert_eq!(ended, None, "the {name} ended");
            assert!(Instant::now() < until, "the {name} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ports that are free now.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind(at(0)).expect("a free port"));
    listeners.each_ref().map(|listener| listener.local_addr().expect("an address").port())
}

/// Addresses that listen in this process' children: IPv4 and IPv6, as the kernel lists them.
fn listening(process: &Process) -> Vec<String> {
    let pid = process.child.id();
    let sockets: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("a child of ours")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            let link = link.to_str()?.to_owned();
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let tables =
        ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // Local address, state (0A: listening), inode.
            let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
            let ours = *state == "0A" && sockets.iter().any(|socket| socket == inode);
            ours.then(|| (*local).to_owned())
        })
        .collect()
}

async fn answer(context: &SessionContext, sql: &str) -> Vec<Vec<Cell>> {
    let plan = query::plan(context, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let answer = tokio::time::timeout(PATIENCE, plan.collect()).await;
    cells(&answer.expect("an answer in time").unwrap_or_else(|error| panic!("{sql}\n{error}")))
}

async fn here(dir: &Path) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(PARTITIONS);
    let context = SessionContext::new_with_config(config);
    query::register(&context, dir).await.expect("a data set of ours");
    context
}

async fn there(dir: &Path, scheduler: &Process) -> SessionContext {
    let config = SessionConfig::new_with_ballista().with_target_partitions(PARTITIONS);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let url = format!("df://{}", at(scheduler.port));
    let context = SessionContext::remote_with_state(&url, state).await.expect("the scheduler");
    query::register(&context, dir).await.expect("a data set of ours");
    context
}

async fn compare(dir: &Path, connections: u64, scheduler: &Process) {
    let (here, there) = (here(dir).await, there(dir, scheduler).await);
    // Both see all of it, and as many as were written.
    let count = "SELECT count(*) AS n, count(DISTINCT hour) AS hours FROM connections";
    for context in [&here, &there] {
        let [row] = &answer(context, count).await[..] else { panic!("one row") };
        let expected = [connections.to_string(), "5".to_owned()].map(Cell::Other);
        assert_eq!(row[..], expected);
    }
    for question in QUESTIONS {
        let (ours, theirs) =
            (answer(&here, question.sql).await, answer(&there, question.sql).await);
        assert!(!ours.is_empty(), "{}: no rows", question.name);
        assert_eq!(ours.len(), theirs.len(), "{}: rows", question.name);
        // The questions fix the order of their rows.
        for (row, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            let agree = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b));
            assert!(agree, "{}, row {row}:\n{a:?}\n{b:?}", question.name);
        }
        println!("{}: {} rows agree", question.name, ours.len());
    }
}

#[test]
fn a_cluster_answers_what_one_process_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("data");
    let connections = make(&dir, 5, 30_000).len() as u64;

    let [scheduler, first, second] = free_ports();
    let scheduler = Process::start("scheduler", env!("CARGO_BIN_EXE_scheduler"), scheduler, &[]);
    let works: [PathBuf; 2] = ["first", "second"].map(|name| folder.path().join(name));
    let executors: Vec<Process> = [first, second]
        .iter()
        .zip(&works)
        .map(|(port, work)| {
            fs::create_dir(work).expect("a folder of ours");
            let more = [&scheduler.port.to_string(), work.to_str().expect("UTF-8")];
            Process::start(
                "executor",
                env!("CARGO_BIN_EXE_executor"),
                *port,
                &more.map(|text| text),
            )
        })
        .collect();

    for process in executors.iter().chain([&scheduler]) {
        let listening = listening(process);
        assert!(!listening.is_empty());
        // 127.0.0.1, as the kernel writes it.
        let loopback = |address: &String| address.starts_with("0100007F:");
        assert!(listening.iter().all(loopback), "{}: {listening:?}", process.name);
    }

    cluster::runtime().expect("threads").block_on(async {
        // On a thread of the runtime, which has room for plans.
        let compared = tokio::spawn(async move { compare(&dir, connections, &scheduler).await });
        compared.await.expect("answers that agree");
    });
    for work in &works {
        let files = fs::read_dir(work).expect("a folder of ours").count();
        assert!(files > 0, "{}: an executor did nothing", work.display());
    }
}
