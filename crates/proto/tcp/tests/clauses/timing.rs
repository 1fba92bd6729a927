//! When acknowledgments, keep-alives and waiting data go.

use std::time::Duration;

use tcp::{CloseReason, Config, ConnectOptions, EventKind, KeepAlive, State};
use wire::tcp::Flags;

use super::harness::*;

/// RFC 9293 §3.8.6.3, RFC 5681 §4.2: an ACK waits 40 ms for a second full segment.
#[test]
fn acks_are_delayed_but_for_every_second_segment() {
    let mut bench = Bench::established();
    bench.at(1020);
    let next = bench.past_quick_acks(1460);
    let data = [1; 1460];
    bench.at(1030);
    assert!(bench.give(bench.made().seq(next).data(&data)).is_empty());
    let all = next + 1460;
    assert_eq!(bench.wait_shown(1100), [format!("1070 . 1+0 ack {all}")]);
    // The second within the delay.
    assert!(bench.give(bench.made().seq(all).data(&data)).is_empty());
    bench.at(1110);
    let ack = bench.reply(bench.made().seq(all + 1460).data(&data));
    assert_eq!(ack, [format!("1110 . 1+0 ack {}", all + 2920)]);
    assert!(bench.wait(2000).is_empty());
}

/// RFC 5681 §4.2: the delay is another one if so configured; the ACK rides on data meanwhile.
#[test]
fn an_ack_rides_on_data() {
    let config = Config { delayed_ack: Duration::from_millis(100), ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    let next = bench.past_quick_acks(10);
    assert!(bench.give(bench.made().seq(next).data(b"x")).is_empty());
    bench.at(1119);
    assert_eq!(shown(&bench.write(b"y")), [format!("1119 P. 1+1 ack {}", next + 1)]);
    bench.give(bench.acking(2).seq(next + 1));
    assert!(bench.wait(2000).is_empty());
}

/// RFC 5681 §4.2: beyond a gap, or filling one, is acknowledged at once.
#[test]
fn disorder_is_acknowledged_at_once() {
    let mut bench = Bench::established();
    bench.at(1020);
    let next = bench.past_quick_acks(10);
    let beyond = bench.made().seq(next + 1).data(b"b");
    assert_eq!(bench.reply(beyond), [format!("1020 . 1+0 ack {next}")]);
    let filling = bench.made().seq(next).data(b"a");
    assert_eq!(bench.reply(filling), [format!("1020 . 1+0 ack {}", next + 2)]);
}

fn keeping() -> Bench {
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 3 };
    Bench::established_with(Config { keep_alive: Some(keep_alive), ..Config::default() }, mss(1460))
}

/// RFC 9293 §3.8.4: after the idle time a byte that the peer has, and the end after so many.
#[test]
fn keep_alive_asks_and_gives_up() {
    let mut bench = keeping();
    let probes = ["11010 . 0+0 ack 1", "13010 . 0+0 ack 1", "15010 . 0+0 ack 1"];
    assert_eq!(bench.wait_shown(17_009), probes);
    assert_eq!(bench.state(), State::Established);
    assert!(bench.wait(17_010).is_empty());
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::TimedOut)));
}

/// RFC 9293 §3.8.4: any answer starts the idle time again, and so does any data.
#[test]
fn keep_alive_is_content_with_an_answer() {
    let mut bench = keeping();
    assert_eq!(bench.wait_shown(13_500).len(), 2);
    bench.give(bench.made());
    assert_eq!(bench.wait_shown(23_500), ["23500 . 0+0 ack 1"]);
    bench.give(bench.made().data(b"x"));
    assert!(bench.wait(33_499).is_empty());
    assert_eq!(bench.wait_shown(33_500), ["33500 . 0+0 ack 2"]);
}

/// RFC 9293 §3.8.4: off unless asked for. The peer's probes are answered.
#[test]
fn without_keep_alive_silence_lasts() {
    let mut bench = Bench::established();
    assert!(bench.wait(100_000_000).is_empty());
    let probe = bench.made().seq(0);
    assert_eq!(bench.reply(probe), ["100000000 . 1+0 ack 1"]);
}

/// RFC 9293 §3.8.3: with data under way their timer speaks, and keep-alives are silent. R2 is at least
/// 100 s with 8 retries and the least timeout.
#[test]
fn with_data_under_way_a_peer_is_given_up_after_r2() {
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(8), interval: Duration::from_secs(2), probes: 3 };
    let config = Config { keep_alive: Some(keep_alive), retries: 8, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    bench.write(b"x");
    bench.wait(101_020);
    assert_eq!(bench.state(), State::Established);
    bench.wait(120_000);
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::TimedOut)));
}

/// RFC 9293 §3.7.4: with Nagle's algorithm a short segment waits while anything is unacknowledged;
/// full ones and the FIN do not.
#[test]
fn nagle_holds_short_segments() {
    let config = Config { nagle: true, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1000));
    bench.at(1020);
    assert_eq!(shown(&bench.write(b"one")), ["1020 P. 1+3 ack 1"]);
    assert!(bench.write(b"two").is_empty());
    assert_eq!(shown(&bench.write(&[0; 1500])), ["1020 . 4+1000 ack 1"]);
    bench.at(1030);
    assert_eq!(bench.reply(bench.acking(1004)), ["1030 P. 1004+503 ack 1"]);
    assert!(bench.write(b"three").is_empty());
    assert_eq!(shown(&bench.shutdown()), ["1030 FP. 1507+5 ack 1"]);
}

/// Nagle's algorithm holds no retransmissions: RTO is 10 ms and the least margin of 200 ms.
#[test]
fn nagle_does_not_hold_retransmissions() {
    let config = Config { nagle: true, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    assert_eq!(bench.write(b"one").len(), 1);
    assert!(bench.write(b"two").is_empty());
    assert_eq!(bench.wait_shown(1230), ["1230 . 1+3 ack 1"]);
}

/// RFC 9293 §3.7.4: off by default.
#[test]
fn without_nagle_nothing_waits() {
    let mut bench = Bench::established();
    bench.at(1020);
    assert_eq!(bench.write(b"one").len(), 1);
    assert_eq!(bench.write(b"two").len(), 1);
}

/// A client whose SYN with data is answered by a SYN-ACK with `data` at 1100 ms.
fn answered(hold: u64, data: &[u8]) -> (Bench, Vec<Sent>) {
    let options = ConnectOptions {
        syn_data: vec![1; 500],
        hold_ack: Duration::from_millis(hold),
        ..ConnectOptions::default()
    };
    let (mut bench, _) = Bench::connecting(Config::default(), options);
    bench.at(1100);
    let sent = bench.give(bench.made_syn_ack(501, mss(1460)).data(data));
    (bench, sent)
}

/// The bare ACK of a SYN-ACK with data waits `hold_ack` for the application's flight.
#[test]
fn the_ack_of_a_syn_ack_with_data_is_held() {
    for hold in [25, 60] {
        let (mut bench, sent) = answered(hold, &[2; 1400]);
        assert!(sent.is_empty());
        let at = 1100 + hold;
        assert_eq!(bench.wait_shown(3000), [format!("{at} . 501+0 ack 1401")]);
    }
    let (mut bench, sent) = answered(25, &[2; 1400]);
    assert!(sent.is_empty());
    bench.at(1124);
    assert_eq!(shown(&bench.write(b"finished")), ["1124 P. 501+8 ack 1401"]);
    bench.give(bench.acking(509).seq(1401));
    assert!(bench.wait(3000).is_empty());
}

/// A second full segment behind the SYN-ACK ends the wait (RFC 5681 §4.2); a short one does not.
#[test]
fn a_second_full_segment_ends_the_hold() {
    let (mut bench, _) = answered(25, &[2; 1400]);
    bench.at(1105);
    assert!(bench.give(bench.acking(501).seq(1401).data(&[3; 300])).is_empty());
    let full = bench.acking(501).seq(1701).data(&[4; 1460]);
    assert_eq!(bench.reply(full), ["1105 . 501+0 ack 3161"]);
}

/// A SYN-ACK without data is acknowledged at once (RFC 9293 §3.10.7.3), and one with a FIN too.
#[test]
fn the_ack_of_a_bare_syn_ack_is_not_held() {
    let (_, sent) = answered(25, &[]);
    assert_eq!(shown(&sent), ["1100 . 501+0 ack 1"]);
    let (mut bench, _) = Bench::connecting(Config::default(), ConnectOptions::default());
    bench.at(1100);
    let fin = bench.made_syn_ack(1, mss(1460)).flags(Flags::SYN.with(Flags::FIN)).data(b"bye");
    assert_eq!(bench.reply(fin), ["1100 . 1+0 ack 5"]);
    assert_eq!((bench.read(), bench.state()), (b"bye".to_vec(), State::CloseWait));
}
