//! Servers that do not change to TLS: each refusal by its name.

use std::time::Duration;

use fault::Explain;
use starttls::{Dialog, Error, MAX_INPUT, Protocol};

/// The error that the server's turns end with, if they do; and otherwise that of its end.
fn error(protocol: Protocol, turns: &[&[u8]]) -> Error {
    let mut dialog = Dialog::new(protocol, "server.test", [192, 0, 2, 1].into());
    for turn in turns {
        let _ = dialog.take_output();
        if let Err(error) = dialog.input(turn) {
            return error;
        }
    }
    assert!(!dialog.is_done(), "{protocol}");
    dialog.closed()
}

/// A MySQL greeting with these capabilities.
fn mysql(capabilities: [u8; 2]) -> Vec<u8> {
    let mut payload = b"\x0a8.4.3\0\x01\0\0\0saltsalt\0".to_vec();
    payload.extend(capabilities);
    [&[u8::try_from(payload.len()).unwrap(), 0, 0, 0], payload.as_slice()].concat()
}

#[test]
fn servers_without_starttls_are_told() {
    let without_ssl = mysql([0xff, 0xf7]);
    let cases: &[(Protocol, &[&[u8]])] = &[
        (Protocol::Smtp, &[b"220 hi\r\n", b"250-server.test\r\n250 XSTARTTLS\r\n"]),
        (Protocol::Smtp, &[b"220 hi\r\n", b"250 STARTTLS\r\n"]),
        (Protocol::Smtp, &[b"220 hi\r\n", b"502 no EHLO\r\n"]),
        (Protocol::Imap, &[b"* OK hi\r\n", b"* CAPABILITY IMAP4rev1\r\na1 OK\r\n"]),
        (
            Protocol::Imap,
            &[b"* OK hi\r\n", b"* CAPABILITY STARTTLS\r\na1 OK\r\n", b"a2 BAD unknown\r\n"],
        ),
        (Protocol::Pop3, &[b"+OK hi\r\n", b"+OK\r\nTOP\r\n.\r\n"]),
        (Protocol::Pop3, &[b"+OK hi\r\n", b"-ERR\r\n", b"-ERR unknown\r\n"]),
        (Protocol::Ftp, &[b"220 hi\r\n", b"500 unknown\r\n"]),
        (Protocol::Ftp, &[b"220 hi\r\n", b"530 Please login with USER and PASS.\r\n"]),
        (Protocol::Ldap, &[b"\x30\x10\x02\x01\x01\x78\x0b\x0a\x01\x02\x04\0\x04\x04what"]),
        (Protocol::Xmpp, &[b"<stream:stream><stream:features><bind/></stream:features>"]),
        (Protocol::Xmpp, &[b"<stream:stream><stream:features/>"]),
        (Protocol::Postgres, &[b"N"]),
        (Protocol::Postgres, &[b"EFATAL: old\0"]),
        (Protocol::Mysql, &[&without_ssl]),
        (Protocol::Sieve, &[b"\"SIEVE\" \"STARTTLS\"\r\nOK\r\n"]),
        (Protocol::Nntp, &[b"200 hi\r\n", b"101 list\r\nREADER\r\n.\r\n"]),
        (Protocol::Nntp, &[b"200 hi\r\n", b"500 what\r\n", b"500 what\r\n"]),
    ];
    for (protocol, turns) in cases {
        let error = error(*protocol, turns);
        assert!(matches!(error, Error::NotOffered { .. }), "{protocol}: {error}");
        assert!(error.to_string().contains("offers no STARTTLS"), "{error}");
        assert!(error.remedy().is_some());
    }
}

#[test]
fn refusals_quote_the_server() {
    let cases: &[(Protocol, &[&[u8]], &str)] = &[
        (
            Protocol::Smtp,
            &[b"220 hi\r\n", b"250-a\r\n250 STARTTLS\r\n", b"454 TLS not available\r\n"],
            "refuses STARTTLS: 454 TLS not available",
        ),
        (Protocol::Smtp, &[b"554 no service\r\n"], "turns the connection away: 554 no service"),
        (Protocol::Smtp, &[b"220 hi\r\n", b"421 bye\r\n"], "turns the connection away: 421 bye"),
        (
            Protocol::Imap,
            &[b"* OK hi\r\n", b"* CAPABILITY STARTTLS\r\na1 OK\r\n", b"a2 NO busy\r\n"],
            "refuses STARTTLS: NO busy",
        ),
        (Protocol::Imap, &[b"* BYE too many\r\n"], "turns the connection away: BYE too many"),
        (Protocol::Imap, &[b"* PREAUTH hi\r\n"], "PREAUTH, which forbids STARTTLS"),
        (
            Protocol::Pop3,
            &[b"+OK hi\r\n", b"+OK\r\nSTLS\r\n.\r\n", b"-ERR busy\r\n"],
            "refuses STARTTLS: -ERR busy",
        ),
        (Protocol::Pop3, &[b"-ERR go away\r\n"], "turns the connection away: -ERR go away"),
        (Protocol::Ftp, &[b"220 hi\r\n", b"431 no certificate\r\n"], "refuses STARTTLS: 431"),
        (Protocol::Ftp, &[b"421 too many\r\n"], "turns the connection away: 421 too many"),
        (
            Protocol::Ldap,
            &[b"\x30\x10\x02\x01\x01\x78\x0b\x0a\x01\x34\x04\0\x04\x04busy"],
            "refuses STARTTLS: unavailable busy",
        ),
        (
            Protocol::Ldap,
            &[b"\x30\x10\x02\x01\0\x78\x0b\x0a\x01\x34\x04\0\x04\x04gone"],
            "turns the connection away: unavailable gone",
        ),
        (
            Protocol::Xmpp,
            &[b"<stream:stream><stream:features><starttls/></stream:features>", b"<failure/>"],
            "refuses STARTTLS",
        ),
        (
            Protocol::Xmpp,
            &[b"<stream:stream><stream:error><host-unknown/></stream:error>"],
            "turns the connection away: host-unknown",
        ),
        (
            Protocol::Postgres,
            &[b"E\0\0\0\x16SFATAL\0Mtoo many\0\0"],
            "turns the connection away: too many",
        ),
        (
            Protocol::Mysql,
            &[b"\x0c\0\0\0\xff\x10\x04Too many!"],
            "turns the connection away: Too many!",
        ),
        (Protocol::Sieve, &[b"BYE \"too many\"\r\n"], "turns the connection away: BYE"),
        (
            Protocol::Sieve,
            &[b"\"STARTTLS\"\r\nOK\r\n", b"NO \"busy\"\r\n"],
            "refuses STARTTLS: NO \"busy\"",
        ),
        (Protocol::Nntp, &[b"400 busy\r\n"], "turns the connection away: 400 busy"),
        (
            Protocol::Nntp,
            &[b"200 hi\r\n", b"101 x\r\nSTARTTLS\r\n.\r\n", b"580 cannot\r\n"],
            "refuses STARTTLS: 580 cannot",
        ),
    ];
    for (protocol, turns, part) in cases {
        let text = error(*protocol, turns).to_string();
        assert!(text.contains(part), "{protocol}: `{text}` lacks `{part}`");
    }
}

#[test]
fn other_protocols_are_named() {
    for protocol in Protocol::ALL {
        let http = error(*protocol, &[b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"]);
        assert_eq!(http, Error::Http, "{protocol}");
        let ssh = error(*protocol, &[b"SSH-2.0-OpenSSH_9.9\r\n"]).to_string();
        let named = format!("does not speak {}", protocol.title());
        let is_refusal = ssh.contains("turns the connection away") || ssh.contains(&named);
        assert!(is_refusal, "{protocol}: {ssh}");
        // A fatal alert, as servers of TLS answer nonsense.
        if *protocol != Protocol::Mysql {
            let tls = error(*protocol, &[&[0x15, 3, 3, 0, 2, 2, 10]]);
            assert_eq!(tls, Error::Tls, "{protocol}");
        }
    }
}

#[test]
fn silence_and_ends_say_what_was_awaited() {
    let dialog = Dialog::new(Protocol::Smtp, "server.test", [192, 0, 2, 1].into());
    let after = Duration::from_secs(5);
    assert_eq!(dialog.silent(after).to_string(), "the SMTP greeting did not come within 5s");
    let text = error(Protocol::Smtp, &[b"220 hi\r\n"]).to_string();
    assert_eq!(text, "the server closed the connection before the answer to EHLO");
    let text = error(Protocol::Xmpp, &[b"<stream:stream></stream:stream>"]).to_string();
    assert_eq!(text, "the server closed the connection before the stream's features");
}

#[test]
fn a_server_without_end_is_stopped() {
    for protocol in Protocol::ALL {
        let mut dialog = Dialog::new(*protocol, "server.test", [192, 0, 2, 1].into());
        let endless = [b"220-x\r\n".repeat(1000), b"<a ".repeat(1000)].concat();
        let failed = (0..=MAX_INPUT / endless.len()).any(|_| dialog.input(&endless).is_err());
        assert!(failed, "{protocol}");
    }
}

#[test]
fn a_servers_words_steer_no_terminal() {
    let text = error(Protocol::Smtp, &[b"554 \x1b[2Jgone\r\n"]).to_string();
    assert!(!text.contains('\x1b') && text.contains("gone"), "{text:?}");
}
