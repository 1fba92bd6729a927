//! A frame in a chart.

use serde::{Deserialize, Serialize};
use units::Time;

/// A frame, or a run of like ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When its last byte could be read, by the capture's clock; of a run, the first frame's.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// Of a run, the last frame's time; else the same.
    #[serde(rename = "until_ns")]
    pub until: Time,
    /// Whether the client sent it.
    pub from_client: bool,
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// Bytes behind the frame's header; of a run, of each but perhaps the last.
    pub length: u64,
    /// How many frames: 1, or more in a run.
    pub frames: u64,
    /// Bytes behind headers in all.
    pub bytes: u64,
    /// Bytes that may still be sent on the stream after it: of DATA by its sender, of WINDOW_UPDATE and
    /// SETTINGS by who receives it (SETTINGS: on a new stream). `None` where it is no matter of
    /// windows, or not known.
    pub stream_window: Option<i64>,
    /// The same of the connection.
    pub connection_window: Option<i64>,
}

/// What a frame is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum Kind {
    /// A piece of a body.
    Data {
        /// Its sender's last on the stream.
        fin: bool,
    },
    /// SPDY: opens a stream.
    SynStream {
        /// Its sender's last on the stream.
        fin: bool,
    },
    /// SPDY: accepts one.
    SynReply {
        /// Its sender's last on the stream.
        fin: bool,
    },
    /// A header block.
    Headers {
        /// Its sender's last on the stream.
        fin: bool,
    },
    /// Ends a stream abnormally.
    RstStream {
        /// The protocol's code.
        code: u32,
    },
    /// Says how the sender wants to be talked to.
    Settings {
        /// HTTP/2: the peer's were taken.
        ack: bool,
        /// Numbers and values, in their order.
        entries: Vec<(u32, u32)>,
    },
    /// Measures a round trip.
    Ping,
    /// No new streams.
    Goaway {
        /// The protocol's code.
        code: u32,
    },
    /// Widens a window.
    WindowUpdate {
        /// By how many bytes.
        increment: u32,
    },
    /// HTTP/2: announces a stream of the server's.
    PushPromise,
    /// HTTP/2: more of a header block.
    Continuation,
    /// HTTP/2: a stream's priority, of RFC 9113 or of RFC 9218.
    Priority,
    /// SPDY/3: a client certificate.
    Credential,
    /// A type that the protocol's document does not have.
    Other {
        /// The type's number on the wire.
        number: u16,
    },
    /// A frame that contradicts its format; what is behind it is read on.
    Malformed,
}

impl Kind {
    /// The frame's name in the protocol's document.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Kind::Data { .. } => "DATA",
            Kind::SynStream { .. } => "SYN_STREAM",
            Kind::SynReply { .. } => "SYN_REPLY",
            Kind::Headers { .. } => "HEADERS",
            Kind::RstStream { .. } => "RST_STREAM",
            Kind::Settings { .. } => "SETTINGS",
            Kind::Ping => "PING",
            Kind::Goaway { .. } => "GOAWAY",
            Kind::WindowUpdate { .. } => "WINDOW_UPDATE",
            Kind::PushPromise => "PUSH_PROMISE",
            Kind::Continuation => "CONTINUATION",
            Kind::Priority => "PRIORITY",
            Kind::Credential => "CREDENTIAL",
            Kind::Other { .. } => "unknown frame",
            Kind::Malformed => "malformed frame",
        }
    }

    /// Whether it is its sender's last on its stream.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        match self {
            Kind::Data { fin }
            | Kind::SynStream { fin }
            | Kind::SynReply { fin }
            | Kind::Headers { fin } => *fin,
            _ => false,
        }
    }
}
