//! The stream itself: back-pressure, half-closing, cut streams, peers that do nothing.

use std::io;
use std::time::Duration;

use sslmtcp::{ConnectOptions, Embedding, ListenOptions, SslmTcpStream};
use tls::{KeyType, Library};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::talk::{Ask, Site, answer};
use crate::common::Ends;
use lab_test::net::WAIT;
use lab_test::net::peers::{Family, PORT};
use lab_test::{Failure, Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("bytes_both_ways_at_once_come_whole", both_ways),
        Test::new("a_reader_that_waits_holds_the_writer_back", back_pressure),
        Test::new("a_cut_stream_is_an_error", cut),
        Test::new("slow_peers_are_cut_off_and_others_served", slow_peers),
        Test::new("a_silent_host_displaces_its_own_handshakes", silent_peers),
        Test::new("finished_leaves_though_the_caller_does_nothing", idle_caller),
    ]
}

const RTT: Duration = Duration::from_millis(5);

fn ends() -> Ends {
    Ends::new(Embedding::Tls13, Library::Rustls, Library::OpenSsl, KeyType::EcdsaP256, 1)
}

fn pattern(seed: u8, len: usize) -> Vec<u8> {
    let byte = |at: usize| (at as u8).wrapping_mul(7) ^ ((at >> 8) as u8) ^ seed;
    (0..len).map(byte).collect()
}

/// A connection: what each side does with its stream.
fn meet<A, B>(
    ours: impl FnOnce(SslmTcpStream) -> A + Send + 'static,
    theirs: impl FnOnce(SslmTcpStream) -> B + Send + 'static,
) -> TestResult
where
    A: Future<Output = TestResult> + 'static,
    B: Future<Output = TestResult> + 'static,
{
    let site = Site::new(RTT)?;
    let ends = ends();
    let to = site.address(Family::V4, PORT)?;
    let listener = site.listen(to, ends.server.clone(), ListenOptions::default())?;
    let served =
        site.pair.server.spawn(move || async move { theirs(listener.accept().await?).await });
    let (stack, client) = (site.client.clone(), ends.client.clone());
    let asked = site.pair.client.spawn(move || async move {
        let options = ConnectOptions::default();
        ours(SslmTcpStream::connect_ssl(&stack, to, &client, options).await?).await
    });
    let (asked, served) = (asked.join_within(WAIT)?, served.join_within(WAIT)?);
    asked.map_err(|error| format!("client: {error}"))?;
    served.map_err(|error| format!("server: {error}"))?;
    Ok(())
}

async fn both(stream: SslmTcpStream, send: Vec<u8>, wanted: Vec<u8>) -> TestResult {
    // Each half in a task of its own.
    let (mut reader, mut writer) = tokio::io::split(stream);
    let written = tokio::spawn(async move {
        writer.write_all(&send).await?;
        writer.shutdown().await
    });
    let mut got = Vec::new();
    reader.read_to_end(&mut got).await?;
    assert!(got == wanted, "{} bytes came of {}", got.len(), wanted.len());
    written.await??;
    Ok(())
}

fn both_ways() -> TestResult {
    const LEN: usize = 3_000_017;
    meet(
        |stream| both(stream, pattern(1, LEN), pattern(2, LEN)),
        |stream| both(stream, pattern(2, LEN), pattern(1, LEN)),
    )
}

fn back_pressure() -> TestResult {
    const LEN: usize = 40 << 20;
    meet(
        |mut stream| async move {
            let chunk = pattern(0, 1 << 20);
            let mut written = 0;
            // Buffers fill, then nothing more is taken.
            while let Ok(len) =
                tokio::time::timeout(Duration::from_millis(500), stream.write(&chunk)).await
            {
                written += len?;
                assert!(written < LEN, "nothing holds the writer back");
            }
            assert!(written > 1 << 20);
            stream.shutdown().await?;
            assert_eq!(stream.read(&mut [0]).await?, 0);
            Ok(())
        },
        |mut stream| async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let mut sum = 0;
            let mut chunk = vec![0; 1 << 16];
            loop {
                match stream.read(&mut chunk).await? {
                    0 => break,
                    len => sum += len,
                }
            }
            assert!(sum > 1 << 20);
            stream.shutdown().await?;
            Ok(())
        },
    )
}

fn cut() -> TestResult {
    meet(
        |mut stream| async move {
            stream.write_all(b"some").await?;
            // FIN without close_notify.
            drop(stream);
            Ok(())
        },
        |mut stream| async move {
            let mut got = Vec::new();
            let error = stream.read_to_end(&mut got).await.expect_err("it was cut");
            assert_eq!((&got[..], error.kind()), (&b"some"[..], io::ErrorKind::UnexpectedEof));
            let again = stream.read(&mut [0]).await.expect_err("it stays so");
            assert_eq!(again.kind(), io::ErrorKind::UnexpectedEof);
            Ok(())
        },
    )
}

/// Streams of the client's kernel that say these and nothing more.
fn say(
    site: &Site,
    to: std::net::SocketAddr,
    said: &'static [&'static [u8]],
) -> TestResult<Vec<TcpStream>> {
    let saying = site.pair.client.spawn(move || async move {
        let mut streams = Vec::new();
        for said in said {
            let mut stream = TcpStream::connect(to).await?;
            stream.write_all(said).await?;
            streams.push(stream);
        }
        Ok::<_, Failure>(streams)
    });
    saying.join_within(WAIT)?
}

fn slow_peers() -> TestResult {
    let site = Site::new(RTT)?;
    let ends = ends();
    let to = site.address(Family::V4, PORT)?;
    let options = ListenOptions { timeout: Duration::from_millis(300), ..ListenOptions::default() };
    let listener = site.listen(to, ends.server.clone(), options)?;
    // They connect and say nothing, or nonsense.
    let streams = say(&site, to, &[b"", b"\x16\x03\x01\x02", b"GET / HTTP/1.0\r\n\r\n"])?;
    let served = site.pair.server.spawn(move || async move {
        answer(listener.accept().await?).await?;
        while listener.counters().timed_out < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok::<_, Failure>(listener.counters())
    });
    site.ask(to, &ends.client, Ask::new(Embedding::Tls13))?;
    let counters = served.join_within(WAIT)??;
    assert_eq!((counters.timed_out, counters.failed, counters.completed), (2, 1, 1));
    drop(streams);
    Ok(())
}

fn silent_peers() -> TestResult {
    let site = Site::new(RTT)?;
    let ends = ends();
    let to = site.address(Family::V4, PORT)?;
    // Longer than anyone here waits.
    let options = ListenOptions {
        max_handshakes: 4,
        max_handshakes_per_source: 2,
        timeout: 3 * WAIT,
        ..ListenOptions::default()
    };
    let listener = site.listen(to, ends.server.clone(), options)?;
    // The third and the fourth take the places of the first and the second.
    let mut streams = say(&site, to, &[b"", b"\x16\x03", b"", b""])?;
    let first = streams.remove(0);
    let cut = site.pair.client.spawn(move || async move {
        let mut first = first;
        Ok::<_, Failure>(first.read(&mut [0]).await.map_err(|error| error.kind()))
    });
    assert_eq!(cut.join_within(WAIT)??, Err(io::ErrorKind::ConnectionReset));
    let served = site.pair.server.spawn(move || async move {
        answer(listener.accept().await?).await?;
        Ok::<_, Failure>(listener.counters())
    });
    // Another source: nobody's place is taken.
    site.ask(to, &ends.client, Ask::new(Embedding::Tls13))?;
    let counters = served.join_within(WAIT)??;
    assert_eq!((counters.displaced, counters.displaced_by_source), (0, 2));
    assert_eq!((counters.timed_out, counters.failed, counters.completed), (0, 0, 1));
    drop(streams);
    Ok(())
}

fn idle_caller() -> TestResult {
    meet(
        |stream| async move {
            // Neither writes nor reads for as long as the server's handshake may take.
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(stream);
            Ok(())
        },
        |stream| async move {
            let took = stream.report().timeline;
            let took = took.since_start(took.ready).ok_or("not ready")?;
            assert!(took < Duration::from_millis(400), "Finished came after {took:?}");
            Ok(())
        },
    )
}
