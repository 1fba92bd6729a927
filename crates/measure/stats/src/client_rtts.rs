//! The clients' round-trip times as a file that other studies weigh by.
//!
//! JSON, one object:
//!
//! | member | |
//! |---|---|
//! | `format` | `"wiretax-client-round-trips"` |
//! | `version` | 1; a reader refuses what it does not know |
//! | `connections` | TLS handshakes over TCP whose round trip could be told |
//! | `points` | an array of `{"ms": M, "count": N}`: N of them took about M ms (right to 1 %), by M |
//! | `quantiles` | for people: `{"p": 0.5, "ms": M}`; a reader does not need them |
//!
//! A round trip is that of the TCP handshake: from the SYN until the SYN+ACK's acknowledgment.

use std::borrow::Cow;

use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Distribution;

/// What the file says it is.
pub const FORMAT: &str = "wiretax-client-round-trips";
/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// The longest text that is read: points are at most some thousands.
pub const MAX_BYTES: usize = 16 << 20;

/// The clients' round-trip times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRtts {
    format: String,
    version: u32,
    /// Handshakes that it rests on.
    pub connections: u64,
    /// How many took how long, by time.
    pub points: Vec<RttPoint>,
    /// Some quantiles, for people.
    #[serde(default)]
    pub quantiles: Vec<RttQuantile>,
}

/// So many handshakes with this round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RttPoint {
    /// The round-trip time, in ms.
    pub ms: f64,
    /// How many handshakes took about so long.
    pub count: u64,
}

/// A quantile of the round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RttQuantile {
    /// Which: 0.5 is the median.
    pub p: f64,
    /// The round-trip time that this share does not exceed, in ms.
    pub ms: f64,
}

/// What can be wrong with such a file: who made it is to mend it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RttError {
    /// It is longer than is read.
    #[error("it is {0} bytes long, and no file of round-trip times is")]
    TooLong(usize),
    /// It is no JSON, or members are missing.
    #[error("it is not what `--rtt-out` writes: {0}")]
    Json(#[from] serde_json::Error),
    /// It is another format.
    #[error("its format is `{0}`, not `{FORMAT}`")]
    Format(String),
    /// It is of another version.
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u32),
    /// A time is none.
    #[error("point {index}: {ms} is not a time of 0 ms or more")]
    Time {
        /// Which, from 0.
        index: usize,
        /// What it says.
        ms: f64,
    },
    /// The counts are not those of the connections.
    #[error(
        "its points count {points}, but it says {connections} connections: it was changed or cut"
    )]
    Count {
        /// The points' sum.
        points: u64,
        /// What it says.
        connections: u64,
    },
    /// There are no round-trip times.
    #[error("it has no round-trip times")]
    Empty,
}

impl Explain for RttError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            RttError::Empty => "capture where the TCP handshakes pass".into(),
            RttError::Version(_) => "write it again with `wiretax observe --rtt-out FILE`".into(),
            _ => "give what `wiretax observe --rtt-out FILE` wrote".into(),
        })
    }
}

impl ClientRtts {
    /// Of points by time, and some quantiles of the same.
    #[must_use]
    pub fn new(points: Vec<RttPoint>, quantiles: Vec<RttQuantile>) -> ClientRtts {
        ClientRtts {
            format: FORMAT.to_owned(),
            version: VERSION,
            connections: points.iter().map(|point| point.count).fold(0, u64::saturating_add),
            points,
            quantiles,
        }
    }

    /// As JSON, indented, with a line end.
    ///
    /// # Errors
    /// [`RttError::Json`], which numbers and texts never give.
    pub fn to_json(&self) -> Result<String, RttError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads what [`ClientRtts::to_json`] wrote.
    ///
    /// # Errors
    /// [`RttError`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<ClientRtts, RttError> {
        if text.len() > MAX_BYTES {
            return Err(RttError::TooLong(text.len()));
        }
        let rtts: ClientRtts = serde_json::from_str(text)?;
        if rtts.format != FORMAT {
            return Err(RttError::Format(fault::excerpt(&rtts.format, 40)));
        }
        if rtts.version != VERSION {
            return Err(RttError::Version(rtts.version));
        }
        for (index, point) in rtts.points.iter().enumerate() {
            if !(point.ms.is_finite() && point.ms >= 0.0) {
                return Err(RttError::Time { index, ms: point.ms });
            }
        }
        let counts = rtts.points.iter().map(|point| point.count);
        let points = counts.fold(0u64, u64::saturating_add);
        let connections = rtts.connections;
        if points != connections {
            return Err(RttError::Count { points, connections });
        }
        if points == 0 {
            return Err(RttError::Empty);
        }
        Ok(rtts)
    }

    /// As weights.
    ///
    /// # Errors
    /// [`RttError::Empty`] without points that count anything.
    pub fn distribution(&self) -> Result<Distribution, RttError> {
        let lines = self.points.iter().map(|point| format!("{} {}\n", point.ms, point.count));
        // The times were looked at when they were read; sums of counts are finite.
        Distribution::parse(&lines.collect::<String>()).map_err(|_| RttError::Empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rtts(points: &[(f64, u64)]) -> ClientRtts {
        let points = points.iter().map(|(ms, count)| RttPoint { ms: *ms, count: *count });
        ClientRtts::new(points.collect(), Vec::new())
    }

    #[test]
    fn what_is_written_is_read() {
        let written = rtts(&[(25.0, 3), (55.5, 1)]);
        let read = ClientRtts::parse(&written.to_json().unwrap()).unwrap();
        assert_eq!(read, written);
        let weights = read.distribution().unwrap();
        assert_eq!(weights.points(), [(25.0, 0.75), (55.5, 0.25)]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| ClientRtts::parse(text).unwrap_err();
        let changed = |from: &str, to: &str| {
            error(&rtts(&[(25.0, 3), (55.5, 1)]).to_json().unwrap().replace(from, to))
        };
        assert!(matches!(error("25ms\n"), RttError::Json(_)));
        assert!(matches!(error("{}"), RttError::Json(_)));
        assert!(matches!(changed(FORMAT, "other"), RttError::Format(_)));
        assert!(matches!(changed("\"version\": 1", "\"version\": 2"), RttError::Version(2)));
        assert!(matches!(changed("25.0", "-1"), RttError::Time { index: 0, .. }));
        assert!(matches!(
            changed("\"count\": 3", "\"count\": 5"),
            RttError::Count { points: 6, .. }
        ));
        assert!(matches!(error(&rtts(&[]).to_json().unwrap()), RttError::Empty));
        let long = " ".repeat(MAX_BYTES + 1);
        assert!(matches!(error(&long), RttError::TooLong(_)));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = ClientRtts::parse(&text);
        }

        #[test]
        fn counts_of_any_size_are_read(points in prop::collection::vec((0.0f64..1e6, any::<u64>()), 0..9)) {
            if let Ok(read) = ClientRtts::parse(&rtts(&points).to_json().unwrap()) {
                prop_assert!(read.distribution().is_ok());
            }
        }
    }
}
