//! Links that pages are loaded over, by name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fault::{Explain, Fault};
use linkmodel::{LinkConfig, Path, Queue, RateSource};
use thiserror::Error;
use units::{Bytes, CountedBytes, Delay, Rate};

/// A named link.
struct Named {
    name: &'static str,
    rtt: Duration,
    /// kbit/s, counted in IP bytes.
    down: u64,
    up: u64,
    /// Bytes of the queue each way: 1 s of the rate on 3G (as `linkmodel`'s profile), 1000 packets
    /// elsewhere.
    queue: fn(u64) -> Queue,
}

const fn link(
    name: &'static str,
    rtt: Duration,
    (down, up): (u64, u64),
    queue: fn(u64) -> Queue,
) -> Named {
    Named { name, rtt, down, up, queue }
}

/// A queue of one second at this many kbit/s.
fn one_second(kbit: u64) -> Queue {
    Queue::Bytes(Bytes(kbit * 125))
}

fn packets(_: u64) -> Queue {
    Queue::Packets(1000)
}

/// 3G's round trip: WebPageTest's preset (www/settings/connectivity.ini.sample), as `linkmodel`'s profile
/// `3g` has it; its 768 kbit/s up too.
const RTT_3G: Duration = Duration::from_millis(300);
/// Our choice for Wi-Fi with the server near.
const RTT_WLAN: Duration = Duration::from_millis(4);

/// The SPDY paper's links: rates as it measured them, Chromium's and Firefox's apart; of its wired testbed it
/// gives 0.5 to 1 ms of ping.
const LINKS: [Named; 10] = [
    link("3g-0.9", RTT_3G, (900, 768), one_second),
    link("3g-1.37", RTT_3G, (1370, 768), one_second),
    link("3g-0.88", RTT_3G, (880, 768), one_second),
    link("3g-1.46", RTT_3G, (1460, 768), one_second),
    link("wlan-17", RTT_WLAN, (17_040, 17_040), packets),
    link("wlan-61", RTT_WLAN, (61_120, 61_120), packets),
    link("wlan-12.84", RTT_WLAN, (12_840, 12_840), packets),
    link("wlan-25.96", RTT_WLAN, (25_960, 25_960), packets),
    link("wired-10", Duration::from_millis(1), (10_000, 10_000), packets),
    link("wired-100", Duration::from_micros(500), (100_000, 100_000), packets),
];

/// A link by its name, or by round trip and rate: `3g-0.9`, `50ms@20mbit`.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkName {
    /// One of the paper's.
    Named(&'static str),
    /// A round-trip time, and a rate each way.
    Given(Delay, Rate),
}

/// A text that names no link. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no link is called `{0}`")]
pub struct UnknownLink(String);

impl Explain for UnknownLink {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let names: Vec<&str> = LINKS.iter().map(|link| link.name).collect();
        let names = names.join(", ");
        Some(format!("write {names}, or a round trip and a rate as 50ms@20mbit").into())
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkName::Named(name) => f.write_str(name),
            LinkName::Given(rtt, rate) => write!(f, "{rtt}@{rate}"),
        }
    }
}

impl FromStr for LinkName {
    type Err = UnknownLink;

    fn from_str(text: &str) -> Result<LinkName, UnknownLink> {
        if let Some(found) = LINKS.iter().find(|link| link.name == text) {
            return Ok(LinkName::Named(found.name));
        }
        let given = text
            .split_once('@')
            .and_then(|(rtt, rate)| Some(LinkName::Given(rtt.parse().ok()?, rate.parse().ok()?)));
        given.ok_or_else(|| UnknownLink(text.to_owned()))
    }
}

/// kbit/s of IP bytes, as speed tests count; never zero in the table.
fn rate(kbit: u64) -> Option<Rate> {
    Rate::new(kbit * 1000, CountedBytes::Ip)
}

impl LinkName {
    /// The path from client to server.
    #[must_use]
    pub fn path(&self) -> Path {
        let (rtt, up, down, queues) = match self {
            LinkName::Named(name) => match LINKS.iter().find(|link| link.name == *name) {
                Some(link) => {
                    let queues = ((link.queue)(link.up), (link.queue)(link.down));
                    (Delay::from(link.rtt), rate(link.up), rate(link.down), queues)
                }
                None => (Delay::ZERO, None, None, (Queue::default(), Queue::default())),
            },
            LinkName::Given(rtt, rate) => {
                (*rtt, Some(*rate), Some(*rate), (Queue::default(), Queue::default()))
            }
        };
        let (there, back) = rtt.split_round_trip();
        let direction = |delay, rate: Option<Rate>, queue| LinkConfig {
            delay,
            rate: rate.map(RateSource::Fixed),
            queue,
            ..LinkConfig::default()
        };
        Path { forward: direction(there, up, queues.0), backward: direction(back, down, queues.1) }
    }

    /// The rate down in bit/s.
    #[must_use]
    pub fn down(&self) -> u64 {
        match self {
            LinkName::Named(name) => {
                LINKS.iter().find(|link| link.name == *name).map_or(0, |link| link.down * 1000)
            }
            LinkName::Given(_, rate) => rate.bits_per_second(),
        }
    }

    /// The round-trip time, propagation only.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        let path = self.path();
        path.forward.delay.duration() + path.backward.delay.duration()
    }

    /// The bandwidth-delay product down.
    #[must_use]
    pub fn bandwidth_delay(&self) -> Bytes {
        let bits = self.down() as f64 * self.rtt().as_secs_f64();
        Bytes((bits / 8.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_as_they_are_printed() {
        for link in &LINKS {
            assert_eq!(link.name.parse::<LinkName>().unwrap().to_string(), link.name);
        }
        let given: LinkName = "50ms@20mbit".parse().unwrap();
        assert_eq!(given.to_string().parse::<LinkName>().unwrap(), given);
        assert_eq!((given.down(), given.rtt()), (20_000_000, Duration::from_millis(50)));
        let unknown = "4g".parse::<LinkName>().unwrap_err();
        assert!(unknown.remedy().unwrap().contains("3g-0.9"), "{unknown:?}");
        for wrong in ["", "@", "50ms@", "@1mbit", "50ms@fast", "x@1mbit"] {
            assert!(wrong.parse::<LinkName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_has_the_rates_and_the_round_trip() {
        let link: LinkName = "3g-0.9".parse().unwrap();
        let path = link.path();
        assert_eq!(path.round_trip(), Delay::from(RTT_3G));
        assert_eq!(path.backward.queue, Queue::Bytes(Bytes(112_500)));
        assert!(path.validate().is_ok());
        // The paper: 12.5 KB at most on its testbed.
        let wired = ["wired-10", "wired-100"].map(|name| name.parse::<LinkName>().unwrap());
        assert_eq!(wired[0].bandwidth_delay(), Bytes(1250));
        assert_eq!(wired[1].bandwidth_delay(), Bytes(6250));
    }
}
