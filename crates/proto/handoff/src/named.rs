//! Scenarios that have names, and those that a file describes.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;
use units::{Delay, Probability};

use crate::{
    Access, Address, Attachment, Contradiction, Domain, Keying, Measures, Scenario, Trigger,
    Tunnel, TunnelEnd, WifiSecurity,
};

/// A scenario's name, what it is, and what it changes of [`two_networks`].
type Named = (&'static str, &'static str, fn(&mut Scenario));

/// The scenarios with a name: the paper's three first.
#[rustfmt::skip]
const NAMED: &[Named] = &[
    ("ipsec-different-ssid", "the paper's: two networks, IPsec between the edges, a subnet each", |s| {
        (s.tunnel, s.domain) = (Tunnel::Ipsec, Domain::Each);
    }),
    ("macsec-different-ssid", "the paper's: two networks, MACsec between the edges, one layer-2 domain", |_| {}),
    ("macsec-same-ssid", "the paper's: one network, MACsec, the access point's radio is cut", |s| {
        one_network(s);
        s.trigger = Trigger::CutDeauth;
    }),
    ("macsec-same-ssid-silent", "the same, cut without a word", |s| {
        one_network(s);
        s.trigger = Trigger::CutSilent;
    }),
    ("macsec-same-ssid-signal", "the same, the signal fades", |s| {
        one_network(s);
        s.trigger = Trigger::Signal;
    }),
    ("macsec-same-ssid-forced", "the same, told to roam", |s| {
        one_network(s);
        s.trigger = Trigger::Forced;
    }),
    ("macsec-fast-transition", "told to roam by 802.11r", |s| {
        one_network(s);
        (s.trigger, s.fast_transition) = (Trigger::Forced, true);
    }),
    ("plain-different-ssid", "two networks, nothing between the edges, one layer-2 domain", |s| {
        s.tunnel = Tunnel::None;
    }),
    ("wireguard-different-ssid", "two networks, WireGuard between the edges, a new subnet", |s| {
        (s.tunnel, s.domain) = (Tunnel::WireGuard, Domain::Each);
    }),
    ("ipsec-host", "IPsec on the moving host, made anew at each attachment", |s| {
        host_tunnel(s, Tunnel::Ipsec);
    }),
    ("mobike-host", "IPsec on the moving host, moved by MOBIKE", |s| {
        host_tunnel(s, Tunnel::IpsecMobike);
    }),
    ("wireguard-host", "WireGuard on the moving host", |s| {
        host_tunnel(s, Tunnel::WireGuard);
    }),
    ("kept-address", "two networks in one layer-2 domain, the address is kept", |s| {
        s.address = Address::Kept;
    }),
    ("make-before-break", "a second radio is attached before the first leaves", |s| {
        s.measures.make_before_break = true;
    }),
    ("lan-to-wifi", "the cable is pulled", |s| {
        (s.trigger, s.attachments) = (Trigger::Cable, vec![cable(), radio("office", 6)]);
    }),
    ("wifi-to-lan", "the cable is put in", |s| {
        (s.trigger, s.attachments) = (Trigger::Cable, vec![radio("office", 6), cable()]);
    }),
    ("mptcp", "a TCP stream with a path over each attachment, no tunnel", |s| {
        (s.tunnel, s.domain) = (Tunnel::None, Domain::Each);
        s.measures.mptcp = true;
    }),
];

fn radio(ssid: &str, channel: u8) -> Attachment {
    Attachment { access: Access::Wifi, ssid: ssid.to_owned(), channel }
}

fn cable() -> Attachment {
    Attachment { access: Access::Lan, ssid: String::new(), channel: 0 }
}

/// Two access points of networks of their own, on channels that do not overlap, in one layer-2 domain. Addresses are
/// not checked for duplicates: what the paper measured has no room for the 4 to 7 s that RFC 5227 §2.1 takes, and
/// [`crate::Change::DuplicateDetection`] says what they cost.
fn two_networks(name: &str) -> Scenario {
    Scenario {
        name: name.to_owned(),
        attachments: vec![radio("office-1", 1), radio("office-2", 11)],
        security: WifiSecurity::Wpa2Psk,
        fast_transition: false,
        tunnel: Tunnel::MacSec,
        tunnel_end: TunnelEnd::Edge,
        keying: Keying::Mka,
        domain: Domain::One,
        trigger: Trigger::Reconnect,
        address: Address::Dhcp,
        measures: Measures { no_duplicate_detection: true, ..Measures::default() },
        stations: 1,
        radio_loss: Probability::ZERO,
        core_delay: Delay::ZERO,
    }
}

/// Both access points are of one network. The station's scan results are not flushed there: it knows on which channels
/// its network is.
fn one_network(scenario: &mut Scenario) {
    scenario.attachments = vec![radio("office", 1), radio("office", 11)];
    scenario.measures.scan_list = true;
}

fn host_tunnel(scenario: &mut Scenario, tunnel: Tunnel) {
    scenario.tunnel = tunnel;
    (scenario.tunnel_end, scenario.domain) = (TunnelEnd::Host, Domain::Each);
}

/// A text that describes no scenario, or one that cannot be. The caller's fault.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ScenarioError {
    /// It does not read.
    #[error("not a scenario: {0}")]
    NotOne(String),
    /// It contradicts itself.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
}

impl Explain for ScenarioError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            ScenarioError::NotOne(_) => {
                Some("write `name`, two `[[attachments]]` with `ssid` and `channel`, and what is to differ".into())
            }
            ScenarioError::Contradiction(contradiction) => contradiction.remedy(),
        }
    }
}

impl Scenario {
    /// The names that there are, and what each is; the paper's three first.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        NAMED.iter().map(|(name, about, _)| (*name, *about))
    }

    /// The scenario of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Scenario> {
        let (name, _, change) = NAMED.iter().find(|(known, ..)| *known == name)?;
        let mut scenario = two_networks(name);
        change(&mut scenario);
        Some(scenario)
    }

    /// Reads a scenario from TOML: the fields of [`Scenario`] in kebab-case.
    ///
    /// ```
    /// let scenario = handoff::Scenario::parse(r#"
    ///     name = "two-cells"
    ///     security = "wpa3-sae"
    ///     trigger = "cut-silent"
    ///     attachments = [{ ssid = "a", channel = 1 }, { ssid = "a", channel = 11 }]
    ///     measures = { scan-list = true }
    /// "#).unwrap();
    /// assert!(scenario.measures.scan_list);
    /// ```
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let read: Result<Scenario, toml::de::Error> = toml::from_str(text);
        let scenario = read.map_err(|error| ScenarioError::NotOne(in_one_line(&error)))?;
        scenario.check()?;
        Ok(scenario)
    }
}

/// What the reader says, and in which line, without its picture of the place.
fn in_one_line(error: &toml::de::Error) -> String {
    let whole = error.to_string();
    let place = whole.lines().next().and_then(|line| line.strip_prefix("TOML parse error at "));
    match place {
        Some(place) => format!("{} at {place}", error.message()),
        None => error.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_scenario_can_be_and_reads_back() {
        for (name, about) in Scenario::names() {
            let scenario = Scenario::named(name).unwrap();
            assert_eq!(scenario.check(), Ok(()), "{name}");
            assert_eq!(scenario.name, name);
            assert!(!about.is_empty());
            let text = toml::to_string(&scenario).unwrap();
            assert_eq!(Scenario::parse(&text), Ok(scenario), "{name}");
        }
        assert_eq!(Scenario::named("nobody"), None);
    }

    #[test]
    fn the_papers_three_come_first() {
        let first: Vec<_> = Scenario::names().take(3).map(|(name, _)| name).collect();
        assert_eq!(first, ["ipsec-different-ssid", "macsec-different-ssid", "macsec-same-ssid"]);
        let same = Scenario::named("macsec-same-ssid").unwrap();
        assert!(same.is_one_network() && same.trigger == Trigger::CutDeauth);
        assert!(!Scenario::named("macsec-different-ssid").unwrap().is_one_network());
    }

    #[test]
    fn what_is_no_scenario_says_where() {
        let attachments =
            "attachments = [{ ssid = \"a\", channel = 1 }, { ssid = \"b\", channel = 11 }]";
        assert!(Scenario::parse(&format!("name = \"x\"\n{attachments}\n")).is_ok());
        for (text, says) in [
            ("", "missing field `name`"),
            ("name = \"x\"\nspeed = 3\n", "unknown field `speed`"),
            ("name = \"x\"\ntunnel = \"ipsek\"\n", "no tunnel is called `ipsek`"),
            ("name = ", "line 1"),
            ("name = \"x\"\nattachments = []\n", "a scenario has two attachments"),
        ] {
            let error = Scenario::parse(text).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
            assert!(!error.to_string().contains('\n') && error.remedy().is_some(), "{error}");
        }
    }
}
