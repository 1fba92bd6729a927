//! Machines and energy that a load takes.

use report::{Cell, Column, Inline, Row, Section, Table};
use tls_drivers::{Suite, Workload};

use super::{Findings, rate_text, suite_text};
use crate::machines::{BUSY, need};
use crate::sample::value;
use crate::summary::Want;

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let suites = super::cost::suites(&findings.summary);
    let main = suites.first().copied()?;
    let table = table(findings, main)?;
    let text = format!(
        "What {} new connections per second take of the server's library: CPU time alone, without the \
         kernel and the server around it. Machines like this one are reckoned busy for {:.0} % of \
         the time.",
        rate_text(findings.load),
        BUSY * 100.0
    );
    let mut section = Section::new("stacks-machines", "Machines and energy for a load")
        .with(Inline::new().text(text))
        .with(table);
    if !energy_known(findings) {
        let text = "Energy: this machine's counters (/sys/class/powercap, RAPL) cannot be read, so no \
                    joules are given. At equal power CPU-seconds stand for them.";
        section = section.with(Inline::new().text(text));
    }
    Some(section)
}

fn energy_known(findings: &Findings) -> bool {
    findings.summary.cells.iter().any(|cell| cell.median(value::JOULES).is_some())
}

fn table(findings: &Findings, suite: Suite) -> Option<Table> {
    let mut columns = vec![
        Column::new("Library"),
        Column::new("full, per million").unit("CPU-s"),
        Column::new("resumed, per million").unit("CPU-s"),
        Column::new("cores, full"),
        Column::new("cores, resumed"),
        Column::new("machines, full"),
    ];
    let energy = energy_known(findings);
    if energy {
        columns.push(Column::new("full, per million").unit("kJ, both sides"));
    }
    let caption = format!(
        "What {} new connections per second take, {}",
        rate_text(findings.load),
        suite_text(suite)
    );
    let mut table = Table::new(caption, columns);
    let cores = findings.summary.machine.as_ref().map_or(1, |machine| machine.cores);
    for name in findings.summary.measured() {
        let of = |workload| {
            let cell = findings.summary.find(Want::handshake(workload, suite).of(name))?;
            Some((cell, cell.median(value::SERVER_CPU)?.value))
        };
        let (full, resumed) = (of(Workload::Full), of(Workload::Resume));
        let need = |cpu: f64| need(cpu, findings.load, cores, None);
        let (whole, again) = (full.map(|(_, cpu)| need(cpu)), resumed.map(|(_, cpu)| need(cpu)));
        if whole.is_none() && again.is_none() {
            continue;
        }
        let mut cells = vec![
            Cell::text(findings.summary.title(name)),
            Cell::known(whole.map(|need| need.cpu_s_per_million), 0),
            Cell::known(again.map(|need| need.cpu_s_per_million), 0),
            Cell::known(whole.map(|need| need.cores), 1),
            Cell::known(again.map(|need| need.cores), 1),
            whole.and_then(|need| need.machines).map_or(Cell::Empty, Cell::count),
        ];
        if energy {
            let joules = full.and_then(|(cell, _)| {
                let used = cell.median(value::JOULES)?.value;
                // A million connections' joules, in kJ.
                Some(used / cell.median(value::DONE)?.value * 1e3)
            });
            cells.push(Cell::known(joules, 1));
        }
        let command = full.or(resumed).map(|(cell, _)| cell.command.clone());
        table.push(Row { cells, command });
    }
    (!table.rows.is_empty()).then_some(table)
}

/// For a terminal.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let main = super::cost::suites(&findings.summary).first().copied()?;
    table(findings, main)
}
