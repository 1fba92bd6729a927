//! Memory of both gateways while clients ask for much and do not read, and after these clients have gone.

use std::time::{Duration, Instant};

use lab_test::TestResult;
use tokio::net::TcpStream;

use super::measure::{difference, sides};
use super::pairs::{Pair, Process};
use super::site::Site;
use super::traffic;

/// Connections that are opened at once.
const AT_ONCE: usize = 16;
/// Memory is settled once it has changed by less than [`STEADY`] in this time.
const LOOK: Duration = Duration::from_secs(1);
/// Bytes.
const STEADY: f64 = 256e3;
/// Free memory has gone back to the system by then.
const GIVEN_BACK: Duration = Duration::from_secs(12);
/// It is looked at no longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// One number of clients. Memory is resident and in bytes: the client's side, the server's.
#[derive(Debug, Clone, Copy)]
pub struct Unread {
    pub connections: usize,
    /// Growth while the clients do not read.
    pub held: [f64; 2],
    /// Growth that is left after they have gone.
    pub kept: [f64; 2],
    /// Time of a small request of another client beside them, in microseconds.
    pub beside_us: f64,
}

/// Starts a new pair of gateways for each number of clients. The lab is entered already.
pub fn measure(counts: &[usize]) -> TestResult<Vec<Unread>> {
    let site = Site::new()?;
    let program = std::env::current_exe()?;
    let mut rows = Vec::new();
    for &connections in counts {
        let started = Pair::Embedded.start(&site, Some(&program))?;
        rows.push(site.on_client(move || async move {
            one(started.to, &started.processes, connections).await
        })?);
        eprintln!("{connections} connections: done");
    }
    Ok(rows)
}

async fn one(
    to: std::net::SocketAddr,
    processes: &[Process],
    connections: usize,
) -> TestResult<Unread> {
    // What the first connections make a process allocate is no connection's memory.
    let first = traffic::hold(to, 2 * AT_ONCE, AT_ONCE).await?;
    traffic::release(first, AT_ONCE).await;
    let before = settled(processes).await?;
    let held = traffic::hold(to, connections, AT_ONCE).await;
    let held: Vec<TcpStream> = held.map_err(|error| format!("a connection to hold: {error}"))?;
    for stream in &held {
        traffic::ask_for_ever(stream).await?;
    }
    let full = settled(processes).await?;
    let beside = traffic::first_responses(to, 1).await;
    let beside = beside.map_err(|error| format!("another client: {error}"))?;
    let beside_us = beside.into_iter().sum();
    traffic::release(held, AT_ONCE).await;
    tokio::time::sleep(GIVEN_BACK).await;
    let after = settled(processes).await?;
    Ok(Unread {
        connections,
        held: difference(full, before),
        kept: difference(after, before),
        beside_us,
    })
}

/// Memory of both sides once it changes no more.
async fn settled(processes: &[Process]) -> TestResult<[f64; 2]> {
    let began = Instant::now();
    let mut last = sides(processes, Process::memory)?;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = sides(processes, Process::memory)?;
        let steady = difference(now, last).iter().all(|change| change.abs() < STEADY);
        if steady || began.elapsed() > PATIENCE {
            return Ok(now);
        }
        last = now;
    }
}

/// Prints them as a table.
pub fn print(rows: &[Unread]) {
    println!(
        "| connections | connect holds, MB | serve holds, MB | connect keeps, MB | serve keeps, MB | another client, ms |"
    );
    println!("|---:|---:|---:|---:|---:|---:|");
    for row in rows {
        let [held, kept] = [row.held, row.kept].map(|both| both.map(|bytes| bytes / 1e6));
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            row.connections,
            held[0],
            held[1],
            kept[0],
            kept[1],
            row.beside_us / 1e3
        );
    }
}
