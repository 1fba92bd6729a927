//! Ports: an interface by AF_PACKET, or a TAP device. What comes in goes into buffers of a pool; what goes out is
//! sent in batches.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use units::Time;

use crate::clock::{self, RealtimeOffset};
use crate::{
    Buffer, Error, Pool, RingOptions, RxRing, SendBatch, SocketOptions, has_vnet_header, receive,
    send, vnet,
};

/// Frames taken from a port in one turn, and sent by one system call.
pub const BATCH: usize = 64;

/// One end of a link.
#[derive(Debug)]
pub enum Port {
    /// An interface of the calling thread's network namespace, usually a veth whose peer is in a
    /// node's. What comes out of the peer is received and stamped by the kernel here.
    Packet {
        /// The interface's index ([`crate::interface_index`]).
        interface: u32,
    },
    /// The descriptor of a TAP device, made in the node's namespace ([`crate::Tap`]). Its frames
    /// carry no time of arrival; the time at which they are read counts.
    Tap(OwnedFd),
}

/// How ports are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortOptions {
    /// Frames that an AF_PACKET port holds until they are taken.
    pub ring_frames: u32,
    /// Bytes of the longest frame that is taken whole.
    pub frame_bytes: u32,
    /// Whether frames have a `virtio_net_hdr` before them.
    pub vnet_header: bool,
    /// Receive frames for other stations too: of hardware; veth and TAP filter nothing.
    pub promiscuous: bool,
}

/// Bytes of send buffer asked for.
const SEND_BUFFER: u32 = 4 << 20;

/// A port that is open.
#[derive(Debug)]
pub enum OpenPort {
    /// An interface, by AF_PACKET.
    Packet(RxRing),
    /// A TAP device.
    Tap(OwnedFd),
}

/// What a port's frames go to.
pub trait Sink {
    /// A frame that arrived at this time (CLOCK_MONOTONIC).
    fn frame(&mut self, arrival: Time, frame: Buffer);
}

/// What a port has taken, and lost on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames taken, lost ones included.
    pub taken: u64,
    /// Of them dropped because they are longer than [`PortOptions::frame_bytes`].
    pub too_long: u64,
    /// Of them dropped because all buffers were in use.
    pub no_buffer: u64,
    /// Of them passed on with a checksum that the sender left to the device.
    pub unfinished_checksum: u64,
}

/// What one turn at a port yielded.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// No frame is left that arrived up to this time.
    pub horizon: Time,
    /// The port failed for good.
    pub broken: bool,
    /// System calls made.
    pub calls: u64,
    /// Whether there was any frame.
    pub any: bool,
}

/// What became of frames to be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that the kernel took.
    pub given: u64,
    /// Frames that it refused: they are dropped, as a full device queue would.
    pub refused: u64,
    /// System calls made.
    pub calls: u64,
}

impl OpenPort {
    /// Opens `port` in the calling thread's network namespace.
    ///
    /// # Errors
    /// As [`RxRing::open`]; [`Error::HeaderMismatch`] for a TAP device that was made otherwise.
    pub fn open(port: Port, options: &PortOptions) -> Result<Self, Error> {
        match port {
            Port::Packet { interface } => {
                let socket = SocketOptions {
                    vnet_header: options.vnet_header,
                    promiscuous: options.promiscuous,
                    send_buffer: Some(SEND_BUFFER),
                    ..SocketOptions::default()
                };
                let PortOptions { ring_frames: frames, frame_bytes, .. } = *options;
                let ring = RingOptions { frames, frame_bytes };
                Ok(OpenPort::Packet(RxRing::open(interface, &socket, ring)?))
            }
            Port::Tap(fd) => {
                let device = has_vnet_header(fd.as_fd())?;
                if device != options.vnet_header {
                    return Err(Error::HeaderMismatch { device });
                }
                rustix::io::ioctl_fionbio(&fd, true).map_err(|errno| Error::System {
                    doing: "making a TAP device non-blocking",
                    source: errno.into(),
                })?;
                Ok(OpenPort::Tap(fd))
            }
        }
    }

    /// Takes up to [`BATCH`] frames. `now` is a time just before, `floor` the last horizon: no
    /// frame counts as having arrived before it.
    pub fn take(
        &mut self,
        now: Time,
        floor: Time,
        offset: RealtimeOffset,
        pool: &Rc<Pool>,
        counters: &mut PortCounters,
        sink: &mut impl Sink,
    ) -> Taken {
        match self {
            OpenPort::Packet(ring) => take_ring(ring, now, floor, offset, pool, counters, sink),
            OpenPort::Tap(fd) => take_tap(fd.as_fd(), now, floor, pool, counters, sink),
        }
    }

    /// Sends frames in order.
    pub fn send_all<'f>(
        &self,
        batch: &mut SendBatch,
        frames: impl ExactSizeIterator<Item = &'f [u8]> + Clone,
    ) -> Sent {
        send_all(self.as_fd(), self.is_tap(), batch, frames)
    }

    /// The port's sending half, for another thread or beside its receiving half.
    ///
    /// # Errors
    /// [`Error::System`] if there are too many descriptors.
    pub fn outlet(&self) -> Result<Outlet, Error> {
        let fd = self
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| Error::System { doing: "doubling a port's descriptor", source })?;
        Ok(Outlet { fd, is_tap: self.is_tap() })
    }

    /// Whether a frame waits, as far as that is known without a system call.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match self {
            OpenPort::Packet(ring) => ring.is_ready(),
            OpenPort::Tap(_) => false,
        }
    }

    /// Whether it is a TAP device.
    #[must_use]
    pub fn is_tap(&self) -> bool {
        matches!(self, OpenPort::Tap(_))
    }

    /// Frames that the kernel lost because the port's ring was full; not known of TAP devices.
    pub fn ring_drops(&mut self) -> u64 {
        match self {
            OpenPort::Packet(ring) => ring.statistics().map_or(0, |seen| seen.drops),
            OpenPort::Tap(_) => 0,
        }
    }

    /// Takes the error that a poll has found; false if the port is broken for good.
    #[must_use]
    pub fn recover(&self) -> bool {
        match self {
            // The interface went down and may come up again.
            OpenPort::Packet(ring) => ring.socket().take_error().is_some(),
            OpenPort::Tap(_) => false,
        }
    }
}

impl AsFd for OpenPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            OpenPort::Packet(ring) => ring.as_fd(),
            OpenPort::Tap(fd) => fd.as_fd(),
        }
    }
}

/// The sending half of a port.
#[derive(Debug)]
pub struct Outlet {
    fd: OwnedFd,
    is_tap: bool,
}

impl Outlet {
    /// Sends frames in order.
    pub fn send_all<'f>(
        &self,
        batch: &mut SendBatch,
        frames: impl ExactSizeIterator<Item = &'f [u8]> + Clone,
    ) -> Sent {
        send_all(self.fd.as_fd(), self.is_tap, batch, frames)
    }
}

fn send_all<'f>(
    fd: BorrowedFd<'_>,
    is_tap: bool,
    batch: &mut SendBatch,
    frames: impl ExactSizeIterator<Item = &'f [u8]> + Clone,
) -> Sent {
    let mut sent = Sent::default();
    if is_tap {
        for frame in frames {
            sent.calls += 1;
            match send(fd, frame) {
                Ok(()) => sent.given += 1,
                Err(_) => sent.refused += 1,
            }
        }
        return sent;
    }
    let (mut done, count) = (0, frames.len());
    while done < count {
        sent.calls += 1;
        match batch.send(fd, frames.clone().skip(done)) {
            Ok(taken) if taken > 0 => {
                done += taken;
                sent.given += taken as u64;
            }
            // The first of the rest is refused: drop it, as a full device queue would.
            Ok(_) | Err(_) => {
                done += 1;
                sent.refused += 1;
            }
        }
    }
    sent
}

/// A stamp that lies further back than this is not believed: the clock was set.
const OLDEST_STAMP: Duration = Duration::from_millis(500);

/// When a frame arrived: its stamp if that is sane, else the time at which it was read. Never
/// before `floor`, up to which it was said that no more frames come.
fn arrival(stamp: Time, now: Time, floor: Time) -> Time {
    let believed = stamp <= now && now.saturating_since(stamp) <= OLDEST_STAMP;
    (if believed { stamp } else { now }).max(floor)
}

fn take_ring(
    ring: &mut RxRing,
    now: Time,
    floor: Time,
    offset: RealtimeOffset,
    pool: &Rc<Pool>,
    counters: &mut PortCounters,
    sink: &mut impl Sink,
) -> Taken {
    let mut taken = Taken { horizon: floor, broken: false, calls: 0, any: false };
    let header = if ring.socket().has_vnet_header() { vnet::HEADER_LEN } else { 0 };
    for _ in 0..BATCH {
        let Some(frame) = ring.receive() else {
            taken.horizon = taken.horizon.max(now);
            return taken;
        };
        taken.any = true;
        counters.taken += 1;
        let stamp = offset.to_monotonic(frame.timestamp());
        // The frame may have come after `now` was read.
        let read = if stamp > now { clock::monotonic() } else { now };
        let at = arrival(stamp, read, taken.horizon);
        taken.horizon = at;
        if frame.bytes().len() < frame.original_len() {
            counters.too_long += 1;
            continue;
        }
        let Some(mut buffer) = pool.take() else {
            counters.no_buffer += 1;
            continue;
        };
        let bytes = frame.bytes_with_vnet_header();
        let fits = match frame.vlan() {
            None => buffer.fill(header, &[bytes]),
            Some(tag) => fill_with_tag(&mut buffer, header, bytes, tag),
        };
        if !fits {
            counters.too_long += 1;
            continue;
        }
        if header == 0 && frame.checksum_unfinished() {
            counters.unfinished_checksum += 1;
        }
        drop(frame);
        sink.frame(at, buffer);
    }
    taken
}

/// Puts the VLAN tag that the kernel has taken out back behind the addresses (IEEE 802.1Q §9).
fn fill_with_tag(buffer: &mut Buffer, header: usize, bytes: &[u8], tag: (u16, u16)) -> bool {
    let Some((addresses, rest)) = bytes.split_at_checked(header + 12) else {
        return buffer.fill(header, &[bytes]);
    };
    buffer.fill(header, &[addresses, &tag.0.to_be_bytes(), &tag.1.to_be_bytes(), rest])
}

fn take_tap(
    fd: BorrowedFd<'_>,
    now: Time,
    floor: Time,
    pool: &Rc<Pool>,
    counters: &mut PortCounters,
    sink: &mut impl Sink,
) -> Taken {
    let mut taken = Taken { horizon: floor, broken: false, calls: 0, any: false };
    // The descriptor's mode was checked when it was opened; a plain device has no header.
    for _ in 0..BATCH {
        let Some(mut buffer) = pool.take() else {
            // The frame must be read to be dropped, or it would be found again at once.
            taken.calls += 1;
            match receive(fd, &mut [0; 64]) {
                Ok(Some(_)) => {
                    counters.taken += 1;
                    counters.no_buffer += 1;
                    taken.any = true;
                    continue;
                }
                Ok(None) => taken.horizon = taken.horizon.max(now),
                Err(error) => taken.broken = !is_passing(&error),
            }
            return taken;
        };
        taken.calls += 1;
        let room = buffer.room(pool.header());
        let room_len = room.len();
        match receive(fd, room) {
            // A read that fills the buffer may have been cut short.
            Ok(Some(len)) if len >= room_len => {
                taken.any = true;
                counters.taken += 1;
                counters.too_long += 1;
            }
            Ok(Some(len)) => {
                taken.any = true;
                counters.taken += 1;
                buffer.set_len(len);
                let at = clock::monotonic().max(taken.horizon);
                taken.horizon = at;
                sink.frame(at, buffer);
            }
            Ok(None) => {
                taken.horizon = taken.horizon.max(now);
                return taken;
            }
            Err(error) => {
                taken.broken = !is_passing(&error);
                taken.horizon = taken.horizon.max(now);
                return taken;
            }
        }
    }
    taken
}

/// Whether an error of a read is about one frame or moment, not about the device.
fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::ENOMEM, libc::ENOBUFS, libc::EFAULT, libc::EINVAL, libc::EIO];
    error.raw_os_error().is_some_and(|code| passing.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PoolOptions;

    #[test]
    fn a_stamp_counts_unless_the_clock_was_set() {
        let now = Time::from_millis(10_000);
        let floor = Time::from_millis(9_000);
        let early = now - Duration::from_micros(30);
        assert_eq!(arrival(early, now, floor), early);
        // From the future, or long ago: the time of reading.
        assert_eq!(arrival(now + Duration::from_secs(3600), now, floor), now);
        assert_eq!(arrival(now - Duration::from_secs(3600), now, floor), now);
        // Time does not go back for the link.
        assert_eq!(arrival(early, now, now), now);
    }

    #[test]
    fn a_vlan_tag_goes_back_behind_the_addresses() {
        let options = PoolOptions {
            buffers: 1,
            frame_bytes: 100,
            headroom: 16,
            tailroom: 0,
            vnet_header: false,
        };
        let pool = Pool::new(options).unwrap();
        let mut buffer = pool.take().unwrap();
        let frame: Vec<u8> = (0..60).collect();
        assert!(fill_with_tag(&mut buffer, 0, &frame, (0x88a8, 0x0123)));
        let got = buffer.wire_bytes();
        assert_eq!(got.len(), 64);
        assert_eq!(got[..12], frame[..12]);
        assert_eq!(got[12..16], [0x88, 0xa8, 0x01, 0x23]);
        assert_eq!(got[16..], frame[12..]);
    }
}
