//! A peer made by hand, with as many addresses as it likes: its segments are frames.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::{Direction, End, Node};
use lab_test::TestResult;
use lab_test::net::WAIT;
use lab_test::net::segments::{Segment, frame, parse};
use packet::{PacketSocket, SendBatch, SocketOptions};
use wire::tcp::{Flags, OptionList, Repr};

/// Frames of one system call at most.
const BATCH: usize = 64;
/// The port of every connection of the attacker's.
const FROM: u16 = 4000;
/// Its SYNs' sequence number.
pub const IRS: u32 = 1000;
/// An ACK and nothing else.
pub const BARE: Flags = Flags(0);

/// The attacker's address number `index`: of a network to which the server's gateway leads.
pub fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x6440_0000 | index & 0x003f_ffff)
}

/// A socket on the attacker's end of the link.
pub struct Attacker {
    socket: PacketSocket,
    batch: SendBatch,
    macs: ([u8; 6], [u8; 6]),
    to: SocketAddr,
    frames: Vec<Vec<u8>>,
    /// No listening goes on after that.
    pub until: Instant,
}

impl Attacker {
    /// Runs `attack` in a thread of its own in the namespace of `from`, whose runtime goes on.
    pub fn start<T: Send + 'static>(
        (from, server): (&Node, &Node),
        to: SocketAddr,
        attack: impl FnOnce(Attacker) -> TestResult<T> + Send + 'static,
    ) -> TestResult<JoinHandle<TestResult<T>>> {
        let end = |node: &Node| node.ends().into_iter().next().ok_or("no link");
        let (here, there): (End, End) = (end(from)?, end(server)?);
        let began = move || {
            std::thread::spawn(move || {
                let socket = PacketSocket::open(here.index, &SocketOptions::default())?;
                let batch = SendBatch::new(BATCH);
                let macs = (here.mac, there.mac);
                let until = Instant::now() + WAIT;
                attack(Attacker { socket, batch, macs, to, frames: Vec::new(), until })
            })
        };
        // A thread inherits the namespace of the one that starts it.
        Ok(from.run(began)?)
    }

    /// Queues a segment from address number `from`.
    pub fn push(
        &mut self,
        from: u32,
        flags: Flags,
        (seq, ack, window): (u32, Option<u32>, u16),
        data: &[u8],
    ) -> TestResult {
        let syn = flags.has(Flags::SYN);
        let options = OptionList {
            mss: syn.then_some(1460),
            window_scale: syn.then_some(0),
            ..OptionList::default()
        };
        let segment = Repr {
            source_port: FROM,
            destination_port: self.to.port(),
            sequence: seq,
            acknowledgment: ack,
            flags,
            window,
            options,
        };
        let addresses = (address(from).into(), self.to.ip());
        self.frames.push(frame(self.macs, addresses, &segment, data)?);
        if self.frames.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// Sends what is queued.
    pub fn flush(&mut self) -> TestResult {
        let frames = std::mem::take(&mut self.frames);
        let mut rest: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        while !rest.is_empty() {
            match self.batch.send(self.socket.as_fd(), rest.iter().copied()) {
                Ok(taken) => drop(rest.drain(..taken)),
                // The device's queue is full: the server needs the processor.
                Err(error)
                    if error.raw_os_error() == Some(libc::ENOBUFS)
                        || error.kind() == std::io::ErrorKind::WouldBlock =>
                {
                    std::thread::yield_now();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// What the server sends to the attacker's addresses until nothing has come for `quiet`, with
    /// the number of the address. `each` may answer.
    pub fn listen(
        &mut self,
        quiet: Duration,
        mut each: impl FnMut(&mut Attacker, u32, &Segment) -> TestResult,
    ) -> TestResult {
        let mut buffer = vec![0; 2048];
        let mut last = Instant::now();
        while last.elapsed() < quiet && Instant::now() < self.until {
            let Some(len) = packet::receive(self.socket.as_fd(), &mut buffer)? else {
                self.flush()?;
                std::thread::sleep(Duration::from_micros(200));
                continue;
            };
            let Some(segment) = parse(&buffer[..len], Direction::Inbound) else { continue };
            let IpAddr::V4(to) = segment.destination else { continue };
            let index = to.to_bits() & 0x003f_ffff;
            if address(index) == to && segment.destination_port == FROM {
                last = Instant::now();
                each(self, index, &segment)?;
            }
        }
        self.flush()
    }

    /// Sends ordinary SYNs from the first `count` addresses and gives `each` the SYN-ACKs.
    pub fn connect(
        &mut self,
        count: u32,
        window: u16,
        each: impl FnMut(&mut Attacker, u32, &Segment) -> TestResult,
    ) -> TestResult {
        for index in 0..count {
            self.push(index, Flags::SYN, (IRS, None, window), &[])?;
        }
        self.flush()?;
        self.listen(Duration::from_millis(300), each)
    }
}
