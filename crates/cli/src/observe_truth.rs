//! What a folder of results has of the observe study: captures of clients of whom all is known, and how
//! far their records agree with the logs of both ends.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use observe_study::{Findings, findings};
use report::{Cell, Column, Inline, KeyFigure, Row, Section, Table};
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failed, OrExit};
use crate::observe::digest_of;

/// The folder in one of results.
pub const FOLDER: &str = "observe";
/// The file in it that is written last.
pub const LOGS: &str = "agreement.json";

/// The study's part of results.
pub struct Truth {
    /// What the captures' records say.
    pub findings: Findings,
    /// How far they agree with the logs.
    pub agreement: Agreement,
}

/// How far records and logs agree, as `observe_study::truth` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Agreement {
    made: usize,
    recorded: usize,
    classified: usize,
    strangers: usize,
    unplanned: Vec<String>,
    uncertain: BTreeMap<String, usize>,
    uncertain_quic: BTreeMap<String, usize>,
    times: Vec<TimeAgreement>,
    round_trips: Vec<RoundTripAgreement>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct TimeAgreement {
    step: String,
    count: usize,
    median_us: f64,
    worst_us: f64,
    record_later: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RoundTripAgreement {
    population: String,
    known_ms: f64,
    median_ms: Option<f64>,
    mode_ms: Option<f64>,
}

impl Truth {
    /// Reads it again from its captures; `None` if the results have none.
    pub fn read(results: &Path, seed: u64) -> Result<Option<Truth>, Failed> {
        let folder = results.join(FOLDER);
        let logs = folder.join(LOGS);
        if !logs.exists() {
            return Ok(None);
        }
        let unreadable = || format!("{} cannot be read", logs.display());
        let text =
            std::fs::read_to_string(&logs).with_context(unreadable).or_exit(Exit::Results)?;
        let agreement = serde_json::from_str(&text).with_context(unreadable);
        let agreement = agreement.or_exit(Exit::Results)?;
        let listed = std::fs::read_dir(&folder)
            .with_context(|| format!("{} cannot be read", folder.display()))
            .or_exit(Exit::Results)?;
        let mut captures: Vec<_> = listed
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "pcapng"))
            .collect();
        captures.sort();
        let digest = digest_of(&captures, seed)?;
        Ok(Some(Truth { findings: findings(&digest), agreement }))
    }

    /// The study's tables for a terminal.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = self.findings.tables();
        tables.extend(self.agreement.tables());
        tables
    }

    /// The study's sections of a report.
    pub fn sections(&self) -> Result<Vec<Section>, Failed> {
        let mut sections = self.findings.sections().or_exit(Exit::Results)?;
        let mut section = Section::new("observe-truth", "Records beside the logs");
        for table in self.agreement.tables() {
            section.blocks.push(table.into());
        }
        sections.push(section);
        Ok(sections)
    }

    /// What the first page of a report shows of it.
    pub fn key_figures(&self) -> Vec<KeyFigure> {
        self.findings.key_figures()
    }

    /// The answer's lines.
    pub fn answer(&self) -> Vec<Inline> {
        self.findings.answer()
    }
}

impl Agreement {
    fn tables(&self) -> Vec<Table> {
        vec![self.counts(), self.round_trip_table(), self.time_table()]
    }

    fn counts(&self) -> Table {
        let columns = vec![Column::new("Connections of the lab's clients"), Column::new("count")];
        let mut table = Table::new("Records against what the generator knows", columns);
        let mut row = |what: &str, count: usize| {
            table.push(Row::new(vec![Cell::text(what), Cell::number(count as f64, 0)]));
        };
        row("made", self.made);
        row("with a record of the capture", self.recorded);
        row("of these with the class that the generator knows", self.classified);
        row("records of no connection in the logs", self.strangers);
        row("that did not become what was meant", self.unplanned.len());
        for (reason, count) in &self.uncertain {
            row(&format!("uncertain, TCP: {reason}"), *count);
        }
        for (reason, count) in &self.uncertain_quic {
            row(&format!("uncertain, QUIC: {reason}"), *count);
        }
        table
    }

    fn round_trip_table(&self) -> Table {
        let columns = vec![
            Column::new("Population"),
            Column::new("put in").unit("ms"),
            Column::new("median of the records").unit("ms"),
            Column::new("nearest mode").unit("ms"),
        ];
        let mut table = Table::new("Round-trip times put in and found", columns);
        let ms = |ms: Option<f64>| ms.map_or_else(|| Cell::text("-"), |ms| Cell::number(ms, 2));
        for one in &self.round_trips {
            let name = Cell::text(one.population.clone());
            let known = Cell::number(one.known_ms, 2);
            table.push(Row::new(vec![name, known, ms(one.median_ms), ms(one.mode_ms)]));
        }
        table
    }

    fn time_table(&self) -> Table {
        let columns = vec![
            Column::new("Step"),
            Column::new("connections"),
            Column::new("log later, median").unit("us"),
            Column::new("worst").unit("us"),
            Column::new("record later"),
        ];
        let mut table = Table::new("Times of records against times of logs", columns);
        for one in &self.times {
            table.push(Row::new(vec![
                Cell::text(one.step.clone()),
                Cell::number(one.count as f64, 0),
                Cell::number(one.median_us, 1),
                Cell::number(one.worst_us, 1),
                Cell::number(one.record_later as f64, 0),
            ]));
        }
        table
    }
}
