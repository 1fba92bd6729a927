//! How far it scales: a fitted curve where enough cores were measured, else an estimate from counts.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Plot, PlotError, Point, Row, Section, Series, Table,
    Uncertainty,
};
use tls_drivers::{Suite, Workload};

use super::counterparts::published_full;
use super::{Findings, estimate, handshake_text, rates, workload_text};
use crate::advice::MODERN;
use crate::contention::{Contention, Counts, contention};
use crate::point::Tool;
use crate::queue::Queue;
use crate::sample::value;
use crate::scaling::{Fit, LEAST_COUNTS, Rates};
use crate::summary::{Summary, Want};
use tls_drivers::hosts::Contended;

/// The fits of a group's libraries, of core counts up to the machine's.
pub(super) fn fits<'a>(findings: &Findings, group: &rates::Group<'a>) -> Vec<(&'a str, Fit)> {
    let cores = findings.summary.machine.as_ref().map_or(0, |machine| machine.cores as usize);
    let of =
        |(name, cells): &(&'a str, std::collections::BTreeMap<usize, &crate::summary::Cell>)| {
            let points: Vec<Rates> = cells
                .range(..=group.most_cores(cores))
                .filter_map(|(threads, cell)| {
                    let cores = u32::try_from(*threads).ok()?;
                    Some(Rates { cores, rates: cell.samples(value::RATE) })
                })
                .collect();
            Some((*name, Fit::new(&points, findings.seed).ok()?))
        };
    group.libraries.iter().filter_map(of).collect()
}

/// What counts suggest of a library's server, in one kind of handshake.
pub(super) fn contention_of(
    summary: &Summary,
    name: &str,
    workload: Workload,
    suite: Suite,
    contended: Contended,
) -> Option<(Counts, Contention)> {
    let cell = super::locks::counted(summary, name, workload, suite)?;
    let median = |what| cell.median(what).map(|median| median.value);
    let callgrind = Want {
        workload: Some(workload),
        version: Some(suite.version),
        key: Some(suite.key),
        tool: Tool::Callgrind,
        ..Want::TIMED
    };
    let atomics =
        summary.find(callgrind.of(name)).and_then(|cell| cell.median(value::SERVER_ATOMICS));
    let counts = Counts {
        read: median(value::SERVER_READ)?,
        write: median(value::SERVER_WRITE)?,
        mutex: median(value::SERVER_MUTEX)?,
        atomics: atomics.map(|atomics| atomics.value),
    };
    let timed = summary.find(Want::handshake(workload, suite).of(name));
    let cpu = timed.and_then(|cell| cell.median(value::SERVER_CPU)).map(|cpu| cpu.value);
    Some((counts, contention(counts, contended, cpu)))
}

pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let groups = [
        rates::groups(&findings.summary, |workload| workload == Workload::Full),
        rates::groups(&findings.summary, |workload| workload == Workload::Resume),
        rates::groups(&findings.summary, |workload| matches!(workload, Workload::Chain { .. })),
    ];
    let mut fitted = Vec::new();
    for groups in &groups {
        // Of groups that can be fitted the one with the most libraries, then core counts.
        let all = groups.iter().map(|group| (group, fits(findings, group)));
        let best = all.max_by_key(|(group, fits)| (fits.len(), group.threads.len()));
        fitted.extend(best.filter(|(_, fits)| !fits.is_empty()));
    }
    let table = estimates(findings);
    if fitted.is_empty() && table.is_none() {
        return Ok(None);
    }
    let mut section = Section::new("stacks-scaling", "How far it scales");
    if fitted.is_empty() {
        section = section.with(Inline::new().text(no_curve(findings)));
    }
    for (group, fits) in &fitted {
        section = section
            .with(Inline::new().text(
                "Fitted: the Universal Scalability Law, X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)), by \
                 least squares of relative errors over core counts up to this machine's. σ is what \
                 waits for its turn, κ what keeping the cores' caches together costs.",
            ))
            .with(plot(findings, group, fits)?)
            .with(fit_table(findings, group, fits));
    }
    if let (Some(table), Some(text)) = (table, assumption(findings)) {
        section = section.with(text).with(table);
    }
    Ok(Some(section))
}

fn no_curve(findings: &Findings) -> String {
    let cores = findings.summary.machine.as_ref().map_or(0, |machine| machine.cores);
    format!(
        "No scaling curve: it takes {LEAST_COUNTS} core counts to fit one, and this machine has \
         {cores} cores; more threads than cores is not scaling. What counts suggest is below."
    )
}

/// What is certain, what is estimated, and on which assumption.
fn assumption(findings: &Findings) -> Option<Inline> {
    let contended = findings.summary.machine.as_ref()?.contended?;
    let Contended { read_ns, write_ns, mutex_ns, atomic_ns } = contended;
    Some(Inline::new().strong("Estimated, and no bound").text(format!(
        ": what is certain is the count of acquisitions. The estimate of contention beside it takes \
         them one after another, as if all were of one shared lock and each were handed over from \
         another core, at what that takes between two cores of this machine: {read_ns:.0} ns to \
         read, {write_ns:.0} ns to write, {mutex_ns:.0} ns for a mutex, {atomic_ns:.0} ns for an \
         atomic addition; between two machines this differs four times. A library is faster where \
         it spreads its locks, locks what belongs to one connection, or takes a lock again on the \
         core that had it last: HAProxy 2025 measured more with OpenSSL 3.0 and 3.1 to 3.4. It is \
         slower where more cores than two make a hand-over longer. In a queue: so many cores at that          one lock, a core that had it last taking it again for nothing."
    )))
}

fn estimates(findings: &Findings) -> Option<Table> {
    let contended = findings.summary.machine.as_ref()?.contended?;
    let columns = vec![
        Column::new("Library"),
        Column::new("full: locks (counted)"),
        Column::new("one after another (estimated)").unit("µs"),
        Column::new("that is (estimated)").unit("1/s"),
        Column::new("published, 64 cores").unit("1/s"),
        Column::new("as long as the rest at (estimated)").unit("cores"),
        Column::new("8 cores in a queue (estimated)").unit("1/s"),
        Column::new("64 cores in a queue (estimated)").unit("1/s"),
        Column::new("resumed: locks (counted)"),
        Column::new("that is (estimated)").unit("1/s"),
        Column::new("atomics, full (counted)"),
        Column::new("of one word (estimated)").unit("1/s"),
    ];
    let caption = format!(
        "Locks of a handshake on the server's side, and an estimate of their contention if each is \
         handed from core to core, beside what HAProxy 2025 measured: {}",
        handshake_text(MODERN)
    );
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let of = |workload| contention_of(&findings.summary, name, workload, MODERN, contended);
        let (full, resumed) = (of(Workload::Full), of(Workload::Resume));
        if full.is_none() && resumed.is_none() {
            continue;
        }
        let locks = |it: &Option<(Counts, Contention)>| it.map(|(counts, _)| counts.locks());
        let of = |it: &Option<(Counts, Contention)>, what: fn(&Contention) -> Option<f64>| {
            it.as_ref().and_then(|(_, estimate)| what(estimate))
        };
        let timed = findings.summary.find(Want::handshake(Workload::Full, MODERN).of(name));
        let queue = timed
            .and_then(|cell| cell.median(value::SERVER_CPU))
            .and_then(|cpu| Queue::of_counts(cpu.value, of(&full, |it| Some(it.locks_us))?));
        table.push(Row::new(vec![
            Cell::text(findings.summary.title(name)),
            Cell::known(locks(&full), 1),
            Cell::known(of(&full, |it| Some(it.locks_us)), 1),
            Cell::known(of(&full, |it| it.locks_per_s), 0),
            Cell::known(published_full(name), 0),
            Cell::known(of(&full, |it| it.cores), 0),
            Cell::known(queue.map(|queue| queue.at(8)), 0),
            Cell::known(queue.map(|queue| queue.at(64)), 0),
            Cell::known(locks(&resumed), 1),
            Cell::known(of(&resumed, |it| it.locks_per_s), 0),
            Cell::known(full.and_then(|(counts, _)| counts.atomics), 0),
            Cell::known(of(&full, |it| it.atomics_per_s), 0),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// For a terminal: what fits one.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let contended = findings.summary.machine.as_ref()?.contended?;
    let columns = vec![
        Column::new("Library"),
        Column::new("locks, full"),
        Column::new("estimated").unit("1/s"),
        Column::new("published, 64 cores").unit("1/s"),
        Column::new("locks, resumed"),
        Column::new("estimated").unit("1/s"),
    ];
    let caption = "Locks counted, and an estimate of contention on this machine that is no bound: \
                   handshakes per second if all were of one lock, each handed from core to core; TLS \
                   1.3, ECDSA P-256";
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let of = |workload| contention_of(&findings.summary, name, workload, MODERN, contended);
        let (full, resumed) = (of(Workload::Full), of(Workload::Resume));
        if full.is_none() && resumed.is_none() {
            continue;
        }
        let rate = |it: Option<(Counts, Contention)>| it.and_then(|(_, it)| it.locks_per_s);
        table.push(Row::new(vec![
            Cell::text(findings.summary.title(name)),
            Cell::known(full.map(|(counts, _)| counts.locks()), 1),
            Cell::known(rate(full), 0),
            Cell::known(published_full(name), 0),
            Cell::known(resumed.map(|(counts, _)| counts.locks()), 1),
            Cell::known(rate(resumed), 0),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}

fn plot(
    findings: &Findings,
    group: &rates::Group<'_>,
    fits: &[(&str, Fit)],
) -> Result<Plot, PlotError> {
    let mut series = Vec::new();
    for (name, fit) in fits {
        let title = findings.summary.title(name);
        let cells = group.libraries.iter().find(|(other, _)| other == name);
        let measured = cells.into_iter().flat_map(|(_, cells)| cells.range(..=fit.cores as usize));
        let measured = measured.filter_map(|(threads, cell)| {
            let rate = cell.median(value::RATE)?;
            Some(Point::new(*threads as f64, Mark::new(rate.value).interval(rate.low, rate.high)))
        });
        series.push(Series::measured(format!("{title}, measured"), measured.collect::<Vec<_>>()));
        let curve = (1..=2 * fit.cores).map(|cores| {
            let at = fit.predict(cores, findings.seed);
            Point::new(f64::from(cores), Mark::new(at.value).interval(at.low, at.high))
        });
        series.push(Series::measured(format!("{title}, fitted"), curve.collect()).muted());
    }
    let most = fits.iter().map(|(_, fit)| fit.cores).max().unwrap_or(0);
    let gains = fits.iter().map(|(name, fit)| {
        let title = findings.summary.title(name);
        match fit.law.peak() {
            Some(peak) => format!("{title} gains nothing beyond {peak:.0}"),
            None => format!("{title} gains by each"),
        }
    });
    let means =
        format!("Of more cores, by these curves, {}.", gains.collect::<Vec<_>>().join(", "));
    Plot::new(
        format!("Scaling of {}, fitted to {most} cores", workload_text(group.workload)),
        format!("Curves of the law through rates measured up to {most} cores, and as far again."),
        means,
        Axis::new("Number of threads, each with a core", ""),
        Axis::new("Connections", "1/s").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Band },
    )
}

fn fit_table(findings: &Findings, group: &rates::Group<'_>, fits: &[(&str, Fit)]) -> Table {
    let most = fits.iter().map(|(_, fit)| fit.cores).max().unwrap_or(0);
    let columns = vec![
        Column::new("Library"),
        Column::new("λ (fitted)").unit("1/s"),
        Column::new("σ (fitted)"),
        Column::new("κ (fitted)"),
        Column::new("peak (fitted)").unit("cores"),
        Column::new("worst of points left out").unit("%"),
        Column::new(format!("{most} cores by a queue fitted to half")).unit("% off"),
        Column::new(format!("{} cores (predicted)", 2 * most)).unit("1/s"),
        Column::new(format!("{} cores (predicted)", 4 * most)).unit("1/s"),
    ];
    let caption = format!(
        "The law's coefficients for {}, with 95 % intervals; each core count was left out once and \
         predicted from the others",
        workload_text(group.workload)
    );
    let mut table = Table::new(caption, columns);
    for (name, fit) in fits {
        table.push(Row::new(vec![
            Cell::text(findings.summary.title(name)),
            estimate(Some(fit.lambda), 0),
            estimate(Some(fit.sigma), 4),
            estimate(Some(fit.kappa), 6),
            fit.law.peak().map_or_else(|| Cell::text("none"), |peak| Cell::number(peak, 0)),
            Cell::number(100.0 * fit.worst_error(), 1),
            Cell::known(of_half(group, name, fit.cores).map(|error| 100.0 * error), 1),
            estimate(Some(fit.predict(2 * most, findings.seed)), 0),
            estimate(Some(fit.predict(4 * most, findings.seed)), 0),
        ]));
    }
    table
}

/// How far off the rate of the most cores is, as a share, by a queue that was fitted to up to half of them.
fn of_half(group: &rates::Group<'_>, name: &str, most: u32) -> Option<f64> {
    let (_, cells) = group.libraries.iter().find(|(other, _)| *other == name)?;
    let rates = cells.iter().filter_map(|(threads, cell)| {
        Some((u32::try_from(*threads).ok()?, cell.median(value::RATE)?.value))
    });
    let rates: Vec<(u32, f64)> = rates.filter(|(cores, _)| *cores <= most).collect();
    let few: Vec<(u32, f64)> =
        rates.iter().copied().filter(|(cores, _)| 2 * cores <= most).collect();
    let (_, measured) = rates.iter().find(|(cores, _)| *cores == most)?;
    Some(Queue::fit(&few)?.at(most) / measured - 1.0)
}
