use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use units::Time;

use super::*;

const HOUR: f64 = 3600.0;

/// A visit to be: when, by whom, and in which version.
type Planned = (f64, usize, bool);

/// Clients of which each comes back after exponential times with this mean, in seconds.
fn poisson(seed: u64, clients: usize, mean: f64, days: f64, tls13: bool) -> Vec<Planned> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut visits = Vec::new();
    for client in 0..clients {
        let mut at = 0.0;
        loop {
            at += -mean * (1.0 - rng.random::<f64>()).ln();
            if at > days * 24.0 * HOUR {
                break;
            }
            visits.push((at, client, tls13));
        }
    }
    visits.sort_by(|a, b| a.0.total_cmp(&b.0));
    visits
}

fn take(planned: &[Planned], bounds: Bounds) -> Tickets {
    let mut tickets = Tickets::new(bounds);
    for (at, client, tls13) in planned {
        let address = format!("198.51.{}.{}", client / 250, client % 250);
        tickets.take(&Visit {
            // Long after the epoch, at no border of a key.
            at: Time::from_nanos(1_795_266_000_000_000_000 + (at * 1e9) as u64),
            client: &address,
            name: "www.example",
            tls13: *tls13,
            // Half of the clients keep tickets.
            brought: client.is_multiple_of(2),
            resumed: client.is_multiple_of(4),
            round_trip: Some(Duration::from_millis(40)),
        });
    }
    tickets.settle();
    tickets
}

fn hits(answer: &Answer, policy: Policy) -> &PolicyRow {
    answer.lifetimes.iter().chain(&answer.rotations).find(|row| row.policy == policy).unwrap()
}

fn close(row: &PolicyRow, expected: f64) {
    assert!((row.hits.value - expected).abs() < 0.015, "{row:?}, expected {expected}");
    let width = row.hits.high - row.hits.low;
    assert!(row.hits.contains(row.hits.value) && width < 0.04, "{row:?}");
    assert!(width > 0.0 || expected > 0.999, "{row:?}");
}

#[test]
fn in_tls13_a_return_hits_if_it_comes_within_the_lifetime() {
    let mean = 6.0 * HOUR;
    let answer = take(&poisson(1, 400, mean, 14.0, true), Bounds::default()).answer();
    for lifetime in LIFETIMES {
        let expected = 1.0 - (-lifetime.as_secs_f64() / mean).exp();
        let row = hits(&answer, Policy::Lifetime { lifetime });
        close(row, expected);
        assert!(row.told && row.saves_tls12_ms.is_none());
        assert!(row.saves_tls13_ms.is_none_or(|ms| (ms - 40.0).abs() < 1e-9));
    }
    // 95 % of all is reached at three times the mean.
    let advice = answer.advice.clone().unwrap();
    assert_eq!((advice.lifetime_s, advice.may_be_longer), (24 * 3600, false));
    assert!((answer.brought as f64 / answer.returns as f64 - 0.5).abs() < 0.02);
    assert!((answer.resumed as f64 / answer.returns as f64 - 0.25).abs() < 0.02);
    let text = answer.text(160);
    assert!(text.starts_with("Let tickets live 24 h (86400 s): "), "{text}");
}

#[test]
fn in_tls12_a_ticket_ends_with_its_lifetime_however_often_it_is_used() {
    let mean = 6.0 * HOUR;
    let answer = take(&poisson(2, 400, mean, 28.0, false), Bounds::default()).answer();
    for lifetime in &LIFETIMES[..10] {
        // A full handshake, then so many returns until it ends: each cycle has one miss.
        let uses = lifetime.as_secs_f64() / mean;
        let row = hits(&answer, Policy::Lifetime { lifetime: *lifetime });
        close(row, uses / (1.0 + uses));
        assert!(row.saves_tls13_ms.is_none());
    }
}

#[test]
fn a_key_that_goes_takes_its_tickets_along() {
    let mean = 3.0 * HOUR;
    let answer = take(&poisson(3, 400, mean, 14.0, true), Bounds::default()).answer();
    for hours in [1, 4, 12, 24] {
        let every = Duration::from_secs(3600 * hours);
        // No border between two visits, wherever the first lies: one less the mean share of the gap.
        let ratio = mean / every.as_secs_f64();
        let expected = 1.0 - ratio * (1.0 - (-1.0 / ratio).exp());
        close(hits(&answer, Policy::Rotation { every, older: 0 }), expected);
        let more = |older| hits(&answer, Policy::Rotation { every, older }).hits.value;
        assert!(more(0) < more(1) && more(1) < more(2));
        // With the key before, a ticket lives that long at least, and twice as long at most.
        let short = 1.0 - (-1.0 / ratio).exp();
        let long = 1.0 - (-2.0 / ratio).exp();
        assert!(more(1) > short - 0.01 && more(1) < long + 0.01, "{hours}");
    }
}

#[test]
fn records_shorter_than_a_lifetime_cannot_tell() {
    let answer = take(&poisson(4, 400, 2.0 * HOUR, 0.4, true), Bounds::default()).answer();
    let told: Vec<bool> = answer.lifetimes.iter().map(|row| row.told).collect();
    assert_eq!(told.iter().filter(|told| **told).count(), 7, "up to 8 h: {told:?}");
    let advice = answer.advice.clone().unwrap();
    assert!(advice.lifetime_s <= 8 * 3600);
    assert_eq!(advice.longest_s, 8 * 3600);
    assert!(answer.text(240).contains("longer than the records"));
}

#[test]
fn too_few_returns_name_no_lifetime() {
    let answer = take(&poisson(5, 30, 20.0 * HOUR, 1.0, true), Bounds::default()).answer();
    assert!(answer.returns < 100 && answer.advice.is_none());
    assert!(answer.sentences()[0].starts_with("No lifetime can be named"));
    let nothing = Tickets::new(Bounds::default()).answer();
    assert!(nothing.advice.is_none() && nothing.returns == 0 && !nothing.text(80).is_empty());
}

#[test]
fn a_draw_of_many_clients_says_the_same() {
    let planned = poisson(6, 2000, 6.0 * HOUR, 4.0, true);
    let all = take(&planned, Bounds::default()).answer();
    let few = take(&planned, Bounds { clients: 600, seed: 7, ..Bounds::default() });
    assert!(few.clients.len() <= 600 && few.across.len() <= 600);
    let few = few.answer();
    assert_eq!((all.one_of, few.one_of, few.handshakes), (1, 4, all.handshakes));
    for (one, other) in all.lifetimes.iter().zip(&few.lifetimes) {
        assert!((one.hits.value - other.hits.value).abs() < 0.03, "{one:?} {other:?}");
    }
}

#[test]
fn a_ticket_for_all_names_serves_who_goes_from_one_to_another() {
    let mut tickets = Tickets::new(Bounds::default());
    for visit in 0..4000_u64 {
        let (client, round) = (visit % 200, visit / 200);
        let address = format!("198.51.100.{client}");
        // Every other visit is to one name, those between are to another each time, for nine hours.
        let name = if round % 2 == 0 { 0 } else { round % 16 };
        let name = format!("{name}.example");
        tickets.take(&Visit {
            at: Time::from_nanos((visit + 1) * 10_000_000_000),
            client: &address,
            name: &name,
            tls13: true,
            brought: false,
            resumed: false,
            round_trip: None,
        });
    }
    let answer = tickets.answer();
    let advice = answer.advice.clone().unwrap();
    assert!(advice.hits_across_names > 0.99, "{advice:?}");
    let own = hits(&answer, Policy::Lifetime { lifetime: LIFETIMES[4] }).hits.value;
    assert!((own - 9.0 / 11.0).abs() < 1e-9, "{own}");
    assert!(answer.sentences().iter().any(|said| said.contains("share the keys")), "{answer:?}");
}

#[test]
fn a_visit_that_is_late_waits_or_is_counted_and_harms_nothing() {
    for (waiting, late) in [(0, 2), (1, 1), (3, 0)] {
        visits_out_of_order(waiting, late);
    }
}

/// So many wait for earlier ones, and so many come too late all the same.
fn visits_out_of_order(waiting: usize, late: u64) {
    let mut tickets = Tickets::new(Bounds { waiting, ..Bounds::default() });
    for seconds in [100, 50, 200, 10] {
        tickets.take(&Visit {
            at: Time::from_nanos(seconds * 1_000_000_000),
            client: "192.0.2.1",
            name: "",
            tls13: false,
            brought: true,
            resumed: true,
            round_trip: None,
        });
    }
    let answer = tickets.answer();
    assert_eq!((answer.late, answer.returns, answer.span_s), (late, 3, 190.0));
    assert!(answer.lifetimes.iter().all(|row| row.hits.value >= 0.66), "{answer:?}");
}
