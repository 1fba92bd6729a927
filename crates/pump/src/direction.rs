//! One direction of a link: a port's frames through the link model to another port.

use std::rc::Rc;
use std::time::Duration;

use hdrhistogram::Histogram;
use linkmodel::{Link, LinkConfig, Output};
use packet::clock::{self, RealtimeOffset};
use packet::{BATCH, Buffer, OpenPort, Pool, PortCounters, SendBatch, Sink};
use units::Time;

use crate::pool::Held;
use crate::queue::QueueWatch;
use crate::stats::{DirectionStats, PumpCounters, TimeSummary};

/// Frames that leave in one turn before other links get theirs.
const TURN: usize = 4 * BATCH;

/// One direction of a link.
pub(crate) struct Direction {
    link: Link<Held>,
    came: PortCounters,
    counters: PumpCounters,
    /// Up to this time the link has been told everything.
    horizon: Time,
    /// Frames to be sent by the next system call, with their due times.
    outbox: Vec<(Held, Time)>,
    errors: Histogram<u64>,
    /// Since when the link is connected; frames that came before are lost. `None` while it is not.
    connected: Option<Time>,
    queue: QueueWatch,
}

/// What one turn did.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) sent: u64,
    pub(crate) send_calls: u64,
    pub(crate) receive_calls: u64,
    /// The incoming port failed for good.
    pub(crate) broken: bool,
    /// A frame came in.
    pub(crate) took: bool,
}

/// Where a port's frames go.
struct Inlet<'l>(&'l mut Link<Held>);

impl Sink for Inlet<'_> {
    #[inline]
    fn frame(&mut self, arrival: Time, buffer: Buffer) {
        // A dropped frame is counted by the link; its buffer goes back to the pool here.
        let _ = self.0.handle_frame(arrival, Held { buffer, entered: arrival });
    }
}

impl Direction {
    pub(crate) fn new(link: Link<Held>, now: Time) -> Self {
        Direction {
            link,
            came: PortCounters::default(),
            counters: PumpCounters::default(),
            horizon: now,
            outbox: Vec::with_capacity(BATCH),
            errors: new_histogram(),
            connected: Some(now),
            queue: QueueWatch::default(),
        }
    }

    /// Connects both ports, or takes them apart: what is under way then is lost.
    pub(crate) fn connect(&mut self, since: Option<Time>) {
        self.connected = since;
    }

    /// Takes frames from `from`, and sends to `to` what is due by `now`.
    pub(crate) fn turn(
        &mut self,
        from: &mut OpenPort,
        to: &OpenPort,
        now: Time,
        offset: RealtimeOffset,
        pool: &Rc<Pool>,
        batch: &mut SendBatch,
    ) -> Turn {
        let mut turn = Turn::default();
        let (came, mut inlet) = (&mut self.came, Inlet(&mut self.link));
        let taken = from.take(now, self.horizon, offset, pool, came, &mut inlet);
        turn.receive_calls = taken.calls;
        turn.broken = taken.broken;
        turn.took = taken.any;
        self.horizon = taken.horizon;
        let lost_copies = pool.take_refused_copies();
        self.counters.no_buffer_for_copy += lost_copies;
        for _ in 0..TURN {
            match self.link.poll(self.horizon) {
                Some(Output::Deliver { frame, .. })
                    if self.connected.is_none_or(|since| frame.entered < since) =>
                {
                    self.counters.refused += 1;
                }
                Some(Output::Deliver { frame, due }) => {
                    self.outbox.push((frame, due));
                    if self.outbox.len() == BATCH {
                        self.flush(to, batch, &mut turn);
                    }
                }
                Some(Output::Drop(dropped)) => drop(dropped),
                None => break,
            }
        }
        self.flush(to, batch, &mut turn);
        self.queue.note(self.link.waits_until(self.horizon));
        turn
    }

    /// Sends the outbox.
    fn flush(&mut self, to: &OpenPort, batch: &mut SendBatch, turn: &mut Turn) {
        let frames = self.outbox.len();
        if frames == 0 {
            return;
        }
        let start = clock::monotonic();
        let sent =
            to.send_all(batch, self.outbox.iter().map(|(frame, _)| frame.buffer.wire_bytes()));
        self.counters.given += sent.given;
        self.counters.refused += sent.refused;
        // One frame alone is sent at the start; of several, each has its share of the call.
        let share = match frames {
            1 => Duration::ZERO,
            _ => clock::monotonic().saturating_since(start) / frames as u32,
        };
        for (place, (_, due)) in self.outbox.iter().enumerate() {
            let late = (start + share * place as u32).saturating_since(*due);
            self.errors.saturating_record(late.as_nanos() as u64);
        }
        self.outbox.clear();
        turn.sent += frames as u64;
        turn.send_calls += sent.calls;
    }

    /// Says when frames last waited.
    pub(crate) fn queue(&self) -> QueueWatch {
        self.queue.clone()
    }

    /// When a frame is next due, or something happens in the link.
    #[inline]
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.link.next_event()
    }

    pub(crate) fn set_config(
        &mut self,
        now: Time,
        config: LinkConfig,
    ) -> Result<(), linkmodel::ConfigError> {
        self.link.set_config(now, config)
    }

    pub(crate) fn restart(&mut self, now: Time) {
        self.link.restart(now);
    }

    pub(crate) fn clear_errors(&mut self) {
        self.errors.reset();
    }

    pub(crate) fn stats(&self, ring_full: u64) -> DirectionStats {
        DirectionStats {
            link: *self.link.counters(),
            in_flight: self.link.in_flight(),
            pump: PumpCounters {
                taken: self.came.taken,
                too_long: self.came.too_long,
                no_buffer: self.came.no_buffer,
                unfinished_checksum: self.came.unfinished_checksum,
                ring_full,
                ..self.counters
            },
            release_error: TimeSummary::from(&self.errors),
        }
    }
}

/// From 1 ns to 60 s with two digits: 60 kB, allocated here and never again.
fn new_histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, 60_000_000_000, 2) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("these bounds are valid"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_takes_any_time_without_growing() {
        let mut histogram = new_histogram();
        let places = histogram.distinct_values();
        for nanos in [0, 1, 999, 1_000_000, 60_000_000_000, u64::MAX] {
            histogram.saturating_record(nanos);
        }
        assert_eq!((histogram.len(), histogram.distinct_values()), (6, places));
    }
}
