//! One combination of what is varied: a page load.

use std::collections::BTreeMap;
use std::path::Path;

use browser::{Before, Carrier, CrossTraffic, Early, ServerPush, Setting, Tcp, Windows};
use page::{Browser, Policy};
use study::{Axes, CLOCK_HELP, Clock, axis};
use units::{Delay, Probability, named};
use web::{Congestion, Embedding, Protocol};

use crate::link::LinkName;
use crate::pages::PageName;
use crate::window::{InitialWindow, Window};

named! {
    /// What the browser has kept from a load of the same page before.
    #[derive(Default)]
    pub enum Visit: "visit" {
        /// Nothing: a first visit.
        #[default]
        First = "first",
        /// Cache, names, tickets and open connections.
        Kept = "kept",
        /// Cache, names and tickets; its connections were closed.
        Closed = "closed",
    }
}

named! {
    /// The TLS version of both sides.
    #[derive(Default)]
    pub enum Tls: "TLS version" {
        /// TLS 1.3 (RFC 8446).
        #[default]
        V13 = "1.3",
        /// TLS 1.2 (RFC 5246).
        V12 = "1.2",
    }
}

named! {
    /// Whose TCP carries it, and how TLS begins on it.
    #[derive(Default)]
    pub enum Handshake: "handshake" {
        /// The kernel's TCP, then TLS: what Fast Open and early data are held against.
        #[default]
        Kernel = "kernel",
        /// TCP Fast Open: the SYN has the ClientHello, where the kernel has a cookie of the server.
        FastOpen = "tfo",
        /// TLS 1.3 early data after the kernel's TCP, or in QUIC: the first request leaves with the ClientHello,
        /// where there is a ticket.
        EarlyData = "0rtt",
        /// Both: the first request leaves with the SYN.
        FastOpenEarlyData = "tfo-0rtt",
        /// The kernel's TCP, then TLS 1.2 with RSA key exchange.
        KernelRsa = "tls12-rsa",
        /// Our TCP, then TLS: what SSLmTCP is held against.
        UserTcp = "usertcp",
        /// Our TCP, then TLS 1.2 with RSA key exchange: the handshake of the SSLmTCP paper in sequence.
        UserTcpRsa = "usertcp-tls12-rsa",
        /// SSLmTCP as its paper has it: TLS 1.2 with RSA key exchange, ready after two round trips.
        Paper = "sslmtcp-paper",
        /// SSLmTCP with TLS 1.3, ready after one round trip.
        Tls13 = "sslmtcp-tls13",
        /// The same with the first request in the SYN, where there is a ticket.
        ZeroRtt = "sslmtcp-0rtt",
    }
}

impl Handshake {
    fn carrier(self) -> Carrier {
        let early = |fast_open, data| Carrier::KernelEarly(Early { fast_open, data });
        match self {
            Handshake::Kernel => Carrier::Kernel,
            Handshake::FastOpen => early(true, false),
            Handshake::EarlyData => early(false, true),
            Handshake::FastOpenEarlyData => early(true, true),
            Handshake::KernelRsa => Carrier::KernelRsa,
            Handshake::UserTcp => Carrier::UserTcp(Embedding::None),
            Handshake::UserTcpRsa => Carrier::UserTcpRsa,
            Handshake::Paper => Carrier::UserTcp(Embedding::Paper),
            Handshake::Tls13 => Carrier::UserTcp(Embedding::Tls13),
            Handshake::ZeroRtt => Carrier::UserTcp(Embedding::ZeroRtt),
        }
    }

    /// Whether it runs over our TCP.
    pub(crate) const fn is_over_user_tcp(self) -> bool {
        matches!(
            self,
            Handshake::UserTcp
                | Handshake::UserTcpRsa
                | Handshake::Paper
                | Handshake::Tls13
                | Handshake::ZeroRtt
        )
    }

    const fn has_fast_open(self) -> bool {
        matches!(self, Handshake::FastOpen | Handshake::FastOpenEarlyData)
    }

    /// The handshakes in sequence over the same TCP, by the first of which that was measured it is told what it
    /// saves; none for one that is such itself.
    pub(crate) const fn sequential(self) -> &'static [Handshake] {
        match self {
            Handshake::Kernel
            | Handshake::KernelRsa
            | Handshake::UserTcp
            | Handshake::UserTcpRsa => &[],
            Handshake::FastOpen | Handshake::EarlyData | Handshake::FastOpenEarlyData => {
                &[Handshake::Kernel]
            }
            Handshake::Paper => &[Handshake::UserTcpRsa, Handshake::UserTcp],
            Handshake::Tls13 | Handshake::ZeroRtt => &[Handshake::UserTcp],
        }
    }

    /// As HTTP/3 has it: of what is early, early data alone.
    const fn over_quic(self) -> Handshake {
        match self {
            Handshake::EarlyData | Handshake::FastOpenEarlyData => Handshake::EarlyData,
            _ => Handshake::Kernel,
        }
    }
}

named! {
    /// How frames wait for the link's rate.
    #[derive(Default)]
    pub enum Waiting: "queue" {
        /// Drop-tail, as long as the link's own queue.
        #[default]
        DropTail = "drop-tail",
        /// CoDel (RFC 8289) with its own defaults.
        Codel = "codel",
    }
}

named! {
    /// Who loads the page.
    #[derive(Default)]
    pub enum Loader: "loader" {
        /// Wiretax's own: it fetches, and renders nothing.
        #[default]
        Ours = "ours",
        /// Chromium's headless shell.
        Chromium = "chromium",
    }
}

/// One page load: one combination of a sweep's lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The sweep that it belongs to.
    pub sweep: String,
    /// The page that is loaded.
    pub page: PageName,
    /// The link that it is loaded over.
    pub link: LinkName,
    /// Loss each way.
    pub loss: Probability,
    /// How frames wait for the link's rate.
    pub queue: Waiting,
    /// What else is on the link.
    pub cross: CrossTraffic,
    /// What carries it.
    pub protocol: Protocol,
    /// Who loads it.
    pub loader: Loader,
    /// What was kept from before.
    pub visit: Visit,
    /// Which browser's policy says what is asked for when.
    pub browser: Browser,
    /// The TLS version; HTTP/3 has 1.3.
    pub tls: Tls,
    /// Whose TCP, and how TLS begins on it.
    pub handshake: Handshake,
    /// Whose flow-control windows.
    pub windows: Windows,
    /// Another size for the windows of streams and connection.
    pub stream_window: Window,
    /// Another size for TCP's buffers; none leaves them to the kernel.
    pub tcp_window: Window,
    /// The congestion window at the start.
    pub initial_window: InitialWindow,
    /// Congestion control of TCP and QUIC.
    pub congestion: Congestion,
    /// What the server says of what will be needed.
    pub server_push: ServerPush,
    /// By which time it is measured.
    pub clock: Clock,
}

/// The study's axes, a line each. Page and link change slowest, so that the protocols take turns on a
/// link.
pub(crate) const AXES: Axes<Point> = Axes {
    axes: &[
        axis!(
            "page",
            page,
            "google-play",
            "PAGES",
            "Pages: google-play, domestic-2mb, domestic-4mb, site-twitter and others, testbed-1 to testbed-4, small-objects, cablelabs-large, upload; or that of --har"
        ),
        axis!(
            "link",
            link,
            "3g-0.9,wlan-17",
            "LINKS",
            "Links: 3g-0.9, 3g-1.37, wlan-17, wlan-61, wired-10, wired-100 and others of the SPDY paper; bus or bus:SEED, a moving bus; trace:FILE@50ms or trace:DOWN:UP@50ms, files of mahimahi's format; or round trip and rate as 50ms@20mbit"
        ),
        axis!("loss", loss, "0", "SHARES", "Loss each way, as 1%", unnamed "0"),
        axis!("queue", queue, "drop-tail", "KINDS", "Queues of the link: drop-tail, codel", unnamed "drop-tail"),
        axis!("cross-traffic", cross, "none", "KINDS", "Cross traffic on the link: none, bulk (a long TCP download of another host, which has filled the queue)", unnamed "none"),
        axis!("browser", browser, "chromium", "BROWSERS", "Whose policy: chromium, firefox"),
        axis!("tls", tls, "1.3", "VERSIONS", "TLS versions: 1.3, 1.2 (HTTP/3: 1.3)"),
        axis!("handshake", handshake, "kernel", "HANDSHAKES", "TCP and how TLS begins on it: kernel, tfo (TCP Fast Open), 0rtt (early data; of HTTP/3 QUIC's), tfo-0rtt (both), tls12-rsa; usertcp (our TCP, then TLS), usertcp-tls12-rsa, sslmtcp-paper, sslmtcp-tls13, sslmtcp-0rtt", unnamed "kernel"),
        axis!(
            "windows",
            windows,
            "chromium",
            "PRESETS",
            "Flow-control windows: chromium (10 MB), mod-spdy (64 KB, updated at one eighth), google (1 MB), off"
        ),
        axis!("stream-window", stream_window, "auto", "SIZES", "Another size for the windows of stream and connection, as 64kB", unnamed "auto"),
        axis!("tcp-window", tcp_window, "auto", "SIZES", "TCP's send and receive buffers, as 64kB; auto: the kernel tunes them", unnamed "auto"),
        axis!("initial-window", initial_window, "10", "PACKETS", "Congestion windows at the start of TCP and QUIC, in packets, as 3,10,32", unnamed "10"),
        axis!("congestion", congestion, "cubic", "KINDS", "Congestion control of TCP and QUIC, both sides: cubic, reno, bbr", unnamed "cubic"),
        axis!("server-push", server_push, "none", "FORMS", "Style sheets, scripts and fonts that the document refers to on its own host: none, hint (Link fields in the head), push (SPDY, HTTP/2)", unnamed "none"),
        axis!(
            "protocol",
            protocol,
            "http/1.1,spdy/3.1,h2,h3",
            "PROTOCOLS",
            "Protocols: http/1.1, http/1.1-clear, spdy/3, spdy/3.1, h2, h3"
        ),
        axis!("loader", loader, "ours", "LOADERS", "Loader: ours, chromium (the headless shell, from the same server over the same link)", unnamed "ours"),
        axis!(
            "visit",
            visit,
            "first,kept",
            "VISITS",
            "Visits: first, kept (a repeat on open connections), closed (a repeat on new connections)"
        ),
        axis!("clock", clock, "wall", "CLOCK", CLOCK_HELP, unnamed "wall"),
    ],
    canonical: Point::canonical,
    impossible: Point::impossible,
};

impl Point {
    /// A point of a sweep, before its axes are set.
    pub(crate) fn of_sweep(sweep: &str) -> Point {
        Point {
            sweep: sweep.to_owned(),
            page: PageName::default(),
            link: LinkName::Named("3g-0.9"),
            loss: Probability::ZERO,
            queue: Waiting::DropTail,
            cross: CrossTraffic::None,
            protocol: Protocol::Http1,
            loader: Loader::Ours,
            visit: Visit::First,
            browser: Browser::Chromium,
            tls: Tls::V13,
            handshake: Handshake::Kernel,
            windows: Windows::Chromium,
            stream_window: Window(None),
            tcp_window: Window(None),
            initial_window: InitialWindow::USUAL,
            congestion: Congestion::Cubic,
            server_push: ServerPush::None,
            clock: Clock::Wall,
        }
    }

    /// HTTP/3 has TLS 1.3 and no TCP, clear text has no TLS, early data and an embedding bring their version,
    /// HTTP/1.1 has no windows of its own, and Chromium has its own windows and the kernel's TCP.
    fn canonical(self) -> Point {
        let (tls, handshake) = match (self.protocol, self.handshake) {
            (Protocol::Http1Clear, _) => (Tls::V13, Handshake::Kernel),
            (Protocol::Http3, _) if self.loader == Loader::Chromium => {
                (Tls::V13, Handshake::Kernel)
            }
            (Protocol::Http3, handshake) => (Tls::V13, handshake.over_quic()),
            _ if self.loader == Loader::Chromium => (self.tls, Handshake::Kernel),
            (_, rsa @ (Handshake::Paper | Handshake::KernelRsa | Handshake::UserTcpRsa)) => {
                (Tls::V12, rsa)
            }
            (
                _,
                newer @ (Handshake::Tls13
                | Handshake::ZeroRtt
                | Handshake::EarlyData
                | Handshake::FastOpenEarlyData),
            ) => (Tls::V13, newer),
            (_, sequential) => (self.tls, sequential),
        };
        let tcp_window = if self.protocol.is_over_tcp() { self.tcp_window } else { Window(None) };
        let ours = self.loader == Loader::Ours;
        let tcp_window = if ours { tcp_window } else { Window(None) };
        let (windows, stream_window) = match self.protocol.is_multiplexed() && ours {
            true => (self.windows, self.stream_window),
            false => (Windows::Chromium, Window(None)),
        };
        Point { tls, handshake, tcp_window, windows, stream_window, ..self }
    }

    fn impossible(&self) -> Option<&'static str> {
        if self.loader == Loader::Chromium {
            if self.clock == Clock::Virtual {
                return Some("Chromium is not in the guest");
            }
            if matches!(self.protocol, Protocol::Spdy3 | Protocol::Spdy31) {
                return Some("Chromium has no SPDY");
            }
            if self.visit == Visit::Closed {
                return Some("Chromium cannot close its connections and keep its cache");
            }
            if self.browser != Browser::Chromium {
                return Some("Chromium has no policy but its own");
            }
            if self.server_push != ServerPush::None {
                return Some("Chromium takes no push, and its hints are not looked at here");
            }
        }
        if self.server_push == ServerPush::Push {
            match self.protocol {
                Protocol::Http1 | Protocol::Http1Clear => return Some("HTTP/1.1 has no push"),
                Protocol::Http3 => return Some("HTTP/3's library (h3) has no push"),
                Protocol::Spdy3 | Protocol::Spdy31 | Protocol::Http2 => {}
            }
        }
        let small = |window: Window, least| window.bytes().is_some_and(|bytes| bytes < least);
        if self.protocol == Protocol::Http2 && small(self.stream_window, 65_535) {
            return Some("HTTP/2's connection window is at least 65,535 bytes");
        }
        let over_ours = self.handshake.is_over_user_tcp();
        if over_ours && self.tcp_window != Window(None) {
            return Some("our TCP has no buffers to set");
        }
        if over_ours && self.initial_window != InitialWindow::USUAL {
            return Some("our TCP begins with 10 packets");
        }
        if self.handshake.has_fast_open() && self.initial_window != InitialWindow::USUAL {
            return Some("clients of Fast Open have addresses without a route of their own");
        }
        if over_ours && self.congestion != Congestion::Cubic {
            return Some("our TCP's congestion control is CUBIC");
        }
        (small(self.stream_window, 1024) || small(self.tcp_window, 2048))
            .then_some("such a window lets nothing through")
    }

    /// As the fields of a sample.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = AXES.fields(self);
        fields.insert("sweep".to_owned(), self.sweep.clone());
        fields
    }

    /// The point that a sample's fields name; `None` for those of something else.
    #[must_use]
    pub fn of_fields(fields: &BTreeMap<String, String>) -> Option<Point> {
        AXES.of_fields(fields, &Point::of_sweep(fields.get("sweep")?))
    }

    /// Whether they differ in the visit alone: one browser makes both loads.
    pub(crate) fn is_visit_of(&self, other: &Point) -> bool {
        Point { visit: other.visit, ..self.clone() } == *other
    }

    /// What both sides are set to; `chromium`: where its program is.
    pub(crate) fn setting(&self, timeout: Delay, chromium: Option<&Path>) -> Setting {
        let mut settings = self.windows.settings(self.protocol);
        if let Some(bytes) = self.stream_window.bytes() {
            settings = settings.with_windows(bytes);
        }
        let version = match self.tls {
            Tls::V13 => tls::Version::Tls13,
            Tls::V12 => tls::Version::Tls12,
        };
        // The kernel doubles what it is given.
        let buffer = self.tcp_window.bytes().map(|bytes| bytes as usize / 2);
        Setting {
            protocol: self.protocol,
            versions: vec![version],
            settings,
            carrier: self.handshake.carrier(),
            tcp: Tcp { buffer },
            initial_window: self.initial_window.packets(),
            congestion: self.congestion,
            server_push: self.server_push,
            policy: Policy::of(self.browser),
            timeout: timeout.duration(),
            chromium: chromium.filter(|_| self.loader == Loader::Chromium).map(Path::to_owned),
        }
    }
}

impl Visit {
    /// What is done with what the browser kept, before this load.
    pub(crate) const fn before(self) -> Before {
        match self {
            Visit::First => Before::Forget,
            Visit::Kept => Before::Keep,
            Visit::Closed => Before::Close,
        }
    }
}
