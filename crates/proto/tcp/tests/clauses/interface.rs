//! What an application sees (RFC 9293 §3.9.1), and what is no segment at all.

use tcp::*;
use wire::tcp::Flags;

use super::harness::*;

/// RFC 6056 §3.3.3: port 0 has a free one chosen, not the next for another peer.
#[test]
fn port_0_has_one_chosen() {
    let mut bench = Bench::new(Config::default());
    bench.local.set_port(0);
    let mut ports = Vec::new();
    for _ in 0..20 {
        bench.connect(ConnectOptions::default());
        ports.push(bench.info().local.port());
    }
    assert!(ports.iter().all(|port| *port >= 32_768));
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 20);
}

/// RFC 9293 §3.9.1.1: OPEN says what is wrong with it.
#[test]
fn open_says_what_is_wrong() {
    let mut bench = Bench::new(Config::default());
    let (local, peer) = (bench.local, bench.peer);
    let mut open =
        |local, remote| bench.endpoint.connect(bench.now, local, remote, ConnectOptions::default());
    for (local, remote) in [
        (local, address("[2001:db8::1]:443")),
        (local, address("224.0.0.1:443")),
        (local, address("0.0.0.0:443")),
        (local, address("198.51.100.7:0")),
        (address("0.0.0.0:0"), peer),
    ] {
        assert_eq!(open(local, remote), Err(ConnectError::Address { local, remote }));
    }
    assert!(open(local, peer).is_ok());
    assert_eq!(open(local, peer), Err(ConnectError::NoPort(local)));
}

/// RFC 9293 §3.9.1.1, passive: one listener a place; an exact address goes before any.
#[test]
fn listeners_have_places() {
    let mut bench = Bench::listening(Config::default(), ListenOptions::default());
    let listen = |bench: &mut Bench, at| bench.endpoint.listen(at, ListenOptions::default());
    let here = bench.local;
    assert_eq!(listen(&mut bench, here), Err(ListenError::InUse(here)));
    assert_eq!(listen(&mut bench, address("192.0.2.1:0")), Err(ListenError::NoPort));
    let any = listen(&mut bench, address("0.0.0.0:443")).unwrap();
    bench.shake_hands(mss(1460));
    assert_eq!(bench.endpoint.accept(any), None);
    bench.local = address("192.0.2.2:443");
    bench.listener = Some(any);
    bench.at(1000);
    bench.shake_hands(mss(1460));
}

/// Connections that nobody accepted are reset when their listener goes, others not.
#[test]
fn unlisten_resets_what_was_not_accepted() {
    let mut bench = Bench::listening(Config::default(), ListenOptions::default());
    bench.shake_hands(mss(1460));
    bench.peer.set_port(40_001);
    let mut sent = bench.give(bench.made_syn(mss(1460)));
    bench.learn(&mut sent);
    bench.give(bench.made());
    bench.endpoint.unlisten(bench.now, bench.listener.unwrap());
    let sent = bench.sent();
    assert_eq!(shown(&sent), ["1010 R. 1+0 ack 1"]);
    assert_eq!(sent[0].segment().destination_port(), 40_001);
    assert_eq!(bench.state(), State::Established);
}

/// Past the backlog an established connection is reset: its client finds out at once.
#[test]
fn past_the_backlog_a_connection_is_reset() {
    let options = ListenOptions { backlog: 0, ..ListenOptions::default() };
    let mut bench = Bench::listening(Config::default(), options);
    bench.syn(mss(1460), &[]);
    assert_eq!(bench.reply(bench.made()), ["1000 R. 1+0 ack 1"]);
    bench.events();
    assert_eq!(bench.endpoint.counters().connections, 0);
}

/// RFC 9293 §3.9.1.2: a full buffer takes no more, and an event tells of room.
#[test]
fn a_full_send_buffer_says_so() {
    let config = Config { send_buffer: 3000, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.at(1020);
    let id = bench.id.unwrap();
    assert_eq!(bench.endpoint.write(bench.now, id, &[7; 5000]), Ok(3000));
    let again = bench.endpoint.write(bench.now, id, &[7; 5000]);
    assert_eq!((again, bench.endpoint.writable(id)), (Err(StreamError::WouldBlock), 0));
    bench.sent();
    bench.events();
    bench.give(bench.acking(2921));
    assert_eq!(bench.events(), [EventKind::Writable]);
    assert_eq!(bench.endpoint.writable(id), 2920);
}

/// RFC 9293 §3.10.7.4, second: after a reset, what was received is still read, and then the reason.
#[test]
fn what_was_received_survives_a_reset() {
    let mut bench = Bench::established();
    bench.at(1020);
    bench.give(bench.made().data(b"last words"));
    bench.give(bench.made().seq(11).flags(Flags::RST));
    let id = bench.id.unwrap();
    let mut into = [0; 100];
    assert_eq!(bench.endpoint.read(bench.now, id, &mut into), Ok(10));
    let reset = Err(StreamError::Closed(CloseReason::Reset));
    assert_eq!(bench.endpoint.read(bench.now, id, &mut into), reset);
    assert_eq!(bench.endpoint.write(bench.now, id, b"x"), reset);
    bench.events();
    bench.release();
    assert_eq!(bench.endpoint.read(bench.now, id, &mut into), Err(StreamError::Unknown));
}

/// RFC 9293 §3.10.5: ABORT in SYN-SENT sends nothing; a SYN-ACK that comes then draws a RST.
#[test]
fn abort_in_syn_sent() {
    let (mut bench, _) = Bench::connecting(Config::default(), ConnectOptions::default());
    bench.endpoint.abort(bench.now, bench.id.unwrap());
    assert!(bench.sent().is_empty());
    assert_eq!(bench.reply(bench.made_syn_ack(1, mss(1460))), ["1000 R 1+0"]);
}

/// RFC 9293 §3.10.7.4: a SYN-ACK that comes again, since our ACK was lost, draws the ACK again.
#[test]
fn a_syn_ack_that_comes_again_is_acknowledged_again() {
    let (mut bench, _) = Bench::connecting(Config::default(), ConnectOptions::default());
    for at in [1100, 2100] {
        bench.at(at);
        let ack = bench.reply(bench.made_syn_ack(1, mss(1460)));
        assert_eq!(ack, [format!("{at} . 1+0 ack 1")]);
    }
    assert_eq!(bench.state(), State::Established);
}

/// RFC 6093: urgent data are ordinary ones in the stream.
#[test]
fn the_urgent_pointer_is_ignored() {
    let mut bench = Bench::established();
    bench.give(bench.made().flags(Flags(0x20)).data(b"urgent"));
    assert_eq!(bench.read(), b"urgent");
}

/// RFC 9293 §3.9.2: what is no whole IP packet with TCP in it, or comes from many or from nobody, is
/// ignored.
#[test]
fn what_is_no_segment_is_ignored() {
    let mut bench = Bench::listening(Config::default(), everything());
    let good = bench.made_syn(mss(1460)).packet();
    let mut give = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = good.clone();
        change(&mut packet);
        bench.endpoint.handle_packet(bench.now, &packet, Checksum::Trusted)
    };
    assert_eq!(give(&|packet| packet.truncate(19)), Err(Ignored::NotIp));
    assert_eq!(give(&|packet| packet[0] = 0x55), Err(Ignored::NotIp));
    assert_eq!(give(&|packet| packet[6] |= 0x20), Err(Ignored::NotIp), "a fragment");
    assert_eq!(give(&|packet| packet[9] = 17), Err(Ignored::NotTcp));
    assert_eq!(give(&|packet| packet[32] = 0x40), Err(Ignored::Malformed), "a header of 16 bytes");
    assert_eq!(give(&|packet| packet[12] = 224), Err(Ignored::Malformed), "from multicast");
    assert_eq!(give(&|packet| packet[12..16].fill(0)), Err(Ignored::Malformed), "from nobody");
    assert_eq!(give(&|packet| packet[20..22].fill(0)), Err(Ignored::Malformed), "from port 0");
    assert_eq!(give(&|_| ()), Ok(()));
}
