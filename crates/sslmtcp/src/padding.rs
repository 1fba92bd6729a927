//! Lengthens a ClientHello on the wire without touching it.
//!
//! A server sends at most three times what it received to an address that is not validated
//! (RFC 9000 §8.1), so a longer hello buys room for a longer certificate chain; QUIC pads to 1200
//! bytes for this (RFC 9000 §14.1). A handshake message may be cut into several records (RFC 8446
//! §5.1), and each costs a header of 5 bytes. Records are no part of the transcript, so that no TLS
//! library needs to know.

/// What a SYN's payload is lengthened to, in bytes.
pub const TARGET: usize = 1200;

const RECORD_HEADER: usize = 5;
const HANDSHAKE: u8 = 22;
/// The most that a record's payload may be (RFC 8446 §5.1).
const MAX_RECORD: usize = 1 << 14;
/// Handshake header, legacy_version, random (RFC 8446 §4, §4.1.2): what the first record should
/// hold, for those who look at it only.
const GOOD_FIRST: usize = 4 + 2 + 32;
/// Handshake header and legacy_version: what the first record must hold.
const LEAST_FIRST: usize = 4 + 2;

/// `flight` with the handshake records at its front cut into more of them, so that it is at least
/// `target` bytes and less than a record header more, if it is long enough to be cut so often; but
/// never longer than `room`. Unchanged if it is long enough, or has no handshake record at its
/// front. The handshake bytes are the same, and so is what follows them.
#[must_use]
pub fn pad(flight: &[u8], target: usize, room: usize) -> Vec<u8> {
    recut(flight, target, room).unwrap_or_else(|| flight.to_vec())
}

fn recut(flight: &[u8], target: usize, room: usize) -> Option<Vec<u8>> {
    if flight.len() >= target {
        return None;
    }
    let Front { header, message, records, rest } = front(flight);
    let bare = message.len().checked_add(rest.len())?;
    let wanted = target.saturating_sub(bare).div_ceil(RECORD_HEADER);
    let fit = room.checked_sub(bare)? / RECORD_HEADER;
    let cut = |first: usize| (message.len() + 1).saturating_sub(first);
    let possible = match cut(GOOD_FIRST) {
        enough if enough >= wanted.min(fit) => enough,
        _ => cut(LEAST_FIRST),
    };
    let count = wanted.min(fit).min(possible);
    let first = message.len().checked_sub(count.checked_sub(1)?)?;
    if count <= records || first > MAX_RECORD {
        return None;
    }
    let mut out = Vec::with_capacity(bare + count * RECORD_HEADER);
    let (first, singles) = message.split_at_checked(first)?;
    for part in core::iter::once(first).chain(singles.chunks(1)) {
        out.extend_from_slice(&header);
        out.extend_from_slice(&u16::try_from(part.len()).ok()?.to_be_bytes());
        out.extend_from_slice(part);
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// The handshake records at the front of a flight.
struct Front<'a> {
    /// Type and version of the first.
    header: [u8; 3],
    /// What they hold.
    message: Vec<u8>,
    records: usize,
    rest: &'a [u8],
}

fn front(flight: &[u8]) -> Front<'_> {
    let mut front =
        Front { header: [HANDSHAKE, 3, 1], message: Vec::new(), records: 0, rest: flight };
    while let [HANDSHAKE, major, minor, high, low, body @ ..] = front.rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((payload, rest)) = body.split_at_checked(length) else { break };
        if front.records == 0 {
            front.header = [HANDSHAKE, *major, *minor];
        }
        front.records += 1;
        front.message.extend_from_slice(payload);
        front.rest = rest;
    }
    front
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut record = vec![kind, 3, 1];
        record.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        record.extend(payload);
        record
    }

    #[test]
    fn a_hello_is_lengthened_to_the_target() {
        let message: Vec<u8> = (0..=230).collect();
        let padded = pad(&record(22, &message), TARGET, 1420);
        assert!((TARGET..TARGET + RECORD_HEADER).contains(&padded.len()), "{}", padded.len());
        let first = usize::from(u16::from_be_bytes([padded[3], padded[4]]));
        assert!(first >= GOOD_FIRST, "{first}");
        assert_eq!(front(&padded).message, message);
    }

    #[test]
    fn the_room_is_never_exceeded() {
        let flight = record(22, &[1; 300]);
        for room in 0..1300 {
            let len = pad(&flight, TARGET, room).len();
            assert!(len <= room.max(flight.len()));
            assert!(room < 310 || room - len.min(room) < RECORD_HEADER || len >= TARGET);
        }
    }

    #[test]
    fn a_short_hello_is_cut_as_often_as_can_be() {
        let padded = pad(&record(22, &[1; 100]), TARGET, 1420);
        assert_eq!(padded.len(), 100 + 95 * RECORD_HEADER);
        assert_eq!(usize::from(padded[4]), LEAST_FIRST);
    }

    #[test]
    fn what_is_long_enough_or_no_hello_stays() {
        for flight in [record(22, &[1; 1300]), record(23, &[1; 300]), vec![22, 3, 1, 9, 9], vec![]]
        {
            assert_eq!(pad(&flight, TARGET, 1420), flight);
        }
    }

    #[test]
    fn early_data_behind_the_hello_count_and_stay() {
        let tail = [record(20, &[1]), record(23, &[9; 700])].concat();
        let flight = [record(22, &[1; 300]), tail.clone()].concat();
        let padded = pad(&flight, TARGET, 1420);
        assert!((TARGET..TARGET + RECORD_HEADER).contains(&padded.len()));
        assert!(padded.ends_with(&tail));
    }

    proptest! {
        #[test]
        fn fragments_joined_are_the_message(
            messages in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 1..400), 1..4),
            tail in proptest::collection::vec(any::<u8>(), 0..300),
            target in 0_usize..3000, room in 0_usize..3000,
        ) {
            let mut flight: Vec<u8> = messages.iter().flat_map(|one| record(22, one)).collect();
            flight.extend(record(23, &tail));
            let padded = pad(&flight, target, room);
            let (before, after) = (front(&flight), front(&padded));
            prop_assert_eq!(before.message, after.message);
            prop_assert_eq!(before.rest, after.rest);
            prop_assert!(padded.len() <= room.max(flight.len()));
            prop_assert!(padded.len() < target.max(flight.len() + 1) + RECORD_HEADER);
        }

        #[test]
        fn any_bytes_are_taken(
            flight in proptest::collection::vec(any::<u8>(), 0..600),
            target in 0_usize..3000, room in 0_usize..3000,
        ) {
            prop_assert!(pad(&flight, target, room).len() <= room.max(flight.len()));
        }
    }
}
