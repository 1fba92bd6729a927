//! Flow-control windows, concurrency and limits: what a side announces.

use serde::{Deserialize, Serialize};

use crate::{Failure, Protocol};

/// 64 KB, the window that SPDY and HTTP/2 begin with until the peer announces its own.
const START: u32 = 64 * 1024;
/// Largest window of HTTP/2 (RFC 9113 §6.9.1); h2 and quinn take it too.
const LARGEST: u32 = (1 << 31) - 1;
const MB: u32 = 1024 * 1024;

/// When a receiver sends a window update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowUpdate {
    /// When the library does: h2 and SPDY's session at half, quinn at one eighth.
    Library,
    /// When half of the window is consumed.
    Half,
    /// When one eighth of the window is consumed.
    Eighth,
}

/// What one side announces and how it behaves. TCP's own windows are [`crate::TcpSettings`]'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Receive window of each stream, bytes (SETTINGS_INITIAL_WINDOW_SIZE; QUIC's max_stream_data).
    pub stream_window: u32,
    /// Receive window of the connection, bytes (a WINDOW_UPDATE at the start; QUIC's max_data). SPDY/3 has
    /// none.
    pub connection_window: u32,
    /// When windows are updated.
    pub update: WindowUpdate,
    /// Streams that the peer may have open at once; HTTP/1.1 has one.
    pub max_concurrent_streams: u32,
    /// Largest list of header fields accepted, bytes counted as in RFC 9113 §6.5.2; SPDY's block of them,
    /// decompressed.
    pub max_header_list: u32,
    /// Largest frame accepted, bytes (HTTP/2 only: 16,384 to 16,777,215).
    pub max_frame: u32,
    /// HPACK's dynamic table, bytes (HTTP/2 only; h3 has none).
    pub header_table: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings::CHROMIUM.with_library_updates()
    }
}

impl Settings {
    /// Chromium, as the paper read its code: 10 MB announced, updates at half.
    pub const CHROMIUM: Settings = Settings {
        stream_window: 10 * MB,
        connection_window: 10 * MB,
        update: WindowUpdate::Half,
        max_concurrent_streams: 100,
        max_header_list: 64 * 1024,
        max_frame: 16_384,
        header_table: 4096,
    };
    /// mod_spdy, the paper's server: 64 KB, updates at one eighth.
    pub const MOD_SPDY: Settings = Settings {
        stream_window: START,
        connection_window: START,
        update: WindowUpdate::Eighth,
        ..Settings::CHROMIUM
    };
    /// Google's servers: a receive window of 1 MB.
    pub const GOOGLE: Settings =
        Settings { stream_window: MB, connection_window: MB, ..Settings::CHROMIUM };
    /// Windows so large that they never bind: flow control is TCP's or QUIC's congestion control alone.
    pub const OFF: Settings = Settings {
        stream_window: LARGEST,
        connection_window: LARGEST,
        update: WindowUpdate::Library,
        ..Settings::CHROMIUM
    };

    /// The same with the library's own threshold for window updates.
    #[must_use]
    pub const fn with_library_updates(self) -> Settings {
        Settings { update: WindowUpdate::Library, ..self }
    }

    /// The same with this window for streams and connection alike.
    #[must_use]
    pub const fn with_windows(self, bytes: u32) -> Settings {
        Settings { stream_window: bytes, connection_window: bytes, ..self }
    }

    /// Whether `protocol` can keep them.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] for a threshold that the protocol's library does not have;
    /// [`Failure::Plan`] for a value out of the protocol's range.
    pub fn check(&self, protocol: Protocol) -> Result<(), Failure> {
        let unsupported = |what, remedy| Err(Failure::Unsupported { protocol, what, remedy });
        match (protocol, self.update) {
            (Protocol::Http2, WindowUpdate::Eighth) => {
                return unsupported("window updates at one eighth: h2 sends them at half", UPDATES);
            }
            (Protocol::Http3, WindowUpdate::Half) => {
                return unsupported(
                    "window updates at half: quinn sends them at one eighth",
                    UPDATES,
                );
            }
            _ => {}
        }
        if protocol == Protocol::Http2 && !(16_384..=16_777_215).contains(&self.max_frame) {
            return wrong("the largest frame is 16,384 to 16,777,215 bytes (RFC 9113 §6.5.2)");
        }
        if self.stream_window > LARGEST || self.connection_window > LARGEST {
            return wrong("a window is at most 2,147,483,647 bytes (RFC 9113 §6.9.1)");
        }
        // RFC 9113 §6.9.2: only a stream's first window can be set, the connection's can only grow.
        if protocol == Protocol::Http2 && self.connection_window < 65_535 {
            return wrong("HTTP/2's connection window is at least 65,535 bytes (RFC 9113 §6.9.2)");
        }
        // SPDY draft 3.1 §2.6.8: the same.
        if protocol == Protocol::Spdy31 && self.connection_window < START {
            return wrong(
                "SPDY/3.1's connection window is at least 65,536 bytes (draft 3.1 §2.6.8)",
            );
        }
        if protocol.is_multiplexed() && self.max_concurrent_streams == 0 {
            return wrong("at least one concurrent stream is needed");
        }
        Ok(())
    }
}

const UPDATES: &str = "use Settings::with_library_updates";

fn wrong(what: &str) -> Result<(), Failure> {
    Err(Failure::Plan(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_that_a_library_lacks_are_errors() {
        let check = |settings: Settings, protocol| settings.check(protocol).is_ok();
        assert!(check(Settings::CHROMIUM, Protocol::Http2));
        assert!(!check(Settings::MOD_SPDY, Protocol::Http2));
        assert!(check(Settings::MOD_SPDY, Protocol::Http3));
        assert!(!check(Settings::GOOGLE, Protocol::Http3));
        for settings in [Settings::CHROMIUM, Settings::MOD_SPDY, Settings::GOOGLE, Settings::OFF] {
            for protocol in [Protocol::Http2, Protocol::Http3] {
                assert!(check(settings.with_library_updates(), protocol), "{protocol}");
            }
            for protocol in [Protocol::Http1, Protocol::Spdy3, Protocol::Spdy31] {
                assert!(check(settings, protocol), "{protocol}");
            }
        }
    }

    #[test]
    fn values_out_of_range_are_errors() {
        for settings in [
            Settings { max_frame: 100, ..Settings::CHROMIUM },
            Settings { stream_window: u32::MAX, ..Settings::CHROMIUM },
            Settings { connection_window: 1000, ..Settings::CHROMIUM },
            Settings { max_concurrent_streams: 0, ..Settings::CHROMIUM },
        ] {
            let failure = settings.check(Protocol::Http2).unwrap_err();
            assert_eq!(failure.name(), "plan", "{failure}");
        }
        let small = Settings { connection_window: START - 1, ..Settings::CHROMIUM };
        assert_eq!(small.check(Protocol::Spdy31).unwrap_err().name(), "plan");
        assert!(small.check(Protocol::Spdy3).is_ok());
    }
}
