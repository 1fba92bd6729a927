//! What to change: flow-control windows that are in the way, of responses and of uploads, and TCP's.

use report::Inline;
use units::Bytes;

use crate::present::seconds;
use crate::row::Row;
use crate::sample::value;
use crate::summary::Group;
use crate::waits::share;

/// A share of a load's time below which stalls on a window are not worth a change.
const WORTH: f64 = 0.01;
/// The same of TCP's buffers, which the kernel tunes while a load goes on.
const WORTH_OF_TCP: f64 = 0.1;

/// What to change for a group, by row: what the browser announces, then what the server does.
pub(crate) fn advice(group: &Group) -> Vec<Inline> {
    let down = (value::STALLED, window_needed(group.link.bandwidth_delay()));
    let up = (value::UPLOADS_STALLED, window_needed(group.link.bandwidth_delay_up()));
    let tcp = [
        (value::RECEIVE_WINDOW, down.1),
        (value::SEND_BUFFER, down.1),
        (value::UPLOADS_RECEIVE_WINDOW, up.1),
        (value::UPLOADS_SEND_BUFFER, up.1),
    ];
    let rows = group.rows.iter();
    let lines = rows.flat_map(|row| {
        let windows = [down, up].map(|(name, needed)| said(group, row, name, needed));
        let below = tcp.map(|(name, needed)| of_tcp(group, row, name, needed));
        windows.into_iter().chain(below)
    });
    lines.flatten().collect()
}

/// What to set, where one of TCP's own buffers was in the way for so long. The congestion window is none: it is the
/// network's, and grows by itself.
fn of_tcp(group: &Group, row: &Row, name: &str, needed: Option<Bytes>) -> Option<Inline> {
    let is_enough = row.tcp_window.0.zip(needed).is_some_and(|(own, needed)| own >= needed);
    // Our TCP has no buffers to set.
    if is_enough || row.handshake.is_over_user_tcp() {
        return None;
    }
    let share = share(row, name).filter(|share| *share > WORTH_OF_TCP)?;
    let needed = needed.map_or("larger".to_owned(), |bytes| format!("of {bytes} or more"));
    let what = format!("{}, {}", group.title(), row.label(group.is_plain()));
    let (whose, change) = match name {
        value::RECEIVE_WINDOW => {
            ("client's receive window", format!("give the client receive buffers {needed}"))
        }
        value::UPLOADS_RECEIVE_WINDOW => {
            ("server's receive window", format!("give the server receive buffers {needed}"))
        }
        value::UPLOADS_SEND_BUFFER => {
            ("client's send buffer", format!("give the client send buffers {needed}"))
        }
        _ => ("server's send buffer", format!("give the server send buffers {needed}")),
    };
    let (time, share) = (seconds(row.median(name)?), share * 100.0);
    let said = format!("{what}: {time} ({share:.0} %) stalled on TCP, by the {whose}: {change}.");
    Some(Inline::new().text(said))
}

/// What to announce, where a row's loads stalled for so long that it is worth a change.
fn said(group: &Group, row: &Row, name: &str, needed: Option<Bytes>) -> Option<Inline> {
    // A window of that size keeps the link busy: what counts as a stall then passes while the link's own queue
    // empties, which the sender does not see.
    if row.stream_window.0.zip(needed).is_some_and(|(own, needed)| own >= needed) {
        return None;
    }
    let share = share(row, name).filter(|share| *share > WORTH)? * 100.0;
    let needed = match needed {
        Some(bytes) => format!("{bytes} or more"),
        None => "larger ones".to_owned(),
    };
    let what = format!("{}, {}", group.title(), row.label(group.is_plain()));
    let stalled = seconds(row.median(name)?);
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
    fn tcps_own_buffers_are_named_with_whose_they_are() {
        let mut load = sample("http/1.1", "first", 0, 1000.0);
        load.values.insert(value::CONGESTION_WINDOW.to_owned(), 900.0);
        load.values.insert(value::RECEIVE_WINDOW.to_owned(), 100.0);
        assert!(lines(&[load.clone()]).is_empty(), "10 % is what the kernel's tuning may take");
        load.values.insert(value::RECEIVE_WINDOW.to_owned(), 300.0);
        load.values.insert(value::SEND_BUFFER.to_owned(), 200.0);
        let said = lines(&[load.clone()]);
        let [receive, send] = said.as_slice() else { panic!("{said:?}") };
        let expected = "0.30 s (30 %) stalled on TCP, by the client's receive window: give the client receive buffers \
                        of 128KiB or more.";
        assert!(receive.ends_with(expected), "{receive}");
        assert!(
            send.contains("the server's send buffer: give the server send buffers of"),
            "{send}"
        );
        let mut uploads = sample("http/1.1", "first", 0, 1000.0);
        uploads.values.insert(value::UPLOADS_RECEIVE_WINDOW.to_owned(), 300.0);
        uploads.values.insert(value::UPLOADS_SEND_BUFFER.to_owned(), 200.0);
        let said = lines(&[uploads]);
        let [receive, send] = said.as_slice() else { panic!("{said:?}") };
        assert!(receive.contains("the server's receive window: give the server"), "{receive}");
        assert!(send.contains("the client's send buffer: give the client"), "{send}");
        // Our TCP has no buffers to set.
        let mut ours = load.clone();
        ours.point.insert("handshake".to_owned(), "usertcp".to_owned());
        assert!(lines(&[ours]).is_empty());
        // Buffers that do not bind.
        load.point.insert("tcp-window".to_owned(), "128KiB".to_owned());
        assert!(lines(&[load]).is_empty());
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
