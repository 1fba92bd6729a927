//! Both directions of a connection apart: in the file, or by their clocks.

use std::time::Duration;

use crate::talk::{CLIENT, Talk, client_hello, encrypted, hello_13, ms, talk};
use proptest::prelude::*;
use tracker::{Class, ClockOffset, Connection, HandOut, Limits, LinkType, Tracker, Uncertain};
use units::Time;
use wire::tcp::{Flags, OptionList};

type Frames = Vec<(Time, Vec<u8>)>;

/// A TLS 1.3 connection with request and answer from 1000 ms on, closed at 1050 ms.
fn whole() -> Talk {
    let mut t = talk();
    t.at(1000).syn().at(1001).syn_ack().at(1010).ack().send(0, &client_hello(true, false, &[]));
    t.at(1011).flagged(1, Flags(0)).at(1012).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(1020).ack().send(0, &[encrypted(53), encrypted(100)].concat());
    t.at(1022).send(1, &encrypted(2000)).at(1030).ack();
    t.at(1050).flagged(0, Flags::FIN);
    t.next[0] += 1;
    t.at(1051).flagged(1, Flags::FIN);
    t.next[1] += 1;
    t.at(1060).ack();
    t
}

fn is_client(frame: &[u8]) -> bool {
    frame[26..30] == CLIENT.octets()
}

fn observe(frames: &[(Time, Vec<u8>)], hand_out: HandOut) -> Vec<Connection> {
    let mut tracker = Tracker::new(Limits { hand_out, ..Limits::default() });
    for (at, frame) in frames {
        tracker.handle_packet(*at, LinkType::Ethernet, frame, frame.len());
    }
    assert!(tracker.counters().add_up());
    tracker.finish()
}

/// The times of a side's frames later by so many nanoseconds, all in order of time.
fn shifted(frames: &Frames, client: bool, nanos: i64) -> Frames {
    let shift = |at: Time| Time::from_nanos((at.as_nanos() as i64 + nanos) as u64);
    let one = |(at, frame): &(Time, Vec<u8>)| {
        let at = if is_client(frame) == client { shift(*at) } else { *at };
        (at, frame.clone())
    };
    let mut all: Frames = frames.iter().map(one).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// The same frames, those of a side later in the file by so many milliseconds.
fn later_in_file(frames: &Frames, client: bool, millis: u64) -> Frames {
    let mut all = frames.clone();
    let late = Duration::from_millis(millis);
    all.sort_by_key(|(at, frame)| if is_client(frame) == client { *at + late } else { *at });
    all
}

#[test]
fn frames_of_one_direction_later_in_the_file_change_nothing() {
    let frames = whole().frames;
    let [expected] = &observe(&frames, HandOut::AtEnd)[..] else { panic!() };
    assert_eq!((expected.class(), expected.uncertain.len()), (Some(Class::Full), 0));
    assert_eq!((expected.client_data, expected.server_data), (ms(1020), ms(1022)));
    assert_eq!(expected.round_trip(), Some(Duration::from_millis(10)));
    for (client, millis) in
        [(true, 2), (true, 5), (true, 15), (true, 1000), (false, 5), (false, 15), (false, 1000)]
    {
        for hand_out in [HandOut::AtEnd, HandOut::AfterHandshake] {
            let all = observe(&later_in_file(&frames, client, millis), hand_out);
            let [c] = &all[..] else { panic!("{all:?}") };
            // How many frames came before the answer is a matter of their order.
            let mut c = c.clone();
            c.up_to_response = expected.up_to_response;
            c.down_to_response = expected.down_to_response;
            let case = format!("{client} {millis} {hand_out:?}");
            assert_eq!((c.class(), &c.tls), (expected.class(), &expected.tls), "{case}");
            assert_eq!((&c.uncertain, c.first_frame), (&expected.uncertain, expected.first_frame));
            assert_eq!(
                (c.client_data, c.server_data),
                (expected.client_data, expected.server_data)
            );
            assert_eq!(c.round_trip(), expected.round_trip(), "{case}");
            if hand_out == HandOut::AtEnd {
                assert_eq!(c, *expected, "{case}");
            }
        }
    }
}

#[test]
fn clocks_that_differ_are_measured_from_both_sides() {
    let frames = whole().frames;
    // The server answers within 1 ms, the client within 9 ms.
    for millis in [2, 8, 15, 500, 900] {
        for sign in [1, 7, -1] {
            let nanos = sign * millis * 1_000_000;
            let all = observe(&shifted(&frames, true, nanos), HandOut::AtEnd);
            let [c] = &all[..] else { panic!("{all:?}") };
            assert_eq!((c.class(), &c.uncertain[..]), (Some(Class::Full), &[][..]), "{nanos}");
            assert_eq!(c.round_trip(), Some(Duration::from_millis(10)), "{nanos}");
            assert_eq!(c.tls_handshake_time(), Some(Duration::from_millis(10)));
            let (at_least, at_most) = (nanos - 1_000_000, nanos + 8_000_000);
            let hidden = at_least <= 0 && at_most >= 0;
            let expected = (!hidden).then_some(ClockOffset { at_least, at_most });
            assert_eq!(c.tcp.as_ref().unwrap().clock_offset, expected, "{nanos}");
        }
    }
}

#[test]
fn one_direction_alone_is_told_as_before() {
    for client in [true, false] {
        let mut frames = whole().frames;
        frames.retain(|(_, frame)| is_client(frame) == client);
        let [c] = &observe(&frames, HandOut::AtEnd)[..] else { panic!() };
        assert!(c.uncertain.contains(&Uncertain::OneDirection), "{:?}", c.uncertain);
        assert_eq!(c.uncertain.contains(&Uncertain::MidStream), !client);
        assert_eq!(c.tcp.as_ref().unwrap().clock_offset, None);
    }
}

/// An answer longer than what may wait, whose question comes after all of it.
#[test]
fn a_long_answer_before_its_question_leaves_the_handshake_as_it_was() {
    let mut t = whole();
    t.frames.truncate(11);
    t.next = [t.next[0] - 1, t.next[1] - 1];
    for number in 0..200 {
        t.at(1030 + number).send(1, &[0x55; 1400]);
        t.ack();
    }
    let frames = later_in_file(&t.frames, true, 10_000);
    let [c] = &observe(&frames, HandOut::AtEnd)[..] else { panic!() };
    assert_eq!((c.class(), &c.uncertain[..]), (Some(Class::Full), &[][..]));
    assert_eq!((c.client_data, c.server_data), (ms(1020), ms(1022)));
}

#[test]
fn a_syn_of_another_connection_is_not_the_one_that_the_syn_ack_answers() {
    let frames = whole().frames;
    let mut t = talk();
    t.at(999).raw(0, Flags::SYN, 0x5000_0000, None, &[], OptionList::default());
    // The SYN+ACK, an unrelated SYN, the rest.
    let mixed: Frames = frames[1..2].iter().chain(&t.frames).chain(&frames[2..]).cloned().collect();
    let all = observe(&mixed, HandOut::AtEnd);
    assert_eq!(all.len(), 2);
    assert!(all.iter().any(|c| c.uncertain.contains(&Uncertain::MidStream)), "{all:?}");
}

#[test]
fn frames_that_the_capture_lost_hold_nothing_back() {
    let frames = whole().frames;
    let [expected] = &observe(&frames, HandOut::AtEnd)[..] else { panic!() };
    for lost in 0..frames.len() {
        let mut rest = frames.clone();
        rest.remove(lost);
        let all = observe(&rest, HandOut::AtEnd);
        let c = all.last().unwrap();
        // Only what carries payload is missed.
        if frames[lost].1.len() == 54 && lost > 1 {
            assert_eq!((c.class(), &c.tls), (expected.class(), &expected.tls), "{lost}");
            assert!(c.uncertain.is_empty(), "{lost}");
        }
    }
}

proptest! {
    /// Whichever frames of one side are late by so much, the handshake reads the same.
    #[test]
    fn any_delay_of_a_direction_reads_the_same(millis in 0_u64..80, client in any::<bool>()) {
        let frames = whole().frames;
        let expected = observe(&frames, HandOut::AtEnd);
        let found = observe(&later_in_file(&frames, client, millis), HandOut::AtEnd);
        prop_assert_eq!(&found[0].tls, &expected[0].tls);
        prop_assert_eq!(found.len(), 1);
    }
}
