//! What the kernel's own record (tracefs) says and no monitor does: when radios hold frames back, and when a neighbour
//! is asked for its hardware address.
//!
//! A radio that asks for block acknowledgements (IEEE 802.11-2020 §10.25.2) holds all frames of that priority until it
//! has its answer, or a second is over (Linux: net/mac80211/agg-tx.c). No daemon says so, nor does nl80211.
//!
//! A frame for a neighbour of unknown hardware address makes the kernel ask for it; rtnetlink speaks of the entry only
//! when the answer has come (Linux: net/core/neighbour.c).

use std::fs;
use std::path::Path;

use daemons::Seen;
use handoff::{Source, What};
use units::Time;

use crate::{Error, mover};

/// Where the kernel shows what it records; mounted by [`crate::radio::prepare`].
pub(crate) const TRACING: &str = "/sys/kernel/tracing";
/// What is recorded: a radio's driver hears of each step towards block acknowledgements.
const STEP: &str = "drv_ampdu_action";
/// What else is recorded: a frame waits for an entry of the neighbour table.
const WAITS: &str = "neigh_event_send_done";
/// The priority of the traffic and of ARP: best effort.
const PRIORITY: &str = "0";

/// Has the kernel record from now on.
pub(crate) fn watch() -> Result<(), Error> {
    set("trace_clock", "mono")?;
    set(&format!("events/mac80211/{STEP}/enable"), "1")?;
    set(&format!("events/neigh/{WAITS}/enable"), "1")
}

/// What it has recorded since it was last asked.
pub(crate) fn take() -> Result<Vec<Seen>, Error> {
    let file = Path::new(TRACING).join("trace");
    let record = fs::read(file).map_err(Error::radio("reading the kernel's record"))?;
    // Emptied by being opened anew.
    set("trace", "")?;
    Ok(String::from_utf8_lossy(&record).lines().filter_map(seen).collect())
}

fn set(file: &str, value: &str) -> Result<(), Error> {
    let doing = format!("setting {file} of the kernel's record to `{value}`");
    fs::write(Path::new(TRACING).join(file), value).map_err(Error::radio(doing))
}

/// A line of the record.
fn seen(line: &str) -> Option<Seen> {
    hold(line).or_else(|| asked(line))
}

/// The time and the words of an event in a line: `task [cpu] flags seconds: event: words`.
fn event<'a>(line: &'a str, name: &str) -> Option<(Time, &'a str)> {
    let (before, after) = line.split_once(&format!(": {name}: "))?;
    Some((time(before.split_whitespace().next_back()?)?, after))
}

/// `family 2 dev wlan2 lladdr … nud_state incomplete … primary_key4 10.50.0.2 …`: the kernel asks who has an address.
fn asked(line: &str) -> Option<Seen> {
    let (at, after) = event(line, WAITS)?;
    let words: Vec<&str> = after.split_whitespace().collect();
    let value = |name: &str| words.iter().skip_while(|word| **word != name).nth(1).copied();
    if (value("family"), value("nud_state")) != (Some("2"), Some("incomplete")) {
        return None;
    }
    let line = format!("{}: asks who has {}", value("dev")?, value("primary_key4")?);
    Some(Seen { at, source: Source::Kernel, what: Some(What::GatewayAsked), line })
}

/// `radio vif:… sta:… tid 0, … action 2`: a step towards block acknowledgements.
fn hold(line: &str) -> Option<Seen> {
    let (at, after) = event(line, STEP)?;
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
    use super::*;

    #[test]
    fn who_is_asked_for_is_understood() {
        let line = |family: u8, state: &str| {
            format!(
                "          wiretax-96      [000] b..1.   102.309123: neigh_event_send_done: family {family} dev wlan2 \
                 lladdr 000000000000 flags 00 nud_state {state} type 01 dead 0 refcnt 3 primary_key4 10.50.0.2 \
                 primary_key6 ::ffff:10.50.0.2 confirmed 4294892296 updated 4294917872 used 4294917872 err 1"
            )
        };
        let asked = seen(&line(2, "incomplete")).unwrap();
        assert_eq!((asked.source, asked.what), (Source::Kernel, Some(What::GatewayAsked)));
        assert_eq!(asked.at, Time::from_micros(102_309_123));
        assert_eq!(asked.line, "wlan2: asks who has 10.50.0.2");
        for none in [line(2, "delay"), line(2, "failed"), line(10, "incomplete")] {
            assert_eq!(seen(&none), None, "{none}");
        }
    }

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
