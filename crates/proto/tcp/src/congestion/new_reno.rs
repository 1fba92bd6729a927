//! Reno's congestion avoidance (RFC 5681 §3.1), counting bytes (RFC 3465).

/// Bytes to add to `window` for `delivered` bytes: one segment per window.
pub(super) fn growth(window: u64, mss: u64, delivered: u64) -> u64 {
    // Products of 64 bits could overflow only with windows beyond any buffer.
    let share = u128::from(mss) * u128::from(delivered.min(window)) / u128::from(window.max(1));
    u64::try_from(share).unwrap_or(0).max(u64::from(delivered > 0))
}

/// Half of what was in flight (RFC 5681 §3.1 equation 4).
pub(super) fn reduce(flight: u64) -> u64 {
    flight / 2
}
