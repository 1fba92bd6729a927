//! An interface that a tester sends and receives on.

use std::os::fd::AsFd;

use packet::clock::RealtimeOffset;
use packet::{Poller, RingOptions, RxRing, SendBatch, SocketOptions};
use traffic::Tally;
use units::Time;

use crate::Error;
use crate::frames::{Addressing, probe_of};

/// Bytes of the send buffer: a batch of long frames has room.
const SEND_BUFFER: u32 = 4 << 20;
/// Frames that the receive ring holds.
const RING_FRAMES: u32 = 8192;
/// Frames taken in one turn, before others get theirs.
const TURN: usize = 256;

/// An interface of the namespace in which it was opened. It may be used from any thread.
#[derive(Debug)]
pub struct Port {
    interface: String,
    addressing: Addressing,
    ring: RxRing,
}

impl Port {
    /// Opens an interface of the calling thread's network namespace for frames of up to `longest` bytes;
    /// what is sent there goes as `addressing` says.
    ///
    /// # Errors
    /// [`Error::Port`]: there is none of this name, or raw sockets are not permitted.
    pub fn open(interface: &str, addressing: Addressing, longest: u32) -> Result<Port, Error> {
        let failed = |source| Error::Port { interface: interface.to_owned(), source };
        let index = packet::interface_index(interface).map_err(failed)?;
        let socket = SocketOptions {
            promiscuous: true,
            send_buffer: Some(SEND_BUFFER),
            ..SocketOptions::default()
        };
        let ring = RingOptions { frames: RING_FRAMES, frame_bytes: longest.max(1522) };
        let ring = RxRing::open(index, &socket, ring).map_err(failed)?;
        Ok(Port { interface: interface.to_owned(), addressing, ring })
    }

    /// From whom to whom its frames go.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        self.addressing
    }

    /// Whether a frame waits.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.ring.is_ready()
    }

    pub(crate) fn add_to(&self, poller: &mut Poller) {
        poller.add(self.ring.as_fd());
    }

    /// Sends frames; returns how many the kernel took, or `None` if it refuses the first for now.
    ///
    /// # Errors
    /// [`Error::Send`]: it is refused for good.
    pub(crate) fn send<'f>(
        &self,
        batch: &mut SendBatch,
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> Result<Option<usize>, Error> {
        match batch.send(self.ring.as_fd(), frames) {
            Ok(count) => Ok(Some(count)),
            Err(error) if is_passing(&error) => Ok(None),
            Err(source) => Err(Error::Send { interface: self.interface.clone(), source }),
        }
    }

    /// Takes what came, up to [`TURN`] frames; true if there was any of the tester's.
    pub(crate) fn take(&mut self, offset: RealtimeOffset, now: Time, tally: &mut Tally) -> bool {
        let mut any = false;
        for _ in 0..TURN {
            let Some(frame) = self.ring.receive() else { break };
            let Some(probe) = probe_of(frame.bytes()) else { continue };
            // A frame may have come after `now` was read: its stamp says so. One before it was sent is a step
            // of the clock.
            let stamp = offset.to_monotonic(frame.timestamp());
            let came = if stamp < probe.sent { now.max(probe.sent) } else { stamp };
            tally.receive(came, &probe, frame.original_len());
            any = true;
        }
        any
    }

    /// Throws away what came before a trial.
    pub(crate) fn drain(&mut self) {
        while let Some(frame) = self.ring.receive() {
            drop(frame);
        }
    }

    /// Frames that its ring had no room for, since it was opened.
    pub(crate) fn ring_drops(&mut self) -> u64 {
        self.ring.statistics().map_or(0, |seen| seen.drops)
    }
}

/// Whether a refusal is of one moment: a queue is full.
fn is_passing(error: &std::io::Error) -> bool {
    // EAGAIN, ENOBUFS, EINTR on Linux, by what the standard library makes of them, or by number.
    const ENOBUFS: i32 = 105;
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
        || error.raw_os_error() == Some(ENOBUFS)
}
