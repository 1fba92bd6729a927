//! SSLmTCP beside the same handshake in sequence over the same TCP: round trips, compute, and what
//! it saves.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Plot, PlotError, Point, Row as TableRow, Section,
    Series, Table, Uncertainty,
};
use stats::{Estimate, Holds};

use super::lineup::{few_rtts, listed, typical_rtt};
use super::{Findings, decimals_at, estimate, fits, rtt_text};
use crate::embedded::Embedded;
use crate::lab_delay::LabDelay;
use crate::mode::{Mode, Transport};
use crate::summary::{N_TOLERANCE, Row, RowKey, value};

/// How far c may lie above the TLS libraries' own time and the lab's own delay, in milliseconds.
const C_TOLERANCE_MS: f64 = 0.150;

pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let rows = rows(findings);
    if rows.is_empty() {
        return Ok(None);
    }
    let text = "SSLmTCP carries the TLS handshake in TCP's: the ClientHello in the SYN, the server's \
                flight in the SYN+ACK. Each mode stands beside its **control**, the same handshake \
                in sequence over the same TCP in user space, so that what is saved is the \
                handshake's and not the stack's. Both took turns, and are compared in pairs.";
    let mut section = Section::new("sslmtcp", "SSLmTCP and its control").with(Inline::marked(text));
    if let Some(verdict) = verdict(findings, &rows) {
        section = section.with(verdict);
    }
    section = section.with(computes(findings, &rows));
    if !findings.embedded.is_empty() {
        section = section.with(saved_table(&findings.embedded));
    }
    if let Some(plot) = waiting(&findings.embedded)? {
        let text = "The SSLmTCP paper's Figure 11: what an HTTPS request waits for (connect, TLS and the \
                    server's answer) falls by as much as the handshake, since nothing else changes.";
        section = section.with(Inline::new().text(text)).with(plot);
    }
    Ok(Some(section))
}

/// The same for a terminal: what is saved at four RTTs at most.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    (!findings.embedded.is_empty()).then(|| {
        let rtts = few_rtts(&saved_rtts(&findings.embedded));
        saved_at(&findings.embedded, &rtts, false)
    })
}

/// What each SSLmTCP mode saves from its control, in a sentence each, at the RTT that speaks for most users.
pub(super) fn headlines(findings: &Findings) -> Vec<String> {
    let Some(rtt) = typical_rtt(&saved_rtts(&findings.embedded)) else { return Vec::new() };
    let mut modes: Vec<Mode> = Vec::new();
    let line = |one: &Embedded| {
        let saved = one.saved.iter().find(|saved| saved.rtt_ms == rtt)?;
        // Several sweeps may have a mode; the first speaks for it.
        if saved.ready_ms.low <= 0.0 || modes.contains(&one.key.mode) {
            return None;
        }
        modes.push(one.key.mode);
        Some(format!(
            "{} lets the client send {:.1}\u{a0}ms of {:.1}\u{a0}ms earlier ({:.0}\u{a0}%) than {} at an RTT of {}.",
            one.key.mode,
            saved.ready_ms.value,
            saved.control_ms,
            100.0 * saved.ready_ms.value / saved.control_ms,
            one.control,
            rtt_text(rtt)
        ))
    };
    findings.embedded.iter().filter_map(line).collect()
}

/// Rows over our TCP with fits: controls and SSLmTCP in turn, by sweep and key.
fn rows(findings: &Findings) -> Vec<&Row> {
    let rows = findings.summary.rows.iter();
    let mut rows: Vec<&Row> = rows
        .filter(|row| row.key.mode.transport.is_user_space() && row.key.is_unhindered())
        .filter(|row| row.ready.is_some() && row.response.is_some() && row.spec.is_some())
        .collect();
    rows.sort_by_key(|row| {
        let key = &row.key;
        let path = (&key.sweep, &key.key, &key.group, &key.library, &key.chain);
        (path, key.mode.security, key.mode.transport)
    });
    rows
}

/// c of a row beside what makes it up, in milliseconds.
struct Compute {
    c: Estimate,
    /// Time in both TLS libraries until the response, by the thread's CPU clock.
    crypto: f64,
    /// The lab's own delay on the round trips until the response.
    lab: Option<f64>,
}

impl Compute {
    fn of(row: &Row, lab_delay: Option<LabDelay>) -> Option<Compute> {
        let c = row.response.as_ref()?.intercept;
        let mut sums = Vec::new();
        for cell in &row.cells {
            let (client, server) = cell.paired(value::CLIENT_CRYPTO, value::SERVER_CRYPTO);
            sums.extend(client.iter().zip(server).map(|(client, server)| client + server));
        }
        let crypto = stats::median(&sums)?;
        let round_trips = row.spec?.response;
        Some(Compute { c, crypto, lab: lab_delay.map(|lab| lab.over(round_trips).value) })
    }

    /// What c has beyond the two.
    fn beyond(&self) -> f64 {
        self.c.value - self.crypto - self.lab.unwrap_or(0.0)
    }

    fn holds(&self) -> bool {
        self.beyond() <= C_TOLERANCE_MS
    }
}

/// How much of c until the response is more than that of the kernel's TCP with the same security, keys and
/// library, in milliseconds, the lab's own delay taken off both; `None` where that was not measured.
fn beyond_kernel(findings: &Findings, row: &Row) -> Option<f64> {
    let mode = Mode { transport: Transport::Tcp, ..row.key.mode };
    let key = RowKey { mode, ..row.key.clone() };
    let kernel = findings.summary.rows.iter().find(|other| other.key == key)?;
    let own = |row: &Row| {
        let c = row.response.as_ref()?.intercept.value;
        let lab = findings
            .lab_delay
            .map_or(0.0, |lab| lab.over(row.spec.map_or(0, |s| s.response)).value);
        Some(c - lab)
    };
    Some(own(row)? - own(kernel)?)
}

/// How much above the kernel's own c that of SSLmTCP may be, in milliseconds.
const KERNEL_TOLERANCE_MS: f64 = 0.100;

/// How many are near the kernel's own c.
fn near_kernel(findings: &Findings, rows: &[&&Row]) -> String {
    let beyond: Vec<f64> = rows.iter().filter_map(|row| beyond_kernel(findings, row)).collect();
    if beyond.is_empty() {
        return String::new();
    }
    let near = beyond.iter().filter(|ms| **ms <= KERNEL_TOLERANCE_MS).count();
    format!(
        " In {near} of {} it is no more than {:.0} us above that of the kernel's TCP with the same TLS.",
        beyond.len(),
        KERNEL_TOLERANCE_MS * 1e3
    )
}

fn verdict(findings: &Findings, rows: &[&Row]) -> Option<Inline> {
    let ours: Vec<&&Row> = rows.iter().filter(|row| row.key.mode.control().is_some()).collect();
    if ours.is_empty() {
        return None;
    }
    let held = ours.iter().filter(|row| row.holds == Some(Holds::Yes)).count();
    let computes: Vec<Compute> =
        ours.iter().filter_map(|row| Compute::of(row, findings.lab_delay)).collect();
    let within = computes.iter().filter(|compute| compute.holds()).count();
    let calibrated = match findings.lab_delay {
        Some(lab) => format!("the lab's own delay ({:.0} us each way)", lab.one_way_ms * 1e3),
        None => "the lab's own delay (not calibrated in this run: taken as none)".to_owned(),
    };
    Some(Inline::new().text(format!(
        "{held} of {} SSLmTCP rows take the round trips of their specification within {N_TOLERANCE}; \
         in {within} of {} c until the response is no more than {:.0} us above the time in the TLS \
         libraries and {calibrated}.{}",
        ours.len(),
        computes.len(),
        C_TOLERANCE_MS * 1e3,
        near_kernel(findings, &ours)
    )))
}

/// n and c of every row over our TCP, and what makes c up.
fn computes(findings: &Findings, rows: &[&Row]) -> Table {
    let columns = vec![
        Column::new("Mode"),
        Column::new("Sweep"),
        Column::new("key"),
        Column::new("n ready").unit("RTT"),
        Column::new("spec"),
        Column::new("c ready").unit("ms"),
        Column::new("n response").unit("RTT"),
        Column::new("spec"),
        Column::new("c response").unit("ms"),
        Column::new("TLS libraries").unit("ms"),
        Column::new("lab's delay").unit("ms"),
        Column::new("beyond").unit("ms"),
        Column::new("over the kernel's c").unit("ms"),
        Column::new("holds"),
    ];
    let caption = "median = n × RTT + c over our TCP; c beside what makes it up until the response: \
                   time in both TLS libraries, and the lab's own delay on the way (holds: n as \
                   specified, and c at most 0.15 ms beyond)";
    let mut table = Table::new(caption, columns);
    for row in rows {
        let (Some(ready), Some(response), Some(spec)) = (&row.ready, &row.response, row.spec)
        else {
            continue;
        };
        let compute = Compute::of(row, findings.lab_delay);
        let number = |of: &dyn Fn(&Compute) -> Option<f64>| {
            let value = compute.as_ref().and_then(of);
            value.map_or(Cell::Empty, |value| Cell::number(value, 3))
        };
        let beyond = match compute.as_ref().is_none_or(Compute::holds) {
            true => Holds::Yes,
            false => Holds::No,
        };
        let holds = row.holds.unwrap_or(Holds::CannotTell).and(beyond);
        let cells = vec![
            Cell::text(row.key.mode.to_string()),
            Cell::text(row.key.sweep.clone()),
            Cell::text(row.key.key.clone()),
            estimate(&ready.slope, 3),
            Cell::count(spec.ready.into()),
            estimate(&ready.intercept, 2),
            estimate(&response.slope, 3),
            Cell::count(spec.response.into()),
            estimate(&response.intercept, 2),
            number(&|compute| Some(compute.crypto)),
            number(&|compute| compute.lab),
            number(&|compute| Some(compute.beyond())),
            beyond_kernel(findings, row).map_or(Cell::Empty, |ms| Cell::difference(ms, 3)),
            fits::answer(holds),
        ];
        let line = TableRow::new(cells);
        table.push(match row.cells.first() {
            Some(cell) => line.command(cell.command.clone()),
            None => line,
        });
    }
    table
}

fn saved_rtts(embedded: &[Embedded]) -> Vec<f64> {
    let saved = embedded.iter().flat_map(|embedded| &embedded.saved);
    let mut rtts: Vec<f64> = saved.map(|saved| saved.rtt_ms).collect();
    rtts.sort_by(f64::total_cmp);
    rtts.dedup();
    rtts
}

fn saved_table(embedded: &[Embedded]) -> Table {
    saved_at(embedded, &saved_rtts(embedded), true)
}

fn saved_at(embedded: &[Embedded], rtts: &[f64], with_intervals: bool) -> Table {
    let mut columns = vec![Column::new("Mode"), Column::new("key"), Column::new("control")];
    for rtt in rtts {
        columns.push(Column::new(format!("at {}", rtt_text(*rtt))).unit("ms"));
        columns.push(Column::new("less").unit("%"));
    }
    let caption = "What SSLmTCP saves from TLS in sequence over the same TCP, until the client may \
                   send (medians of pairs; less: as a share of the control's time)";
    let mut table = Table::new(caption, columns);
    for embedded in embedded {
        let mut cells = vec![
            Cell::text(embedded.key.mode.to_string()),
            Cell::text(embedded.key.key.clone()),
            Cell::text(embedded.control.to_string()),
        ];
        for rtt in rtts {
            let saved = embedded.saved.iter().find(|saved| saved.rtt_ms == *rtt);
            let Some(saved) = saved else {
                cells.extend([Cell::Empty, Cell::Empty]);
                continue;
            };
            let digits = decimals_at(*rtt);
            let less = saved.reduction.map(|less| less.map(|share| 100.0 * share));
            cells.push(match with_intervals {
                true => estimate(&saved.ready_ms, digits),
                false => Cell::number(saved.ready_ms.value, digits),
            });
            cells.push(match (less, with_intervals) {
                (None, _) => Cell::Empty,
                (Some(less), true) => estimate(&less, 1),
                (Some(less), false) => Cell::number(less.value, 1),
            });
        }
        table.push(TableRow::new(cells));
    }
    table
}

/// The SSLmTCP paper's Figure 11: waiting time saved, by RTT.
fn waiting(embedded: &[Embedded]) -> Result<Option<Plot>, PlotError> {
    let drawn = embedded.iter().filter(|embedded| embedded.saved.len() > 1);
    let series: Vec<_> = drawn
        .clone()
        .map(|embedded| {
            let points = embedded.saved.iter().map(|saved| {
                let Estimate { value, low, high, .. } = saved.response_ms;
                let mark = Mark::new(value).interval(low, high);
                Point::new(saved.rtt_ms, mark.note(format!("{} pairs", saved.pairs)))
            });
            let name = format!("{}, {}", embedded.key.mode, embedded.key.key);
            Series::measured(name, points.collect())
        })
        .collect();
    if series.is_empty() {
        return Ok(None);
    }
    let saved = drawn.clone().filter_map(|embedded| embedded.saved.last());
    let most = saved.max_by(|a, b| a.response_ms.value.total_cmp(&b.response_ms.value));
    let means = most.map_or_else(
        || "Nothing was saved.".to_owned(),
        |most| {
            format!(
                "With a gateway at both ends, users at {} get the answer on each new connection {:.0} ms earlier.",
                rtt_text(most.rtt_ms),
                most.response_ms.value
            )
        },
    );
    let at_longest: Vec<String> = drawn
        .filter_map(|embedded| {
            let last = embedded.saved.last()?;
            let saved = last.response_ms.value;
            Some(format!("{saved:.1} ms of {} ms RTT by {}", last.rtt_ms, embedded.key.mode))
        })
        .collect();
    let plot = Plot::new(
        "Response waiting time saved",
        format!(
            "An HTTPS request's waiting time falls by about one round trip: {}.",
            listed(&at_longest)
        ),
        means,
        Axis::new("Round-trip time", "ms").from_zero(),
        Axis::new("Saved until the first response byte", "ms").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )?;
    Ok(Some(plot.caption("Medians of pairs with 95 % intervals, against each mode's control.")))
}
