//! A stop-and-wait transfer over many lossy paths.

use std::time::Duration;

use linkmodel::{Path, Profile, mix};
use sim::{Limits, Node, Outcome, Sim, Stopped};
use units::Time;

/// Bytes before the payload: an Ethernet header, then kind, number and checksum.
const HEADER: usize = 14;

/// A frame of the protocol: data or acknowledgement of the block `number`.
fn frame(is_ack: bool, number: u32) -> Vec<u8> {
    let mut bytes = vec![0u8; HEADER];
    bytes.push(u8::from(is_ack));
    bytes.extend(number.to_be_bytes());
    let sum = checksum(&bytes);
    bytes.extend(sum.to_be_bytes());
    bytes
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(7, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)))
}

/// What a frame says, unless it is damaged.
fn read(bytes: &[u8]) -> Option<(bool, u32)> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    let (kind, number) = body.get(HEADER..)?.split_first()?;
    let number = u32::from_be_bytes(number.try_into().ok()?);
    (checksum(body) == u32::from_be_bytes(*sum)).then_some((*kind == 1, number))
}

/// Sends blocks one by one, each again until it is acknowledged.
struct Sender {
    blocks: u32,
    next: u32,
    due: Option<Time>,
    to_send: bool,
    sent: u32,
}

/// Acknowledges each block and keeps those that are new.
struct Receiver {
    got: Vec<u32>,
    acks: Vec<u32>,
}

enum Peer {
    Sender(Sender),
    Receiver(Receiver),
}

const TIMEOUT: Duration = Duration::from_millis(120);

impl Node for Peer {
    type Frame = Vec<u8>;

    fn handle_frame(&mut self, _now: Time, _interface: usize, frame: Vec<u8>) {
        let Some((is_ack, number)) = read(&frame) else { return };
        match self {
            Peer::Sender(sender) if is_ack && number == sender.next => {
                sender.next += 1;
                sender.to_send = sender.next < sender.blocks;
                sender.due = None;
            }
            Peer::Receiver(receiver) if !is_ack => {
                if number == receiver.got.len() as u32 {
                    receiver.got.push(number);
                }
                receiver.acks.push(number);
            }
            _ => {}
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        match self {
            Peer::Sender(sender) if sender.to_send => {
                sender.to_send = false;
                sender.sent += 1;
                sender.due = Some(now + TIMEOUT);
                Some((0, frame(false, sender.next)))
            }
            Peer::Sender(_) => None,
            Peer::Receiver(receiver) => receiver.acks.pop().map(|number| (0, frame(true, number))),
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        match self {
            Peer::Sender(sender) => sender.due,
            Peer::Receiver(_) => None,
        }
    }

    fn handle_timeout(&mut self, _now: Time) {
        if let Peer::Sender(sender) = self {
            sender.due = None;
            sender.to_send = true;
        }
    }
}

struct Transfer {
    outcome: Outcome,
    acknowledged: u32,
    sent: u32,
    got: Vec<u32>,
    lost: u64,
}

fn transfer(path: &Path, seed: u64, blocks: u32, until: Time) -> Transfer {
    let mut sim = Sim::new(seed);
    let sender = Sender { blocks, next: 0, due: None, to_send: true, sent: 0 };
    let sender = sim.add_node(|_| Peer::Sender(sender));
    let receiver = sim.add_node(|_| Peer::Receiver(Receiver { got: Vec::new(), acks: Vec::new() }));
    let link = sim.connect(sender, receiver, path).unwrap().link;
    let outcome = sim.run(Limits { until, events: 100_000 });
    let (forward, backward) = sim.counters(link);
    let lost = forward.dropped.loss.frames + backward.dropped.loss.frames;
    match (sim.node(sender), sim.node(receiver)) {
        (Peer::Sender(sender), Peer::Receiver(receiver)) => Transfer {
            outcome,
            acknowledged: sender.next,
            sent: sender.sent,
            got: receiver.got.clone(),
            lost,
        },
        _ => unreachable!("the first node sends, the second receives"),
    }
}

/// A path that does everything that a path can do to a frame.
fn hostile(seed: u64) -> Path {
    let share = |stream: u64, most: u64| mix(seed, stream) % (most + 1);
    let text = format!(
        r#"[forward]
        delay = "{delay}ms"
        jitter = {{ pareto = "2ms" }}
        jitter_may_reorder = true
        loss = {{ burst = {{ loss = "{loss}%", length = 3 }} }}
        reorder = "{reorder}%"
        duplicate = "{duplicate}%"
        corrupt = "{corrupt}%"
        rate = "1mbit"
        queue = {{ codel = {{}} }}
        outages = [{{ start = "1s", duration = "300ms", every = "2s", frames = "drop" }}]
        [backward]
        delay = "{delay}ms"
        loss = "{loss}%"
        duplicate = "{duplicate}%"
        rate = {{ trace = [1, 3, 10, 40] }}"#,
        delay = share(1, 40),
        loss = share(2, 40),
        reorder = share(3, 20),
        duplicate = share(4, 20),
        corrupt = share(5, 20),
    );
    Profile::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}")).path
}

#[test]
fn a_transfer_over_any_lossy_path_completes_or_ends_at_the_bound() {
    let (blocks, until) = (30, Time::from_millis(20_000));
    let (mut complete, mut bound) = (0, 0);
    for seed in 0..400 {
        let run = transfer(&hostile(seed), seed, blocks, until);
        // Each block once and in order, and no acknowledgement without one.
        let expected: Vec<u32> = (0..run.got.len() as u32).collect();
        assert_eq!(run.got, expected, "seed {seed}");
        assert!(run.acknowledged as usize <= run.got.len(), "seed {seed}");
        match run.outcome.stopped {
            Stopped::Quiescent => {
                assert_eq!((run.acknowledged, run.got.len()), (blocks, 30), "seed {seed}");
                complete += 1;
            }
            Stopped::TimeBound => {
                assert!(run.acknowledged < blocks, "seed {seed}");
                bound += 1;
            }
            Stopped::EventBound => panic!("seed {seed}: {:?}", run.outcome),
        }
    }
    assert_eq!(complete + bound, 400);
    assert!(complete > 300, "only {complete} of 400 transfers completed");
}

#[test]
fn a_dead_link_ends_at_the_bound_of_time() {
    let path = Path::symmetric("10ms".parse().unwrap())
        .with_loss("100%".parse::<units::Probability>().unwrap());
    let until = Time::from_millis(1_000);
    let run = transfer(&path, 1, 5, until);
    // Sent at 0, 120, ... 960 ms.
    assert_eq!((run.outcome.stopped, run.outcome.at, run.sent), (Stopped::TimeBound, until, 9));
}

/// Loss in percent against round trip time, one seeded run of 50 blocks each: virtual seconds to
/// completion, frames sent, frames lost. A change to the model or to its random numbers shows here.
#[test]
fn loss_sweep() {
    let mut table = String::from("loss   rtt      seconds  sent  lost\n");
    for loss in ["0", "1", "10", "30"] {
        for rtt in ["2ms", "20ms", "100ms"] {
            let probability = format!("{loss}%").parse::<units::Probability>().unwrap();
            let path = Path::symmetric(rtt.parse().unwrap()).with_loss(probability);
            let run = transfer(&path, 42, 50, Time::from_millis(600_000));
            assert_eq!(run.outcome.stopped, Stopped::Quiescent);
            let seconds = run.outcome.at.as_secs_f64();
            let Transfer { sent, lost, .. } = run;
            // A round trip for each block, a timeout for each loss.
            let round_trips = path.round_trip().duration() * 50;
            assert_eq!(run.outcome.at, Time::ZERO + round_trips + TIMEOUT * lost as u32);
            table += &format!("{loss:>3}%   {rtt:<6} {seconds:>9.3} {sent:>5} {lost:>5}\n");
        }
    }
    println!("{table}");
    let expected = include_str!("loss_sweep.txt");
    assert_eq!(table, expected, "\n{table}");
}
