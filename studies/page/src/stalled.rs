//! For how long bodies waited for flow-control windows, and below them for TCP or QUIC: in a load, and of each object.

use std::time::Duration;

use browser::Seen;
use page::{ObjectId, Page};
use units::{Delay, Time};
use web::{Stalled, StreamRecord, TcpLimit, TcpStall};

/// Time in which any response of a load was stalled, and any upload, where it has some.
pub(crate) fn of_a_load(seen: &Seen) -> [Option<Duration>; 2] {
    let responses = seen.streams.iter().map(|stream| &stream.stalled);
    let uploads = seen.uploads.iter().map(|upload| &upload.stalled);
    [Some(together(responses)), (!seen.uploads.is_empty()).then(|| together(uploads))]
}

/// Time in which any of these bodies was stalled: those that stall together count once.
fn together<'a>(bodies: impl Iterator<Item = &'a Stalled>) -> Duration {
    union(bodies.flat_map(|stalled| &stalled.intervals).map(|stall| (stall.from, stall.to)))
}

/// Time in which the server's TCP or QUIC of any connection was kept from sending by a limit that is `asked` for; `None`
/// where nobody says.
pub(crate) fn on_tcp(seen: &Seen, asked: impl Fn(TcpLimit) -> bool) -> Option<Duration> {
    let all = seen.tcp_stalls.as_ref()?.iter().flat_map(|connection| &connection.stalls);
    Some(by(all, asked))
}

/// The same of the client's while it uploaded; `None` too where it had nothing to upload.
pub(crate) fn uploads_on_tcp(seen: &Seen, asked: impl Fn(TcpLimit) -> bool) -> Option<Duration> {
    let said = || seen.uploads.iter().filter_map(|upload| upload.tcp_stalls.as_ref());
    said().next()?;
    Some(by(said().flatten(), asked))
}

/// The time of stalls by a limit that is `asked` for.
fn by<'a>(
    stalls: impl Iterator<Item = &'a TcpStall>,
    asked: impl Fn(TcpLimit) -> bool,
) -> Duration {
    union(stalls.filter(|stall| asked(stall.limit)).map(|stall| (stall.from, stall.to)))
}

/// The time that intervals cover together.
fn union(intervals: impl Iterator<Item = (Time, Time)>) -> Duration {
    let mut stalls: Vec<(Time, Time)> = intervals.collect();
    stalls.sort_unstable();
    let (mut sum, mut until) = (Duration::ZERO, Time::ZERO);
    for (from, to) in stalls {
        sum += to.saturating_since(from.max(until));
        until = until.max(to);
    }
    sum
}

/// For how long each object was stalled.
#[derive(Debug, Default)]
pub(crate) struct ByObject {
    /// Its bodies on flow-control windows, in the page's order. Empty of Chromium's loads: it says nothing of
    /// uploads, and its paths are not the page's.
    pub(crate) on_windows: Vec<Delay>,
    /// Its connection's TCP or QUIC between its request and its last byte: the server's, and the client's where it
    /// uploads. Empty too where nobody says.
    pub(crate) on_tcp: Vec<Delay>,
}

/// What each object of a load waited for.
pub(crate) fn by_object(page: &Page, seen: &Seen) -> ByObject {
    if !seen.fetched.is_empty() {
        return ByObject::default();
    }
    let streams = || {
        seen.streams.iter().filter_map(|stream| {
            let host = stream.authority.split(':').next()?;
            Some((page.find(host, &stream.path)?, stream))
        })
    };
    let responses = streams().map(|(object, stream)| (object, stream.stalled.time));
    let uploads = seen.uploads.iter().map(|upload| (upload.object, upload.stalled.time));
    let on_windows = sums(page, responses.chain(uploads));
    let below = streams().map(|(object, stream)| (object, below_object(seen, object, stream)));
    let above = seen.uploads.iter().map(|upload| {
        let stalls = upload.tcp_stalls.iter().flatten();
        (upload.object, by(stalls, |_| true))
    });
    let on_tcp = seen.tcp_stalls.as_ref().map(|_| sums(page, below.chain(above)));
    let on_tcp = on_tcp.unwrap_or_default();
    ByObject { on_windows, on_tcp }
}

/// For how long the server's TCP or QUIC of an object's connection was stalled, from its request until it had come whole.
fn below_object(seen: &Seen, object: ObjectId, stream: &StreamRecord) -> Duration {
    let timeline = seen.loaded.objects.get(object.index());
    let Some(end) = timeline.and_then(|timeline| timeline.end) else { return Duration::ZERO };
    let (begin, end) = (stream.requested, seen.begin + end.duration());
    let own = seen.tcp_stalls.iter().flatten().filter(|one| one.connection == stream.connection);
    let stalls = own.flat_map(|one| &one.stalls);
    stalls.map(|stall| stall.to.min(end).saturating_since(stall.from.max(begin))).sum()
}

/// Sums by object, in the page's order.
fn sums(page: &Page, times: impl Iterator<Item = (ObjectId, Duration)>) -> Vec<Delay> {
    let mut sums = vec![Duration::ZERO; page.objects().len()];
    for (object, time) in times {
        if let Some(sum) = sums.get_mut(object.index()) {
            *sum += time;
        }
    }
    sums.into_iter().map(Delay::from).collect()
}

#[cfg(test)]
mod tests {
    use web::Stall;

    use super::*;

    #[test]
    fn stalls_by_what_is_asked_for_count_once() {
        let stall = |from, to, limit| {
            let (from, to) = (Time::from_millis(from), Time::from_millis(to));
            TcpStall { from, to, limit }
        };
        let (congestion, buffer) = (TcpLimit::CongestionWindow, TcpLimit::SendBuffer);
        let stalls = [stall(10, 30, congestion), stall(20, 40, congestion), stall(35, 50, buffer)];
        assert_eq!(by(stalls.iter(), |_| true), Duration::from_millis(40));
        assert_eq!(by(stalls.iter(), |limit| limit == congestion), Duration::from_millis(30));
        assert_eq!(by(stalls.iter(), |limit| limit == TcpLimit::ReceiveWindow), Duration::ZERO);
    }

    fn body(stalls: &[(u64, u64)]) -> Stalled {
        let at = Time::from_millis;
        let intervals: Vec<Stall> =
            stalls.iter().map(|(from, to)| Stall { from: at(*from), to: at(*to) }).collect();
        Stalled { intervals, ..Stalled::default() }
    }

    #[test]
    fn bodies_that_stall_together_count_once() {
        let bodies = [body(&[(10, 20), (40, 70)]), body(&[(15, 30), (50, 60)]), body(&[])];
        assert_eq!(together(bodies.iter()), Duration::from_millis(20 + 30));
        assert_eq!(together([].iter()), Duration::ZERO);
    }
}
