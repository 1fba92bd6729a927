//! The answer in sentences: how long, where the time goes, what to change.

use handoff::{EXPLAINED_WITHIN, Phase};
use stats::Estimate;

use crate::point::PAPER;
use crate::summary::{Changed, Row, Summary};

/// Most changes in the answer; the table has all.
const MOST_CHANGES: usize = 4;
/// Most cases in the first sentence.
const MOST_CASES: usize = 4;
/// A radio that holds frames back for so long, in ms, waits for an answer that does not come.
const HELD: f64 = 100.0;
/// A phase that is shorter, in ms, is none to speak of.
const SHORT: f64 = 1.0;
/// Directions that differ by less, in ms, do not: a frame or a beacon does that.
const DIFFERENT: f64 = 10.0;

/// The rows of the answer: cases as they are, at the lowest rate; the paper's first.
pub(crate) fn usual(summary: &Summary) -> Vec<&Row> {
    let of = |row: &&Row| row.point.difference().is_empty() && row.outage_ms.is_some();
    let Some(rate) = summary.rows.iter().filter(of).map(|row| row.point.rate).min() else {
        return summary.rows.iter().filter(|row| row.outage_ms.is_some()).take(1).collect();
    };
    let mut rows: Vec<&Row> = Vec::new();
    for row in summary.rows.iter().filter(of).filter(|row| row.point.rate == rate) {
        // Several sweeps may measure a case; the first has it.
        if !rows.iter().any(|known| known.point.scenario == row.point.scenario) {
            rows.push(row);
        }
    }
    let place = |row: &Row| {
        PAPER.iter().position(|name| *name == row.point.scenario.0).unwrap_or(PAPER.len())
    };
    rows.sort_by_key(|row| place(row));
    rows
}

/// The answer, the first sentence by itself.
pub(crate) fn sentences(summary: &Summary) -> Vec<String> {
    let rows = usual(summary);
    let mut lines: Vec<String> = Vec::new();
    lines.extend(how_long(&rows));
    lines.extend(rows.iter().take(MOST_CASES).filter_map(|row| where_to(row)));
    lines.extend(held(&rows));
    lines.extend(extremes(&rows));
    lines.extend(directions(&rows));
    lines.extend(paper_order(summary));
    lines.extend(summary.changes.iter().filter(|one| is_worth(one)).take(MOST_CHANGES).map(worth));
    lines.extend(summary.changes.iter().filter(|one| is_harm(one)).take(MOST_CHANGES).map(harm));
    lines.extend(no_use(&summary.changes));
    if lines.is_empty() {
        lines.push("No run of any handoff gave a figure.".to_owned());
    }
    lines
}

/// `cut off for 1010 ms with ipsec-different-ssid, …`.
fn how_long(rows: &[&Row]) -> Option<String> {
    let rate = rows.first()?.point.rate.per_second();
    let each = rows.iter().take(MOST_CASES).filter_map(|row| {
        let more = if row.not_back > 0 { "more than " } else { "" };
        Some(format!("{more}{} in {}", ms(row.outage_ms?.value), row.case()))
    });
    let each = each.collect::<Vec<_>>().join(", ");
    Some(format!("A moving host is cut off for {each}, at {rate} packets/s each way."))
}

/// Where the time of a case goes: its longest phases, and what is left without keys.
fn where_to(row: &Row) -> Option<String> {
    let direction = row.longer();
    let way = row.way(direction);
    let mut phases: Vec<(Phase, f64)> = way.phases.clone();
    phases.retain(|(phase, _)| *phase != Phase::Unexplained);
    phases.sort_by(|a, b| b.1.total_cmp(&a.1));
    let longest: Vec<String> = phases
        .iter()
        .take(3)
        .map(|(phase, time)| format!("{} {}", phase.title(), ms(*time)))
        .collect();
    if longest.is_empty() {
        return None;
    }
    let keyless = row.keyless_ms.zip(row.outage_ms).filter(|(less, all)| less.value < all.value);
    let keyless = keyless.map_or_else(String::new, |(less, _)| {
        format!("; without authentication and keys (t4, t5) {} remain", ms(less.value))
    });
    let rest = way.explained.filter(|share| *share < 1.0 - EXPLAINED_WITHIN);
    let rest = rest.map_or_else(String::new, |share| {
        format!("; {:.0} % of it is unexplained", (1.0 - share) * 100.0)
    });
    let scenario = row.point.title();
    Some(format!("{scenario}, {direction}: {}{keyless}{rest}.", longest.join(", ")))
}

/// The case in which a radio holds frames back for longest, if it is long, and what to try.
fn held(rows: &[&Row]) -> Option<String> {
    let time = |row: &Row| row.up.of_phase(Phase::Held).max(row.down.of_phase(Phase::Held));
    let row = rows.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
    (time(row) >= HELD).then(|| {
        format!(
            "In {} a radio holds frames back for {}, until its request for block acknowledgements is answered or given \
             up: try `--change extended-key-ids` and `--change no-aggregation`.",
            row.point.title(),
            ms(time(row))
        )
    })
}

/// Who is cut off least and most, where there are more cases than the first sentence has.
fn extremes(rows: &[&Row]) -> Option<String> {
    let of = |row: &&&Row| row.outage_ms.map_or(0.0, |outage| outage.value);
    let mut sorted: Vec<&&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let [least, next, .., most] = sorted.as_slice() else { return None };
    let shown = |row: &&&Row| format!("{} ({})", row.case(), ms(of(row)));
    (rows.len() > MOST_CASES).then(|| {
        format!(
            "Of {} cases {} and {} are cut off least, {} most.",
            rows.len(),
            shown(least),
            shown(next),
            shown(most)
        )
    })
}

/// Where the two directions differ by more than a tenth.
fn directions(rows: &[&Row]) -> Option<String> {
    let each = rows.iter().filter_map(|row| {
        let (up, down) = (row.up.outage_ms?, row.down.outage_ms?);
        let (least, most) = (up.value.min(down.value), up.value.max(down.value));
        (most > least * 1.1 && most - least > DIFFERENT).then(|| {
            format!("{} {} up and {} down", row.point.title(), ms(up.value), ms(down.value))
        })
    });
    let each: Vec<String> = each.take(MOST_CASES).collect();
    (!each.is_empty()).then(|| format!("The directions differ: {}.", each.join(", ")))
}

fn paper_order(summary: &Summary) -> Vec<String> {
    if summary.order.is_empty() {
        return Vec::new();
    }
    let rates = |holds: bool| -> Vec<&str> {
        let own = summary.order.iter().filter(|order| order.holds == holds);
        own.map(|order| order.rate.as_str()).collect()
    };
    let (good, bad) = (rates(true), rates(false));
    if bad.is_empty() {
        return vec![format!(
            "The paper's order holds at {}: IPsec between networks, MACsec between networks, MACsec within one.",
            good.join(", ")
        )];
    }
    let mut lines = vec![format!("The paper's order does not hold at {}.", bad.join(", "))];
    for why in summary.order.iter().flat_map(|order| &order.why) {
        let line = format!("{why}.");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.truncate(4);
    lines.extend(spared(summary));
    lines
}

/// What could make IPsec slower than MACsec between networks, and takes no time in these runs.
fn spared(summary: &Summary) -> Option<String> {
    let wrong = summary.order.iter().find(|order| order.medians_ms[0] <= order.medians_ms[1])?;
    let ipsec = summary.plain(PAPER[0], &wrong.rate)?;
    let time = |phase| ipsec.up.of_phase(phase).max(ipsec.down.of_phase(phase));
    let parts = [
        (Phase::DuplicateDetection, "addresses are not checked for duplicates (t3)"),
        (Phase::Security, "the keys between the edges stand through the move (t5)"),
        (Phase::GatewayDiscovery, "the new gateway's hardware address takes less than 1 ms (t3)"),
    ];
    let parts = parts.into_iter().filter(|(phase, _)| time(*phase) < SHORT);
    let parts: Vec<&str> = parts.map(|(_, says)| says).collect();
    (!parts.is_empty()).then(|| {
        format!("What can make IPsec slower costs {} nothing here: {}.", PAPER[0], parts.join(", "))
    })
}

/// Whether a change saves something that can be told.
fn is_worth(changed: &Changed) -> bool {
    changed.told_apart && changed.saved_ms.value > 0.0
}

fn worth(changed: &Changed) -> String {
    let Estimate { value, low, high, .. } = changed.saved_ms;
    let advice = changed.change.advice();
    let mut letters = advice.chars();
    let advice: String =
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    format!(
        "{advice}: it saves {} [{low:.0}, {high:.0}] of {} in {}.",
        ms(value),
        ms(changed.without_ms.value),
        changed.scenario
    )
}

/// Whether a change makes it longer, as can be told.
fn is_harm(changed: &Changed) -> bool {
    changed.told_apart && changed.saved_ms.value < 0.0
}

fn harm(changed: &Changed) -> String {
    let Estimate { value, low, high, .. } = changed.saved_ms;
    let (change, scenario) = (changed.change, &changed.scenario);
    let (low, high) = (-high, -low);
    format!("{change} costs {} more [{low:.0}, {high:.0}] in {scenario}.", ms(-value))
}

/// Changes that were measured and save nothing.
fn no_use(changes: &[Changed]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for one in changes.iter().filter(|one| !one.told_apart) {
        let name = format!("{} in {}", one.change, one.scenario);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| format!("No certain saving by: {}.", names.join(", ")))
}

/// A time in ms, with a digit after the point where it is short.
pub(crate) fn ms(value: f64) -> String {
    if value < 10.0 { format!("{value:.1} ms") } else { format!("{value:.0} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    #[test]
    fn the_answer_begins_with_how_long() {
        let lines = sentences(&Summary::of(&samples()));
        assert_eq!(
            lines[0],
            "A moving host is cut off for 1110 ms in ipsec-different-ssid, 860 ms in macsec-different-ssid, \
             310 ms in macsec-same-ssid, at 1000 packets/s each way."
        );
        assert!(
            lines[1].starts_with("ipsec-different-ssid, down: t1 discovery 554 ms"),
            "{lines:?}"
        );
        assert!(lines[1].contains("without authentication and keys (t4, t5) 1090 ms remain"));
        let all = lines.join("\n");
        assert!(all.contains("The directions differ: macsec-same-ssid 310 ms up"), "{all}");
        assert!(all.contains("order holds at 1000pps, 2000pps"), "{all}");
        assert!(all.contains("its networks: it saves 100 ms [100, 100] of 310 ms"), "{all}");
    }

    #[test]
    fn where_the_order_does_not_hold_it_says_what_takes_no_time_here() {
        let mut summary = Summary::of(&samples());
        assert_eq!(spared(&summary), None);
        summary.order[0].medians_ms = [850.0, 860.0, 310.0];
        let line = spared(&summary).unwrap();
        assert!(line.contains("not checked for duplicates (t3), the keys between"), "{line}");
        assert!(line.contains("less than 1 ms"), "{line}");
        // What takes time is not said to take none.
        let ipsec = summary.rows.iter_mut().find(|row| row.point.scenario.0 == PAPER[0]).unwrap();
        ipsec.down.phases.push((Phase::GatewayDiscovery, 3.0));
        ipsec.up.phases.push((Phase::DuplicateDetection, 5000.0));
        let line = spared(&summary).unwrap();
        assert!(
            line.ends_with("nothing here: the keys between the edges stand through the move (t5)."),
            "{line}"
        );
    }

    #[test]
    fn streams_are_called_so() {
        let point = crate::summary::tests::at("mptcp", "1000pps");
        let samples: Vec<_> =
            (0..3).map(|repeat| crate::sample::tests::streamed(&point, repeat, 700)).collect();
        let lines = sentences(&Summary::of(&samples));
        assert!(lines[0].contains("700 ms in mptcp (TCP stream)"), "{lines:?}");
    }

    #[test]
    fn a_radio_that_holds_frames_back_is_told_with_what_to_try() {
        let mut summary = Summary::of(&samples());
        assert_eq!(held(&usual(&summary)), None);
        summary.rows[0].down.phases.push((Phase::Held, 1016.0));
        let line = held(&usual(&summary)).unwrap();
        assert!(
            line.starts_with("In ipsec-different-ssid a radio holds frames back for 1016 ms"),
            "{line}"
        );
    }

    #[test]
    fn a_change_that_saves_nothing_is_said_too() {
        let mut summary = Summary::of(&samples());
        summary.changes[0].saved_ms = summary.changes[0].saved_ms.map(|_| 0.0);
        summary.changes[0].told_apart = false;
        let all = sentences(&summary).join("\n");
        assert!(all.contains("No certain saving by: scan-list in macsec-same-ssid."), "{all}");
        summary.changes[0].saved_ms = summary.changes[0].saved_ms.map(|_| -50.0);
        summary.changes[0].told_apart = true;
        let all = sentences(&summary).join("\n");
        assert!(all.contains("scan-list costs 50 ms more [50, 50] in macsec-same-ssid."), "{all}");
    }
}
