//! What goes wrong.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;
use wire::spdy::GoAwayStatus;

/// Why a session is over: the peer's fault but for [`SessionError::Internal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SessionError {
    /// A control frame of another version, or bytes that are no SPDY (§2.2.1).
    #[error("the peer's frame is not of SPDY version 3")]
    Version,
    /// A frame contradicts its format.
    #[error("the peer's frame is malformed: {0}")]
    Malformed(wire::Error),
    /// A header block cannot be decompressed, so that no later one can be either (§2.4.1).
    #[error("the peer's header block cannot be decompressed")]
    Compression,
    /// A control frame, or a header block after decompression, is larger than is taken.
    #[error("the peer's control frame or header block is larger than is taken")]
    TooLarge,
    /// A stream identifier that the peer may not use (§2.3.2).
    #[error("the peer opened stream {0}, which it may not")]
    StreamId(u32),
    /// A frame for stream 0.
    #[error("the peer sent a frame of a stream for stream 0")]
    StreamZero,
    /// More data than the session's window allows (§2.6.8).
    #[error("the peer sent more than the session's window allows")]
    WindowViolated,
    /// The session's window, or a setting for windows, beyond 2^31 - 1 (§2.6.8).
    #[error("the peer widened a window of the session beyond 2^31 - 1")]
    WindowOverflow,
    /// Too many frames that bring nothing ([`FloodLimit`](crate::FloodLimit)).
    #[error("the peer sends frames that bring nothing faster than is allowed")]
    Flood,
    /// The peer does not read the answers that it asks for.
    #[error("the peer asks for answers and does not read them")]
    AnswersUnread,
    /// zlib refused to compress.
    #[error("headers could not be compressed")]
    Internal,
}

impl SessionError {
    /// The status of the GOAWAY that is sent (§2.6.6).
    #[must_use]
    pub const fn status(self) -> GoAwayStatus {
        match self {
            // §2.6.8: "for the connection, a GOAWAY frame with a FLOW_CONTROL_ERROR code".
            SessionError::WindowViolated | SessionError::WindowOverflow => {
                GoAwayStatus::FLOW_CONTROL_ERROR
            }
            SessionError::Internal => GoAwayStatus::INTERNAL_ERROR,
            _ => GoAwayStatus::PROTOCOL_ERROR,
        }
    }
}

impl Explain for SessionError {
    fn fault(&self) -> Fault {
        match self {
            SessionError::Internal => Fault::Machine,
            _ => Fault::Peer,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            SessionError::Version => {
                Some("check that both sides negotiated spdy/3 or spdy/3.1".into())
            }
            _ => None,
        }
    }
}

/// Why a call could not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CallError {
    /// There is no such stream any more: it ended, or was reset.
    #[error("there is no such stream, or no longer")]
    NoStream,
    /// The call is not for this side, or not for this stream: a reply to one's own stream, a push by a
    /// client.
    #[error("this side cannot do that on this stream")]
    NotAllowed,
    /// A server's data, or a push, before the reply to the stream.
    #[error("the stream has not been replied to")]
    NotReplied,
    /// After the last frame of this side.
    #[error("this side has said that it sends no more on the stream")]
    Finished,
    /// As many streams are open as may be: when one has ended, there is room.
    #[error("{0} streams are open, the most allowed")]
    TooManyStreams(u32),
    /// A GOAWAY was sent or came: a new session is needed.
    #[error("the session takes no new streams")]
    GoingAway,
    /// The session is over.
    #[error("the session is over")]
    Over,
    /// Too much is queued: take output first.
    #[error("too much waits to be sent")]
    Full,
    /// Headers larger than a frame can say.
    #[error("the headers are too large for a frame")]
    TooLarge,
}

impl Explain for CallError {
    fn fault(&self) -> Fault {
        match self {
            CallError::NoStream | CallError::GoingAway | CallError::Over => Fault::Peer,
            _ => Fault::Caller,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            CallError::TooManyStreams(_) => Some("wait until a stream has ended".into()),
            CallError::GoingAway | CallError::Over => Some("connect again".into()),
            CallError::Full => Some("take output first".into()),
            _ => None,
        }
    }
}
