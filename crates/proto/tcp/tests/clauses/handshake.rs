//! How connections open (RFC 9293 §3.5), ordinary ones.

use std::time::Duration;

use tcp::{CloseReason, Config, ConnectOptions, EventKind, IfRefused, State, SynData};
use wire::tcp::{Flags, OptionList};

use super::harness::*;

/// RFC 9293 §3.5, figure 6.
#[test]
fn three_segments_open_a_connection() {
    let (mut bench, syn) = Bench::connecting(Config::default(), ConnectOptions::default());
    assert_eq!(syn.to_string(), "1000 S 0+0");
    bench.at(1100);
    assert_eq!(bench.reply(bench.made_syn_ack(1, mss(1460))), ["1100 . 1+0 ack 1"]);
    assert_eq!(bench.state(), State::Established);
    assert_eq!(bench.events(), [EventKind::Connected, EventKind::Writable]);
    assert_eq!(bench.info().smoothed_rtt, Some(Duration::from_millis(100)));
}

/// RFC 6298 §2.1, §5.5: a SYN goes again after 1 s, 2 s, 4 s … and then the attempt is over.
#[test]
fn a_syn_is_sent_again_and_given_up() {
    let config = Config { syn_retries: 3, ..Config::default() };
    let (mut bench, _) = Bench::connecting(config, ConnectOptions::default());
    assert_eq!(bench.wait_shown(15_999), ["2000 S 0+0", "4000 S 0+0", "8000 S 0+0"]);
    assert_eq!(bench.state(), State::SynSent);
    bench.wait(16_000);
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::TimedOut)));
}

/// RFC 9293 §3.8.3: the same for a SYN-ACK; the client's SYN once more has it sent once more.
#[test]
fn a_syn_ack_is_sent_again_and_given_up() {
    let config = Config { syn_ack_retries: 2, ..Config::default() };
    let mut bench = Bench::listening(config, Default::default());
    assert_eq!(shown(&bench.syn(mss(1460), &[])), ["1000 S. 0+0 ack 1"]);
    bench.at(1500);
    assert_eq!(bench.reply(bench.made_syn(mss(1460))), ["1500 S. 0+0 ack 1"]);
    let mut bench =
        Bench::listening(Config { syn_ack_retries: 2, ..Config::default() }, Default::default());
    // Three times what came: a SYN of 44 bytes allows two SYN-ACKs of 44, and a third.
    bench.syn(mss(1460), &[]);
    assert_eq!(bench.wait_shown(7999), ["2000 S. 0+0 ack 1", "4000 S. 0+0 ack 1"]);
    assert_eq!(bench.endpoint.counters().half_open_plain, 1);
    bench.wait(8000);
    assert_eq!(bench.endpoint.counters().half_open_plain, 0);
}

/// RFC 6298 §3 (Karn): the round trip of a SYN that was sent twice is not known.
#[test]
fn a_syn_sent_twice_measures_nothing() {
    let (mut bench, _) = Bench::connecting(Config::default(), ConnectOptions::default());
    bench.wait(2000);
    bench.at(2010);
    bench.give(bench.made_syn_ack(1, mss(1460)));
    assert_eq!(bench.info().smoothed_rtt, None);
    // RFC 6298 §5.7: and the timeout is 3 s from then on.
    assert_eq!(bench.info().rto, Duration::from_secs(3));
}

/// RFC 9293 §3.5, figure 7: both open at once. The SYN-ACK has the options that both SYNs had
/// (RFC 7323 §3.2).
#[test]
fn both_open_at_once() {
    let (mut bench, _) = Bench::connecting(Config::default(), ConnectOptions::default());
    let options = OptionList {
        timestamps: Some((5000, 0)),
        sack_permitted: true,
        window_scale: Some(2),
        ..mss(1460)
    };
    bench.at(1020);
    let sent = bench.give(bench.made_syn(options));
    assert_eq!(shown(&sent), ["1020 S. 0+0 ack 1"]);
    let ours = sent[0].options();
    assert_eq!(ours.timestamps.map(|(_, echo)| echo), Some(5000));
    assert!(ours.sack_permitted && ours.window_scale.is_some());
    assert_eq!(bench.state(), State::SynReceived);
    bench.at(1040);
    bench.clock = Some((5020, ours.timestamps.unwrap().0));
    let syn_ack = bench.made_syn_ack(1, OptionList { timestamps: bench.clock, ..options });
    bench.give(syn_ack);
    assert_eq!(bench.state(), State::Established);
    assert_eq!(bench.write(b"x").len(), 1);
}

/// RFC 9293 §3.10.7.4, second check in SYN-RECEIVED after an active open: refused.
#[test]
fn a_rst_in_a_simultaneous_open_refuses() {
    let (mut bench, _) = Bench::connecting(Config::default(), ConnectOptions::default());
    bench.give(bench.made_syn(mss(1460)));
    bench.give(bench.made().flags(Flags::RST));
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::Refused)));
}

/// RFC 9293 §3.10.7.4: data with the third segment are taken with it.
#[test]
fn the_third_segment_may_carry_data() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    bench.syn(mss(1460), &[]);
    bench.at(1010);
    assert_eq!(bench.reply(bench.made().data(b"hello")), ["1010 . 1+0 ack 6"]);
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    assert_eq!(bench.read(), b"hello");
    let events = bench.events();
    for event in [EventKind::Established, EventKind::Incoming(bench.listener.unwrap())] {
        assert!(events.contains(&event), "{events:?}");
    }
}

/// RFC 6528 §3: sequence numbers rise by one in 4 us, and differ between peers.
#[test]
fn initial_sequence_numbers_rise_with_the_clock() {
    let config = || Config::default();
    let (early, _) = Bench::connecting(config(), ConnectOptions::default());
    let mut later = Bench::new(config());
    later.at(1004);
    later.connect(ConnectOptions::default());
    assert_eq!(later.iss.wrapping_sub(early.iss), 1000);
    let mut other = Bench::new(config());
    other.peer = address("198.51.100.8:40000");
    other.connect(ConnectOptions::default());
    assert_ne!(other.iss, early.iss);
}

/// A client whose SYN with `len` bytes has crossed the peer's at 1005 ms.
fn crossed(len: usize, if_refused: IfRefused) -> Bench {
    let options =
        ConnectOptions { syn_data: vec![b'd'; len], if_refused, ..ConnectOptions::default() };
    let (mut bench, syn) = Bench::connecting(Config::default(), options);
    assert_eq!(syn.payload().len(), len);
    bench.at(1005);
    assert_eq!(bench.reply(bench.made_syn(mss(1460))), ["1005 S. 0+0 ack 1"]);
    assert_eq!(bench.state(), State::SynReceived);
    bench.at(1050);
    bench
}

/// RFC 9293 §3.10.7.4, RFC 7413 §4.2: the peer's SYN-ACK after SYNs that crossed acknowledges data of ours, all of
/// them or some. Our SYN-ACK has acknowledged its SYN already.
#[test]
fn a_crossed_syn_ack_acknowledges_data_of_our_syn() {
    for (acked, rest) in [(1001, None), (401, Some("1050 P. 401+600 ack 1"))] {
        for if_refused in [IfRefused::Resend, IfRefused::Withdraw] {
            let mut bench = crossed(1000, if_refused);
            let sent = bench.reply(bench.made_syn_ack(acked, mss(1460)));
            assert_eq!(sent.first().map(String::as_str), rest);
            assert_eq!(
                (bench.state(), bench.info().syn_data),
                (State::Established, SynData::Accepted)
            );
            assert_eq!(bench.events(), [EventKind::Connected, EventKind::Writable]);
            assert_eq!(bench.info().bytes_acked, u64::from(acked) - 1);
            bench.at(1150);
            let sent = bench.reply(bench.acking(1001).data(&[1; 500]));
            assert_eq!(sent, ["1150 . 1001+0 ack 501"]);
        }
    }
}

/// The same by an ACK without SYN, and by one with data.
#[test]
fn a_bare_ack_of_crossed_syns_acknowledges_data_of_our_syn() {
    let mut bench = crossed(1000, IfRefused::Resend);
    assert!(bench.give(bench.acking(1001)).is_empty());
    assert_eq!((bench.state(), bench.info().syn_data), (State::Established, SynData::Accepted));
    let mut bench = crossed(1000, IfRefused::Resend);
    assert_eq!(bench.reply(bench.acking(1001).data(b"hello")), ["1050 . 1001+0 ack 6"]);
    assert_eq!(bench.read(), b"hello");
}

/// Data that the crossed SYN-ACK does not acknowledge go again or are withdrawn; the path is no black hole.
#[test]
fn data_of_a_crossed_syn_may_be_refused() {
    let mut bench = crossed(1000, IfRefused::Resend);
    assert_eq!(bench.reply(bench.made_syn_ack(1, mss(1460))), ["1050 P. 1+1000 ack 1"]);
    assert_eq!((bench.state(), bench.info().syn_data), (State::Established, SynData::Refused));
    assert_eq!(bench.endpoint.counters().black_holes, 0);
    let mut bench = crossed(1000, IfRefused::Withdraw);
    assert!(bench.give(bench.made_syn_ack(1, mss(1460))).is_empty());
    assert_eq!(bench.events()[..2], [EventKind::SynDataRefused, EventKind::Connected]);
}

/// RFC 9293 §3.10.7.4: what was never sent is not acknowledged by anybody: RST, or the SYN-ACK once more.
#[test]
fn a_crossed_ack_beyond_what_was_sent_is_refused() {
    let mut bench = crossed(1000, IfRefused::Resend);
    assert_eq!(bench.reply(bench.acking(1002)), ["1050 R 1002+0"]);
    assert_eq!(bench.reply(bench.made_syn_ack(1002, mss(1460))), ["1050 S. 0+0 ack 1"]);
    assert_eq!(bench.state(), State::SynReceived);
    let mut bench = crossed(0, IfRefused::Resend);
    assert_eq!(bench.reply(bench.acking(2)), ["1050 R 2+0"]);
}

/// A peer whose SYN-ACK goes again has missed ours: it is told, and data that come with it count.
#[test]
fn a_crossed_syn_ack_may_come_twice_and_carry_data() {
    let mut bench = crossed(0, IfRefused::Resend);
    let sent = bench.reply(bench.made_syn_ack(1, mss(1460)).data(b"hello"));
    assert_eq!(sent, ["1050 . 1+0 ack 6"]);
    assert_eq!(bench.read(), b"hello");
    let mut bench = crossed(0, IfRefused::Resend);
    assert!(bench.give(bench.made_syn_ack(1, mss(1460))).is_empty());
    assert_eq!(bench.reply(bench.made_syn_ack(1, mss(1460))), ["1050 . 1+0 ack 1"]);
}

/// A SYN to a path that drops data on SYNs has none: a SYN-ACK of such data is of nothing that was sent.
#[test]
fn data_that_no_syn_carried_cannot_be_acknowledged() {
    let options = || ConnectOptions { syn_data: vec![b'd'; 500], ..ConnectOptions::default() };
    let (mut bench, _) = Bench::connecting(Config::default(), options());
    bench.wait(2000);
    bench.give(bench.made_syn_ack(1, mss(1460)));
    bench.local.set_port(444);
    assert!(bench.connect(options()).payload().is_empty());
    assert_eq!(bench.reply(bench.made_syn_ack(501, mss(1460))), ["2000 R 501+0"]);
    assert_eq!(bench.state(), State::SynSent);
}
