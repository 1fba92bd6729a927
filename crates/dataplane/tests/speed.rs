//! How fast the engine is, and what it adds to a frame's way: `cargo bench -p dataplane [-- OPTIONS]`.
//!
//! Throughput: one node seals or opens frames that come as fast as the source can send, the engine on one processor,
//! source and sink on another, null and the protections in turns. Beside them the cipher alone, and what would be
//! left of the null engine's rate with it: 1 / (1/null + 1/cipher). Delay: a frame a millisecond through two nodes in
//! one spinning thread, without protection and with.
//!
//! Without `--bench` (as `cargo test --benches` runs it): shortened. `--rounds N`: A B A B, N rounds. `--millis N`:
//! each. `--bytes N`: length of the tester's frames. `--cpu N`: the engine's processor; the tester gets another.
//! `--throughput`, `--delay`: this part alone. `--boringtun PROGRAM`, `--charon PROGRAM`: beside the engine's two
//! nodes on one processor, pairs of these, in turns: boringtun-cli, and strongSwan's with kernel-libipsec.

mod peers;
mod support;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use dataplane::{Chain, Handle, Link, Options, Wait};
use lab_test::TestResult;
use packet::{RxRing, SendBatch, clock};
use seclink::Slot;
use seclink::esp::{Inbound, Parameters, Suite};
use seclink::macsec::{
    Association, Confidentiality, Receive, ReceiveAssociation, Suite as MacSecSuite, Validation,
};
use seclink::path::{Cipher, Protection, Topology};
use seclink::plane::{self, HEADROOM, Hop, KeyId, Node, Opener, Plan, TAILROOM, Way};
use seclink::underlay::{Station, Underlay};
use support::Row;
use units::Time;
use wire::macsec::Sci;

/// Frames that the source sends by one system call.
const BURST: usize = 64;

struct Arguments {
    rounds: u32,
    time: Duration,
    bytes: usize,
    cpu: Option<usize>,
    throughput: bool,
    delay: bool,
    boringtun: Option<PathBuf>,
    charon: Option<PathBuf>,
}

fn arguments() -> TestResult<Arguments> {
    let (mut rounds, mut millis, mut bytes, mut cpu, mut short) = (None, None, 1000, None, true);
    let (mut throughput, mut delay) = (false, false);
    let (mut boringtun, mut charon) = (None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut text = || words.next().unwrap_or_default();
        let mut number = || -> TestResult<u32> { Ok(text().parse::<u32>()?) };
        match word.as_str() {
            "--rounds" => rounds = Some(number()?),
            "--millis" => millis = Some(number()?),
            "--bytes" => bytes = number()? as usize,
            "--cpu" => cpu = Some(number()? as usize),
            "--throughput" => throughput = true,
            "--delay" => delay = true,
            "--boringtun" => boringtun = Some(PathBuf::from(text())),
            "--charon" => charon = Some(PathBuf::from(text())),
            // What `cargo bench` adds, and `cargo test --benches` does not.
            "--bench" => short = false,
            "--test" => {}
            other if other.starts_with("--") => {
                return Err(format!("unknown option {other}").into());
            }
            _ => {}
        }
    }
    let all = !throughput && !delay && boringtun.is_none() && charon.is_none();
    let millis = millis.unwrap_or(if short { 20 } else { 1000 });
    Ok(Arguments {
        rounds: rounds.unwrap_or(if short { 1 } else { 5 }),
        time: Duration::from_millis(millis.into()),
        bytes,
        cpu,
        throughput: throughput || all,
        delay: delay || all,
        boringtun,
        charon,
    })
}

fn main() -> TestResult {
    let arguments = arguments()?;
    if let Err(error) = lab::enter(&lab::EnterOptions::new()) {
        println!("SKIPPED: {error}");
        return Ok(());
    }
    let cpus = packet::thread::allowed_cpus();
    let engine = arguments.cpu.or(cpus.first().copied());
    let tester = cpus.iter().copied().find(|cpu| Some(*cpu) != engine);
    let options = Options { cpus: [engine, engine], ..Options::default() };
    if arguments.throughput {
        throughput(&arguments, &options, tester)?;
    }
    if arguments.delay {
        delay(&arguments, &options, tester)?;
    }
    if arguments.boringtun.is_some() || arguments.charon.is_some() {
        peers::beside(&arguments, &options, tester)?;
    }
    Ok(())
}

/// A path of one hop, whose first node seals and whose second opens.
fn path(protection: Protection) -> Topology {
    let cipher = if protection == Protection::Plain { Cipher::Null } else { Cipher::AesGcm128 };
    Topology { protection, cipher, hops: 1, pseudowire: false, ..Topology::default() }
}

fn hops(protection: Protection) -> TestResult<[Hop; 2]> {
    let topology = path(protection);
    let nodes = plane::nodes(&topology, &Plan::numbered(&topology), support::key)?;
    let mut hops = nodes.into_iter().map(|node| node.forward);
    match (hops.next(), hops.next()) {
        (Some(first), Some(second)) => Ok([first, second]),
        _ => Err("a path of one hop has two nodes".into()),
    }
}

/// A hop that opens the same frame again and again: without replay protection.
fn opening(protection: Protection) -> TestResult<Hop> {
    let plan = Plan::numbered(&path(protection));
    let [left, right] = plan.links[0];
    let id = |len| KeyId { link: 0, way: Way::Forward, len };
    if protection == Protection::MacSec {
        let sci = Sci::new(left.mac, Sci::END_STATION_PORT);
        let suite = MacSecSuite::GcmAes128;
        let key = support::key(id(suite.key_len()));
        let confidentiality = Confidentiality::All;
        let association = Association { number: 0, suite, key, extended: None, confidentiality };
        let mut receive = Receive::new(Validation::Strict, None);
        receive.install(sci, ReceiveAssociation::new(association, sci)?);
        return Ok(Hop::opening(Opener::MacSec(Box::new(receive)), None));
    }
    let suite = Suite::AesGcm128;
    let key = support::key(id(suite.key_material()));
    let inbound = Inbound::new(Parameters { spi: 0x1001, suite, key, extended: false }, None)?;
    let [near, far] = plan.through;
    let own = Station { mac: right.mac, ip: far };
    let underlay = Underlay::between(own, Station { mac: left.mac, ip: near });
    let opener = Opener::Esp { inbound: Box::new(inbound), underlay };
    Ok(Hop::opening(opener, Some(plan.lans[1])))
}

/// What a hop makes of a frame.
fn worked(hop: &mut Hop, frame: &[u8]) -> TestResult<Vec<u8>> {
    let (before, behind) = (usize::from(HEADROOM), usize::from(TAILROOM));
    let mut buffer = [&vec![0; before][..], frame, &vec![0; behind]].concat();
    let mut slot = Slot::new(&mut buffer, before..before + frame.len()).ok_or("no room")?;
    hop.handle(Time::ZERO, &mut slot).map_err(|reason| reason.to_string())?;
    Ok(slot.frame().to_vec())
}

/// What is measured: its name, what the node does, and the frame that comes to it.
struct Case {
    name: &'static str,
    hop: fn() -> TestResult<Hop>,
    protection: Protection,
    sealed: bool,
}

const CASES: [Case; 5] = [
    Case { name: "null", hop: || Ok(Hop::wire()), protection: Protection::Plain, sealed: false },
    Case {
        name: "macsec seal",
        hop: || hops(Protection::MacSec).map(|[first, _]| first),
        protection: Protection::MacSec,
        sealed: false,
    },
    Case {
        name: "macsec open",
        hop: || opening(Protection::MacSec),
        protection: Protection::MacSec,
        sealed: true,
    },
    Case {
        name: "esp seal",
        hop: || hops(Protection::Esp).map(|[first, _]| first),
        protection: Protection::Esp,
        sealed: false,
    },
    Case {
        name: "esp open",
        hop: || opening(Protection::Esp),
        protection: Protection::Esp,
        sealed: true,
    },
];

impl Case {
    fn frame(&self, bytes: usize) -> TestResult<Vec<u8>> {
        let topology = path(self.protection);
        let plan = Plan::numbered(&topology);
        let frame = support::frame(&topology, &plan, Way::Forward, 1, bytes);
        if !self.sealed {
            return Ok(frame);
        }
        let [mut first, _] = hops(self.protection)?;
        worked(&mut first, &frame)
    }
}

fn start(row: &Row, hops: Vec<Hop>, options: &Options) -> TestResult<Handle> {
    let last = row.links.len() - 1;
    let ends = [row.port(0, 1, options)?, row.port(last, 0, options)?];
    let links = hops.iter().skip(1).map(|_| Link::InThread).collect();
    let node = |forward| Node { forward, backward: Hop::wire() };
    let nodes = hops.into_iter().map(node).collect();
    Ok(dataplane::start(Chain { ends, nodes, links }, options)?)
}

/// Figures of one run.
#[derive(Clone, Copy)]
struct Run {
    frames_per_second: f64,
    cpu_ns: f64,
    /// Of the CPU time, the share that the kernel spent: sending, and receiving at the far end.
    kernel: f64,
    /// System calls to send: few where the engine has more to do than it can.
    calls: f64,
    arrived: f64,
}

fn throughput(arguments: &Arguments, options: &Options, tester: Option<usize>) -> TestResult {
    let mut runs = [const { Vec::new() }; CASES.len()];
    let mut ciphers = Vec::new();
    for _ in 0..arguments.rounds {
        for (case, runs) in CASES.iter().zip(&mut runs) {
            runs.push(flood(case, arguments, options, tester)?);
        }
        ciphers.push(cipher_alone(arguments, options.cpus[0])?);
    }
    let cipher = median(&ciphers, |nanos| *nanos);
    println!(
        "frames of {} bytes, engine on processor {:?}, tester on {tester:?}; AES-128-GCM alone {cipher:.0} ns a frame",
        arguments.bytes, options.cpus[0]
    );
    let null = median(&runs[0], |run| run.frames_per_second);
    let bound = 1.0 / (1.0 / null + cipher / 1e9);
    for (case, runs) in CASES.iter().zip(&runs) {
        let rates: Vec<f64> = runs.iter().map(|run| run.frames_per_second).collect();
        let (least, most) = rates
            .iter()
            .fold((f64::MAX, 0.0f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
        let rate = median(&rates, |rate| *rate);
        let of_bound = if case.name == "null" { 1.0 } else { rate / bound };
        println!(
            "  {:<12} {:>4.0} thousand frames/s ({:.0} to {:.0}), {:>5.0} ns CPU a frame, {:.2} of it the kernel's, \
             {:.2} calls, {:.2} of the bound, {:.3} arrived",
            case.name,
            rate / 1e3,
            least / 1e3,
            most / 1e3,
            median(runs, |run| run.cpu_ns),
            median(runs, |run| run.kernel),
            median(runs, |run| run.calls),
            of_bound,
            median(runs, |run| run.arrived),
        );
    }
    Ok(())
}

/// Frames as fast as they can be sent through one node.
fn flood(
    case: &Case,
    arguments: &Arguments,
    options: &Options,
    tester: Option<usize>,
) -> TestResult<Run> {
    let row = Row::new(1)?;
    let frame = case.frame(arguments.bytes)?;
    let [source, sink] = row.testers()?;
    let engine = start(&row, vec![(case.hop)()?], options)?;
    let run = pour(&engine, source, sink, &frame, arguments.time, tester)?;
    let stats = engine.stop()?;
    if let Some((reason, count)) = stats.nodes[0].forward.drops.first() {
        return Err(format!("{}: {count} frames dropped: {reason}", case.name).into());
    }
    Ok(run)
}

/// Frames as fast as they can be sent, for a time after a while to get going.
fn pour(
    engine: &Handle,
    source: RxRing,
    mut sink: RxRing,
    frame: &[u8],
    time: Duration,
    tester: Option<usize>,
) -> TestResult<Run> {
    let (stop, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    let (going, counted) = (&stop, &arrived);
    let (before, after, wall, came, ticks) = std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(cpu) = tester {
                let _ = packet::thread::pin(cpu);
            }
            let mut batch = SendBatch::new(BURST);
            while !going.load(Ordering::Relaxed) {
                let frames = std::iter::repeat_n(frame, BURST);
                if batch.send(source.as_fd(), frames).is_err() || tester.is_none() {
                    std::thread::yield_now();
                }
                while sink.receive().is_some() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        std::thread::sleep(time / 5);
        let (before, from, ticks) = (engine.stats(), Instant::now(), kernel_ticks());
        let came = arrived.load(Ordering::Relaxed);
        std::thread::sleep(time);
        let (after, wall, ticks) = (engine.stats(), from.elapsed(), kernel_ticks() - ticks);
        let came = arrived.load(Ordering::Relaxed) - came;
        stop.store(true, Ordering::Relaxed);
        (before, after, wall, came, ticks)
    });
    // What left by the last port of the way.
    let sent = |stats: &dataplane::Stats| {
        let last = stats.nodes.len() - 1;
        let leaving = |segment: &&dataplane::SegmentStats| {
            segment.way == Way::Forward && segment.last == last
        };
        let found = stats.segments.iter().find(leaving);
        found.map_or((0, 0), |segment| (segment.given, segment.send_calls))
    };
    let (from, to) = (sent(&before), sent(&after));
    let (given, calls) = ((to.0 - from.0) as f64, (to.1 - from.1) as f64);
    let worked = (after.cpu - before.cpu).saturating_sub(after.spun - before.spun);
    Ok(Run {
        frames_per_second: given / wall.as_secs_f64(),
        cpu_ns: worked.as_nanos() as f64 / given.max(1.0),
        kernel: ticks as f64 * 1e7 / (worked.as_nanos() as f64).max(1.0),
        calls: calls / given.max(1.0),
        arrived: came as f64 / given.max(1.0),
    })
}

/// What the kernel has spent in the engine's threads so far, in hundredths of a second; 0 where /proc does not say.
fn kernel_ticks() -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let of_task = |task: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
        let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(')')?;
        // stime, the fifteenth field (proc(5)).
        name.ends_with("(wiretax-engine").then(|| rest.split_whitespace().nth(12)?.parse().ok())?
    };
    tasks.filter_map(of_task).sum()
}

/// Nanoseconds that the cipher alone takes for a frame's IP packet.
fn cipher_alone(arguments: &Arguments, cpu: Option<usize>) -> TestResult<f64> {
    let (bytes, time) = (arguments.bytes, arguments.time / 4);
    let work = move || -> TestResult<f64> {
        if let Some(cpu) = cpu {
            packet::thread::pin(cpu)?;
        }
        let key = UnboundKey::new(&AES_128_GCM, &[1; 16]).map_err(|_| "no key")?;
        let (key, mut text, mut count) = (LessSafeKey::new(key), vec![0; bytes], 0u64);
        let from = clock::thread_cpu();
        let began = Instant::now();
        while began.elapsed() < time {
            for _ in 0..BURST {
                count += 1;
                let mut nonce = [0; 12];
                nonce[4..].copy_from_slice(&count.to_be_bytes());
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&[0; 12]), &mut text);
                let _ = std::hint::black_box(tag.map_err(|_| "not sealed")?);
            }
        }
        Ok((clock::thread_cpu() - from).as_nanos() as f64 / count as f64)
    };
    std::thread::scope(|scope| {
        scope.spawn(work).join().map_err(|_| "the thread of the cipher panicked")?
    })
}

/// A frame a millisecond through two nodes of one thread, in turns.
fn delay(arguments: &Arguments, options: &Options, tester: Option<usize>) -> TestResult {
    let protections = [Protection::Plain, Protection::MacSec, Protection::Esp];
    let mut delays = [const { Vec::new() }; 3];
    let mut spins = false;
    for _ in 0..arguments.rounds {
        for (protection, delays) in protections.iter().zip(&mut delays) {
            let row = Row::new(1)?;
            let topology = path(*protection);
            let plan = Plan::numbered(&topology);
            let frame = support::frame(&topology, &plan, Way::Forward, 1, arguments.bytes);
            let [source, sink] = row.testers()?;
            let options = Options { wait: Wait::Auto, ..*options };
            let engine = start(&row, hops(*protection)?.into(), &options)?;
            spins = engine.mode().spins;
            let count = arguments.time.as_millis().max(20);
            delays.extend(ping(source, sink, &frame, count as u64, tester)?);
            engine.stop()?;
        }
    }
    println!(
        "frames of {} bytes, one a millisecond, two nodes in a thread that {}:",
        arguments.bytes,
        if spins { "spins" } else { "blocks" }
    );
    for (protection, delays) in protections.iter().zip(&mut delays) {
        delays.sort_by(f64::total_cmp);
        let at = |part: f64| delays[((delays.len() - 1) as f64 * part) as usize];
        println!(
            "  {:<12} p50 {:.2} us, p90 {:.2}, p99 {:.2} ({} frames)",
            protection.name(),
            at(0.5),
            at(0.9),
            at(0.99),
            delays.len()
        );
    }
    Ok(())
}

/// Delays in microseconds: from before a frame is sent until it is seen in the sink's ring.
fn ping(
    source: RxRing,
    mut sink: RxRing,
    frame: &[u8],
    count: u64,
    tester: Option<usize>,
) -> TestResult<Vec<f64>> {
    let work = move || -> TestResult<Vec<f64>> {
        if let Some(cpu) = tester {
            packet::thread::pin(cpu)?;
        }
        let mut delays = Vec::new();
        let first = clock::monotonic();
        for number in 1..=count {
            let due = first + Duration::from_millis(number);
            while clock::monotonic() < due {
                if tester.is_some() { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
            let sent = clock::monotonic();
            packet::send(source.as_fd(), frame)?;
            let limit = sent + Duration::from_millis(500);
            while !sink.is_ready() && clock::monotonic() < limit {
                if tester.is_none() {
                    std::thread::yield_now();
                }
            }
            let seen = clock::monotonic();
            if sink.receive().is_some() {
                delays.push(seen.saturating_since(sent).as_nanos() as f64 / 1e3);
            }
        }
        if delays.is_empty() { Err("no frame came".into()) } else { Ok(delays) }
    };
    std::thread::scope(|scope| {
        scope.spawn(work).join().map_err(|_| "the tester's thread panicked")?
    })
}

/// The median of what there is of each run; NaN of none.
fn median<'a, T: 'a>(runs: impl IntoIterator<Item = &'a T>, of: impl Fn(&T) -> f64) -> f64 {
    let values: Vec<f64> = runs.into_iter().map(of).collect();
    stats::median(&values).unwrap_or(f64::NAN)
}
