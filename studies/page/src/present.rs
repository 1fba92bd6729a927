//! The summary as answer, tables and pictures: for the terminal and for the report.

use fault::{Fault, OrProblem, Problem};
use report::{Caution, Inline, KeyFigure, Note, Section, Table};
use serde_json::{Value, json};
use stats::Estimate;
use stats::claims::{Better, Comparisons, Leaders, MARGIN, Ranking, Verdict, Words, percent};
use study::{Clock, Counterpart, Subject, with_interval};
use units::counted;

use crate::loads::table;
use crate::point::{Loader, Visit};
use crate::row::Row;
use crate::sample::STUDY;
use crate::summary::{Group, Summary};
use crate::waterfall::waterfall;
use crate::{beside, change, means};

/// Fewer loads give no interval at 95 %.
const FEW: usize = 6;
/// Groups that the answer speaks of; the tables have all.
const ANSWERED: usize = 4;

/// What the samples say.
pub struct Findings {
    summary: Summary,
    provenance: String,
    clock: Clock,
}

impl Findings {
    /// What `summary` says, of results that were measured as `provenance` says.
    #[must_use]
    pub fn new(summary: Summary, provenance: String) -> Findings {
        Findings { summary, provenance, clock: Clock::Wall }
    }

    /// The same, measured by this clock.
    #[must_use]
    pub fn by(self, clock: Clock) -> Findings {
        Findings { clock, ..self }
    }

    /// Every load time; where handshakes were compared, beside those in sequence.
    fn loads_markdown(&self) -> String {
        let rows =
            || self.groups().flat_map(|group| group.rows.iter().map(move |row| (group, row)));
        let by_handshake = rows().any(|(_, row)| row.handshake_ratio.is_some());
        let (head, rule) = if by_handshake { (" of in sequence |", "---|") } else { ("", "") };
        let mut text = format!(
            "{}.\n\n| page, link, visit | protocol | loads | page load time | of http/1.1's |{head}\n\
             |---|---|---|---|---|{rule}\n",
            self.provenance
        );
        let known = |ratio: Option<Estimate>| {
            ratio.map_or(String::new(), |it| with_interval((it.value, it.low, it.high), 2))
        };
        for (group, row) in rows() {
            let Some(load) = row.load_ms else { continue };
            text += &format!(
                "| {} | {} | {} | {:.2} s [{:.2}, {:.2}] | {} |",
                group.title(),
                row.label(group.is_plain()),
                row.loads,
                load.value / 1e3,
                load.low / 1e3,
                load.high / 1e3,
                known(row.ratio)
            );
            if by_handshake {
                text += &format!(" {} |", known(row.handshake_ratio));
            }
            text.push('\n');
        }
        text
    }

    /// The groups that were measured.
    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.summary.groups.iter().filter(|group| group.fastest().is_some())
    }
}

pub(crate) fn seconds(ms: f64) -> String {
    let s = ms / 1e3;
    if s < 1.0 { format!("{s:.2} s") } else { format!("{s:.1} s") }
}

/// Words of a ranking by load time.
const FASTEST: Words = Words { wins: "is fastest", behind: "slower", pairs: "loads" };

/// A group's answer in a sentence.
fn answer(group: &Group) -> Inline {
    let (rows, ranking) = (group.by_median(), group.ranking());
    let load = |at: usize| rows.get(at).and_then(|row| row.load_ms).map(|load| seconds(load.value));
    let said = FASTEST.sentence(&ranking.verdict(), |at| load(at).unwrap_or_default());
    Inline::new().text(format!("{}: {said}.", group.title()))
}

/// What to change first where no window is in the way: what takes most of the time of the fastest load's objects.
fn first_change(group: &Group) -> Option<Inline> {
    let best = group.fastest()?;
    let bars = &best.waterfall.as_ref()?.0;
    let said = means::longest_phase(bars.iter().map(|(_, phases)| *phases))?;
    let row = best.label(group.is_plain());
    Some(Inline::new().text(format!("{}, {row}, to change first: {said}", group.title())))
}

/// Says how much a handshake that sends more at once saves of a group's loads, where one certainly does.
fn handshake(group: &Group) -> Option<Inline> {
    let embedded = group.rows.iter().filter(|row| row.handshake_ratio.is_some());
    let embedded: Vec<(&Row, &Row)> =
        embedded.filter_map(|row| Some((row, group.sequential(row)?))).collect();
    let mut comparisons = Comparisons::new(Better::Less, MARGIN);
    for (row, sequential) in &embedded {
        comparisons.push(row.pairs_with(sequential).map(|(theirs, ours)| (ours, theirs)));
    }
    let judged = embedded.into_iter().zip(comparisons.verdicts());
    let savers = judged.filter(|(_, one)| one.verdict == Verdict::Better);
    let claims = savers.filter_map(|(rows, one)| Some((rows, one.at_least()?)));
    let ((row, sequential), least) = claims.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Inline::new().text(format!(
        "{}: {} saves at least {} of the load with {}.",
        group.title(),
        row.label(group.is_plain()),
        percent(least),
        sequential.handshake,
    )))
}

impl study::Findings for Findings {
    fn subject(&self) -> Subject {
        Subject {
            title: "Page loads".to_owned(),
            question:
                "Which HTTP loads a page fastest on this network, and is flow control in the way?"
                    .to_owned(),
        }
    }

    fn answer(&self) -> Vec<Inline> {
        let mut lines: Vec<Inline> = self.groups().map(answer).take(ANSWERED).collect();
        if lines.is_empty() {
            return vec![Inline::new().text("No page was loaded whole.")];
        }
        lines.extend(self.groups().filter_map(handshake).take(ANSWERED));
        lines.extend(self.groups().flat_map(crate::push::answer).take(ANSWERED));
        let changes: Vec<Inline> = self.groups().flat_map(change::advice).take(ANSWERED).collect();
        if changes.is_empty() {
            if self.groups().any(has_windows) {
                let text = "No load was held up by flow-control windows for 1 % of its time.";
                lines.push(Inline::new().text(text));
            }
            lines.extend(self.groups().filter_map(first_change).take(ANSWERED));
        }
        lines.extend(changes);
        lines.extend(beside::answer(&self.summary.beside()));
        lines
    }

    fn rankings(&self) -> Vec<(String, Ranking)> {
        self.groups().map(|group| (group.title(), group.ranking())).collect()
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        let figures = self.groups().filter_map(|group| {
            let best = group.fastest()?;
            let load = best.load_ms?;
            Some(KeyFigure {
                value: format!("{:.2}", load.value / 1e3),
                unit: "s".to_owned(),
                label: match group.ranking().verdict().leaders {
                    Leaders::Winner(_) | Leaders::Alone => {
                        format!("{}, {}", group.title(), best.label(group.is_plain()))
                    }
                    _ => format!("{}, shortest median (no certain winner)", group.title()),
                },
                detail: format!(
                    "[{:.2}, {:.2}], median of {} loads",
                    load.low / 1e3,
                    load.high / 1e3,
                    best.loads
                ),
                means: means::fastest(group),
            })
        });
        figures.take(ANSWERED).collect()
    }

    fn cautions(&self) -> Vec<Caution> {
        let rows = || self.summary.groups.iter().flat_map(|group| &group.rows);
        let mut notes = Vec::new();
        notes.extend(self.clock.caution());
        let fewest = rows().map(|row| row.loads).min().unwrap_or_default();
        if fewest < FEW {
            let text =
                format!("As few as {} per point: no interval of 95 %.", counted(fewest, "load"));
            let remedy = format!("measure with --repeat {FEW} or more");
            let note = Note::warning(Inline::new().text(text), Inline::new().text(remedy));
            notes
                .push(note.answer_may_change("protocols close to each other could change places."));
        }
        let failed: usize = rows().map(|row| row.failed).sum();
        if failed > 0 {
            let why = rows().find_map(|row| row.failure.clone()).unwrap_or_default();
            let text = format!(
                "{} not whole and in no figure; the first: {why}.",
                counted(failed, "load")
            );
            let effect = "the median of a protocol that fails more than others could be longer.";
            notes.push(Note::info(text).answer_may_change(effect));
        }
        if let Some(text) = self.summary.passed.sentence() {
            notes.push(Note::info(text).answer_stands("it says how long measuring took."));
        }
        if self.groups().any(|group| group.loader == Loader::Ours) {
            let text = "Pages are fetched, not rendered: no layout, no scripts that run. Computation in \
                        the browser is what the page's graph says.";
            let effect =
                "on a slow processor or with heavy scripts protocols differ less than here.";
            notes.push(Note::info(text).answer_may_change(effect));
        }
        if self.groups().any(|group| group.loader == Loader::Chromium) {
            let text = "Chromium takes 100 ms of processor time per load or more: on fast links that hides \
                        what protocols differ in.";
            let effect =
                "on fast links read the loads of our own browser, which has no such floor.";
            notes.push(Note::info(text).answer_covers_less(effect));
        }
        notes
    }

    fn sections(&self) -> Result<Vec<Section>, Problem> {
        let mut loads = Section::new("page-loads", "Page load times");
        for group in self.groups() {
            loads = loads.with(table(group));
        }
        let mut sections = vec![loads];
        sections.extend(crate::moving::section(self.groups())?);
        if let Some(table) = beside::table(&self.summary.beside()) {
            sections.push(Section::new("page-chromium", beside::TITLE).with(table));
        }
        if let Some(table) = crate::push::table(self.groups()) {
            sections.push(Section::new("page-push", crate::push::TITLE).with(table));
        }
        if let Some(table) = crate::waits::table(self.groups()) {
            let section = Section::new("page-waits", crate::waits::TITLE).with(table);
            sections.push(match crate::waits::uploads(self.groups()) {
                Some(table) => section.with(table),
                None => section,
            });
        }
        if let Some(table) = crate::costs::table(self.groups()) {
            sections.push(Section::new("page-costs", crate::costs::TITLE).with(table));
        }
        let changes: Vec<Inline> = self.groups().flat_map(change::advice).collect();
        if !changes.is_empty() {
            let section = Section::new("page-change", "What to change");
            sections.push(changes.into_iter().fold(section, Section::with));
        }
        sections.extend(crate::direction::section(&self.summary, &crate::claims::spdy_claims()));
        let mut pictures = Section::new("page-waterfall", "Where a load's time goes");
        for group in self.groups().filter(|group| group.visit == Visit::First).take(2) {
            for row in &group.rows {
                if let Some(plot) = waterfall(group, row)? {
                    pictures = pictures.with(plot);
                }
            }
        }
        if !pictures.blocks.is_empty() {
            sections.push(pictures);
        }
        sections.extend(crate::flow::section(self.groups()));
        Ok(sections)
    }

    fn tables(&self) -> Vec<Table> {
        let groups = self.summary.groups.iter().map(table);
        let beside = beside::table(&self.summary.beside());
        let moving = crate::moving::table(self.groups());
        let mut tables: Vec<Table> = groups.chain(moving).collect();
        tables.extend(crate::push::table(self.groups()));
        tables.extend(crate::waits::table(self.groups()));
        tables.extend(crate::waits::uploads(self.groups()));
        tables.extend(crate::costs::table(self.groups()));
        tables.extend(beside);
        tables.extend(crate::direction::tables(&self.summary));
        tables
    }

    fn counterparts(&self) -> Vec<(String, Counterpart)> {
        crate::published::counterparts(&self.summary)
    }

    fn json(&self) -> Result<Value, Problem> {
        let group = |group: &Group| {
            let rows = serde_json::to_value(&group.rows).blame(Fault::Results)?;
            Ok(json!({
                "sweep": group.sweep,
                "page": group.page,
                "link": group.link.to_string(),
                "loss": group.loss,
                "queue": group.queue,
                "cross_traffic": group.cross,
                "browser": group.browser,
                "loader": group.loader,
                "visit": group.visit,
                "rows": rows,
            }))
        };
        let groups = self.summary.groups.iter().map(group).collect::<Result<Vec<_>, Problem>>()?;
        let beside = serde_json::to_value(self.summary.beside()).blame(Fault::Results)?;
        let time = &self.summary.passed;
        Ok(json!({ STUDY: { "groups": groups, "time": time, "beside": beside } }))
    }

    fn markdown(&self) -> Result<Vec<(String, String)>, Problem> {
        let mut fragments = vec![(STUDY.to_owned(), self.loads_markdown())];
        let tables = [
            ("chromium", beside::table(&self.summary.beside())),
            ("moving", crate::moving::table(self.groups())),
            ("push", crate::push::table(self.groups())),
            ("waits", crate::waits::table(self.groups())),
            ("costs", crate::costs::table(self.groups())),
        ];
        for (name, table) in tables.into_iter().filter_map(|(name, table)| Some((name, table?))) {
            let text = format!("{}.\n\n{}", self.provenance, table.to_markdown());
            fragments.push((format!("{STUDY}-{name}"), text));
        }
        let claims = crate::claims::markdown(&self.summary, &self.provenance);
        fragments.extend(claims.map(|text| (format!("{STUDY}-claims"), text)));
        let spdy = crate::claims::spdy_claims();
        let direction = crate::direction::markdown(&self.summary, &spdy, &self.provenance);
        fragments.extend(direction.map(|text| (format!("{STUDY}-direction"), text)));
        let spdy = crate::claims::spdy_markdown(&self.summary, &self.provenance).into_iter();
        fragments.extend(spdy.map(|(name, text)| (format!("{STUDY}-{name}"), text)));
        Ok(fragments)
    }

    fn empty(&self) -> Option<Problem> {
        let why = || self.summary.groups.iter().flat_map(|group| &group.rows);
        let why = why().find_map(|row| row.failure.clone()).unwrap_or_default();
        let what = format!("no page was loaded whole: {why}");
        self.groups().next().is_none().then(|| Problem::new(Fault::Measurement, what))
    }
}

/// Whether any row's protocol has flow-control windows.
fn has_windows(group: &Group) -> bool {
    group.rows.iter().any(|row| row.protocol.is_multiplexed())
}

#[cfg(test)]
mod tests {
    use study::Findings as _;

    use super::*;
    use crate::sample::{WATERFALL, Waterfall, value};
    use crate::summary::tests::{sample, samples};

    fn findings(samples: &[record::Sample]) -> Findings {
        Findings::new(Summary::of(samples), "Measured here".to_owned())
    }

    #[test]
    fn the_answer_names_the_fastest_or_those_that_cannot_be_told_apart() {
        let found = findings(&samples());
        let answer = found.answer()[0].to_plain();
        let front = "no measurable difference among the best: h2 8.0 s and h3 8.0 s; slower: http/1.1 10.0 s.";
        assert!(answer.ends_with(front), "{answer}");
        let only: Vec<_> =
            samples().into_iter().filter(|sample| sample.point["protocol"] != "h3").collect();
        let answer = findings(&only).answer()[0].to_plain();
        assert!(
            answer.ends_with("h2 is fastest: 8.0 s, at least 20 % less than http/1.1."),
            "{answer}"
        );
        let alone: Vec<_> =
            samples().into_iter().filter(|sample| sample.point["protocol"] == "h2").collect();
        let answer = findings(&alone).answer()[0].to_plain();
        assert!(answer.ends_with(": h2: 8.0 s."), "{answer}");
        let one: Vec<_> = only.into_iter().filter(|sample| sample.repeat == 0).collect();
        let answer = findings(&one).answer()[0].to_plain();
        let few = "h2 8.0 s and http/1.1 10.0 s; too few loads to rank them (1, and 6 are needed).";
        assert!(answer.ends_with(few), "{answer}");
    }

    #[test]
    fn everything_measured_is_in_a_table_and_fits_a_terminal() {
        let found = findings(&samples());
        let tables = found.tables();
        assert_eq!((tables.len(), tables[0].rows.len()), (1, 3));
        assert!(tables[0].rows.iter().all(|row| row.cells.len() == tables[0].columns.len()));
        assert!(found.sections().unwrap().iter().any(|section| section.id == "page-loads"));
        assert!(found.markdown().unwrap()[0].1.contains("| h2 |"));
        assert_eq!(found.json().unwrap()["page"]["groups"][0]["rows"][1]["protocol"], "h2");
        assert!(found.empty().is_none() && !found.key_figures().is_empty());
    }

    #[test]
    fn what_an_embedded_handshake_saves_is_said_of_the_same_protocol() {
        let loads = (0..8).flat_map(|repeat| {
            [("usertcp", 100.0), ("sslmtcp-tls13", 90.0)].map(|(handshake, load_ms)| {
                let mut sample = sample("h2", "first", repeat, load_ms);
                sample.point.insert("handshake".to_owned(), handshake.to_owned());
                sample
            })
        });
        let found = findings(&loads.collect::<Vec<_>>());
        let lines: Vec<String> = found.answer().iter().map(Inline::to_plain).collect();
        let said = lines.iter().find(|line| line.contains("saves")).unwrap();
        let expected = "h2, sslmtcp-tls13 saves at least 10 % of the load with usertcp";
        assert!(said.contains(expected), "{said}");
        let table = &found.tables()[0];
        assert_eq!((table.columns.len(), table.rows[0].cells.len()), (14, 14));
        let text = &found.markdown().unwrap()[0].1;
        assert!(
            text.contains("| of http/1.1's | of in sequence |\n|---|---|---|---|---|---|"),
            "{text}"
        );
        let row = text.lines().find(|line| line.contains("sslmtcp-tls13")).unwrap();
        assert!(row.ends_with("| 0.90 [0.90, 0.90] |"), "{row}");
    }

    #[test]
    fn a_waterfall_has_a_bar_for_each_object() {
        let mut samples = samples();
        let bars = Waterfall(vec![(0.0, [1.0, 300.0, 600.0, 0.0, 300.0, 50.0]); 3]);
        let text = serde_json::to_string(&bars).unwrap();
        samples[0].labels.insert(WATERFALL.to_owned(), text);
        let found = findings(&samples);
        let sections = found.sections().unwrap();
        assert!(sections.iter().any(|section| section.id == "page-waterfall"));
    }

    #[test]
    fn the_answer_names_what_to_change_first() {
        let bars = Waterfall(vec![(0.0, [1.0, 300.0, 600.0, 0.0, 300.0, 50.0]); 3]);
        let text = serde_json::to_string(&bars).unwrap();
        let with = |protocol: &str, stalled: f64| {
            let mut samples = samples();
            for sample in samples.iter_mut().filter(|sample| sample.point["protocol"] == protocol) {
                sample.labels.insert(WATERFALL.to_owned(), text.clone());
            }
            for sample in &mut samples {
                sample.values.insert(value::STALLED.to_owned(), stalled);
            }
            let lines = findings(&samples).answer();
            lines.iter().map(Inline::to_plain).collect::<Vec<String>>()
        };
        let lines = with("h2", 0.0);
        let said = lines.iter().find(|line| line.contains("to change first")).unwrap();
        let expected = "google-play over 3g-0.9, first visit, h2, to change first: 48 % of the objects' time is \
                        spent on setting up connections: fewer hosts";
        assert!(said.starts_with(expected), "{said}");
        // Of a load that is not the fastest nothing is said; nor where a window is in the way.
        assert!(!with("http/1.1", 0.0).iter().any(|line| line.contains("to change first")));
        let lines = with("h2", 1000.0);
        assert!(lines.iter().any(|line| line.contains("announce")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("to change first")), "{lines:?}");
    }

    #[test]
    fn costs_are_a_table_and_a_fragment() {
        let mut samples = samples();
        for sample in &mut samples {
            let values = [(value::REQUESTS, 10.0), (value::REQUEST_BYTES, 1000.0)];
            sample.values.extend(values.map(|(name, value)| (name.to_owned(), value)));
        }
        let found = findings(&samples);
        let costs = crate::costs::TITLE;
        assert!(found.tables().iter().any(|table| table.caption == costs));
        let fragments = found.markdown().unwrap();
        assert!(fragments.iter().any(|(name, _)| name == "page-costs"), "{fragments:?}");
    }

    #[test]
    fn nothing_whole_is_said_and_fails() {
        let mut lost = [sample("h2", "first", 0, 100.0)];
        lost[0].outcome = record::Outcome::TimedOut { after_ms: 5000.0 };
        let found = findings(&lost);
        assert!(found.empty().unwrap().to_string().contains("given up after 5 s"));
        assert_eq!(found.answer()[0].to_plain(), "No page was loaded whole.");
    }
}
