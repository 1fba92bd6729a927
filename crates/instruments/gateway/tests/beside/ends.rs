//! Ends that nobody announces, and readers that never read: what a pair of gateways makes of them.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lab_test::{TestResult, until};

use super::ours::{METRICS, TIGHT_SEND_MEMORY};
use super::pairs::Pair;
use super::site::{LOCAL, Site};
use super::traffic;

/// Longest wait for what comes much sooner, beside a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);
/// Connections whose clients do not read.
const UNREAD: usize = 12;
/// What each may hold of data to send beside the budget.
const OWN: usize = 64 << 10;

/// The serving side is killed while a client downloads: the download ends with an error.
pub fn a_killed_peer_ends_downloads() -> TestResult {
    let site = Site::new()?;
    let program = std::env::current_exe()?;
    let mut started = Pair::Tight.start(&site, Some(&program))?;
    let mut download = site.client.run(|| -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(LOCAL)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&u64::MAX.to_be_bytes())?;
        stream.read_exact(&mut [0; 1000])?;
        Ok(stream)
    })??;
    // SIGKILL, as its drop does it.
    drop(started.processes.pop());
    let mut block = vec![0; 64 << 10];
    let ended = loop {
        match download.read(&mut block) {
            Ok(0) => return Err("an end of data, as if it were whole".into()),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(ended.kind(), io::ErrorKind::ConnectionReset, "{ended}");
    Ok(())
}

/// Clients ask for much and do not read: what the serving side holds stays within its budget, and another
/// client is served beside them.
pub fn unread_downloads_share_a_budget() -> TestResult {
    let site = Site::new()?;
    let program = std::env::current_exe()?;
    let started = Pair::Tight.start(&site, Some(&program))?;
    let to = started.to;
    let held = site.on_client(move || async move {
        let held = traffic::hold(to, UNREAD, 4).await?;
        for stream in &held {
            traffic::ask_for_ever(stream).await?;
        }
        Ok(held)
    })?;
    // All of it is in use: none has room for what its server sends.
    let send_held = || -> TestResult<usize> {
        let page = site.server.run(metrics_page)??;
        let line =
            page.lines().find(|line| line.starts_with("wiretax_gateway_tcp_send_held_bytes{"));
        let value = line.and_then(|line| line.rsplit(' ').next()).ok_or("no such metric")?;
        Ok(value.parse()?)
    };
    let bound = TIGHT_SEND_MEMORY + (UNREAD + 1) * OWN;
    let mut most = 0;
    until("unread data to fill the budget", PATIENCE, || {
        most = most.max(send_held()?);
        Ok((most > TIGHT_SEND_MEMORY).then_some(()))
    })?;
    site.on_client(move || async move { Ok(traffic::exchange(to).await?) })?;
    most = most.max(send_held()?);
    assert!(most <= bound, "{most} bytes are held, {bound} allowed");
    drop(held);
    until("memory to be free again", PATIENCE, || Ok((send_held()? == 0).then_some(())))
}

fn metrics_page() -> io::Result<String> {
    let mut stream = TcpStream::connect(METRICS)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}
