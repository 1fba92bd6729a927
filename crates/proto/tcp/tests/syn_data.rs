//! Loaded handshakes in a network that does not help: lost, late, doubled, dropped, stripped, and
//! peers that know nothing of them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::host::{Fate, Host, PORT, Packet, Plan, Script, World, bytes, rtt};
use linkmodel::Middlebox;
use tcp::{Checksum, Config, ConnectOptions, Endpoint, IfRefused, ListenOptions, SynData};
use units::Time;
use wire::tcp::{Flags, OptionList, Repr, Segment};
use wire::{ipv4, tcp as wire_tcp};

/// TLS 1.3's shape.
fn client() -> Script {
    Script::new(&[(0, 1200), (1400, 280)]).closing_after(2400)
}

/// The server's side of it; a client with salt 9 has withdrawn its SYN's data, and its stream is 24
/// bytes shorter.
fn server(salt: u8) -> Script {
    match salt {
        9 => Script::new(&[(1176, 1400), (1456, 1000)]),
        _ => Script::new(&[(1200, 1400), (1480, 1000)]),
    }
}

fn plan() -> Plan {
    Plan::new(client()).with_data()
}

/// A plan that starts afresh with another hello if the data are refused.
fn withdrawing() -> Plan {
    let mut plan = plan();
    plan.options = ConnectOptions { if_refused: IfRefused::Withdraw, ..ConnectOptions::default() };
    let script = Script::new(&[(0, 1176), (1400, 280)]).closing_after(2400);
    plan.fallback = Some((9, script));
    plan
}

fn complete(world: &mut World) {
    world.run(900);
    let (client, server) = (&world.client().players[0], &world.server().players[0]);
    assert_eq!((client.wrong, server.wrong), (None, None));
    assert!(
        client.is_complete() && server.is_complete(),
        "{client:#?}\n{server:#?}\n{:#?}",
        world.transcript()
    );
    assert_eq!(world.server().players.len(), 1, "one connection, not more");
    assert_eq!(client.received, 2400);
}

fn millis(at: Option<Time>) -> f64 {
    at.map_or(f64::NAN, |at| at.as_nanos() as f64 / 1e6)
}

#[test]
fn a_doubled_syn_starts_no_second_connection_and_hastens_no_answer() {
    fn slow(salt: u8) -> Script {
        server(salt).thinking(0, Duration::from_millis(20))
    }
    for fate in [Fate::Twice, Fate::Hold(Duration::from_millis(5))] {
        let client = Host::client(plan()).with_fate(0, fate);
        let mut world = World::new(1, &rtt(100), client, Host::server(slow));
        complete(&mut world);
        let late = if matches!(fate, Fate::Twice) { 0.0 } else { 5.0 };
        assert_eq!(millis(world.client().players[0].got(1400)), 120.0 + late);
        let transcript = world.transcript();
        let answers = transcript.iter().filter(|line| line.contains(" s SYN,ACK ")).count();
        assert_eq!(answers, 1, "{transcript:#?}");
    }
}

#[test]
fn an_answer_that_takes_too_long_is_not_waited_for() {
    // 200 ms after the SYN came, at 50 ms, the SYN+ACK goes bare; the answer comes at 450 ms.
    fn slow(salt: u8) -> Script {
        server(salt).thinking(0, Duration::from_millis(400))
    }
    let mut world = World::new(1, &rtt(100), Host::client(plan()), Host::server(slow));
    complete(&mut world);
    let client = &world.client().players[0];
    assert_eq!(millis(client.event("connected")), 300.0);
    assert_eq!(millis(client.got(1400)), 500.0);
    assert!(world.transcript().iter().any(|line| line == "250 s SYN,ACK 0+0 ack 1201"));
}

#[test]
fn an_answer_may_be_that_there_is_none() {
    // The server wants more than the SYN carries.
    fn wants_more(_: u8) -> Script {
        Script::new(&[(2000, 500)])
    }
    let plan = Plan::new(Script::new(&[(0, 2000)]).closing_after(500)).with_data();
    let mut world = World::new(1, &rtt(100), Host::client(plan), Host::server(wants_more));
    world.run(900);
    let (client, server) = (&world.client().players[0], &world.server().players[0]);
    assert!(client.is_complete() && server.is_complete(), "{client:#?}\n{server:#?}");
    assert_eq!(millis(client.got(500)), 200.0);
}

/// Each of the first packets of each side lost, doubled or late: both always end with all bytes.
#[test]
fn any_segment_of_the_handshake_may_be_lost_doubled_or_late() {
    let fates = [
        Fate::Lose,
        Fate::Twice,
        Fate::Hold(Duration::from_millis(3)),
        Fate::Hold(Duration::from_millis(150)),
    ];
    for make in [plan, withdrawing] {
        for packet in 0..6 {
            for fate in fates {
                for at_client in [true, false] {
                    let (mut one, mut two) = (Host::client(make()), Host::server(server));
                    let host = if at_client { &mut one } else { &mut two };
                    host.fates.insert(packet, fate);
                    complete(&mut World::new(1, &rtt(100), one, two));
                }
            }
        }
    }
}

#[test]
fn two_losses_of_the_handshake_at_once() {
    for first in 0..4 {
        for second in 0..4 {
            let one = Host::client(withdrawing()).with_fate(first, Fate::Lose);
            let two = Host::server(server).with_fate(second, Fate::Lose);
            complete(&mut World::new(1, &rtt(100), one, two));
        }
    }
}

#[test]
fn a_lost_syn_with_data_is_sent_again_bare_and_its_data_after_the_answer() {
    let client = Host::client(plan()).with_fate(0, Fate::Lose);
    let mut world = World::new(1, &rtt(100), client, Host::server(server));
    complete(&mut world);
    let transcript = world.transcript();
    assert_eq!(transcript[0], "0 cx SYN 0+1200");
    assert_eq!(transcript[1], "1000 c SYN 0+0");
    assert_eq!(transcript[2], "1050 s SYN,ACK 0+0 ack 1");
    assert_eq!(millis(world.client().players[0].got(1400)), 1200.0);
}

#[test]
fn a_lost_syn_ack_with_data_comes_again() {
    let server = Host::server(server).with_fate(0, Fate::Lose);
    let mut world = World::new(1, &rtt(100), Host::client(plan()), server);
    complete(&mut world);
    assert_eq!(world.server().players.len(), 1);
    let at = millis(world.client().players[0].got(1400));
    assert!(at <= 1200.0, "{at}\n{:#?}", world.transcript());
}

#[test]
fn a_path_that_drops_syns_with_data_is_remembered() {
    let path = rtt(100).with_middlebox(Middlebox::DropSynData);
    let mut second = withdrawing();
    second.at = Time::from_millis(60_000);
    let mut third = withdrawing();
    third.at = Time::from_millis(3_700_000); // An hour later.
    let client = Host::client(withdrawing()).with_plan(second).with_plan(third);
    let mut world = World::new(1, &path, client, Host::server(server));
    world.run(5_000);
    let starts = [0.0, 60_000.0, 3_700_000.0];
    let connected: Vec<f64> = world
        .client()
        .players
        .iter()
        .zip(starts)
        .map(|(player, start)| millis(player.event("connected")) - start)
        .collect();
    // The first and, the memory having faded, the third pay a second.
    assert_eq!(connected, [1100.0, 100.0, 1100.0]);
    for player in &world.client().players {
        assert!(player.is_complete(), "{player:#?}");
    }
    for player in &world.server().players {
        assert!(player.is_complete() && player.peer_salt == Some(9), "{player:#?}");
    }
}

#[test]
fn a_path_that_strips_the_data_costs_what_ordinary_tcp_costs() {
    let path = rtt(100).with_middlebox(Middlebox::StripSynData);
    for make in [plan, withdrawing] {
        let mut world = World::new(1, &path, Host::client(make()), Host::server(server));
        complete(&mut world);
        let client = &world.client().players[0];
        assert_eq!(millis(client.event("connected")), 100.0);
        // As the control: the flight after two round trips, the response after three.
        assert_eq!(millis(client.got(1400)), 200.0);
        assert_eq!(millis(client.got(2400)), 300.0);
    }
}

#[test]
fn a_path_that_harms_only_syn_acks_with_data() {
    for middlebox in [Middlebox::DropSynData, Middlebox::StripSynData] {
        let mut path = rtt(100);
        path.backward.middlebox = middlebox;
        for make in [plan, withdrawing] {
            complete(&mut World::new(1, &path, Host::client(make()), Host::server(server)));
        }
    }
}

#[test]
fn a_server_that_takes_no_data_is_an_ordinary_one() {
    for (make, salt) in [(plan as fn() -> Plan, 1), (withdrawing, 9)] {
        let plain = Host::new(crate::host::SERVER, Config::default(), 2)
            .listening(ListenOptions { admit: |_| false, ..ListenOptions::default() }, server);
        let mut world = World::new(1, &rtt(100), Host::client(make()), plain);
        complete(&mut world);
        assert_eq!(world.server().players[0].peer_salt, Some(salt));
        assert_eq!(millis(world.client().players[0].got(2400)), 300.0);
        let refused = world.client().players[0].event("refused");
        assert_eq!(refused.is_some(), salt == 9);
    }
}

#[test]
fn an_ordinary_client_is_served_on_the_same_port() {
    let mut world =
        World::new(1, &rtt(100), Host::client(Plan::new(client())), Host::server(server));
    complete(&mut world);
    assert_eq!(millis(world.client().players[0].got(2400)), 300.0);
}

#[test]
fn both_may_open_at_once() {
    for with_data in [false, true] {
        let script = Script::new(&[(0, 700)]).closing_after(700);
        let host = |address: &str, peer: &str, salt: u8| {
            let mut plan = Plan::new(script.clone());
            plan.local_port = PORT;
            plan.remote = SocketAddr::new(peer.parse().unwrap(), PORT);
            (plan.salt, plan.with_data) = (salt, with_data);
            Host::new(address, Config::default(), salt).with_plan(plan)
        };
        let one = host(crate::host::CLIENT, crate::host::SERVER, 1);
        let two = host(crate::host::SERVER, crate::host::CLIENT, 2);
        let mut world = World::new(1, &rtt(100), one, two);
        world.run(900);
        for player in [&world.client().players[0], &world.server().players[0]] {
            assert_eq!((player.received, player.wrong), (700, None), "{:#?}", world.transcript());
            assert!(player.is_complete(), "{player:#?}\n{:#?}", world.transcript());
        }
    }
}

/// A packet of the client's made by hand.
fn segment(flags: Flags, sequence: u32, ack: Option<u32>, data: &[u8]) -> Vec<u8> {
    let (source, destination) = ([10, 77, 0, 1].into(), [10, 77, 0, 2].into());
    let repr = Repr {
        source_port: 50_000,
        destination_port: PORT,
        sequence,
        acknowledgment: ack,
        flags,
        window: 65_000,
        options: OptionList { mss: Some(1460), ..OptionList::default() },
    };
    let ip = ipv4::Repr {
        source,
        destination,
        protocol: wire_tcp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: repr.buffer_len(data.len()),
    };
    let mut packet = vec![0; 20 + ip.payload_len];
    ip.emit(&mut packet).unwrap();
    repr.emit(source.into(), destination.into(), data, &mut packet[20..]).unwrap();
    packet
}

fn transmitted(endpoint: &mut Endpoint, now: Time) -> Vec<Packet> {
    let mut buffer = vec![0; 2000];
    let mut packets = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        packets.push(Packet(buffer[..transmit.len].to_vec()));
    }
    packets
}

#[test]
fn a_syn_sent_again_with_another_hello_changes_nothing() {
    let local = SocketAddr::new(IpAddr::from([10, 77, 0, 2]), PORT);
    let mut endpoint = Endpoint::new(Config::default(), [7; 32]);
    let listener = endpoint.listen(local, crate::host::listen_options()).unwrap();
    let mut now = Time::from_millis(1);
    let (one, two) = (bytes(1, 0, 1200), bytes(2, 0, 1100));
    let give = |endpoint: &mut Endpoint, now, data: &[u8]| {
        let _ignored =
            endpoint.handle_packet(now, &segment(Flags::SYN, 1000, None, data), Checksum::Verify);
    };
    give(&mut endpoint, now, &one);
    let id = endpoint.accept(listener).expect("a connection");
    let mut got = vec![0; 4000];
    let count = endpoint.read(now, id, &mut got).unwrap();
    assert_eq!(got[..count], one);
    // Before the answer: another hello, no data, more data, on the same initial sequence number.
    for data in [&two[..], &[], &bytes(3, 0, 1400), &one] {
        now += Duration::from_millis(10);
        give(&mut endpoint, now, data);
        assert!(endpoint.accept(listener).is_none(), "another connection");
        assert!(transmitted(&mut endpoint, now).is_empty(), "an early answer");
        assert!(endpoint.read(now, id, &mut got).is_err(), "more data");
    }
    endpoint.write(now, id, &bytes(0x80, 0, 500)).unwrap();
    endpoint.answer(now, id);
    let answers = transmitted(&mut endpoint, now);
    assert_eq!(answers.len(), 1);
    let answer = answers[0].parts().segment;
    assert_eq!((answer.acknowledgment(), answer.payload().len()), (Some(1000 + 1201), 500));
    // And after it.
    now += Duration::from_millis(10);
    give(&mut endpoint, now, &two);
    assert!(endpoint.accept(listener).is_none());
    for packet in transmitted(&mut endpoint, now) {
        let again: Segment<'_> = packet.parts().segment;
        assert_eq!(again.acknowledgment(), Some(1000 + 1201));
    }
    let server_first = answer.sequence().wrapping_add(501);
    let ack = segment(Flags(0), 1000 + 1201, Some(server_first), b"");
    endpoint.handle_packet(now, &ack, Checksum::Verify).unwrap();
    assert!(matches!(endpoint.info(id).unwrap().syn_data, SynData::Accepted));
    assert!(endpoint.read(now, id, &mut got).is_err());
}

/// A client that sends one SYN and is then silent: however much the server would say and however often
/// it says it again, it sends three times what came at most (RFC 9000 §8.1).
#[test]
fn who_is_not_known_is_sent_three_times_what_came_at_most() {
    let local = SocketAddr::new(IpAddr::from([10, 77, 0, 2]), PORT);
    for data in [0, 1, 60, 500, 1200, 1440] {
        let mut endpoint = Endpoint::new(Config::default(), [7; 32]);
        let listener = endpoint.listen(local, crate::host::listen_options()).unwrap();
        let syn = segment(Flags::SYN, 1000, None, &bytes(1, 0, data));
        endpoint.handle_packet(Time::ZERO, &syn, Checksum::Verify).unwrap();
        if let Some(id) = endpoint.accept(listener) {
            endpoint.write(Time::ZERO, id, &bytes(0x80, 0, 20_000)).unwrap();
            endpoint.answer(Time::ZERO, id);
        }
        let (mut sent, mut now) = (0, Time::ZERO);
        for _ in 0..1000 {
            sent += transmitted(&mut endpoint, now).iter().map(|one| one.0.len()).sum::<usize>();
            while endpoint.poll_event().is_some() {}
            let Some(next) = endpoint.next_timeout() else { break };
            now = now.max(next);
            endpoint.handle_timeout(now);
        }
        assert!(sent <= 3 * syn.len(), "{sent} bytes for a SYN of {}", syn.len());
        assert!(sent >= 44, "a SYN of {} bytes was not answered", syn.len());
        assert_eq!(endpoint.next_timeout(), None, "it was given up");
        assert!(now < Time::from_millis(200_000), "{now}");
    }
}

#[test]
fn more_for_the_syn_than_the_send_buffer_holds_is_refused() {
    let mut endpoint = Endpoint::new(Config { send_buffer: 1000, ..Config::default() }, [7; 32]);
    let [local, remote] = [[10, 77, 0, 1], [10, 77, 0, 2]].map(IpAddr::from);
    let options = ConnectOptions { syn_data: vec![1; 1001], ..ConnectOptions::default() };
    let (local, remote) = (SocketAddr::new(local, 0), SocketAddr::new(remote, PORT));
    let error = endpoint.connect(Time::ZERO, local, remote, options).unwrap_err();
    assert_eq!(error, tcp::ConnectError::SynData { len: 1001, limit: 1000 });
}
