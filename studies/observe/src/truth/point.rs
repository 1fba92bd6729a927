//! What is measured: who does what, each so many times.

use study::{Axes, Number, axis};

use super::host::Host;
use super::pause::Pause;
use super::population::Population;
use super::scenario::Scenario;

/// One population's connections of one scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// The clients that connect.
    pub population: Population,
    /// What they do.
    pub scenario: Scenario,
    /// The name that they ask the server for.
    pub host: Host,
    /// How long a client thinks between two of its connections.
    pub pause: Pause,
}

/// The axes, in the order in which they are crossed.
pub const AXES: Axes<Point> = Axes {
    axes: &[
        axis!("population", population, "wifi,cellular", "NAMES", "Clients: wifi, cellular"),
        axis!(
            "visit",
            scenario,
            "all",
            "NAMES",
            "What clients do: Tls12, Tls13ZeroRtt, ..., or all"
        ),
        axis!(
            "host",
            host,
            "server.wiretax.test",
            "NAMES",
            "Names that clients ask for, which share the repeats: www.wiretax.test=3,api.wiretax.test has three of four for the first",
            unnamed "server.wiretax.test"
        ),
        axis!(
            "pause",
            pause,
            "none",
            "TIMES",
            "Think time between connections of one client: none, constant:200ms, exponential:200ms (mean), lognormal:200ms (median)",
            unnamed "none"
        ),
    ],
    canonical: |point| point,
    impossible: |_| None,
};

/// The numbers of a sweep.
pub const NUMBERS: &[Number] = &[Number {
    name: "repeat",
    help: "How often each population does each of these, over all its names",
    default: Some(1),
    least: 1,
    most: 10_000,
}];

/// What a word of an axis stands for.
pub(super) fn words(axis: &str, word: &str) -> Option<Vec<String>> {
    let all = || Scenario::ALL.iter().map(ToString::to_string).collect();
    (axis == "visit" && word == "all").then(all)
}
