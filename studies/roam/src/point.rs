//! One combination of what is varied: a scenario, what differs from it, and the rate of the traffic.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use handoff::{Address, Change, Domain, Scenario, Trigger, Tunnel, TunnelEnd, WifiSecurity};
use study::{Axes, axis};
use thiserror::Error;
use units::{Delay, Probability};

/// The name of a scenario: one of [`Scenario::names`], or of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub String);

/// A text that can name no scenario. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no scenario is called `{0}`")]
pub struct UnknownScenario(pub String);

impl Explain for UnknownScenario {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let names: Vec<&str> = Scenario::names().map(|(name, _)| name).collect();
        Some(format!("choose from {}, or name a file as my-case.toml", names.join(", ")).into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = UnknownScenario;

    fn from_str(text: &str) -> Result<Self, UnknownScenario> {
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = !text.is_empty() && text.bytes().all(is_good);
        if is_name { Ok(Name(text.to_owned())) } else { Err(UnknownScenario(text.to_owned())) }
    }
}

/// The word for what a scenario has itself.
const OWN: &str = "own";

/// What differs from the scenario, or `own`: as the scenario has it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Chosen<T> {
    /// As the scenario has it.
    #[default]
    Own,
    /// This, whatever the scenario has.
    Is(T),
}

impl<T: fmt::Display> fmt::Display for Chosen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Chosen::Own => f.write_str(OWN),
            Chosen::Is(value) => value.fmt(f),
        }
    }
}

impl<T: FromStr> FromStr for Chosen<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == OWN { Ok(Chosen::Own) } else { text.parse().map(Chosen::Is) }
    }
}

impl<T: Copy> Chosen<T> {
    /// Puts it in the place of the scenario's own.
    fn put(self, own: &mut T) {
        if let Chosen::Is(value) = self {
            *own = value;
        }
    }
}

/// Frames per second in each direction: `1000pps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketRate(u32);

/// Most frames per second: the gap is told to 50 µs.
const MOST_FRAMES: u32 = 20_000;

/// A text that is not a rate of frames. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a rate of frames")]
pub struct UnknownRate(String);

impl Explain for UnknownRate {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(format!("write frames per second from 10 to {MOST_FRAMES}, as 1000pps").into())
    }
}

impl PacketRate {
    /// Frames per second.
    #[must_use]
    pub const fn per_second(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}pps", self.0)
    }
}

impl FromStr for PacketRate {
    type Err = UnknownRate;

    fn from_str(text: &str) -> Result<Self, UnknownRate> {
        let number = text.strip_suffix("pps").unwrap_or(text);
        let number = number.parse().ok().filter(|number| (10..=MOST_FRAMES).contains(number));
        number.map(PacketRate).ok_or_else(|| UnknownRate(text.to_owned()))
    }
}

/// Where something is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The sweep that it belongs to.
    pub sweep: String,
    /// Name of the scenario.
    pub scenario: Name,
    /// What is changed to shorten the outage.
    pub change: Change,
    /// How the station proves itself to the access point.
    pub security: Chosen<WifiSecurity>,
    /// What protects the frames.
    pub tunnel: Chosen<Tunnel>,
    /// What makes the host move.
    pub trigger: Chosen<Trigger>,
    /// How the host gets its address.
    pub address: Chosen<Address>,
    /// Stations in the first cell.
    pub stations: Chosen<u16>,
    /// Share of frames lost on the radio.
    pub radio_loss: Chosen<Probability>,
    /// Delay of the core, one way.
    pub core_delay: Chosen<Delay>,
    /// Frames per second in each direction.
    pub rate: PacketRate,
}

/// The scenarios of the paper: what is measured unless the user says otherwise.
pub(crate) const PAPER: [&str; 3] =
    ["ipsec-different-ssid", "macsec-different-ssid", "macsec-same-ssid"];

/// The study's axes, a line each. The rate changes fastest: all runs of a bed are together.
#[rustfmt::skip]
pub(crate) const AXES: Axes<Point> = Axes {
    axes: &[
        axis!("scenario", scenario, "ipsec-different-ssid,macsec-different-ssid,macsec-same-ssid", "NAMES", "Scenarios by name, or files that describe them (my-case.toml)"),
        axis!("change", change, "none", "CHANGES", "What is changed to shorten the outage: none, scan-list, all-channels, rapid-commit, no-dad, dad, kept-address, fixed-neighbours, announce, bridge-learning, key-reuse, fast-transition, make-before-break, proxy-arp, extended-key-ids, no-aggregation", unnamed "none"),
        axis!("security", security, "own", "KINDS", "Wi-Fi authentication: open, wpa2-psk, wpa3-sae, wpa2-eap-tls, own (as the scenario has it)", unnamed "own"),
        axis!("tunnel", tunnel, "own", "KINDS", "What protects the frames: none, macsec, ipsec, ipsec-mobike, wireguard, own", unnamed "own"),
        axis!("trigger", trigger, "own", "KINDS", "What makes the host move: reconnect, cut-deauth, cut-silent, signal, forced, cable, own", unnamed "own"),
        axis!("address", address, "own", "KINDS", "How the host gets its address: dhcp, dhcp-rapid-commit, kept, own", unnamed "own"),
        axis!("stations", stations, "own", "COUNTS", "Stations in the first cell, 1 to 16, or own; all but the one that moves are idle", unnamed "own"),
        axis!("radio-loss", radio_loss, "own", "SHARES", "Share of data frames lost on the radio, as 5%, or own; management frames are not lost", unnamed "own"),
        axis!("core-delay", core_delay, "own", "TIMES", "Delay of the core one way, as 20ms, or own", unnamed "own"),
        axis!("rate", rate, "1000pps", "RATES", "Frames per second in each direction, as 1000pps"),
    ],
    canonical: |point| point,
    impossible: |_| None,
};

impl Point {
    /// A point of a sweep, before its axes are set.
    pub(crate) fn of_sweep(sweep: &str) -> Point {
        Point {
            sweep: sweep.to_owned(),
            scenario: Name(PAPER[0].to_owned()),
            change: Change::None,
            security: Chosen::Own,
            tunnel: Chosen::Own,
            trigger: Chosen::Own,
            address: Chosen::Own,
            stations: Chosen::Own,
            radio_loss: Chosen::Own,
            core_delay: Chosen::Own,
            rate: PacketRate(1000),
        }
    }

    /// The point as the fields of a sample.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = AXES.fields(self);
        fields.insert("sweep".to_owned(), self.sweep.clone());
        fields
    }

    /// The point that a sample's fields name.
    pub(crate) fn of_fields(fields: &BTreeMap<String, String>) -> Option<Point> {
        let sweep = fields.get("sweep").map_or("", String::as_str);
        AXES.of_fields(fields, &Point::of_sweep(sweep))
    }

    /// The scenario that is measured: what differs is put into `named`.
    #[must_use]
    pub fn of(&self, named: &Scenario) -> Scenario {
        let mut scenario = named.clone();
        if let Chosen::Is(tunnel) = self.tunnel {
            put_tunnel(&mut scenario, tunnel);
        }
        self.security.put(&mut scenario.security);
        self.trigger.put(&mut scenario.trigger);
        self.address.put(&mut scenario.address);
        self.stations.put(&mut scenario.stations);
        self.radio_loss.put(&mut scenario.radio_loss);
        self.core_delay.put(&mut scenario.core_delay);
        self.change.of(scenario)
    }

    /// Whether two points are measured in one bed: they differ in the rate alone.
    pub(crate) fn shares_bed(&self, other: &Point) -> bool {
        *self == Point { rate: self.rate, ..other.clone() }
    }

    /// What differs from the scenario, for titles; empty where nothing does.
    #[must_use]
    pub fn difference(&self) -> String {
        let axes = AXES.axes.iter().filter(|axis| {
            !matches!(axis.name, "scenario" | "rate")
                && axis.usual.is_some_and(|usual| usual != (axis.write)(self))
        });
        let words = axes.map(|axis| match axis.name {
            "change" => (axis.write)(self),
            name => format!("{name} {}", (axis.write)(self)),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The scenario with what differs: `macsec-same-ssid, cut-silent`.
    #[must_use]
    pub fn title(&self) -> String {
        match self.difference() {
            difference if difference.is_empty() => self.scenario.to_string(),
            difference => format!("{}, {difference}", self.scenario),
        }
    }
}

/// Gives a scenario another tunnel, and the ends and layer-2 domains that it needs.
fn put_tunnel(scenario: &mut Scenario, tunnel: Tunnel) {
    scenario.tunnel = tunnel;
    match tunnel {
        Tunnel::None => scenario.tunnel_end = TunnelEnd::Edge,
        Tunnel::MacSec => (scenario.tunnel_end, scenario.domain) = (TunnelEnd::Edge, Domain::One),
        Tunnel::IpsecMobike => scenario.tunnel_end = TunnelEnd::Host,
        Tunnel::Ipsec | Tunnel::WireGuard if scenario.tunnel_end == TunnelEnd::Edge => {
            scenario.domain = Domain::Each;
        }
        Tunnel::Ipsec | Tunnel::WireGuard => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for text in ["1000pps", "20000pps"] {
            assert_eq!(text.parse::<PacketRate>().unwrap().to_string(), text);
        }
        assert_eq!("1000".parse::<PacketRate>().unwrap().per_second(), 1000);
        for wrong in ["", "pps", "0pps", "9pps", "20001", "fast", "-1"] {
            assert!(wrong.parse::<PacketRate>().is_err(), "{wrong}");
        }
        for text in ["own", "wpa3-sae"] {
            assert_eq!(text.parse::<Chosen<WifiSecurity>>().unwrap().to_string(), text);
        }
        let error = "A b".parse::<Name>().unwrap_err();
        assert!(error.remedy().unwrap().contains("macsec-same-ssid"));
    }

    #[test]
    fn a_point_reads_back_from_its_fields() {
        let point = Point {
            scenario: Name("macsec-same-ssid".to_owned()),
            change: Change::ScanList,
            trigger: Chosen::Is(Trigger::CutSilent),
            radio_loss: Chosen::Is("5%".parse().unwrap()),
            ..Point::of_sweep("a")
        };
        let fields = point.fields();
        assert!(!fields.contains_key("security"), "{fields:?}");
        assert_eq!(Point::of_fields(&fields).as_ref(), Some(&point));
        assert_eq!(
            point.title(),
            "macsec-same-ssid, scan-list, trigger cut-silent, radio-loss 0.05"
        );
        assert_eq!(Point::of_sweep("a").title(), "ipsec-different-ssid");
    }

    #[test]
    fn a_tunnel_comes_with_the_domains_that_it_needs() {
        for name in ["ipsec-different-ssid", "macsec-different-ssid", "wireguard-host"] {
            let named = Scenario::named(name).unwrap();
            for tunnel in Tunnel::ALL {
                let point = Point { tunnel: Chosen::Is(*tunnel), ..Point::of_sweep("a") };
                assert_eq!(point.of(&named).check(), Ok(()), "{name} with {tunnel}");
            }
        }
    }

    #[test]
    fn only_the_rate_shares_a_bed() {
        let point = Point::of_sweep("a");
        let faster = Point { rate: "3000".parse().unwrap(), ..point.clone() };
        let other = Point { change: Change::Announce, ..point.clone() };
        assert!(point.shares_bed(&faster) && !point.shares_bed(&other));
    }
}
