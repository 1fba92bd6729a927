//! Handshakes through memory: client and server in one thread, the libraries alone.
//!
//! Some connections run at once, and the sides take turns for all of them: reading the thread's clock
//! costs a system call, and so only a part of one per connection.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::clock::thread_cpu;
use super::pipe::{End, Wires};
use super::proof::{self, Shown};
use super::script::{Party, Turn};
use super::setup::{Gate, Setup, ThreadContexts};
use super::tally::Tally;
use crate::DriverError;
use crate::driver::Session;

/// Connections at once in a thread.
const CONCURRENT: usize = 8;
/// Turns of both sides after which a connection that is not done has failed.
const MOST_TURNS: usize = 64;
/// Sessions that a thread keeps.
const MOST_SESSIONS: usize = 4 * CONCURRENT;

/// A connection, and a place for the next.
#[derive(Default)]
struct Lane {
    wires: Rc<Wires>,
    client: Option<Party<End>>,
    server: Option<Party<End>>,
    session: Option<Session>,
    shown: Option<Shown>,
    failure: Option<DriverError>,
    ended: [bool; 2],
}

/// A thread's part, until the gate closes.
pub(crate) fn worker(setup: &Setup, contexts: &ThreadContexts, gate: &Gate) -> Tally {
    let mut lanes: Vec<Lane> = (0..CONCURRENT).map(|_| Lane::default()).collect();
    let mut sessions = VecDeque::new();
    let mut scratch = vec![0; 32 << 10];
    // The first connections give the first tickets.
    let mut warm = Tally::default();
    batch(setup, contexts, &mut lanes, &mut sessions, &mut scratch, false, &mut warm);
    if warm.done == 0 && warm.failed > 0 {
        gate.give_up(setup);
        return warm;
    }
    gate.enter(setup, || {
        let mut idle = Tally::default();
        batch(setup, contexts, &mut lanes, &mut sessions, &mut scratch, setup.resumes(), &mut idle);
        idle.failed
    });
    let mut tally = Tally::default();
    let (began, cpu) = (gate.begin(setup), thread_cpu());
    while gate.goes_on(tally.done + tally.failed) && !tally.hopeless() {
        let left = gate.left(tally.done + tally.failed).min(CONCURRENT as u64) as usize;
        let Some(lanes) = lanes.get_mut(..left) else { break };
        batch(setup, contexts, lanes, &mut sessions, &mut scratch, setup.resumes(), &mut tally);
    }
    tally.end(began, cpu);
    tally
}

/// One connection in each lane, from its beginning to its end.
fn batch(
    setup: &Setup,
    contexts: &ThreadContexts,
    lanes: &mut [Lane],
    sessions: &mut VecDeque<Session>,
    scratch: &mut [u8],
    resume: bool,
    tally: &mut Tally,
) {
    for lane in lanes.iter_mut() {
        lane.wires.reset();
        lane.session = if resume { sessions.pop_back() } else { None };
        if resume && lane.session.is_none() {
            lane.failure =
                Some(DriverError::OnTheWire { shown: "nothing to resume", asked: "a session" });
        }
    }
    for turn in 0..MOST_TURNS {
        let before: u64 = lanes.iter().map(|lane| lane.wires.moved()).sum();
        tally.client_cpu += setup.on_client(|| client_turns(contexts, lanes, scratch));
        tally.server_cpu += setup.on_server(|| server_turns(contexts, lanes, scratch));
        if turn == 0 {
            for lane in lanes.iter_mut() {
                lane.shown = lane.wires.waiting_for_client(proof::look);
            }
        }
        if lanes.iter().all(Lane::is_over) {
            break;
        }
        let after: u64 = lanes.iter().map(|lane| lane.wires.moved()).sum();
        if after == before {
            for lane in lanes.iter_mut().filter(|lane| !lane.is_over()) {
                lane.failure = Some(DriverError::Stuck);
            }
            break;
        }
    }
    for lane in lanes.iter_mut() {
        if let Some(session) = judge(setup, lane, resume, tally)
            && setup.resumes()
        {
            sessions.push_back(session);
        }
    }
    while sessions.len() > MOST_SESSIONS {
        sessions.pop_front();
    }
    tally.client_cpu += setup.on_client(|| {
        for lane in lanes.iter_mut() {
            drop((lane.client.take(), lane.session.take()));
        }
    });
    tally.server_cpu += setup.on_server(|| {
        for lane in lanes.iter_mut() {
            drop(lane.server.take());
        }
    });
    for lane in lanes.iter_mut() {
        (lane.shown, lane.failure, lane.ended) = (None, None, [false; 2]);
    }
}

impl Lane {
    fn is_over(&self) -> bool {
        self.failure.is_some() || self.ended == [true, true]
    }
}

/// The client's turn in every lane.
fn client_turns(contexts: &ThreadContexts, lanes: &mut [Lane], scratch: &mut [u8]) {
    for lane in lanes.iter_mut().filter(|lane| lane.failure.is_none() && !lane.ended[0]) {
        if lane.client.is_none() {
            let end = End::new(&lane.wires, false);
            match Party::new(&contexts.client, end, true, lane.session.as_ref()) {
                Ok(party) => lane.client = Some(party),
                Err(error) => lane.failure = Some(error),
            }
        }
        if let Some(party) = &mut lane.client {
            match party.turn(scratch) {
                Ok(turn) => lane.ended[0] = turn == Turn::Done,
                Err(error) => lane.failure = Some(error),
            }
        }
    }
}

/// The server's turn in every lane.
fn server_turns(contexts: &ThreadContexts, lanes: &mut [Lane], scratch: &mut [u8]) {
    for lane in lanes.iter_mut().filter(|lane| lane.failure.is_none() && !lane.ended[1]) {
        if lane.server.is_none() {
            match Party::new(&contexts.server, End::new(&lane.wires, true), false, None) {
                Ok(party) => lane.server = Some(party),
                Err(error) => lane.failure = Some(error),
            }
        }
        if let Some(party) = &mut lane.server {
            match party.turn(scratch) {
                Ok(turn) => lane.ended[1] = turn == Turn::Done,
                Err(error) => lane.failure = Some(error),
            }
        }
    }
}

/// Counts a lane's connection as what it was; gives the session that came of it.
fn judge(setup: &Setup, lane: &mut Lane, resume: bool, tally: &mut Tally) -> Option<Session> {
    if let Some(error) = lane.failure.take() {
        tally.fail(error);
        return None;
    }
    let (client, server) = (lane.client.as_mut()?, lane.server.as_mut()?);
    let said = client.negotiated().and_then(|client| Ok([client, server.negotiated()?]));
    let said = match said {
        Ok(said) => said,
        Err(error) => {
            tally.fail(error);
            return None;
        }
    };
    match setup.judge(lane.shown, said, resume) {
        Ok(verdict) => {
            tally.done += 1;
            tally.resumed += u64::from(verdict.resumed);
            tally.misreported += u64::from(verdict.misreported);
        }
        Err(error) => tally.fail(error),
    }
    setup.next_session(client.conn.take_session(), lane.session.take())
}

/// CPU time that something took, counted for a side.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let before = thread_cpu();
    work();
    thread_cpu().saturating_sub(before)
}
