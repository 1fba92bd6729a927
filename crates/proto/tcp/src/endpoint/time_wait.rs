//! Segments of connections in TIME-WAIT (RFC 9293 §3.10.7.4).

use units::{SeqNumber, Time};
use wire::tcp::{Flags, OptionList};

use super::Endpoint;
use crate::Ignored;
use crate::segment::{Outgoing, Segment};
use crate::time_wait::{Final, Tuple};

/// The fate of a segment whose addresses may be in TIME-WAIT.
pub(super) enum Waited {
    /// They are not.
    Unknown,
    /// The segment was the old connection's.
    Taken(Result<(), Ignored>),
    /// A SYN begins a new connection in its place, whose sequence numbers are beyond `used`.
    Over { used: SeqNumber },
}

impl Endpoint {
    /// Takes a segment for a connection in TIME-WAIT. `has_listener` says whether a SYN could begin a new one.
    pub(super) fn give_to_time_wait(
        &mut self,
        now: Time,
        tuple: &Tuple,
        segment: &Segment<'_>,
        has_listener: bool,
    ) -> Waited {
        let Some(last) = self.time_wait.get(now, tuple).map(|last| last.numbers) else {
            return Waited::Unknown;
        };
        if segment.is(Flags::RST) {
            // RFC 1337: not assassinated
            return Waited::Taken(Err(Ignored::Unacceptable));
        }
        if has_listener && self.begins_anew(&last, segment) {
            self.time_wait.remove(tuple);
            return Waited::Over { used: last.send_next };
        }
        if segment.ack.is_none() && !segment.is(Flags::SYN) {
            return Waited::Taken(Err(Ignored::Unacceptable));
        }
        let end = segment.seq + segment.sequence_len();
        // The peer's FIN once more, the last that it sent, begins the 2 MSL again; any other has another number.
        if segment.is(Flags::FIN) && end == last.receive_next {
            let stamp = segment.options.timestamps.map(|(value, _)| value);
            self.time_wait.begin_again(now, tuple, self.config.time_wait, stamp);
        }
        if self.is_to_be_acknowledged(now, tuple, &last, segment) {
            self.acknowledge_from_time_wait(now, tuple, &last);
        }
        Waited::Taken(Ok(()))
    }

    /// RFC 6191 §2: whether a SYN is surely newer than the connection before.
    fn begins_anew(&self, last: &Final, segment: &Segment<'_>) -> bool {
        if !segment.is(Flags::SYN) || segment.ack.is_some() || segment.is(Flags::FIN) {
            return false;
        }
        let beyond = segment.seq.distance(last.receive_next) >= 0;
        let stamp = segment.options.timestamps.filter(|_| self.config.timestamps);
        match (last.timestamp, stamp) {
            (Some(old), Some((new, _))) => match new.wrapping_sub(old) as i32 {
                0 => beyond,
                ticks => ticks > 0,
            },
            (None, Some(_)) => true,
            (_, None) => beyond,
        }
    }

    /// RFC 9293 §3.10.7.4: whatever lies outside the window, or acknowledges what was never sent. An ACK in place is
    /// the end of the exchange.
    fn is_to_be_acknowledged(
        &mut self,
        now: Time,
        tuple: &Tuple,
        last: &Final,
        segment: &Segment<'_>,
    ) -> bool {
        if segment.sequence_len() > 0 {
            return true;
        }
        let in_place = segment.seq == last.receive_next;
        let unsent = segment.ack.is_some_and(|ack| ack.distance(last.send_next) > 0);
        // Two sides that differ would answer each other without end.
        (!in_place || unsent) && self.time_wait.may_acknowledge(now, tuple)
    }

    fn acknowledge_from_time_wait(&mut self, now: Time, tuple: &Tuple, last: &Final) {
        let offset = self.secrets.timestamp_offset(tuple.0, tuple.1);
        let clock = ((now.as_nanos() / 1_000_000) as u32).wrapping_add(offset);
        let recent = self.time_wait.get(now, tuple).and_then(|last| last.numbers.timestamp);
        let ack = Outgoing {
            local: tuple.0,
            remote: tuple.1,
            seq: last.send_next,
            ack: Some(last.receive_next),
            flags: Flags(0),
            window: last.window,
            // RFC 7323 §3.2: in every segment once agreed
            options: OptionList {
                timestamps: recent.map(|recent| (clock, recent)),
                ..OptionList::default()
            },
            identification: 0,
        };
        self.push(ack, None);
    }
}
