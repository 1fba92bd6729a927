use super::*;
use proptest::prelude::*;

/// Memory without a bound.
const NO_BOUND: usize = usize::MAX;

#[test]
fn in_order_bytes_are_read_as_they_came_and_nothing_stays() {
    let mut buffer = ReceiveBuffer::new(100);
    let whole = Inserted { accepted: 5, in_order: true, repeated: false };
    assert_eq!(buffer.insert(0, b"hello", NO_BOUND), whole);
    assert_eq!((buffer.next(), buffer.readable(), buffer.window()), (5, 5, 95));
    let mut out = [0; 10];
    assert_eq!(buffer.read(&mut out), 5);
    assert_eq!(&out[..5], b"hello");
    assert_eq!((buffer.window(), buffer.held()), (100, 0));
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
        buffer.insert(number * 500, &segment, NO_BOUND);
        if number == 3 {
            // 3 joins 2 and 4
            assert_eq!(buffer.sack_blocks().as_slice(), [(1000, 2500), (3000, 3500)]);
        } else {
            assert_eq!(buffer.sack_blocks().as_slice(), expected);
        }
    }
    assert!(buffer.insert(500, &segment, NO_BOUND).in_order);
    assert_eq!(buffer.next(), 2500);
    assert_eq!(buffer.sack_blocks().as_slice(), [(3000, 3500)]);
}

#[test]
fn a_duplicate_is_reported_once_and_first() {
    // RFC 2883 §4.1 and §4.2
    let mut buffer = ReceiveBuffer::new(100_000);
    buffer.insert(0, &[1; 1000], NO_BOUND);
    assert!(buffer.insert(500, &[1; 500], NO_BOUND).repeated);
    assert_eq!(buffer.sack_blocks().as_slice(), [(500, 1000)]);
    assert!(!buffer.has_sack_blocks());
    buffer.insert(2000, &[1; 1000], NO_BOUND);
    assert!(buffer.insert(2000, &[1; 500], NO_BOUND).repeated);
    assert_eq!(buffer.sack_blocks().as_slice(), [(2000, 2500), (2000, 3000)]);
    assert_eq!(buffer.sack_blocks().as_slice(), [(2000, 3000)]);
}

#[test]
fn what_lies_beyond_the_window_is_dropped() {
    let mut buffer = ReceiveBuffer::new(10);
    assert_eq!(buffer.insert(8, b"abcd", NO_BOUND).accepted, 2);
    assert_eq!(buffer.insert(10, b"abcd", NO_BOUND).accepted, 0);
    assert_eq!(buffer.insert(u64::MAX, b"abcd", NO_BOUND).accepted, 0);
    assert_eq!(buffer.insert(0, &[0; 64], NO_BOUND).accepted, 8);
    assert_eq!((buffer.next(), buffer.window()), (10, 0));
}

#[test]
fn islands_are_bounded_and_the_first_missing_byte_always_taken() {
    let mut buffer = ReceiveBuffer::new(2 << 20);
    for number in 0..5000 {
        buffer.insert(100 + 2 * number, b"x", NO_BOUND);
    }
    assert_eq!(buffer.islands.len(), MAX_ISLANDS);
    assert_eq!(buffer.insert(0, b"x", NO_BOUND).accepted, 1);
    assert_eq!(buffer.next(), 1);
}

/// A byte at the far edge of a window holds a byte, and not what lies before it.
#[test]
fn a_far_byte_holds_its_own_size() {
    let mut buffer = ReceiveBuffer::new(6 << 20);
    buffer.insert(0, b"x", NO_BOUND);
    assert_eq!(buffer.insert((6 << 20) - 1, b"x", NO_BOUND).accepted, 1);
    assert!(buffer.held() < 200, "{} bytes", buffer.held());
}

/// Bytes that come singly, apart from one another, hold less than a hundred times their size,
/// and no more than the islands of a window are: 96 for 64 KiB.
#[test]
fn single_bytes_apart_hold_little() {
    let mut buffer = ReceiveBuffer::new(64 << 10);
    for at in 0..10_000 {
        buffer.insert(1 + 2 * at, b"x", NO_BOUND);
    }
    assert_eq!(buffer.islands.len(), 96);
    assert!(buffer.held() < 96 * 100, "{} bytes", buffer.held());
}

/// RFC 2018 §8: for the first byte missing, what lies farthest beyond it goes.
#[test]
fn without_memory_the_stream_goes_on_in_order() {
    let mut buffer = ReceiveBuffer::new(10_000);
    let most = 3000 + 2 * ISLAND_BYTES;
    assert_eq!(buffer.insert(2000, &[2; 1000], most).accepted, 1000);
    assert_eq!(buffer.insert(5000, &[5; 1000], most).accepted, 1000);
    assert_eq!(buffer.insert(8000, &[8; 1000], most).accepted, 0, "no memory");
    assert_eq!(buffer.insert(0, &[0; 2000], most).accepted, 2000);
    assert_eq!((buffer.next(), buffer.has_gap()), (3000, false), "the farthest is gone");
    assert_eq!(buffer.insert(3000, &[3; 1000], most).accepted, 0, "all is to be read first");
    assert_eq!(buffer.read(&mut [0; 3000]), 3000);
    assert_eq!(buffer.insert(3000, &[3; 1000], most).accepted, 1000);
}

fn held(buffer: &ReceiveBuffer) -> usize {
    let islands = buffer.islands.iter().map(|island| island.bytes.capacity() + ISLAND_BYTES);
    buffer.bytes.capacity() + islands.sum::<usize>()
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
                    let inserted = buffer.insert(offset, &data, NO_BOUND);
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
            prop_assert_eq!(buffer.held(), held(&buffer));
            // The islands are exactly the runs of bytes beyond the gap.
            let mut runs = Vec::new();
            for at in next..19_999 {
                if have[at as usize] && (at == next || !have[at as usize - 1]) { runs.push((at, at)); }
                if have[at as usize] && let Some(run) = runs.last_mut() { run.1 = at + 1; }
            }
            let islands: Vec<_> = buffer.islands.iter().map(Island::range).collect();
            prop_assert_eq!(&islands, &runs);
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

    /// With little memory: never more than that is held, what is read is what was sent, and once all
    /// is read the next segment is taken.
    #[test]
    fn memory_is_bounded(
        steps in prop::collection::vec(step(), 1..120),
        most in 100_usize..600,
    ) {
        let mut buffer = ReceiveBuffer::new(400);
        let mut read = 0_u64;
        for step in steps {
            match step {
                Step::Insert { ahead, len } => {
                    let offset = buffer.next().saturating_add_signed(2 * ahead);
                    let data: Vec<u8> = (offset..).take(len).map(byte_at).collect();
                    let before = (buffer.next(), buffer.held());
                    let inserted = buffer.insert(offset, &data, most);
                    prop_assert_eq!(inserted.in_order, buffer.next() > before.0);
                    if inserted.accepted == 0 {
                        prop_assert!(buffer.held() <= before.1);
                    }
                }
                Step::Read(len) => {
                    let mut out = vec![0; len];
                    let count = buffer.read(&mut out);
                    prop_assert!(out[..count].iter().zip(read..).all(|(byte, at)| *byte == byte_at(at)));
                    read += count as u64;
                }
            }
            prop_assert!(buffer.held() <= most, "{} of {}", buffer.held(), most);
            prop_assert_eq!(buffer.held(), held(&buffer));
        }
        while buffer.read(&mut [0; 100]) > 0 {}
        let next = buffer.next();
        let data: Vec<u8> = (next..).take(80).map(byte_at).collect();
        prop_assert!(buffer.insert(next, &data, most).in_order);
    }
}

#[test]
fn the_first_repeated_run_of_a_segment_is_reported() {
    // RFC 2883 §4: partly repeated segments, around an island from 2000 to 3000
    for (offset, len, run) in [
        (1500, 1000, (2000, 2500)),
        (2500, 1000, (2500, 3000)),
        (1500, 2000, (2000, 3000)),
        (1000, 1500, (2000, 2500)),
        (500, 2000, (500, 1000)),
    ] {
        let mut buffer = ReceiveBuffer::new(100_000);
        buffer.insert(0, &[1; 1000], NO_BOUND);
        buffer.insert(2000, &[1; 1000], NO_BOUND);
        buffer.sack_blocks();
        assert!(buffer.insert(offset, &vec![1; len], NO_BOUND).repeated);
        assert_eq!(buffer.sack_blocks().as_slice()[0], run, "{offset}+{len}");
    }
}
