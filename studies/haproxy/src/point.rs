//! Where HAProxy is measured: one combination of what is varied.

use std::collections::BTreeMap;

use haproxy::{Locks, Quic, RELEASES, Release, Role};
use study::{Axes, axis};
use tls::{Group, KeyType, Version};

units::named! {
    /// What HAProxy does.
    pub enum Scenario: "scenario" {
        /// A full handshake, one request that the proxy answers itself, close.
        Full = "full",
        /// Proxies in a row in one process, TLS on both sides of each, tickets resumed on both.
        Chain = "chain",
        /// As `full`, over QUIC and HTTP/3.
        Quic = "quic",
    }
}

/// One combination of a sweep's lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// What HAProxy does.
    pub scenario: Scenario,
    /// The TLS version.
    pub version: Version,
    /// HAProxy's threads (`nbthread`).
    pub threads: usize,
    /// The library's driver name, as `openssl-3.5.5`.
    pub library: String,
    /// What stands under the library's locks.
    pub locks: Locks,
    /// The key of all certificates.
    pub key: KeyType,
    /// The group of the key exchange.
    pub group: Group,
    /// Proxies in a row.
    pub proxies: usize,
    /// HAProxy's release, as `3.0.11`.
    pub release: String,
}

/// The axes, in the order in which they are crossed; builds, which take turns, are the last.
pub const AXES: Axes<Point> = Axes {
    axes: &[
        axis!("haproxy", release, "3.0.11", "VERSIONS", "HAProxy's releases: 3.0.11, 2.6.12"),
        axis!("scenario", scenario, "full,chain", "NAMES", "Scenarios: full, chain, quic"),
        axis!("tls", version, "tls1.3", "VERSIONS", "TLS versions: tls1.2, tls1.3"),
        axis!(
            "key",
            key,
            "rsa-2048",
            "KEYS",
            "Keys of the certificates: rsa-2048, rsa-4096, ecdsa-p256"
        ),
        axis!("group", group, "x25519", "GROUPS", "Groups: x25519, secp256r1, x25519mlkem768"),
        axis!("proxies", proxies, "10", "COUNTS", "Proxies in a row in the chain, up to 100"),
        axis!(
            "threads",
            threads,
            "powers,2xcores",
            "COUNTS",
            "HAProxy's threads: numbers, `cores`, `2xcores`, or `powers` (1, 2, 4 ... and the cores)"
        ),
        axis!(
            "library",
            library,
            "built",
            "NAMES",
            "Libraries by their drivers' names, or `built`: all that are built and that HAProxy works with"
        ),
        axis!(
            "locks",
            locks,
            "pthread",
            "KINDS",
            "Locks under the library: pthread (as built), light (HAProxy's own)"
        ),
    ],
    canonical,
    impossible,
};

/// A full handshake has one proxy.
fn canonical(point: Point) -> Point {
    match point.scenario {
        Scenario::Full | Scenario::Quic => Point { proxies: 1, ..point },
        Scenario::Chain => point,
    }
}

fn impossible(point: &Point) -> Option<&'static str> {
    if point.group == Group::X25519MlKem768 && point.version == Version::Tls12 {
        return Some("x25519mlkem768 is for TLS 1.3 only");
    }
    if point.scenario == Scenario::Quic && point.version == Version::Tls12 {
        return Some("QUIC is for TLS 1.3 only");
    }
    let release = Release::find(&point.release);
    let light = release.is_ok_and(Release::has_light_locks);
    (point.locks == Locks::Light && !light).then_some("this release of HAProxy has no light locks")
}

impl Default for Point {
    fn default() -> Point {
        Point {
            scenario: Scenario::Full,
            version: Version::Tls13,
            threads: 1,
            library: String::new(),
            locks: Locks::Pthread,
            key: KeyType::Rsa2048,
            group: Group::X25519,
            proxies: 1,
            release: RELEASES.first().map_or("", |release| release.version).to_owned(),
        }
    }
}

impl Point {
    /// As a sample has it.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<String, String> {
        AXES.fields(self)
    }

    /// The point that a sample's fields name; `None` for those of something else.
    #[must_use]
    pub fn of_fields(fields: &BTreeMap<String, String>) -> Option<Point> {
        AXES.of_fields(fields, &Point::default())
    }

    /// What the process under test does, which has QUIC so or not.
    pub(crate) fn role(&self, quic: Option<Quic>) -> Role {
        match (self.scenario, quic) {
            (Scenario::Full, _) | (Scenario::Quic, None) => Role::Answer,
            (Scenario::Chain, _) => Role::Chain(self.proxies),
            (Scenario::Quic, Some(quic)) => Role::AnswerQuic(quic),
        }
    }

    /// Whether it takes a build with QUIC.
    pub(crate) fn needs_quic(&self) -> bool {
        self.scenario == Scenario::Quic
    }

    /// What is measured, for people.
    pub(crate) fn title(&self) -> String {
        let Point { scenario, version, threads, library, locks, .. } = self;
        format!("{scenario} {version}, {library} {locks}, threads: {threads}")
    }
}
