//! What the kernel's own record (tracefs) says and no monitor does: when radios hold frames back, and when a neighbour
//! is asked for its hardware address.
//!
//! A radio that asks for block acknowledgements (IEEE 802.11-2020 §10.25.2) holds all frames of that priority until it
//! has its answer, or a second is over (Linux: net/mac80211/agg-tx.c). No daemon says so, nor does nl80211.
//!
//! A frame for a neighbour of unknown hardware address makes the kernel ask for it; rtnetlink speaks of the entry only
//! when the answer has come (Linux: net/core/neighbour.c). The record has when the entry was made, and that the frame
//! had to wait: this after the question was sent, when who is near has answered already.

use std::collections::BTreeMap;
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
/// What else is recorded: an entry of the neighbour table is made, and a frame waits for it.
const MADE: &str = "neigh_create";
const WAITS: &str = "neigh_event_send_done";
/// The priority of the traffic and of ARP: best effort.
const PRIORITY: &str = "0";

/// Has the kernel record from now on.
pub(crate) fn watch() -> Result<(), Error> {
    set("trace_clock", "mono")?;
    set(&format!("events/mac80211/{STEP}/enable"), "1")?;
    [MADE, WAITS].iter().try_for_each(|event| set(&format!("events/neigh/{event}/enable"), "1"))
}

/// What it has recorded since it was last asked.
pub(crate) fn take() -> Result<Vec<Seen>, Error> {
    let file = Path::new(TRACING).join("trace");
    let record = fs::read(file).map_err(Error::radio("reading the kernel's record"))?;
    // Emptied by being opened anew.
    set("trace", "")?;
    Ok(seen(&String::from_utf8_lossy(&record)))
}

fn set(file: &str, value: &str) -> Result<(), Error> {
    let doing = format!("setting {file} of the kernel's record to `{value}`");
    fs::write(Path::new(TRACING).join(file), value).map_err(Error::radio(doing))
}

/// What the lines of a record say.
fn seen(record: &str) -> Vec<Seen> {
    let mut made = BTreeMap::new();
    record.lines().filter_map(|line| hold(line).or_else(|| asked(line, &mut made))).collect()
}

/// When entries were made that no frame has waited for yet, by interface and address.
type Made<'a> = BTreeMap<(&'a str, &'a str), Time>;

/// The time and the words of an event in a line: `task [cpu] flags seconds: event: words`.
fn event<'a>(line: &'a str, name: &str) -> Option<(Time, &'a str)> {
    let (before, after) = line.split_once(&format!(": {name}: "))?;
    Some((time(before.split_whitespace().next_back()?)?, after))
}

/// `family 2 dev wlan2 … primary_key4 10.50.0.2 … err 1`: a frame waits (1), since the kernel asks who has an address.
fn asked<'a>(line: &'a str, made: &mut Made<'a>) -> Option<Seen> {
    let is_made = event(line, MADE);
    let (at, after) = is_made.or_else(|| event(line, WAITS))?;
    let words: Vec<&str> = after.split_whitespace().collect();
    let value = |name: &str| words.iter().skip_while(|word| **word != name).nth(1).copied();
    let key = (value("dev")?, value("primary_key4")?);
    if value("family") != Some("2") {
        return None;
    }
    if is_made.is_some() {
        made.insert(key, at);
        return None;
    }
    if value("err") != Some("1") {
        return None;
    }
    let at = made.remove(&key).unwrap_or(at);
    let line = format!("{}: asks who has {}", key.0, key.1);
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

    fn only(line: &str) -> Option<Seen> {
        seen(line).pop()
    }

    #[test]
    fn who_is_asked_for_is_understood() {
        let waits = |micros: u32, family: u8, state: &str, err: u8| {
            format!(
                "          wiretax-96      [000] b..1.   102.{micros}: neigh_event_send_done: family {family} dev wlan2 \
                 lladdr 000000000000 flags 00 nud_state {state} type 01 dead 0 refcnt 2 primary_key4 10.50.0.2 \
                 primary_key6 ::ffff:10.50.0.2 confirmed 4294880540 updated 4294895539 used 4294895539 err {err}\n"
            )
        };
        let made = "          wiretax-96      [000] b..1.   102.104611: neigh_create: family 2 dev wlan2 entries 3 \
                    primary_key4 10.50.0.2 primary_key6 feff:0:0:74e2:feff:: created 1 gc_exempt 0\n";
        // Made, asked for, and asked for by the next frame, too.
        let record =
            [made, &waits(104_666, 2, "incomplete", 1), &waits(105_030, 2, "incomplete", 1)]
                .concat();
        let asked = seen(&record);
        let times: Vec<Time> = asked.iter().map(|asked| asked.at).collect();
        assert_eq!(times, [102_104_611, 102_105_030].map(Time::from_micros));
        assert_eq!((asked[0].source, asked[0].what), (Source::Kernel, Some(What::GatewayAsked)));
        assert_eq!(asked[0].line, "wlan2: asks who has 10.50.0.2");
        // Who is near has answered when the kernel says that the frame had to wait.
        let near = seen(&[made, &waits(104_900, 2, "reachable", 1)].concat());
        assert_eq!(near.iter().map(|asked| asked.at).collect::<Vec<_>>(), times[..1]);
        // An entry that the neighbour's own question makes; a frame that need not wait; IPv6.
        for none in [made, &waits(104_666, 2, "delay", 0), &waits(104_666, 10, "incomplete", 1)] {
            assert_eq!(seen(none), [], "{none}");
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
        let is = |line: &str| only(line).map(|seen| (seen.source, seen.what));
        let (started, ended) = (Some(What::HoldStarted), Some(What::HoldEnded));
        assert_eq!(is(&line("ap2", 0, 2)), Some((Source::AccessPoint, started)));
        assert_eq!(is(&line("ap2", 0, 3)), Some((Source::AccessPoint, ended)));
        assert_eq!(is(&line("station", 0, 6)), Some((Source::Radio, ended)));
        // What it receives, another priority, another station, what is no step.
        for none in [line("ap2", 0, 0), line("ap2", 6, 2), line("other1", 0, 2), "#".to_owned()] {
            assert_eq!(is(&none), None, "{none}");
        }
        let seen = only(&line("ap2", 0, 2)).unwrap();
        assert_eq!(seen.at, Time::from_micros(102_209_123));
        assert!(seen.line.starts_with("wlan2: ap2 asks"), "{}", seen.line);
        assert!(seen.line.ends_with("02:00:00:00:04:00"), "{}", seen.line);
    }
}
