//! TUN devices: an interface whose IP packets go to a file descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::interface_index;
use crate::{Error, tap};

/// A TUN device of the namespace in which it was made; it is gone when this is dropped, unless it
/// was there before and is persistent (`ip tuntap add`).
///
/// Each read takes one IP packet, each write gives one ([`crate::receive`], [`crate::send`]).
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
}

impl Tun {
    /// Makes a TUN device of plain packets in the calling thread's network namespace, or attaches
    /// to a persistent one of that name and kind, which an ordinary user may if it is theirs.
    /// `name` may end in `%d`, in place of which the kernel puts a free number. A new one is down.
    ///
    /// # Errors
    /// [`Error::NoTun`] if /dev/net/tun is missing or not permitted, [`Error::InvalidName`],
    /// [`Error::System`] if the name is taken.
    pub fn create(name: &str) -> Result<Self, Error> {
        Tun::new(name, false)
    }

    /// As [`Tun::create`], with a [`crate::vnet::HEADER_LEN`]-byte `virtio_net_hdr` before each
    /// packet, so that super-segments and unfinished checksums pass.
    ///
    /// # Errors
    /// As [`Tun::create`].
    pub fn create_with_vnet_header(name: &str) -> Result<Self, Error> {
        Tun::new(name, true)
    }

    fn new(name: &str, vnet_header: bool) -> Result<Self, Error> {
        let (fd, name) = tap::open(name, libc::IFF_TUN, vnet_header)?;
        Ok(Tun { fd, name })
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

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Tun> for OwnedFd {
    fn from(tun: Tun) -> Self {
        tun.fd
    }
}
