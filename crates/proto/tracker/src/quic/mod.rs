//! One QUIC connection: which packets went when, and the hellos in its Initial packets.

mod initial;
mod reported;

pub(crate) use reported::Origins;

use units::Time;
use wire::quic::frame::{Frame, Frames};
use wire::quic::{LongPacket, Packet, PacketType, Packets, Version};
use wire::tls::{Alert, CipherSuite, HandshakeType, MessageHeader};

use self::initial::{InitialKeys, open};
use crate::reassembly::Reassembler;
use crate::record::{AlertFacts, Connection, EarlyData, QuicFacts, TlsFacts, Transport, Uncertain};
use crate::side::{Pair, Sender};
use crate::tls::{
    HelloWork, Mark, MessageEvent, MessageReader, ServerSaid, read_client_hello, read_server_hello,
};

/// CRYPTO bytes read in each direction: the hellos are shorter, and a server may put no more than
/// its ServerHello into Initial packets.
const CRYPTO_BYTES: u64 = 32 * 1024;

/// Bytes of a Handshake packet beside the Finished's hash at least: packet number 1, CRYPTO frame
/// header 3, message header 4, tag 16 (RFC 9000 §17.2.4, §19.6).
const FINISHED_OVERHEAD: usize = 1 + 3 + 4 + 16;

/// Times keys are derived at most: once, after a Retry, after a change of version, and one more.
const MAX_KEYS: u32 = 4;

/// A QUIC connection being followed.
#[derive(Debug)]
pub(crate) struct QuicFlow {
    facts: QuicFacts,
    tls: TlsFacts,
    work: HelloWork,
    keys: Option<InitialKeys>,
    keys_made: u32,
    origins: Origins,
    retried: bool,
    sides: Pair<Side>,
    server_hello_read: bool,
    server_bytes: u64,
    /// Marks of the server's 1-RTT packets that may hold the first application data: the first of
    /// all, and the first after the client's data.
    response: Option<Mark>,
    /// The client's first 1-RTT or 0-RTT packet.
    request: Option<Time>,
}

#[derive(Debug)]
struct Side {
    crypto: Reassembler,
    messages: MessageReader,
    largest: Option<u64>,
    message_begin: Time,
}

/// Whether a datagram begins a connection: its first packet is an Initial of a known version that
/// opens under the client's keys. Only a client's first Initial does.
pub(crate) fn starts_connection(datagram: &[u8], scratch: &mut Vec<u8>) -> Option<QuicFlow> {
    // A client that resumes may grease the fixed bit of its very first packet (RFC 9287 §3.1); that it
    // opens proves that it is QUIC.
    let first = Packets::of_known_flow(datagram).next();
    let Some(Packet::Long(packet)) = first else { return None };
    // RFC 9000 §7.2: the first Destination Connection ID has 8 bytes at least.
    if packet.kind() != PacketType::Initial || packet.destination().len() < 8 {
        return None;
    }
    let keys = InitialKeys::new(packet.version(), packet.destination())?;
    open(keys.of(Sender::Client), &packet, None, scratch)?;
    Some(QuicFlow::new(keys, packet.version()))
}

impl QuicFlow {
    fn new(keys: InitialKeys, version: Version) -> Self {
        let side = || Side {
            crypto: Reassembler::new(CRYPTO_BYTES),
            messages: MessageReader::default(),
            largest: None,
            message_begin: Time::ZERO,
        };
        QuicFlow {
            origins: Origins::new(keys.destination()),
            facts: QuicFacts { version: version.0, ..QuicFacts::default() },
            tls: TlsFacts::default(),
            work: HelloWork::default(),
            keys: Some(keys),
            keys_made: 1,
            retried: false,
            sides: Pair { client: side(), server: side() },
            server_hello_read: false,
            server_bytes: 0,
            response: None,
            request: None,
        }
    }

    /// Takes a datagram's payload.
    pub(crate) fn handle(
        &mut self,
        side: Sender,
        datagram: &[u8],
        mark: Mark,
        scratch: &mut Vec<u8>,
    ) {
        // Neither side sends 1-RTT packets before the server's flight is out; a client's Handshake
        // packet that is padded looks like a Finished, and is no sign of its end.
        let application = self.facts.client_one_rtt.or(self.facts.server_one_rtt);
        if side == Sender::Server && application.is_none() {
            self.server_bytes = self.server_bytes.saturating_add(datagram.len() as u64);
        }
        for packet in Packets::of_known_flow(datagram) {
            match packet {
                Packet::Long(packet) => self.long(side, &packet, mark, scratch),
                Packet::Short(_) => self.one_rtt(side, mark),
                Packet::Other(other) => {
                    if side == Sender::Server && other.version == Version::NEGOTIATION {
                        self.facts.version_negotiation.get_or_insert(mark.at);
                    }
                }
            }
        }
    }

    fn long(&mut self, side: Sender, packet: &LongPacket<'_>, mark: Mark, scratch: &mut Vec<u8>) {
        let at = mark.at;
        match (packet.kind(), side) {
            (PacketType::Initial, Sender::Client) => {
                self.facts.client_initial.get_or_insert(at);
                // RFC 9001 §5.2: after a Retry the keys come from the new identifier.
                if self.retried && !self.is_keyed_by(packet.destination()) {
                    self.retried = false;
                    self.origins.then(packet.destination());
                    self.rekey(packet.version(), Some(packet.destination()));
                }
                self.initial(side, packet, at, scratch);
            }
            (PacketType::Initial, _) => {
                self.facts.server_initial.get_or_insert(at);
                self.initial(side, packet, at, scratch);
            }
            (PacketType::ZeroRtt, Sender::Client) => {
                self.facts.zero_rtt.get_or_insert(at);
                self.request.get_or_insert(at);
                self.facts.zero_rtt_packets = self.facts.zero_rtt_packets.saturating_add(1);
                let bytes = packet.bytes().len() as u64;
                self.facts.zero_rtt_bytes = self.facts.zero_rtt_bytes.saturating_add(bytes);
            }
            (PacketType::Handshake, Sender::Client) => {
                self.facts.client_handshake.get_or_insert(at);
                self.client_handshake(packet, at);
            }
            (PacketType::Handshake, _) => {
                self.facts.server_handshake.get_or_insert(at);
                if self.tls.client_finished.is_none() {
                    self.tls.server_flight_end = Some(at);
                }
            }
            (PacketType::Retry, Sender::Server) if self.facts.server_initial.is_none() => {
                // RFC 9000 §17.2.5.2: a client takes one Retry, and passes over those that follow.
                self.retried |= self.facts.retry.is_none();
                self.facts.retry.get_or_insert(at);
            }
            _ => {}
        }
    }

    /// The first Handshake packet of the client that is long enough for a Finished: a mere
    /// acknowledgment is shorter.
    fn client_handshake(&mut self, packet: &LongPacket<'_>, at: Time) {
        let suite = self.tls.cipher_suite.and_then(CipherSuite::tls13);
        let hash_len = suite.map_or(32, |suite| suite.hash_len);
        if packet.protected_len() >= FINISHED_OVERHEAD + hash_len
            && self.tls.client_finished.is_none()
        {
            self.tls.client_finished = Some(at);
            self.keys = None;
        }
    }

    fn one_rtt(&mut self, side: Sender, mark: Mark) {
        if side == Sender::Client {
            self.facts.client_one_rtt.get_or_insert(mark.at);
            self.request.get_or_insert(mark.at);
            return;
        }
        self.facts.server_one_rtt.get_or_insert(mark.at);
        if self.tls.client_finished.is_none() {
            let count = &mut self.facts.server_one_rtt_before_finished;
            *count = count.saturating_add(1);
        }
        if self.request.is_some() {
            self.response.get_or_insert(mark);
        }
    }

    fn is_keyed_by(&self, destination: &[u8]) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.destination() == destination)
    }

    fn rekey(&mut self, version: Version, destination: Option<&[u8]>) {
        if self.keys_made < MAX_KEYS
            && let Some(keys) = &self.keys
        {
            self.keys_made += 1;
            let again = match destination {
                Some(destination) => InitialKeys::new(version, destination),
                None => keys.with_version(version),
            };
            if again.is_some() {
                self.keys = again;
            }
        }
    }

    fn initial(&mut self, side: Sender, packet: &LongPacket<'_>, at: Time, scratch: &mut Vec<u8>) {
        // RFC 9369 §4.1: the server may have changed to another version; the identifier stays.
        if self.keys.as_ref().is_some_and(|keys| keys.version() != packet.version()) {
            self.rekey(packet.version(), None);
        }
        let Some(keys) = &self.keys else { return };
        let largest = self.sides[side].largest;
        let Some((number, payload)) = open(keys.of(side), packet, largest, scratch) else {
            self.facts.undecryptable = self.facts.undecryptable.saturating_add(1);
            return;
        };
        self.sides[side].largest = Some(largest.map_or(number, |largest| largest.max(number)));
        for frame in Frames::new(payload).map_while(Result::ok) {
            match frame {
                Frame::Crypto { offset, data } => self.crypto(side, offset, data, at),
                Frame::Close { code, .. } => self.closed(side, code, at),
                _ => {}
            }
        }
    }

    fn closed(&mut self, side: Sender, code: u64, at: Time) {
        self.facts.close.get_or_insert(at);
        self.facts.close_code.get_or_insert(code);
        // RFC 9001 §4.8: codes 0x100 to 0x1ff are TLS alerts, always fatal.
        if code >> 8 == 1 && self.tls.alerts.is_empty() {
            let alert = Alert { level: 2, description: code as u8 };
            self.tls.alerts.push(AlertFacts {
                at,
                from_client: side == Sender::Client,
                level: Some(alert.level),
                description: Some(alert.description),
                name: alert.name(),
            });
        }
    }

    fn crypto(&mut self, side: Sender, offset: u64, data: &[u8], at: Time) {
        let Side { crypto, messages, message_begin, .. } = &mut self.sides[side];
        let (tls, work) = (&mut self.tls, &mut self.work);
        let server_hello_read = &mut self.server_hello_read;
        crypto.insert(offset, data, |mut bytes| {
            while let Some(event) = messages.next(&mut bytes) {
                match event {
                    MessageEvent::Begin(_) => *message_begin = at,
                    MessageEvent::End(header, Some(body)) if side == Sender::Client => {
                        client_hello(tls, work, header, body, [*message_begin, at]);
                    }
                    MessageEvent::End(header, Some(body)) => {
                        if header.kind != HandshakeType::CLIENT_HELLO && !*server_hello_read {
                            *server_hello_read =
                                server_hello(tls, work, header, body, [*message_begin, at]);
                        }
                    }
                    MessageEvent::End(..) => {}
                }
            }
        });
    }

    /// Bytes held beside its own: behind holes in both directions, hellos that are not whole, lists
    /// and texts of the facts.
    pub(crate) fn held_bytes(&self) -> usize {
        let side = |side: &Side| side.crypto.held_bytes() + side.messages.held_bytes();
        side(&self.sides.client) + side(&self.sides.server) + self.tls.heap_bytes()
    }

    /// Gives up what is held, to save memory.
    pub(crate) fn give_up(&mut self) {
        for side in [Sender::Client, Sender::Server] {
            self.sides[side].crypto.give_up();
            self.sides[side].messages.give_up();
        }
    }

    /// Completes the record.
    pub(crate) fn close(mut self: Box<Self>, connection: &mut Connection) {
        let tls = &mut self.tls;
        if tls.client_finished.is_some() {
            tls.server_flight_len = self.server_bytes;
        }
        tls.early_data_sent = self.facts.zero_rtt;
        tls.early_data_records = self.facts.zero_rtt_packets;
        tls.early_data_bytes = self.facts.zero_rtt_bytes;
        if tls.early_data == EarlyData::Offered && self.facts.zero_rtt_packets > 0 {
            connection.uncertain.push(Uncertain::QuicEarlyData);
            if tls.psk_accepted && self.facts.server_one_rtt_before_finished > 0 {
                tls.early_data = EarlyData::Likely;
            }
        }
        let rejected = tls.early_data == EarlyData::Rejected;
        let early = self.facts.zero_rtt.filter(|_| !rejected);
        connection.client_data = early.or(self.facts.client_one_rtt);
        if let (Some(mark), Some(sent)) = (self.response, connection.client_data) {
            connection.uncertain.push(Uncertain::QuicData);
            if mark.at >= sent {
                let Pair { client: up, server: down } = mark.traffic;
                connection.server_data = Some(mark.at);
                connection.up_to_response = Some(up);
                connection.down_to_response = Some(down);
            }
        }
        if connection.down.frames == 0 {
            connection.uncertain.push(Uncertain::OneDirection);
        }
        if self.work.client_hello_seen && !self.work.server_hello_seen {
            connection.uncertain.push(Uncertain::ServerHello);
        }
        if self.work.client_hello_seen {
            connection.tls = Some(self.tls);
        }
        connection.quic = Some(self.facts);
    }
}

fn client_hello(
    tls: &mut TlsFacts,
    work: &mut HelloWork,
    header: MessageHeader,
    body: &[u8],
    [begin, end]: [Time; 2],
) {
    let second = work.client_hello_seen;
    if header.kind != HandshakeType::CLIENT_HELLO
        || !read_client_hello(tls, work, Transport::Quic, body)
    {
        return;
    }
    let len = header.length.saturating_add(MessageHeader::LEN as u32);
    if second {
        tls.second_client_hello_end.get_or_insert(end);
        tls.second_client_hello_len.get_or_insert(len);
    } else {
        tls.client_hello = Some(begin);
        tls.client_hello_end = Some(end);
        tls.client_hello_len = len;
        tls.client_hello_records_len = len;
    }
}

/// True once the ServerHello proper is read.
fn server_hello(
    tls: &mut TlsFacts,
    work: &mut HelloWork,
    header: MessageHeader,
    body: &[u8],
    [begin, end]: [Time; 2],
) -> bool {
    match read_server_hello(tls, work, header.kind, body) {
        ServerSaid::Nothing => false,
        ServerSaid::HelloRetryRequest => {
            tls.hello_retry_request.get_or_insert(end);
            false
        }
        ServerSaid::ServerHello => {
            tls.server_hello = Some(begin);
            tls.server_hello_end = Some(end);
            true
        }
    }
}
