//! What a peer can make an endpoint hold and do: receive memory, half-open connections, signatures.

use std::time::Duration;

use tcp::{Config, ListenOptions};
use wire::tcp::{Flags, OptionList};

use super::harness::*;

/// What a server's windows are shifted by with 6 MiB (RFC 7323 §2.3).
const SHIFT: u32 = 7;

/// A server whose client has shaken hands by 1010 ms, with window scaling.
fn scaled(config: Config) -> Bench {
    let options = OptionList { window_scale: Some(0), ..mss(1460) };
    Bench::established_with(config, options)
}

/// The right edge that the answer to `len` bytes at `at` tells.
fn edge(bench: &mut Bench, at: u32, len: usize) -> u32 {
    let sent = bench.give(bench.made().seq(at).data(&vec![7; len]));
    let ack = sent.last().expect("an ACK");
    let next = ack.segment().acknowledgment().unwrap().wrapping_sub(IRS);
    next + (ack.window() << SHIFT)
}

/// The first window is 64 KiB. It stays where it is while nothing is read, and a byte at its far edge
/// holds a byte.
#[test]
fn the_first_window_promises_little() {
    let mut bench = scaled(Config::default());
    bench.at(1020);
    assert_eq!(edge(&mut bench, 1, 1), 1 + 65_408 + 1);
    bench.give(bench.made().seq(65_409).data(b"x"));
    let held = bench.endpoint.counters().receive_held;
    assert!((1..200).contains(&held), "{held} bytes");
    for at in 1..40 {
        let edge = edge(&mut bench, 2 + (at - 1) * 1460, 1460);
        assert!(edge <= 1 + (64 << 10), "{edge}");
    }
}

/// The window grows with what the application reads in a round trip: twice that and 16 segments
/// more, and as what is read grows, ahead of it.
#[test]
fn the_window_grows_with_what_is_read() {
    let mut bench = scaled(Config::default());
    // Round trips of 10 ms by the handshake: each brings so many segments, read at its end.
    let (mut next, mut windows) = (1, Vec::new());
    for (round, segments) in (0..).zip([10, 20, 40, 40, 160, 2]) {
        bench.at(1020 + 10 * round);
        windows.push(edge(&mut bench, next, 2920) - (next + 2920));
        for at in 2..segments {
            bench.give(bench.made().seq(next + 1460 * at).data(&[7; 1460]));
        }
        next += 1460 * segments;
        let mut into = vec![0; 1 << 20];
        let read = bench.endpoint.read(bench.now, bench.id.unwrap(), &mut into);
        assert_eq!(read, Ok(1460 * segments as usize));
    }
    // 2 × 29,200 and 16 segments, and thrice that since it doubled; 3 × 140,160; the same; 7 × 490,560.
    let limits = [64 << 10, 245_280, 420_480, 420_480, 3_433_920];
    let begun = [64 << 10].into_iter().chain(limits);
    for (window, limit) in windows.into_iter().zip(begun) {
        assert!(window <= limit && window + 2920 + 1460 + 128 > limit, "{window} of {limit}");
    }
}

/// With no memory beside each connection's own, no window grows and no connection holds more.
#[test]
fn without_memory_windows_stay_as_they_begin() {
    let config = Config { receive_memory: 0, receive_initial: 20_000, ..Config::default() };
    let mut bench = scaled(config);
    for (turn, next) in (0..40).zip((1..).step_by(7300)) {
        bench.at(1020 + 10 * turn);
        let reported = edge(&mut bench, next, 7300) - next;
        assert!(reported <= 20_000, "{reported}");
        bench.read();
    }
    let mut bench = scaled(Config { receive_memory: 0, ..Config::default() });
    for port in 40_001..40_020 {
        bench.peer.set_port(port);
        bench.shake_hands(OptionList { window_scale: Some(0), ..mss(1460) });
        for at in 1..60 {
            bench.give(bench.made().seq(1 + at * 1460).data(&[7; 1460]));
        }
        bench.give(bench.made().data(&[7; 1460]));
    }
    let counters = bench.endpoint.counters();
    assert_eq!(counters.connections, 20);
    assert!(counters.receive_held > 19 * 60_000, "{counters:?}");
    assert!(counters.receive_held <= 20 * 2 * (64 << 10), "{counters:?}");
}

/// Peers that acknowledge nothing: each connection takes its own bytes and at most half of what is left
/// for all, so that whoever comes last has something too; the memory comes back with the connections.
#[test]
fn what_is_to_be_sent_has_a_budget() {
    const OWN: usize = 10_000;
    const ALL: usize = 100_000;
    let config = Config { send_initial: OWN, send_memory: ALL, ..Config::default() };
    let mut bench = scaled(config);
    let mut connections = vec![bench.id.unwrap()];
    for port in 40_001..40_020 {
        bench.peer.set_port(port);
        bench.shake_hands(OptionList { window_scale: Some(0), ..mss(1460) });
        connections.push(bench.id.unwrap());
    }
    let mut taken = Vec::new();
    for id in &connections {
        let mut all = 0;
        while let Ok(count) = bench.endpoint.write(bench.now, *id, &[7; 4000]) {
            all += count;
        }
        taken.push(all);
        // Nobody waits for a segment of it.
        bench.sent();
    }
    assert!(taken[0] > OWN && taken[0] <= OWN + ALL / 2, "{taken:?}");
    assert!(taken.is_sorted_by(|a, b| a >= b) && taken.iter().all(|all| *all >= OWN), "{taken:?}");
    let held = bench.endpoint.counters().send_held;
    assert!(held >= taken.iter().sum() && held <= 20 * OWN + ALL, "{held} bytes");
    for id in connections {
        bench.endpoint.abort(bench.now, id);
    }
    assert_eq!(bench.endpoint.counters().send_held, 0);
}

/// A peer that acknowledges all but a byte leaves the memory to others.
#[test]
fn what_is_acknowledged_is_given_back() {
    let mut bench = scaled(Config::default());
    bench.at(1020);
    bench.write(&[7; 60_000]);
    assert!(bench.endpoint.counters().send_held >= 60_000);
    for acked in [14_600, 40_000, 59_999] {
        bench.give(bench.acking(1 + acked));
    }
    let held = bench.endpoint.counters().send_held;
    assert!((1..1000).contains(&held), "{held} bytes");
    bench.give(bench.acking(60_001));
    assert_eq!(bench.endpoint.counters().send_held, 0);
}

/// RFC 7413 §5.1: the sender of a forged SYN can send its RST too. It keeps its place for 60 s.
#[test]
fn a_reset_half_open_connection_keeps_its_place() {
    let config = Config { max_half_open_with_data: 2, ..Config::default() };
    let mut bench = Bench::listening(config, everything());
    let taken = |bench: &mut Bench, now| {
        bench.at(now);
        let before = bench.endpoint.counters().opens_with_data;
        bench.peer.set_port(bench.peer.port() + 1);
        bench.give(bench.made_syn(mss(1460)).data(b"hello"));
        let taken = bench.endpoint.counters().opens_with_data > before;
        bench.give(bench.made().seq(if taken { 6 } else { 1 }).flags(Flags::RST).no_ack());
        bench.events();
        taken
    };
    assert_eq!(
        [1000, 2000, 2000, 60_999].map(|now| taken(&mut bench, now)),
        [true, true, false, false]
    );
    let counters = bench.endpoint.counters();
    assert_eq!((counters.half_open_with_data, counters.half_open_reset), (0, 2));
    assert_eq!((counters.opened_without_data, counters.connections), (2, 0));
    // The first one's 60 s are over, and then the second's.
    assert_eq!([61_000, 61_000, 62_000].map(|now| taken(&mut bench, now)), [true, false, true]);
}

/// No more SYNs with data are taken of addresses that are not validated than the rate permits;
/// beyond it they are ordinary ones. A valid cookie is no matter of the rate.
#[test]
fn syns_with_data_are_taken_at_a_rate() {
    let config = Config { unvalidated_rate: 10, ..Config::default() };
    let options = ListenOptions { cookies: true, ..everything() };
    let mut bench = Bench::listening(config, options);
    let asking = OptionList {
        fast_open: Some(wire::tcp::FastOpen { cookie: &[], experimental: false }),
        ..mss(1460)
    };
    let sent = bench.give(bench.made_syn(asking));
    let cookie = sent[0].options().fast_open.unwrap().cookie.to_vec();
    let honest = bench.peer;
    let mut port = 1000;
    let mut taken = |bench: &mut Bench, count: usize| {
        let before = bench.endpoint.counters().opens_with_data;
        for _ in 0..count {
            port += 1;
            bench.peer = address(&format!("203.0.113.9:{port}"));
            bench.give(bench.made_syn(mss(1460)).data(b"hello"));
        }
        bench.endpoint.counters().opens_with_data - before
    };
    assert_eq!(taken(&mut bench, 50), 10, "a second's worth");
    bench.now += Duration::from_millis(99);
    assert_eq!(taken(&mut bench, 50), 0);
    bench.now += Duration::from_millis(1);
    assert_eq!(taken(&mut bench, 50), 1);
    let counters = bench.endpoint.counters();
    assert_eq!((counters.syn_data_over_rate, counters.opened_without_data), (139, 0));
    bench.peer = honest;
    bench.peer.set_port(41_000);
    let valid = OptionList {
        fast_open: Some(wire::tcp::FastOpen { cookie: &cookie, experimental: false }),
        ..mss(1460)
    };
    assert!(bench.give(bench.made_syn(valid).data(b"hello")).is_empty(), "it awaits the answer");
    assert_eq!(bench.endpoint.counters().opens_with_data, 12);
}
