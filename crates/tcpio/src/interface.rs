//! The kernel's view of an interface: its address, MTU, state, and the addresses that are its own.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use wire::ethernet::Address;

use crate::{Error, InterfaceAddress};

/// An Ethernet interface as the kernel has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) link: Address,
    pub(crate) mtu: u16,
}

/// Interface `name` of the calling thread's namespace, if it is up and an Ethernet.
pub(crate) fn ethernet(name: &str) -> Result<Interface, Error> {
    let index = packet::interface_index(name)?;
    let socket = any_socket()?;
    let mut request = request(name);
    call(&socket, libc::SIOCGIFFLAGS, &mut request, "reading an interface's flags")?;
    // SAFETY: SIOCGIFFLAGS has filled this member of the union.
    let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    if flags & libc::IFF_UP == 0 {
        return Err(Error::Down { interface: name.to_owned() });
    }
    call(&socket, libc::SIOCGIFHWADDR, &mut request, "reading an interface's address")?;
    // SAFETY: SIOCGIFHWADDR has filled this member of the union.
    let hardware = unsafe { request.ifr_ifru.ifru_hwaddr };
    if hardware.sa_family != libc::ARPHRD_ETHER {
        return Err(Error::NotEthernet { interface: name.to_owned() });
    }
    let [a, b, c, d, e, f, ..] = hardware.sa_data.map(|byte| byte as u8);
    let mtu = mtu(&socket, name)?;
    Ok(Interface { index, link: Address([a, b, c, d, e, f]), mtu })
}

/// The MTU of interface `name`, bytes of IP packet.
pub(crate) fn mtu_of(name: &str) -> Result<u16, Error> {
    mtu(&any_socket()?, name)
}

fn mtu(socket: &OwnedFd, name: &str) -> Result<u16, Error> {
    let mut request = request(name);
    call(socket, libc::SIOCGIFMTU, &mut request, "reading an interface's MTU")?;
    // SAFETY: SIOCGIFMTU has filled this member of the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Gives the kernel's side of interface `name` these addresses, and brings it up.
pub(crate) fn raise(name: &str, addresses: &[InterfaceAddress]) -> Result<(), Error> {
    let socket = any_socket()?;
    for own in addresses {
        match own.address() {
            IpAddr::V4(address) => add_v4(&socket, name, address, own.prefix_len())?,
            IpAddr::V6(address) => add_v6(name, address, own.prefix_len())?,
        }
    }
    let mut request = request(name);
    call(&socket, libc::SIOCGIFFLAGS, &mut request, "reading an interface's flags")?;
    // SAFETY: SIOCGIFFLAGS has filled this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    if libc::c_int::from(flags) & libc::IFF_UP != 0 {
        return Ok(());
    }
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    call(&socket, libc::SIOCSIFFLAGS, &mut request, "bringing a TUN device up")
}

fn add_v4(socket: &OwnedFd, name: &str, address: Ipv4Addr, prefix_len: u8) -> Result<(), Error> {
    let mut ask = request(name);
    ask.ifr_ifru.ifru_addr = inet(address);
    call(socket, libc::SIOCSIFADDR, &mut ask, "giving a TUN device an address")?;
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix_len.min(32))).unwrap_or(0);
    let mut ask = request(name);
    ask.ifr_ifru.ifru_netmask = inet(Ipv4Addr::from_bits(mask));
    call(socket, libc::SIOCSIFNETMASK, &mut ask, "giving a TUN device a netmask")
}

/// `struct in6_ifreq` of linux/ipv6.h.
#[repr(C)]
struct V6Request {
    address: libc::in6_addr,
    prefix_len: u32,
    interface: libc::c_int,
}

fn add_v6(name: &str, address: Ipv6Addr, prefix_len: u8) -> Result<(), Error> {
    let index = packet::interface_index(name)?;
    let request = V6Request {
        address: libc::in6_addr { s6_addr: address.octets() },
        prefix_len: u32::from(prefix_len),
        interface: libc::c_int::try_from(index).unwrap_or(libc::c_int::MAX),
    };
    let socket = datagram_socket(AddressFamily::INET6)?;
    // SAFETY: on an IPv6 socket SIOCSIFADDR reads an `in6_ifreq`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR, &raw const request) };
    if result != 0 {
        let source = io::Error::last_os_error();
        // A persistent device may have it already.
        if source.raw_os_error() != Some(libc::EEXIST) {
            return Err(Error::System { doing: "giving a TUN device an IPv6 address", source });
        }
    }
    Ok(())
}

fn inet(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: `sockaddr` is a C struct of integers; all zeroes is valid.
    let mut socket_address: libc::sockaddr = unsafe { mem::zeroed() };
    socket_address.sa_family = libc::AF_INET as libc::sa_family_t;
    // `sockaddr_in`: two bytes of port, then the address.
    for (to, from) in socket_address.sa_data.iter_mut().skip(2).zip(address.octets()) {
        *to = from as libc::c_char;
    }
    socket_address
}

/// The interface of the calling thread's namespace to which the kernel has given one of these
/// addresses.
pub(crate) fn kernel_owner(addresses: &[InterfaceAddress]) -> Result<Option<Error>, Error> {
    let mut list = ptr::null_mut();
    // SAFETY: the kernel's list is put at `list`, to be freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(Error::last("listing the kernel's addresses"));
    }
    let mut found = None;
    let mut next = list;
    // SAFETY: each element is null or valid until the list is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: a non-null address is a socket address of the family that it says.
        let Some(address) = (unsafe { ip(entry.ifa_addr) }) else { continue };
        if addresses.iter().any(|own| own.address() == address) {
            // SAFETY: the kernel's names are NUL-terminated strings of the list.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            let interface = name.to_string_lossy().into_owned();
            found = Some(Error::OwnedByKernel { address, interface });
        }
    }
    // SAFETY: the list came from `getifaddrs` and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// The IP address of a socket address.
///
/// # Safety
/// `address` is null, or points to a socket address of the family that it says.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by this function's contract.
    let family = libc::c_int::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: by this function's contract; read as it may be unaligned.
            let inet = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from_bits(u32::from_be(inet.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let inet = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(inet.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

fn any_socket() -> Result<OwnedFd, Error> {
    datagram_socket(AddressFamily::INET)
}

fn datagram_socket(family: AddressFamily) -> Result<OwnedFd, Error> {
    rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| Error::System { doing: "opening a socket", source: errno.into() })
}

/// A request about interface `name`, which is one that the kernel has told or taken.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: `ifreq` is a C struct of integers, arrays and a pointer; all zeroes is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}

fn call(
    socket: &OwnedFd,
    number: libc::Ioctl,
    request: &mut libc::ifreq,
    doing: &'static str,
) -> Result<(), Error> {
    // SAFETY: these requests read and write an `ifreq`, which outlives the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), number, ptr::from_mut(request)) } {
        0 => Ok(()),
        _ => Err(Error::last(doing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_no_ethernet() {
        // In a fresh namespace it may be down.
        let error = ethernet("lo").unwrap_err();
        assert!(matches!(error, Error::NotEthernet { .. } | Error::Down { .. }), "{error}");
    }

    #[test]
    fn a_missing_interface_is_named() {
        let error = fault::Explain::in_one_text(&ethernet("nowhere0").unwrap_err());
        assert!(error.contains("nowhere0") && error.contains("ip link"), "{error}");
    }
}
