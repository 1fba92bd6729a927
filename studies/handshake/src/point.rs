//! One combination of what is varied: where a connection is measured.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use linkmodel::Middlebox;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tls::{Group, KeyType, Library};
use units::{Delay, Probability};

use crate::mode::{Mode, Security, Transport};

/// What the server is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// It does what the client's mode does.
    #[default]
    Same,
    /// An ordinary server: the kernel's TCP without Fast Open, then TLS.
    Plain,
}

/// Whether the client's stack has met the path before.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Visit {
    /// It has not: what it learns of the path is forgotten after each connection.
    #[default]
    First,
    /// One connection before taught it whether the path drops data on a SYN (RFC 7413 §4.1.3.1).
    Remembered,
}

/// A word that names none of what it should. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no {axis} is called `{name}`; there are: {known}")]
pub struct UnknownValue {
    axis: &'static str,
    name: String,
    known: &'static str,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Peer::Same => "same",
            Peer::Plain => "plain",
        })
    }
}

impl FromStr for Peer {
    type Err = UnknownValue;

    fn from_str(name: &str) -> Result<Peer, UnknownValue> {
        match name {
            "same" => Ok(Peer::Same),
            "plain" => Ok(Peer::Plain),
            _ => Err(UnknownValue { axis: "peer", name: name.to_owned(), known: "same, plain" }),
        }
    }
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Visit::First => "first",
            Visit::Remembered => "remembered",
        })
    }
}

impl FromStr for Visit {
    type Err = UnknownValue;

    fn from_str(name: &str) -> Result<Visit, UnknownValue> {
        match name {
            "first" => Ok(Visit::First),
            "remembered" => Ok(Visit::Remembered),
            _ => {
                let known = "first, remembered";
                Err(UnknownValue { axis: "visit", name: name.to_owned(), known })
            }
        }
    }
}

/// Where a connection is measured: one combination of a sweep's lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Certificates sent.
    pub chain: usize,
    /// The middlebox on the way.
    pub middlebox: Middlebox,
    /// What the server is.
    pub peer: Peer,
    /// Whether the client has met the path before.
    pub visit: Visit,
}

impl Point {
    /// The point as the axes of a sample. Middlebox, peer and visit are named where they are not the
    /// usual, so that samples from before there were any are of the same points.
    #[must_use]
    pub fn axes(&self) -> BTreeMap<String, String> {
        [
            ("sweep", self.sweep.clone()),
            ("mode", self.mode.to_string()),
            ("rtt", self.rtt.to_string()),
            ("loss", self.loss.to_string()),
            ("key", self.key.to_string()),
            ("group", self.group.to_string()),
            ("library", self.library.to_string()),
            ("chain", self.chain.to_string()),
        ]
        .into_iter()
        .chain(self.unusual())
        .map(|(axis, value)| (axis.to_owned(), value))
        .collect()
    }

    /// The axes that are not the usual, with their values.
    fn unusual(&self) -> Vec<(&'static str, String)> {
        let Point { middlebox, peer, visit, .. } = self;
        let mut unusual = Vec::new();
        if *middlebox != Middlebox::None {
            unusual.push(("middlebox", middlebox.to_string()));
        }
        if *peer != Peer::Same {
            unusual.push(("peer", peer.to_string()));
        }
        if *visit != Visit::First {
            unusual.push(("visit", visit.to_string()));
        }
        unusual
    }

    /// The command that measures this point again.
    #[must_use]
    pub fn command(&self, seed: u64, repeat: u32) -> String {
        let Point { mode, rtt, loss, key, group, library, chain, .. } = self;
        let unusual = self.unusual();
        let unusual = unusual.iter().map(|(axis, value)| format!(" --{axis} {value}"));
        format!(
            "wiretax handshake --mode {mode} --rtt {rtt} --loss {loss} --key {key} --group {group} \
             --library {library} --chain {chain}{} --repeat {repeat} --seed {seed}",
            unusual.collect::<String>()
        )
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
        Point {
            sweep: "a".to_owned(),
            mode: mode.parse().unwrap(),
            rtt: Delay::ZERO,
            loss: Probability::ZERO,
            key: KeyType::Rsa2048,
            group: Group::X25519,
            library: Library::OpenSsl,
            chain: 1,
            middlebox: Middlebox::None,
            peer: Peer::Same,
            visit: Visit::First,
        }
    }

    #[test]
    fn axes_of_their_own_are_named_where_they_are_not_the_usual() {
        let usual = point("sslmtcp-tls13");
        assert_eq!(usual.axes().len(), 8);
        assert!(!usual.command(1, 1).contains("--visit"));
        let unusual = Point {
            middlebox: Middlebox::DropSynData,
            peer: Peer::Plain,
            visit: Visit::Remembered,
            ..usual
        };
        assert_eq!(unusual.axes().len(), 11);
        let command = unusual.command(1, 2);
        let part = " --middlebox drop-syn-data --peer plain --visit remembered --repeat 2";
        assert!(command.contains(part), "{command}");
    }

    #[test]
    fn names_read_back_and_wrong_ones_list_the_right_ones() {
        for peer in [Peer::Same, Peer::Plain] {
            assert_eq!(peer.to_string().parse(), Ok(peer));
        }
        for visit in [Visit::First, Visit::Remembered] {
            assert_eq!(visit.to_string().parse(), Ok(visit));
        }
        let message = "twice".parse::<Visit>().unwrap_err().to_string();
        assert_eq!(message, "no visit is called `twice`; there are: first, remembered");
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
