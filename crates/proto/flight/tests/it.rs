//! Lengths and round trips, exactly.

use flight::{
    Chain, Flight, Framing, Hello, PostQuantum, QuicPath, RoundTrips, TcpWindow, ecdsa_signature,
    rsa_signature,
};
use proptest::prelude::*;

/// A leaf and an intermediate as public authorities make them on P-256.
fn short() -> Chain {
    Chain::new(vec![600, 580], ecdsa_signature(256))
}

/// Certificates that are little more than a public key and a signature.
fn post_quantum(scheme: PostQuantum, length: usize) -> Chain {
    let certificate = 300 + scheme.public_key() + scheme.signature();
    Chain::new(vec![certificate; length], scheme.signature())
}

#[test]
fn each_message_has_the_length_that_its_specification_gives_it() {
    let flight = Flight::tls13(&short(), Hello::default(), Framing::Coalesced);
    assert_eq!(flight.server_hello, 122);
    assert_eq!(flight.encrypted_extensions, 10);
    assert_eq!(flight.certificate, 4 + 4 + 605 + 585);
    assert_eq!(flight.signed, 4 + 4 + 72);
    assert_eq!(flight.last, 36);
    // Two headers of records, ChangeCipherSpec, and what seals the one record.
    assert_eq!(flight.wire, 5 + 122 + 6 + 5 + (10 + 1198 + 80 + 36) + 17);
    let each = Flight::tls13(&short(), Hello::default(), Framing::PerMessage);
    assert_eq!(each.wire, flight.wire + 3 * 22);
}

#[test]
fn tls_1_2_sends_the_same_certificates_in_the_clear() {
    let hello = Hello { key_share: 65, session_id: 32, extensions: 14 };
    let flight = Flight::tls12(&short(), hello, Framing::PerMessage);
    assert_eq!(flight.server_hello, 4 + 72 + 14);
    assert_eq!(flight.certificate, 4 + 3 + 603 + 583);
    assert_eq!(flight.signed, 4 + 4 + 65 + 4 + 72);
    assert_eq!(flight.last, 4);
    assert_eq!(flight.wire, 90 + 1193 + 149 + 4 + 4 * 5);
}

#[test]
fn compression_replaces_the_message_and_nothing_else() {
    let chain = short();
    assert_eq!(chain.certificate_body(), 4 + 605 + 585);
    let compressed = chain.compressed_to(700);
    assert_eq!(compressed.certificate13(), 4 + 8 + 700);
    assert_eq!(compressed.certificate12(), chain.certificate12());
    let before = Flight::tls13(&chain, Hello::default(), Framing::Coalesced);
    let after = Flight::tls13(&compressed, Hello::default(), Framing::Coalesced);
    assert_eq!(before.wire - after.wire, 1198 - 712);
}

#[test]
fn signatures_are_as_long_as_their_keys_make_them() {
    assert_eq!([2048, 3072, 4096].map(rsa_signature), [256, 384, 512]);
    assert_eq!([256, 384, 521].map(ecdsa_signature), [72, 104, 139]);
    assert_eq!(PostQuantum::MlDsa65.signature() + PostQuantum::MlDsa65.public_key(), 5_261);
    assert_eq!(PostQuantum::MlDsa44.scheme(), Some(0x0904));
    assert_eq!(PostQuantum::SlhDsa128s.scheme(), None);
}

#[test]
fn a_window_of_ten_segments_doubles() {
    let tcp = TcpWindow::default();
    for (segments, expected) in [(1, 1), (10, 1), (11, 2), (30, 2), (31, 3), (70, 3), (71, 4)] {
        assert_eq!(tcp.round_trips(segments * tcp.segment), expected, "{segments}");
        assert_eq!(tcp.segments(segments * tcp.segment), segments);
        let wide = TcpWindow { initial: tcp.window_for(segments * tcp.segment), ..tcp };
        assert_eq!(wide.round_trips(segments * tcp.segment), 1);
    }
    assert_eq!(tcp.round_trips(0), 1);
    // One byte more than ten segments hold.
    assert_eq!(tcp.round_trips(14_481), 2);
    assert_eq!(TcpWindow { initial: 4, segment: 1460 }.round_trips(14_480), 2);
}

#[test]
fn quic_sends_three_times_what_came() {
    let quic = QuicPath::default();
    assert_eq!(quic.limit(), 3_600);
    let hello = Hello { extensions: 80, ..Hello::default() };
    let of = |chain: &Chain| quic.round_trips(&Flight::quic(chain, hello));
    assert_eq!(of(&short()), exactly(1));
    assert_eq!(of(&Chain::new(vec![1_700, 1_700], 512)), exactly(2));
    // A hybrid key share fills two datagrams, which lets the server send twice as much.
    let hybrid = quic.with_client_hello(1_400);
    assert_eq!(hybrid.first_client, 2_400);
    let flight = Flight::quic(&Chain::new(vec![1_700, 1_700], 512), hello);
    assert_eq!(hybrid.round_trips(&flight), exactly(1));
}

const fn exactly(count: usize) -> RoundTrips {
    RoundTrips { least: count, most: count }
}

#[test]
fn quic_fills_datagrams_with_packets() {
    let quic = QuicPath::default();
    let of = |chain: &Chain, hello: Hello| {
        let flight = Flight::quic(chain, hello);
        (quic.datagrams(&flight), quic.bytes(&flight))
    };
    let hello = Hello { extensions: 80, ..Hello::default() };
    // An Initial packet (27 bytes of header, an ACK frame of 8, a CRYPTO frame's 4, the tag's 16) with 90 bytes of
    // ServerHello; Handshake packets (26, 4 or 5 and 16 bytes) with the first 1009 of 1400 bytes and the rest.
    assert_eq!(of(&short(), hello), (2, 90 + 55 + 1_400 + 46 + 47));
    // A hybrid ServerHello begins in one datagram and ends in the next.
    let hybrid = Hello { key_share: 1_120, ..hello };
    let headers = 55 + 48 + 46 + 3 * 47;
    assert_eq!(of(&Chain::new(vec![1_700, 1_700], 512), hybrid), (5, 1_178 + 4_060 + headers));
}

/// Three datagrams, then nine of a window of ten, then twice as many; and by how many more, where acknowledgements of
/// the first three widen the window.
#[test]
fn quics_window_is_full_one_datagram_early() {
    let of = |quic: QuicPath, datagrams: usize| {
        // Nothing of the Initial level: each Handshake packet has 1200 bytes, of which 46, 47 or 49 are not data.
        let data = |number: usize| {
            1_200
                - if number == 0 {
                    46
                } else if number < 15 {
                    47
                } else {
                    49
                }
        };
        let bytes: usize = (0..datagrams).map(data).sum();
        let flight = Flight {
            server_hello: 0,
            encrypted_extensions: 0,
            certificate: bytes,
            signed: 0,
            last: 0,
            wire: bytes,
        };
        assert_eq!(quic.datagrams(&flight), datagrams);
        quic.round_trips(&flight)
    };
    let quic = QuicPath::default();
    let either = |least: usize| RoundTrips { least, most: least + 1 };
    for (datagrams, expected) in [
        (3, exactly(1)),
        (4, exactly(2)),
        (12, exactly(2)),
        (13, either(2)),
        (14, either(2)),
        (15, exactly(3)),
        (30, exactly(3)),
        (31, either(3)),
        (36, either(3)),
        (37, exactly(4)),
        (66, exactly(4)),
    ] {
        assert_eq!(of(quic, datagrams), expected, "{datagrams}");
    }
    // Where the window holds the first part back and no limit does, its acknowledgement widens the window.
    let wide = QuicPath { first_client: 4_800, ..quic };
    for (datagrams, expected) in [(9, 1), (10, 2), (27, 2), (28, 3)] {
        assert_eq!(of(wide, datagrams), exactly(expected), "{datagrams}");
    }
}

#[test]
fn post_quantum_chains_outgrow_both_limits() {
    let trips = |scheme, length| {
        let chain = post_quantum(scheme, length);
        let tcp = Flight::tls13(&chain, Hello::default(), Framing::Coalesced);
        let quic = Flight::quic(&chain, Hello { extensions: 80, ..Hello::default() });
        let tcp = TcpWindow::default().round_trips(tcp.bytes());
        (tcp, QuicPath::default().round_trips(&quic))
    };
    assert_eq!(trips(PostQuantum::MlDsa44, 2), (1, exactly(2)));
    assert_eq!(trips(PostQuantum::MlDsa65, 2), (2, RoundTrips { least: 2, most: 3 }));
    assert_eq!(trips(PostQuantum::MlDsa87, 2), (2, exactly(3)));
    assert_eq!(trips(PostQuantum::MlDsa87, 3), (2, exactly(3)));
    assert_eq!(trips(PostQuantum::SlhDsa128s, 2), (2, exactly(3)));
    assert_eq!(trips(PostQuantum::SlhDsa256s, 2), (3, RoundTrips { least: 4, most: 5 }));
}

proptest! {
    #[test]
    fn more_bytes_never_take_fewer_round_trips(
        bytes in 0usize..400_000, more in 0usize..40_000, initial in 1usize..40, segment in 1usize..2_000,
    ) {
        let tcp = TcpWindow { initial, segment };
        prop_assert!(tcp.round_trips(bytes) <= tcp.round_trips(bytes + more));
        let wider = TcpWindow { initial: initial + 1, segment };
        prop_assert!(wider.round_trips(bytes) <= tcp.round_trips(bytes));
        let chain = |bytes| Flight::quic(&Chain::new(vec![bytes], 64), Hello::default());
        let quic = QuicPath { initial, ..QuicPath::default() };
        let (few, many) = (quic.round_trips(&chain(bytes)), quic.round_trips(&chain(bytes + more)));
        prop_assert!(few.least <= many.least && few.most <= many.most && few.least <= few.most);
    }
}
