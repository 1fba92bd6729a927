//! What stands beside HAProxy 2025's figures and the trial's.

use study::{Counterpart, Figure};
use tls_drivers::{Contexts, Locks, Suite, Wire, Workload};

use super::{Findings, YARDSTICK, locks, rates};
use crate::advice::MODERN;
use crate::published::{AT_MOST, TLS13_ECDSA, document, trials};
use crate::sample::value;
use crate::summary::Cell as Measured;

/// The driver that stands for a library of HAProxy 2025: what could be fetched of the same version, or
/// its nearest. OpenSSL 3.0.14 can be had nowhere any more: 3.0.20 stands in its place.
const STANDS_FOR: [(&str, &str); 9] = [
    ("AWS-LC (after 1.32.0)", "awslc-1.32.0-c11"),
    ("AWS-LC 1.29.0", "awslc-1.29.0-c99"),
    ("AWS-LC 1.29.0 (C99 refcounts)", "awslc-1.29.0-c99"),
    ("AWS-LC 1.29.0 (C11 atomics)", "awslc-1.29.0-c11"),
    ("OpenSSL 1.1.1w", YARDSTICK),
    ("OpenSSL 3.0.2", "openssl-3.0.2"),
    ("OpenSSL 3.0.14", "openssl-3.0.20"),
    ("OpenSSL 3.1 to 3.4-dev", "openssl-3.4.1"),
    ("WolfSSL 5.7.0", "wolfssl-5.7.2"),
];

/// A figure of HAProxy 2025, taken apart.
struct Line<'a> {
    figure: &'a Figure,
    library: &'static str,
    locks: Locks,
    threads: &'a str,
}

fn line(figure: &Figure) -> Option<Line<'_>> {
    let mut parts = figure.row.rsplitn(3, ", ");
    let (threads, locks, name) = (parts.next()?, parts.next()?, parts.next()?);
    let (_, library) = STANDS_FOR.iter().find(|(other, _)| *other == name)?;
    Some(Line { figure, library, locks: locks.parse().ok()?, threads })
}

pub(super) fn all(findings: &Findings) -> Vec<(String, Counterpart)> {
    let document = document();
    let lines: Vec<Line<'_>> = document.iter().filter_map(line).collect();
    let rates = lines.iter().map(|line| (line.figure.key(), of_document(findings, line, &lines)));
    let counts = trials().iter().map(|figure| (figure.key(), of_trial(findings, figure)));
    rates.chain(counts).collect()
}

/// What HAProxy 2025 measured of the version that a driver stands for: full handshakes in HAProxy with 64
/// threads on 64 cores, with the C library's locks.
pub(super) fn published_full(library: &str) -> Option<f64> {
    let document = document();
    let mut lines = document.iter().filter_map(line);
    let same = |line: &Line<'_>| {
        let own = (line.library, line.locks, line.threads);
        own == (library, Locks::Pthread, "64 threads") && line.figure.item == "full"
    };
    lines.find(same)?.figure.value
}

/// Our measurement of what a line of HAProxy 2025 is about: the same workload and locks, at the
/// most threads of the group that the charts show.
fn ours<'a>(
    findings: &'a Findings,
    (library, locks): (&str, Locks),
    line: &Line<'_>,
) -> Option<&'a Measured> {
    let group = match line.figure.item.as_str() {
        "full" => rates::full(&findings.summary),
        _ => rates::resumed(&findings.summary),
    }?;
    let threads = group.threads.last().copied()?;
    let found = findings.summary.cells.iter().filter(|cell| cell.point.library == library);
    found.filter(|cell| cell.is_good()).find(|cell| {
        let point = &cell.point;
        point.workload == group.workload
            && point.wire == group.wire
            && point.suite == group.suite
            && point.threads == threads
            && point.locks == locks
            && point.contexts == Contexts::Shared
    })
}

fn of_document(findings: &Findings, line: &Line<'_>, lines: &[Line<'_>]) -> Counterpart {
    let own = ours(findings, (line.library, line.locks), line);
    let rate = |cell: &Measured| cell.median(value::RATE);
    let Some((cell, estimate)) = own.and_then(|cell| Some((cell, rate(cell)?))) else {
        return Counterpart::NotMeasured { command: rate_command(line) };
    };
    let theirs = lines.iter().find(|other| {
        (other.library, other.locks) == (YARDSTICK, Locks::Pthread)
            && (&other.figure.item, other.threads) == (&line.figure.item, line.threads)
    });
    let published = line.figure.value.zip(theirs.and_then(|base| base.figure.value));
    let published =
        published.map_or(String::new(), |(own, base)| format!("{:.2} published, ", own / base));
    let base = ours(findings, (YARDSTICK, Locks::Pthread), line).and_then(rate);
    let ratio = base.map_or(String::new(), |base| {
        format!("× 1.1.1w: {published}{:.2} here; ", estimate.value / base.value)
    });
    let cores = findings.summary.machine.as_ref().map_or(0, |machine| machine.cores);
    let instead = match cell.point.workload {
        Workload::Resume => ", resumed handshakes, for no chain was measured",
        _ => "",
    };
    let difference = format!(
        "{ratio}{} alone, both sides on {cores} cores, threads: {}{instead}",
        findings.summary.title(line.library),
        cell.point.threads
    );
    let difference = difference + &lighter(findings, line, cell);
    let interval = Some((estimate.low, estimate.high));
    Counterpart::Ours { value: estimate.value, interval, difference }
}

/// What other locks than the C library's bring, where both were measured.
fn lighter(findings: &Findings, line: &Line<'_>, cell: &Measured) -> String {
    let usual = ours(findings, (line.library, Locks::Pthread), line);
    let ratio = usual
        .filter(|_| line.locks != Locks::Pthread)
        .and_then(|usual| cell.ratio_to(usual, value::RATE));
    ratio.map_or(String::new(), |ratio| {
        let ratio = study::with_interval((ratio.value, ratio.low, ratio.high), 2);
        format!("; × {ratio} of its own rate with the C library's locks")
    })
}

/// Whether a figure of HAProxy 2025 is of light locks.
pub(super) fn is_light(figure: &Figure) -> bool {
    line(figure).is_some_and(|line| line.locks == Locks::Light)
}

/// Each figure of HAProxy 2025, and the command that measures its library alone.
pub(super) fn commands() -> Vec<(Figure, String)> {
    let document = document();
    let command = |figure| line(figure).map_or(String::new(), |line| rate_command(&line));
    let commands: Vec<String> = document.iter().map(command).collect();
    document.into_iter().zip(commands).collect()
}

fn rate_command(line: &Line<'_>) -> String {
    let workload = match line.figure.item.as_str() {
        "full" => Workload::Full,
        _ => Workload::Chain { proxies: 10 },
    };
    let both = match line.library {
        YARDSTICK => YARDSTICK.to_owned(),
        other => format!("{YARDSTICK},{other}"),
    };
    let locks = match line.locks {
        Locks::Pthread => String::new(),
        locks => format!(",{locks}"),
    };
    format!(
        "wiretax stacks --libraries {both} --client reference --workload {workload} --wire {} --key \
         rsa-2048 --threads powers --locks pthread{locks}",
        Wire::Loopback
    )
}

fn of_trial(findings: &Findings, figure: &Figure) -> Counterpart {
    let library = figure.row.strip_suffix(AT_MOST).unwrap_or(&figure.row);
    let suite = if figure.item == TLS13_ECDSA { MODERN } else { locks::TLS12_RSA };
    let Some((value, tickets)) = locks::beside_trial(findings, library, suite) else {
        let Suite { version, key, .. } = suite;
        let command = format!(
            "wiretax stacks --libraries {library} --workload full --version {version} --key {key} \
             --tickets 1,2 --locks count --connections 100"
        );
        return Counterpart::NotMeasured { command };
    };
    let difference = if tickets == 1 { String::new() } else { format!("with {tickets} tickets") };
    Counterpart::Ours { value, interval: None, difference }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::summarise;

    #[test]
    fn every_published_figure_has_its_counterpart_or_the_command_that_measures_it() {
        let findings = Findings::new(summarise([]), 1e5, 1);
        let counterparts = all(&findings);
        let figures = study::figures(crate::published::figures()).unwrap();
        for figure in &figures {
            let found = counterparts.iter().find(|(key, _)| *key == figure.key());
            let Some((_, Counterpart::NotMeasured { command })) = found else {
                panic!("{}: {found:?}", figure.key());
            };
            assert!(command.starts_with("wiretax stacks --libraries "), "{command}");
        }
        assert_eq!(counterparts.len(), figures.len());
    }
}
