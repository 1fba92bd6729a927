//! What a browser decides by: data, with a source for each number.

use std::time::Duration;

use units::Bytes;

use crate::page::{Kind, Object, Urgency};

units::named! {
    /// A browser whose policy is known here.
    #[derive(Default)]
    pub enum Browser: "browser" {
        /// Chromium, of these years.
        #[default]
        Chromium = "chromium",
        /// Firefox, of these years.
        Firefox = "firefox",
    }
}

/// How a browser asks for objects of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Treatment {
    /// How urgent they are.
    pub urgency: Urgency,
    /// Whether they may share the connection with others as urgent (RFC 9218 §4.2).
    pub incremental: bool,
    /// Whether they wait while [`Hold`] says so.
    pub held: bool,
}

/// How a browser asks for objects, by class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treatments {
    /// The page and its frames.
    pub document: Treatment,
    /// Style sheets ([`Kind::Style`]).
    pub style: Treatment,
    /// Scripts that rendering waits for.
    pub blocking_script: Treatment,
    /// Other scripts: `async`, `defer`.
    pub script: Treatment,
    /// Fonts ([`Kind::Font`]).
    pub font: Treatment,
    /// Images ([`Kind::Image`]).
    pub image: Treatment,
    /// What scripts ask for.
    pub fetch: Treatment,
    /// Media, plug-ins, manifests ([`Kind::Other`]).
    pub other: Treatment,
}

/// When objects that nothing waits for are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Until the document has begun to come and all that rendering waits for is there, a held object
    /// is asked for only while fewer than this many requests are under way. `None`: no such rule.
    pub while_blocking: Option<usize>,
    /// Whether that rule counts for hosts whose connections are multiplexed.
    pub on_multiplexed: bool,
    /// At most this many held requests are under way to hosts without multiplexing.
    pub in_all: Option<usize>,
    /// A held request waits while this many requests of any class are under way to its host, if that
    /// is without multiplexing.
    pub per_host: Option<usize>,
}

/// What a browser decides by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Connections to one host that is not multiplexed.
    pub connections_per_host: usize,
    /// Connections in all.
    pub connections: usize,
    /// A kept connection that was idle longer is closed instead of used.
    pub idle: Duration,
    /// Whether a multiplexed connection serves other hosts that have its address and are in its
    /// certificate (RFC 9113 §9.1.1).
    pub coalesce: bool,
    /// Connections opened to the page's host as the load begins, beyond those that are needed.
    pub speculative: usize,
    /// How long a name's addresses are kept if its answer does not say.
    pub names_for: Duration,
    /// How many names are kept.
    pub names: usize,
    /// Whether tickets are used for resumption.
    pub tickets: bool,
    /// Room in the cache.
    pub cache: Bytes,
    /// Which requests wait.
    pub hold: Hold,
    /// Urgency by class.
    pub treatments: Treatments,
}

const fn treat(urgency: u8, incremental: bool, held: bool) -> Treatment {
    Treatment { urgency: Urgency::literal(urgency), incremental, held }
}

impl Policy {
    /// Chromium's policy. Paths are those of its source; where nothing else is said they were read
    /// there.
    ///
    /// - Six connections per host, 256 in all: `g_max_sockets_per_group`, `g_max_sockets_per_pool`,
    ///   net/socket/client_socket_pool_manager.cc.
    /// - Used connections are dropped after 300 s idle: `g_used_idle_socket_timeout_s`,
    ///   net/socket/client_socket_pool.cc.
    /// - 1000 names (`kDefaultCacheSize`, net/dns/resolve_context.cc), 60 s each unless the answer
    ///   says (`kCacheEntryTTLSeconds`, net/dns/host_resolver_manager_job.cc): as quoted by others.
    /// - While something blocks rendering, less important requests are started only as long as fewer
    ///   than two run (`kTightLimitForRendererSideResourceScheduler`,
    ///   third_party/blink/renderer/platform/loader/fetch/resource_load_scheduler.cc), by whatever
    ///   protocol.
    /// - Ten delayable requests in all and six per host without multiplexing
    ///   (`kDefaultMaxNumDelayableRequestsPerClient`, `kMaxNumDelayableRequestsPerHostPerClient`,
    ///   services/network/resource_scheduler/). Delayable is what is below `net::MEDIUM`
    ///   (`kDelayablePriorityThreshold`).
    /// - Priority by type: `TypeToPriority`, resource_fetcher.cc (documents, styles and fonts very
    ///   high, scripts and fetches high, images low, asynchronous scripts low). Very high is
    ///   `net::HIGHEST`, high `MEDIUM`, medium `LOW`, low `LOWEST`; the urgency is `HIGHEST` less the
    ///   priority (net/quic/quic_http_utils.cc).
    /// - From memory of the source, not read again: the cache's room (four times 80 MiB,
    ///   net/disk_cache/cache_util.cc), and that styles, scripts and fonts are not incremental.
    /// - Not modelled: the first five large images are medium, images in view are raised after layout.
    ///
    /// No speculative connections: those depend on what was visited before. The headless shell opens
    /// none.
    #[must_use]
    pub fn chromium() -> Policy {
        Policy {
            connections_per_host: 6,
            connections: 256,
            idle: Duration::from_secs(300),
            coalesce: true,
            speculative: 0,
            names_for: Duration::from_secs(60),
            names: 1000,
            tickets: true,
            cache: Bytes(320 << 20),
            hold: Hold {
                while_blocking: Some(2),
                on_multiplexed: true,
                in_all: Some(10),
                per_host: Some(6),
            },
            treatments: Treatments {
                document: treat(0, true, false),
                style: treat(0, false, false),
                blocking_script: treat(1, false, false),
                script: treat(3, false, true),
                font: treat(0, false, false),
                image: treat(3, true, true),
                fetch: treat(1, true, false),
                other: treat(3, true, true),
            },
        }
    }

    /// Firefox's policy. Preferences are those of modules/libpref/init/all.js, read there.
    ///
    /// - Six connections per host, 900 in all: `network.http.max-persistent-connections-per-server`,
    ///   `network.http.max-connections`.
    /// - Kept connections are dropped after 115 s: `network.http.keep-alive.timeout`.
    /// - Names for 60 s unless the answer says: `network.dnsCacheExpiration`; 400 of them in the file
    ///   that was read: `network.dnsCacheEntries`.
    /// - Urgencies and increments: the table in netwerk/docs/http/prioritization.md.
    /// - From memory of the source, not read again: without multiplexing, what is neither leader nor
    ///   unblocked waits until no leader (style sheet, blocking script) is under way
    ///   (`TryDispatchTransaction`, netwerk/protocol/http/nsHttpConnectionMgr.cpp); the cache's room
    ///   of 256 MB (`browser.cache.disk.capacity`).
    /// - Not modelled: connections beyond six for urgent starts, tailing of trackers, the race of
    ///   cache and network.
    #[must_use]
    pub fn firefox() -> Policy {
        Policy {
            connections_per_host: 6,
            connections: 900,
            idle: Duration::from_secs(115),
            coalesce: true,
            speculative: 0,
            names_for: Duration::from_secs(60),
            names: 400,
            tickets: true,
            cache: Bytes(256_000_000),
            hold: Hold {
                while_blocking: Some(0),
                on_multiplexed: false,
                in_all: None,
                per_host: None,
            },
            treatments: Treatments {
                document: treat(0, true, false),
                style: treat(2, false, false),
                blocking_script: treat(2, false, false),
                script: treat(3, false, false),
                font: treat(3, false, true),
                image: treat(5, true, true),
                fetch: treat(4, false, true),
                other: treat(4, false, true),
            },
        }
    }

    /// The policy of a browser.
    #[must_use]
    pub fn of(browser: Browser) -> Policy {
        match browser {
            Browser::Chromium => Policy::chromium(),
            Browser::Firefox => Policy::firefox(),
        }
    }

    /// How it asks for an object.
    #[must_use]
    pub fn treatment(&self, object: &Object) -> Treatment {
        let by_class = match object.kind {
            Kind::Document => self.treatments.document,
            Kind::Style => self.treatments.style,
            Kind::Script if object.blocking => self.treatments.blocking_script,
            Kind::Script => self.treatments.script,
            Kind::Font => self.treatments.font,
            Kind::Image => self.treatments.image,
            Kind::Fetch => self.treatments.fetch,
            Kind::Other => self.treatments.other,
        };
        Treatment { urgency: object.urgency.unwrap_or(by_class.urgency), ..by_class }
    }

    /// The same with at least one connection everywhere, without which no load ends.
    #[must_use]
    pub(crate) fn with_some_connections(mut self) -> Policy {
        self.connections_per_host = self.connections_per_host.max(1);
        self.connections = self.connections.max(1);
        self
    }
}
