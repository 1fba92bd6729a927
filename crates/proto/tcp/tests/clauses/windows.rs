//! Windows: zero, small, and told in time (RFC 9293 §3.8.6).

use tcp::{CloseReason, Config, EventKind, Hold, State, StreamError};

use super::harness::*;

/// Established, with 100 bytes that the peer's closed window holds back since 1020 ms.
fn shut() -> Bench {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.give(bench.made().window(0));
    assert!(bench.write(&[7; 100]).is_empty());
    bench
}

/// RFC 9293 §3.8.6.1: a closed window is probed after the retransmission timeout (210 ms) and then
/// at twice the distance each time, 60 s at most, for as long as the peer answers.
#[test]
fn a_closed_window_is_probed_for_ever() {
    let mut bench = shut();
    let (mut at, mut wait) = (1020, 210);
    for _ in 0..40 {
        at += wait;
        assert!(bench.wait(at - 1).is_empty(), "too early for {at}");
        assert_eq!(bench.wait_shown(at), [format!("{at} . 0+0 ack 1")]);
        assert!(bench.give(bench.made().window(0)).is_empty());
        wait = (2 * wait).min(60_000);
    }
    assert_eq!(bench.state(), State::Established);
    // It opens, and at once the data go.
    let open = bench.made().window(1000);
    assert_eq!(bench.reply(open), [format!("{at} P. 1+100 ack 1")]);
}

/// RFC 9293 §3.8.6.1: the peer's update may come without a probe; a window that closes again is
/// probed from the start.
#[test]
fn a_window_opens_and_closes_again() {
    let mut bench = shut();
    assert_eq!(bench.wait(1700).len(), 2);
    assert_eq!(bench.reply(bench.made().window(60)), ["1700 . 1+60 ack 1"]);
    bench.at(1710);
    assert!(bench.give(bench.acking(61).window(0)).is_empty());
    let rto = bench.info().rto.as_millis() as u64;
    assert_eq!(bench.wait_shown(1710 + rto), [format!("{} . 60+0 ack 1", 1710 + rto)]);
}

/// RFC 1122 §4.2.2.17: only silence ends the probing.
#[test]
fn an_unanswered_probe_is_not_for_ever() {
    let config = Config { retries: 3, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    bench.give(bench.made().window(0));
    bench.write(&[7; 100]);
    assert_eq!(bench.wait(100_000).len(), 3);
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::TimedOut)));
}

/// RFC 9293 §3.8.6: the peer takes back its window: what is in flight is sent again later.
#[test]
fn a_window_may_shrink_under_way() {
    let mut bench = Bench::established();
    bench.at(1020);
    assert_eq!(bench.write(&[7; 5000]).len(), 4);
    bench.at(1030);
    assert!(bench.give(bench.acking(1461).window(0)).is_empty());
    assert_eq!(bench.state(), State::Established);
    let sent = bench.wait_shown(10_000);
    assert!(sent.len() < 8 && !sent.is_empty(), "{sent:?}");
    let open = bench.give(bench.acking(1461).window(60_000));
    assert_eq!(open[0].segment().sequence(), bench.iss.wrapping_add(1461));
}

/// RFC 9293 §3.8.6.2.1: no short segment for a window a little open while more is on its way; half
/// of the largest window seen is worth it.
#[test]
fn the_sender_is_not_silly() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    let syn = bench.made_syn(mss(1460)).window(2500);
    let mut sent = bench.give(syn);
    bench.learn(&mut sent);
    bench.at(1010);
    bench.give(bench.made().window(2500));
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    // Segments are half of the largest window.
    assert_eq!(shown(&bench.write(&[7; 5000])), ["1010 . 1+1250 ack 1", "1010 . 1251+1250 ack 1"]);
    // 1249 are left, and then half.
    assert!(bench.give(bench.acking(1251).window(2499)).is_empty());
    assert_eq!(bench.reply(bench.acking(1251).window(2500)), ["1010 . 2501+1250 ack 1"]);
}

/// No segment is larger than half of the largest window that the peer has told, so that it can always tell room for
/// one more: a Linux receiver with a buffer of one segment else tells a closed window for good. A window of a default
/// MSS or less is used whole.
#[test]
fn segments_are_half_of_the_largest_window() {
    for (window, segments) in
        [(2304, vec![1152, 1152]), (1000, vec![500, 500]), (536, vec![536]), (100, vec![100])]
    {
        let mut bench = Bench::listening(Config::default(), Default::default());
        let syn = bench.made_syn(mss(1460)).window(window);
        let mut sent = bench.give(syn);
        bench.learn(&mut sent);
        bench.at(1010);
        bench.give(bench.made().window(window));
        bench.id = bench.endpoint.accept(bench.listener.unwrap());
        let lens: Vec<_> = bench.write(&[7; 5000]).iter().map(|one| one.payload().len()).collect();
        assert_eq!(lens, segments, "window {window}");
        assert_eq!(bench.info().segment_size, segments[0]);
    }
}

/// A window that grows has segments grow with it, up to the MSS.
#[test]
fn segments_grow_with_the_largest_window() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    let syn = bench.made_syn(mss(1460)).window(1000);
    let mut sent = bench.give(syn);
    bench.learn(&mut sent);
    bench.at(1010);
    bench.give(bench.made().window(1000));
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    assert_eq!(bench.write(&[7; 12_000]).len(), 2);
    let lens = |sent: Vec<Sent>| sent.iter().map(|one| one.payload().len()).collect::<Vec<_>>();
    assert_eq!(lens(bench.give(bench.acking(1001).window(2000))), [1000, 1000]);
    assert_eq!(lens(bench.give(bench.acking(3001).window(6000))), [1460; 4]);
    // A smaller window makes them no smaller again.
    assert_eq!(lens(bench.give(bench.acking(8841).window(160))), [160]);
}

/// RFC 9293 §3.8.6: what goes with a SYN-ACK fits the window that the SYN told.
#[test]
fn a_syn_ack_s_data_fit_the_window_of_the_syn() {
    let mut bench = Bench::listening(Config::default(), everything());
    let syn = bench.made_syn(mss(1460)).window(300).data(&[7; 1000]);
    bench.give(syn);
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    bench.write(&[7; 900]);
    assert_eq!(shown(&bench.answer()), ["1000 S. 0+300 ack 1001"]);
}

/// RFC 9293 §3.8.6.2.2: the receiver tells of no room until it is worth it, and its right edge
/// never goes back.
#[test]
fn the_receiver_is_not_silly() {
    let config = Config { receive_buffer: 8000, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    let mut edge = 0;
    for at in 0..8 {
        let ack = bench.give(bench.made().seq(1 + 1000 * at).data(&[7; 1000])).remove(0);
        let right = 1000 * (at + 1) + ack.window();
        assert!(right >= edge, "the edge went back from {edge} to {right}");
        edge = right;
    }
    assert_eq!(edge, 8000);
    // Full: what comes is refused.
    assert_eq!(bench.reply(bench.made().seq(8001).data(b"x")), ["1020 . 1+0 ack 8001"]);
    // 500 bytes of room, 1000, …: nothing is told below two segments.
    let mut freed = 0;
    let mut buffer = [0; 500];
    while freed < 8000 {
        assert_eq!(bench.endpoint.read(bench.now, bench.id.unwrap(), &mut buffer), Ok(500));
        freed += 500;
        if let [update] = &bench.sent()[..] {
            assert_eq!((freed, update.window()), (3000, 3000), "two segments are 2920");
            break;
        }
    }
    assert_eq!(freed, 3000);
    // The byte that was refused is taken now.
    bench.give(bench.made().seq(8001).data(b"x"));
    assert!(bench.read().ends_with(b"x"));
}

/// RFC 9293 §3.10.7.4: the window of an old segment does not count (SND.WL1, SND.WL2).
#[test]
fn an_old_window_is_not_taken() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.give(bench.made().data(b"abc").window(60_000));
    bench.give(bench.made().seq(4).window(50_000));
    // From before, and late: a window of nothing.
    bench.give(bench.made().data(b"abc").window(0));
    assert_eq!(bench.write(&[7; 100]).len(), 1);
}

/// What holds back what was written, or who would write: the peer's window (RFC 9293 §3.8.6), the congestion window
/// (RFC 5681), the send buffer.
#[test]
fn a_connection_says_what_holds_its_data_back() {
    let of = |bench: &Bench| (bench.info().hold, bench.info().unsent);
    let mut bench = shut();
    assert_eq!(of(&bench), (Some(Hold::PeerWindow), 100));
    assert_eq!(bench.give(bench.made().window(1000)).len(), 1);
    assert_eq!(of(&bench), (None, 0));
    // RFC 6928: ten segments go at first.
    let mut bench = Bench::established();
    bench.at(1020);
    bench.write(&[7; 14_600]);
    assert_eq!(of(&bench), (None, 0));
    assert!(bench.write(&[7; 1000]).is_empty());
    assert_eq!(of(&bench), (Some(Hold::CongestionWindow), 1000));
    assert_eq!(bench.give(bench.acking(1461)).len(), 1);
    assert_eq!(of(&bench), (None, 0));
    let config = Config { send_buffer: 8000, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    bench.write(&[7; 8000]);
    assert_eq!(of(&bench), (None, 0));
    let wrote = bench.endpoint.write(bench.now, bench.id.unwrap(), b"x");
    assert_eq!(wrote, Err(StreamError::WouldBlock));
    assert_eq!(of(&bench), (Some(Hold::SendBuffer), 0));
    bench.give(bench.acking(8001));
    assert_eq!(of(&bench), (None, 0));
}
