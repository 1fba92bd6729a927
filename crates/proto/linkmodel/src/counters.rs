//! What happened on a link so far.

use serde::Serialize;

use crate::frame::DropCause;

/// A number of frames and their bytes (Ethernet frames, without frame check sequence).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many frames.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

impl Tally {
    /// Counts one frame of `len` bytes.
    pub(crate) fn add(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }
}

/// Frames dropped, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DropTallies {
    /// SYNs with data that a middlebox dropped ([`DropCause::Middlebox`]).
    pub middlebox: Tally,
    /// Drawn by the loss model ([`DropCause::Loss`]).
    pub loss: Tally,
    /// The queue had no room ([`DropCause::QueueFull`]).
    pub queue_full: Tally,
    /// Dropped by CoDel ([`DropCause::Codel`]).
    pub codel: Tally,
    /// Sent while the link was down ([`DropCause::Outage`]).
    pub outage: Tally,
    /// Too much was under way ([`DropCause::DelayLineFull`]).
    pub delay_line_full: Tally,
}

impl DropTallies {
    /// The tally of one cause.
    #[must_use]
    pub fn of(&self, cause: DropCause) -> Tally {
        match cause {
            DropCause::Middlebox => self.middlebox,
            DropCause::Loss => self.loss,
            DropCause::QueueFull => self.queue_full,
            DropCause::Codel => self.codel,
            DropCause::Outage => self.outage,
            DropCause::DelayLineFull => self.delay_line_full,
        }
    }

    pub(crate) fn add(&mut self, cause: DropCause, len: usize) {
        match cause {
            DropCause::Middlebox => &mut self.middlebox,
            DropCause::Loss => &mut self.loss,
            DropCause::QueueFull => &mut self.queue_full,
            DropCause::Codel => &mut self.codel,
            DropCause::Outage => &mut self.outage,
            DropCause::DelayLineFull => &mut self.delay_line_full,
        }
        .add(len);
    }
}

/// What happened on a link so far.
///
/// At any moment `received + duplicated == delivered + dropped + in flight`, in frames; in bytes the
/// right side has those of `stripped` besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames handed to the link.
    pub received: Tally,
    /// Frames given out at the far end.
    pub delivered: Tally,
    /// Frames whose data a middlebox took out, and the bytes taken.
    pub stripped: Tally,
    /// Frames dropped, by cause.
    pub dropped: DropTallies,
    /// Copies made. A copy that the queue refused is counted here and as dropped.
    pub duplicated: Tally,
    /// Frames in which a bit was inverted.
    pub corrupted: u64,
    /// Frames that were sent to overtake at least one that had entered before them.
    pub reordered: u64,
}

impl Counters {
    /// Frames dropped for any cause.
    #[must_use]
    pub fn dropped_in_all(&self) -> Tally {
        DropCause::ALL.iter().fold(Tally::default(), |sum, cause| {
            let one = self.dropped.of(*cause);
            Tally { frames: sum.frames + one.frames, bytes: sum.bytes + one.bytes }
        })
    }
}
