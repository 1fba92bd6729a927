//! Work that a sender leaves to the device: checksums and segmentation (`ethtool -K`).
//!
//! On veth there is no device to do it. Frames that are taken out by AF_PACKET would go on with
//! unfinished checksums and as 64 KB super-segments, so a link that carries single frames turns
//! these off at both of the nodes' interfaces.

use std::os::fd::AsRawFd;

use crate::Error;
use crate::sys::{interface_request, socket};

// linux/ethtool.h: commands with an `ethtool_value`.
const GET_TX_CHECKSUM: u32 = 0x16;
const SET_TX_CHECKSUM: u32 = 0x17;
const GET_SCATTER_GATHER: u32 = 0x18;
const SET_SCATTER_GATHER: u32 = 0x19;
const GET_TSO: u32 = 0x1e;
const SET_TSO: u32 = 0x1f;
const GET_GSO: u32 = 0x23;
const SET_GSO: u32 = 0x24;
const GET_GRO: u32 = 0x2b;
const SET_GRO: u32 = 0x2c;
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
/// Of the flags: VLAN tags of what is sent.
const FLAG_TX_VLAN: u32 = 1 << 7;

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Which work is left to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// Checksums of what is sent.
    pub tx_checksum: bool,
    /// Frames in several pieces.
    pub scatter_gather: bool,
    /// TCP segmentation by the device.
    pub tso: bool,
    /// Segmentation just before the device.
    pub gso: bool,
    /// Joining of received segments.
    pub gro: bool,
}

impl Offloads {
    /// Nothing is left to the device: frames leave as they are on a wire.
    pub const NONE: Offloads =
        Offloads { tx_checksum: false, scatter_gather: false, tso: false, gso: false, gro: false };
}

fn call(name: &str, command: u32, data: u32, doing: &'static str) -> Result<u32, Error> {
    let doing_error = |source| Error::System { doing, source };
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(doing_error)?;
    let mut value = EthtoolValue { command, data };
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: SIOCETHTOOL reads and writes the `ethtool_value` that the request points to; both
    // outlive the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } == 0 {
        return Ok(value.data);
    }
    let source = std::io::Error::last_os_error();
    match source.raw_os_error() {
        Some(libc::ENODEV) => Err(Error::NoInterface { name: name.to_owned() }),
        _ => Err(doing_error(source)),
    }
}

/// What interface `name` of the calling thread's namespace leaves to the device.
///
/// # Errors
/// [`Error::NoInterface`], [`Error::System`].
pub fn get(name: &str) -> Result<Offloads, Error> {
    let get = |command| call(name, command, 0, "reading an offload").map(|data| data != 0);
    Ok(Offloads {
        tx_checksum: get(GET_TX_CHECKSUM)?,
        scatter_gather: get(GET_SCATTER_GATHER)?,
        tso: get(GET_TSO)?,
        gso: get(GET_GSO)?,
        gro: get(GET_GRO)?,
    })
}

/// Sets what interface `name` of the calling thread's namespace leaves to the device. The kernel
/// turns off what depends on something that is off: [`get`] tells the result.
///
/// # Errors
/// [`Error::NoInterface`]; [`Error::System`] without CAP_NET_ADMIN in the namespace.
pub fn set(name: &str, offloads: Offloads) -> Result<(), Error> {
    let set = |command, on| call(name, command, u32::from(on), "setting an offload").map(|_| ());
    set(SET_TX_CHECKSUM, offloads.tx_checksum)?;
    set(SET_SCATTER_GATHER, offloads.scatter_gather)?;
    set(SET_TSO, offloads.tso)?;
    set(SET_GSO, offloads.gso)?;
    set(SET_GRO, offloads.gro)
}

/// Leaves nothing to the device on interface `name` of the calling thread's namespace.
///
/// # Errors
/// As [`set`].
pub fn disable(name: &str) -> Result<(), Error> {
    set(name, Offloads::NONE)
}

/// Leaves no VLAN tag to the device on interface `name` of the calling thread's namespace: it is in the frame's
/// bytes when that leaves, and so counted by the interface's statistics.
///
/// # Errors
/// As [`set`].
pub fn disable_vlan_insertion(name: &str) -> Result<(), Error> {
    let doing = "leaving no VLAN tag to the device";
    let flags = call(name, GET_FLAGS, 0, doing)?;
    call(name, SET_FLAGS, flags & !FLAG_TX_VLAN, doing).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_named() {
        let vlan = disable_vlan_insertion("nowhere0").unwrap_err();
        for error in [get("nowhere0").unwrap_err(), disable("nowhere0").unwrap_err(), vlan] {
            assert!(matches!(&error, Error::NoInterface { name } if name == "nowhere0"), "{error}");
        }
    }
}
