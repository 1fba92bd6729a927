//! What a session reports.

use std::time::Duration;

use bytes::Bytes;
use wire::spdy::{GoAwayStatus, Headers, Priority, RstStatus, Setting, StreamId};

use crate::error::SessionError;

/// What happened, in the order of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The peer opened a stream: a request, or at a client a stream that is pushed.
    Opened {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
        /// The stream of this side that a pushed one belongs to.
        associated: Option<StreamId>,
        /// Its priority, 0 (highest) to 7 in SPDY/3.
        priority: Priority,
        /// Names and values, decompressed, in the order of the wire.
        headers: Headers,
        /// The peer sends no more on it.
        fin: bool,
    },
    /// The peer accepted a stream of this side: a response begins.
    Reply {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
        /// Names and values, decompressed, in the order of the wire.
        headers: Headers,
        /// The peer sends no more on it.
        fin: bool,
    },
    /// HEADERS: further names and values of an open stream.
    Headers {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
        /// Names and values, decompressed, in the order of the wire.
        headers: Headers,
        /// The peer sends no more on it.
        fin: bool,
    },
    /// Data. [`Session::consume`](crate::Session::consume) opens the window again.
    Data {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
        /// A frame's payload or a piece of it; may be empty with `fin`.
        data: Bytes,
        /// The peer sends no more on it.
        fin: bool,
    },
    /// A stream ended abnormally and is gone.
    Reset {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
        /// Which side ended it, and the reason given.
        reason: ResetReason,
    },
    /// A stream whose queue was full has room for at least half of it again.
    Writable {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
    },
    /// The peer's settings, as far as the draft has them; of several with one id the first.
    Settings {
        /// The peer asks the client to forget what it persisted. Done already.
        clear: bool,
        /// The settings of one frame, one per id.
        settings: Vec<Setting>,
    },
    /// The answer to a ping of this side.
    Pong {
        /// The ping's number, as this side sent it.
        id: u32,
        /// From [`Session::ping`](crate::Session::ping) to now.
        round_trip: Duration,
    },
    /// The peer takes no more streams. Those of this side after `last_good` are reset with
    /// [`ResetReason::Unprocessed`], the others may end.
    GoAway {
        /// The last stream of this side that the peer took.
        last_good: StreamId,
        /// The status that says why it ends.
        status: GoAwayStatus,
    },
    /// The session is over by an error of the peer: what is left to write is its GOAWAY. All
    /// streams are gone.
    Failed(SessionError),
}

/// Why a stream is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetReason {
    /// The peer reset it.
    Peer(RstStatus),
    /// The peer misused it, and this side reset it with this status.
    Misused(RstStatus),
    /// The peer had sent GOAWAY before it took the stream: it may be tried again elsewhere (§2.6.6).
    Unprocessed,
    /// The stream that it was pushed with was cancelled (§3.3.2).
    WithAssociated,
}

/// Of which window a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// A stream's own.
    Stream,
    /// The session's (SPDY/3.1).
    Session,
}

/// A change of a window, or of what waits for one; the caller adds the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A stream has data queued and its window, or the session's, is shut.
    StallBegan {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
        /// The window that is shut; the stream's own if both are.
        window: Window,
    },
    /// That is over: the window is open, or the stream gone.
    StallEnded {
        /// Its number: odd if the client opened it, even if the server did.
        stream: StreamId,
        /// The window that was shut.
        window: Window,
    },
    /// What this side may send; only with [`Config::trace_windows`](crate::Config::trace_windows).
    SendWindow {
        /// The stream; none for the session.
        stream: Option<StreamId>,
        /// Bytes; negative after the peer made its windows smaller.
        size: i64,
    },
    /// What the peer may send; only with [`Config::trace_windows`](crate::Config::trace_windows).
    ReceiveWindow {
        /// The stream; none for the session.
        stream: Option<StreamId>,
        /// The window in bytes; negative after it was made smaller.
        size: i64,
    },
}

/// What went over the session so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// DATA frames in this direction.
    pub data_frames: u64,
    /// Bytes of payload in them.
    pub data_bytes: u64,
    /// Control frames in this direction.
    pub control_frames: u64,
    /// WINDOW_UPDATE frames among them.
    pub window_updates: u64,
    /// Header blocks in this direction.
    pub header_blocks: u64,
    /// Bytes of header blocks before compression.
    pub header_bytes: u64,
    /// Bytes of header blocks on the wire.
    pub header_bytes_compressed: u64,
    /// Streams that were pushed.
    pub pushed_streams: u64,
}

/// What went over the session so far, by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Written to the output.
    pub sent: Traffic,
    /// Received. Frames of streams that are gone are counted too.
    pub received: Traffic,
}
