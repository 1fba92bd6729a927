//! Round trips until the request leaves and the response comes, as exact integers, for the shape of
//! each profile's flights. The engine is scripted: it needs no time but where a test says so.

use std::time::Duration;

use crate::host::{Host, Plan, Script, World, rtt};
use units::Time;

const RTT_MS: u64 = 100;

/// How many round trips a time is: an exact integer.
fn round_trips(at: Time) -> u64 {
    let rtt = RTT_MS * 1_000_000;
    assert_eq!(at.as_nanos() % rtt, 0, "{at} is no whole number of round trips");
    at.as_nanos() / rtt
}

/// Paper: hello in the SYN; the server's flight; key exchange in the ACK; the server's Finished;
/// then request and response.
fn paper_client(_: u8) -> Script {
    Script::new(&[(0, 1024), (1400, 1024), (1451, 200)]).closing_after(2451)
}

fn paper_server(_: u8) -> Script {
    Script::new(&[(1024, 1400), (2048, 51), (2248, 1000)])
}

fn tls13_client(_: u8) -> Script {
    Script::new(&[(0, 1200), (1400, 280)]).closing_after(2400)
}

fn tls13_server(_: u8) -> Script {
    Script::new(&[(1200, 1400), (1480, 1000)])
}

/// Hello and early request in the SYN; the server's flight and the response.
fn zero_rtt_client(_: u8) -> Script {
    Script::new(&[(0, 1300), (1500, 74)]).closing_after(1500)
}

fn zero_rtt_server(_: u8) -> Script {
    Script::new(&[(1300, 1500)]).closing_after(1374)
}

struct Shape {
    client: fn(u8) -> Script,
    server: fn(u8) -> Script,
    /// The client's step with which the request leaves.
    request: usize,
    /// The end of the response in the server's stream.
    response: usize,
}

const PAPER: Shape =
    Shape { client: paper_client, server: paper_server, request: 2, response: 2451 };
const TLS13: Shape =
    Shape { client: tls13_client, server: tls13_server, request: 1, response: 2400 };
const ZERO_RTT: Shape =
    Shape { client: zero_rtt_client, server: zero_rtt_server, request: 0, response: 1500 };

/// Round trips to the request and to the response.
fn run(shape: &Shape, with_data: bool) -> (u64, u64) {
    let mut plan = Plan::new((shape.client)(0));
    plan.with_data = with_data;
    let mut world = World::new(1, &rtt(RTT_MS), Host::client(plan), Host::server(shape.server));
    world.run(600);
    let client = &world.client().players[0];
    let server = &world.server().players[0];
    assert!(client.is_complete() && server.is_complete(), "{client:#?}\n{server:#?}");
    let info = (world.client().sent, world.client().players.len());
    assert!(info.0 < 12 && info.1 == 1, "{:#?}", world.transcript());
    let response = client.got(shape.response).expect("a response");
    (round_trips(client.sent[shape.request]), round_trips(response))
}

#[test]
fn paper_sends_its_request_after_two_round_trips() {
    assert_eq!(run(&PAPER, true), (2, 3));
}

#[test]
fn tls13_sends_its_request_after_one_round_trip() {
    assert_eq!(run(&TLS13, true), (1, 2));
}

#[test]
fn zero_rtt_sends_its_request_at_once() {
    assert_eq!(run(&ZERO_RTT, true), (0, 1));
}

#[test]
fn the_controls_take_one_round_trip_more() {
    assert_eq!(run(&PAPER, false), (3, 4));
    assert_eq!(run(&TLS13, false), (2, 3));
    assert_eq!(run(&ZERO_RTT, false), (1, 2));
}

#[test]
fn ipv6_takes_the_same() {
    let config = tcp::Config::default;
    let mut plan = Plan::new(tls13_client(0)).with_data();
    plan.remote = "[fd77::2]:443".parse().unwrap();
    let client = Host::new("fd77::1", config(), 1).with_plan(plan);
    let server =
        Host::new("fd77::2", config(), 2).listening(crate::host::listen_options(), tls13_server);
    let mut world = World::new(1, &rtt(RTT_MS), client, server);
    world.run(600);
    let client = &world.client().players[0];
    assert!(client.is_complete());
    assert_eq!(client.got(2400).map(round_trips), Some(2));
}

/// The server's own time comes on top, whatever the flight waits for.
#[test]
fn what_the_engine_takes_is_added_and_nothing_else() {
    fn slow(_: u8) -> Script {
        tls13_server(0).thinking(0, Duration::from_millis(7))
    }
    let plan = Plan::new(tls13_client(0).thinking(1, Duration::from_millis(3))).with_data();
    let mut world = World::new(1, &rtt(RTT_MS), Host::client(plan), Host::server(slow));
    world.run(600);
    let client = &world.client().players[0];
    assert_eq!(client.got(1400), Some(Time::from_millis(107)));
    assert_eq!(client.sent[1], Time::from_millis(110));
    assert_eq!(client.got(2400), Some(Time::from_millis(210)));
    // The answer to the SYN's data rode on the SYN+ACK, the request on its acknowledgment.
    let transcript = world.transcript();
    assert!(transcript[1].starts_with("57 s SYN,ACK 0+"), "{transcript:#?}");
    let bare = transcript.iter().find(|line| line.contains(" c ACK 1201+0 "));
    assert_eq!(bare, None, "{transcript:#?}");
}

/// A server's flight longer than the initial window, as the pure model has it: chains of `wiretax chain`.
#[test]
fn flights_beyond_the_initial_window_take_the_round_trips_of_slow_start() {
    const UNIT: usize = 1_000;
    fn server(salt: u8) -> Script {
        Script::new(&[(300, usize::from(salt) * UNIT), (380, 1)]).closing_after(380)
    }
    for thousands in [5u8, 14, 15, 20, 35, 55] {
        let size = usize::from(thousands) * UNIT;
        let mut plan = Plan::new(Script::new(&[(0, 300), (size, 80)]).closing_after(size + 1));
        plan.salt = thousands;
        let mut world = World::new(1, &rtt(RTT_MS), Host::client(plan), Host::server(server));
        world.run(600);
        let client = &world.client().players[0];
        assert!(client.is_complete(), "{client:#?}");
        // TCP's handshake, and the flight behind the hello.
        let flight = flight::TcpWindow::default().round_trips(size) as u64;
        assert_eq!(client.got(size).map(round_trips), Some(1 + flight), "{size}");
    }
}

/// Flights of one to three certificates, beside a SYN of 1200 bytes and one of a full segment.
#[test]
fn flights_as_the_amplification_limit_lets_them() {
    fn server(salt: u8) -> Script {
        Script::new(&[(1200, usize::from(salt) * 100), (1280, 1)]).closing_after(1280)
    }
    for (size, expected) in [(1300, 1), (2600, 1), (3400, 1), (3900, 2), (5000, 2)] {
        let mut plan = Plan::new(Script::new(&[(0, 1200), (size, 80)]).closing_after(size + 1));
        plan.salt = (size / 100) as u8;
        let mut world =
            World::new(1, &rtt(RTT_MS), Host::client(plan.with_data()), Host::server(server));
        world.sim.run(sim::Limits { until: Time::from_millis(149), events: 1_000_000 });
        // Nothing but the SYN has come so far: RFC 9000 §8.1.
        let server = world.server();
        assert_eq!(server.players.len(), 1);
        assert!(
            server.sent_bytes <= 3 * server.received_bytes,
            "{size}: {} bytes for {}",
            server.sent_bytes,
            server.received_bytes
        );
        world.run(600);
        let client = &world.client().players[0];
        assert!(client.is_complete() && world.server().players[0].is_complete(), "{client:#?}");
        assert_eq!(client.got(size).map(round_trips), Some(expected), "{size}");
    }
}
