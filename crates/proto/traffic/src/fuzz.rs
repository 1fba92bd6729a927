//! Entry points for fuzzing.

use units::Time;

use crate::{Probe, Tally};

/// Any bytes as a stream of probes: counts add up, and memory stays as it is.
///
/// # Panics
/// A frame is counted twice or not at all.
pub fn probes(bytes: &[u8]) {
    let _ = Probe::parse(bytes).is_ok();
    let mut tally = Tally::new(1);
    let (mut now, mut sent) = (Time::ZERO, 0u64);
    for chunk in bytes.as_chunks::<5>().0 {
        let [kind, number @ ..] = *chunk;
        let number = u32::from_be_bytes(number);
        let number = if kind & 1 == 0 { number } else { number % 70_000 };
        let probe = Probe { stream: u16::from(kind & 2 == 0), number, sent: now };
        now = Time::from_nanos(now.as_nanos().saturating_add(number.into()));
        tally.receive(now, &probe, 60);
        sent += 1;
    }
    let counted = tally.received() + tally.duplicates() + tally.foreign();
    assert!(counted <= sent && tally.reordered() <= tally.received());
    assert_eq!(tally.bytes(), tally.received() * 60);
    assert_eq!(tally.lost(tally.received()), 0);
    assert_eq!(tally.delays().is_some(), tally.received() > 0);
}
