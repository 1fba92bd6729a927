//! What the device and the path make of packets: super-segments, path MTU, IPv6.

use tcp::*;
use units::SeqNumber;
use wire::checksum::Sum;
use wire::tcp::{OptionList, PROTOCOL};

use super::harness::*;

fn v6(config: Config) -> Bench {
    let mut bench = Bench::new(config);
    (bench.local, bench.peer) = (address("[2001:db8::1]:443"), address("[2001:db8::2]:40000"));
    bench.listener = bench.endpoint.listen(bench.local, ListenOptions::default()).ok();
    bench
}

/// A super-segment says into what it is to be cut, and its checksum field holds the sum of the
/// pseudo-header alone.
#[test]
fn a_super_segment_leaves_cutting_and_checksum_to_the_device() {
    let config = || Config { max_super_segment: 65_535, ..Config::default() };
    for (mut bench, ip, size) in
        [(Bench::listening(config(), Default::default()), 20, 1460), (v6(config()), 40, 1440)]
    {
        bench.shake_hands(mss(size));
        bench.at(1020);
        let sent = bench.write(&[7; 100_000]);
        // Ten segments are the initial window (RFC 6928 §2).
        assert_eq!(sent.len(), 1);
        let (packet, transmit) = (&sent[0].packet, sent[0].transmit);
        assert_eq!(sent[0].payload().len(), 10 * usize::from(size));
        assert_eq!(transmit.segment_size.map(u16::from), Some(size));
        assert_eq!((transmit.checksum_partial, transmit.header_len), (true, ip + 20));
        assert_eq!(transmit.len, packet.len());
        let len = (packet.len() - ip) as u32;
        let sum =
            Sum::new().plus_pseudo_header(transmit.source, transmit.destination, PROTOCOL, len);
        assert_eq!(sent[0].segment().checksum(), !sum.finish());
    }
}

/// Super-segments hold whole segments but the last, and no more than the device takes; what fits
/// into a segment is an ordinary one with its whole checksum.
#[test]
fn super_segments_hold_whole_segments() {
    for (limit, sizes) in
        [(65_535, vec![14_600]), (7000, vec![5840, 5840, 2920]), (1500, vec![1460; 10])]
    {
        let config = Config { max_super_segment: limit, ..Config::default() };
        let mut bench = Bench::established_with(config, mss(1460));
        bench.at(1020);
        let sent = bench.write(&[7; 14_600]);
        let lens: Vec<_> = sent.iter().map(|one| one.payload().len()).collect();
        assert_eq!(lens, sizes, "limit {limit}");
        for one in &sent {
            let several = one.payload().len() > 1460;
            assert_eq!(one.transmit.checksum_partial, several);
            assert_eq!(one.transmit.segment_size.is_some(), several);
        }
    }
}

/// The largest super-segment is the largest multiple of a segment that an IP packet holds.
#[test]
fn the_largest_super_segment() {
    let config = Config { max_super_segment: usize::MAX, ..Config::default() };
    let options = OptionList { window_scale: Some(7), ..mss(1460) };
    let mut bench = Bench::established_with(config, options);
    let (mut acked, mut largest) = (1, 0);
    for round in 0..8 {
        bench.at(1020 + 10 * round);
        let _ = bench.endpoint.write(bench.now, bench.id.unwrap(), &vec![7; 1 << 20]);
        let mut sent = bench.sent();
        sent.extend(bench.give(bench.acking(acked)));
        let lens = sent.iter().map(|one| one.payload().len());
        largest = largest.max(lens.clone().max().unwrap_or(0));
        acked += lens.sum::<usize>() as u32;
    }
    assert_eq!(largest, (65_535 - 40) / 1460 * 1460);
}

fn too_big(bench: &Bench, sequence: u32, mtu: u16) -> PathMtu {
    let sequence = SeqNumber(bench.iss.wrapping_add(sequence));
    PathMtu { local: bench.local, remote: bench.peer, sequence, mtu }
}

/// RFC 1191 §6.4: what is in flight goes again in smaller segments, and at once.
#[test]
fn a_smaller_path_mtu_cuts_what_is_in_flight_again() {
    let mut bench = Bench::established();
    bench.at(1020);
    assert_eq!(bench.write(&[7; 2920]).len(), 2);
    bench.at(1030);
    let reported = too_big(&bench, 1, 1040);
    bench.endpoint.set_path_mtu(bench.now, reported).unwrap();
    let sent = bench.sent();
    let shape = ["1030 . 1+1000 ack 1", "1030 . 1001+1000 ack 1", "1030 P. 2001+920 ack 1"];
    assert_eq!(shown(&sent), shape);
    assert_eq!(bench.info().segment_size, 1000);
}

/// RFC 5927 §7: only what is in flight is believed; RFC 1191 §3, RFC 8201 §4: the MTU only falls,
/// and not below 576 or 1280.
#[test]
fn who_says_too_big_must_know_what_is_in_flight() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.write(&[7; 5000]);
    bench.at(1030);
    bench.give(bench.acking(2921));
    for (sequence, mtu) in [(2920, 1000), (5001, 1000), (2921, 1500), (2921, 9000)] {
        let reported = too_big(&bench, sequence, mtu);
        let believed = bench.endpoint.set_path_mtu(bench.now, reported);
        assert_eq!(believed, Err(Ignored::Unacceptable), "{sequence} of {mtu}");
    }
    let mut stranger = too_big(&bench, 2921, 1000);
    stranger.remote.set_port(1);
    assert_eq!(bench.endpoint.set_path_mtu(bench.now, stranger), Err(Ignored::NoConnection));
    let reported = too_big(&bench, 2921, 68);
    bench.endpoint.set_path_mtu(bench.now, reported).unwrap();
    assert_eq!(bench.info().segment_size, 576 - 40);
    bench.give(bench.acking(5001));
    let reported = too_big(&bench, 2921, 500);
    assert!(bench.endpoint.set_path_mtu(bench.now, reported).is_err(), "nothing is in flight");
}

/// A SYN with data that is too big for the path goes again bare.
#[test]
fn a_syn_that_is_too_big_goes_again_bare() {
    let options = ConnectOptions { syn_data: vec![1; 1400], ..ConnectOptions::default() };
    let (mut bench, _) = Bench::connecting(Config::default(), options);
    bench.at(1010);
    let reported = too_big(&bench, 0, 1280);
    bench.endpoint.set_path_mtu(bench.now, reported).unwrap();
    assert_eq!(shown(&bench.sent()), ["1010 S 0+0"]);
}

/// RFC 9293 over IPv6: the MSS that is told, whole exchanges, RST.
#[test]
fn ipv6_does_the_same() {
    let mut bench = v6(Config::default());
    let sent = bench.syn(mss(1440), &[]);
    assert_eq!(sent[0].options().mss, Some(1440));
    assert_eq!(sent[0].packet.len(), 40 + 24);
    bench.at(1010);
    assert_eq!(bench.reply(bench.made().data(b"hello")), ["1010 . 1+0 ack 6"]);
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    assert_eq!(bench.read(), b"hello");
    let sent = bench.write(&[7; 3000]);
    assert_eq!(sent[0].packet.len(), 1500);
    let reported = too_big(&bench, 1, 600);
    bench.endpoint.set_path_mtu(bench.now, reported).unwrap();
    assert_eq!(bench.sent()[0].packet.len(), 1280);
    bench.peer.set_port(9);
    assert_eq!(bench.reply(bench.acking(5)), ["1010 R 5+0"]);
}

/// RFC 9293 §3.1: a wrong checksum is found, unless the device has looked already.
#[test]
fn checksums_are_verified() {
    let mut bench = Bench::established();
    let mut packet = bench.made().data(b"hello").packet();
    *packet.last_mut().unwrap() ^= 1;
    let verified = bench.endpoint.handle_packet(bench.now, &packet, Checksum::Verify);
    assert_eq!(verified, Err(Ignored::Checksum));
    assert_eq!(bench.endpoint.counters().bad_checksums, 1);
    bench.endpoint.handle_packet(bench.now, &packet, Checksum::Trusted).unwrap();
    assert_eq!(bench.read().len(), 5);
}
