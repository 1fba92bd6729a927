//! What a middlebox does to frames with and without data on a SYN.

use crate::common::{Token, config};
use fault::Explain;
use linkmodel::{DropCause, Link, LinkConfig, Middlebox, Output, Path, Tally, fuzz};
use proptest::prelude::*;
use units::{Probability, Time};
use wire::tcp::{Flags, OptionList, Repr};
use wire::{ethernet, ipv4, tcp};

/// An Ethernet frame with a segment over IPv4.
fn frame(flags: Flags, ack: Option<u32>, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = ([10, 77, 0, 1].into(), [10, 77, 0, 2].into());
    let segment = Repr {
        source_port: 50_000,
        destination_port: 443,
        sequence: 9,
        acknowledgment: ack,
        flags,
        window: 1000,
        options: OptionList { mss: Some(1460), ..OptionList::default() },
    };
    let ip = ipv4::Repr {
        source,
        destination,
        protocol: tcp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: segment.buffer_len(payload.len()),
    };
    let link = ethernet::Repr {
        source: ethernet::Address([2; 6]),
        destination: ethernet::Address([4; 6]),
        ether_type: ethernet::EtherType::IPV4,
    };
    let mut bytes = vec![0; 34 + ip.payload_len];
    link.emit(&mut bytes).unwrap();
    ip.emit(&mut bytes[14..]).unwrap();
    segment.emit(source.into(), destination.into(), payload, &mut bytes[34..]).unwrap();
    bytes
}

fn link(middlebox: Middlebox) -> Link<Vec<u8>> {
    Link::new(LinkConfig { middlebox, ..LinkConfig::default() }, 1).unwrap()
}

fn delivered(link: &mut Link<Vec<u8>>) -> Option<Vec<u8>> {
    match link.poll(Time::ZERO)? {
        Output::Deliver { frame, .. } => Some(frame),
        Output::Drop(dropped) => panic!("{dropped:?}"),
    }
}

#[test]
fn a_stripped_syn_is_the_bare_syn() {
    for ack in [None, Some(3)] {
        let mut link = link(Middlebox::StripSynData);
        link.handle_frame(Time::ZERO, frame(Flags::SYN, ack, &[7; 1200])).unwrap();
        assert_eq!(delivered(&mut link), Some(frame(Flags::SYN, ack, &[])));
        assert_eq!(link.counters().stripped, Tally { frames: 1, bytes: 1200 });
        assert_eq!(link.counters().received.bytes, link.counters().delivered.bytes + 1200);
    }
}

#[test]
fn a_syn_with_data_is_dropped_and_counted_with_its_cause() {
    for ack in [None, Some(3)] {
        let mut link = link(Middlebox::DropSynData);
        let loaded = frame(Flags::SYN, ack, b"x");
        let dropped = link.handle_frame(Time::ZERO, loaded.clone()).unwrap_err();
        assert_eq!((dropped.cause, &dropped.frame), (DropCause::Middlebox, &loaded));
        let tally = Tally { frames: 1, bytes: loaded.len() as u64 };
        assert_eq!(link.counters().dropped.of(DropCause::Middlebox), tally);
        assert_eq!(link.counters().dropped_in_all(), tally);
    }
}

#[test]
fn what_has_no_syn_or_no_data_passes_unchanged() {
    let mut fragment = frame(Flags::SYN, None, b"x");
    fragment[20] |= 0x20; // More fragments.
    let mut vlan = frame(Flags::SYN, None, b"x");
    vlan[12..14].copy_from_slice(&[0x81, 0x00]);
    let mut cut = frame(Flags::SYN, None, b"xyz");
    cut.pop();
    let frames = [
        frame(Flags::SYN, None, &[]),
        frame(Flags::SYN, Some(3), &[]),
        frame(Flags::PSH, Some(3), b"data"),
        frame(Flags::FIN, Some(3), b"data"),
        fragment,
        vlan,
        cut,
        vec![0; 60],
        Vec::new(),
    ];
    for &middlebox in Middlebox::ALL {
        let mut link = link(middlebox);
        for frame in &frames {
            link.handle_frame(Time::ZERO, frame.clone()).unwrap();
            assert_eq!(delivered(&mut link).as_ref(), Some(frame), "{middlebox}");
        }
    }
}

#[test]
fn it_stands_before_the_loss() {
    let mut config = LinkConfig { loss: Probability::ONE.into(), ..LinkConfig::default() };
    config.middlebox = Middlebox::DropSynData;
    let mut link = Link::new(config, 1).unwrap();
    let dropped = link.handle_frame(Time::ZERO, frame(Flags::SYN, None, b"x")).unwrap_err();
    assert_eq!(dropped.cause, DropCause::Middlebox);
}

#[test]
fn a_frame_without_bytes_passes() {
    for &middlebox in Middlebox::ALL {
        let config = LinkConfig { middlebox, ..LinkConfig::default() };
        let mut link = Link::new(config, 1).unwrap();
        assert!(link.handle_frame(Time::ZERO, Token { number: 1, len: 1500 }).is_ok());
    }
}

#[test]
fn names_are_the_same_in_text_and_in_a_configuration() {
    for &middlebox in Middlebox::ALL {
        assert_eq!(middlebox.to_string().parse(), Ok(middlebox));
        assert_eq!(config(&format!("middlebox = \"{middlebox}\"")).middlebox, middlebox);
        let path = Path::default().with_middlebox(middlebox);
        assert_eq!((path.forward.middlebox, path.backward.middlebox), (middlebox, middlebox));
        let text = toml::to_string(&path.forward).unwrap();
        assert_eq!(text.contains("middlebox"), middlebox != Middlebox::None, "{text}");
    }
    let error = "drop".parse::<Middlebox>().unwrap_err();
    assert_eq!(error.to_string(), "no middlebox is called `drop`");
    let remedy = error.remedy().unwrap_or_default();
    assert_eq!(remedy, "choose from none, drop-syn-data, strip-syn-data");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_frame_keeps_the_word(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz::middlebox(&input);
    }

    #[test]
    fn any_segment_keeps_the_word(
        kind in 0u8..16, flags: u8, payload in proptest::collection::vec(any::<u8>(), 0..1500),
        flip in proptest::option::of((0usize..80, any::<u8>())),
    ) {
        fuzz::middlebox(&[&[kind | 2, flags][..], &payload].concat());
        // The same as raw bytes with one of them changed, so that what is nearly a segment is
        // tried too.
        let mut bytes = frame(Flags(flags & !0x10), Some(1), &payload[..payload.len().min(1400)]);
        if let Some((at, value)) = flip && at < bytes.len() {
            bytes[at] = value;
        }
        fuzz::middlebox(&[&[0][..], &bytes].concat());
    }
}
