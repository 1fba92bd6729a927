//! When radios hold frames back, by the kernel's own record (tracefs).
//!
//! A radio that asks for block acknowledgements (IEEE 802.11-2020 §10.25.2) holds all frames of that priority until it
//! has its answer, or a second is over (Linux: net/mac80211/agg-tx.c). No daemon says so, nor does nl80211.

use std::fs;
use std::path::Path;

use daemons::Seen;
use handoff::What;
use units::Time;

use crate::{Error, mover};

/// Where the kernel shows what it records; mounted by [`crate::radio::prepare`].
pub(crate) const TRACING: &str = "/sys/kernel/tracing";
/// What is recorded: a radio's driver hears of each step towards block acknowledgements.
const STEP: &str = "drv_ampdu_action";
/// The priority of the traffic and of ARP: best effort.
const PRIORITY: &str = "0";

/// Has the kernel record from now on.
pub(crate) fn watch() -> Result<(), Error> {
    set("trace_clock", "mono")?;
    set(&format!("events/mac80211/{STEP}/enable"), "1")
}

/// What it has recorded since it was last asked.
pub(crate) fn take() -> Result<Vec<Seen>, Error> {
    let file = Path::new(TRACING).join("trace");
    let record = fs::read(file).map_err(Error::radio("reading what radios hold back"))?;
    // Emptied by being opened anew.
    set("trace", "")?;
    Ok(String::from_utf8_lossy(&record).lines().filter_map(seen).collect())
}

fn set(file: &str, value: &str) -> Result<(), Error> {
    let doing = format!("setting {file} of the kernel's record to `{value}`");
    fs::write(Path::new(TRACING).join(file), value).map_err(Error::radio(doing))
}

/// A line of the record: `task [cpu] flags seconds: event: radio vif:… sta:… tid 0, … action 2`.
fn seen(line: &str) -> Option<Seen> {
    let (before, after) = line.split_once(&format!(": {STEP}: "))?;
    let at = time(before.split_whitespace().next_back()?)?;
    let words: Vec<&str> = after.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let named = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
    let value = |name: &str| words.iter().skip_while(|word| **word != name).nth(1).copied();
    if value("tid") != Some(PRIORITY) {
        return None;
    }
    let radio = *words.first()?;
    let source = mover::holder(radio)?;
    let interface = named("vif:")?.split('(').next()?;
    let other = named("sta:")?;
    let (what, says) = step(value("action")?)?;
    let line = format!("{interface}: {radio} {says} {other}");
    Some(Seen { at, source, what: Some(what), line })
}

/// What a step means, by its number (net/mac80211.h: enum ieee80211_ampdu_mlme_action).
fn step(action: &str) -> Option<(What, &'static str)> {
    match action {
        "2" => Some((What::HoldStarted, "asks for block acknowledgements and holds frames for")),
        "3" | "4" | "5" => {
            Some((What::HoldEnded, "goes without block acknowledgements and sends to"))
        }
        "6" => Some((What::HoldEnded, "has agreed on block acknowledgements and sends to")),
        _ => None,
    }
}

/// A time of CLOCK_MONOTONIC: seconds and six digits.
fn time(text: &str) -> Option<Time> {
    let (seconds, micros) = text.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    Some(Time::from_micros(seconds.checked_mul(1_000_000)?.checked_add(micros)?))
}

#[cfg(test)]
mod tests {
    use handoff::Source;

    use super::*;

    #[test]
    fn steps_are_understood() {
        let line = |radio: &str, tid: u8, action: u8| {
            format!(
                "   kworker/u2:3-57      [000] .....   102.209123: drv_ampdu_action: {radio} vif:wlan2(3) \
                 sta:02:00:00:00:04:00 tid {tid}, ssn 1, buf_size 0, amsdu 0, timeout 0 action {action}"
            )
        };
        let is = |line: &str| seen(line).map(|seen| (seen.source, seen.what));
        let (started, ended) = (Some(What::HoldStarted), Some(What::HoldEnded));
        assert_eq!(is(&line("ap2", 0, 2)), Some((Source::AccessPoint, started)));
        assert_eq!(is(&line("ap2", 0, 3)), Some((Source::AccessPoint, ended)));
        assert_eq!(is(&line("station", 0, 6)), Some((Source::Radio, ended)));
        // What it receives, another priority, another station, what is no step.
        for none in [line("ap2", 0, 0), line("ap2", 6, 2), line("other1", 0, 2), "#".to_owned()] {
            assert_eq!(is(&none), None, "{none}");
        }
        let seen = seen(&line("ap2", 0, 2)).unwrap();
        assert_eq!(seen.at, Time::from_micros(102_209_123));
        assert!(seen.line.starts_with("wlan2: ap2 asks"), "{}", seen.line);
        assert!(seen.line.ends_with("02:00:00:00:04:00"), "{}", seen.line);
    }
}
