//! Where frames of an interface wait until the stack takes them.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use packet::{PacketSocket, RingOptions, RxFrame, RxRing, SocketOptions};
use wire::ethernet;

use crate::Error;
use crate::device::MAX_PACKET;
use crate::filter::{self, Lengths};
use crate::interface::Interface;

/// Frames of the link's own size that may wait: four for each of a thousand connections that all end at once.
const FRAMES: u32 = 4096;
/// Super-segments that may wait. Each has room for 64 KiB: 17 MB in all.
const SUPER_SEGMENTS: u32 = 256;

/// One ring; where super-segments come, two: as many places for short frames, were each as long as a super-segment,
/// would take 270 MB.
#[derive(Debug)]
pub(crate) struct Rings {
    short: RxRing,
    long: Option<RxRing>,
}

impl Rings {
    /// Opens them on an interface of the calling thread's network namespace, for what is sent to `addresses`.
    pub(crate) fn open(
        interface: &Interface,
        vnet: bool,
        addresses: &[IpAddr],
    ) -> Result<Rings, Error> {
        let options = SocketOptions { vnet_header: vnet, ..SocketOptions::default() };
        let open = |frames, frame_bytes, lengths| -> Result<RxRing, Error> {
            let ring =
                RxRing::open(interface.index, &options, RingOptions { frames, frame_bytes })?;
            filter::attach(ring.as_fd(), addresses, lengths)?;
            Ok(ring)
        };
        // With a VLAN tag.
        let own = u32::from(interface.mtu) + ethernet::HEADER_LEN as u32 + 4;
        if !vnet {
            return Ok(Rings { short: open(FRAMES, own, Lengths::Any)?, long: None });
        }
        Ok(Rings {
            short: open(FRAMES, own, Lengths::UpTo(own))?,
            long: Some(open(SUPER_SEGMENTS, MAX_PACKET as u32 + 64, Lengths::Above(own))?),
        })
    }

    /// A socket on the interface.
    pub(crate) fn socket(&self) -> &PacketSocket {
        self.short.socket()
    }

    fn all(&self) -> impl Iterator<Item = &RxRing> {
        [Some(&self.short), self.long.as_ref()].into_iter().flatten()
    }

    /// Descriptors of which one becomes readable when a frame waits.
    pub(crate) fn duplicate(&self) -> io::Result<Vec<OwnedFd>> {
        self.all().map(|ring| ring.as_fd().try_clone_to_owned()).collect()
    }

    /// Whether a frame waits. No system call.
    pub(crate) fn is_ready(&self) -> bool {
        self.all().any(RxRing::is_ready)
    }

    /// Takes an error that a socket keeps.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        // Of both: one that is not taken wakes whoever waits again.
        let errors: [Option<io::Error>; 2] =
            [Some(&self.short), self.long.as_ref()].map(|ring| ring?.socket().take_error());
        errors.into_iter().flatten().next()
    }

    /// Frames that were lost since there was no room for them.
    pub(crate) fn lost(&mut self) -> Result<u64, packet::Error> {
        let short = self.short.statistics()?.drops;
        let long = self.long.as_mut().map(RxRing::statistics).transpose()?;
        Ok(short + long.map_or(0, |long| long.drops))
    }

    /// The oldest frame that waits.
    pub(crate) fn receive(&mut self) -> Option<RxFrame<'_>> {
        if self.is_long_first() { self.long.as_mut()?.receive() } else { self.short.receive() }
    }

    /// Whether the oldest frame that waits is a long one.
    fn is_long_first(&self) -> bool {
        let Some(long) = &self.long else { return false };
        let (short, Some(long)) = (self.short.next_arrival(), long.next_arrival()) else {
            return false;
        };
        // Looked at again: a short one may have come before the long one, and after the first look.
        short.or_else(|| self.short.next_arrival()).is_none_or(|short| long < short)
    }
}
