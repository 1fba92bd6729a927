//! Frames that were captured more than once, handshakes that were seen at other addresses too, and directions
//! whose clocks differ.

use serde::Serialize;
use tracker::Connection;
use units::counted;

/// Copies in a capture, and differences of its clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Twice {
    /// Connections whose frames were captured more than once.
    pub copied: u64,
    /// Connections that carry a handshake seen at other addresses: they are counted nowhere else.
    pub translated: u64,
    /// Connections whose directions are dated by clocks that differ.
    pub misdated: u64,
    /// How much is to be added to the server's times at least, in all of them, ns.
    pub at_least_ns: i64,
    /// At most.
    pub at_most_ns: i64,
    /// The least that any of them needs, and the most that any of them allows, ns.
    pub extremes_ns: (i64, i64),
}

impl Twice {
    pub(super) fn take(&mut self, connection: &Connection) {
        let Some(tcp) = &connection.tcp else { return };
        self.copied += u64::from(tcp.copies > 0);
        if let Some(offset) = tcp.clock_offset {
            let (low, high) = (offset.at_least, offset.at_most);
            self.add(&Twice {
                misdated: 1,
                at_least_ns: low,
                at_most_ns: high,
                extremes_ns: (low, high),
                ..Twice::default()
            });
        }
    }

    fn add(&mut self, other: &Twice) {
        let (low, high) = self.extremes_ns;
        if self.misdated == 0 {
            (self.at_least_ns, self.at_most_ns) = (other.at_least_ns, other.at_most_ns);
            self.extremes_ns = other.extremes_ns;
        } else if other.misdated > 0 {
            self.at_least_ns = self.at_least_ns.max(other.at_least_ns);
            self.at_most_ns = self.at_most_ns.min(other.at_most_ns);
            self.extremes_ns = (low.min(other.extremes_ns.0), high.max(other.extremes_ns.1));
        }
        self.misdated += other.misdated;
    }

    pub(super) fn merge(&mut self, other: &Twice) {
        self.copied += other.copied;
        self.translated += other.translated;
        self.add(other);
    }

    /// Frames that were captured more than once: a sentence, and what to do.
    #[must_use]
    pub fn copied_text(&self) -> Option<(String, String)> {
        let copied = Some(self.copied).filter(|copied| *copied > 0)?;
        let what = format!(
            "Frames of {} were captured more than once; times are those of the first copies.",
            counted(copied, "connection")
        );
        Some((
            what,
            "capture on one interface, not on `any` or on a bridge and its ports".to_owned(),
        ))
    }

    /// Handshakes that were seen at two pairs of addresses: a sentence, and what to do.
    #[must_use]
    pub fn translated_text(&self) -> Option<(String, String)> {
        let translated = Some(self.translated).filter(|translated| *translated > 0)?;
        let what = format!(
            "{} captured on both sides of an address translation or a relay: each is counted once.",
            counted(translated, "handshake")
        );
        Some((what, "capture on one side of it".to_owned()))
    }

    /// Clocks that differ: a sentence with the difference, and what to do.
    #[must_use]
    pub fn clocks_text(&self) -> Option<(String, String)> {
        let (low, high, one) = self.offset_ns()?;
        let late = low < 0;
        let (from, to) = if late { (-high, -low) } else { (low, high) };
        let ms = |nanos: i64| nanos as f64 / 1e6;
        let (from, to) = (ms(from).max(0.0), ms(to));
        let which = if late { "late" } else { "early" };
        let of = counted(self.misdated, "connection");
        if !one {
            let what = format!(
                "The directions of {of} have different clocks, which drift or are several: server frames \
                 are dated up to {:.3} ms wrong.",
                ms(low.abs().max(high.abs()))
            );
            return Some((what, "capture both directions on one machine".to_owned()));
        }
        let what = format!(
            "The directions of {of} have different clocks: server frames are dated {from:.3} to {to:.3} ms too \
             {which}."
        );
        // A server answers at once: near it, the least amount is about right.
        let remedy = format!(
            "capture both directions on one machine, or shift the server's file by as much: `editcap -t \
             {:.6} IN OUT` if it was captured at the server",
            low as f64 / 1e9
        );
        Some((what, remedy))
    }

    /// How much is to be added to the server's times, from and to, ns, and whether one amount fits all.
    #[must_use]
    pub const fn offset_ns(&self) -> Option<(i64, i64, bool)> {
        if self.misdated == 0 {
            return None;
        }
        if self.at_least_ns <= self.at_most_ns {
            return Some((self.at_least_ns, self.at_most_ns, true));
        }
        Some((self.extremes_ns.0, self.extremes_ns.1, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(low: i64, high: i64) -> Twice {
        Twice {
            misdated: 1,
            at_least_ns: low,
            at_most_ns: high,
            extremes_ns: (low, high),
            ..Twice::default()
        }
    }

    #[test]
    fn offsets_are_narrowed_where_one_clock_fits_all() {
        let mut all = Twice::default();
        assert_eq!(all.offset_ns(), None);
        for (low, high) in [(-50, -10), (-40, -5), (-60, -12)] {
            all.merge(&one(low, high));
        }
        assert_eq!((all.offset_ns(), all.misdated), (Some((-40, -12, true)), 3));
        all.merge(&one(20, 30));
        assert_eq!(all.offset_ns(), Some((-60, 30, false)));
        all.merge(&Twice { copied: 2, translated: 1, ..Twice::default() });
        assert_eq!((all.copied, all.translated, all.misdated), (2, 1, 4));
    }
}
