//! Connections through memory that stay open: records one way, and what connections weigh.

use std::rc::Rc;

use super::clock::thread_cpu;
use super::pipe::{End, Wires};
use super::proof;
use super::setup::{Gate, Setup, ThreadContexts};
use super::tally::Tally;
use crate::driver::{Conn, Step};
use crate::{DriverError, Footprint};

/// Turns that a handshake may take.
const MOST_TURNS: usize = 32;
/// Bytes that one side writes before the other reads: as much as a socket's buffer has.
const BURST: usize = 256 << 10;

/// Two ends of an open connection.
struct Open {
    wires: Rc<Wires>,
    client: Conn<End>,
    server: Conn<End>,
}

impl Open {
    fn begin(contexts: &ThreadContexts) -> Result<Self, DriverError> {
        let wires = Rc::new(Wires::default());
        let client = Conn::new(&contexts.client, End::new(&wires, false), None)?;
        let server = Conn::new(&contexts.server, End::new(&wires, true), None)?;
        Ok(Self { wires, client, server })
    }

    /// The handshake to its end.
    fn connect(&mut self, setup: &Setup) -> Result<(), DriverError> {
        let mut shown = None;
        for turn in 0..MOST_TURNS {
            let client = self.client.handshake()?;
            let server = self.server.handshake()?;
            if turn == 0 {
                shown = self.wires.waiting_for_client(proof::look);
            }
            if (client, server) == (Step::Done(()), Step::Done(())) {
                let said = [self.client.negotiated()?, self.server.negotiated()?];
                return setup.judge(shown, said, false).map(|_| ());
            }
        }
        Err(DriverError::Stuck)
    }
}

/// Records of one size from the server to the client, until the gate closes.
pub(crate) fn bulk(setup: &Setup, contexts: &ThreadContexts, gate: &Gate, record: usize) -> Tally {
    let mut tally = Tally::default();
    let opened = Open::begin(contexts).and_then(|mut open| open.connect(setup).map(|()| open));
    let mut open = match opened {
        Ok(open) => open,
        Err(error) => {
            tally.fail(error);
            gate.give_up(setup);
            return tally;
        }
    };
    let bytes: Vec<u8> = (0..record).map(|at| (at % 251) as u8).collect();
    let records = (BURST / record.max(1)).clamp(1, 1024) as u64;
    let mut scratch = vec![0; 32 << 10];
    gate.enter(setup, || {
        burst(setup, &mut open, &bytes, records, &mut scratch, &mut Tally::default())
            .map_or(1, |()| 0)
    });
    let (began, cpu) = (gate.begin(setup), thread_cpu());
    while gate.goes_on(tally.done) {
        let records = records.min(gate.left(tally.done));
        if let Err(error) = burst(setup, &mut open, &bytes, records, &mut scratch, &mut tally) {
            tally.fail(error);
            break;
        }
    }
    tally.end(began, cpu);
    tally
}

/// Some records: written, then read.
fn burst(
    setup: &Setup,
    open: &mut Open,
    bytes: &[u8],
    records: u64,
    scratch: &mut [u8],
    tally: &mut Tally,
) -> Result<(), DriverError> {
    let mut outcome = Ok(());
    tally.server_cpu += setup.on_server(|| {
        outcome = (0..records).try_for_each(|_| write_all(&mut open.server, bytes));
    });
    outcome?;
    let mut left = records * bytes.len() as u64;
    let mut outcome = Ok(());
    tally.client_cpu += setup.on_client(|| {
        while left > 0 {
            match open.client.read(scratch) {
                Ok(Step::Done(len)) => left = left.saturating_sub(len as u64),
                Ok(Step::Again) => outcome = Err(DriverError::Stuck),
                Ok(Step::Closed) => outcome = Err(DriverError::WrongBytes),
                Err(error) => outcome = Err(error),
            }
            if outcome.is_err() {
                break;
            }
        }
    });
    outcome?;
    tally.done += records;
    tally.bytes += records * bytes.len() as u64;
    Ok(())
}

fn write_all(conn: &mut Conn<End>, mut bytes: &[u8]) -> Result<(), DriverError> {
    while !bytes.is_empty() {
        match conn.write(bytes)? {
            Step::Done(len) => bytes = bytes.get(len..).unwrap_or_default(),
            Step::Again => return Err(DriverError::Stuck),
            Step::Closed => return Err(DriverError::WrongBytes),
        }
    }
    Ok(())
}

/// What a connection weighs on each side, client first: after the first flight of each, and idle when
/// a request and a response have passed.
pub(crate) fn footprint(
    setup: &Setup,
    contexts: &ThreadContexts,
    connections: usize,
) -> Result<[Footprint; 2], DriverError> {
    // What the first connection leaves is no later one's.
    let mut first = Open::begin(contexts)?;
    first.connect(setup)?;
    drop(first);
    let mut held = Vec::with_capacity(connections);
    let mut weights = [Weights::default(); 2];
    for _ in 0..connections {
        let wires = Rc::new(Wires::default());
        let (at_client, at_server) = (End::new(&wires, false), End::new(&wires, true));
        let mut client = weights[0].handshaking(|| {
            let mut conn = Conn::new(&contexts.client, at_client, None)?;
            conn.handshake().map(|_| conn)
        })?;
        let mut server = weights[1].handshaking(|| {
            let mut conn = Conn::new(&contexts.server, at_server, None)?;
            conn.handshake().map(|_| conn)
        })?;
        for _ in 0..MOST_TURNS {
            let to = weights[0].idle(|| client.handshake())?;
            let from = weights[1].idle(|| server.handshake())?;
            if (to, from) == (Step::Done(()), Step::Done(())) {
                break;
            }
        }
        let mut scratch = [0; 1024];
        weights[0].idle(|| write_all(&mut client, &[1; 100]))?;
        weights[1].idle(|| server.read(&mut scratch).map(|_| ()))?;
        weights[1].idle(|| write_all(&mut server, &[1; 100]))?;
        weights[0].idle(|| client.read(&mut scratch).map(|_| ()))?;
        held.push((client, server, wires));
    }
    Ok(weights.map(|weights| weights.each(connections)))
}

/// Bytes on the heap that one side took.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    handshaking: i64,
    then: i64,
}

impl Weights {
    fn handshaking<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let before = heap();
        let done = work();
        self.handshaking += heap() - before;
        done
    }

    fn idle<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let before = heap();
        let done = work();
        self.then += heap() - before;
        done
    }

    fn each(self, connections: usize) -> Footprint {
        let connections = connections.max(1) as i64;
        Footprint {
            handshaking_bytes: (self.handshaking / connections).max(0) as u64,
            idle_bytes: ((self.handshaking + self.then) / connections).max(0) as u64,
        }
    }
}

/// Bytes in use on the C library's heap, of all arenas and mappings.
fn heap() -> i64 {
    // SAFETY: it takes nothing and gives a structure by value.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as i64
}
