//! How a gateway is made.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tcp::KeepAlive;
use tcpio::InterfaceAddress;

/// Where our TCP's packets come from and go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An address of the gateway's own on an Ethernet interface of this machine.
    Interface {
        /// The interface; the one whose network the address is in, if not given.
        name: Option<String>,
    },
    /// A TUN device, to which the administrator has packets routed.
    Tun {
        /// The device's name.
        name: String,
    },
    /// The machine's own address, of which one port (serve), or the answers of one server
    /// (connect), are taken from the kernel. IPv4 only.
    Redirect {
        /// The interface by which the packets come; that of the route, if not given.
        name: Option<String>,
    },
}

/// Bytes of what is to be sent that a connection may write ahead of its congestion window, and that are its
/// own whatever other connections hold.
const SEND_OWN: usize = 64 << 10;
/// Timeouts in a row after which a peer that acknowledges no data is given up: some 100 s with the least
/// timeout of 200 ms (RFC 9293 §3.8.3: at least that).
const RETRIES: u32 = 8;

/// What both sides are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// Where packets come from and go to.
    pub place: Place,
    /// The gateway's own address with the length of its network's prefix. With [`Place::Redirect`]
    /// none is taken.
    pub address: Option<InterfaceAddress>,
    /// The router to other networks; the kernel's, if not given.
    pub router: Option<IpAddr>,
    /// Where to serve the metrics, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// Connections at once, at most.
    pub max_connections: usize,
    /// How long open connections may go on after the end was asked for.
    pub drain: Duration,
    /// The longest that a handshake may take.
    pub handshake: Duration,
    /// A connection ends when nothing moves for this long, twice this at most.
    pub idle: Duration,
    /// When a silent peer is asked whether it is there, over our TCP and over the kernel's.
    pub keep_alive: KeepAlive,
    /// Bytes that all connections together may hold of what is to be sent, beside 64 KiB of each.
    pub send_memory: usize,
    /// The same of what was received, beside 128 KiB of each.
    pub receive_memory: usize,
    /// Whether paths that dropped data on a SYN are remembered, so that the next SYN goes without.
    pub remembers: bool,
    /// SYNs with data per second that are taken from addresses that are not validated; past that they
    /// are answered as ordinary ones (RFC 7413 §5.1).
    pub syn_data_rate: u32,
}

impl Common {
    /// The defaults at this place: 4096 connections, a drain of 30 s, handshakes of 10 s, 10 minutes
    /// without a byte, a peer that is gone found after 14 s, 256 MiB of memory each way, 500 SYNs with data
    /// per second.
    #[must_use]
    pub fn new(place: Place) -> Common {
        let usual = tcp::Config::default();
        Common {
            place,
            address: None,
            router: None,
            metrics: None,
            max_connections: 4096,
            drain: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(600),
            keep_alive: KeepAlive {
                idle: Duration::from_secs(8),
                interval: Duration::from_secs(2),
                probes: 3,
            },
            send_memory: usual.send_memory,
            receive_memory: usual.receive_memory,
            remembers: true,
            syn_data_rate: usual.unvalidated_rate,
        }
    }

    pub(crate) fn tcp(&self) -> tcp::Config {
        // Those at the limit are accepted and closed, so that the peer knows; handshakes under way,
        // of both kinds, are not yet connections.
        let handshakes = sslmtcp::ListenOptions::default().max_handshakes;
        let spare = self.max_connections / 8 + 64 + 2 * handshakes;
        let usual = tcp::Config::default();
        tcp::Config {
            max_connections: self.max_connections.saturating_add(spare),
            unvalidated_rate: self.syn_data_rate,
            // A buffer grows with the congestion window, and not for a peer that does not read.
            send_ahead: Some(SEND_OWN),
            send_initial: SEND_OWN,
            send_memory: self.send_memory,
            receive_memory: self.receive_memory,
            keep_alive: Some(self.keep_alive),
            retries: RETRIES,
            black_hole_memory: match self.remembers {
                true => usual.black_hole_memory,
                false => Duration::ZERO,
            },
            ..usual
        }
    }
}

/// `wiretax gateway serve`.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// What both sides are told.
    pub common: Common,
    /// Where peers come to. The address need not be the kernel's.
    pub listen: SocketAddr,
    /// The unmodified server.
    pub to: SocketAddr,
    /// With [`Place::Redirect`], the networks whose packets are taken from the kernel; all, if empty.
    pub allowed: Vec<InterfaceAddress>,
    /// Connections at once with one IPv4 address, or one IPv6 network of 64 bits, at most.
    pub max_per_source: usize,
    /// The TLS server that peers meet.
    pub tls: tls::Server,
    /// Whether each connection to the server begins with a line that names the peer: the PROXY
    /// protocol, version 1.
    pub proxy_protocol: bool,
}

/// `wiretax gateway connect`.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// What both sides are told.
    pub common: Common,
    /// Where the unmodified programs connect to.
    pub listen: SocketAddr,
    /// The other gateway, or any TLS server.
    pub to: SocketAddr,
    /// The TLS client that speaks to `to`.
    pub tls: tls::Client,
    /// How handshakes are carried.
    pub embedding: sslmtcp::Embedding,
    /// How long a program's first bytes are waited for, to go as early data.
    pub first_bytes: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::{LEAST, SCRATCH};
    use crate::serve::{KERNEL_RECEIVES, KERNEL_SENDS};

    /// TLS, a task and TCP's state of an idle connection, rounded up.
    const IDLE: usize = 36 << 10;
    /// Rings of packets.
    const RINGS: usize = 32 << 20;

    /// Bytes that a gateway takes at most, its kernel's sockets included: the sum in docs/security.md.
    fn most(common: &Common) -> usize {
        let tcp = common.tcp();
        let received = tcp.max_connections * 2 * tcp.receive_initial + tcp.receive_memory;
        let relay = LEAST + LEAST + SCRATCH;
        let kernel = 2 * (KERNEL_RECEIVES + KERNEL_SENDS);
        let each = tcp.send_initial + relay + kernel + IDLE;
        received + tcp.send_memory + common.max_connections * each + RINGS
    }

    #[test]
    fn the_units_allow_for_all_that_the_default_limits_do() {
        let most = most(&Common::new(Place::Interface { name: None }));
        for unit in [
            include_str!("../../../../packaging/wiretax-gateway-serve.service"),
            include_str!("../../../../packaging/wiretax-gateway-connect.service"),
        ] {
            let line = unit.lines().find_map(|line| line.strip_prefix("MemoryMax="));
            let allowed = line.and_then(|size| size.strip_suffix('G')).unwrap();
            let allowed = allowed.parse::<usize>().unwrap() << 30;
            assert!(most <= allowed, "{} MiB of {} MiB", most >> 20, allowed >> 20);
        }
    }

    /// As docs/gateway.md says.
    #[test]
    fn a_peer_that_is_gone_is_found_in_14_s() {
        let keep_alive = Common::new(Place::Interface { name: None }).tcp().keep_alive.unwrap();
        let found = keep_alive.idle + keep_alive.interval * keep_alive.probes;
        assert_eq!(found, Duration::from_secs(14));
    }
}
