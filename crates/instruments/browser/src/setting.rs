//! How a page is loaded: what both sides of a lane are set to.

use std::path::PathBuf;
use std::time::Duration;

use page::Policy;
use serde::{Deserialize, Serialize};
use tls::{KeyExchange, Library};
use web::{Congestion, Embedding, FastOpen, Protocol, QuicSettings, Settings, TcpSettings};

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

units::named! {
    /// What else is on the link while a page is loaded.
    #[derive(Default)]
    pub enum CrossTraffic: "cross traffic" {
        /// Nothing else.
        #[default]
        None = "none",
        /// A long download of another host by TCP, which has filled the queue.
        Bulk = "bulk",
    }
}

units::named! {
    /// What a server says with the page's document of what will be needed ([`page::Ahead`]).
    #[derive(Default)]
    pub enum ServerPush: "server push" {
        /// Nothing: the browser finds it.
        #[default]
        None = "none",
        /// It names it in `Link` fields of the response's head (`rel=preload`): what SPDY called a server
        /// hint. That is a form which every protocol here has; an interim response (103, RFC 8297) is not.
        Hint = "hint",
        /// It pushes it (SPDY, HTTP/2).
        Push = "push",
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
    /// Whose TCP carries it, where TCP does.
    pub carrier: Carrier,
    /// TCP's options of both sides, the kernel's.
    pub tcp: Tcp,
    /// How many packets may be sent at first, in either direction; TCP's and QUIC's own 10 if not given.
    pub initial_window: Option<u32>,
    /// Congestion control of both sides, of the kernel's TCP and of QUIC. Ours has CUBIC.
    pub congestion: Congestion,
    /// What the server says with the document of what will be needed. Our loader takes pushes only where
    /// the server is to push.
    pub server_push: ServerPush,
    /// What the browser decides by.
    pub policy: Policy,
    /// After how long a load is given up.
    pub timeout: Duration,
    /// The headless Chromium that loads the page in place of the loader here. Policy, windows and TCP's
    /// options of its side are then its own.
    pub chromium: Option<PathBuf>,
}

impl Setting {
    /// What of the TLS handshake rides in TCP's, over our TCP: HTTP/3 and clear text have none.
    pub(crate) fn embedding(&self) -> Option<Embedding> {
        let is_over_tls = !matches!(self.protocol, Protocol::Http3 | Protocol::Http1Clear);
        self.carrier.embedding().filter(|_| is_over_tls)
    }

    /// Whether both sides make TLS 1.2's handshake with RSA key exchange, which only OpenSSL has.
    pub(crate) fn has_rsa_exchange(&self) -> bool {
        let is_over_tls = self.protocol.is_over_tcp() && self.protocol != Protocol::Http1Clear;
        is_over_tls && self.carrier.has_rsa_exchange()
    }

    pub(crate) fn library(&self) -> Library {
        if self.has_rsa_exchange() { Library::OpenSsl } else { Library::Rustls }
    }

    pub(crate) fn key_exchange(&self) -> KeyExchange {
        if self.has_rsa_exchange() { KeyExchange::Rsa } else { KeyExchange::Ecdhe }
    }

    /// Whether the kernel puts what a connection begins with into its SYN.
    pub(crate) fn fast_open(&self) -> bool {
        self.protocol.is_over_tcp() && self.carrier.early().fast_open
    }

    /// Whether the first requests leave as early data, where TLS begins after TCP, and in QUIC.
    pub(crate) fn early_data(&self) -> bool {
        self.protocol != Protocol::Http1Clear && self.carrier.early().data
    }

    /// The TLS versions that both sides are set to.
    pub(crate) fn tls_versions(&self) -> Vec<tls::Version> {
        match self.protocol {
            Protocol::Http3 => vec![tls::Version::Tls13],
            _ if self.has_rsa_exchange() => vec![tls::Version::Tls12],
            _ if self.early_data() => vec![tls::Version::Tls13],
            _ => self.versions.clone(),
        }
    }

    /// QUIC's settings of both sides.
    pub(crate) fn quic(&self) -> QuicSettings {
        let Setting { initial_window, congestion, .. } = *self;
        QuicSettings { initial_window, congestion, ..QuicSettings::default() }
    }

    /// TCP's options of both sides.
    pub(crate) fn tcp(&self) -> TcpSettings {
        TcpSettings {
            send_buffer: self.tcp.buffer,
            receive_buffer: self.tcp.buffer,
            congestion: Some(self.congestion),
            fast_open: if self.fast_open() { FastOpen::Cookie } else { FastOpen::Off },
            ..TcpSettings::default()
        }
    }
}

/// Whose TCP carries a page, both sides alike, and how TLS begins on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Carrier {
    /// The kernel's, with nothing early.
    #[default]
    Kernel,
    /// The kernel's, with more than it takes in the first flight; of QUIC's, early data.
    KernelEarly(Early),
    /// The kernel's, with TLS 1.2 and RSA key exchange by OpenSSL.
    KernelRsa,
    /// Ours, whose handshake carries so much of that of TLS. [`Embedding::Paper`] brings TLS 1.2 with RSA key
    /// exchange.
    UserTcp(Embedding),
    /// Ours, with TLS 1.2 and RSA key exchange after its handshake.
    UserTcpRsa,
}

/// What a connection's first flight has beside what it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Early {
    /// Where the kernel has a cookie of the server, the SYN carries what comes next (TCP Fast Open, RFC 7413).
    pub fast_open: bool,
    /// Where there is a ticket that allows it, the first requests are early data (RFC 8446 §2.3).
    pub data: bool,
}

impl Carrier {
    /// The embedding, over our TCP.
    pub(crate) fn embedding(self) -> Option<Embedding> {
        match self {
            Carrier::UserTcp(embedding) => Some(embedding),
            Carrier::UserTcpRsa => Some(Embedding::None),
            Carrier::Kernel | Carrier::KernelEarly(_) | Carrier::KernelRsa => None,
        }
    }

    fn has_rsa_exchange(self) -> bool {
        matches!(
            self,
            Carrier::KernelRsa | Carrier::UserTcpRsa | Carrier::UserTcp(Embedding::Paper)
        )
    }

    fn early(self) -> Early {
        match self {
            Carrier::KernelEarly(early) => early,
            _ => Early::default(),
        }
    }
}

/// TCP's options, both sides alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// Bytes of each socket's receive and send buffer; the kernel tunes them if not given.
    pub buffer: Option<usize>,
}
