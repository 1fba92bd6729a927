//! What was seen of a run, out of what all who watch have said.

use daemons::Seen;
use handoff::{Event, Source, What};
use units::Time;

use crate::traffic::since;

/// What in the words of the kernel belongs to the host that moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The interfaces by which it is attached.
    pub(crate) interfaces: Vec<String>,
    /// Their Ethernet addresses.
    pub(crate) macs: Vec<String>,
    /// Neighbours that it sends through.
    pub(crate) next_hops: Vec<String>,
}

impl Filter {
    fn wants(&self, seen: &Seen, what: What) -> bool {
        let words = |wanted: &[String]| {
            let mut of_line = seen.line.split([' ', ':', ']', '@']);
            of_line.any(|word| wanted.iter().any(|wanted| wanted == word))
        };
        match (seen.source, what) {
            (Source::Kernel, What::GatewayAsked | What::GatewayKnown) => {
                words(&self.interfaces) && words(&self.next_hops)
            }
            (Source::Kernel | Source::Radio, _) => words(&self.interfaces),
            (Source::Bridge | Source::AccessPoint, _) => {
                self.macs.iter().any(|mac| seen.line.contains(mac.as_str()))
            }
            _ => true,
        }
    }
}

/// Events since `began`, in order of time. What a source only repeats is left out.
pub(crate) fn events(all: Vec<Seen>, more: Vec<Event>, filter: &Filter, began: Time) -> Vec<Event> {
    let of_seen = all.into_iter().filter_map(|seen| {
        let what = seen.what.filter(|what| seen.at >= began && filter.wants(&seen, *what))?;
        let at = since(seen.at, began);
        Some(Event { at, source: seen.source, what, detail: shown(&seen.line) })
    });
    let mut events: Vec<Event> = of_seen.chain(more).collect();
    events.sort_by_key(|event| event.at);
    without_stray_ends(without_repeats(events))
}

/// A line with its blanks as one each, cut where it gets long.
fn shown(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").chars().take(160).collect()
}

/// The kernel says again that a link carries, with everything else that changes of it; and that it asks for a neighbour,
/// with each frame that waits.
fn without_repeats(events: Vec<Event>) -> Vec<Event> {
    let is_link = |event: &Event| matches!(event.what, What::LinkUp | What::LinkLost);
    let mut last: Option<What> = None;
    let mut kept = Vec::with_capacity(events.len());
    let mut is_asked = false;
    for event in events {
        if event.what == What::GatewayAsked && std::mem::replace(&mut is_asked, true) {
            continue;
        }
        // What was asked for is answered, or given up with the link.
        is_asked &= !(is_link(&event) || event.what == What::GatewayKnown);
        if event.source == Source::Kernel && is_link(&event) {
            if last == Some(event.what) {
                continue;
            }
            last = Some(event.what);
        }
        kept.push(event);
    }
    kept
}

/// A radio lets go of what it did not hold, too: whenever a station leaves.
fn without_stray_ends(mut events: Vec<Event>) -> Vec<Event> {
    let mut holders: Vec<Source> = Vec::new();
    events.retain(|event| {
        let held = holders.iter().position(|holder| *holder == event.source);
        match (event.what, held) {
            (What::HoldStarted, None) => holders.push(event.source),
            (What::HoldEnded, Some(at)) => drop(holders.swap_remove(at)),
            (What::HoldEnded, None) => return false,
            _ => {}
        }
        true
    });
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(millis: u64, source: Source, what: What, line: &str) -> Seen {
        Seen { at: Time::from_millis(millis), source, what: Some(what), line: line.to_owned() }
    }

    #[test]
    fn only_what_belongs_to_the_host_is_kept_in_order_and_once() {
        let filter = Filter {
            interfaces: vec!["wlan2".to_owned()],
            macs: vec!["02:00:00:00:02:00".to_owned()],
            next_hops: vec!["10.50.0.2".to_owned()],
        };
        let neighbour =
            |ip: &str, dev: &str| format!("[NEIGH]{ip} dev {dev} lladdr 02:1 REACHABLE");
        let all = vec![
            seen(90, Source::Kernel, What::LinkUp, "[LINK]3: wlan2: <LOWER_UP> state UP"),
            seen(130, Source::Kernel, What::LinkUp, "[LINK]3: wlan2: <LOWER_UP> state UP"),
            seen(120, Source::Kernel, What::LinkUp, "[LINK]3: wlan2: <LOWER_UP> state UP"),
            seen(125, Source::Kernel, What::LinkUp, "[LINK]4: wlan22: <LOWER_UP> state UP"),
            seen(140, Source::Kernel, What::GatewayKnown, &neighbour("10.50.0.1", "wlan2")),
            seen(145, Source::Kernel, What::GatewayAsked, "wlan2: asks who has 10.50.0.2"),
            seen(146, Source::Kernel, What::GatewayAsked, "wlan2: asks who has 10.50.0.2"),
            seen(147, Source::Kernel, What::GatewayAsked, "site: asks who has 10.50.0.2"),
            seen(150, Source::Kernel, What::GatewayKnown, &neighbour("10.50.0.2", "wlan2")),
            seen(152, Source::Kernel, What::GatewayAsked, "wlan2: asks who has 10.50.0.2"),
            seen(160, Source::Bridge, What::Bound, "02:00:00:00:02:00 dev sec2 master site"),
            seen(170, Source::Bridge, What::Bound, "02:00:00:00:09:00 dev sec2 master site"),
            // The old access point's, and the new one's.
            seen(108, Source::AccessPoint, What::HoldEnded, "ap1 02:00:00:00:02:00"),
            seen(180, Source::AccessPoint, What::HoldStarted, "ap2 02:00:00:00:02:00"),
            seen(185, Source::AccessPoint, What::HoldEnded, "ap2 02:00:00:00:02:00"),
        ];
        let began = Time::from_millis(100);
        let pulled = Event {
            at: Time::from_millis(5),
            source: Source::Control,
            what: What::Triggered,
            detail: String::new(),
        };
        let events = events(all, vec![pulled], &filter, began);
        let shown: Vec<_> = events.iter().map(|e| (e.at.as_nanos() / 1_000_000, e.what)).collect();
        assert_eq!(
            shown,
            [
                (5, What::Triggered),
                (20, What::LinkUp),
                (45, What::GatewayAsked),
                (50, What::GatewayKnown),
                (52, What::GatewayAsked),
                (60, What::Bound),
                (80, What::HoldStarted),
                (85, What::HoldEnded),
            ]
        );
    }
}
