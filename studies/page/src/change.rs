//! What to change: flow-control windows that are in the way, of responses and of uploads.

use report::Inline;
use units::Bytes;

use crate::present::{is_plain, seconds};
use crate::sample::value;
use crate::summary::{Group, Row};

/// A share of a load's time below which stalls on a window are not worth a change.
const WORTH: f64 = 0.01;

/// What to change for a group, by row: what the browser announces, then what the server does.
pub(crate) fn advice(group: &Group) -> Vec<Inline> {
    let down = (value::STALLED, window_needed(group.link.bandwidth_delay()));
    let up = (value::UPLOADS_STALLED, window_needed(group.link.bandwidth_delay_up()));
    let rows = group.rows.iter();
    let lines =
        rows.flat_map(|row| [down, up].map(|(name, needed)| said(group, row, name, needed)));
    lines.flatten().collect()
}

/// What to announce, where a row's loads stalled for so long that it is worth a change.
fn said(group: &Group, row: &Row, name: &str, needed: Option<Bytes>) -> Option<Inline> {
    // A window of that size keeps the link busy: what counts as a stall then passes while the link's own queue
    // empties, which the sender does not see.
    if row.stream_window.0.zip(needed).is_some_and(|(own, needed)| own >= needed) {
        return None;
    }
    let (stalled, load) = (row.median(name)?, row.load_ms?.value);
    if stalled <= load * WORTH {
        return None;
    }
    let needed = match needed {
        Some(bytes) => format!("{bytes} or more"),
        None => "larger ones".to_owned(),
    };
    let (share, what) =
        (stalled / load * 100.0, format!("{}, {}", group.title(), row.label(is_plain(group))));
    let stalled = seconds(stalled);
    Some(Inline::new().text(match name {
        value::UPLOADS_STALLED => format!(
            "{what}: uploads stalled for {stalled} ({share:.0} %) on the server's flow-control windows: have it \
             announce {needed}."
        ),
        _ => format!("{what}: {stalled} ({share:.0} %) stalled on flow-control windows: announce {needed}."),
    }))
}

/// The window that does not bind on a link of this bandwidth-delay product: twice as much, since an update takes a
/// round trip and comes when half is consumed; a power of two.
fn window_needed(product: Option<Bytes>) -> Option<Bytes> {
    let twice = product?.count().saturating_mul(2);
    Some(Bytes(twice.max(64 * 1024).next_power_of_two()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::{sample, samples};

    fn lines(samples: &[record::Sample]) -> Vec<String> {
        let groups = Summary::of(samples).groups;
        groups.iter().flat_map(advice).map(|line| line.to_plain()).collect()
    }

    #[test]
    fn stalls_on_a_window_are_advised_on_with_a_size() {
        let said = lines(&samples());
        let [advice] = said.as_slice() else { panic!("{said:?}") };
        assert!(advice.contains("h2: ") && advice.contains("announce 128KiB or more"), "{advice}");
        assert!(lines(&[sample("http/1.1", "first", 0, 100.0)]).is_empty());
    }

    #[test]
    fn uploads_that_stall_are_the_servers_to_change() {
        let mut load = sample("h3", "first", 0, 1000.0);
        load.values.insert(value::UPLOADS_STALLED.to_owned(), 10.0);
        assert!(lines(&[load.clone()]).is_empty(), "1 % is not worth it");
        load.values.insert(value::UPLOADS_STALLED.to_owned(), 250.0);
        let said = lines(&[load.clone()]);
        let expected = "h3: uploads stalled for 0.25 s (25 %) on the server's flow-control windows: have it \
                        announce 64KiB or more.";
        assert!(said.len() == 1 && said[0].ends_with(expected), "{said:?}");
        // A window that does not bind on the way up.
        load.point.insert("stream-window".to_owned(), "64KiB".to_owned());
        assert!(lines(&[load]).is_empty());
    }
}
