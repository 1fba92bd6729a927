//! One pair in one round: what it does in a second, what it adds, what it takes.

use std::cell::RefCell;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lab_test::TestResult;
use serde::Serialize;
use stats::Sample;

use super::pairs::{Process, Started};
use super::site::Site;
use super::traffic;

/// How much is measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Plan {
    /// A B A B: how often each pair has its turn.
    pub rounds: usize,
    /// Seconds of connections, and of each download.
    pub seconds: f64,
    /// Connections that are open at once while connections are counted.
    pub at_once: usize,
    /// Connections that stay open for the memory of one.
    pub idle: usize,
    /// Small requests on one connection.
    pub round_trips: usize,
    /// Connections one after another, for the time to their first response.
    pub openings: usize,
    /// Connections of the second download.
    pub downloads: usize,
}

impl Plan {
    /// Some four minutes with five pairs.
    #[allow(dead_code, reason = "the test takes the short one alone")]
    pub const FULL: Plan = Plan {
        rounds: 7,
        seconds: 1.0,
        at_once: 16,
        idle: 1000,
        round_trips: 2000,
        openings: 200,
        downloads: 8,
    };

    /// So that nothing of it rots.
    pub const SHORT: Plan = Plan {
        rounds: 1,
        seconds: 0.1,
        at_once: 4,
        idle: 20,
        round_trips: 20,
        openings: 5,
        downloads: 2,
    };
}

/// What one pair did in one round. Times are of clients, CPU time and memory of the proxies' processes.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Figures {
    /// Connections with one response, per second.
    pub connections_per_s: f64,
    /// Connections that came to nothing.
    pub failed: u64,
    /// CPU time per connection: the client's side, the server's.
    pub cpu_us_per_connection: [f64; 2],
    /// Bytes on the link per connection, both ways, Ethernet headers included.
    pub link_bytes_per_connection: f64,
    /// Of one connection.
    pub gbit_per_s: f64,
    /// Of several together.
    pub gbit_per_s_together: f64,
    /// CPU time of both sides per 10^9 bytes, by several connections.
    pub cpu_s_per_gbyte: f64,
    pub round_trip_us_p50: f64,
    pub round_trip_us_p99: f64,
    pub first_response_us_p50: f64,
    /// Resident memory of an idle connection: the client's side, the server's.
    pub kb_per_idle_connection: [f64; 2],
}

/// How long processes may settle before their memory is looked at.
const SETTLE: Duration = Duration::from_millis(200);

/// Measures a pair that has just been started; its processes end with it.
pub fn figures(site: &Site, started: Started, plan: Plan) -> TestResult<Figures> {
    site.on_client(move || async move { measure(started.to, &started.processes, plan).await })
}

async fn measure(to: SocketAddr, processes: &[Process], plan: Plan) -> TestResult<Figures> {
    let time = Duration::from_secs_f64(plan.seconds);
    // What the first connections make a process allocate is no connection's memory.
    let first = traffic::hold(to, 2 * plan.at_once, plan.at_once).await?;
    traffic::release(first, plan.at_once).await;
    let kb_per_idle_connection = idle(to, processes, plan).await?;

    let (cpu_before, bytes_before, from) = (cpu(processes)?, link_bytes()?, Instant::now());
    let counts = traffic::connections(to, plan.at_once, time).await?;
    let took = from.elapsed().as_secs_f64();
    let (used, bytes) = (difference(cpu(processes)?, cpu_before), link_bytes()? - bytes_before);
    if counts.done == 0 {
        return Err(format!("none of {} connections came through", counts.failed).into());
    }
    let done = counts.done as f64;

    let alone = traffic::download(to, 1, time, || ()).await?;
    let edges = RefCell::new(Vec::new());
    let edge = || edges.borrow_mut().push(cpu(processes).map(|[connect, serve]| connect + serve));
    let together = traffic::download(to, plan.downloads, time, edge).await?;
    let edges = edges.into_inner().into_iter().collect::<TestResult<Vec<f64>>>()?;
    let spent = edges.last().unwrap_or(&0.0) - edges.first().unwrap_or(&0.0);
    // What was under way is gone before round trips are timed.
    tokio::time::sleep(SETTLE).await;

    let trips = Sample::from_vec(traffic::round_trips(to, plan.round_trips).await?)?;
    let openings = Sample::from_vec(traffic::first_responses(to, plan.openings).await?)?;
    Ok(Figures {
        connections_per_s: done / took,
        failed: counts.failed,
        cpu_us_per_connection: used.map(|seconds| seconds * 1e6 / done),
        link_bytes_per_connection: bytes / done,
        gbit_per_s: alone * 8e-9,
        gbit_per_s_together: together * 8e-9,
        cpu_s_per_gbyte: spent * 1e9 / (together * plan.seconds),
        round_trip_us_p50: trips.median(),
        round_trip_us_p99: trips.quantile(0.99)?,
        first_response_us_p50: openings.median(),
        kb_per_idle_connection,
    })
}

/// Kilobytes (1000 bytes) that each side's process grows by for a connection that is open and idle.
async fn idle(to: SocketAddr, processes: &[Process], plan: Plan) -> TestResult<[f64; 2]> {
    tokio::time::sleep(SETTLE).await;
    let before = sides(processes, Process::memory)?;
    let held = traffic::hold(to, plan.idle, plan.at_once).await?;
    tokio::time::sleep(SETTLE).await;
    let grown = difference(sides(processes, Process::memory)?, before);
    traffic::release(held, plan.at_once).await;
    tokio::time::sleep(SETTLE).await;
    Ok(grown.map(|bytes| bytes / 1e3 / plan.idle as f64))
}

fn cpu(processes: &[Process]) -> TestResult<[f64; 2]> {
    sides(processes, Process::cpu)
}

/// Of the client's side and the server's; zero where there is no proxy.
pub fn sides(
    processes: &[Process],
    look: impl Fn(&Process) -> TestResult<f64>,
) -> TestResult<[f64; 2]> {
    match processes {
        [connect, serve] => Ok([look(connect)?, look(serve)?]),
        _ => Ok([0.0; 2]),
    }
}

pub fn difference(after: [f64; 2], before: [f64; 2]) -> [f64; 2] {
    [after[0] - before[0], after[1] - before[1]]
}

/// Bytes that the link of the calling thread's node has carried so far, both ways.
fn link_bytes() -> TestResult<f64> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix("link1:"));
    let fields: Vec<&str> = line.ok_or("there is no link1")?.split_whitespace().collect();
    // Bytes received are the first of its figures, bytes sent the ninth.
    let [received, sent] = [0, 8].map(|at| fields.get(at).copied().unwrap_or_default());
    Ok(received.parse::<f64>()? + sent.parse::<f64>()?)
}
