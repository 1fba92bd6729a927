//! DHCP servers: dnsmasq.

use std::net::Ipv4Addr;
use std::time::Duration;

use handoff::Source;
use lab::{Node, Program, Ready};

use crate::{Daemon, Error};

/// DHCP's port at a server (RFC 2131 §4.1).
const SERVER_PORT: u16 = 67;

/// A DHCP server for the network of an interface, of 24 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The node's interface that it listens on.
    pub interface: String,
    /// The first address that it gives.
    pub first: Ipv4Addr,
    /// The last address that it gives.
    pub last: Ipv4Addr,
    /// The router that it names.
    pub router: Ipv4Addr,
    /// Addresses that it keeps for clients, by their Ethernet addresses.
    pub reserved: Vec<(String, Ipv4Addr)>,
    /// Whether it answers at once where a client asks for it (RFC 4039).
    pub rapid_commit: bool,
}

impl Server {
    fn file(&self) -> String {
        let Server { interface, first, last, router, reserved, rapid_commit } = self;
        let rapid = if *rapid_commit { "dhcp-rapid-commit\n" } else { "" };
        let reserved = reserved.iter().map(|(mac, address)| format!("dhcp-host={mac},{address}\n"));
        let reserved: String = reserved.collect();
        // It looks for nobody at an address before it gives it: the client does (RFC 2131 §2.2 has both).
        format!(
            "port=0\nuser=root\ninterface={interface}\nexcept-interface=lo\nbind-interfaces\nno-resolv\nno-hosts\n\
             no-ping\ndhcp-authoritative\ndhcp-range={first},{last},255.255.255.0,1h\n\
             dhcp-option=option:router,{router}\ndhcp-leasefile=/run/leases\npid-file=/run/dnsmasq.pid\n\
             log-facility=-\nlog-dhcp\n{reserved}{rapid}"
        )
    }

    /// Starts it on a node.
    ///
    /// # Errors
    /// [`Error::Lab`] with its last lines.
    pub fn start(&self, node: &Node) -> Result<Daemon, Error> {
        let program = Program::new("dnsmasq")
            .args(["--keep-in-foreground", "--conf-file=/run/dnsmasq.conf"])
            .run_file("dnsmasq.conf", self.file())
            .ready_when(Ready::Udp(SERVER_PORT), Duration::from_secs(20));
        Daemon::start(node, "dnsmasq", &program, Source::Dhcp, |_| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gives_addresses_and_a_router() {
        let server = Server {
            interface: "site".to_owned(),
            first: Ipv4Addr::new(10, 50, 1, 100),
            last: Ipv4Addr::new(10, 50, 1, 199),
            router: Ipv4Addr::new(10, 50, 1, 1),
            reserved: vec![("02:00:00:00:02:00".to_owned(), Ipv4Addr::new(10, 50, 1, 101))],
            rapid_commit: true,
        };
        let file = server.file();
        for line in [
            "interface=site",
            "dhcp-range=10.50.1.100,10.50.1.199,255.255.255.0,1h",
            "dhcp-option=option:router,10.50.1.1",
            "dhcp-host=02:00:00:00:02:00,10.50.1.101",
            "dhcp-rapid-commit",
        ] {
            assert!(file.lines().any(|has| has == line), "{line} in {file}");
        }
        let plain = Server { rapid_commit: false, ..server };
        assert!(!plain.file().contains("rapid"));
    }
}
