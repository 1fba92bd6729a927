//! Options: MSS, window scale, timestamps with PAWS, selective acknowledgments.

use tcp::{Config, State};
use wire::tcp::OptionList;

use super::harness::*;

fn scaled(shift: u8) -> OptionList<'static> {
    OptionList { window_scale: Some(shift), ..mss(1460) }
}

fn with_timestamps() -> OptionList<'static> {
    OptionList { timestamps: Some((5000, 0)), ..mss(1460) }
}

/// Payload lengths of what goes out at once for 10 kB.
fn lengths(bench: &mut Bench) -> Vec<usize> {
    lengths_of(bench.write(&[7; 10_000]))
}

fn lengths_of(sent: Vec<Sent>) -> Vec<usize> {
    sent.iter().map(|sent| sent.payload().len()).collect()
}

/// RFC 9293 §3.7.1: without an MSS option 536 bytes (IPv4) or 1220 (IPv6).
#[test]
fn without_an_mss_option_segments_are_small() {
    let mut bench = Bench::established_with(Config::default(), OptionList::default());
    assert_eq!(lengths(&mut bench)[0], 536);
    let mut bench = Bench::listening(Config::default(), Default::default());
    (bench.local, bench.peer) = (address("[2001:db8::1]:443"), address("[2001:db8::2]:40000"));
    bench.listener = bench.endpoint.listen(bench.local, Default::default()).ok();
    bench.shake_hands(OptionList::default());
    assert_eq!(lengths(&mut bench)[0], 1220);
}

/// RFC 9293 §3.7.1, RFC 6691 §2: the least of the peer's MSS and the link, less the options.
#[test]
fn segments_keep_to_the_peers_mss_and_the_link() {
    let cases = [(1460, false, 1460), (9000, false, 1460), (1000, false, 1000)];
    for (size, stamped, expected) in cases.into_iter().chain([(1460, true, 1448), (900, true, 888)])
    {
        let options = if stamped { with_timestamps() } else { OptionList::default() };
        let options = OptionList { mss: Some(size), ..options };
        let mut bench = Bench::established_with(Config::default(), options);
        assert_eq!(lengths(&mut bench)[0], expected, "MSS {size}");
        assert_eq!(bench.info().segment_size, expected);
    }
}

/// RFC 6691 §2 for a SYN-ACK with data: its options count too.
#[test]
fn a_syn_ack_keeps_to_the_peers_mss_with_its_options() {
    let mut bench = Bench::listening(Config::default(), everything());
    let options = OptionList {
        mss: Some(1452),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        ..OptionList::default()
    };
    bench.syn(options, &[1; 1200]);
    bench.write(&[2; 3000]);
    assert_eq!(bench.answer()[0].packet.len(), 1492);
}

/// RFC 7323 §2.2, §3.2, RFC 2018 §2: a SYN-ACK has only what the SYN offered, and an option that
/// one side lacks is used by none.
#[test]
fn only_what_both_offer_is_used() {
    let mut bench = Bench::listening(Config::default(), Default::default());
    let sent = bench.syn(mss(1460), &[]);
    let options = sent[0].options();
    assert_eq!(options, OptionList { mss: Some(1460), ..OptionList::default() });
    let config =
        Config { sack: false, timestamps: false, window_scale: false, ..Config::default() };
    let mut bench = Bench::listening(config, Default::default());
    let all = OptionList { sack_permitted: true, timestamps: Some((1, 0)), ..scaled(7) };
    let sent = bench.syn(all, &[]);
    assert_eq!(sent[0].options(), OptionList { mss: Some(1460), ..OptionList::default() });
}

/// RFC 7323 §2.2: the windows of SYN and SYN-ACK are not scaled; without the peer's option no
/// window is.
#[test]
fn no_scale_without_the_peers() {
    let mut bench = Bench::established();
    bench.at(1020);
    let ack = bench.give(bench.made().data(b"x")).remove(0);
    assert_eq!((ack.window(), ack.options().window_scale), (65_534, None));
    // The peer's window is what it says: 2000 bytes, in one segment and a short one.
    let ack = bench.made().seq(2).window(2000);
    bench.give(ack);
    let sent: usize = lengths(&mut bench).iter().sum();
    assert_eq!(sent, 1460, "a short one would be silly");
}

/// RFC 7323 §2.3: both scale; a shift above 14 counts as 14. A window of 1 is then 16384 bytes: 11
/// segments, and a rest that is not worth sending.
#[test]
fn a_shift_above_14_counts_as_14() {
    for (shift, segments) in [(12, 2), (13, 5), (14, 11), (15, 11), (255, 11)] {
        let mut bench = Bench::established_with(Config::default(), scaled(shift));
        bench.at(1020);
        // Slow start: twenty segments may go.
        assert_eq!(bench.write(&[7; 14_600]).len(), 10);
        bench.give(bench.acking(14_601).window(1));
        let sent = lengths_of(bench.write(&[7; 40_000]));
        assert_eq!(sent, vec![1460; segments], "shift {shift}");
    }
}

/// RFC 7323 §2.3: our own shift suits the receive buffer, and windows are told by it.
#[test]
fn our_shift_suits_the_buffer() {
    let first = Config::default().receive_initial;
    for (receive_buffer, shift) in [(60_000, 0), (65_535, 0), (65_536, 1), (6 << 20, 7)] {
        let config = Config { receive_buffer, ..Config::default() };
        let mut bench = Bench::listening(config, Default::default());
        let sent = bench.syn(scaled(0), &[]);
        assert_eq!(sent[0].options().window_scale, Some(shift));
        assert_eq!(sent[0].window() as usize, receive_buffer.min(65_535));
        bench.at(1010);
        bench.give(bench.made());
        let ack = bench.give(bench.made().data(b"x")).remove(0);
        let reported = (ack.window() as usize) << shift;
        // Not told with less than a segment's gain; in units of the shift.
        let most = receive_buffer.min(first);
        assert!(reported < most && reported + (1 << shift) >= most - 1, "{reported}");
    }
}

/// RFC 7323 §3.2, §4.1: every segment has timestamps, a tick is 1 ms, and TS.Recent is echoed.
#[test]
fn timestamps_tick_and_echo() {
    let mut bench = Bench::established_with(Config::default(), with_timestamps());
    let (_, first) = bench.clock.unwrap();
    bench.at(1060);
    let sent = bench.write(b"x");
    assert_eq!(sent[0].options().timestamps, Some((first + 60, 5000)));
    bench.clock = Some((5070, first + 60));
    bench.at(1075);
    let ack = bench.give(bench.acking(2).data(b"y"));
    assert_eq!(ack[0].options().timestamps, Some((first + 75, 5070)));
}

/// RFC 7323 §4.3: what arrives beyond the last ACK does not move TS.Recent, so that the sender
/// measures what was missing.
#[test]
fn the_oldest_unacknowledged_timestamp_is_echoed() {
    let mut bench = Bench::established_with(Config::default(), with_timestamps());
    bench.at(1020);
    bench.clock = bench.clock.map(|(_, echo)| (5050, echo));
    let ack = bench.give(bench.made().seq(2).data(b"b"));
    assert_eq!(ack[0].options().timestamps.unwrap().1, 5000, "beyond a gap");
    bench.clock = bench.clock.map(|(_, echo)| (5060, echo));
    let ack = bench.give(bench.made().data(b"a"));
    assert_eq!(ack[0].options().timestamps.unwrap().1, 5060);
}

/// RFC 7323 §5.3, R1: a segment with an older timestamp is answered and dropped, though its place
/// is in the window; a RST is not judged so.
#[test]
fn paws_drops_what_is_old() {
    let mut bench = Bench::established_with(Config::default(), with_timestamps());
    bench.at(1020);
    let (_, echo) = bench.clock.unwrap();
    let old = bench.made().options(timestamps(4999, echo));
    assert_eq!(bench.reply(old.clone().data(b"OLD")), ["1020 . 1+0 ack 1"]);
    assert_eq!(bench.read(), b"");
    // The clock wraps around: so much ahead is newer.
    let ahead = bench.made().options(timestamps(5000 + (1 << 31) - 1, echo)).data(b"new");
    bench.give(ahead);
    assert_eq!(bench.read(), b"new");
    let mut bench = Bench::established_with(Config::default(), with_timestamps());
    bench.give(old.flags(wire::tcp::Flags::RST));
    assert_eq!(bench.state(), State::Closed);
}

/// RFC 7323 §5.5: after 24 days of silence TS.Recent is no judge any more.
#[test]
fn paws_forgets_after_24_days() {
    let day = 24 * 3600 * 1000;
    for (silence, taken) in [(24 * day - 1, false), (24 * day, true)] {
        let mut bench = Bench::established_with(Config::default(), with_timestamps());
        // TS.Recent is that of the third segment.
        bench.at(1010 + silence);
        let old = bench.made().options(timestamps(4000, 0)).data(b"x");
        bench.give(old);
        assert_eq!(bench.read().len(), usize::from(taken), "after {silence} ms");
    }
}

/// RFC 2018 §4, RFC 2883 §4: the block that came last first, others behind it; a duplicate before all.
#[test]
fn selective_acknowledgments() {
    let options = OptionList { sack_permitted: true, ..mss(1460) };
    let mut bench = Bench::established_with(Config::default(), options);
    bench.at(1020);
    let mut blocks = |seq, data: &[u8]| {
        let sent = bench.give(bench.made().seq(seq).data(data));
        assert_eq!(sent.len(), 1, "at once: RFC 5681 §4.2");
        let relative = |(left, right): &(u32, u32)| (left - IRS, right - IRS);
        sent[0].options().sack.as_slice().iter().map(relative).collect::<Vec<_>>()
    };
    assert_eq!(blocks(11, b"0123456789"), [(11, 21)]);
    assert_eq!(blocks(31, b"0123456789"), [(31, 41), (11, 21)]);
    assert_eq!(blocks(11, b"0123456789"), [(11, 21), (11, 21), (31, 41)]);
    assert_eq!(blocks(1, b"0123456789"), [(31, 41)]);
    assert_eq!(blocks(1, b"0123456789"), [(1, 11), (31, 41)]);
    assert_eq!(blocks(21, b"0123456789"), []);
}

/// A receiver with SACK and the bytes 1 to 1000 and 2001 to 3000.
fn with_a_gap() -> Bench {
    let options = OptionList { sack_permitted: true, ..mss(1460) };
    let mut bench = Bench::established_with(Config::default(), options);
    bench.at(1020);
    bench.give(bench.made().data(&[1; 1000]));
    bench.give(bench.made().seq(2001).data(&[1; 1000]));
    bench
}

/// RFC 2883 §4: the first repeated run of a segment is told first, and then the block that holds it.
#[test]
fn partly_repeated_segments_are_told() {
    for (seq, len, ack, blocks) in [
        // Wholly below what is acknowledged, and reaching beyond it.
        (501, 500, 1001, vec![(501, 1001), (2001, 3001)]),
        (501, 700, 1201, vec![(501, 1001), (2001, 3001)]),
        // Reaching into the block from below, out of it, and on both sides.
        (1501, 1000, 1001, vec![(2001, 2501), (1501, 3001)]),
        (2501, 1000, 1001, vec![(2501, 3001), (2001, 3501)]),
        (1501, 2000, 1001, vec![(2001, 3001), (1501, 3501)]),
        // Filling the gap and repeating a part of the block.
        (1001, 1500, 3001, vec![(2001, 2501)]),
        // Two runs: only the first is told.
        (501, 2000, 3001, vec![(501, 1001)]),
    ] {
        let mut bench = with_a_gap();
        let data = vec![1; len];
        let sent = bench.give(bench.made().seq(seq).data(&data));
        assert_eq!(sent.len(), 1, "{seq}+{len} is told at once");
        assert_eq!(sent[0].segment().acknowledgment(), Some(IRS + ack));
        let got = sent[0].options().sack;
        let got: Vec<_> =
            got.as_slice().iter().map(|(left, right)| (left - IRS, right - IRS)).collect();
        assert_eq!(got, blocks, "{seq}+{len}");
    }
}

/// RFC 2883 §4: a repeated run is told once.
#[test]
fn a_repeated_run_is_told_once() {
    let mut bench = with_a_gap();
    bench.give(bench.made().seq(1501).data(&[1; 1000]));
    let sent = bench.give(bench.made().seq(4001).data(&[1; 10]));
    let first = sent[0].options().sack.as_slice()[0];
    assert_eq!(first, (IRS + 4001, IRS + 4011));
}
