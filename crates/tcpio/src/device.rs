//! Where packets come from and go to: an Ethernet interface by AF_PACKET, or a TUN device.
//!
//! Frames are received from a ring in memory shared with the kernel, and sent in batches by
//! `sendmmsg` on a second socket, whose frames carry a `virtio_net_hdr`: TCP hands over segments of
//! up to 64 KiB, and the kernel cuts them to the path's size, in software if the interface has
//! segmentation off. One frame by one message costs half as much again.
//!
//! A transmit ring (PACKET_TX_RING) is no choice on veth: the pair hands the pages of the ring on to
//! the receiver and gives the slot back at once, so that we would write into frames that are still
//! under way. Sent frames pass the queueing discipline, unlike the link pump's: the kernel cuts
//! super-segments only there, and captures see what passes there.

use std::io;
use std::mem;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use packet::vnet::{self, Segmentation};
use packet::{PacketSocket, SocketOptions, Tun};
use tcp::Checksum;
use wire::ethernet::{self, Address, EtherType};

use crate::interface::{self, Interface};
use crate::options::DeviceOptions;
use crate::outbox::Outbox;
use crate::rings::Rings;
use crate::{Error, InterfaceAddress};

/// The longest IP packet, super-segments included.
pub(crate) const MAX_PACKET: usize = 65_535;
/// Bytes of send buffer that we ask for: some super-segments. The kernel caps it.
const SEND_BUFFER: u32 = 4 << 20;

/// An IP packet that has come in, or an ARP packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'f> {
    /// What it is.
    pub(crate) ether_type: EtherType,
    /// Who on the link sent it; zero from TUN.
    pub(crate) source: Address,
    /// The packet, and perhaps padding.
    pub(crate) packet: &'f [u8],
    /// Whether its transport checksum need not be looked at.
    pub(crate) checksum: Checksum,
}

#[derive(Debug)]
pub(crate) enum Device {
    Packet {
        rings: Rings,
        /// To send from; receives nothing.
        sender: PacketSocket,
        /// Whether received frames carry a `virtio_net_hdr`.
        vnet: bool,
    },
    Tun {
        tun: Tun,
        vnet: bool,
        buffer: Box<[u8]>,
        ready: bool,
    },
}

/// A device and what there is to know of it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) device: Device,
    pub(crate) outbox: Outbox,
    /// The interface's Ethernet address; none has TUN.
    pub(crate) link: Option<Address>,
    pub(crate) mtu: u16,
    /// Whether super-segments pass.
    pub(crate) super_segments: bool,
}

/// What became of one look for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// No packet waits.
    Nothing,
    /// One was handed over.
    Packet,
    /// One was longer than the ring's places.
    TooLong,
    /// One was no IP packet, or carried a VLAN tag.
    Unusable,
}

impl Device {
    /// Opens a device in the calling thread's network namespace.
    pub(crate) fn open(
        options: &DeviceOptions,
        addresses: &[InterfaceAddress],
    ) -> Result<Opened, Error> {
        match options {
            DeviceOptions::Interface { name, vnet_header } => {
                let interface = interface::ethernet(name)?;
                if let Some(owned) = interface::kernel_owner(addresses)? {
                    return Err(owned);
                }
                Self::open_packet(interface, *vnet_header, addresses)
            }
            DeviceOptions::Tun { name, vnet_header, kernel_addresses } => {
                Self::open_tun(name, *vnet_header, kernel_addresses)
            }
        }
    }

    fn open_packet(
        interface: Interface,
        vnet: bool,
        addresses: &[InterfaceAddress],
    ) -> Result<Opened, Error> {
        let ours: Vec<IpAddr> = addresses.iter().map(InterfaceAddress::address).collect();
        let rings = Rings::open(&interface, vnet, &ours)?;
        join_groups(rings.socket(), interface.index, &ours)?;
        let sender = open_sender(interface.index)?;
        Ok(Opened {
            outbox: Outbox::new(true, Some(interface.link), interface.mtu),
            device: Device::Packet { rings, sender, vnet },
            link: Some(interface.link),
            mtu: interface.mtu,
            super_segments: true,
        })
    }

    fn open_tun(
        name: &str,
        vnet: bool,
        kernel_addresses: &[InterfaceAddress],
    ) -> Result<Opened, Error> {
        let tun = match vnet {
            false => Tun::create(name)?,
            true => Tun::create_with_vnet_header(name)?,
        };
        interface::raise(tun.name(), kernel_addresses)?;
        let mtu = interface::mtu_of(tun.name())?;
        let buffer = vec![0; MAX_PACKET + vnet::HEADER_LEN].into_boxed_slice();
        Ok(Opened {
            outbox: Outbox::new(vnet, None, mtu),
            device: Device::Tun { tun, vnet, buffer, ready: true },
            link: None,
            mtu,
            super_segments: vnet,
        })
    }

    /// Descriptors of which one becomes readable when packets wait, and one that becomes writable when there is room
    /// to send, for a reactor that outlives the device.
    pub(crate) fn duplicate(&self) -> io::Result<(Vec<OwnedFd>, OwnedFd)> {
        let readable = match self {
            Device::Packet { rings, .. } => rings.duplicate()?,
            Device::Tun { tun, .. } => vec![tun.as_fd().try_clone_to_owned()?],
        };
        Ok((readable, self.sender().try_clone_to_owned()?))
    }

    /// Where frames are sent.
    pub(crate) fn sender(&self) -> BorrowedFd<'_> {
        match self {
            Device::Packet { sender, .. } => sender.as_fd(),
            Device::Tun { tun, .. } => tun.as_fd(),
        }
    }

    /// Whether a packet waits, as far as can be told without a system call.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Device::Packet { rings, .. } => rings.is_ready(),
            Device::Tun { ready, .. } => *ready,
        }
    }

    /// A reactor has found the device readable.
    pub(crate) fn set_readable(&mut self) {
        if let Device::Tun { ready, .. } = self {
            *ready = true;
        }
    }

    /// Takes the error that a socket keeps, such as the interface having gone down.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        match self {
            Device::Packet { rings, .. } => rings.take_error(),
            Device::Tun { .. } => None,
        }
    }

    /// Frames that were lost since there was no room for them; none if that is not known.
    pub(crate) fn lost(&mut self) -> u64 {
        match self {
            Device::Packet { rings, .. } => rings.lost().unwrap_or_default(),
            Device::Tun { .. } => 0,
        }
    }

    /// Hands the oldest packet that waits to `each`. Never waits.
    pub(crate) fn receive(&mut self, each: impl FnOnce(Received<'_>)) -> Taken {
        match self {
            Device::Packet { rings, vnet, .. } => {
                let Some(frame) = rings.receive() else { return Taken::Nothing };
                if frame.bytes().len() < frame.original_len() {
                    // With super-segments it came before the rings' filters were there.
                    return if *vnet { Taken::Unusable } else { Taken::TooLong };
                }
                if frame.vlan().is_some() {
                    return Taken::Unusable;
                }
                let checksum = match vnet {
                    true => trust(frame.bytes_with_vnet_header()),
                    // It comes from this machine's kernel, which left it to a device.
                    false if frame.checksum_unfinished() => Checksum::Trusted,
                    false => Checksum::Verify,
                };
                let Ok(view) = ethernet::Frame::new_checked(frame.bytes()) else {
                    return Taken::Unusable;
                };
                each(Received {
                    ether_type: view.ether_type(),
                    source: view.source(),
                    packet: view.payload(),
                    checksum,
                });
                Taken::Packet
            }
            Device::Tun { tun, vnet, buffer, ready } => {
                let Ok(Some(len)) = packet::receive(tun.as_fd(), buffer) else {
                    *ready = false;
                    return Taken::Nothing;
                };
                let bytes = buffer.get(..len).unwrap_or_default();
                let checksum = if *vnet { trust(bytes) } else { Checksum::Verify };
                let skipped = if *vnet { vnet::HEADER_LEN } else { 0 };
                let packet = bytes.get(skipped..).unwrap_or_default();
                let ether_type = match packet.first().map(|byte| byte >> 4) {
                    Some(4) => EtherType::IPV4,
                    Some(6) => EtherType::IPV6,
                    _ => return Taken::Unusable,
                };
                each(Received { ether_type, source: Address::default(), packet, checksum });
                Taken::Packet
            }
        }
    }
}

/// Whether the `virtio_net_hdr` before a frame says that its checksum is right, or not yet made.
fn trust(bytes: &[u8]) -> Checksum {
    let Some(header) = bytes.first_chunk::<{ vnet::HEADER_LEN }>() else { return Checksum::Verify };
    let header = vnet::Header::parse(header);
    let joined = header.segmentation != Segmentation::None;
    match header.checksum.is_some() || header.checksum_valid || joined {
        true => Checksum::Trusted,
        false => Checksum::Verify,
    }
}

/// A socket to send from on the interface with this index. It receives nothing.
fn open_sender(index: u32) -> Result<PacketSocket, Error> {
    let options = SocketOptions {
        qdisc_bypass: false,
        vnet_header: true,
        send_buffer: Some(SEND_BUFFER),
        ..SocketOptions::default()
    };
    let socket = PacketSocket::new(&options)?;
    // SAFETY: `sockaddr_ll` is a C struct of integers; all zeroes is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    // packet(7): bound to protocol 0, nothing is received.
    address.sll_protocol = 0;
    address.sll_ifindex = libc::c_int::try_from(index).unwrap_or(libc::c_int::MAX);
    // SAFETY: pointer and length describe `address`, which outlives the call.
    let result = unsafe {
        libc::bind(
            socket.as_fd().as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(socket) } else { Err(Error::last("binding a packet socket")) }
}

/// Lets the groups through a network card's filter in which our IPv6 addresses are solicited.
fn join_groups(socket: &PacketSocket, index: u32, addresses: &[IpAddr]) -> Result<(), Error> {
    for address in addresses {
        let IpAddr::V6(address) = address else { continue };
        let group = wire::icmpv6::multicast_link(wire::icmpv6::solicited_node(*address));
        let [a, b, c, d, e, f] = group.0;
        let request = libc::packet_mreq {
            mr_ifindex: libc::c_int::try_from(index).unwrap_or(libc::c_int::MAX),
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: [a, b, c, d, e, f, 0, 0],
        };
        // SAFETY: pointer and length describe `request`, which outlives the call.
        let result = unsafe {
            libc::setsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        };
        if result != 0 {
            return Err(Error::last("joining a multicast group"));
        }
    }
    Ok(())
}
