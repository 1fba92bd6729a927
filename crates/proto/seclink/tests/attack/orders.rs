//! Orders to the data plane come at the right time (IEEE 802.1X-2020 §9.10, §12.4), and polls have an end.

use std::time::Duration;

use seclink::macsec::Suite;

use super::step::{Breach, Setup, Step, Transit};
use super::world::World;

fn milliseconds(count: u64) -> Step {
    Step::Run(Duration::from_millis(count))
}

/// Members by rising priority value; all promises are checked after each event.
fn world(members: u8) -> World {
    let members = (0..members).map(|at| (9 - at, 16 + at, Suite::GcmAes128)).collect();
    let mut world = World::new(&Setup { seed: 1, members });
    world.watch = 1.0;
    world
}

fn take(world: &mut World, steps: &[Step]) {
    steps.iter().for_each(|step| world.step(*step));
}

// §9.10: the key server sends first, and not before all live members receive.
#[test]
fn the_first_key_waits_for_its_order() {
    let mut world = world(3);
    take(&mut world, &[milliseconds(100)]);
    assert!(world.agrees());
    assert!(!world.breaches.contains(&Breach::EarlyFirst));
}

// §9.8: two partitions count association numbers on their own.
#[test]
fn a_fresh_key_after_a_partition_leaves_the_key_in_use() {
    let mut world = world(3);
    take(&mut world, &[milliseconds(1_000), Step::Partition(0b001), milliseconds(9_000)]);
    assert!(world.station(1).member.transmits_with().is_some());
    take(&mut world, &[Step::Heal, milliseconds(3_000)]);
    assert!(world.agrees());
    for breach in [Breach::EarlyLater, Breach::CutOff] {
        assert!(!world.breaches.contains(&breach), "{breach:?}");
    }
}

// §9.8: keys that never came into use count association numbers up as well.
#[test]
fn four_fresh_keys_in_a_row_leave_the_key_in_use() {
    let mut world = world(3);
    take(&mut world, &[milliseconds(1_000), Step::Isolate(2, Transit::Drop)]);
    for _ in 0..4 {
        take(&mut world, &[Step::Rekey(0), milliseconds(100)]);
    }
    take(&mut world, &[Step::Heal, milliseconds(3_000)]);
    assert!(world.agrees());
    for breach in [Breach::EarlyLater, Breach::CutOff] {
        assert!(!world.breaches.contains(&breach), "{breach:?}");
    }
}

/// The key server is gone before it sends with the key that it distributed.
#[test]
fn a_member_that_was_polled_is_at_rest() {
    let mut world = world(2);
    take(&mut world, &[milliseconds(1_000), Step::Rekey(0), milliseconds(1)]);
    take(&mut world, &[Step::Isolate(0, Transit::Drop), milliseconds(20_000)]);
    assert!(!world.breaches.contains(&Breach::Restless));
}

// §12.4: SAK Retire Time begins when the fresh key is sent with.
#[test]
fn the_key_before_is_received_with_after_a_late_switch() {
    let mut world = world(3);
    take(&mut world, &[milliseconds(1_000), Step::Isolate(2, Transit::Drop)]);
    let before = world.station(0).member.transmits_with();
    // The server waits for the third member until that expires.
    take(&mut world, &[Step::Rekey(0), milliseconds(100)]);
    world.watch = 0.0;
    let mut under_way = None;
    while world.station(0).member.transmits_with() == before {
        under_way = world.seal(1);
        world.run(Duration::from_millis(1));
    }
    assert!(world.open(0, &under_way.unwrap()));
}
