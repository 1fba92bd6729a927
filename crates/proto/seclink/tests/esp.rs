//! ESP: published examples, and what a hostile peer may try.

use proptest::prelude::*;
use seclink::esp::{Dropped, Inbound, Opened, Outbound, Parameters, Suite};
use seclink::{SealError, Secret};

use crate::common::{hex, ipv4_packet, worked};

const SPI: u32 = 0x0102_0304;

fn parameters(suite: Suite, extended: bool) -> Parameters {
    let key = Secret::new((0..suite.key_material() as u8).collect());
    Parameters { spi: SPI, suite, key, extended }
}

/// A packet by `outbound`.
fn sealed(outbound: &mut Outbound, payload: &[u8]) -> Vec<u8> {
    let (said, packet) = worked(payload, |slot| outbound.seal(slot, 4));
    said.unwrap();
    packet
}

fn opened(inbound: &mut Inbound, packet: &[u8]) -> (Opened, Vec<u8>) {
    worked(packet, |slot| inbound.open(slot))
}

/// An example: suite, key material, extended numbers and the number before, packet, what it protects, and next
/// header.
struct Example {
    suite: Suite,
    key: &'static str,
    before: Option<u64>,
    packet: &'static str,
    payload: &'static str,
    next_header: u8,
}

/// Of draft-mcgrew-gcm-test-01 §4 but the last, which is of RFC 7634 Appendix A.
const EXAMPLES: [Example; 6] = [
    Example {
        suite: Suite::AesGcm128,
        key: "4c80cdefbb5d10da906ac73c3613a634 2e443b68",
        before: Some(0x8765_4320_ffff_ffff),
        packet:
            "00004321000000004956ed7e3b244cfe fecf537e729d5b07dc30df528dd22b76
                 8d1b98736696a6fd348509fa13ceac34 cfa2436f14a3f3cf65925bf1f4a13c5d
                 15b21e1884f5ff6247aeabb786b93bce 61bc17d768fd9732459018148f6cbe72 2fd04796562dfdb4",
        payload: "45000048699a000080114db7c0a80102 c0a801010a9bf15638d3010000010000
                  00000000045f736970045f7564700373 69700963796265726369747902646b00 00210001",
        next_header: 1,
    },
    Example {
        suite: Suite::AesGcm128,
        key: "feffe9928665731c6d6a8f9467308308 cafebabe",
        before: None,
        packet: "0000a5f80000000afacedbaddecaf888 deb22cd9b07c72c16e3a65beeb8df304
                 a5a5897d33ae530f1ba76d5d114d2a5c 3de81827c10e9a4f51330d0eec416642
                 cfbb85a5b47e48a4ec3b9ba95d918bd1 83b70d3aa8bc6ee4c309e9d85a41ad4a",
        payload: "4500003e698f000080114dccc0a80102 c0a801010a980035002a2343b2d00100
                  00010000000000000373697009637962 65726369747902646b0000010001",
        next_header: 1,
    },
    Example {
        suite: Suite::AesGcm256,
        key: "abbccddef00112233445566778899aab abbccddef00112233445566778899aab 11223344",
        before: None,
        packet: "4a2cbfe3000000020102030405060708 ff425c9b724599df7a3bcd510194e00d
                 6a78107f1b0b1cbf06efae9d65a5d763 748a637985771d347f0545659f14e99d
                 ef842d8eb335f4eecfdbf831824b4c49 15956c96",
        payload: "4500003069a6400080062690c0a80102 9389155e0a9e008b2dc57ee000000000
                  7002400020bf0000020405b401010402",
        next_header: 1,
    },
    Example {
        suite: Suite::AesGcm128,
        key: "7d773d00c144c525ac619d18c84a3f47 d9664267",
        before: None,
        packet: "335467aeffffffff43457e9182443bc6 437f866bcb3f699fe9b0822bac961c45 04bef270",
        payload: "",
        next_header: 1,
    },
    Example {
        suite: Suite::AesGcm256,
        key: "6c6567616c697a656d6172696a75616e 61616e64646f69746265666f72656961 7475726e",
        before: Some(0xffff_ffff_ffff_fffe),
        packet: "796b6963ffffffff333021696765746d f97ab2aa356d8edce17644ac8c78e25d
                 d24dedbb29ebf1b64a274b39b49c3a86 4cd3d78ca4ae68a32b42458fb57dbe82
                 1dcc63b9d0937ba2945f669368661a32 9fb4c053",
        payload: "45000030da3a00008001df3bc0a80005 c0a800010800c6cd0200070061626364
                  65666768696a6b6c6d6e6f7071727374",
        next_header: 1,
    },
    Example {
        suite: Suite::ChaCha20Poly1305,
        key: "808182838485868788898a8b8c8d8e8f 909192939495969798999a9b9c9d9e9f a0a1a2a3",
        before: None,
        packet: "0102030400000005 1011121314151617 240394 28b97f417e3c13753a4f05087b
                 67c352e6a7fab1b982d466ef407ae5c6 14ee8099d52844eb61aa95dfab4c02f7
                 2aa71e7c4c4f64c9befe2facc638e8f3 cbec163fac469b502773f6fb94e664da
                 9165b82829f641e0 76aaa8266b7fb0f7b11b369907e1ad43",
        payload: "45000054a6f200004001e778c6336405 c000020508005b7a3a080000553bec10
                  0007362708090a0b0c0d0e0f10111213 1415161718191a1b1c1d1e1f20212223
                  2425262728292a2b2c2d2e2f30313233 34353637",
        next_header: 4,
    },
];

#[test]
fn published_examples_are_opened() {
    for Example { suite, key, before, packet, payload, next_header } in EXAMPLES {
        let packet = hex(packet);
        let spi = u32::from_be_bytes(packet[..4].try_into().unwrap());
        let key = Secret::from_hex(key).unwrap();
        let parameters = Parameters { spi, suite, key, extended: before.is_some() };
        let mut inbound = Inbound::new(parameters, Some(64)).unwrap();
        if let Some(before) = before {
            inbound.continue_after(before);
        }
        let expected = (Opened::Delivered { next_header }, hex(payload));
        assert_eq!(opened(&mut inbound, &packet), expected, "{suite} {spi:08x}");
    }
}

#[test]
fn an_index_of_zero_is_refused() {
    let of_zero = || Parameters { spi: 0, ..parameters(Suite::AesGcm128, false) };
    assert!(Inbound::new(of_zero(), None).is_err());
    assert!(Outbound::new(of_zero()).is_err());
}

fn any_suite() -> impl Strategy<Value = Suite> {
    prop::sample::select(Suite::ALL)
}

proptest! {
    #[test]
    fn what_is_sealed_is_opened_whatever_its_length(
        suite in any_suite(), extended: bool, payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut outbound = Outbound::new(parameters(suite, extended)).unwrap();
        let mut inbound = Inbound::new(parameters(suite, extended), Some(64)).unwrap();
        for _ in 0..3 {
            let packet = sealed(&mut outbound, &payload);
            let overhead = seclink::esp::overhead(suite, payload.len());
            prop_assert_eq!(packet.len(), payload.len() + overhead);
            let expected = (Opened::Delivered { next_header: 4 }, payload.clone());
            prop_assert_eq!(opened(&mut inbound, &packet), expected);
        }
    }

    #[test]
    fn a_mangled_packet_is_never_delivered(
        suite in any_suite(), extended: bool, len in 0usize..100, at: prop::sample::Index, bit in 0u8..8,
    ) {
        let mut outbound = Outbound::new(parameters(suite, extended)).unwrap();
        let mut inbound = Inbound::new(parameters(suite, extended), Some(64)).unwrap();
        let mut packet = sealed(&mut outbound, &vec![0x55; len]);
        let at = at.index(packet.len());
        packet[at] ^= 1 << bit;
        let (said, _) = opened(&mut inbound, &packet);
        prop_assert!(matches!(said, Opened::Dropped(_)), "{:?} of byte {}", said, at);
    }

    #[test]
    fn a_cut_packet_is_never_delivered(
        suite in any_suite(), len in 0usize..100, kept: prop::sample::Index,
    ) {
        let mut outbound = Outbound::new(parameters(suite, false)).unwrap();
        let mut inbound = Inbound::new(parameters(suite, false), Some(64)).unwrap();
        let packet = sealed(&mut outbound, &vec![0x55; len]);
        let kept = kept.index(packet.len());
        let (said, _) = opened(&mut inbound, &packet[..kept]);
        prop_assert!(matches!(said, Opened::Dropped(_)), "{:?} of {} bytes", said, kept);
    }

    /// Packets lost, late and twice, over the place where the lower half goes round.
    #[test]
    fn each_packet_is_delivered_once_in_any_order(
        suite in any_suite(), order in prop::collection::vec(0usize..60, 0..200),
    ) {
        let first = 0xffff_ffe0u64;
        let mut outbound = Outbound::beginning(parameters(suite, true), first).unwrap();
        let mut inbound = Inbound::new(parameters(suite, true), Some(64)).unwrap();
        inbound.continue_after(first - 1);
        let packets: Vec<_> = (0..60).map(|at| sealed(&mut outbound, &[at; 20])).collect();
        let mut seen = std::collections::BTreeSet::new();
        for at in order {
            let (said, payload) = opened(&mut inbound, &packets[at]);
            if seen.insert(at) {
                prop_assert_eq!(said, Opened::Delivered { next_header: 4 });
                prop_assert_eq!(payload, [at as u8; 20]);
            } else {
                prop_assert_eq!(said, Opened::Dropped(Dropped::Replayed));
            }
        }
    }
}

#[test]
fn what_is_dropped_is_counted() {
    let mut outbound = Outbound::new(parameters(Suite::AesGcm128, false)).unwrap();
    let mut inbound = Inbound::new(parameters(Suite::AesGcm128, false), Some(64)).unwrap();
    let packet = sealed(&mut outbound, &ipv4_packet(100));
    let mut forged = packet.clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut other = packet.clone();
    other[0] ^= 1;
    let dummy = worked(&[0; 40], |slot| outbound.seal(slot, 59)).1;
    let cases = [
        (&forged, Opened::Dropped(Dropped::NotAuthentic)),
        (&packet, Opened::Delivered { next_header: 4 }),
        (&packet, Opened::Dropped(Dropped::Replayed)),
        (&other, Opened::Dropped(Dropped::OtherSpi)),
        (&packet[..20].to_vec(), Opened::Dropped(Dropped::Malformed)),
        (&dummy, Opened::Dropped(Dropped::Dummy)),
    ];
    for (packet, expected) in cases {
        assert_eq!(opened(&mut inbound, packet).0, expected);
    }
    let counted = *inbound.counters();
    let dropped = [
        counted.not_authentic,
        counted.replayed,
        counted.other_spi,
        counted.malformed,
        counted.dummies,
    ];
    assert_eq!((counted.packets, counted.octets, dropped), (1, 100, [1; 5]));
}

#[test]
fn numbers_do_not_go_round() {
    let last = u64::from(u32::MAX);
    let mut outbound = Outbound::beginning(parameters(Suite::AesCbc128Sha1, false), last).unwrap();
    sealed(&mut outbound, &[1; 30]);
    let (said, kept) = worked(&[1; 30], |slot| outbound.seal(slot, 4));
    assert_eq!((said, kept), (Err(SealError::Exhausted), vec![1; 30]));
    // With extended numbers they go on.
    let mut outbound = Outbound::beginning(parameters(Suite::AesCbc128Sha1, true), last).unwrap();
    sealed(&mut outbound, &[1; 30]);
    assert_eq!(sealed(&mut outbound, &[1; 30])[4..8], [0; 4]);
}

#[test]
fn vectors_of_cbc_differ_and_do_not_tell_the_number() {
    let mut outbound = Outbound::new(parameters(Suite::AesCbc128Sha1, false)).unwrap();
    let vectors: std::collections::BTreeSet<_> =
        (0..200).map(|_| sealed(&mut outbound, &[0; 32])[8..24].to_vec()).collect();
    assert_eq!(vectors.len(), 200);
    assert!(vectors.iter().all(|vector| vector[..8] != [0; 8]));
}
