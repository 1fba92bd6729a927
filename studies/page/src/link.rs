//! Links that pages are loaded over, by name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fault::{Explain, Fault, Problem};
use linkmodel::{Drive, LinkConfig, Path, Queue, RateSource, Trace, mix};
use thiserror::Error;
use units::{Bytes, CountedBytes, Delay, Rate};

use crate::trace::{NamedBy, TraceFile, Traces};

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

/// WiBro's round trip: our choice. Measurements found it far above that of Wi-Fi (D. Kim, H. Cai, M. Na and
/// S. Choi, "Performance Measurement over Mobile WiMAX/IEEE 802.16e Network", 2008).
const RTT_BUS: Duration = Duration::from_millis(120);
/// The drive of the link `bus`.
const FIRST_DRIVE: u64 = 1;
/// The stream of random numbers that phases are drawn from.
const PHASES: u64 = 0x7068_6173;

/// A link by its name, or by what it is like: `3g-0.9`, `50ms@20mbit`, `bus`, `trace:lte.down@50ms`.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkName {
    /// One of the paper's.
    Named(&'static str),
    /// A round-trip time, and a rate each way.
    Given(Delay, Rate),
    /// A moving bus ([`Drive::wibro_bus`]): the drive of a seed. The queue each way holds a second of the
    /// best rate, as 3G's.
    Bus(u64),
    /// Capacity as files say, and a round-trip time.
    Trace {
        /// Capacity to the client.
        down: TraceFile,
        /// Capacity up; as down if not given.
        up: Option<TraceFile>,
        /// The round-trip time.
        rtt: Delay,
    },
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
        let given = "or a round trip and a rate as 50ms@20mbit";
        Some(format!("write {names}, bus, bus:SEED, trace:FILE@50ms, {given}").into())
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkName::Named(name) => f.write_str(name),
            LinkName::Given(rtt, rate) => write!(f, "{rtt}@{rate}"),
            LinkName::Bus(FIRST_DRIVE) => f.write_str("bus"),
            LinkName::Bus(seed) => write!(f, "bus:{seed}"),
            LinkName::Trace { down, up: None, rtt } => write!(f, "trace:{down}@{rtt}"),
            LinkName::Trace { down, up: Some(up), rtt } => write!(f, "trace:{down}:{up}@{rtt}"),
        }
    }
}

impl FromStr for LinkName {
    type Err = UnknownLink;

    fn from_str(text: &str) -> Result<LinkName, UnknownLink> {
        if let Some(found) = LINKS.iter().find(|link| link.name == text) {
            return Ok(LinkName::Named(found.name));
        }
        let link = match (text.strip_prefix("trace:"), text.strip_prefix("bus:")) {
            (Some(files), _) => traced(files),
            (None, Some(seed)) => seed.parse().ok().map(LinkName::Bus),
            (None, None) if text == "bus" => Some(LinkName::Bus(FIRST_DRIVE)),
            (None, None) => text.split_once('@').and_then(|(rtt, rate)| {
                Some(LinkName::Given(rtt.parse().ok()?, rate.parse().ok()?))
            }),
        };
        link.ok_or_else(|| UnknownLink(text.to_owned()))
    }
}

/// `DOWN@RTT` or `DOWN:UP@RTT`.
fn traced(text: &str) -> Option<LinkName> {
    let (files, rtt) = text.rsplit_once('@')?;
    let (down, up) = match files.split_once(':') {
        Some((down, up)) => (down, Some(TraceFile::of(up).filter(|_| !up.contains(':'))?)),
        None => (files, None),
    };
    Some(LinkName::Trace { down: TraceFile::of(down)?, up, rtt: rtt.parse().ok()? })
}

/// kbit/s of IP bytes, as speed tests count; never zero in the table.
fn rate(kbit: u64) -> Option<Rate> {
    Rate::new(kbit * 1000, CountedBytes::Ip)
}

/// A direction of a link.
fn direction(delay: Delay, rate: Option<RateSource>, queue: Queue) -> LinkConfig {
    LinkConfig { delay, rate, queue, ..LinkConfig::default() }
}

/// The same path as a load finds it that begins anywhere in its traces: where, the run's seed and the load's
/// number say, so that the protocols of one turn begin at the same place.
pub(crate) fn begun(path: &Path, seed: u64, repeat: u32) -> Path {
    let trace = |config: &LinkConfig| match &config.rate {
        Some(RateSource::Trace(trace)) => Some(trace.clone()),
        _ => None,
    };
    let traces = [trace(&path.forward), trace(&path.backward)];
    let periods = traces.iter().flatten().map(|trace| trace.period().as_millis() as u64);
    let Some(longest) = periods.max() else { return path.clone() };
    let phase = mix(mix(seed, PHASES), u64::from(repeat)) % longest.max(1);
    let begun = |trace: Trace| trace.begun_at(Duration::from_millis(phase)).into();
    let [forward, backward] = traces.map(|trace| trace.map(begun));
    let mut path = path.clone();
    path.forward.rate = forward.or(path.forward.rate);
    path.backward.rate = backward.or(path.backward.rate);
    path
}

impl LinkName {
    fn named(&self) -> Option<&'static Named> {
        let LinkName::Named(name) = self else { return None };
        LINKS.iter().find(|link| link.name == *name)
    }

    /// The path from client to server; without a limit where a file of `traces` was not read.
    pub(crate) fn path(&self, traces: &Traces) -> Path {
        let (there, back) = Delay::from(self.rtt()).split_round_trip();
        let (up, down) = match self {
            LinkName::Named(_) => self.named().map_or_else(Default::default, |link| {
                let way = |kbit| (rate(kbit).map(RateSource::Fixed), (link.queue)(kbit));
                (way(link.up), way(link.down))
            }),
            LinkName::Given(_, rate) => {
                let way = || (Some(RateSource::Fixed(*rate)), Queue::default());
                (way(), way())
            }
            LinkName::Bus(seed) => {
                let drive = Drive::wibro_bus();
                // It is a drive that can be: a test draws from it.
                let capacity = drive.capacity(*seed).ok();
                let (up, down) = capacity.map(|both| (both.up, both.down)).unzip();
                let way = |trace: Option<Trace>, rate: Rate| {
                    (trace.map(RateSource::Trace), one_second(rate.bits_per_second() / 1000))
                };
                (way(up, drive.good.up), way(down, drive.good.down))
            }
            LinkName::Trace { down, up, .. } => {
                let way =
                    |file| (traces.get(file).cloned().map(RateSource::Trace), Queue::default());
                (way(up.as_ref().unwrap_or(down)), way(down))
            }
        };
        Path { forward: direction(there, up.0, up.1), backward: direction(back, down.0, down.1) }
    }

    /// Whether its capacity changes while a page loads.
    #[must_use]
    pub const fn is_moving(&self) -> bool {
        matches!(self, LinkName::Bus(_) | LinkName::Trace { .. })
    }

    /// The path from client to server, its files read.
    ///
    /// # Errors
    /// A file cannot be read, is no trace, or is another than the name says.
    pub fn open(&self) -> Result<Path, Problem> {
        let mut traces = Traces::default();
        let read = self.read(&mut traces, NamedBy::User)?;
        Ok(read.path(&traces))
    }

    /// The rate down in bit/s: a bus's mean. `None` for a trace, which only its file tells.
    #[must_use]
    pub fn down(&self) -> Option<u64> {
        match self {
            LinkName::Named(_) => self.named().map(|link| link.down * 1000),
            LinkName::Given(_, rate) => Some(rate.bits_per_second()),
            LinkName::Bus(_) => Some(Drive::wibro_bus().mean().0 as u64),
            LinkName::Trace { .. } => None,
        }
    }

    /// The rate up, as [`LinkName::down`] has the other.
    fn up(&self) -> Option<u64> {
        match self {
            LinkName::Named(_) => self.named().map(|link| link.up * 1000),
            LinkName::Given(..) => self.down(),
            LinkName::Bus(_) => Some(Drive::wibro_bus().mean().1 as u64),
            LinkName::Trace { .. } => None,
        }
    }

    /// The rate down with its files read, if it is of any: a trace's mean.
    pub(crate) fn down_of(&self, traces: &Traces) -> Option<u64> {
        match self {
            LinkName::Trace { down, .. } => traces.get(down).map(|trace| trace.mean() as u64),
            _ => self.down(),
        }
    }

    /// The same link, its files read into `traces` and known by their content.
    ///
    /// # Errors
    /// A file cannot be read, is no trace, or is another than the name says.
    pub(crate) fn read(&self, traces: &mut Traces, named_by: NamedBy) -> Result<LinkName, Problem> {
        let LinkName::Trace { down, up, rtt } = self else { return Ok(self.clone()) };
        let down = traces.read(down, named_by)?;
        let up = up.as_ref().map(|up| traces.read(up, named_by)).transpose()?;
        Ok(LinkName::Trace { down, up, rtt: *rtt })
    }

    /// The round-trip time, propagation only.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        match self {
            LinkName::Named(_) => self.named().map_or(Duration::ZERO, |link| link.rtt),
            LinkName::Given(rtt, _) | LinkName::Trace { rtt, .. } => rtt.duration(),
            LinkName::Bus(_) => RTT_BUS,
        }
    }

    /// The bandwidth-delay product down, where the rate is known.
    #[must_use]
    pub fn bandwidth_delay(&self) -> Option<Bytes> {
        Some(self.round_trip_of(self.down()?))
    }

    /// The same up.
    #[must_use]
    pub fn bandwidth_delay_up(&self) -> Option<Bytes> {
        Some(self.round_trip_of(self.up()?))
    }

    /// What a rate in bit/s carries in a round trip.
    fn round_trip_of(&self, rate: u64) -> Bytes {
        Bytes((rate as f64 * self.rtt().as_secs_f64() / 8.0) as u64)
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
        assert_eq!((given.down(), given.rtt()), (Some(20_000_000), Duration::from_millis(50)));
        for text in ["bus", "bus:7", "trace:a.down@50ms", "trace:a.down:dir/b.up@50ms"] {
            assert_eq!(text.parse::<LinkName>().unwrap().to_string(), text);
        }
        assert_eq!("bus:1".parse::<LinkName>().unwrap().to_string(), "bus");
        let unknown = "4g".parse::<LinkName>().unwrap_err();
        assert!(unknown.remedy().unwrap().contains("3g-0.9"), "{unknown:?}");
        for wrong in [
            "",
            "@",
            "50ms@",
            "@1mbit",
            "50ms@fast",
            "x@1mbit",
            "bus:",
            "bus:x",
            "trace:",
            "trace:a",
        ] {
            assert!(wrong.parse::<LinkName>().is_err(), "{wrong}");
        }
        for wrong in ["trace:@50ms", "trace:a:@50ms", "trace:a:b:c@50ms", "trace:a@soon"] {
            assert!(wrong.parse::<LinkName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_has_the_rates_and_the_round_trip() {
        let link: LinkName = "3g-0.9".parse().unwrap();
        let path = link.path(&Traces::default());
        assert_eq!(path.round_trip(), Delay::from(RTT_3G));
        assert_eq!(path.backward.queue, Queue::Bytes(Bytes(112_500)));
        assert!(path.validate().is_ok());
        // The paper: 12.5 KB at most on its testbed.
        let wired = ["wired-10", "wired-100"].map(|name| name.parse::<LinkName>().unwrap());
        assert_eq!(wired[0].bandwidth_delay(), Some(Bytes(1250)));
        assert_eq!(wired[1].bandwidth_delay(), Some(Bytes(6250)));
        // 768 kbit/s up, and as down where one rate is given.
        let up = |name: &str| name.parse::<LinkName>().unwrap().bandwidth_delay_up();
        assert_eq!((up("3g-1.37"), up("50ms@20mbit")), (Some(Bytes(28_800)), Some(Bytes(125_000))));
        assert!(up("bus").is_some() && up("trace:a.down@50ms").is_none());
    }

    #[test]
    fn a_bus_has_the_capacity_of_its_drive() {
        let path = |name: &str| name.parse::<LinkName>().unwrap().path(&Traces::default());
        let first = path("bus");
        assert!(first.validate().is_ok());
        assert_eq!(first.round_trip(), Delay::from(RTT_BUS));
        assert_eq!(first.backward.queue, Queue::Bytes(Bytes(375_000)));
        let capacity = Drive::wibro_bus().capacity(1).unwrap();
        assert_eq!(first.backward.rate, Some(RateSource::Trace(capacity.down)));
        assert_eq!(first.forward.rate, Some(RateSource::Trace(capacity.up)));
        assert_ne!(path("bus:2"), first);
    }

    #[test]
    fn loads_of_one_turn_begin_at_one_place_of_a_trace() {
        let bus = LinkName::Bus(1).path(&Traces::default());
        let phase = |path: &Path| match (&path.forward.rate, &path.backward.rate) {
            (Some(RateSource::Trace(up)), Some(RateSource::Trace(down))) => {
                assert_eq!(up.phase(), down.phase());
                up.phase()
            }
            other => panic!("{other:?}"),
        };
        let phases: Vec<Duration> = (0..20).map(|repeat| phase(&begun(&bus, 5, repeat))).collect();
        let mut distinct = phases.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 20);
        assert!(distinct.iter().all(|phase| *phase < Duration::from_secs(600)));
        // The same again, and others for another seed; a phase is not counted from where one was.
        assert_eq!(phase(&begun(&begun(&bus, 9, 1), 5, 3)), phases[3]);
        assert_ne!(phase(&begun(&bus, 6, 3)), phases[3]);
        let still = LinkName::Named("3g-0.9").path(&Traces::default());
        assert_eq!(begun(&still, 5, 3), still);
    }

    #[test]
    fn files_are_the_capacity_of_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (down, up) = (file("a.down", "2\n4\n6\n"), file("a.up", "6\n"));
        let mut traces = Traces::default();
        let mut read = |text: String| {
            let link: LinkName = text.parse().unwrap();
            link.read(&mut traces, NamedBy::User).unwrap()
        };
        let one = read(format!("trace:{down}@50ms"));
        let both = read(format!("trace:{down}:{up}@50ms"));
        assert!(one.to_string().contains("a.down#"), "{one}");
        assert_eq!(both.to_string().parse::<LinkName>().unwrap(), both);
        let rates = |link: &LinkName| {
            let path = link.path(&traces);
            [path.forward, path.backward].map(|way| match way.rate {
                Some(RateSource::Trace(trace)) => trace.millis().to_vec(),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(rates(&one), [vec![2, 4, 6], vec![2, 4, 6]]);
        assert_eq!(rates(&both), [vec![6], vec![2, 4, 6]]);
        // 1500 bytes in 2 ms.
        assert_eq!((both.down(), both.down_of(&traces)), (None, Some(6_000_000)));
    }
}
