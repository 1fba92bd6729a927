//! Fragments in order, out of it, overlapping, late and hostile.

use super::*;
use proptest::prelude::*;

fn fragment(id: u32, offset: usize, more: bool, payload: &[u8]) -> Fragment<'_> {
    Fragment {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        protocol: 17,
        identification: id,
        offset,
        more,
        payload,
        payload_len: payload.len(),
    }
}

const FRAME: Traffic = Traffic { frames: 1, bytes: 100 };

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Every frame is somewhere.
fn settled(f: &Fragments, taken: u64, joined: u64) {
    assert_eq!(f.dropped().total() + f.waiting() + joined, taken, "{:?}", f.dropped());
}

#[test]
fn in_any_order_the_datagram_comes_with_its_last_fragment() {
    let (a, b, c) = ([1; 16], [2; 8], [3; 5]);
    let pieces = [(0, true, &a[..]), (16, true, &b[..]), (24, false, &c[..])];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let mut f = Fragments::new(1);
        let mut whole = None;
        for (count, at) in order.into_iter().enumerate() {
            let (offset, more, data) = pieces[at];
            whole = f.insert(ms(1), &fragment(7, offset, more, data), FRAME);
            assert_eq!(whole.is_some(), count == 2);
        }
        let whole = whole.unwrap();
        assert_eq!(whole.payload, [&a[..], &b, &c].concat());
        assert_eq!(whole.frames, Traffic { frames: 3, bytes: 300 });
        assert_eq!((f.held, f.partial.len(), f.waiting()), (0, 0, 0));
    }
}

#[test]
fn the_same_again_is_passed_over_and_other_bytes_at_its_place_are_not() {
    let mut f = Fragments::new(1);
    f.insert(ms(1), &fragment(7, 0, true, &[1; 16]), FRAME);
    f.insert(ms(1), &fragment(7, 0, true, &[1; 16]), FRAME);
    assert_eq!((f.dropped().duplicate, f.waiting()), (1, 1));
    f.insert(ms(1), &fragment(7, 0, true, &[2; 16]), FRAME);
    assert_eq!((f.dropped().overlapping, f.waiting()), (2, 0));
    // RFC 5722 §4: those not yet received go the same way.
    assert!(f.insert(ms(2), &fragment(7, 16, false, &[1; 4]), FRAME).is_none());
    assert_eq!(f.dropped().overlapping, 3);
    settled(&f, 4, 0);
}

#[test]
fn hostile_lengths_and_ends_are_refused() {
    let mut f = Fragments::new(1);
    for bad in [
        fragment(1, 0, true, &[0; 7]),
        fragment(1, 0, true, &[]),
        fragment(1, 65_528, false, &[0; 8]),
        fragment(1, 65_528, true, &[0; 4096]),
    ] {
        assert!(f.insert(ms(1), &bad, FRAME).is_none());
    }
    assert_eq!((f.dropped().malformed, f.partial.len()), (4, 0));
    let cut = Fragment { payload_len: 1480, ..fragment(1, 0, true, &[0; 64]) };
    assert!(f.insert(ms(1), &cut, FRAME).is_none());
    assert_eq!(f.dropped().cut, 1);
    // Two ends, and bytes behind the end.
    f.insert(ms(1), &fragment(2, 16, false, &[0; 8]), FRAME);
    f.insert(ms(1), &fragment(2, 32, false, &[0; 8]), FRAME);
    f.insert(ms(1), &fragment(3, 16, false, &[0; 8]), FRAME);
    f.insert(ms(1), &fragment(3, 24, true, &[0; 8]), FRAME);
    assert_eq!(f.dropped().malformed, 8);
    settled(&f, 9, 0);
}

#[test]
fn what_waits_too_long_goes() {
    let mut f = Fragments::new(1);
    f.insert(ms(0), &fragment(1, 0, true, &[0; 8]), FRAME);
    let v6 = Fragment { source: [0; 16].into(), ..fragment(1, 0, true, &[0; 8]) };
    f.insert(ms(0), &v6, FRAME);
    f.expire(ms(30_000));
    assert_eq!(f.partial.len(), 2);
    f.expire(ms(30_001));
    assert_eq!((f.partial.len(), f.dropped().timed_out), (1, 1));
    f.expire(ms(60_001));
    assert_eq!((f.partial.len(), f.dropped().timed_out, f.held), (0, 2, 0));
}

#[test]
fn number_and_bytes_are_bounded_and_the_oldest_gives_way() {
    let mut f = Fragments::new(1);
    for id in 0..5000 {
        f.insert(ms(1), &fragment(id, 0, true, &[0; 8]), FRAME);
        assert!(f.partial.len() <= MAX_DATAGRAMS);
    }
    assert_eq!(f.dropped().no_room, 5000 - MAX_DATAGRAMS as u64);
    settled(&f, 5000, 0);
    let big = vec![0; 32_000];
    for id in 0..1000 {
        f.insert(ms(1), &fragment(10_000 + id, 8, true, &big), FRAME);
        assert!(f.held <= MAX_HELD && f.order[0].len() <= 2 * MAX_DATAGRAMS + 1);
    }
    settled(&f, 6000, 0);
    // The youngest is still whole.
    let tail = [9; 8];
    f.insert(ms(1), &fragment(10_999, 32_008, false, &tail), FRAME);
    assert!(f.insert(ms(1), &fragment(10_999, 0, true, &tail), FRAME).is_some());
}

#[test]
fn behind_ipv6_extension_headers() {
    let mut f = Fragments::new(1);
    let v6 = |offset, more, payload| Fragment {
        source: [1; 16].into(),
        destination: [2; 16].into(),
        protocol: 60,
        ..fragment(1, offset, more, payload)
    };
    // Destination options of 16 bytes, cut in two, then UDP.
    f.insert(ms(1), &v6(0, true, &[17, 1, 1, 12, 0, 0, 0, 0]), FRAME);
    // RFC 8200 §4.5: what another than the first says of the protocol does not count.
    let second = Fragment { protocol: 99, ..v6(8, false, &[0, 0, 0, 0, 0, 0, 0, 0, 5, 5]) };
    let whole = f.insert(ms(1), &second, FRAME).unwrap();
    let Some(Layer::Upper(upper)) = whole.layer() else { panic!("an upper packet") };
    assert_eq!((upper.protocol, upper.payload, upper.payload_len), (17, &[5, 5][..], 2));
}

proptest! {
    #[test]
    fn any_fragments_are_bounded_and_accounted_for(
        fragments in proptest::collection::vec((0u32..4, 0usize..12, any::<bool>(), 0usize..40, 0u64..40), 0..120),
    ) {
        let mut f = Fragments::new(1);
        let (mut at, mut joined, mut taken) = (0, 0, 0);
        let zeros = [0; 40];
        for (id, offset, more, len, step) in fragments {
            at += step * 100;
            taken += 1;
            let payload = &zeros[..if more { len & !7 } else { len }];
            if let Some(whole) = f.insert(ms(at), &fragment(id, offset * 8, more, payload), FRAME) {
                joined += whole.frames.frames;
                prop_assert!(whole.layer().is_some());
            }
            settled(&f, taken, joined);
            let held: usize = f.partial.values().map(Partial::held).sum();
            prop_assert_eq!(f.held, held);
        }
        f.finish();
        prop_assert_eq!((f.held, f.waiting()), (0, 0));
        settled(&f, taken, joined);
    }
}
