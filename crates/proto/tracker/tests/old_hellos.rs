//! Old, odd and cut hellos.

use crate::talk::{client_hello, encrypted, hello_13, ms, record, share, talk};
use tracker::{Class, EarlyData, TlsFacts, Uncertain};
use wire::tls::{ClientHelloRepr, Extension, ExtensionKind, HELLO_RETRY_REQUEST_RANDOM, body};

/// A ClientHello in the format of SSL 2.0 (RFC 5246 §E.2).
fn ssl2_hello(version: [u8; 2]) -> Vec<u8> {
    let mut body = vec![1, version[0], version[1], 0, 9, 0, 0, 0, 16];
    body.extend([0, 0, 0x35, 1, 0, 0x80, 0, 0, 0x0a]);
    body.extend([7; 16]);
    let mut hello = vec![0x80, body.len() as u8];
    hello.extend(body);
    hello
}

/// A ServerHello of a version without extensions, in a record of that version.
fn old_server_hello(minor: u8) -> Vec<u8> {
    let mut message = vec![2, 0, 0, 38, 3, minor];
    message.extend([5; 32]);
    message.extend([0, 0, 0x35, 0]);
    versioned(22, minor, &message)
}

fn versioned(kind: u8, minor: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = record(kind, payload);
    out[2] = minor;
    out
}

/// RSA key exchange from 10 ms on in a version, with a given hello.
fn rsa_handshake(hello: &[u8], minor: u8, step: usize) -> (TlsFacts, Option<Class>) {
    let mut t = talk();
    t.open();
    for piece in hello.chunks(step) {
        t.send(0, piece);
    }
    let flight = [
        old_server_hello(minor),
        versioned(22, minor, &[11, 0, 0, 3, 0, 0, 0]),
        versioned(22, minor, &[13, 0, 0, 2, 0, 0]),
        versioned(22, minor, &[14, 0, 0, 0]),
    ];
    t.at(20).send(1, &flight.concat());
    let answer = [
        versioned(22, minor, &[16, 0, 0, 2, 0, 0]),
        versioned(20, minor, &[1]),
        versioned(22, minor, &[0x5e; 64]),
    ];
    t.at(30).send(0, &answer.concat());
    t.at(40).send(1, &[versioned(20, minor, &[1]), versioned(22, minor, &[0x5e; 64])].concat());
    t.at(41)
        .send(0, &versioned(23, minor, &[0; 32]))
        .at(50)
        .send(1, &versioned(23, minor, &[0; 32]));
    let c = t.finish();
    assert_eq!((c.client_data, c.server_data, c.uncertain.len()), (ms(41), ms(50), 0));
    let class = c.class();
    (c.tls.unwrap(), class)
}

#[test]
fn a_greeting_of_ssl_2_leads_to_ssl_3_or_tls() {
    for (minor, name) in [(0, "SSL 3.0"), (1, "TLS 1.0"), (3, "TLS 1.2")] {
        for step in [1, 4, 100] {
            let (tls, class) = rsa_handshake(&ssl2_hello([3, minor]), minor, step);
            assert_eq!(tls.versions_offered[0].to_string(), name);
            assert_eq!(tls.version.unwrap().to_string(), name);
            let suites: Vec<u16> = tls.cipher_suites.iter().map(|suite| suite.0).collect();
            assert_eq!((suites, tls.client_hello_len), (vec![0x35, 0x0a], 34));
            assert_eq!((tls.client_hello, tls.client_finished), (ms(10), ms(30)));
            assert_eq!((tls.certificate_requested, class), (Some(true), Some(Class::Full)));
            assert_eq!((tls.ja3, tls.ja4), (None, None));
        }
    }
}

#[test]
fn ssl_3_and_early_tls_in_their_own_format() {
    for (minor, name) in [(0, "SSL 3.0"), (1, "TLS 1.0"), (2, "TLS 1.1")] {
        // Such a hello ends before the extensions.
        let mut message = vec![1, 0, 0, 41, 3, minor];
        message.extend([5; 32]);
        message.extend([0, 0, 2, 0, 0x35, 1, 0]);
        let (tls, class) = rsa_handshake(&versioned(22, minor, &message), minor, 9);
        assert_eq!(tls.versions_offered[0].to_string(), name);
        assert_eq!(tls.legacy_version.unwrap().to_string(), name);
        assert_eq!((tls.version.unwrap().to_string(), class), (name.to_owned(), Some(Class::Full)));
        assert_eq!(tls.session_id_offered, 0);
        let ja4 = format!(
            "t{}i010000_",
            if minor == 0 { "s3" } else { ["10", "11"][minor as usize - 1] }
        );
        assert!(tls.ja4.unwrap().starts_with(&ja4));
    }
}

#[test]
fn ssl_2_itself_is_named_and_no_more() {
    let mut t = talk();
    t.open().send(0, &ssl2_hello([0, 2]));
    let mut hello = vec![0x84, 0, 4, 0, 1, 0, 2];
    hello.extend([0; 1019]);
    t.at(20).send(1, &hello).at(30).send(0, &[0x80, 20]).at(40).send(1, &[0x80, 20]);
    let c = t.finish();
    assert_eq!((c.class(), c.client_data), (None, None));
    assert_eq!(c.uncertain, [Uncertain::UnknownSuite]);
    assert_eq!(c.tls.unwrap().version.unwrap().to_string(), "SSL 2.0");
}

#[test]
fn what_only_looks_like_a_greeting_of_ssl_2_is_plain() {
    for bytes in [&[0x80, 0x2e, 2, 3, 1, 9][..], &[0xff; 40]] {
        let mut t = talk();
        t.open().send(0, bytes).at(20).send(1, bytes);
        let c = t.finish();
        assert_eq!((c.tls, c.client_data, c.server_data), (None, ms(10), ms(20)));
    }
}

fn hello_of(versions: &[u16], psk: bool, padding: usize) -> Vec<u8> {
    let mut bodies = vec![
        (0, body::server_name("example.org")),
        (43, body::supported_versions(versions)),
        (40, body::key_shares(&[(0x1d, &[7; 32])])),
        (45, body::psk_dhe_ke()),
        (21, vec![0; padding]),
    ];
    if psk {
        bodies.push((42, vec![]));
        bodies.push((41, body::pre_shared_key(&[9; 60], 5, &[8; 32])));
    }
    let repr = ClientHelloRepr {
        legacy_version: 0x0303,
        random: [1; 32],
        session_id: &[],
        cipher_suites: vec![0x1a1a, 0x1301],
        extensions: bodies
            .iter()
            .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
            .collect(),
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    message
}

/// A ServerHello of a draft before 22: no session id, no compression method.
fn draft_server_hello(draft: u8, psk: bool) -> Vec<u8> {
    let mut extensions = vec![0, 40, 0, 36, 0, 0x1d, 0, 32];
    extensions.extend([3; 32]);
    if psk {
        extensions.extend([0, 41, 0, 2, 0, 0]);
    }
    let mut body = vec![0x7f, draft];
    body.extend([5; 32]);
    body.extend([0x13, 0x01, 0, extensions.len() as u8]);
    body.extend(extensions);
    let mut message = vec![2, 0, 0, body.len() as u8];
    message.extend(body);
    record(22, &message)
}

#[test]
fn up_to_draft_18_early_data_ended_with_an_alert() {
    for (draft, end) in [(18, 19), (19, 21)] {
        let mut t = talk();
        let hello = record(22, &hello_of(&[0x7f00 + u16::from(draft)], true, 0));
        t.open().send(0, &[hello, encrypted(100)].concat());
        t.at(20).send(1, &[draft_server_hello(draft, true), encrypted(23), encrypted(53)].concat());
        t.at(30).send(0, &[encrypted(end), encrypted(53), encrypted(40)].concat());
        t.at(40).send(1, &[encrypted(220), encrypted(30)].concat());
        let c = t.finish();
        assert_eq!(c.class(), Some(Class::ZeroRtt), "draft {draft}");
        let tls = c.tls.as_ref().unwrap();
        assert_eq!(tls.version.unwrap().to_string(), format!("TLS 1.3 draft {draft}"));
        assert_eq!((tls.early_data, tls.early_data_records), (EarlyData::Accepted, 1));
        assert_eq!((c.client_data, tls.client_finished, c.server_data), (ms(10), ms(30), ms(40)));
        assert_eq!((c.think_time().unwrap().as_nanos(), c.uncertain.len()), (0, 0));
        assert_eq!(tls.cipher_suites.len(), 1);
    }
}

#[test]
fn a_drafts_retry_names_its_group_and_the_server_hello_its_own() {
    let mut t = talk();
    t.open().send(0, &record(22, &hello_of(&[0x7f13], false, 0)));
    let retry = [6, 0, 0, 12, 0x7f, 19, 0x13, 1, 0, 6, 0, 40, 0, 2, 0, 0x17];
    t.at(20).send(1, &record(22, &retry));
    t.at(30).send(0, &record(22, &hello_of(&[0x7f13], false, 0)));
    t.at(40).send(1, &[draft_server_hello(19, false), encrypted(1234)].concat());
    t.at(50).send(0, &encrypted(53));
    let c = t.finish();
    assert_eq!(c.class(), Some(Class::HelloRetry));
    let tls = c.tls.unwrap();
    assert_eq!((tls.retry_group.unwrap().0, tls.group.unwrap().0), (0x17, 0x1d));
    assert_eq!((tls.hello_retry_request, tls.second_client_hello_end), (ms(20), ms(30)));
}

#[test]
fn a_retry_without_a_server_hello_has_no_group() {
    let mut t = talk();
    t.open().send(0, &client_hello(true, false, &[]));
    let retry = crate::talk::server_hello(
        HELLO_RETRY_REQUEST_RANDOM,
        0x1301,
        &[(43, &[3, 4]), (51, &[0, 0x17])],
    );
    t.at(20).send(1, &retry).flagged(0, wire::tcp::Flags::FIN);
    let c = t.finish();
    assert_eq!(c.class(), Some(Class::Failed));
    let tls = c.tls.unwrap();
    assert_eq!((tls.retry_group.map(|group| group.0), tls.group), (Some(0x17), None));
    assert_eq!((tls.session_id_offered, tls.certificate_requested), (32, None));
}

#[test]
fn a_vendors_version_is_tls_1_3() {
    let mut t = talk();
    t.open().send(0, &record(22, &hello_of(&[0xfafa, 0xfb17, 0x7e02, 0x0303], false, 0)));
    let share = share();
    let hello = crate::talk::server_hello([5; 32], 0x1301, &[(43, &[0xfb, 0x17]), (51, &share)]);
    t.at(20).send(1, &[hello, encrypted(1234)].concat());
    t.at(30).send(0, &[encrypted(53), encrypted(18)].concat()).at(40).send(1, &encrypted(18));
    let c = t.finish();
    let tls = c.tls.as_ref().unwrap();
    assert_eq!(tls.version.unwrap().to_string(), "TLS 1.3 fb23");
    let offered: Vec<String> = tls.versions_offered.iter().map(ToString::to_string).collect();
    assert_eq!(offered, ["TLS 1.3 fb23", "TLS 1.3 experiment 2", "TLS 1.2"]);
    assert_eq!((tls.client_finished, c.client_data, c.server_data), (ms(30), ms(30), ms(40)));
}

/// A message in records of so many bytes.
fn fragmented(message: &[u8], step: usize) -> Vec<u8> {
    message.chunks(step).flat_map(|part| record(22, part)).collect()
}

#[test]
fn hellos_in_many_records_and_segments() {
    let whole = record(22, &hello_of(&[0x0304], false, 1800));
    let facts = |bytes: &[u8], segment: usize| {
        let mut t = talk();
        t.open();
        for piece in bytes.chunks(segment) {
            t.send(0, piece);
        }
        let server = hello_13(false);
        let server = fragmented(&server[5..], 7);
        t.at(20).send(1, &[server, encrypted(1234)].concat());
        t.at(30).send(0, &[encrypted(53), encrypted(18)].concat()).at(40).send(1, &encrypted(18));
        let c = t.finish();
        assert_eq!((c.client_data, c.server_data, c.uncertain.len()), (ms(30), ms(40), 0));
        c.tls.unwrap()
    };
    let expected = facts(&whole, 1460);
    assert_eq!(
        (expected.client_finished, expected.client_hello_len),
        (ms(30), whole.len() as u32 - 5)
    );
    for (record_len, segment) in [(1, 1460), (1, 1), (3, 2), (64, 1460), (700, 100), (16_384, 1)] {
        let bytes = fragmented(&whole[5..], record_len);
        let mut found = facts(&bytes, segment);
        assert_eq!(found.client_hello_records_len as usize, bytes.len());
        found.client_hello_records_len = expected.client_hello_records_len;
        assert_eq!(found, expected);
    }
}

#[test]
fn a_hello_of_which_a_segment_was_lost_is_no_hello() {
    let hello = client_hello(true, false, &[]);
    let mut t = talk();
    t.open().send(0, &hello[..700]);
    t.next[0] += 100;
    t.send(0, &hello[800..]);
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(30).send(0, &encrypted(53));
    let c = t.finish();
    // The server's hello was read: TLS it was, but whether it went well is not known.
    assert_eq!((c.class(), &c.uncertain[..]), (None, &[Uncertain::BytesMissing][..]));
    let tls = c.tls.unwrap();
    assert_eq!((tls.client_hello, tls.server_hello_end, tls.server_name), (None, ms(20), None));
}

#[test]
fn a_server_alone_tells_what_it_chose() {
    let mut t = talk();
    t.at(10).syn_ack();
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    let c = t.finish();
    assert!(c.roles_known && c.uncertain.contains(&Uncertain::OneDirection));
    assert_eq!((c.class(), c.tls.unwrap().cipher_suite.unwrap().0), (None, 0x1301));
}
