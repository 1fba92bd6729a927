//! Beds and runs in them as a job of the crate `host`, done by a machine that is a guest of this one.

use std::collections::BTreeMap;

use fault::{Explain, Fault, Problem};
use handoff::{Direction, Run, Scenario, Timeline};
use host::{Outlet, Registry, Worker};
use lab::{Lab, LabOptions};
use mobility::Bed;
use record::Sample;
use serde::{Deserialize, Serialize};
use serde_json::json;
use units::Delay;

use crate::point::Point;
use crate::sample::{About, failed, sample};

/// How what happened in a run is called among a sample's attachments.
pub(crate) const TIMELINE: &str = "handoff.json";

/// A run that is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The point, as the fields of a sample.
    pub(crate) point: BTreeMap<String, String>,
    /// Which of its runs this is.
    pub(crate) repeat: u32,
    /// The command that measures it again.
    pub(crate) command: String,
}

/// A bed, and the runs in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// How the lab is to be made.
    pub(crate) lab: LabOptions,
    /// What the bed stands for.
    pub(crate) scenario: Scenario,
    /// The runs to be made in it, in order.
    pub(crate) asked: Vec<Asked>,
    /// How long traffic runs in each.
    pub(crate) trial: Delay,
    /// What keys, addresses and triggers are made of.
    pub(crate) seed: u64,
}

/// Stands a bed up and has the host move in it: a sample for each run, as it ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Handoffs;

/// Those who do the study's jobs elsewhere: in a guest.
#[must_use]
pub fn workers() -> Registry {
    Registry::new().with(Handoffs)
}

impl Worker for Handoffs {
    const KIND: &'static str = "roam-handoffs";
    type Job = Job;
    type Answer = ();

    fn work(&self, job: Job, outlet: &mut Outlet<'_>) -> Result<(), Problem> {
        let asked = job.asked.iter().map(|asked| Ok((point_of(&asked.point)?, asked)));
        let asked: Vec<(Point, &Asked)> = asked.collect::<Result<_, Problem>>()?;
        let mut lab = Lab::new(job.lab)?;
        let mut bed = match Bed::stand(&mut lab, &job.scenario, job.seed) {
            Ok(bed) => bed,
            Err(error) => {
                let why = format!("the bed does not stand: {}", error.in_one_text());
                return give_up(&job, &asked, &why, outlet);
            }
        };
        for (at, (point, one)) in asked.iter().enumerate() {
            if outlet.stopped() {
                break;
            }
            let rate = point.rate.per_second();
            match bed.run(rate, job.trial, job.seed.wrapping_add(at as u64)) {
                Ok(run) => {
                    outlet.attachment(TIMELINE, timeline(&run)?)?;
                    outlet.sample(&sample(about(&job, point, one), &run))?;
                }
                Err(error) => {
                    outlet.sample(&failed(about(&job, point, one), error.in_one_text()))?;
                }
            }
        }
        Ok(())
    }
}

/// Every run that was asked for is a failure.
fn give_up(
    job: &Job,
    asked: &[(Point, &Asked)],
    why: &str,
    outlet: &mut Outlet<'_>,
) -> Result<(), Problem> {
    for (point, one) in asked {
        let failure: Sample = failed(about(job, point, one), why);
        outlet.sample(&failure)?;
    }
    Ok(())
}

fn about<'a>(job: &Job, point: &'a Point, asked: &'a Asked) -> About<'a> {
    let is_stream = job.scenario.measures.mptcp;
    About { point, repeat: asked.repeat, seed: job.seed, command: &asked.command, is_stream }
}

fn point_of(fields: &BTreeMap<String, String>) -> Result<Point, Problem> {
    let wrong = || Problem::new(Fault::Measurement, format!("this is not a point: {fields:?}"));
    Point::of_fields(fields).ok_or_else(wrong)
}

/// What happened in a run and the phases of both directions, as a file.
fn timeline(run: &Run) -> Result<Vec<u8>, Problem> {
    let phases: BTreeMap<&str, Option<Timeline>> =
        Direction::ALL.iter().map(|one| (one.name(), Timeline::of(run, *one))).collect();
    let all = json!({ "run": run, "phases": phases });
    serde_json::to_vec(&all).map_err(|error| Problem::new(Fault::Measurement, error))
}
