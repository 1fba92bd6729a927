//! Connections whose application is gone: they end in time, and are few.

use tcp::{Config, State};
use wire::tcp::Flags;

use super::harness::*;

/// The server has written `len` bytes and gone; the peer's window is a byte, from 1020 ms on.
fn orphan(config: Config, len: usize) -> Bench {
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    bench.give(bench.made().window(1));
    bench.write(&vec![7; len]);
    bench.release();
    bench.events();
    bench
}

/// Takes a byte every 100 ms until the connection is reset; when, in milliseconds.
fn taken_by_the_byte(bench: &mut Bench) -> u64 {
    for (acked, now) in (1..).zip((1120..200_000).step_by(100)) {
        let sent = bench.wait(now);
        if let Some(reset) = sent.iter().find(|sent| sent.segment().flags().has(Flags::RST)) {
            return reset.at;
        }
        assert_eq!(bench.endpoint.counters().orphans, 1);
        bench.give(bench.acking(1 + acked).window(1));
    }
    panic!("still held at {}", bench.now)
}

/// A peer that opens its window by the byte holds a released connection for the time that its bytes
/// are given, and no longer.
#[test]
fn a_window_that_opens_by_the_byte_does_not_hold_an_orphan() {
    // 60 s, and a second for every 16 KiB.
    for (len, end) in [(1000, 61_020), (100_000, 67_020)] {
        let mut bench = orphan(Config::default(), len);
        assert_eq!(taken_by_the_byte(&mut bench), end);
        bench.events();
        let counters = bench.endpoint.counters();
        assert_eq!((counters.connections, counters.orphans, counters.orphans_ended), (0, 0, 1));
    }
}

/// The same with a window that stays closed, however the probes are answered.
#[test]
fn a_closed_window_of_a_released_connection_is_not_for_ever() {
    let mut bench = orphan(Config::default(), 1000);
    let mut reset = None;
    while let Some(next) = bench.endpoint.next_timeout().filter(|at| *at < millis(86_400_000))
        && reset.is_none()
    {
        let sent = bench.wait(next.as_nanos() / 1_000_000);
        reset = sent.iter().find(|it| it.segment().flags().has(Flags::RST)).map(|it| it.at);
        bench.give(bench.made().window(0));
    }
    assert_eq!(reset, Some(61_020));
    bench.events();
    assert_eq!(bench.endpoint.counters().connections, 0);
}

/// One that its peer reads ends in order, and is no orphan any more.
#[test]
fn an_orphan_that_is_read_ends_in_order() {
    let mut bench = orphan(Config::default(), 1000);
    bench.at(1030);
    bench.give(bench.acking(2).window(60_000));
    assert_eq!(bench.endpoint.counters().orphans, 1);
    // All of it and the FIN.
    bench.give(bench.acking(1002).window(60_000));
    let counters = bench.endpoint.counters();
    assert_eq!((counters.connections, counters.orphans, counters.orphans_ended), (1, 0, 0));
    assert_eq!(bench.state(), State::FinWait2);
}

/// Past `max_orphans` the oldest is reset.
#[test]
fn orphans_are_bounded() {
    let config = Config { max_orphans: 2, ..Config::default() };
    let mut bench = orphan(config, 1000);
    let oldest = bench.peer;
    for (port, orphans, ended) in [(40_001, 2, 0), (40_002, 2, 1), (40_003, 2, 2)] {
        bench.peer.set_port(port);
        bench.shake_hands(mss(1460));
        bench.at(1020);
        bench.give(bench.made().window(1));
        bench.write(&[7; 1000]);
        let sent = bench.release();
        let counters = bench.endpoint.counters();
        assert_eq!((counters.orphans, counters.orphans_ended), (orphans, ended));
        if ended == 1 {
            assert!(sent[0].segment().flags().has(Flags::RST));
            assert_eq!(sent[0].segment().destination_port(), oldest.port());
        }
        bench.events();
    }
    assert_eq!(bench.endpoint.counters().connections, 2);
}
