//! Fewer lines: a run of like DATA frames is one.

use crate::event::{Event, Kind};

/// Makes one event of each run of DATA frames of one stream, one direction and one length, without
/// another event between; the last of a run may be shorter, and end the stream. Windows are those
/// after the run.
#[must_use]
pub fn fold(events: &[Event]) -> Vec<Event> {
    let mut folded: Vec<Event> = Vec::new();
    for event in events {
        match folded.last_mut() {
            Some(run) if goes_on(run, event) => {
                run.until = event.until;
                run.frames = run.frames.saturating_add(event.frames);
                run.bytes = run.bytes.saturating_add(event.bytes);
                run.kind = event.kind.clone();
                run.stream_window = event.stream_window;
                run.connection_window = event.connection_window;
            }
            _ => folded.push(event.clone()),
        }
    }
    folded
}

/// Whether an event is one more of a run.
fn goes_on(run: &Event, event: &Event) -> bool {
    let is_whole = run.bytes == run.length.saturating_mul(run.frames);
    matches!((&run.kind, &event.kind), (Kind::Data { fin: false }, Kind::Data { .. }))
        && (run.from_client, run.stream) == (event.from_client, event.stream)
        && is_whole
        && event.length <= run.length
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    fn data(at: u64, stream: u32, length: u64, fin: bool) -> Event {
        let at = Time::from_millis(at);
        Event {
            at,
            until: at,
            from_client: false,
            kind: Kind::Data { fin },
            stream,
            length,
            frames: 1,
            bytes: length,
            stream_window: Some(100 - at.as_nanos() as i64 / 1_000_000),
            connection_window: None,
        }
    }

    #[test]
    fn runs_are_one_line_and_nothing_is_lost() {
        let other = Event { kind: Kind::Ping, length: 4, bytes: 4, ..data(6, 0, 4, false) };
        let events = [
            data(1, 1, 10, false),
            data(2, 1, 10, false),
            data(3, 1, 4, false),
            // Shorter than a whole one was the last of its run.
            data(4, 1, 10, false),
            data(5, 3, 10, false),
            other,
            data(7, 3, 10, false),
            data(8, 3, 10, true),
            data(9, 3, 10, false),
        ];
        let folded = fold(&events);
        let seen: Vec<_> = folded.iter().map(|event| (event.frames, event.bytes)).collect();
        assert_eq!(seen, [(3, 24), (1, 10), (1, 10), (1, 4), (2, 20), (1, 10)]);
        assert_eq!((folded[0].at, folded[0].until), (Time::from_millis(1), Time::from_millis(3)));
        assert_eq!(folded[0].stream_window, Some(97));
        assert!(folded[4].kind.is_last());
        let bytes = |events: &[Event]| events.iter().map(|event| event.bytes).sum::<u64>();
        assert_eq!(bytes(&folded), bytes(&events));
        assert_eq!(fold(&folded), folded);
    }
}
