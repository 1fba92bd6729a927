//! The fuzz entry points on bytes that proptest makes: the same code that the fuzz targets run.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_frames(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        tracker::fuzz::tracker(&bytes);
    }

    #[test]
    fn any_fragments(
        pieces in proptest::collection::vec(
            (any::<u8>(), 0u8..8, 0u8..4, proptest::collection::vec(any::<u8>(), 0..40)), 0..60),
    ) {
        let mut bytes = Vec::new();
        for (control, offset, step, payload) in pieces {
            bytes.extend([control, offset, step, payload.len() as u8]);
            bytes.extend(payload);
        }
        tracker::fuzz::fragments(&bytes);
    }

    #[test]
    fn any_segments(
        segments in proptest::collection::vec(
            (any::<u8>(), 0x7ff0u16..0x8200, any::<u16>(), proptest::collection::vec(0u8..26, 0..80)), 0..40),
    ) {
        let mut bytes = Vec::new();
        for (control, sequence, ack, payload) in segments {
            bytes.push(control);
            bytes.extend(sequence.to_be_bytes());
            bytes.extend(ack.to_be_bytes());
            bytes.push(payload.len() as u8);
            bytes.extend(payload);
        }
        tracker::fuzz::tcp_streams(&bytes);
        bytes.insert(0, 1);
        tracker::fuzz::streams(&bytes);
    }

    #[test]
    fn any_datagrams(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        tracker::fuzz::quic_datagrams(&bytes);
    }

    #[test]
    fn any_key_log(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        tracker::fuzz::key_log(&bytes);
    }
}
