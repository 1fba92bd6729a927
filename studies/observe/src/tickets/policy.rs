//! What a server may do with tickets.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use units::Time;

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

const fn hours(count: u64) -> Duration {
    minutes(60 * count)
}

/// Lifetimes that are looked at. A week is the most that TLS 1.3 allows (RFC 8446 §4.6.1).
pub const LIFETIMES: [Duration; 12] = [
    minutes(5),
    minutes(15),
    minutes(30),
    hours(1),
    hours(2),
    hours(4),
    hours(8),
    hours(12),
    hours(24),
    hours(48),
    hours(96),
    hours(168),
];

/// Times between two keys.
const ROTATIONS: [Duration; 4] = [hours(1), hours(4), hours(12), hours(24)];
/// Keys before the newest that are still accepted.
const OLDER: [u64; 3] = [0, 1, 2];

/// Policies that are looked at.
pub(super) const POLICIES: usize = LIFETIMES.len() + ROTATIONS.len() * OLDER.len();

/// When a ticket is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// So long after it was issued.
    Lifetime {
        /// How long, seconds.
        #[serde(serialize_with = "seconds")]
        lifetime: Duration,
    },
    /// While the key that it was sealed with is among those accepted, and a week at most.
    Rotation {
        /// Time between two keys, seconds.
        #[serde(serialize_with = "seconds")]
        every: Duration,
        /// Keys before the newest that are accepted.
        older: u64,
    },
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs())
}

impl Policy {
    /// All of them: the lifetimes, then the rotations.
    pub(super) fn all() -> [Policy; POLICIES] {
        std::array::from_fn(|at| match LIFETIMES.get(at) {
            Some(lifetime) => Policy::Lifetime { lifetime: *lifetime },
            None => {
                let at = at - LIFETIMES.len();
                let every = ROTATIONS.get(at / OLDER.len()).copied().unwrap_or_default();
                let older = OLDER.get(at % OLDER.len()).copied().unwrap_or_default();
                Policy::Rotation { every, older }
            }
        })
    }

    /// Whether a ticket issued at `issued` is accepted at `at`.
    pub(super) fn accepts(self, issued: Time, at: Time) -> bool {
        let age = at.saturating_since(issued);
        match self {
            Policy::Lifetime { lifetime } => age <= lifetime,
            Policy::Rotation { every, older } => {
                let passed = epoch(at, every).saturating_sub(epoch(issued, every));
                passed <= u128::from(older) && age <= hours(168)
            }
        }
    }

    /// Whether a server that resumes a session of TLS 1.2 gives a new ticket: when the old one's key is
    /// not the newest.
    pub(super) fn renews(self, issued: Time, at: Time) -> bool {
        match self {
            Policy::Lifetime { .. } => false,
            Policy::Rotation { every, .. } => epoch(issued, every) != epoch(at, every),
        }
    }

    /// The longest that a ticket is accepted: shorter records cannot tell what it does.
    pub(super) fn longest(self) -> Duration {
        match self {
            Policy::Lifetime { lifetime } => lifetime,
            Policy::Rotation { every, older } => {
                every.saturating_mul(u32::try_from(older).unwrap_or(u32::MAX).saturating_add(1))
            }
        }
    }
}

/// Which key is the newest at a time.
fn epoch(at: Time, every: Duration) -> u128 {
    u128::from(at.as_nanos()) / every.as_nanos().max(1)
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Lifetime { lifetime } => f.write_str(&words(*lifetime)),
            Policy::Rotation { every, older } => {
                let every = words(*every);
                match older {
                    0 => write!(f, "a new key every {every}"),
                    1 => write!(f, "a new key every {every}, the one before accepted"),
                    older => write!(f, "a new key every {every}, the {older} before accepted"),
                }
            }
        }
    }
}

/// A time in its largest whole unit: `8 h`, `5 min`, `7 days`.
pub(super) fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        s if s >= 172_800 && s.is_multiple_of(86_400) => format!("{} days", s / 86_400),
        s if s >= 3600 && s.is_multiple_of(3600) => format!("{} h", s / 3600),
        s if s >= 3600 => format!("{:.1} h", s as f64 / 3600.0),
        s if s >= 60 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}
