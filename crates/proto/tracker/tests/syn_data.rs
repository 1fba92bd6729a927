//! Data on SYN and SYN+ACK: taken, refused, replaced, and in SSLmTCP's envelopes.

use crate::talk::{Talk, client_hello, encrypted, hello_13, ms, record, server_hello, talk};
use proptest::prelude::*;
use tracker::{Connection, EarlyData};
use wire::tcp::{Flags, OptionList};

/// An envelope around TLS records (document §4.2).
fn envelope(records: &[u8]) -> Vec<u8> {
    let mut out = (records.len() as u16).to_be_bytes().to_vec();
    out.extend_from_slice(records);
    out.resize(out.len().max(1024), 0);
    out
}

/// The same handshake message in records of at most `len` bytes each.
fn cut(records: &[u8], len: usize) -> Vec<u8> {
    records[5..].chunks(len).flat_map(|piece| record(22, piece)).collect()
}

/// A SYN with data; the next byte of the client's is that after `taken` of them.
fn syn(t: &mut Talk, data: &[u8], taken: usize) {
    t.raw(0, Flags::SYN, 0, None, data, OptionList::default());
    t.next = [1 + taken as u32, 0];
}

/// A SYN+ACK with data, the next byte of the server's being that after them.
fn syn_ack(t: &mut Talk, data: &[u8]) {
    t.raw(1, Flags::SYN, 0, Some(t.next[0]), data, OptionList::default());
    t.next[1] = 1 + data.len() as u32;
}

fn loaded(c: &Connection) -> (u32, u32, Option<bool>, bool) {
    let tcp = c.tcp.as_ref().unwrap();
    assert_eq!(tcp.syn_data, tcp.fast_open.syn_data);
    (tcp.syn_data, tcp.syn_ack_data, tcp.syn_data_taken, tcp.enveloped)
}

fn certificate() -> Vec<u8> {
    record(22, &[&[11, 0, 3, 0][..], &[0; 768]].concat())
}

/// TLS 1.2's messages around RSA: the server's flight, the client's, the server's last.
fn tls12() -> [Vec<u8>; 4] {
    let flight =
        [server_hello([5; 32], 0x009c, &[]), certificate(), record(22, &[14, 0, 0, 0])].concat();
    let key_exchange = record(22, &[&[16, 0, 1, 2][..], &[9; 258]].concat());
    let changed = [record(20, &[1]), record(22, &[0; 40])].concat();
    [client_hello(false, false, &[]), flight, [key_exchange, changed.clone()].concat(), changed]
}

#[test]
fn paper_in_envelopes() {
    let [hello, flight, second, finished] = tls12();
    let mut t = talk();
    let first = envelope(&hello);
    syn(&mut t, &first, first.len());
    t.at(10);
    syn_ack(&mut t, &envelope(&flight));
    t.at(12).send(0, &envelope(&second));
    t.at(22).send(1, &finished).at(23).send(0, &encrypted(60)).at(33).send(1, &encrypted(90));
    let c = t.finish();
    assert_eq!(loaded(&c), (1024, 1024, Some(true), true));
    let (tcp, tls) = (c.tcp.as_ref().unwrap(), c.tls.as_ref().unwrap());
    assert_eq!((tcp.syn, tcp.syn_ack, tcp.handshake_ack), (ms(0), ms(10), ms(12)));
    assert_eq!((tls.client_hello, tls.client_hello_end), (ms(0), ms(0)));
    assert_eq!((tls.server_hello, tls.server_flight_end), (ms(10), ms(10)));
    assert_eq!((tls.client_finished, tls.server_finished), (ms(12), ms(22)));
    assert_eq!((c.client_data, c.server_data), (ms(23), ms(33)));
    assert_eq!(tls.client_hello_records_len as usize, hello.len());
    assert_eq!(tls.server_flight_len as usize, flight.len());
    assert_eq!((tcp.client_retransmitted, tcp.server_retransmitted), (0, 0));
    assert_eq!((c.uncertain, tcp.bytes_missing), (vec![], false));
}

/// The SYN+ACK is lost, and what was sent behind it comes first.
#[test]
fn what_comes_before_a_lost_syn_ack_lies_behind_it() {
    let flight = [server_hello([5; 32], 0x1301, &[(43, &[3, 4])]), encrypted(700), encrypted(50)];
    let [first, second, third] = flight;
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    syn(&mut t, &hello, hello.len());
    t.next[1] = 1 + first.len() as u32;
    t.at(10).send(1, &second).at(11).send(1, &third);
    let behind = t.next;
    t.at(1000);
    t.raw(0, Flags::SYN, 0, None, &[], OptionList::default());
    t.at(1010);
    t.raw(1, Flags::SYN, 0, Some(behind[0]), &first, OptionList::default());
    t.next = behind;
    t.at(1012).send(0, &encrypted(36));
    let c = t.finish();
    let (tcp, tls) = (c.tcp.as_ref().unwrap(), c.tls.as_ref().unwrap());
    assert_eq!((tcp.syn_ack, tls.server_hello), (ms(1010), ms(1010)));
    assert_eq!(tls.version.map(|version| version.0), Some(0x0304));
    let sent = first.len() + second.len() + third.len();
    assert_eq!(tcp.server_payload_bytes as usize, sent);
    assert!(!tcp.bytes_missing, "{c:?}");
}

#[test]
fn an_envelope_longer_than_a_segment_goes_on_behind_the_syn_ack() {
    let [hello, _, second, finished] = tls12();
    let long = record(22, &[&[11, 0, 15, 0][..], &[0; 3840]].concat());
    let flight = [server_hello([5; 32], 0x009c, &[]), long, record(22, &[14, 0, 0, 0])].concat();
    let wrapped = envelope(&flight);
    assert_eq!(wrapped.len(), flight.len() + 2);
    let mut t = talk();
    let first = envelope(&hello);
    syn(&mut t, &first, first.len());
    t.at(10);
    syn_ack(&mut t, &wrapped[..1460]);
    t.send(1, &wrapped[1460..2920]).at(11).send(1, &wrapped[2920..]);
    t.at(12).send(0, &envelope(&second)).at(20).send(1, &finished);
    let c = t.finish();
    let tls = c.tls.as_ref().unwrap();
    assert_eq!((tls.server_hello_end, tls.server_flight_end), (ms(10), ms(11)));
    assert_eq!((tls.client_finished, tls.server_finished), (ms(12), ms(20)));
    assert_eq!(loaded(&c), (1024, 1460, Some(true), true));
}

#[test]
fn tls13_without_envelopes() {
    let hello = cut(&client_hello(true, false, &[]), 400);
    let flight = [hello_13(false), record(20, &[1]), encrypted(1000)].concat();
    let mut t = talk();
    syn(&mut t, &hello, hello.len());
    t.at(10);
    syn_ack(&mut t, &flight[..1400]);
    t.send(1, &flight[1400..]);
    t.at(11).send(0, &[encrypted(53), encrypted(100)].concat());
    t.at(21).send(1, &encrypted(20));
    let c = t.finish();
    let tls = c.tls.as_ref().unwrap();
    assert_eq!(loaded(&c), (hello.len() as u32, 1400, Some(true), false));
    assert_eq!((tls.client_hello, tls.server_flight_end), (ms(0), ms(10)));
    assert_eq!((tls.client_finished, c.client_data, c.server_data), (ms(11), ms(11), ms(21)));
    assert_eq!(tls.client_hello_records_len as usize, hello.len());
    assert_eq!(c.uncertain, []);
}

#[test]
fn early_data_in_the_syn() {
    let first = [client_hello(true, true, &[]), encrypted(60)].concat();
    let flight = [hello_13(true), encrypted(30), encrypted(53), encrypted(200)].concat();
    let mut t = talk();
    syn(&mut t, &first, first.len());
    t.at(10);
    syn_ack(&mut t, &flight);
    t.at(11).send(0, &[encrypted(21), encrypted(53)].concat()).at(21).send(1, &encrypted(90));
    let c = t.finish();
    let tls = c.tls.as_ref().unwrap();
    assert_eq!((tls.early_data, tls.early_data_sent), (EarlyData::Accepted, ms(0)));
    assert_eq!((c.client_data, tls.client_finished), (ms(0), ms(11)));
}

#[test]
fn refused_data_are_replaced_by_other_bytes() {
    // An envelope was refused: what is left of it must not be read. The hello then is another.
    let wrapped = envelope(&client_hello(false, false, &[]));
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    syn(&mut t, &wrapped, 0);
    t.at(10);
    syn_ack(&mut t, &[]);
    t.ack().send(0, &hello).at(20).send(1, &[hello_13(false), encrypted(900)].concat());
    t.at(21).send(0, &[encrypted(53), encrypted(100)].concat()).at(31).send(1, &encrypted(20));
    let c = t.finish();
    let (tcp, tls) = (c.tcp.as_ref().unwrap(), c.tls.as_ref().unwrap());
    assert_eq!(loaded(&c), (wrapped.len() as u32, 0, Some(false), false));
    assert_eq!(
        (tcp.client_payload, tls.client_hello, tls.client_hello_end),
        (ms(0), ms(10), ms(10))
    );
    assert_eq!((tls.client_hello_len as usize, c.client_data), (hello.len() - 5, ms(21)));
    assert_eq!((tcp.client_retransmitted, tcp.client_out_of_order), (0, 0));
    let sent = hello.len() + 58 + 105;
    assert_eq!((tcp.client_payload_bytes as usize, c.uncertain), (sent, vec![]));
}

#[test]
fn refused_data_sent_again_are_a_retransmission_and_count_from_then_on() {
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    syn(&mut t, &hello, 0);
    t.at(10);
    syn_ack(&mut t, &[]);
    t.send(0, &hello[..700]).at(11).send(0, &hello[700..]);
    let c = t.finish();
    let (tcp, tls) = (c.tcp.as_ref().unwrap(), c.tls.as_ref().unwrap());
    assert_eq!((tls.client_hello, tls.client_hello_end), (ms(10), ms(11)));
    assert_eq!((tcp.client_retransmitted, tcp.syn_data_taken), (2, Some(false)));
    assert_eq!(tcp.client_payload_bytes as usize, hello.len());
}

#[test]
fn a_part_that_was_taken_counts_and_the_rest_is_sent_again() {
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    syn(&mut t, &hello, 500);
    t.at(10);
    syn_ack(&mut t, &[]);
    t.send(0, &hello[500..]);
    let c = t.finish();
    let (tcp, tls) = (c.tcp.as_ref().unwrap(), c.tls.as_ref().unwrap());
    assert_eq!((tls.client_hello, tls.client_hello_end), (ms(0), ms(10)));
    assert_eq!((tcp.syn_data_taken, tcp.fast_open.syn_data_acked), (Some(true), 500));
    assert_eq!((tcp.client_retransmitted, tcp.bytes_missing), (1, false));
}

#[test]
fn of_two_hellos_on_syns_the_one_that_was_acknowledged_counts() {
    let (one, two) = (client_hello(true, false, &[]), client_hello(true, true, &[]));
    for (taken, at) in [(&one, 0), (&two, 1000)] {
        let mut t = talk();
        syn(&mut t, &one, 0);
        t.at(1000);
        syn(&mut t, &two, taken.len());
        t.at(1010);
        syn_ack(&mut t, &[]);
        let c = t.finish();
        let (tcp, tls) = (c.tcp.as_ref().unwrap(), c.tls.as_ref().unwrap());
        assert_eq!((tls.client_hello, tls.client_hello_len as usize), (ms(at), taken.len() - 5));
        assert_eq!(tcp.client_retransmitted, 1);
    }
}

#[test]
fn a_bare_syn_after_a_loaded_one() {
    // The path drops SYNs with data: the second SYN is bare, and the hello follows its answer.
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    syn(&mut t, &hello, 0);
    t.at(1000).syn().at(1010).syn_ack().send(0, &hello);
    let c = t.finish();
    assert_eq!(loaded(&c), (hello.len() as u32, 0, Some(false), false));
    assert_eq!(c.tls.as_ref().unwrap().client_hello, ms(1010));
    // The SYN, and the hello, whose bytes had gone before.
    assert_eq!(c.tcp.unwrap().client_retransmitted, 2);
}

#[test]
fn without_a_word_of_the_server_what_was_sent_is_what_there_is() {
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    syn(&mut t, &hello, 0);
    t.at(5);
    syn(&mut t, &hello, 0);
    let c = t.finish();
    assert_eq!(loaded(&c), (hello.len() as u32, 0, None, false));
    assert_eq!(c.tls.as_ref().unwrap().client_hello, ms(0));
    // A reset acknowledges the SYN's data, but takes none.
    let mut t = talk();
    syn(&mut t, &hello, hello.len());
    t.at(5).flagged(1, Flags::RST);
    assert_eq!(loaded(&t.finish()), (hello.len() as u32, 0, None, false));
}

#[test]
fn a_lost_syn_ack_is_made_up_for_by_the_servers_next_segment() {
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    syn(&mut t, &hello, hello.len());
    t.next[1] = 1;
    t.at(12).flagged(1, Flags(0));
    let c = t.finish();
    assert_eq!(loaded(&c), (hello.len() as u32, 0, Some(true), false));
}

#[test]
fn what_only_looks_like_an_envelope_is_plain_data() {
    let mut data = vec![0u8; 1200];
    data[..5].copy_from_slice(&[3, 0, 22, 3, 9]);
    let mut t = talk();
    syn(&mut t, &data, data.len());
    t.at(1);
    syn_ack(&mut t, b"answer");
    let c = t.finish();
    assert_eq!((loaded(&c), c.tls.is_none()), ((1200, 6, Some(true), false), true));
    assert_eq!((c.client_data, c.server_data), (ms(0), ms(1)));
}

proptest! {
    /// RFC 8446 §5.1: a handshake message may be cut into records of any length.
    #[test]
    fn a_hello_in_records_of_any_length(len in 1usize..40, on_syn: bool, enveloped: bool) {
        let hello = client_hello(false, false, &[7; 30]);
        let records = cut(&hello, len);
        let enveloped = enveloped && on_syn;
        let data = if enveloped { envelope(&records) } else { records.clone() };
        let mut t = talk();
        if on_syn {
            syn(&mut t, &data, data.len());
            t.at(10).syn_ack();
        } else {
            t.open().send(0, &data);
        }
        let c = t.finish();
        let tls = c.tls.as_ref().unwrap();
        let at = if on_syn { ms(0) } else { ms(10) };
        prop_assert_eq!((tls.client_hello, tls.client_hello_end), (at, at));
        prop_assert_eq!(tls.client_hello_len as usize, hello.len() - 5);
        prop_assert_eq!(tls.client_hello_records_len as usize, records.len());
        prop_assert_eq!(tls.server_name.as_deref(), Some("example.org"));
        prop_assert_eq!(c.tcp.as_ref().unwrap().enveloped, enveloped);
    }
}
