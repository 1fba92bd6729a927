//! What the program asks for.

use bytes::Bytes;
use units::Time;
use wire::spdy::{Frame, Headers, MAX_WINDOW, Priority, RstStatus, StreamId};

use super::Session;
use crate::config::Role;
use crate::error::{CallError, SessionError};
use crate::stream::{Begin, Item, Stream};

/// Bytes of control frames beyond which no more headers are queued.
const CONTROL_FULL: usize = 1 << 20;

/// Headers and pieces of data on one stream beyond which no more headers are queued.
const ITEMS_FULL: usize = 1024;

/// Pings that may wait for their answers.
const PINGS: usize = 16;

impl Session {
    /// A client opens a stream: a request. With `fin` it has no body.
    ///
    /// # Errors
    /// [`CallError::TooManyStreams`], [`CallError::GoingAway`], [`CallError::Over`], [`CallError::Full`];
    /// for a server [`CallError::NotAllowed`].
    pub fn open(
        &mut self,
        headers: &Headers,
        priority: Priority,
        fin: bool,
    ) -> Result<StreamId, CallError> {
        if self.role == Role::Server {
            return Err(CallError::NotAllowed);
        }
        let begin = Begin { priority, associated: None, own: true, unidirectional: false, fin };
        self.open_own(headers, begin)
    }

    /// A server pushes a stream with one of the client's (§3.3.1): only the server sends on it.
    /// `headers` name the resource (`:scheme`, `:host`, `:path`) and may have the response's.
    ///
    /// # Errors
    /// As [`Session::open`]; [`CallError::NotAllowed`] for a client, for an `associated` stream that is
    /// not open for sending, or without the resource's name.
    pub fn push(
        &mut self,
        associated: StreamId,
        headers: &Headers,
        priority: Priority,
        fin: bool,
    ) -> Result<StreamId, CallError> {
        // §3.3.1: only before FLAG_FIN on the originating stream.
        let open = self.streams.get(&associated).is_some_and(|stream| !stream.send.fin_queued);
        if self.role == Role::Client || self.is_own(associated) || !open || !names_resource(headers)
        {
            return Err(CallError::NotAllowed);
        }
        let associated = Some(associated);
        let begin = Begin { priority, associated, own: true, unidirectional: true, fin };
        let id = self.open_own(headers, begin)?;
        self.counters.sent.pushed_streams += 1;
        Ok(id)
    }

    /// Whether a stream could be opened now.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn may_open(&self) -> Result<(), CallError> {
        self.alive()?;
        // §2.3.2: identifiers do not wrap.
        let spent = self.ids.next_own > MAX_WINDOW;
        if self.end.go_away_sent.is_some() || self.end.go_away_received || spent {
            return Err(CallError::GoingAway);
        }
        let most = self.peer.max_streams.min(self.config.max_own_streams);
        if self.ids.own_open >= most {
            return Err(CallError::TooManyStreams(most));
        }
        self.room_for_headers()
    }

    fn open_own(&mut self, headers: &Headers, begin: Begin) -> Result<StreamId, CallError> {
        self.may_open()?;
        let id = StreamId::new(self.ids.next_own);
        let Begin { priority, associated, unidirectional, fin, .. } = begin;
        self.queue_headers(headers, |block| Frame::SynStream {
            stream: id,
            associated: associated.unwrap_or(StreamId::SESSION),
            priority,
            fin,
            unidirectional,
            block,
        })?;
        self.ids.next_own += 2;
        self.insert(id, &begin);
        self.refresh(id);
        Ok(id)
    }

    /// Replies to a stream of the peer's; with `fin` without a body.
    ///
    /// # Errors
    /// [`CallError::NoStream`] after the stream was reset, [`CallError::NotAllowed`] for a second reply
    /// or a stream that only the peer may send on; [`CallError::Over`], [`CallError::Full`].
    pub fn reply(&mut self, id: StreamId, headers: &Headers, fin: bool) -> Result<(), CallError> {
        self.alive()?;
        let stream = self.streams.get(&id).ok_or(CallError::NoStream)?;
        if stream.send.replied || stream.send.finished {
            return Err(CallError::NotAllowed);
        }
        self.room_for_headers()?;
        self.queue_headers(headers, |block| Frame::SynReply { stream: id, fin, block })?;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.send.replied = true;
            stream.send.fin_queued = fin;
            stream.send.finished = fin;
        }
        self.refresh(id);
        Ok(())
    }

    /// Sends more headers on a stream (§2.6.7), behind what is queued on it.
    ///
    /// # Errors
    /// As [`Session::write`]; [`CallError::Full`].
    pub fn headers(&mut self, id: StreamId, headers: &Headers, fin: bool) -> Result<(), CallError> {
        let stream = self.sendable(id)?;
        if stream.send.items.is_empty() {
            self.room_for_headers()?;
            self.queue_headers(headers, |block| Frame::Headers { stream: id, fin, block })?;
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.send.fin_queued = fin;
                stream.send.finished = fin;
            }
        } else {
            if stream.send.items.len() >= ITEMS_FULL {
                return Err(CallError::Full);
            }
            stream.send.items.push_back(Item::Headers(headers.clone()));
            stream.send.fin_queued = fin;
        }
        self.refresh(id);
        Ok(())
    }

    /// Queues data: as many bytes as there is room for are taken from `data`, whose number is returned.
    /// With `fin` the stream ends behind them, if all are taken. A stream whose queue was full reports
    /// [`Event::Writable`](crate::Event::Writable).
    ///
    /// # Errors
    /// [`CallError::NoStream`] after the stream was reset, [`CallError::NotReplied`],
    /// [`CallError::Finished`], [`CallError::Over`].
    pub fn write(&mut self, id: StreamId, data: &mut Bytes, fin: bool) -> Result<usize, CallError> {
        let most = self.config.send_queue.max(1);
        let stream = self.sendable(id)?;
        let taken = data.split_to(data.len().min(most.saturating_sub(stream.send.queued)));
        let count = taken.len();
        if count > 0 {
            stream.send.push_data(taken);
        }
        stream.send.fin_queued = fin && data.is_empty();
        stream.send.was_full |= stream.send.queued >= most;
        stream.send.was_full &= !stream.send.fin_queued;
        self.refresh(id);
        Ok(count)
    }

    /// Bytes that [`Session::write`] would take now; 0 if it would refuse.
    #[must_use]
    pub fn writable(&self, id: StreamId) -> usize {
        let most = self.config.send_queue.max(1);
        self.streams.get(&id).map_or(0, |stream| match stream.send.fin_queued {
            true => 0,
            false => most.saturating_sub(stream.send.queued),
        })
    }

    /// Says that the program is done with bytes of [`Event::Data`](crate::Event::Data): the windows may
    /// open. For a stream that is gone this was done already.
    pub fn consume(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let bytes = stream.receive.unconsumed.min(bytes as u64);
        stream.receive.unconsumed -= bytes;
        // §2.6.8 (draft 3): no WINDOW_UPDATE after the peer's last frame.
        let delta = match stream.receive.finished {
            true => None,
            false => stream.receive.window.consume(bytes),
        };
        if let Some(delta) = delta {
            self.changes.receive_window(Some(id), stream.receive.window.size());
            self.queue(Frame::WindowUpdate { stream: id, delta });
        }
        self.session_consumed(bytes);
        self.refresh(id);
    }

    /// Ends a stream abnormally; what is queued on it is dropped. With [`RstStatus::CANCEL`] so do those
    /// that were pushed with it (§3.3.2).
    ///
    /// # Errors
    /// [`CallError::NoStream`], [`CallError::Over`].
    pub fn reset(&mut self, id: StreamId, status: RstStatus) -> Result<(), CallError> {
        self.alive()?;
        let stream = self.streams.get(&id).ok_or(CallError::NoStream)?;
        if !stream.is_closed() {
            self.queue_reset(id, status);
        }
        self.remove(id);
        if status == RstStatus::CANCEL {
            self.remove_pushed_with(id);
        }
        Ok(())
    }

    /// Sends a PING; [`Event::Pong`](crate::Event::Pong) has its round trip. Its identifier.
    ///
    /// # Errors
    /// [`CallError::Over`]; [`CallError::Full`] while 16 wait for their answers.
    pub fn ping(&mut self, now: Time) -> Result<u32, CallError> {
        self.alive()?;
        if self.pings.waiting.len() >= PINGS {
            return Err(CallError::Full);
        }
        let id = self.pings.next;
        // §2.6.5: after the last identifier comes the first again.
        self.pings.next = match id.checked_add(2) {
            Some(next) => next,
            None => 2 - id % 2,
        };
        self.out.urgent.push(|out| Frame::Ping { id }.emit(out)).map_err(|_| CallError::Over)?;
        self.pings.waiting.push_back((id, now));
        Ok(id)
    }

    fn alive(&self) -> Result<(), CallError> {
        if self.end.failed.is_some() { Err(CallError::Over) } else { Ok(()) }
    }

    fn room_for_headers(&self) -> Result<(), CallError> {
        if self.out.control.len() < CONTROL_FULL { Ok(()) } else { Err(CallError::Full) }
    }

    /// The stream, if frames may be queued on it.
    fn sendable(&mut self, id: StreamId) -> Result<&mut Stream, CallError> {
        self.alive()?;
        let stream = self.streams.get_mut(&id).ok_or(CallError::NoStream)?;
        match (stream.send.fin_queued, stream.send.replied) {
            (true, _) => Err(CallError::Finished),
            (_, false) => Err(CallError::NotReplied),
            _ => Ok(stream),
        }
    }

    /// Queues a frame with headers.
    fn queue_headers<'s>(
        &'s mut self,
        headers: &Headers,
        frame: impl FnOnce(&'s [u8]) -> Frame<'s>,
    ) -> Result<(), CallError> {
        // A compressed block is hardly longer than the block; what no frame can hold is refused before
        // it changes the compressor's state.
        if headers.block().len() > wire::spdy::MAX_LENGTH / 2 {
            return Err(CallError::TooLarge);
        }
        let scratch = &mut self.out.scratch;
        scratch.clear();
        if self.compressor.compress(headers.block(), scratch).is_err() {
            self.end.failed = Some(SessionError::Internal);
            return Err(CallError::Over);
        }
        let sent = &mut self.counters.sent;
        sent.header_blocks += 1;
        sent.header_bytes += headers.block().len() as u64;
        sent.header_bytes_compressed += scratch.len() as u64;
        let frame = frame(scratch);
        self.out.control.push(|out| frame.emit(out)).map_err(|_| CallError::TooLarge)
    }
}

/// Whether headers name a resource that is pushed (§3.3.1).
pub(super) fn names_resource(headers: &Headers) -> bool {
    [":scheme", ":host", ":path"].into_iter().all(|name| headers.get(name).is_some())
}
