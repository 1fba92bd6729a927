//! Handshakes whose segments carry data, and what they may cost (RFC 7413, RFC 9000 §8.1).

use std::time::Duration;

use tcp::*;
use wire::tcp::{Flags, OptionList};

use super::harness::*;

fn with_data(len: usize, if_refused: IfRefused) -> ConnectOptions {
    ConnectOptions { syn_data: vec![b'h'; len], if_refused, ..ConnectOptions::default() }
}

fn bytes(sent: &[Sent]) -> Vec<u8> {
    sent.iter().flat_map(|one| one.payload().to_vec()).collect()
}

fn total(sent: &[Sent]) -> usize {
    sent.iter().map(|one| one.packet.len()).sum()
}

/// RFC 9293 §3.10.7.2: data on a SYN may be kept; they are acknowledged with it.
#[test]
fn the_syn_ack_acknowledges_the_data_and_carries_the_answer() {
    let mut bench = Bench::listening(Config::default(), everything());
    assert!(bench.syn(mss(1460), &[b'h'; 500]).is_empty());
    assert_eq!((bench.read(), bench.state()), (vec![b'h'; 500], State::SynReceived));
    bench.at(1050);
    bench.write(b"world");
    let sent = bench.answer();
    assert_eq!(shown(&sent), ["1050 S. 0+5 ack 501"]);
    let info = bench.info();
    assert_eq!((info.syn_bytes, info.syn_ack_bytes, info.syn_segment_len), (500, 5, 524));
    bench.at(1060);
    assert!(bench.give(bench.acking(6).seq(501)).is_empty());
    assert_eq!(bench.state(), State::Established);
}

/// A listener that does not admit them acknowledges the SYN alone (RFC 7413 §4.2.2), and takes them
/// when they come again.
#[test]
fn data_that_are_not_admitted_come_again() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    assert_eq!(shown(&bench.syn(mss(1460), b"hello")), ["1000 S. 0+0 ack 1"]);
    bench.at(1010);
    bench.give(bench.made().data(b"hello"));
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    assert_eq!((bench.read(), bench.info().syn_data), (b"hello".to_vec(), SynData::Refused));
}

/// `answer_patience`: after 200 ms the SYN-ACK goes bare, and the answer behind it when it is there.
#[test]
fn an_answer_is_waited_for_200_ms() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), b"hello");
    assert!(bench.wait(1199).is_empty());
    let mut sent = bench.wait(1200);
    bench.learn(&mut sent);
    assert_eq!(shown(&sent), ["1200 S. 0+0 ack 6"]);
    bench.at(1210);
    bench.give(bench.made().seq(6));
    assert_eq!(shown(&bench.write(b"world")), ["1210 P. 1+5 ack 6"]);
}

/// An answer after the patience, before the client's ACK: it follows the bare SYN-ACK within the
/// budget.
#[test]
fn a_late_answer_follows_the_bare_syn_ack() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), &[b'h'; 1200]);
    let mut sent = bench.wait(1200);
    bench.learn(&mut sent);
    bench.at(1205);
    assert_eq!(shown(&bench.write(b"world")), ["1205 P. 1+5 ack 1201"]);
}

/// The SYN with data again while its answer is pending draws nothing and changes nothing.
#[test]
fn a_doubled_syn_with_data_draws_nothing() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), b"hello");
    for (at, data) in [(1050, &b"hello"[..]), (1100, b"other"), (1150, b"")] {
        bench.at(at);
        assert!(bench.give(bench.made_syn(mss(1460)).data(data)).is_empty());
        assert!(bench.endpoint.accept(bench.listener.unwrap()).is_none());
    }
    assert_eq!(bench.read(), b"hello");
    bench.write(b"world");
    assert_eq!(shown(&bench.answer()), ["1150 S. 0+5 ack 6"]);
    // After the answer it has the SYN-ACK sent again, bare: the path may drop those with data.
    bench.at(1160);
    let again = bench.reply(bench.made_syn(mss(1460)).data(b"hello"));
    assert_eq!(again[0], "1160 S. 0+0 ack 6");
}

/// Of the limit so much is kept for bare SYN-ACKs sent again.
const RESERVE: usize = 180;

/// RFC 9000 §8.1: three times what came, to the byte: SYN-ACK, what follows it, and SYN-ACKs again.
#[test]
fn three_times_what_came_to_the_byte() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), &[b'h'; 1000]);
    let came = 20 + 24 + 1000;
    bench.write(&[b'w'; 20_000]);
    let first = bench.answer();
    assert_eq!(total(&first), 3 * came - RESERVE);
    // Four SYN-ACKs of 44 bytes and nothing else; a fifth would be too much.
    let again = bench.wait_shown(31_999);
    let times = [2000, 4000, 8000, 16_000];
    assert_eq!(again, times.map(|at| format!("{at} S. 0+0 ack 1001")));
    // The client's SYN, bare this time, adds to it.
    let more = bench.give(bench.made_syn(mss(1460)));
    assert_eq!(shown(&more), ["31999 S. 0+0 ack 1001"]);
    bench.wait(200_000);
    assert_eq!(bench.endpoint.counters().half_open_with_data, 0);
}

/// RFC 9000 §8.1: for any size of the SYN, and however often it comes, the limit holds.
#[test]
fn three_times_what_came_for_any_syn() {
    for len in [1, 30, 60, 100, 300, 700, 1456] {
        let mut bench = Bench::listening(Config::default(), everything());
        let data = vec![b'h'; len];
        bench.syn(mss(1460), &data);
        bench.write(&[b'w'; 20_000]);
        let (mut came, mut went) = (44 + len, total(&bench.answer()));
        for at in [1500, 2500, 9000] {
            went += total(&bench.wait(at));
            assert!(went <= 3 * came, "{went} for {came} by {at}");
            came += 44 + len;
            went += total(&bench.give(bench.made_syn(mss(1460)).data(&data)));
        }
        went += total(&bench.wait(200_000));
        assert!(went <= 3 * came, "{went} for {came}");
    }
}

/// RFC 9000 §8.1: the client's ACK of the SYN-ACK validates its address, and the flight goes on.
#[test]
fn the_ack_of_the_syn_ack_ends_the_limit() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), &[b'h'; 1000]);
    bench.write(&[b'w'; 9000]);
    let first = bytes(&bench.answer()).len();
    bench.at(1010);
    let ack = bench.acking(1 + first as u32).seq(1001);
    let rest = bench.give(ack);
    assert_eq!(first + bytes(&rest).len(), 9000);
    assert!(bench.events().contains(&EventKind::Established));
}

/// RFC 9000 §8.1 without data: the SYN-ACKs of an ordinary SYN keep to it too.
#[test]
fn syn_acks_keep_to_the_limit() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    let first = bench.syn(OptionList::default(), &[]);
    let again = bench.wait(200_000);
    assert_eq!((first[0].packet.len(), again.len()), (44, 1), "88 of 3 * 40 bytes");
}

/// RFC 6298 §5: a SYN-ACK with data that is lost goes again bare and alone after 1 s; its data follow
/// the client's ACK.
#[test]
fn a_lost_syn_ack_with_data_goes_again_bare() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), &[b'h'; 1200]);
    bench.write(&[b'w'; 500]);
    assert_eq!(shown(&bench.answer()), ["1000 S. 0+500 ack 1201"]);
    assert_eq!(bench.wait_shown(2000), ["2000 S. 0+0 ack 1201"]);
    bench.at(2010);
    assert_eq!(bench.reply(bench.made().seq(1201)), ["2010 P. 1+500 ack 1201"]);
}

/// The round trip of a SYN with data that was sent once is the connection's first sample (RFC 6298
/// §2.2); of one that was sent twice nothing is known (§3).
#[test]
fn the_first_round_trip_is_that_of_the_syn() {
    let (mut bench, syn) = Bench::connecting(Config::default(), with_data(1200, IfRefused::Resend));
    assert_eq!(syn.to_string(), "1000 S 0+1200");
    bench.at(1100);
    bench.give(bench.made_syn_ack(1201, mss(1460)));
    assert_eq!(bench.info().smoothed_rtt, Some(Duration::from_millis(100)));
    let (mut bench, _) = Bench::connecting(Config::default(), with_data(1200, IfRefused::Resend));
    assert_eq!(bench.wait_shown(2000), ["2000 S 0+0"]);
    bench.at(2100);
    bench.give(bench.made_syn_ack(1201, mss(1460)));
    assert_ne!(bench.info().smoothed_rtt, Some(Duration::ZERO));
}

/// RFC 7413 §4.2.2: data that were not taken go again at once, or are withdrawn, those too that
/// the SYN had no room for.
#[test]
fn refused_data_go_again_or_are_withdrawn() {
    let (mut bench, _) = Bench::connecting(Config::default(), with_data(1800, IfRefused::Resend));
    bench.at(1100);
    let sent = bench.give(bench.made_syn_ack(1, mss(1460)));
    assert_eq!(bytes(&sent), [b'h'; 1800]);
    let (mut bench, syn) =
        Bench::connecting(Config::default(), with_data(1800, IfRefused::Withdraw));
    assert_eq!(syn.packet.len(), 1500);
    bench.at(1100);
    bench.give(bench.made_syn_ack(1, mss(1460)));
    let events = bench.events();
    assert_eq!(events[..2], [EventKind::SynDataRefused, EventKind::Connected]);
    assert_eq!(bytes(&bench.write(b"anew")), b"anew");
}

/// RFC 7413 §4.2.2: of data that were taken in part the rest goes again.
#[test]
fn data_taken_in_part() {
    let (mut bench, _) = Bench::connecting(Config::default(), with_data(1200, IfRefused::Withdraw));
    bench.at(1100);
    let sent = bench.give(bench.made_syn_ack(401, mss(1460)));
    assert_eq!(shown(&sent), ["1100 P. 401+800 ack 1"]);
    assert_eq!(bench.info().syn_data, SynData::Accepted);
}

/// RFC 7413 §4.1.3.1: the first SYN sent again is bare, with the same sequence number; if that one
/// is answered, the destination is remembered for `black_hole_memory`.
#[test]
fn a_black_hole_is_remembered_for_an_hour() {
    let (mut bench, _) = Bench::connecting(Config::default(), with_data(500, IfRefused::Withdraw));
    assert_eq!(bench.wait_shown(2000), ["2000 S 0+0"]);
    bench.at(2100);
    bench.give(bench.made_syn_ack(1, mss(1460)));
    assert_eq!(bench.endpoint.counters().black_holes, 1);
    bench.events();
    for (port, at, bare) in [(40_001, 3_602_099, true), (40_002, 3_602_100, false)] {
        bench.at(at);
        bench.local.set_port(port);
        let syn = bench.connect(with_data(500, IfRefused::Withdraw));
        assert_eq!(syn.payload().is_empty(), bare, "at {at}");
        let reported = bench.events().contains(&EventKind::SynDataRefused);
        assert_eq!(reported, bare, "the data are withdrawn");
        assert_eq!(bench.info().syn_data == SynData::BlackHole, bare);
    }
}

/// A SYN with data beyond the backlog is answered as an ordinary one, not reset.
#[test]
fn a_syn_with_data_beyond_the_backlog_is_not_reset() {
    let options = ListenOptions { backlog: 1, ..everything() };
    let mut bench = Bench::listening(Config::default(), options);
    bench.give(bench.made_syn(mss(1460)).data(b"one"));
    bench.peer.set_port(40_001);
    let sent = bench.give(bench.made_syn(mss(1460)).data(b"two"));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].segment().acknowledgment(), Some(IRS + 1));
    assert!(!sent[0].segment().flags().has(Flags::RST));
}

/// A flight larger than a segment goes on behind the SYN-ACK in the initial window (RFC 6928 §2),
/// once the address is known: here by a valid cookie's absence, to the budget of a full SYN.
#[test]
fn the_flight_goes_on_behind_the_syn_ack() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), &[b'h'; 1400]);
    bench.write(&[b'w'; 3000]);
    let sent = bench.answer();
    let shape =
        ["1000 S. 0+1456 ack 1401", "1000 . 1457+1460 ack 1401", "1000 P. 2917+84 ack 1401"];
    assert_eq!(shown(&sent), shape);
}
