//! A host: a TCP endpoint and the carriers on its connections.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linkmodel::{Frame, Path};
use sim::{Limits, Node, NodeId, Sim, Stopped};
use sslmtcp::{Carrier, CarrierError, Engine, Plan};
use tcp::{
    Checksum, CloseReason, Config, ConnectOptions, ConnectionId, Endpoint, Event, EventKind,
    IfRefused, ListenOptions, ListenerId, StreamError, SynData,
};
use units::Time;

pub const PORT: u16 = 443;

/// An IP packet.
#[derive(Clone, Debug)]
pub struct Packet(pub Vec<u8>);

impl Frame for Packet {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn flip_bit(&mut self, bit: usize) {
        self.0.flip_bit(bit);
    }

    fn link_header(&self) -> usize {
        0
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.0)
    }

    fn shorten(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

/// A connection that a client is to make.
pub struct Opening<E> {
    pub at: Time,
    pub engine: E,
    pub plan: Plan,
    /// What it sends when it is ready, besides the plan's.
    pub request: Vec<u8>,
}

/// One connection and what became of it.
pub struct Talk<E> {
    pub id: ConnectionId,
    pub carrier: Carrier<E>,
    is_client: bool,
    /// When it is given up.
    deadline: Option<Time>,
    /// A server's that opened with data, whose SYN-ACK waits.
    unanswered: bool,
    connected: bool,
    request: Vec<u8>,
    wanted: usize,
    pub got: Vec<u8>,
    pub ready: Option<Time>,
    pub first_byte: Option<Time>,
    pub complete: Option<Time>,
    pub syn_data: SynData,
    responded: bool,
    shut: bool,
    ended: bool,
    pub closed: Option<CloseReason>,
    pub error: Option<CarrierError>,
}

impl<E: Engine> std::fmt::Debug for Talk<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Talk")
            .field("got", &self.got.len())
            .field("ready", &self.ready)
            .field("complete", &self.complete)
            .field("syn_data", &self.syn_data)
            .field("shut", &self.shut)
            .field("ended", &self.ended)
            .field("outgoing", &self.carrier.outgoing().len())
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// Makes a server's engine.
pub type Accept<E> = Box<dyn Fn() -> E>;

pub struct Host<E> {
    pub endpoint: Endpoint,
    address: IpAddr,
    peer: IpAddr,
    pub openings: Vec<Opening<E>>,
    listener: Option<(ListenerId, Accept<E>)>,
    response: Vec<u8>,
    pub talks: Vec<Talk<E>>,
    /// How long a connection may take.
    patience: Option<Duration>,
    /// Packets by number that are lost.
    pub lose: Vec<usize>,
    sent: usize,
    buffer: Vec<u8>,
}

impl<E: Engine> Host<E> {
    pub fn client(openings: Vec<Opening<E>>, response: &[u8]) -> Self {
        Self::new("10.77.0.1", "10.77.0.2", openings, response, 1)
    }

    pub fn server(accept: Accept<E>, response: &[u8]) -> Self {
        let mut host = Self::new("10.77.0.2", "10.77.0.1", Vec::new(), response, 2);
        let options = ListenOptions { admit: |_| true, ..ListenOptions::default() };
        let local = SocketAddr::new(host.address, PORT);
        let id = host.endpoint.listen(local, options).expect("a free port");
        host.listener = Some((id, accept));
        host
    }

    fn new(
        address: &str,
        peer: &str,
        mut openings: Vec<Opening<E>>,
        response: &[u8],
        seed: u8,
    ) -> Self {
        openings.sort_by_key(|opening| std::cmp::Reverse(opening.at));
        Host {
            endpoint: Endpoint::new(Config::default(), [seed; 32]),
            address: address.parse().expect("an address"),
            peer: peer.parse().expect("an address"),
            openings,
            listener: None,
            response: response.to_vec(),
            talks: Vec::new(),
            patience: None,
            lose: Vec::new(),
            sent: 0,
            buffer: vec![0; 70_000],
        }
    }

    /// Gives up what takes longer.
    pub fn patient(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    fn give_up(&mut self, now: Time) {
        for talk in &mut self.talks {
            if talk.deadline.is_some_and(|at| at <= now) {
                talk.deadline = None;
                self.endpoint.abort(now, talk.id);
            }
        }
    }

    fn open_due(&mut self, now: Time) {
        while self.openings.last().is_some_and(|opening| opening.at <= now) {
            let Some(Opening { engine, plan, request, .. }) = self.openings.pop() else { break };
            let mut carrier = Carrier::client(now, engine, plan).expect("a client");
            let options = ConnectOptions {
                syn_data: carrier.syn(),
                if_refused: IfRefused::Withdraw,
                ..ConnectOptions::default()
            };
            let (local, remote) = (SocketAddr::new(self.address, 0), (self.peer, PORT).into());
            let id = self.endpoint.connect(now, local, remote, options).expect("a connection");
            let ready = carrier.is_ready().then_some(now);
            let wanted = self.response.len();
            let deadline = self.patience.map(|patience| now + patience);
            let talk = Talk::new(id, carrier, true, request, wanted);
            self.talks.push(Talk { ready, deadline, ..talk });
        }
    }

    fn accept(&mut self, now: Time, listener: ListenerId) {
        while let Some(id) = self.endpoint.accept(listener) {
            let Some((_, accept)) = &self.listener else { break };
            let info = self.endpoint.info(id);
            let with_data = info.is_some_and(|info| info.syn_data == SynData::Accepted);
            let segment = info.filter(|_| with_data).map_or(0, |info| info.syn_segment_len);
            let carrier = Carrier::server(accept(), segment);
            let mut talk = Talk::new(id, carrier, false, Vec::new(), usize::MAX);
            talk.deadline = self.patience.map(|patience| now + patience);
            talk.unanswered = with_data;
            talk.connected = true;
            self.talks.push(talk);
            self.drive(now, self.talks.len() - 1);
        }
    }

    fn take_events(&mut self, now: Time) {
        while let Some(Event { connection, kind }) = self.endpoint.poll_event() {
            if let EventKind::Incoming(listener) = kind {
                self.accept(now, listener);
                continue;
            }
            let Some(at) = self.talks.iter().rposition(|talk| talk.id == connection) else {
                continue;
            };
            match kind {
                EventKind::Connected => self.connected(now, at),
                EventKind::Closed(reason) => {
                    self.talks[at].closed = Some(reason);
                    self.talks[at].deadline = None;
                }
                _ => {}
            }
            self.drive(now, at);
        }
    }

    fn connected(&mut self, now: Time, at: usize) {
        let talk = &mut self.talks[at];
        let info = self.endpoint.info(talk.id).expect("it is connected");
        talk.connected = true;
        talk.syn_data = info.syn_data;
        let result = talk.carrier.syn_answered(now, info.syn_data == SynData::Accepted);
        talk.note(result);
    }

    fn drive(&mut self, now: Time, at: usize) {
        let talk = &mut self.talks[at];
        if !talk.connected || talk.closed.is_some() {
            return;
        }
        talk.read(now, &mut self.endpoint);
        talk.speak(now, &self.response);
        talk.flush(now, &mut self.endpoint);
    }
}

impl<E: Engine> Talk<E> {
    fn new(
        id: ConnectionId,
        carrier: Carrier<E>,
        is_client: bool,
        request: Vec<u8>,
        wanted: usize,
    ) -> Self {
        Talk {
            id,
            carrier,
            is_client,
            deadline: None,
            unanswered: false,
            connected: false,
            request,
            wanted,
            got: Vec::new(),
            ready: None,
            first_byte: None,
            complete: None,
            syn_data: SynData::None,
            responded: false,
            shut: false,
            ended: false,
            closed: None,
            error: None,
        }
    }

    fn note(&mut self, result: Result<(), CarrierError>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    fn read(&mut self, now: Time, endpoint: &mut Endpoint) {
        let mut chunk = [0; 4096];
        while !self.ended && self.error.is_none() {
            let result = match endpoint.read(now, self.id, &mut chunk) {
                Ok(0) => {
                    self.ended = true;
                    self.carrier.read_end()
                }
                Ok(len) => self.carrier.read(now, &chunk[..len]),
                Err(StreamError::WouldBlock) => break,
                Err(_) => break,
            };
            self.note(result);
        }
        if self.carrier.next_timeout().is_some_and(|at| at <= now) {
            let result = self.carrier.handle_timeout(now);
            self.note(result);
        }
        let received = self.carrier.receive(&mut self.got);
        self.note(received.map(drop));
        if !self.got.is_empty() {
            self.first_byte.get_or_insert(now);
        }
        if !self.carrier.is_handshaking() {
            self.complete.get_or_insert(now);
        }
    }

    /// The client asks when it may, and ends when it has the response; the server responds to what
    /// ends in a line feed, and ends.
    fn speak(&mut self, now: Time, response: &[u8]) {
        if self.error.is_some() {
            return;
        }
        if self.carrier.is_ready() {
            self.ready.get_or_insert(now);
        }
        let over = if self.is_client {
            if self.ready.is_some() && !self.request.is_empty() {
                let sent = self.carrier.send(now, &self.request);
                let sent = sent.map(|len| drop(self.request.drain(..len)));
                self.note(sent);
            }
            self.got.len() >= self.wanted
        } else {
            if self.got.ends_with(b"\n") && self.carrier.is_ready() && !self.responded {
                self.responded = true;
                let sent = self.carrier.send(now, response);
                self.note(sent.map(|len| assert_eq!(len, response.len())));
            }
            self.responded
        };
        if over && !self.shut {
            self.shut = true;
            let closed = self.carrier.close(now);
            self.note(closed);
        }
    }

    fn flush(&mut self, now: Time, endpoint: &mut Endpoint) {
        while !self.carrier.outgoing().is_empty() {
            match endpoint.write(now, self.id, self.carrier.outgoing()) {
                Ok(len) => self.carrier.consume(len),
                Err(_) => break,
            }
        }
        let pending = self.carrier.next_timeout().is_some();
        if self.unanswered && !pending {
            self.unanswered = false;
            endpoint.answer(now, self.id);
        }
        let done = self.shut && !self.carrier.is_closing() && self.carrier.outgoing().is_empty();
        if done || self.error.is_some() {
            endpoint.shutdown(now, self.id);
        }
    }
}

impl<E: Engine> Node for Host<E> {
    type Frame = Packet;

    fn handle_frame(&mut self, now: Time, _interface: usize, frame: Packet) {
        let _ = self.endpoint.handle_packet(now, &frame.0, Checksum::Verify);
        self.take_events(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Packet)> {
        loop {
            let transmit = self.endpoint.poll_transmit(now, &mut self.buffer)?;
            self.sent += 1;
            if !self.lose.contains(&(self.sent - 1)) {
                return Some((0, Packet(self.buffer[..transmit.len].to_vec())));
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let carriers = self.talks.iter().filter(|talk| talk.closed.is_none());
        let carriers = carriers.filter_map(|talk| talk.carrier.next_timeout()).min();
        let opening = self.openings.last().map(|opening| opening.at);
        let deadline = self.talks.iter().filter_map(|talk| talk.deadline).min();
        [self.endpoint.next_timeout(), carriers, opening, deadline].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.open_due(now);
        self.give_up(now);
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.take_events(now);
        for at in 0..self.talks.len() {
            if self.talks[at].carrier.next_timeout().is_some_and(|due| due <= now) {
                self.drive(now, at);
            }
        }
        self.take_events(now);
    }
}

/// A client and a server on a path.
pub struct World<E: Engine> {
    pub sim: Sim<Host<E>>,
    pub client: NodeId,
    pub server: NodeId,
}

impl<E: Engine> World<E> {
    pub fn new(seed: u64, path: &Path, client: Host<E>, server: Host<E>) -> Self {
        let mut sim = Sim::new(seed);
        let (client, server) = (sim.add_node(|_| client), sim.add_node(|_| server));
        sim.connect(client, server, path).expect("a path that makes sense");
        World { sim, client, server }
    }

    /// Runs until nothing happens any more.
    pub fn run(&mut self, seconds: u64) {
        let until = Time::from_millis(seconds * 1000);
        let outcome = self.sim.run(Limits { until, events: 50_000_000 });
        assert_eq!(outcome.stopped, Stopped::Quiescent, "{outcome:?}");
    }

    pub fn clients(&self) -> &[Talk<E>] {
        &self.sim.node(self.client).talks
    }

    pub fn servers(&self) -> &[Talk<E>] {
        &self.sim.node(self.server).talks
    }
}
