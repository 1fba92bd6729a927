//! Dialogs that lead to TLS, as the RFCs show them, in every cut.

use starttls::{Dialog, Protocol};

/// What the server says, and what the client says to that.
type Turn = (&'static [u8], &'static [u8]);

const MYSQL_GREETING: &[u8] =
    b"\x26\0\0\0\x0a8.4.3\0\x01\0\0\0saltsalt\0\xff\xff\x21\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0";
const MYSQL_REQUEST: &[u8] = &[
    32, 0, 0, 1, 0x01, 0x8a, 0x08, 0, 0, 0, 0, 1, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,
];
const LDAP_REQUEST: &[u8] = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
const XMPP_CLIENT: &[u8] = b"<?xml version='1.0'?><stream:stream to='server.test' version='1.0' \
    xml:lang='en' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";
const XMPP_SERVER: &[u8] = b"<?xml version='1.0'?><stream:stream to='server.test' version='1.0' \
    xml:lang='en' xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams'>";
const XMPP_FEATURES: &[u8] = b"<?xml version='1.0'?>\n<stream:stream from='server.test' id='a>b' \
    xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>\
    <stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>\
    <mechanisms><mechanism>PLAIN</mechanism></mechanisms></stream:features>";
const XMPP_STARTTLS: &[u8] = b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";

/// Each protocol's dialogs; the first turn's server text is empty where the client begins.
fn dialogs() -> Vec<(Protocol, Vec<Turn>)> {
    vec![
        (
            Protocol::Smtp,
            vec![
                (b"220-one\r\n220 server.test ESMTP\r\n", b"EHLO [192.0.2.1]\r\n"),
                (b"250-server.test\r\n250-SIZE\r\n250-starttls\r\n250 8BITMIME\r\n", b"STARTTLS\r\n"),
                (b"220 go\r\n", b""),
            ],
        ),
        (
            Protocol::Imap,
            vec![
                (b"* OK [CAPABILITY IMAP4rev1] ready\r\n", b"a1 CAPABILITY\r\n"),
                (b"* CAPABILITY IMAP4rev1 STARTTLS\r\na1 OK done\r\n", b"a2 STARTTLS\r\n"),
                (b"a2 OK begin\r\n", b""),
            ],
        ),
        (
            Protocol::Pop3,
            vec![
                (b"+OK ready\r\n", b"CAPA\r\n"),
                (b"+OK\r\nTOP\r\nSTLS\r\n.\r\n", b"STLS\r\n"),
                (b"+OK begin\r\n", b""),
            ],
        ),
        (
            // A server older than CAPA.
            Protocol::Pop3,
            vec![(b"+OK ready\r\n", b"CAPA\r\n"), (b"-ERR\r\n", b"STLS\r\n"), (b"+OK\r\n", b"")],
        ),
        (
            Protocol::Ftp,
            vec![
                (b"120 soon\r\n220-Welcome\r\n to 220 users\r\n220 end\r\n", b"AUTH TLS\r\n"),
                (b"234 go\r\n", b""),
            ],
        ),
        (
            Protocol::Ldap,
            vec![(b"", LDAP_REQUEST), (b"\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\0\x04\0\x04\0", b"")],
        ),
        (
            // As Active Directory says it: long lengths, and the operation's name.
            Protocol::Ldap,
            vec![
                (b"", LDAP_REQUEST),
                (
                    b"\x30\x84\0\0\0\x28\x02\x01\x01\x78\x84\0\0\0\x1f\x0a\x01\0\x04\0\x04\0\
                      \x8a\x161.3.6.1.4.1.1466.20037",
                    b"",
                ),
            ],
        ),
        (
            Protocol::Xmpp,
            vec![
                (b"", XMPP_CLIENT),
                (XMPP_FEATURES, XMPP_STARTTLS),
                (b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", b""),
            ],
        ),
        (
            Protocol::XmppServer,
            vec![
                (b"", XMPP_SERVER),
                (XMPP_FEATURES, XMPP_STARTTLS),
                (b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'></proceed>", b""),
            ],
        ),
        (Protocol::Postgres, vec![(b"", b"\0\0\0\x08\x04\xd2\x16\x2f"), (b"S", b"")]),
        (Protocol::Mysql, vec![(MYSQL_GREETING, MYSQL_REQUEST)]),
        (
            Protocol::Sieve,
            vec![
                (
                    b"\"IMPLEMENTATION\" {7+}\r\nx\r\nOK y\r\n\"SIEVE\" \"fileinto\"\r\n\"StartTLS\"\r\nOK\r\n",
                    b"STARTTLS\r\n",
                ),
                (b"OK \"begin\"\r\n", b""),
            ],
        ),
        (
            Protocol::Nntp,
            vec![
                (b"201 ready\r\n", b"CAPABILITIES\r\n"),
                (b"101 list\r\nVERSION 2\r\nSTARTTLS\r\n.\r\n", b"STARTTLS\r\n"),
                (b"382 go\r\n", b""),
            ],
        ),
        (
            Protocol::Nntp,
            vec![
                (b"200 ready\r\n", b"CAPABILITIES\r\n"),
                (b"500 what?\r\n", b"STARTTLS\r\n"),
                (b"382 go\r\n", b""),
            ],
        ),
    ]
}

fn begin(protocol: Protocol) -> Dialog {
    Dialog::new(protocol, "server.test", [192, 0, 2, 1].into())
}

#[test]
fn every_protocol_leads_to_tls_in_any_pieces() {
    let all = dialogs();
    assert!(Protocol::ALL.iter().all(|one| all.iter().any(|(protocol, _)| protocol == one)));
    for (protocol, turns) in all {
        for cut in [1, 2, 7, 10_000] {
            let mut dialog = begin(protocol);
            for (at, (server, client)) in turns.iter().enumerate() {
                assert!(!dialog.is_done(), "{protocol}");
                for piece in server.chunks(cut) {
                    dialog.input(piece).unwrap();
                }
                let said = dialog.take_output();
                assert_eq!(
                    said.escape_ascii().to_string(),
                    client.escape_ascii().to_string(),
                    "{protocol} {at}"
                );
            }
            assert!(dialog.is_done(), "{protocol}");
        }
    }
}

/// CVE-2011-0411: what follows the go-ahead in plaintext is never taken for protected.
#[test]
fn plaintext_behind_the_go_ahead_is_an_error() {
    for (protocol, turns) in dialogs() {
        for is_at_once in [true, false] {
            let mut dialog = begin(protocol);
            let (last, before) = turns.split_last().unwrap();
            for (server, _) in before {
                dialog.input(server).unwrap();
                let _ = dialog.take_output();
            }
            let error = if is_at_once {
                dialog.input(&[last.0, b"* evil\r\n"].concat()).unwrap_err()
            } else {
                dialog.input(last.0).unwrap();
                assert!(dialog.is_done(), "{protocol}");
                dialog.input(b"* evil\r\n").unwrap_err()
            };
            let text = error.to_string();
            assert!(text.contains("8 bytes of plaintext after its go-ahead"), "{protocol}: {text}");
            assert!(text.contains("evil"), "{protocol}: {text}");
        }
    }
}

/// Two answers at once: the second came before its command.
#[test]
fn an_answer_before_its_command_is_an_error() {
    for (protocol, turns) in dialogs() {
        let together: Vec<u8> = turns.iter().flat_map(|(server, _)| *server).copied().collect();
        let spoken = turns.iter().filter(|(server, _)| !server.is_empty()).count();
        let read = begin(protocol).input(&together);
        assert_eq!(read.is_err(), spoken > 1, "{protocol}: {read:?}");
    }
}

#[test]
fn imap_may_send_untagged_data_between_commands() {
    let mut dialog = begin(Protocol::Imap);
    dialog.input(b"* OK hi\r\n* CAPABILITY IMAP4rev1\r\n").unwrap();
    dialog.input(b"* CAPABILITY STARTTLS\r\na1 OK\r\n* 0 EXISTS\r\n").unwrap();
    dialog.input(b"a2 OK\r\n").unwrap();
    assert!(dialog.is_done());
}

#[test]
fn smtp_names_an_ipv6_client_by_its_address() {
    let mut dialog = Dialog::new(Protocol::Smtp, "server.test", "2001:db8::1".parse().unwrap());
    dialog.input(b"220 hi\r\n").unwrap();
    assert_eq!(dialog.take_output(), b"EHLO [IPv6:2001:db8::1]\r\n");
}
