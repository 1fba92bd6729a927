//! Exact runs of small nodes, as transcripts.

use linkmodel::{LinkConfig, Path};
use sim::{Limits, Node, NodeId, Sim, Stopped};
use units::Time;

/// A frame and the interface to send it on.
type Sent = (usize, Vec<u8>);
type OnFrame = fn(interface: usize, frame: Vec<u8>) -> Option<Sent>;

/// A node for the tests: what it does with a frame is a function, what it sends a list.
struct Script {
    on_frame: OnFrame,
    outbox: Vec<Sent>,
    timeout: Option<Time>,
    log: Vec<String>,
}

impl Script {
    fn new(on_frame: OnFrame) -> Self {
        Script { on_frame, outbox: Vec::new(), timeout: None, log: Vec::new() }
    }
}

impl Node for Script {
    type Frame = Vec<u8>;

    fn handle_frame(&mut self, now: Time, interface: usize, frame: Vec<u8>) {
        self.log.push(format!("{now} {frame:?}"));
        self.outbox.extend((self.on_frame)(interface, frame));
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Sent> {
        (!self.outbox.is_empty()).then(|| self.outbox.remove(0))
    }

    fn next_timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn handle_timeout(&mut self, now: Time) {
        self.log.push(format!("{now} timeout"));
        self.timeout = None;
    }
}

fn silent(_: usize, _: Vec<u8>) -> Option<Sent> {
    None
}

/// Sends back a frame that is one less.
fn ping_pong(interface: usize, frame: Vec<u8>) -> Option<Sent> {
    let left = frame[0].checked_sub(1)?;
    Some((interface, vec![left; frame.len()]))
}

/// Sends a frame on by the other interface.
fn forward(interface: usize, frame: Vec<u8>) -> Option<Sent> {
    Some((1 - interface, frame))
}

fn link(delay: &str, rate: Option<&str>) -> LinkConfig {
    let rate = rate.map(|rate| rate.parse::<units::Rate>().unwrap().into());
    LinkConfig { delay: delay.parse().unwrap(), rate, ..LinkConfig::default() }
}

fn limits(millis: u64) -> Limits {
    Limits { until: Time::from_millis(millis), events: 10_000 }
}

fn transcript(sim: &Sim<Script>) -> String {
    assert_eq!(sim.captured().missed(), 0);
    sim.captured().frames().iter().map(|captured| format!("{captured}\n")).collect()
}

#[test]
fn ping_pong_over_an_asymmetric_link() {
    let mut sim = Sim::new(1);
    let client = sim.add_node(|_| Script::new(ping_pong));
    let server = sim.add_node(|_| Script::new(ping_pong));
    // 100 bytes take 0.8 ms at 1 Mbit/s.
    let path = Path { forward: link("10ms", Some("1mbit")), backward: link("30ms", None) };
    let connection = sim.connect(client, server, &path).unwrap();
    sim.capture(100);
    sim.node_mut(client).outbox.push((0, vec![3; 100]));
    let outcome = sim.run(limits(1000));
    assert_eq!(outcome.stopped, Stopped::Quiescent);
    assert_eq!(outcome.at, Time::from_micros(81_600));
    let log = |id: NodeId| sim.node(id).log.iter().map(|line| line[..15].to_owned()).collect();
    let (at_client, at_server): (Vec<String>, Vec<String>) = (log(client), log(server));
    assert_eq!(at_server, ["0.010800000 s [", "0.051600000 s ["]);
    assert_eq!(at_client, ["0.040800000 s [", "0.081600000 s ["]);
    let (forward, backward) = sim.counters(connection.link);
    assert_eq!((forward.delivered.frames, backward.delivered.bytes), (2, 200));
}

#[test]
fn a_chain_of_three_nodes() {
    let mut sim = Sim::new(1);
    let ends = [(); 2].map(|()| sim.add_node(|_| Script::new(silent)));
    let router = sim.add_node(|_| Script::new(forward));
    let left = Path { forward: link("1ms", None), backward: link("2ms", None) };
    let right = Path { forward: link("5ms", None), backward: link("7ms", None) };
    sim.connect(ends[0], router, &left).unwrap();
    sim.connect(router, ends[1], &right).unwrap();
    sim.capture(100);
    sim.node_mut(ends[0]).outbox.push((0, vec![1]));
    sim.node_mut(ends[1]).outbox.push((0, vec![2]));
    assert_eq!(sim.run(limits(1000)).stopped, Stopped::Quiescent);
    assert_eq!(
        transcript(&sim),
        "0.000000000 s node 0.0 sent [1]\n\
         0.000000000 s node 1.0 sent [2]\n\
         0.001000000 s node 2.0 received [1]\n\
         0.001000000 s node 2.1 sent [1]\n\
         0.006000000 s node 1.0 received [1]\n\
         0.007000000 s node 2.1 received [2]\n\
         0.007000000 s node 2.0 sent [2]\n\
         0.009000000 s node 0.0 received [2]\n"
    );
}

#[test]
fn one_instant_goes_by_node_then_by_frame_then_timeout() {
    let mut sim = Sim::new(1);
    let sink = sim.add_node(|_| Script::new(silent));
    let sources = [(); 2].map(|()| sim.add_node(|_| Script::new(silent)));
    // The link made first carries the frame that is sent later, by the node with the higher number.
    for source in [sources[1], sources[0]] {
        let path = Path { forward: link("1ms", None), backward: link("1ms", None) };
        sim.connect(source, sink, &path).unwrap();
    }
    for (number, source) in sources.into_iter().enumerate() {
        sim.node_mut(source).outbox.push((0, vec![number as u8]));
        sim.node_mut(source).timeout = Some(Time::from_millis(1));
    }
    sim.node_mut(sink).timeout = Some(Time::from_millis(1));
    sim.run(limits(10));
    let expected = ["0.001000000 s [0]", "0.001000000 s [1]", "0.001000000 s timeout"];
    assert_eq!(sim.node(sink).log, expected);
}

#[test]
fn a_loop_without_delay_ends_at_the_bound_of_events() {
    let mut sim = Sim::new(1);
    let nodes = [(); 2].map(|()| sim.add_node(|_| Script::new(|at, frame| Some((at, frame)))));
    sim.connect(nodes[0], nodes[1], &Path::default()).unwrap();
    sim.node_mut(nodes[0]).outbox.push((0, vec![0]));
    let outcome = sim.run(Limits { until: Time::MAX, events: 999 });
    assert_eq!((outcome.stopped, outcome.events), (Stopped::EventBound, 999));
    assert_eq!(outcome.at, Time::ZERO);
    // It goes on from there, and the frame is still there.
    let outcome = sim.run(Limits { until: Time::MAX, events: 10 });
    assert_eq!((outcome.stopped, outcome.events), (Stopped::EventBound, 10));
}

#[test]
fn a_run_in_pieces_is_the_run_in_one() {
    let whole = |pieces: &[Limits]| {
        let mut sim = Sim::new(1);
        let nodes = [(); 2].map(|()| sim.add_node(|_| Script::new(ping_pong)));
        let text = "delay = \"1ms\"\njitter = { uniform = \"5ms\" }\nduplicate = \"20%\"";
        let path = Path { forward: link("3ms", None), backward: toml_like(text) };
        sim.connect(nodes[0], nodes[1], &path).unwrap();
        sim.capture(10_000);
        sim.node_mut(nodes[0]).outbox.push((0, vec![20]));
        for limits in pieces {
            sim.run(*limits);
        }
        transcript(&sim)
    };
    let bound = |millis, events| Limits { until: Time::from_millis(millis), events };
    let in_one = whole(&[bound(10_000, 100_000)]);
    let pieces: Vec<Limits> =
        (0..2000).map(|at| bound(at, 7)).chain([bound(10_000, 100_000)]).collect();
    assert_eq!(whole(&pieces), in_one);
    assert!(in_one.lines().count() > 40);
}

/// The fields of a link that the tests use, without a TOML library.
fn toml_like(text: &str) -> LinkConfig {
    linkmodel::Profile::parse(&format!("[forward]\n{text}")).unwrap().path.forward
}

#[test]
fn a_link_changes_while_frames_are_under_way() {
    let mut sim = Sim::new(1);
    let nodes = [(); 2].map(|()| sim.add_node(|_| Script::new(silent)));
    let slow = Path { forward: link("10ms", None), ..Path::default() };
    let connection = sim.connect(nodes[0], nodes[1], &slow).unwrap();
    sim.node_mut(nodes[0]).outbox.push((0, vec![1]));
    assert_eq!(sim.run(limits(4)).stopped, Stopped::TimeBound);
    assert_eq!(sim.now(), Time::from_millis(4));
    let fast = Path { forward: link("9ms", None), ..Path::default() };
    sim.set_path(connection.link, &fast).unwrap();
    sim.node_mut(nodes[0]).outbox.push((0, vec![2]));
    sim.run(limits(100));
    assert_eq!(sim.node(nodes[1]).log, ["0.010000000 s [1]", "0.013000000 s [2]"]);
}

#[test]
fn a_frame_to_nowhere_and_a_capture_that_is_full_are_seen() {
    let mut sim = Sim::new(1);
    let node = sim.add_node(|_| Script::new(silent));
    sim.capture(1);
    sim.node_mut(node).outbox.extend([(3, vec![1]), (4, vec![2])]);
    sim.run(limits(1));
    assert_eq!(sim.captured().missed(), 1);
    let lines: Vec<String> = sim.captured().frames().iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["0.000000000 s node 0.3 sent to nowhere [1]"]);
}

#[test]
fn seeds_differ_by_node_and_simulation() {
    let seeds_of = |seed| {
        let (mut sim, mut seeds) = (Sim::<Script>::new(seed), Vec::new());
        for _ in 0..3 {
            sim.add_node(|seed| {
                seeds.push(seed);
                Script::new(silent)
            });
        }
        seeds
    };
    let mut all = [seeds_of(1), seeds_of(2)].concat();
    assert_eq!(seeds_of(1), all[..3]);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}
