//! For how long bodies waited for flow-control windows: in a load, and of each object.

use std::time::Duration;

use browser::Seen;
use page::Page;
use units::{Delay, Time};
use web::Stalled;

/// Time in which any response of a load was stalled, and any upload, where it has some.
pub(crate) fn of_a_load(seen: &Seen) -> [Option<Duration>; 2] {
    let responses = seen.streams.iter().map(|stream| &stream.stalled);
    let uploads = seen.uploads.iter().map(|upload| &upload.stalled);
    [Some(together(responses)), (!seen.uploads.is_empty()).then(|| together(uploads))]
}

/// Time in which any of these bodies was stalled: those that stall together count once.
fn together<'a>(bodies: impl Iterator<Item = &'a Stalled>) -> Duration {
    let intervals = bodies.flat_map(|stalled| &stalled.intervals);
    let mut stalls: Vec<(Time, Time)> = intervals.map(|stall| (stall.from, stall.to)).collect();
    stalls.sort_unstable();
    let (mut sum, mut until) = (Duration::ZERO, Time::ZERO);
    for (from, to) in stalls {
        sum += to.saturating_since(from.max(until));
        until = until.max(to);
    }
    sum
}

/// For how long the bodies of each object were stalled, in the page's order. None of Chromium's: it says nothing of
/// uploads, and its paths are not the page's.
pub(crate) fn by_object(page: &Page, seen: &Seen) -> Vec<Delay> {
    if !seen.fetched.is_empty() {
        return Vec::new();
    }
    let mut sums = vec![Duration::ZERO; page.objects().len()];
    let responses = seen.streams.iter().filter_map(|stream| {
        let host = stream.authority.split(':').next()?;
        Some((page.find(host, &stream.path)?, stream.stalled.time))
    });
    let uploads = seen.uploads.iter().map(|upload| (upload.object, upload.stalled.time));
    for (object, time) in responses.chain(uploads) {
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
