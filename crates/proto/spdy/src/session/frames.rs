//! What each control frame does.

use units::Time;
use wire::spdy::{
    Frame, GoAwayStatus, Headers, MAX_WINDOW, Priority, RstStatus, Setting, SettingId, Settings,
    StreamId,
};

use super::Session;
use super::api::names_resource;
use crate::compress::Inflate;
use crate::config::Role;
use crate::error::SessionError;
use crate::event::{Event, ResetReason};
use crate::stream::Begin;

/// A SYN_STREAM without its headers.
struct Syn {
    stream: StreamId,
    associated: StreamId,
    priority: Priority,
    fin: bool,
    unidirectional: bool,
}

impl Session {
    pub(super) fn control(&mut self, now: Time, frame: Frame<'_>) -> Result<(), SessionError> {
        match frame {
            Frame::SynStream { stream, associated, priority, fin, unidirectional, block } => {
                let headers = self.decompress(stream, block)?;
                let syn = Syn { stream, associated, priority, fin, unidirectional };
                self.syn_stream(now, &syn, headers)
            }
            Frame::SynReply { stream, fin, block } => {
                let headers = self.decompress(stream, block)?;
                self.syn_reply(now, stream, fin, headers)
            }
            Frame::Headers { stream, fin, block } => {
                let headers = self.decompress(stream, block)?;
                self.more_headers(now, stream, fin, headers)
            }
            Frame::RstStream { stream, status } => self.rst_stream(now, stream, status),
            Frame::Settings { clear, entries } => self.settings(now, clear, entries),
            Frame::Ping { id } => self.ping_frame(now, id),
            Frame::GoAway { last_good, status } => self.go_away_frame(now, last_good, status),
            Frame::WindowUpdate { stream, delta } => self.window_update(now, stream, delta),
            // Draft 3 §2.6.9: certificates for other origins, for which this side has no use.
            Frame::Credential { .. } | Frame::Unknown { .. } | Frame::Data { .. } => {
                self.idle_frame(now)
            }
        }
    }

    /// Decompresses a block, whatever becomes of its stream (§2.4.1); `None` if it is malformed.
    fn decompress(
        &mut self,
        stream: StreamId,
        block: &[u8],
    ) -> Result<Option<Headers>, SessionError> {
        let plain = match self.decompressor.decompress(block, self.config.max_header_block) {
            Ok(plain) => plain,
            Err(Inflate::Bad) => return Err(SessionError::Compression),
            Err(Inflate::TooLarge) => return self.too_large(Some(stream)).map(|()| None),
        };
        let received = &mut self.counters.received;
        received.header_blocks += 1;
        received.header_bytes += plain.len() as u64;
        received.header_bytes_compressed += block.len() as u64;
        Ok(Headers::from_block(plain).ok())
    }

    fn syn_stream(
        &mut self,
        now: Time,
        syn: &Syn,
        headers: Option<Headers>,
    ) -> Result<(), SessionError> {
        let id = syn.stream;
        // §2.3.2: odd from the client, even from the server, never 0, and only upwards.
        if id == StreamId::SESSION || self.is_own(id) || id < self.ids.last_seen {
            return Err(SessionError::StreamId(id.value()));
        }
        if id == self.ids.last_seen {
            return self.misused(now, id, RstStatus::PROTOCOL_ERROR);
        }
        self.ids.last_seen = id;
        // §2.6.6: after a GOAWAY new streams are ignored.
        if self.end.go_away_sent.is_some() {
            return self.idle_frame(now);
        }
        // §2.6.10: a malformed block is a stream error.
        let Some(headers) = headers else {
            return self.misused(now, id, RstStatus::PROTOCOL_ERROR);
        };
        if self.role == Role::Client && syn.associated == StreamId::SESSION {
            // §3.3.2: a push that belongs to stream 0 is a session error.
            return Err(SessionError::StreamZero);
        }
        if self.ids.peer_open >= self.max_peer() {
            return self.misused(now, id, RstStatus::REFUSED_STREAM);
        }
        if let Some(status) = self.wrong_push(syn, &headers) {
            return self.misused(now, id, status);
        }
        self.ids.last_accepted = id;
        let associated = (self.role == Role::Client).then_some(syn.associated);
        self.counters.received.pushed_streams += u64::from(associated.is_some());
        let Syn { priority, fin, unidirectional, .. } = *syn;
        self.insert(id, &Begin { priority, associated, own: false, unidirectional, fin });
        self.events.push_back(Event::Opened { stream: id, associated, priority, headers, fin });
        self.refresh(id);
        Ok(())
    }

    /// What is wrong with a stream that the server opened (§3.3).
    fn wrong_push(&self, syn: &Syn, headers: &Headers) -> Option<RstStatus> {
        if self.role == Role::Server {
            return None;
        }
        // §3.3.1: it must belong to a stream of the client's that is open.
        let open = self.streams.get(&syn.associated).is_some_and(|stream| !stream.receive.finished);
        if !open || !self.is_own(syn.associated) {
            return Some(RstStatus::INVALID_STREAM);
        }
        // §3.3.1: FLAG_UNIDIRECTIONAL; §3.3.2: the resource's name.
        (!syn.unidirectional || !names_resource(headers)).then_some(RstStatus::PROTOCOL_ERROR)
    }

    fn syn_reply(
        &mut self,
        now: Time,
        id: StreamId,
        fin: bool,
        headers: Option<Headers>,
    ) -> Result<(), SessionError> {
        if id == StreamId::SESSION {
            return Err(SessionError::StreamZero);
        }
        let own = self.is_own(id);
        let Some(stream) = self.streams.get_mut(&id) else {
            return self.frame_without_stream(now, id);
        };
        // §2.6.2 for a second reply, §2.6.3 for one after the last frame, §3.2.2 for one without status.
        let whole = |headers: &Headers| {
            headers.get(":status").is_some() && headers.get(":version").is_some()
        };
        let headers = headers.filter(whole);
        let status = match headers {
            Some(headers) if own && !stream.receive.replied && !stream.receive.finished => {
                stream.receive.replied = true;
                stream.receive.finished = fin;
                self.events.push_back(Event::Reply { stream: id, headers, fin });
                self.refresh(id);
                return Ok(());
            }
            _ if !own => RstStatus::PROTOCOL_ERROR,
            _ if stream.receive.finished => RstStatus::STREAM_ALREADY_CLOSED,
            _ if stream.receive.replied => RstStatus::STREAM_IN_USE,
            _ => RstStatus::PROTOCOL_ERROR,
        };
        self.misused(now, id, status)
    }

    fn more_headers(
        &mut self,
        now: Time,
        id: StreamId,
        fin: bool,
        headers: Option<Headers>,
    ) -> Result<(), SessionError> {
        if id == StreamId::SESSION {
            return Err(SessionError::StreamZero);
        }
        // Each costs a block, and none is needed.
        self.idle_frame(now)?;
        let Some(stream) = self.streams.get_mut(&id) else {
            return self.frame_without_stream(now, id);
        };
        if stream.receive.finished {
            return self.misused(now, id, RstStatus::STREAM_ALREADY_CLOSED);
        }
        let Some(headers) = headers.filter(|_| stream.receive.replied) else {
            return self.misused(now, id, RstStatus::PROTOCOL_ERROR);
        };
        stream.receive.finished = fin;
        self.events.push_back(Event::Headers { stream: id, headers, fin });
        self.refresh(id);
        Ok(())
    }

    /// Headers for a stream that is not open (§2.6.3, INVALID_STREAM).
    fn frame_without_stream(&mut self, now: Time, id: StreamId) -> Result<(), SessionError> {
        let refused = self.end.go_away_sent.is_some_and(|last| !self.is_own(id) && id > last);
        match refused || self.resets.contains(&id) {
            true => self.idle_frame(now),
            false => self.misused(now, id, RstStatus::INVALID_STREAM),
        }
    }

    fn rst_stream(
        &mut self,
        now: Time,
        id: StreamId,
        status: RstStatus,
    ) -> Result<(), SessionError> {
        if id == StreamId::SESSION {
            return Err(SessionError::StreamZero);
        }
        self.idle_frame(now)?;
        // §2.4.2: never answered by another one.
        if self.streams.get(&id).is_some_and(|stream| !stream.is_closed()) {
            self.remove(id);
            self.events.push_back(Event::Reset { stream: id, reason: ResetReason::Peer(status) });
            if status == RstStatus::CANCEL {
                self.remove_pushed_with(id);
            }
        }
        Ok(())
    }

    fn settings(
        &mut self,
        now: Time,
        clear: bool,
        entries: Settings<'_>,
    ) -> Result<(), SessionError> {
        self.idle_frame(now)?;
        let client = self.role == Role::Client;
        if clear && client {
            self.persisted.clear();
        }
        let mut settings: Vec<Setting> = Vec::new();
        for entry in entries.iter() {
            // §2.6.4: of several values for an id only the first counts.
            let known = (1..=SettingId::CLIENT_CERTIFICATE_VECTOR_SIZE.0).contains(&entry.id.0);
            if !known || settings.iter().any(|other| other.id == entry.id) {
                continue;
            }
            settings.push(entry);
            if client && entry.persist {
                self.persisted.insert(entry.id, entry.value);
            }
            // What a client returns was this side's own.
            if !entry.persisted || client {
                self.setting(now, entry)?;
            }
        }
        self.events.push_back(Event::Settings { clear, settings });
        Ok(())
    }

    fn setting(&mut self, now: Time, entry: Setting) -> Result<(), SessionError> {
        match entry.id {
            SettingId::MAX_CONCURRENT_STREAMS => self.peer.max_streams = entry.value,
            SettingId::INITIAL_WINDOW_SIZE => {
                if entry.value > MAX_WINDOW {
                    return Err(SessionError::WindowOverflow);
                }
                let change = i64::from(entry.value) - i64::from(self.peer.initial_window);
                self.peer.initial_window = entry.value;
                return self.shift_windows(now, change);
            }
            _ => {}
        }
        Ok(())
    }

    /// §2.6.8: the windows of all streams change by the difference of the initial sizes.
    fn shift_windows(&mut self, now: Time, change: i64) -> Result<(), SessionError> {
        let ids: Vec<_> = self.streams.keys().copied().collect();
        for id in ids {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if stream.send.window.add(change).is_err() {
                self.misused(now, id, RstStatus::FLOW_CONTROL_ERROR)?;
                continue;
            }
            self.changes.send_window(Some(id), stream.send.window.size());
            self.refresh(id);
        }
        Ok(())
    }

    fn ping_frame(&mut self, now: Time, id: u32) -> Result<(), SessionError> {
        self.idle_frame(now)?;
        let clients = id % 2 == 1;
        if clients != (self.role == Role::Client) {
            // §2.6.5: an identical frame, before all else.
            let push = self.out.urgent.push(|out| Frame::Ping { id }.emit(out));
            return push.map_err(|_| SessionError::Internal);
        }
        // §2.6.5: one that this side did not send is ignored.
        let at = self.pings.waiting.iter().position(|(waiting, _)| *waiting == id);
        if let Some((id, sent)) = at.and_then(|at| self.pings.waiting.remove(at)) {
            self.events.push_back(Event::Pong { id, round_trip: now.saturating_since(sent) });
        }
        Ok(())
    }

    fn go_away_frame(
        &mut self,
        now: Time,
        last_good: StreamId,
        status: GoAwayStatus,
    ) -> Result<(), SessionError> {
        self.idle_frame(now)?;
        self.end.go_away_received = true;
        self.events.push_back(Event::GoAway { last_good, status });
        let own = |id: &StreamId| *id > last_good && self.is_own(*id);
        let unprocessed: Vec<_> = self.streams.keys().copied().filter(own).collect();
        for id in unprocessed {
            self.remove(id);
            let reason = ResetReason::Unprocessed;
            self.events.push_back(Event::Reset { stream: id, reason });
        }
        Ok(())
    }

    fn window_update(&mut self, now: Time, id: StreamId, delta: u32) -> Result<(), SessionError> {
        self.counters.received.window_updates += 1;
        if id == StreamId::SESSION {
            return self.session_update(now, delta);
        }
        if !self.was_opened(id) {
            return self.misused(now, id, RstStatus::INVALID_STREAM);
        }
        // Draft 3 §2.6.8: ignored after this side's last frame.
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.send.finished) else {
            return Ok(());
        };
        // §2.6.8: 1 to 2^31 - 1, and the window never beyond that.
        if delta == 0 || stream.send.window.add(i64::from(delta)).is_err() {
            return self.misused(now, id, RstStatus::FLOW_CONTROL_ERROR);
        }
        self.changes.send_window(Some(id), stream.send.window.size());
        self.refresh(id);
        Ok(())
    }

    fn session_update(&mut self, now: Time, delta: u32) -> Result<(), SessionError> {
        let Some(flow) = &mut self.flow else {
            // SPDY/3 has no such window; some send it all the same.
            return self.idle_frame(now);
        };
        let was_shut = flow.send.is_shut();
        if delta == 0 || flow.send.add(i64::from(delta)).is_err() {
            return Err(SessionError::WindowOverflow);
        }
        self.changes.send_window(None, flow.send.size());
        if was_shut && !self.session_shut() {
            self.refresh_all();
        }
        Ok(())
    }
}
