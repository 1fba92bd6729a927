//! What a live capture follows without loss, by the size of its ring: `cargo bench -p observe --bench live`.
//!
//! One processor sends small TCP segments of many connections out of an interface of the lab, as fast as it
//! can or at a given rate; another follows them as `wiretax observe --interface` does, or the same one, which
//! then has too much to do. Every frame that was sent must have been followed, or be among those that the
//! kernel says its ring lost (PACKET_STATISTICS): where that is not so, this ends with an error.
#![allow(missing_docs)]

use std::error::Error;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use capture::{Live, LiveOptions};
use lab::{Backend, EnterOptions, LabOptions, Node};
use observe::reading::{Reading, SinkOptions, Times, View};
use packet::{PacketSocket, SendBatch, SocketOptions, interface_index};
use study::Watcher;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const INTERFACE: &str = "link1";
/// Bytes of a frame.
const LEN: usize = 66;
/// Connections, whose frames take turns.
const FLOWS: usize = 512;
/// Frames that are sent by one system call.
const AT_ONCE: usize = 64;
/// Bytes of a ring's blocks, and how many there are; the last two are `--ring 2` and the default.
const RINGS: [(u32, u32); 4] = [(1 << 16, 2), (1 << 16, 16), (1 << 20, 2), (1 << 20, 32)];
/// The longest that a ring keeps frames back, and some.
const SETTLE: Duration = Duration::from_millis(300);

/// How long a round sends, and in how many the greatest rate without loss is searched.
struct Effort {
    time: Duration,
    steps: u32,
}

/// Where the two threads run.
#[derive(Clone, Copy)]
struct Places {
    sender: usize,
    reader: usize,
}

/// What came of a round.
struct Round {
    sent: u64,
    took: Duration,
    lost: u64,
    /// CPU time of who follows.
    cpu: Duration,
}

impl Round {
    fn rate(&self) -> f64 {
        self.sent as f64 / self.took.as_secs_f64()
    }
}

struct Until(Arc<AtomicBool>);

impl Watcher for Until {
    fn progress(&mut self, _: &str, _: Duration, _: Duration) {}
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn warning(&mut self, _: &str, _: Option<&str>) {}
    fn note(&mut self, _: &str) {}
}

impl View for Until {
    fn now(&mut self, _: String) {}
}

fn main() -> Outcome {
    let full = std::env::args().any(|word| word == "--bench");
    if let Err(error) = lab::enter(&EnterOptions::new()) {
        println!("SKIPPED: {error}");
        return Ok(());
    }
    let options = LabOptions { backend: Backend::Direct, ..LabOptions::default() };
    let mut lab = lab::Lab::new(options)?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &linkmodel::Path::default())?;
    let cpus = packet::thread::allowed_cpus();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let apart = Places { sender: first, reader: last };
    if !full {
        let effort = Effort { time: Duration::from_millis(50), steps: 1 };
        return measure(&client, RINGS[0], apart, &effort);
    }
    let effort = Effort { time: Duration::from_secs(1), steps: 7 };
    let together = Places { sender: first, reader: first };
    for (what, places) in [("a processor each", apart), ("one processor for both", together)] {
        println!("who sends and who follows: {what}");
        for ring in RINGS {
            measure(&client, ring, places, &effort)?;
        }
    }
    Ok(())
}

/// Prints what is followed without loss, and what is lost of as much as can be sent.
fn measure(node: &Node, ring: (u32, u32), places: Places, effort: &Effort) -> Outcome {
    let most = round(node, ring, places, None, effort.time)?;
    let (mut without, mut with) = (0.0, most.rate());
    if most.lost == 0 {
        without = with;
    } else {
        for _ in 0..effort.steps {
            let rate = f64::midpoint(without, with);
            let tried = round(node, ring, places, Some(rate), effort.time)?;
            if tried.lost == 0 { without = rate } else { with = rate }
        }
    }
    println!(
        "  ring of {:>5} KiB: {without:.0} frames/s without loss; of {:.0} frames/s, all that were sent, {} of \
         {} lost ({:.2} %), {:.0} ns of CPU time per frame followed",
        ring.0 / 1024 * ring.1,
        most.rate(),
        most.lost,
        most.sent,
        most.lost as f64 / most.sent as f64 * 100.0,
        most.cpu.as_nanos() as f64 / (most.sent - most.lost).max(1) as f64,
    );
    Ok(())
}

/// Sends for so long, at a rate in frames per second or as fast as can be, while it is followed.
fn round(
    node: &Node,
    (block_bytes, blocks): (u32, u32),
    places: Places,
    rate: Option<f64>,
    time: Duration,
) -> Outcome<Round> {
    let mut options = LiveOptions::default();
    (options.ring.block_bytes, options.ring.blocks) = (block_bytes, blocks);
    let mut sources = node.run(move || Live::open_several(&[INTERFACE], &options, 1))??;
    let socket = node.run(|| {
        // Past the queueing discipline nobody would see what is sent.
        let options = SocketOptions { qdisc_bypass: false, ..SocketOptions::default() };
        PacketSocket::open(interface_index(INTERFACE)?, &options)
    })??;
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    let sender = thread::spawn(move || -> io::Result<(u64, Duration)> {
        let pinned = packet::thread::pin(places.sender);
        let sent = pinned.map_err(io::Error::other).and_then(|()| send(&socket, rate, time));
        thread::sleep(SETTLE);
        is_done.store(true, Ordering::Relaxed);
        sent
    });
    packet::thread::pin(places.reader)?;
    let mut reading = Reading::open(SinkOptions::default(), 1_000_000, 1).unwrap();
    let before = packet::clock::thread_cpu();
    reading.live(&mut sources, Times::default(), &mut Until(done)).unwrap();
    let cpu = packet::clock::thread_cpu() - before;
    let (sent, took) = sender.join().map_err(|_| "the sender panicked")??;
    let counted = sources[0].statistics()?;
    let followed = reading.finish().unwrap().counters.frames;
    if counted.frames != sent || followed + counted.drops != sent {
        let what = format!("{sent} frames were sent, {followed} followed, and of {counted:?}");
        return Err(what.into());
    }
    Ok(Round { sent, took, lost: counted.drops, cpu })
}

fn send(socket: &PacketSocket, rate: Option<f64>, time: Duration) -> io::Result<(u64, Duration)> {
    let mut frames: Vec<[u8; LEN]> = (0..FLOWS as u32).map(frame).collect();
    let mut batch = SendBatch::new(AT_ONCE);
    let (began, mut sent, mut turn) = (Instant::now(), 0, 0);
    loop {
        for part in frames.chunks_mut(AT_ONCE) {
            if let Some(rate) = rate {
                let due = Duration::from_secs_f64(sent as f64 / rate);
                while began.elapsed() < due {
                    std::hint::spin_loop();
                }
            }
            if began.elapsed() >= time {
                return Ok((sent, began.elapsed()));
            }
            part.iter_mut().for_each(|frame| advance(frame, turn));
            let mut left = &*part;
            while !left.is_empty() {
                match batch.send(socket.as_fd(), left.iter().map(|frame| &frame[..])) {
                    Ok(count) => {
                        sent += count as u64;
                        left = &left[count..];
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                    Err(error) => return Err(error),
                }
            }
        }
        turn += 1;
    }
}

/// A segment of a connection, without numbers.
fn frame(flow: u32) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14..16].copy_from_slice(&[0x45, 0]);
    bytes[16..18].copy_from_slice(&(LEN as u16 - 14).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 6]);
    bytes[26..30].copy_from_slice(&(0x0a00_0000 + flow).to_be_bytes());
    bytes[30..34].copy_from_slice(&[10, 200, 0, 1]);
    bytes[34..38].copy_from_slice(&[0xc0, 0, 1, 0xbb]);
    bytes
}

/// Makes it the one of this turn: a SYN, then data.
fn advance(frame: &mut [u8; LEN], turn: u32) {
    let payload = LEN as u32 - 54;
    let sequence = if turn == 0 { 0 } else { 1 + (turn - 1).wrapping_mul(payload) };
    frame[38..42].copy_from_slice(&sequence.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, if turn == 0 { 0x02 } else { 0x10 }]);
}
