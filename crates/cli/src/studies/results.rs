//! What a folder of results comes to: each study's findings, as text, JSON and HTML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fault::{Fault, OrProblem, Problem};
use record::{Folder, Manifest, Run, Sample, Touches, Warning};
use report::{Block, Card, Caution, Cell, Column, Inline, Note, Report, Row, Section, Table};
use serde_json::{Value, json};
use study::{Findings, Options, Question, Study, quoted};
use units::counted;

use super::screen::screen;
use super::{STUDIES, calibration, power};
use crate::diagnostics::Diagnostics;
use crate::output::{say, say_json, terminal_height, terminal_width};

/// Time that the summary takes for a sample, about: its intervals are bootstrapped.
const PER_SAMPLE: Duration = Duration::from_micros(130);

/// Columns of prose: longer lines are hard to read.
const READABLE: usize = 100;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As JSON on stdout.
    Json,
    /// Each study's answer and its tables.
    Tables,
    /// The same, on a terminal as far as it has lines.
    Fitting,
    /// Each study's answer, on one screen.
    Screen,
}

impl View {
    /// JSON if asked for, else this.
    pub fn or_json(self, json: bool) -> View {
        if json { View::Json } else { self }
    }
}

/// What the user asks of each study's samples.
pub struct Questions(Vec<(&'static dyn Study, Box<dyn Question>)>);

impl Questions {
    /// What the options ask; a study whose options were not given is asked the usual.
    pub fn of(options: &Options<'_>) -> Result<Questions, Problem> {
        let each = STUDIES.iter().map(|study| Ok((*study, study.question(options)?)));
        Ok(Questions(each.collect::<Result<_, Problem>>()?))
    }
}

/// A study's part of results.
pub struct Found {
    pub study: &'static dyn Study,
    pub findings: Box<dyn Findings>,
}

/// What a folder of results comes to.
pub struct Results {
    folder: Folder,
    pub manifest: Manifest,
    /// What each study says whose samples are there.
    pub found: Vec<Found>,
    /// What of the results could not be read.
    unread: Vec<String>,
}

/// The report's name in a folder of results.
const REPORT: &str = "report.html";

/// How many samples a folder has of each study.
#[derive(Default)]
struct Counts {
    known: BTreeMap<&'static str, usize>,
    /// Those of no study that is known, and the first one's study.
    others: Option<(usize, String)>,
    all: usize,
}

impl Counts {
    fn take(&mut self, sample: &Sample) {
        self.all += 1;
        match STUDIES.iter().find(|study| study.name() == sample.study) {
            Some(study) => *self.known.entry(study.name()).or_default() += 1,
            None => self.others.get_or_insert((0, sample.study.clone())).0 += 1,
        }
    }
}

/// Changes to the texts of results before they are summed up.
#[derive(Clone, Copy)]
pub struct Texts {
    /// The change to the manifest.
    pub manifest: fn(Manifest) -> Result<Manifest, Problem>,
    /// The change to a sample.
    pub sample: fn(Sample) -> Result<Sample, Problem>,
}

impl Texts {
    /// As they are: pages and terminals escape each where they show it.
    pub const AS_THEY_ARE: Texts = Texts { manifest: Ok, sample: Ok };
}

/// What a study's samples in a folder say. Their commands are made again: what they recorded is a stranger's text.
fn said(
    study: &dyn Study,
    question: &dyn Question,
    folder: &Folder,
    texts: Texts,
) -> Result<Option<Box<dyn Findings>>, Problem> {
    let (manifest, mut samples) = Run::stream_in(folder)?;
    let manifest = (texts.manifest)(manifest)?;
    let commands = study.commands(manifest.plan.get(study.name()).unwrap_or(&Value::Null));
    let mut failed = None;
    let own = std::iter::from_fn(|| {
        loop {
            let own = match samples.next()? {
                Ok(sample) if sample.study != study.name() => continue,
                Ok(sample) => (texts.sample)(sample),
                Err(error) => Err(error.into()),
            };
            match own {
                Ok(sample) => return Some(sample),
                Err(problem) => {
                    failed = Some(problem);
                    return None;
                }
            }
        }
    });
    let mut own = own.map(|mut sample| {
        let again = commands(&sample).filter(|command| !command.contains(char::is_control));
        sample.command = again.unwrap_or_default();
        sample
    });
    let findings = question.findings(&mut own, &manifest)?;
    drop(own);
    failed.map_or(Ok(findings), Err)
}

/// What to do about results of which this program cannot read everything.
pub const OTHER_VERSION: &str =
    "read them with the version of wiretax that the manifest names, or restore them from a copy";

/// What a manifest's plan has that cannot be read; empty where all of it can.
fn unread_plans(plan: &Value) -> Vec<String> {
    let Some(plans) = plan.as_object() else {
        return vec!["the plan in the manifest is not a list of studies".to_owned()];
    };
    let unread = plans.iter().filter_map(|(name, plan)| {
        let Some(study) = STUDIES.iter().find(|study| study.name() == name) else {
            return Some(format!(
                "the manifest has a plan of `{name}`, which is not a known study"
            ));
        };
        let problem = study.check_plan(plan).err()?;
        Some(format!("the plan of `{name}` in the manifest cannot be read: {problem}"))
    });
    unread.collect()
}

impl Results {
    /// Reads a folder, and asks each study what its samples say.
    pub fn read(
        folder: &Path,
        questions: &Questions,
        diagnostics: &Diagnostics,
    ) -> Result<Results, Problem> {
        Results::read_with(folder, questions, Texts::AS_THEY_ARE, diagnostics)
    }

    /// As [`Results::read`], with all texts changed first.
    pub fn read_with(
        folder: &Path,
        questions: &Questions,
        texts: Texts,
        diagnostics: &Diagnostics,
    ) -> Result<Results, Problem> {
        let folder = Folder::open(folder)?;
        let (manifest, mut samples) = Run::stream_in(&folder)?;
        let manifest = (texts.manifest)(manifest)?;
        let mut counts = Counts::default();
        samples.by_ref().try_for_each(|sample| sample.map(|sample| counts.take(&sample)))?;
        let shown = folder.path().display().to_string();
        let resume = format!("continue with --resume {}", quoted(&shown));
        if let Some(torn) = samples.torn() {
            diagnostics.warning_with_remedy(format!("{shown}: {torn}"), Some(&resume));
        }
        if counts.all == 0 {
            let what = format!("{shown}: no samples in it yet");
            return Err(Problem::new(Fault::Measurement, what).with_remedy(resume));
        }
        let mut progress = diagnostics.progress();
        let expected = PER_SAMPLE * u32::try_from(counts.all).unwrap_or(u32::MAX);
        progress.show("summarising", Duration::ZERO, expected);
        let mut found = Vec::new();
        let mut unread = unread_plans(&manifest.plan);
        for (study, question) in &questions.0 {
            let name = study.name();
            let Some(count) = counts.known.get(name) else { continue };
            match said(*study, question.as_ref(), &folder, texts)? {
                Some(findings) => found.push(Found { study: *study, findings }),
                None => {
                    unread.push(format!("none of the {count} samples of `{name}` can be read"));
                }
            }
        }
        progress.finish();
        if let Some((count, study)) = counts.others {
            unread.push(format!(
                "{} left out, of `{study}` and the like: this program has no such study",
                counted(count, "sample")
            ));
        }
        for what in &unread {
            diagnostics.warning_with_remedy(what, Some(OTHER_VERSION));
        }
        Ok(Results { folder, manifest, found, unread })
    }

    /// What one study's samples say so far, in a folder that is still written to; `None` where they say nothing yet.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn so_far(
        folder: &Path,
        study: &'static dyn Study,
        questions: &Questions,
    ) -> Result<Option<Found>, Problem> {
        let asked = questions.0.iter().find(|(asked, _)| asked.name() == study.name());
        let Some((_, question)) = asked else { return Ok(None) };
        let (folder, texts) = (Folder::open(folder)?, Texts::AS_THEY_ARE);
        let findings = said(study, question.as_ref(), &folder, texts)?;
        Ok(findings.map(|findings| Found { study, findings }))
    }

    /// Why nothing was found, if no study's samples say anything.
    pub fn empty(&self) -> Option<Problem> {
        let mut each = self.found.iter().map(|found| found.findings.empty());
        let Some(first) = each.next() else {
            let what = "no sample can be read";
            return Some(Problem::new(Fault::Measurement, what).with_remedy(OTHER_VERSION));
        };
        first.filter(|_| each.all(|empty| empty.is_some()))
    }

    /// Prints the result on stdout, then writes the HTML report: into the folder, or to the file that the user
    /// named. Says where the report is.
    pub fn publish(&self, html: Option<&Path>, view: View) -> Result<PathBuf, Problem> {
        let folder = self.folder.path();
        let path = html.map_or_else(|| folder.join(REPORT), Path::to_path_buf);
        match view {
            View::Json => say_json(&self.json()?)?,
            View::Tables => say(&(self.text()?.join("\n") + "\n"))?,
            View::Fitting => say(&fitting(self.text()?, folder, terminal_height()))?,
            View::Screen => say(&screen(self, folder, &path, terminal_width()))?,
        }
        let report = self.report()?;
        match html {
            Some(file) => drop(report.write_to(file)?),
            None => {
                self.folder.clear_partial();
                // What was asked for is printed already; only the file is missing.
                self.folder.replace(REPORT, report::render(&report).as_bytes()).map_err(
                    |error| {
                        let remedy = "put the report elsewhere: `--html FILE` of `wiretax report`";
                        Problem::from(error).with_remedy(remedy)
                    },
                )?;
            }
        }
        Ok(path)
    }

    fn json(&self) -> Result<String, Problem> {
        let mut all = json!({ "manifest": self.manifest });
        for Found { findings, .. } in &self.found {
            if let (Value::Object(all), Value::Object(own)) = (&mut all, findings.json()?) {
                all.extend(own);
            }
        }
        Ok(serde_json::to_string_pretty(&all).blame(Fault::Results)? + "\n")
    }

    /// Each study's answer, then its tables.
    fn text(&self) -> Result<Vec<String>, Problem> {
        let width = terminal_width();
        let mut texts = Vec::new();
        for found in &self.found {
            let answer = found.findings.answer();
            let lines = answer.iter().map(|line| line.to_text(width.min(READABLE)));
            texts.extend(Some(lines.collect::<String>()).filter(|answer| !answer.is_empty()));
            texts.extend(found.findings.tables().iter().map(|table| table.to_text(width)));
            let measured = found.beside_measured()?;
            texts.extend(measured.iter().map(|table| table.to_text(width)));
            let shown = power::sentences(found.findings.as_ref());
            let lines =
                shown.iter().map(|text| Inline::new().text(text).to_text(width.min(READABLE)));
            texts.extend(Some(lines.collect::<String>()).filter(|lines| !lines.is_empty()));
        }
        if texts.is_empty() {
            texts.push("no connection completed".to_owned());
        }
        Ok(texts)
    }

    fn report(&self) -> Result<Report, Problem> {
        let mut report = self.subject();
        let several = self.found.len() > 1;
        for found in &self.found {
            if several {
                let (card, section) = found.card();
                report.cards.push(card);
                report.sections.push(section);
            } else {
                report.answer.extend(found.findings.answer());
                report.key_figures.extend(found.findings.key_figures());
            }
            report.cautions.extend(found.findings.cautions());
            report.cautions.extend(power::caution(found.findings.as_ref()));
            report.sections.extend(found.findings.sections()?);
            report.sections.extend(found.published()?);
        }
        let unread = self.unread.iter().map(|what| {
            Note::warning(Inline::new().text(what), Inline::new().text(OTHER_VERSION))
                .answer_covers_less("what cannot be read is left out of all figures.")
        });
        report.cautions.extend(unread);
        let manifest = &self.manifest;
        report.cautions.extend(manifest.warnings.iter().map(caution));
        report.calibration = calibration::facts(manifest);
        report.manifest = serde_json::to_value(manifest).blame(Fault::Results)?;
        let started = manifest.started();
        let shown = started.map(|time| time.strftime("%Y-%m-%d %H:%M UTC").to_string());
        report.generated_at = shown.unwrap_or_default();
        if let Some(session) = manifest.sessions.first() {
            let machine = &session.environment;
            let known =
                |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
            report.subtitle =
                format!("{}, Linux {}", known(&machine.cpu_model), known(&machine.kernel));
            report.recorded_command.clone_from(&session.command);
        }
        Ok(report)
    }

    /// An empty report with title and question: the study's own, or those of all.
    fn subject(&self) -> Report {
        let (title, question) = match self.found.as_slice() {
            [only] => {
                let subject = only.findings.subject();
                (subject.title, subject.question)
            }
            // Each card has its own question.
            _ => ("What a secure connection costs".to_owned(), String::new()),
        };
        Report { question, ..Report::new(title) }
    }
}

/// A warning of the manifest, and whether answers would change.
pub fn caution(warning: &Warning) -> Caution {
    let line = |text: &str| Inline::new().text(text);
    let note = Note::warning(line(&warning.what), line(&warning.remedy));
    match warning.touches {
        Touches::Times => note.answer_may_change(
            "counts (round trips, bytes, frames) stand; times may be off by more than their intervals say.",
        ),
        Touches::All => {
            note.answer_may_change("any figure could be another, counts included.")
        }
        Touches::Missing => note.answer_covers_less(
            "what was measured stands; what is missing could be better or worse.",
        ),
    }
}

impl Found {
    /// Its card in a report of several studies, and the section that the card leads to: the whole answer.
    fn card(&self) -> (Card, Section) {
        let subject = self.findings.subject();
        let answer = self.findings.answer();
        let figures = self.findings.key_figures();
        let id = format!("{}-answer", self.study.name());
        let mut section = Section::new(&id, &subject.title);
        let question = Inline::new().text(&subject.question);
        section = section.with(question).with(Block::List(answer.clone()));
        if !figures.is_empty() {
            let columns = ["Figure", "value", "what it means", "how sure"].map(Column::new);
            let mut table = Table::new("Key figures", columns.into());
            for figure in &figures {
                let value = format!("{} {}", figure.value, figure.unit);
                table.push(Row::new(vec![
                    Cell::text(&figure.label),
                    Cell::text(value.trim()),
                    Cell::text(&figure.means),
                    Cell::text(&figure.detail),
                ]));
            }
            section = section.with(table);
        }
        let card = Card {
            title: subject.title,
            question: subject.question,
            answer: answer.into_iter().next().unwrap_or_default(),
            figure: figures.into_iter().next(),
            section: id,
        };
        (card, section)
    }

    /// Ours beside the published figures.
    fn beside(&self) -> Result<Vec<report::Table>, Problem> {
        let figures = study::figures(self.study.published())?;
        let counterparts = self.findings.counterparts();
        // Where nothing of a document was measured its tables would only say so.
        let measured = counterparts
            .iter()
            .any(|(_, counterpart)| matches!(counterpart, study::Counterpart::Ours { .. }));
        Ok(if measured { study::beside(&figures, &counterparts) } else { Vec::new() })
    }

    /// The same with those figures alone that have one of ours beside them: a document may have
    /// hundreds.
    fn beside_measured(&self) -> Result<Vec<report::Table>, Problem> {
        let mut figures = study::figures(self.study.published())?;
        let mut counterparts = self.findings.counterparts();
        counterparts
            .retain(|(_, counterpart)| matches!(counterpart, study::Counterpart::Ours { .. }));
        figures.retain(|figure| counterparts.iter().any(|(key, _)| *key == figure.key()));
        Ok(study::beside(&figures, &counterparts))
    }

    fn published(&self) -> Result<Option<Section>, Problem> {
        let tables = self.beside()?;
        if tables.is_empty() {
            return Ok(None);
        }
        let id = format!("{}-published", self.study.name());
        let mut section = Section::new(id, "Beside the published figures");
        section.blocks.extend(tables.into_iter().map(Block::Table));
        Ok(Some(section))
    }
}

/// Lines at a terminal's end that are not the tables': which others there are, the report's path, the prompt.
const BELOW: usize = 4;

/// The answer and the tables that fit a terminal's height, the first table in any case; then how many are left out.
fn fitting(texts: Vec<String>, folder: &Path, height: Option<usize>) -> String {
    let room = height.unwrap_or(usize::MAX);
    let mut lines = BELOW;
    let fit = texts.iter().take_while(|text| {
        lines += text.lines().count() + 1;
        lines <= room
    });
    let shown = fit.count().max(2).min(texts.len());
    let mut said = texts.get(..shown).unwrap_or_default().join("\n") + "\n";
    let folder = quoted(&folder.display().to_string());
    said += &match texts.len() - shown {
        0 => String::new(),
        1 => format!("one more table: wiretax report {folder}\n"),
        more => format!("{more} more tables: wiretax report {folder}\n"),
    };
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_a_terminal_has_no_room_for_are_counted() {
        let texts = || [2, 5, 5, 9].map(|lines| "line\n".repeat(lines)).to_vec();
        let of = |height| fitting(texts(), Path::new("a b"), height);
        let all = of(None);
        assert_eq!(
            (all.lines().count(), all.contains("wiretax")),
            (2 + 1 + 5 + 1 + 5 + 1 + 9 + 1, false)
        );
        assert_eq!(of(Some(40)), all);
        let some = of(Some(24));
        assert!(
            some.lines().count() < 24 && some.ends_with("one more table: wiretax report 'a b'\n"),
            "{some}"
        );
        // The first is there however small the terminal is.
        let least = of(Some(5));
        assert!(least.ends_with("line\n\n2 more tables: wiretax report 'a b'\n"), "{least}");
        assert_eq!(least.matches("line").count(), 2 + 5);
    }
}
