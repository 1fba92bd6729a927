//! The tester over links of the lab: counts are exact, whatever the machine does meanwhile.

use std::net::Ipv4Addr;
use std::time::Duration;

use lab::{Backend, Lab, Link, LinkOptions, Node};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use linkmodel::{LinkConfig, Path, Queue};
use tester::{Addressing, Outcome, Port, Searching, Tester, Trial, Waiting};
use traffic::{Load, Sizes};
use units::Probability;
use wire::ethernet::Address;

const LONGEST: usize = 2048;

/// Two nodes, a link and a tester on it.
struct Bench {
    tester: Tester,
    link: Link,
    _lab: Lab,
}

fn bench(backend: Backend, path: &Path, vlan: Option<u16>) -> TestResult<Bench> {
    let mut lab = Lab::new(sleeping(7))?;
    let (a, b) = (lab.add_node("a")?, lab.add_node("b")?);
    let options = LinkOptions { backend, mtu: 1600, ..LinkOptions::default() };
    let link = lab.connect_with(&a, &b, path, &options)?;
    let [left, right] = link.ends();
    let open = |node: &Node, own: &lab::End, other: &lab::End| -> TestResult<Port> {
        let addressing = Addressing {
            source: Address(own.mac),
            destination: Address(other.mac),
            vlan,
            from: Ipv4Addr::new(198, 18, 0, 1),
            to: Ipv4Addr::new(198, 19, 0, 1),
        };
        let interface = own.interface.clone();
        Ok(node.run(move || Port::open(&interface, addressing, LONGEST as u32))??)
    };
    let ports = [open(&a, left, right)?, open(&b, right, left)?];
    let tester = Tester::new(ports, LONGEST, Waiting::Block);
    Ok(Bench { tester, link, _lab: lab })
}

fn trial(load: Load, sizes: Sizes, frames: u32) -> Trial {
    let duration = Duration::from_secs(20);
    let patience = Duration::from_secs(5);
    Trial { load, sizes, duration, frames, both_ways: false, patience }
}

fn run(bench: &mut Bench, trial: &Trial) -> TestResult<Outcome> {
    Ok(bench.tester.run(trial, &|| false)?)
}

/// Every frame of every size comes, once and in order, tagged or not.
fn every_frame_comes() -> TestResult {
    for vlan in [None, Some(10)] {
        let mut bench = bench(Backend::Direct, &Path::default(), vlan)?;
        for sizes in [Sizes::Fixed(64), Sizes::Fixed(1000), Sizes::Fixed(1518), Sizes::Imix] {
            let outcome = run(&mut bench, &trial(Load::Frames(20_000), sizes, 2000))?;
            let flow = &outcome.flows[0];
            assert!(outcome.is_whole(), "{outcome:?}");
            assert_eq!((flow.sent, flow.received, flow.lost), (2000, 2000, 0));
            assert_eq!((flow.duplicates, flow.reordered, flow.foreign), (0, 0, 0));
            let bytes: usize = (0..2000).map(|number| sizes.of(number)).sum();
            assert_eq!(flow.sent_bytes, bytes as u64);
            let delays = flow.delays.ok_or("no delays")?;
            assert!(delays.least <= delays.median && delays.median <= delays.longest);
        }
    }
    Ok(())
}

/// Both ways at once are two streams that do not mix.
fn both_ways_are_apart() -> TestResult {
    let mut bench = bench(Backend::Direct, &Path::default(), None)?;
    let both = Trial { both_ways: true, ..trial(Load::Frames(10_000), Sizes::Fixed(200), 1000) };
    for _ in 0..2 {
        let outcome = run(&mut bench, &both)?;
        assert_eq!(outcome.flows.len(), 2);
        for flow in &outcome.flows {
            assert_eq!((flow.sent, flow.received, flow.foreign), (1000, 1000, 0));
        }
    }
    Ok(())
}

/// What the link loses is what the tester misses, frame for frame.
fn what_is_lost_is_counted() -> TestResult {
    let mut path = Path::default();
    path.forward.loss = Probability::new(0.1).ok_or("a probability")?.into();
    let mut bench = bench(Backend::Veth, &path, None)?;
    let outcome = run(&mut bench, &trial(Load::Frames(5_000), Sizes::Fixed(300), 2000))?;
    let stats = bench.link.stats()?;
    let flow = &outcome.flows[0];
    assert_eq!(flow.sent, stats.forward.link.received.frames);
    assert_eq!(flow.received, stats.forward.pump.given);
    assert_eq!(flow.lost, stats.forward.link.dropped_in_all().frames);
    assert!(flow.lost > 100, "{flow:?}");
    Ok(())
}

/// A search ends at most at what the link carries, and a burst at what its queue holds.
fn a_search_finds_what_a_link_bears() -> TestResult {
    let forward = LinkConfig {
        rate: Some("8mbit".parse::<units::Rate>()?.into()),
        queue: Queue::Packets(20),
        ..LinkConfig::default()
    };
    let path = Path { forward, ..Path::default() };
    let mut bench = bench(Backend::Veth, &path, None)?;
    let short = Trial {
        duration: Duration::from_millis(300),
        patience: Duration::from_millis(100),
        ..trial(Load::BackToBack, Sizes::Fixed(1000), 500)
    };
    let searching = Searching { highest: 16e6, precision: 0.05 };
    let found = tester::throughput(&mut bench.tester, &short, searching, &|| false)?;
    // 8 Mbit/s, and the queue's 20 packets over 0.3 s.
    assert!(found.bits_per_second <= 8e6 * 1.3, "{found:?}");
    assert!(!found.is_highest && found.trials > 3, "{found:?}");
    let burst = tester::longest_burst(&mut bench.tester, &short, &|| false)?;
    // At least what waits and what is sent; at most so much more as leaves while the burst comes in.
    assert!((20..500).contains(&burst), "{burst}");
    Ok(())
}

/// A wish to stop ends a trial that would last.
fn a_trial_is_stopped() -> TestResult {
    let mut bench = bench(Backend::Direct, &Path::default(), None)?;
    let outcome = bench.tester.run(&trial(Load::Frames(10), Sizes::Fixed(100), 200), &|| true)?;
    assert!(outcome.stopped && outcome.flows[0].sent < 200);
    let mut tester = bench.tester;
    assert!(tester.run(&trial(Load::Frames(10), Sizes::Fixed(4000), 1), &|| false).is_err());
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("every_frame_comes", every_frame_comes),
        Test::inside("both_ways_are_apart", both_ways_are_apart),
        Test::inside("what_is_lost_is_counted", what_is_lost_is_counted),
        Test::inside("a_search_finds_what_a_link_bears", a_search_finds_what_a_link_bears),
        Test::inside("a_trial_is_stopped", a_trial_is_stopped),
    ])
}
