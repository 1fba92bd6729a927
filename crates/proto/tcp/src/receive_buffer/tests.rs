use super::*;
use proptest::prelude::*;

#[test]
fn in_order_bytes_are_read_as_they_came_and_nothing_stays() {
    let mut buffer = ReceiveBuffer::new(100);
    let whole = Inserted { accepted: 5, in_order: true, duplicate: false };
    assert_eq!(buffer.insert(0, b"hello"), whole);
    assert_eq!((buffer.next(), buffer.readable(), buffer.window()), (5, 5, 95));
    let mut out = [0; 10];
    assert_eq!(buffer.read(&mut out), 5);
    assert_eq!(&out[..5], b"hello");
    assert_eq!((buffer.window(), buffer.heap_bytes()), (100, 0));
    assert!(!buffer.has_sack_blocks());
}

#[test]
fn the_block_that_changed_last_comes_first() {
    // RFC 2018 §5, case 3: segments of 500 bytes from 5000 on; 2, 4, 6 and 8 are lost.
    let mut buffer = ReceiveBuffer::new(100_000);
    let segment = [7; 500];
    for (number, expected) in [
        (0, &[][..]),
        (2, &[(1000, 1500)]),
        (4, &[(2000, 2500), (1000, 1500)]),
        (6, &[(3000, 3500), (2000, 2500), (1000, 1500)]),
        // The fourth comes, then the second.
        (3, &[(1000, 1500), (3000, 3500)]),
    ] {
        buffer.insert(number * 500, &segment);
        if number == 3 {
            // 3 joins 2 and 4
            assert_eq!(buffer.sack_blocks().as_slice(), [(1000, 2500), (3000, 3500)]);
        } else {
            assert_eq!(buffer.sack_blocks().as_slice(), expected);
        }
    }
    assert!(buffer.insert(500, &segment).in_order);
    assert_eq!(buffer.next(), 2500);
    assert_eq!(buffer.sack_blocks().as_slice(), [(3000, 3500)]);
}

#[test]
fn a_duplicate_is_told_once_and_first() {
    // RFC 2883 §4.1 and §4.2
    let mut buffer = ReceiveBuffer::new(100_000);
    buffer.insert(0, &[1; 1000]);
    assert!(buffer.insert(500, &[1; 500]).duplicate);
    assert_eq!(buffer.sack_blocks().as_slice(), [(500, 1000)]);
    assert!(!buffer.has_sack_blocks());
    buffer.insert(2000, &[1; 1000]);
    assert!(buffer.insert(2000, &[1; 500]).duplicate);
    assert_eq!(buffer.sack_blocks().as_slice(), [(2000, 2500), (2000, 3000)]);
    assert_eq!(buffer.sack_blocks().as_slice(), [(2000, 3000)]);
}

#[test]
fn what_lies_beyond_the_window_is_dropped() {
    let mut buffer = ReceiveBuffer::new(10);
    assert_eq!(buffer.insert(8, b"abcd").accepted, 2);
    assert_eq!(buffer.insert(10, b"abcd").accepted, 0);
    assert_eq!(buffer.insert(u64::MAX, b"abcd").accepted, 0);
    assert_eq!(buffer.insert(0, &[0; 64]).accepted, 8);
    assert_eq!((buffer.next(), buffer.window()), (10, 0));
}

#[test]
fn islands_are_bounded_and_the_first_missing_byte_always_taken() {
    let mut buffer = ReceiveBuffer::new(1 << 20);
    for number in 0..5000 {
        buffer.insert(100 + 2 * number, b"x");
    }
    assert_eq!(buffer.islands.len(), MAX_ISLANDS);
    assert_eq!(buffer.insert(0, b"x").accepted, 1);
    assert_eq!(buffer.next(), 1);
}

#[derive(Debug, Clone)]
enum Step {
    Insert { ahead: i64, len: usize },
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => ((-60_i64..200), (0_usize..80)).prop_map(|(ahead, len)| Step::Insert { ahead, len }),
        1 => (0_usize..120).prop_map(Step::Read),
    ]
}

fn byte_at(offset: u64) -> u8 {
    (offset * 31 % 251) as u8
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Against a set of offsets that came.
    #[test]
    fn behaves_as_a_set_of_bytes(steps in prop::collection::vec(step(), 1..120)) {
        const LIMIT: u64 = 150;
        let mut buffer = ReceiveBuffer::new(LIMIT as usize);
        let mut have = vec![false; 20_000];
        let (mut read, mut next) = (0_u64, 0_u64);
        for step in steps {
            match step {
                Step::Insert { ahead, len } => {
                    let offset = next.saturating_add_signed(ahead);
                    let data: Vec<u8> = (offset..).take(len).map(byte_at).collect();
                    let mut accepted = 0;
                    for at in offset..offset + len as u64 {
                        if at < read + LIMIT && !have[at as usize] {
                            have[at as usize] = true;
                            accepted += 1;
                        }
                    }
                    let before = next;
                    while have[next as usize] { next += 1; }
                    let inserted = buffer.insert(offset, &data);
                    prop_assert_eq!(inserted.accepted, accepted);
                    prop_assert_eq!(inserted.in_order, next > before);
                }
                Step::Read(len) => {
                    let mut out = vec![0; len];
                    let count = buffer.read(&mut out);
                    prop_assert_eq!(count as u64, (next - read).min(len as u64));
                    prop_assert!(out[..count].iter().zip(read..).all(|(byte, at)| *byte == byte_at(at)));
                    read += count as u64;
                }
            }
            prop_assert_eq!(buffer.next(), next);
            prop_assert_eq!(buffer.readable() as u64, next - read);
            prop_assert_eq!(buffer.window() as u64, LIMIT - (next - read));
            prop_assert!(buffer.bytes.capacity() as u64 <= LIMIT);
            // The islands are exactly the runs of bytes beyond the gap.
            let mut runs = Vec::new();
            for at in next..19_999 {
                if have[at as usize] && (at == next || !have[at as usize - 1]) { runs.push((at, at)); }
                if have[at as usize] && let Some(run) = runs.last_mut() { run.1 = at + 1; }
            }
            prop_assert_eq!(&buffer.islands, &runs);
            let blocks = buffer.clone().sack_blocks();
            let start = usize::from(buffer.duplicate.is_some());
            for block in &blocks.as_slice()[start..] {
                prop_assert!(runs.contains(block));
            }
            if start == 0 {
                prop_assert_eq!(blocks.as_slice().is_empty(), runs.is_empty());
            }
        }
    }
}
