//! How connections end (RFC 9293 §3.6).

use std::time::Duration;

use tcp::{CloseReason, Config, EventKind, State, StreamError};
use wire::tcp::Flags;

use super::harness::*;

/// RFC 9293 §3.6, case 1: this side closes first, and the peer later: FIN-WAIT-1, FIN-WAIT-2,
/// TIME-WAIT.
#[test]
fn this_side_closes_first() {
    let mut bench = Bench::established();
    bench.at(1020);
    assert_eq!(shown(&bench.shutdown()), ["1020 F. 1+0 ack 1"]);
    assert_eq!(bench.state(), State::FinWait1);
    assert!(bench.give(bench.acking(2)).is_empty());
    assert_eq!(bench.state(), State::FinWait2);
    // Half-closed: the peer may still send (RFC 9293 §3.6).
    bench.at(1030);
    assert_eq!(bench.reply(bench.acking(2).data(b"late")), ["1030 . 2+0 ack 5"]);
    assert_eq!(bench.read(), b"late");
    bench.at(1040);
    let fin = bench.acking(2).seq(5).flags(Flags::FIN);
    assert_eq!(bench.reply(fin), ["1040 . 2+0 ack 6"]);
    assert_eq!(bench.state(), State::TimeWait);
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::Finished)));
}

/// RFC 9293 §3.6, case 2: the peer closes first; this side may go on: CLOSE-WAIT, LAST-ACK.
#[test]
fn the_peer_closes_first() {
    let mut bench = Bench::established();
    bench.at(1020);
    assert_eq!(bench.reply(bench.made().flags(Flags::FIN)), ["1020 . 1+0 ack 2"]);
    assert_eq!(bench.state(), State::CloseWait);
    assert!(bench.events().contains(&EventKind::PeerFinished));
    assert_eq!(bench.endpoint.read(bench.now, bench.id.unwrap(), &mut [0]), Ok(0));
    assert_eq!(shown(&bench.write(b"more")), ["1020 P. 1+4 ack 2"]);
    assert!(bench.give(bench.acking(5).seq(2)).is_empty());
    assert_eq!(shown(&bench.shutdown()), ["1020 F. 5+0 ack 2"]);
    assert_eq!(bench.state(), State::LastAck);
    let wrote = bench.endpoint.write(bench.now, bench.id.unwrap(), b"x");
    assert_eq!(wrote, Err(StreamError::Shutdown));
    assert!(bench.give(bench.acking(6).seq(2)).is_empty());
    assert_eq!(bench.state(), State::Closed);
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::Finished)));
    // No TIME-WAIT: what comes now belongs to nobody.
    assert_eq!(bench.reply(bench.acking(6).seq(2)), ["1020 R 6+0"]);
}

/// RFC 9293 §3.6, case 3, figure 13: both FINs cross: CLOSING, then TIME-WAIT.
#[test]
fn both_close_at_once() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.shutdown();
    assert_eq!(bench.reply(bench.made().flags(Flags::FIN)), ["1020 . 2+0 ack 2"]);
    assert_eq!(bench.state(), State::Closing);
    assert!(bench.give(bench.acking(2).seq(2)).is_empty(), "the FIN was acknowledged");
    assert_eq!(bench.state(), State::TimeWait);
}

/// RFC 9293 §3.10.7.4: a FIN that acknowledges ours goes from FIN-WAIT-1 to TIME-WAIT.
#[test]
fn fin_and_ack_of_fin_in_one_segment() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.shutdown();
    assert_eq!(bench.reply(bench.acking(2).flags(Flags::FIN)), ["1020 . 2+0 ack 2"]);
    assert_eq!(bench.state(), State::TimeWait);
}

/// RFC 9293 §3.10.7.4, eighth: a FIN beyond a gap counts once the gap is filled.
#[test]
fn a_fin_beyond_a_gap_waits() {
    let mut bench = Bench::established();
    bench.at(1020);
    let fin = bench.made().seq(4).flags(Flags::FIN).data(b"def");
    assert_eq!(bench.reply(fin), ["1020 . 1+0 ack 1"]);
    assert_eq!(bench.state(), State::Established);
    assert_eq!(bench.reply(bench.made().data(b"abc")), ["1020 . 1+0 ack 8"]);
    assert_eq!(bench.state(), State::CloseWait);
    assert_eq!(bench.read(), b"abcdef");
}

/// RFC 9293 §3.10.7.4: no byte follows the FIN. The one here is a keep-alive of the garbage kind
/// (RFC 9293 §3.8.4).
#[test]
fn no_byte_follows_the_fin() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.give(bench.made().flags(Flags::FIN).data(b"end"));
    assert_eq!(bench.read(), b"end");
    bench.at(1030);
    assert_eq!(bench.reply(bench.made().seq(4).data(b"?")), ["1030 . 1+0 ack 5"]);
    assert_eq!(bench.read(), b"");
}

/// RFC 6298 §5: a lost FIN is sent again; with SACK no one knows better, so the timeout it is.
#[test]
fn a_lost_fin_is_sent_again() {
    let mut bench = Bench::established();
    bench.at(2000);
    bench.shutdown();
    // SRTT is 10 ms: RTO is 10 ms and the least margin of 200 ms.
    assert_eq!(bench.wait_shown(2700), ["2210 F. 1+0 ack 1", "2630 F. 1+0 ack 1"]);
}

/// FIN-WAIT-2 of a connection that the application has released ends after `fin_wait`; one that it
/// holds does not (RFC 9293 §3.6).
#[test]
fn fin_wait_2_is_for_ever_only_while_somebody_waits() {
    for released in [true, false] {
        let config = Config { fin_wait: Duration::from_secs(5), ..Config::default() };
        let mut bench = Bench::established_with(config, mss(1460));
        bench.at(1020);
        let fin = if released { bench.release() } else { bench.shutdown() };
        assert_eq!(shown(&fin), ["1020 F. 1+0 ack 1"]);
        bench.at(1030);
        bench.give(bench.acking(2));
        assert!(bench.wait(6029).is_empty());
        assert_eq!(bench.state(), State::FinWait2);
        assert!(bench.wait(6030).is_empty());
        bench.events();
        assert_eq!(bench.endpoint.info(bench.id.unwrap()).is_none(), released);
    }
}

/// RFC 1122 §4.2.2.13: data for an application that is gone draw a RST.
#[test]
fn data_after_release_are_reset() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.release();
    assert_eq!(bench.reply(bench.acking(2).data(b"late")), ["1020 R. 2+0 ack 5"]);
    bench.events();
    assert_eq!(bench.endpoint.counters().connections, 0);
}

/// RFC 9293 §3.6.1, SHLD-3: an application that goes with bytes unread has its peer told by a RST, whatever it has
/// still to send and whether the peer has closed.
#[test]
fn release_with_unread_bytes_is_reset() {
    for peer_closed in [false, true] {
        let mut bench = Bench::established();
        bench.at(1020);
        bench.write(b"answer");
        let flags = if peer_closed { Flags::FIN } else { BARE };
        bench.give(bench.acking(7).data(b"request").flags(flags));
        let ack = if peer_closed { 9 } else { 8 };
        assert_eq!(shown(&bench.release()), [format!("1020 R. 7+0 ack {ack}")]);
        assert!(bench.events().contains(&EventKind::Closed(CloseReason::Aborted)));
        assert_eq!(bench.endpoint.counters().connections, 0);
    }
    // Read in part.
    let mut bench = Bench::established();
    bench.at(1020);
    bench.give(bench.made().data(b"request"));
    assert_eq!(bench.endpoint.read(bench.now, bench.id.unwrap(), &mut [0; 6]), Ok(6));
    assert_eq!(shown(&bench.release()), ["1020 R. 1+0 ack 8"]);
}

/// The same in FIN-WAIT-2, and of the data of a SYN.
#[test]
fn release_with_unread_bytes_is_reset_in_every_state() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.shutdown();
    bench.give(bench.acking(2).data(b"late"));
    assert_eq!(bench.state(), State::FinWait2);
    assert_eq!(shown(&bench.release()), ["1020 R. 2+0 ack 5"]);
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), &[b'h'; 500]);
    assert_eq!(bench.state(), State::SynReceived);
    let reset = bench.release();
    assert!(reset[0].segment().flags().has(Flags::RST));
    assert_eq!(reset[0].segment().acknowledgment(), Some(IRS + 501));
}

/// With all bytes read, beyond a gap or after the last ACK, nothing is lost that anybody was promised: no RST.
#[test]
fn release_is_in_order_without_unread_bytes() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.give(bench.made().data(b"request"));
    bench.give(bench.made().seq(9).data(b"beyond a gap"));
    assert_eq!(bench.read(), b"request");
    assert_eq!(shown(&bench.release()), ["1020 F. 1+0 ack 8"]);
    // In TIME-WAIT the connection is over.
    let mut bench = Bench::established();
    bench.at(1020);
    bench.shutdown();
    bench.give(bench.acking(2).data(b"end").flags(Flags::FIN));
    assert_eq!(bench.state(), State::TimeWait);
    assert!(bench.release().is_empty());
}

/// RFC 9293 §3.10.5: ABORT sends a RST and is over at once.
#[test]
fn abort_resets() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.write(b"never acknowledged");
    bench.endpoint.abort(bench.now, bench.id.unwrap());
    assert_eq!(shown(&bench.sent()), ["1020 R. 19+0 ack 1"]);
    assert_eq!(bench.state(), State::Closed);
    assert_eq!(bench.endpoint.next_timeout().map(|_| bench.wait(10_000).len()), Some(0));
}

/// RFC 9293 §3.10.4: CLOSE in SYN-SENT waits for the handshake, and what was written goes first.
#[test]
fn shutdown_in_syn_sent_sends_what_was_written() {
    let (mut bench, _) = Bench::connecting(Config::default(), Default::default());
    bench.write(b"request");
    assert!(bench.shutdown().is_empty());
    bench.at(1100);
    let sent = bench.give(bench.made_syn_ack(1, mss(1460)));
    assert_eq!(shown(&sent), ["1100 FP. 1+7 ack 1"]);
    assert_eq!(sent[0].payload(), b"request");
    assert_eq!(bench.state(), State::FinWait1);
}

/// RFC 9293 §3.10.4: CLOSE in SYN-RECEIVED becomes a FIN once our SYN is acknowledged.
#[test]
fn shutdown_in_syn_received_waits_for_the_ack() {
    let mut bench = Bench::listening(Config::default(), everything());
    bench.syn(mss(1460), &[b'h'; 500]);
    bench.write(b"bye");
    assert!(bench.shutdown().is_empty());
    let sent = shown(&bench.answer());
    assert_eq!((&*sent[0], bench.state()), ("1000 S. 0+3 ack 501", State::SynReceived));
    bench.at(1010);
    let fin = bench.reply(bench.acking(4).seq(501));
    let all: Vec<_> = sent.into_iter().skip(1).chain(fin).collect();
    assert_eq!(all.len(), 1);
    assert!(all[0].ends_with(" F. 4+0 ack 501"), "{all:?}");
    assert_eq!(bench.state(), State::FinWait1);
    bench.give(bench.acking(5).seq(501));
    assert_eq!(bench.state(), State::FinWait2);
}

/// RFC 9293 §3.8.3: after so many timeouts in a row the connection is given up.
#[test]
fn a_peer_that_never_answers_is_given_up() {
    let config = Config { retries: 3, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(2000);
    bench.write(b"hello?");
    let sent = bench.wait_shown(60_000);
    assert_eq!(sent, ["2210 P. 1+6 ack 1", "2630 P. 1+6 ack 1", "3470 P. 1+6 ack 1"]);
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::TimedOut)));
}
