//! `wiretax report`, and the report at the end of a measurement.

use std::path::{Path, PathBuf};

use anyhow::Context;
use handshake::{Findings, Mode, Summary, summarise};
use pump::Calibration;
use record::{Manifest, Run};
use report::{Fact, Report};
use serde_json::json;
use stats::Distribution;

use crate::args::ReportArgs;
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::read_text;
use crate::output::{say, terminal_width};
use crate::talk::Talk;

/// What the user asks of the results.
pub struct Question {
    from: Mode,
    clients: Option<Distribution>,
    seed: u64,
}

impl Question {
    /// Reads what the user gave.
    pub fn read(from: &str, clients: Option<&Path>, seed: u64) -> Result<Question, Failed> {
        let from = from.parse().or_exit(Exit::Usage)?;
        let clients = match clients {
            None => None,
            Some(path) => {
                let text = read_text(path, "file of round-trip times")?;
                let parsed = Distribution::parse(&text);
                Some(parsed.with_context(|| path.display().to_string()).or_exit(Exit::Usage)?)
            }
        };
        Ok(Question { from, clients, seed })
    }

    pub fn findings<'a>(&'a self, summary: &'a Summary) -> Result<Findings<'a>, Failed> {
        Findings::new(summary, self.from, self.clients.as_ref(), self.seed).or_exit(Exit::Results)
    }
}

/// Builds the report of a folder again.
pub fn report(args: &ReportArgs, talk: &Talk) -> Outcome {
    let question = Question::read(&args.from, args.clients.as_deref(), 1)?;
    let html = write_html(&args.results, args.html.as_deref(), &question)?;
    print(&args.results, &question, args.json.json)?;
    talk.note(format!("report: {}", html.display()));
    Ok(Exit::Done)
}

/// The samples of a folder, summarised.
pub fn read(folder: &Path, seed: u64) -> Result<(Manifest, Summary), Failed> {
    let run = Run::open(folder).or_exit(Exit::Results)?;
    let samples = run.samples.iter().cloned();
    let summary = summarise(samples, seed).or_exit(Exit::Results)?;
    Ok((run.manifest, summary))
}

/// Writes the HTML report of a folder and says where it is.
pub fn write_html(
    folder: &Path,
    html: Option<&Path>,
    question: &Question,
) -> Result<PathBuf, Failed> {
    let (manifest, summary) = read(folder, question.seed)?;
    let findings = question.findings(&summary)?;
    let report = assemble(&manifest, &findings)?;
    let path = html.map_or_else(|| folder.join("report.html"), Path::to_path_buf);
    report.write_to(&path).or_exit(Exit::Results)?;
    Ok(path)
}

/// Prints the result on stdout: tables, or JSON.
pub fn print(folder: &Path, question: &Question, as_json: bool) -> Result<(), Failed> {
    let (manifest, summary) = read(folder, question.seed)?;
    let findings = question.findings(&summary)?;
    if as_json {
        let value = json!({
            "manifest": manifest,
            "handshake": summary,
            "changes": { "from": question.from, "to": findings.changes },
        });
        let text = serde_json::to_string_pretty(&value).or_exit(Exit::Results)?;
        return say(&format!("{text}\n"));
    }
    let width = terminal_width();
    let tables: Vec<String> = findings.tables().iter().map(|table| table.to_text(width)).collect();
    say(&format!("{}\n", tables.join("\n")))
}

fn assemble(manifest: &Manifest, findings: &Findings<'_>) -> Result<Report, Failed> {
    let session = manifest.sessions.first();
    let machine = session.map(|session| {
        let machine = &session.environment;
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        format!("{}, Linux {}", known(&machine.cpu_model), known(&machine.kernel))
    });
    let mut report = Report::new("What a secure connection costs to set up");
    report.subtitle = machine.unwrap_or_default();
    report.question = "What does setting up a secure connection cost at my users' RTT, and what \
                       would I save by TLS 1.3, resumption, 0-RTT, TCP Fast Open or QUIC?"
        .to_owned();
    report.answer = findings.answer();
    report.key_figures = findings.key_figures();
    report.sections = findings.sections().or_exit(Exit::Results)?;
    report.calibration = calibration(manifest);
    report.manifest = serde_json::to_value(manifest).or_exit(Exit::Results)?;
    report.generated_at = manifest
        .started()
        .map(|time| time.strftime("%Y-%m-%d %H:%M UTC").to_string())
        .unwrap_or_default();
    report.command = session.map(|session| session.command.clone()).unwrap_or_default();
    Ok(report)
}

/// The lab's measurement of itself, and what makes the result worse than it could be.
fn calibration(manifest: &Manifest) -> Vec<Fact> {
    let read = |value: &serde_json::Value| serde_json::from_value::<Calibration>(value.clone());
    let mut facts = Vec::new();
    if let Some(Ok(calibration)) = manifest.calibration.as_ref().map(read) {
        facts.extend(calibration_facts(&calibration));
    }
    for warning in &manifest.warnings {
        facts.push(Fact::new("warning", warning.what.clone(), warning.remedy.clone()));
    }
    facts
}

fn calibration_facts(calibration: &Calibration) -> Vec<Fact> {
    let mode = &calibration.mode;
    let waits = if mode.spins { "sleeps, then spins" } else { "sleeps" };
    let scheduling = if mode.realtime { "real-time" } else { "ordinary" };
    let mut facts = vec![Fact::new(
        "link",
        format!("{}, {waits}, {scheduling} scheduling", calibration.backend),
        "how frames are carried and released",
    )];
    let us = |nanos: f64| nanos / 1e3;
    for check in &calibration.delays {
        let (release, one_way) = (&check.release_error, &check.one_way_error);
        facts.push(Fact::new(
            format!("delay of {}: release error", check.configured),
            format!(
                "p50 {:.1} us, p99 {:.1} us",
                us(release.p50_ns as f64),
                us(release.p99_ns as f64)
            ),
            "how late frames leave the link, by the link's own clock",
        ));
        facts.push(Fact::new(
            format!("delay of {}: one-way error", check.configured),
            format!(
                "p50 {:.1} us, p99 {:.1} us, jitter {:.1} us",
                us(one_way.p50_ns as f64),
                us(one_way.p99_ns as f64),
                us(check.jitter_ns as f64)
            ),
            "by the kernel's time stamps at both ends; it is part of every c",
        ));
    }
    let difference = &calibration.model_difference;
    facts.push(Fact::new(
        "against the model in virtual time",
        format!(
            "p50 {:.1} us, p99 {:.1} us",
            us(difference.p50_ns as f64),
            us(difference.p99_ns as f64)
        ),
        "the emulator's error on a random schedule of frames",
    ));
    for capacity in &calibration.capacity {
        facts.push(Fact::new(
            format!("capacity, {}-byte frames", capacity.frame_bytes),
            format!(
                "{:.0} thousand frames/s, {:.0} ns of CPU time a frame",
                capacity.frames_per_second / 1e3,
                capacity.cpu_ns_per_frame
            ),
            "one way, on one processor; the study stays far below",
        ));
    }
    facts
}
