//! SYNs with data from random addresses, and what they do to a process's memory.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::{End, Node};
use packet::{PacketSocket, SendBatch, SocketOptions};
use wire::tcp::{Flags, OptionList, Repr};

use super::pattern::Pattern;
use super::segments::frame;
use crate::TestResult;

/// Frames of one system call.
const BATCH: u32 = 64;

/// A flood of SYNs with data.
pub struct Flood {
    pub to: SocketAddr,
    /// How many SYNs.
    pub syns: u32,
    /// What each of them carries.
    pub payload: Vec<u8>,
}

impl Flood {
    /// Sends it from a thread of its own in the namespace of `from`, whose runtime goes on.
    pub fn start(self, from: &Node, to: &Node) -> TestResult<JoinHandle<TestResult<Duration>>> {
        let here = from.ends().into_iter().next().ok_or("no link")?;
        let there = to.ends().into_iter().next().ok_or("no link")?;
        // A thread inherits the namespace of the one that starts it.
        Ok(from.run(move || std::thread::spawn(move || self.send(&here, &there)))?)
    }

    /// As fast as the link takes them; how long that took.
    fn send(&self, here: &End, there: &End) -> TestResult<Duration> {
        let socket = PacketSocket::open(here.index, &SocketOptions::default())?;
        let mut batch = SendBatch::new(BATCH as usize);
        let mut random = Pattern::new(11);
        let began = Instant::now();
        let mut sent = 0;
        while sent < self.syns {
            let mut frames = Vec::new();
            for _ in 0..BATCH.min(self.syns - sent) {
                let drawn = random.take(8);
                // Of a network that no route of the server's leads to but its gateway.
                let source = Ipv4Addr::new(100, 64 + (drawn[0] & 63), drawn[1], drawn[2]);
                let segment = Repr {
                    source_port: 1024 | u16::from_be_bytes([drawn[3], drawn[4]]),
                    destination_port: self.to.port(),
                    sequence: u32::from_be_bytes([drawn[4], drawn[5], drawn[6], drawn[7]]),
                    acknowledgment: None,
                    flags: Flags::SYN,
                    window: 64_000,
                    options: OptionList { mss: Some(1460), ..OptionList::default() },
                };
                let macs = (here.mac, there.mac);
                frames.push(frame(macs, (source.into(), self.to.ip()), &segment, &self.payload)?);
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
}

/// Bytes of memory that the process has resident.
pub fn resident() -> TestResult<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split_whitespace().nth(1).ok_or("statm has no such field")?.parse()?;
    Ok(pages * 4096)
}
