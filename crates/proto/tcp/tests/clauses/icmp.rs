//! ICMP errors (RFC 9293 §3.9.2.2, RFC 1122 §4.2.3.9, RFC 5461, RFC 5927).

use tcp::*;
use units::SeqNumber;
use wire::tcp::Flags;

use super::harness::*;

const ALL: [IcmpKind; 7] = [
    IcmpKind::NetworkUnreachable,
    IcmpKind::HostUnreachable,
    IcmpKind::ProtocolUnreachable,
    IcmpKind::PortUnreachable,
    IcmpKind::Prohibited,
    IcmpKind::TimeExceeded,
    IcmpKind::ParameterProblem,
];

/// An error about our segment whose first byte is `sequence`; our SYN is byte 0.
fn report(bench: &mut Bench, sequence: u32, kind: IcmpKind) -> Result<(), Ignored> {
    let sequence = SeqNumber(bench.iss.wrapping_add(sequence));
    let reported = IcmpError { local: bench.local, remote: bench.peer, sequence, kind };
    bench.endpoint.report_icmp_error(bench.now, reported)
}

/// RFC 9293 §3.9.2.2: hard errors end an attempt to open, soft ones do not and are told.
#[test]
fn hard_errors_end_an_attempt() {
    for kind in ALL {
        let (mut bench, _) = Bench::connecting(Config::default(), Default::default());
        assert_eq!(report(&mut bench, 0, kind), Ok(()));
        let over = bench.events().contains(&EventKind::Closed(CloseReason::Unreachable(kind)));
        assert_eq!(over, kind.is_hard(), "{kind}");
        assert_eq!(bench.info().icmp_error, Some(kind));
        let read = bench.endpoint.read(bench.now, bench.id.unwrap(), &mut [0]);
        let expected = match over {
            true => StreamError::Closed(CloseReason::Unreachable(kind)),
            false => StreamError::WouldBlock,
        };
        assert_eq!(read, Err(expected));
    }
}

/// The same where SYNs have crossed, and of a half-open connection.
#[test]
fn hard_errors_end_a_half_open_connection() {
    let (mut bench, _) = Bench::connecting(Config::default(), Default::default());
    bench.give(bench.made_syn(mss(1460)));
    assert_eq!(report(&mut bench, 0, IcmpKind::PortUnreachable), Ok(()));
    assert_eq!(bench.state(), State::Closed);
    let mut bench = Bench::listening(Config::default(), Default::default());
    bench.syn(mss(1460), &[]);
    assert_eq!(report(&mut bench, 0, IcmpKind::NetworkUnreachable), Ok(()));
    assert_eq!(bench.endpoint.counters().half_open_plain, 1);
    assert_eq!(report(&mut bench, 0, IcmpKind::PortUnreachable), Ok(()));
    assert_eq!(bench.endpoint.counters().half_open_plain, 0);
}

/// RFC 5927 §5.2: once open, a connection outlives every error; it tells of it until the peer is heard again.
#[test]
fn no_error_ends_an_open_connection() {
    for kind in ALL {
        let mut bench = Bench::established();
        bench.at(1020);
        bench.write(b"hello");
        assert_eq!(report(&mut bench, 1, kind), Ok(()));
        assert_eq!((bench.state(), bench.info().icmp_error), (State::Established, Some(kind)));
        assert!(bench.events().is_empty() && bench.sent().is_empty());
        bench.give(bench.acking(6));
        assert_eq!(bench.info().icmp_error, None);
    }
}

/// RFC 5927 §4.1: only an error about a segment that is under way is believed.
#[test]
fn an_error_must_quote_what_is_under_way() {
    let refused = Err(Ignored::Unacceptable);
    let (mut bench, _) = Bench::connecting(Config::default(), Default::default());
    for sequence in [1, 0u32.wrapping_sub(1), 1 << 31] {
        assert_eq!(report(&mut bench, sequence, IcmpKind::PortUnreachable), refused);
    }
    let mut bench = Bench::established();
    bench.at(1020);
    assert_eq!(report(&mut bench, 1, IcmpKind::HostUnreachable), refused, "nothing is in flight");
    bench.write(b"hello");
    bench.give(bench.acking(3));
    for (sequence, believed) in [(0, false), (2, false), (3, true), (5, true), (6, false)] {
        let result = report(&mut bench, sequence, IcmpKind::HostUnreachable);
        assert_eq!(result.is_ok(), believed, "{sequence}");
    }
    bench.peer.set_port(1);
    let stranger = report(&mut bench, 3, IcmpKind::HostUnreachable);
    assert_eq!(stranger, Err(Ignored::NoConnection));
}

/// RFC 1122 §4.2.3.9: if a connection is given up, the last error says why.
#[test]
fn the_last_error_names_the_reason() {
    let config = Config { syn_retries: 2, retries: 2, ..Config::default() };
    let (mut bench, _) = Bench::connecting(config.clone(), Default::default());
    report(&mut bench, 0, IcmpKind::HostUnreachable).unwrap();
    bench.wait(100_000);
    let reason = CloseReason::Unreachable(IcmpKind::HostUnreachable);
    assert!(bench.events().contains(&EventKind::Closed(reason)));
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    bench.write(b"hello");
    report(&mut bench, 1, IcmpKind::NetworkUnreachable).unwrap();
    bench.wait(100_000);
    let reason = CloseReason::Unreachable(IcmpKind::NetworkUnreachable);
    assert!(bench.events().contains(&EventKind::Closed(reason)));
}

/// A connection that is over takes no error.
#[test]
fn an_error_comes_too_late() {
    let (mut bench, _) = Bench::connecting(Config::default(), Default::default());
    bench.give(bench.made_syn_ack(1, mss(1460)).flags(Flags::RST));
    assert_eq!(report(&mut bench, 0, IcmpKind::PortUnreachable), Err(Ignored::NoConnection));
}

/// The endpoint takes an ICMP error as a packet.
#[test]
fn an_error_comes_as_a_packet() {
    for (code, over) in [(1, false), (3, true)] {
        let (mut bench, syn) = Bench::connecting(Config::default(), Default::default());
        // Header and 8 bytes of the SYN (RFC 792).
        let mut message = [&[3, code, 0, 0, 0, 0, 0, 0][..], &syn.packet[..28]].concat();
        let sum = wire::checksum::Sum::new().plus(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let header = wire::ipv4::Repr {
            source: "203.0.113.9".parse().unwrap(),
            destination: "192.0.2.1".parse().unwrap(),
            protocol: wire::icmpv4::PROTOCOL,
            traffic_class: 0,
            identification: 0,
            dont_fragment: false,
            time_to_live: 60,
            payload_len: message.len(),
        };
        let mut packet = vec![0; wire::ipv4::HEADER_LEN];
        header.emit(&mut packet).unwrap();
        packet.extend(&message);
        let taken = bench.endpoint.handle_packet(bench.now, &packet, Checksum::Verify);
        assert_eq!(taken, Ok(()));
        assert_eq!(bench.state() == State::Closed, over);
        packet[30] ^= 1;
        let spoilt = bench.endpoint.handle_packet(bench.now, &packet, Checksum::Verify);
        assert_eq!(spoilt, Err(Ignored::Checksum));
    }
}
