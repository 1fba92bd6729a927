//! The scoreboard against a model that keeps the fate of every byte by itself.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Default)]
struct Delivered(Vec<(u64, u64)>);

impl Observer for Delivered {
    fn delivered(&mut self, part: &Sent) {
        self.0.push((part.start, part.end));
    }
}

impl Delivered {
    fn bytes(&self) -> BTreeSet<u64> {
        let bytes: BTreeSet<u64> = self.0.iter().flat_map(|part| part.0..part.1).collect();
        let count: u64 = self.0.iter().map(|part| part.1 - part.0).sum();
        assert_eq!(bytes.len() as u64, count, "a byte was delivered twice");
        bytes
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push(u64),
    Resend(u64, u64),
    Acknowledge(u64),
    Sack(u64, u64),
    Condemn(u64),
    CondemnFront(u64),
    ForgetSacks,
    Absolve,
}

fn step() -> impl Strategy<Value = Step> {
    let range = (0_u64..400, 1_u64..60).prop_map(|(start, len)| (start, start + len));
    prop_oneof![
        6 => (1_u64..60).prop_map(Step::Push),
        4 => range.clone().prop_map(|(start, end)| Step::Resend(start, end)),
        2 => (0_u64..80).prop_map(Step::Acknowledge),
        8 => range.prop_map(|(start, end)| Step::Sack(start, end)),
        2 => (0_u64..400).prop_map(Step::Condemn),
        1 => (1_u64..60).prop_map(Step::CondemnFront),
        1 => Just(Step::ForgetSacks),
        1 => Just(Step::Absolve),
    ]
}

/// State, time of sending and whether sent again, by byte.
type Fate = (State, Time, bool);

fn fates(board: &Scoreboard) -> Vec<Fate> {
    board.iter().flat_map(sent_fate).collect()
}

fn sent_fate(sent: &Sent) -> impl Iterator<Item = Fate> {
    std::iter::repeat_n((sent.state, sent.at, sent.again), (sent.end - sent.start) as usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn knows_the_fate_of_every_byte(steps in prop::collection::vec(step(), 1..120)) {
        let mut board = Scoreboard::default();
        let (mut first, mut model) = (0_u64, Vec::<Fate>::new());
        for (number, step) in steps.into_iter().enumerate() {
            let now = Time::from_millis(number as u64);
            let next = first + model.len() as u64;
            // Offsets of steps are counted from the first byte not acknowledged.
            let within = |start: u64, end: u64| (first + start).min(next)..(first + end).min(next);
            let index = |at: u64| (at - first) as usize;
            match step {
                Step::Push(len) => {
                    board.push(now, next + len);
                    model.extend(std::iter::repeat_n((State::InFlight, now, false), len as usize));
                }
                Step::Resend(start, end) => {
                    let range = within(start, end);
                    board.resend(now, range.clone());
                    for byte in range {
                        if model[index(byte)].0 != State::Sacked {
                            model[index(byte)] = (State::InFlight, now, true);
                        }
                    }
                }
                Step::Acknowledge(len) => {
                    let upto = (first + len).min(next);
                    let mut delivered = Delivered::default();
                    board.acknowledge(upto, &mut delivered);
                    let fresh = (first..upto).filter(|byte| model[index(*byte)].0 != State::Sacked);
                    prop_assert_eq!(delivered.bytes(), fresh.collect());
                    model.drain(..index(upto));
                    first = upto;
                }
                Step::Sack(start, end) => {
                    let range = within(start, end);
                    let mut delivered = Delivered::default();
                    board.sack(&range, &mut delivered);
                    let fresh = range.clone().filter(|byte| model[index(*byte)].0 != State::Sacked);
                    prop_assert_eq!(delivered.bytes(), fresh.collect());
                    for byte in range {
                        model[index(byte)].0 = State::Sacked;
                    }
                }
                Step::Condemn(before) => {
                    let newly = board.condemn(|sent| {
                        if sent.end <= first + before { Verdict::Lost } else { Verdict::Stop }
                    });
                    // As many as the ranges that lie wholly before it: the board says which.
                    let now_lost = fates(&board);
                    let changed = model.iter_mut().zip(now_lost).filter(|(old, new)| old.0 != new.0);
                    prop_assert_eq!(changed.map(|(old, new)| *old = new).count() as u64, newly);
                }
                Step::CondemnFront(len) => {
                    let newly = board.condemn_front(first + len);
                    for fate in model.iter_mut().take(newly as usize) {
                        prop_assert_eq!(fate.0, State::InFlight);
                        fate.0 = State::Lost;
                    }
                }
                Step::ForgetSacks => {
                    board.forget_sacks();
                    model.iter_mut().filter(|fate| fate.0 == State::Sacked).for_each(|fate| fate.0 = State::Lost);
                }
                Step::Absolve => {
                    board.absolve();
                    model.iter_mut().filter(|fate| fate.0 == State::Lost).for_each(|fate| fate.0 = State::InFlight);
                }
            }
            board.check();
            prop_assert_eq!((board.acknowledged(), board.next()), (first, first + model.len() as u64));
            // Of what was selectively acknowledged, only that is kept.
            let plain = |fates: &[Fate]| fates.iter().map(|fate| match fate.0 {
                State::Sacked => (State::Sacked, Time::ZERO, false),
                _ => *fate,
            }).collect::<Vec<_>>();
            let forgot = fates(&board);
            for (model, board) in model.iter_mut().zip(&forgot) {
                if model.0 == State::Sacked { *model = *board; }
            }
            prop_assert_eq!(plain(&forgot), plain(&model));
            let lost = model.iter().position(|fate| fate.0 == State::Lost);
            prop_assert_eq!(board.first_lost().map(|range| range.start), lost.map(|at| first + at as u64));
        }
    }
}

#[test]
fn a_growing_run_of_acknowledged_bytes_is_one_range() {
    let mut board = Scoreboard::default();
    for number in 0..1000 {
        board.push(Time::from_millis(number), (number + 1) * 10);
    }
    for number in 1..1000 {
        board.sack(&(10..(number + 1) * 10), &mut Delivered::default());
    }
    assert_eq!(board.count(), 2);
    assert_eq!(board.sacked(), 9990);
}

#[test]
fn what_is_sent_at_one_time_is_one_range() {
    let mut board = Scoreboard::default();
    for number in 1..=64 {
        board.push(Time::from_millis(5), number * 1448);
    }
    assert_eq!(board.count(), 1);
}

#[test]
fn ranges_are_bounded() {
    let mut board = Scoreboard::default();
    for number in 0..100_000 {
        board.push(Time::from_nanos(number), (number + 1) * 10);
    }
    for number in 0..20_000 {
        board.sack(&(number * 20..number * 20 + 3), &mut Delivered::default());
    }
    board.check();
    board.acknowledge(1_000_000, &mut Delivered::default());
    assert!(board.is_empty());
}
