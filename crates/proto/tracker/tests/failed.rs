//! Handshakes that fail, and what follows from records: classes and durations.

use std::time::Duration;

use crate::talk::{Talk, client_hello, encrypted, hello_13, ms, record, server_hello, talk};
use tracker::{Class, Connection, EarlyData, Resumption, Uncertain};
use wire::tcp::Flags;

fn millis(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

/// A message of a type with an empty body of this length.
fn message(kind: u8, len: u8) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, len];
    message.resize(4 + usize::from(len), 0);
    record(22, &message)
}

fn finished_12() -> Vec<u8> {
    [record(20, &[1]), record(22, &[0x5e; 40])].concat()
}

/// TLS 1.2 up to ServerHelloDone at 20 ms.
fn tls_12(certificate_requested: bool) -> Talk {
    let mut t = talk();
    t.open().send(0, &client_hello(false, false, &[]));
    let mut flight = [server_hello([5; 32], 0xc02f, &[]), message(11, 3), message(12, 9)].concat();
    if certificate_requested {
        flight.extend(message(13, 8));
    }
    flight.extend(message(14, 0));
    t.at(20).send(1, &flight);
    t
}

/// TLS 1.3 up to the server's Finished at 20 ms.
fn tls_13() -> Talk {
    let mut t = talk();
    t.open().send(0, &client_hello(true, false, &[]));
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    t
}

#[test]
fn an_encrypted_alert_in_the_place_of_the_finished() {
    // As clients do that refuse the certificate: alone, or behind ChangeCipherSpec.
    for flight in [encrypted(19), [record(20, &[1]), encrypted(19)].concat()] {
        let mut t = tls_13();
        t.at(30).send(0, &flight).flagged(0, Flags::FIN);
        let c = t.finish();
        assert_eq!((c.class(), c.uncertain.len()), (Some(Class::Failed), 0));
        assert_eq!((c.client_data, c.handshake_time(), c.think_time()), (None, None, None));
        let tls = c.tls.unwrap();
        let [alert] = tls.alerts[..] else { panic!("one alert") };
        assert_eq!((Some(alert.at), alert.from_client, alert.level), (ms(30), true, None));
        assert_eq!((tls.client_finished, tls.server_hello), (None, ms(20)));
    }
}

/// A client without a certificate that was asked for one sends an empty one, and the server an alert.
#[test]
fn a_client_that_is_refused_for_its_certificate_has_failed() {
    // Empty, and one with its proof; a request behind the Finished or none.
    let flights = [
        [encrypted(25), encrypted(53)].concat(),
        [encrypted(900), encrypted(281), encrypted(53)].concat(),
        [encrypted(25), encrypted(53), encrypted(400)].concat(),
    ];
    for flight in flights {
        let mut t = tls_13();
        t.at(30).send(0, &flight).at(40).send(1, &encrypted(19)).flagged(1, Flags::FIN);
        let c = t.finish();
        assert_eq!((c.class(), c.server_data), (Some(Class::Failed), None));
        assert!(c.uncertain.contains(&Uncertain::ServerAlert), "{:?}", c.uncertain);
    }
    // Tickets before it: the server took the Finished.
    let mut t = tls_13();
    t.at(30).send(0, &[encrypted(25), encrypted(53)].concat());
    t.at(40).send(1, &[encrypted(250), encrypted(250)].concat());
    t.at(50).send(1, &encrypted(19)).flagged(1, Flags::FIN);
    let c = t.finish();
    assert_eq!((c.class(), &c.uncertain[..]), (Some(Class::Full), &[][..]));
    // Without a certificate it may as well have closed in order.
    let mut t = tls_13();
    t.at(30).send(0, &encrypted(53)).at(40).send(1, &encrypted(19)).flagged(1, Flags::FIN);
    let c = t.finish();
    assert_eq!((c.class(), &c.uncertain[..]), (Some(Class::Full), &[Uncertain::ServerAlert][..]));
}

#[test]
fn early_data_of_a_client_that_pads_leaves_a_doubt() {
    // EndOfEarlyData and Finished, or the Finished alone, all as long as the early data.
    for (records, outcome, class) in
        [(2, EarlyData::Accepted, Class::ZeroRtt), (1, EarlyData::Rejected, Class::Resumed)]
    {
        let mut t = talk();
        t.open().send(0, &[client_hello(true, true, &[]), encrypted(144)].concat());
        t.at(20).send(1, &[hello_13(true), encrypted(27), encrypted(53)].concat());
        t.at(30).send(0, &encrypted(144).repeat(records));
        t.at(40).send(1, &encrypted(258)).at(50).send(0, &encrypted(144));
        t.at(60).send(1, &encrypted(2000));
        let c = t.finish();
        assert_eq!((c.class(), c.tls.as_ref().unwrap().early_data), (Some(class), outcome));
        assert_eq!(c.tls_handshake_time(), millis(20));
        for doubt in [Uncertain::ClientFinished, Uncertain::EndOfEarlyData] {
            assert!(c.uncertain.contains(&doubt), "{:?}", c.uncertain);
        }
    }
    // A server that never goes on: nothing says that the client finished.
    let mut t = talk();
    t.open().send(0, &[client_hello(true, true, &[]), encrypted(144)].concat());
    t.at(20).send(1, &[hello_13(true), encrypted(27), encrypted(53)].concat());
    t.at(30).send(0, &encrypted(144)).flagged(0, Flags::FIN);
    let c = t.finish();
    assert_eq!(
        (c.class(), &c.uncertain[..]),
        (Some(Class::Failed), &[Uncertain::ClientFinished][..])
    );
}

#[test]
fn a_clear_alert_after_the_server_hello() {
    let mut t = tls_13();
    t.at(30).send(0, &record(21, &[2, 47])).flagged(0, Flags::RST);
    let c = t.finish();
    assert_eq!(c.class(), Some(Class::Failed));
    assert_eq!(c.tls.unwrap().alerts[0].name, Some("illegal_parameter"));
}

#[test]
fn a_server_that_gives_up_in_its_flight() {
    let mut t = talk();
    t.open().send(0, &client_hello(true, false, &[]));
    t.at(20).send(1, &[hello_13(false), encrypted(19)].concat()).flagged(1, Flags::FIN);
    let c = t.finish();
    assert_eq!((c.class(), c.server_data), (Some(Class::Failed), None));
    let tls = c.tls.unwrap();
    assert_eq!((tls.alerts[0].from_client, tls.alerts[0].level), (false, None));
}

#[test]
fn close_notify_after_the_handshake_is_an_alert_and_no_failure() {
    let mut t = tls_13();
    t.at(30).send(0, &encrypted(53)).at(40).send(0, &encrypted(19)).at(50).send(1, &encrypted(19));
    let c = t.finish();
    assert_eq!((c.class(), c.client_data, c.server_data), (Some(Class::Full), None, None));
    let alerts: Vec<_> =
        c.tls.unwrap().alerts.iter().map(|a| (Some(a.at), a.from_client)).collect();
    assert_eq!(alerts, [(ms(40), true), (ms(50), false)]);
}

#[test]
fn two_bytes_of_early_data_behind_the_server_hello_are_no_alert() {
    let mut t = talk();
    t.open().send(0, &client_hello(true, true, &[]));
    t.at(20).send(1, &[hello_13(true), encrypted(23), encrypted(53)].concat());
    t.at(30).send(0, &[encrypted(19), encrypted(21), encrypted(53)].concat());
    let c = t.finish();
    assert_eq!(c.class(), Some(Class::ZeroRtt));
    let tls = c.tls.unwrap();
    assert_eq!((tls.early_data_records, tls.alerts.len(), c.client_data), (1, 0, ms(30)));
}

#[test]
fn a_tls_1_2_server_refuses_the_clients_certificate() {
    let mut t = tls_12(true);
    t.at(30).send(0, &[message(11, 3), message(16, 9), finished_12()].concat());
    t.at(40).send(1, &record(21, &[2, 42])).flagged(1, Flags::FIN);
    let c = t.finish();
    assert_eq!(c.class(), Some(Class::Failed));
    let tls = c.tls.unwrap();
    assert_eq!((tls.certificate_requested, tls.client_finished), (Some(true), ms(30)));
    assert_eq!(tls.alerts[0].name, Some("bad_certificate"));
}

#[test]
fn a_finished_that_never_comes() {
    // The server's: it resets, or the capture ends.
    for (reset, class) in [(true, Some(Class::Failed)), (false, None)] {
        let mut t = tls_12(false);
        t.at(30).send(0, &[message(16, 9), finished_12()].concat());
        if reset {
            t.at(40).flagged(1, Flags::RST);
        }
        let c = t.finish();
        assert_eq!((c.class(), c.tls_handshake_time()), (class, millis(20)));
    }
    // The client's.
    for mut t in [tls_12(false), tls_13()] {
        t.at(30).flagged(0, Flags::RST);
        let c = t.finish();
        assert_eq!((c.class(), c.tls_round_trips()), (Some(Class::Failed), None));
    }
}

#[test]
fn half_connections_have_no_class() {
    let mut t = talk();
    t.syn().at(10).ack().send(0, &client_hello(true, false, &[]));
    let c = t.finish();
    assert_eq!((c.class(), &c.uncertain[..]), (None, &[Uncertain::OneDirection][..]));
    assert_eq!(c.round_trip(), None);
    // The server may have been about to answer when the capture ended.
    let c = talk().open().finish_with(&[client_hello(false, false, &[])]);
    assert_eq!((c.class(), &c.uncertain[..]), (None, &[Uncertain::CaptureEnded][..]));
}

trait FinishWith {
    fn finish_with(&mut self, client: &[Vec<u8>]) -> Connection;
}

impl FinishWith for Talk {
    fn finish_with(&mut self, client: &[Vec<u8>]) -> Connection {
        client.iter().for_each(|bytes| {
            self.send(0, bytes);
        });
        std::mem::replace(self, talk()).finish()
    }
}

#[test]
fn durations_of_a_full_tls_1_2_handshake() {
    let mut t = tls_12(false);
    t.at(30).send(0, &[message(16, 9), finished_12()].concat());
    t.at(40).send(1, &finished_12()).at(75).send(0, &encrypted(40)).at(85).send(1, &encrypted(40));
    let c = t.finish();
    assert_eq!((c.class(), c.round_trip()), (Some(Class::Full), millis(10)));
    assert_eq!((c.handshake_time(), c.tls_handshake_time()), (millis(30), millis(20)));
    assert_eq!((c.think_time(), c.hello_to_data()), (millis(45), millis(65)));
    assert_eq!(c.tls_round_trips(), Some(2.0));
    assert_eq!(c.tls.unwrap().certificate_requested, Some(false));
}

#[test]
fn false_start_sends_before_the_servers_finished() {
    let mut t = tls_12(false);
    t.at(30).send(0, &[message(16, 9), finished_12(), encrypted(40)].concat());
    t.at(40).send(1, &[finished_12(), encrypted(40)].concat());
    let c = t.finish();
    assert_eq!((c.class(), c.think_time()), (Some(Class::Full), millis(0)));
    assert_eq!((c.client_data, c.server_data), (ms(30), ms(40)));
}

#[test]
fn an_abbreviated_handshake_ends_with_the_clients_finished() {
    for (ticket, resumption) in [(&[4; 90][..], Resumption::Ticket), (&[], Resumption::SessionId)] {
        let mut t = talk();
        t.open().send(0, &client_hello(false, false, ticket));
        t.at(20).send(1, &[server_hello([5; 32], 0xc02f, &[]), finished_12()].concat());
        t.at(30).send(0, &finished_12()).at(50).send(0, &encrypted(40));
        let c = t.finish();
        assert_eq!((c.class(), c.tls_handshake_time()), (Some(Class::Resumed), millis(20)));
        assert_eq!((c.think_time(), c.tls_round_trips()), (millis(20), Some(2.0)));
        let tls = c.tls.unwrap();
        assert_eq!((tls.resumption, tls.session_id_offered), (resumption, 32));
        assert_eq!(tls.certificate_requested, Some(false));
    }
}

#[test]
fn early_data_taken_and_refused() {
    for (accepted, class) in [(true, Class::ZeroRtt), (false, Class::Resumed)] {
        let mut t = talk();
        t.open().send(0, &[client_hello(true, true, &[]), encrypted(60)].concat());
        t.at(20).send(1, &[hello_13(true), encrypted(23), encrypted(53)].concat());
        let mut flight = if accepted { encrypted(21) } else { Vec::new() };
        flight.extend(encrypted(53));
        if !accepted {
            flight.extend(encrypted(60));
        }
        t.at(30).send(0, &flight).at(40).send(1, &encrypted(30));
        let c = t.finish();
        assert_eq!((c.class(), c.think_time()), (Some(class), millis(0)));
        assert_eq!(c.hello_to_data(), millis(if accepted { 0 } else { 20 }));
        assert_eq!(c.tls_handshake_time(), millis(20));
        let outcome = if accepted { EarlyData::Accepted } else { EarlyData::Rejected };
        assert_eq!(c.tls.unwrap().early_data, outcome);
    }
}

#[test]
fn a_certificate_asked_for_after_the_handshake_changes_nothing_before_it() {
    let mut t = tls_13();
    t.at(30).send(0, &[encrypted(53), encrypted(400)].concat());
    // The request, the client's answer of three messages, the response.
    t.at(40).send(1, &encrypted(80));
    t.at(50).send(0, &[encrypted(900), encrypted(290), encrypted(53)].concat());
    t.at(60).send(1, &encrypted(2000));
    let c = t.finish();
    let tls = c.tls.as_ref().unwrap();
    assert_eq!(
        (c.class(), tls.client_finished, c.client_data),
        (Some(Class::Full), ms(30), ms(30))
    );
    // The request looks like a ticket: what comes behind it may be, too.
    assert_eq!((c.server_data, &c.uncertain[..]), (ms(60), &[Uncertain::TicketOrData][..]));
}

#[test]
fn close_notify_of_any_level_is_no_failure() {
    for (level, description, class) in
        [(2, 0, Class::Full), (1, 0, Class::Full), (1, 90, Class::Full), (2, 40, Class::Failed)]
    {
        let mut t = tls_12(false);
        t.at(30).send(0, &[message(16, 9), finished_12()].concat()).at(40).send(1, &finished_12());
        // In the clear, as a server that lost its state may send it.
        let mut c = t.finish();
        let alert = record(21, &[level, description]);
        let mut t = tls_12(false);
        t.at(25).send(1, &alert);
        t.at(30).send(0, &[message(16, 9), finished_12()].concat()).at(40).send(1, &finished_12());
        let alerted = t.finish();
        assert_eq!((c.class(), alerted.class()), (Some(Class::Full), Some(class)));
        c.tls = None;
        assert_eq!(c.class(), None);
    }
}

#[test]
fn a_round_trip_without_its_first_syn_is_not_reported() {
    let mut t = talk();
    t.syn().at(1000).syn().at(1010).syn_ack().ack();
    assert_eq!(t.finish().round_trip(), None);
}
