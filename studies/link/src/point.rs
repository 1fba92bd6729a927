//! One combination of what is varied: a path, and what is sent over it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fault::{Explain, Fault};
use seclink::path::{Carrier, IpVersion, Protection, Reach, Topology};
use seclink::plane::GatewayOptions;
use study::{Axes, axis};
use thiserror::Error;
use traffic::{Load, Sizes};
use units::{Rate, named};

pub use crate::protocol::Protocol;

named! {
    /// What carries the frames.
    #[derive(Default)]
    pub enum Backend: "backend" {
        /// Our engine, in real time.
        #[default]
        Own = "own",
        /// This machine's kernel, in real time.
        Kernel = "kernel",
        /// Debian's stock kernel in a guest machine, in virtual time.
        Guest = "guest",
        /// What lies between two interfaces of this machine.
        Between = "between",
    }
}

named! {
    /// The network between the sites.
    #[derive(Default)]
    pub enum Network: "network" {
        /// An MPLS pseudowire between the provider's edges.
        #[default]
        Mpls = "mpls",
        /// None: the nodes are joined directly.
        Direct = "direct",
    }
}

named! {
    /// Which ways frames are sent.
    #[derive(Default)]
    pub enum Ways: "ways" {
        /// From the first tester to the second.
        #[default]
        One = "one",
        /// Both ways at once.
        Both = "both",
    }
}

named! {
    /// Whether something is there.
    #[derive(Default)]
    pub enum Choice: "choice" {
        /// It is not.
        #[default]
        No = "no" | "off",
        /// It is.
        Yes = "yes" | "on",
    }
}

/// What is offered: a load, or a search for what the path bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// Frames per second: `1000pps`.
    Frames(u64),
    /// A rate: `100mbit`.
    Rate(Rate),
    /// The highest load without loss (RFC 2544 §26.1): `throughput`.
    Throughput,
    /// The longest burst without loss (§26.4): `burst`.
    Burst,
}

impl Offered {
    /// The load, where it is one.
    #[must_use]
    pub const fn load(self) -> Option<Load> {
        match self {
            Offered::Frames(per_second) => Some(Load::Frames(per_second)),
            Offered::Rate(rate) => Some(Load::Rate(rate)),
            Offered::Throughput | Offered::Burst => None,
        }
    }
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Offered::Frames(per_second) => write!(f, "{per_second}pps"),
            Offered::Rate(rate) => write!(f, "{rate}"),
            Offered::Throughput => f.write_str("throughput"),
            Offered::Burst => f.write_str("burst"),
        }
    }
}

/// A text that names no load. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a load")]
pub struct UnknownLoad(String);

impl Explain for UnknownLoad {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write frames per second as 1000pps, a rate as 100mbit, throughput or burst".into())
    }
}

/// Most frames per second that a tester is asked for.
const MOST_FRAMES: u64 = 10_000_000;

impl FromStr for Offered {
    type Err = UnknownLoad;

    fn from_str(text: &str) -> Result<Self, UnknownLoad> {
        let unknown = || UnknownLoad(text.to_owned());
        match text {
            "throughput" => return Ok(Offered::Throughput),
            "burst" => return Ok(Offered::Burst),
            _ => {}
        }
        match text.strip_suffix("pps") {
            Some(number) => {
                let number = number.trim().parse().ok().filter(|n| (1..=MOST_FRAMES).contains(n));
                number.map(Offered::Frames).ok_or_else(unknown)
            }
            None => text.parse().map(Offered::Rate).map_err(|_| unknown()),
        }
    }
}

/// The rate of a gateway that is slower than its line, or `none`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gateway(pub Option<Rate>);

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => write!(f, "{rate}"),
            None => f.write_str("none"),
        }
    }
}

impl FromStr for Gateway {
    type Err = units::ParseError;

    fn from_str(text: &str) -> Result<Self, units::ParseError> {
        if text == "none" {
            Ok(Gateway(None))
        } else {
            text.parse().map(|rate| Gateway(Some(rate)))
        }
    }
}

impl Gateway {
    /// How long frames must be sent until a load that is above the gateway's rate by `share` fills its queue, so
    /// that a frame is lost; nothing without a limit. `frame` is in bytes.
    pub fn time_to_lose(self, share: f64, frame: f64) -> Duration {
        let Some(rate) = self.0 else { return Duration::ZERO };
        let queue = GatewayOptions::of(rate).queue as f64;
        let surplus = share * rate.bits_per_second() as f64 / (8.0 * frame);
        Duration::try_from_secs_f64(queue / surplus).unwrap_or(Duration::MAX)
    }
}

/// Where something is measured: a path, and what is sent over it.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The sweep that it belongs to.
    pub sweep: String,
    /// What carries the frames.
    pub backend: Backend,
    /// The network between the sites.
    pub network: Network,
    /// Links between the first node and the last.
    pub hops: u8,
    /// Where frames are protected.
    pub reach: Reach,
    /// The rate of a slow gateway.
    pub gateway: Gateway,
    /// What protects the frames.
    pub protocol: Protocol,
    /// The Internet Protocol of the tunnels' outer headers.
    pub outer: IpVersion,
    /// Whether the tunnels go in PPPoE.
    pub pppoe: Choice,
    /// Whether ESP goes in UDP, as behind a NAT.
    pub nat_traversal: Choice,
    /// Frame sizes in bytes, without check sequence.
    pub frame: Sizes,
    /// Whether frames go one way or both.
    pub ways: Ways,
    /// What is offered.
    pub load: Offered,
}

/// The study's axes, a line each. The path changes slowest.
pub(crate) const AXES: Axes<Point> = Axes {
    axes: &[
        axis!(
            "backend",
            backend,
            "own",
            "KINDS",
            "What carries the frames: own (Wiretax's engine), kernel (this machine's), guest (Debian's kernel in virtual time)"
        ),
        axis!(
            "network",
            network,
            "mpls",
            "KINDS",
            "The network between the sites: mpls (a pseudowire), direct (none)"
        ),
        axis!(
            "hops",
            hops,
            "4",
            "COUNTS",
            "Links between the first node and the last, 1 to 8; with mpls 3 or more"
        ),
        axis!(
            "reach",
            reach,
            "end-to-end",
            "KINDS",
            "Where frames are protected: end-to-end, every-hop"
        ),
        axis!("gateway", gateway, "none", "RATES", "The rate of a gateway that is slower than its line, as 120mbit", unnamed "none"),
        axis!(
            "protocol",
            protocol,
            "plain,macsec,esp,wireguard",
            "PROTOCOLS",
            "Protocols: plain, macsec, esp, l2tp-esp, wireguard, macsec-vxlan; with a cipher as esp:aes-cbc-128-sha1"
        ),
        axis!("outer", outer, "ipv4", "KINDS", "Outer IP headers of tunnels: ipv4, ipv6", unnamed "ipv4"),
        axis!("pppoe", pppoe, "no", "CHOICES", "Whether tunnels go in PPPoE, 8 bytes: no, yes", unnamed "no"),
        axis!("nat-t", nat_traversal, "no", "CHOICES", "Whether ESP goes in UDP, as behind a NAT, 8 bytes: no, yes", unnamed "no"),
        axis!(
            "frame",
            frame,
            "1000",
            "BYTES",
            "Frame sizes, 64 to 9014 bytes (jumbo frames) without frame check sequence, or imix"
        ),
        axis!("ways", ways, "one", "KINDS", "Directions in which frames are sent: one, both", unnamed "one"),
        axis!(
            "load",
            load,
            "1000pps,throughput",
            "LOADS",
            "What is sent: 1000pps, 100mbit, throughput (the highest rate without loss), burst (the longest burst without loss)"
        ),
    ],
    canonical: Point::canonical,
    impossible: Point::impossible,
};

impl Point {
    /// A point of a sweep, before its axes are set.
    pub(crate) fn of_sweep(sweep: &str) -> Point {
        Point {
            sweep: sweep.to_owned(),
            backend: Backend::Own,
            network: Network::Mpls,
            hops: 4,
            reach: Reach::EndToEnd,
            gateway: Gateway(None),
            protocol: Protocol::usual(Protection::Plain),
            outer: IpVersion::V4,
            pppoe: Choice::No,
            nat_traversal: Choice::No,
            frame: Sizes::Fixed(1000),
            ways: Ways::One,
            load: Offered::Frames(1000),
        }
    }

    /// The path that this point describes.
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology {
            protection: self.protocol.protection,
            cipher: self.protocol.cipher,
            reach: self.reach,
            hops: self.hops,
            pseudowire: self.network == Network::Mpls,
            tagged: true,
            gateway: self.gateway.0,
            carrier: self.carrier(),
        }
    }

    /// The network under the tunnels.
    #[must_use]
    pub fn carrier(&self) -> Carrier {
        Carrier {
            ip: self.outer,
            pppoe: self.pppoe == Choice::Yes,
            nat_traversal: self.nat_traversal == Choice::Yes,
        }
    }

    /// The protocol and what is unusual about the network under it: `esp over IPv6 in PPPoE`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = self.protocol.to_string();
        if self.nat_traversal == Choice::Yes {
            label += " in UDP";
        }
        if self.outer == IpVersion::V6 {
            label += " over IPv6";
        }
        if self.pppoe == Choice::Yes {
            label += " in PPPoE";
        }
        label
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
        format!("wiretax link{} --repeat {repeat} --seed {seed}", AXES.command_line(self))
    }

    /// The one way to name what is the same measurement: plain frames are plain wherever nothing protects them, and what
    /// has no outer IP header or no ESP is the same over either IP version, or behind a NAT.
    pub(crate) fn canonical(mut self) -> Point {
        let protection = self.protocol.protection;
        if protection == Protection::Plain {
            self.reach = Reach::EndToEnd;
        }
        if !protection.has_outer_ip() {
            self.outer = IpVersion::V4;
        }
        if !protection.has_esp() {
            self.nat_traversal = Choice::No;
        }
        self
    }

    /// Why this cannot be measured, if it cannot.
    #[must_use]
    pub fn impossible(&self) -> Option<&'static str> {
        use seclink::path::TopologyError;
        if matches!(self.frame, Sizes::Fixed(size) if size > MOST_FRAME) {
            return Some("a frame is longer than 9014 bytes");
        }
        if self.pppoe == Choice::Yes && matches!(self.backend, Backend::Kernel | Backend::Guest) {
            return Some("only Wiretax's own engine carries PPPoE (--backend own)");
        }
        Some(match self.topology().check().err()? {
            TopologyError::Hops(_) => "a path has 1 to 8 hops",
            TopologyError::Cipher { .. } => "the protocol has no such cipher",
            TopologyError::ShortPseudowire(_) => "a pseudowire needs 3 hops or more",
            TopologyError::NotLinkByLink(_) => {
                "links within a pseudowire carry MPLS: only MACsec can protect each"
            }
            TopologyError::NothingToReach => "nothing is protected",
            TopologyError::NoOuterIp(_) => "the protocol has no outer IP header",
            TopologyError::NotInPppoe(_) => {
                "MACsec protects Ethernet frames, and PPPoE carries IP packets"
            }
            TopologyError::NoNatTraversal(_) => "only ESP goes in UDP behind a NAT",
        })
    }
}

/// Bytes of the longest frame: a jumbo frame, its VLAN tag included.
const MOST_FRAME: usize = 9014;

/// Bytes of the longest frame of points without jumbo frames: 1500 of payload, header and tag.
pub(crate) const USUAL_FRAME: usize = 1518;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for text in
            ["plain", "macsec", "macsec:aes-gcm-xpn-256", "esp:aes-cbc-128-sha1", "l2tp-esp"]
        {
            assert_eq!(text.parse::<Protocol>().unwrap().to_string(), text);
        }
        assert_eq!("esp:aes-gcm-128".parse::<Protocol>().unwrap().to_string(), "esp");
        for text in ["1000pps", "throughput", "burst", "100mbit"] {
            assert_eq!(text.parse::<Offered>().unwrap().to_string(), text);
        }
        assert_eq!("none".parse::<Gateway>().unwrap(), Gateway(None));
    }

    #[test]
    fn wrong_names_say_what_there_is() {
        let error = "macsek".parse::<Protocol>().unwrap_err();
        assert_eq!(error.to_string(), "no protocol is called `macsek`");
        assert!(error.remedy().unwrap().contains("wireguard"));
        let error = "wireguard:aes-gcm-128".parse::<Protocol>().unwrap_err();
        assert_eq!(error.remedy().unwrap(), "choose from chacha20-poly1305");
        for wrong in ["", "pps", "0pps", "99999999999pps", "fast"] {
            assert!(wrong.parse::<Offered>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_point_reads_back_from_its_fields_and_its_command() {
        let point = Point {
            protocol: "esp:aes-cbc-128-sha1".parse().unwrap(),
            gateway: "120mbit".parse().unwrap(),
            load: "80mbit".parse().unwrap(),
            ..Point::of_sweep("a")
        };
        assert_eq!(AXES.of_fields(&point.fields(), &Point::of_sweep("a")).as_ref(), Some(&point));
        let command = point.command(1, 2);
        assert!(
            command.contains(" --gateway 120mbit --protocol esp:aes-cbc-128-sha1"),
            "{command}"
        );
        assert!(!Point::of_sweep("a").command(1, 1).contains("--gateway"));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let mut point = Point { hops: 2, ..Point::of_sweep("a") };
        assert_eq!(point.impossible(), Some("a pseudowire needs 3 hops or more"));
        point.network = Network::Direct;
        assert_eq!(point.impossible(), None);
        let every = Point { reach: Reach::EveryHop, ..Point::of_sweep("a") };
        assert_eq!(every.canonical().reach, Reach::EndToEnd);
        let kernel = Point { backend: Backend::Kernel, pppoe: Choice::Yes, ..Point::of_sweep("a") };
        assert!(kernel.impossible().is_some_and(|why| why.contains("--backend own")));
        let macsec = Point { protocol: "macsec".parse().unwrap(), ..Point::of_sweep("a") };
        let in_pppoe = Point { pppoe: Choice::Yes, ..macsec.clone() };
        assert!(in_pppoe.impossible().is_some_and(|why| why.contains("PPPoE carries IP packets")));
        let over_v6 = Point { outer: IpVersion::V6, nat_traversal: Choice::Yes, ..macsec.clone() };
        assert_eq!(over_v6.canonical(), macsec);
    }

    #[test]
    fn the_network_under_a_tunnel_is_named_where_it_is_unusual() {
        let esp = Point { protocol: "esp".parse().unwrap(), ..Point::of_sweep("a") };
        let command = esp.command(1, 1);
        assert!(!command.contains("--outer") && !command.contains("--nat-t"), "{command}");
        assert_eq!(esp.label(), "esp");
        let behind =
            Point { outer: IpVersion::V6, pppoe: Choice::Yes, nat_traversal: Choice::Yes, ..esp };
        assert_eq!(behind.label(), "esp in UDP over IPv6 in PPPoE");
        let command = behind.command(1, 1);
        assert!(command.contains(" --outer ipv6 --pppoe yes --nat-t yes"), "{command}");
        assert_eq!(AXES.of_fields(&behind.fields(), &Point::of_sweep("a")), Some(behind));
    }
}
