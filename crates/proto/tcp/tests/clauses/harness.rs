//! One endpoint, and a peer whose segments the test makes.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use tcp::*;
use units::Time;
use wire::tcp::{Flags, OptionList, Repr, Segment};

/// The peer's initial sequence number.
pub const IRS: u32 = 1000;
/// No flag but ACK.
pub const BARE: Flags = Flags(0);

pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub fn millis(at: u64) -> Time {
    Time::from_millis(at)
}

/// A listener that takes data from every SYN.
pub fn everything() -> ListenOptions {
    ListenOptions { admit: |_| true, ..ListenOptions::default() }
}

/// The options of a SYN with an MSS and nothing else.
pub fn mss(mss: u16) -> OptionList<'static> {
    OptionList { mss: Some(mss), ..OptionList::default() }
}

pub fn timestamps(value: u32, echo: u32) -> OptionList<'static> {
    OptionList { timestamps: Some((value, echo)), ..OptionList::default() }
}

/// A packet that the endpoint sent, and when, in milliseconds.
pub struct Sent {
    pub at: u64,
    pub transmit: Transmit,
    pub packet: Vec<u8>,
    /// The endpoint's initial sequence number, to show others relative to it.
    iss: u32,
}

impl Sent {
    pub fn segment(&self) -> Segment<'_> {
        let ip = if self.transmit.source.is_ipv4() { 20 } else { 40 };
        Segment::new_checked(&self.packet[ip..]).unwrap()
    }

    pub fn options(&self) -> OptionList<'_> {
        Repr::parse(&self.segment()).options
    }

    pub fn payload(&self) -> &[u8] {
        self.segment().payload()
    }

    pub fn window(&self) -> u32 {
        self.segment().window().into()
    }
}

/// Milliseconds, flags, first byte and length (SYN is 0), acknowledgment: both relative.
impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segment = self.segment();
        let names = [(0x02, 'S'), (0x01, 'F'), (0x04, 'R'), (0x08, 'P'), (0x10, '.')];
        write!(f, "{} ", self.at)?;
        for (_, name) in names.iter().filter(|(bit, _)| segment.flags().0 & bit != 0) {
            write!(f, "{name}")?;
        }
        let first = segment.sequence().wrapping_sub(self.iss);
        write!(f, " {first}+{}", segment.payload().len())?;
        match segment.acknowledgment() {
            Some(ack) => write!(f, " ack {}", ack.wrapping_sub(IRS)),
            None => Ok(()),
        }
    }
}

pub fn shown(sent: &[Sent]) -> Vec<String> {
    sent.iter().map(Sent::to_string).collect()
}

/// A segment of the peer's.
#[derive(Clone)]
pub struct Made<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub flags: Flags,
    pub seq: u32,
    pub ack: Option<u32>,
    pub window: u16,
    pub options: OptionList<'a>,
    pub data: &'a [u8],
}

impl<'a> Made<'a> {
    pub fn flags(self, flags: Flags) -> Self {
        Made { flags, ..self }
    }

    /// First byte, relative to the peer's SYN.
    pub fn seq(self, offset: u32) -> Self {
        Made { seq: IRS.wrapping_add(offset), ..self }
    }

    pub fn window(self, window: u16) -> Self {
        Made { window, ..self }
    }

    pub fn options(self, options: OptionList<'a>) -> Self {
        Made { options, ..self }
    }

    pub fn data(self, data: &'a [u8]) -> Self {
        Made { data, ..self }
    }

    pub fn no_ack(self) -> Self {
        Made { ack: None, ..self }
    }

    pub fn packet(&self) -> Vec<u8> {
        let repr = Repr {
            source_port: self.from.port(),
            destination_port: self.to.port(),
            sequence: self.seq,
            acknowledgment: self.ack,
            flags: self.flags,
            window: self.window,
            options: self.options,
        };
        let len = repr.buffer_len(self.data.len());
        let mut packet = ip_header(self.from.ip(), self.to.ip(), len);
        let header = packet.len();
        packet.resize(header + len, 0);
        repr.emit(self.from.ip(), self.to.ip(), self.data, &mut packet[header..]).unwrap();
        packet
    }
}

fn ip_header(from: IpAddr, to: IpAddr, payload_len: usize) -> Vec<u8> {
    let mut header = vec![0; if from.is_ipv4() { 20 } else { 40 }];
    let protocol = wire::tcp::PROTOCOL;
    match (from, to) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => wire::ipv4::Repr {
            source,
            destination,
            protocol,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len,
        }
        .emit(&mut header)
        .unwrap(),
        (IpAddr::V6(source), IpAddr::V6(destination)) => wire::ipv6::Repr {
            source,
            destination,
            next_header: protocol,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            payload_len,
        }
        .emit(&mut header)
        .unwrap(),
        _ => panic!("two families"),
    }
    header
}

/// The endpoint under test, and what the peer knows of it.
pub struct Bench {
    pub endpoint: Endpoint,
    pub now: Time,
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// The connection, once there is one.
    pub id: Option<ConnectionId>,
    pub listener: Option<ListenerId>,
    pub iss: u32,
    /// The peer's timestamp clock and the last value that it echoes.
    pub clock: Option<(u32, u32)>,
}

impl Bench {
    pub fn new(config: Config) -> Self {
        Bench {
            endpoint: Endpoint::new(config, [2; 32]),
            now: millis(1000),
            local: address("192.0.2.1:443"),
            peer: address("198.51.100.7:40000"),
            id: None,
            listener: None,
            iss: 0,
            clock: None,
        }
    }

    pub fn listening(config: Config, options: ListenOptions) -> Self {
        let mut bench = Bench::new(config);
        bench.listener = Some(bench.endpoint.listen(bench.local, options).unwrap());
        bench
    }

    /// A server whose client has shaken hands by 1010 ms; `options` were its SYN's.
    pub fn established_with(config: Config, options: OptionList<'static>) -> Self {
        let mut bench = Bench::listening(config, ListenOptions::default());
        bench.shake_hands(options);
        bench
    }

    pub fn established() -> Self {
        Bench::established_with(Config::default(), mss(1460))
    }

    pub fn shake_hands(&mut self, options: OptionList<'static>) {
        let syn_ack = self.syn(options, &[]);
        assert_eq!(syn_ack.len(), 1);
        self.clock = options.timestamps.map(|(value, _)| {
            (value, syn_ack[0].options().timestamps.expect("timestamps are agreed").0)
        });
        self.now = millis(1010);
        assert!(self.give(self.made()).is_empty());
        self.id = self.endpoint.accept(self.listener.unwrap());
        assert_eq!(self.state(), State::Established);
        self.events();
    }

    /// The peer's SYN; the answer's sequence number is kept.
    pub fn syn(&mut self, options: OptionList<'static>, data: &[u8]) -> Vec<Sent> {
        let mut sent = self.give(self.made_syn(options).data(data));
        if let Some(id) = self.endpoint.accept(self.listener.unwrap()) {
            self.id = Some(id);
        }
        self.learn(&mut sent);
        sent
    }

    /// Takes the first packet's sequence number for the initial one.
    pub fn learn(&mut self, sent: &mut [Sent]) {
        let Some(first) = sent.first() else { return };
        self.iss = first.segment().sequence();
        sent.iter_mut().for_each(|one| one.iss = self.iss);
    }

    /// A client whose SYN has left at 1000 ms.
    pub fn connecting(config: Config, options: ConnectOptions) -> (Self, Sent) {
        let mut bench = Bench::new(config);
        let syn = bench.connect(options);
        (bench, syn)
    }

    pub fn connect(&mut self, options: ConnectOptions) -> Sent {
        let id = self.endpoint.connect(self.now, self.local, self.peer, options).unwrap();
        self.id = Some(id);
        let mut sent = self.sent();
        self.learn(&mut sent);
        sent.remove(0)
    }

    /// A segment of the peer's: the byte behind its SYN, acknowledging our SYN.
    pub fn made(&self) -> Made<'static> {
        self.acking(1)
    }

    /// The same, acknowledging all before our byte `ack`; our SYN is byte 0.
    pub fn acking(&self, ack: u32) -> Made<'static> {
        Made {
            from: self.peer,
            to: self.local,
            flags: BARE,
            seq: IRS + 1,
            ack: Some(self.iss.wrapping_add(ack)),
            window: 60_000,
            options: OptionList { timestamps: self.clock, ..OptionList::default() },
            data: &[],
        }
    }

    pub fn made_syn<'a>(&self, options: OptionList<'a>) -> Made<'a> {
        Made { options, ..self.made().no_ack().flags(Flags::SYN).seq(0) }
    }

    pub fn made_syn_ack<'a>(&self, ack: u32, options: OptionList<'a>) -> Made<'a> {
        Made { options, ..self.acking(ack).flags(Flags::SYN).seq(0) }
    }

    /// Gives the endpoint a segment and returns what it sends at once.
    pub fn give(&mut self, made: Made<'_>) -> Vec<Sent> {
        let _ignored = self.judge(&made);
        self.sent()
    }

    /// Gives the endpoint a segment and returns what it thinks of it.
    pub fn judge(&mut self, made: &Made<'_>) -> Result<(), Ignored> {
        self.endpoint.handle_packet(self.now, &made.packet(), Checksum::Verify)
    }

    /// The same, shown.
    pub fn reply(&mut self, made: Made<'_>) -> Vec<String> {
        shown(&self.give(made))
    }

    pub fn sent(&mut self) -> Vec<Sent> {
        let mut buffer = vec![0; 65_536];
        let mut all = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(self.now, &mut buffer) {
            let packet = buffer[..transmit.len].to_vec();
            let at = self.now.as_nanos() / 1_000_000;
            let sent = Sent { at, transmit, packet, iss: self.iss };
            let sums = sent.segment().checksum_ok(transmit.source, transmit.destination);
            assert!(sums || transmit.checksum_partial, "wrong checksum: {sent}");
            all.push(sent);
        }
        all
    }

    /// Lets time pass until `end`, a millisecond count, and returns all that is sent meanwhile.
    pub fn wait(&mut self, end: u64) -> Vec<Sent> {
        let end = millis(end);
        let mut all = self.sent();
        for _ in 0..10_000 {
            let Some(next) = self.endpoint.next_timeout().filter(|at| *at <= end) else {
                self.now = end;
                return all;
            };
            self.now = self.now.max(next);
            self.endpoint.handle_timeout(self.now);
            all.extend(self.sent());
        }
        panic!("timers without end at {}", self.now);
    }

    pub fn wait_shown(&mut self, end: u64) -> Vec<String> {
        shown(&self.wait(end))
    }

    pub fn state(&self) -> State {
        self.info().state
    }

    pub fn info(&self) -> Info {
        self.endpoint.info(self.id.unwrap()).unwrap()
    }

    pub fn write(&mut self, data: &[u8]) -> Vec<Sent> {
        let wrote = self.endpoint.write(self.now, self.id.unwrap(), data);
        assert_eq!(wrote, Ok(data.len()));
        self.sent()
    }

    pub fn read(&mut self) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), [0; 9000]);
        while let Ok(count @ 1..) = self.endpoint.read(self.now, self.id.unwrap(), &mut buffer) {
            all.extend_from_slice(&buffer[..count]);
        }
        all
    }

    pub fn shutdown(&mut self) -> Vec<Sent> {
        self.endpoint.shutdown(self.now, self.id.unwrap());
        self.sent()
    }

    pub fn answer(&mut self) -> Vec<Sent> {
        self.endpoint.answer(self.now, self.id.unwrap());
        let mut sent = self.sent();
        self.learn(&mut sent);
        sent
    }

    pub fn release(&mut self) -> Vec<Sent> {
        self.endpoint.release(self.now, self.id.unwrap());
        self.sent()
    }

    pub fn events(&mut self) -> Vec<EventKind> {
        std::iter::from_fn(|| self.endpoint.poll_event()).map(|event| event.kind).collect()
    }

    pub fn at(&mut self, now: u64) {
        self.now = millis(now);
    }

    /// Has the peer send segments until the first ones' ACKs, which go at once, are through.
    /// Returns the peer's next byte, relative to its SYN.
    pub fn past_quick_acks(&mut self, len: usize) -> u32 {
        let mut next = 1;
        for _ in 0..16 {
            let sent = self.give(self.made().seq(next).data(&vec![b'q'; len]));
            assert_eq!(sent.len(), 1, "at once");
            next += len as u32;
            self.read();
        }
        assert!(self.sent().is_empty());
        next
    }
}
