//! What the lab asks of the kernel by route netlink. Everything acts in the network namespace of
//! the thread that it runs on.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rtnetlink::packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteType};
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rtnetlink::{Handle, LinkUnspec, LinkVeth, RouteMessageBuilder};

use crate::Error;
use crate::link::End;

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
pub(crate) async fn create_veth(handle: &Handle, name: &str, peer: &str) -> Result<(), Error> {
    let request = handle.link().add(LinkVeth::new(name, peer).mtu(crate::MTU).build());
    let doing = || format!("making the veth pair {name} and {peer}");
    request.execute().await.map_err(|e| refused(doing(), e))
}

/// Moves an interface to another namespace.
pub(crate) async fn move_to(handle: &Handle, name: &str, namespace: &OwnedFd) -> Result<(), Error> {
    let index = packet::interface_index(name)?;
    let message = LinkUnspec::new_with_index(index).setns_by_fd(namespace.as_raw_fd()).build();
    let doing = || format!("moving {name} to its node");
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
pub(crate) async fn raise_hub_end(handle: &Handle, name: &str) -> Result<(), Error> {
    let index = packet::interface_index(name)?;
    let message =
        LinkUnspec::new_with_index(index).mtu(crate::MTU).arp(false).multicast(false).up().build();
    let doing = || format!("bringing {name} up");
    handle.link().set(message).execute().await.map_err(|e| refused(doing(), e))
}

/// Sets a node's end up, with its addresses and its neighbour's; returns its index.
pub(crate) async fn raise_node_end(handle: Handle, end: End, peer: End) -> Result<u32, Error> {
    let doing = |what: &str| format!("{what} {} on node {}", end.interface, end.node);
    let index = packet::interface_index(&end.interface)?;
    // Without ARP the kernel joins no multicast groups for its addresses, and so sends no
    // multicast listener reports either: what is on the link is the experiment's own traffic.
    let mut message = LinkUnspec::new_with_index(index)
        .address(end.mac.to_vec())
        .mtu(crate::MTU)
        .txqueuelen(TAP_QUEUE)
        .arp(false);
    handle
        .link()
        .set(message.build())
        .execute()
        .await
        .map_err(|e| refused(doing("configuring"), e))?;
    message = LinkUnspec::new_with_index(index).up();
    handle
        .link()
        .set(message.build())
        .execute()
        .await
        .map_err(|e| refused(doing("bringing up"), e))?;
    let addresses = [(Some(IpAddr::V4(end.addr4)), 24), (end.addr6.map(IpAddr::V6), 64)];
    for (address, prefix_len) in addresses {
        let Some(address) = address else { continue };
        let mut request = handle.address().add(index, address, prefix_len);
        if address.is_ipv6() {
            // An address under duplicate detection cannot be used for a second.
            request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        request.execute().await.map_err(|e| refused(doing("adding an address to"), e))?;
    }
    for neighbour in [Some(IpAddr::V4(peer.addr4)), peer.addr6.map(IpAddr::V6)] {
        let Some(neighbour) = neighbour else { continue };
        let request = handle.neighbours().add(index, neighbour).link_layer_address(&peer.mac);
        request.execute().await.map_err(|e| refused(doing("adding a neighbour to"), e))?;
    }
    Ok(index)
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
        if Instant::now() > deadline {
            return Err(Error::TimedOut { node: end.node, limit: LIMIT });
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn sends(handle: &Handle, end: &End) -> Result<bool, Error> {
    let link = handle.link().get().match_index(end.index).execute().next().await;
    let link = link.unwrap_or(Err(rtnetlink::Error::RequestFailed));
    let doing = || format!("asking for the queue of {} on node {}", end.interface, end.node);
    let link = link.map_err(|e| refused(doing(), e))?;
    Ok(!link.attributes.contains(&LinkAttribute::Qdisc("noop".to_owned())))
}

async fn takes_ipv6(handle: &Handle, end: &End) -> Result<bool, Error> {
    let Some(address) = end.addr6 else { return Ok(true) };
    let own = RouteAttribute::Destination(RouteAddress::Inet6(address));
    let all = RouteMessageBuilder::<Ipv6Addr>::new().build();
    let mut routes = handle.route().get(all).execute();
    while let Some(route) = routes.next().await {
        let doing = || format!("asking for the routes of node {}", end.node);
        let route = route.map_err(|e| refused(doing(), e))?;
        if route.header.kind == RouteType::Local && route.attributes.contains(&own) {
            return Ok(true);
        }
    }
    Ok(false)
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
