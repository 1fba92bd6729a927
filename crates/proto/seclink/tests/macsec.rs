//! MACsec: the standard's examples both ways, the counters, and the ends of its numbers.

use proptest::prelude::*;
use seclink::macsec::{
    Association, Confidentiality, Dropped, Extended, Naming, Opened, Receive, ReceiveAssociation,
    Suite, Transmit, TransmitAssociation, Validation,
};
use seclink::{SealError, Secret, Slot};
use wire::ethernet::Address;
use wire::macsec::Sci;

use crate::common::{hex, worked};

const SCI: Sci = Sci([2, 0, 0, 0, 0, 1, 0, 1]);

fn association(suite: Suite, number: u8, confidentiality: Confidentiality) -> Association {
    let key = Secret::new((0..suite.key_len() as u8).collect());
    let extended = suite.is_extended().then_some(Extended { ssci: 7, salt: [0x33; 12] });
    Association { number, suite, key, extended, confidentiality }
}

/// Both ends of a channel with one key, whose first frame has the number `first`.
struct Channel {
    transmit: Transmit,
    receive: Receive,
}

impl Channel {
    fn new(
        suite: Suite,
        confidentiality: Confidentiality,
        window: Option<u32>,
        first: u64,
    ) -> Self {
        let mut transmit = Transmit::new(SCI, Naming::Explicit);
        let key = association(suite, 0, confidentiality);
        transmit.install(TransmitAssociation::new(key, SCI, first).unwrap());
        let mut receive = Receive::new(Validation::Strict, window);
        let key = association(suite, 0, confidentiality);
        receive.install(SCI, ReceiveAssociation::new(key, SCI).unwrap());
        Channel { transmit, receive }
    }

    fn usual() -> Self {
        Channel::new(Suite::GcmAes128, Confidentiality::All, Some(0), 1)
    }

    fn seal(&mut self, frame: &[u8]) -> Vec<u8> {
        let (said, sealed) = worked(frame, |slot| self.transmit.seal(slot));
        said.unwrap();
        sealed
    }

    fn open(&mut self, frame: &[u8]) -> (Opened, Vec<u8>) {
        worked(frame, |slot| self.receive.open(slot))
    }

    fn in_channel(&self) -> seclink::macsec::ChannelCounters {
        *self.receive.channel_counters(SCI).unwrap()
    }
}

/// A frame of so many bytes from the channel's sender.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![0xab; len];
    let head = [1, 2, 3, 4, 5, 6, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    let kept = len.min(head.len());
    frame[..kept].copy_from_slice(&head[..kept]);
    frame
}

/// The one frame of a capture.
fn captured(capture: &[u8]) -> Vec<u8> {
    let length = u32::from_le_bytes(capture[32..36].try_into().unwrap());
    capture[40..][..length as usize].to_vec()
}

/// A capture of a frame, its key and what is done with it, and the frame in clear.
type Example<'a> = (&'a [u8], &'a str, Suite, Confidentiality, &'a [u8]);

#[test]
fn the_standards_examples_are_opened_and_sealed_again_byte_for_byte() {
    const KEY_128: &str = "AD7A2BD03EAC835A6F620FDCB506B345";
    const KEY_256: &str = "E3C08A8F06C6E3AD95A70557B23F75483CE33021A9C72B7025666204C69C0B72";
    let sci = Sci([0x12, 0x15, 0x35, 0x24, 0xc0, 0x89, 0x5e, 0x81]);
    let encrypted = hex(
        "d609b1f056637a0d46df998d 08000f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d
         2e2f303132333435363738393a0002",
    );
    let protected = hex(
        "d609b1f056637a0d46df998d 08000f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d
         2e2f30313233340001",
    );
    let cases: [Example<'_>; 4] = [
        (
            include_bytes!("data/macsec-ieee-gcm-aes-128-encrypt.pcap"),
            KEY_128,
            Suite::GcmAes128,
            Confidentiality::All,
            &encrypted,
        ),
        (
            include_bytes!("data/macsec-ieee-gcm-aes-128-integrity.pcap"),
            KEY_128,
            Suite::GcmAes128,
            Confidentiality::None,
            &protected,
        ),
        (
            include_bytes!("data/macsec-ieee-gcm-aes-256-encrypt.pcap"),
            KEY_256,
            Suite::GcmAes256,
            Confidentiality::All,
            &encrypted,
        ),
        (
            include_bytes!("data/macsec-ieee-gcm-aes-256-integrity.pcap"),
            KEY_256,
            Suite::GcmAes256,
            Confidentiality::None,
            &protected,
        ),
    ];
    for (capture, key, suite, confidentiality, plain) in cases {
        let sealed = captured(capture);
        let key = || Association {
            number: 2,
            suite,
            key: Secret::from_hex(key).unwrap(),
            extended: None,
            confidentiality,
        };
        let mut receive = Receive::new(Validation::Strict, Some(0));
        receive.install(sci, ReceiveAssociation::new(key(), sci).unwrap());
        let (said, opened) = worked(&sealed, |slot| receive.open(slot));
        assert_eq!((said, &opened[..]), (Opened::Delivered, plain), "{suite} {confidentiality}");
        let mut transmit = Transmit::new(sci, Naming::Explicit);
        transmit.install(TransmitAssociation::new(key(), sci, 0xb2c2_8465).unwrap());
        assert!(transmit.use_association(2));
        let (said, again) = worked(plain, |slot| transmit.seal(slot));
        assert_eq!((said, again), (Ok(()), sealed), "{suite} {confidentiality}");
    }
}

fn any_suite() -> impl Strategy<Value = (Suite, Confidentiality)> {
    use Confidentiality::{All, None, Offset30, Offset50};
    prop_oneof![
        (
            prop_oneof![Just(Suite::GcmAes128), Just(Suite::GcmAes256)],
            prop_oneof![Just(None), Just(All), Just(Offset30), Just(Offset50)]
        ),
        (
            prop_oneof![Just(Suite::GcmAesXpn128), Just(Suite::GcmAesXpn256)],
            prop_oneof![Just(None), Just(All)]
        ),
    ]
}

proptest! {
    #[test]
    fn what_is_sealed_is_opened_whatever_its_length(
        (suite, confidentiality) in any_suite(), len in 14usize..300,
        naming in prop_oneof![Just(Naming::Explicit), Just(Naming::EndStation), Just(Naming::Implicit)],
    ) {
        let mut channel = Channel::new(suite, confidentiality, Some(0), 1);
        channel.transmit = Transmit::new(SCI, naming);
        let key = association(suite, 0, confidentiality);
        channel.transmit.install(TransmitAssociation::new(key, SCI, 1).unwrap());
        let plain = frame(len);
        let sealed = channel.seal(&plain);
        let added = channel.transmit.added_before() + 16;
        prop_assert_eq!(sealed.len(), plain.len() + added);
        prop_assert_eq!(channel.open(&sealed), (Opened::Delivered, plain));
    }

    /// A frame in which any bit differs is not delivered, but for bits that say nothing.
    #[test]
    fn a_mangled_frame_is_never_delivered(
        (suite, confidentiality) in any_suite(), len in 14usize..120, at: prop::sample::Index, bit in 0u8..8,
    ) {
        let mut channel = Channel::new(suite, confidentiality, Some(0), 1);
        let mut sealed = channel.seal(&frame(len));
        let at = at.index(sealed.len());
        sealed[at] ^= 1 << bit;
        let (said, _) = channel.open(&sealed);
        prop_assert!(matches!(said, Opened::Dropped(_)), "{:?} of byte {}", said, at);
    }

    #[test]
    fn a_cut_frame_is_never_delivered(
        (suite, confidentiality) in any_suite(), len in 14usize..120, kept: prop::sample::Index,
    ) {
        let mut channel = Channel::new(suite, confidentiality, Some(0), 1);
        let sealed = channel.seal(&frame(len));
        let kept = kept.index(sealed.len());
        let (said, _) = channel.open(&sealed[..kept]);
        prop_assert!(matches!(said, Opened::Dropped(_)), "{:?} of {} bytes", said, kept);
    }
}

#[test]
fn the_offset_leaves_the_first_bytes_readable() {
    for (confidentiality, in_clear) in [
        (Confidentiality::All, 0),
        (Confidentiality::Offset30, 30),
        (Confidentiality::Offset50, 50),
        (Confidentiality::None, 188),
    ] {
        let plain = frame(200);
        let mut channel = Channel::new(Suite::GcmAes128, confidentiality, Some(0), 1);
        let sealed = channel.seal(&plain);
        let (before, user_data) = (12 + 16, &plain[12..]);
        let same = sealed[before..].iter().zip(user_data).take_while(|(a, b)| a == b).count();
        // A byte may be the same by chance.
        assert!((in_clear..in_clear + 3).contains(&same.min(188)), "{confidentiality}: {same}");
    }
}

#[test]
fn each_frame_has_another_number_and_after_the_last_none_is_sealed() {
    let last = u64::from(u32::MAX);
    let mut channel = Channel::new(Suite::GcmAes128, Confidentiality::All, None, last - 1);
    let first = channel.seal(&frame(60));
    let second = channel.seal(&frame(60));
    assert_ne!(first, second);
    assert_eq!((&first[16..20], &second[16..20]), (&hex("fffffffe")[..], &hex("ffffffff")[..]));
    let plain = frame(60);
    let (said, kept) = worked(&plain, |slot| channel.transmit.seal(slot));
    assert_eq!((said, kept), (Err(SealError::Exhausted), plain.clone()));
    assert_eq!(channel.open(&first).0, Opened::Delivered);
    assert_eq!(channel.open(&second).0, Opened::Delivered);
    // A fresh key goes on.
    let key = association(Suite::GcmAes128, 1, Confidentiality::All);
    channel.transmit.install(TransmitAssociation::new(key, SCI, 1).unwrap());
    assert!(channel.transmit.use_association(1));
    let key = association(Suite::GcmAes128, 1, Confidentiality::All);
    channel.receive.install(SCI, ReceiveAssociation::new(key, SCI).unwrap());
    let sealed = channel.seal(&plain);
    assert_eq!(channel.open(&sealed), (Opened::Delivered, plain));
}

#[test]
fn extended_numbers_go_round_their_lower_half() {
    let first = 0xffff_fff0;
    let mut channel = Channel::new(Suite::GcmAesXpn128, Confidentiality::All, Some(64), first);
    // What key agreement says of the sender.
    channel.receive.association(SCI, 0).unwrap().update_next(first);
    let sealed: Vec<_> = (0..40).map(|_| channel.seal(&frame(64))).collect();
    assert_eq!(sealed[16][16..20], [0; 4]);
    for frame in sealed.iter().rev().step_by(2).chain(&sealed[38..]) {
        channel.open(frame);
    }
    let counted = channel.in_channel();
    // Within the window a late frame is taken, and so is one that comes twice (§10.6.2 has no more than the
    // lowest number).
    assert_eq!((counted.ok, counted.delayed, counted.not_valid), (22, 0, 0));
}

#[test]
fn replays_are_dropped_as_the_window_says() {
    let mut channel = Channel::new(Suite::GcmAes128, Confidentiality::All, Some(3), 1);
    let frames: Vec<_> = (0..8).map(|_| channel.seal(&frame(80))).collect();
    let verdict = |channel: &mut Channel, at: usize| channel.open(&frames[at]).0;
    assert_eq!(verdict(&mut channel, 7), Opened::Delivered);
    // The next is 9: 6 to 8 are taken.
    assert_eq!(verdict(&mut channel, 5), Opened::Delivered);
    assert_eq!(verdict(&mut channel, 4), Opened::Dropped(Dropped::Late));
    let counted = channel.in_channel();
    assert_eq!((counted.ok, counted.late), (2, 1));
    // Strictly in order.
    let mut channel = Channel::new(Suite::GcmAes128, Confidentiality::All, Some(0), 1);
    let frames: Vec<_> = (0..2).map(|_| channel.seal(&frame(80))).collect();
    assert_eq!(channel.open(&frames[0]).0, Opened::Delivered);
    assert_eq!(channel.open(&frames[0]).0, Opened::Dropped(Dropped::Late));
    assert_eq!(channel.open(&frames[1]).0, Opened::Delivered);
    // Without protection all are taken, and those that are late are counted as such.
    let mut channel = Channel::new(Suite::GcmAes128, Confidentiality::All, None, 1);
    let frames: Vec<_> = (0..2).map(|_| channel.seal(&frame(80))).collect();
    for at in [1, 0, 1] {
        assert_eq!(channel.open(&frames[at]).0, Opened::Delivered);
    }
    let counted = channel.in_channel();
    assert_eq!((counted.ok, counted.delayed, counted.late), (1, 2, 0));
}

#[test]
fn a_forged_frame_moves_no_window() {
    let mut channel = Channel::usual();
    let genuine = channel.seal(&frame(80));
    let mut forged = genuine.clone();
    forged[16..20].copy_from_slice(&[0xff; 4]);
    assert_eq!(channel.open(&forged).0, Opened::Dropped(Dropped::NotValid));
    assert_eq!(channel.open(&genuine).0, Opened::Delivered);
    let counted = channel.in_channel();
    assert_eq!((counted.not_valid, counted.ok), (1, 1));
}

#[test]
fn a_forged_frame_moves_no_extended_number_either() {
    let mut channel = Channel::new(Suite::GcmAesXpn256, Confidentiality::All, Some(64), 1);
    let genuine = channel.seal(&frame(80));
    let mut forged = genuine.clone();
    forged[16] = 0xff;
    assert_eq!(channel.open(&forged).0, Opened::Dropped(Dropped::NotValid));
    assert_eq!(channel.open(&genuine).0, Opened::Delivered);
}

#[test]
fn what_is_not_valid_is_counted_where_the_standard_counts_it() {
    let sealed = Channel::usual().seal(&frame(80));
    let plain = frame(80);
    for (validation, untagged, unknown) in [
        (
            Validation::Strict,
            Opened::Dropped(Dropped::NoTag),
            Opened::Dropped(Dropped::NoAssociation),
        ),
        (Validation::Check, Opened::Untagged, Opened::Dropped(Dropped::NoAssociation)),
    ] {
        let mut receive = Receive::new(validation, Some(0));
        assert_eq!(worked(&plain, |slot| receive.open(slot)).0, untagged);
        // Encrypted by a sender that is not known: nobody can read it.
        assert_eq!(worked(&sealed, |slot| receive.open(slot)).0, unknown);
        let mut short = sealed.clone();
        short.truncate(40);
        let bad = worked(&short, |slot| receive.open(slot)).0;
        assert_eq!(bad, Opened::Dropped(Dropped::BadTag));
        let mut key_agreement = sealed.clone();
        key_agreement[14] &= !0x04;
        let said = worked(&key_agreement, |slot| receive.open(slot)).0;
        assert_eq!(said, Opened::Dropped(Dropped::KeyAgreement));
        let counted = receive.counters();
        let is_strict = u64::from(validation == Validation::Strict);
        assert_eq!((counted.no_tag, counted.untagged), (is_strict, 1 - is_strict));
        assert_eq!((counted.bad_tag, counted.no_association_error), (1, 1));
    }
}

#[test]
fn what_can_be_read_is_delivered_where_validation_only_checks() {
    let mut channel = Channel::new(Suite::GcmAes128, Confidentiality::None, Some(0), 1);
    let plain = frame(80);
    let sealed = channel.seal(&plain);
    let mut mangled = sealed.clone();
    *mangled.last_mut().unwrap() ^= 1;
    let mut receive = Receive::new(Validation::Check, Some(0));
    assert_eq!(worked(&sealed, |slot| receive.open(slot)), (Opened::Delivered, plain.clone()));
    assert_eq!(receive.counters().no_association, 1);
    let key = association(Suite::GcmAes128, 0, Confidentiality::None);
    receive.install(SCI, ReceiveAssociation::new(key, SCI).unwrap());
    assert_eq!(worked(&mangled, |slot| receive.open(slot)), (Opened::Delivered, plain));
    assert_eq!(receive.channel_counters(SCI).unwrap().invalid, 1);
}

#[test]
fn a_frame_without_room_or_key_is_left_as_it_was() {
    let plain = frame(60);
    let mut transmit = Transmit::new(SCI, Naming::Explicit);
    assert_eq!(worked(&plain, |slot| transmit.seal(slot)), (Err(SealError::NoKey), plain.clone()));
    let key = association(Suite::GcmAes128, 0, Confidentiality::All);
    transmit.install(TransmitAssociation::new(key, SCI, 1).unwrap());
    for (before, behind) in [(0, 16), (16, 0)] {
        let mut buffer = [vec![0; before], plain.clone(), vec![0; behind]].concat();
        let mut slot = Slot::new(&mut buffer, before..before + 60).unwrap();
        assert!(matches!(transmit.seal(&mut slot), Err(SealError::NoRoom { needed: 16, .. })));
        assert_eq!(slot.frame(), plain);
    }
    assert_eq!(worked(&[0; 13], |slot| transmit.seal(slot)).0, Err(SealError::TooShort));
    // None of these used a number up.
    assert_eq!(transmit.next_number(), Some(1));
    assert_eq!(transmit.counters().encrypted, 0);
}

#[test]
fn settings_that_a_suite_does_not_have_are_refused() {
    let new = |association| TransmitAssociation::new(association, SCI, 1).err();
    let usual = || association(Suite::GcmAes128, 0, Confidentiality::All);
    assert!(new(usual()).is_none());
    assert!(new(Association { number: 4, ..usual() }).is_some());
    assert!(new(Association { key: Secret::new(vec![0; 15]), ..usual() }).is_some());
    let extended = || association(Suite::GcmAesXpn128, 0, Confidentiality::All);
    assert!(new(Association { extended: None, ..extended() }).is_some());
    assert!(
        new(Association { confidentiality: Confidentiality::Offset30, ..extended() }).is_some()
    );
    assert!(TransmitAssociation::new(usual(), SCI, 1 << 32).is_err());
}

#[test]
fn a_channel_is_known_by_the_source_address_too() {
    let address = Address([2, 0, 0, 0, 0, 1]);
    assert_eq!(SCI, Sci::new(address, Sci::END_STATION_PORT));
    let mut channel = Channel::usual();
    channel.transmit = Transmit::new(SCI, Naming::EndStation);
    let key = association(Suite::GcmAes128, 0, Confidentiality::All);
    channel.transmit.install(TransmitAssociation::new(key, SCI, 1).unwrap());
    let sealed = channel.seal(&frame(80));
    // Another peer beside: an implicit channel could not be told.
    let other = Sci::new(Address([2, 0, 0, 0, 0, 9]), 1);
    let key = association(Suite::GcmAes128, 0, Confidentiality::All);
    channel.receive.install(other, ReceiveAssociation::new(key, other).unwrap());
    assert_eq!(channel.open(&sealed).0, Opened::Delivered);
}
