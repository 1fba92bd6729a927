//! One combination of what is varied: where a connection is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use linkmodel::Middlebox;
use study::{Axes, CLOCK_HELP, Clock, axis};
use tls::{Group, KeyType, Library};
use units::{Delay, Probability, named};

use crate::mode::{Mode, Security, Transport};

named! {
    /// What the server is.
    #[derive(Default)]
    pub enum Peer: "peer" {
        /// It does what the client's mode does.
        #[default]
        Same = "same",
        /// An ordinary server: the kernel's TCP without Fast Open, then TLS.
        Plain = "plain",
    }
}

named! {
    /// Whether the client's TCP has met the path before.
    #[derive(Default)]
    pub enum Visit: "visit" {
        /// It has not: what it learns of the path is forgotten after each connection.
        #[default]
        First = "first",
        /// One connection before taught it whether the path drops data on a SYN (RFC 7413 §4.1.3.1).
        Remembered = "remembered",
    }
}

named! {
    /// What waits before the handshake's frames on their way to the client.
    #[derive(Default)]
    pub enum Queueing: "queue" {
        /// Nothing: the link has no limit, unless the plan gives it one.
        #[default]
        None = "none",
        /// A download that keeps a drop-tail queue of 100 packets full.
        DropTail = "droptail",
        /// The same download where CoDel manages the queue (RFC 8289).
        Codel = "codel",
    }
}

/// Most certificates that a server sends.
const MOST_CERTIFICATES: usize = 9;
const LONGEST_RTT: Duration = Duration::from_secs(10);
const MOST_LOSS: f64 = 0.5;

/// Where a connection is measured: one combination of a sweep's lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The sweep that it belongs to.
    pub sweep: String,
    /// How the connection is set up.
    pub mode: Mode,
    /// Round-trip time, propagation only.
    pub rtt: Delay,
    /// Loss each way.
    pub loss: Probability,
    /// Key of the server's certificates.
    pub key: KeyType,
    /// Key exchange group.
    pub group: Group,
    /// TLS library on both sides.
    pub library: Library,
    /// How many certificates the server sends.
    pub chain: usize,
    /// The middlebox on the way.
    pub middlebox: Middlebox,
    /// What waits on the way to the client.
    pub queue: Queueing,
    /// What the server is.
    pub peer: Peer,
    /// Whether the client has met the path before.
    pub visit: Visit,
    /// By which time it is measured.
    pub clock: Clock,
}

/// The study's axes, a line each. A path (RTT, loss, middlebox, queue) changes slowest, then the mode, so that
/// the modes take turns on a path.
pub(crate) const AXES: Axes<Point> = Axes {
    axes: &[
        axis!(
            "rtt",
            rtt,
            "0.4ms,11.6ms,20ms,50ms,85.5ms,200ms",
            "TIMES",
            "Round-trip times, as 11.6ms"
        ),
        axis!("loss", loss, "0", "SHARES", "Loss each way, as 1%"),
        axis!("middlebox", middlebox, "none", "KINDS", "Middleboxes on the way: none, drop-syn-data, strip-syn-data", unnamed "none"),
        axis!("queue", queue, "none", "KINDS", "Full queues before the client, filled by a concurrent download: none, droptail, codel", unnamed "none"),
        axis!("mode", mode, "all", "MODES", "Modes, or `all`"),
        axis!(
            "key",
            key,
            "rsa-2048",
            "KEYS",
            "Keys of the server's certificates: rsa-2048, rsa-4096, ecdsa-p256"
        ),
        axis!("group", group, "x25519", "GROUPS", "Groups: x25519, secp256r1, x25519mlkem768"),
        axis!(
            "library",
            library,
            "openssl",
            "LIBRARIES",
            "Libraries on both sides: openssl, rustls"
        ),
        axis!("chain", chain, "1", "COUNTS", "Number of certificates that the server sends"),
        axis!("peer", peer, "same", "KINDS", "Servers: same (it supports what the mode needs), plain (the kernel's TCP without Fast Open, then TLS)", unnamed "same"),
        axis!("visit", visit, "first", "KINDS", "SSLmTCP: first (no memory of the path), remembered", unnamed "first"),
        axis!("clock", clock, "wall", "CLOCK", CLOCK_HELP, unnamed "wall"),
    ],
    canonical: Point::canonical,
    impossible: Point::impossible,
};

/// The modes that `all` stands for.
pub(crate) fn words(axis: &str, word: &str) -> Option<Vec<String>> {
    let all = axis == "mode" && word == "all";
    all.then(|| Mode::all().iter().map(Mode::to_string).collect())
}

impl Point {
    /// A point of a sweep, before its axes are set.
    pub(crate) fn of_sweep(sweep: &str) -> Point {
        Point {
            sweep: sweep.to_owned(),
            mode: Mode { transport: Transport::Tcp, security: Security::Plain },
            rtt: Delay::ZERO,
            loss: Probability::ZERO,
            key: KeyType::Rsa2048,
            group: Group::X25519,
            library: Library::OpenSsl,
            chain: 1,
            middlebox: Middlebox::None,
            queue: Queueing::None,
            peer: Peer::Same,
            visit: Visit::First,
            clock: Clock::Wall,
        }
    }

    /// The point as the fields of a sample.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = AXES.fields(self);
        fields.insert("sweep".to_owned(), self.sweep.clone());
        fields
    }

    /// The command that measures this point again.
    #[must_use]
    pub fn command(&self, seed: u64, repeat: u32) -> String {
        let axes = AXES.command_line(self);
        format!("wiretax handshake{axes} --repeat {repeat} --seed {seed}")
    }

    /// What is wrong with its numbers, if anything is.
    pub(crate) fn out_of_range(&self) -> Option<String> {
        let Point { rtt, loss, chain, .. } = self;
        if !(1..=MOST_CERTIFICATES).contains(chain) {
            Some(format!("chain is {chain}; expected 1 to {MOST_CERTIFICATES} certificates"))
        } else if rtt.duration() > LONGEST_RTT {
            Some(format!("rtt is {rtt}; expected at most 10s"))
        } else if loss.value() > MOST_LOSS {
            Some(format!("loss is {loss}; expected at most 50%"))
        } else {
            None
        }
    }

    /// Why this cannot be measured, if it cannot.
    #[must_use]
    pub fn impossible(&self) -> Option<&'static str> {
        let rsa_exchange = self.mode.security == Security::Tls12Rsa;
        let tls12 =
            rsa_exchange || matches!(self.mode.security, Security::Tls12 | Security::Tls12Resumed);
        if rsa_exchange && self.library == Library::Rustls {
            Some("rustls has no RSA key exchange")
        } else if rsa_exchange && self.key == KeyType::EcdsaP256 {
            Some("RSA key exchange needs an RSA certificate")
        } else if tls12 && self.group == Group::X25519MlKem768 {
            Some("X25519MLKEM768 exists in TLS 1.3 only")
        } else if self.peer == Peer::Plain && self.mode.transport == Transport::Quic {
            Some("an ordinary TCP server does not speak QUIC")
        } else {
            None
        }
    }

    /// The one way to name what is the same measurement. QUIC is rustls' whatever the sweep says;
    /// only SSLmTCP remembers, and only that a path drops data on a SYN.
    pub(crate) fn canonical(mut self) -> Point {
        if self.mode.transport == Transport::Quic {
            self.library = Library::Rustls;
        }
        let learns =
            self.mode.transport == Transport::SslmTcp && self.middlebox == Middlebox::DropSynData;
        if !learns {
            self.visit = Visit::First;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(mode: &str) -> Point {
        Point { mode: mode.parse().unwrap(), ..Point::of_sweep("a") }
    }

    #[test]
    fn axes_of_their_own_are_named_where_they_are_not_the_usual() {
        let usual = point("sslmtcp-tls13");
        assert_eq!(usual.fields().len(), 8);
        assert!(!usual.command(1, 1).contains("--visit"));
        let unusual = Point {
            middlebox: Middlebox::DropSynData,
            peer: Peer::Plain,
            visit: Visit::Remembered,
            ..usual
        };
        assert_eq!(unusual.fields().len(), 11);
        let read = AXES.of_fields(&unusual.fields(), &Point::of_sweep("a"));
        assert_eq!(read.as_ref(), Some(&unusual));
        let command = unusual.command(1, 2);
        for part in [" --middlebox drop-syn-data ", " --peer plain --visit remembered --repeat 2"] {
            assert!(command.contains(part), "{command}");
        }
    }

    #[test]
    fn names_read_back_and_wrong_ones_list_the_right_ones() {
        for peer in [Peer::Same, Peer::Plain] {
            assert_eq!(peer.to_string().parse(), Ok(peer));
        }
        for visit in [Visit::First, Visit::Remembered] {
            assert_eq!(visit.to_string().parse(), Ok(visit));
        }
        let unknown = "twice".parse::<Visit>().unwrap_err();
        assert_eq!(unknown.to_string(), "no visit is called `twice`");
        assert_eq!(fault::Explain::remedy(&unknown).unwrap(), "choose from first, remembered");
    }

    #[test]
    fn only_sslmtcp_remembers_that_a_path_drops_its_syn() {
        let of = |mode, middlebox| {
            let visit = Visit::Remembered;
            Point { visit, middlebox, ..point(mode) }.canonical().visit
        };
        assert_eq!(of("sslmtcp-paper", Middlebox::DropSynData), Visit::Remembered);
        assert_eq!(of("sslmtcp-paper", Middlebox::StripSynData), Visit::First);
        assert_eq!(of("usertcp+tls13", Middlebox::DropSynData), Visit::First);
        assert_eq!(of("tfo+tls13", Middlebox::DropSynData), Visit::First);
    }

    #[test]
    fn no_ordinary_server_speaks_quic() {
        let plain = |mode| Point { peer: Peer::Plain, ..point(mode) }.impossible();
        assert!(plain("quic").is_some() && plain("sslmtcp-0rtt").is_none());
    }
}
