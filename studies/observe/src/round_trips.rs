//! The clients' round-trip times as a text, which `stats::Distribution` reads.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::digest::Digest;

impl Digest {
    /// The round-trip times of all TLS handshakes over TCP, one a line in ms with its weight: how many
    /// had it. The handshake study takes it for its clients' times.
    #[must_use]
    pub fn round_trips_text(&self) -> String {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut total = 0;
        for ((kind, _), cell) in &self.cells {
            if kind.quic {
                // Only the part between capture and client is known of it.
                continue;
            }
            for (ms, count) in cell.round_trip.steps() {
                *counts.entry((ms * 1e3).round() as u64).or_default() += count;
                total += count;
            }
        }
        let mut text = format!(
            "# Round-trip times of {total} TLS handshakes, by their TCP handshakes: ms, and how many.\n"
        );
        for (us, count) in counts {
            let _ = writeln!(text, "{}ms {count}", us as f64 / 1e3);
        }
        text
    }
}
