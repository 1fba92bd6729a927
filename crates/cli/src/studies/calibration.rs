//! The lab's measurement of itself: made before the first study that uses its links, shown in the
//! report.

use std::ops::ControlFlow;
use std::time::Duration;

use fault::{Fault, OrProblem, Problem};
use lab::LabOptions;
use pump::Calibration;
use record::{Manifest, Recorder, Warning};
use report::Fact;

use crate::diagnostics::Diagnostics;
use crate::interrupt::Interrupt;

/// About how long it takes.
const EXPECTED: Duration = Duration::from_secs(3);

/// Lets the lab measure itself, in a lab of its own, and puts what it found into the manifest, unless
/// the user stops.
pub fn calibrate(
    recorder: &mut Recorder,
    options: &LabOptions,
    interrupt: &Interrupt,
    diagnostics: &Diagnostics,
) -> Result<(), Problem> {
    let mut progress = diagnostics.progress();
    let calibration = lab::calibrate(options, |done, step| {
        progress.show(&format!("calibrating: {step}"), EXPECTED.mul_f64(done), EXPECTED);
        if interrupt.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.finish();
    if interrupt.came() {
        return Ok(());
    }
    let calibration = calibration?;
    let value = serde_json::to_value(&calibration).blame(Fault::Results)?;
    Ok(recorder.update_manifest(|manifest| {
        for warning in calibration.warnings() {
            manifest.warn(Warning::new(warning.problem, warning.remedy));
        }
        manifest.calibration = Some(value);
    })?)
}

/// Puts into the manifest that the lab did not measure itself.
pub fn leave_out(recorder: &mut Recorder) -> Result<(), Problem> {
    Ok(recorder.update_manifest(|manifest| {
        manifest.warn(Warning::new(
            "the lab was not calibrated",
            "leave out --no-calibration and --backend netem",
        ));
    })?)
}

/// The lab's measurement of itself, for the report; empty where there is none that can be read.
pub fn facts(manifest: &Manifest) -> Vec<Fact> {
    let calibration = manifest.calibration.clone();
    let calibration = calibration.and_then(|value| serde_json::from_value(value).ok());
    calibration.as_ref().map_or_else(Vec::new, facts_of)
}

fn facts_of(calibration: &Calibration) -> Vec<Fact> {
    let us = |nanos: f64| nanos / 1e3;
    let percentiles = |p50: f64, p99: f64| format!("p50 {:.1} us, p99 {:.1} us", us(p50), us(p99));
    let mode = &calibration.mode;
    let waits = if mode.spins { "sleeps, then spins" } else { "sleeps" };
    let scheduling = if mode.realtime { "real-time" } else { "ordinary" };
    let mut facts = vec![Fact::new(
        "link",
        format!("{}, {waits}, {scheduling} scheduling", calibration.backend),
        "how frames are carried and released",
    )];
    for check in &calibration.delays {
        let (release, one_way) = (&check.release_error, &check.one_way_error);
        facts.push(Fact::new(
            format!("delay of {}: release error", check.configured),
            percentiles(release.p50_ns as f64, release.p99_ns as f64),
            "how late frames leave the link, by the link's own clock",
        ));
        let jitter = us(check.jitter_ns as f64);
        facts.push(Fact::new(
            format!("delay of {}: one-way error", check.configured),
            format!(
                "{}, jitter {jitter:.1} us",
                percentiles(one_way.p50_ns as f64, one_way.p99_ns as f64)
            ),
            "by the kernel's time stamps at both ends; it is part of every c",
        ));
    }
    let difference = &calibration.model_difference;
    facts.push(Fact::new(
        "against the model in virtual time",
        percentiles(difference.p50_ns as f64, difference.p99_ns as f64),
        "the emulator's error on a random schedule of frames",
    ));
    for capacity in &calibration.capacity {
        facts.push(Fact::new(
            format!("capacity, {}-byte frames", capacity.frame_bytes),
            format!(
                "{:.0} thousand frames/s, {:.0} ns of CPU time per frame",
                capacity.frames_per_second / 1e3,
                capacity.cpu_ns_per_frame
            ),
            "one way, on one processor; the study stays far below",
        ));
    }
    facts
}
