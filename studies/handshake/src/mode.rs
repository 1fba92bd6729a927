//! The ways to set up a secure connection that the study compares.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What carries the bytes, and when the first of them may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP: data after the 3-way handshake (RFC 9293 §3.5).
    Tcp,
    /// TCP Fast Open with a cookie from an earlier connection (RFC 7413).
    TcpFastOpen,
    /// TCP Fast Open without cookies: data in the very first SYN, by agreement of both hosts
    /// (RFC 7413 §6.2 has the risks).
    TcpFastOpenNoCookie,
    /// QUIC (RFC 9000), which brings TLS 1.3 of its own.
    Quic,
    /// TCP in user space, with TLS after its 3-way handshake: the control of [`Transport::SslmTcp`].
    UserTcp,
    /// The same TCP, whose 3-way handshake carries the TLS handshake (the SSLmTCP paper).
    SslmTcp,
}

impl Transport {
    /// Whether TCP runs in user space.
    #[must_use]
    pub fn is_user_space(self) -> bool {
        matches!(self, Transport::UserTcp | Transport::SslmTcp)
    }
}

/// What secures the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Security {
    /// Nothing: the floor that the others are held against.
    Plain,
    /// TLS 1.2, RSA key exchange: the SSLmTCP paper's handshake.
    Tls12Rsa,
    /// TLS 1.2, ECDHE.
    Tls12,
    /// TLS 1.2, abbreviated by a session ticket (RFC 5077).
    Tls12Resumed,
    /// TLS 1.3 (RFC 8446).
    Tls13,
    /// TLS 1.3 whose client offers no key share that the server takes (RFC 8446 §4.1.4).
    Tls13HelloRetry,
    /// TLS 1.3 resumed by a pre-shared key with (EC)DHE (RFC 8446 §2.2).
    Tls13Resumed,
    /// TLS 1.3 resumed, the request sent as early data (RFC 8446 §2.3).
    Tls13EarlyData,
}

/// One way to set up a connection: a transport and what secures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mode {
    /// What carries the bytes.
    pub transport: Transport,
    /// What secures them: with [`Transport::Quic`] TLS 1.3 with or without early data; with
    /// [`Transport::SslmTcp`] these, TLS 1.3 resumed and [`Security::Tls12Rsa`]; with
    /// [`Transport::UserTcp`] anything but nothing.
    pub security: Security,
}

/// A name that no mode has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no mode is called `{name}`")]
pub struct UnknownMode {
    /// The name as given.
    pub name: String,
}

impl Explain for UnknownMode {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let known = Mode::known();
        let names: Vec<String> = known.iter().map(Mode::to_string).collect();
        Some(format!("choose from all, {}", names.join(", ")).into())
    }
}

const TCP_TRANSPORTS: [Transport; 3] =
    [Transport::Tcp, Transport::TcpFastOpen, Transport::TcpFastOpenNoCookie];

/// The SSLmTCP paper's handshake, and those beyond it: of SSLmTCP and of its control.
const SSLMTCP_SECURITIES: [Security; 3] =
    [Security::Tls12Rsa, Security::Tls13, Security::Tls13EarlyData];

const SECURITIES: [Security; 8] = [
    Security::Plain,
    Security::Tls12Rsa,
    Security::Tls12,
    Security::Tls12Resumed,
    Security::Tls13,
    Security::Tls13HelloRetry,
    Security::Tls13Resumed,
    Security::Tls13EarlyData,
];

impl Mode {
    /// A mode; `None` if the two do not go together.
    #[must_use]
    pub fn new(transport: Transport, security: Security) -> Option<Mode> {
        use Security::{Plain, Tls12Rsa, Tls13, Tls13EarlyData, Tls13Resumed};
        let exists = match transport {
            Transport::Tcp | Transport::TcpFastOpen | Transport::TcpFastOpenNoCookie => true,
            Transport::Quic => matches!(security, Tls13 | Tls13EarlyData),
            Transport::UserTcp => security != Plain,
            Transport::SslmTcp => {
                matches!(security, Tls12Rsa | Tls13 | Tls13Resumed | Tls13EarlyData)
            }
        };
        exists.then_some(Mode { transport, security })
    }

    /// The modes that `all` stands for, the slow and plain ones first.
    #[must_use]
    pub fn all() -> Vec<Mode> {
        let of = |transport: Transport, securities: &[Security]| {
            let modes = securities.iter().filter_map(|security| Mode::new(transport, *security));
            modes.collect::<Vec<_>>()
        };
        let kernel = TCP_TRANSPORTS.into_iter().chain([Transport::Quic]);
        let kernel = kernel.flat_map(|transport| of(transport, &SECURITIES));
        let user = [Transport::UserTcp, Transport::SslmTcp];
        let user = user.into_iter().flat_map(|transport| of(transport, &SSLMTCP_SECURITIES));
        kernel.chain(user).collect()
    }

    /// Every mode that has a name: beside [`Mode::all`] what its modes may fall back to.
    #[must_use]
    pub fn known() -> Vec<Mode> {
        let mut known = Mode::all();
        for transport in [Transport::UserTcp, Transport::SslmTcp] {
            let more = SECURITIES.iter().filter_map(|security| Mode::new(transport, *security));
            let more: Vec<Mode> = more.filter(|mode| !known.contains(mode)).collect();
            known.extend(more);
        }
        known
    }

    /// The same handshake in sequence over the same TCP: what an SSLmTCP mode's saving is counted
    /// from, so that it is the handshake's and not the stack's. `None` for other modes.
    #[must_use]
    pub fn control(self) -> Option<Mode> {
        (self.transport == Transport::SslmTcp)
            .then_some(Mode { transport: Transport::UserTcp, ..self })
    }

    /// Whether it is the SSLmTCP paper's handshake, embedded or in sequence.
    #[must_use]
    pub fn is_the_papers(self) -> bool {
        self.transport.is_user_space() && self.security == Security::Tls12Rsa
    }

    /// Whether a session from an earlier connection is resumed.
    #[must_use]
    pub fn resumes(self) -> bool {
        matches!(
            self.security,
            Security::Tls12Resumed | Security::Tls13Resumed | Security::Tls13EarlyData
        )
    }

    /// Whether the request is sent as early data.
    #[must_use]
    pub fn early_data(self) -> bool {
        self.security == Security::Tls13EarlyData
    }

    /// Whether the kernel is to put data into the SYN.
    #[must_use]
    pub fn fast_open(self) -> bool {
        matches!(self.transport, Transport::TcpFastOpen | Transport::TcpFastOpenNoCookie)
    }

    /// Whether the SYN is to carry data, whoever puts it there.
    #[must_use]
    pub fn loads_syn(self) -> bool {
        self.fast_open() || self.transport == Transport::SslmTcp
    }

    /// What it is, for people.
    #[must_use]
    pub fn description(self) -> String {
        let transport = match self.transport {
            Transport::Tcp => "TCP",
            Transport::TcpFastOpen => "TCP Fast Open",
            Transport::TcpFastOpenNoCookie => "TCP Fast Open without cookies",
            Transport::Quic => {
                return match self.security {
                    Security::Tls13EarlyData => "QUIC, 0-RTT".to_owned(),
                    _ => "QUIC, 1-RTT".to_owned(),
                };
            }
            Transport::UserTcp => "our TCP",
            Transport::SslmTcp => {
                return match self.security {
                    Security::Tls13EarlyData => "SSLmTCP, TLS 1.3 with early data".to_owned(),
                    Security::Tls13Resumed => "SSLmTCP, TLS 1.3 resumed".to_owned(),
                    Security::Tls13 => "SSLmTCP, TLS 1.3".to_owned(),
                    _ => "SSLmTCP as in its paper".to_owned(),
                };
            }
        };
        let security = match self.security {
            Security::Plain => return format!("{transport} alone"),
            Security::Tls12Rsa => "TLS 1.2 (RSA key exchange)",
            Security::Tls12 => "TLS 1.2 (ECDHE)",
            Security::Tls12Resumed => "TLS 1.2 resumed",
            Security::Tls13 => "TLS 1.3",
            Security::Tls13HelloRetry => "TLS 1.3 with HelloRetryRequest",
            Security::Tls13Resumed => "TLS 1.3 resumed",
            Security::Tls13EarlyData => "TLS 1.3 with early data",
        };
        format!("{transport} + {security}")
    }
}

fn security_name(security: Security) -> &'static str {
    match security {
        Security::Plain => "",
        Security::Tls12Rsa => "+tls12-rsa",
        Security::Tls12 => "+tls12",
        Security::Tls12Resumed => "+tls12-resumed",
        Security::Tls13 => "+tls13",
        Security::Tls13HelloRetry => "+tls13-hrr",
        Security::Tls13Resumed => "+tls13-resumed",
        Security::Tls13EarlyData => "+tls13-0rtt",
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Tcp => "tcp",
            Transport::TcpFastOpen => "tfo",
            Transport::TcpFastOpenNoCookie => "tfo-nocookie",
            Transport::Quic if self.early_data() => return f.pad("quic-0rtt"),
            Transport::Quic => return f.pad("quic"),
            Transport::UserTcp => "usertcp",
            Transport::SslmTcp => {
                return f.pad(match self.security {
                    Security::Tls13EarlyData => "sslmtcp-0rtt",
                    Security::Tls13Resumed => "sslmtcp-resumed",
                    Security::Tls13 => "sslmtcp-tls13",
                    _ => "sslmtcp-paper",
                });
            }
        };
        f.pad(&format!("{transport}{}", security_name(self.security)))
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Mode, UnknownMode> {
        Mode::known()
            .into_iter()
            .find(|mode| mode.to_string() == name)
            .ok_or_else(|| UnknownMode { name: name.to_owned() })
    }
}

impl Serialize for Mode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_a_name_of_its_own_that_reads_back() {
        let all = Mode::all();
        assert_eq!(all.len(), 8 * 3 + 2 + 3 + 3);
        let known = Mode::known();
        // Four more securities over our TCP, and SSLmTCP resumed.
        assert_eq!(known.len(), all.len() + 4 + 1);
        let names: std::collections::BTreeSet<String> = known.iter().map(Mode::to_string).collect();
        assert_eq!(names.len(), known.len());
        for mode in &known {
            assert_eq!(mode.to_string().parse(), Ok(*mode));
        }
    }

    #[test]
    fn a_wrong_name_lists_the_right_ones() {
        let error = "tcp+tls14".parse::<Mode>().unwrap_err();
        assert_eq!(error.to_string(), "no mode is called `tcp+tls14`");
        assert!(error.remedy().unwrap().contains("tcp+tls13-0rtt"), "{error:?}");
    }

    #[test]
    fn sslmtcp_has_its_control_in_sequence() {
        let control = |mode: &str| mode.parse::<Mode>().unwrap().control().map(|m| m.to_string());
        assert_eq!(control("sslmtcp-paper").as_deref(), Some("usertcp+tls12-rsa"));
        assert_eq!(control("sslmtcp-tls13").as_deref(), Some("usertcp+tls13"));
        assert_eq!(control("sslmtcp-0rtt").as_deref(), Some("usertcp+tls13-0rtt"));
        assert_eq!(control("tfo+tls13"), None);
        assert_eq!(Mode::new(Transport::SslmTcp, Security::Tls12), None);
    }

    #[test]
    fn quic_is_never_plain() {
        assert_eq!(Mode::new(Transport::Quic, Security::Plain), None);
        assert_eq!(Mode::new(Transport::Quic, Security::Tls12), None);
    }
}
