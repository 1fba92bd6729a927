//! The windows of one direction: what its sender may send, and what can be read of how its receiver
//! gives back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Time;

use crate::protocol::Protocol;

/// Streams whose windows are known at once.
const STREAMS: usize = 1024;
/// WINDOW_UPDATEs whose increments are kept for a median: the first ones.
const KEPT: usize = 1024;

/// What can be read of the windows of a direction: one side sends, the other gives windows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// Bytes of the window that a stream begins with, by the protocol.
    pub start_bytes: u32,
    /// Bytes of a stream's window as the receiver's last SETTINGS_INITIAL_WINDOW_SIZE says; `None` if it
    /// said none, and streams keep the start window.
    pub announced_bytes: Option<u32>,
    /// Bytes of the connection's window at the start; `None` in SPDY/3.
    pub connection_start_bytes: Option<u32>,
    /// Bytes of the connection's window, as far as WINDOW_UPDATEs made it larger than it began.
    pub connection_bytes: Option<i64>,
    /// DATA frames sent.
    pub data_frames: u64,
    /// Bytes of them that count for windows.
    pub data_bytes: u64,
    /// Of these, bytes that were sent before the receiver's first SETTINGS.
    pub before_settings_bytes: u64,
    /// The largest DATA frame, bytes.
    pub largest_frame_bytes: u64,
    /// When the receiver gives back what it consumed of a stream.
    pub stream_updates: Updates,
    /// The same of the connection.
    pub connection_updates: Updates,
    /// The smallest window that a stream had left after a DATA frame.
    pub least_stream: Option<Least>,
    /// The same of the connection.
    pub least_connection: Option<Least>,
    /// DATA frames after which a window was shut: 0 bytes of a stream's or of the connection's left.
    pub shut: u64,
    /// DATA frames beyond a window: the sender's fault, or WINDOW_UPDATEs are not in the capture.
    pub overruns: u64,
    /// DATA frames on streams whose window is not known, because there were too many streams.
    pub unknown: u64,
}

/// The smallest window left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Least {
    /// Bytes left; below 0 after an overrun, or where SETTINGS made windows smaller.
    pub bytes: i64,
    /// When that was first so.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// On which stream the frame was.
    pub stream: u32,
}

/// WINDOW_UPDATEs that give back what was consumed. Those that make a window larger are not among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// How many there were.
    pub count: u64,
    /// The smallest increment, bytes. This and the medians are of the first 1024.
    pub least_bytes: Option<u32>,
    /// The median increment, bytes: what was consumed when the receiver said so.
    pub median_bytes: Option<u32>,
    /// The largest increment, bytes.
    pub largest_bytes: Option<u32>,
    /// The median of increment per window.
    pub median_share: Option<f64>,
}

impl Windows {
    /// Bytes of a stream's window once the receiver's SETTINGS are read.
    #[must_use]
    pub fn stream_bytes(&self) -> u32 {
        self.announced_bytes.unwrap_or(self.start_bytes)
    }

    /// Whether there was ever less of a window left than one frame takes, the largest.
    #[must_use]
    pub fn was_nearly_shut(&self) -> bool {
        let least = self.least_stream.into_iter().chain(self.least_connection);
        let least = least.map(|least| least.bytes).min();
        least.is_some_and(|bytes| bytes < i64::try_from(self.largest_frame_bytes).unwrap_or(0))
    }

    /// The smaller of the two windows left, as far as they are known.
    #[must_use]
    pub fn least(&self) -> Option<Least> {
        let both = [self.least_stream, self.least_connection];
        both.into_iter().flatten().min_by_key(|least| least.bytes)
    }
}

#[derive(Debug, Clone, Copy)]
struct Window {
    /// Bytes that may be sent.
    left: i64,
    /// Bytes that may be sent when all was given back.
    size: i64,
    /// Bytes sent and not given back.
    outstanding: u64,
    /// Its sender has sent its last frame.
    closed: bool,
}

impl Window {
    fn new(size: i64) -> Self {
        Window { left: size, size, outstanding: 0, closed: false }
    }

    fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.outstanding = self.outstanding.saturating_add(bytes);
    }

    /// Takes a WINDOW_UPDATE; the window's size, if it gives back what was consumed.
    fn update(&mut self, increment: u32) -> Option<i64> {
        self.left = self.left.saturating_add(increment.into());
        match self.outstanding.checked_sub(increment.into()) {
            Some(outstanding) => {
                self.outstanding = outstanding;
                Some(self.size)
            }
            // More than was sent: nobody can have consumed that, so that it is a larger window.
            None => {
                self.size = self.size.saturating_add(increment.into());
                None
            }
        }
    }
}

/// The increments that are kept.
#[derive(Debug, Default)]
struct Increments {
    count: u64,
    /// With the windows that they were of.
    kept: Vec<(u32, i64)>,
}

impl Increments {
    fn note(&mut self, increment: u32, window: i64) {
        self.count = self.count.saturating_add(1);
        if self.kept.len() < KEPT {
            self.kept.push((increment, window));
        }
    }

    fn told(mut self) -> Updates {
        self.kept.sort_unstable();
        let increments = || self.kept.iter().map(|(increment, _)| *increment);
        let mut shares: Vec<f64> =
            self.kept.iter().map(|(of, window)| f64::from(*of) / (*window).max(1) as f64).collect();
        shares.sort_by(f64::total_cmp);
        let middle = self.kept.len() / 2;
        Updates {
            count: self.count,
            least_bytes: increments().next(),
            median_bytes: increments().nth(middle),
            largest_bytes: increments().next_back(),
            median_share: shares.get(middle).copied(),
        }
    }
}

/// What is left of a stream's and of the connection's window.
pub(crate) type Left = (Option<i64>, Option<i64>);

/// One direction, from its sender's side.
#[derive(Debug)]
pub(crate) struct Sending {
    /// The window of new streams.
    initial: i64,
    streams: BTreeMap<u32, Window>,
    connection: Option<Window>,
    settings_seen: bool,
    of_streams: Increments,
    of_connection: Increments,
    facts: Windows,
}

impl Sending {
    pub(crate) fn new(protocol: Protocol) -> Self {
        let (start, connection) = (protocol.start_window(), protocol.connection_start());
        Sending {
            initial: start.into(),
            streams: BTreeMap::new(),
            connection: connection.map(|bytes| Window::new(bytes.into())),
            settings_seen: false,
            of_streams: Increments::default(),
            of_connection: Increments::default(),
            facts: Windows {
                start_bytes: start,
                connection_start_bytes: connection,
                ..Windows::default()
            },
        }
    }

    /// A stream's window, which begins now if it is not known; `None` where there is no room.
    fn stream(&mut self, stream: u32) -> Option<&mut Window> {
        if self.streams.len() >= STREAMS && !self.streams.contains_key(&stream) {
            self.streams.retain(|_, window| !window.closed);
            if self.streams.len() >= STREAMS {
                return None;
            }
        }
        let initial = self.initial;
        Some(self.streams.entry(stream).or_insert_with(|| Window::new(initial)))
    }

    /// What is left.
    fn left(&self, stream: u32) -> Left {
        let of_stream = match stream {
            0 => None,
            _ => self.streams.get(&stream).map(|window| window.left),
        };
        (of_stream, self.connection.map(|window| window.left))
    }

    /// The sender sent a DATA frame: what it has left.
    pub(crate) fn data(&mut self, at: Time, stream: u32, bytes: u64) -> Left {
        if let Some(window) = self.stream(stream) {
            window.spend(bytes);
        } else {
            self.facts.unknown = self.facts.unknown.saturating_add(1);
        }
        if let Some(window) = &mut self.connection {
            window.spend(bytes);
        }
        let (of_stream, of_connection) = self.left(stream);
        let facts = &mut self.facts;
        facts.data_frames = facts.data_frames.saturating_add(1);
        facts.data_bytes = facts.data_bytes.saturating_add(bytes);
        facts.largest_frame_bytes = facts.largest_frame_bytes.max(bytes);
        if !self.settings_seen {
            facts.before_settings_bytes = facts.before_settings_bytes.saturating_add(bytes);
        }
        let lower = |least: &mut Option<Least>, left: Option<i64>| {
            if let Some(bytes) = left
                && least.is_none_or(|least| bytes < least.bytes)
            {
                *least = Some(Least { bytes, at, stream });
            }
        };
        lower(&mut facts.least_stream, of_stream);
        lower(&mut facts.least_connection, of_connection);
        let both = || of_stream.into_iter().chain(of_connection);
        // An empty frame takes nothing of a window that may be shut already.
        if bytes > 0 {
            facts.shut = facts.shut.saturating_add(both().any(|left| left == 0).into());
            facts.overruns = facts.overruns.saturating_add(both().any(|left| left < 0).into());
        }
        (of_stream, of_connection)
    }

    /// The receiver sent a WINDOW_UPDATE.
    pub(crate) fn update(&mut self, stream: u32, increment: u32) -> Left {
        if stream == 0 {
            if let Some(window) = &mut self.connection {
                if let Some(size) = window.update(increment) {
                    self.of_connection.note(increment, size);
                }
                let size = window.size;
                self.facts.connection_bytes =
                    Some(self.facts.connection_bytes.map_or(size, |before| before.max(size)));
            }
        } else if let Some(window) = self.stream(stream)
            && let Some(size) = window.update(increment)
        {
            self.of_streams.note(increment, size);
        }
        self.left(stream)
    }

    /// The receiver sent SETTINGS, with or without a window for streams. Gives a new stream's window.
    pub(crate) fn settings(&mut self, initial: Option<u32>) -> Left {
        self.settings_seen = true;
        if let Some(bytes) = initial {
            // RFC 9113 §6.9.2, SPDY §2.6.8: open streams change by the difference, even below 0.
            let change = i64::from(bytes).saturating_sub(self.initial);
            for window in self.streams.values_mut() {
                window.left = window.left.saturating_add(change);
                window.size = window.size.saturating_add(change);
            }
            self.initial = bytes.into();
            self.facts.announced_bytes = Some(bytes);
        }
        (initial.map(|_| self.initial), None)
    }

    /// The sender sends no more on a stream.
    pub(crate) fn close(&mut self, stream: u32) {
        if let Some(window) = self.streams.get_mut(&stream) {
            window.closed = true;
        }
    }

    /// What can be read of it.
    pub(crate) fn told(self) -> Windows {
        let size = self.connection.map(|window| window.size);
        Windows {
            stream_updates: self.of_streams.told(),
            connection_updates: self.of_connection.told(),
            connection_bytes: self.facts.connection_bytes.or(size),
            ..self.facts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u32 = 1 << 20;
    const AT: Time = Time::from_millis(7);

    #[test]
    fn a_chromiums_windows_are_read() {
        let mut sending = Sending::new(Protocol::Spdy31);
        assert_eq!(sending.data(AT, 1, 16_000), (Some(49_536), Some(49_536)));
        // SETTINGS change the open stream, and not the session.
        assert_eq!(sending.settings(Some(10 * MB)), (Some(i64::from(10 * MB)), None));
        assert_eq!(sending.data(AT, 1, 16_000).0, Some(i64::from(10 * MB) - 32_000));
        let larger = 10 * MB - (64 << 10);
        assert_eq!(sending.update(0, larger), (None, Some(i64::from(10 * MB) - 32_000)));
        for _ in 0..2 {
            for _ in 0..5 {
                sending.data(AT, 1, u64::from(MB));
            }
            sending.update(1, 5 * MB);
            sending.update(0, 5 * MB);
        }
        let windows = sending.told();
        assert_eq!((windows.start_bytes, windows.announced_bytes), (64 << 10, Some(10 * MB)));
        assert_eq!(windows.connection_bytes, Some(i64::from(10 * MB)));
        for updates in [windows.stream_updates, windows.connection_updates] {
            assert_eq!((updates.count, updates.median_bytes), (2, Some(5 * MB)));
            assert_eq!(updates.median_share, Some(0.5));
        }
        assert_eq!((windows.data_frames, windows.before_settings_bytes), (12, 16_000));
        assert_eq!((windows.shut, windows.overruns), (0, 0));
        // The session stood at 64 KB while 32,000 bytes were out.
        assert_eq!(windows.least_connection.unwrap().bytes, 33_536);
        assert_eq!(windows.largest_frame_bytes, u64::from(MB));
        assert!(windows.was_nearly_shut());
    }

    #[test]
    fn a_shut_window_and_an_overrun_are_counted() {
        let mut sending = Sending::new(Protocol::Http2);
        sending.data(AT, 1, 65_535);
        assert!(sending.facts.shut == 1 && sending.facts.was_nearly_shut());
        sending.data(AT, 1, 0);
        assert_eq!((sending.facts.shut, sending.facts.overruns), (1, 0));
        sending.data(AT, 3, 1);
        assert_eq!(sending.facts.overruns, 1);
        assert_eq!(sending.facts.least().unwrap(), Least { bytes: -1, at: AT, stream: 3 });
    }

    #[test]
    fn settings_may_make_windows_smaller_than_nothing() {
        let mut sending = Sending::new(Protocol::Spdy3);
        assert_eq!(sending.data(AT, 1, 60 << 10), (Some(4 << 10), None));
        assert_eq!(sending.settings(Some(16 << 10)), (Some(16 << 10), None));
        assert_eq!(sending.update(1, 1), (Some((-44 << 10) + 1), None));
        assert_eq!(sending.update(0, 1), (None, None));
        assert_eq!(sending.settings(None), (None, None));
        assert_eq!(sending.told().connection_bytes, None);
    }

    #[test]
    fn streams_are_bounded_and_closed_ones_go_first() {
        let mut sending = Sending::new(Protocol::Http2);
        for stream in 1..=STREAMS as u32 {
            sending.data(AT, stream, 1);
        }
        assert_eq!(sending.data(AT, 9999, 1).0, None);
        assert_eq!((sending.streams.len(), sending.facts.unknown), (STREAMS, 1));
        sending.close(1);
        assert_eq!(sending.data(AT, 9999, 1).0, Some(65_534));
        assert_eq!(sending.streams.len(), STREAMS);
    }
}
