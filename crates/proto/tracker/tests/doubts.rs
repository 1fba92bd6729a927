//! Captures that show too little or mislead: a doubt with its reason, and no class that was not seen.

use crate::talk::{
    BASES, Talk, client_hello, encrypted, hello_13, ms, record, server_hello, talk, talk_with,
};
use tracker::{Class, Connection, End, HandOut, Limits, Output, Tracker, Uncertain};
use wire::tcp::{Flags, OptionList};

fn raw(t: &mut Talk, side: usize, flags: Flags, seq: u32, ack: Option<u32>) {
    t.raw(side, flags, seq, ack, &[], OptionList::default());
}

/// A TLS 1.3 handshake with request and answer behind the TCP handshake.
fn tls_13(t: &mut Talk) {
    t.send(0, &client_hello(true, false, &[]));
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(30).send(0, &[encrypted(53), encrypted(100)].concat()).at(40).send(1, &encrypted(2000));
}

fn close(mut t: Talk) -> Connection {
    t.at(50).flagged(0, Flags::FIN).flagged(1, Flags::FIN);
    t.finish()
}

#[test]
fn of_two_syn_acks_the_acknowledged_one_counts() {
    for wrong_first in [true, false] {
        let mut t = talk();
        t.syn();
        for (at, wrong) in [(5, wrong_first), (8, !wrong_first)] {
            t.at(at);
            raw(&mut t, 1, Flags::SYN, if wrong { 0x4000_0000 } else { 0 }, Some(1));
        }
        t.next = [1, 1];
        t.at(10).ack();
        tls_13(&mut t);
        let c = close(t);
        assert_eq!((c.class(), &c.uncertain[..]), (Some(Class::Full), &[][..]));
        let tcp = c.tcp.unwrap();
        assert_eq!(tcp.syn_ack, if wrong_first { ms(8) } else { ms(5) });
        assert_eq!((c.server_data, tcp.bytes_missing), (ms(40), false));
        assert_eq!((tcp.handshake_retransmitted, tcp.server_retransmitted), (false, 0));
    }
}

/// What the server sends before the client has said which waits for it.
#[test]
fn data_behind_the_wrong_syn_ack_are_none_of_the_stream() {
    let mut t = talk();
    t.syn().at(5);
    raw(&mut t, 1, Flags::SYN, 0, Some(1));
    raw(&mut t, 1, Flags::SYN, 0x4000_0000, Some(1));
    let options = OptionList::default();
    t.raw(1, Flags::PSH, 0x4000_0001, Some(1), b"of another", options);
    t.raw(1, Flags::PSH, 1, Some(1), b"banner", OptionList::default());
    t.next = [1, 7];
    t.at(10).ack();
    let tcp = close(t).tcp.unwrap();
    assert_eq!((tcp.server_payload_bytes, tcp.bytes_missing), (6, false));
}

#[test]
fn a_reset_of_another_connection_ends_none() {
    // With numbers far before and behind either stream; and one that is the server's own.
    for (side, seq, end) in [
        (0, 0x3000_0000, End::Fin),
        (1, 0x3000_0000, End::Fin),
        (0, 0xc000_0000, End::Fin),
        (1, 0xc000_0000, End::Fin),
        (1, 1, End::Reset),
    ] {
        let mut t = talk();
        t.open();
        raw(&mut t, side, Flags::RST, seq, None);
        tls_13(&mut t);
        let c = close(t);
        assert_eq!((c.class(), c.end), (Some(Class::Full), end), "{side} {seq:#x}");
        assert_eq!(c.client_data, ms(30));
    }
}

#[test]
fn in_syn_sent_only_a_reset_that_acknowledges_the_syn_counts() {
    for (ack, end) in [(Some(1), End::Reset), (Some(0x3000_0000), End::Open), (None, End::Open)] {
        let mut t = talk();
        t.syn().at(10);
        raw(&mut t, 1, Flags::RST, 0u32.wrapping_sub(BASES[1]), ack);
        assert_eq!(t.finish().end, end, "{ack:?}");
    }
}

/// RFC 9293 §3.5.1: a client that restarted sends a SYN where the server still has the old connection;
/// the server acknowledges that, the client resets it, and its next SYN is answered.
#[test]
fn recovery_from_a_half_open_connection_leaves_two_records() {
    let limits = || Limits { hand_out: HandOut::AfterHandshake, ..Limits::default() };
    let mut t = talk_with(Tracker::new(limits()));
    t.open();
    tls_13(&mut t);
    let (old, new) = (t.next, [0x2012_3456, 0x2812_3456]);
    t.at(60_000);
    raw(&mut t, 0, Flags::SYN, new[0], None);
    raw(&mut t, 1, Flags(0), old[1], Some(old[0]));
    raw(&mut t, 0, Flags::RST, old[0], None);
    t.at(61_000);
    raw(&mut t, 0, Flags::SYN, new[0], None);
    t.at(61_010);
    raw(&mut t, 1, Flags::SYN, new[1], Some(new[0] + 1));
    t.next = new.map(|first| first + 1);
    t.ack().send(0, b"GET / HTTP/1.1\r\n\r\n").send(1, b"HTTP/1.1 200 OK\r\n\r\n");
    t.flagged(0, Flags::FIN).flagged(1, Flags::FIN);
    t.tracker.close();
    let (mut records, mut ends) = (Vec::new(), Vec::new());
    while let Some(output) = t.tracker.poll_output() {
        match output {
            Output::Connection(record) => records.push(record),
            Output::Ending(ending) => ends.push((ending.number, ending.end)),
        }
    }
    assert_eq!(t.tracker.counters().stray, 0);
    let classes: Vec<_> = records.iter().map(|record| record.class()).collect();
    assert_eq!(classes, [Some(Class::Full), None]);
    assert_eq!(ends, [(0, End::Open), (1, End::Fin)]);
}

#[test]
fn a_reset_of_another_connection_does_not_end_one_whose_record_is_out() {
    for (seq, end) in [(0x3000_0000, End::Open), (0, End::Reset)] {
        let limits = Limits { hand_out: HandOut::AfterHandshake, ..Limits::default() };
        let mut t = talk_with(Tracker::new(limits));
        t.open();
        tls_13(&mut t);
        let next = t.next[1];
        raw(&mut t, 1, Flags::RST, next.wrapping_add(seq), None);
        t.tracker.close();
        let mut last = None;
        while let Some(output) = t.tracker.poll_output() {
            last = Some(output);
        }
        assert!(matches!(last, Some(Output::Ending(ending)) if ending.end == end), "{seq:#x}");
    }
}

#[test]
fn bytes_that_were_acknowledged_and_never_captured_leave_a_doubt() {
    // The client acknowledges a flight of which the capture has a half, or none; a FIN that was lost
    // takes a number, too.
    for (captured, lost, missing) in [(true, 900, true), (false, 900, true), (true, 1, false)] {
        let mut t = talk();
        t.open().send(0, &client_hello(true, false, &[])).at(20);
        if captured {
            t.send(1, &hello_13(false));
        }
        t.next[1] += lost;
        t.at(30).ack().flagged(0, Flags::FIN);
        let c = t.finish();
        assert_eq!(c.uncertain.contains(&Uncertain::BytesMissing), missing, "{lost}");
        assert_eq!(c.class(), if missing { None } else { Some(Class::Failed) });
    }
}

#[test]
fn a_tls_1_2_flight_that_was_lost_may_have_been_one_of_a_resumption() {
    let mut t = talk();
    t.open().send(0, &client_hello(false, false, &[]));
    t.at(20).send(1, &server_hello([5; 32], 0xc02f, &[]));
    t.next[1] += 60;
    t.at(30).send(0, &[record(20, &[1]), record(22, &[0x5e; 40])].concat());
    let c = close(t);
    assert_eq!((c.class(), &c.uncertain[..]), (None, &[Uncertain::BytesMissing][..]));
}

#[test]
fn a_server_hello_that_cannot_be_read_is_no_failure() {
    let short = record(22, &[2, 0, 0, 4, 3, 3, 9, 9]);
    let long =
        [record(22, &[2, 0, 0x90, 0, 3, 3]), record(22, &[7; 0x4000]), record(22, &[7; 0x4000])];
    let long = [&long.concat()[..], &record(22, &[7; 0x1000])].concat();
    for hello in [short, long] {
        let mut t = talk();
        t.open().send(0, &client_hello(true, false, &[])).at(20);
        for part in hello.chunks(1400) {
            t.send(1, part);
        }
        let c = close(t);
        assert_eq!((c.class(), &c.uncertain[..]), (None, &[Uncertain::ServerHello][..]));
    }
}

#[test]
fn a_capture_that_ends_in_the_middle_says_so() {
    let begun = || {
        let mut t = talk();
        t.open().send(0, &client_hello(true, false, &[])).at(20);
        t
    };
    let c = begun().finish();
    assert_eq!((c.class(), &c.uncertain[..]), (None, &[Uncertain::CaptureEnded][..]));
    // And one whose handshake is over has ended well.
    let mut t = talk();
    t.open();
    tls_13(&mut t);
    let c = t.finish();
    assert_eq!((c.class(), c.uncertain.len(), c.end), (Some(Class::Full), 0, End::Open));
}

/// The first record, where another connection follows long after.
fn silent(mut t: Talk) -> Connection {
    t.at(400_000);
    t.port = 50_001;
    t.next = [0, 0];
    t.syn();
    t.tracker.finish().remove(0)
}

#[test]
fn a_connection_that_simply_stops_has_not_failed() {
    let hello = client_hello(true, false, &[]);
    // Behind the hello, behind the server's flight, and where all was acknowledged.
    let mut flight = talk();
    flight.open().send(0, &hello).at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    let mut acknowledged = talk();
    acknowledged.open().send(0, &hello).at(20).flagged(1, Flags(0));
    let mut begun = talk();
    begun.open().send(0, &hello);
    for t in [begun, flight, acknowledged] {
        let c = silent(t);
        assert_eq!((c.class(), &c.uncertain[..]), (None, &[Uncertain::FellSilent][..]));
    }
}

#[test]
fn a_flight_that_is_sent_again_in_vain_has_failed() {
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    t.open().send(0, &hello);
    for at in [210, 640, 1500] {
        t.at(at).raw(0, Flags::PSH, 1, Some(1), &hello, OptionList::default());
    }
    let c = silent(t);
    assert_eq!((c.class(), c.uncertain.len()), (Some(Class::Failed), 0));
    // One whose repeat arrives, and then nothing, has not.
    let mut t = talk();
    t.open().send(0, &hello);
    t.at(210).raw(0, Flags::PSH, 1, Some(1), &hello, OptionList::default());
    t.at(230).flagged(1, Flags(0));
    assert_eq!(silent(t).uncertain, [Uncertain::FellSilent]);
}

#[test]
fn a_connection_that_gave_way_has_not_failed() {
    let mut t = talk_with(Tracker::new(Limits { connections: 1, ..Limits::default() }));
    t.open().send(0, &client_hello(true, false, &[]));
    t.port = 50_001;
    t.next = [0, 0];
    t.at(20).syn();
    let all = t.tracker.finish();
    assert!(all[0].dropped && all[0].class().is_none());
}

#[test]
fn application_settings_make_the_clients_finished_longer() {
    use wire::tls::{ClientHelloRepr, Extension, ExtensionKind, body};
    for (kind, finished) in [(17513, true), (17613, true), (17614, false)] {
        let bodies = [
            (43, body::supported_versions(&[0x0304])),
            (51, body::key_shares(&[(0x11ec, &[7; 1216])])),
            (45, body::psk_dhe_ke()),
            (16, body::alpn(&[b"h2", &[0x1a, 0x9a]])),
            (kind, vec![0, 3, 2, b'h', b'2']),
        ];
        let extension = |(kind, data)| Extension { kind: ExtensionKind(kind), data };
        let repr = ClientHelloRepr {
            legacy_version: 0x0303,
            random: [1; 32],
            session_id: &[2; 32],
            cipher_suites: vec![0x1301],
            extensions: bodies.iter().map(|(kind, data)| extension((*kind, &data[..]))).collect(),
        };
        let mut message = vec![0; repr.buffer_len()];
        repr.emit(&mut message).unwrap();
        let mut t = talk();
        t.open().send(0, &record(22, &message));
        t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
        // EncryptedExtensions of 10 bytes and the Finished in one record; the request at once.
        t.at(30).send(0, &encrypted(10 + 36 + 17)).at(35).send(0, &encrypted(100));
        t.at(45).send(1, &encrypted(500)).send(1, &encrypted(2000));
        let c = close(t);
        assert_eq!(c.uncertain.is_empty(), finished, "{kind}: {:?}", c.uncertain);
        let tls = c.tls.unwrap();
        assert_eq!((tls.client_finished, c.client_data), (ms(30), ms(35)));
        // The second name is GREASE's, and no text.
        assert_eq!(tls.alpn_offered, ["h2", "0x1a9a"]);
    }
}
