//! Connections that were made together, from the dial to their samples: what each client knows, what
//! the server logged, what the capture recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use conn::ServerRecord;
use record::Sample;
use testbed::Error;
use tracker::Connection;
use units::Time;

use super::agreement::outcome;
use super::boxes;
use super::dial::Dialled;
use super::point::Point;
use super::population::Population;
use super::sample::{Maker, Seen, note_pause};
use super::scenario::Scenario;
use super::site::Site;

/// How long the servers' logs of finished connections may take to appear.
const LOG_PATIENCE: Duration = Duration::from_secs(8);
/// With no frame for this long, what ends the connections has passed: more than a round trip.
const QUIET: Duration = Duration::from_millis(100);
/// The longest wait for that.
const QUIET_PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// What names a connection: the client's address and the server's port. A client's kernel gives one
/// port to connections to several servers.
pub(super) type Ends = (SocketAddr, u16);

/// A connection in a server's log.
pub(super) struct Logged {
    /// What the server is for.
    pub scenario: Scenario,
    /// The server's port.
    pub port: u16,
    /// What it logged.
    pub record: ServerRecord,
}

/// A connection that a client made.
pub(super) struct Made {
    pub point: Point,
    pub repeat: u32,
    pub dialled: Dialled,
    /// Of a client that makes several, one after the other.
    pub place: Option<Place>,
}

/// A connection among those of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The client's number in its batch and population.
    pub client: usize,
    /// Which one it is, from 0.
    pub at: usize,
    /// The pause before it.
    pub pause: Duration,
    /// Whether a session of another name of the server would have spared its full handshake.
    pub could_cross: bool,
}

/// When a connection of a client's series was on the wire, and where its sample is.
struct OnWire {
    first: Time,
    last: Time,
    sample: usize,
}

/// Connections of which samples are still to be made.
#[derive(Default)]
pub(super) struct Batch {
    made: Vec<Made>,
    logs: BTreeMap<Ends, Logged>,
    records: Vec<(Population, Connection)>,
    /// Connections that have their sample, or get none: what is captured of them later is theirs.
    settled: BTreeSet<Ends>,
}

impl Batch {
    /// No connections. Those with these ends get no samples.
    pub(super) fn without(settled: Vec<Ends>) -> Batch {
        Batch { settled: settled.into_iter().collect(), ..Batch::default() }
    }

    /// Adds connections that were made, and waits for their logs and records. A sample of each, and of
    /// each record of no connection that is known.
    pub(super) fn settle(
        &mut self,
        made: Vec<Made>,
        populations: &[Population],
        site: &Site,
        maker: &mut Maker,
    ) -> Result<Vec<Sample>, Error> {
        self.made = made;
        let met = self.made.iter().filter_map(|own| own.dialled.first);
        reopen(&mut self.settled, self.made.iter().filter_map(ends).chain(met));
        let until = Instant::now() + LOG_PATIENCE;
        loop {
            for logged in site.logs() {
                let ends = (logged.record.peer, logged.port);
                if !self.settled.contains(&ends) {
                    self.logs.insert(ends, logged);
                }
            }
            if self.is_logged() || Instant::now() >= until {
                break;
            }
            std::thread::sleep(LOOK);
        }
        await_quiet(site);
        for (population, records) in populations.iter().zip(site.records()) {
            self.records.extend(records.into_iter().map(|record| (*population, record)));
        }
        Ok(self.samples(maker))
    }

    /// Whether the servers have logged as many connections as were made.
    fn is_logged(&self) -> bool {
        let scenarios: BTreeSet<Scenario> =
            self.made.iter().map(|own| own.point.scenario).collect();
        scenarios.into_iter().all(|scenario| {
            let made = self.made.iter().filter(|own| own.point.scenario == scenario).count();
            self.logs.values().filter(|own| own.scenario == scenario).count() >= made
        })
    }

    fn samples(&mut self, maker: &mut Maker) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut series = BTreeMap::new();
        let firsts = self.take_firsts();
        for (population, record) in std::mem::take(&mut self.records) {
            let ends = (record.client, record.server.port());
            let logged = self.logs.get(&ends).map(|logged| logged.scenario);
            let own = logged.and_then(|scenario| self.take_made(population, scenario, &record));
            match (own, self.logs.remove(&ends)) {
                (Some(own), Some(logged)) => {
                    if let Some(place) = own.place.filter(|_| can_be_timed(&own, &record)) {
                        let (first, last) = (record.first_frame, record.last_frame);
                        let seen = OnWire { first, last, sample: samples.len() };
                        series.insert((population, place.client, place.at), seen);
                    }
                    let mut sample = maker.sample(&own, &Seen::Both(&record, &logged.record));
                    if let Some(first) = own.dialled.first {
                        let wrong = boxes::note(&mut sample, firsts.get(&first), &record);
                        if wrong.is_some() {
                            sample.outcome = outcome(wrong);
                        }
                    }
                    samples.push(sample);
                }
                _ if self.settled.contains(&ends) => {}
                _ => samples.push(maker.stranger(population)),
            }
            self.settled.insert(ends);
        }
        for own in std::mem::take(&mut self.made) {
            let ends = ends(&own);
            let logged = ends.and_then(|ends| self.logs.remove(&ends));
            self.settled.extend(ends);
            let seen = if logged.is_some() { Seen::LogAlone } else { Seen::Neither };
            samples.push(maker.sample(&own, &seen));
        }
        // Logged, and neither captured nor known to the client by its address: it was counted as missing.
        self.settled.extend(std::mem::take(&mut self.logs).into_keys());
        note_pauses(&mut samples, &series);
        samples
    }

    /// The records of connections that met a box.
    fn take_firsts(&mut self) -> BTreeMap<Ends, Connection> {
        let met: BTreeSet<Ends> = self.made.iter().filter_map(|own| own.dialled.first).collect();
        let ends = |record: &Connection| (record.client, record.server.port());
        let all = std::mem::take(&mut self.records).into_iter();
        let (of_boxes, others): (Vec<_>, Vec<_>) =
            all.partition(|(_, record)| met.contains(&ends(record)));
        self.records = others;
        self.settled.extend(met);
        // What came later of a connection is the rest of it.
        let firsts = of_boxes.into_iter().rev().map(|(_, record)| (ends(&record), record));
        firsts.collect()
    }

    /// The connection of a client's address; of what failed the address is not known, and one of these
    /// is like another to the same name.
    fn take_made(
        &mut self,
        population: Population,
        scenario: Scenario,
        record: &Connection,
    ) -> Option<Made> {
        let name = record.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
        let of = |local: Option<SocketAddr>, is_it: &dyn Fn(&Point) -> bool| {
            let alike = |own: &Made| {
                own.point.population == population
                    && own.point.scenario == scenario
                    && own.dialled.local == local
                    && is_it(&own.point)
            };
            self.made.iter().position(alike)
        };
        let at = of(Some(record.client), &|_| true)
            .or_else(|| of(None, &|point| Some(point.host.name()) == name))
            .or_else(|| of(None, &|_| true))?;
        Some(self.made.swap_remove(at))
    }
}

/// The ends of a connection, if its client knows them.
fn ends(made: &Made) -> Option<Ends> {
    Some((made.dialled.local?, made.dialled.server.port()))
}

/// Whether the wire shows where a connection began and ended: over QUIC what ends it goes on behind its
/// client's back, and what failed has another end.
fn can_be_timed(made: &Made, record: &Connection) -> bool {
    made.dialled.failure.is_none() && record.tcp.is_some()
}

/// Puts the time between a client's connections, as the capture has it, into the sample of the later one.
fn note_pauses(samples: &mut [Sample], series: &BTreeMap<(Population, usize, usize), OnWire>) {
    for ((population, client, at), later) in series {
        let before = at.checked_sub(1).and_then(|at| series.get(&(*population, *client, at)));
        let Some(before) = before else { continue };
        let between = later.first.saturating_since(before.last);
        if let Some(sample) = samples.get_mut(later.sample) {
            note_pause(sample, between);
        }
    }
}

/// Ends that are in use again are those of a connection without a sample: clients over UDP draw their
/// ports, so that of some hundred connections two have the same one.
fn reopen(settled: &mut BTreeSet<Ends>, in_use: impl Iterator<Item = Ends>) {
    for ends in in_use {
        settled.remove(&ends);
    }
}

/// Waits until no frames of connections come any more.
fn await_quiet(site: &Site) {
    let until = Instant::now() + QUIET_PATIENCE;
    let (mut frames, mut since) = (site.frames(), Instant::now());
    while since.elapsed() < QUIET && Instant::now() < until {
        std::thread::sleep(LOOK);
        let now = site.frames();
        if now != frames {
            (frames, since) = (now, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_use_again_are_not_settled() {
        let ends = |port: u16| (SocketAddr::from(([10, 77, 0, 1], port)), 443);
        let mut settled: BTreeSet<Ends> = [ends(40_000), ends(40_001)].into();
        reopen(&mut settled, [ends(40_001), ends(40_002)].into_iter());
        assert_eq!(settled, [ends(40_000)].into());
    }
}
