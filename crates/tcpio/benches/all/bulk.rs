//! Bulk data and round trips over a clean veth pair, the kernel's TCP and ours in turns:
//! `cargo bench -p tcpio -- bulk [OPTIONS]`.
//!
//! Without `--bench` (as `cargo test --benches` runs it): shortened. `--rounds N`: A B A B, N
//! rounds. `--millis N`: how long each transfer runs. `--only TEXT`: cases whose names contain it.
//! Each node stays on a processor of its own, if there are two.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lab_test::TestResult;
use lab_test::net::WAIT;
use lab_test::net::sides::*;
use packet::offload::{self, Offloads};
use tcpio::{DeviceOptions, Stack, StackOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::judge;

/// What is on the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frames {
    /// Frames of 1500 bytes, offloads off.
    Plain,
    /// Super-segments, offloads on.
    Super,
}

/// Whose TCP is at each end: a sends to b.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pairing {
    KernelToKernel,
    OursToKernel,
    KernelToOurs,
    OursToOurs,
}

const PAIRINGS: [(Pairing, &str); 4] = [
    (Pairing::KernelToKernel, "kernel to kernel"),
    (Pairing::OursToKernel, "ours to kernel"),
    (Pairing::KernelToOurs, "kernel to ours"),
    (Pairing::OursToOurs, "ours to ours"),
];

const FRAMES: [(Frames, &str); 2] =
    [(Frames::Plain, "1500-byte frames"), (Frames::Super, "super-segments")];

struct Arguments {
    rounds: u32,
    length: Duration,
    trips: u32,
    only: String,
}

fn arguments() -> TestResult<Arguments> {
    let mut arguments =
        Arguments { rounds: 1, length: Duration::from_millis(30), trips: 20, only: String::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--bench" => {
                arguments.rounds = 3;
                arguments.length = Duration::from_secs(1);
                arguments.trips = 5000;
            }
            "--rounds" => arguments.rounds = value()?.parse()?,
            "--millis" => arguments.length = Duration::from_millis(value()?.parse()?),
            "--only" => arguments.only = value()?,
            _ => {}
        }
    }
    Ok(arguments)
}

pub fn main() -> TestResult {
    let arguments = arguments()?;
    let mut rates: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..arguments.rounds {
        for (frames, what) in FRAMES {
            for (pairing, name) in PAIRINGS {
                let name = format!("{name}, {what}");
                if name.contains(&arguments.only) {
                    let [rate, a, b] = bulk(frames, pairing, arguments.length)?;
                    println!("{name:50} {rate:7.2} Gbit/s, {a:7.2} and {b:7.2} a core");
                    rates.entry(name).or_default().push(rate);
                }
            }
        }
        for (pairing, spin) in
            [(Pairing::KernelToKernel, 0), (Pairing::OursToOurs, 0), (Pairing::OursToOurs, 1)]
        {
            let name = PAIRINGS.iter().find(|(other, _)| *other == pairing).map_or("", |(_, n)| n);
            let name = format!("{name}, round trip{}", if spin > 0 { ", spinning" } else { "" });
            if name.contains(&arguments.only) {
                let median = round_trip(pairing, Duration::from_millis(spin), arguments.trips)?;
                println!("{name:50} {:7.1} us", median.as_secs_f64() * 1e6);
            }
        }
    }
    summary(&rates)
}

/// Medians, and what is required of them.
fn summary(rates: &BTreeMap<String, Vec<f64>>) -> TestResult {
    println!("medians:");
    let mut medians = BTreeMap::new();
    for (name, rates) in rates {
        medians.insert(name.as_str(), judge::row(name, rates, "Gbit/s")?);
    }
    let median = |name: &str| medians.get(name).copied();
    for pairing in ["ours to kernel", "kernel to ours"] {
        let plain = median(&format!("{pairing}, 1500-byte frames"));
        if let (Some(ours), Some(kernel)) = (plain, median("kernel to kernel, 1500-byte frames")) {
            judge::required(&format!("{pairing}, share of kernel to kernel"), ours / kernel, 0.5);
        }
        if let Some(rate) = median(&format!("{pairing}, super-segments")) {
            judge::required(&format!("{pairing}, super-segments, Gbit/s"), rate, 10.0);
        }
    }
    Ok(())
}

/// A connection of the kernel's to `target`.
async fn connect_kernel(target: std::net::SocketAddr) -> TestResult<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    judge::cubic(&socket)?;
    Ok(socket.connect(target).await?)
}

/// Two nodes, each on its own processor.
fn pair(frames: Frames) -> TestResult<Net> {
    let net = Net::direct()?;
    let cpus = packet::thread::allowed_cpus();
    for (side, place) in net.sides().into_iter().zip(0usize..) {
        let cpu = cpus.get(place).or(cpus.first()).copied();
        let name = side.end.interface.clone();
        side.node.run(move || -> TestResult {
            if let Some(cpu) = cpu {
                packet::thread::pin(cpu)?;
            }
            if frames == Frames::Super {
                let on = Offloads {
                    tx_checksum: true,
                    scatter_gather: true,
                    tso: true,
                    gso: true,
                    gro: true,
                };
                offload::set(&name, on)?;
            }
            Ok(())
        })??;
    }
    Ok(net)
}

fn options(side: &Side, frames: Frames, spin: Duration) -> StackOptions {
    let mut options = side.options();
    let vnet_header = frames == Frames::Super;
    options.device = DeviceOptions::Interface { name: side.end.interface.clone(), vnet_header };
    options.spin = spin;
    options
}

fn pairing_of(pairing: Pairing) -> (bool, bool) {
    match pairing {
        Pairing::KernelToKernel => (false, false),
        Pairing::OursToKernel => (true, false),
        Pairing::KernelToOurs => (false, true),
        Pairing::OursToOurs => (true, true),
    }
}

/// Gbit/s of payload that one connection carries from a to b: by the clock, and by the CPU time of
/// a's and of b's thread, which tells what others on the machine do not take away.
fn bulk(frames: Frames, pairing: Pairing, length: Duration) -> TestResult<[f64; 3]> {
    let net = pair(frames)?;
    let [a, b] = net.sides();
    let (sender, receiver) = pairing_of(pairing);
    let target = at(if receiver { b.addresses()[0] } else { b.kernel()[0] }, 7000);
    let (ready, listening) = std::sync::mpsc::channel();
    let server = match receiver {
        true => b.with_stack(options(&b, frames, Duration::ZERO), move |stack| async move {
            let listener = stack.listen(target, listen())?;
            ready.send(())?;
            drain(listener.accept().await?).await
        }),
        false => b.node.spawn(move || async move {
            let listener = TcpListener::bind(target).await?;
            ready.send(())?;
            drain(listener.accept().await?.0).await
        }),
    };
    listening.recv_timeout(WAIT)?;
    let before = [&a, &b].map(|side| side.node.cpu_time().unwrap_or_default());
    let client = match sender {
        true => a.with_stack(options(&a, frames, Duration::ZERO), move |stack| async move {
            let stream = stack.connect(target, connect())?;
            stream.connected().await?;
            fill(stream, length).await
        }),
        false => {
            a.node.spawn(move || async move { fill(connect_kernel(target).await?, length).await })
        }
    };
    join(client)?;
    let (bytes, time) = join(server)?;
    let rate = |time: Duration| bytes as f64 * 8.0 / time.as_secs_f64() / 1e9;
    let cpu = |side: &Side, before: Duration| {
        rate(side.node.cpu_time().unwrap_or_default().saturating_sub(before))
    };
    Ok([rate(time), cpu(&a, before[0]), cpu(&b, before[1])])
}

/// Writes for a time, then ends the stream and waits for the other end's.
async fn fill(mut stream: impl AsyncRead + AsyncWrite + Unpin, length: Duration) -> TestResult {
    let data = vec![0x5a; 256 << 10];
    let began = Instant::now();
    while began.elapsed() < length {
        stream.write_all(&data).await?;
    }
    stream.shutdown().await?;
    match stream.read(&mut [0; 1]).await? {
        0 => Ok(()),
        _ => Err("the receiver sent something".into()),
    }
}

/// Reads to the end; bytes, and the time since the first.
async fn drain(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> TestResult<(usize, Duration)> {
    let mut buffer = vec![0; 256 << 10];
    stream.read_exact(&mut [0; 1]).await?;
    let began = Instant::now();
    let mut total = 0;
    loop {
        match stream.read(&mut buffer).await? {
            0 => break,
            count => total += count,
        }
    }
    Ok((total, began.elapsed()))
}

/// The median round trip of one byte.
fn round_trip(pairing: Pairing, spin: Duration, trips: u32) -> TestResult<Duration> {
    let net = pair(Frames::Plain)?;
    let [a, b] = net.sides();
    let (sender, receiver) = pairing_of(pairing);
    let target = at(if receiver { b.addresses()[0] } else { b.kernel()[0] }, 7000);
    let (ready, listening) = std::sync::mpsc::channel();
    let server = match receiver {
        true => b.with_stack(options(&b, Frames::Plain, spin), move |stack| async move {
            let listener = stack.listen(target, listen())?;
            ready.send(())?;
            echo(listener.accept().await?).await
        }),
        false => b.node.spawn(move || async move {
            let listener = TcpListener::bind(target).await?;
            ready.send(())?;
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            echo(stream).await
        }),
    };
    listening.recv_timeout(WAIT)?;
    let client = match sender {
        true => a.with_stack(options(&a, Frames::Plain, spin), move |stack: Stack| async move {
            let stream = stack.connect(target, connect())?;
            stream.connected().await?;
            ping(stream, trips).await
        }),
        false => a.node.spawn(move || async move {
            let stream = connect_kernel(target).await?;
            stream.set_nodelay(true)?;
            ping(stream, trips).await
        }),
    };
    let median = join(client)?;
    join(server)?;
    Ok(median)
}

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> TestResult {
    let mut byte = [0; 1];
    while stream.read(&mut byte).await? > 0 {
        stream.write_all(&byte).await?;
    }
    Ok(stream.shutdown().await?)
}

async fn ping(mut stream: impl AsyncRead + AsyncWrite + Unpin, trips: u32) -> TestResult<Duration> {
    let mut times = Vec::new();
    for _ in 0..trips {
        let began = Instant::now();
        stream.write_all(&[1]).await?;
        stream.read_exact(&mut [0; 1]).await?;
        times.push(began.elapsed());
    }
    stream.shutdown().await?;
    times.sort();
    Ok(times[times.len() / 2])
}
