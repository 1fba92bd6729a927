//! Kernel devices of a node's own, and existing ones that it adopts.

use std::net::IpAddr;
use std::os::fd::AsFd;

use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use rtnetlink::{LinkBridge, LinkDummy, LinkVlan, LinkVxlan};
use tokio::task::LocalSet;

use crate::address::Prefix;
use crate::node::Node;
use crate::{Error, enter, netlink, wiring};

/// What kind of device the kernel is to make.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// An Ethernet bridge without ports; see [`Node::add_bridge`].
    Bridge,
    /// A device that drops what it is given.
    Dummy,
    /// The frames of one VLAN of another device (IEEE 802.1Q).
    Vlan {
        /// The device that carries them.
        on: String,
        /// The VLAN's identifier, from 1 to 4094.
        id: u16,
    },
    /// Ethernet frames in UDP datagrams to one remote host (RFC 7348).
    Vxlan {
        /// The device that carries them; its MTU leaves 50 bytes less to this one, 70 over IPv6.
        on: String,
        /// The network's identifier, of 24 bits.
        id: u32,
        /// This host's address.
        local: IpAddr,
        /// The remote host's address, of the same family.
        remote: IpAddr,
        /// The UDP port of both; the protocol's own is 4789.
        port: u16,
    },
}

impl DeviceKind {
    /// The kernel's name of it.
    fn name(&self) -> &'static str {
        match self {
            DeviceKind::Bridge => "bridge",
            DeviceKind::Dummy => "dummy",
            DeviceKind::Vlan { .. } => "vlan",
            DeviceKind::Vxlan { .. } => "vxlan",
        }
    }

    /// What the kernel is asked for; in the node's namespace, where names are looked up.
    fn message(&self, name: &str) -> Result<LinkMessage, Error> {
        Ok(match self {
            DeviceKind::Bridge => LinkBridge::new(name).build(),
            DeviceKind::Dummy => LinkDummy::new(name).build(),
            DeviceKind::Vlan { on, id } => {
                LinkVlan::new(name, packet::interface_index(on)?, *id).build()
            }
            DeviceKind::Vxlan { on, id, local, remote, port } => {
                let device = LinkVxlan::new(name, *id).port(*port);
                let device = device.dev(packet::interface_index(on)?);
                let device = match local {
                    IpAddr::V4(address) => device.local(*address),
                    IpAddr::V6(address) => device.local6(*address),
                };
                match remote {
                    IpAddr::V4(address) => device.remote(*address),
                    IpAddr::V6(address) => device.remote6(*address),
                }
                .build()
            }
        })
    }
}

/// A network device of a node, as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The interface's name in the node's namespace.
    pub name: String,
    /// Its index in the node's namespace.
    pub index: u32,
    /// The kernel's name for its kind, such as `veth` or `bridge`; `None` for hardware and loopback.
    pub kind: Option<String>,
    /// Its address on its medium, usually of 6 bytes.
    pub mac: Vec<u8>,
    /// Bytes of the longest IP packet.
    pub mtu: u32,
    /// Whether it is set up.
    pub up: bool,
    /// Whether it has a carrier and can send.
    pub running: bool,
    /// The index of the bridge that it is a port of.
    pub bridge: Option<u32>,
}

impl From<LinkMessage> for Device {
    fn from(message: LinkMessage) -> Device {
        let flags = message.header.flags;
        let mut device = Device {
            name: String::new(),
            index: message.header.index,
            kind: None,
            mac: Vec::new(),
            mtu: 0,
            up: flags.contains(LinkFlags::Up),
            running: flags.contains(LinkFlags::Running),
            bridge: None,
        };
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => device.name = name,
                LinkAttribute::Mtu(mtu) => device.mtu = mtu,
                LinkAttribute::Address(mac) => device.mac = mac,
                LinkAttribute::Controller(index) => device.bridge = Some(index),
                LinkAttribute::LinkInfo(infos) => {
                    device.kind = infos.into_iter().find_map(|info| match info {
                        LinkInfo::Kind(kind) => Some(kind.to_string()),
                        _ => None,
                    });
                }
                _ => {}
            }
        }
        device
    }
}

impl Node {
    /// The node's network devices, loopback included, in the order of their indices.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn devices(&self) -> Result<Vec<Device>, Error> {
        let mut devices: Vec<Device> =
            self.netlink(netlink::links)?.into_iter().map(Device::from).collect();
        devices.sort_by_key(|device| device.index);
        Ok(devices)
    }

    /// Has the kernel make a device in the node's namespace, without addresses, and sets it up. It
    /// sends nothing of its own accord where the kernel lets one choose, and goes with the node.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the kernel has no such kind; [`Error::Netlink`] if it refuses, for
    /// one because the name is taken.
    pub fn add_device(&self, name: &str, kind: &DeviceKind) -> Result<Device, Error> {
        let (owned, wanted) = (name.to_owned(), kind.clone());
        let made = self.netlink(move |handle| async move {
            let message = wanted.message(&owned)?;
            netlink::create(&handle, &owned, message).await?;
            wiring::silence_ipv6(&owned, false);
            netlink::set_up(handle, owned, true).await
        });
        match made {
            Err(Error::Netlink { source, .. })
                if source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
            {
                Err(Error::Unsupported { node: self.name().to_owned(), what: kind.name() })
            }
            made => made.and_then(|()| self.device(name)),
        }
    }

    /// Adds a bridge with these devices of the node as its ports. Its ports forward at once: it runs
    /// no spanning tree. An end of a link that becomes a port should have no addresses, and the hosts
    /// behind it need ARP ([`crate::LinkOptions`]).
    ///
    /// # Errors
    /// As [`Node::add_device`]; [`Error::Packet`] if there is no device of a port's name.
    pub fn add_bridge(&self, name: &str, ports: &[&str]) -> Result<Device, Error> {
        let bridge = self.add_device(name, &DeviceKind::Bridge)?;
        let ports: Vec<String> = ports.iter().map(|port| (*port).to_owned()).collect();
        let index = bridge.index;
        self.netlink(move |handle| async move {
            for port in ports {
                netlink::join_bridge(&handle, &port, index).await?;
            }
            Ok(())
        })?;
        self.device(name)
    }

    /// Removes a device.
    ///
    /// # Errors
    /// [`Error::Packet`] if there is none of this name; [`Error::Netlink`] if the kernel keeps it.
    pub fn remove_device(&self, name: &str) -> Result<(), Error> {
        let name = name.to_owned();
        self.netlink(move |handle| netlink::remove(handle, name))
    }

    /// Adds an address to a device. It can be used at once.
    ///
    /// # Errors
    /// [`Error::Packet`] if there is no device of this name; [`Error::Netlink`].
    pub fn add_address(&self, device: &str, address: Prefix) -> Result<(), Error> {
        let device = device.to_owned();
        self.netlink(move |handle| netlink::add_address_to(handle, device, address))
    }

    /// Takes a device out of the network that the program was started in, and sets it up in the node
    /// under its name, without the addresses that it had. When the lab ends it goes back, down and
    /// without addresses. If the program is killed, the kernel decides: a device of hardware goes to
    /// the machine's first network namespace, one that the kernel made is gone.
    ///
    /// # Errors
    /// [`Error::NoRights`] where the program is not root outside of the lab; [`Error::Packet`] if
    /// there is no such device; [`Error::Netlink`] if it cannot be moved, as a loopback device.
    pub fn adopt(&self, interface: &str) -> Result<Device, Error> {
        let outer = enter::outer_network()
            .ok_or_else(|| Error::NoRights { interface: interface.to_owned() })?;
        let (namespace, name) = (self.namespace_for_move()?, interface.to_owned());
        in_namespace(outer, move |handle| async move {
            netlink::move_to(&handle, &name, &namespace).await
        })?;
        self.note_adopted(interface);
        let name = interface.to_owned();
        self.netlink(move |handle| async move {
            wiring::silence_ipv6(&name, false);
            netlink::set_up(handle, name, true).await
        })?;
        self.device(interface)
    }

    /// Gives the devices back that the node has adopted.
    pub(crate) fn give_back(&self) {
        for name in self.take_adopted() {
            let Some(outer) = enter::outer_network() else { continue };
            let back = self.netlink({
                let name = name.clone();
                move |handle| async move { netlink::move_to(&handle, &name, outer).await }
            });
            if let Err(error) = back {
                tracing::warn!(interface = name, %error, "an adopted device was not given back");
            }
        }
    }

    fn device(&self, name: &str) -> Result<Device, Error> {
        let name = name.to_owned();
        let message = self.netlink(move |handle| async move {
            let index = packet::interface_index(&name)?;
            netlink::link(&handle, index).await
        });
        message.map(Device::from)
    }
}

/// Runs a netlink exchange in another network namespace, on a thread that ends with it.
pub(crate) fn in_namespace<T, F>(
    namespace: impl AsFd + Send + 'static,
    work: impl FnOnce(rtnetlink::Handle) -> F + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + 'static,
{
    on_thread_in(namespace, move || {
        let failed = |source| Error::Netlink { doing: "making a runtime".to_owned(), source };
        let runtime = crate::node::runtime().map_err(failed)?;
        LocalSet::new().block_on(&runtime, netlink::with(work))
    })
}

/// Does something in another network namespace, on a thread that ends with it.
pub(crate) fn on_thread_in<T: Send + 'static>(
    namespace: impl AsFd + Send + 'static,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let entered = move || {
        let network = rustix::thread::LinkNameSpaceType::Network;
        rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(network)).map_err(
            |errno| Error::Netlink {
                doing: "entering the network outside of the lab".to_owned(),
                source: errno.into(),
            },
        )?;
        work()
    };
    let thread = std::thread::Builder::new().name("outside".to_owned());
    let ended = thread.spawn(entered).map_err(Error::Thread)?.join();
    ended.unwrap_or_else(|_| Err(Error::NodeStopped { node: "outside".to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_what_the_kernel_says_of_it() {
        let mut message = LinkMessage::default();
        message.header.index = 4;
        message.header.flags = LinkFlags::Up | LinkFlags::Broadcast;
        message.attributes = vec![
            LinkAttribute::IfName("br0".to_owned()),
            LinkAttribute::Mtu(9000),
            LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]),
            LinkAttribute::Controller(3),
        ];
        let device = Device::from(message);
        assert_eq!((device.name.as_str(), device.index, device.mtu), ("br0", 4, 9000));
        assert!(device.up && !device.running);
        assert_eq!((device.bridge, device.kind), (Some(3), None));
    }
}
