//! A host of the simulation: a TCP endpoint, applications with scripts, and what befalls its
//! packets.
#![allow(dead_code)] // Each test file uses a part.

mod packet;
mod player;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linkmodel::Path;
use sim::{Limits, Node, NodeId, Outcome, Sim};
use tcp::{
    Checksum, Config, ConnectOptions, ConnectionId, Endpoint, Event, EventKind, ListenOptions,
    ListenerId,
};
use units::Time;

#[allow(unused_imports)] // As above.
pub use packet::{Initial, Line, Packet};
#[allow(unused_imports)]
pub use player::{Player, Script, Step, bytes, pattern};
use wire::tcp::Flags;

pub const CLIENT: &str = "10.77.0.1";
pub const SERVER: &str = "10.77.0.2";
pub const PORT: u16 = 443;
/// More of a first step is not given to connect(): it may exceed what one SYN can hold.
const MOST_IN_SYN: usize = 4000;

/// What befalls a packet as it leaves.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    Lose,
    Twice,
    /// It leaves so much later.
    Hold(Duration),
}

/// A connection that a client is to make.
#[derive(Debug, Clone)]
pub struct Plan {
    pub at: Time,
    pub remote: SocketAddr,
    pub local_port: u16,
    pub salt: u8,
    pub script: Script,
    /// The first step goes with the SYN.
    pub with_data: bool,
    pub options: ConnectOptions,
    /// What is sent instead if the SYN's data are withdrawn.
    pub fallback: Option<(u8, Script)>,
}

impl Plan {
    pub fn new(script: Script) -> Self {
        Plan {
            at: Time::ZERO,
            remote: SocketAddr::new(SERVER.parse().unwrap(), PORT),
            local_port: 0,
            salt: 1,
            script,
            with_data: false,
            options: ConnectOptions::default(),
            fallback: None,
        }
    }

    pub fn with_data(mut self) -> Self {
        self.with_data = true;
        self
    }
}

pub struct Host {
    pub endpoint: Endpoint,
    pub address: IpAddr,
    pub plans: VecDeque<Plan>,
    /// The plan of each connection of a client, by the connection's place among the players.
    fallbacks: BTreeMap<usize, (u8, Script)>,
    pub players: Vec<Player>,
    listener: Option<ListenerId>,
    scripts: fn(u8) -> Script,
    pub fates: BTreeMap<usize, Fate>,
    held: VecDeque<(Time, Packet)>,
    ready: VecDeque<Packet>,
    /// Every packet sent, with its time, and whether a fate lost it.
    pub log: Vec<(Time, bool, Packet)>,
    pub keep_log: bool,
    pub sent: usize,
    pub received_bytes: usize,
    pub sent_bytes: usize,
    pub ignored: usize,
    /// Packets to others than the peer go nowhere, but are counted.
    pub answers_floods: bool,
    pub flood_answer_bytes: usize,
    buffer: Vec<u8>,
    mtu: usize,
}

impl Host {
    pub fn new(address: &str, config: Config, seed: u8) -> Self {
        let mtu = config.mtu.into();
        Host {
            endpoint: Endpoint::new(config, [seed; 32]),
            address: address.parse().unwrap(),
            plans: VecDeque::new(),
            fallbacks: BTreeMap::new(),
            players: Vec::new(),
            listener: None,
            scripts: |_| Script::default(),
            fates: BTreeMap::new(),
            held: VecDeque::new(),
            ready: VecDeque::new(),
            log: Vec::new(),
            keep_log: true,
            sent: 0,
            received_bytes: 0,
            sent_bytes: 0,
            ignored: 0,
            answers_floods: false,
            flood_answer_bytes: 0,
            buffer: vec![0; 70_000],
            mtu,
        }
    }

    pub fn client(plan: Plan) -> Self {
        Host::new(CLIENT, Config::default(), 1).with_plan(plan)
    }

    pub fn with_plan(mut self, plan: Plan) -> Self {
        self.plans.push_back(plan);
        self
    }

    /// A server that takes SYNs with data, and answers by the script for a client's salt.
    pub fn server(scripts: fn(u8) -> Script) -> Self {
        Host::new(SERVER, Config::default(), 2).listening(listen_options(), scripts)
    }

    pub fn listening(mut self, options: ListenOptions, scripts: fn(u8) -> Script) -> Self {
        let local = SocketAddr::new(self.address, PORT);
        self.listener = Some(self.endpoint.listen(local, options).expect("a free port"));
        self.scripts = scripts;
        self
    }

    pub fn with_fate(mut self, packet: usize, fate: Fate) -> Self {
        self.fates.insert(packet, fate);
        self
    }

    /// A packet that comes from elsewhere than the simulated path. Its applications are not played.
    pub fn flood(&mut self, now: Time, packet: &[u8]) {
        self.received_bytes += packet.len();
        let _ignored = self.endpoint.handle_packet(now, packet, Checksum::Verify);
        self.take_events(now);
    }

    fn begin_due(&mut self, now: Time) {
        while self.plans.front().is_some_and(|plan| plan.at <= now) {
            let Some(plan) = self.plans.pop_front() else { break };
            let local = SocketAddr::new(self.address, plan.local_port);
            let mut options = plan.options;
            let first = plan.script.steps.first().map_or(0, |step| step.send);
            // The rest of a long first step is written when the connection is open.
            let in_syn = first.min(MOST_IN_SYN);
            if plan.with_data {
                options.syn_data = bytes(plan.salt, 0, in_syn);
            }
            let id = self.endpoint.connect(now, local, plan.remote, options).expect("connects");
            let mut player = Player::new(id, plan.salt, Some(plan.script), false);
            if plan.with_data {
                player.first_step_is_sent(now, in_syn, first);
            }
            if let Some(fallback) = plan.fallback {
                self.fallbacks.insert(self.players.len(), fallback);
            }
            self.players.push(player);
        }
    }

    fn take_events(&mut self, now: Time) {
        while let Some(Event { connection, kind }) = self.endpoint.poll_event() {
            if let EventKind::Incoming(listener) = kind {
                while let Some(id) = self.endpoint.accept(listener) {
                    let salt = 0x80 | self.players.len() as u8;
                    let mut player = Player::new(id, salt, None, true);
                    player.events.push((now, "incoming"));
                    self.players.push(player);
                    self.drive(now, id);
                }
                continue;
            }
            let Some(place) = self.place(connection) else { continue };
            let player = &mut self.players[place];
            player.events.push((now, name(&kind)));
            match kind {
                EventKind::Connected => player.open = true,
                EventKind::SynDataRefused => {
                    if let Some((salt, script)) = self.fallbacks.remove(&place) {
                        player.start_afresh(salt, script);
                    }
                }
                EventKind::Closed(reason) => {
                    player.closed = Some((now, reason));
                    player.read_to_the_end(now, &mut self.endpoint);
                    self.endpoint.release(now, connection);
                }
                _ => {}
            }
            self.drive(now, connection);
        }
    }

    fn place(&self, id: ConnectionId) -> Option<usize> {
        self.players.iter().rposition(|player| player.id == id)
    }

    fn drive(&mut self, now: Time, id: ConnectionId) {
        if let Some(place) = self.place(id) {
            self.players[place].drive(now, &mut self.endpoint, self.scripts);
        }
    }

    fn note(&mut self, now: Time, lost: bool, packet: &Packet) {
        self.sent += 1;
        self.sent_bytes += packet.0.len();
        assert!(packet.0.len() <= self.mtu, "a packet of {} bytes", packet.0.len());
        assert!(packet.checksum_ok(), "a wrong TCP checksum was sent");
        if self.keep_log {
            self.log.push((now, lost, packet.clone()));
        }
    }
}

fn name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Incoming(_) => "incoming",
        EventKind::Connected => "connected",
        EventKind::SynDataRefused => "refused",
        EventKind::Established => "established",
        EventKind::Readable => "readable",
        EventKind::Writable => "writable",
        EventKind::PeerFinished => "peer finished",
        EventKind::Closed(_) => "closed",
        #[allow(unreachable_patterns)] // Should the enum be non_exhaustive.
        _ => "other",
    }
}

/// A listener that takes the data of every SYN.
pub fn listen_options() -> ListenOptions {
    ListenOptions { admit: |_| true, ..ListenOptions::default() }
}

impl Node for Host {
    type Frame = Packet;

    fn handle_frame(&mut self, now: Time, _interface: usize, frame: Packet) {
        self.received_bytes += frame.0.len();
        if self.endpoint.handle_packet(now, &frame.0, Checksum::Verify).is_err() {
            self.ignored += 1;
        }
        self.take_events(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Packet)> {
        loop {
            if let Some(packet) = self.ready.pop_front() {
                if self.answers_floods && packet.is_to_flood() {
                    self.flood_answer_bytes += packet.0.len();
                    continue;
                }
                let fate = self.fates.remove(&self.sent);
                self.note(now, matches!(fate, Some(Fate::Lose)), &packet);
                match fate {
                    None => return Some((0, packet)),
                    Some(Fate::Lose) => continue,
                    Some(Fate::Twice) => {
                        self.held.push_front((now, packet.clone()));
                        return Some((0, packet));
                    }
                    Some(Fate::Hold(time)) => {
                        self.held.push_back((now + time, packet));
                        continue;
                    }
                }
            }
            if let Some(at) = self.held.iter().position(|(at, _)| *at <= now) {
                return self.held.remove(at).map(|(_, packet)| (0, packet));
            }
            let transmit = self.endpoint.poll_transmit(now, &mut self.buffer)?;
            let mut packet = Packet(self.buffer[..transmit.len].to_vec());
            match transmit.segment_size {
                Some(size) => self.ready.extend(packet.cut(size.get().into())),
                None => {
                    if transmit.checksum_partial {
                        packet.fill_checksum();
                    }
                    self.ready.push_back(packet);
                }
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let players = self.players.iter().filter_map(Player::next_timeout).min();
        let plan = self.plans.front().map(|plan| plan.at);
        let held = self.held.iter().map(|(at, _)| *at).min();
        [self.endpoint.next_timeout(), players, plan, held].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.begin_due(now);
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.take_events(now);
        for place in 0..self.players.len() {
            if self.players[place].next_timeout().is_some_and(|at| at <= now) {
                self.players[place].drive(now, &mut self.endpoint, self.scripts);
            }
        }
        self.take_events(now);
    }
}

/// A client and a server on a path.
pub struct World {
    pub sim: Sim<Host>,
    pub client: NodeId,
    pub server: NodeId,
}

impl World {
    pub fn new(seed: u64, path: &Path, client: Host, server: Host) -> Self {
        let mut sim = Sim::new(seed);
        let client = sim.add_node(|_| client);
        let server = sim.add_node(|_| server);
        sim.connect(client, server, path).expect("a path that makes sense");
        World { sim, client, server }
    }

    pub fn run(&mut self, seconds: u64) -> Outcome {
        self.sim.run(Limits { until: Time::from_millis(seconds * 1000), events: 20_000_000 })
    }

    pub fn client(&self) -> &Host {
        self.sim.node(self.client)
    }

    pub fn server(&self) -> &Host {
        self.sim.node(self.server)
    }

    /// What both sent, in order of time: `50 s SYN,ACK 0+0 ack 1`, in milliseconds; `x` after the
    /// side for a packet lost by its fate.
    pub fn transcript(&self) -> Vec<String> {
        let hosts = [("c", self.client()), ("s", self.server())];
        let initial = hosts.map(|(_, host)| {
            let syn = host.log.iter().find(|(_, _, packet)| packet.has(Flags::SYN));
            syn.map(|(_, _, packet)| packet.parts().segment.sequence())
        });
        let mut lines: Vec<(Time, usize, String)> = Vec::new();
        for (side, (name, host)) in hosts.iter().enumerate() {
            let initial = Initial { sender: initial[side], receiver: initial[1 - side] };
            for (at, lost, packet) in &host.log {
                let millis = at.as_nanos() as f64 / 1e6;
                let mark = if *lost { "x" } else { "" };
                lines.push((*at, side, format!("{millis} {name}{mark} {}", Line(packet, initial))));
            }
        }
        lines.sort_by_key(|(at, side, _)| (*at, *side));
        lines.into_iter().map(|(_, _, line)| line).collect()
    }
}

/// A path of this round trip time, nothing else.
pub fn rtt(millis: u64) -> Path {
    Path::symmetric(Duration::from_millis(millis).into())
}
