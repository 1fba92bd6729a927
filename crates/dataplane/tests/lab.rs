//! The engine on veth pairs between namespaces.

mod support;

use std::os::fd::AsFd;
use std::time::Duration;

use dataplane::{Chain, Error, Options, Stats, Threads, Wait};
use lab_test::{Test, TestResult, until};
use seclink::path::{FrameSize, Protection, Reach, Topology};
use seclink::plane::{Reason, Way};
use support::{Rig, Row, rig, whole};

/// How long the engine may take for what it has been given.
const PATIENCE: Duration = Duration::from_secs(20);
const FRAMES: u64 = 200;

fn blocking() -> Options {
    Options { wait: Wait::Block, ..Options::default() }
}

fn path(protection: Protection) -> Topology {
    Topology { protection, cipher: protection.usual_cipher(), ..Topology::default() }
}

/// Two nodes and a link between them.
fn short(protection: Protection) -> Topology {
    Topology { hops: 1, pseudowire: false, ..path(protection) }
}

/// Waits until the engine's counters fulfil a condition.
fn seen(rig: &Rig, what: &str, condition: impl Fn(&Stats) -> bool) -> TestResult<Stats> {
    until(what, PATIENCE, || {
        let stats = rig.engine.stats();
        Ok(condition(&stats).then_some(stats))
    })
}

/// Frames of two lengths both ways, byte by byte, and all counters.
fn carries(mut rig: Rig) -> TestResult {
    let lens = [100, 1000];
    for way in Way::ALL {
        let numbered = (0..FRAMES).map(|number| rig.frame(*way, number, lens[number as usize % 2]));
        let frames: Vec<_> = numbered.collect();
        // A few at a time: the rings are not to overflow.
        for some in frames.chunks(50) {
            rig.send(*way, some)?;
            let expected: Vec<_> = some.iter().map(|frame| rig.arriving(*way, frame)).collect();
            assert!(rig.expect(*way, some.len())? == expected, "{:?} {way}", rig.topology);
        }
    }
    let topology = rig.topology;
    let stats = rig.engine.stop()?;
    assert_eq!(stats.drops(), [], "{topology:?}");
    for node in &stats.nodes {
        for passed in [&node.forward, &node.backward] {
            assert_eq!((passed.taken, passed.given), (FRAMES, FRAMES));
        }
    }
    for link in 1..=usize::from(topology.hops) {
        let is_core = topology.pseudowire && link > 1 && link < usize::from(topology.hops);
        let sizes = lens.map(|len| FrameSize::of(&topology, len));
        let bytes: usize =
            sizes.iter().map(|size| if is_core { size.core } else { size.access }).sum();
        let both_ways = FRAMES * bytes as u64;
        assert_eq!(stats.on_link(link), Some((2 * FRAMES, both_ways)), "{topology:?} {link}");
    }
    assert!(stats.cpu > Duration::ZERO);
    Ok(())
}

fn each_protection_crosses_the_pseudowire() -> TestResult {
    for protection in Protection::ALL {
        carries(rig(path(*protection), |_| false, blocking())?)?;
    }
    Ok(())
}

fn macsec_on_every_hop_crosses_the_pseudowire() -> TestResult {
    let topology = Topology { reach: Reach::EveryHop, ..path(Protection::MacSec) };
    carries(rig(topology, |_| false, blocking())?)
}

fn nodes_hand_frames_on_in_one_thread() -> TestResult {
    for protection in Protection::ALL {
        carries(rig(path(*protection), |_| true, blocking())?)?;
    }
    Ok(())
}

fn links_of_both_kinds_are_mixed() -> TestResult {
    carries(rig(path(Protection::MacSec), |link| link % 2 == 0, blocking())?)
}

fn each_direction_has_its_thread() -> TestResult {
    let options = Options { threads: Threads::PerDirection, ..blocking() };
    let rig = rig(path(Protection::Esp), |_| false, options)?;
    assert_eq!(rig.engine.mode().threads, 2);
    carries(rig)
}

fn it_spins_where_it_may() -> TestResult {
    let rig = rig(short(Protection::MacSec), |_| true, Options::default())?;
    let mode = rig.engine.mode();
    assert_eq!(mode.spins, mode.cpus > 1);
    carries(rig)
}

fn what_nobody_sealed_is_dropped_and_counted() -> TestResult {
    let mut rig = rig(short(Protection::MacSec), |_| false, blocking())?;
    // What the second node hears, and who can send to it.
    let (mut tap, forger) = (rig.row.ring(1, 1)?, rig.row.ring(1, 0)?);
    let frame = rig.frame(Way::Forward, 1, 100);
    rig.send(Way::Forward, std::slice::from_ref(&frame))?;
    assert_eq!(rig.expect(Way::Forward, 1)?, std::slice::from_ref(&frame));
    let sealed = until("a sealed frame", PATIENCE, || {
        let heard = tap.receive().map(|frame| whole(&frame));
        Ok(heard.filter(|bytes| bytes[12..14] == [0x88, 0xe5]))
    })?;
    let mut forged = sealed.clone();
    // Its number is not yet taken, but it is not authentic.
    forged[19] = 9;
    for bytes in [&sealed, &forged, &sealed[..40].to_vec(), &frame] {
        packet::send(forger.as_fd(), bytes)?;
    }
    let stats = seen(&rig, "four drops", |stats| {
        stats.drops().iter().map(|(_, count)| count).sum::<u64>() == 4
    })?;
    let dropped = &stats.nodes[1].forward.drops;
    for reason in
        [Reason::MacsecLate, Reason::MacsecNotValid, Reason::MacsecBadTag, Reason::MacsecNoTag]
    {
        assert!(dropped.contains(&(reason, 1)), "{reason}: {dropped:?}");
    }
    // The real ones still come.
    let frame = rig.frame(Way::Forward, 2, 100);
    rig.send(Way::Forward, std::slice::from_ref(&frame))?;
    assert_eq!(rig.expect(Way::Forward, 1)?, [frame]);
    Ok(())
}

fn a_slow_gateway_delays_and_drops() -> TestResult {
    let gateway = Some("8mbit".parse()?);
    let topology = Topology { gateway, ..short(Protection::Esp) };
    let mut rig = rig(topology, |_| true, blocking())?;
    // A millisecond each, at most 64 of them at a time.
    let frames: Vec<_> = (0..300).map(|number| rig.frame(Way::Forward, number, 1000)).collect();
    rig.send(Way::Forward, &frames)?;
    let stats = seen(&rig, "all frames", |stats| stats.nodes[1].forward.taken == 300)?;
    let passed = &stats.nodes[1].forward;
    let full = passed.drops.iter().find(|(reason, _)| *reason == Reason::GatewayFull);
    let full = full.map_or(0, |(_, count)| *count);
    assert_eq!(passed.given + full, 300);
    assert!(passed.given >= 64 && full > 0, "{passed:?}");
    let came = rig.expect(Way::Forward, passed.given as usize)?;
    let numbers: Vec<_> = came.iter().map(|frame| frame[38..46].to_vec()).collect();
    assert!(numbers.is_sorted());
    Ok(())
}

fn a_frame_that_is_too_long_is_dropped_and_counted() -> TestResult {
    let options = Options { frame_bytes: 500, ..blocking() };
    let mut rig = rig(short(Protection::MacSec), |_| true, options)?;
    let [long, short] = [600, 400].map(|len| rig.frame(Way::Forward, 1, len));
    rig.send(Way::Forward, &[long, short.clone()])?;
    assert_eq!(rig.expect(Way::Forward, 1)?, [short]);
    let stats = rig.engine.stop()?;
    assert_eq!((stats.segments[0].taken, stats.segments[0].too_long), (2, 1));
    Ok(())
}

fn an_idle_engine_sleeps() -> TestResult {
    let rig = rig(short(Protection::Plain), |_| false, blocking())?;
    let before = rig.engine.stats().turns;
    std::thread::sleep(Duration::from_millis(300));
    let turns = rig.engine.stats().turns - before;
    // Ten a second of its own accord.
    assert!(turns <= 20, "{turns}");
    Ok(())
}

fn a_stopped_engine_forwards_no_more() -> TestResult {
    let mut rig = rig(short(Protection::Plain), |_| true, blocking())?;
    let frame = rig.frame(Way::Forward, 1, 100);
    rig.send(Way::Forward, std::slice::from_ref(&frame))?;
    rig.expect(Way::Forward, 1)?;
    let Rig { engine, mut testers, row, .. } = rig;
    assert_eq!(engine.stop()?.nodes[1].forward.given, 1);
    packet::send(testers[0].as_fd(), &frame)?;
    assert!(testers[1].receive().is_none());
    drop(row);
    Ok(())
}

fn a_removed_interface_does_not_end_the_engine() -> TestResult {
    let mut rig = rig(short(Protection::MacSec), |_| false, blocking())?;
    let (node, name) = (rig.row.nodes[3].clone(), rig.row.links[2].ends()[1].interface.clone());
    node.remove_device(&name)?;
    // The other direction's first port is gone; frames of this one come as far as the last node.
    let frame = rig.frame(Way::Forward, 1, 100);
    rig.send(Way::Forward, &[frame])?;
    let stats = seen(&rig, "a frame", |stats| stats.nodes[1].forward.given == 1)?;
    assert_eq!(stats.nodes[0].forward.given, 1);
    until("the refusal", PATIENCE, || {
        let refused =
            rig.engine.stats().segments.iter().map(|segment| segment.refused).sum::<u64>();
        Ok((refused == 1).then_some(()))
    })?;
    rig.testers.iter_mut().for_each(|ring| drop(ring.receive()));
    rig.engine.stop()?;
    Ok(())
}

fn a_row_with_too_few_links_is_refused() -> TestResult {
    let row = Row::new(2)?;
    let options = blocking();
    let topology = short(Protection::Plain);
    let plan = seclink::plane::Plan::numbered(&topology);
    let nodes = seclink::plane::nodes(&topology, &plan, support::key)?;
    let ends = [row.port(0, 1, &options)?, row.port(2, 0, &options)?];
    let error = dataplane::start(Chain { ends, nodes, links: vec![] }, &options).unwrap_err();
    assert!(matches!(error, Error::Chain { nodes: 2, links: 0 }), "{error}");
    Ok(())
}

macro_rules! tests {
    ($($name:ident),* $(,)?) => { [$(Test::inside(stringify!($name), $name)),*] };
}

fn main() -> std::process::ExitCode {
    lab_test::main(&tests![
        each_protection_crosses_the_pseudowire,
        macsec_on_every_hop_crosses_the_pseudowire,
        nodes_hand_frames_on_in_one_thread,
        links_of_both_kinds_are_mixed,
        each_direction_has_its_thread,
        it_spins_where_it_may,
        what_nobody_sealed_is_dropped_and_counted,
        a_slow_gateway_delays_and_drops,
        a_frame_that_is_too_long_is_dropped_and_counted,
        an_idle_engine_sleeps,
        a_stopped_engine_forwards_no_more,
        a_removed_interface_does_not_end_the_engine,
        a_row_with_too_few_links_is_refused,
    ])
}
