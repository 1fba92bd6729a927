//! An ideal network in virtual time: one fixed round trip to everything, and one link down that all
//! responses share, a packet of 1000 bytes after another in turns. Heads take no bytes, requests no
//! time but half a round trip.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use page::{
    Action, Ahead, Caching, Carries, Certificate, ConnectionId, Event, Load, Loaded, Memory,
    ObjectId, Page, Policy, PushId, Ready, Storage, Urgency, Validator,
};
use units::Time;

/// What the server says with the page's document of what will be needed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Says {
    #[default]
    Nothing,
    /// It names it in the head.
    Hints,
    /// It pushes it.
    Pushes,
    /// It begins to push it, and breaks off.
    BreaksOff,
}

/// Bytes of a packet.
const PACKET: u64 = 1000;

/// The network between the browser and all servers.
#[derive(Clone)]
pub struct Net {
    /// A round trip.
    pub rtt: Duration,
    /// What a packet of 1000 bytes takes on the link.
    pub packet: Duration,
    /// Requests at once on a connection; `None`: one, HTTP/1.1.
    pub streams: Option<usize>,
    /// Round trips of TLS after TCP's.
    pub tls: u32,
    /// The names in every server's certificate.
    pub certificate: Vec<String>,
    /// Connections that the server closes when the first request of a load comes on them.
    pub stale: Vec<ConnectionId>,
    /// What the server says ahead.
    pub says: Says,
}

impl Default for Net {
    /// 100 ms, 8 Mbit/s, TLS 1.3, HTTP/1.1.
    fn default() -> Net {
        Net {
            rtt: Duration::from_millis(100),
            packet: Duration::from_millis(1),
            streams: None,
            tls: 1,
            certificate: Vec::new(),
            stale: Vec::new(),
            says: Says::Nothing,
        }
    }
}

/// What is on its way.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// To the load.
    Tell(Box<Told>),
    /// To the server.
    Request(ObjectId, ConnectionId, Urgency, bool),
    /// A push is of no use, to the server.
    Cancel(ObjectId, ConnectionId),
    /// A packet has left the link.
    LinkFree,
}

/// An event with its number, by which those of one time are in order.
#[derive(PartialEq, Eq)]
struct Told(Event);

impl PartialOrd for Told {
    fn partial_cmp(&self, other: &Told) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Told {
    fn cmp(&self, _: &Told) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// What a load did on the network.
pub struct Seen {
    pub loaded: Loaded,
    pub memory: Memory,
    /// What it asked for, as one line each: `401 ms open 2 to www`.
    pub log: Vec<String>,
    /// Bytes of pushes that were refused, as far as they came.
    pub wasted: u64,
}

/// The responses on one connection, the most urgent first; each with what is left of it.
type Responses = BTreeMap<(Urgency, u64), (ObjectId, u64)>;

struct Run<'a> {
    net: &'a Net,
    page: &'a Page,
    begin: Time,
    now: Time,
    due: BinaryHeap<Reverse<(Time, u64, Due)>>,
    number: u64,
    responses: BTreeMap<ConnectionId, Responses>,
    turns: VecDeque<ConnectionId>,
    busy: bool,
    stale: Vec<ConnectionId>,
    log: Vec<String>,
    /// What was pushed, by number, and what of it was taken.
    pushed: Vec<(ObjectId, ConnectionId)>,
    taken: BTreeSet<ObjectId>,
    wasted: u64,
}

impl Net {
    /// The same with multiplexed connections.
    pub fn multiplexed(self) -> Net {
        Net { streams: Some(100), ..self }
    }

    /// Loads a page.
    pub fn load(&self, page: &Page, policy: &Policy, memory: Memory, begin: Time) -> Seen {
        let mut run = Run {
            net: self,
            page,
            begin,
            now: begin,
            due: BinaryHeap::new(),
            number: 0,
            responses: BTreeMap::new(),
            turns: VecDeque::new(),
            busy: false,
            stale: self.stale.clone(),
            log: Vec::new(),
            pushed: Vec::new(),
            taken: BTreeSet::new(),
            wasted: 0,
        };
        let mut load = Load::new(page, policy.clone(), memory, begin);
        while !load.is_done() {
            while let Some(action) = load.poll() {
                run.act(action);
            }
            run.step(&mut load);
        }
        while let Some(action) = load.poll() {
            run.act(action);
        }
        assert_eq!(load.ignored(), 0, "an event that was not expected");
        let (loaded, memory) = load.finish(run.now);
        Seen { loaded, memory, log: run.log, wasted: run.wasted }
    }

    /// A first visit.
    pub fn first_visit(&self, page: &Page, policy: &Policy) -> Seen {
        self.load(page, policy, Memory::new(policy), Time::from_millis(5_000))
    }
}

impl Run<'_> {
    fn at(&mut self, at: Time, due: Due) {
        self.number += 1;
        self.due.push(Reverse((at, self.number, due)));
    }

    fn tell(&mut self, at: Time, event: Event) {
        self.at(at, Due::Tell(Box::new(Told(event))));
    }

    fn note(&mut self, what: String) {
        let millis = self.now.saturating_since(self.begin).as_millis();
        self.log.push(format!("{millis} ms {what}"));
    }

    fn act(&mut self, action: Action) {
        let (now, rtt) = (self.now, self.net.rtt);
        let address: IpAddr = [10, 0, 0, 1].into();
        match action {
            Action::Resolve { host } => {
                self.note(format!("resolve {}", self.page.host(host).unwrap()));
                let resolved = Event::Resolved { host, addresses: vec![address], valid_for: None };
                self.tell(now + rtt, resolved);
            }
            Action::Open { connection, host, ticket } => {
                let with = if ticket { " with a ticket" } else { "" };
                let name = self.page.host(host).unwrap();
                self.note(format!("open {} to {name}{with}", connection.0));
                let carries = match self.net.streams {
                    None => Carries::One,
                    Some(limit) => Carries::Many { limit },
                };
                let ready = Ready {
                    tcp: Some(now + rtt),
                    carries,
                    address: Some(address),
                    certificate: Certificate::new(self.net.certificate.iter().cloned()),
                    resumed: ticket,
                };
                let at = now + rtt + rtt * self.net.tls;
                self.tell(at, Event::Ready { connection, ready });
                self.tell(at, Event::Ticket { host });
            }
            Action::Send { object, connection, urgency, validator, .. } => {
                let check = if validator.is_some() { " if changed" } else { "" };
                let path = &self.page.object(object).unwrap().path;
                self.note(format!("send {path} on {}{check}", connection.0));
                self.tell(now, Event::Sent { object });
                let request = Due::Request(object, connection, urgency, validator.is_some());
                self.at(now + rtt / 2, request);
            }
            Action::Take { push, object } => {
                assert_eq!(self.pushed[push.0 as usize].0, object);
                self.taken.insert(object);
                self.note(format!("take {}", self.page.object(object).unwrap().path));
            }
            Action::Refuse { push } => {
                let (object, connection) = self.pushed[push.0 as usize];
                self.note(format!("refuse {}", self.page.object(object).unwrap().path));
                self.at(now + rtt / 2, Due::Cancel(object, connection));
            }
            Action::Close { connection } => self.note(format!("close {}", connection.0)),
        }
    }

    fn step(&mut self, load: &mut Load) {
        let next = self.due.peek().map(|Reverse((at, _, _))| *at);
        if let Some(wakeup) = load.wakeup().filter(|at| next.is_none_or(|next| *at < next)) {
            self.now = wakeup;
            return load.handle(Event::Wake, wakeup);
        }
        let Reverse((at, _, due)) = self.due.pop().expect("the load waits for nothing");
        self.now = at;
        match due {
            Due::Tell(told) if self.is_wasted(&told.0) => {}
            Due::Tell(told) => load.handle(told.0, at),
            Due::Cancel(object, connection) => self.cancel(object, connection),
            Due::Request(object, connection, urgency, check) => {
                self.serve(object, connection, urgency, check);
            }
            Due::LinkFree => {
                self.busy = false;
                self.transmit();
            }
        }
    }

    /// The server has a request.
    fn serve(&mut self, id: ObjectId, connection: ConnectionId, urgency: Urgency, check: bool) {
        let back = self.now + self.net.rtt / 2;
        if let Some(at) = self.stale.iter().position(|stale| *stale == connection) {
            self.stale.remove(at);
            return self.tell(back, Event::Closed { connection });
        }
        let object = self.page.object(id).unwrap();
        let storage = match object.caching {
            Caching::Never => None,
            Caching::Stored { fresh_for, validator } => Some(Storage {
                fresh_for: fresh_for.duration(),
                validator: validator.then(|| Validator::Etag("\"1\"".into())),
            }),
        };
        let status = if check { 304 } else { 200 };
        let ahead = match id == self.page.root() && !check {
            true => Ahead::default().of(self.page, id),
            false => Vec::new(),
        };
        if matches!(self.net.says, Says::Pushes | Says::BreaksOff) {
            ahead.iter().for_each(|object| self.promise(*object, connection, back));
        }
        self.tell(back, Event::Head { object: id, status, storage });
        if self.net.says == Says::Hints {
            for object in &ahead {
                let target = self.page.object(*object).unwrap().path.as_str().into();
                self.tell(back, Event::Hinted { by: id, target });
            }
        }
        if check || object.body.count() == 0 {
            return self.tell(back, Event::Complete { object: id, reusable: true });
        }
        self.respond(id, connection, urgency);
        if self.net.says == Says::Pushes {
            let policy = Policy::chromium();
            for object in ahead {
                let urgency = policy.treatment(self.page.object(object).unwrap()).urgency;
                self.respond(object, connection, urgency);
            }
        }
        self.transmit();
    }

    /// A response's body waits for its turn.
    fn respond(&mut self, id: ObjectId, connection: ConnectionId, urgency: Urgency) {
        self.number += 1;
        let responses = self.responses.entry(connection).or_default();
        if responses.is_empty() {
            self.turns.push_back(connection);
        }
        let bytes = self.page.object(id).unwrap().body.count();
        responses.insert((urgency, self.number), (id, bytes));
    }

    /// The server promises an object, which comes with the head of its response.
    fn promise(&mut self, id: ObjectId, connection: ConnectionId, at: Time) {
        let object = self.page.object(id).unwrap();
        let push = PushId(self.pushed.len() as u64);
        self.pushed.push((id, connection));
        let host = self.page.host(object.host).unwrap().into();
        let path = object.path.as_str().into();
        self.tell(at, Event::Pushed { connection, push, host, path });
        let storage = match object.caching {
            Caching::Never => None,
            Caching::Stored { fresh_for, .. } => {
                Some(Storage { fresh_for: fresh_for.duration(), validator: None })
            }
        };
        self.tell(at, Event::Head { object: id, status: 200, storage });
        if self.net.says == Says::BreaksOff {
            self.tell(at, Event::Failed { object: id, refused: false });
        }
    }

    fn cancel(&mut self, id: ObjectId, connection: ConnectionId) {
        let responses = self.responses.get_mut(&connection).unwrap();
        responses.retain(|_, (object, _)| *object != id);
        if responses.is_empty() {
            self.turns.retain(|other| *other != connection);
        }
    }

    /// Whether an event is of a push that was refused.
    fn is_wasted(&mut self, event: &Event) -> bool {
        let (object, bytes) = match event {
            Event::Body { object, bytes } => (object, *bytes),
            Event::Head { object, .. }
            | Event::Complete { object, .. }
            | Event::Failed { object, .. } => (object, 0),
            _ => return false,
        };
        let is_pushed = self.pushed.iter().any(|(pushed, _)| pushed == object);
        let is_wasted = is_pushed && !self.taken.contains(object);
        self.wasted += if is_wasted { bytes } else { 0 };
        is_wasted
    }

    /// The next packet, of the connection whose turn it is.
    fn transmit(&mut self) {
        if self.busy {
            return;
        }
        let Some(connection) = self.turns.pop_front() else { return };
        let responses = self.responses.get_mut(&connection).unwrap();
        let mut first = responses.first_entry().unwrap();
        let (object, left) = first.get_mut();
        let (object, bytes) = (*object, PACKET.min(*left));
        *left -= bytes;
        let complete = *left == 0;
        if complete {
            first.remove();
        }
        if !responses.is_empty() {
            self.turns.push_back(connection);
        }
        let sent = self.now + self.net.packet * bytes as u32 / PACKET as u32;
        self.busy = true;
        self.at(sent, Due::LinkFree);
        let back = sent + self.net.rtt / 2;
        self.tell(back, Event::Body { object, bytes });
        if complete {
            self.tell(back, Event::Complete { object, reusable: true });
        }
    }
}
