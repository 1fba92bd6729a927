//! What is written.

use wire::spdy::{Frame, HEADER_LEN, Header, Headers, MAX_LENGTH, StreamId};

use super::Session;
use crate::error::SessionError;
use crate::stream::Item;

/// Room for payload below which no further DATA frame is begun.
const SMALL_PIECE: usize = 512;

impl Session {
    /// Whether [`Session::write_to`] would write something now.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        !self.out.urgent.is_empty() || !self.out.control.is_empty() || !self.out.ready.is_empty()
    }

    /// Appends frames to `out`, up to `limit` bytes but at least one; the number of bytes. Control
    /// frames go first, then data strictly by priority, a frame in turn within one. A frame of data is
    /// cut here: to the windows, [`Config::max_frame`](crate::Config::max_frame) and what is left of the
    /// limit.
    pub fn write_to(&mut self, out: &mut Vec<u8>, limit: usize) -> usize {
        let start = out.len();
        let moved = self.out.urgent.move_to(out, start, limit);
        self.counters.sent.control_frames += moved;
        if self.out.urgent.is_empty() {
            let moved = self.out.control.move_to(out, start, limit);
            self.counters.sent.control_frames += moved;
            if self.out.control.is_empty() {
                self.out.answers = 0;
                self.write_streams(out, start, limit);
            }
        }
        out.len().saturating_sub(start)
    }

    fn write_streams(&mut self, out: &mut Vec<u8>, start: usize, limit: usize) {
        while let Some(id) = self.out.ready.next() {
            let written = out.len().saturating_sub(start);
            let left = limit.saturating_sub(written);
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if written > 0 && left < HEADER_LEN + SMALL_PIECE {
                self.out.ready.put_back(id, stream.priority);
                break;
            }
            stream.send.scheduled = false;
            if matches!(stream.send.items.front(), Some(Item::Headers(_))) {
                self.write_headers(id, out);
            } else {
                self.write_data(id, out, left);
            }
            self.refresh(id);
        }
    }

    /// Writes the headers at the front of a stream's queue.
    fn write_headers(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(Item::Headers(headers)) = stream.send.items.pop_front() else { return };
        let fin = stream.send.fin_queued && stream.send.items.is_empty();
        stream.send.finished = fin;
        if self.emit_headers(id, &headers, fin, out).is_err() {
            self.fail(SessionError::Internal);
        }
    }

    fn emit_headers(
        &mut self,
        stream: StreamId,
        headers: &Headers,
        fin: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionError> {
        let scratch = &mut self.out.scratch;
        scratch.clear();
        self.compressor.compress(headers.block(), scratch).map_err(|_| SessionError::Internal)?;
        let frame = Frame::Headers { stream, fin, block: scratch };
        frame.emit(out).map_err(|_| SessionError::Internal)?;
        let sent = &mut self.counters.sent;
        sent.control_frames += 1;
        sent.header_blocks += 1;
        sent.header_bytes += headers.block().len() as u64;
        sent.header_bytes_compressed += scratch.len() as u64;
        Ok(())
    }

    /// Writes one frame of data, or the empty one that ends a stream.
    fn write_data(&mut self, id: StreamId, out: &mut Vec<u8>, left: usize) {
        let shut = self.session_shut();
        let session_room = self.flow.as_ref().map_or(usize::MAX, |flow| flow.send.room());
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.send.can_send(shut) {
            return;
        }
        let most = self.config.max_frame.min(left.saturating_sub(HEADER_LEN)).clamp(1, MAX_LENGTH);
        let most = most.min(stream.send.window.room()).min(session_room);
        let length = stream.send.data_at_front(most);
        // With nothing queued only the end is left to send, which no window holds back (§2.6.8).
        let last = stream.send.items.is_empty() || {
            length == stream.send.queued
                && !stream.send.items.iter().any(|item| matches!(item, Item::Headers(_)))
        };
        let fin = stream.send.fin_queued && last;
        let header = Header::Data { stream: id, flags: u8::from(fin), length: length as u32 };
        out.extend_from_slice(&header.to_bytes());
        stream.send.take_data(length, out);
        stream.send.finished = fin;
        self.counters.sent.data_frames += 1;
        self.counters.sent.data_bytes += length as u64;
        if length == 0 {
            return;
        }
        self.flood.useful_frame();
        stream.send.window.spend(length);
        self.changes.send_window(Some(id), stream.send.window.size());
        if let Some(flow) = &mut self.flow {
            flow.send.spend(length);
            self.changes.send_window(None, flow.send.size());
            if flow.send.is_shut() {
                self.refresh_all();
            }
        }
    }
}
