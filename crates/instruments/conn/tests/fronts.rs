//! Servers made of byte scripts, and proxies, before a server of TLS: each on a thread of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::common::{PATIENCE, loopback};

/// A turn of a script: these bytes go out, then so many bytes are read.
pub type Turn = (Vec<u8>, usize);

/// Accepts connections for as long as the test runs, each on a thread.
fn accept(serve: impl Fn(TcpStream) -> Option<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(loopback()).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ = stream.set_nodelay(true);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Passes bytes both ways until both ends are closed.
fn relay(mut client: TcpStream, server: SocketAddr) -> Option<()> {
    let mut server = TcpStream::connect(server).ok()?;
    let _ = server.set_nodelay(true);
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let there = thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Write);
    there.join().ok()
}

/// Plays `script`, then passes the rest to `tls`; without it, waits for the client's end.
pub fn script(script: Vec<Turn>, tls: Option<SocketAddr>) -> SocketAddr {
    accept(move |mut client| {
        for (said, count) in &script {
            client.write_all(said).ok()?;
            let mut heard = vec![0; *count];
            client.read_exact(&mut heard).ok()?;
        }
        match tls {
            Some(server) => relay(client, server),
            None => client.read_to_end(&mut Vec::new()).ok().map(drop),
        }
    })
}

/// A head that ends with an empty line.
fn head(client: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// A proxy by CONNECT that knows one host and port, `server.invalid:PORT`, and wants `credentials` (base64).
/// `greeting` leaves together with its answer, as a server's that speaks first may.
pub fn http_proxy(port: u16, server: SocketAddr, credentials: Option<&'static str>) -> SocketAddr {
    accept(move |mut client| {
        let head = head(&mut client)?;
        let target = format!("CONNECT server.invalid:{port} HTTP/1.1\r\n");
        let login = credentials.map(|it| format!("\r\nProxy-Authorization: Basic {it}\r\n"));
        let answer: &[u8] = if login.is_some_and(|login| !head.contains(&login)) {
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
        } else if head.starts_with(&target) {
            b"HTTP/1.1 200 Connection established\r\n\r\n"
        } else {
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
        };
        client.write_all(answer).ok()?;
        if answer.starts_with(b"HTTP/1.1 200") { relay(client, server) } else { None }
    })
}

/// A SOCKS5 proxy that knows one host, `server.invalid`, and wants a user and a password if they are given.
pub fn socks5_proxy(server: SocketAddr, login: Option<(&'static str, &'static str)>) -> SocketAddr {
    accept(move |mut client| {
        let mut read = |count: usize| {
            let mut bytes = vec![0; count];
            client.read_exact(&mut bytes).ok().map(|()| bytes)
        };
        let methods = read(2)?[1];
        let methods = read(methods.into())?;
        if let Some((user, password)) = login {
            if !methods.contains(&2) {
                return client.write_all(b"\x05\xff").ok();
            }
            client.write_all(b"\x05\x02").ok()?;
            let mut wanted = vec![1, u8::try_from(user.len()).ok()?];
            wanted.extend(user.bytes());
            wanted.push(u8::try_from(password.len()).ok()?);
            wanted.extend(password.bytes());
            let mut heard = vec![0; wanted.len()];
            client.read_exact(&mut heard).ok()?;
            if heard != wanted {
                return client.write_all(b"\x01\x01").ok();
            }
            client.write_all(b"\x01\x00").ok()?;
        } else {
            client.write_all(b"\x05\x00").ok()?;
        }
        let mut request = [0; 5];
        client.read_exact(&mut request).ok()?;
        let mut rest = vec![0; usize::from(request[4]) + 2];
        client.read_exact(&mut rest).ok()?;
        if request[3] != 3 || !rest.starts_with(b"server.invalid") {
            return client.write_all(b"\x05\x04\x00\x01\0\0\0\0\0\0").ok();
        }
        client.write_all(b"\x05\x00\x00\x01\x7f\0\0\x01\0\x50").ok()?;
        relay(client, server)
    })
}
