//! What the gateway costs beside other pairs of TLS proxies: `cargo bench -p gateway --bench speed [-- OPTIONS]`.
//!
//! Client, proxy, proxy, server: stunnel, HAProxy and Ghostunnel in the gateway's place, in turns, in a lab of its own,
//! of which nothing stays behind whatever ends it. Connections per second with full handshakes and the CPU time of
//! each side for one, memory of an idle one, downloads, and how much later a response comes than without proxies.
//!
//! Without `--bench` (as `cargo test --benches` runs it): shortened. `--rounds N`; `--millis N`: each part of a round;
//! `--idle N`: connections whose memory is measured. `--pairs LIST`: these alone, of `direct`, `wiretax-tls13`,
//! `wiretax-none` (TLS after TCP's handshake), `stunnel`, `haproxy`, `ghostunnel`. `--stunnel`, `--haproxy`,
//! `--ghostunnel PROGRAM`: where they are. `--json FILE`: every round's figures. `--unread LIST`, as `50,800`: memory
//! of the gateways beside so many clients that do not read, and nothing else.

mod beside;

use std::path::PathBuf;

use beside::{Pair, Plan, Programs};
use lab_test::TestResult;

struct Arguments {
    plan: Plan,
    pairs: Vec<Pair>,
    programs: Programs,
    json: Option<PathBuf>,
    unread: Vec<usize>,
}

fn arguments() -> TestResult<Arguments> {
    let full = std::env::args().any(|word| word == "--bench");
    let mut read = Arguments {
        plan: if full { Plan::FULL } else { Plan::SHORT },
        pairs: Pair::ALL.iter().copied().filter(|pair| *pair != Pair::Tight).collect(),
        programs: Programs::default(),
        json: None,
        unread: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut text = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--rounds" => read.plan.rounds = text()?.parse()?,
            "--millis" => read.plan.seconds = f64::from(text()?.parse::<u32>()?) / 1e3,
            "--idle" => read.plan.idle = text()?.parse()?,
            "--pairs" => {
                read.pairs = text()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--stunnel" => read.programs.stunnel = Some(text()?.into()),
            "--haproxy" => read.programs.haproxy = Some(text()?.into()),
            "--ghostunnel" => read.programs.ghostunnel = Some(text()?.into()),
            "--unread" => {
                read.unread = text()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--json" => read.json = Some(text()?.into()),
            // What cargo adds.
            "--bench" | "--test" => {}
            other if other.starts_with("--") => {
                return Err(format!("unknown option {other}").into());
            }
            _ => {}
        }
    }
    if read.plan.rounds == 0 || read.plan.seconds == 0.0 || read.plan.idle == 0 {
        return Err("--rounds, --millis and --idle are at least 1".into());
    }
    if !read.pairs.contains(&Pair::Direct) {
        read.pairs.insert(0, Pair::Direct);
    }
    Ok(read)
}

fn main() -> TestResult {
    if let Some(ended) = beside::ours::side() {
        return ended;
    }
    let arguments = arguments()?;
    if let Err(error) = lab::enter(&lab::EnterOptions::new()) {
        println!("SKIPPED: {error}");
        return Ok(());
    }
    if !beside::has_processes() {
        println!("SKIPPED: the lab has no /proc of its own here");
        return Ok(());
    }
    if !arguments.unread.is_empty() {
        beside::unread::print(&beside::unread::measure(&arguments.unread)?);
        return Ok(());
    }
    let outcome = beside::measure(&arguments.pairs, &arguments.programs, arguments.plan)?;
    beside::print(&outcome)?;
    if let Some(file) = arguments.json {
        std::fs::write(file, serde_json::to_string_pretty(&outcome)?)?;
    }
    Ok(())
}
