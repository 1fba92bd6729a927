//! A flood of loaded SYNs from addresses that do not answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lab::End;
use packet::{PacketSocket, SendBatch, SocketOptions};
use tcp::{ListenOptions, LoadedSyn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::tcp::{Flags, OptionList, Repr};

use crate::harness::{Test, TestResult, WAIT, direct};
use crate::pattern::Pattern;
use crate::peers::{Family, Meeting, PORT, limited};
use crate::segments::frame;

pub fn tests() -> Vec<Test> {
    vec![Test("a_flood_of_100000_loaded_syns_leaves_the_server_serving", flood)]
}

const SYNS: u32 = 100_000;
/// Frames of one system call.
const BATCH: u32 = 64;
/// What the flood may add to the process's resident memory: the answers of the half-open
/// connections that are kept, and the streams of those that the application holds.
const MEMORY_LIMIT: usize = 64 << 20;

fn admit(_: &LoadedSyn<'_>) -> bool {
    true
}

/// Bytes of memory that the process has resident.
fn resident() -> TestResult<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split_whitespace().nth(1).ok_or("statm has no such field")?.parse()?;
    Ok(pages * 4096)
}

/// Answers every connection, loaded or not: reads what is there, writes a flight of 3000 bytes.
async fn serve(listener: tcpio::TcpListener) -> io::Result<()> {
    loop {
        let mut stream = listener.accept().await?;
        tokio::spawn(async move {
            let mut request = vec![0; 1200];
            if stream.read_exact(&mut request).await.is_ok()
                && stream.write_all(&[7; 3000]).await.is_ok()
            {
                stream.answer();
                // A client that is there says more, or ends; a forged one times out.
                while matches!(stream.read(&mut request).await, Ok(1..)) {}
                let _ = stream.shutdown().await;
            }
        });
    }
}

/// Sends SYNs with 1200 bytes from random addresses and ports, as fast as the link takes them.
fn send_flood(here: &End, there: &End, to: IpAddr) -> TestResult<Duration> {
    let socket = PacketSocket::open(here.index, &SocketOptions::default())?;
    let mut batch = SendBatch::new(BATCH as usize);
    let mut random = Pattern::new(11);
    let payload = Pattern::new(1).take(1200);
    let began = Instant::now();
    let mut sent = 0;
    while sent < SYNS {
        let mut frames = Vec::new();
        for _ in 0..BATCH.min(SYNS - sent) {
            let drawn = random.take(8);
            // Of a network that no route of the server's leads to but its gateway.
            let source = Ipv4Addr::new(100, 64 + (drawn[0] & 63), drawn[1], drawn[2]);
            let segment = Repr {
                source_port: 1024 | u16::from_be_bytes([drawn[3], drawn[4]]),
                destination_port: PORT,
                sequence: u32::from_be_bytes([drawn[4], drawn[5], drawn[6], drawn[7]]),
                acknowledgment: None,
                flags: Flags::SYN,
                window: 64_000,
                options: OptionList { mss: Some(1460), ..OptionList::default() },
            };
            let macs = (here.mac, there.mac);
            frames.push(frame(macs, (source.into(), to), &segment, &payload)?);
        }
        let mut rest = frames.iter().map(Vec::as_slice).collect::<Vec<_>>();
        while !rest.is_empty() {
            match batch.send(socket.as_fd(), rest.iter().copied()) {
                Ok(taken) => drop(rest.drain(..taken)),
                // The device's queue is full: the server needs the processor.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    std::thread::yield_now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                }
                Err(error) => return Err(error.into()),
            }
        }
        sent += frames.len() as u32;
    }
    Ok(began.elapsed())
}

fn flood() -> TestResult {
    let config = tcp::Config::default();
    let pair = direct()?;
    let gateway = pair.client.addr4()?;
    crate::peers::teach(&pair.client, &pair.server)?;
    let mut options = crate::peers::stack_options(&pair.server, &pair.client, config)?;
    options.gateways = vec![gateway.into()];
    let stack = crate::peers::open_on(&pair.server, options)?;
    let (ours, kernel) = (pair.server.clone(), pair.client.clone());
    let meeting = Meeting { pair, stack, ours, kernel };
    let options = ListenOptions { admit, ..ListenOptions::default() };
    let listener = meeting.listen(Family::V4, PORT, options)?;
    drop(meeting.ours.spawn(move || serve(listener)));
    let to = meeting.our_socket(Family::V4, PORT)?;
    let client = move || async move {
        let mut stream = limited("a connection", tokio::net::TcpStream::connect(to)).await??;
        stream.write_all(&[3; 1200]).await?;
        let mut answer = vec![0; 3000];
        limited("the answer", stream.read_exact(&mut answer)).await??;
        assert_eq!(answer, [7; 3000]);
        TestResult::Ok(())
    };
    // All that is allocated once is there before.
    meeting.kernel.spawn(client).join_within(WAIT)??;
    let before = resident()?;
    // The flood comes from a thread of its own in the client's namespace, so that the client's
    // runtime goes on.
    let (here, there) = (
        meeting.kernel.ends().into_iter().next().ok_or("no link")?,
        meeting.ours.ends().into_iter().next().ok_or("no link")?,
    );
    let flooding = meeting.kernel.run(move || {
        // The thread inherits the node's namespace.
        std::thread::spawn(move || send_flood(&here, &there, to.ip()))
    })?;
    let (mut most, mut served) = (0, 0);
    while !flooding.is_finished() {
        meeting.kernel.spawn(client).join_within(WAIT)??;
        served += 1;
        most = most.max(resident()?);
    }
    let took = flooding.join().map_err(|_| "the flood panicked")??;
    meeting.kernel.spawn(client).join_within(WAIT)??;
    most = most.max(resident()?);
    let counters = meeting.stack.counters();
    println!(
        "{SYNS} SYNs in {took:?}; {served} clients served meanwhile; resident memory {} kB before, \
         {} kB at most; {counters:?}",
        before >> 10,
        most >> 10
    );
    assert!(served > 0, "the flood was over before the first client");
    assert!(most.saturating_sub(before) < MEMORY_LIMIT, "{} bytes more", most - before);
    Ok(())
}
