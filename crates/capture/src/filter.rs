//! What an interface is to hand over: a socket filter in classic BPF.

use packet::FilterInstruction as Instruction;

use crate::Error;

/// Ports of a filter, at most.
pub(crate) const MAX_PORTS: usize = 32;

/// Which frames are captured, decided in the kernel before anything is copied.
///
/// Of TCP all, or that from or to the ports. Of UDP, what may be QUIC: that from or to port 443,
/// and datagrams that begin as packets with a long header do (RFC 8999 §5.1), or that from or to
/// the ports. QUIC on other ports goes on with short headers, which look like anything: name its
/// ports, and all of it is seen.
///
/// Fragments, which name no ports, and IPv6 packets with extension headers are all let through.
/// Up to three VLAN tags are looked behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Ports of TCP and UDP; if there are none, as said above.
    pub ports: Vec<u16>,
    /// Also what hides other packets: MPLS, PPPoE, GRE, IP in IP, VXLAN.
    pub tunnels: bool,
}

impl Default for Filter {
    /// All TCP, and UDP that may be QUIC; tunnels too.
    fn default() -> Self {
        Filter { ports: Vec::new(), tunnels: true }
    }
}

/// What a frame begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Ethernet,
    Ip,
}

// <linux/filter.h>: class, size and mode of an instruction.
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
/// At X and an offset.
const LOAD_BYTE_X: u16 = 0x50;
const LOAD_HALF_X: u16 = 0x48;
/// X becomes the length of the IPv4 header there.
const LOAD_X_HEADER: u16 = 0xb1;
/// X becomes a number.
const LOAD_X: u16 = 0x01;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
/// If a bit of the operand is set.
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

const VLAN_TYPES: [u32; 3] = [0x8100, 0x88a8, 0x9100];
/// MPLS unicast and multicast, PPPoE session.
const TUNNEL_TYPES: [u32; 3] = [0x8847, 0x8848, 0x8864];
/// IP in IP, IPv6 in IP, GRE.
const TUNNEL_PROTOCOLS: [u32; 3] = [4, 41, 47];
/// VXLAN: IANA's port and Linux' old one.
const TUNNEL_PORTS: [u16; 2] = [4789, 8472];
const TCP: u32 = 6;
const UDP: u32 = 17;
/// Hop-by-hop options, routing, fragment, destination options.
const IPV6_EXTENSIONS: [u32; 4] = [0, 43, 44, 60];
const MAX_TAGS: u32 = 3;

/// Where to jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Accept,
    Reject,
    NextTag,
    Ipv4,
    Ipv6,
    Udp4,
    Udp6,
    Ports,
}

/// A piece of program whose jumps stay within it; they go forward only, as they must.
#[derive(Default)]
struct Piece {
    lines: Vec<(u16, u32, Option<Label>)>,
    places: Vec<(Label, usize)>,
}

impl Piece {
    fn add(&mut self, code: u16, operand: u32) {
        self.lines.push((code, operand, None));
    }

    fn jump_if(&mut self, code: u16, operand: u32, to: Label) {
        self.lines.push((code, operand, Some(to)));
    }

    fn jump(&mut self, to: Label) {
        self.lines.push((JUMP, 0, Some(to)));
    }

    fn place(&mut self, label: Label) {
        self.places.push((label, self.lines.len()));
    }

    /// The instructions. A conditional jump reaches 255 instructions, which pieces are short enough
    /// for: with [`MAX_PORTS`], of which each needs two, and some 60 beside.
    fn finish(self) -> Vec<Instruction> {
        let distance = |label, from: usize| {
            let place = self.places.iter().find(|(other, _)| *other == label);
            place.map_or(0, |(_, to)| to.saturating_sub(from + 1))
        };
        let line = |(index, (code, operand, to)): (usize, &(u16, u32, Option<Label>))| {
            let far = to.map_or(0, |label| distance(label, index));
            let (if_true, operand) = match *code {
                JUMP => (0, far as u32),
                _ => (u8::try_from(far).unwrap_or(u8::MAX), *operand),
            };
            Instruction { code: *code, if_true, if_false: 0, operand }
        };
        self.lines.iter().enumerate().map(line).collect()
    }
}

impl Filter {
    /// The program for frames that begin with `header`: it keeps `snap_len` bytes of what it lets
    /// through.
    ///
    /// # Errors
    /// [`Error::TooManyPorts`].
    pub(crate) fn program(&self, header: Header, snap_len: u32) -> Result<Vec<Instruction>, Error> {
        if self.ports.len() > MAX_PORTS {
            return Err(Error::TooManyPorts { count: self.ports.len() });
        }
        if header == Header::Ip {
            let mut piece = Piece::default();
            piece.add(LOAD_BYTE, 0);
            piece.add(AND, 0xf0);
            piece.jump_if(JUMP_EQUAL, 0x40, Label::Ipv4);
            piece.jump_if(JUMP_EQUAL, 0x60, Label::Ipv6);
            piece.jump(Label::Reject);
            self.packets(&mut piece, 0, snap_len);
            return Ok(piece.finish());
        }
        let mut program = Vec::new();
        for tags in 0..=MAX_TAGS {
            program.extend(self.behind_tags(tags, snap_len));
        }
        Ok(program)
    }

    /// Looks at the EtherType behind so many tags. A further tag leads to the piece's end.
    fn behind_tags(&self, tags: u32, snap_len: u32) -> Vec<Instruction> {
        let mut piece = Piece::default();
        let base = 14 + 4 * tags;
        piece.add(LOAD_HALF, base - 2);
        piece.jump_if(JUMP_EQUAL, 0x0800, Label::Ipv4);
        piece.jump_if(JUMP_EQUAL, 0x86dd, Label::Ipv6);
        if tags < MAX_TAGS {
            for tag in VLAN_TYPES {
                piece.jump_if(JUMP_EQUAL, tag, Label::NextTag);
            }
        }
        if self.tunnels {
            for kind in TUNNEL_TYPES {
                piece.jump_if(JUMP_EQUAL, kind, Label::Accept);
            }
        }
        piece.jump(Label::Reject);
        self.packets(&mut piece, base, snap_len);
        piece.place(Label::NextTag);
        piece.finish()
    }

    /// Looks at an IP packet at `base`.
    fn packets(&self, piece: &mut Piece, base: u32, snap_len: u32) {
        let (all_tcp, to_ports) = (self.ports.is_empty(), Label::Ports);
        piece.place(Label::Ipv4);
        piece.add(LOAD_BYTE, base + 9);
        piece.jump_if(JUMP_EQUAL, TCP, if all_tcp { Label::Accept } else { Label::Udp4 });
        piece.jump_if(JUMP_EQUAL, UDP, Label::Udp4);
        self.tunnel_protocols(piece);
        piece.jump(Label::Reject);

        piece.place(Label::Ipv6);
        piece.add(LOAD_BYTE, base + 6);
        piece.jump_if(JUMP_EQUAL, TCP, if all_tcp { Label::Accept } else { Label::Udp6 });
        piece.jump_if(JUMP_EQUAL, UDP, Label::Udp6);
        for extension in IPV6_EXTENSIONS {
            piece.jump_if(JUMP_EQUAL, extension, Label::Accept);
        }
        self.tunnel_protocols(piece);
        piece.jump(Label::Reject);

        // X is the IP header's length from here on: the ports of TCP and UDP stand in one place.
        piece.place(Label::Udp4);
        piece.add(LOAD_HALF, base + 6);
        piece.jump_if(JUMP_SET, 0x1fff, Label::Accept);
        piece.add(LOAD_X_HEADER, base);
        piece.jump(to_ports);
        piece.place(Label::Udp6);
        piece.add(LOAD_X, 40);

        piece.place(to_ports);
        let mut ports = if all_tcp { vec![443] } else { self.ports.clone() };
        if self.tunnels {
            ports.extend(TUNNEL_PORTS);
        }
        for offset in [0, 2] {
            piece.add(LOAD_HALF_X, base + offset);
            for port in &ports {
                piece.jump_if(JUMP_EQUAL, u32::from(*port), Label::Accept);
            }
        }
        if all_tcp {
            piece.add(LOAD_BYTE_X, base + 8);
            piece.jump_if(JUMP_SET, 0x80, Label::Accept);
        }
        piece.place(Label::Reject);
        piece.add(RETURN, 0);
        piece.place(Label::Accept);
        piece.add(RETURN, snap_len);
    }

    fn tunnel_protocols(&self, piece: &mut Piece) {
        if self.tunnels {
            for protocol in TUNNEL_PROTOCOLS {
                piece.jump_if(JUMP_EQUAL, protocol, Label::Accept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel does: a load from outside ends it with 0.
    fn run(program: &[Instruction], frame: &[u8]) -> u32 {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0);
        loop {
            let one = program[at];
            at += 1;
            let load = |offset: u32, len: usize| {
                let bytes = frame.get(offset as usize..offset as usize + len)?;
                Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
            };
            let k = one.operand;
            let loaded = match one.code {
                LOAD_BYTE => load(k, 1),
                LOAD_HALF => load(k, 2),
                LOAD_BYTE_X => load(x + k, 1),
                LOAD_HALF_X => load(x + k, 2),
                _ => Some(a),
            };
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
            match one.code {
                LOAD_X_HEADER => {
                    let Some(byte) = load(k, 1) else { return 0 };
                    x = (byte & 15) * 4;
                }
                LOAD_X => x = k,
                AND => a &= k,
                JUMP => at += k as usize,
                JUMP_EQUAL => at += usize::from(if a == k { one.if_true } else { one.if_false }),
                JUMP_SET => at += usize::from(if a & k != 0 { one.if_true } else { one.if_false }),
                RETURN => return k,
                _ => {}
            }
        }
    }

    fn ethernet(tags: &[u16], kind: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 7]);
        }
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame
    }

    fn ipv4(protocol: u8, options: usize, fragment: u16, upper: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20 + options];
        packet[0] = 0x40 | (5 + options / 4) as u8;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet.extend(upper);
        packet
    }

    fn ipv6(next: u8, upper: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[6]) = (0x60, next);
        packet.extend(upper);
        packet
    }

    fn ports(source: u16, destination: u16, first: u8) -> Vec<u8> {
        let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        [ports, vec![0, 20, 0, 0], vec![first; 12]].concat()
    }

    /// Whether it passes plain, tagged, twice tagged, and as a bare packet.
    fn passes(filter: &Filter, kind: u16, packet: &[u8]) -> bool {
        let program = filter.program(Header::Ethernet, 99).unwrap();
        let bare = filter.program(Header::Ip, 99).unwrap();
        let frames = [&[][..], &[0x8100], &[0x88a8, 0x8100], &[0x9100, 0x8100, 0x8100]];
        let mut results: Vec<u32> =
            frames.iter().map(|tags| run(&program, &ethernet(tags, kind, packet))).collect();
        if matches!(kind, 0x0800 | 0x86dd) {
            results.push(run(&bare, packet));
        }
        assert!(results.iter().all(|one| *one == results[0]), "{results:?}");
        assert!(results[0] == 0 || results[0] == 99);
        results[0] == 99
    }

    #[test]
    fn all_tcp_and_what_may_be_quic() {
        let filter = Filter::default();
        for options in [0, 4, 40] {
            assert!(passes(&filter, 0x0800, &ipv4(6, options, 0, &ports(5, 6, 0))));
            assert!(passes(&filter, 0x0800, &ipv4(17, options, 0, &ports(443, 6, 0x40))));
            assert!(passes(&filter, 0x0800, &ipv4(17, options, 0, &ports(5, 443, 0x40))));
            assert!(passes(&filter, 0x0800, &ipv4(17, options, 0, &ports(5, 6, 0xc0))));
            assert!(!passes(&filter, 0x0800, &ipv4(17, options, 0, &ports(5, 6, 0x40))));
        }
        assert!(passes(&filter, 0x86dd, &ipv6(6, &ports(5, 6, 0))));
        assert!(passes(&filter, 0x86dd, &ipv6(17, &ports(5, 443, 0x40))));
        assert!(passes(&filter, 0x86dd, &ipv6(17, &ports(5, 6, 0xc0))));
        assert!(!passes(&filter, 0x86dd, &ipv6(17, &ports(5, 6, 0x40))));
        assert!(!passes(&filter, 0x86dd, &ipv6(58, &[0; 20])));
        assert!(!passes(&filter, 0x0800, &ipv4(1, 0, 0, &[0; 20])));
        assert!(!passes(&filter, 0x0806, &[0; 28]));
        // A fragment but the first has no ports; more-fragments alone is a first one.
        assert!(passes(&filter, 0x0800, &ipv4(17, 0, 0x2001, &ports(5, 6, 0x40))));
        assert!(!passes(&filter, 0x0800, &ipv4(17, 0, 0x2000, &ports(5, 6, 0x40))));
        for extension in [0, 43, 44, 60] {
            assert!(passes(&filter, 0x86dd, &ipv6(extension, &[0; 20])));
        }
    }

    #[test]
    fn only_the_ports() {
        let many: Vec<u16> = (8000..8000 + MAX_PORTS as u16).collect();
        let filter = Filter { ports: many.clone(), tunnels: true };
        for port in many {
            for protocol in [6, 17] {
                assert!(passes(&filter, 0x0800, &ipv4(protocol, 8, 0, &ports(port, 1, 0))));
                assert!(passes(&filter, 0x0800, &ipv4(protocol, 0, 0, &ports(1, port, 0))));
                assert!(passes(&filter, 0x86dd, &ipv6(protocol, &ports(1, port, 0))));
                assert!(passes(&filter, 0x86dd, &ipv6(protocol, &ports(port, 1, 0))));
            }
        }
        for other in [443, 7999, 8032] {
            assert!(!passes(&filter, 0x0800, &ipv4(6, 0, 0, &ports(other, 1, 0x80))));
            assert!(!passes(&filter, 0x86dd, &ipv6(17, &ports(1, other, 0x80))));
        }
        let filter = Filter { ports: vec![1; MAX_PORTS + 1], tunnels: false };
        let error = filter.program(Header::Ethernet, 99).unwrap_err();
        assert!(matches!(error, Error::TooManyPorts { count: 33 }), "{error}");
    }

    #[test]
    fn tunnels_if_wanted() {
        for tunnels in [true, false] {
            let filter = Filter { ports: vec![443], tunnels };
            for kind in TUNNEL_TYPES {
                assert_eq!(passes(&filter, kind as u16, &[0; 60]), tunnels);
            }
            for protocol in TUNNEL_PROTOCOLS {
                assert_eq!(passes(&filter, 0x0800, &ipv4(protocol as u8, 0, 0, &[0; 40])), tunnels);
                assert_eq!(passes(&filter, 0x86dd, &ipv6(protocol as u8, &[0; 40])), tunnels);
            }
            assert_eq!(passes(&filter, 0x0800, &ipv4(17, 0, 0, &ports(5, 4789, 8))), tunnels);
        }
    }

    #[test]
    fn a_frame_that_ends_early_does_not_pass() {
        let filter = Filter { ports: vec![443], tunnels: true };
        let program = filter.program(Header::Ethernet, 99).unwrap();
        let frame = ethernet(&[0x8100], 0x0800, &ipv4(6, 0, 0, &ports(1, 443, 0)));
        let ports_end = 18 + 20 + 4;
        for len in 0..frame.len() {
            assert_eq!(run(&program, &frame[..len]) == 99, len >= ports_end, "{len}");
        }
    }
}
