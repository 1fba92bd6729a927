//! RST, SYN and ACK that do not fit (RFC 5961, RFC 9293 §3.10.7).

use tcp::{CloseReason, Config, EventKind, State};
use wire::tcp::Flags;

use super::harness::*;

/// Brings a connection into each synchronised state in turn.
fn in_state(state: State) -> Bench {
    let mut bench = Bench::established();
    bench.at(1020);
    match state {
        State::Established => {}
        State::FinWait1 => drop(bench.shutdown()),
        State::FinWait2 => {
            bench.shutdown();
            bench.give(bench.acking(2));
        }
        State::CloseWait => drop(bench.give(bench.made().flags(Flags::FIN))),
        State::Closing => {
            bench.shutdown();
            bench.give(bench.made().flags(Flags::FIN));
        }
        State::LastAck => {
            bench.give(bench.made().flags(Flags::FIN));
            bench.shutdown();
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.state(), state);
    bench.events();
    bench
}

const STATES: [(State, CloseReason); 6] = [
    (State::Established, CloseReason::Reset),
    (State::FinWait1, CloseReason::Reset),
    (State::FinWait2, CloseReason::Reset),
    (State::CloseWait, CloseReason::Reset),
    (State::Closing, CloseReason::Finished),
    (State::LastAck, CloseReason::Finished),
];

/// The peer's next byte: its FIN counts.
fn next(state: State) -> u32 {
    match state {
        State::CloseWait | State::Closing | State::LastAck => 2,
        _ => 1,
    }
}

/// RFC 5961 §3.2: a RST exactly at RCV.NXT resets, in every synchronised state.
#[test]
fn an_exact_rst_resets_in_every_state() {
    for (state, reason) in STATES {
        let mut bench = in_state(state);
        assert!(bench.give(bench.made().seq(next(state)).flags(Flags::RST)).is_empty());
        assert_eq!(bench.state(), State::Closed, "from {state:?}");
        assert!(bench.events().contains(&EventKind::Closed(reason)), "from {state:?}");
    }
}

/// RFC 5961 §3.2: one elsewhere in the window draws a challenge ACK, one outside draws nothing.
#[test]
fn a_rst_that_is_not_exact_resets_in_no_state() {
    for (state, _) in STATES {
        let mut bench = in_state(state);
        let next = next(state);
        let ours = bench.reply(bench.made().seq(next + 1).flags(Flags::RST));
        assert_eq!(ours.len(), 1, "{state:?}");
        assert!(ours[0].ends_with(&format!("ack {next}")), "{ours:?}");
        for outside in [next.wrapping_sub(1), next + 70_000] {
            let rst = bench.made().seq(outside).flags(Flags::RST);
            assert!(bench.give(rst).is_empty(), "{state:?}");
        }
        assert_eq!(bench.state(), state);
    }
}

/// RFC 5961 §7: not more than one challenge ACK in 100 ms.
#[test]
fn challenge_acks_are_rate_limited() {
    let mut bench = in_state(State::Established);
    let rst = bench.made().seq(100).flags(Flags::RST);
    assert_eq!(bench.reply(rst.clone()), ["1020 . 1+0 ack 1"]);
    for at in [1020, 1060, 1119] {
        bench.at(at);
        assert!(bench.give(rst.clone()).is_empty(), "at {at}");
    }
    bench.at(1120);
    assert_eq!(bench.reply(rst), ["1120 . 1+0 ack 1"]);
    assert_eq!(bench.endpoint.counters().challenge_acks, 2);
}

/// RFC 5961 §4.2: a SYN in a synchronised state draws a challenge ACK, wherever it stands, and
/// none of its data are taken.
#[test]
fn a_syn_in_a_synchronised_state_is_challenged() {
    for at in [1, 500, 100_001, 0u32.wrapping_sub(5000)] {
        let mut bench = in_state(State::Established);
        let syn = bench.made_syn(mss(1460)).seq(at);
        assert_eq!(bench.reply(syn), ["1020 . 1+0 ack 1"], "at {at}");
        assert_eq!((bench.state(), bench.read().len()), (State::Established, 0));
    }
}

/// RFC 5961 §4 with data on the SYN: none of them come into the stream.
#[test]
fn a_syn_with_data_puts_no_bytes_into_an_open_stream() {
    let mut bench = in_state(State::Established);
    let evil = vec![b'E'; 1000];
    bench.give(bench.made_syn(mss(1460)).seq(100_001).data(&evil));
    let (mut got, honest) = (Vec::new(), vec![b'g'; 1000]);
    for at in 0..102 {
        bench.give(bench.made().seq(1 + 1000 * at).data(&honest));
        got.extend(bench.read());
        bench.sent();
    }
    assert_eq!((got.len(), got.iter().filter(|byte| **byte == b'E').count()), (102_000, 0));
}

/// RFC 5961 §5.2: an ACK of what was never sent, or of what is older than the largest window ever
/// seen, draws a challenge ACK, and its data are dropped.
#[test]
fn an_ack_outside_its_range_is_challenged() {
    for ack in [2, 1u32.wrapping_sub(60_001)] {
        let mut bench = in_state(State::Established);
        let made = bench.acking(ack).data(b"blind");
        assert_eq!(bench.reply(made), ["1020 . 1+0 ack 1"], "ack {ack}");
        assert_eq!(bench.read(), b"");
    }
    // At the edge it is old, but honest.
    let mut bench = in_state(State::Established);
    bench.give(bench.acking(1u32.wrapping_sub(60_000)).data(b"honest"));
    assert_eq!(bench.read(), b"honest");
}

/// RFC 9293 §3.10.7.4, first check: data outside the window draw an ACK and are not taken, even
/// once the window reaches there.
#[test]
fn data_beyond_the_window_are_not_taken() {
    let mut bench = in_state(State::Established);
    let evil = bench.made().seq(70_001).data(b"EVIL");
    assert_eq!(bench.reply(evil), ["1020 . 1+0 ack 1"]);
    let (mut got, honest) = (Vec::new(), vec![b'g'; 1000]);
    for at in 0..71 {
        bench.give(bench.made().seq(1 + 1000 * at).data(&honest));
        got.extend(bench.read());
        bench.sent();
    }
    assert_eq!((got.len(), got.contains(&b'E')), (71_000, false));
}

/// RFC 9293 §3.10.7.4, fifth check: a segment without ACK is dropped.
#[test]
fn a_segment_without_ack_is_dropped() {
    let mut bench = in_state(State::Established);
    assert!(bench.give(bench.made().no_ack().data(b"x")).is_empty());
    assert_eq!(bench.read(), b"");
}

/// RFC 9293 §3.10.7.1: a segment of no connection draws a RST that its sender must believe; a RST
/// draws nothing.
#[test]
fn nobody_there() {
    let mut bench = Bench::new(Config::default());
    assert_eq!(bench.reply(bench.acking(77).data(b"abc")), ["1000 R 77+0"]);
    assert_eq!(bench.reply(bench.made_syn(mss(1460)).data(b"abc")), ["1000 R. 0+0 ack 4"]);
    assert!(bench.give(bench.made().flags(Flags::RST)).is_empty());
    let mut silent = Bench::new(Config { resets: false, ..Config::default() });
    assert!(silent.give(silent.made()).is_empty());
}

/// RFC 9293 §3.10.7.2: a listener answers an ACK by RST, and RST, FIN and nothing at all by silence.
#[test]
fn what_a_listener_does_not_take() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    assert_eq!(bench.reply(bench.acking(77)), ["1000 R 77+0"]);
    let odd = bench.made().no_ack();
    assert!(bench.give(odd.clone().flags(Flags::RST)).is_empty());
    assert!(bench.give(odd.clone().flags(Flags::FIN)).is_empty());
    assert!(bench.give(odd.clone().flags(Flags::SYN.with(Flags::FIN))).is_empty());
    assert!(bench.give(odd).is_empty());
    assert_eq!(bench.endpoint.counters().connections, 0);
}

/// RFC 9293 §3.10.7.4, first check in SYN-RECEIVED, with RFC 5961 §3.2 and §4.2.
#[test]
fn syn_received_is_not_easily_ended() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    bench.syn(mss(1460), &[]);
    // A client that began anew finds out, and its RST makes room (RFC 9293 §3.5.1).
    bench.at(1100);
    let anew = bench.made_syn(mss(1460)).seq(900_000_000);
    assert_eq!(bench.reply(anew), ["1100 . 1+0 ack 1"]);
    assert!(bench.give(bench.made().no_ack().seq(9).flags(Flags::RST)).is_empty());
    assert_eq!(bench.endpoint.counters().half_open_plain, 1);
    assert!(bench.give(bench.made().no_ack().flags(Flags::RST)).is_empty());
    assert_eq!(bench.endpoint.counters().half_open_plain, 0);
    assert!(bench.endpoint.accept(bench.listener.unwrap()).is_none());
}

/// RFC 9293 §3.10.7.4, fifth check in SYN-RECEIVED: a wrong ACK draws a RST and changes nothing.
#[test]
fn a_wrong_ack_in_syn_received_is_reset() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    bench.syn(mss(1460), &[]);
    assert_eq!(bench.reply(bench.acking(2)), ["1000 R 2+0"]);
    assert_eq!(bench.reply(bench.acking(0)), ["1000 R 0+0"]);
    assert_eq!(bench.endpoint.counters().half_open_plain, 1);
    assert!(bench.give(bench.acking(1)).is_empty());
    assert!(bench.endpoint.accept(bench.listener.unwrap()).is_some());
}

/// RFC 9293 §3.10.7.3: SYN-SENT takes a RST that acknowledges its SYN, and no other; a wrong ACK
/// draws a RST.
#[test]
fn a_rst_in_syn_sent_must_acknowledge_the_syn() {
    let (mut bench, _) = Bench::connecting(Config::default(), Default::default());
    let rst = bench.made().flags(Flags::RST);
    assert!(bench.give(rst.clone().no_ack()).is_empty());
    assert!(bench.give(bench.acking(2).flags(Flags::RST)).is_empty());
    assert_eq!(bench.reply(bench.made_syn_ack(2, mss(1460))), ["1000 R 2+0"]);
    assert_eq!(bench.reply(bench.made_syn_ack(0, mss(1460))), ["1000 R 0+0"]);
    assert_eq!(bench.state(), State::SynSent);
    assert!(bench.give(rst).is_empty());
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::Refused)));
}
