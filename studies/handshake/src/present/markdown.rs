//! The table of the modes for Markdown files.

use record::Manifest;
use study::{provenance, version_number};

use super::Findings;
use super::compute::{lab_words, own};
use crate::summary::{Row, value};

/// Where the samples come from: date, machine, command and libraries.
pub(super) fn origin(manifest: &Manifest) -> String {
    format!("{}; {}", provenance(manifest), libraries(manifest))
}

/// The table of the modes.
pub(super) fn modes(findings: &Findings) -> String {
    let mut text = format!(
        "{}. Medians; saved: against `{}`; bytes: Ethernet, until the first response byte.\n",
        findings.origin, findings.from
    );
    text += &format!("c: what does not grow with the RTT; {}.\n", lab_words(findings));
    text += "\n| mode | n ready (spec) | c ready | n response (spec) | response at 11.6 ms | at 85.5 ms | saved at 85.5 ms | bytes up / down |\n";
    text += "|---|---|---|---|---|---|---|---|\n";
    for row in findings.main_rows() {
        text += &line(row, findings);
    }
    text
}

/// The libraries that were linked in.
fn libraries(manifest: &Manifest) -> String {
    let libraries: Vec<String> = ["OpenSSL", "rustls", "quinn"]
        .iter()
        .filter_map(|name| {
            let mut known = manifest.libraries.iter();
            let (name, version) = known.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
            Some(format!("{name} {}", version_number(name, version)))
        })
        .collect();
    libraries.join(", ")
}

/// A number without decimals; none is negative and nothing at once.
fn whole(value: f64) -> String {
    let rounded = value.round();
    format!("{:.0}", if rounded == 0.0 { 0.0 } else { rounded })
}

fn line(row: &Row, findings: &Findings) -> String {
    let fitted = |fit: &Option<stats::LineFit>, spec: Option<u32>| match (fit, spec) {
        (Some(fit), Some(spec)) => {
            // Nothing below zero that rounds to it: no `-0.000`.
            let n = (fit.slope.value * 1e3).round() / 1e3 + 0.0;
            format!("{n:.3} ({spec})")
        }
        _ => String::new(),
    };
    let compute = row.ready.as_ref().zip(row.spec).map(|(fit, spec)| {
        // Nothing below zero that rounds to it: no `-0.00`.
        let c = (own(findings, fit, spec.ready).value * 1e2).round() / 1e2 + 0.0;
        format!("{c:.2} ms")
    });
    let at = |rtt: f64| {
        let median = row.at_rtt(rtt).and_then(|cell| cell.median(value::RESPONSE));
        median.map_or(String::new(), |median| format!("{:.1} ms", median.value))
    };
    let change = findings.changes.iter().find(|change| change.to == row.key.mode);
    let saving = change.and_then(|change| change.savings.iter().find(|s| s.rtt_ms == 85.5));
    let saved = saving.map_or(String::new(), |saving| {
        format!("{:.1} ms, {} %", saving.saved_ms.value, whole(saving.percent()))
    });
    let bytes = |name: &str| {
        let median = row.cells.first().and_then(|cell| cell.median(name));
        median.map_or(String::new(), |median| format!("{:.0}", median.value))
    };
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {saved} | {} / {} |\n",
        row.key.mode,
        fitted(&row.ready, row.spec.map(|spec| spec.ready)),
        compute.unwrap_or_default(),
        fitted(&row.response, row.spec.map(|spec| spec.response)),
        at(11.6),
        at(85.5),
        bytes(value::UP_BYTES),
        bytes(value::DOWN_BYTES)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_read_well() {
        assert_eq!([whole(-0.3), whole(-1.6), whole(25.4)], ["0", "-2", "25"]);
    }
}
