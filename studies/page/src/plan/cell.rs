//! Loads that take turns on a page and a link, and how many of them at once.

use browser::CrossTraffic;
use study::Clock;
use units::Probability;

use crate::link::LinkName;
use crate::pages::PageName;
use crate::point::{Loader, Point, Visit, Waiting};

/// Most loads under way at once.
pub(super) const MOST_LANES: u64 = 16;
/// Bit/s down that the loads of one processor come to.
const RATE_PER_PROCESSOR: u64 = 20_000_000;
/// Most loads at once per processor.
const LOADS_PER_PROCESSOR: usize = 4;
/// A link at which a browser waits for its bytes rather than for its processor, in bit/s.
const SLOW: u64 = 2_000_000;

/// Loads that share a page and a link: they take turns on it.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The page that is loaded.
    pub page: PageName,
    /// The link that it is loaded over.
    pub link: LinkName,
    /// About its rate down, in bit/s.
    pub down: u64,
    /// Loss each way.
    pub loss: Probability,
    /// How frames wait for the link's rate.
    pub queue: Waiting,
    /// What else is on the link.
    pub cross: CrossTraffic,
    /// Rounds: first visits per point.
    pub repeat: u32,
    /// Repeated visits of each kind per round.
    pub returns: u32,
    /// Loads under way at once.
    pub lanes: usize,
    /// What takes turns.
    pub points: Vec<Point>,
}

/// A group of a cell's points that differ in the visit alone: one browser makes these loads one after
/// the other.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The points, in the order of their visits.
    pub(crate) points: Vec<Point>,
}

/// A load of a series, of which there is to be a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load<'a> {
    /// What is loaded.
    pub(crate) point: &'a Point,
    /// Which of the point's loads it is, from 0.
    pub(crate) repeat: u32,
}

impl Cell {
    /// Its points by series.
    pub(crate) fn series(&self) -> Vec<Series> {
        let mut all: Vec<Series> = Vec::new();
        for point in &self.points {
            let own = all
                .iter_mut()
                .find(|series| series.points.first().is_some_and(|other| point.is_visit_of(other)));
            match own {
                Some(series) => series.points.push(point.clone()),
                None => all.push(Series { points: vec![point.clone()] }),
            }
        }
        for series in &mut all {
            series.points.sort_by_key(|point| point.visit);
        }
        all
    }

    /// Loads of a point per round.
    pub(crate) fn per_round(&self, visit: Visit) -> u32 {
        if visit == Visit::First { 1 } else { self.returns }
    }

    /// How often a point is loaded in all.
    pub(crate) fn loads_of(&self, point: &Point) -> u32 {
        self.repeat.saturating_mul(self.per_round(point.visit))
    }

    /// The loads of a series in one round, in the order in which a browser makes them.
    pub(crate) fn loads<'a>(&self, series: &'a Series, round: u32) -> Vec<Load<'a>> {
        let of_point = |point: &'a Point| {
            let each = self.per_round(point.visit);
            (0..each).map(move |n| Load { point, repeat: round * each + n })
        };
        series.points.iter().flat_map(of_point).collect()
    }
}

/// The visits that these come to: a repeated one needs a first one, whether it is asked for or not.
pub(crate) fn visits_for(wanted: impl IntoIterator<Item = Visit>) -> Vec<Visit> {
    let mut visits = vec![Visit::First];
    visits.extend(wanted.into_iter().filter(|visit| *visit != Visit::First));
    visits
}

/// How many of a point's loads may be under way at once unless it is said, at this rate down, in bit/s.
pub(super) fn usual_lanes(point: &Point, down: u64) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    match point.loader {
        // In a guest waiting costs nothing, and one processor does it all.
        _ if point.clock == Clock::Virtual => 1,
        Loader::Ours => lanes_for(down, processors),
        // A browser that lays a page out takes most of a processor.
        Loader::Chromium if down <= SLOW => processors,
        Loader::Chromium => 1,
    }
}

/// How many loads at once a link of this rate down, in bit/s, and so many processors bear.
///
/// What a load costs grows with its rate. By the program's CPU time on two processors, a load of
/// `google-play` at 17 Mbit/s takes 0.47 of one, and eight at once at 1.37 Mbit/s take 0.5, the pump's waiting
/// included: at 20 Mbit/s per processor about half of each is idle. What does not grow with the rate, the
/// handshakes' computation, comes in bursts of some milliseconds: more than four loads per processor would
/// meet too often (our choice).
pub(super) fn lanes_for(down: u64, processors: usize) -> usize {
    let by_rate = processors as u64 * RATE_PER_PROCESSOR / down.max(1);
    let most = (processors * LOADS_PER_PROCESSOR) as u64;
    by_rate.min(most).clamp(1, MOST_LANES) as usize
}
