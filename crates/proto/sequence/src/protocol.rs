//! Which protocol a connection speaks.

use std::fmt;

use serde::{Deserialize, Serialize};
use wire::{http2, spdy};

/// A protocol with flow control whose frames are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// SPDY/3: a window for each stream.
    #[serde(rename = "spdy/3")]
    Spdy3,
    /// SPDY/3.1: a window for the session too.
    #[serde(rename = "spdy/3.1")]
    Spdy31,
    /// HTTP/2: a window for each stream and for the connection.
    #[serde(rename = "h2")]
    Http2,
}

impl Protocol {
    /// The protocol with this name in ALPN.
    #[must_use]
    pub fn of_alpn(name: &str) -> Option<Protocol> {
        match name {
            "spdy/3" => Some(Protocol::Spdy3),
            "spdy/3.1" => Some(Protocol::Spdy31),
            "h2" | "h2c" => Some(Protocol::Http2),
            _ => None,
        }
    }

    /// The protocol that a client's first bytes are of; `Err` while they may still be of one.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Option<Protocol>, ()> {
        let preface = http2::PREFACE;
        if bytes.len() < preface.len() && preface.starts_with(bytes) {
            return Err(());
        }
        if bytes.starts_with(preface) {
            return Ok(Some(Protocol::Http2));
        }
        // A control frame of version 3 and of a known type (SPDY §2.2.1).
        match bytes {
            [0x80] | [0x80, 3] | [0x80, 3, 0] => Err(()),
            [0x80, 3, 0, kind, ..] if spdy::FrameType(u16::from(*kind)).is_known() => {
                Ok(Some(Protocol::Spdy3))
            }
            _ => Ok(None),
        }
    }

    /// The window in bytes that a stream begins with.
    #[must_use]
    pub const fn start_window(self) -> u32 {
        match self {
            Protocol::Spdy3 | Protocol::Spdy31 => spdy::DEFAULT_WINDOW,
            Protocol::Http2 => http2::DEFAULT_WINDOW,
        }
    }

    /// The window in bytes that the connection, or session, begins with; `None` where it has none.
    #[must_use]
    pub const fn connection_start(self) -> Option<u32> {
        match self {
            Protocol::Spdy3 => None,
            Protocol::Spdy31 => Some(spdy::DEFAULT_WINDOW),
            Protocol::Http2 => Some(http2::DEFAULT_WINDOW),
        }
    }

    /// What it calls the whole of its streams.
    #[must_use]
    pub const fn whole(self) -> &'static str {
        match self {
            Protocol::Spdy3 | Protocol::Spdy31 => "session",
            Protocol::Http2 => "connection",
        }
    }

    /// The number of the setting of a stream's first window.
    pub(crate) const fn initial_window_id(self) -> u32 {
        match self {
            Protocol::Spdy3 | Protocol::Spdy31 => spdy::SettingId::INITIAL_WINDOW_SIZE.0,
            Protocol::Http2 => http2::SettingId::INITIAL_WINDOW_SIZE.0 as u32,
        }
    }

    /// A setting's name in the protocol's document, without `SETTINGS_`.
    #[must_use]
    pub const fn setting_name(self, id: u32) -> Option<&'static str> {
        Some(match (self, id) {
            (Protocol::Http2, 1) => "HEADER_TABLE_SIZE",
            (Protocol::Http2, 2) => "ENABLE_PUSH",
            (Protocol::Http2, 3) => "MAX_CONCURRENT_STREAMS",
            (Protocol::Http2, 4) => "INITIAL_WINDOW_SIZE",
            (Protocol::Http2, 5) => "MAX_FRAME_SIZE",
            (Protocol::Http2, 6) => "MAX_HEADER_LIST_SIZE",
            (Protocol::Http2, 8) => "ENABLE_CONNECT_PROTOCOL",
            (Protocol::Http2, 9) => "NO_RFC7540_PRIORITIES",
            (Protocol::Http2, _) => return None,
            (_, 1) => "UPLOAD_BANDWIDTH",
            (_, 2) => "DOWNLOAD_BANDWIDTH",
            (_, 3) => "ROUND_TRIP_TIME",
            (_, 4) => "MAX_CONCURRENT_STREAMS",
            (_, 5) => "CURRENT_CWND",
            (_, 6) => "DOWNLOAD_RETRANS_RATE",
            (_, 7) => "INITIAL_WINDOW_SIZE",
            (_, 8) => "CLIENT_CERTIFICATE_VECTOR_SIZE",
            _ => return None,
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Spdy3 => "spdy/3",
            Protocol::Spdy31 => "spdy/3.1",
            Protocol::Http2 => "h2",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_say_which_protocol_it_is() {
        let preface = http2::PREFACE;
        assert_eq!(Protocol::of_bytes(&preface[..10]), Err(()));
        assert_eq!(Protocol::of_bytes(preface), Ok(Some(Protocol::Http2)));
        assert_eq!(Protocol::of_bytes(b"PUT / HTTP/1.1"), Ok(None));
        assert_eq!(Protocol::of_bytes(&[0x80, 3]), Err(()));
        assert_eq!(Protocol::of_bytes(&[0x80, 3, 0, 4, 0]), Ok(Some(Protocol::Spdy3)));
        assert_eq!(Protocol::of_bytes(&[0x80, 3, 0, 99, 0]), Ok(None));
        assert_eq!(Protocol::of_bytes(&[0x80, 2, 0, 1]), Ok(None));
        for protocol in [Protocol::Spdy3, Protocol::Spdy31, Protocol::Http2] {
            assert_eq!(Protocol::of_alpn(&protocol.to_string()), Some(protocol));
            let id = protocol.initial_window_id();
            assert_eq!(protocol.setting_name(id), Some("INITIAL_WINDOW_SIZE"));
        }
    }
}
