//! The host's attachments, and what makes it move.

use std::time::Duration;

use daemons::hostapd::AccessPoint;
use daemons::supplicant::{Network, Station};
use daemons::{Control, Daemon, Passphrase, Protection};
use handoff::{Access, Attachment, Scenario, Source, Trigger, WifiSecurity};
use l2vpn::kernel::{Script, must};
use lab::Node;
use units::Time;

use crate::layout::{BRIDGE, CHANNELS, Site, frequency, link};
use crate::radio::{Radio, written};
use crate::wiring::Nodes;
use crate::{Error, certificates, tunnel, wait};

/// How long the station may take to be attached.
const ATTACHED: Duration = Duration::from_secs(60);
/// The signal of an access point nearby, in dBm, and far away: the least that can be asked for.
const NEAR: i32 = -40;
const GONE: i32 = -79;
/// Signal below which the station looks for another access point, by its mean over some beacons.
const THRESHOLD: i32 = -65;
/// A signal fades by this much at a time.
const FADES_BY: usize = 4;
const FADES_EVERY: Duration = Duration::from_millis(100);
/// The span of the passphrase, which is none of a site.
const WIFI_SPAN: u8 = 8;

/// The radios by their names: the station's, its second one, and those of access points with their numbers.
const STATION: &str = "station";
const AHEAD: &str = "ahead";
const POINT: &str = "ap";

/// Whose a radio is, by its name; `None` for other stations.
pub(crate) fn holder(radio: &str) -> Option<Source> {
    match radio {
        STATION | AHEAD => Some(Source::Radio),
        _ if radio.starts_with(POINT) => Some(Source::AccessPoint),
        _ => None,
    }
}

/// An access point that runs.
#[derive(Debug)]
struct Point {
    radio: Radio,
    daemon: Daemon,
    control: Control,
}

/// The station that moves.
#[derive(Debug)]
struct Client {
    radio: Radio,
    daemon: Daemon,
    control: Control,
}

/// The host's attachments.
#[derive(Debug)]
pub(crate) struct Mover {
    nodes: Nodes,
    attachments: [Attachment; 2],
    trigger: Trigger,
    keeps_keys: bool,
    points: [Option<Point>; 2],
    client: Option<Client>,
    /// The host's other radio, which is attached to the second place before the first one leaves.
    ahead: Option<Client>,
    makes_before_break: bool,
    /// Other stations in the first cell.
    crowd: Vec<Client>,
}

impl Mover {
    /// Makes radios, access points and the station, which is not attached to anything yet.
    pub(crate) fn stand(nodes: &Nodes, scenario: &Scenario, seed: u64) -> Result<Mover, Error> {
        let [Some(first), Some(second)] = [0, 1].map(|at| scenario.attachments.get(at).cloned())
        else {
            return Err(wait::vain("two places of attachment", Duration::ZERO));
        };
        let attachments = [first, second];
        let is_enterprise = scenario.security == WifiSecurity::Wpa2EapTls;
        let protection = Protection {
            security: scenario.security,
            fast_transition: scenario.fast_transition,
            extended_key_ids: scenario.measures.extended_key_ids,
            passphrase: Passphrase::new(&tunnel::secret(seed, WIFI_SPAN, 16)),
            certificates: is_enterprise.then(certificates::make).transpose()?,
        };
        let mut points = [None, None];
        for site in Site::ALL {
            let place = &attachments[site.index()];
            if place.access == Access::Wifi {
                points[site.index()] = Some(point(nodes, site, place, scenario, &protection)?);
            }
        }
        let client =
            |name: &str, node: &Node| client(name, node, &attachments, scenario, &protection);
        let is_there = points.iter().any(Option::is_some);
        let own = is_there.then(|| client(STATION, &nodes.host)).transpose()?;
        let makes_before_break = scenario.measures.make_before_break;
        let is_ahead = makes_before_break && points.iter().all(Option::is_some);
        let ahead = is_ahead.then(|| client(AHEAD, &nodes.host)).transpose()?;
        let others = if points[0].is_some() { 1..scenario.stations } else { 0..0 };
        let crowd = others.map(|number| client(&format!("other{number}"), &nodes.crowd));
        let crowd = crowd.collect::<Result<_, Error>>()?;
        Ok(Mover {
            nodes: nodes.clone(),
            attachments,
            trigger: scenario.trigger,
            keeps_keys: scenario.measures.key_reuse,
            points,
            client: own,
            ahead,
            makes_before_break,
            crowd,
        })
    }

    /// Those whose words are read.
    pub(crate) fn daemons(&self) -> impl Iterator<Item = &Daemon> {
        let points = self.points.iter().flatten().map(|point| &point.daemon);
        points.chain(self.client.iter().chain(&self.ahead).map(|client| &client.daemon))
    }

    /// Those whose words nobody reads.
    pub(crate) fn others(&self) -> impl Iterator<Item = &Daemon> {
        self.crowd.iter().map(|client| &client.daemon)
    }

    /// The interfaces by which the host is attached, and their Ethernet addresses.
    pub(crate) fn interfaces(&self) -> Result<Vec<(String, String)>, Error> {
        let radio = self.client.iter().chain(&self.ahead).map(|client| &client.radio);
        let mut all: Vec<_> =
            radio.map(|radio| (radio.interface.clone(), radio.mac.clone())).collect();
        for device in self.nodes.host.devices()? {
            if device.name.starts_with("link") {
                all.push((device.name, written(&device.mac)));
            }
        }
        Ok(all)
    }

    /// The network's name at a place; `None` for a cable.
    pub(crate) fn ssid(&self, site: Site) -> Option<&str> {
        let place = &self.attachments[site.index()];
        (place.access == Access::Wifi).then_some(place.ssid.as_str())
    }

    /// Brings everything back: the host leaves wherever it is.
    pub(crate) fn leave(&self) -> Result<(), Error> {
        for point in self.points.iter().flatten() {
            point.radio.reach(true)?;
            if self.trigger == Trigger::Signal {
                point.radio.signal(NEAR)?;
            }
        }
        for Client { control, .. } in self.client.iter().chain(&self.ahead) {
            control.order("DISCONNECT")?;
            // While it is attached it would have to attach anew.
            if !self.keeps_keys {
                control.ask("PMKSA_FLUSH")?;
            }
            // What it holds against an access point, and what it remembers of them.
            control.ask("BSSID_IGNORE clear")?;
            control.ask("BLACKLIST clear")?;
            control.ask("BSSID 0 any")?;
        }
        for site in Site::ALL {
            self.plug(site, false)?;
        }
        Ok(())
    }

    /// Attaches the host to its first place, and waits until it is.
    pub(crate) fn home(&self) -> Result<(), Error> {
        let place = Site::First;
        self.plug(place, true)?;
        let Some(Client { control, .. }) = &self.client else { return Ok(()) };
        let Some(point) = &self.points[0] else {
            return match (&self.points[1], self.makes_before_break) {
                (Some(second), true) => attach(control, 0, second, None),
                _ => Ok(()),
            };
        };
        if let (true, Some(second)) = (self.keeps_keys, &self.points[1]) {
            // It has been there before, and has a key from then.
            let number = if self.ssid(Site::First) == self.ssid(Site::Second) { 0 } else { 1 };
            attach(control, number, second, Some(point))?;
        }
        attach(control, 0, point, self.points[1].as_ref())?;
        if self.ahead.is_none() && seeks(self.trigger, Site::ALL.map(|site| self.ssid(site))) {
            // To select a network disables the others.
            control.order("ENABLE_NETWORK 1 no-connect")?;
        }
        if let (Some(ahead), Some(second)) = (&self.ahead, &self.points[1]) {
            let number = if self.ssid(Site::First) == self.ssid(Site::Second) { 0 } else { 1 };
            pin(&ahead.control, number, second)?;
            attached(&ahead.control, &second.radio.mac)?;
        }
        self.crowd.iter().try_for_each(|other| pin(&other.control, 0, point))?;
        for other in &self.crowd {
            attached(&other.control, &point.radio.mac)?;
            // It may go where it likes.
            other.control.ask("BSSID 0 any")?;
        }
        Ok(())
    }

    /// Gets ready to move, before anything is measured: who is to roam on command knows where to.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        let (Some(client), Some(second), Trigger::Forced) =
            (&self.client, &self.points[1], self.trigger)
        else {
            return Ok(());
        };
        let frequency = frequency(self.attachments[1].channel);
        client.control.ask(&format!("SCAN freq={frequency}"))?;
        let question = format!("BSS {}", second.radio.mac);
        wait::until("the other access point among what the station has heard", ATTACHED, || {
            Ok((!client.control.ask(&question)?.is_empty()).then_some(()))
        })
    }

    /// Makes the host move; when it began, by `now`, and in which words.
    pub(crate) fn pull(&self, now: fn() -> Time) -> Result<(Time, String), Error> {
        let second = &self.points[1];
        let at = now();
        let what = match (self.trigger, &self.client, &self.points[0], second) {
            (Trigger::Reconnect | Trigger::Forced, Some(client), ..) if self.ahead.is_some() => {
                client.control.order("DISCONNECT")?;
                "the first radio leaves its network, the second is attached already"
            }
            (Trigger::Reconnect, Some(client), ..) => {
                client.control.order("BSS_FLUSH 0")?;
                if self.ssid(Site::First) == self.ssid(Site::Second) {
                    let target = second.as_ref().map_or("any", |point| point.radio.mac.as_str());
                    client.control.order(&format!("BSSID 0 {target}"))?;
                    client.control.order("REASSOCIATE")?;
                } else {
                    client.control.order("SELECT_NETWORK 1")?;
                }
                "the station is told to connect to the other network"
            }
            (Trigger::Forced, Some(client), _, Some(target)) => {
                client.control.order(&format!("ROAM {}", target.radio.mac))?;
                "the station is told to roam"
            }
            (Trigger::CutDeauth, _, Some(point), _) => {
                point.control.order("DEAUTHENTICATE ff:ff:ff:ff:ff:ff")?;
                point.radio.reach(false)?;
                "the first access point says goodbye and falls silent"
            }
            (Trigger::CutSilent, _, Some(point), _) => {
                point.radio.reach(false)?;
                "the first access point falls silent"
            }
            (Trigger::Signal, _, Some(point), _) => {
                for dbm in (GONE..NEAR).rev().step_by(FADES_BY) {
                    point.radio.signal(dbm)?;
                    std::thread::sleep(FADES_EVERY);
                }
                "the first access point's signal begins to fade"
            }
            (Trigger::Cable, client, ..) => {
                if self.attachments[0].access == Access::Lan {
                    self.plug(Site::First, false)?;
                }
                match (client, self.attachments[1].access) {
                    _ if self.makes_before_break && second.is_some() => {}
                    (Some(client), Access::Wifi) => client.control.order("SELECT_NETWORK 0")?,
                    _ => self.plug(Site::Second, true)?,
                }
                "the cable is pulled or put in"
            }
            _ => return Err(wait::vain("something that makes the host move", Duration::ZERO)),
        };
        Ok((at, what.to_owned()))
    }

    /// Puts a site's cable in or pulls it, if it has one.
    fn plug(&self, site: Site, plugged: bool) -> Result<(), Error> {
        if self.attachments[site.index()].access != Access::Lan {
            return Ok(());
        }
        let state = if plugged { "up" } else { "down" };
        let mut script = Script::new();
        let interface = link::name(link::cable(site));
        script.ip(format_args!("link set dev {interface} {state}"));
        Ok(script.apply(self.nodes.site(site))?)
    }
}

/// Starts a site's access point.
fn point(
    nodes: &Nodes,
    site: Site,
    place: &Attachment,
    scenario: &Scenario,
    protection: &Protection,
) -> Result<Point, Error> {
    let node = nodes.site(site);
    let name = format!("{POINT}{}", site.number());
    let radio = Radio::make(&name, node)?;
    let access_point = AccessPoint {
        interface: radio.interface.clone(),
        bridge: BRIDGE.to_owned(),
        ssid: place.ssid.clone(),
        channel: place.channel,
        name,
        protection: protection.clone(),
        shares_keys: scenario.measures.key_reuse,
        aggregates: !scenario.measures.no_aggregation,
    };
    let (daemon, control) = access_point.start(node)?;
    loss(node, &radio, scenario)?;
    if scenario.trigger == Trigger::Signal {
        radio.signal(NEAR)?;
    }
    Ok(Point { radio, daemon, control })
}

/// Starts the station.
fn client(
    name: &str,
    node: &Node,
    attachments: &[Attachment; 2],
    scenario: &Scenario,
    protection: &Protection,
) -> Result<Client, Error> {
    let radio = Radio::make(name, node)?;
    let places = attachments.iter().filter(|place| place.access == Access::Wifi);
    let mut networks: Vec<Network> = Vec::new();
    for place in places.clone() {
        if networks.iter().all(|network| network.ssid != place.ssid) {
            networks.push(Network { ssid: place.ssid.clone(), protection: protection.clone() });
        }
    }
    let channels: Vec<u8> = match scenario.measures.scan_list {
        true => places.map(|place| place.channel).collect(),
        false => (1..=CHANNELS).collect(),
    };
    let station = Station {
        interface: radio.interface.clone(),
        networks,
        frequencies: channels.into_iter().map(frequency).collect(),
        threshold: (scenario.trigger == Trigger::Signal).then_some(THRESHOLD),
        keeps_keys: scenario.measures.key_reuse,
    };
    let (daemon, control) = station.start(node)?;
    loss(node, &radio, scenario)?;
    Ok(Client { radio, daemon, control })
}

/// Frames that the radio loses, once and for all: what the station and the access point would repeat is not.
fn loss(node: &Node, radio: &Radio, scenario: &Scenario) -> Result<(), Error> {
    if scenario.radio_loss.is_zero() {
        return Ok(());
    }
    let percent = scenario.radio_loss.value() * 100.0;
    let interface = &radio.interface;
    let mut script = Script::new();
    script.tc(format_args!("qdisc add dev {interface} root netem limit 1000 loss {percent}%"));
    Ok(script.apply(node)?)
}

/// Whether the station has to find its other network by itself: it is cut off from the first, and told nothing.
fn seeks(trigger: Trigger, ssids: [Option<&str>; 2]) -> bool {
    let is_cut = matches!(trigger, Trigger::CutDeauth | Trigger::CutSilent);
    is_cut && matches!(ssids, [Some(first), Some(second)] if first != second)
}

/// Has the station attach itself to an access point of a network, and to no other.
fn attach(control: &Control, number: u8, to: &Point, other: Option<&Point>) -> Result<(), Error> {
    control.order("DISCONNECT")?;
    control.order("BSS_FLUSH 0")?;
    // The other cannot be chosen, whatever its name.
    other.iter().try_for_each(|other| other.radio.reach(false))?;
    control.order(&format!("SELECT_NETWORK {number}"))?;
    attached(control, &to.radio.mac)?;
    other.iter().try_for_each(|other| other.radio.reach(true))
}

/// Has a station attach itself to one access point of a network, without waiting for it.
fn pin(control: &Control, number: u8, to: &Point) -> Result<(), Error> {
    control.order("DISCONNECT")?;
    control.order("BSS_FLUSH 0")?;
    control.order(&format!("BSSID {number} {}", to.radio.mac))?;
    Ok(control.order(&format!("SELECT_NETWORK {number}"))?)
}

/// Waits until the station is attached to an access point.
fn attached(control: &Control, bssid: &str) -> Result<(), Error> {
    wait::until(&format!("the station at {bssid}"), ATTACHED, || {
        let status = control.ask("STATUS")?;
        let has = |line: &str| status.lines().any(|has| has == line);
        Ok((has("wpa_state=COMPLETED") && has(&format!("bssid={bssid}"))).then_some(()))
    })
}

/// What an interface of a node says of itself, for errors.
pub(crate) fn described(node: &Node) -> Vec<String> {
    let lines = |arguments: &[&str]| must(node, "ip", arguments, "").unwrap_or_default();
    [lines(&["-4", "-oneline", "address"]), lines(&["route"]), lines(&["neigh"])].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_cut_off_between_networks_finds_the_other_by_itself() {
        let (a, b) = (Some("a"), Some("b"));
        for trigger in Trigger::ALL.iter().copied() {
            let is_cut = [Trigger::CutDeauth, Trigger::CutSilent].contains(&trigger);
            assert_eq!(seeks(trigger, [a, b]), is_cut, "{trigger}");
            assert!(!seeks(trigger, [a, a]) && !seeks(trigger, [a, None]), "{trigger}");
        }
    }
}
