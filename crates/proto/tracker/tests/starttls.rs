//! TLS that begins behind another protocol.

use crate::talk::{Talk, client_hello, encrypted, hello_13, ms, record, server_hello, talk};
use tracker::{Class, Connection};

/// TLS 1.3 from 100 ms on: ClientHello, server's flight, Finished with request, answer.
fn tls13(t: &mut Talk) {
    t.at(100).send(0, &client_hello(true, false, &[]));
    t.at(110).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(120).send(0, &[encrypted(53), encrypted(18)].concat());
    t.at(130).send(1, &[encrypted(250), encrypted(18)].concat());
}

fn check(c: &Connection, preceded_by: usize) {
    let tls = c.tls.as_ref().expect("TLS");
    assert_eq!(tls.preceded_by as usize, preceded_by);
    assert_eq!((tls.client_hello, tls.server_hello), (ms(100), ms(110)));
    assert_eq!(tls.client_finished, ms(120));
    assert_eq!((c.client_data, c.server_data, tls.tickets), (ms(120), ms(130), 1));
    assert_eq!((c.class(), c.uncertain.len()), (Some(Class::Full), 0));
    assert_eq!(tls.server_flight_len as usize, hello_13(false).len() + 1234 + 5);
}

/// What is said before TLS: side and text.
type Before = &'static [(usize, &'static [u8])];

const SMTP: Before = &[
    (1, b"220 mail.example.org ESMTP\r\n"),
    (0, b"EHLO client.example.org\r\n"),
    (1, b"250-mail.example.org\r\n250 STARTTLS\r\n"),
    (0, b"STARTTLS\r\n"),
    (1, b"220 2.0.0 Ready to start TLS\r\n"),
];
const IMAP: Before =
    &[(1, b"* OK IMAP4 ready\r\n"), (0, b"a1 STARTTLS\r\n"), (1, b"a1 OK Begin TLS\r\n")];
const POP3: Before = &[(1, b"+OK ready\r\n"), (0, b"STLS\r\n"), (1, b"+OK begin\r\n")];
const FTP: Before = &[(1, b"220 FTP\r\n"), (0, b"AUTH TLS\r\n"), (1, b"234 go on\r\n")];
const XMPP: Before = &[
    (0, b"<?xml version='1.0'?><stream:stream to='example.org'>"),
    (1, b"<stream:features><starttls/></stream:features>"),
    (0, b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
    (1, b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
];
const POSTGRESQL: Before = &[(0, &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]), (1, b"S")];
const MYSQL: Before = &[
    (1, &[0x16, 0, 0, 0, 10, b'8', b'.', b'0', 0]),
    (0, &[32, 0, 0, 1, 0x05, 0xae, 0xff, 0x19, 0, 0, 0, 1, 0x21, 0, 0, 0, 0, 0, 0, 0]),
];
const CONNECT: Before = &[
    (0, b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"),
    (1, b"HTTP/1.1 200 Connection established\r\n\r\n"),
];
const SOCKS5: Before = &[
    (0, &[5, 1, 0]),
    (1, &[5, 0]),
    (0, &[5, 1, 0, 1, 192, 0, 2, 1, 1, 0xbb]),
    (1, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
];
const RDP: Before = &[
    (0, &[3, 0, 0, 19, 14, 0xe0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 3, 0, 0, 0]),
    (1, &[3, 0, 0, 19, 14, 0xd0, 0, 0, 0x12, 0x34, 0, 2, 0, 8, 0, 2, 0, 0, 0]),
];
const ALL: [Before; 10] = [SMTP, IMAP, POP3, FTP, XMPP, POSTGRESQL, MYSQL, CONNECT, SOCKS5, RDP];

fn before(before: Before) -> (Talk, usize) {
    let mut t = talk();
    t.open();
    for (millis, (side, text)) in (20..).zip(before) {
        t.at(millis).send(*side, text);
    }
    let client = before.iter().filter(|(side, _)| *side == 0).map(|(_, text)| text.len()).sum();
    (t, client)
}

#[test]
fn ten_protocols_go_on_in_tls() {
    for protocol in ALL {
        let (mut t, preceded_by) = before(protocol);
        tls13(&mut t);
        check(&t.finish(), preceded_by);
    }
}

#[test]
fn a_hello_in_small_pieces() {
    for step in [1, 3, 10, 400] {
        let (mut t, preceded_by) = before(SMTP);
        for piece in client_hello(true, false, &[]).chunks(step) {
            t.at(100).send(0, piece);
        }
        let hello = hello_13(false);
        for piece in hello.chunks(step) {
            t.at(110).send(1, piece);
        }
        t.send(1, &encrypted(1234));
        t.at(120).send(0, &[encrypted(53), encrypted(18)].concat());
        t.at(130).send(1, &[encrypted(250), encrypted(18)].concat());
        check(&t.finish(), preceded_by);
    }
}

#[test]
fn the_command_and_the_hello_in_one_segment() {
    let mut t = talk();
    t.open().send(1, b"220 ready\r\n");
    t.at(100).send(0, &[&b"STARTTLS\r\n"[..], &client_hello(true, false, &[])].concat());
    t.send(1, b"220 go on\r\n");
    t.at(110).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.at(120).send(0, &[encrypted(53), encrypted(18)].concat());
    t.at(130).send(1, &[encrypted(250), encrypted(18)].concat());
    check(&t.finish(), 10);
}

#[test]
fn tls_1_2_behind_smtp_and_a_refusal() {
    let (mut t, preceded_by) = before(SMTP);
    t.at(100).send(0, &client_hello(false, false, &[]));
    t.at(110).send(
        1,
        &[
            server_hello([5; 32], 0xc02f, &[]),
            record(22, &[11, 0, 0, 1, 0]),
            record(22, &[14, 0, 0, 0]),
        ]
        .concat(),
    );
    t.at(120)
        .send(0, &[record(22, &[16, 0, 0, 1, 0]), record(20, &[1]), record(22, &[0; 40])].concat());
    t.at(130).send(1, &[record(20, &[1]), record(22, &[0; 40])].concat());
    let tls = t.finish().tls.expect("TLS");
    assert_eq!((tls.preceded_by as usize, tls.client_finished), (preceded_by, ms(120)));
    assert_eq!((tls.server_finished, tls.certificate_requested), (ms(130), Some(false)));

    let (mut t, _) = before(SMTP);
    t.at(100).send(0, &client_hello(true, false, &[])).at(110).send(1, &record(21, &[2, 40]));
    let c = t.finish();
    assert_eq!(c.class(), Some(Class::Failed));
    assert_eq!(c.tls.unwrap().alerts[0].name, Some("handshake_failure"));
}

#[test]
fn a_capture_that_begins_in_the_middle_of_smtp() {
    let (mut t, _) = (talk(), 0);
    t.next = [500, 700];
    t.at(90).send(0, b"STARTTLS\r\n").send(1, b"220 go on\r\n");
    tls13(&mut t);
    let c = t.finish();
    let tls = c.tls.as_ref().unwrap();
    assert_eq!((tls.preceded_by, tls.client_finished, c.server_data), (10, ms(120), ms(130)));
}

/// A web page about TLS: a ClientHello lies in the middle of what is sent, of a line and of a segment.
#[test]
fn plain_protocols_that_carry_a_hello_stay_plain() {
    let hello = client_hello(true, false, &[]);
    let upload = [&b"POST / HTTP/1.1\r\nContent-Length: 1500\r\n\r\n"[..], &hello].concat();
    let mail = [&b"DATA\r\nbytes: "[..], &hello].concat();
    for text in [&upload[..], &mail] {
        let mut t = talk();
        t.open().send(0, text).at(20).send(1, b"200\r\n");
        // The same alone in a segment, behind an HTTP request.
        if text.starts_with(b"POST") {
            t.at(30).send(0, &hello).at(40).send(1, &hello_13(false));
        }
        let c = t.finish();
        assert_eq!((c.tls, c.client_data, c.server_data), (None, ms(10), ms(20)));
    }
}

#[test]
fn behind_16_kib_no_tls_is_looked_for() {
    let mut t = talk();
    t.open();
    for _ in 0..17 {
        t.send(0, &[b'x'; 1000]);
    }
    tls13(&mut t);
    let c = t.finish();
    assert_eq!((c.tls, c.client_data), (None, ms(10)));
}

#[test]
fn a_server_hello_that_was_captured_before_the_hello() {
    let mut t = talk();
    let hello = client_hello(true, false, &[]);
    t.open();
    t.next[0] += hello.len() as u32;
    t.at(20).send(1, &[hello_13(false), encrypted(1234)].concat());
    t.next[0] = 1;
    t.at(21).send(0, &hello);
    t.at(30).send(0, &[encrypted(53), encrypted(18)].concat()).at(40).send(1, &encrypted(18));
    let c = t.finish();
    let tls = c.tls.as_ref().unwrap();
    assert_eq!((tls.client_hello, tls.server_hello, tls.client_finished), (ms(21), ms(20), ms(30)));
    assert_eq!((c.client_data, c.server_data, tls.preceded_by), (ms(30), ms(40), 0));
}

/// The PROXY protocol's headers, version 1 and 2, with addresses, vectors and without.
fn proxy_headers() -> Vec<Vec<u8>> {
    let second = |len: u16| {
        let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
        header.extend(len.to_be_bytes());
        // Zeros, line ends and what looks like a record.
        header.extend([22, 3, 1, 2, 0, 1, b'\n', 22].iter().cycle().take(len.into()));
        header
    };
    let first = b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n".to_vec();
    vec![first, b"PROXY UNKNOWN\r\n".to_vec(), second(0), second(12), second(36), second(800)]
}

#[test]
fn a_proxy_header_before_the_hello_in_whatever_pieces() {
    for header in proxy_headers() {
        let stream = [&header[..], &client_hello(true, false, &[])].concat();
        for first in [stream.len(), 1, 12, 16, header.len() - 1, header.len(), header.len() + 3] {
            let mut t = talk();
            t.open().at(100);
            let (one, rest) = stream.split_at(first);
            t.send(0, one).send(0, rest);
            t.at(110).send(1, &[hello_13(false), encrypted(1234)].concat());
            t.at(120).send(0, &[encrypted(53), encrypted(18)].concat());
            t.at(130).send(1, &[encrypted(250), encrypted(18)].concat());
            check(&t.finish(), header.len());
        }
    }
}

#[test]
fn a_proxy_header_before_plain_http_is_no_tls() {
    for header in proxy_headers() {
        let mut t = talk();
        t.open().send(0, &[&header[..], b"GET / HTTP/1.1\r\n\r\n"].concat());
        t.at(20).send(1, b"HTTP/1.1 200 OK\r\n\r\n");
        let c = t.finish();
        assert_eq!((c.tls, c.client_data, c.server_data), (None, ms(10), ms(20)));
    }
}
