//! Whole conversations at exact times, segment by segment.

use crate::host::{Fate, Host, Plan, Script, World, rtt};

fn echo(_: u8) -> Script {
    Script::new(&[(100, 3000)])
}

#[test]
fn an_ordinary_connection() {
    let plan = Plan::new(Script::new(&[(0, 100)]).closing_after(3000));
    let mut world = World::new(1, &rtt(100), Host::client(plan), Host::server(echo));
    world.run(600);
    assert!(world.client().players[0].is_complete() && world.server().players[0].is_complete());
    assert_eq!(
        world.transcript(),
        [
            "0 c SYN 0+0",
            "50 s SYN,ACK 0+0 ack 1",
            "100 c ACK 1+100 ack 1",
            "150 s ACK 1+1448 ack 101",
            "150 s ACK 1449+1448 ack 101",
            "150 s FIN,ACK 2897+104 ack 101",
            "200 c FIN,ACK 101+0 ack 3002",
            "250 s ACK 3002+0 ack 102",
        ]
    );
}

/// The last segment: nothing comes after it, so that a timer must find the loss, two round trips and
/// a delayed acknowledgment after the last sign of life, or the retransmission timeout if earlier.
#[test]
fn a_lost_tail_is_probed_for() {
    let plan = Plan::new(Script::new(&[(0, 100)]).closing_after(3000));
    let server = Host::server(echo).with_fate(3, Fate::Lose);
    let mut world = World::new(1, &rtt(100), Host::client(plan), server);
    world.run(600);
    assert!(world.client().players[0].is_complete() && world.server().players[0].is_complete());
    assert_eq!(
        world.transcript()[5..],
        [
            "150 sx FIN,ACK 2897+104 ack 101",
            "200 c ACK 101+0 ack 2897",
            "550 s FIN,ACK 2897+104 ack 101",
            "600 c FIN,ACK 101+0 ack 3002",
            "650 s ACK 3002+0 ack 102",
        ]
    );
}

#[test]
fn a_lost_segment_in_the_midst_is_sent_again_by_what_was_acknowledged_after_it() {
    let plan = Plan::new(Script::new(&[(0, 100)]).closing_after(3000));
    let server = Host::server(echo).with_fate(1, Fate::Lose);
    let mut world = World::new(1, &rtt(100), Host::client(plan), server);
    world.run(600);
    assert!(world.client().players[0].is_complete() && world.server().players[0].is_complete());
    // A quarter of a round trip for reordering (RFC 8985 §6.2), at 250 ms, and no more.
    assert_eq!(
        world.transcript()[3..],
        [
            "150 sx ACK 1+1448 ack 101",
            "150 s ACK 1449+1448 ack 101",
            "150 s FIN,ACK 2897+104 ack 101",
            "200 c ACK 101+0 ack 1",
            "275 s ACK 1+1448 ack 101",
            "325 c FIN,ACK 101+0 ack 3002",
            "375 s ACK 3002+0 ack 102",
        ]
    );
}

#[test]
fn a_connection_with_data() {
    let plan = Plan::new(Script::new(&[(0, 1200), (2500, 300)]).closing_after(3500)).with_data();
    fn server(_: u8) -> Script {
        Script::new(&[(1200, 2500), (1500, 1000)])
    }
    let mut world = World::new(1, &rtt(100), Host::client(plan), Host::server(server));
    world.run(600);
    assert!(world.client().players[0].is_complete() && world.server().players[0].is_complete());
    // The flight goes on behind the SYN+ACK, the request rides on its acknowledgment.
    assert_eq!(
        world.transcript(),
        [
            "0 c SYN 0+1200",
            "50 s SYN,ACK 0+1440 ack 1201",
            "50 s ACK 1441+1060 ack 1201",
            "100 c ACK 1201+300 ack 2501",
            "150 s FIN,ACK 2501+1000 ack 1501",
            "200 c FIN,ACK 1501+0 ack 3502",
            "250 s ACK 3502+0 ack 1502",
        ]
    );
}
