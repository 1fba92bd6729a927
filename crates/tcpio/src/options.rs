//! How a stack is opened.

use std::net::IpAddr;
use std::time::Duration;

use wire::ethernet::Address;

use crate::InterfaceAddress;

/// An Ethernet address.
pub type MacAddr = Address;

/// Where a stack's packets come from and go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceOptions {
    /// An Ethernet interface of the network namespace in which the stack is opened, by AF_PACKET
    /// (needs CAP_NET_RAW there). The kernel goes on using it with its own addresses.
    Interface {
        /// The interface's name in that namespace.
        name: String,
        /// Received frames may be super-segments of up to 64 KiB. Without it, segmentation and
        /// joining of segments (tso, gso, gro) must be off at this interface and at the other end
        /// of a veth pair, or what comes in longer than the MTU is lost.
        vnet_header: bool,
    },
    /// A TUN device: made, or attached to if it is there (needs /dev/net/tun, and CAP_NET_ADMIN
    /// or a device that is the user's). The kernel routes what is for the stack's network to it.
    Tun {
        /// Its name; `%d` in it becomes a free number.
        name: String,
        /// Packets carry a `virtio_net_hdr`: super-segments of up to 64 KiB both ways.
        vnet_header: bool,
        /// Addresses that the kernel's side of the device is given (needs CAP_NET_ADMIN), in the
        /// stack's networks; the device is brought up in any case.
        kernel_addresses: Vec<InterfaceAddress>,
    },
}

/// How a stack is opened.
#[derive(Debug, Clone)]
pub struct StackOptions {
    /// Where packets come from and go to.
    pub device: DeviceOptions,
    /// The stack's addresses, at least one; none that the kernel or another host has.
    pub addresses: Vec<InterfaceAddress>,
    /// Routers to other networks: at most one per address family.
    pub gateways: Vec<IpAddr>,
    /// Neighbours that need not be asked for.
    pub neighbours: Vec<(IpAddr, MacAddr)>,
    /// TCP's configuration. The MTU is lowered to the device's, and the longest super-segment set
    /// to what the device takes.
    pub tcp: tcp::Config,
    /// The secret that sequence numbers, ports and cookies come from; `None` for one from the
    /// operating system. Fixed in tests only.
    pub seed: Option<[u8; 32]>,
    /// How long to look for packets without sleeping after the last one: saves the wake-up, some
    /// 20 us a packet, at the price of a processor. Zero: not at all.
    pub spin: Duration,
    /// How long [`crate::Stack::shutdown`] waits for connections to end before it resets them.
    pub linger: Duration,
}

impl StackOptions {
    /// A stack on `device` with `addresses`, and the defaults for everything else.
    #[must_use]
    pub fn new(device: DeviceOptions, addresses: Vec<InterfaceAddress>) -> Self {
        StackOptions {
            device,
            addresses,
            gateways: Vec::new(),
            neighbours: Vec::new(),
            tcp: tcp::Config::default(),
            seed: None,
            spin: Duration::ZERO,
            linger: Duration::from_secs(2),
        }
    }
}
