//! A conversation made of exact segments at exact times.
#![allow(dead_code, missing_docs)] // Each test file uses a part.

use std::net::{IpAddr, Ipv4Addr};

use tracker::{Connection, Limits, LinkType, Tracker};
use units::Time;
use wire::ethernet::{self, EtherType};
use wire::ipv4;
use wire::tcp::{Flags, OptionList, Repr};
use wire::tls::{ClientHelloRepr, Extension, ExtensionKind, ServerHelloRepr, body};

pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Close below the wrap, so that every conversation crosses it.
pub const BASES: [u32; 2] = [u32::MAX - 100, u32::MAX - 3];

/// A conversation between one client and one server.
pub struct Talk {
    pub tracker: Tracker,
    pub port: u16,
    pub at: Time,
    /// The next byte of each, relative to its initial sequence number.
    pub next: [u32; 2],
    /// All frames so far.
    pub frames: Vec<(Time, Vec<u8>)>,
}

pub fn talk() -> Talk {
    talk_with(Tracker::new(Limits::default()))
}

pub fn talk_with(tracker: Tracker) -> Talk {
    Talk { tracker, port: 50_000, at: Time::ZERO, next: [0, 0], frames: Vec::new() }
}

impl Talk {
    pub fn at(&mut self, millis: u64) -> &mut Self {
        self.at = Time::from_millis(millis);
        self
    }

    /// A segment from a side (0 client, 1 server) at an offset, acknowledging up to another.
    pub fn raw(
        &mut self,
        side: usize,
        flags: Flags,
        seq: u32,
        ack: Option<u32>,
        data: &[u8],
        options: OptionList<'_>,
    ) {
        let ports = [self.port, 443];
        let (source, destination) = if side == 0 { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let repr = Repr {
            source_port: ports[side],
            destination_port: ports[1 - side],
            sequence: BASES[side].wrapping_add(seq),
            acknowledgment: ack.map(|ack| BASES[1 - side].wrapping_add(ack)),
            flags,
            window: 65_535,
            options,
        };
        let tcp_len = repr.buffer_len(data.len());
        let ip = ipv4::Repr {
            source,
            destination,
            protocol: 6,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: tcp_len,
        };
        let link = ethernet::Repr {
            destination: ethernet::Address([2; 6]),
            source: ethernet::Address([4; 6]),
            ether_type: EtherType::IPV4,
        };
        let mut frame = vec![0; 34 + tcp_len];
        link.emit(&mut frame).unwrap();
        ip.emit(&mut frame[14..]).unwrap();
        let (from, to): (IpAddr, IpAddr) = (source.into(), destination.into());
        repr.emit(from, to, data, &mut frame[34..]).unwrap();
        self.tracker.handle_packet(self.at, LinkType::Ethernet, &frame, frame.len());
        self.frames.push((self.at, frame));
    }

    pub fn syn(&mut self) -> &mut Self {
        self.raw(0, Flags::SYN, 0, None, &[], OptionList::default());
        self.next[0] = 1;
        self
    }

    pub fn syn_ack(&mut self) -> &mut Self {
        self.raw(1, Flags::SYN, 0, Some(self.next[0]), &[], OptionList::default());
        self.next[1] = 1;
        self
    }

    pub fn flagged(&mut self, side: usize, flags: Flags) -> &mut Self {
        self.raw(
            side,
            flags,
            self.next[side],
            Some(self.next[1 - side]),
            &[],
            OptionList::default(),
        );
        self
    }

    pub fn ack(&mut self) -> &mut Self {
        self.flagged(0, Flags(0))
    }

    pub fn send(&mut self, side: usize, data: &[u8]) -> &mut Self {
        self.raw(
            side,
            Flags::PSH,
            self.next[side],
            Some(self.next[1 - side]),
            data,
            OptionList::default(),
        );
        self.next[side] += data.len() as u32;
        self
    }

    /// SYN at 0 ms, SYN+ACK and its acknowledgment at 10 ms.
    pub fn open(&mut self) -> &mut Self {
        self.syn().at(10).syn_ack().ack()
    }

    pub fn finish(self) -> Connection {
        let mut all = self.tracker.finish();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

pub fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, 3, 3];
    out.extend((payload.len() as u16).to_be_bytes());
    out.extend_from_slice(payload);
    out
}

pub fn encrypted(len: usize) -> Vec<u8> {
    record(23, &vec![0xee; len])
}

pub fn client_hello(tls13: bool, psk: bool, ticket: &[u8]) -> Vec<u8> {
    let mut bodies = vec![(0, body::server_name("example.org")), (35, ticket.to_vec())];
    if tls13 {
        bodies.push((43, body::supported_versions(&[0x0304])));
        bodies.push((51, body::key_shares(&[(0x11ec, &[7; 1216])])));
        bodies.push((45, body::psk_dhe_ke()));
    }
    if psk {
        bodies.push((42, vec![]));
        bodies.push((41, body::pre_shared_key(&[9; 60], 5, &[8; 32])));
    }
    let repr = ClientHelloRepr {
        legacy_version: 0x0303,
        random: [1; 32],
        session_id: &[2; 32],
        cipher_suites: vec![0x1301, 0xc02f],
        extensions: bodies
            .iter()
            .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
            .collect(),
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    record(22, &message)
}

pub fn server_hello(random: [u8; 32], suite: u16, extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let repr = ServerHelloRepr {
        legacy_version: 0x0303,
        random,
        session_id: &[2; 32],
        cipher_suite: suite,
        extensions: extensions
            .iter()
            .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
            .collect(),
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    record(22, &message)
}

pub fn share() -> Vec<u8> {
    body::key_share(0x11ec, &[3; 1120])
}

pub fn hello_13(psk: bool) -> Vec<u8> {
    let share = share();
    let mut extensions: Vec<(u16, &[u8])> = vec![(43, &[3, 4]), (51, &share)];
    if psk {
        extensions.push((41, &[0, 0]));
    }
    server_hello([5; 32], 0x1301, &extensions)
}

pub fn ms(millis: u64) -> Option<Time> {
    Some(Time::from_millis(millis))
}
