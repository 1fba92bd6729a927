//! Paths and trials over them as a job of the crate `host`: done by a thread of this process, or by a machine that
//! is a guest of this one.

use std::collections::BTreeMap;
use std::time::Duration;

use fault::{Fault, Problem};
use host::{Outlet, Registry, Worker};
use l2vpn::{KernelOptions, OwnOptions, Standing};
use lab::{Lab, LabOptions};
use serde::{Deserialize, Serialize};
use tester::{Addressing, Outcome, Port, Searching, Tester, Trial, Waiting};
use traffic::{Load, Sizes};
use units::{Delay, Rate};

use crate::plan::{PRECISION, search_time};
use crate::point::{AXES, Backend, Offered, Point, USUAL_FRAME};
use crate::sample::{Measured, sample};

/// A trial that is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The point, as the fields of a sample.
    pub(crate) point: BTreeMap<String, String>,
    /// Which of its trials this is.
    pub(crate) repeat: u32,
}

/// Paths, one after the other, and the trials over each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// How the lab is to be made.
    pub(crate) lab: LabOptions,
    /// The trials by path.
    pub(crate) rounds: Vec<Vec<Asked>>,
    /// How long frames are sent in a trial.
    pub(crate) trial: Delay,
    /// What keys are made of.
    pub(crate) seed: u64,
    /// What a command needs beside the point to measure it again.
    pub(crate) options: String,
}

/// Stands paths up and makes trials over them: a sample for each, as it ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Paths;

/// Those who do the study's jobs elsewhere: in a lab ([`lab::enter`]).
#[must_use]
pub fn workers() -> Registry {
    Registry::new().with(Paths)
}

impl Worker for Paths {
    const KIND: &'static str = "link-paths";
    type Job = Job;
    type Answer = ();

    fn work(&self, job: Job, outlet: &mut Outlet<'_>) -> Result<(), Problem> {
        for round in &job.rounds {
            if outlet.stopped() {
                return Ok(());
            }
            let asked = round.iter().map(|one| Ok((point_of(&one.point)?, one.repeat)));
            let asked: Vec<(Point, u32)> = asked.collect::<Result<_, Problem>>()?;
            measure_round(&job, &asked, outlet)?;
        }
        Ok(())
    }
}

fn point_of(fields: &BTreeMap<String, String>) -> Result<Point, Problem> {
    let sweep = fields.get("sweep").map_or("", String::as_str);
    let point = AXES.of_fields(fields, &Point::of_sweep(sweep));
    point
        .ok_or_else(|| Problem::new(Fault::Measurement, format!("this is not a point: {fields:?}")))
}

/// Bytes of the longest frame on any link of a path, without jumbo frames and with them.
const LONGEST_FRAME: u32 = 2048;
const LONGEST_JUMBO_FRAME: u32 = 9728;

/// Room for each frame of these points.
pub(crate) fn longest_frame<'a>(mut points: impl Iterator<Item = &'a Point>) -> u32 {
    let is_jumbo = |point: &Point| matches!(point.frame, Sizes::Fixed(size) if size > USUAL_FRAME);
    if points.any(is_jumbo) { LONGEST_JUMBO_FRAME } else { LONGEST_FRAME }
}

/// Stands a path up and makes its trials.
fn measure_round(
    job: &Job,
    asked: &[(Point, u32)],
    outlet: &mut Outlet<'_>,
) -> Result<(), Problem> {
    let Some((first, _)) = asked.first() else { return Ok(()) };
    let mut lab = Lab::new(job.lab)?;
    let topology = first.topology();
    let longest = longest_frame(asked.iter().map(|(point, _)| point));
    let standing = match first.backend {
        Backend::Own => {
            let mut options = OwnOptions { seed: job.seed, ..OwnOptions::default() };
            options.engine.frame_bytes = options.engine.frame_bytes.max(longest);
            Standing::of_own(&mut lab, &topology, &options)?
        }
        Backend::Kernel | Backend::Guest => {
            let options = KernelOptions { seed: job.seed, ..KernelOptions::default() };
            Standing::of_kernel(&mut lab, &topology, &options)?
        }
        Backend::Between => {
            return Err(Problem::new(Fault::Measurement, "no path lies between interfaces"));
        }
    };
    let [left, right] = &standing.ends;
    let open = |own: &l2vpn::End, other: &l2vpn::End| -> Result<Port, Problem> {
        let addressing = Addressing {
            source: own.mac,
            destination: own.next_hop,
            vlan: standing.vlan,
            from: own.ip,
            to: other.ip,
        };
        let interface = own.interface.clone();
        Ok(own.node.run(move || Port::open(&interface, addressing, longest))??)
    };
    let ports = [open(left, right)?, open(right, left)?];
    let mut tester = Tester::new(ports, longest as usize, Waiting::here());
    let path = Path { standing: &standing, hops: topology.hops, pseudowire: topology.pseudowire };
    for (point, repeat) in asked {
        if outlet.stopped() {
            break;
        }
        let measured = {
            let stop = || outlet.stopped();
            measure(&mut tester, point, job.trial.duration(), Some(&path), &stop)?
        };
        let Some(measured) = measured else { break };
        outlet.sample(&sample(point, *repeat, job.seed, &measured, &job.options))?;
    }
    Ok(())
}

/// A path whose counters are read around a trial.
pub(crate) struct Path<'a> {
    standing: &'a Standing,
    hops: u8,
    pseudowire: bool,
}

/// What a path has counted so far.
struct Counters {
    access: l2vpn::Counted,
    core: l2vpn::Counted,
    cpu: Option<Duration>,
    drops: Vec<(String, u64)>,
}

impl Path<'_> {
    fn counters(&self) -> Result<Counters, Problem> {
        // Between the provider's edges; without such, the first link.
        let core = if self.pseudowire { 2.min(self.hops) } else { 1 };
        Ok(Counters {
            access: self.standing.link_bytes(1)?,
            core: self.standing.link_bytes(core)?,
            cpu: self.standing.cpu_time(),
            drops: self.standing.drops()?,
        })
    }
}

/// How long after the last frame was sent the last may come. It is waited for only where frames are missing.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same in a search, most of whose trials lose frames.
const PATIENCE_IN_SEARCH: Duration = Duration::from_millis(200);
/// Most frames of a burst, and of a trial.
const BURST: u32 = 2000;
const MOST_FRAMES: u32 = 20_000_000;

/// Makes one measurement; `None` if it was stopped.
pub(crate) fn measure(
    tester: &mut Tester,
    point: &Point,
    duration: Duration,
    path: Option<&Path<'_>>,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Measured>, Problem> {
    let trial = Trial {
        load: point.load.load().unwrap_or(Load::BackToBack),
        sizes: point.frame,
        duration,
        frames: if point.load == Offered::Burst { BURST } else { MOST_FRAMES },
        both_ways: point.ways == crate::point::Ways::Both,
        patience: match point.load {
            Offered::Throughput | Offered::Burst if point.backend != Backend::Guest => {
                PATIENCE_IN_SEARCH
            }
            _ => PATIENCE,
        },
    };
    let mut measured = Measured::default();
    let mut last = trial;
    match point.load {
        Offered::Frames(_) | Offered::Rate(_) => {}
        Offered::Burst => {
            let burst = tester::longest_burst(tester, &trial, stop)?;
            measured.burst = Some(burst);
            last.frames = burst.max(2);
        }
        Offered::Throughput => {
            let searching =
                Searching { highest: highest(tester, &trial, point, stop)?, precision: PRECISION };
            let long = Trial { duration: search_time(point, duration), ..trial };
            let found = tester::throughput(tester, &long, searching, stop)?;
            measured.found = Some(found);
            let Some(rate) = rate(found.bits_per_second) else { return Ok(Some(measured)) };
            last.load = Load::Rate(rate);
        }
    }
    if stop() {
        return Ok(None);
    }
    let before = path.map(|path| path.counters()).transpose()?;
    let outcome = tester.run(&last, stop)?;
    if outcome.stopped {
        return Ok(None);
    }
    if let (Some(before), Some(path)) = (before, path) {
        between(&mut measured, &before, &path.counters()?);
    }
    measured.flows = outcome.flows;
    Ok(Some(measured))
}

/// How far above what a burst came to a search begins.
const ABOVE: f64 = 1.25;

/// The load at which a search begins: above what the path takes of a burst, and the tester can send.
fn highest(
    tester: &mut Tester,
    trial: &Trial,
    point: &Point,
    stop: &dyn Fn() -> bool,
) -> Result<f64, Problem> {
    if let Some(gateway) = point.gateway.0 {
        return Ok(gateway.bits_per_second() as f64 * ABOVE);
    }
    let burst = Trial { load: Load::BackToBack, frames: PROBED, ..*trial };
    let Outcome { flows, .. } = tester.run(&burst, stop)?;
    let slowest = flows.iter().filter_map(|flow| {
        let seconds = flow.sending.max(flow.receiving).as_secs_f64();
        (seconds > 0.0).then(|| flow.received as f64 / seconds)
    });
    let per_second = slowest.fold(f64::INFINITY, f64::min);
    let bits = per_second * point.frame.mean() * 8.0 * ABOVE;
    Ok(if bits.is_finite() && bits > LEAST { bits } else { LEAST })
}

/// Frames of the burst that a search begins with.
const PROBED: u32 = 20_000;
/// The least load that a search begins with, in bit/s.
const LEAST: f64 = 1e6;

fn rate(bits_per_second: f64) -> Option<Rate> {
    Rate::new(bits_per_second as u64, units::CountedBytes::Ethernet)
}

/// What the path did in a trial.
fn between(measured: &mut Measured, before: &Counters, after: &Counters) {
    let mean = |before: l2vpn::Counted, after: l2vpn::Counted| {
        let frames = after.frames.saturating_sub(before.frames);
        (frames > 0).then(|| after.bytes.saturating_sub(before.bytes) as f64 / frames as f64)
    };
    measured.bytes = mean(before.access, after.access)
        .zip(mean(before.core, after.core))
        .map(|(access, core)| [access, core]);
    measured.cpu = before.cpu.zip(after.cpu).map(|(from, to)| to.saturating_sub(from));
    let had = |cause: &str| {
        before.drops.iter().find(|(name, _)| name == cause).map_or(0, |(_, count)| *count)
    };
    let new =
        after.drops.iter().map(|(cause, count)| (cause.clone(), count.saturating_sub(had(cause))));
    measured.drops = new.filter(|(_, count)| *count > 0).collect();
}
