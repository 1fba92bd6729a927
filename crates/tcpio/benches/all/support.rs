//! What the benchmarks share: arguments, two nodes with a processor each, tables.

use std::time::Duration;

use lab::{Backend, Lab, LabOptions, Link, Node};
use linkmodel::Path;

use lab_test::TestResult;
use lab_test::net::Pair;

/// What the command line asks for.
pub struct Arguments {
    /// Run by `cargo bench`; else (by `cargo test --benches`) shortened, so that none rots.
    pub full: bool,
    /// A B A B: how often each is measured.
    pub rounds: usize,
    /// How long one measurement takes.
    pub time: Duration,
}

/// Reads `--rounds N` and `--seconds N`, and whether `--bench` is there.
pub fn arguments(rounds: usize, time: Duration) -> TestResult<Arguments> {
    let mut read = Arguments { full: false, rounds, time };
    let mut words = std::env::args().skip(1);
    let mut chosen = (None, None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => read.full = true,
            "--rounds" => chosen.0 = Some(words.next().unwrap_or_default().parse()?),
            "--seconds" => chosen.1 = Some(words.next().unwrap_or_default().parse()?),
            _ => {}
        }
    }
    if !read.full {
        (read.rounds, read.time) = (1, Duration::from_millis(100));
    }
    read.rounds = chosen.0.unwrap_or(read.rounds);
    read.time = chosen.1.map_or(read.time, Duration::from_secs_f64);
    Ok(read)
}

/// Two nodes joined by a bare veth pair, each on a processor of its own if there are two.
pub fn direct(offloads: bool) -> TestResult<Pair> {
    let options = LabOptions { backend: Backend::Direct, ..LabOptions::default() };
    let mut lab = Lab::new(options)?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    let link = lab.connect(&client, &server, &Path::default())?;
    let processors = packet::thread::allowed_cpus();
    for (node, number) in [(&client, 0), (&server, 1)] {
        if let (Some(cpu), 2..) = (processors.get(number).copied(), processors.len()) {
            node.run(move || packet::thread::pin(cpu))??;
        }
        if offloads {
            leave_work_to_the_device(node, &link)?;
        }
    }
    Ok(Pair { lab, client, server, link })
}

/// Turns on what the lab turns off: super-segments and unfinished checksums pass.
fn leave_work_to_the_device(node: &Node, link: &Link) -> TestResult {
    let name = link.ends()[0].interface.clone();
    Ok(node.run(move || {
        let all = packet::offload::Offloads {
            tx_checksum: true,
            scatter_gather: true,
            tso: true,
            gso: true,
            gro: true,
        };
        packet::offload::set(&name, all)
    })??)
}
