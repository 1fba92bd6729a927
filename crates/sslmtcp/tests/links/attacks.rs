//! Attacks on a server of ours, and what they cost it: `docs/security.md` has the figures. Each
//! test prints its own, and holds the bounds that the server promises.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab_test::net::WAIT;
use lab_test::net::peers::limited;
use lab_test::net::segments::Segment;
use lab_test::net::syn_flood::resident;
use lab_test::{Test, TestResult};
use sslmtcp::{Carried, ConnectOptions, Embedding, ListenOptions, SslmTcpStream, padding};
use tls::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use wire::tcp::Flags;

use super::attacker::{Attacker, BARE, IRS};
use super::service::{Site, keys, request, response};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_byte_at_the_window_s_far_edge_holds_a_byte", far_bytes),
        Test::new("a_window_full_but_for_its_first_byte_is_held_within_the_budget", full_windows),
        Test::new("20000_syns_with_data_and_resets_a_second_leave_the_server_serving", resets),
        Test::new("a_window_that_opens_by_the_byte_holds_no_orphan", orphans),
    ]
}

/// Connections of the attacks on memory.
const CONNECTIONS: u32 = 100;

/// Begins TLS on a connection with one byte, and puts one more at the far edge of the window.
fn far_bytes() -> TestResult {
    let held = hold_memory("a byte at the far edge of each window", |attacker, from, reported| {
        let edge = reported.acknowledgment.unwrap_or_default().wrapping_add(reported.window_bytes);
        attacker.push(from, BARE, (edge.wrapping_sub(1), Some(reported.ack), 60_000), &[7])
    })?;
    assert!(held < 200 * CONNECTIONS as usize, "{held} bytes");
    Ok(())
}

/// Fills all of the window but its first byte.
fn full_windows() -> TestResult {
    let held = hold_memory("all of each window but a byte", |attacker, from, reported| {
        let first = reported.acknowledgment.unwrap_or_default();
        let mut at = 1;
        while at < reported.window_bytes {
            let len = 1460.min(reported.window_bytes - at);
            let seq = first.wrapping_add(at);
            attacker.push(from, BARE, (seq, Some(reported.ack), 60_000), &vec![7; len as usize])?;
            at += len;
            // The server's ring is not to overflow: it is to hold all of this.
            if at % (64 * 1460) < 1460 {
                attacker.flush()?;
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    })?;
    let most = 2 * tcp::Config::default().receive_initial * CONNECTIONS as usize;
    assert!(held <= most, "{held} bytes");
    Ok(())
}

/// What the server has told a connection.
struct Reported {
    acknowledgment: Option<u32>,
    /// Bytes from there to the window's edge.
    window_bytes: u32,
    /// What the attacker is to acknowledge.
    ack: u32,
}

/// Attacks and prints what that adds to the process's memory; the bytes that the server's TCP holds.
fn hold_memory(
    what: &str,
    fill: impl Fn(&mut Attacker, u32, &Reported) -> TestResult + Send + 'static,
) -> TestResult<usize> {
    let site = Site::direct()?;
    let keys = keys(Version::Tls13, None)?;
    site.serve_with(keys.server, ListenOptions { timeout: 3 * WAIT, ..ListenOptions::default() })?;
    let before = resident()?;
    let nodes = (&site.pair.client, &site.pair.server);
    let attack = Attacker::start(nodes, site.to, move |mut attacker| {
        let (mut established, mut filled) = (0, HashSet::new());
        // Our window scale with 6 MiB, which the SYN-ACK says, and the first byte of a record.
        attacker.connect(CONNECTIONS, 60_000, |attacker, from, answer| {
            let next = answer.sequence.wrapping_add(1);
            if answer.is_syn_ack() {
                established += 1;
                return attacker.push(from, BARE, (IRS + 1, Some(next), 60_000), &[22]);
            }
            let first = answer.acknowledgment == Some(IRS + 2);
            if answer.payload.is_empty() && first && filled.insert(from) {
                let reported = Reported {
                    acknowledgment: answer.acknowledgment,
                    window_bytes: u32::from(answer.window) << SHIFT,
                    ack: answer.sequence,
                };
                fill(attacker, from, &reported)?;
            }
            Ok(())
        })?;
        Ok(established)
    })?;
    let mut most = before;
    while !attack.is_finished() {
        std::thread::sleep(Duration::from_millis(5));
        most = most.max(resident()?);
    }
    let established = attack.join().map_err(|_| "the attack panicked")??;
    // What the server has in its ring still.
    let mut taken = 0;
    while taken < site.server.counters().segments_in {
        taken = site.server.counters().segments_in;
        std::thread::sleep(Duration::from_millis(500));
        most = most.max(resident()?);
    }
    let counters = site.server.counters();
    println!(
        "{what}: {established} connections; resident memory {} kB before, {} kB at most, {} kB a \
         connection; {counters:?}",
        before >> 10,
        most >> 10,
        ((most - before) / CONNECTIONS as usize) >> 10,
    );
    assert_eq!(established, CONNECTIONS);
    Ok(counters.receive_held)
}

/// The window scale of a server whose receive buffer is 6 MiB at most (RFC 7323 §2.3).
const SHIFT: u8 = 7;

/// SYNs with a hello, each reset by its sender as soon as it has a place.
fn resets() -> TestResult {
    const RATE: u32 = 20_000;
    const SECONDS: u32 = 5;
    let site = Site::direct()?;
    let keys = keys(Version::Tls13, None)?;
    site.serve_with(keys.server, ListenOptions { timeout: 3 * WAIT, ..ListenOptions::default() })?;
    let mut hello = Vec::new();
    keys.client.start(None)?.write_tls(&mut hello)?;
    let hello = padding::pad(&hello, 1200, 1420);
    let talk = || {
        let (stack, to, client) = (site.client.clone(), site.to, keys.client.clone());
        let talking = site.pair.client.spawn(move || async move {
            let began = Instant::now();
            let embedding = Embedding::Tls13;
            let options = ConnectOptions { embedding, ..ConnectOptions::default() };
            let connecting = SslmTcpStream::connect_ssl(&stack, to, &client, options);
            let mut stream = limited("the connection", connecting).await??;
            stream.write_all(request()).await?;
            let mut answer = Vec::new();
            limited("the answer", stream.read_to_end(&mut answer)).await??;
            assert_eq!(String::from_utf8_lossy(&answer), response());
            let carried = stream.report().carried;
            stream.shutdown().await?;
            TestResult::Ok((carried, began.elapsed()))
        });
        talking.join_within(WAIT)?
    };
    println!("before: {:?}", talk()?);
    let (cpu, before) = (site.pair.server.cpu_time().unwrap_or_default(), site.server.counters());
    let nodes = (&site.pair.client, &site.pair.server);
    let began = Instant::now();
    let flooding = Attacker::start(nodes, site.to, move |mut attacker| {
        let (began, each) = (Instant::now(), RATE / 1000);
        // 1 ms of SYNs, and the resets of those 2 ms before.
        for turn in 0..1000 * SECONDS + 2 {
            for index in (0..each).map(|index| turn * each + index) {
                if turn < 1000 * SECONDS {
                    attacker.push(index, Flags::SYN, (IRS, None, 60_000), &hello)?;
                }
                if let Some(old) = index.checked_sub(2 * each) {
                    let next = IRS + 1 + hello.len() as u32;
                    attacker.push(old, Flags::RST, (next, None, 0), &[])?;
                }
            }
            attacker.flush()?;
            let due = began + Duration::from_millis(turn.into());
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(began.elapsed())
    })?;
    let (mut served, mut times, mut failed) = (Vec::new(), Vec::new(), 0);
    while !flooding.is_finished() {
        match talk() {
            Ok((carried, took)) => {
                served.push(carried);
                times.push(took);
            }
            Err(_) => failed += 1,
        }
        // Few, so that the flood is what the processor is taken by.
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = flooding.join().map_err(|_| "the flood panicked")??;
    let cpu = site.pair.server.cpu_time().unwrap_or_default().saturating_sub(cpu);
    let (counters, since) = (site.server.counters(), began.elapsed());
    times.sort();
    println!(
        "{} SYNs with data and as many resets in {took:?}: {} handshakes begun, {:.0} % of a core, \
         {} clients served, {} in their SYN, median {:?}, {failed} not served; {counters:?}",
        RATE * SECONDS,
        counters.opens_with_data - before.opens_with_data,
        100.0 * cpu.as_secs_f64() / since.as_secs_f64(),
        served.len(),
        served.iter().filter(|carried| **carried == Carried::Embedded).count(),
        times.get(times.len() / 2),
    );
    assert!(!served.is_empty(), "the flood was over before the first client");
    assert_eq!(failed, 0, "clients that were not served");
    let begun = (counters.opens_with_data - before.opens_with_data) as f64;
    let rate = f64::from(tcp::Config::default().unvalidated_rate);
    assert!(begun <= rate * (since.as_secs_f64() + 1.0), "{begun} handshakes in {since:?}");
    Ok(())
}

/// Acknowledges a byte, with a window for the next.
fn by_the_byte(attacker: &mut Attacker, from: u32, answer: &Segment) -> TestResult {
    let next = answer.sequence.wrapping_add(u32::from(answer.is_syn_ack()));
    let ack = next.wrapping_add(u32::from(!answer.payload.is_empty()));
    attacker.push(from, BARE, (IRS + 1, Some(ack), 1), &[])
}

/// Takes a long answer by the byte, from a server that has written all of it and gone. The default
/// gives such a connection a minute, and more for what is left: here it is 2 s in all.
fn orphans() -> TestResult {
    const ANSWER: usize = 256 << 10;
    const SPAN: Duration = Duration::from_secs(4);
    let config = tcp::Config {
        orphan_wait: Duration::from_secs(2),
        orphan_rate: usize::MAX,
        ..tcp::Config::default()
    };
    let site = Site::direct_with(config)?;
    let (stack, to) = (site.server.clone(), site.to);
    let open = move || async move { stack.listen(to, tcp::ListenOptions::default()) };
    let listener = site.pair.server.spawn(open).join_within(WAIT)??;
    let permits = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let ours = Arc::clone(&permits);
    drop(site.pair.server.spawn(move || async move {
        while let Ok(mut stream) = listener.accept().await {
            stream.keep(Arc::clone(&ours).try_acquire_owned());
            tokio::spawn(async move {
                let _ = stream.write_all(&vec![7; ANSWER]).await;
                let _ = stream.shutdown().await;
            });
        }
    }));
    let before = resident()?;
    let attack = Attacker::start((&site.pair.client, &site.pair.server), to, |mut attacker| {
        attacker.until = Instant::now() + SPAN;
        attacker.connect(CONNECTIONS, 1, by_the_byte)?;
        while Instant::now() < attacker.until {
            attacker.listen(SPAN, by_the_byte)?;
        }
        Ok(())
    })?;
    let (mut held, mut taken, mut most) = (Vec::new(), Vec::new(), before);
    while !attack.is_finished() {
        std::thread::sleep(Duration::from_millis(500));
        held.push(site.server.counters().connections);
        taken.push(CONNECTIONS as usize - permits.available_permits());
        most = most.max(resident()?);
    }
    attack.join().map_err(|_| "the attack panicked")??;
    let counters = site.server.counters();
    println!(
        "{CONNECTIONS} peers take {ANSWER} bytes by the byte from a server that is gone: after each \
         half second {held:?} connections held and {taken:?} permits; resident memory {} kB before, \
         {} kB at most; {counters:?}",
        before >> 10,
        most >> 10,
    );
    let opened = counters.passive_opens as usize;
    assert_eq!(taken.iter().max(), Some(&opened), "a permit is kept for each");
    lab_test::until("the orphans' end", WAIT, || {
        let counters = site.server.counters();
        let over = counters.connections == 0 && counters.orphans_ended == counters.passive_opens;
        let given_back = permits.available_permits() == CONNECTIONS as usize;
        Ok((over && given_back).then_some(()))
    })
}
