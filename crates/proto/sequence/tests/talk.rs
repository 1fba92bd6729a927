//! A TCP connection in clear, as captured packets.

use sequence::{Chart, Limits, Reader};
use tracker::LinkType;
use units::Time;
use wire::tcp::{Flags, OptionList, Repr};
use wire::{ipv4, tcp};

/// Bytes of a segment.
const SEGMENT: usize = 1400;

/// A conversation: packets a millisecond apart.
pub struct Talk {
    pub packets: Vec<Vec<u8>>,
    /// The next byte of each side.
    next: [u32; 2],
}

impl Talk {
    pub fn new() -> Talk {
        let mut talk = Talk { packets: Vec::new(), next: [7, u32::MAX - 2] };
        talk.packet(0, Flags::SYN, &[]);
        talk.packet(1, Flags::SYN, &[]);
        talk.packet(0, Flags::default(), &[]);
        talk
    }

    /// Bytes of a side (0 client, 1 server).
    pub fn send(&mut self, side: usize, bytes: &[u8]) {
        for piece in bytes.chunks(SEGMENT) {
            self.packet(side, Flags::PSH, piece);
        }
    }

    fn packet(&mut self, side: usize, flags: Flags, payload: &[u8]) {
        let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let ports = [40_000, 6121];
        let acknowledges = !(side == 0 && flags == Flags::SYN);
        let repr = Repr {
            source_port: ports[side],
            destination_port: ports[1 - side],
            sequence: self.next[side],
            acknowledgment: acknowledges.then_some(self.next[1 - side]),
            flags,
            window: 65_535,
            options: OptionList::default(),
        };
        let len = repr.buffer_len(payload.len());
        let (from, to) = (addresses[side], addresses[1 - side]);
        let ip = ipv4::Repr {
            source: from.into(),
            destination: to.into(),
            protocol: tcp::PROTOCOL,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: len,
        };
        let mut packet = vec![0; ipv4::HEADER_LEN + len];
        ip.emit(&mut packet).unwrap();
        let body = &mut packet[ipv4::HEADER_LEN..];
        repr.emit(std::net::IpAddr::from(from), std::net::IpAddr::from(to), payload, body).unwrap();
        self.packets.push(packet);
        let one = u32::from(flags.has(Flags::SYN));
        self.next[side] = self.next[side].wrapping_add(payload.len() as u32 + one);
    }

    pub fn read(&self) -> Chart {
        self.read_with(Limits::default())
    }

    pub fn read_with(&self, limits: Limits) -> Chart {
        let mut reader = Reader::new(limits);
        for (at, packet) in self.packets.iter().enumerate() {
            reader.handle_packet(Time::from_millis(at as u64), LinkType::RawIp, packet);
        }
        reader.finish()
    }
}
