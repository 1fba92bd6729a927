//! The pump over real veth pairs and TAP devices, in namespaces of the test's own.

mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lab_test::Test;
use linkmodel::{LinkConfig, Path};
use packet::{RxRing, SendBatch};
use pump::{Builder, Handle, LinkId, Options, Realtime, Timing};
use support::{Kind, Node, Result, frame, inside, number};

/// How long a frame may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

struct Rig {
    pump: Handle,
    link: LinkId,
    a: RxRing,
    b: RxRing,
    from_a: packet::PacketSocket,
    from_b: packet::PacketSocket,
    _namespaces: [std::fs::File; 2],
}

fn rig(kind: Kind, name: &str, path: &Path, options: Options) -> Result<Rig> {
    let a = Node::new(kind, &format!("{name}a"), options.offload)?;
    let b = Node::new(kind, &format!("{name}b"), options.offload)?;
    let (ring_a, ring_b) = (a.ring()?, b.ring()?);
    let mut builder = Builder::new(options);
    let link = builder.add_link(a.port, b.port, path, 7)?;
    Ok(Rig {
        pump: builder.start()?,
        link,
        a: ring_a,
        b: ring_b,
        from_a: a.socket,
        from_b: b.socket,
        _namespaces: [a.namespace, b.namespace],
    })
}

fn delay(delay: Duration) -> Path {
    Path::symmetric((delay * 2).into())
}

fn loss(all: bool) -> Path {
    let probability = if all { units::Probability::ONE } else { units::Probability::ZERO };
    Path::default().with_loss(probability)
}

/// Sends frames `first..first + count` of `len` bytes.
fn send(from: &packet::PacketSocket, first: u64, count: u64, len: usize) -> Result<()> {
    let frames: Vec<Vec<u8>> = (first..first + count).map(|n| frame(n, len)).collect();
    let mut batch = SendBatch::new(64);
    let mut rest = frames.as_slice();
    while !rest.is_empty() {
        let sent = batch.send(from.as_fd(), rest.iter().map(Vec::as_slice))?;
        rest = &rest[sent..];
    }
    Ok(())
}

/// Waits for `count` numbered frames and gives their numbers, in the order of arrival.
fn expect(ring: &mut RxRing, count: usize) -> Result<Vec<u64>> {
    let (mut numbers, deadline) = (Vec::new(), Instant::now() + PATIENCE);
    while numbers.len() < count {
        match ring.receive() {
            Some(frame) => numbers.extend(number(frame.bytes())),
            None if Instant::now() > deadline => {
                return Err(format!("only {} of {count} frames came", numbers.len()).into());
            }
            None => std::thread::yield_now(),
        }
    }
    Ok(numbers)
}

/// Waits until the pump's counters fulfil `condition`.
fn until(rig: &Rig, condition: impl Fn(&pump::Stats) -> bool) -> Result<pump::Stats> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stats = rig.pump.stats(rig.link)?;
        if condition(&stats) {
            return Ok(stats);
        }
        if Instant::now() > deadline {
            return Err(format!("the counters did not come to what they should: {stats:?}").into());
        }
        std::thread::yield_now();
    }
}

fn conservation(kind: Kind, name: &str) -> Result<()> {
    const CHUNK: u64 = 200;
    let mut rig = rig(kind, name, &Path::default(), Options::default())?;
    for turn in 0..50 {
        let first = turn * CHUNK;
        let len = [60, 64, 1000, 1514, 1900][turn as usize % 5];
        send(&rig.from_a, first, CHUNK, len)?;
        send(&rig.from_b, first, CHUNK, len)?;
        let want: Vec<u64> = (first..first + CHUNK).collect();
        assert_eq!(expect(&mut rig.b, want.len())?, want, "forward, frames of {len} bytes");
        assert_eq!(expect(&mut rig.a, want.len())?, want, "backward, frames of {len} bytes");
    }
    let stats = rig.pump.stats(rig.link)?;
    for direction in [stats.forward, stats.backward] {
        let pump = pump::PumpCounters { taken: 10_000, given: 10_000, ..Default::default() };
        assert_eq!(direction.pump, pump);
        assert_eq!(direction.link.received.frames, 10_000);
        assert_eq!(direction.link.delivered, direction.link.received);
        assert_eq!(direction.release_error.count, 10_000);
        assert_eq!(direction.in_flight, 0);
    }
    assert_eq!(rig.pump.stop()?.links.len(), 1);
    Ok(())
}

fn veth_carries_every_frame_once_and_in_order() -> Result<()> {
    conservation(Kind::Veth, "vc")
}

fn tap_carries_every_frame_once_and_in_order() -> Result<()> {
    conservation(Kind::Tap, "tc")
}

fn contents(kind: Kind, name: &str) -> Result<()> {
    let mut rig = rig(kind, name, &Path::default(), Options::default())?;
    let mut sent = frame(5, 700);
    for (place, byte) in sent.iter_mut().enumerate().skip(22) {
        *byte = (place * 31) as u8;
    }
    packet::send(rig.from_a.as_fd(), &sent)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(got) = rig.b.receive() {
            if number(got.bytes()) == Some(5) {
                assert_eq!(got.bytes(), sent);
                assert_eq!(got.original_len(), 700);
                return Ok(());
            }
        } else if Instant::now() > deadline {
            return Err("the frame did not come".into());
        }
    }
}

fn veth_leaves_bytes_alone() -> Result<()> {
    contents(Kind::Veth, "vb")
}

fn tap_leaves_bytes_alone() -> Result<()> {
    contents(Kind::Tap, "tb")
}

/// The kernel takes the outer tag out of a frame as it arrives; the pump must put it back.
fn a_vlan_tag_survives() -> Result<()> {
    let mut rig = rig(Kind::Veth, "vt", &Path::default(), Options::default())?;
    let mut tagged = frame(0, 100);
    tagged.splice(12..12, [0x81, 0x00, 0x20, 0x2a]);
    packet::send(rig.from_a.as_fd(), &tagged)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(got) = rig.b.receive() {
            let mut bytes = got.bytes().to_vec();
            if let Some((kind, tag)) = got.vlan() {
                bytes.splice(12..12, [kind.to_be_bytes(), tag.to_be_bytes()].concat());
            }
            if bytes[16..18] == support::ETHER_TYPE {
                assert_eq!(bytes, tagged);
                return Ok(());
            }
        } else if Instant::now() > deadline {
            return Err("the frame did not come".into());
        }
    }
}

/// By the kernel's stamps at both ends, in both timings: a frame may be late, never early.
fn no_frame_is_early() -> Result<()> {
    let wait = Duration::from_millis(3);
    for (timing, name) in [(Timing::Auto, "ea"), (Timing::Block, "eb")] {
        let options = Options { timing, ..Options::default() };
        let mut rig = rig(Kind::Veth, name, &delay(wait), options)?;
        rig.from_a.enable_timestamps()?;
        for n in 0..50 {
            send(&rig.from_a, n, 1, 100)?;
            let sent = rig.from_a.take_send_time()?.expect("veth stamps what it sends");
            let deadline = Instant::now() + PATIENCE;
            let arrived = loop {
                match rig.b.receive() {
                    Some(got) if number(got.bytes()) == Some(n) => break got.timestamp(),
                    None if Instant::now() > deadline => return Err("a frame did not come".into()),
                    _ => std::thread::yield_now(),
                }
            };
            let way = arrived.saturating_since(sent);
            // A microsecond for the conversion between the clocks.
            assert!(way + Duration::from_micros(1) >= wait, "{way:?} {timing:?}");
        }
        let error = rig.pump.stats(rig.link)?.forward.release_error;
        assert_eq!(error.count, 50);
    }
    Ok(())
}

fn a_path_can_be_changed_while_frames_flow() -> Result<()> {
    let mut rig = rig(Kind::Veth, "sp", &Path::default(), Options::default())?;
    send(&rig.from_a, 0, 100, 100)?;
    assert_eq!(expect(&mut rig.b, 100)?.len(), 100);
    rig.pump.set_path(rig.link, &loss(true))?;
    send(&rig.from_a, 100, 100, 100)?;
    let stats = until(&rig, |stats| stats.forward.pump.taken == 200)?;
    assert_eq!(stats.forward.link.dropped.loss.frames, 100);
    rig.pump.set_path(rig.link, &loss(false))?;
    send(&rig.from_a, 200, 100, 100)?;
    assert_eq!(expect(&mut rig.b, 100)?, (200..300).collect::<Vec<_>>());
    let mut wrong = Path::default();
    wrong.forward.delay = Duration::from_secs(100_000).into();
    assert!(matches!(rig.pump.set_path(rig.link, &wrong), Err(pump::Error::Config(_))));
    Ok(())
}

fn frames_without_a_buffer_are_dropped_and_counted() -> Result<()> {
    let options = Options { buffers: 4, ..Options::default() };
    let mut rig = rig(Kind::Veth, "tp", &delay(Duration::from_millis(300)), options)?;
    send(&rig.from_a, 0, 50, 100)?;
    assert_eq!(expect(&mut rig.b, 4)?, [0, 1, 2, 3]);
    let stats = until(&rig, |stats| stats.forward.pump.taken == 50)?;
    assert_eq!(stats.forward.pump.no_buffer, 46);
    assert_eq!(stats.forward.link.received.frames, 4);
    // The buffers have come back.
    send(&rig.from_a, 50, 4, 100)?;
    assert_eq!(expect(&mut rig.b, 4)?, [50, 51, 52, 53]);
    Ok(())
}

fn a_copy_without_a_buffer_is_counted() -> Result<()> {
    let options = Options { buffers: 1, ..Options::default() };
    let path = Path {
        forward: LinkConfig { duplicate: units::Probability::ONE, ..LinkConfig::default() },
        backward: LinkConfig::default(),
    };
    let mut rig = rig(Kind::Veth, "cp", &path, options)?;
    send(&rig.from_a, 0, 1, 100)?;
    assert_eq!(expect(&mut rig.b, 1)?, [0]);
    let stats = until(&rig, |stats| stats.forward.pump.no_buffer_for_copy == 1)?;
    assert_eq!(stats.forward.link.delivered.frames, 1);
    Ok(())
}

fn too_long(kind: Kind, name: &str) -> Result<()> {
    let mut rig = rig(kind, name, &Path::default(), Options::default())?;
    send(&rig.from_a, 0, 3, 5000)?;
    send(&rig.from_a, 3, 1, 1900)?;
    assert_eq!(expect(&mut rig.b, 1)?, [3]);
    let stats = rig.pump.stats(rig.link)?;
    assert_eq!((stats.forward.pump.taken, stats.forward.pump.too_long), (4, 3));
    Ok(())
}

fn veth_drops_and_counts_frames_that_are_too_long() -> Result<()> {
    too_long(Kind::Veth, "vl")
}

fn tap_drops_and_counts_frames_that_are_too_long() -> Result<()> {
    too_long(Kind::Tap, "tl")
}

/// A pump that was told to use one processor of one must not spin, whatever it is asked for.
fn on_one_processor_nothing_spins() -> Result<()> {
    let work = || -> Result<()> {
        packet::thread::pin(packet::thread::allowed_cpus()[0])?;
        let options = Options { timing: Timing::Spin, ..Options::default() };
        let mut rig = rig(Kind::Veth, "op", &delay(Duration::from_millis(1)), options)?;
        assert!(!rig.pump.mode().spins);
        assert_eq!(rig.pump.mode().cpus, 1);
        for n in 0..20 {
            send(&rig.from_a, n, 1, 100)?;
            assert_eq!(expect(&mut rig.b, 1)?, [n]);
        }
        let stats = rig.pump.stats(rig.link)?;
        assert_eq!(stats.thread.spun, Duration::ZERO);
        Ok(())
    };
    // On a thread of its own, whose affinity does not outlive it.
    std::thread::scope(|scope| {
        scope.spawn(work).join().map_err(|_| "the test panicked; see above")?
    })
}

fn without_frames_the_pump_sleeps() -> Result<()> {
    let rig = rig(Kind::Veth, "id", &Path::default(), Options::default())?;
    let before = rig.pump.thread_stats()?;
    std::thread::sleep(Duration::from_millis(100));
    let after = rig.pump.thread_stats()?;
    // A turn or two for each question.
    assert!(after.turns - before.turns <= 8, "{} turns", after.turns - before.turns);
    Ok(())
}

fn a_removed_interface_ends_its_link_but_not_the_pump() -> Result<()> {
    let one = rig(Kind::Veth, "rm", &Path::default(), Options::default())?;
    support::remove("h-rma")?;
    let before = one.pump.thread_stats()?;
    std::thread::sleep(Duration::from_millis(50));
    let after = one.pump.thread_stats()?;
    assert!(after.turns - before.turns <= 8, "{} turns", after.turns - before.turns);
    // The other port still takes frames; what it cannot give on it counts.
    send(&one.from_b, 0, 10, 100)?;
    let stats = until(&one, |stats| stats.backward.pump.taken == 10)?;
    assert_eq!(stats.backward.pump.refused, 10);
    // Another link of the same pump works.
    let (a, b) = (Node::new(Kind::Veth, "rm2a", false)?, Node::new(Kind::Veth, "rm2b", false)?);
    let mut ring = b.ring()?;
    one.pump.add_link(a.port, b.port, &Path::default(), 1)?;
    send(&a.socket, 0, 10, 100)?;
    assert_eq!(expect(&mut ring, 10)?.len(), 10);
    Ok(())
}

fn links_come_and_go_while_the_pump_runs() -> Result<()> {
    let mut one = rig(Kind::Veth, "ln", &Path::default(), Options::default())?;
    let (a, b) = (Node::new(Kind::Veth, "ln2a", false)?, Node::new(Kind::Veth, "ln2b", false)?);
    let mut ring = b.ring()?;
    let second = one.pump.add_link(a.port, b.port, &delay(Duration::from_millis(1)), 1)?;
    send(&a.socket, 0, 10, 100)?;
    assert_eq!(expect(&mut ring, 10)?.len(), 10);
    assert_eq!(one.pump.remove_link(second)?.forward.pump.given, 10);
    assert!(matches!(one.pump.stats(second), Err(pump::Error::NoSuchLink)));
    send(&one.from_a, 0, 10, 100)?;
    assert_eq!(expect(&mut one.b, 10)?.len(), 10);
    let end = one.pump.stop()?;
    let given: Vec<u64> = end.links.iter().map(|link| link.forward.pump.given).collect();
    assert_eq!(given, [10, 10]);
    Ok(())
}

fn a_dropped_pump_forwards_no_more() -> Result<()> {
    let mut rig = rig(Kind::Veth, "dr", &Path::default(), Options::default())?;
    send(&rig.from_a, 0, 1, 100)?;
    assert_eq!(expect(&mut rig.b, 1)?, [0]);
    drop(rig.pump);
    send(&rig.from_a, 1, 1, 100)?;
    assert!(rig.b.receive().is_none());
    Ok(())
}

/// TCP with the nodes' offloads on: whole super-segments cross the link, and the data is right.
fn offload(kind: Kind, name: &str) -> Result<()> {
    const BYTES: usize = 8 << 20;
    let options = Options { realtime: Realtime::Off, ..Options::offload() };
    let (a, b) =
        (Node::new(kind, &format!("{name}a"), true)?, Node::new(kind, &format!("{name}b"), true)?);
    let (client, server) = (Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2));
    a.address(client)?;
    b.address(server)?;
    let mut builder = Builder::new(options);
    let link = builder.add_link(a.port, b.port, &Path::default(), 1)?;
    let pump = builder.start()?;
    let listener = inside(&b.namespace, || Ok(TcpListener::bind((server, 4000))?))?;
    let address = SocketAddr::from((server, 4000));
    let received = std::thread::scope(|scope| -> Result<Vec<u8>> {
        let receiver = scope.spawn(move || -> Result<Vec<u8>> {
            let mut data = Vec::with_capacity(BYTES);
            listener.accept()?.0.read_to_end(&mut data)?;
            Ok(data)
        });
        let mut stream =
            inside(&a.namespace, || Ok(TcpStream::connect_timeout(&address, PATIENCE)?))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&pattern(BYTES))?;
        drop(stream);
        receiver.join().map_err(|_| "the receiver panicked")?
    })?;
    assert!(received == pattern(BYTES), "the data has changed");
    let stats = pump.stats(link)?;
    let mean = stats.forward.link.received.bytes / stats.forward.link.received.frames.max(1);
    assert!(mean > 9014, "no super-segments: {mean} bytes a frame");
    Ok(())
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place % 251) as u8).collect()
}

fn veth_carries_super_segments_in_offload_mode() -> Result<()> {
    offload(Kind::Veth, "vo")
}

fn tap_carries_super_segments_in_offload_mode() -> Result<()> {
    offload(Kind::Tap, "to")
}

fn a_tap_device_of_the_wrong_mode_is_refused() -> Result<()> {
    let node = Node::new(Kind::Tap, "wm", true)?;
    let other = Node::new(Kind::Veth, "wn", false)?;
    let mut builder = Builder::new(Options::default());
    let error = builder.add_link(node.port, other.port, &Path::default(), 1).unwrap_err();
    assert!(fault::Explain::in_one_text(&error).contains("packet::Tap::create"), "{error}");
    Ok(())
}

/// Belief: `ethtool -K tx off` on a veth turns off all that depends on it.
fn offloads_can_be_turned_off() -> Result<()> {
    let node = Node::new(Kind::Veth, "of", true)?;
    inside(&node.namespace, || {
        assert!(packet::offload::get(&node.interface)?.tx_checksum);
        packet::offload::disable(&node.interface)?;
        assert_eq!(packet::offload::get(&node.interface)?, packet::offload::Offloads::NONE);
        Ok(())
    })
}

fn calibrated(kind: Kind, name: &str) -> Result<()> {
    let (a, b) = (
        Node::new(kind, &format!("{name}a"), false)?,
        Node::new(kind, &format!("{name}b"), false)?,
    );
    let rig = pump::CalibrationRig {
        backend: "test".to_owned(),
        a: a.port,
        b: b.port,
        far_a: a.socket,
        far_b: b.socket,
    };
    let options = pump::CalibrationOptions {
        frames: 20,
        capacity_time: Duration::from_millis(50),
        ..pump::CalibrationOptions::default()
    };
    let mut parts = Vec::new();
    let result = pump::calibrate(rig, &options, |part, _| {
        parts.push(part);
        ControlFlow::Continue(())
    })?;
    assert_eq!((parts.first(), parts.last(), parts.len()), (Some(&0.0), Some(&1.0), 7));
    for check in &result.delays {
        assert_eq!((check.release_error.count, check.one_way_error.count), (20, 20));
        assert!(check.one_way_error.min_ns >= -1_000, "{check:?}");
    }
    assert_eq!(result.model_difference.count, 20);
    assert!(result.model_difference.min_ns >= -1_000, "{:?}", result.model_difference);
    // One size alone may find the processors taken for all of its time.
    assert!(result.capacity.iter().any(|it| it.frames_per_second > 0.0), "{result:?}");
    let as_offered = |it: &pump::Capacity| it.frames_per_second <= it.offered_per_second;
    assert!(result.capacity.iter().all(as_offered), "{result:?}");
    Ok(())
}

fn calibration_over_veth_measures_what_it_says() -> Result<()> {
    calibrated(Kind::Veth, "vk")
}

fn calibration_over_tap_measures_what_it_says() -> Result<()> {
    calibrated(Kind::Tap, "tk")
}

/// A frame over two links, one behind the other: the second's port takes what the first gives.
fn a_bridge_of_two_links_carries_frames_on() -> Result<()> {
    let (a, b) = (Node::new(Kind::Veth, "b1", false)?, Node::new(Kind::Veth, "b4", false)?);
    let mut ring = b.ring()?;
    let (left, right) = support::pair("b2", "b3")?;
    let mut builder = Builder::new(Options::default());
    let path = delay(Duration::from_millis(1));
    builder.add_link(a.port, left, &path, 1)?;
    builder.add_link(right, b.port, &path, 2)?;
    let _pump = builder.start()?;
    send(&a.socket, 0, 100, 100)?;
    assert_eq!(expect(&mut ring, 100)?, (0..100).collect::<Vec<_>>());
    Ok(())
}

/// A SYN with data is stripped of it one way and dropped the other way; the frames between pass.
fn a_middlebox_bears_no_data_on_a_syn() -> Result<()> {
    use linkmodel::Middlebox::{DropSynData, StripSynData};
    let mut path = Path::default().with_middlebox(StripSynData);
    path.backward.middlebox = DropSynData;
    let mut rig = rig(Kind::Veth, "mb", &path, Options::default())?;
    let loaded = support::syn(b"a ClientHello")?;
    packet::send(rig.from_a.as_fd(), &loaded)?;
    packet::send(rig.from_b.as_fd(), &loaded)?;
    send(&rig.from_a, 1, 1, 100)?;
    send(&rig.from_b, 2, 1, 100)?;
    let (bare, mut came) = (support::syn(b"")?, false);
    let deadline = Instant::now() + PATIENCE;
    while !came && Instant::now() < deadline {
        came = rig.b.receive().is_some_and(|frame| frame.bytes() == bare);
    }
    assert!(came, "the bare SYN did not come");
    assert_eq!(expect(&mut rig.b, 1)?, [1]);
    assert_eq!(expect(&mut rig.a, 1)?, [2]);
    let stats = rig.pump.stats(rig.link)?;
    assert_eq!((stats.forward.link.stripped.frames, stats.forward.link.stripped.bytes), (1, 13));
    assert_eq!(stats.backward.link.dropped.middlebox.frames, 1);
    assert_eq!(stats.backward.link.dropped_in_all().bytes, loaded.len() as u64);
    Ok(())
}

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        [$(Test::new(stringify!($name), $name).prepared(support::enter)),*]
    };
}

fn main() -> std::process::ExitCode {
    let tests = tests![
        veth_carries_every_frame_once_and_in_order,
        tap_carries_every_frame_once_and_in_order,
        veth_leaves_bytes_alone,
        tap_leaves_bytes_alone,
        a_vlan_tag_survives,
        no_frame_is_early,
        a_path_can_be_changed_while_frames_flow,
        frames_without_a_buffer_are_dropped_and_counted,
        a_copy_without_a_buffer_is_counted,
        veth_drops_and_counts_frames_that_are_too_long,
        tap_drops_and_counts_frames_that_are_too_long,
        on_one_processor_nothing_spins,
        without_frames_the_pump_sleeps,
        a_removed_interface_ends_its_link_but_not_the_pump,
        links_come_and_go_while_the_pump_runs,
        a_dropped_pump_forwards_no_more,
        veth_carries_super_segments_in_offload_mode,
        tap_carries_super_segments_in_offload_mode,
        a_tap_device_of_the_wrong_mode_is_refused,
        offloads_can_be_turned_off,
        calibration_over_veth_measures_what_it_says,
        calibration_over_tap_measures_what_it_says,
        a_bridge_of_two_links_carries_frames_on,
        a_middlebox_bears_no_data_on_a_syn,
    ];
    lab_test::main(&tests)
}
