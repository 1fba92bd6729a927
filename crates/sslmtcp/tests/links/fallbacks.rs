//! Peers that do not take part: the kernel's TCP, with and without Fast Open, on either side.

use std::net::SocketAddr;

use sslmtcp::{Carried, Destinations, Embedding, ListenOptions};
use tls::{KeyType, Library};
use tokio::net::{TcpListener, TcpStream};

use super::talk::{Ask, RTT, Site, answer, exchange, port};
use crate::common::{Ends, REQUEST, RESPONSE};
use lab_test::net::WAIT;
use lab_test::net::peers::{FAMILIES, Family, PORT};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("an_ordinary_client_is_served", ordinary_client),
        Test::new("a_fast_open_client_is_served_in_the_syn_ack", fast_open_client),
        Test::new("an_ordinary_server_gets_tcp_then_tls", ordinary_server),
        Test::new("a_fast_open_server_takes_tls13_and_not_envelopes", fast_open_server),
    ]
}

fn ends(embedding: Embedding) -> Ends {
    let key_type =
        if embedding == Embedding::Paper { KeyType::Rsa2048 } else { KeyType::EcdsaP256 };
    Ends::new(embedding, Library::Rustls, Library::Rustls, key_type, 2)
}

fn ordinary_client() -> TestResult {
    let site = Site::new(RTT)?;
    for (case, family) in FAMILIES.into_iter().enumerate() {
        for (at, embedding) in [Embedding::Tls13, Embedding::Paper].into_iter().enumerate() {
            let ends = ends(embedding);
            let to = site.address(family, port(2 * case + at))?;
            let listener = site.listen(to, ends.server.clone(), ListenOptions::default())?;
            let served = site.pair.server.spawn(move || async move {
                let stream = listener.accept().await?;
                let report = answer(stream).await?;
                Ok::<_, lab_test::Failure>((report, listener.counters()))
            });
            let session = ends.client.start(None)?;
            let asked = site.pair.client.spawn(move || async move {
                exchange(TcpStream::connect(to).await?, session, REQUEST, RESPONSE).await
            });
            asked.join_within(WAIT)??;
            let (report, counters) = served.join_within(WAIT)??;
            assert_eq!(report.carried, Carried::Sequential);
            assert_eq!((counters.completed, counters.embedded, counters.failed), (1, 0, 0));
        }
    }
    Ok(())
}

/// Connects by the kernel's Fast Open without a cookie: the first write goes with the SYN.
fn fast_open_connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let domain = socket2::Domain::for_address(to);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads one int from `on`, which lives through the call.
    let result = unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            libc::IPPROTO_TCP,
            libc::TCP_FASTOPEN_CONNECT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    socket.connect(&to.into())?;
    TcpStream::from_std(socket.into())
}

fn fast_open_client() -> TestResult {
    let site = Site::new(RTT)?;
    site.pair.client.sysctl("net.ipv4.tcp_fastopen", "0x5")?;
    for family in FAMILIES {
        let ends = ends(Embedding::Tls13);
        let to = site.address(family, PORT)?;
        let listener = site.listen(to, ends.server.clone(), ListenOptions::default())?;
        let served =
            site.pair.server.spawn(move || async move { answer(listener.accept().await?).await });
        let session = ends.client.start(None)?;
        let asked = site.pair.client.spawn(move || async move {
            exchange(fast_open_connect(to)?, session, REQUEST, RESPONSE).await
        });
        asked.join_within(WAIT)??;
        let report = served.join_within(WAIT)??;
        assert_eq!(report.carried, Carried::Embedded, "{family:?}");
    }
    Ok(())
}

/// A TLS server on the kernel's TCP. Whether it takes data in SYNs is its node's sysctl's: bit 0x400
/// makes every listener take them, without a cookie.
fn kernel_server(site: &Site, family: Family, ends: &Ends) -> TestResult<SocketAddr> {
    let (ip, server) = (site.kernel_address(family)?, ends.server.clone());
    let listener = site.pair.server.spawn(move || TcpListener::bind((ip, 0)));
    let listener = listener.join_within(WAIT)??;
    let address = listener.local_addr()?;
    drop(site.pair.server.spawn(move || async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(session) = server.accept() else { break };
            // A connection that fails is the client's to tell of.
            tokio::spawn(async move {
                let _ = exchange(stream, session, b"", REQUEST).await;
            });
        }
    }));
    Ok(address)
}

fn ordinary_server() -> TestResult {
    let site = Site::new(RTT)?;
    site.pair.server.sysctl("net.ipv4.tcp_fastopen", "0")?;
    for family in FAMILIES {
        for (embedding, ready) in
            [(Embedding::None, 2), (Embedding::Tls13, 2), (Embedding::Paper, 3)]
        {
            let ends = ends(embedding);
            let to = kernel_server(&site, family, &ends)?;
            let asked = site.ask(to, &ends.client, Ask::new(embedding))?;
            let carried = match embedding {
                Embedding::None => Carried::Sequential,
                _ => Carried::Refused,
            };
            assert_eq!(asked.report.carried, carried, "{embedding}, {family:?}");
            // No more than sequential.
            assert_eq!(asked.round_trips(RTT), (ready, ready + 1), "{embedding}, {family:?}");
        }
    }
    Ok(())
}

fn fast_open_server() -> TestResult {
    let site = Site::new(RTT)?;
    site.pair.server.sysctl("net.ipv4.tcp_fastopen", "0x602")?;
    for family in FAMILIES {
        let tls13 = ends(Embedding::Tls13);
        let to = kernel_server(&site, family, &tls13)?;
        let asked = site.ask(to, &tls13.client, Ask::new(Embedding::Tls13))?;
        assert_eq!(asked.report.carried, Carried::Embedded, "{family:?}");
        assert_eq!(asked.round_trips(RTT), (1, 2), "{family:?}");

        let paper = ends(Embedding::Paper);
        let to = kernel_server(&site, family, &paper)?;
        let how = Ask { destinations: Destinations::new(), ..Ask::new(Embedding::Paper) };
        let asked = site.ask(to, &paper.client, how.clone())?;
        assert_eq!(asked.report.carried, Carried::Reconnected, "{family:?}");
        // It answers with an alert, behind its SYN-ACK: one round trip is lost.
        assert_eq!(asked.round_trips(RTT), (4, 5), "{family:?}");
        let asked = site.ask(to, &paper.client, how)?;
        assert_eq!(asked.report.carried, Carried::Remembered, "{family:?}");
        assert_eq!(asked.round_trips(RTT), (3, 4), "{family:?}");
    }
    Ok(())
}
