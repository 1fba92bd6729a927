//! Proxies: requests byte by byte, answers of every kind.

use fault::Explain;
use starttls::proxy::{Address, Error, Tunnel};

fn tunnel(proxy: &str, host: &str) -> Tunnel {
    Tunnel::new(&proxy.parse::<Address>().unwrap(), host, 443).unwrap()
}

/// The client's words after each of the proxy's.
fn said(tunnel: &mut Tunnel, turns: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
    let mut said = vec![tunnel.take_output()];
    for turn in turns {
        for byte in turn.chunks(1) {
            tunnel.input(byte)?;
        }
        said.push(tunnel.take_output());
    }
    Ok(said)
}

#[test]
fn connect_names_the_server_and_the_user() {
    let mut http = tunnel("http://proxy.test:3128", "server.test");
    let turns: [&[u8]; 1] = [b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n"];
    let request = said(&mut http, &turns).unwrap().remove(0);
    assert_eq!(request, b"CONNECT server.test:443 HTTP/1.1\r\nHost: server.test:443\r\n\r\n");
    assert!(http.is_done());

    // RFC 7617 §2.
    let mut http = tunnel("http://Aladdin:open%20sesame@proxy.test:3128", "2001:db8::1");
    let request = String::from_utf8(http.take_output()).unwrap();
    assert!(request.starts_with("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n"), "{request}");
    let field = "\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
    assert!(request.contains(field), "{request}");
}

#[test]
fn bytes_behind_the_answer_are_the_servers() {
    let mut http = tunnel("http://proxy.test:3128", "server.test");
    http.input(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.0 200 OK\r\n\r\n220 hi\r\n").unwrap();
    assert!(http.is_done());
    assert_eq!(http.take_rest(), b"220 hi\r\n");
    let mut socks = tunnel("socks5://proxy.test", "server.test");
    socks.input(b"\x05\0").unwrap();
    socks.input(b"\x05\0\0\x03\x04name\x01\xbb220 hi\r\n").unwrap();
    assert!(socks.is_done());
    assert_eq!(socks.take_rest(), b"220 hi\r\n");
}

#[test]
fn socks_asks_by_name_and_logs_in() {
    let made: &[u8] = b"\x05\0\0\x01\x7f\0\0\x01\x01\xbb";
    let mut socks = tunnel("socks5://user:pass@proxy.test", "server.test");
    let said_to = said(&mut socks, &[b"\x05\x02", b"\x01\0", made]).unwrap();
    assert_eq!(
        said_to,
        [
            b"\x05\x02\0\x02".to_vec(),
            b"\x01\x04user\x04pass".to_vec(),
            b"\x05\x01\0\x03\x0bserver.test\x01\xbb".to_vec(),
            Vec::new()
        ]
    );
    assert!(socks.is_done());
    for (host, address) in [
        ("192.0.2.1", b"\x01\xc0\0\x02\x01".to_vec()),
        ("::1", [&[4][..], &[0; 15], &[1]].concat()),
    ] {
        let mut socks = tunnel("socks5://proxy.test", host);
        let said_to = said(&mut socks, &[b"\x05\0", made]).unwrap();
        assert_eq!(said_to[0], b"\x05\x01\0");
        assert_eq!(said_to[1], [&b"\x05\x01\0"[..], &address, b"\x01\xbb"].concat());
        assert!(socks.is_done());
    }
}

#[test]
fn each_refusal_has_its_sentence() {
    let http =
        |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes();
    let socks = |code: u8| [&b"\x05\0\x05"[..], &[code], b"\0\x01\0\0\0\0\0\0"].concat();
    let login = |bytes: &[u8]| [b"\x05\x02", bytes].concat();
    let plain = ["http://proxy.test:3128", "socks5://proxy.test"];
    let user = ["http://user:hunter2@proxy.test:3128", "socks5://user:hunter2@proxy.test"];
    for (proxy, answer, part) in [
        (plain[0], http("407 Proxy Authentication Required"), "asks for user and password: 407"),
        (user[0], http("407 Proxy Authentication Required"), "refuses user and password: 407"),
        (user[0], http("401 Unauthorized"), "refuses user and password: 401"),
        (plain[0], http("403 Filtered"), "does not allow this host and port: 403 Filtered"),
        (plain[0], http("405 Method Not Allowed"), "does not know CONNECT: 405"),
        (plain[0], http("502 Bad Gateway"), "cannot reach the server: 502"),
        (plain[0], http("503 Unavailable"), "cannot reach the server: 503"),
        (plain[0], http("504 Timeout"), "waited too long for the server: 504"),
        (plain[0], http("301 Moved"), "refuses the connection: 301"),
        (plain[0], b"\x05\xff".to_vec(), "not that of an HTTP proxy"),
        (plain[0], b"SSH-2.0-OpenSSH\r\n".to_vec(), "not that of an HTTP proxy: `SSH-2.0"),
        (plain[1], http("400 Bad Request"), "not that of a SOCKS5 proxy: `HTTP/1.1 400"),
        (plain[1], b"\0\x5b".to_vec(), "not that of a SOCKS5 proxy"),
        (plain[1], b"\x05\xff".to_vec(), "asks for user and password"),
        (user[1], b"\x05\xff".to_vec(), "neither a password nor none"),
        (user[1], login(b"\x01\x01"), "refuses user and password"),
        (plain[1], socks(1), "general failure (SOCKS reply 1)"),
        (plain[1], socks(2), "does not allow this host and port: not allowed by its rules"),
        (plain[1], socks(3), "cannot reach the server: the network"),
        (plain[1], socks(4), "cannot reach the server: the host"),
        (plain[1], socks(5), "cannot reach the server: connection refused"),
        (plain[1], socks(6), "waited too long for the server: TTL expired"),
        (plain[1], socks(7), "command not supported"),
        (plain[1], socks(8), "address type not supported"),
        (plain[1], socks(99), "unknown reply (SOCKS reply 99)"),
        (plain[1], b"\x05\x02".to_vec(), "not that of a SOCKS5 proxy"),
    ] {
        let error = tunnel(proxy, "server.test").input(&answer).unwrap_err();
        let text = error.in_one_text();
        assert!(text.contains(part), "`{text}` lacks `{part}`");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn an_endless_answer_is_stopped() {
    for proxy in ["http://proxy.test:3128", "socks5://proxy.test"] {
        let mut tunnel = tunnel(proxy, "server.test");
        let head = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        let mut failed = tunnel.input(&head).is_err();
        failed |= (0..70).any(|_| tunnel.input(&[b'x'; 1024]).is_err());
        assert!(failed, "{proxy}");
    }
}

#[test]
fn hosts_that_would_break_the_request_are_refused() {
    let proxy: Address = "http://proxy.test:3128".parse().unwrap();
    let long = "x".repeat(256);
    for host in ["", "a b", "a\r\nX: y", "\u{e9}", &long] {
        assert_eq!(Tunnel::new(&proxy, host, 443).err(), Some(Error::Target), "{host:?}");
    }
}
