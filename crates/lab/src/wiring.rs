//! The devices of a link: made, moved to the nodes, set up.

use crate::link::End;
use crate::node::Node;
use crate::options::{Backend, LinkOptions};
use crate::{Error, enter, netem, netlink, steer};

/// A link in the making.
#[derive(Debug, Clone)]
pub(crate) struct Joint {
    pub(crate) number: u8,
    pub(crate) nodes: [Node; 2],
    pub(crate) ends: [End; 2],
    pub(crate) seed: u64,
    pub(crate) options: LinkOptions,
}

impl Joint {
    pub(crate) fn new(
        number: u8,
        nodes: [Node; 2],
        lab_seed: u64,
        options: LinkOptions,
    ) -> Result<Joint, Error> {
        let end = |side: u8, node: &Node| End::new(node, number, side, &options);
        let ends = [end(1, &nodes[0])?, end(2, &nodes[1])?];
        let seed = linkmodel::mix(lab_seed, u64::from(number));
        Ok(Joint { number, nodes, ends, seed, options })
    }

    /// The name of the hub's interface on this side, where the pump holds it by AF_PACKET.
    pub(crate) fn hub_interface(&self, side: usize) -> String {
        format!("hub{}-{}", self.number, side + 1)
    }

    /// The index of one end's interface in its node's namespace, once it is there.
    pub(crate) fn interface_index(&self, side: usize) -> u32 {
        self.ends[side].index
    }
}

/// Joins two nodes by a veth pair of which each has one end.
pub(crate) fn join_directly(hub: &Node, joint: &mut Joint) -> Result<(), Error> {
    let mtu = joint.options.mtu;
    hub.netlink(move |handle| async move {
        netlink::create_veth(&handle, "first", "second", mtu).await
    })?;
    for (name, (node, end)) in ["first", "second"].iter().zip(joint.nodes.iter().zip(&joint.ends)) {
        hand_over(hub, name, node, &end.interface)?;
    }
    prepare(joint, true)?;
    set_up(joint)
}

/// Makes the devices of a link: the ports for the pump, which are the hub's, and the ends, which are
/// then to be [set up](set_up).
pub(crate) fn ports(
    hub: &Node,
    backend: Backend,
    offload: bool,
    joint: &mut Joint,
) -> Result<[pump::Port; 2], Error> {
    let port = |side: usize| match backend {
        Backend::Tap => make_tap_port(&joint.nodes[side], &joint.ends[side].interface, offload),
        _ => make_veth_port(hub, joint, side, offload),
    };
    let ports = [port(0)?, port(1)?];
    prepare(joint, !offload)?;
    Ok(ports)
}

/// Moves the hub's interface `name` to the node under a new name.
fn hand_over(hub: &Node, name: &str, node: &Node, new_name: &str) -> Result<(), Error> {
    let (from, to) = (name.to_owned(), new_name.to_owned());
    let namespace = node.namespace_for_move()?;
    hub.netlink(move |handle| async move {
        netlink::rename(&handle, &from, &to).await?;
        netlink::move_to(&handle, &to, &namespace).await
    })
}

fn make_veth_port(
    hub: &Node,
    joint: &Joint,
    side: usize,
    offload: bool,
) -> Result<pump::Port, Error> {
    let (hub_name, node_name) = (joint.hub_interface(side), joint.ends[side].interface.clone());
    let namespace = joint.nodes[side].namespace_for_move()?;
    let mtu = joint.options.mtu;
    let index = hub.netlink(move |handle| async move {
        let steered = steer::new_devices(true);
        let made = netlink::create_veth_to(&handle, &hub_name, &node_name, &namespace, mtu).await;
        // For what else is made here.
        let _ = steer::new_devices(false);
        made?;
        silence_ipv6(&hub_name, false);
        if let Err(error) = steered.or_else(|_| steer::to_one_processor(&hub_name)) {
            tracing::debug!(interface = hub_name, %error, "frames may overtake each other");
        }
        if !offload {
            packet::offload::disable(&hub_name)?;
        }
        netlink::raise_hub_end(&handle, &hub_name, mtu).await?;
        Ok(packet::interface_index(&hub_name)?)
    })?;
    Ok(pump::Port::Packet { interface: index })
}

/// Makes a TAP device in the node's namespace; the pump reads and writes its descriptor.
fn make_tap_port(node: &Node, name: &str, offload: bool) -> Result<pump::Port, Error> {
    let name = name.to_owned();
    let tap = node.run(move || match offload {
        true => packet::Tap::create_with_vnet_header(&name),
        false => packet::Tap::create(&name),
    })??;
    Ok(pump::Port::Tap(tap.into()))
}

/// Makes the nodes' interfaces quiet, and notes their indices.
fn prepare(joint: &mut Joint, disable_offloads: bool) -> Result<(), Error> {
    let dad = joint.options.dad;
    for (node, end) in joint.nodes.iter().zip(&mut joint.ends) {
        let name = end.interface.clone();
        end.index = node.run(move || {
            silence_ipv6(&name, dad);
            if disable_offloads {
                packet::offload::disable(&name)?;
            }
            packet::interface_index(&name)
        })??;
    }
    Ok(())
}

/// Sets both nodes' interfaces up with their addresses, and waits until they work.
pub(crate) fn set_up(joint: &Joint) -> Result<(), Error> {
    let [first, second] = joint.ends.clone();
    let ends = [(first.clone(), second.clone()), (second, first)];
    for (node, (end, peer)) in joint.nodes.iter().zip(ends) {
        let options = joint.options.clone();
        node.netlink(move |handle| netlink::raise_node_end(handle, end, peer, options))?;
    }
    until_it_works(joint)
}

/// Waits until both ends send and take frames.
pub(crate) fn until_it_works(joint: &Joint) -> Result<(), Error> {
    for (node, end) in joint.nodes.iter().zip(joint.ends.clone()) {
        node.netlink(move |handle| netlink::until_it_works(handle, end))?;
    }
    Ok(())
}

/// Keeps the kernel from sending IPv6 packets of its own on an interface of this namespace, but for
/// one probe for a duplicate of each address where that is asked for.
pub(crate) fn silence_ipv6(interface: &str, dad: bool) {
    // addr_gen_mode 1: no link-local address.
    let settings = [
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("autoconf", "0"),
        ("router_solicitations", "0"),
        ("dad_transmits", if dad { "1" } else { "0" }),
    ];
    for (setting, value) in settings {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/{setting}");
        // Without IPv6 there is nothing to silence.
        if let Err(error) = std::fs::write(path, value) {
            tracing::debug!(interface, setting, %error, "not set");
        }
    }
}

/// What carries frames where `backend` is asked for: [`Backend::Auto`] becomes one of the others.
///
/// # Errors
/// What this machine lacks for it.
pub(crate) fn resolve(hub: &Node, backend: Backend) -> Result<Backend, Error> {
    match backend {
        Backend::Auto if tap_works(hub).is_ok() => return Ok(Backend::Tap),
        Backend::Auto => return Ok(Backend::Veth),
        Backend::Tap => tap_works(hub)?,
        Backend::Netem => try_netem(hub)?,
        Backend::Veth | Backend::Direct => {}
    }
    Ok(backend)
}

/// Whether a TAP device can be made in the hub.
fn tap_works(hub: &Node) -> Result<(), Error> {
    Ok(hub.run(|| packet::Tap::create("probe").map(drop))??)
}

/// Whether the kernel has netem, by setting it on the hub's loopback interface.
fn try_netem(hub: &Node) -> Result<(), Error> {
    let set = hub.netlink(|handle| async move {
        let index = packet::interface_index("lo")?;
        netlink::set_root_qdisc(handle, index, "netem", netem::neutral_options()).await
    });
    match set {
        Err(Error::Netlink { source, .. }) if source.raw_os_error() == Some(libc::ENOENT) => {
            Err(Error::NoNetem)
        }
        other => other,
    }
}

/// Whether the kernel has netem, by setting it in a scratch namespace. In a lab only.
///
/// # Errors
/// [`Error::NotEntered`]; what the kernel refuses, other than that it has no netem.
pub fn netem_available() -> Result<bool, Error> {
    if enter::entered().is_none() {
        return Err(Error::NotEntered);
    }
    let scratch = Node::start("scratch", None)?;
    let tried = try_netem(&scratch);
    scratch.stop();
    scratch.wait();
    match tried {
        Ok(()) => Ok(true),
        Err(Error::NoNetem) => Ok(false),
        Err(other) => Err(other),
    }
}
