//! What is emitted is parsed back, and nothing panics.

use super::*;
use crate::macsec::Sci;
use proptest::prelude::*;

fn any_key() -> impl Strategy<Value = SakUseKey> {
    (any::<[u8; 12]>(), any::<u32>(), 0u8..4, any::<bool>(), any::<bool>(), any::<u32>()).prop_map(
        |(server, number, association, transmits, receives, lowest_acceptable)| {
            let key = KeyIdentifier { server: MemberIdentifier(server), number };
            SakUseKey { key, association, transmits, receives, lowest_acceptable }
        },
    )
}

fn any_peers() -> impl Strategy<Value = Vec<Peer>> {
    proptest::collection::vec(
        (any::<[u8; 12]>(), any::<u32>()).prop_map(|(member, message_number)| Peer {
            member: MemberIdentifier(member),
            message_number,
        }),
        0..5,
    )
}

proptest! {
    #[test]
    fn any_bytes_do_not_panic(
        ckn in proptest::collection::vec(any::<u8>(), 0..36),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        crate::fuzz::mka(&bytes);
        let len = 28 + ckn.len() as u16;
        let [high, low] = len.to_be_bytes();
        let head = [&[3, 0, high, low][..], &[0; 28], &ckn, &[0; 3], &bytes].concat();
        (0..4).for_each(|cut| crate::fuzz::mka(&head[..head.len() - cut]));
    }

    #[test]
    fn emitted_is_parsed_back(
        ckn in proptest::collection::vec(any::<u8>(), 1..=32), live in any_peers(),
        potential in any_peers(), latest in any_key(), old in any_key(),
        flags: [bool; 3], suite: Option<u64>, number: u32, association in 0u8..4,
    ) {
        let basic = Basic {
            version: 3,
            priority: 7,
            is_key_server: flags[0],
            wants_macsec: flags[1],
            capability: Capability::ConfidentialityOffsets,
            sci: Sci([1, 2, 3, 4, 5, 6, 0, 1]),
            member: MemberIdentifier([9; 12]),
            message_number: number,
            agility: AGILITY,
            ckn: &ckn,
        };
        let sak_use = SakUse {
            latest,
            old,
            plain_transmit: flags[0],
            plain_receive: flags[1],
            delay_protect: flags[2],
        };
        let wrapped = [0x5a; 24];
        let sak = DistributedSak {
            association,
            confidentiality: Confidentiality::Offset30,
            key_number: number,
            cipher_suite: suite,
            wrapped: &wrapped,
        };
        let xpn = Xpn { suspension: 0, latest: 1, old: 2 };
        let repr = Repr {
            basic,
            live: &live,
            potential: &potential,
            sak_use: Some(sak_use),
            sak: Some(sak),
            xpn: Some(xpn),
        };
        let mut bytes = vec![0xee; repr.buffer_len()];
        repr.emit(&mut bytes).unwrap();
        bytes.extend([0; ICV_LEN]);
        let packet = Packet::new_checked(&bytes, ICV_LEN).unwrap();
        prop_assert_eq!(packet.basic(), basic);
        let known: Vec<Known<'_>> =
            packet.sets().map(|set| Known::parse(&set.unwrap()).unwrap()).collect();
        let mut rest = known.iter();
        for (peers, is_live) in [(&live, true), (&potential, false)] {
            if !peers.is_empty() {
                let said = match rest.next() {
                    Some(Known::Live(said)) if is_live => said,
                    Some(Known::Potential(said)) if !is_live => said,
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(&said.iter().collect::<Vec<_>>(), peers);
            }
        }
        let rest: Vec<_> = rest.copied().collect();
        prop_assert_eq!(rest, [Known::SakUse(sak_use), Known::Sak(sak), Known::Xpn(xpn)]);
    }
}
