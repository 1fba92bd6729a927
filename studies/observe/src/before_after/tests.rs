use export::Record;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use stats::Verdict;

use super::*;

/// What a side's handshakes are like.
#[derive(Clone, Copy)]
struct Population {
    seed: u64,
    count: u64,
    /// Round-trip times lie between it and half as much again.
    round_trip_ms: f64,
    /// What the server takes of each handshake.
    server_ms: f64,
    resumed: f64,
    failed: f64,
}

const USUAL: Population = Population {
    seed: 1,
    count: 3000,
    round_trip_ms: 20.0,
    server_ms: 1.0,
    resumed: 0.5,
    failed: 0.02,
};

fn record(rng: &mut Pcg64Mcg, number: u64, of: Population) -> Record {
    let round_trip = of.round_trip_ms * rng.random_range(1.0..1.5);
    let failed = rng.random_bool(of.failed);
    let class = match (failed, rng.random_bool(of.resumed)) {
        (true, _) => "failed",
        (false, true) => "resumed",
        (false, false) => "full",
    };
    let nanos = |ms: f64| Some((ms * 1e6) as u64);
    Record {
        run: format!("run {}", of.seed),
        number,
        client: format!("192.0.{}.{}", number % 4, number % 199),
        client_network: format!("192.0.{}.0/24", number % 4),
        sni: (!number.is_multiple_of(5)).then(|| "www.example".to_owned()),
        transport: "tcp".to_owned(),
        version: (!failed).then(|| "TLS 1.3".to_owned()),
        class: Some(class.to_owned()),
        first_frame: number * 1_000_000,
        tls_handshake: nanos(round_trip + of.server_ms).filter(|_| !failed),
        round_trip: nanos(round_trip),
        ..Record::default()
    }
}

fn side(of: Population) -> Side {
    let mut rng = Pcg64Mcg::seed_from_u64(of.seed);
    let mut side = Side::new(Timed::TlsHandshake, Bounds::default());
    for number in 0..of.count {
        side.take(&record(&mut rng, number, of));
    }
    side
}

fn found(before: Population, after: Population) -> Compared {
    compare(&side(before), &side(after), Asked { threshold: 0.05 }).unwrap()
}

fn of<'a>(compared: &'a Compared, measure: Measure, group: &Group) -> &'a Changed {
    let is_it = |c: &&Changed| c.measure == measure && c.group == *group;
    compared.changes.iter().find(is_it).unwrap()
}

#[test]
fn two_weeks_of_one_population_are_the_same() {
    for seed in 2..12 {
        let compared = found(USUAL, Population { seed, ..USUAL });
        assert_eq!(compared.worse().count(), 0, "{seed}: {:?}", compared.worse().next());
        assert!(compared.clients_moved().is_none(), "{seed}");
        let all = of(&compared, Measure::Time, &Group::All);
        assert_eq!(all.verdict, Verdict::NoDifference, "{seed}: {all:?}");
    }
}

#[test]
fn a_slower_server_is_found_in_every_group() {
    let compared = found(USUAL, Population { seed: 2, server_ms: 6.0, ..USUAL });
    let groups = [
        Group::All,
        Group::Version("TLS 1.3".to_owned()),
        Group::Class("TLS 1.3, full".to_owned()),
        Group::Class("TLS 1.3, resumed".to_owned()),
        Group::Network("192.0.3.0/24".to_owned()),
        Group::Name("www.example".to_owned()),
        Group::Name(String::new()),
    ];
    for group in groups {
        let changed = of(&compared, Measure::Time, &group);
        assert!(changed.is_worse(), "{changed:?}");
        assert!(changed.shift.low > 4.0 && changed.shift.high < 6.0, "{changed:?}");
    }
    // It is not the clients.
    assert!(compared.clients_moved().is_none());
    assert_eq!(compared.too_few, 0);
}

#[test]
fn clients_that_came_from_farther_are_said_to() {
    let compared = found(USUAL, Population { seed: 2, round_trip_ms: 30.0, ..USUAL });
    assert!(of(&compared, Measure::Time, &Group::All).is_worse());
    let moved = compared.clients_moved().unwrap();
    assert!(!moved.is_worse() && moved.verdict == Verdict::Slower, "{moved:?}");
    let only_round_trips = compared.changes.iter().filter(|c| c.measure == Measure::RoundTrip);
    assert!(
        only_round_trips.clone().count() > 0 && only_round_trips.into_iter().all(|c| !c.is_worse())
    );
}

#[test]
fn lost_tickets_and_failures_are_found_and_their_return_too() {
    let bad = Population { seed: 2, resumed: 0.3, failed: 0.06, ..USUAL };
    let (worse, better) = (found(USUAL, bad), found(bad, USUAL));
    for measure in [Measure::Resumption, Measure::Failure] {
        let changed = of(&worse, measure, &Group::All);
        assert!(changed.is_worse(), "{changed:?}");
        assert!(of(&better, measure, &Group::All).is_better());
    }
    let resumed = of(&worse, Measure::Resumption, &Group::All);
    assert!((resumed.before - 0.5).abs() < 0.04 && (resumed.after - 0.3).abs() < 0.04);
    assert!(resumed.shift.contains(-0.2), "{resumed:?}");
    assert_eq!(better.worse().count(), 0);
}

#[test]
fn a_change_below_the_threshold_does_not_count() {
    let slower = Population { seed: 2, server_ms: 2.0, ..USUAL };
    let one = compare(&side(USUAL), &side(slower), Asked { threshold: 0.01 }).unwrap();
    assert!(of(&one, Measure::Time, &Group::All).is_worse());
    let ten = compare(&side(USUAL), &side(slower), Asked { threshold: 0.10 }).unwrap();
    assert_eq!(ten.worse().count(), 0);
    let wrong = compare(&side(USUAL), &side(slower), Asked { threshold: 5.0 });
    assert_eq!(wrong, Err(stats::Error::Threshold(5.0)));
}

#[test]
fn few_handshakes_show_nothing_and_are_counted() {
    let few = Population { count: 15, ..USUAL };
    let compared = found(few, USUAL);
    assert!(compared.changes.is_empty() && compared.too_few > 0, "{compared:?}");
    let nothing = found(Population { count: 0, ..USUAL }, USUAL);
    assert!(nothing.changes.is_empty());
    assert!(nothing.only_after.contains(&Group::Name("www.example".to_owned())));
}

#[test]
fn doubtful_times_and_hostile_names_are_bounded() {
    let mut side = Side::new(Timed::TlsHandshake, Bounds { groups: 8, kept: 50, seed: 1 });
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    for number in 0..2000_u64 {
        let mut one = record(&mut rng, number, USUAL);
        one.version = Some(format!("version {number}"));
        one.sni = Some("x".repeat(4000) + &number.to_string());
        one.client_network = number.to_string();
        if number.is_multiple_of(2) {
            one.uncertain = vec!["client_finished".to_owned()];
        }
        side.take(&one);
    }
    assert_eq!((side.records(), side.handshakes()), (2000, 2000));
    let groups = side.groups();
    assert!(groups.len() <= 1 + 24 + 24 * 5 + 8 + 8, "{}", groups.len());
    assert!(groups.values().all(|kept| kept.times.values().len() <= 50));
}

#[test]
fn the_draw_does_not_depend_on_the_order() {
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let mut records: Vec<Record> = (0..500).map(|n| record(&mut rng, n, USUAL)).collect();
    let bounds = Bounds { kept: 100, ..Bounds::default() };
    let take = |records: &[Record]| {
        let mut side = Side::new(Timed::TlsHandshake, bounds);
        records.iter().for_each(|record| side.take(record));
        side
    };
    let one = take(&records);
    records.reverse();
    let other = take(&records);
    let values = |side: &Side| side.groups()[&Group::All].times.values();
    assert_eq!(values(&one).len(), 100);
    assert_eq!(values(&one), values(&other));
}

#[test]
fn the_table_names_what_changed_first() {
    let compared = found(USUAL, Population { seed: 2, server_ms: 6.0, failed: 0.2, ..USUAL });
    let text = compared.table().to_text(200);
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}\n{text}"));
    assert!(place("fails more") < place("no difference") || !text.contains("no difference"));
    assert!(text.contains("time, from 192.0.1.0/24") && text.contains("slower"), "{text}");
}
