//! Calibrates the pump over veth pairs and TAP devices and prints what it found:
//! `cargo bench -p pump [-- OPTIONS]`.
//!
//! Without `--bench` (as `cargo test --benches` runs it): shortened. `--rounds N`: A B A B, N rounds.
//! `--cpu N`: the pump's processor; the sender gets another. `--block`, `--no-realtime`.
//! `--sender-realtime`: see `CalibrationOptions`. `--bytes N`: this frame length only. `--frames N`:
//! so many for each delay. `--ring N`: frames a port holds. `--offload`: super-segments. `--json`:
//! one line of JSON a calibration.

mod support;

use std::time::Duration;

use pump::{Calibration, CalibrationOptions, CalibrationRig, Options, Realtime, Timing};
use support::{Kind, Node, Result};

struct Arguments {
    options: CalibrationOptions,
    rounds: u32,
    json: bool,
}

fn arguments() -> Result<Arguments> {
    let mut options = CalibrationOptions::default();
    let (mut rounds, mut json, mut short) = (1, false, true);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<usize> { Ok(words.next().unwrap_or_default().parse()?) };
        match word.as_str() {
            "--rounds" => rounds = number()? as u32,
            "--cpu" => {
                let cpu = number()?;
                options.pump.cpu = Some(cpu);
                options.sender_cpu =
                    packet::thread::allowed_cpus().into_iter().find(|other| *other != cpu);
            }
            "--ring" => options.pump.ring_frames = number()? as u32,
            "--block" => options.pump.timing = Timing::Block,
            "--no-realtime" => options.pump.realtime = Realtime::Off,
            "--offload" => options.pump = Options { offload: true, ..Options::offload() },
            "--sender-realtime" => options.sender_realtime = true,
            "--bytes" => options.frame_bytes = vec![number()? as u32],
            "--frames" => options.frames = number()? as u32,
            "--json" => json = true,
            // What `cargo bench` adds, and `cargo test --benches` does not.
            "--bench" => short = false,
            "--test" => {}
            other if other.starts_with("--") => {
                return Err(format!("unknown option {other}").into());
            }
            _ => {}
        }
    }
    if short {
        options.frames = 20;
        options.capacity_time = Duration::from_millis(20);
    }
    Ok(Arguments { options, rounds, json })
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    if let Err(error) = support::enter() {
        println!("SKIPPED: {error}");
        return Ok(());
    }
    for round in 0..arguments.rounds {
        for kind in [Kind::Veth, Kind::Tap] {
            match calibrate(kind, round, &arguments.options) {
                Ok(result) if arguments.json => println!("{}", serde_json::to_string(&result)?),
                Ok(result) => print(&result),
                Err(error) if kind == Kind::Tap => println!("tap: SKIPPED: {error}"),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn calibrate(kind: Kind, round: u32, options: &CalibrationOptions) -> Result<Calibration> {
    let offload = options.pump.offload;
    let a = Node::new(kind, &format!("a{round}"), offload)?;
    let b = Node::new(kind, &format!("b{round}"), offload)?;
    let rig = CalibrationRig {
        backend: if kind == Kind::Veth { "veth" } else { "tap" }.to_owned(),
        a: a.port,
        b: b.port,
        far_a: a.socket,
        far_b: b.socket,
    };
    Ok(pump::calibrate(rig, options, |_, _| std::ops::ControlFlow::Continue(()))?)
}

fn print(result: &Calibration) {
    let mode = result.mode;
    println!(
        "{}: {}, {}, {} processors",
        result.backend,
        if mode.spins { "spins" } else { "blocks" },
        if mode.realtime { "real time" } else { "no real time" },
        mode.cpus
    );
    let us = |nanos: i64| nanos as f64 / 1e3;
    for check in &result.delays {
        let (release, way) = (check.release_error, check.one_way_error);
        println!(
            "  delay {:>6}: release p50 {:.1} p99 {:.1} max {:.1} us; one way p50 {:.1} p99 {:.1} \
             max {:.1} us, jitter {:.1} us",
            check.configured.to_string(),
            us(release.p50_ns as i64),
            us(release.p99_ns as i64),
            us(release.max_ns as i64),
            us(way.p50_ns),
            us(way.p99_ns),
            us(way.max_ns),
            us(check.jitter_ns as i64),
        );
    }
    let model = result.model_difference;
    println!(
        "  against the model: p50 {:.1} p99 {:.1} max {:.1} us",
        us(model.p50_ns),
        us(model.p99_ns),
        us(model.max_ns)
    );
    for one in &result.capacity {
        println!(
            "  {:>4} B: {:>4.0} of {:>4.0} thousand frames/s, {:>5.0} ns CPU and {:.3} calls a \
             frame, busy {:.2}",
            one.frame_bytes,
            one.frames_per_second / 1e3,
            one.offered_per_second / 1e3,
            one.cpu_ns_per_frame,
            one.calls_per_frame,
            one.busy
        );
    }
    for warning in result.warnings() {
        println!("  warning: {warning}");
    }
}
