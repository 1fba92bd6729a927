//! Records given out after the handshake, endings after that.

use std::collections::BTreeMap;

use crate::common::frames;
use crate::talk::{Talk, client_hello, encrypted, hello_13, talk_with};
use tracker::{
    Connection, Counters, End, Ending, HandOut, Limits, LinkType, Output, Packet, Tracker, Traffic,
};
use units::Time;
use wire::tcp::{Flags, OptionList};

const NAMES: [&str; 7] = [
    "openssl-3.0-modes.pcap",
    "ecdhe.pcap",
    "tls-13draft19-early-data.pcap",
    "tls-early-alert.pcap",
    "tls1.2.pcap",
    "tls13_psk_succesfull.pcap",
    "tls13draft23-chrome67.0.3368.0-canary.pcap",
];

fn limits() -> Limits {
    Limits { hand_out: HandOut::AfterHandshake, ..Limits::default() }
}

fn outputs(tracker: &mut Tracker) -> Vec<Output> {
    std::iter::from_fn(|| tracker.poll_output()).collect()
}

fn observe(limits: Limits, name: &str) -> (Vec<Output>, Counters) {
    let mut tracker = Tracker::new(limits);
    for (at, bytes, len) in frames(name) {
        tracker.handle_packet(at, LinkType::Ethernet, &bytes, len);
    }
    tracker.close();
    let counters = *tracker.counters();
    (outputs(&mut tracker), counters)
}

/// Records and endings by number; each at most once, an ending after its record.
fn sorted(all: Vec<Output>) -> (BTreeMap<u64, Connection>, BTreeMap<u64, Ending>) {
    let (mut records, mut endings) = (BTreeMap::new(), BTreeMap::new());
    for output in all {
        match output {
            Output::Connection(connection) => {
                assert!(records.insert(connection.number, *connection).is_none());
            }
            Output::Ending(ending) => {
                assert!(records.get(&ending.number).is_some_and(|record| record.goes_on));
                assert!(endings.insert(ending.number, ending).is_none());
            }
        }
    }
    for (number, record) in &records {
        assert_eq!(record.goes_on, endings.contains_key(number));
    }
    (records, endings)
}

#[test]
fn the_handshake_is_reported_early_and_the_end_later_and_together_they_are_the_same() {
    let mut early = 0;
    for name in NAMES {
        let (at_end, counters) = observe(Limits::default(), name);
        let (after, counters_after) = observe(limits(), name);
        assert_eq!(counters, counters_after);
        let ((expected, none), (records, endings)) = (sorted(at_end), sorted(after));
        assert_eq!((expected.len(), none.len()), (records.len(), 0));
        early += endings.len();
        for (number, expected) in expected {
            let c = &records[&number];
            assert_eq!(c.tls, expected.tls, "{name} {number}");
            assert_eq!(
                (c.client_data, c.server_data),
                (expected.client_data, expected.server_data)
            );
            assert_eq!(
                (c.client, c.server, c.first_frame),
                (expected.client, expected.server, expected.first_frame)
            );
            assert_eq!(
                (c.up_to_response, c.down_to_response),
                (expected.up_to_response, expected.down_to_response)
            );
            assert_eq!(
                (c.class(), c.round_trip(), &c.uncertain),
                (expected.class(), expected.round_trip(), &expected.uncertain)
            );
            match endings.get(&number) {
                None => assert_eq!(*c, expected),
                Some(ending) => {
                    assert_eq!((ending.up, ending.down), (expected.up, expected.down));
                    assert_eq!(
                        (ending.last_frame, ending.end),
                        (expected.last_frame, expected.end)
                    );
                    assert!(!ending.dropped && c.last_frame <= ending.last_frame);
                }
            }
        }
    }
    // All but those that never had data of both sides.
    assert_eq!(early, 12);
}

#[test]
fn frames_taken_together_give_what_they_give_one_by_one() {
    for name in NAMES {
        let frames = frames(name);
        let packets: Vec<Packet<'_>> = frames
            .iter()
            .map(|(at, bytes, len)| Packet {
                at: *at,
                link_type: LinkType::Ethernet,
                bytes,
                original_len: *len,
            })
            .collect();
        for size in [1, 5, 16, 100] {
            let mut tracker = Tracker::new(limits());
            packets.chunks(size).for_each(|some| tracker.handle_packets(some));
            tracker.close();
            let expected = observe(limits(), name);
            assert_eq!((outputs(&mut tracker), *tracker.counters()), expected);
        }
    }
}

fn opened(port: u16, t: &mut Talk) {
    t.port = port;
    t.next = [0, 0];
    let now = t.at.as_nanos() / 1_000_000;
    t.syn().at(now + 10).syn_ack().ack().send(0, b"GET /a b").at(now + 20).send(1, b"answer");
}

#[test]
fn a_plain_stream_leaves_once_both_have_spoken() {
    let mut t = talk_with(Tracker::new(limits()));
    t.open().send(0, b"GET /");
    assert_eq!(t.tracker.poll_output(), None);
    t.at(20).send(1, b"yz");
    let Some(Output::Connection(c)) = t.tracker.poll_output() else { panic!("a record") };
    assert!(c.goes_on && c.tls.is_none() && c.end == End::Open);
    assert_eq!((c.client_data, c.server_data), (crate::talk::ms(10), crate::talk::ms(20)));
    t.at(30).send(0, b"more").at(40).flagged(1, Flags::FIN).at(50).flagged(0, Flags::RST);
    assert_eq!((t.tracker.poll_output(), t.tracker.active()), (None, 1));
    t.tracker.close();
    let Some(Output::Ending(ending)) = t.tracker.poll_output() else { panic!("an ending") };
    let expected = Ending {
        number: 0,
        last_frame: Time::from_millis(50),
        up: Traffic { frames: 5, bytes: 54 + 54 + 59 + 58 + 54 },
        down: Traffic { frames: 3, bytes: 54 + 56 + 54 },
        end: End::Fin,
        dropped: false,
    };
    assert_eq!(ending, expected);
    assert_eq!((t.tracker.poll_output(), t.tracker.active()), (None, 0));
}

#[test]
fn a_handshake_leaves_with_its_first_answer_and_not_before() {
    let mut t = talk_with(Tracker::new(limits()));
    t.open().send(0, &client_hello(true, false, &[]));
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(30).send(0, &[encrypted(53), encrypted(18)].concat());
    assert_eq!(t.tracker.poll_output(), None);
    t.at(40).send(1, &encrypted(18));
    let Some(Output::Connection(c)) = t.tracker.poll_output() else { panic!("a record") };
    assert_eq!(
        (c.client_data, c.server_data, c.last_frame),
        (crate::talk::ms(30), crate::talk::ms(40), Time::from_millis(40))
    );
    // One that goes nowhere waits for its end.
    t.port = 1;
    t.next = [0, 0];
    t.at(50).syn().syn_ack().ack().send(0, &client_hello(true, false, &[]));
    t.flagged(1, Flags::RST).at(6_000).flagged(1, Flags::RST);
    t.tracker.close();
    let (records, endings) =
        sorted([vec![Output::Connection(c)], outputs(&mut t.tracker)].concat());
    assert!(!records[&1].goes_on && records[&1].end == End::Reset);
    assert_eq!(endings[&0].end, End::Open);
}

#[test]
fn one_sided_streams_leave_when_it_is_clear_that_they_are_no_handshake() {
    // The capture begins within a download: the client only acknowledges.
    let mut t = talk_with(Tracker::new(limits()));
    for _ in 0..100 {
        t.send(1, &[b'd'; 1400]).ack();
    }
    let Some(Output::Connection(c)) = t.tracker.poll_output() else { panic!("a record") };
    assert!(c.goes_on && !c.roles_known && c.server_data.is_some() && c.client_data.is_none());
    // Within an upload.
    t.port = 7;
    for _ in 0..100 {
        t.send(0, &[b'u'; 1400]);
    }
    assert!(matches!(t.tracker.poll_output(), Some(Output::Connection(c)) if c.goes_on));
}

#[test]
fn a_syn_between_the_same_ports_ends_the_old_and_begins_another() {
    let mut t = talk_with(Tracker::new(limits()));
    opened(5_000, &mut t);
    // Its own SYN once more is none.
    t.raw(0, Flags::SYN, 0, None, &[], OptionList::default());
    t.at(500).raw(0, Flags::SYN, 5_000_000, None, &[], OptionList::default());
    t.tracker.close();
    let all = outputs(&mut t.tracker);
    let [Output::Connection(_), Output::Ending(ending), Output::Connection(second)] = &all[..]
    else {
        panic!("{all:?}");
    };
    assert_eq!((ending.number, ending.up.frames), (0, 4));
    assert_eq!(
        (second.number, second.goes_on, second.first_frame),
        (1, false, Time::from_millis(500))
    );
}

#[test]
fn beyond_the_limit_the_oldest_is_dropped_and_counted_in_either_mode() {
    for hand_out in [HandOut::AtEnd, HandOut::AfterHandshake] {
        let mut t = talk_with(Tracker::new(Limits { connections: 3, hand_out, ..limits() }));
        for port in 1..=5 {
            opened(port, &mut t);
        }
        assert_eq!((t.tracker.active(), t.tracker.counters().dropped), (3, 2));
        t.tracker.close();
        let all = outputs(&mut t.tracker);
        let dropped = |o: &Output| match o {
            Output::Connection(c) => c.dropped.then_some(c.number),
            Output::Ending(e) => e.dropped.then_some(e.number),
        };
        assert_eq!(all.iter().filter_map(dropped).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(sorted(all).0.len(), 5);
        assert!(t.tracker.counters().add_up());
    }
}

#[test]
fn closed_and_silent_ones_end_in_time() {
    let mut t = talk_with(Tracker::new(limits()));
    opened(1, &mut t);
    t.flagged(0, Flags::FIN).flagged(1, Flags::FIN);
    opened(2, &mut t);
    assert_eq!(outputs(&mut t.tracker).len(), 2);
    t.at(7_000).flagged(0, Flags(0));
    assert!(matches!(
        outputs(&mut t.tracker)[..],
        [Output::Ending(Ending { number: 0, end: End::Fin, .. })]
    ));
    t.port = 3;
    t.at(310_000).syn();
    assert!(matches!(
        outputs(&mut t.tracker)[..],
        [Output::Ending(Ending { number: 1, end: End::Open, .. })]
    ));
}
