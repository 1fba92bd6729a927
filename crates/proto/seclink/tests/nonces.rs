//! No nonce is used twice under a CAK, whatever an attacker without keys does: transcripts that once broke it, and
//! sessions at random. Every step of a session ends with a sealed frame of each member.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;
use seclink::fuzz::session::{Session, Step};
use seclink::macsec::Suite;

fn session(members: usize, suite: Suite) -> Session {
    Session::new(members, suite).unwrap()
}

fn run(milliseconds: u64) -> Step {
    Step::Run(Duration::from_millis(milliseconds))
}

fn take(session: &mut Session, steps: &[Step]) {
    steps.iter().for_each(|step| session.step(*step));
}

/// The number of the key that a member sends with.
fn key_number(session: &Session, at: usize) -> u32 {
    session.member(at).unwrap().transmits_with().unwrap().number
}

/// The attacker gives all kept packets of a range to member 1.
fn inject(session: &mut Session, packets: std::ops::Range<usize>) {
    assert!(!packets.is_empty());
    packets.for_each(|number| session.step(Step::Inject(number, 1)));
}

// IEEE 802.1X-2020 §9.4.3: message numbers prove liveness for MKA Life Time; §9.8: a key is used once.
#[test]
fn replayed_lists_bring_no_key_back() {
    for silence in [7_000, 9_000] {
        let mut session = session(2, Suite::GcmAes128);
        session.step(run(3_000));
        let first_key = session.kept();
        take(&mut session, &[Step::Rekey(0), run(6_000), Step::Block(0, 1), run(silence)]);
        inject(&mut session, 0..first_key);
        session.step(run(3_000));
        session.settle();
    }
}

// §9.8.2: a key is taken from a packet whose live list names the member.
#[test]
fn a_member_outside_the_live_list_takes_no_key() {
    let mut session = session(3, Suite::GcmAesXpn128);
    // The first packet of the third member arrives, and no later one.
    take(&mut session, &[run(1), Step::Block(2, 0), Step::Block(2, 1), run(3_000)]);
    assert_eq!(session.member(2).unwrap().transmits_with(), None);
    assert!(session.member(1).unwrap().transmits_with().is_some());
    session.settle();
}

// §9.4.2, §9.4.3: an identifier that was not proved live displaces nobody.
#[test]
fn a_packet_of_an_earlier_life_displaces_nobody() {
    let mut session = session(2, Suite::GcmAes128);
    session.step(run(100));
    session.step(Step::Restart(0));
    let second_life = session.kept();
    session.step(run(5_000));
    let first_key = session.kept();
    take(&mut session, &[Step::Rekey(0), run(10_000)]);
    let before = key_number(&session, 1);
    session.step(Step::Inject(0, 1));
    assert_eq!(session.member(1).unwrap().live_peers().count(), 1);
    inject(&mut session, second_life..first_key);
    assert_eq!(key_number(&session, 1), before);
    session.settle();
}

// §9.10: short names of channels follow from the live list, so a key belongs to one list.
#[test]
fn a_key_goes_only_to_the_group_that_it_was_made_for() {
    let mut session = session(3, Suite::GcmAesXpn256);
    // The third member is silent, but hears the next key; the second gets it when the third is no longer listed.
    take(
        &mut session,
        &[run(3_000), Step::Block(2, 0), run(3_000), Step::Block(0, 1), Step::Rekey(0), run(5_500)],
    );
    assert_eq!(session.member(0).unwrap().live_peers().count(), 1);
    take(&mut session, &[Step::Block(0, 1), run(2_500)]);
    session.settle();
}

// §9.8, Table 9-3: PendingPNExhaustion.
#[test]
fn packet_numbers_near_their_end_bring_a_fresh_key() {
    for (suite, pending) in
        [(Suite::GcmAes256, 0xc000_0000), (Suite::GcmAesXpn128, 0xc000_0000 << 32)]
    {
        let mut session = session(3, suite);
        session.step(run(1_000));
        // The key server hears it of a receiver, or sees its own.
        for (at, lowest, next) in [(1, pending, 1), (0, pending, 1), (0, 1, pending)] {
            let before = key_number(&session, 0);
            session.set_packet_numbers(at, lowest.max(2) - 1, next.max(2) - 1);
            session.step(run(3_000));
            assert_eq!(key_number(&session, 0), before, "{suite}, just below");
            session.set_packet_numbers(at, lowest, next);
            // Said again while the next key is not in use yet: of that key it says nothing.
            session.step(run(1));
            session.set_packet_numbers(at, lowest, next);
            session.step(run(3_000));
            assert_eq!(key_number(&session, 0), before + 1, "{suite}");
            assert!(session.agrees());
        }
    }
}

/// Any of 1 to `most` steps that an attacker has these means for.
fn steps(most: usize, means: Vec<BoxedStrategy<Step>>) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(proptest::strategy::Union::new(means), 1..most)
}

/// Time: moments, hello times, life times.
fn time() -> BoxedStrategy<Step> {
    prop_oneof![1 => 1u64..20, 1 => 100u64..3_000, 2 => 6_500u64..9_500].prop_map(run).boxed()
}

/// Two different members.
fn pair(members: usize) -> impl Strategy<Value = (usize, usize)> {
    let further = (0..members, 1..members);
    further.prop_map(move |(from, by)| (from, (from + by) % members))
}

fn block(members: usize) -> BoxedStrategy<Step> {
    pair(members).prop_map(|(from, to)| Step::Block(from, to)).boxed()
}

fn inject_one(members: usize) -> BoxedStrategy<Step> {
    (0usize..120, 0..members).prop_map(|(number, to)| Step::Inject(number, to)).boxed()
}

/// Of all lives, or of one of so many.
fn replay(members: usize, lives: usize) -> BoxedStrategy<Step> {
    (pair(members), 0..=lives)
        .prop_map(|((from, to), life)| Step::Replay { from, life: life.checked_sub(1), to })
        .boxed()
}

fn rekey(members: usize) -> BoxedStrategy<Step> {
    (0..members).prop_map(Step::Rekey).boxed()
}

fn restart(members: usize) -> BoxedStrategy<Step> {
    (0..members).prop_map(Step::Restart).boxed()
}

/// Takes the steps; sealed frames are compared in each. Without the attacker the members agree again.
fn attack(members: usize, suite: Suite, steps: &[Step]) {
    let mut session = session(members, suite);
    session.step(run(1_000));
    take(&mut session, steps);
    session.settle();
}

fn any_suite() -> impl Strategy<Value = Suite> {
    proptest::sample::select(Suite::ALL)
}

fn extended() -> impl Strategy<Value = Suite> {
    proptest::sample::select(&[Suite::GcmAesXpn128, Suite::GcmAesXpn256][..])
}

/// The same cases in each run.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: proptest::test_runner::RngSeed::Fixed(30),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn who_drops_and_replays_sees_no_nonce_twice(
        suite in any_suite(),
        steps in steps(30, vec![time(), time(), block(2), replay(2, 0), rekey(1)]),
    ) {
        attack(2, suite, &steps);
    }

    #[test]
    fn who_drops_and_delays_sees_no_nonce_twice(
        suite in extended(),
        early in steps(8, vec![block(3)]),
        steps in steps(14, vec![time(), block(3), block(3), inject_one(3), rekey(1)]),
    ) {
        let mut session = session(3, suite);
        session.step(run(1));
        take(&mut session, &early);
        take(&mut session, &steps);
        session.settle();
    }

    #[test]
    fn who_injects_after_restarts_sees_no_nonce_twice(
        suite in any_suite(),
        steps in steps(14, vec![time(), time(), replay(2, 3), inject_one(2), restart(2), rekey(1)]),
    ) {
        attack(2, suite, &steps);
    }

    #[test]
    fn who_has_all_means_sees_no_nonce_twice(
        (members, steps) in (2usize..=4).prop_flat_map(|members| {
            let means = vec![
                time(), time(), block(members), block(members), replay(members, 3), inject_one(members),
                restart(members), rekey(members),
            ];
            (Just(members), steps(20, means))
        }),
        suite in any_suite(),
    ) {
        attack(members, suite, &steps);
    }

    /// In 100 ms from the start, after a fresh key, and after a restart.
    #[test]
    fn without_an_attacker_members_agree_at_once(
        members in 2usize..=4,
        suite in any_suite(),
        changes in proptest::collection::vec((0usize..4, any::<bool>(), 100u64..7_000), 1..6),
    ) {
        let mut session = session(members, suite);
        session.step(run(100));
        prop_assert!(session.agrees());
        for (at, is_restart, later) in changes {
            let at = at % members;
            session.step(if is_restart { Step::Restart(at) } else { Step::Rekey(at) });
            session.step(run(100));
            prop_assert!(session.agrees(), "after {}", if is_restart { "a restart" } else { "a rekey" });
            session.step(run(later));
            prop_assert!(session.agrees(), "later");
        }
    }
}
