//! A flood of SYNs that each carry a genuine ClientHello, from addresses that do not answer.

use sslmtcp::{Carried, ConnectOptions, Embedding, ListenOptions, SslmTcpStream, padding};
use tls::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::service::{Site, keys, request, response};
use lab_test::net::WAIT;
use lab_test::net::peers::limited;
use lab_test::net::syn_flood::{Flood, resident};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![Test::new("a_flood_of_100000_hellos_leaves_the_server_serving", flood)]
}

const SYNS: u32 = 100_000;
/// What the flood may add to the process's resident memory, both sides and the TLS sessions of the
/// half-open connections together.
const MEMORY_LIMIT: usize = 96 << 20;

/// A ClientHello as a SYN has it: padded to 1200 bytes.
fn hello(client: &tls::Client) -> TestResult<Vec<u8>> {
    let mut flight = Vec::new();
    client.start(None)?.write_tls(&mut flight)?;
    Ok(padding::pad(&flight, 1200, 1420))
}

fn flood() -> TestResult {
    let site = Site::direct()?;
    let keys = keys(Version::Tls13, None)?;
    // Forged handshakes last longer than a client here waits: they must not be in its way.
    let options = ListenOptions { timeout: 3 * WAIT, ..ListenOptions::default() };
    site.serve_with(keys.server, options)?;
    let payload = hello(&keys.client)?;
    let talk = || {
        let (stack, to, client) = (site.client.clone(), site.to, keys.client.clone());
        let talking = site.pair.client.spawn(move || async move {
            let options =
                ConnectOptions { embedding: Embedding::Tls13, ..ConnectOptions::default() };
            let connecting = SslmTcpStream::connect_ssl(&stack, to, &client, options);
            let mut stream = limited("the connection", connecting).await??;
            stream.write_all(request()).await?;
            let mut answer = Vec::new();
            limited("the answer", stream.read_to_end(&mut answer)).await??;
            assert_eq!(String::from_utf8_lossy(&answer), response());
            let carried = stream.report().carried;
            stream.shutdown().await?;
            TestResult::Ok(carried)
        });
        talking.join_within(WAIT)?
    };
    // All that is allocated once is there before.
    println!("before: {:?}", talk()?);
    let before = resident()?;
    let flood = Flood { to: site.to, syns: SYNS, payload };
    let flooding = flood.start(&site.pair.client, &site.pair.server)?;
    let (mut most, mut served) = (before, Vec::new());
    while !flooding.is_finished() {
        served.push(talk()?);
        most = most.max(resident()?);
    }
    let took = flooding.join().map_err(|_| "the flood panicked")??;
    served.push(talk()?);
    most = most.max(resident()?);
    println!(
        "{SYNS} SYNs in {took:?}; {} clients served, {} in their SYN; resident memory {} kB before, \
         {} kB at most; {:?}",
        served.len(),
        served.iter().filter(|carried| **carried == Carried::Embedded).count(),
        before >> 10,
        most >> 10,
        site.server.counters()
    );
    assert!(served.len() > 1, "the flood was over before the first client");
    assert!(most.saturating_sub(before) < MEMORY_LIMIT, "{} bytes more", most - before);
    Ok(())
}
