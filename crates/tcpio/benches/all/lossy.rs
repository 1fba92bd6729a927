//! Bulk data over an emulated 100 Mbit/s, 50 ms, 1 % loss link: our congestion control and recovery
//! against the kernel's CUBIC, to the kernel's TCP as receiver, A B A B:
//! `cargo bench -p tcpio -- lossy [--rounds N --seconds S]`.
//!
//! Eight links with seeds of their own run at the same time, which no processor minds at a few
//! Mbit/s. The queue holds one bandwidth-delay product.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lab::{Backend, JoinHandle, Lab, LabOptions, Node};
use lab_test::TestResult;
use lab_test::net::WAIT;
use lab_test::net::peers::{open_on, stack_options, teach};
use linkmodel::{Path, Queue};
use stats::{Confidence, compare_paired};
use tcpio::Stack;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use units::{Probability, Rate};

use crate::{judge, support};

const LINKS: usize = 8;

pub fn main() -> TestResult {
    let arguments = support::arguments(2, Duration::from_secs(15))?;
    let path = Path::symmetric("50ms".parse()?)
        .with_rate("100mbit".parse::<Rate>()?)
        .with_loss("1%".parse::<Probability>()?)
        // 100 Mbit/s x 50 ms.
        .with_queue(Queue::Bytes("625kB".parse()?));
    let mut lab =
        Lab::new(LabOptions { seed: 1, backend: Backend::Veth, ..LabOptions::default() })?;
    let mut sites = Vec::new();
    for number in 0..if arguments.full { LINKS } else { 1 } {
        let sender = lab.add_node(&format!("sender{number}"))?;
        let receiver = lab.add_node(&format!("receiver{number}"))?;
        lab.connect(&sender, &receiver, &path)?;
        teach(&receiver, &sender)?;
        let stack = open_on(&sender, stack_options(&sender, &receiver, tcp::Config::default())?)?;
        sites.push(Site { sender, receiver, stack });
    }
    println!("100 Mbit/s, 50 ms, 1 % loss, {:?} each, {} seeds:", arguments.time, sites.len());
    let (mut kernel, mut ours) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        // Kernel first, then ours, then the other way round.
        for turn in 0..2 {
            let by_us = (round + turn) % 2 == 1;
            let rates = measure(&sites, by_us, arguments.time)?;
            if by_us { ours.extend(rates) } else { kernel.extend(rates) }
        }
    }
    judge::row("Kernel to Kernel", &kernel, "Mbit/s")?;
    judge::row("Ours to Kernel", &ours, "Mbit/s")?;
    let compared = compare_paired(&kernel, &ours, Confidence::C95)?;
    if let Some(ratio) = compared.ratio {
        println!(
            "  ours by the kernel's, pair by pair: {:.3} ({:.3} to {:.3})",
            ratio.value, ratio.low, ratio.high
        );
        // A tenth of a second is but slow start.
        if arguments.full {
            judge::required("share of the kernel's", ratio.value, 1.0);
        }
    }
    Ok(())
}

struct Site {
    sender: Node,
    receiver: Node,
    stack: Stack,
}

/// All links at the same time; Mbit/s on each.
fn measure(sites: &[Site], by_us: bool, time: Duration) -> TestResult<Vec<f64>> {
    let mut running = Vec::new();
    for site in sites {
        let (address, receiving) = receive(&site.receiver, time)?;
        // Dropped when the receiver is done: the sender notices.
        let sending = if by_us {
            let stack = site.stack.clone();
            site.sender.spawn(move || async move {
                let stream = stack.connect(address, tcp::ConnectOptions::default())?;
                stream.connected().await?;
                send(stream).await
            })
        } else {
            site.sender.spawn(move || async move {
                let socket = tokio::net::TcpSocket::new_v4()?;
                judge::cubic(&socket)?;
                send(socket.connect(address).await?).await
            })
        };
        running.push((receiving, sending));
    }
    let mut rates = Vec::new();
    for (receiving, sending) in running {
        rates.push(receiving.join_within(WAIT + time)??);
        sending.join_within(WAIT + time)??;
    }
    Ok(rates)
}

/// Sends until the receiver is gone.
async fn send(mut stream: impl tokio::io::AsyncWrite + Unpin) -> TestResult {
    let buffer = vec![7; 64 << 10];
    while stream.write_all(&buffer).await.is_ok() {}
    Ok(())
}

/// Receives for a time from the first byte on; Mbit/s. Then the connection is reset.
fn receive(node: &Node, time: Duration) -> TestResult<(SocketAddr, JoinHandle<TestResult<f64>>)> {
    let ip = node.addr4()?;
    let listener = node.spawn(move || tokio::net::TcpListener::bind((ip, 0)));
    let listener = listener.join_within(WAIT)??;
    let address = listener.local_addr()?;
    let receiving = node.spawn(move || async move {
        let (mut stream, _) = listener.accept().await?;
        let mut buffer = vec![0; 256 << 10];
        let mut bytes = stream.read(&mut buffer).await?;
        let began = Instant::now();
        while began.elapsed() < time {
            let left = time.saturating_sub(began.elapsed());
            match tokio::time::timeout(left, stream.read(&mut buffer)).await {
                Ok(got) => match got? {
                    0 => return Err("the sender ended".into()),
                    got => bytes += got,
                },
                Err(_) => break,
            }
        }
        Ok(bytes as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e6)
    });
    Ok((address, receiving))
}
