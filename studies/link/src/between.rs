//! What lies between two interfaces of this machine: a switch, a gateway, a cable.

use std::fs;
use std::net::Ipv4Addr;

use fault::{Fault, Problem};
use tester::{Addressing, Port, Tester, Waiting};
use wire::ethernet::Address;

/// The addresses that are set aside for such tests (RFC 2544 Appendix C.2.2).
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1)];

/// A tester on two interfaces of this process's network namespace. Frames go from the Ethernet address of one to
/// that of the other. `longest`: bytes of the longest frame.
///
/// # Errors
/// There is no such interface, or raw sockets are not permitted.
pub(crate) fn open(interfaces: &[String; 2], longest: u32) -> Result<Tester, Problem> {
    let [first, second] = interfaces;
    if first == second {
        let problem = Problem::new(Fault::Caller, format!("`{first}` is one interface, not two"));
        return Err(problem.with_remedy("give the two that the traffic is to go between"));
    }
    let macs = [address(first)?, address(second)?];
    let port = |own: usize, other: usize| -> Result<Port, Problem> {
        let addressing = Addressing {
            source: macs[own],
            destination: macs[other],
            vlan: None,
            from: ADDRESSES[own],
            to: ADDRESSES[other],
        };
        Ok(Port::open(&interfaces[own], addressing, longest)?)
    };
    Ok(Tester::new([port(0, 1)?, port(1, 0)?], longest as usize, Waiting::here()))
}

/// An interface's Ethernet address, as the kernel says it.
fn address(interface: &str) -> Result<Address, Problem> {
    let missing = || {
        let what = format!("there is no Ethernet interface `{interface}` here");
        Problem::new(Fault::Caller, what).with_remedy("`ip link` lists those that there are")
    };
    if interface.is_empty() || interface.contains(['/', '.']) {
        return Err(missing());
    }
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/address"));
    let text = text.map_err(|_| missing())?;
    let octets: Option<Vec<u8>> =
        text.trim().split(':').map(|octet| u8::from_str_radix(octet, 16).ok()).collect();
    let octets = octets.and_then(|octets| <[u8; 6]>::try_from(octets).ok());
    octets.map(Address).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_interface_is_the_callers_fault() {
        for name in ["", "no-such-one", "../../etc", "a.b"] {
            assert_eq!(address(name).unwrap_err().fault(), Fault::Caller, "{name}");
        }
        let twice = ["lo".to_owned(), "lo".to_owned()];
        assert_eq!(open(&twice, 2048).unwrap_err().fault(), Fault::Caller);
    }
}
