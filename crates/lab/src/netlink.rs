//! What the lab asks of the kernel by route netlink. Everything acts in the network namespace of
//! the thread that it runs on.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rtnetlink::packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags};
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rtnetlink::{Handle, LinkUnspec, LinkVeth, RouteMessageBuilder};

use crate::Error;
use crate::address::Prefix;
use crate::link::End;
use crate::options::LinkOptions;

/// The longest that an exchange with the kernel may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// A TAP device's queue towards its reader, in frames. The kernel's 1000 would lose the first
/// burst that the pump is late for.
const TAP_QUEUE: u32 = 8192;

/// Attribute numbers of linux/rtnetlink.h.
const TCA_OPTIONS: u16 = 2;

/// Opens a connection to the kernel, runs `work` with it, and closes it. Within a `LocalSet`.
pub(crate) async fn with<T, F>(work: impl FnOnce(Handle) -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let failed = |source| Error::Netlink { doing: "opening a netlink socket".to_owned(), source };
    let (connection, handle, _messages) = rtnetlink::new_connection().map_err(failed)?;
    let connection = tokio::task::spawn_local(connection);
    let result = work(handle).await;
    connection.abort();
    result
}

/// The kernel's answer as an error of `doing`.
fn refused(doing: impl Into<String>, error: rtnetlink::Error) -> Error {
    let source = match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    };
    Error::Netlink { doing: doing.into(), source }
}

/// Makes a veth pair.
pub(crate) async fn create_veth(
    handle: &Handle,
    name: &str,
    peer: &str,
    mtu: u32,
) -> Result<(), Error> {
    let request = handle.link().add(LinkVeth::new(name, peer).mtu(mtu).build());
    let doing = || format!("making the veth pair {name} and {peer}");
    request.execute().await.map_err(|e| refused(doing(), e))
}

/// Makes a veth pair whose peer is in another namespace from the beginning.
pub(crate) async fn create_veth_to(
    handle: &Handle,
    name: &str,
    peer: &str,
    namespace: &OwnedFd,
    mtu: u32,
) -> Result<(), Error> {
    let peer_end = LinkUnspec::new_with_name(peer).setns_by_fd(namespace.as_raw_fd()).build();
    let pair = LinkVeth::new(name, peer).set_info_data(InfoData::Veth(InfoVeth::Peer(peer_end)));
    let doing = || format!("making the veth pair {name} and {peer}");
    handle.link().add(pair.mtu(mtu).build()).execute().await.map_err(|e| refused(doing(), e))
}

/// Moves an interface to another namespace.
pub(crate) async fn move_to(handle: &Handle, name: &str, namespace: &OwnedFd) -> Result<(), Error> {
    let index = packet::interface_index(name)?;
    let message = LinkUnspec::new_with_index(index).setns_by_fd(namespace.as_raw_fd()).build();
    let doing = || format!("moving {name} to another network namespace");
    handle.link().set(message).execute().await.map_err(|e| refused(doing(), e))
}

/// Renames an interface that is down.
pub(crate) async fn rename(handle: &Handle, name: &str, new_name: &str) -> Result<(), Error> {
    let index = packet::interface_index(name)?;
    let message = LinkUnspec::new_with_index(index).name(new_name).build();
    let doing = || format!("renaming {name} to {new_name}");
    handle.link().set(message).execute().await.map_err(|e| refused(doing(), e))
}

/// Sets the end that the pump holds up. It has no address and sends nothing of its own.
pub(crate) async fn raise_hub_end(handle: &Handle, name: &str, mtu: u32) -> Result<(), Error> {
    let index = packet::interface_index(name)?;
    let message =
        LinkUnspec::new_with_index(index).mtu(mtu).arp(false).multicast(false).up().build();
    let doing = || format!("bringing {name} up");
    handle.link().set(message).execute().await.map_err(|e| refused(doing(), e))
}

/// Sets an interface up or down.
pub(crate) async fn set_up(handle: Handle, name: String, up: bool) -> Result<(), Error> {
    let link = LinkUnspec::new_with_index(packet::interface_index(&name)?);
    let message = if up { link.up() } else { link.down() }.build();
    let doing = || format!("setting {name} {}", if up { "up" } else { "down" });
    handle.link().set(message).execute().await.map_err(|e| refused(doing(), e))
}

/// Gives an interface its carrier, or takes it away: what only few kinds of device let one do.
pub(crate) async fn set_carrier(handle: Handle, name: String, carrier: bool) -> Result<(), Error> {
    let message =
        LinkUnspec::new_with_index(packet::interface_index(&name)?).carrier(carrier).build();
    let doing = || format!("setting the carrier of {name}");
    handle.link().set(message).execute().await.map_err(|e| refused(doing(), e))
}

/// Sets a node's end up, with its addresses and its neighbour's.
pub(crate) async fn raise_node_end(
    handle: Handle,
    end: End,
    peer: End,
    options: LinkOptions,
) -> Result<(), Error> {
    let doing = |what: &str| format!("{what} {} on node {}", end.interface, end.node);
    // Without ARP the kernel joins no multicast groups for its addresses, and so sends no
    // multicast listener reports either: what is on the link is the experiment's own traffic.
    let mut message = LinkUnspec::new_with_index(end.index)
        .address(end.mac.to_vec())
        .mtu(end.mtu)
        .txqueuelen(TAP_QUEUE)
        .arp(options.arp);
    handle
        .link()
        .set(message.build())
        .execute()
        .await
        .map_err(|e| refused(doing("configuring"), e))?;
    message = LinkUnspec::new_with_index(end.index).up();
    handle
        .link()
        .set(message.build())
        .execute()
        .await
        .map_err(|e| refused(doing("bringing up"), e))?;
    for prefix in &end.addresses {
        add_address(&handle, end.index, *prefix, options.dad)
            .await
            .map_err(|e| refused(doing("adding an address to"), e))?;
    }
    let neighbours = peer.addresses.iter().filter(|_| !options.arp);
    for neighbour in neighbours.map(|prefix| prefix.address()) {
        let neighbours = handle.neighbours();
        let request = neighbours.add(end.index, neighbour).link_layer_address(&peer.mac).replace();
        request.execute().await.map_err(|e| refused(doing("adding a neighbour to"), e))?;
    }
    Ok(())
}

/// All interfaces of the namespace.
pub(crate) async fn links(handle: Handle) -> Result<Vec<LinkMessage>, Error> {
    let mut links = Vec::new();
    let mut answers = handle.link().get().execute();
    while let Some(link) = answers.next().await {
        links.push(link.map_err(|e| refused("asking for the network devices", e))?);
    }
    Ok(links)
}

/// The interface of this index.
pub(crate) async fn link(handle: &Handle, index: u32) -> Result<LinkMessage, Error> {
    let link = handle.link().get().match_index(index).execute().next().await;
    let link = link.unwrap_or(Err(rtnetlink::Error::RequestFailed));
    link.map_err(|e| refused("asking for a network device", e))
}

/// Makes an interface.
pub(crate) async fn create(handle: &Handle, name: &str, device: LinkMessage) -> Result<(), Error> {
    let doing = || format!("making the network device {name}");
    handle.link().add(device).execute().await.map_err(|e| refused(doing(), e))
}

/// Removes an interface.
pub(crate) async fn remove(handle: Handle, name: String) -> Result<(), Error> {
    let index = packet::interface_index(&name)?;
    let doing = || format!("removing the network device {name}");
    handle.link().del(index).execute().await.map_err(|e| refused(doing(), e))
}

/// Makes an interface a port of a bridge.
pub(crate) async fn join_bridge(handle: &Handle, port: &str, bridge: u32) -> Result<(), Error> {
    let index = packet::interface_index(port)?;
    let message = LinkUnspec::new_with_index(index).controller(bridge).build();
    let doing = || format!("making {port} a port of a bridge");
    handle.link().set(message).execute().await.map_err(|e| refused(doing(), e))
}

/// Adds an address to an interface.
pub(crate) async fn add_address_to(
    handle: Handle,
    device: String,
    address: Prefix,
) -> Result<(), Error> {
    let index = packet::interface_index(&device)?;
    let doing = || format!("adding {address} to {device}");
    add_address(&handle, index, address, false).await.map_err(|e| refused(doing(), e))
}

/// Adds an address to an interface, or keeps it there.
async fn add_address(
    handle: &Handle,
    index: u32,
    prefix: Prefix,
    dad: bool,
) -> Result<(), rtnetlink::Error> {
    let (address, prefix_len) = (prefix.address(), prefix.prefix_len());
    let mut request = handle.address().add(index, address, prefix_len).replace();
    if address.is_ipv6() && !dad {
        // An address under duplicate detection cannot be used for a second.
        request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    request.execute().await
}

/// Waits until an end can send and takes what is sent to it; both are left to work items of the kernel,
/// which a busy machine runs late:
/// - a veth end that came up before its peer has the queue `noop`, which drops, until the kernel has
///   noticed that the peer came up;
/// - an IPv6 address is there at once, the route that makes packets to it ours only later, without
///   duplicate address detection too.
pub(crate) async fn until_it_works(handle: Handle, end: End) -> Result<(), Error> {
    let deadline = Instant::now() + LIMIT;
    while !(sends(&handle, &end).await? && takes_ipv6(&handle, &end).await?) {
        wait_a_little(&end, deadline).await?;
    }
    Ok(())
}

/// Waits until the kernel has noticed that an end has lost its carrier or is down.
pub(crate) async fn until_it_stops(handle: Handle, end: End) -> Result<(), Error> {
    let deadline = Instant::now() + LIMIT;
    while link(&handle, end.index).await?.header.flags.contains(LinkFlags::Running) {
        wait_a_little(&end, deadline).await?;
    }
    Ok(())
}

async fn wait_a_little(end: &End, deadline: Instant) -> Result<(), Error> {
    if Instant::now() > deadline {
        return Err(Error::TimedOut { node: end.node.clone(), limit: LIMIT });
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(())
}

async fn sends(handle: &Handle, end: &End) -> Result<bool, Error> {
    let link = link(handle, end.index).await?;
    Ok(link.header.flags.contains(LinkFlags::Running)
        && !link.attributes.contains(&LinkAttribute::Qdisc("noop".to_owned())))
}

async fn takes_ipv6(handle: &Handle, end: &End) -> Result<bool, Error> {
    let mut expected: Vec<IpAddr> = end.addresses.iter().map(|prefix| prefix.address()).collect();
    expected.retain(IpAddr::is_ipv6);
    if expected.is_empty() {
        return Ok(true);
    }
    let all = RouteMessageBuilder::<Ipv6Addr>::new().build();
    let mut routes = handle.route().get(all).execute();
    while let Some(route) = routes.next().await {
        let doing = || format!("asking for the routes of node {}", end.node);
        let route = route.map_err(|e| refused(doing(), e))?;
        if route.header.kind == RouteType::Local {
            expected.retain(|address| {
                let IpAddr::V6(address) = address else { return false };
                let own = RouteAttribute::Destination(RouteAddress::Inet6(*address));
                !route.attributes.contains(&own)
            });
        }
    }
    Ok(expected.is_empty())
}

/// The IPv4 networks that routes of any table lead to, with the lengths of their prefixes.
pub(crate) async fn networks(handle: &Handle) -> Result<Vec<(Ipv4Addr, u8)>, Error> {
    let all = RouteMessageBuilder::<Ipv4Addr>::new().build();
    let mut routes = handle.route().get(all).execute();
    let mut networks = Vec::new();
    while let Some(route) = routes.next().await {
        let route = route.map_err(|e| refused("asking for the machine's routes", e))?;
        networks.extend(route.attributes.iter().filter_map(|attribute| match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(network)) => {
                Some((*network, route.header.destination_prefix_length))
            }
            _ => None,
        }));
    }
    Ok(networks)
}

/// Adds a route by way of a neighbour.
pub(crate) async fn add_route(
    handle: Handle,
    network: IpAddr,
    prefix_len: u8,
    gateway: IpAddr,
) -> Result<(), Error> {
    let doing = || format!("adding a route to {network}/{prefix_len} by way of {gateway}");
    let wrong = |e| Error::Netlink { doing: doing(), source: io::Error::other(e) };
    let route = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(network, prefix_len)
        .map_err(wrong)?
        .gateway(gateway)
        .map_err(wrong)?
        .build();
    handle.route().add(route).execute().await.map_err(|e| refused(doing(), e))
}

/// Puts another route in place of the one that the kernel made for an interface's first IPv4 address: the
/// same but for how many segments TCP may send at first (RTAX_INITCWND).
pub(crate) async fn set_initial_window(
    handle: Handle,
    end: End,
    own: Ipv4Addr,
    prefix_len: u8,
    segments: Option<u32>,
) -> Result<(), Error> {
    let bits = u32::MAX.checked_shl(32 - u32::from(prefix_len)).unwrap_or(0);
    let network = Ipv4Addr::from_bits(own.to_bits() & bits);
    let mut route = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(network, prefix_len)
        .output_interface(end.index)
        .pref_source(own)
        .scope(RouteScope::Link)
        .protocol(RouteProtocol::Kernel);
    if let Some(segments) = segments {
        let metrics = vec![RouteMetric::InitCwnd(segments)];
        route.get_mut().attributes.push(RouteAttribute::Metrics(metrics));
    }
    let doing = || format!("setting the initial window of {} on node {}", end.interface, end.node);
    handle.route().add(route.build()).replace().execute().await.map_err(|e| refused(doing(), e))
}

/// Puts the queueing discipline `kind` with these raw options at the root of an interface,
/// in place of the one that is there.
pub(crate) async fn set_root_qdisc(
    mut handle: Handle,
    interface: u32,
    kind: &str,
    options: Vec<u8>,
) -> Result<(), Error> {
    let doing = || format!("setting the queueing discipline {kind}");
    let mut message = TcMessage::default();
    message.header.index = interface as i32;
    message.header.parent = TcHandle::ROOT;
    message.attributes.push(TcAttribute::Kind(kind.to_owned()));
    message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)));
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let mut answers = handle.request(request).map_err(|e| refused(doing(), e))?;
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload
            && error.code.is_some()
        {
            return Err(refused(doing(), rtnetlink::Error::NetlinkError(error)));
        }
    }
    Ok(())
}
