//! `wiretax report`, and the report at the end of a measurement: of one study, or of several.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use handshake::{Clients, Findings, Mode, Summary, summarise};
use observe::truth::Said;
use pump::Calibration;
use record::{Manifest, Run, Sample};
use report::{Block, Fact, Inline, Note, Report, Section, Table};
use serde_json::json;
use stats::Distribution;
use study::Findings as _;

use crate::args::ReportArgs;
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::{quoted, read_text};
use crate::output::{say, terminal_width};
use crate::observe_lab::failed;
use crate::talk::Talk;

/// What the user asks of the results.
pub struct Question {
    from: Mode,
    clients: Option<Distribution>,
    seed: u64,
    /// New connections a second that machines are reckoned for.
    pub load: f64,
}

impl Question {
    /// Reads what the user gave.
    pub fn read(from: &str, clients: Option<&Path>, seed: u64) -> Result<Question, Failed> {
        let from = from.parse().or_exit(Exit::Usage)?;
        let clients = match clients {
            None => None,
            Some(path) => {
                let text = read_text(path, "file of round-trip times")?;
                let parsed = Clients::parse(&text).with_context(|| path.display().to_string());
                Some(parsed.or_exit(Exit::Usage)?.into_weights())
            }
        };
        Ok(Question { from, clients, seed, load: stacks::LOAD })
    }

    pub fn findings(&self, summary: &Summary) -> Result<Findings, Failed> {
        Findings::new(summary.clone(), self.from, self.clients.clone(), self.seed)
            .or_exit(Exit::Results)
    }
}

/// Builds the report of a folder again.
pub fn report(args: &ReportArgs, talk: &Talk) -> Outcome {
    let mut question = Question::read(&args.from, args.clients.as_deref(), 1)?;
    question.load = args.load.unwrap_or(question.load);
    let results = Results::read(&args.results, question.seed, talk)?;
    let html = results.publish(&args.results, args.html.as_deref(), &question, args.json.json)?;
    talk.note(format!("report: {}", html.display()));
    Ok(Exit::Done)
}

/// What a folder of results comes to.
pub struct Results {
    pub manifest: Manifest,
    /// What the handshake study's samples say.
    pub summary: Summary,
    /// What the stacks study's samples say.
    pub stacks: stacks::Summary,
    /// What the samples of `wiretax stacks haproxy` say.
    pub haproxy: haproxy::Summary,
    /// What the observe study made of clients of whom all is known.
    pub truth: Option<Said>,
}

impl Results {
    /// Reads a folder and summarises its samples.
    pub fn read(folder: &Path, seed: u64, talk: &Talk) -> Result<Results, Failed> {
        let run = Run::open(folder).or_exit(Exit::Results)?;
        if run.samples.is_empty() {
            let shown = folder.display().to_string();
            let again = quoted(&shown);
            let error = anyhow!("{shown}: no samples in it yet; go on with --resume {again}");
            return Err(Failed { exit: Exit::Results, error });
        }
        let mut progress = talk.progress();
        let expected = PER_SAMPLE * u32::try_from(run.samples.len()).unwrap_or(u32::MAX);
        progress.show("summarising", Duration::ZERO, expected);
        let (stacks, others) = of_study(run.samples, stacks::STUDY);
        let (of_haproxy, others) = of_study(others, haproxy::STUDY);
        let (of_clients, others) = of_study(others, observe::truth::STUDY);
        let truth = Said::of(&of_clients, &run.manifest).map_err(failed);
        let summary = summarise(others, seed).or_exit(Exit::Results);
        let stacks = stacks::summarise(stacks);
        let haproxy = haproxy::Summary::of(&of_haproxy);
        progress.finish();
        Ok(Results { manifest: run.manifest, summary: summary?, stacks, haproxy, truth: truth? })
    }

    /// Writes the HTML report, then prints the result on stdout: tables, or JSON. Says where the
    /// report is.
    pub fn publish(
        &self,
        folder: &Path,
        html: Option<&Path>,
        question: &Question,
        as_json: bool,
    ) -> Result<PathBuf, Failed> {
        let handshake = match self.summary.samples {
            0 => None,
            _ => Some(self.handshake(question)?),
        };
        let stacks = (!self.stacks.is_empty())
            .then(|| stacks::Findings::new(&self.stacks, question.load, question.seed));
        let haproxy = (!self.haproxy.rows.is_empty()).then_some(&self.haproxy);
        let truth = self.truth.as_ref();
        let findings = Found { handshake, stacks, haproxy, truth };
        let path = html.map_or_else(|| folder.join("report.html"), Path::to_path_buf);
        let report = assemble(&self.manifest, &findings)?;
        report.write_to(&path).or_exit(Exit::Results)?;
        say(&if as_json { self.json(question, &findings)? } else { tables(&findings) })?;
        Ok(path)
    }

    fn handshake(&self, question: &Question) -> Result<Findings, Failed> {
        Ok(question.findings(&self.summary)?.measured_by(&self.manifest))
    }

    fn json(&self, question: &Question, findings: &Found<'_>) -> Result<String, Failed> {
        let mut value = json!({ "manifest": self.manifest });
        if let Some(handshake) = &findings.handshake {
            value["handshake"] = serde_json::to_value(&self.summary).or_exit(Exit::Results)?;
            value["changes"] = json!({ "from": question.from, "to": handshake.changes });
        }
        if let Some(stacks) = &findings.stacks {
            let mut summary = serde_json::to_value(&self.stacks).or_exit(Exit::Results)?;
            summary["changes"] = json!(stacks.changes);
            summary["bounds"] = json!(stacks.bounds());
            summary["needs"] = json!(stacks.needs());
            value["stacks"] = summary;
        }
        if let Some(truth) = findings.truth {
            let found = serde_json::to_value(&truth.findings).or_exit(Exit::Results)?;
            value["observe"] = json!({ "findings": found, "agreement": truth.agreement });
        }
        if let Some(haproxy) = findings.haproxy {
            value["haproxy"] = serde_json::to_value(haproxy).or_exit(Exit::Results)?;
        }
        Ok(serde_json::to_string_pretty(&value).or_exit(Exit::Results)? + "\n")
    }
}

/// The samples of a study, and the others.
fn of_study(samples: Vec<Sample>, study: &str) -> (Vec<Sample>, Vec<Sample>) {
    samples.into_iter().partition(|sample| sample.study == study)
}

/// What each study that was run says.
struct Found<'a> {
    handshake: Option<Findings>,
    stacks: Option<stacks::Findings<'a>>,
    haproxy: Option<&'a haproxy::Summary>,
    truth: Option<&'a Said>,
}

/// Time that the summary takes for a sample, about: its intervals are bootstrapped.
const PER_SAMPLE: Duration = Duration::from_micros(130);

fn tables(findings: &Found<'_>) -> String {
    let width = terminal_width();
    let mut tables = Vec::new();
    if let Some(handshake) = &findings.handshake {
        tables.extend(handshake.tables());
        tables.extend(beside(handshake));
    }
    if let Some(stacks) = &findings.stacks {
        tables.extend(stacks.tables());
    }
    if let Some(truth) = findings.truth {
        tables.extend(truth.tables());
    }
    if let Some(summary) = findings.haproxy {
        let scenarios = haproxy::Scenario::ALL.iter();
        tables.extend(scenarios.filter_map(|scenario| haproxy::table(summary, *scenario)));
    }
    let texts: Vec<String> = tables.iter().map(|table| table.to_text(width)).collect();
    match texts.as_slice() {
        [] => "no connection completed\n".to_owned(),
        texts => format!("{}\n", texts.join("\n")),
    }
}

/// Our figures beside the SSLmTCP document's.
fn beside(findings: &Findings) -> Vec<Table> {
    let figures = study::figures(study::Study::published(&handshake::Handshake));
    study::beside(&figures.unwrap_or_default(), &findings.counterparts())
}

/// Title and question of a report.
fn subject(findings: &Found<'_>) -> (&'static str, &'static str) {
    match (&findings.handshake, &findings.stacks) {
        (None, None) if findings.haproxy.is_some() => (
            "HAProxy on TLS libraries",
            "How many connections does HAProxy take on each TLS library, and what does each cost?",
        ),
        (None, None) if findings.truth.is_some() => (
            "How long clients take, and how that is known",
            "What does a capture say of clients of whom all is known, and is it right?",
        ),
        (None, Some(_)) => (
            "Which TLS library to build on",
            "Which TLS library should I build on, and what do its locks cost when threads share it?",
        ),
        (Some(_), Some(_)) => (
            "What a secure connection costs",
            "What does setting up a secure connection cost at my users' RTT, what would I save by TLS \
             1.3, resumption, 0-RTT, TCP Fast Open or QUIC, and which TLS library should I build on?",
        ),
        _ => (
            "What a secure connection costs to set up",
            "What does setting up a secure connection cost at my users' RTT, and what would I save \
             by TLS 1.3, resumption, 0-RTT, TCP Fast Open or QUIC?",
        ),
    }
}

fn assemble(manifest: &Manifest, findings: &Found<'_>) -> Result<Report, Failed> {
    let session = manifest.sessions.first();
    let machine = session.map(|session| {
        let machine = &session.environment;
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        format!("{}, Linux {}", known(&machine.cpu_model), known(&machine.kernel))
    });
    let (title, question) = subject(findings);
    let mut report = Report::new(title);
    report.subtitle = machine.unwrap_or_default();
    report.question = question.to_owned();
    if let Some(handshake) = &findings.handshake {
        report.answer = handshake.answer();
        report.key_figures = handshake.key_figures();
        report.notes = handshake.cautions();
        report.sections = handshake.sections().map_err(failed)?;
        let mut published = Section::new("handshake-published", "Beside the published figures");
        published.blocks.extend(beside(handshake).into_iter().map(Block::Table));
        report.sections.push(published);
    }
    if let Some(truth) = findings.truth {
        if findings.handshake.is_none() {
            report.answer = truth.findings.answer();
            report.key_figures = truth.findings.key_figures();
        }
        report.sections.extend(truth.sections().map_err(failed)?);
    }
    if let Some(stacks) = &findings.stacks {
        report.answer.extend(stacks.answer());
        report.key_figures.extend(stacks.key_figures());
        report.notes.extend(stacks.cautions());
        report.sections.extend(stacks.sections().or_exit(Exit::Results)?);
    }
    report.sections.extend(findings.haproxy.and_then(haproxy::section));
    report.notes.extend(manifest.warnings.iter().map(|warning| {
        let line = |text: &str| Inline::new().text(text);
        Note::warning(line(&warning.what), line(&warning.remedy))
    }));
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
    calibrated(manifest).map_or_else(Vec::new, |calibration| calibration_facts(&calibration))
}

/// The calibration, if there is one that can be read.
fn calibrated(manifest: &Manifest) -> Option<Calibration> {
    serde_json::from_value(manifest.calibration.clone()?).ok()
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
