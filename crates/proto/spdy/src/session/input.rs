//! What is received: bytes to pieces, data to streams.

use bytes::Bytes;
use units::Time;
use wire::spdy::{Frame, Header, RstStatus, StreamId};

use super::{Incoming, Session};
use crate::error::SessionError;
use crate::event::{Event, ResetReason};
use crate::input::Piece;

impl Session {
    /// Takes bytes from the transport. They are parsed as [`Session::poll_event`] asks for events; large
    /// pieces of data are parts of `bytes`, not copies.
    pub fn receive(&mut self, bytes: Bytes) {
        self.input.push(bytes);
    }

    /// The next event; `None` when all that was received is parsed. What answers it, as PING, waits to
    /// be written.
    pub fn poll_event(&mut self, now: Time) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let piece = self.input.next()?;
            if let Err(error) = self.take(now, piece) {
                self.fail(error);
            } else if self.out.answers + self.out.urgent.len() > self.config.max_answers {
                self.fail(SessionError::AnswersUnread);
            }
        }
    }

    fn take(&mut self, now: Time, piece: Piece) -> Result<(), SessionError> {
        match piece {
            Piece::BadVersion => Err(SessionError::Version),
            Piece::TooLarge(header, stream) => {
                let blocks =
                    matches!(header, Header::Control { kind, .. } if kind.has_header_block());
                self.too_large(blocks.then_some(stream))
            }
            Piece::Control(header, data) => {
                self.counters.received.control_frames += 1;
                let frame = Frame::parse(header, &data).map_err(SessionError::Malformed)?;
                self.control(now, frame)
            }
            Piece::DataFrame { stream, fin, length } => {
                self.counters.received.data_frames += 1;
                self.counters.received.data_bytes += length as u64;
                let deliver = self.admit_data(now, stream, fin, length)?;
                self.incoming = Some(Incoming { stream, fin, deliver });
                if length == 0 {
                    self.data(Bytes::new(), true);
                }
                Ok(())
            }
            Piece::Data { data, last } => {
                self.data(data, last);
                Ok(())
            }
        }
    }

    /// §2.6.3: after FRAME_TOO_LARGE for a frame whose block was not decompressed, the session ends.
    pub(super) fn too_large(&mut self, stream: Option<StreamId>) -> Result<(), SessionError> {
        if let Some(stream) = stream {
            self.queue_reset(stream, RstStatus::FRAME_TOO_LARGE);
        }
        Err(SessionError::TooLarge)
    }

    /// Checks and counts a data frame; whether its payload goes to the stream.
    fn admit_data(
        &mut self,
        now: Time,
        id: StreamId,
        fin: bool,
        length: usize,
    ) -> Result<bool, SessionError> {
        if id == StreamId::SESSION {
            return Err(SessionError::StreamZero);
        }
        if length == 0 && !fin {
            self.idle_frame(now)?;
        }
        // §2.6.8: every frame counts for the session's window, even one in error.
        if let Some(flow) = &mut self.flow {
            if !flow.receive.take(length, 0) {
                return Err(SessionError::WindowViolated);
            }
            self.changes.receive_window(None, flow.receive.size());
        }
        let slack = self.slack();
        let Some(stream) = self.streams.get_mut(&id) else {
            return self.data_without_stream(now, id).map(|()| false);
        };
        let misuse = if !stream.receive.replied {
            // §2.2.2: data before the SYN_REPLY.
            Some(RstStatus::PROTOCOL_ERROR)
        } else if stream.receive.finished {
            // §2.3.6.
            Some(RstStatus::STREAM_ALREADY_CLOSED)
        } else if !stream.receive.window.take(length, slack) {
            Some(RstStatus::FLOW_CONTROL_ERROR)
        } else {
            None
        };
        if let Some(status) = misuse {
            self.misused(now, id, status)?;
            return Ok(false);
        }
        if length > 0 {
            self.flood.useful_frame();
            self.changes.receive_window(Some(id), stream.receive.window.size());
        }
        Ok(true)
    }

    /// Data for a stream that is not open.
    fn data_without_stream(&mut self, now: Time, id: StreamId) -> Result<(), SessionError> {
        // §2.4.2: what was on the way when this side reset the stream; §2.6.6: after its GOAWAY.
        let refused = self.end.go_away_sent.is_some_and(|last| !self.is_own(id) && id > last);
        if refused || self.resets.contains(&id) {
            return Ok(());
        }
        // §2.3.7 for a stream that is closed, §2.2.2 for one that never was open.
        let status = match self.was_opened(id) {
            true => RstStatus::PROTOCOL_ERROR,
            false => RstStatus::INVALID_STREAM,
        };
        self.misused(now, id, status)
    }

    /// A piece of the data frame that began last.
    fn data(&mut self, data: Bytes, last: bool) {
        let Some(Incoming { stream: id, fin, deliver }) = self.incoming else { return };
        if last {
            self.incoming = None;
        }
        let length = data.len() as u64;
        let stream = self.streams.get_mut(&id).filter(|_| deliver);
        let Some(stream) = stream else {
            self.session_consumed(length);
            return;
        };
        let fin = fin && last;
        stream.receive.unconsumed += length;
        stream.receive.finished |= fin;
        if length > 0 || fin {
            self.events.push_back(Event::Data { stream: id, data, fin });
        }
        self.refresh(id);
    }

    /// A stream error (§2.4.2): RST_STREAM, and the stream is gone.
    pub(super) fn misused(
        &mut self,
        now: Time,
        id: StreamId,
        status: RstStatus,
    ) -> Result<(), SessionError> {
        self.idle_frame(now)?;
        self.queue_reset(id, status);
        self.out.answers += 16;
        if self.streams.contains_key(&id) {
            self.remove(id);
            let reason = ResetReason::Misused(status);
            self.events.push_back(Event::Reset { stream: id, reason });
        }
        Ok(())
    }

    /// Counts a frame that brings nothing.
    pub(super) fn idle_frame(&mut self, now: Time) -> Result<(), SessionError> {
        if self.flood.idle_frame(now) { Ok(()) } else { Err(SessionError::Flood) }
    }
}
