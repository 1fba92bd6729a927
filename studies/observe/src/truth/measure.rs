//! Measuring: batch after batch of connections, a sample of each as soon as its record is there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fault::Problem;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use record::{Touches, Warning};
use study::{End, Expected, Session};

use super::batch::{Batch, Made, Place};
use super::boxes;
use super::dial::Dialled;
use super::host::Host;
use super::pause::Pause;
use super::point::{AXES, Point};
use super::population::Population;
use super::sample::{Maker, is_of, note_frames};
use super::site::{Names, Site, Target};
use crate::digest::Fate;

/// Connections of each population that are under way together.
const CONCURRENT: usize = 6;
/// Time that one connection takes, about: many are under way at once.
const EACH: Duration = Duration::from_millis(55);
/// Time until the first of them.
const SETUP: Duration = Duration::from_secs(2);
/// Within this time the connections of a batch begin, in microseconds.
const SPREAD_US: u64 = 50_000;
/// Most connections that one client makes, one after the other.
const SERIES: usize = 4;

/// One connection to be made.
#[derive(Debug, Clone)]
struct Todo {
    point: Point,
    repeat: u32,
    /// How long to wait before it begins.
    after: Duration,
}

/// The connections of one client.
type Series = Vec<Todo>;

/// About how long so many connections at each point take.
pub(super) fn expected(points: &BTreeMap<Point, u32>) -> Duration {
    let connections = points.values().fold(0u32, |sum, count| sum.saturating_add(*count));
    let pauses = points.iter().fold(Duration::ZERO, |sum, (point, count)| {
        let silent = point.scenario.meets_box().filter(|met| met.fate == Fate::Silence);
        let own = point.pause.typical() + silent.map_or(Duration::ZERO, |_| boxes::PATIENCE);
        sum.saturating_add(own.saturating_mul(*count))
    });
    let populations: BTreeSet<Population> = points.keys().map(|point| point.population).collect();
    let clients = CONCURRENT * populations.len().max(1);
    SETUP + EACH * connections + pauses / u32::try_from(clients).unwrap_or(u32::MAX)
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
    let names = Names::of(todo.values().flatten().map(|one| &one.point.host));
    let targets = targets(&todo, &names);
    let mut site = Site::new(session.lab(), &populations, &targets, names.clone())?;
    session.progress("known clients: fetching tickets", &progress);
    let Some(fetched) = site.fetch_tickets(&targets, &|| session.interrupted())? else {
        return Ok(End::Interrupted);
    };
    let mut batch = Batch::without(fetched);
    site.start_captures(session.captures())?;
    let mut maker = Maker::new(seed, |point, repeat| session.is_finished(point, repeat));
    let mut frames = site.counted();
    let end = loop {
        let now: Vec<Vec<Series>> = todo.values_mut().map(take_batch).collect();
        if now.iter().all(Vec::is_empty) {
            break End::Complete;
        }
        if let Some(end) = session.stop() {
            break end;
        }
        let left: usize = todo.values().map(Vec::len).sum();
        let under_way: usize = now.iter().flatten().map(Vec::len).sum();
        progress.done = SETUP + each(total - left - under_way);
        session.progress("known clients: connecting", &progress);
        let dial = |one: &Todo| (names.target(&one.point), one.after);
        let client =
            |series: &Series| -> Vec<(Target, Duration)> { series.iter().map(dial).collect() };
        let dials = now.iter().map(|own| own.iter().map(client).collect());
        // Connections under way are no samples yet.
        let Some(dialled) = site.dial(dials.collect(), &|| session.interrupted())? else {
            return Ok(End::Interrupted);
        };
        let made = made(now, dialled);
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
        let remedy = "stop other programs, and measure again";
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
    for (point, count) in points {
        let one = |repeat| Todo { point: point.clone(), repeat, after: Duration::ZERO };
        all.entry(point.population).or_default().extend((0..*count).map(one));
    }
    for todo in all.values_mut() {
        todo.shuffle(&mut rng);
        for one in todo.iter_mut() {
            one.after = match one.point.pause {
                Pause::None => Duration::from_micros(rng.random_range(0..SPREAD_US)),
                pause @ Pause::Drawn { .. } => pause.draw(&mut rng),
            };
        }
        todo.retain(|one| !session.is_finished(&AXES.fields(&one.point), one.repeat));
    }
    all.retain(|_, todo| !todo.is_empty());
    all
}

/// The targets, and how many connections to each a population makes at most.
fn targets(todo: &BTreeMap<Population, Vec<Todo>>, names: &Names) -> BTreeMap<Target, u32> {
    let mut most = BTreeMap::new();
    for own in todo.values() {
        let mut counts: BTreeMap<Target, u32> = BTreeMap::new();
        for one in own {
            *counts.entry(names.target(&one.point)).or_default() += 1;
        }
        for (target, count) in counts {
            let most: &mut u32 = most.entry(target).or_default();
            *most = count.max(*most);
        }
    }
    most
}

/// Clients that are under way together, each with one connection, or several where they think between
/// them.
fn take_batch(todo: &mut Vec<Todo>) -> Vec<Series> {
    let thinks = |one: &Todo| one.point.pause != Pause::None;
    let mut clients = Vec::new();
    while clients.len() < CONCURRENT
        && let Some(first) = todo.pop()
    {
        let makes = if thinks(&first) { SERIES } else { 1 };
        let mut series = vec![first];
        while series.len() < makes
            && let Some(next) = todo.iter().rposition(thinks)
        {
            series.push(todo.remove(next));
        }
        clients.push(series);
    }
    clients
}

/// What was made: each population's dials in the order of `todo`.
fn made(todo: Vec<Vec<Series>>, dialled: Vec<Vec<Vec<Dialled>>>) -> Vec<Made> {
    let mut made = Vec::new();
    for (series, dialled) in todo.into_iter().zip(dialled) {
        for (client, (series, dialled)) in series.into_iter().zip(dialled).enumerate() {
            let places = places(client, &series);
            let own = series.into_iter().zip(dialled).zip(places);
            made.extend(own.map(|((one, dialled), place)| Made {
                point: one.point,
                repeat: one.repeat,
                dialled,
                place,
            }));
        }
    }
    made
}

/// Where each connection stands among those of its client, as if one server had all names; of clients that
/// do not think there is one each.
fn places(client: usize, series: &[Todo]) -> Vec<Option<Place>> {
    let mut sessions: BTreeMap<tls::Version, BTreeSet<&Host>> = BTreeMap::new();
    let mut places = Vec::new();
    for (at, Todo { point, after, .. }) in series.iter().enumerate() {
        let own = sessions.entry(point.scenario.version()).or_default();
        let new_here = !own.is_empty() && !own.contains(&point.host);
        let could_cross = new_here && point.scenario.could_resume();
        if point.scenario.leaves_session() {
            own.insert(&point.host);
        }
        let thinks = point.pause != Pause::None;
        places.push(thinks.then_some(Place { client, at, pause: *after, could_cross }));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Scenario;

    fn todo(host: &str, scenario: Scenario, pause: &str) -> Todo {
        let (host, pause) = (host.parse().unwrap(), pause.parse().unwrap());
        let point = Point { host, scenario, pause, ..Point::default() };
        Todo { point, repeat: 0, after: Duration::from_millis(30) }
    }

    #[test]
    fn a_client_that_thinks_makes_four_connections_and_others_one() {
        let full = |pause: &str| todo("a.test", Scenario::Tls13, pause);
        let mut waiting = vec![full("constant:30ms"); 2];
        waiting.extend(vec![full("none"); 3]);
        waiting.extend(vec![full("constant:30ms"); 7]);
        let clients = take_batch(&mut waiting);
        let lens: Vec<usize> = clients.iter().map(Vec::len).collect();
        assert_eq!(lens, [4, 4, 1, 1, 1, 1]);
        assert!(waiting.is_empty());
        let places = places(2, &clients[0]);
        let pause = Duration::from_millis(30);
        assert_eq!(places[2], Some(Place { client: 2, at: 2, pause, could_cross: false }));
    }

    #[test]
    fn a_session_of_another_name_would_spare_the_first_full_handshake_at_a_name() {
        let made = [
            ("a.test", Scenario::Tls13, false),
            ("b.test", Scenario::Tls13, true),
            ("a.test", Scenario::Tls13, false),
            // No session comes of it, and none is spared.
            ("c.test", Scenario::Reset, false),
            ("c.test", Scenario::Tls13Resumed, false),
            // The sessions are of another version.
            ("d.test", Scenario::Tls12, false),
            ("e.test", Scenario::Tls12, true),
        ];
        let series: Vec<Todo> =
            made.iter().map(|(host, scenario, _)| todo(host, *scenario, "constant:1ms")).collect();
        let found = places(0, &series).into_iter().map(|place| place.unwrap().could_cross);
        assert_eq!(found.collect::<Vec<_>>(), made.map(|(.., could)| could));
        let alone = [todo("a.test", Scenario::Tls13, "none")];
        assert_eq!(places(0, &alone), [None]);
    }
}
