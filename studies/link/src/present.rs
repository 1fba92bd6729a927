//! The summary as an answer with its evidence: for the terminal and for the report.

use fault::{Fault, OrProblem, Problem};
use report::{Caution, Inline, KeyFigure, Note, Section, Table};
use serde_json::{Value, json};
use stats::Estimate;
use study::{Counterpart, Subject};
use units::counted;

use crate::point::Backend;
use crate::summary::{Row, Summary, is_usual};
use crate::tables::{self, agrees};
use crate::{advice, means, pictures};

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
            Some((row.median_us?, plain.median_us?, row.point.backend))
        });
        if let Some((ours, plain, backend)) = delay {
            let unit = if backend == Backend::Guest { "thousand instructions" } else { "µs" };
            // A guest machine's times are exact.
            parts.push(match backend == Backend::Guest || is_told_apart(ours, plain) {
                true => format!("{} {unit} of delay", signed(ours.value - plain.value, 1)),
                false => "delay not distinguishable from plain's".to_owned(),
            });
        }
        let throughput = own().find_map(|row| {
            let ours = row.throughput_mbps?;
            Some((ours.value, self.summary.plain_of(row).and_then(|plain| plain.throughput_mbps)))
        });
        if let Some((ours, plain)) = throughput {
            let share = match plain {
                Some(plain) if plain.value > 0.0 => {
                    format!(" ({:.0} % of plain)", ours / plain.value * 100.0)
                }
                _ => String::new(),
            };
            parts.push(match ours > 0.0 {
                true => format!("{} without loss{share}", bits(ours)),
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

    /// The protocol that bears most, or else adds least delay, and how the next does.
    fn best(&self) -> Option<String> {
        let rows = self.usual();
        let of = |by: &dyn Fn(&Row) -> Option<f64>| -> Vec<(String, f64)> {
            let mut ranked: Vec<(String, f64)> = rows
                .iter()
                .filter(|row| !row.point.label().starts_with("plain"))
                .filter_map(|row| Some((row.point.label(), by(row)?)))
                .collect();
            ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
            ranked
        };
        let frame = rows.first()?.point.frame;
        let by_throughput = of(&|row| Some(-row.throughput_mbps?.value));
        if let [(best, most), rest @ ..] = by_throughput.as_slice() {
            let next = match rest.first() {
                Some((name, bits_)) => format!(", {name} {}", bits(-bits_)),
                None => String::new(),
            };
            // A busy machine takes the processor from the tester or the engine in the middle of a trial.
            if *most >= 0.0 {
                return Some(format!(
                    "No rate of frames of {frame} bytes passed without loss under any protocol: each trial lost \
                     some, as it does where other programs take the processor; measure again on an idle machine."
                ));
            }
            let what = format!(
                "With {frame}-byte frames, {best} has the highest loss-free throughput: {}",
                bits(-most)
            );
            return Some(format!("{what}{next}."));
        }
        let by_delay = of(&|row| Some(row.median_us?.value));
        let (best, delay) = by_delay.first()?;
        Some(match rows.first()?.point.backend {
            Backend::Guest => format!(
                "Frames of {frame} bytes take fewest instructions under {best}: {delay:.1} thousand at the median."
            ),
            _ => format!(
                "Frames of {frame} bytes take least time under {best}: {delay:.1} µs at the median."
            ),
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
    use crate::summary::tests::samples;

    fn findings() -> Findings {
        Findings::new(Summary::of(&samples()), "Measured".to_owned())
    }

    #[test]
    fn the_answer_begins_with_what_carries_most() {
        let lines: Vec<String> = findings().answer().iter().map(Inline::to_plain).collect();
        assert!(
            lines[0].contains("macsec has the highest loss-free throughput: 2.00 Gbit/s"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("macsec: +32 bytes per frame, +2.0 µs of delay"), "{lines:?}");
        assert!(lines[2].contains("25 % of plain"), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("4.0 µs per hop")), "{lines:?}");
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
