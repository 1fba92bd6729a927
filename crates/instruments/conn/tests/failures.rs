//! Peers that refuse, break off, stay silent or talk nonsense.

use std::time::Duration;

use crate::common::*;
use conn::{
    ClientPlan, ClientTransport, Failure, Running, Server, ServerPlan, ServerTransport, connect,
};
use fault::{Explain, Fault};
use tls::{Client, Library, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A peer that does `script` with its one connection.
async fn peer<F, Fut>(script: F) -> std::net::SocketAddr
where
    F: FnOnce(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        script(stream).await;
    });
    address
}

fn clients() -> impl Iterator<Item = Client> {
    let make = |library: &Library| Client::new(&client_config(*library, Version::Tls13)).unwrap();
    Library::ALL.iter().map(make)
}

fn tls_plan(server: std::net::SocketAddr, client: &Client) -> ClientPlan {
    ClientPlan { timeout: PATIENCE, ..ClientPlan::new(server, ClientTransport::tls(client)) }
}

#[tokio::test]
async fn nothing_listens() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let failure = connect(ClientPlan::plain(closed)).await.unwrap_err();
    assert!(matches!(failure, Failure::Refused), "{failure}");
    assert_eq!(failure.fault(), Fault::Peer);
}

#[tokio::test]
async fn a_silent_server_is_a_censored_sample() {
    for client in clients() {
        let address = peer(|mut stream| async move {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
        })
        .await;
        let timeout = Duration::from_millis(30);
        let plan = ClientPlan { timeout, ..tls_plan(address, &client) };
        let failure = connect(plan).await.unwrap_err();
        let Failure::TimedOut { after, timeline } = failure else { panic!("{failure}") };
        assert_eq!(after, timeout);
        assert!(timeline.hello_sent.is_some(), "{timeline:?}");
        assert!(timeline.ready.is_none(), "{timeline:?}");
    }
}

#[tokio::test]
async fn a_reset_says_when() {
    let address = peer(|stream| async move {
        stream.readable().await.unwrap();
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    })
    .await;
    let client = clients().next().unwrap();
    let failure = connect(tls_plan(address, &client)).await.unwrap_err();
    assert!(matches!(failure, Failure::Reset { during: "waiting for the handshake" }), "{failure}");
}

#[tokio::test]
async fn an_end_in_the_middle_is_the_peers_fault() {
    let client = clients().next().unwrap();
    let plain = ClientPlan::plain(loopback()).transport;
    for transport in [ClientTransport::tls(&client), plain] {
        let address = peer(|mut stream| async move {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
        })
        .await;
        let plan = ClientPlan { transport, response_len: 5, ..tls_plan(address, &client) };
        let failure = connect(plan).await.unwrap_err();
        assert_eq!((failure.name(), failure.fault()), ("protocol", Fault::Peer), "{failure}");
    }
}

#[tokio::test]
async fn garbage_ends_the_handshake_with_an_alert() {
    let garbage: [Vec<u8>; 4] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        vec![0; 100_000],
        // A handshake record of the largest length there is, and what it announces.
        [&[0x16, 3, 3, 0xff, 0xff][..], &vec![7; 70_000]].concat(),
        // Handshake messages of 16 MB, a record at a time.
        [&[0x16, 3, 3, 0x40, 0, 2, 0xff, 0xff, 0xff][..], &vec![0; 16_380]].concat().repeat(30),
    ];
    for client in clients() {
        for bytes in garbage.clone() {
            let address = peer(|mut stream| async move {
                let _ = stream.write_all(&bytes).await;
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
            })
            .await;
            let failure = connect(tls_plan(address, &client)).await.unwrap_err();
            assert!(matches!(failure, Failure::Tls(tls::Error::Peer(_))), "{failure:?}");
            assert_eq!(failure.fault(), Fault::Peer);
        }
    }
}

#[tokio::test]
async fn an_endless_response_is_cut_off() {
    let address = peer(|mut stream| async move {
        let bytes = vec![b'x'; 1 << 16];
        while stream.write_all(&bytes).await.is_ok() {}
    })
    .await;
    let linger = Duration::from_millis(5);
    let plan = ClientPlan { response_len: 100_000, linger, ..ClientPlan::plain(address) };
    let outcome = connect(plan).await.unwrap();
    assert!(outcome.response_len >= 100_000 && outcome.response_len < 200_000);
    assert_eq!(outcome.response.len(), conn::KEPT_RESPONSE);
}

#[tokio::test]
async fn a_certificate_that_does_not_verify() {
    for library in Library::ALL {
        let server = serve(Duration::from_secs(20), 100);
        let config = client_config(*library, Version::Tls13);
        let wrong_name =
            tls::ClientConfig { server_name: "other.test".to_owned(), ..config.clone() };
        let roots = rsa_identity().roots().to_vec();
        let wrong_root = tls::ClientConfig { trust: tls::Trust::Roots(roots), ..config };
        for config in [wrong_name, wrong_root] {
            let client = Client::new(&config).unwrap();
            let failure = connect(tls_plan(server.address(), &client)).await.unwrap_err();
            assert_eq!(
                (failure.name(), failure.fault()),
                ("certificate", Fault::Peer),
                "{failure}"
            );
        }
        // The server was told by an alert.
        let records = wait_for_records(&server, 2).await;
        assert!(records.iter().all(|record| record.error.is_some()), "{records:?}");
    }
}

fn serve(timeout: Duration, max_connections: usize) -> Running {
    let tls = tls::Server::new(&server_config(Library::Rustls, Version::Tls13)).unwrap();
    let plan =
        ServerPlan { timeout, max_connections, ..ServerPlan::new(ServerTransport::tls(tls)) };
    Server::bind(loopback(), plan).unwrap().spawn()
}

async fn wait_for_records(server: &Running, count: usize) -> Vec<conn::ServerRecord> {
    let mut records = Vec::new();
    let wait = async {
        while records.len() < count {
            records.extend(server.log().drain());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("records");
    records
}

#[tokio::test]
async fn a_server_outlives_hostile_clients() {
    for library in Library::ALL {
        let tls = tls::Server::new(&server_config(*library, Version::Tls13)).unwrap();
        let plan = ServerPlan::new(ServerTransport::tls(tls));
        let server = Server::bind(loopback(), plan).unwrap().spawn();
        let hostile: [&[u8]; 6] = [
            b"",
            b"GET / HTTP/1.1\r\n\r\n",
            &[0x16, 3, 1, 0xff, 0xff],
            &[0x16, 3, 1, 0, 5, 1, 0xff, 0xff, 0xff, 3],
            &[0x80; 5000],
            &[0x17, 3, 3, 0, 1, 0],
        ];
        for bytes in hostile {
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            // An alert, nothing, or a reset: the server's choice.
            let _ = stream.read_to_end(&mut answer).await;
        }
        let records = wait_for_records(&server, hostile.len()).await;
        assert!(records.iter().all(|record| record.error.is_some()), "{records:?}");
        let client = Client::new(&client_config(*library, Version::Tls13)).unwrap();
        connect(tls_plan(server.address(), &client)).await.unwrap();
    }
}

#[tokio::test]
async fn more_than_a_request_is_ignored_and_far_more_cut_off() {
    let server = Server::bind(loopback(), ServerPlan::plain()).unwrap().spawn();
    let request = vec![b'q'; 10_000];
    let plan = ClientPlan { request, ..ClientPlan::plain(server.address()) };
    assert_eq!(connect(plan).await.unwrap().response, b"!");
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let _ = stream.write_all(&vec![b'q'; 3 << 20]).await;
    let records = wait_for_records(&server, 2).await;
    assert!(records[1].error.as_ref().unwrap().contains("far more"), "{records:?}");
}

#[tokio::test]
async fn a_silent_client_is_closed_after_the_deadline() {
    let server = serve(Duration::from_millis(20), 10);
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let mut buffer = [0; 10];
    assert_eq!(stream.read(&mut buffer).await.unwrap(), 0);
    let records = wait_for_records(&server, 1).await;
    assert!(records[0].error.as_ref().unwrap().contains("still open"), "{records:?}");
    assert_eq!(records[0].first_bytes, None);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_their_turn() {
    let plan = ServerPlan { max_connections: 1, ..ServerPlan::plain() };
    let server = Server::bind(loopback(), plan).unwrap().spawn();
    let plan = ClientPlan::plain(server.address());
    let (a, b, c) =
        tokio::join!(connect(plan.clone()), connect(plan.clone()), connect(plan.clone()));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    let mut records = wait_for_records(&server, 3).await;
    records.sort_by_key(|record| record.first_bytes);
    assert!(records.windows(2).all(|pair| pair[0].closed <= pair[1].first_bytes), "{records:?}");
}

#[tokio::test]
async fn an_address_in_use_is_the_environments_fault() {
    let server = serve(PATIENCE, 1);
    let Err(failure) = Server::bind(server.address(), ServerPlan::plain()) else {
        panic!("bound twice")
    };
    assert_eq!(failure.fault(), Fault::Machine);
    let remedy = failure.remedy().unwrap_or_default();
    assert!(remedy.contains("choose another port"), "{failure}: {remedy}");
}

/// As Exim does, which goes on in plaintext behind TLS's end.
#[tokio::test]
async fn plaintext_behind_the_end_of_tls_harms_nothing() {
    for version in [Version::Tls12, Version::Tls13] {
        let config = tls::direct::server_config(&server_config(Library::Rustls, version)).unwrap();
        let listener = std::net::TcpListener::bind(loopback()).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut session = rustls::ServerConnection::new(config).unwrap();
            let mut tls = rustls::Stream::new(&mut session, &mut stream);
            let end = std::io::Read::read(&mut tls, &mut [0]).unwrap();
            std::io::Write::write_all(&mut stream, b"421 bye\r\n").unwrap();
            end
        });
        let client = Client::new(&client_config(Library::Rustls, version)).unwrap();
        let plan =
            ClientPlan { request: Vec::new(), linger: PATIENCE, ..tls_plan(address, &client) };
        assert!(connect(plan).await.is_ok(), "{version}");
        assert_eq!(server.join().unwrap(), 0, "{version}");
    }
}
