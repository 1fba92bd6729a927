//! Connections made of exact segments at exact times.

use crate::talk::{client_hello, encrypted, hello_13, ms, record, server_hello, talk, talk_with};
use tracker::{EarlyData, End, Limits, Resumption, Tracker, Traffic, Uncertain};
use units::Time;
use wire::tcp::{FastOpen, Flags, OptionList};
use wire::tls::HELLO_RETRY_REQUEST_RANDOM;

#[test]
fn plain_tcp_counts_its_payload_as_data() {
    let mut t = talk();
    t.open()
        .send(0, b"x")
        .at(20)
        .send(1, b"y")
        .flagged(1, Flags::FIN)
        .at(21)
        .flagged(0, Flags::FIN);
    let c = t.finish();
    assert_eq!((c.client_data, c.server_data, c.tls), (ms(10), ms(20), None));
    assert_eq!(c.up_to_response, Some(Traffic { frames: 3, bytes: 54 + 54 + 55 }));
    assert_eq!(c.down_to_response, Some(Traffic { frames: 2, bytes: 54 + 55 }));
    assert_eq!((c.end, c.uncertain.len()), (End::Fin, 0));
}

#[test]
fn hellos_in_pieces_out_of_order_and_overlapping() {
    let hello = client_hello(true, false, &[]);
    let (one, two) = hello.split_at(700);
    let mut t = talk();
    t.open();
    t.raw(0, Flags(0), 701, Some(1), two, OptionList::default());
    t.at(12).raw(0, Flags(0), 1, Some(1), one, OptionList::default());
    t.at(13).raw(0, Flags(0), 601, Some(1), &hello[600..800], OptionList::default());
    t.next[0] = 1 + hello.len() as u32;
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(30).send(0, &[encrypted(53), encrypted(18)].concat());
    t.at(40).send(1, &[encrypted(250), encrypted(18)].concat());
    let c = t.finish();
    let (tls, tcp) = (c.tls.as_ref().unwrap(), c.tcp.as_ref().unwrap());
    assert_eq!((tls.client_hello, tls.client_hello_end), (ms(12), ms(12)));
    assert_eq!(tls.client_hello_records_len as usize, hello.len());
    assert_eq!((tcp.client_retransmitted, tcp.client_out_of_order), (1, 1));
    assert_eq!((tls.client_finished, c.client_data, c.server_data), (ms(30), ms(30), ms(40)));
    assert_eq!(tls.group.unwrap().to_string(), "X25519MLKEM768");
    assert_eq!((c.uncertain.len(), tls.tickets), (0, 1));
}

#[test]
fn fast_open_with_a_cookie_taken() {
    let mut t = talk();
    let options = OptionList {
        fast_open: Some(FastOpen { cookie: &[7; 8], experimental: false }),
        ..OptionList::default()
    };
    t.raw(0, Flags::SYN, 0, None, b"hello", options);
    t.next = [6, 0];
    t.at(1).syn_ack().send(1, b"world").at(9).ack();
    let c = t.finish();
    let tcp = c.tcp.as_ref().unwrap();
    let f = tcp.fast_open;
    assert_eq!((f.cookie_len, f.syn_data, f.syn_data_acked), (Some(8), 5, 5));
    assert!(!f.without_cookie && !f.cookie_requested && tcp.server_data_before_ack);
    assert_eq!((c.client_data, c.server_data, tcp.handshake_ack), (ms(0), ms(1), ms(9)));
}

#[test]
fn fast_open_without_a_cookie_refused() {
    let mut t = talk();
    t.raw(0, Flags::SYN, 0, None, b"hello", OptionList::default());
    t.next = [1, 0];
    t.at(10).syn_ack().ack().send(0, b"hello").at(20).send(1, b"world");
    let c = t.finish();
    let tcp = c.tcp.as_ref().unwrap();
    assert!(tcp.fast_open.without_cookie && !tcp.server_data_before_ack);
    assert_eq!((tcp.fast_open.syn_data, tcp.fast_open.syn_data_acked), (5, 0));
    assert_eq!((tcp.client_retransmitted, tcp.client_payload_bytes), (1, 5));
}

#[test]
fn fast_open_asks_for_a_cookie() {
    let mut t = talk();
    let cookie = |cookie| OptionList {
        fast_open: Some(FastOpen { cookie, experimental: true }),
        ..OptionList::default()
    };
    t.raw(0, Flags::SYN, 0, None, &[], cookie(&[]));
    t.raw(1, Flags::SYN, 0, Some(1), &[], cookie(&[5; 8]));
    let f = t.finish().tcp.unwrap().fast_open;
    assert!(f.cookie_requested);
    assert_eq!((f.cookie_granted_len, f.cookie_len, f.syn_data), (Some(8), None, 0));
}

#[test]
fn early_data_accepted_and_rejected() {
    for accepted in [true, false] {
        let mut t = talk();
        t.open()
            .send(0, &[client_hello(true, true, &[]), record(20, &[1]), encrypted(18)].concat());
        t.at(20).send(
            1,
            &[hello_13(accepted), record(20, &[1]), encrypted(23), encrypted(53)].concat(),
        );
        let mut flight = if accepted { encrypted(21) } else { Vec::new() };
        flight.extend(encrypted(53));
        if !accepted {
            flight.extend(encrypted(18));
        }
        t.at(21)
            .send(0, &flight)
            .at(30)
            .send(1, &[encrypted(120), encrypted(120), encrypted(19)].concat());
        t.send(1, &encrypted(19));
        let c = t.finish();
        let tls = c.tls.unwrap();
        let expected = if accepted { EarlyData::Accepted } else { EarlyData::Rejected };
        assert_eq!((tls.early_data, tls.early_data_records), (expected, 1));
        assert_eq!((tls.psk_accepted, tls.early_data_sent), (accepted, ms(10)));
        assert_eq!(c.client_data, if accepted { ms(10) } else { ms(21) });
        // A two-byte response, told by the close_notify after it.
        assert_eq!((c.server_data, tls.tickets, c.uncertain), (ms(30), 2, vec![]));
    }
}

#[test]
fn hello_retry_request() {
    let mut t = talk();
    t.open().send(0, &client_hello(true, true, &[]));
    let retry =
        server_hello(HELLO_RETRY_REQUEST_RANDOM, 0x1301, &[(43, &[3, 4]), (51, &[0, 0x17])]);
    t.at(20).send(1, &[retry, record(20, &[1])].concat());
    t.at(21).send(0, &[record(20, &[1]), client_hello(true, false, &[])].concat());
    t.at(30).send(1, &[hello_13(false), encrypted(1000)].concat());
    t.at(31).send(0, &[encrypted(53), encrypted(18)].concat()).at(40).send(1, &encrypted(20));
    let c = t.finish();
    let tls = c.tls.unwrap();
    assert_eq!((tls.hello_retry_request, tls.second_client_hello_end), (ms(20), ms(21)));
    assert_eq!((tls.server_hello, tls.client_finished), (ms(30), ms(31)));
    assert_eq!(tls.early_data, EarlyData::Rejected);
    assert_eq!((c.client_data, c.server_data, c.uncertain), (ms(31), ms(40), vec![]));
}

#[test]
fn tls_1_2_resumed_by_ticket_and_by_session_id() {
    for (ticket, resumption) in [(&[4; 90][..], Resumption::Ticket), (&[], Resumption::SessionId)] {
        let mut t = talk();
        t.open().send(0, &client_hello(false, false, ticket));
        let flight = [server_hello([5; 32], 0xc02f, &[]), record(20, &[1]), record(22, &[0; 40])];
        t.at(20).send(1, &flight.concat());
        t.at(21).send(0, &[record(20, &[1]), record(22, &[0; 40]), encrypted(25)].concat());
        t.at(30).send(1, &encrypted(30)).flagged(1, Flags::RST);
        let c = t.finish();
        let tls = c.tls.unwrap();
        assert_eq!((tls.resumption, tls.version.unwrap().0), (resumption, 0x0303));
        assert_eq!((tls.server_flight_end, tls.server_finished), (ms(20), ms(20)));
        assert_eq!((tls.client_finished, c.client_data, c.server_data), (ms(21), ms(21), ms(30)));
        assert_eq!((c.end, c.uncertain.len()), (End::Reset, 0));
    }
}

#[test]
fn a_refused_handshake_shows_its_alert() {
    let mut t = talk();
    t.open().send(0, &client_hello(true, false, &[])).at(20).send(1, &record(21, &[2, 40]));
    t.flagged(1, Flags::FIN);
    let c = t.finish();
    let tls = c.tls.unwrap();
    assert_eq!(tls.alerts[0].name, Some("handshake_failure"));
    assert_eq!((tls.server_hello, c.server_data), (None, None));
}

#[test]
fn a_lost_segment_is_said() {
    let mut t = talk();
    t.open().send(0, &client_hello(true, false, &[]));
    let flight = [hello_13(false), encrypted(1234)].concat();
    t.next[1] += 500;
    t.at(20).send(1, &flight[500..]);
    let c = t.finish();
    assert!(c.tcp.unwrap().bytes_missing);
    assert_eq!(c.uncertain, [Uncertain::BytesMissing]);
}

#[test]
fn an_upload_beyond_the_limit_casts_no_doubt_on_what_was_found() {
    let mut t = talk();
    t.open().send(0, &client_hello(true, false, &[]));
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(21).send(0, &[encrypted(53), encrypted(16_000)].concat());
    for _ in 0..10 {
        t.send(0, &encrypted(16_000));
    }
    t.at(40).send(1, &encrypted(20));
    let c = t.finish();
    assert_eq!((c.client_data, c.server_data, c.uncertain), (ms(21), ms(40), vec![]));
    assert!(c.tcp.unwrap().client_payload_bytes > 160_000);
}

#[test]
fn what_all_connections_hold_is_bounded_together() {
    let hello = client_hello(true, false, &[]);
    let mut t = talk_with(Tracker::new(Limits { held_bytes: 1000, ..Limits::default() }));
    for port in [1001, 1002] {
        t.port = port;
        t.next = [0, 0];
        t.at(0).open();
        t.raw(0, Flags(0), 701, Some(1), &hello[700..], OptionList::default());
    }
    for port in [1001, 1002] {
        t.port = port;
        t.at(12).raw(0, Flags(0), 1, Some(1), &hello[..700], OptionList::default());
    }
    let all = t.tracker.finish();
    // The second one's piece was given up: its hello stays incomplete, and is TLS of which no more is known.
    let hello_end = |at: usize| all[at].tls.as_ref().map(|tls| tls.client_hello_end.is_some());
    assert_eq!((hello_end(0), hello_end(1)), (Some(true), Some(false)));
    assert!(all[1].tcp.as_ref().unwrap().bytes_missing);
}

#[test]
fn ports_used_again_make_another_connection() {
    let mut t = talk();
    t.open().send(0, b"a").flagged(0, Flags::RST);
    t.at(50).raw(0, Flags::SYN, 5_000_000, None, &[], OptionList::default());
    let all = t.tracker.finish();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].end, all[1].end), (End::Reset, End::Open));
    assert_eq!(all[1].first_frame, Time::from_millis(50));
}

#[test]
fn beyond_the_limit_the_one_silent_for_longest_is_dropped_and_counted() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let mut t = talk_with(Tracker::new(limits));
    for port in [1001, 1002, 1001, 1003] {
        t.port = port;
        let seen = t.at.as_nanos() / 1_000_000;
        t.at(seen + 1).syn();
    }
    assert_eq!((t.tracker.active(), t.tracker.counters().dropped), (2, 1));
    let dropped = t.tracker.poll_connection().unwrap();
    assert!(dropped.dropped && dropped.client.port() == 1002);
    assert_eq!(t.tracker.poll_connection(), None);
}

#[test]
fn closed_and_silent_connections_are_given_out() {
    let mut t = talk();
    t.open().flagged(0, Flags::FIN).flagged(1, Flags::FIN);
    t.port = 6000;
    t.at(4_000).syn();
    assert_eq!(t.tracker.poll_connection(), None);
    t.at(5_011).flagged(0, Flags(0));
    assert_eq!(t.tracker.poll_connection().unwrap().client.port(), 50_000);
    t.port = 6001;
    t.at(310_000).syn();
    assert_eq!(t.tracker.poll_connection().unwrap().client.port(), 6000);
}

/// Some devices write Ethernet's padding into the length of IP.
#[test]
fn zeros_behind_a_bare_acknowledgment_are_no_data() {
    for padding in [&[0; 2][..], &[0; 6]] {
        let mut t = talk();
        t.syn().at(10).syn_ack();
        t.raw(0, Flags(0), 1, Some(1), padding, OptionList::default());
        t.send(0, &client_hello(true, false, &[])).at(20);
        t.raw(1, Flags(0), 1, Some(t.next[0]), padding, OptionList::default());
        t.send(1, &[hello_13(false), encrypted(1234)].concat()).at(30);
        t.raw(0, Flags(0), t.next[0], Some(t.next[1]), padding, OptionList::default());
        t.send(0, &[encrypted(53), encrypted(100)].concat()).at(40).send(1, &encrypted(2000));
        let c = t.finish();
        assert_eq!((c.class(), c.uncertain.len()), (Some(tracker::Class::Full), 0));
        assert_eq!((c.client_data, c.server_data), (ms(30), ms(40)));
        assert_eq!(c.tcp.unwrap().client_retransmitted, 0);
    }
    // Pushed, or more of them: data.
    for (flags, zeros) in [(Flags::PSH, 2), (Flags(0), 7)] {
        let mut t = talk();
        t.open().raw(0, flags, 1, Some(1), &vec![0; zeros], OptionList::default());
        assert_eq!(t.finish().tcp.unwrap().client_payload_bytes, zeros as u64);
    }
}
