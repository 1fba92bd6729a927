//! Frames that were captured more than once.

use std::time::Duration;

use crate::talk::{Talk, client_hello, encrypted, hello_13, ms, talk};
use tracker::{Class, Connection, Limits, LinkType, Tracker};
use units::Time;
use wire::tcp::{Flags, OptionList};

fn whole() -> Talk {
    let mut t = talk();
    t.syn().at(10).syn_ack().at(20).ack().send(0, &client_hello(true, false, &[]));
    t.at(30).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(40).send(0, &[encrypted(53), encrypted(100)].concat()).at(50).send(1, &encrypted(2000));
    t.at(60).flagged(0, Flags::FIN).flagged(1, Flags::FIN);
    t
}

/// Each frame as often as asked, so many microseconds apart, with a lower time to live in the copies.
fn copied(frames: &[(Time, Vec<u8>)], times: u32, apart: u64) -> Connection {
    let mut all = Vec::new();
    for (at, frame) in frames {
        for number in 0..times {
            let mut frame = frame.clone();
            frame[0] = number as u8;
            frame[22] -= number as u8;
            all.push((*at + Duration::from_micros(apart) * number, frame));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    let mut tracker = Tracker::new(Limits::default());
    for (at, frame) in all {
        tracker.handle_packet(at, LinkType::Ethernet, &frame, frame.len());
    }
    let mut found = tracker.finish();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn times_are_those_of_the_first_copies() {
    let frames = whole().frames;
    for (times, apart) in [(2, 5), (3, 5), (2, 1000), (2, 9000), (4, 3000)] {
        let c = copied(&frames, times, apart);
        assert_eq!((c.class(), c.uncertain.len()), (Some(Class::Full), 0), "{times} {apart}");
        assert_eq!(c.round_trip(), Some(Duration::from_millis(20)), "{times} {apart}");
        assert_eq!((c.client_data, c.server_data), (ms(40), ms(50)));
        let tcp = c.tcp.unwrap();
        assert_eq!((tcp.client_retransmitted, tcp.server_retransmitted), (0, 0));
        // SYN, SYN+ACK and four segments with payload.
        assert_eq!(tcp.copies, 6 * u64::from(times - 1), "{times} {apart}");
        assert!(!tcp.handshake_retransmitted);
    }
}

#[test]
fn what_is_sent_again_is_no_copy() {
    // A SYN after its timeout, with timestamps that say so and without.
    for stamps in [None, Some([(7, 0), (1007, 0)])] {
        let mut t = talk();
        let options = |at: usize| OptionList {
            timestamps: stamps.map(|both| both[at]),
            ..Default::default()
        };
        t.raw(0, Flags::SYN, 0, None, &[], options(0));
        t.at(if stamps.is_some() { 50 } else { 1000 });
        t.raw(0, Flags::SYN, 0, None, &[], options(1));
        t.next[0] = 1;
        t.at(1010).syn_ack().ack();
        let c = t.finish();
        let tcp = c.tcp.as_ref().unwrap();
        assert_eq!((c.round_trip(), tcp.client_retransmitted, tcp.copies), (None, 1, 0));
    }
    // Data that are sent again in a capture without copies.
    let mut t = talk();
    t.open().send(0, b"question");
    t.next[0] -= 8;
    t.at(15).send(0, b"question");
    let tcp = t.finish().tcp.unwrap();
    assert_eq!((tcp.client_retransmitted, tcp.copies), (1, 0));
    // Sent again after a timeout where every frame is there twice: four times in all.
    let mut t = talk();
    t.open().send(0, b"question");
    t.next[0] -= 8;
    t.at(300).send(0, b"question");
    let tcp = copied(&t.frames, 2, 5).tcp.unwrap();
    assert_eq!((tcp.client_retransmitted, tcp.copies), (2, 3));
}

#[test]
fn a_syn_sent_again_with_copies_of_each_leaves_the_round_trip_open() {
    let mut t = talk();
    t.syn().at(1000).syn().at(1010).syn_ack().ack();
    let c = copied(&t.frames, 2, 5);
    let tcp = c.tcp.as_ref().unwrap();
    assert_eq!((c.round_trip(), tcp.client_retransmitted, tcp.copies), (None, 1, 3));
}
