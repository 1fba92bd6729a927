//! How a page is loaded: what both sides of a lane are set to.

use std::path::PathBuf;
use std::time::Duration;

use page::Policy;
use serde::{Deserialize, Serialize};
use web::{Protocol, Settings, TcpSettings};

units::named! {
    /// Which flow-control windows both sides announce, by whose product has them.
    #[derive(Default)]
    pub enum Windows: "windows" {
        /// Chromium's: 10 MB, updated at half.
        #[default]
        Chromium = "chromium",
        /// mod_spdy's: 64 KB, updated at one eighth.
        ModSpdy = "mod-spdy",
        /// Google's servers': 1 MB.
        Google = "google",
        /// So large that they never bind.
        Off = "off",
    }
}

impl Windows {
    /// The settings for a protocol: HTTP/2's and HTTP/3's libraries have thresholds of their own for
    /// updates (see the documentation of `web`).
    #[must_use]
    pub fn settings(self, protocol: Protocol) -> Settings {
        let settings = match self {
            Windows::Chromium => Settings::CHROMIUM,
            Windows::ModSpdy => Settings::MOD_SPDY,
            Windows::Google => Settings::GOOGLE,
            Windows::Off => Settings::OFF,
        };
        match protocol {
            Protocol::Http2 | Protocol::Http3 => settings.with_library_updates(),
            _ => settings,
        }
    }
}

/// How a page is loaded.
#[derive(Debug, Clone)]
pub struct Setting {
    /// What carries it.
    pub protocol: Protocol,
    /// TLS versions on both sides. HTTP/3 has TLS 1.3 whatever is said.
    pub versions: Vec<tls::Version>,
    /// Flow-control windows of both sides.
    pub settings: Settings,
    /// TCP's options of both sides.
    pub tcp: Tcp,
    /// What the browser decides by.
    pub policy: Policy,
    /// After how long a load is given up.
    pub timeout: Duration,
    /// The headless Chromium that loads the page in place of the loader here. Policy, windows and TCP's
    /// options of its side are then its own.
    pub chromium: Option<PathBuf>,
}

impl Setting {
    /// The TLS versions that both sides are set to.
    pub(crate) fn tls_versions(&self) -> Vec<tls::Version> {
        match self.protocol {
            Protocol::Http3 => vec![tls::Version::Tls13],
            _ => self.versions.clone(),
        }
    }
}

/// TCP's options, both sides alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// Bytes of each socket's receive and send buffer; the kernel tunes them if not given.
    pub buffer: Option<usize>,
}

impl Tcp {
    pub(crate) fn settings(self) -> TcpSettings {
        TcpSettings {
            send_buffer: self.buffer,
            receive_buffer: self.buffer,
            ..TcpSettings::default()
        }
    }
}
