//! The summary as tables: for the terminal and for the report.

use fault::{Fault, OrProblem, Problem};
use report::{Caution, Cell, Column, Inline, KeyFigure, Note, Section, Table, decimals};
use serde_json::{Value, json};
use stats::Estimate;
use stats::claims::{Better, MARGIN, Ranking, Words};
use study::{Counterpart, Subject};
use units::counted;

use crate::point::Scenario;
use crate::summary::{Program, Row, Summary};

/// What the samples say.
pub struct Findings {
    summary: Summary,
    /// Where the results come from, in words.
    provenance: String,
}

/// A row and its rate.
type Rated<'a> = (&'a Row, f64);

impl Findings {
    /// What `summary` says.
    #[must_use]
    pub fn new(summary: Summary) -> Findings {
        Findings { summary, provenance: String::new() }
    }

    /// The same with where the results come from, for Markdown.
    #[must_use]
    pub fn measured(self, provenance: String) -> Findings {
        Findings { provenance, ..self }
    }

    /// The first scenario that was measured, in the order of their names: what the answer is about.
    fn scenario(&self) -> Scenario {
        let measured =
            |wanted: &&Scenario| self.summary.rows.iter().any(|row| row.cell.scenario == **wanted);
        Scenario::ALL.iter().find(measured).copied().unwrap_or(Scenario::Full)
    }

    /// The rows of the answer, the least CPU time per connection first: one scenario, TLS version and number of
    /// threads, those measured first.
    fn rated(&self) -> Vec<Rated<'_>> {
        let scenario = self.scenario();
        let rows = self.summary.rows.iter().filter(|row| row.cell.scenario == scenario);
        let mut costs: Vec<Rated<'_>> =
            rows.filter_map(|row| Some((row, row.server_cpu_us?.value))).collect();
        let like = costs.first().map(|(row, _)| (row.cell.version, row.cell.threads));
        costs.retain(|(row, _)| Some((row.cell.version, row.cell.threads)) == like);
        costs.sort_by(|a, b| a.1.total_cmp(&b.1));
        costs
    }

    fn ranking(&self) -> Ranking {
        let mut ranking = Ranking::new(Better::Less, MARGIN);
        for (row, _) in self.rated() {
            ranking.push_turns(build(row), &row.cpu_by_run);
        }
        ranking
    }
}

/// Words of a ranking by CPU time.
const CHEAPEST: Words = Words { wins: "is cheapest", behind: "dearer", pairs: "runs" };

fn what(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::Full => "a full handshake",
        Scenario::Chain => "a connection resumed through the chain",
        Scenario::Quic => "a full handshake over QUIC",
    }
}

fn build(row: &Row) -> String {
    format!("{} with {} locks", row.cell.library, row.cell.locks)
}

impl study::Findings for Findings {
    fn subject(&self) -> Subject {
        Subject {
            title: "HAProxy on TLS libraries".to_owned(),
            question:
                "How many connections does HAProxy take on each TLS library, and what does each \
                       cost?"
                    .to_owned(),
        }
    }

    fn answer(&self) -> Vec<Inline> {
        let rated = self.rated();
        let Some((first, _)) = rated.first() else {
            let text = format!("No run of `{}` showed what it should.", self.scenario());
            return vec![Inline::new().text(text)];
        };
        let cost = |at: usize| rated.get(at).map_or(String::new(), |(_, us)| format!("{us:.0} µs"));
        let said = CHEAPEST.sentence(&self.ranking().verdict(), cost);
        vec![Inline::new().text(format!(
            "HAProxy's CPU time for {} ({}): {said}.",
            what(self.scenario()),
            counted(first.cell.threads, "thread"),
        ))]
    }

    fn rankings(&self) -> Vec<(String, Ranking)> {
        let ranking = self.ranking();
        let title = format!("HAProxy's CPU time for {}", what(self.scenario()));
        (ranking.len() > 1).then_some((title, ranking)).into_iter().collect()
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        let rated = self.rated();
        let least = rated.first().map(|(best, least)| KeyFigure {
            value: format!("{least:.0}"),
            unit: "µs".to_owned(),
            label: format!(
                "HAProxy's CPU time per connection of `{}`, {}",
                self.scenario(),
                build(best)
            ),
            detail: format!("measured, threads: {}", best.cell.threads),
            means: format!(
                "1000 of these connections per second keep {:.0} % of a core busy in HAProxy.",
                least / 10.0
            ),
        });
        least.into_iter().collect()
    }

    fn cautions(&self) -> Vec<Caution> {
        Vec::new()
    }

    fn sections(&self) -> Result<Vec<Section>, Problem> {
        Ok(section(&self.summary).into_iter().collect())
    }

    fn tables(&self) -> Vec<Table> {
        Scenario::ALL.iter().filter_map(|scenario| table(&self.summary, *scenario)).collect()
    }

    fn counterparts(&self) -> Vec<(String, Counterpart)> {
        crate::published::counterparts(&self.summary)
    }

    fn json(&self) -> Result<Value, Problem> {
        let summary = serde_json::to_value(&self.summary).blame(Fault::Results)?;
        Ok(json!({ "haproxy": summary }))
    }

    fn markdown(&self) -> Result<Vec<(String, String)>, Problem> {
        if let Some(text) = crate::markdown::over_quic(&self.summary, &self.provenance) {
            return Ok(vec![("haproxy-quic".to_owned(), text)]);
        }
        let text = crate::markdown::markdown(&self.summary, &self.provenance);
        let claims = crate::claims::markdown(&self.summary, &self.provenance);
        Ok(vec![("haproxy".to_owned(), text), ("haproxy-claims".to_owned(), claims)])
    }

    fn empty(&self) -> Option<Problem> {
        let none = self.summary.rows.iter().all(|row| row.runs == 0);
        none.then(|| {
            let what = "no run showed what it should; the samples hold why";
            Problem::new(Fault::Measurement, what)
        })
    }
}

fn estimate(estimate: Option<Estimate>) -> Cell {
    estimate.map_or(Cell::Empty, |one| {
        Cell::estimate(one.value, one.low, one.high, decimals(one.value))
    })
}

fn percent(share: Option<f64>, decimals: usize) -> Cell {
    Cell::known(share.map(|share| share * 100.0), decimals)
}

/// The least of the three shares, so that one figure stands for all that prove it.
fn least_resumed(row: &Row) -> Option<f64> {
    let shares = [row.client_resumed, row.front_resumed, row.back_resumed];
    shares.into_iter().flatten().reduce(f64::min)
}

/// The measured cells of a scenario; none where it was not measured.
#[must_use]
pub fn table(summary: &Summary, scenario: Scenario) -> Option<Table> {
    let columns = vec![
        Column::new("Library"),
        Column::new("locks"),
        Column::new("TLS"),
        Column::new("threads"),
        Column::new("connections").unit("1/s").bars(),
        Column::new("to 1.1.1w"),
        Column::new("HAProxy 2025, 64 threads"),
        Column::new("HAProxy's CPU").unit("µs"),
        Column::new("of it kernel").unit("%"),
        Column::new("CPU to 1.1.1w"),
        Column::new("processors busy"),
        Column::new("resumed").unit("%"),
        Column::new("p50").unit("ms"),
        Column::new("p99").unit("ms"),
        Column::new("runs"),
    ];
    let proxies = summary.proxies.unwrap_or_default();
    let what = match scenario {
        Scenario::Full => "Full handshakes that HAProxy answers itself".to_owned(),
        Scenario::Chain => format!("{proxies} proxies in a row, resumed on both sides"),
        Scenario::Quic => "Full handshakes over QUIC, with a request over HTTP/3".to_owned(),
    };
    let caption = format!(
        "{what}: HAProxy {}, {}, {}; medians of the runs, with intervals; CPU is per connection",
        summary.releases.join(" and "),
        summary.key,
        summary.group
    );
    let mut table = Table::new(caption, columns);
    for row in summary.rows.iter().filter(|row| row.cell.scenario == scenario) {
        let mut cells = vec![
            Cell::text(&row.cell.library),
            Cell::text(row.cell.locks.to_string()),
            Cell::text(row.cell.version.to_string()),
            Cell::count(row.cell.threads as u64),
        ];
        match row.runs {
            0 => cells.push(Cell::text(row.failure.clone().unwrap_or_default())),
            _ => cells.extend(measured(row)),
        }
        table.push(report::Row::new(cells).command(&row.command));
    }
    (!table.rows.is_empty()).then_some(table)
}

fn measured(row: &Row) -> [Cell; 11] {
    let runs = match row.failed {
        0 => row.runs.to_string(),
        failed => format!("{} ({failed} failed)", row.runs),
    };
    [
        estimate(row.per_second),
        estimate(row.ratio),
        Cell::known(row.published.as_ref().map(|one| one.ratio), 2),
        estimate(row.server_cpu_us),
        percent(row.kernel_share, 0),
        estimate(row.cpu_ratio),
        Cell::known(row.server_processors, 2),
        percent(least_resumed(row), 2),
        Cell::known(row.p50_ms, 2),
        Cell::known(row.p99_ms, 2),
        Cell::text(runs),
    ]
}

/// The report's section; none where nothing was measured.
#[must_use]
pub fn section(summary: &Summary) -> Option<Section> {
    let tables: Vec<Table> =
        Scenario::ALL.iter().filter_map(|scenario| table(summary, *scenario)).collect();
    if tables.is_empty() {
        return None;
    }
    let mut section = Section::new("haproxy", "With HAProxy itself")
        .with(Inline::marked(
            "HAProxy, built from Debian's source on each library, in the two scenarios of HAProxy 2025. \
             The load generator runs on the same processors, so connections per second are of both \
             together; the CPU time per connection is of HAProxy's process alone, the kernel's part \
             included.",
        ))
        .with(report::Block::Note(Note::info(
            "The ratios of HAProxy 2025 are of 64 threads on 64 cores, where locks decide; with few cores \
             ours show what the library itself costs. Resumed: the least share that the load \
             generator, HAProxy's frontends and its backends counted.",
        )));
    for table in tables {
        section = section.with(table);
    }
    if let Some(table) = programs(&summary.programs) {
        section = section.with(table);
    }
    Some(section)
}

fn programs(programs: &[Program]) -> Option<Table> {
    let columns = vec![
        Column::new("Library"),
        Column::new("HAProxy"),
        Column::new("source"),
        Column::new("runs on"),
        Column::new("light locks"),
    ];
    let mut table = Table::new("The programs, as they describe themselves", columns);
    for program in programs {
        table.push(report::Row::new(vec![
            Cell::text(&program.library),
            Cell::text(&program.haproxy),
            Cell::text(&program.source),
            Cell::text(&program.runs_on),
            Cell::text(if program.light_locks { "yes" } else { "no" }),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;
    use study::Findings as _;

    #[test]
    fn every_cell_has_its_row_in_its_scenario_s_table() {
        let summary = Summary::of(&samples());
        assert!(table(&summary, Scenario::Quic).is_none());
        for scenario in &[Scenario::Full, Scenario::Chain] {
            let table = table(&summary, *scenario).unwrap();
            assert_eq!(table.rows.len() * 2, summary.rows.len());
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
            let text = table.to_text(240);
            assert!(text.contains("openssl-3.0.2") && text.contains("501"), "{text}");
        }
        assert!(section(&summary).is_some() && programs(&summary.programs).is_some());
        let findings = Findings::new(summary);
        assert_eq!(findings.tables().len(), 2);
        assert!(findings.empty().is_none());
        let answer = findings.answer()[0].to_plain();
        assert!(answer.starts_with("HAProxy's CPU time for a full handshake ("), "{answer}");
        assert!(answer.contains("openssl-1.1.1w with pthread locks 999 µs"), "{answer}");
        assert!(answer.contains("too few runs to rank them (3, and "), "{answer}");
        let mut chain = samples();
        chain.retain(|sample| sample.point["scenario"] == "chain");
        let answer = Findings::new(Summary::of(&chain)).answer()[0].to_plain();
        let through = "HAProxy's CPU time for a connection resumed through the chain (";
        assert!(answer.starts_with(through), "{answer}");
        let (_, ours) = &findings.counterparts()[0];
        assert!(matches!(ours, Counterpart::NotMeasured { .. }), "no AWS-LC: {ours:?}");
        let ours =
            findings.counterparts().into_iter().find(|(key, _)| key.contains("3.0.2")).unwrap().1;
        let Counterpart::Ours { value, difference, .. } = ours else { panic!("{ours:?}") };
        assert_eq!(value, 501.0);
        assert!(
            difference.starts_with("× 1.1.1w: 0.44 published, 0.50 here; openssl-3.0.2"),
            "{difference}"
        );
        assert!(section(&Summary::default()).is_none());
    }

    #[test]
    fn a_cell_without_a_good_run_says_why() {
        let mut samples = samples();
        for sample in samples.iter_mut().filter(|s| s.point["library"] == "openssl-3.0.2") {
            sample.outcome = record::Outcome::Failed { reason: "it ended".into() };
        }
        let text = table(&Summary::of(&samples), Scenario::Full).unwrap().to_text(240);
        assert!(text.contains("it ended"), "{text}");
        for sample in &mut samples {
            sample.outcome = record::Outcome::Failed { reason: "it ended".into() };
        }
        assert!(Findings::new(Summary::of(&samples)).empty().is_some());
    }
}
