//! How much sooner TLS 1.3 is than TLS 1.2, in ms and in round trips.

use serde::Serialize;
use stats::{Bootstrap, Confidence, Estimate, bootstrap_medians};

use crate::digest::Kind;
use crate::modes::{Modes, modes};

/// Fewer handshakes of a version say too little.
pub const FEWEST: usize = 20;

/// The times of one handshake, in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Handshake {
    /// From the ClientHello to the client's first application data.
    pub to_data: f64,
    pub round_trip: Option<f64>,
}

/// How long from the ClientHello to the client's first application data by two versions: what the
/// document measured. It ends where the client may send, which the client's Finished does not show: in
/// a full handshake of TLS 1.2 the client waits another round trip for the server's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The slower version.
    pub from: Kind,
    /// The quicker one.
    pub to: Kind,
    /// Which handshakes it rests on.
    pub class: tracker::Class,
    /// All of them.
    pub all: Compared,
    /// By the mode of the round-trip time that each belongs to.
    pub by_mode: Vec<ModeCompared>,
}

/// Two versions among clients of one mode of the round-trip time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModeCompared {
    /// The mode's place, in ms.
    pub round_trip_ms: f64,
    /// What was found.
    pub compared: Compared,
}

/// Two versions' medians and what lies between.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Handshakes of the version to change from, and of the one to change to.
    pub handshakes: (usize, usize),
    /// What the difference is, if they are enough.
    pub found: Option<Found>,
}

/// A difference with 95 % intervals (bootstrap).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// Medians of both, in ms.
    pub medians_ms: (f64, f64),
    /// The first less the second, in ms.
    pub saved_ms: Estimate,
    /// Medians of both in round trips, each handshake divided by its own round-trip time.
    pub round_trips: Option<(f64, f64)>,
    /// The first less the second, in round trips.
    pub saved_round_trips: Option<Estimate>,
}

/// Compares handshakes of two versions; also says which modes the round-trip times of both together
/// have.
pub(crate) fn compare(
    from: &[Handshake],
    to: &[Handshake],
    seed: u64,
    threads: usize,
) -> (Compared, Vec<ModeCompared>, Option<Modes>) {
    let all = compared(from, to, seed);
    let round_trips: Vec<f64> =
        from.iter().chain(to).filter_map(|handshake| handshake.round_trip).collect();
    let found = modes(&round_trips, seed, threads);
    let Some(round_trip_modes) = found else { return (all, Vec::new(), None) };
    let of = |handshakes: &[Handshake], mode: usize| -> Vec<Handshake> {
        let belongs = |handshake: &&Handshake| {
            let round_trip = handshake.round_trip;
            round_trip.and_then(|ms| round_trip_modes.mode_of(ms)) == Some(mode)
        };
        handshakes.iter().filter(belongs).copied().collect()
    };
    let by_mode = round_trip_modes.modes.iter().enumerate().map(|(at, mode)| ModeCompared {
        round_trip_ms: mode.place_ms.value,
        compared: compared(&of(from, at), &of(to, at), seed),
    });
    let by_mode = by_mode.collect();
    (all, by_mode, Some(round_trip_modes))
}

fn compared(from: &[Handshake], to: &[Handshake], seed: u64) -> Compared {
    let handshakes = (from.len(), to.len());
    let ms = |all: &[Handshake]| all.iter().map(|handshake| handshake.to_data).collect::<Vec<_>>();
    let found = difference(&ms(from), &ms(to), seed).map(|(medians_ms, saved_ms)| {
        let in_own = |all: &[Handshake]| {
            let own = |h: &Handshake| Some(h.to_data / h.round_trip.filter(|ms| *ms > 0.0)?);
            all.iter().filter_map(own).collect::<Vec<_>>()
        };
        let in_round_trips = difference(&in_own(from), &in_own(to), seed);
        let (round_trips, saved_round_trips) = in_round_trips.unzip();
        Found { medians_ms, saved_ms, round_trips, saved_round_trips }
    });
    Compared { handshakes, found }
}

/// Both medians, and the difference with its interval; `None` where there are too few.
fn difference(from: &[f64], to: &[f64], seed: u64) -> Option<((f64, f64), Estimate)> {
    if from.len() < FEWEST || to.len() < FEWEST {
        return None;
    }
    let bootstrap = Bootstrap { resamples: 1000, seed };
    let difference = |medians: &[f64]| match medians {
        [from, to] => from - to,
        _ => f64::NAN,
    };
    let saved = bootstrap_medians(&[from, to], bootstrap, Confidence::C95, difference).ok()?;
    Some(((stats::median(from)?, stats::median(to)?), saved))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// Handshakes of so many round trips, over two populations.
    fn drawn(seed: u64, round_trips: f64, count: usize) -> Vec<Handshake> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let (near, far) = (Normal::new(25.0, 2.0).unwrap(), Normal::new(55.0, 4.0).unwrap());
        let one = |at: usize| {
            let own: f64 =
                if at.is_multiple_of(2) { near.sample(&mut rng) } else { far.sample(&mut rng) };
            Handshake { to_data: round_trips * own + 1.0, round_trip: Some(own) }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn one_round_trip_is_found_in_each_mode() {
        let (all, by_mode, _) = compare(&drawn(1, 2.0, 300), &drawn(2, 1.0, 300), 7, 2);
        let found = all.found.unwrap();
        assert!(found.saved_round_trips.unwrap().contains(1.0), "{found:?}");
        assert_eq!(all.handshakes, (300, 300));
        assert_eq!(by_mode.len(), 2, "{by_mode:?}");
        for (mode, expected) in by_mode.iter().zip([25.0, 55.0]) {
            let found = mode.compared.found.as_ref().unwrap();
            assert!((mode.round_trip_ms / expected - 1.0).abs() < 0.05, "{mode:?}");
            assert!((found.saved_ms.value / expected - 1.0).abs() < 0.06, "{mode:?}");
            let saved = found.saved_round_trips.unwrap();
            assert!((saved.value - 1.0).abs() < 0.02 && saved.high < 1.1, "{mode:?}");
        }
    }

    #[test]
    fn too_few_are_not_compared() {
        let (all, by_mode, modes) = compare(&drawn(1, 2.0, 8), &drawn(2, 1.0, 300), 7, 2);
        assert_eq!((all.handshakes, all.found), ((8, 300), None));
        assert!(modes.is_some() && by_mode.iter().all(|mode| mode.compared.found.is_none()));
        let (all, by_mode, modes) = compare(&[], &[], 7, 2);
        assert!(all.found.is_none() && by_mode.is_empty() && modes.is_none());
    }

    #[test]
    fn without_round_trips_there_is_a_difference_in_ms_alone() {
        let blind = |mut all: Vec<Handshake>| {
            all.iter_mut().for_each(|handshake| handshake.round_trip = None);
            all
        };
        let (all, _, modes) = compare(&blind(drawn(1, 2.0, 99)), &blind(drawn(2, 1.0, 99)), 7, 2);
        let found = all.found.unwrap();
        assert!(modes.is_none() && found.saved_round_trips.is_none());
        assert!(found.saved_ms.value > 15.0);
    }
}
