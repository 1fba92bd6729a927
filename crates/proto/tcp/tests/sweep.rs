//! Thousands of connections over paths that lose, reorder, double and corrupt: in the end both sides
//! have all bytes, or both have failed.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use crate::host::{Host, Plan, Player, Script, Step, World};
use linkmodel::{Jitter, LinkConfig, Middlebox, Path, Queue, Reorder, mix};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sim::Stopped;
use tcp::{CloseReason, Config, Congestion, ConnectOptions, IfRefused, KeepAlive, ListenOptions};
use units::{Probability, Time};

const V6: [&str; 2] = ["fd77::1", "fd77::2"];

/// Virtual time after which an open connection hangs.
const BOUND_SECONDS: u64 = 4 * 3600;

const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle: Duration::from_secs(600), interval: Duration::from_secs(60), probes: 10 };

/// One line of the table: a kind of path, and how many connections on it.
struct Kind {
    name: &'static str,
    connections: u64,
    /// Most bytes each way.
    bytes: usize,
    may_fail: bool,
    path: fn(&mut Pcg64Mcg) -> Path,
}

fn probability(rng: &mut Pcg64Mcg, most: f64) -> Probability {
    Probability::new(rng.random_range(0.0..=most)).expect("a probability")
}

fn lossy(rng: &mut Pcg64Mcg, most: f64) -> Path {
    let rtt = Duration::from_micros(rng.random_range(200..200_000));
    Path::symmetric(rtt.into()).with_loss(probability(rng, most))
}

fn each(path: Path, mut change: impl FnMut(&mut LinkConfig)) -> Path {
    let mut path = path;
    change(&mut path.forward);
    change(&mut path.backward);
    path
}

fn reordering(rng: &mut Pcg64Mcg) -> Path {
    let (probability, jitter) = (probability(rng, 0.3), rng.random_range(0..20_000));
    each(lossy(rng, 0.02), |link| {
        link.reorder = Reorder { probability, ..Reorder::default() };
        link.jitter = Jitter::Uniform(Duration::from_micros(jitter).into());
        link.jitter_may_reorder = true;
    })
}

fn everything(rng: &mut Pcg64Mcg) -> Path {
    let (duplicate, corrupt) = (probability(rng, 0.1), probability(rng, 0.1));
    let boxes = [Middlebox::None, Middlebox::DropSynData, Middlebox::StripSynData];
    each(reordering(rng), |link| {
        link.loss = probability(rng, 0.2).into();
        link.duplicate = duplicate;
        link.corrupt = corrupt;
        link.middlebox = boxes[rng.random_range(0..3)];
    })
}

fn narrow(rng: &mut Pcg64Mcg) -> Path {
    let path = lossy(rng, 0.01).with_rate("2mbit".parse::<units::Rate>().expect("a rate"));
    path.with_queue(Queue::Packets(rng.random_range(3..30)))
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "no loss",
        connections: 200,
        bytes: 300_000,
        may_fail: false,
        path: |rng| lossy(rng, 0.0),
    },
    Kind {
        name: "loss to 2%",
        connections: 400,
        bytes: 200_000,
        may_fail: false,
        path: |rng| lossy(rng, 0.02),
    },
    Kind {
        name: "loss to 10%",
        connections: 600,
        bytes: 40_000,
        may_fail: true,
        path: |rng| lossy(rng, 0.1),
    },
    Kind {
        name: "loss to 30%",
        connections: 800,
        bytes: 12_000,
        may_fail: true,
        path: |rng| lossy(rng, 0.3),
    },
    Kind {
        name: "reordering",
        connections: 300,
        bytes: 100_000,
        may_fail: false,
        path: reordering,
    },
    Kind { name: "narrow queue", connections: 100, bytes: 300_000, may_fail: false, path: narrow },
    Kind { name: "everything", connections: 800, bytes: 15_000, may_fail: true, path: everything },
];

/// A configuration with everything that may be on or off drawn.
fn config(rng: &mut Pcg64Mcg, is_v6: bool) -> Config {
    // RFC 8200 §5
    let least_mtu = if is_v6 { 1280 } else { 576 };
    Config {
        mtu: [576, 1280, 1500][rng.random_range(0..3)].max(least_mtu),
        max_super_segment: if rng.random() { 65_535 } else { 0 },
        congestion: if rng.random() { Congestion::Cubic } else { Congestion::NewReno },
        nagle: rng.random_bool(0.2),
        sack: rng.random_bool(0.8),
        timestamps: rng.random_bool(0.8),
        window_scale: rng.random_bool(0.8),
        receive_buffer: [4096, 20_000, 1 << 20][rng.random_range(0..3)],
        send_buffer: [4096, 65_536, 1 << 20][rng.random_range(0..3)],
        // A peer that is silent for good is found out.
        keep_alive: Some(KEEP_ALIVE),
        ..Config::default()
    }
}

/// Steps of both sides that go back and forth some times.
fn dialogue(rng: &mut Pcg64Mcg, most: usize) -> (Vec<Step>, Vec<Step>) {
    let turns = rng.random_range(1..4usize);
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let (mut sent, mut answered) = (0, 0);
    for _ in 0..turns {
        let think = Duration::from_micros([0, 0, 500, 30_000, 400_000][rng.random_range(0..5)]);
        let send = rng.random_range(1..=most / turns);
        client.push(Step { after: answered, send, think: Duration::ZERO });
        sent += send;
        let send = rng.random_range(1..=most / turns);
        server.push(Step { after: sent, send, think });
        answered += send;
    }
    (client, server)
}

thread_local! {
    static SHOW: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static SERVER: std::cell::RefCell<Script> = const {
        std::cell::RefCell::new(Script { steps: Vec::new(), close_after: None, slow: None })
    };
}

#[derive(Debug, Default)]
struct Row {
    complete: u64,
    failed: u64,
    bytes: usize,
    packets: usize,
    slowest: f64,
}

fn one(kind: &Kind, seed: u64, row: &mut Row) -> Result<(), String> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let path = (kind.path)(&mut rng);
    let (client_steps, server_steps) = dialogue(&mut rng, kind.bytes);
    let script = |steps: Vec<Step>, rng: &mut Pcg64Mcg| {
        let close_after = steps.iter().map(|step| step.after).max();
        let slow = rng.random_bool(0.1).then(|| (3000, Duration::from_millis(20)));
        Script { steps, close_after, slow }
    };
    let (client_script, server_script) =
        (script(client_steps, &mut rng), script(server_steps, &mut rng));
    let (up, down) = (client_script.total(), server_script.total());
    SERVER.set(server_script);
    let mut plan = Plan::new(client_script.closing_after(down));
    plan.with_data = rng.random_bool(0.7);
    plan.options = ConnectOptions {
        if_refused: if rng.random() { IfRefused::Withdraw } else { IfRefused::Resend },
        ..ConnectOptions::default()
    };
    if matches!(plan.options.if_refused, IfRefused::Withdraw) {
        plan.fallback = Some((9, plan.script.clone()));
    }
    let admit: fn(&tcp::SynWithData<'_>) -> bool =
        if rng.random_bool(0.8) { |_| true } else { |_| false };
    let options = ListenOptions { admit, ..ListenOptions::default() };
    let addresses =
        if rng.random_bool(0.3) { V6 } else { [crate::host::CLIENT, crate::host::SERVER] };
    plan.remote = SocketAddr::new(addresses[1].parse().expect("an address"), crate::host::PORT);
    let is_v6 = addresses == V6;
    let (mut client, mut server) = (
        Host::new(addresses[0], config(&mut rng, is_v6), seed as u8).with_plan(plan),
        Host::new(addresses[1], config(&mut rng, is_v6), !seed as u8)
            .listening(options, |_| SERVER.with_borrow(Clone::clone)),
    );
    (client.keep_log, server.keep_log) = (SHOW.get(), SHOW.get());
    let mut world = World::new(seed, &path, client, server);
    let outcome = world.run(BOUND_SECONDS);
    if outcome.stopped == Stopped::EventBound {
        return Err(format!("a storm: {outcome:?}"));
    }
    if SHOW.get() {
        println!("{path:#?}\n{}", world.transcript().join("\n"));
        for host in [world.client(), world.server()] {
            println!("timeout {:?}", host.endpoint.next_timeout());
            for player in &host.players {
                println!("INFO {:?} {}", host.endpoint.info(player.id), short(player));
            }
        }
    }
    row.packets += world.client().sent + world.server().sent;
    judge(&world, up, down, row)
}

/// Whether both sides have all, or both have failed; never wrong bytes, never an open end.
fn judge(world: &World, up: usize, down: usize, row: &mut Row) -> Result<(), String> {
    let client = &world.client().players[0];
    let servers = &world.server().players;
    for (player, most) in servers.iter().map(|player| (player, up)).chain([(client, down)]) {
        if player.wrong.is_some() || player.received > most {
            return Err(format!("corrupted data: {}", short(player)));
        }
        if player.closed.is_none() && player.failed.is_none() {
            return Err(format!("neither through nor failed: {}", short(player)));
        }
        if player.end.is_some() && player.received != most && player.received > 0 {
            return Err(format!("an end before the end: {}", short(player)));
        }
    }
    let all = |player: &Player, most| player.end.is_some() && player.received == most;
    let finished = |player: &Player| matches!(player.closed, Some((_, CloseReason::Finished)));
    if !finished(client) && !servers.iter().any(finished) {
        row.failed += 1;
        return Ok(());
    }
    // Who finished knows that the peer has all. The peer has it, though it may not know so of its
    // own: the last acknowledgment is not acknowledged.
    let served = servers.iter().filter(|player| all(player, up)).count();
    if !all(client, down) || served != 1 {
        let servers: Vec<String> = servers.iter().map(short).collect();
        return Err(format!("they disagree: client {}, servers {servers:?}", short(client)));
    }
    row.complete += 1;
    row.bytes += up + down;
    let end = client.end.unwrap_or(Time::ZERO).as_nanos() as f64 / 1e9;
    row.slowest = row.slowest.max(end);
    Ok(())
}

fn short(player: &Player) -> String {
    format!(
        "received {} written {} wrong {:?} shut {} end {:?} closed {:?} failed {:?} events {:?}",
        player.received,
        player.written,
        player.wrong,
        player.shut,
        player.end,
        player.closed,
        player.failed,
        player.events.last()
    )
}

#[test]
fn both_agree_or_both_fail() {
    let mut table = format!(
        "{:<14} {:>11} {:>9} {:>7} {:>9} {:>9} {:>10}\n",
        "path", "connections", "complete", "failed", "MB", "packets", "slowest s"
    );
    let mut failures = Vec::new();
    for (number, kind) in KINDS.iter().enumerate() {
        let mut row = Row::default();
        for connection in 0..kind.connections {
            let seed = mix(mix(42, number as u64), connection);
            if let Err(problem) = one(kind, seed, &mut row) {
                if failures.is_empty() {
                    SHOW.set(true);
                    let _again = one(kind, seed, &mut Row::default());
                    SHOW.set(false);
                }
                failures.push(format!("{}: seed {seed}: {problem}", kind.name));
            }
        }
        if row.failed > 0 && !kind.may_fail {
            failures.push(format!("{}: {} failed", kind.name, row.failed));
        }
        let _ = writeln!(
            table,
            "{:<14} {:>11} {:>9} {:>7} {:>9.1} {:>9} {:>10.1}",
            kind.name,
            kind.connections,
            row.complete,
            row.failed,
            row.bytes as f64 / 1e6,
            row.packets,
            row.slowest
        );
    }
    println!("{table}");
    assert!(failures.is_empty(), "{table}\n{}", failures.join("\n"));
}
