//! Measuring: batch after batch of connections, a sample of each as soon as its record is there.

use std::collections::BTreeMap;
use std::time::Duration;

use fault::Problem;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use record::{Touches, Warning};
use study::{End, Expected, Session};

use super::batch::{Batch, Made};
use super::dial::Dialled;
use super::point::{AXES, Point};
use super::population::Population;
use super::sample::{Maker, is_of, note_frames};
use super::scenario::Scenario;
use super::site::Site;

/// Connections of each population that are under way together.
const CONCURRENT: usize = 6;
/// Time that one connection takes, about: many are under way at once.
const EACH: Duration = Duration::from_millis(55);
/// Time until the first of them.
const SETUP: Duration = Duration::from_secs(2);
/// Within this time the connections of a batch begin, in microseconds.
const SPREAD_US: u64 = 50_000;

/// One connection to be made.
#[derive(Debug, Clone, Copy)]
struct Todo {
    scenario: Scenario,
    repeat: u32,
    /// How long to wait before it begins.
    after: Duration,
}

/// About how long so many connections take.
pub(super) fn expected(connections: u32) -> Duration {
    SETUP + EACH * connections
}

/// Makes the connections that have no sample yet, so many at each point.
pub(super) fn measure(
    points: &BTreeMap<Point, u32>,
    seed: u64,
    session: &mut Session<'_>,
) -> Result<End, Problem> {
    let mut todo = todo(points, seed, session);
    let total: usize = todo.values().map(Vec::len).sum();
    let each = |count: usize| EACH * u32::try_from(count).unwrap_or(u32::MAX);
    let mut progress = Expected::of(SETUP + each(total));
    if total == 0 {
        return Ok(End::Complete);
    }
    if let Some(end) = session.stop() {
        return Ok(end);
    }
    session.progress("known clients: setting up servers", &progress);
    let populations: Vec<Population> = todo.keys().copied().collect();
    let scenarios = scenarios(&todo);
    let names: Vec<Scenario> = scenarios.keys().copied().collect();
    let mut site = Site::new(session.lab(), &populations, &names)?;
    session.progress("known clients: fetching tickets", &progress);
    let mut batch = Batch::without(site.fetch_tickets(&scenarios)?);
    site.start_captures(session.captures())?;
    let mut maker = Maker::new(seed, |point, repeat| session.is_finished(point, repeat));
    let mut frames = site.counted();
    let end = loop {
        let now: Vec<Vec<Todo>> = todo.values_mut().map(take_batch).collect();
        if now.iter().all(Vec::is_empty) {
            break End::Complete;
        }
        if let Some(end) = session.stop() {
            break end;
        }
        let left: usize = todo.values().map(Vec::len).sum();
        progress.done = SETUP + each(total - left - now.iter().map(Vec::len).sum::<usize>());
        session.progress("known clients: connecting", &progress);
        let dials = now.iter().map(|own| own.iter().map(|one| (one.scenario, one.after)).collect());
        let dialled = site.dial(dials.collect())?;
        let made = made(&populations, now, dialled);
        let mut samples = batch.settle(made, &populations, &site, &mut maker)?;
        for (number, counted) in site.counted().into_iter().enumerate() {
            let (Some(population), Some(before)) =
                (populations.get(number), frames.get_mut(number))
            else {
                continue;
            };
            let own = samples.iter_mut().find(|sample| is_of(sample, *population));
            if let Some(sample) = own {
                note_frames(sample, &counted.since(before));
                *before = counted;
            }
        }
        samples.iter().try_for_each(|sample| session.record(sample))?;
    };
    let lost = site.finish()?;
    if lost > 0 {
        let what = format!("the capture of known clients lost {lost} frames");
        let remedy = "give the machine less to do beside, and measure again";
        session.watcher().warning(&what, Some(remedy));
        let warning = Warning::new(what, remedy).touching(Touches::All);
        session.update_manifest(|manifest| manifest.warn(warning))?;
    }
    Ok(end)
}

/// What is to be made by each population, in an order of its own.
fn todo(
    points: &BTreeMap<Point, u32>,
    seed: u64,
    session: &Session<'_>,
) -> BTreeMap<Population, Vec<Todo>> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut all: BTreeMap<Population, Vec<Todo>> = BTreeMap::new();
    for (Point { population, scenario }, count) in points {
        let scenario = *scenario;
        let own = (0..*count).map(|repeat| Todo { scenario, repeat, after: Duration::ZERO });
        all.entry(*population).or_default().extend(own);
    }
    for (population, todo) in &mut all {
        todo.shuffle(&mut rng);
        for one in todo.iter_mut() {
            one.after = Duration::from_micros(rng.random_range(0..SPREAD_US));
        }
        todo.retain(|one| {
            let point = Point { population: *population, scenario: one.scenario };
            !session.is_finished(&AXES.fields(&point), one.repeat)
        });
    }
    all.retain(|_, todo| !todo.is_empty());
    all
}

/// The scenarios, and how many connections of each a population makes at most.
fn scenarios(todo: &BTreeMap<Population, Vec<Todo>>) -> BTreeMap<Scenario, u32> {
    let mut most = BTreeMap::new();
    for own in todo.values() {
        let mut counts: BTreeMap<Scenario, u32> = BTreeMap::new();
        for one in own {
            *counts.entry(one.scenario).or_default() += 1;
        }
        for (scenario, count) in counts {
            let most: &mut u32 = most.entry(scenario).or_default();
            *most = count.max(*most);
        }
    }
    most
}

fn take_batch(todo: &mut Vec<Todo>) -> Vec<Todo> {
    let rest = todo.len().saturating_sub(CONCURRENT);
    todo.split_off(rest)
}

/// What was made: each population's dials in the order of `todo`.
fn made(populations: &[Population], todo: Vec<Vec<Todo>>, dialled: Vec<Vec<Dialled>>) -> Vec<Made> {
    let of_population = populations.iter().zip(todo).zip(dialled);
    let of_population = of_population.flat_map(|((population, todo), dialled)| {
        todo.into_iter().zip(dialled).map(|(one, dialled)| {
            let point = Point { population: *population, scenario: one.scenario };
            Made { point, repeat: one.repeat, dialled }
        })
    });
    of_population.collect()
}
