//! TAP devices: an interface whose frames go to a file descriptor.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use crate::sys::{interface_index, interface_request};
use crate::{Error, vnet};

/// A TAP device of the namespace in which it was made; it is gone when this is dropped.
///
/// Each read takes one frame, each write gives one ([`crate::receive`], [`crate::send`]).
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: String,
}

/// Whether a TAP descriptor carries a `virtio_net_hdr` before each frame.
///
/// # Errors
/// [`Error::System`] if `fd` is no TAP device.
pub fn has_vnet_header(fd: BorrowedFd<'_>) -> Result<bool, Error> {
    let mut request = interface_request("unknown")?;
    // SAFETY: TUNGETIFF fills an `ifreq`, which `request` is.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNGETIFF, &raw mut request) } != 0 {
        return Err(Error::last("asking a TAP device for its flags"));
    }
    // SAFETY: TUNGETIFF has filled this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags) & libc::IFF_VNET_HDR != 0)
}

impl Tap {
    /// Makes a TAP device of plain frames in the calling thread's network namespace. `name` may
    /// end in `%d`, in place of which the kernel puts a free number. It is down at first.
    ///
    /// # Errors
    /// [`Error::NoTun`] if /dev/net/tun is missing or not permitted, [`Error::InvalidName`],
    /// [`Error::System`] if the name is taken.
    pub fn create(name: &str) -> Result<Self, Error> {
        Tap::new(name, false)
    }

    /// As [`Tap::create`], with a [`vnet::HEADER_LEN`]-byte `virtio_net_hdr` before each frame, so
    /// that super-segments and unfinished checksums pass.
    ///
    /// # Errors
    /// As [`Tap::create`].
    pub fn create_with_vnet_header(name: &str) -> Result<Self, Error> {
        Tap::new(name, true)
    }

    fn new(name: &str, vnet_header: bool) -> Result<Self, Error> {
        let (fd, name) = open(name, libc::IFF_TAP, vnet_header)?;
        Ok(Tap { fd, name })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device's index; to be asked in the namespace where it was made.
    ///
    /// # Errors
    /// [`Error::NoInterface`] in another namespace.
    pub fn index(&self) -> Result<u32, Error> {
        interface_index(&self.name)
    }
}

/// Opens a TAP or TUN device (`kind`) without packet information; returns the name that it has.
pub(crate) fn open(
    name: &str,
    kind: libc::c_int,
    vnet_header: bool,
) -> Result<(OwnedFd, String), Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
        .map_err(|errno| Error::NoTun { source: errno.into() })?;
    let mut request = interface_request(name)?;
    let mut flags = kind | libc::IFF_NO_PI;
    if vnet_header {
        flags |= libc::IFF_VNET_HDR;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and fills an `ifreq`, which `request` is.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } != 0 {
        let source = io::Error::last_os_error();
        return Err(match source.raw_os_error() {
            Some(libc::EPERM) => Error::NoTun { source },
            _ => Error::System { doing: "making a TAP or TUN device", source },
        });
    }
    if vnet_header {
        configure_vnet(fd.as_fd())?;
    }
    // SAFETY: the kernel returns a NUL-terminated name in this array.
    let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
    Ok((fd, name.to_string_lossy().into_owned()))
}

fn configure_vnet(fd: BorrowedFd<'_>) -> Result<(), Error> {
    let len = vnet::HEADER_LEN as libc::c_int;
    // SAFETY: TUNSETVNETHDRSZ reads one int, which outlives the call.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const len) } != 0 {
        return Err(Error::last("setting a TAP or TUN device's header length"));
    }
    let features = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    // SAFETY: TUNSETOFFLOAD takes its flags by value.
    let result =
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(features)) };
    if result != 0 {
        return Err(Error::last("turning a TAP or TUN device's offloads on"));
    }
    Ok(())
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Tap> for OwnedFd {
    fn from(tap: Tap) -> Self {
        tap.fd
    }
}
