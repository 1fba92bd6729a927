//! Reasons of failures, within bounds: they come from results of strangers, too.

use std::collections::BTreeMap;

use fault::excerpt;

/// Most characters of a reason.
pub const LONGEST_REASON: usize = 500;
/// Most reasons that a point tells apart.
const MOST_REASONS: usize = 16;

/// The key under which one more failure counts: its reason, cut; beyond 16 different ones, `other reasons`.
#[must_use]
pub fn reason_among<V>(failed: &BTreeMap<String, V>, reason: &str) -> String {
    let reason = excerpt(reason, LONGEST_REASON);
    let is_known = failed.contains_key(&reason) || failed.len() < MOST_REASONS;
    if is_known { reason } else { "other reasons".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_long_reasons_take_little_memory() {
        let mut failed: BTreeMap<String, u32> = BTreeMap::new();
        for number in 0..1_000 {
            let reason = reason_among(&failed, &format!("{number} {}", "x".repeat(10_000)));
            *failed.entry(reason).or_default() += 1;
        }
        assert_eq!(failed.len(), MOST_REASONS + 1);
        assert_eq!(failed["other reasons"], 1_000 - MOST_REASONS as u32);
        assert!(failed.keys().all(|reason| reason.chars().count() <= LONGEST_REASON + 1));
        assert_eq!(reason_among(&failed, "another"), "other reasons");
    }
}
