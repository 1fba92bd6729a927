//! The summary as an answer with its evidence: for the terminal and for the report.

use std::collections::BTreeMap;

use fault::{Fault, OrProblem, Problem};
use report::{Caution, Inline, KeyFigure, Note, Section, Table};
use serde_json::{Value, json};
use stats::Estimate;
use stats::claims::{Better, MARGIN, Ranking, Scale, Verdict, Words};
use study::{Counterpart, Subject};
use units::counted;

use crate::point::Backend;
use crate::summary::{Row, Summary, is_usual};
use crate::tables::{self, agrees};
use crate::{advice, means, pictures};

/// Words of a ranking by throughput.
const HIGHEST: Words = Words { wins: "is highest", behind: "lower", pairs: "trials" };
/// Words of a ranking by delay.
const SOONEST: Words = Words { wins: "is shortest", behind: "longer", pairs: "trials" };

/// So few trials have no interval of 95 %.
const FEW: usize = 6;

/// What the samples say.
pub struct Findings {
    summary: Summary,
    provenance: String,
}

impl Findings {
    /// What `summary` says; `provenance`: date, machine and command, for Markdown.
    #[must_use]
    pub fn new(summary: Summary, provenance: String) -> Findings {
        Findings { summary, provenance }
    }

    /// The rows of the answer: one backend, one frame size, the paper's path.
    fn usual(&self) -> Vec<&Row> {
        let of = |row: &&Row| is_usual(&row.point) && row.trials > 0;
        let Some(first) = self.summary.rows.iter().find(of) else { return Vec::new() };
        let like = |row: &&Row| {
            let (own, first) = (&row.point, &first.point);
            (own.backend, own.frame, own.hops, own.reach)
                == (first.backend, first.frame, first.hops, first.reach)
        };
        self.summary.rows.iter().filter(of).filter(like).collect()
    }

    /// A sentence on what a protocol costs: bytes, delay, throughput, CPU time.
    fn cost(&self, protocol: &str) -> Option<String> {
        let rows = self.usual();
        let own = || rows.iter().copied().filter(|row| row.point.label() == protocol);
        let mut parts = Vec::new();
        if let Some(size) = own().find_map(|row| row.computed) {
            parts.push(format!("{} bytes per frame", signed(size.security() as f64, 0)));
        }
        let delay = own().find_map(|row| {
            let plain = self.summary.plain_of(row)?;
            Some((row, plain, row.median_us?.value - plain.median_us?.value))
        });
        if let Some((row, plain, more)) = delay {
            let is_exact = row.point.backend == Backend::Guest;
            let unit = if is_exact { "thousand instructions" } else { "µs" };
            let known = against(Better::Less, &row.turns.median_us, &plain.turns.median_us);
            let added = format!("{} {unit} of delay", signed(more, 1));
            parts.push(match known {
                _ if is_exact => added,
                Known::Difference => added,
                Known::Nothing(_) => "no measurable delay beyond plain's".to_owned(),
                Known::TooFew(trials) => format!("{added} in {}", counted(trials, "trial")),
            });
        }
        let throughput = own().find_map(|row| Some((row, row.throughput_mbps?.value)));
        if let Some((row, ours)) = throughput {
            let plain = self.summary.plain_of(row);
            let of_plain = plain.and_then(|plain| Some((plain, plain.throughput_mbps?.value)));
            let share = of_plain.filter(|(_, most)| *most > 0.0).map(|(plain, most)| {
                let theirs = &plain.turns.throughput_mbps;
                let percent = ours / most * 100.0;
                match against(Better::More, &row.turns.throughput_mbps, theirs) {
                    Known::Difference => format!(" ({percent:.0} % of plain)"),
                    Known::Nothing(None) => " (no difference from plain found)".to_owned(),
                    Known::Nothing(Some(ratio)) => {
                        let [low, high] = [ratio.low, ratio.high].map(|end| end * 100.0);
                        format!(
                            " ({percent:.0} % of plain [{low:.0}, {high:.0}]: no difference found)"
                        )
                    }
                    Known::TooFew(trials) => {
                        format!(" ({percent:.0} % of plain in {})", counted(trials, "trial"))
                    }
                }
            });
            parts.push(match ours > 0.0 {
                true => format!("{} without loss{}", bits(ours), share.unwrap_or_default()),
                false => "no rate without loss".to_owned(),
            });
        }
        // At a low load it is mostly the engine's looking for frames.
        let cpu = own().filter(|row| row.throughput_mbps.is_some()).find_map(|row| row.cpu_ns);
        if let Some(cpu) = cpu {
            parts.push(format!("{:.1} µs of CPU time per frame", cpu.value / 1e3));
        }
        (!parts.is_empty()).then(|| format!("{protocol}: {}.", parts.join(", ")))
    }

    /// The protocols of the answer but plain, in their order.
    fn compared(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for row in self.usual() {
            let name = row.point.label();
            if !name.starts_with("plain") && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The protected rows of the answer that have a value, and their ranking by it, the best first.
    fn ranked(
        &self,
        better: Better,
        value: impl Fn(&Row) -> Option<f64>,
        turns: impl Fn(&Row) -> &BTreeMap<u32, f64>,
    ) -> (Vec<(String, f64)>, Ranking) {
        let protected =
            self.usual().into_iter().filter(|row| !row.point.label().starts_with("plain"));
        let mut rows: Vec<(&Row, f64)> =
            protected.filter_map(|row| Some((row, value(row)?))).collect();
        // Delays at different loads make no ranking.
        let load = rows.first().map(|(row, _)| row.point.load);
        rows.retain(|(row, _)| Some(&row.point.load) == load.as_ref());
        rows.sort_by(|a, b| a.1.total_cmp(&b.1));
        if better == Better::More {
            rows.reverse();
        }
        let mut ranking = Ranking::new(better, MARGIN);
        for (row, _) in &rows {
            ranking.push_turns(row.point.label(), turns(row));
        }
        (rows.into_iter().map(|(row, value)| (row.point.label(), value)).collect(), ranking)
    }

    fn by_rate(&self) -> (Vec<(String, f64)>, Ranking) {
        let of = |row: &Row| Some(row.throughput_mbps?.value);
        self.ranked(Better::More, of, |row| &row.turns.throughput_mbps)
    }

    fn by_time(&self) -> (Vec<(String, f64)>, Ranking) {
        let of = |row: &Row| Some(row.median_us?.value);
        self.ranked(Better::Less, of, |row| &row.turns.median_us)
    }

    /// Ranks the protocols by throughput, or else by delay.
    fn best(&self) -> Option<String> {
        let first = self.usual().first().copied()?;
        let frame = first.point.frame;
        let (rates, ranking) = self.by_rate();
        if let Some((_, most)) = rates.first() {
            // A busy machine takes the processor from the tester or the engine in the middle of a trial.
            if *most <= 0.0 {
                return Some(format!(
                    "No rate of frames of {frame} bytes passed without loss under any protocol: each trial lost \
                     some, as it does where other programs take the processor; measure again on an idle machine."
                ));
            }
            let rate = |at: usize| rates.get(at).map_or(String::new(), |(_, rate)| bits(*rate));
            let said = HIGHEST.sentence(&ranking.verdict(), rate);
            return Some(format!("Loss-free throughput with {frame}-byte frames: {said}."));
        }
        let (times, ranking) = self.by_time();
        times.first()?;
        Some(match first.point.backend {
            // An exact count, which needs no test; how it would rank on a processor it does not say.
            Backend::Guest => {
                let all = times.iter().map(|(name, thousand)| format!("{name} {thousand:.1}"));
                let all: Vec<String> = all.collect();
                format!(
                    "Thousand instructions for a frame of {frame} bytes at the median: {}.",
                    all.join(", ")
                )
            }
            _ => {
                let time = |at: usize| {
                    times.get(at).map_or(String::new(), |(_, us)| format!("{us:.1} µs"))
                };
                let said = SOONEST.sentence(&ranking.verdict(), time);
                format!("Median delay of {frame}-byte frames: {said}.")
            }
        })
    }

    fn per_hop_sentence(&self) -> Option<String> {
        use seclink::path::Reach;
        let of = |reach: Reach, protected: bool| {
            let mut own = self.summary.per_hop.iter();
            own.find(|one| one.reach == reach && (one.protocol != "plain") == protected)
        };
        let (plain, every) = (of(Reach::EndToEnd, false)?, of(Reach::EveryHop, true)?);
        if !is_told_apart(plain.slope_us, every.slope_us) {
            return Some(
                "The extra cost of a protected hop cannot be determined from these trials."
                    .to_owned(),
            );
        }
        Some(format!(
            "Protected on every hop, {} takes {:.1} µs per hop; plain takes {:.1}. End to end only two operations remain.",
            every.protocol, every.slope_us.value, plain.slope_us.value
        ))
    }

    /// What the stock kernel does for a frame, where our engine is what was answered for.
    fn guest_sentence(&self) -> Option<String> {
        if self.usual().first()?.point.backend == Backend::Guest {
            return None;
        }
        let guest = self.summary.delays().filter(|(row, _)| row.point.backend == Backend::Guest);
        let above = guest.filter_map(|(row, plain)| {
            let above = row.median_us?.value - plain?.median_us?.value;
            let protocol = row.point.label();
            (!protocol.starts_with("plain"))
                .then(|| format!("{above:.1} thousand under {protocol}"))
        });
        let above: Vec<String> = above.collect();
        (!above.is_empty()).then(|| {
            format!(
                "Debian's kernel takes more instructions per frame than for plain ones: {}.",
                above.join(", ")
            )
        })
    }
}

/// The least confidence of an interval that tells anything: three trials have it.
const LEAST_CONFIDENCE: f64 = 0.7;

/// Difference that trials in turn show.
enum Known {
    Difference,
    /// None, of a size that these trials could show; the ratio with its interval.
    Nothing(Option<Estimate>),
    /// The trials are so few that no difference could be claimed.
    TooFew(usize),
}

/// Compares trials that took turns.
fn against(better: Better, ours: &BTreeMap<u32, f64>, theirs: &BTreeMap<u32, f64>) -> Known {
    let mut ranking = Ranking::new(better, MARGIN);
    ranking.push_turns("ours", ours);
    ranking.push_turns("theirs", theirs);
    match ranking.verdict().between(0, 1) {
        Some(one) => match one.verdict {
            Verdict::Better | Verdict::Worse => Known::Difference,
            Verdict::Equivalent | Verdict::Undecided => {
                Known::Nothing(one.estimate.filter(|_| one.scale == Scale::Ratio))
            }
            Verdict::TooFew { .. } => Known::TooFew(one.pairs),
        },
        None => Known::TooFew(0),
    }
}

/// Whether one interval lies beyond the other, and both are intervals.
fn is_told_apart(a: Estimate, b: Estimate) -> bool {
    let are_intervals = a.confidence.min(b.confidence) >= LEAST_CONFIDENCE;
    are_intervals && (a.low > b.high || b.low > a.high)
}

fn signed(value: f64, decimals: usize) -> String {
    format!("{value:+.decimals$}")
}

/// Mbit/s, or Gbit/s above a thousand.
pub(crate) fn bits(mbps: f64) -> String {
    if mbps >= 1000.0 {
        format!("{:.2} Gbit/s", mbps / 1000.0)
    } else {
        format!("{mbps:.0} Mbit/s")
    }
}

impl study::Findings for Findings {
    fn subject(&self) -> Subject {
        Subject {
            title: "Secured links".to_owned(),
            question: "MACsec, IPsec or WireGuard on this link: what does each cost in bytes, delay and throughput?"
                .to_owned(),
        }
    }

    fn answer(&self) -> Vec<Inline> {
        let mut lines: Vec<String> = self.best().into_iter().collect();
        lines.extend(self.compared().iter().filter_map(|protocol| self.cost(protocol)));
        lines.extend(self.per_hop_sentence());
        lines.extend(self.guest_sentence());
        lines.extend(advice::changes(&self.summary));
        if lines.is_empty() {
            lines.push(match self.summary.rows.first() {
                Some(row) if row.point.backend == Backend::Between => between(row),
                _ => "No trial gave a comparable result.".to_owned(),
            });
        }
        lines.into_iter().map(|line| Inline::new().text(line)).collect()
    }

    fn rankings(&self) -> Vec<(String, Ranking)> {
        let all = [("loss-free throughput", self.by_rate()), ("median delay", self.by_time())];
        let known = all.into_iter().filter(|(_, (values, _))| values.len() > 1);
        known.map(|(name, (_, ranking))| (name.to_owned(), ranking)).collect()
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        let rows = self.usual();
        let mut figures = Vec::new();
        for protocol in self.compared() {
            let own = || rows.iter().filter(|row| row.point.label() == protocol);
            if let Some(found) = own().find_map(|row| row.throughput_mbps) {
                let mut with = own().filter(|row| row.throughput_mbps.is_some());
                let plain = with.find_map(|row| self.summary.plain_of(row));
                figures.push(KeyFigure {
                    value: format!("{:.0}", found.value),
                    unit: "Mbit/s".to_owned(),
                    label: format!("{protocol}, highest rate without loss"),
                    detail: interval(found),
                    means: means::throughput(plain, found),
                });
            }
        }
        figures.truncate(4);
        figures
    }

    fn cautions(&self) -> Vec<Caution> {
        let rows = &self.summary.rows;
        let mut notes = Vec::new();
        let real = || rows.iter().filter(|row| row.point.backend != Backend::Guest);
        let fewest = real().map(|row| row.trials).min().unwrap_or(FEW);
        if fewest < FEW {
            let text =
                format!("As few as {} per point: no interval of 95 %.", counted(fewest, "trial"));
            let remedy = format!("measure with --repeat {FEW} or more");
            let note = Note::warning(Inline::new().text(text), Inline::new().text(remedy));
            notes
                .push(note.answer_may_change("protocols close to each other could change places."));
        }
        let failed: usize = rows.iter().map(|row| row.failed).sum();
        if failed > 0 {
            let why = rows.iter().find_map(|row| row.failure.clone()).unwrap_or_default();
            let text = format!(
                "{} failed; the figures leave them out; the first: {why}.",
                counted(failed, "trial")
            );
            notes.push(Note::info(text).answer_covers_less("the other trials' figures stand."));
        }
        if real().any(|row| row.tester_limits) {
            let text = "Where the highest load tried got through, the tester could send no more: the path may carry more.";
            let effect =
                "the order stands; the throughput of the fastest may be more than what is shown.";
            notes.push(Note::info(text).answer_covers_less(effect));
        }
        if rows.iter().any(|row| row.point.backend == Backend::Guest) {
            let text = "A guest machine's time counts instructions, one per nanosecond: it has no cache and no \
                        pipeline, and says nothing about a processor's own speed.";
            let effect = "bytes and frames stand; on a processor protocols close to each other could change places.";
            notes.push(Note::info(text).answer_may_change(effect));
        }
        if let Some(wrong) = rows.iter().find(|row| !agrees(row)) {
            let text = format!(
                "Frames of {} on the wire are not as long as the formats say: {}.",
                wrong.point.protocol,
                sizes_text(wrong)
            );
            let effect =
                "delay and throughput are of the frames as they were; for bytes trust the wire.";
            notes.push(Note::info(text).answer_may_change(effect));
        }
        notes
    }

    fn sections(&self) -> Result<Vec<Section>, Problem> {
        let mut section = Section::new("link", "What secured links cost");
        for table in self.tables() {
            section = section.with(table);
        }
        for plot in pictures::all(&self.summary)? {
            section = section.with(plot);
        }
        Ok(vec![section])
    }

    fn tables(&self) -> Vec<Table> {
        tables::all(&self.summary)
    }

    fn counterparts(&self) -> Vec<(String, Counterpart)> {
        crate::published::counterparts(&self.summary)
    }

    fn json(&self) -> Result<Value, Problem> {
        let summary = serde_json::to_value(&self.summary).blame(Fault::Results)?;
        Ok(json!({ "link": summary }))
    }

    fn markdown(&self) -> Result<Vec<(String, String)>, Problem> {
        let mut text = format!("{}.\n", self.provenance);
        for line in self.answer() {
            text.push_str("\n- ");
            text.push_str(&line.to_plain());
        }
        text.push('\n');
        Ok(vec![("link".to_owned(), text)])
    }

    fn empty(&self) -> Option<Problem> {
        let none = self.summary.rows.iter().all(|row| row.trials == 0);
        none.then(|| {
            let why = self.summary.rows.iter().find_map(|row| row.failure.clone());
            let what = format!("no trial carried a frame: {}", why.unwrap_or_default());
            Problem::new(Fault::Measurement, what)
        })
    }
}

fn between(row: &Row) -> String {
    match (row.throughput_mbps, row.median_us) {
        (Some(most), _) => {
            format!("Between the interfaces {} get through without loss.", bits(most.value))
        }
        (None, Some(delay)) => {
            format!("Between the interfaces a frame takes {:.1} µs at the median.", delay.value)
        }
        (None, None) => "No frame came through between the interfaces.".to_owned(),
    }
}

fn sizes_text(row: &Row) -> String {
    match (row.counted, row.computed) {
        (Some([access, core]), Some(computed)) => {
            format!(
                "{access:.1} and {core:.1} bytes, {} and {} computed",
                computed.access, computed.core
            )
        }
        _ => String::new(),
    }
}

fn interval(estimate: Estimate) -> String {
    format!("[{:.0}, {:.0}]", estimate.low, estimate.high)
}

#[cfg(test)]
mod tests {
    use study::Findings as _;

    use super::*;
    use crate::summary::tests::{samples, trials_of};

    fn findings() -> Findings {
        Findings::new(Summary::of(&samples()), "Measured".to_owned())
    }

    #[test]
    fn the_answer_begins_with_what_carries_most() {
        let lines = |trials| -> Vec<String> {
            let findings = Findings::new(Summary::of(&trials_of(trials)), "Measured".to_owned());
            findings.answer().iter().map(Inline::to_plain).collect()
        };
        let all = lines(8);
        let expected =
            "macsec is highest: 2.00 Gbit/s, at least 100 % more than esp:aes-cbc-128-sha1.";
        assert!(all[0].ends_with(expected), "{all:?}");
        assert!(all[1].starts_with("macsec: +32 bytes per frame, +2.0 µs of delay,"), "{all:?}");
        assert!(all[2].contains("(25 % of plain)"), "{all:?}");
        assert!(all.iter().any(|line| line.contains("4.0 µs per hop")), "{all:?}");
        let few = lines(3);
        assert!(few[0].ends_with("too few trials to rank them (3, and 6 are needed)."), "{few:?}");
        assert!(few[1].contains("+2.0 µs of delay in 3 trials, "), "{few:?}");
        assert!(few[2].contains("(25 % of plain in 3 trials)"), "{few:?}");
    }

    #[test]
    fn every_row_is_in_a_table_and_tables_are_whole() {
        let tables = findings().tables();
        assert_eq!(tables.len(), 5);
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
        }
        let rows: usize = tables.iter().take(2).map(|table| table.rows.len()).sum();
        assert_eq!(rows, Summary::of(&samples()).rows.len());
    }

    #[test]
    fn sections_have_their_plots() {
        let sections = findings().sections().unwrap();
        assert_eq!(sections.len(), 1);
        let plots =
            sections[0].blocks.iter().filter(|block| matches!(block, report::Block::Plot(_)));
        assert_eq!(plots.count(), 1);
    }

    #[test]
    fn nothing_that_came_is_a_failure_of_the_measurement() {
        let mut samples = samples();
        for sample in &mut samples {
            sample.outcome = record::Outcome::Failed { reason: "no frame came".to_owned() };
        }
        let findings = Findings::new(Summary::of(&samples), String::new());
        assert!(findings.empty().unwrap().to_string().contains("no frame came"));
    }
}
