//! The session: its state, what it begins with, what it can be asked.

mod api;
mod frames;
mod input;
mod output;

use std::collections::{BTreeMap, VecDeque};

use units::Time;
use wire::spdy::{
    DEFAULT_WINDOW, Frame, GoAwayStatus, MAX_WINDOW, RstStatus, Setting, SettingId, StreamId,
};

use crate::changes::Changes;
use crate::compress::{Compressor, Decompressor};
use crate::config::{Config, Role, Version};
use crate::error::SessionError;
use crate::event::{Change, Counters, Event, ResetReason};
use crate::flood::Flood;
use crate::flow::{ReceiveWindow, SendWindow};
use crate::input::Input;
use crate::queue::FrameQueue;
use crate::scheduler::Scheduler;
use crate::stream::{Begin, Stream};

/// Streams that this side reset last, whose frames on the way are passed over (§2.4.2).
const RESETS_REMEMBERED: usize = 256;

/// One end of a SPDY connection. The crate's documentation has the order of calls.
#[derive(Debug)]
pub struct Session {
    role: Role,
    version: Version,
    config: Config,
    input: Input,
    /// The data frame whose payload comes.
    incoming: Option<Incoming>,
    compressor: Compressor,
    decompressor: Decompressor,
    streams: BTreeMap<StreamId, Stream>,
    ids: Ids,
    peer: Peer,
    /// The session's windows, which SPDY/3 does not have.
    flow: Option<SessionFlow>,
    out: Output,
    events: VecDeque<Event>,
    changes: Changes,
    pings: Pings,
    end: End,
    /// A client: what the server asked to be persisted.
    persisted: BTreeMap<SettingId, u32>,
    /// Streams that this side reset last.
    resets: VecDeque<StreamId>,
    flood: Flood,
    counters: Counters,
}

#[derive(Debug, Clone, Copy)]
struct Incoming {
    stream: StreamId,
    fin: bool,
    /// The payload goes to the stream.
    deliver: bool,
}

/// Identifiers and numbers of streams.
#[derive(Debug)]
struct Ids {
    next_own: u32,
    /// The last SYN_STREAM of the peer.
    last_seen: StreamId,
    /// The last stream of the peer that was taken.
    last_accepted: StreamId,
    own_open: u32,
    peer_open: u32,
}

/// What the peer said in SETTINGS.
#[derive(Debug)]
struct Peer {
    max_streams: u32,
    initial_window: u32,
}

#[derive(Debug)]
struct SessionFlow {
    send: SendWindow,
    receive: ReceiveWindow,
}

#[derive(Debug, Default)]
struct Output {
    /// Answers to PING, which "should take highest priority" (§2.6.5), and what begins the session.
    urgent: FrameQueue,
    /// Control frames in their order; all go before data.
    control: FrameQueue,
    /// Bytes in `control` that the peer caused, since it was last empty.
    answers: usize,
    ready: Scheduler,
    /// A compressed block on its way into a frame.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Pings {
    next: u32,
    waiting: VecDeque<(u32, Time)>,
}

#[derive(Debug, Default)]
struct End {
    /// The last stream of the peer that our GOAWAY allows.
    go_away_sent: Option<StreamId>,
    go_away_received: bool,
    failed: Option<SessionError>,
}

impl Session {
    /// A session on a connection for which this version was negotiated. Its SETTINGS wait to be written.
    ///
    /// # Errors
    /// [`SessionError::Internal`]: zlib refuses the dictionary.
    pub fn new(role: Role, version: Version, config: Config) -> Result<Session, SessionError> {
        let compressor = Compressor::new(config.header_level, config.header_window_bits)
            .map_err(|_| SessionError::Internal)?;
        let first = if role == Role::Client { 1 } else { 2 };
        let mut session = Session {
            role,
            version,
            input: Input::new(config.max_control_frame.max(wire::spdy::MIN_CONTROL_FRAME)),
            incoming: None,
            compressor,
            decompressor: Decompressor::new(),
            streams: BTreeMap::new(),
            ids: Ids {
                next_own: first,
                last_seen: StreamId::SESSION,
                last_accepted: StreamId::SESSION,
                own_open: 0,
                peer_open: 0,
            },
            peer: Peer { max_streams: u32::MAX, initial_window: DEFAULT_WINDOW },
            flow: None,
            out: Output::default(),
            events: VecDeque::new(),
            changes: Changes::new(config.trace_windows),
            pings: Pings { next: first, waiting: VecDeque::new() },
            end: End::default(),
            persisted: BTreeMap::new(),
            resets: VecDeque::new(),
            flood: Flood::new(config.flood),
            counters: Counters::default(),
            config,
        };
        session.begin()?;
        Ok(session)
    }

    /// Queues SETTINGS and the session's window.
    fn begin(&mut self) -> Result<(), SessionError> {
        let settings = self.first_settings();
        let urgent = &mut self.out.urgent;
        urgent
            .push(|out| Frame::emit_settings(false, &settings, out))
            .map_err(|_| SessionError::Internal)?;
        if self.version == Version::V3 {
            return Ok(());
        }
        // §2.6.8: the session's window begins with 64 KB, and only WINDOW_UPDATE can change it.
        let size = self.config.flow.session_window.clamp(DEFAULT_WINDOW, MAX_WINDOW);
        if size > DEFAULT_WINDOW {
            let delta = size - DEFAULT_WINDOW;
            let update = Frame::WindowUpdate { stream: StreamId::SESSION, delta };
            urgent.push(|out| update.emit(out)).map_err(|_| SessionError::Internal)?;
            self.counters.sent.window_updates += 1;
        }
        self.flow = Some(SessionFlow {
            send: SendWindow::new(DEFAULT_WINDOW),
            receive: ReceiveWindow::new(size, self.config.flow.update_divisor),
        });
        Ok(())
    }

    /// §2.6.4: "in order of lowest id to highest id", each once.
    fn first_settings(&self) -> Vec<Setting> {
        let mut settings = vec![Setting::new(SettingId::MAX_CONCURRENT_STREAMS, self.max_peer())];
        if self.stream_window() != DEFAULT_WINDOW {
            settings.push(Setting::new(SettingId::INITIAL_WINDOW_SIZE, self.stream_window()));
        }
        for setting in &self.config.settings {
            if settings.iter().all(|other| other.id != setting.id) {
                // Only servers ask, only clients return.
                let (persist, persisted) = match self.role {
                    Role::Client => (false, true),
                    Role::Server => (setting.persist, false),
                };
                settings.push(Setting { persist, persisted, ..*setting });
            }
        }
        settings.sort_by_key(|setting| setting.id);
        settings
    }

    /// Streams that the peer may have open.
    fn max_peer(&self) -> u32 {
        match self.role {
            Role::Client if !self.config.accept_push => 0,
            _ => self.config.max_peer_streams,
        }
    }

    fn stream_window(&self) -> u32 {
        self.config.flow.stream_window.min(MAX_WINDOW)
    }

    /// What a client may have sent beyond a window smaller than 64 KB before it knew of it (§2.6.8). A
    /// server cannot send before it has read the client's SETTINGS.
    fn slack(&self) -> i64 {
        match self.role {
            Role::Client => 0,
            Role::Server => i64::from(DEFAULT_WINDOW.saturating_sub(self.stream_window())),
        }
    }

    fn is_own(&self, stream: StreamId) -> bool {
        stream.is_clients() == (self.role == Role::Client)
    }

    /// Whether a stream with this identifier was ever opened.
    fn was_opened(&self, stream: StreamId) -> bool {
        match self.is_own(stream) {
            true => stream.value() < self.ids.next_own,
            false => stream <= self.ids.last_seen,
        }
    }

    fn session_shut(&self) -> bool {
        self.flow.as_ref().is_some_and(|flow| flow.send.is_shut())
    }

    /// Opens a stream's state.
    fn insert(&mut self, id: StreamId, begin: &Begin) {
        let send = SendWindow::new(self.peer.initial_window);
        let receive = ReceiveWindow::new(self.stream_window(), self.config.flow.update_divisor);
        self.changes.send_window(Some(id), send.size());
        self.changes.receive_window(Some(id), receive.size());
        self.streams.insert(id, Stream::new(begin, send, receive));
        let open = if begin.own { &mut self.ids.own_open } else { &mut self.ids.peer_open };
        *open = open.saturating_add(1);
    }

    /// Forgets a stream; what it had not consumed counts as consumed for the session's window.
    fn remove(&mut self, id: StreamId) {
        let Some(mut stream) = self.streams.remove(&id) else { return };
        let own = self.is_own(id);
        let open = if own { &mut self.ids.own_open } else { &mut self.ids.peer_open };
        *open = open.saturating_sub(1);
        if stream.send.scheduled {
            self.out.ready.remove(id, stream.priority);
        }
        stream.send.drop_queue();
        self.changes.stall(id, &mut stream, false);
        self.session_consumed(stream.receive.unconsumed);
    }

    /// Brings all that follows from a stream's state up to date: whether it is over, stalled, has
    /// something to send, has room.
    fn refresh(&mut self, id: StreamId) {
        let shut = self.session_shut();
        let half = self.config.send_queue / 2;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.is_over() {
            self.remove(id);
            return;
        }
        self.changes.stall(id, stream, shut);
        if !stream.send.scheduled && stream.send.can_send(shut) {
            stream.send.scheduled = true;
            self.out.ready.push(id, stream.priority);
        }
        if stream.send.was_full && stream.send.queued <= half {
            stream.send.was_full = false;
            self.events.push_back(Event::Writable { stream: id });
        }
    }

    fn refresh_all(&mut self) {
        let ids: Vec<_> = self.streams.keys().copied().collect();
        ids.into_iter().for_each(|id| self.refresh(id));
    }

    /// Counts bytes as consumed for the session's window.
    fn session_consumed(&mut self, bytes: u64) {
        let Some(flow) = &mut self.flow else { return };
        if let Some(delta) = flow.receive.consume(bytes) {
            let size = flow.receive.size();
            self.changes.receive_window(None, size);
            self.queue(Frame::WindowUpdate { stream: StreamId::SESSION, delta });
        }
    }

    /// Queues a control frame without headers.
    fn queue(&mut self, frame: Frame<'_>) {
        let update = matches!(frame, Frame::WindowUpdate { .. });
        self.counters.sent.window_updates += u64::from(update);
        if self.out.control.push(|out| frame.emit(out)).is_err() {
            self.end.failed = Some(SessionError::Internal);
        }
    }

    /// Queues RST_STREAM, and remembers it for a while.
    fn queue_reset(&mut self, stream: StreamId, status: RstStatus) {
        self.queue(Frame::RstStream { stream, status });
        self.resets.push_back(stream);
        if self.resets.len() > RESETS_REMEMBERED {
            self.resets.pop_front();
        }
    }

    /// Removes the streams that were pushed with this one (§3.3.2).
    fn remove_pushed_with(&mut self, associated: StreamId) {
        let pushed = |(id, stream): (&StreamId, &Stream)| {
            (stream.associated == Some(associated) && !stream.is_closed()).then_some(*id)
        };
        let ids: Vec<_> = self.streams.iter().filter_map(pushed).collect();
        for id in ids {
            self.remove(id);
            let reason = ResetReason::WithAssociated;
            self.events.push_back(Event::Reset { stream: id, reason });
        }
    }

    /// Ends the session by an error (§2.4.1).
    fn fail(&mut self, error: SessionError) {
        if self.end.failed.is_some() {
            return;
        }
        let last_good = self.ids.last_seen;
        self.queue(Frame::GoAway { last_good, status: error.status() });
        self.end.failed = Some(error);
        self.input.stop();
        while let Some(id) = self.streams.keys().next().copied() {
            self.remove(id);
        }
        self.events.push_back(Event::Failed(error));
    }

    /// The version that was negotiated.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Which end this is.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The next change of a window or stall, oldest first. 4096 are kept.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.next()
    }

    /// Changes that were lost because nobody took them.
    #[must_use]
    pub fn lost_changes(&self) -> u64 {
        self.changes.lost()
    }

    /// Streams that have data queued and wait for a window, and for which.
    pub fn stalled(&self) -> impl Iterator<Item = (StreamId, crate::Window)> {
        let stall = |(id, stream): (&StreamId, &Stream)| Some((*id, stream.send.stall?));
        self.streams.iter().filter_map(stall)
    }

    /// Whether the session's window is shut while a stream has data for it that its own window allows.
    #[must_use]
    pub fn is_session_stalled(&self) -> bool {
        self.session_shut() && self.stalled().any(|(_, window)| window == crate::Window::Session)
    }

    /// What this side may send in bytes: on a stream, or on the session with none. `None` if there is no
    /// such stream, or the version has no window for the session.
    #[must_use]
    pub fn send_window(&self, stream: Option<StreamId>) -> Option<i64> {
        match stream {
            Some(id) => Some(self.streams.get(&id)?.send.window.size()),
            None => Some(self.flow.as_ref()?.send.size()),
        }
    }

    /// What the peer may send in bytes; as [`Session::send_window`].
    #[must_use]
    pub fn receive_window(&self, stream: Option<StreamId>) -> Option<i64> {
        match stream {
            Some(id) => Some(self.streams.get(&id)?.receive.window.size()),
            None => Some(self.flow.as_ref()?.receive.size()),
        }
    }

    /// Bytes queued on a stream and not written yet.
    #[must_use]
    pub fn queued(&self, stream: StreamId) -> usize {
        self.streams.get(&stream).map_or(0, |stream| stream.send.queued)
    }

    /// Streams that are open, or whose data are not consumed.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// What went over the session so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A client: what the server asked to be persisted, for [`Config::settings`] of the next session
    /// with the same origin and address (§2.6.4).
    #[must_use]
    pub fn persisted(&self) -> Vec<Setting> {
        self.persisted.iter().map(|(id, value)| Setting::new(*id, *value)).collect()
    }

    /// Why the session failed, if it did.
    #[must_use]
    pub fn failed(&self) -> Option<SessionError> {
        self.end.failed
    }

    /// Whether the transport can be closed: the session failed, or a GOAWAY went or came and no stream is
    /// open; and all is written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let going = self.end.go_away_sent.is_some() || self.end.go_away_received;
        let done = self.end.failed.is_some() || going && self.streams.is_empty();
        done && !self.wants_write()
    }

    /// Ends the session in an orderly way (§2.6.6): no stream of the peer is taken any more, and none
    /// opened; those that are open may end.
    pub fn go_away(&mut self, status: GoAwayStatus) {
        if self.end.go_away_sent.is_none() && self.end.failed.is_none() {
            let last_good = self.ids.last_accepted;
            self.end.go_away_sent = Some(last_good);
            self.queue(Frame::GoAway { last_good, status });
        }
    }
}
