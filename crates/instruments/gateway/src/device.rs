//! From a [`Place`] to a stack.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tcpio::{DeviceOptions, InterfaceAddress, Stack, StackOptions};

use crate::Error;
use crate::machine::{self, Routes};
use crate::options::{Common, Place};
use crate::redirect::{Packets, Redirect};

/// How long a port may be ours after our last segment from it: TIME-WAIT and more.
const AFTERWARDS: Duration = Duration::from_secs(120);
/// What the TUN device of a redirect needs, so that the kernel routes what comes in by it from an
/// address that is its own.
const TUN_SETTINGS: [(&str, &str); 3] =
    [("accept_local", "1"), ("forwarding", "1"), ("rp_filter", "0")];
/// The address of the kernel's side of that device: no host's (RFC 7600).
const TUN_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// A stack, and what holds up the way to it.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) stack: Stack,
    pub(crate) described: String,
    /// The MTU of the interface that packets leave by, in bytes.
    pub(crate) mtu: u16,
    _redirect: Option<Redirect>,
    /// The port that no other program may take meanwhile.
    _reserved: Option<socket2::Socket>,
}

/// What the stack is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// Peers come to this address; with a redirect, from these networks only, if there are any.
    Listen { at: SocketAddr, allowed: &'a [InterfaceAddress] },
    /// We go to this one.
    Connect(SocketAddr),
}

impl Device {
    /// Opens it. Within a tokio runtime.
    pub(crate) fn open(common: &Common, purpose: Purpose<'_>) -> Result<Device, Error> {
        match &common.place {
            Place::Interface { name } => on_interface(common, name.as_deref(), purpose),
            Place::Tun { name } => on_tun(common, name, purpose),
            Place::Redirect { name } => by_redirect(common, name.as_deref(), purpose),
        }
    }
}

fn on_interface(
    common: &Common,
    name: Option<&str>,
    purpose: Purpose<'_>,
) -> Result<Device, Error> {
    let routes = Routes::read();
    let own = own_address(common, purpose, name, &routes)?;
    let interface = match name {
        Some(name) => name.to_owned(),
        None => {
            let place = routes.place(own.address());
            let place = place.filter(|place| place.prefix_len.is_some());
            place.ok_or(Error::NoInterface { address: own.address() })?.interface
        }
    };
    if machine::is_kernels(own.address()) {
        return Err(Error::options(
            format!("the kernel has the address {} itself", own.address()),
            "give the gateway an address of its own, or take one port of this one by --redirect",
        ));
    }
    let device = DeviceOptions::Interface { name: interface.clone(), vnet_header: true };
    let mut options = StackOptions::new(device, vec![own]);
    let router = common.router.or_else(|| routes.default_router(&interface, &own));
    options.gateways.extend(router);
    let described = format!("{own} on {interface}");
    open(common, options, described, mtu_of(&interface))
}

fn on_tun(common: &Common, name: &str, purpose: Purpose<'_>) -> Result<Device, Error> {
    let own = own_address(common, purpose, None, &Routes::default())?;
    let kernel = other_end(own).ok_or_else(|| {
        Error::options(
            format!("the network of {own} has no second address, which the kernel's side needs"),
            "give --address with a prefix of 30 bits or less (126 for IPv6), as 10.9.8.2/30",
        )
    })?;
    let device = DeviceOptions::Tun {
        name: name.to_owned(),
        vnet_header: true,
        kernel_addresses: vec![kernel],
    };
    let mut options = StackOptions::new(device, vec![own]);
    options.gateways.push(kernel.address());
    open(common, options, format!("{own} behind {kernel} on {name}"), u16::MAX)
}

fn by_redirect(common: &Common, name: Option<&str>, purpose: Purpose<'_>) -> Result<Device, Error> {
    if common.address.is_some() {
        return Err(Error::options(
            "--redirect takes the machine's own address",
            "leave out --address, or --redirect",
        ));
    }
    // A connection ends when nothing moved for twice the idle time.
    let remembered = common.idle.saturating_mul(2).saturating_add(AFTERWARDS);
    let (own, packets) = redirected(purpose, remembered)?;
    if own.is_loopback() {
        return Err(Error::options(
            format!(
                "--redirect works on a link to other machines, and {own} is this machine's own"
            ),
            "name in --to another machine, or in --listen this machine's address in its network",
        ));
    }
    let interface = match name {
        Some(name) => name.to_owned(),
        None => {
            let towards = if let Purpose::Connect(to) = purpose { to.ip() } else { own.into() };
            let place = Routes::read().place(towards);
            place.ok_or(Error::NoInterface { address: towards })?.interface
        }
    };
    let reserved = match purpose {
        Purpose::Listen { at, .. } => Some(reserve(at)?),
        Purpose::Connect(_) => None,
    };
    let tun = tun_name();
    let device = DeviceOptions::Tun {
        name: tun.clone(),
        vnet_header: true,
        kernel_addresses: vec![InterfaceAddress::new(TUN_ADDRESS.into(), 32)?],
    };
    // Everything is on the link: the kernel routes it.
    let mut options = StackOptions::new(device, vec![InterfaceAddress::new(own.into(), 0)?]);
    options.tcp = common.tcp();
    options.tcp.mtu = options.tcp.mtu.min(mtu_of(&interface));
    let mtu = options.tcp.mtu;
    let stack = Stack::open(options)?;
    for (setting, value) in TUN_SETTINGS {
        set(&format!("net.ipv4.conf.{tun}.{setting}"), value)?;
    }
    if let Purpose::Listen { at, allowed } = purpose {
        let from = if allowed.is_empty() { "anywhere" } else { "the networks of --allow" };
        tracing::warn!(
            hint = "limit the sources by --allow, or filter in front of this machine",
            "--redirect: packets from {from} to {at} bypass this machine's firewall"
        );
    }
    let described = format!("{own} by way of {interface} and {tun}");
    let redirect = Redirect::start(&interface, &tun, index_of(&tun)?, &packets)?;
    Ok(Device { stack, described, mtu, _redirect: Some(redirect), _reserved: reserved })
}

/// A name for a TUN device that no other has: of this process, and of several in it.
fn tun_name() -> String {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id() % 1_000_000;
    match OPENED.fetch_add(1, Ordering::Relaxed) % 10 {
        0 => format!("wiretax{process}"),
        more => format!("wiretax{process}-{more}"),
    }
}

/// The machine's own address, and which packets of it are ours.
fn redirected(purpose: Purpose<'_>, remembered: Duration) -> Result<(Ipv4Addr, Packets), Error> {
    let not_v4 = |address: IpAddr| {
        Error::options(
            format!("--redirect is for IPv4, and {address} is IPv6"),
            "give the gateway an IPv6 address of its own (--interface)",
        )
    };
    match purpose {
        Purpose::Listen { at: SocketAddr::V4(listen), allowed } => {
            if !machine::is_kernels((*listen.ip()).into()) || listen.ip().is_unspecified() {
                return Err(Error::options(
                    format!(
                        "--redirect needs an address of this machine, and {} is not one",
                        listen.ip()
                    ),
                    "name the machine's own address in --listen, or leave out --redirect",
                ));
            }
            if let Some(v6) = allowed.iter().find(|network| network.address().is_ipv6()) {
                return Err(not_v4(v6.address()));
            }
            let packets = Packets::To { listener: listen, allowed: allowed.to_vec() };
            Ok((*listen.ip(), packets))
        }
        Purpose::Connect(to @ SocketAddr::V4(from)) => {
            let IpAddr::V4(own) = machine::source_towards(to)? else {
                return Err(not_v4(to.ip()));
            };
            Ok((own, Packets::Answers { from, to: own, remembered }))
        }
        Purpose::Listen { at: address, .. } | Purpose::Connect(address) => {
            Err(not_v4(address.ip()))
        }
    }
}

/// Keeps every other program from the port; the kernel's TCP does not use it either.
fn reserve(address: SocketAddr) -> Result<socket2::Socket, Error> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    );
    let bound = socket.and_then(|socket| {
        socket.bind(&address.into())?;
        Ok(socket)
    });
    bound.map_err(|source| Error::listen(address, source))
}

/// The stack's own address: as given, or that of the listener in its network.
fn own_address(
    common: &Common,
    purpose: Purpose<'_>,
    interface: Option<&str>,
    routes: &Routes,
) -> Result<InterfaceAddress, Error> {
    let Purpose::Listen { at: listen, .. } = purpose else {
        return common.address.ok_or_else(|| {
            Error::options(
                "the gateway has no address to connect from",
                "give it one of its own by --address, as 192.0.2.77/24, or share the machine's by \
                 --redirect",
            )
        });
    };
    if listen.ip().is_unspecified() || listen.ip().is_loopback() {
        return Err(Error::options(
            format!("{} is not an address that peers can connect to over our TCP", listen.ip()),
            "name in --listen an address of the network that no machine has, or this machine's own \
             and --redirect",
        ));
    }
    if let Some(own) = common.address {
        if own.address() != listen.ip() {
            return Err(Error::options(
                format!("--address is {}, --listen is {}", own.address(), listen.ip()),
                "leave out --address, unless its prefix is not known: they are the same address",
            ));
        }
        return Ok(own);
    }
    let prefix_len = match interface {
        Some(interface) => routes.prefix_on(interface, listen.ip()),
        None => routes.place(listen.ip()).and_then(|place| place.prefix_len),
    };
    let prefix_len = prefix_len.unwrap_or(if listen.is_ipv4() { 32 } else { 128 });
    Ok(InterfaceAddress::new(listen.ip(), prefix_len)?)
}

/// The first address of the network that is not `own`.
fn other_end(own: InterfaceAddress) -> Option<InterfaceAddress> {
    let prefix_len = own.prefix_len();
    let first = match own.address() {
        IpAddr::V4(address) if prefix_len <= 30 => {
            let network =
                address.to_bits() & !(u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0));
            [1, 2].map(|host| IpAddr::V4((network | host).into()))
        }
        IpAddr::V6(address) if prefix_len <= 126 => {
            let host_bits = u128::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            let network = address.to_bits() & !host_bits;
            [1, 2].map(|host| IpAddr::V6((network | host).into()))
        }
        _ => return None,
    };
    let other = first.into_iter().find(|address| *address != own.address())?;
    InterfaceAddress::new(other, prefix_len).ok()
}

fn index_of(interface: &str) -> Result<u32, Error> {
    let failed = |source| Error::System { doing: "asking for a device's index", source };
    // Any socket knows the devices of its network.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
    rustix::net::netdevice::name_to_index(socket.map_err(failed)?, interface)
        .map_err(|error| failed(error.into()))
}

fn mtu_of(interface: &str) -> u16 {
    const ETHERNET: u16 = 1500;
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/mtu"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(ETHERNET)
}

fn set(name: &str, value: &'static str) -> Result<(), Error> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::write(path, value).map_err(|source| Error::Setting {
        name: name.to_owned(),
        value,
        source,
    })
}

fn open(
    common: &Common,
    mut options: StackOptions,
    described: String,
    mtu: u16,
) -> Result<Device, Error> {
    options.tcp = common.tcp();
    let mtu = options.tcp.mtu.min(mtu);
    let stack = Stack::open(options)?;
    Ok(Device { stack, described, mtu, _redirect: None, _reserved: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fault::{Explain, Fault};

    fn common(place: Place) -> Common {
        Common::new(place)
    }

    #[test]
    fn the_kernel_s_side_of_a_tun_device_is_the_other_address() {
        let other = |text: &str| other_end(text.parse().unwrap()).map(|other| other.to_string());
        assert_eq!(other("10.9.8.2/30").as_deref(), Some("10.9.8.1/30"));
        assert_eq!(other("10.9.8.1/24").as_deref(), Some("10.9.8.2/24"));
        assert_eq!(other("10.9.8.2/31"), None);
        assert_eq!(other("fd00::2/64").as_deref(), Some("fd00::1/64"));
        assert_eq!(other("fd00::2/128"), None);
    }

    #[test]
    fn addresses_that_cannot_work_are_refused_with_a_hint() {
        let interface = common(Place::Interface { name: None });
        let redirect = common(Place::Redirect { name: None });
        let own = common(Place::Interface { name: None });
        let own = Common { address: Some("192.0.2.9/24".parse().unwrap()), ..own };
        let listen = |text: &str| Purpose::Listen { at: text.parse().unwrap(), allowed: &[] };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (common, purpose, part) in [
            (&interface, listen("127.0.0.1:443"), "not an address that peers can connect to"),
            (&interface, listen("0.0.0.0:443"), "not an address that peers can connect to"),
            (&interface, Purpose::Connect("192.0.2.1:443".parse().unwrap()), "--address"),
            (&own, listen("192.0.2.10:443"), "they are the same"),
            (&redirect, listen("192.0.2.77:443"), "is not one"),
            (&redirect, listen("127.0.0.1:443"), "this machine's own"),
            (&redirect, Purpose::Connect("127.0.0.1:443".parse().unwrap()), "this machine's own"),
            (&redirect, listen("[2001:db8::1]:443"), "IPv4"),
        ] {
            let error = runtime.block_on(async { Device::open(common, purpose) }).unwrap_err();
            assert_eq!(error.fault(), Fault::Caller, "{error}");
            assert!(error.remedy().is_some() && error.in_one_text().contains(part), "{error}");
        }
    }
}
