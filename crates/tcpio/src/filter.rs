//! A packet filter in the kernel, so that traffic that is not ours does not reach us.
//!
//! An AF_PACKET socket otherwise gets a copy of every frame of its interface. The filter is a
//! classic BPF program (linux/filter.h): ARP, and IP to one of our addresses, or to the group in
//! which others solicit it. What passes is looked at again, so the filter is a matter of cost only.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use wire::ethernet::EtherType;
use wire::icmpv6::solicited_node;

use crate::Error;

/// Addresses that a filter can tell: the kernel takes programs of 4096 instructions.
const MAX_ADDRESSES: usize = 180;

const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const LOAD_LENGTH: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_LEN) as u16;
const JUMP_IF_GREATER: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const PASS: libc::sock_filter = code(RETURN, u32::MAX);
const DROP: libc::sock_filter = code(RETURN, 0);

/// Where the destination stands in a frame.
const V4_DESTINATION: u32 = 14 + 16;
const V6_DESTINATION: u32 = 14 + 24;

const fn code(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// Skips `jf` instructions unless the word loaded last is `k`.
const fn unless(k: u32, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf, k }
}

/// Which frames pass by their length, Ethernet header included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lengths {
    Any,
    /// At most so many bytes.
    UpTo(u32),
    /// More than so many.
    Above(u32),
}

impl Lengths {
    /// What drops the others, and otherwise goes on behind its end.
    fn program(self) -> Vec<libc::sock_filter> {
        let (k, jt, jf) = match self {
            Lengths::Any => return Vec::new(),
            Lengths::UpTo(most) => (most, 0, 1),
            Lengths::Above(most) => (most, 1, 0),
        };
        let jump = libc::sock_filter { code: JUMP_IF_GREATER, jt, jf, k };
        vec![code(LOAD_LENGTH, 0), jump, DROP]
    }
}

/// The program for these addresses and lengths. Of very many addresses it tells none apart.
fn program(addresses: &[IpAddr], lengths: Lengths) -> Vec<libc::sock_filter> {
    let mut program = lengths.program();
    if addresses.len() > MAX_ADDRESSES {
        program.push(PASS);
        return program;
    }
    let type_is = |ether_type: EtherType, jf| unless(u32::from(ether_type.0), jf);
    program.extend([code(LOAD_HALF, 12), type_is(EtherType::ARP, 1), PASS]);
    let v4 = addresses.iter().filter_map(|address| match address {
        IpAddr::V4(v4) => Some(v4.to_bits()),
        IpAddr::V6(_) => None,
    });
    // Each part asks for its type again, so that no jump is longer than an instruction can say.
    for address in v4 {
        program.extend([code(LOAD_HALF, 12), type_is(EtherType::IPV4, 3)]);
        program.extend([code(LOAD_WORD, V4_DESTINATION), unless(address, 1), PASS]);
    }
    for address in addresses {
        let IpAddr::V6(v6) = address else { continue };
        for target in [*v6, solicited_node(*v6)] {
            program.extend([code(LOAD_HALF, 12), type_is(EtherType::IPV6, 9)]);
            let octets = target.octets();
            for ((place, word), left) in (0..).zip(octets.as_chunks::<4>().0).zip([7, 5, 3, 1]) {
                program.push(code(LOAD_WORD, V6_DESTINATION + 4 * place));
                program.push(unless(u32::from_be_bytes(*word), left));
            }
            program.push(PASS);
        }
    }
    program.push(DROP);
    program
}

/// Lets only ARP and what is for `addresses`, of these lengths, reach the packet socket `fd` from now on. Very many
/// addresses are not told apart from others.
pub(crate) fn attach(
    fd: BorrowedFd<'_>,
    addresses: &[IpAddr],
    lengths: Lengths,
) -> Result<(), Error> {
    let mut program = program(addresses, lengths);
    let len = libc::c_ushort::try_from(program.len()).unwrap_or(libc::c_ushort::MAX);
    let filter = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: pointer and length describe `filter`, which describes `program`; both outlive the
    // call, and the kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(Error::last("attaching a packet filter")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel does; loads beyond the frame drop it.
    fn passes(program: &[libc::sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let step = &program[at];
            let from = step.k as usize;
            at += 1;
            match step.code {
                LOAD_HALF => match frame.get(from..from + 2) {
                    Some(bytes) => accumulator = u32::from_be_bytes([0, 0, bytes[0], bytes[1]]),
                    None => return false,
                },
                LOAD_WORD => match frame.get(from..from + 4) {
                    Some(bytes) => accumulator = u32::from_be_bytes(bytes.try_into().unwrap()),
                    None => return false,
                },
                LOAD_LENGTH => accumulator = frame.len() as u32,
                JUMP_IF_GREATER => {
                    at += usize::from(if accumulator > step.k { step.jt } else { step.jf });
                }
                JUMP_IF_EQUAL => {
                    at += usize::from(if accumulator == step.k { step.jt } else { step.jf });
                }
                _ => return step.k != 0,
            }
        }
    }

    fn frame(ether_type: EtherType, destination: &str) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(ether_type.0.to_be_bytes());
        match destination.parse().unwrap() {
            IpAddr::V4(v4) => {
                frame.extend([0; 16]);
                frame.extend(v4.octets());
            }
            IpAddr::V6(v6) => {
                frame.extend([0; 24]);
                frame.extend(v6.octets());
            }
        }
        frame
    }

    #[test]
    fn only_what_is_ours_passes() {
        let addresses = ["10.77.1.101", "10.77.1.102", "fd77:1::101"].map(|a| a.parse().unwrap());
        let program = program(&addresses, Lengths::Any);
        for (ether_type, destination, ours) in [
            (EtherType::IPV4, "10.77.1.101", true),
            (EtherType::IPV4, "10.77.1.102", true),
            (EtherType::IPV4, "10.77.1.1", false),
            (EtherType::IPV6, "fd77:1::101", true),
            (EtherType::IPV6, "ff02::1:ff00:101", true),
            (EtherType::IPV6, "fd77:1::1", false),
            (EtherType::IPV6, "ff02::1:ff00:1", false),
            (EtherType::IPV6, "ff02::1", false),
            (EtherType::ARP, "10.77.1.1", true),
            (EtherType::VLAN, "10.77.1.101", false),
        ] {
            assert_eq!(passes(&program, &frame(ether_type, destination)), ours, "{destination}");
        }
        assert!(!passes(&program, &frame(EtherType::IPV4, "10.77.1.101")[..30]));
    }

    #[test]
    fn many_addresses_still_fit() {
        let addresses: Vec<IpAddr> = (0..180u16)
            .map(|n| std::net::Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, n).into())
            .collect();
        let whole = program(&addresses, Lengths::Above(10));
        assert!(whole.len() <= 4096);
        assert!(passes(&whole, &frame(EtherType::IPV6, "fd77::b3")));
        // One more, and all pass.
        let more = [addresses, vec!["10.77.1.1".parse().unwrap()]].concat();
        assert!(passes(&program(&more, Lengths::Any), &frame(EtherType::IPV4, "10.77.1.9")));
    }

    #[test]
    fn every_length_passes_one_of_two() {
        let addresses = ["10.77.1.101".parse().unwrap()];
        let [short, long] =
            [Lengths::UpTo(40), Lengths::Above(40)].map(|lengths| program(&addresses, lengths));
        for (bytes, is_short) in [(34, true), (40, true), (41, false), (60_000, false)] {
            let mut frame = frame(EtherType::IPV4, "10.77.1.101");
            frame.resize(bytes, 0);
            assert_eq!((passes(&short, &frame), passes(&long, &frame)), (is_short, !is_short));
        }
        assert!(!passes(&long, &[&frame(EtherType::IPV4, "10.77.1.1")[..], &[0; 99]].concat()));
    }
}
