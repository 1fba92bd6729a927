//! The protocol of a server that does not answer in TLS, by its first bytes.

use units::named;

named! {
    /// The protocol of bytes that are not TLS.
    pub enum Speaker: "protocol" {
        /// HTTP in the clear.
        Http = "http",
        /// A mail server (RFC 5321).
        Smtp = "smtp",
        /// A mailbox (RFC 9051).
        Imap = "imap",
        /// A mailbox (RFC 1939).
        Pop3 = "pop3",
        /// File transfer (RFC 959).
        Ftp = "ftp",
        /// Net news (RFC 3977).
        Nntp = "nntp",
        /// Mail filters (RFC 5804).
        Sieve = "sieve",
        /// Chat (RFC 6120).
        Xmpp = "xmpp",
        /// A directory (RFC 4511).
        Ldap = "ldap",
        /// MySQL or MariaDB.
        MySql = "mysql",
        /// PostgreSQL.
        Postgres = "postgres",
        /// A secure shell (RFC 4253).
        Ssh = "ssh",
        /// A remote desktop (RFC 6143).
        Vnc = "vnc",
        /// A terminal (RFC 854).
        Telnet = "telnet",
        /// Redis.
        Redis = "redis",
        /// Chat (RFC 1459).
        Irc = "irc",
        /// A message queue.
        Amqp = "amqp",
        /// Another protocol.
        Unknown = "unknown",
    }
}

impl Speaker {
    /// The name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Speaker::Http => "plain HTTP",
            Speaker::Smtp => "SMTP",
            Speaker::Imap => "IMAP",
            Speaker::Pop3 => "POP3",
            Speaker::Ftp => "FTP",
            Speaker::Nntp => "NNTP",
            Speaker::Sieve => "ManageSieve",
            Speaker::Xmpp => "XMPP",
            Speaker::Ldap => "LDAP",
            Speaker::MySql => "MySQL",
            Speaker::Postgres => "PostgreSQL",
            Speaker::Ssh => "SSH",
            Speaker::Vnc => "VNC",
            Speaker::Telnet => "Telnet",
            Speaker::Redis => "Redis",
            Speaker::Irc => "IRC",
            Speaker::Amqp => "AMQP",
            Speaker::Unknown => "an unknown protocol",
        }
    }

    /// The value of `--starttls` by which it changes to TLS, if it can.
    #[must_use]
    pub const fn starttls(self) -> Option<&'static str> {
        Some(match self {
            Speaker::Smtp => "smtp",
            Speaker::Imap => "imap",
            Speaker::Pop3 => "pop3",
            Speaker::Ftp => "ftp",
            Speaker::Nntp => "nntp",
            Speaker::Sieve => "sieve",
            Speaker::Xmpp => "xmpp",
            Speaker::Ldap => "ldap",
            Speaker::MySql => "mysql",
            Speaker::Postgres => "postgres",
            _ => return None,
        })
    }

    /// The protocol in the clear that is registered at a port (IANA), if this tool knows it.
    #[must_use]
    pub const fn at_port(port: u16) -> Option<Speaker> {
        Some(match port {
            80 | 8000 | 8080 => Speaker::Http,
            25 | 587 | 2525 => Speaker::Smtp,
            143 => Speaker::Imap,
            110 => Speaker::Pop3,
            21 => Speaker::Ftp,
            119 => Speaker::Nntp,
            4190 => Speaker::Sieve,
            5222 | 5269 => Speaker::Xmpp,
            389 => Speaker::Ldap,
            3306 => Speaker::MySql,
            5432 => Speaker::Postgres,
            22 => Speaker::Ssh,
            6379 => Speaker::Redis,
            6667 => Speaker::Irc,
            5672 => Speaker::Amqp,
            _ => return None,
        })
    }

    /// The protocol of a server's first bytes; `None` if they are TLS or there are none.
    #[must_use]
    pub fn of(bytes: &[u8], port: u16) -> Option<Speaker> {
        if bytes.is_empty() || is_tls(bytes) {
            return None;
        }
        let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
        Some(of_binary(bytes).or_else(|| of_text(&text, port)).unwrap_or(Speaker::Unknown))
    }
}

/// Whether a TLS record begins with these bytes (RFC 8446 §5.1).
fn is_tls(bytes: &[u8]) -> bool {
    match bytes {
        [kind, 3, ..] | [kind] => (20..=24).contains(kind),
        _ => false,
    }
}

fn of_binary(bytes: &[u8]) -> Option<Speaker> {
    let has = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    match bytes {
        // A packet's length, its number 0, then protocol 10 or an error.
        [_, _, 0, 0, 0x0a | 0xff, ..] => Some(Speaker::MySql),
        // IAC with WILL, WONT, DO or DONT.
        [0xff, 0xfb..=0xfe, ..] => Some(Speaker::Telnet),
        // An error response: its length, then its fields.
        [b'E', 0, ..] if has(b"FATAL") || has(b"ERROR") => Some(Speaker::Postgres),
        // RFC 4511 §4.4.1: the notice of disconnection.
        [0x30, ..] if has(b"1.3.6.1.4.1.1466.20036") => Some(Speaker::Ldap),
        _ => None,
    }
}

/// By text in lower case.
fn of_text(text: &str, port: u16) -> Option<Speaker> {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|one| text.starts_with(one));
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    Some(match text {
        _ if begins(&["ssh-"]) => Speaker::Ssh,
        _ if begins(&["rfb 0"]) => Speaker::Vnc,
        _ if begins(&["amqp"]) => Speaker::Amqp,
        _ if begins(&["* ok", "* preauth", "* bye"]) => Speaker::Imap,
        _ if begins(&["+ok"]) => Speaker::Pop3,
        _ if begins(&["-err"]) && (port == 6379 || has(&["unknown command", "protocol"])) => {
            Speaker::Redis
        }
        _ if begins(&["-err"]) => Speaker::Pop3,
        _ if begins(&["-noauth", "-denied"]) => Speaker::Redis,
        _ if begins(&["\"implementation\"", "\"sieve\"", "\"starttls\""]) => Speaker::Sieve,
        _ if has(&["<stream:", "jabber:", "etherx.jabber.org"]) => Speaker::Xmpp,
        _ if begins(&["http/"]) || has(&["<html", "<!doctype html"]) => Speaker::Http,
        _ if begins(&["notice auth", ":"]) && has(&["notice"]) => Speaker::Irc,
        _ => return of_reply_code(text, port),
    })
}

/// SMTP, FTP and NNTP begin with a code of three digits.
fn of_reply_code(text: &str, port: u16) -> Option<Speaker> {
    let code = text.get(..3).filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()))?;
    if !matches!(text.as_bytes().get(3), Some(b' ' | b'-')) {
        return None;
    }
    if text.contains("ftp") {
        return Some(Speaker::Ftp);
    }
    let by_port = Speaker::at_port(port);
    if by_port == Some(Speaker::Ftp) || by_port == Some(Speaker::Nntp) {
        return by_port;
    }
    match code {
        "200" | "201" | "400" | "502" if !text.contains("smtp") => Some(Speaker::Nntp),
        "220" | "421" | "500" | "501" | "503" | "521" | "554" => Some(Speaker::Smtp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn greetings_of_real_servers() {
        let mysql = [&[0x4a, 0, 0, 0, 0x0a][..], b"8.0.36\0rest of the greeting"].concat();
        let blocked = [&[0x45, 0, 0, 0, 0xff, 0x6a, 0x04][..], b"Host is not allowed"].concat();
        let postgres = [&b"E\0\0\0\x8cSFATAL\0"[..], b"VFATAL\0C0A000\0"].concat();
        let ldap = [&[0x30, 0x24, 2, 1, 0, 0x78, 0x1f][..], b"..1.3.6.1.4.1.1466.20036"].concat();
        let cases: &[(&[u8], u16, Speaker)] = &[
            (b"HTTP/1.1 400 Bad Request\r\n", 443, Speaker::Http),
            (b"<!DOCTYPE HTML PUBLIC \"-//W3C//DTD\">", 8000, Speaker::Http),
            (b"\n<html>\n<head><title>400", 443, Speaker::Http),
            (b"220 mx.test ESMTP Postfix\r\n", 25, Speaker::Smtp),
            (b"220-mx.test ready\r\n", 1025, Speaker::Smtp),
            (b"554 5.7.1 you spoke too early\r\n", 443, Speaker::Smtp),
            (b"220 (vsFTPd 3.0.5)\r\n", 2121, Speaker::Ftp),
            (b"220 Welcome\r\n", 21, Speaker::Ftp),
            (b"200 news.test ready\r\n", 119, Speaker::Nntp),
            (b"201 no posting\r\n", 443, Speaker::Nntp),
            (b"* OK [CAPABILITY IMAP4rev1] ready\r\n", 143, Speaker::Imap),
            (b"* BYE too many\r\n", 143, Speaker::Imap),
            (b"+OK POP3 ready\r\n", 110, Speaker::Pop3),
            (b"-ERR unknown command `x`", 443, Speaker::Redis),
            (b"\"IMPLEMENTATION\" \"Dovecot\"\r\n", 4190, Speaker::Sieve),
            (b"<?xml version='1.0'?><stream:stream id='1'", 5222, Speaker::Xmpp),
            (b"SSH-2.0-OpenSSH_9.2\r\n", 22, Speaker::Ssh),
            (b"RFB 003.008\n", 5900, Speaker::Vnc),
            (b"\xff\xfd\x18\xff\xfd ", 23, Speaker::Telnet),
            (b"AMQP\0\0\x09\x01", 5672, Speaker::Amqp),
            (b":irc.test NOTICE AUTH :*** Looking up", 6667, Speaker::Irc),
            (b"what is this", 443, Speaker::Unknown),
            (&mysql, 443, Speaker::MySql),
            (&blocked, 443, Speaker::MySql),
            (&postgres, 443, Speaker::Postgres),
            (&ldap, 443, Speaker::Ldap),
        ];
        for (bytes, port, speaker) in cases {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(Speaker::of(bytes, *port), Some(*speaker), "{text}");
        }
        for tls in [&[21, 3, 3, 0, 2, 2, 40][..], &[22, 3, 1, 0], &[22], &[]] {
            assert_eq!(Speaker::of(tls, 443), None, "{tls:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), port: u16) {
            let _ = Speaker::of(&bytes, port);
        }
    }
}
