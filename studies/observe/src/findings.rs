//! What the records say, as plain data: for the report, for a terminal, for programs.

use std::collections::BTreeMap;

use serde::Serialize;
use tracker::Class;
use units::Time;
use wire::tls::Version;

use crate::change::{Change, changes};
use crate::difference::{Difference, Handshake, compare};
use crate::digest::{
    Cell, CrossNames, Digest, Fallback, Fate, Frames, Kind, Less, Offers, Spread, Tally, Top, Twice,
};
use crate::modes::{Modes, modes};
use crate::reasons::{meaning, touched_names};

/// Clients that tried again with less.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FallbackRow {
    /// What the second hello had less of.
    pub less: Less,
    /// What became of the first.
    pub fate: Fate,
    /// How often, at most.
    pub count: u64,
    /// From the first hello to the second at the median, in ms.
    pub lost_ms: Option<f64>,
    /// The same at the 95 % quantile.
    pub lost_p95_ms: Option<f64>,
}

fn fallbacks(digest: &Digest) -> Vec<FallbackRow> {
    let found = digest.fallbacks.found.iter();
    let row = |((less, fate), own): (&(Less, Fate), &Fallback)| FallbackRow {
        less: *less,
        fate: *fate,
        count: own.count,
        lost_ms: own.lost.quantile(0.5),
        lost_p95_ms: own.lost.quantile(0.95),
    };
    found.map(row).collect()
}

/// What the records say.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// Connections whose records were taken.
    pub connections: u64,
    /// Of these without TLS.
    pub without_tls: u64,
    /// TLS of which too little was captured to tell how it went: no ClientHello, or one direction.
    pub untold: u64,
    /// TLS handshakes: all others.
    pub handshakes: u64,
    /// Width of a bin, in ms.
    pub bin_ms: f64,
    /// GREE 2018's picture: a curve a version.
    pub curves: Vec<Curve>,
    /// Each version's classes.
    pub classes: Vec<ClassRow>,
    /// The modes of each version's full handshakes.
    pub modes: Vec<ModesOf>,
    /// The modes of the clients' round-trip times, over TCP.
    pub round_trip_modes: Option<Modes>,
    /// TLS 1.2 against TLS 1.3 and its drafts, full handshakes over TCP.
    pub difference: Difference,
    /// What to change.
    pub changes: Vec<Change>,
    /// What clients offered and got.
    pub offers: Offers,
    /// Versions that clients offer, each hello once for each.
    pub offered_versions: Names,
    /// The same, as the sets in which they are offered.
    pub offered_sets: Names,
    /// Cipher suites that servers chose.
    pub suites: Names,
    /// Groups of the key exchange.
    pub groups: Names,
    /// Groups of the first key shares, as sets: of hellos that offer TLS 1.3.
    pub key_shares: Names,
    /// Application protocols offered.
    pub alpn: Names,
    /// Alerts, by who sent them.
    pub alerts: Names,
    /// Why handshakes failed.
    pub failures: Names,
    /// Clients that tried again with less, as something on their way may have forced them to.
    pub fallbacks: Vec<FallbackRow>,
    /// Clients that came to another name of a server that they know.
    pub cross_names: CrossNames,
    /// By the name that the client asked for; empty if it asked for none.
    pub server_names: Groups,
    /// By the client's network.
    pub networks: Groups,
    /// The same by stretches of time, each as wide as `stretch_s`.
    pub over_time: Vec<Stretch>,
    /// Width of a stretch of time, in seconds.
    pub stretch_s: f64,
    /// Why records are in doubt.
    pub uncertain: Vec<Reason>,
    /// Records in doubt for any reason.
    pub uncertain_records: u64,
    /// Of these, those with a time that is left out.
    pub doubtful_records: u64,
    /// What the capture passed over.
    pub frames: Frames,
    /// What the capture has twice, and whether it has one clock.
    pub twice: Twice,
    /// QUIC connections of versions that are not read, by version.
    pub unread_quic: BTreeMap<String, u64>,
    /// The lab's populations of clients, each by itself: a median of several would lie between them.
    /// Empty of captures, in which nobody knows who belongs together.
    pub populations: Vec<PopulationRows>,
}

/// What a population's records say.
#[derive(Debug, Clone, Serialize)]
pub struct PopulationRows {
    /// The population's name.
    pub name: String,
    /// Each version's classes.
    pub classes: Vec<ClassRow>,
}

/// How one version's handshakes are spread.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// Transport and version.
    pub kind: Kind,
    /// From the ClientHello to the client's first application data: GREE 2018's.
    pub to_data: Binned,
    /// From the ClientHello to the client's Finished.
    pub handshake: Binned,
}

/// A distribution in bins.
#[derive(Debug, Clone, Serialize)]
pub struct Binned {
    /// Handshakes in it.
    pub count: u64,
    /// Share in each bin, in percent.
    pub percent: Vec<f64>,
    /// Share beyond the last, in percent.
    pub beyond_percent: f64,
    /// The median, in ms.
    pub median_ms: Option<f64>,
    /// 95 of 100 are at or below it, in ms.
    pub p95_ms: Option<f64>,
}

/// The handshakes of one version and class.
#[derive(Debug, Clone, Serialize)]
pub struct ClassRow {
    /// Transport and version.
    pub kind: Kind,
    /// What the handshakes were: full, resumed and so on.
    pub class: Class,
    /// How many handshakes.
    pub count: u64,
    /// Share of the version's, in percent.
    pub percent: f64,
    /// Those with a time in doubt, which is left out below.
    pub doubtful: u64,
    /// Median from the ClientHello to the client's Finished, in ms.
    pub handshake_ms: Option<f64>,
    /// Median from the ClientHello to the client's first data, in ms.
    pub to_data_ms: Option<f64>,
    /// Median from the client's Finished to its first data, in ms; 0 where data came first.
    pub think_ms: Option<f64>,
    /// Median of the clients' round-trip times, in ms.
    pub round_trip_ms: Option<f64>,
    /// Median of the handshake over its own round trip.
    pub round_trips: Option<f64>,
}

/// The modes of a version's full handshakes.
#[derive(Debug, Clone, Serialize)]
pub struct ModesOf {
    /// Transport and version.
    pub kind: Kind,
    /// Of the time to the first data; `None` if there are too few to tell.
    pub to_data: Option<Modes>,
    /// Of the time to the client's Finished.
    pub handshake: Option<Modes>,
}

/// Names and how often each was seen.
#[derive(Debug, Clone, Serialize)]
pub struct Names {
    /// All that was counted.
    pub total: u64,
    /// The most frequent, the first first.
    pub names: Vec<Count>,
    /// What these do not account for.
    pub others: u64,
}

/// A name's count.
#[derive(Debug, Clone, Serialize)]
pub struct Count {
    /// What was counted: a version, suite, alert or the like.
    pub name: String,
    /// How often it was seen.
    pub count: u64,
    /// How often it may have been seen beside that, before it had a place of its own.
    pub missed: u64,
}

/// Names, and the handshakes of each.
#[derive(Debug, Clone, Serialize)]
pub struct Groups {
    /// All handshakes, `others` included.
    pub total: u64,
    /// The most frequent, the first first.
    pub groups: Vec<Group>,
    /// Handshakes that these do not account for.
    pub others: u64,
}

/// The handshakes of a name.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// The server name, or the client's network.
    pub name: String,
    /// What is reported of them.
    #[serde(flatten)]
    pub reported: Reported,
}

/// What is reported of handshakes that have something in common.
#[derive(Debug, Clone, Serialize)]
pub struct Reported {
    /// How many handshakes.
    pub count: u64,
    /// Share that agreed on TLS 1.3 or a draft of it, in percent.
    pub tls13_percent: f64,
    /// Share that resumed, with early data or without, in percent.
    pub resumed_percent: f64,
    /// Share that failed, in percent.
    pub failed_percent: f64,
    /// Median until the client's Finished in ms, right to 5 %.
    pub handshake_ms: Option<f64>,
    /// Median round trip in ms, right to 5 %.
    pub round_trip_ms: Option<f64>,
}

/// What happened in a stretch of time.
#[derive(Debug, Clone, Serialize)]
pub struct Stretch {
    /// When it began, by the capture's clock.
    pub from: Time,
    /// What is reported of its handshakes.
    #[serde(flatten)]
    pub reported: Reported,
}

/// Why records are in doubt.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    /// The reason, as records have it.
    pub name: String,
    /// Records with it.
    pub count: u64,
    /// The facts that it touches, whose figures leave its records out.
    pub touches: String,
    /// What it means.
    pub meaning: &'static str,
}

/// Full handshakes: a distribution over other classes would mix what takes different round trips.
const CLASS: Class = Class::Full;

/// What a digest's records say.
#[must_use]
pub fn findings(digest: &Digest) -> Findings {
    findings_on(digest, 1)
}

/// The same, bit for bit, found on so many threads.
#[must_use]
pub fn findings_on(digest: &Digest, threads: usize) -> Findings {
    let seed = digest.options().seed;
    let of_kind = |kind: Kind| digest.cells.iter().filter(move |((own, _), _)| *own == kind);
    let mut kinds: Vec<Kind> = digest.cells.keys().map(|(kind, _)| *kind).collect();
    kinds.dedup();
    let agreed = || kinds.iter().copied().filter(|kind| kind.version.is_some());
    let (difference, round_trip_modes) = difference(digest, seed, threads);
    let curve = |kind| Curve {
        kind,
        to_data: binned(of_kind(kind).map(|(_, cell)| &cell.to_data)),
        handshake: binned(of_kind(kind).map(|(_, cell)| &cell.handshake)),
    };
    let alerts = digest.alerts.ranked().into_iter().map(|((client, name), entry)| Count {
        name: format!("{name} (from the {})", if *client { "client" } else { "server" }),
        count: entry.seen,
        missed: entry.before,
    });
    let (total, others) = (digest.alerts.total(), digest.alerts.others());
    let reason = |(name, count): (&String, &u64)| {
        let (touches, meaning) = (touched_names(name), meaning(name));
        Reason { name: name.clone(), count: *count, touches, meaning }
    };
    Findings {
        connections: digest.connections,
        without_tls: digest.without_tls,
        untold: digest.untold,
        handshakes: digest.cells.values().map(|cell| cell.count).sum(),
        bin_ms: digest.options().bin.as_secs_f64() * 1e3,
        curves: agreed().map(curve).filter(|curve| curve.handshake.count > 0).collect(),
        classes: class_rows(digest),
        modes: agreed().filter_map(|kind| modes_of(digest, kind, seed, threads)).collect(),
        round_trip_modes,
        difference,
        changes: changes(digest),
        offers: digest.offers,
        offered_versions: names(&digest.offered_versions, |v| Version(*v).to_string()),
        offered_sets: names(&digest.offered_sets, String::clone),
        suites: names(&digest.suites, String::clone),
        groups: names(&digest.groups, String::clone),
        key_shares: names(&digest.key_shares, String::clone),
        alpn: names(&digest.alpn, String::clone),
        alerts: Names { total, others, names: alerts.collect() },
        failures: names(&digest.failures, String::clone),
        fallbacks: fallbacks(digest),
        cross_names: digest.crossings.found,
        server_names: groups(&digest.server_names),
        networks: groups(&digest.networks),
        over_time: digest
            .over_time
            .stretches()
            .map(|(from, tally)| Stretch { from, reported: reported(tally) })
            .collect(),
        stretch_s: digest.over_time.width().as_secs_f64(),
        uncertain: digest.uncertain.iter().map(reason).collect(),
        uncertain_records: digest.uncertain_records,
        doubtful_records: digest.doubtful_records,
        frames: digest.frames,
        twice: digest.twice,
        unread_quic: digest.unread_quic.clone(),
        populations: Vec::new(),
    }
}

/// Each version's classes.
pub(crate) fn class_rows(digest: &Digest) -> Vec<ClassRow> {
    let of_kind = |kind: Kind| digest.cells.iter().filter(move |((own, _), _)| *own == kind);
    let in_all = |kind| of_kind(kind).map(|(_, cell)| cell.count).sum();
    digest.cells.iter().map(|(key, cell)| class_row(*key, cell, in_all(key.0))).collect()
}

/// A share in percent; zero of nothing.
pub(crate) fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { 100.0 * part as f64 / all as f64 }
}

fn class_row((kind, class): (Kind, Class), cell: &Cell, all: u64) -> ClassRow {
    ClassRow {
        kind,
        class,
        count: cell.count,
        percent: percent(cell.count, all),
        doubtful: cell.doubtful,
        handshake_ms: cell.handshake.quantile(0.5),
        to_data_ms: cell.to_data.quantile(0.5),
        think_ms: cell.think.quantile(0.5),
        round_trip_ms: cell.round_trip.quantile(0.5),
        // Kept in thousandths, as if they were microseconds.
        round_trips: cell.round_trips.quantile(0.5),
    }
}

fn binned<'a>(spreads: impl Iterator<Item = &'a Spread>) -> Binned {
    let mut all: Option<Spread> = None;
    for spread in spreads {
        match &mut all {
            Some(all) => all.merge(spread),
            None => all = Some(spread.clone()),
        }
    }
    let Some(all) = all else {
        let percent = Vec::new();
        return Binned { count: 0, percent, beyond_percent: 0.0, median_ms: None, p95_ms: None };
    };
    let (bins, beyond) = all.bins();
    let count = all.count();
    Binned {
        count,
        percent: bins.iter().map(|bin| percent(*bin, count)).collect(),
        beyond_percent: percent(beyond, count),
        median_ms: all.quantile(0.5),
        p95_ms: all.quantile(0.95),
    }
}

fn modes_of(digest: &Digest, kind: Kind, seed: u64, threads: usize) -> Option<ModesOf> {
    let kept = digest.cells.get(&(kind, CLASS))?.kept.times();
    let to_data: Vec<f64> = kept.iter().filter_map(|times| times.to_data).collect();
    let handshake: Vec<f64> = kept.iter().map(|times| times.handshake).collect();
    let modes = |times: &[f64]| modes(times, seed, threads);
    Some(ModesOf { kind, to_data: modes(&to_data), handshake: modes(&handshake) })
}

fn difference(digest: &Digest, seed: u64, threads: usize) -> (Difference, Option<Modes>) {
    let of = |is_it: &dyn Fn(Version) -> bool| -> Vec<Handshake> {
        let own = |(kind, class): &(Kind, Class)| {
            *class == CLASS && !kind.quic && kind.version.is_some_and(is_it)
        };
        let cells = digest.cells.iter().filter(|(key, _)| own(key));
        let kept = cells.flat_map(|(_, cell)| cell.kept.times());
        let whole = kept.filter_map(|times| {
            Some(Handshake { to_data: times.to_data?, round_trip: times.round_trip })
        });
        whole.collect()
    };
    let (from, to) = (Kind::TLS12, Kind::TLS13);
    // A draft takes as many round trips as what became of it; GREE 2018's own traffic was one.
    let (before, after) =
        (of(&|version| version == Version::TLS12), of(&|version| version.is_tls13()));
    let (all, by_mode, round_trip_modes) = compare(&before, &after, seed, threads);
    (Difference { from, to, class: CLASS, all, by_mode }, round_trip_modes)
}

fn names<K: Ord + Clone>(top: &Top<K>, name: impl Fn(&K) -> String) -> Names {
    let count = |(key, entry): (&K, &crate::digest::Entry<()>)| Count {
        name: name(key),
        count: entry.seen,
        missed: entry.before,
    };
    Names {
        total: top.total(),
        names: top.ranked().into_iter().map(count).collect(),
        others: top.others(),
    }
}

fn groups(top: &Top<String, Tally>) -> Groups {
    let ranked = top.ranked().into_iter();
    let group = |(name, entry): (&String, &crate::digest::Entry<Tally>)| Group {
        name: name.clone(),
        reported: reported(&entry.value),
    };
    Groups { total: top.total(), groups: ranked.map(group).collect(), others: top.others() }
}

fn reported(tally: &Tally) -> Reported {
    Reported {
        count: tally.handshakes,
        tls13_percent: percent(tally.tls13, tally.handshakes),
        resumed_percent: percent(tally.resumed, tally.handshakes),
        failed_percent: percent(tally.failed, tally.handshakes),
        handshake_ms: tally.handshake.median(),
        round_trip_ms: tally.round_trip.median(),
    }
}
