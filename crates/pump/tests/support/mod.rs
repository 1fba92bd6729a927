//! Two nodes in namespaces of their own, joined to the hub by veth pairs or TAP devices, for tests
//! and benches of the pump. The laboratory has its own, with addresses and routes; here frames do.

#![allow(dead_code, reason = "each program that includes this uses a part of it")]

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;

use lab_test::{Need, skip};
use packet::{PacketSocket, RingOptions, RxRing, SocketOptions, Tap, interface_index, offload};
use pump::Port;
use rtnetlink::{LinkUnspec, LinkVeth};

/// More than the pump carries, so that a frame can be too long for it.
const MTU: u32 = 9000;

pub use lab_test::TestResult as Result;

/// IEEE 802 Local Experimental EtherType 1, which no stack understands.
pub const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// How the nodes are joined to the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Veth,
    Tap,
}

/// One node: a raw socket on its only interface, and the port at the hub's side.
pub struct Node {
    pub socket: PacketSocket,
    pub port: Port,
    /// The node's network namespace, kept alive.
    pub namespace: File,
    pub interface: String,
}

/// Makes the calling, single-threaded process root of new user and network namespaces; only of a
/// network namespace if it is root already.
pub fn enter() -> Result<()> {
    // SAFETY: no memory is passed.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let flags = if uid == 0 { 0 } else { libc::CLONE_NEWUSER };
    unshare(flags | libc::CLONE_NEWNET)?;
    if uid != 0 {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    }
    quiet()
}

fn unshare(flags: libc::c_int) -> Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::unshare(flags) } {
        0 => Ok(()),
        _ => skip(Need::Lab, format!("no namespaces: {}", std::io::Error::last_os_error())),
    }
}

/// Keeps the stack of the calling thread's namespace from sending of its own accord.
fn quiet() -> Result<()> {
    for which in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        match fs::write(path, "1") {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Runs `work` on a thread in `namespace`.
pub fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // SAFETY: no memory is passed; the descriptor is open.
            if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            work()
        });
        worker.join().map_err(|_| "the thread in a namespace panicked")?
    })
}

fn new_namespace() -> Result<File> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            unshare(libc::CLONE_NEWNET)?;
            quiet()?;
            Ok(File::open("/proc/thread-self/ns/net")?)
        });
        worker.join().map_err(|_| "the thread in a namespace panicked")?
    })
}

/// Runs one netlink request in the calling thread's namespace.
fn netlink<F>(work: impl FnOnce(rtnetlink::Handle) -> F) -> Result<()>
where
    F: Future<Output = std::result::Result<(), rtnetlink::Error>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        let task = tokio::spawn(connection);
        let result = work(handle).await;
        task.abort();
        Ok(result?)
    })
}

fn up(interface: &str) -> Result<()> {
    let message = LinkUnspec::new_with_name(interface).up().mtu(MTU).txqueuelen(10_000).build();
    netlink(|handle| async move { handle.link().set(message).execute().await })
}

fn socket_on(interface: &str, offload: bool) -> Result<PacketSocket> {
    let options = SocketOptions {
        send_buffer: Some(4 << 20),
        vnet_header: offload,
        ..SocketOptions::default()
    };
    Ok(PacketSocket::open(interface_index(interface)?, &options)?)
}

impl Node {
    /// A node of the hub, which is the calling thread's namespace. `name` has at most 13 bytes.
    pub fn new(kind: Kind, name: &str, offload: bool) -> Result<Node> {
        let namespace = new_namespace()?;
        match kind {
            Kind::Veth => Node::veth(namespace, name, offload),
            Kind::Tap => Node::tap(namespace, name, offload),
        }
    }

    fn veth(namespace: File, name: &str, offload: bool) -> Result<Node> {
        let (hub, node) = (format!("h-{name}"), format!("n-{name}"));
        let pair = LinkVeth::new(&hub, &node).build();
        netlink(|handle| async move { handle.link().add(pair).execute().await })?;
        if !offload {
            offload::disable(&hub)?;
        }
        let fd = namespace.as_fd().as_raw_fd();
        let moved = LinkUnspec::new_with_name(&node).setns_by_fd(fd).build();
        netlink(|handle| async move { handle.link().set(moved).execute().await })?;
        up(&hub)?;
        let socket = inside(&namespace, || {
            if !offload {
                offload::disable(&node)?;
            }
            up(&node)?;
            socket_on(&node, offload)
        })?;
        let port = Port::Packet { interface: interface_index(&hub)? };
        Ok(Node { socket, port, namespace, interface: node })
    }

    /// A receive ring on the node's interface, for tests that must not lose frames.
    pub fn ring(&self) -> Result<RxRing> {
        inside(&self.namespace, || {
            let ring = RingOptions { frames: 4096, frame_bytes: 9100 };
            let index = interface_index(&self.interface)?;
            Ok(RxRing::open(index, &SocketOptions::default(), ring)?)
        })
    }

    /// Gives the node's interface an IPv4 address of a /24 network.
    pub fn address(&self, address: Ipv4Addr) -> Result<()> {
        inside(&self.namespace, || {
            let index = interface_index(&self.interface)?;
            netlink(|handle| async move {
                handle.address().add(index, address.into(), 24).execute().await
            })
        })
    }

    fn tap(namespace: File, name: &str, offload: bool) -> Result<Node> {
        let name = format!("t-{name}");
        let (socket, tap) = inside(&namespace, || {
            let tap =
                if offload { Tap::create_with_vnet_header(&name) } else { Tap::create(&name) };
            let tap = match tap {
                Err(error @ packet::Error::NoTun { .. }) => {
                    return skip(Need::Tap, error.to_string());
                }
                tap => tap?,
            };
            up(&name)?;
            Ok((socket_on(&name, offload)?, OwnedFd::from(tap)))
        })?;
        Ok(Node { socket, port: Port::Tap(tap), namespace, interface: name })
    }
}

/// The two ends of a veth pair in the calling thread's namespace, as ports.
pub fn pair(one: &str, other: &str) -> Result<(Port, Port)> {
    let pair = LinkVeth::new(one, other).build();
    netlink(|handle| async move { handle.link().add(pair).execute().await })?;
    let port = |name| -> Result<Port> {
        offload::disable(name)?;
        up(name)?;
        Ok(Port::Packet { interface: interface_index(name)? })
    };
    Ok((port(one)?, port(other)?))
}

/// Removes an interface of the calling thread's namespace.
pub fn remove(interface: &str) -> Result<()> {
    let index = interface_index(interface)?;
    netlink(|handle| async move { handle.link().del(index).execute().await })
}

/// A frame of `len` bytes with a number in it.
pub fn frame(number: u64, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len.max(22)];
    frame[..6].copy_from_slice(&[0x02, 0, 0, 0, 0, 2]);
    frame[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&ETHER_TYPE);
    frame[14..22].copy_from_slice(&number.to_be_bytes());
    frame
}

/// The number in a frame of [`frame`]; `None` for others.
pub fn number(bytes: &[u8]) -> Option<u64> {
    (bytes.get(12..14)? == ETHER_TYPE).then_some(())?;
    bytes.get(14..22)?.try_into().ok().map(u64::from_be_bytes)
}

/// An Ethernet frame with a SYN that carries `data`, over IPv4.
pub fn syn(data: &[u8]) -> Result<Vec<u8>> {
    let (source, destination) = ([10, 77, 0, 1].into(), [10, 77, 0, 2].into());
    let segment = wire::tcp::Repr {
        source_port: 50_000,
        destination_port: 443,
        flags: wire::tcp::Flags::SYN,
        ..wire::tcp::Repr::default()
    };
    let ip = wire::ipv4::Repr {
        source,
        destination,
        protocol: wire::tcp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: segment.buffer_len(data.len()),
    };
    let link = wire::ethernet::Repr {
        source: wire::ethernet::Address([2; 6]),
        destination: wire::ethernet::Address([0xff; 6]),
        ether_type: wire::ethernet::EtherType::IPV4,
    };
    let mut frame = vec![0; 34 + ip.payload_len];
    link.emit(&mut frame)?;
    ip.emit(&mut frame[14..])?;
    segment.emit(source.into(), destination.into(), data, &mut frame[34..])?;
    Ok(frame)
}
