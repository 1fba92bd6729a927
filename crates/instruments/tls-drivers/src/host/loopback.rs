//! Handshakes over TCP on loopback: server threads with epoll, client threads with epoll, and between
//! them the kernel. With proxies in the server threads it is HAProxy 2025's chain.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Registry, Token};

use super::clock::thread_cpu;
use super::proof;
use super::script::{Party, Turn};
use super::setup::{Gate, Setup, ThreadContexts};
use super::slab::Slab;
use super::socket::{self, Socket};
use super::tally::Tally;
use crate::DriverError;
use crate::driver::Session;

/// Connections that a client thread keeps going.
const CONCURRENT: usize = 8;
/// Rounds of connections that get tickets before the measured time: one for the first, one to use them;
/// a chain's go on until no leg was a full handshake, so many times at most.
const PRIMING: u32 = 2;
const MOST_PRIMING: u32 = 32;
/// Sessions that a thread keeps: of a chain's proxies a connection takes one a hop.
const MOST_SESSIONS: usize = 1024;
/// How long a thread waits for an event before it looks whether it is to stop.
const PATIENCE: Duration = Duration::from_millis(50);
/// A connection that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(10);
const LISTENERS: usize = 1 << 20;

/// Something of this machine went wrong.
pub(crate) fn machine(doing: &'static str) -> impl Fn(io::Error) -> DriverError {
    move |source| DriverError::Machine { doing, source }
}

/// A server thread's listeners: one a hop, the last of which answers by itself.
pub(crate) struct Hops {
    pub(crate) listeners: Vec<TcpListener>,
    /// Where each hop listens.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Hops {
    /// Opens listeners for so many hops; on the ports of others where these are to be shared.
    pub(crate) fn open(hops: usize, shared_with: Option<&Hops>, shared: bool) -> io::Result<Self> {
        let mut opened = Hops { listeners: Vec::new(), addresses: Vec::new() };
        for hop in 0..hops {
            let port =
                shared_with.and_then(|other| other.addresses.get(hop)).map_or(0, SocketAddr::port);
            let listener = socket::listen(port, shared)?;
            opened.addresses.push(listener.local_addr()?);
            opened.listeners.push(listener);
        }
        Ok(opened)
    }
}

/// A connection that a server thread has, with the one behind it while a proxy asks on.
struct Link {
    front: Party<Socket>,
    back: Option<Back>,
    hop: usize,
}

struct Back {
    party: Party<Socket>,
    resumes: bool,
    session: Option<Session>,
}

struct Server<'a> {
    setup: &'a Setup,
    contexts: &'a ThreadContexts,
    hops: Hops,
    links: Slab<Link>,
    sessions: VecDeque<Session>,
    /// Legs to be full handshakes yet: so many sessions there must be before the measured time, or the first
    /// moment with more legs at once than any before would have a full one in it.
    to_prime: usize,
    tally: Tally,
    scratch: Vec<u8>,
    /// Whether the measured time has begun.
    counts: bool,
}

/// A server thread, until it is told that all clients have ended.
pub(crate) fn serve(
    setup: &Setup,
    contexts: &ThreadContexts,
    mut hops: Hops,
    gate: &Gate,
    over: &dyn Fn() -> bool,
) -> Result<Tally, DriverError> {
    let mut poll = Poll::new().map_err(machine("making an epoll instance"))?;
    for (hop, listener) in hops.listeners.iter_mut().enumerate() {
        poll.registry()
            .register(listener, Token(LISTENERS + hop), Interest::READABLE)
            .map_err(machine("watching a listener"))?;
    }
    let proxies = hops.addresses.len().saturating_sub(1);
    let mut server = Server {
        setup,
        contexts,
        hops,
        links: Slab::default(),
        sessions: VecDeque::new(),
        to_prime: (setup.job.threads * CONCURRENT * proxies).min(MOST_SESSIONS),
        tally: Tally::default(),
        scratch: vec![0; 32 << 10],
        counts: false,
    };
    let mut events = Events::with_capacity(256);
    if let Some(counter) = &setup.counter {
        counter.side(locks::Side::Server);
    }
    let mut began: Option<(Instant, Duration)> = None;
    while !over() {
        if began.is_none() && gate.has_begun() {
            began = Some((Instant::now(), thread_cpu()));
            server.counts = true;
        }
        match poll.poll(&mut events, Some(PATIENCE)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(machine("waiting for events")(error)),
        }
        for event in &events {
            match event.token().0.checked_sub(LISTENERS) {
                Some(hop) => server.accept(poll.registry(), hop)?,
                None => server.go_on(poll.registry(), event.token().0),
            }
        }
    }
    if let Some((_, cpu)) = began {
        server.tally.server_cpu = thread_cpu().saturating_sub(cpu);
    }
    if let Some(counter) = &setup.counter {
        counter.side(locks::Side::None);
    }
    Ok(server.tally)
}

impl Server<'_> {
    fn accept(&mut self, registry: &Registry, hop: usize) -> Result<(), DriverError> {
        loop {
            let Some(listener) = self.hops.listeners.get(hop) else { return Ok(()) };
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(machine("accepting")(error)),
            };
            let mut socket = Socket::accepted(stream);
            let at = self.links.next();
            registry
                .register(socket.stream_mut(), front(at), Interest::READABLE | Interest::WRITABLE)
                .map_err(machine("watching a connection"))?;
            let last = hop + 1 == self.hops.addresses.len();
            match Party::new(&self.contexts.server, socket, false, None) {
                Ok(party) => {
                    let party = if last { party } else { party.holding() };
                    self.links.put(at, Link { front: party, back: None, hop });
                }
                Err(error) => {
                    self.links.leave(at);
                    self.tally.fail(error);
                }
            }
        }
    }

    /// Goes on with one side of a link.
    fn go_on(&mut self, registry: &Registry, token: usize) {
        let at = token / 2;
        let Some(mut link) = self.links.take(at) else { return };
        let ended = if token.is_multiple_of(2) {
            self.front_turn(registry, at, &mut link)
        } else {
            self.back_turn(&mut link)
        };
        match ended {
            Ok(Turn::Waits) => self.links.put(at, link),
            Ok(Turn::Done) => self.links.leave(at),
            // The client counts connections; here only why is kept.
            Err(error) => {
                self.links.leave(at);
                self.tally.fail(error);
            }
        }
    }

    fn front_turn(
        &mut self,
        registry: &Registry,
        at: usize,
        link: &mut Link,
    ) -> Result<Turn, DriverError> {
        let turn = link.front.turn(&mut self.scratch)?;
        if link.front.is_held() && link.back.is_none() {
            let Some(next) = self.hops.addresses.get(link.hop + 1) else { return Ok(Turn::Done) };
            let mut socket = Socket::connecting(*next).map_err(machine("connecting"))?;
            registry
                .register(
                    socket.stream_mut(),
                    Token(at * 2 + 1),
                    Interest::READABLE | Interest::WRITABLE,
                )
                .map_err(machine("watching a connection"))?;
            let session = self.session();
            let party = Party::new(&self.contexts.client, socket, true, session.as_ref())?;
            link.back = Some(Back { party, resumes: session.is_some(), session });
        }
        Ok(turn)
    }

    /// A session for a leg; none while there are not enough.
    fn session(&mut self) -> Option<Session> {
        if self.to_prime > 0 && !self.counts {
            self.to_prime -= 1;
            return None;
        }
        self.sessions.pop_back()
    }

    fn back_turn(&mut self, link: &mut Link) -> Result<Turn, DriverError> {
        let Some(back) = &mut link.back else { return Ok(Turn::Waits) };
        if back.party.turn(&mut self.scratch)? == Turn::Waits {
            return Ok(Turn::Waits);
        }
        let shown = back.party.conn.transport().first_bytes(proof::look).flatten();
        let said = back.party.negotiated()?;
        let verdict = self.setup.judge(shown, [said, said], back.resumes)?;
        self.setup.full_legs.fetch_add(u64::from(!verdict.resumed), Ordering::Relaxed);
        if self.counts {
            self.tally.resumed += u64::from(verdict.resumed);
            self.tally.full_legs += u64::from(!verdict.resumed);
        }
        self.tally.misreported += u64::from(verdict.misreported);
        let session = back.party.conn.take_session();
        keep(&mut self.sessions, self.setup.next_session(session, back.session.take()));
        reset(&mut back.party);
        link.back = None;
        link.front.release();
        link.front.turn(&mut self.scratch)
    }
}

fn front(at: usize) -> Token {
    Token(at * 2)
}

fn keep(sessions: &mut VecDeque<Session>, session: Option<Session>) {
    sessions.extend(session);
    while sessions.len() > MOST_SESSIONS {
        sessions.pop_front();
    }
}

fn reset(party: &mut Party<Socket>) {
    socket::reset_on_close(party.conn.transport().stream());
}

/// A connection of a client thread.
struct Call {
    party: Party<Socket>,
    /// Whether it is to be resumed; one without a session primes and does not count.
    resumes: bool,
    session: Option<Session>,
    began: Instant,
}

struct Client<'a> {
    setup: &'a Setup,
    contexts: &'a ThreadContexts,
    to: SocketAddr,
    calls: Vec<Option<Call>>,
    sessions: VecDeque<Session>,
    scratch: Vec<u8>,
    tally: Tally,
    /// Connections begun that will count.
    counted: u64,
}

/// A client thread, until the gate closes.
pub(crate) fn call(
    setup: &Setup,
    contexts: &ThreadContexts,
    to: SocketAddr,
    gate: &Gate,
) -> Result<Tally, DriverError> {
    let mut poll = match Poll::new().map_err(machine("making an epoll instance")) {
        Ok(poll) => poll,
        Err(error) => {
            gate.give_up(setup);
            return Err(error);
        }
    };
    let mut client = Client {
        setup,
        contexts,
        to,
        calls: (0..CONCURRENT).map(|_| None).collect(),
        sessions: VecDeque::new(),
        scratch: vec![0; 32 << 10],
        tally: Tally::default(),
        counted: 0,
    };
    if let Some(counter) = &setup.counter {
        counter.side(locks::Side::Client);
    }
    // First tickets, warm caches.
    if let Err(error) = client.prime(&mut poll) {
        gate.give_up(setup);
        return Err(error);
    }
    let primed = client.tally.done > 0 || client.tally.failed == 0 || !client.sessions.is_empty();
    if !primed {
        gate.give_up(setup);
        return Ok(client.tally);
    }
    gate.enter(setup, || 1);
    client.tally = Tally::default();
    client.counted = 0;
    let (began, cpu) = (gate.begin(setup), thread_cpu());
    client.run(&mut poll, &mut |made| gate.goes_on(made))?;
    client.tally.wall = began.elapsed();
    client.tally.client_cpu = thread_cpu().saturating_sub(cpu);
    if let Some(counter) = &setup.counter {
        counter.side(locks::Side::None);
    }
    Ok(client.tally)
}

impl Client<'_> {
    /// A few connections that do not count.
    fn prime(&mut self, poll: &mut Poll) -> Result<(), DriverError> {
        let setup = self.setup;
        let full_legs = || setup.full_legs.load(Ordering::Relaxed);
        let mut round = 0;
        loop {
            let before = full_legs();
            let mut left = CONCURRENT;
            self.run(poll, &mut |_| left.checked_sub(1).map(|less| left = less).is_some())?;
            round += 1;
            // A thread has tickets for as many legs at once as there can be.
            let settled = full_legs() == before;
            if round >= MOST_PRIMING || (round >= PRIMING && settled) {
                return Ok(());
            }
        }
    }

    /// Keeps connections going while `more` says so of the number begun, then lets them end.
    fn run(
        &mut self,
        poll: &mut Poll,
        more: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), DriverError> {
        let mut events = Events::with_capacity(64);
        self.counted = 0;
        let mut goes_on = true;
        loop {
            let mut open = 0;
            for at in 0..self.calls.len() {
                if self.calls.get(at).is_some_and(Option::is_none) && goes_on {
                    goes_on = more(self.counted) && !self.tally.hopeless();
                    if goes_on {
                        self.begin(poll.registry(), at);
                    }
                }
                open += usize::from(self.calls.get(at).is_some_and(Option::is_some));
            }
            if open == 0 && !goes_on {
                return Ok(());
            }
            match poll.poll(&mut events, Some(PATIENCE)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(machine("waiting for events")(error)),
            }
            for event in &events {
                self.go_on(event.token().0);
            }
            if events.is_empty() {
                self.give_up_late();
            }
        }
    }

    fn begin(&mut self, registry: &Registry, at: usize) {
        let session = if self.setup.resumes() { self.sessions.pop_back() } else { None };
        let begun =
            Socket::connecting(self.to).map_err(machine("connecting")).and_then(|mut socket| {
                registry
                    .register(
                        socket.stream_mut(),
                        Token(at),
                        Interest::READABLE | Interest::WRITABLE,
                    )
                    .map_err(machine("watching a connection"))?;
                Party::new(&self.contexts.client, socket, true, session.as_ref())
            });
        let resumes = session.is_some();
        self.counted += u64::from(resumes || !self.setup.resumes());
        match begun {
            Ok(party) => {
                let call = Call { party, resumes, session, began: Instant::now() };
                if let Some(place) = self.calls.get_mut(at) {
                    *place = Some(call);
                }
            }
            Err(error) => self.tally.fail(error),
        }
    }

    fn go_on(&mut self, at: usize) {
        let Some(place) = self.calls.get_mut(at) else { return };
        let Some(mut call) = place.take() else { return };
        match call.party.turn(&mut self.scratch) {
            Ok(Turn::Waits) => *place = Some(call),
            Ok(Turn::Done) => self.done(call),
            Err(error) => self.tally.fail(error),
        }
    }

    fn done(&mut self, mut call: Call) {
        let shown = call.party.conn.transport().first_bytes(proof::look).flatten();
        let judged = call
            .party
            .negotiated()
            .and_then(|said| self.setup.judge(shown, [said, said], call.resumes));
        let session = call.party.conn.take_session();
        keep(&mut self.sessions, self.setup.next_session(session, call.session.take()));
        reset(&mut call.party);
        match judged {
            // What primes is neither counted nor measured for itself.
            Ok(_) if self.setup.resumes() && !call.resumes => {}
            Ok(verdict) => {
                self.tally.done += 1;
                self.tally.resumed += u64::from(verdict.resumed);
                self.tally.misreported += u64::from(verdict.misreported);
            }
            Err(error) => self.tally.fail(error),
        }
    }

    fn give_up_late(&mut self) {
        for place in &mut self.calls {
            if place.as_ref().is_some_and(|call| call.began.elapsed() > LIMIT) {
                *place = None;
                self.tally.fail(DriverError::Stuck);
            }
        }
    }
}
