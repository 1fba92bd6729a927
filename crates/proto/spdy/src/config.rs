//! How a session behaves.

use wire::spdy::{DEFAULT_WINDOW, MAX_WINDOW, Setting};

use crate::flood::FloodLimit;

/// The version that TLS negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// SPDY/3: a window for each stream, none for the session. The one of the SPDY paper.
    V3,
    /// SPDY/3.1: a window for the session too.
    V3_1,
}

impl Version {
    /// Both, the newer first.
    pub const ALL: [Version; 2] = [Version::V3_1, Version::V3];

    /// Its name in ALPN.
    #[must_use]
    pub const fn alpn(self) -> &'static str {
        match self {
            Version::V3 => "spdy/3",
            Version::V3_1 => "spdy/3.1",
        }
    }

    /// The version with this name in ALPN.
    #[must_use]
    pub fn of_alpn(name: &[u8]) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.alpn().as_bytes() == name)
    }
}

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It opened the connection: its streams and pings are odd.
    Client,
    /// It accepted it.
    Server,
}

/// The windows that this side announces, and when it says that they are open again. Every sender
/// begins with 64 KiB, whatever is announced (§2.6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowControl {
    /// The window of each stream in bytes, at most 2^31 - 1. Said in SETTINGS if it is not 64 KiB.
    pub stream_window: u32,
    /// The window of the session in bytes in SPDY/3.1, at least 64 KiB, which it begins with. What is
    /// more is said in a WINDOW_UPDATE at the beginning.
    pub session_window: u32,
    /// WINDOW_UPDATE is sent when more than this part of a window is consumed: 2 for a half, which is the
    /// least.
    pub update_divisor: u32,
}

impl FlowControl {
    /// Chromium, as the SPDY paper read it: 10 MB announced, an update when more than half is consumed.
    /// (The paper ran SPDY/3; in 3.1 the session has 10 MB too.)
    pub const CHROMIUM: FlowControl =
        FlowControl { stream_window: 10 << 20, session_window: 10 << 20, update_divisor: 2 };
    /// mod_spdy, as the paper read it: 64 KB, an update at one eighth.
    pub const MOD_SPDY: FlowControl = FlowControl {
        stream_window: DEFAULT_WINDOW,
        session_window: DEFAULT_WINDOW,
        update_divisor: 8,
    };
    /// Google's server, as the paper has it: a receive window of 1 MB. When it is told again the paper
    /// does not say; here at half.
    pub const GOOGLE: FlowControl =
        FlowControl { stream_window: 1 << 20, session_window: 1 << 20, update_divisor: 2 };
    /// Windows so large that none binds.
    pub const OFF: FlowControl =
        FlowControl { stream_window: MAX_WINDOW, session_window: MAX_WINDOW, update_divisor: 2 };

    /// The presets by name.
    pub const PRESETS: [(&'static str, FlowControl); 4] = [
        ("chromium", FlowControl::CHROMIUM),
        ("mod_spdy", FlowControl::MOD_SPDY),
        ("google", FlowControl::GOOGLE),
        ("off", FlowControl::OFF),
    ];
}

/// How a session behaves. Values beyond their bounds are taken as the bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How much each side may send before it is told to go on.
    pub flow: FlowControl,
    /// Most payload of a DATA frame that is sent, in bytes; 1 to 2^24 - 1.
    pub max_frame: usize,
    /// Bytes that [`Session::write`](crate::Session::write) queues for a stream.
    pub send_queue: usize,
    /// Streams that the peer may have open, said in SETTINGS. Those whose data are not consumed count.
    pub max_peer_streams: u32,
    /// Streams that this side has open at most; fewer if the peer says so.
    pub max_own_streams: u32,
    /// Client: whether streams that the server pushes are taken. Otherwise none is allowed, and those
    /// that come all the same are refused.
    pub accept_push: bool,
    /// zlib's level for headers: 0 (stored) to 9.
    pub header_level: u32,
    /// zlib's window for headers in bits, 9 to 15; §2.6.10.1 proposes 11.
    pub header_window_bits: u8,
    /// Most bytes of a header block, uncompressed.
    pub max_header_block: usize,
    /// Most bytes of a control frame that are taken; at least 8192 (§2.2.1).
    pub max_control_frame: usize,
    /// Bytes of answers (PING, RST_STREAM) that may wait because the peer does not read. Beyond it the
    /// session ends.
    pub max_answers: usize,
    /// Frames that bring nothing.
    pub flood: FloodLimit,
    /// Settings that are sent at the beginning beside those of the fields above. A server's may ask to
    /// be persisted; a client gives those that it has persisted
    /// ([`Session::persisted`](crate::Session::persisted)), and they are returned as such.
    pub settings: Vec<Setting>,
    /// Whether each change of a window is reported by [`Session::poll_change`](crate::Session::poll_change).
    pub trace_windows: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            flow: FlowControl::CHROMIUM,
            max_frame: 16 << 10,
            send_queue: 64 << 10,
            max_peer_streams: 100,
            max_own_streams: 100,
            accept_push: true,
            header_level: 6,
            header_window_bits: 11,
            max_header_block: 64 << 10,
            max_control_frame: 64 << 10,
            max_answers: 64 << 10,
            flood: FloodLimit::default(),
            settings: Vec::new(),
            trace_windows: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_names_in_alpn() {
        assert_eq!(Version::of_alpn(b"spdy/3"), Some(Version::V3));
        assert_eq!(Version::of_alpn(b"spdy/3.1"), Some(Version::V3_1));
        assert_eq!(Version::of_alpn(b"spdy/2"), None);
    }
}
