//! The generator of truth: connections in the lab of which all is known beforehand, captured at the
//! server, and every record beside the logs of both ends.

mod agreement;
mod dial;
mod sample;
mod site;
mod visit;

use std::path::PathBuf;
use std::time::Duration;

use lab::LabOptions;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use record::Sample;
use thiserror::Error;
use tracker::Connection;
use units::Delay;

use crate::digest::{Digest, Options, OptionsError};
use crate::findings::{Findings, findings};

pub use agreement::{Agreement, Misclassified, RoundTripAgreement, TimeAgreement};
pub use visit::Visit;

use dial::Dialled;
use site::Site;

/// The study's name in samples.
pub const STUDY: &str = "observe";

/// Clients that share a way to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Population {
    /// Its name: 1 to 15 letters, digits, `-` or `_`.
    pub name: String,
    /// The round-trip time of its link.
    pub round_trip: Delay,
    /// Jitter of each way: the deviation of a half-normal distribution, added to its delay.
    pub jitter: Delay,
    /// The library that its clients run.
    pub library: tls::Library,
}

/// What is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The populations.
    pub populations: Vec<Population>,
    /// Connections of each population, by kind.
    pub visits: Vec<(Visit, u32)>,
    /// Connections of each population that are under way together.
    pub concurrent: usize,
    /// The lab.
    pub lab: LabOptions,
    /// A folder for the captures, a pcapng file a population; none are kept without.
    pub captures: Option<PathBuf>,
    /// What bounds the digest.
    pub digest: Options,
    /// The command that makes the samples again.
    pub command: String,
}

impl Plan {
    /// The document's two populations: Wi-Fi at about 25 ms, cellular at about 55 ms; some 220
    /// connections.
    #[must_use]
    pub fn quick(lab: LabOptions) -> Plan {
        let population = |name: &str, round_trip, jitter, library| Population {
            name: name.to_owned(),
            round_trip: Duration::from_millis(round_trip).into(),
            jitter: Duration::from_micros(jitter).into(),
            library,
        };
        Plan {
            populations: vec![
                population("wifi", 25, 700, tls::Library::OpenSsl),
                population("cellular", 55, 1500, tls::Library::Rustls),
            ],
            visits: Visit::ALL.iter().map(|visit| (*visit, visit.weight())).collect(),
            concurrent: 6,
            digest: Options {
                seed: lab.seed,
                bucket: Duration::from_secs(1),
                ..Options::default()
            },
            command: format!("wiretax observe lab --seed {}", lab.seed),
            lab,
            captures: None,
        }
    }

    /// The same with one connection of each kind for each population.
    #[must_use]
    pub fn one_of_each(lab: LabOptions) -> Plan {
        let visits = Visit::ALL.iter().map(|visit| (*visit, 1)).collect();
        Plan { visits, ..Plan::quick(lab) }
    }

    /// Connections of each population.
    #[must_use]
    pub fn each(&self) -> usize {
        self.visits.iter().map(|(_, count)| *count as usize).sum()
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Truth {
    /// The capture's records.
    pub records: Vec<Connection>,
    /// What they say together.
    pub findings: Findings,
    /// A sample for each connection: [`again`] has findings and agreement of them.
    pub samples: Vec<Sample>,
    /// How far they agree with the logs.
    pub agreement: Agreement,
    /// Whether it was stopped before all connections were made.
    pub stopped: bool,
}

/// Why the truth cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TruthError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A TLS library refused what was asked of it.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// A server could not be set up.
    #[error("a server could not be set up: {0}")]
    Server(#[from] conn::Failure),
    /// The digest's options make no sense.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A ticket could not be fetched.
    #[error("{visit:?}: no ticket could be fetched: {detail}")]
    Ticket {
        /// What needs it.
        visit: Visit,
        /// What went wrong.
        detail: String,
    },
    /// The capture lost frames, so that its records are not the truth.
    #[error("the capture lost {0} frames; give the machine less to do beside")]
    Lost(u64),
}

/// Makes the plan's connections and compares. The process must be in the lab already ([`lab::enter`]).
/// `progress` is told what is done, and how many connections of how many; `stop` is asked between
/// batches.
///
/// # Errors
/// The lab, a server or a capture failed. Connections that go wrong are in the [`Agreement`].
pub fn run(
    plan: &Plan,
    progress: &mut dyn FnMut(&str, usize, usize),
    stop: &dyn Fn() -> bool,
) -> Result<Truth, TruthError> {
    let total = plan.each() * plan.populations.len();
    progress("setting up servers", 0, total);
    let mut site = Site::new(plan)?;
    progress("fetching tickets", 0, total);
    site.fetch_tickets(&plan.visits)?;
    site.start_captures(plan.captures.as_deref())?;
    let mut rng = Pcg64Mcg::seed_from_u64(plan.lab.seed);
    let mut orders: Vec<Vec<Visit>> = (0..plan.populations.len())
        .map(|_| {
            let all = plan.visits.iter();
            let mut order: Vec<Visit> = all
                .flat_map(|(visit, count)| std::iter::repeat_n(*visit, *count as usize))
                .collect();
            order.shuffle(&mut rng);
            order
        })
        .collect();
    let (mut done, mut stopped) = (0, false);
    let mut dialled: Vec<Vec<Dialled>> = plan.populations.iter().map(|_| Vec::new()).collect();
    while orders.iter().any(|order| !order.is_empty()) {
        if stop() {
            stopped = true;
            break;
        }
        progress("connecting", done, total);
        let batches: Vec<Vec<(Visit, Duration)>> = orders
            .iter_mut()
            .map(|order| {
                let rest = order.len().saturating_sub(plan.concurrent.max(1));
                let mut after = || Duration::from_micros(rng.random_range(0..50_000));
                order.split_off(rest).into_iter().map(|visit| (visit, after())).collect()
            })
            .collect();
        done += batches.iter().map(Vec::len).sum::<usize>();
        for (all, new) in dialled.iter_mut().zip(site.dial(batches)?) {
            all.extend(new);
        }
    }
    progress("comparing", done, total);
    let (servers, records) = site.finish(done)?;
    let mut digest = Digest::new(plan.digest.clone())?;
    for (connections, counters) in &records {
        connections.iter().for_each(|connection| digest.take(connection));
        digest.count_frames(counters);
    }
    let findings = findings(&digest);
    let known = plan.populations.iter().zip(dialled).zip(&records);
    let known: Vec<sample::Known> = known
        .map(|((population, dialled), (records, _))| sample::Known {
            name: population.name.clone(),
            round_trip: population.round_trip.duration(),
            dialled,
            records: records.clone(),
        })
        .collect();
    let samples = sample::samples(plan, &known, &servers);
    let agreement = Agreement::of(&samples, &findings);
    let records = records.into_iter().flat_map(|(connections, _)| connections).collect();
    Ok(Truth { records, findings, samples, agreement, stopped })
}

/// Findings and agreement of recorded samples: the picture, modes, difference and classes are the
/// same as when they were made; what clients offered is not in samples. Samples of other studies are
/// passed over. `None` if there are none of this one.
///
/// # Errors
/// The options make no sense.
pub fn again(
    samples: &[Sample],
    options: Options,
) -> Result<Option<(Findings, Agreement)>, OptionsError> {
    if !samples.iter().any(|sample| sample.study == STUDY) {
        return Ok(None);
    }
    let mut digest = Digest::new(options)?;
    sample::digest_again(samples, &mut digest);
    let findings = findings(&digest);
    let agreement = Agreement::of(samples, &findings);
    Ok(Some((findings, agreement)))
}
