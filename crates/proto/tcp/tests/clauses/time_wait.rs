//! TIME-WAIT (RFC 9293 §3.6.1), what may end it (RFC 6191), and what may not (RFC 1337).

use tcp::{Config, ConnectOptions, Ignored, State};
use wire::tcp::{Flags, OptionList};

use super::harness::*;

fn both(value: u32) -> OptionList<'static> {
    OptionList { mss: Some(1460), timestamps: Some((value, 0)), ..OptionList::default() }
}

/// Closed by this side at 1020 ms, released; the peer's FIN was byte 1 with timestamp 5020.
fn waiting(with_timestamps: bool) -> Bench {
    let syn = if with_timestamps { both(5000) } else { mss(1460) };
    let mut bench = Bench::established_with(Config::default(), syn);
    bench.at(1020);
    bench.shutdown();
    bench.clock = bench.clock.map(|(_, echo)| (5020, echo));
    assert_eq!(bench.reply(bench.acking(2).flags(Flags::FIN)), ["1020 . 2+0 ack 2"]);
    assert_eq!(bench.state(), State::TimeWait);
    bench.release();
    bench.events();
    assert_eq!(bench.endpoint.counters().connections, 0);
    bench
}

/// Whether the peer's SYN begins a new connection; if not, an ACK tells of the old one.
fn begins(bench: &mut Bench, seq: u32, options: OptionList<'_>) -> bool {
    let before = bench.endpoint.counters().passive_opens;
    let sent = bench.give(bench.made_syn(options).seq(seq));
    let began = bench.endpoint.counters().passive_opens > before;
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].segment().flags().has(Flags::SYN), began);
    began
}

/// RFC 9293 §3.10.7.4: the peer's FIN once more is acknowledged once more, with timestamps if they
/// were agreed (RFC 7323 §3.2), and the 2 MSL begin again.
#[test]
fn the_fin_again_starts_the_wait_again() {
    for with_timestamps in [false, true] {
        let mut bench = waiting(with_timestamps);
        bench.at(31_020);
        let sent = bench.give(bench.acking(2).flags(Flags::FIN));
        assert_eq!(shown(&sent), ["31020 . 2+0 ack 2"]);
        let echoed = sent[0].options().timestamps.map(|(_, echo)| echo);
        assert_eq!(echoed, with_timestamps.then_some(5020));
        bench.wait(91_019);
        assert_eq!(bench.give(bench.acking(2).flags(Flags::FIN)).len(), 1);
        let mut bench = waiting(with_timestamps);
        bench.wait(61_020);
        assert_eq!(bench.endpoint.next_timeout(), None);
        // Over: it belongs to the listener now, who knows nothing of it.
        assert_eq!(bench.reply(bench.acking(2).flags(Flags::FIN)), ["61020 R 2+0"]);
    }
}

/// RFC 9293 §3.10.7.4: only the peer's last segment begins the 2 MSL again. A FIN with any other
/// number is acknowledged and no more.
#[test]
fn another_fin_does_not_start_the_wait_again() {
    for seq in [0, 2, 3, 100_000, 0u32.wrapping_sub(100_000)] {
        let mut bench = waiting(false);
        bench.at(31_020);
        let forged = bench.acking(2).seq(seq).flags(Flags::FIN);
        assert_eq!(bench.reply(forged), ["31020 . 2+0 ack 2"]);
        bench.wait(61_020);
        assert_eq!(bench.reply(bench.acking(2).flags(Flags::FIN)), ["61020 R 2+0"], "{seq}");
    }
}

/// A peer that sends its FIN time and again takes nobody's place in the table.
#[test]
fn a_wait_that_begins_again_takes_no_other_place() {
    let config = Config { max_time_wait: 2, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    let mut both = Vec::new();
    for port in [40_000, 40_001] {
        if port != bench.peer.port() {
            bench.peer.set_port(port);
            bench.shake_hands(mss(1460));
        }
        bench.at(1020);
        bench.shutdown();
        let fin = bench.acking(2).flags(Flags::FIN);
        assert_eq!(bench.reply(fin.clone()), ["1020 . 2+0 ack 2"]);
        both.push(fin);
    }
    for _ in 0..100 {
        assert_eq!(bench.give(both[1].clone()).len(), 1);
    }
    let answer = bench.give(both[0].clone());
    assert!(!answer[0].segment().flags().has(Flags::RST), "the first one waits still");
}

/// RFC 1337 §3: a RST in TIME-WAIT is ignored; an old ACK draws nothing.
#[test]
fn time_wait_is_not_assassinated() {
    let mut bench = waiting(false);
    bench.at(2000);
    let rst = bench.made().seq(2).flags(Flags::RST);
    assert_eq!(bench.judge(&rst), Err(Ignored::Unacceptable));
    assert!(bench.give(bench.acking(2).seq(2)).is_empty());
    assert_eq!(bench.reply(bench.acking(2).flags(Flags::FIN)), ["2000 . 2+0 ack 2"]);
}

/// RFC 9293 §3.10.7.4: what lies outside the window, or acknowledges what was never sent, is told where the
/// connection is; bare segments not more often than RFC 5961 §7 has it.
#[test]
fn segments_outside_the_window_are_acknowledged() {
    for with_timestamps in [false, true] {
        for (seq, ack) in [(1, 2), (3, 2), (100_000, 2), (2, 3), (0u32.wrapping_sub(9), 2)] {
            let mut bench = waiting(with_timestamps);
            bench.at(2000);
            let bare = bench.acking(ack).seq(seq);
            assert_eq!(bench.reply(bare.clone()), ["2000 . 2+0 ack 2"], "{seq} ack {ack}");
            bench.at(2099);
            assert!(bench.give(bare.clone()).is_empty());
            // Data and FINs are no answers to an ACK.
            assert_eq!(bench.reply(bare.clone().data(b"late")).len(), 1);
            bench.at(2100);
            assert_eq!(bench.give(bare).len(), 1);
        }
    }
}

/// RFC 9293 §3.10.7.4, fifth check: a segment without ACK is dropped.
#[test]
fn a_segment_without_an_ack_draws_nothing() {
    for seq in [0, 1, 2, 100_000] {
        let mut bench = waiting(false);
        bench.at(2000);
        let fin = bench.acking(2).no_ack().seq(seq).flags(Flags::FIN);
        assert!(bench.give(fin).is_empty(), "{seq}");
    }
}

/// An ACK in its place is the end of the exchange, and so is an old one.
#[test]
fn an_ack_in_its_place_draws_nothing() {
    let mut bench = waiting(false);
    bench.at(2000);
    for ack in [2, 1, 0] {
        assert!(bench.give(bench.acking(ack).seq(2)).is_empty());
    }
}

/// RFC 9293 §3.6.1: the numbers of a connection that begins anew are larger than those of the one before, however
/// many bytes that had.
#[test]
fn a_new_connection_s_numbers_are_beyond_the_old_ones() {
    let mut bench = Bench::established();
    bench.at(1020);
    let mut acked = 1;
    // 20 MB in no time: the clock of RFC 6528 counts 250 a millisecond.
    while acked < 20_000_000 {
        let _ = bench.endpoint.write(bench.now, bench.id.unwrap(), &[7; 1 << 20]);
        let mut sent = bench.sent();
        sent.extend(bench.give(bench.acking(acked)));
        acked += sent.iter().map(|one| one.payload().len() as u32).sum::<u32>();
        bench.give(bench.acking(acked));
        acked = bench.info().in_flight as u32 + bench.info().bytes_acked as u32 + 1;
    }
    bench.give(bench.acking(acked));
    bench.shutdown();
    let mut end = bench.info().bytes_acked as u32 + bench.info().in_flight as u32 + 1;
    while bench.info().bytes_acked < u64::from(end) - 1 || bench.info().unsent > 0 {
        bench.give(bench.acking(end));
        end = bench.info().bytes_acked as u32 + bench.info().in_flight as u32 + 1;
    }
    bench.give(bench.acking(end + 1).flags(Flags::FIN));
    assert_eq!(bench.state(), State::TimeWait);
    bench.at(1030);
    let sent = bench.give(bench.made_syn(mss(1460)).seq(2));
    assert!(sent[0].segment().flags().has(Flags::SYN));
    let beyond = sent[0].segment().sequence().wrapping_sub(bench.iss.wrapping_add(end));
    assert!((1..1 << 20).contains(&beyond), "{beyond}");
}

/// A SYN that nobody listens for does not end the wait.
#[test]
fn a_syn_without_a_listener_does_not_end_the_wait() {
    let mut bench = waiting(false);
    bench.endpoint.unlisten(bench.now, bench.listener.unwrap());
    bench.at(2000);
    assert_eq!(bench.reply(bench.made_syn(mss(1460)).seq(100_000)), ["2000 . 2+0 ack 2"]);
    assert_eq!(bench.reply(bench.acking(2).flags(Flags::FIN)), ["2000 . 2+0 ack 2"]);
}

/// RFC 6191 §2: the timestamp of the peer's last FIN counts, sent again too.
#[test]
fn the_last_timestamp_counts() {
    let mut bench = waiting(true);
    bench.at(2000);
    bench.clock = bench.clock.map(|(_, echo)| (6000, echo));
    let sent = bench.give(bench.acking(2).flags(Flags::FIN));
    assert_eq!(sent[0].options().timestamps.map(|(_, echo)| echo), Some(6000));
    assert!(!begins(&mut bench, 1, both(5999)));
    assert!(begins(&mut bench, 1, both(6001)));
}

/// RFC 6191 §2, with timestamps before: a newer timestamp begins anew, whatever the sequence
/// number; the same one only with a newer sequence number; an older one never.
#[test]
fn a_new_connection_by_timestamp() {
    let cases = [
        (1, 5021, true),
        (100_000, 5021, true),
        (2, 5020, true),
        (1, 5020, false),
        (100_000, 5019, false),
    ];
    for (seq, value, begun) in cases {
        let mut bench = waiting(true);
        bench.at(2000);
        assert_eq!(begins(&mut bench, seq, both(value)), begun, "{seq} at {value}");
    }
}

/// RFC 6191 §2, without timestamps on the SYN: the sequence number must be newer than the last.
#[test]
fn a_new_connection_by_sequence_number() {
    for with_timestamps in [true, false] {
        for (seq, begun) in [(2, true), (100_000, true), (1, false), (0, false)] {
            let mut bench = waiting(with_timestamps);
            bench.at(2000);
            assert_eq!(begins(&mut bench, seq, mss(1460)), begun, "{seq}, {with_timestamps}");
        }
    }
}

/// RFC 6191 §2, without timestamps before but with them now: old segments are told by that.
#[test]
fn a_new_connection_that_has_timestamps_where_the_old_had_none() {
    let mut bench = waiting(false);
    bench.at(2000);
    assert!(begins(&mut bench, 0u32.wrapping_sub(9), both(1)));
    let mut bench = waiting(false);
    bench.at(2000);
    assert!(begins(&mut bench, 2, both(1)));
}

/// RFC 9293 §3.4.2, §3.6.1: this side does not use the pair of addresses again while it waits.
#[test]
fn the_addresses_are_not_free_while_it_waits() {
    let mut bench = waiting(false);
    bench.at(2000);
    let again = |bench: &mut Bench| {
        bench
            .endpoint
            .connect(bench.now, bench.local, bench.peer, ConnectOptions::default())
            .is_ok()
    };
    assert!(!again(&mut bench));
    bench.at(61_020);
    assert!(again(&mut bench));
}

/// The table is bounded: the oldest makes room.
#[test]
fn the_oldest_makes_room() {
    let config = Config { max_time_wait: 0, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    bench.shutdown();
    bench.give(bench.acking(2).flags(Flags::FIN));
    assert_eq!(bench.reply(bench.acking(2).flags(Flags::FIN)), ["1020 R 2+0"]);
}
