//! The ends of a link: an interface by AF_PACKET, or a TAP device.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use packet::clock::{self, RealtimeOffset};
use packet::{RingOptions, RxRing, SocketOptions, vnet};
use units::Time;

use crate::options::Size;
use crate::pool::{Buffer, Pool};
use crate::stats::PumpCounters;
use crate::{Error, Options};

/// Frames taken from a port in one turn, and sent by one system call.
pub(crate) const BATCH: usize = 64;

/// One end of a link.
#[derive(Debug)]
pub enum Port {
    /// An interface of the calling thread's network namespace, usually a veth whose peer is in the
    /// node's. What comes out of the peer is received and stamped by the kernel here.
    Packet {
        /// The interface's index ([`packet::interface_index`]).
        interface: u32,
    },
    /// The descriptor of a TAP device, made in the node's namespace ([`packet::Tap`]). Its frames
    /// carry no time of arrival; the pump takes the time at which it reads them.
    Tap(OwnedFd),
}

/// A port that is open.
#[derive(Debug)]
pub(crate) enum OpenPort {
    Packet(RxRing),
    Tap(OwnedFd),
}

/// What a port's frames go to: a time of arrival and the frame.
pub(crate) trait Sink {
    fn frame(&mut self, arrival: Time, frame: Buffer);
}

/// What one turn at a port yielded.
pub(crate) struct Taken {
    /// No frame is left that arrived up to this time.
    pub(crate) horizon: Time,
    /// The port failed for good.
    pub(crate) broken: bool,
    /// System calls made.
    pub(crate) calls: u64,
    /// Whether there was any frame.
    pub(crate) any: bool,
}

impl OpenPort {
    /// Opens `port` in the calling thread's network namespace.
    pub(crate) fn open(port: Port, options: &Options, size: Size) -> Result<Self, Error> {
        match port {
            Port::Packet { interface } => {
                let socket = SocketOptions {
                    vnet_header: options.offload,
                    send_buffer: Some(4 << 20),
                    ..SocketOptions::default()
                };
                let ring = RingOptions { frames: size.ring_frames, frame_bytes: size.frame_bytes };
                Ok(OpenPort::Packet(RxRing::open(interface, &socket, ring)?))
            }
            Port::Tap(fd) => {
                let device = packet::has_vnet_header(fd.as_fd())?;
                if device != options.offload {
                    return Err(Error::OffloadMismatch { device });
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
    pub(crate) fn take(
        &mut self,
        now: Time,
        floor: Time,
        offset: RealtimeOffset,
        pool: &Rc<Pool>,
        counters: &mut PumpCounters,
        sink: &mut impl Sink,
    ) -> Taken {
        match self {
            OpenPort::Packet(ring) => take_ring(ring, now, floor, offset, pool, counters, sink),
            OpenPort::Tap(fd) => take_tap(fd.as_fd(), now, floor, pool, counters, sink),
        }
    }

    /// Whether a frame waits, as far as that is known without a system call.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            OpenPort::Packet(ring) => ring.is_ready(),
            OpenPort::Tap(_) => false,
        }
    }

    pub(crate) fn is_tap(&self) -> bool {
        matches!(self, OpenPort::Tap(_))
    }

    /// Frames that the kernel lost because the port's ring was full.
    pub(crate) fn ring_drops(&mut self) -> u64 {
        match self {
            OpenPort::Packet(ring) => ring.statistics().map_or(0, |seen| seen.drops),
            OpenPort::Tap(_) => 0,
        }
    }

    /// Takes the error that a poll has found; false if the port is broken for good.
    pub(crate) fn recover(&self) -> bool {
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

/// A stamp that lies further back than this is not believed: the clock was set.
const OLDEST_STAMP: Duration = Duration::from_millis(500);

/// When a frame arrived: its stamp if that is sane, else the time at which it was read. Never
/// before `floor`, up to which the link has been told that no more frames come.
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
    counters: &mut PumpCounters,
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
    counters: &mut PumpCounters,
    sink: &mut impl Sink,
) -> Taken {
    let mut taken = Taken { horizon: floor, broken: false, calls: 0, any: false };
    // The descriptor's mode was checked when it was opened; a plain device has no header.
    for _ in 0..BATCH {
        let Some(mut buffer) = pool.take() else {
            // The frame must be read to be dropped, or it would be found again at once.
            taken.calls += 1;
            match packet::receive(fd, &mut [0; 64]) {
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
        match packet::receive(fd, room) {
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
        let pool = Pool::new(1, 100, 0).unwrap();
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
