//! Other data planes in user space between the same namespaces: boringtun (WireGuard) and strongSwan with
//! kernel-libipsec (ESP). Both gateways of each share one processor, as the two nodes of our engine do.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_lc_rs::agreement::{PrivateKey, X25519};
use dataplane::Options;
use lab::{Addresses, Backend, Lab, LabOptions, Link, LinkOptions, Node, NodeOptions};
use lab_test::{TestResult, until};
use packet::{RingOptions, RxRing, SendBatch, SocketOptions, clock, interface_index};
use seclink::path::{Cipher, Protection, Topology};
use seclink::plane::Way;

use crate::{Arguments, median, path, pour, support};

/// How long a peer may take until it carries frames.
const PATIENCE: Duration = Duration::from_secs(30);
/// Frames that the source sends by one system call.
const BURST: usize = 16;

/// Two gateways on one processor: our engine's nodes with a veth pair between them, and others' programs, in turns.
pub fn beside(arguments: &Arguments, options: &Options, tester: Option<usize>) -> TestResult {
    let (bytes, time, cpus) = (arguments.bytes, arguments.time, [options.cpus[0], tester]);
    let ours = [Protection::Plain, Protection::MacSec, Protection::Esp, Protection::WireGuard];
    let mut rows: Vec<(&str, Vec<Figures>)> =
        ours.iter().map(|protection| (protection.name(), Vec::new())).collect();
    rows.extend([("boringtun", Vec::new()), ("strongSwan libipsec", Vec::new())]);
    for _ in 0..arguments.rounds {
        for (protection, (_, rates)) in ours.iter().zip(&mut rows) {
            rates.push(two_nodes(*protection, arguments, options, tester)?);
        }
        if let Some(program) = &arguments.boringtun {
            rows[ours.len()].1.push(boringtun(program, bytes, time, cpus)?);
        }
        if let Some(program) = &arguments.charon {
            rows[ours.len() + 1].1.push(strongswan(program, bytes, time, cpus)?);
        }
    }
    println!("two gateways on one processor, frames of {bytes} bytes, thousand frames/s:");
    for (name, figures) in rows.into_iter().filter(|(_, figures)| !figures.is_empty()) {
        let rate = median(&figures, |figures| figures.rate);
        let cpu = median(&figures, |figures| figures.cpu_ns);
        println!("  {name:<20} {:>6.1}, {cpu:>6.0} ns CPU a frame", rate / 1e3);
    }
    Ok(())
}

/// Frames per second through a node that seals and one that opens, with a veth pair between them.
fn two_nodes(
    protection: Protection,
    arguments: &Arguments,
    options: &Options,
    tester: Option<usize>,
) -> TestResult<Figures> {
    let cipher = match protection {
        Protection::Plain | Protection::WireGuard => protection.usual_cipher(),
        _ => Cipher::AesGcm128,
    };
    let topology = Topology { cipher, protection, tagged: false, ..path(Protection::Plain) };
    let rig = support::rig(topology, |_| false, *options)?;
    let frame = rig.frame(Way::Forward, 1, arguments.bytes);
    let [source, sink] = rig.testers;
    let run = pour(&rig.engine, source, sink, &frame, arguments.time, tester)?;
    let drops = rig.engine.stop()?.drops();
    match drops.iter().find(|(name, _)| *name != "ring-full") {
        None => Ok(Figures { rate: run.arrived * run.frames_per_second, cpu_ns: run.cpu_ns }),
        Some((name, count)) => Err(format!("{protection}: {count} frames dropped: {name}").into()),
    }
}

/// Two testers and two gateways between them, with the kernel's addresses.
pub struct Site {
    gateways: [Node; 2],
    links: Vec<Link>,
    testers: [Node; 2],
    _lab: Lab,
}

/// Of a pair of gateways.
#[derive(Clone, Copy)]
pub struct Figures {
    /// Frames per second that came out.
    rate: f64,
    /// CPU time that both took for each.
    cpu_ns: f64,
}

/// A program that is killed in the end.
struct Running(Child);

impl Running {
    /// CPU time that it has used so far, in hundredths of a second.
    fn ticks(&self) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        // utime and stime, the fourteenth field and the next (proc(5)).
        let mut times = rest.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
        Some(times.next()?? + times.next()??)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended of itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Site {
    /// The gateways, and the programs that they run, stay on this processor.
    pub fn new(cpu: Option<usize>) -> TestResult<Site> {
        let mut lab = Lab::new(LabOptions { backend: Backend::Direct, ..LabOptions::default() })?;
        let pinned = NodeOptions { cpu };
        let nodes = [
            lab.add_node("t1")?,
            lab.add_node_with("g1", pinned)?,
            lab.add_node_with("g2", pinned)?,
            lab.add_node("t2")?,
        ];
        let mut links = Vec::new();
        for (pair, [left, right]) in nodes.windows(2).zip([
            ["172.16.1.2/24", "172.16.1.1/24"],
            ["10.9.1.1/24", "10.9.1.2/24"],
            ["172.16.2.1/24", "172.16.2.2/24"],
        ]) {
            let addresses = Addresses::Given([vec![left.parse()?], vec![right.parse()?]]);
            let options = LinkOptions {
                backend: Backend::Direct,
                mtu: 1600,
                addresses,
                ..LinkOptions::default()
            };
            let path = linkmodel::Path::default();
            links.push(lab.connect_with(&pair[0], &pair[1], &path, &options)?);
        }
        let [t1, g1, g2, t2] = nodes;
        for gateway in [&g1, &g2] {
            gateway.sysctl("net.ipv4.ip_forward", "1")?;
        }
        Ok(Site { gateways: [g1, g2], links, testers: [t1, t2], _lab: lab })
    }

    /// Runs a program on a gateway and waits for its end.
    fn call(&self, gateway: usize, program: &str, words: &str) -> TestResult {
        let (program, words) = (program.to_owned(), words.to_owned());
        let output = self.gateways[gateway].run(move || {
            Command::new(&program).args(words.split_whitespace()).stdin(Stdio::null()).output()
        })??;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
    }

    fn spawn(&self, gateway: usize, mut command: Command) -> TestResult<Running> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Running(self.gateways[gateway].run(move || command.spawn())??))
    }

    fn ring(&self, tester: usize) -> TestResult<RxRing> {
        let name = self.links[2 * tester].ends()[tester].interface.clone();
        let opened = self.testers[tester].run(move || {
            let ring = RingOptions { frames: 4096, frame_bytes: 1700 };
            let socket = SocketOptions { send_buffer: Some(4 << 20), ..SocketOptions::default() };
            RxRing::open(interface_index(&name)?, &socket, ring)
        })?;
        Ok(opened?)
    }

    /// A frame of the first tester for the second.
    fn frame(&self, len: usize) -> TestResult<Vec<u8>> {
        let [tester, gateway] = self.links[0].ends();
        let head = [&gateway.mac[..], &tester.mac, &[8, 0]].concat();
        let header = wire::ipv4::Repr {
            source: [172, 16, 1, 2].into(),
            destination: [172, 16, 2, 2].into(),
            protocol: 253,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: len - head.len() - wire::ipv4::HEADER_LEN,
        };
        let mut packet = vec![0; len - head.len()];
        header.emit(&mut packet)?;
        Ok([head, packet].concat())
    }

    /// The most frames per second that come out at the far end, of several loads, and the CPU time that the programs
    /// then take for each, in nanoseconds; what the kernel does for them elsewhere is not in it.
    fn most(
        &self,
        running: &[Running],
        bytes: usize,
        time: Duration,
        tester: Option<usize>,
    ) -> TestResult<Figures> {
        let frame = self.frame(bytes)?;
        let [source, mut sink] = [self.ring(0)?, self.ring(1)?];
        // Until the tunnel carries frames.
        until("a frame through the tunnel", PATIENCE, || {
            packet::send(source.as_fd(), &frame)?;
            std::thread::sleep(Duration::from_millis(20));
            Ok(take(&mut sink).gt(&0).then_some(()))
        })?;
        let work = move || -> TestResult<Figures> {
            if let Some(cpu) = tester {
                packet::thread::pin(cpu)?;
            }
            let mut most = Figures { rate: 0.0, cpu_ns: f64::NAN };
            for rate in [20_000.0, 40_000.0, 60_000.0, 90_000.0, 130_000.0, 200_000.0, 300_000.0] {
                let before: u64 = running.iter().filter_map(Running::ticks).sum();
                let rate = load(&source, &mut sink, &frame, rate, time);
                let ticks = running.iter().filter_map(Running::ticks).sum::<u64>() - before;
                if rate > most.rate {
                    let cpu_ns = ticks as f64 * 1e7 / (rate * time.as_secs_f64());
                    most = Figures { rate, cpu_ns };
                }
                // What still waits is not to count for the next load.
                std::thread::sleep(Duration::from_millis(50));
                take(&mut sink);
            }
            Ok(most)
        };
        std::thread::scope(|scope| {
            scope.spawn(work).join().map_err(|_| "the tester's thread panicked")?
        })
    }
}

/// Takes what waits; how many frames.
fn take(sink: &mut RxRing) -> u64 {
    let mut count = 0;
    while sink.receive().is_some() {
        count += 1;
    }
    count
}

/// Sends this many frames per second for a time; how many come per second.
fn load(source: &RxRing, sink: &mut RxRing, frame: &[u8], rate: f64, time: Duration) -> f64 {
    let mut batch = SendBatch::new(BURST);
    let (from, mut sent, mut came) = (clock::monotonic(), 0u64, 0);
    loop {
        let elapsed = clock::monotonic().saturating_since(from);
        if elapsed >= time {
            return came as f64 / elapsed.as_secs_f64();
        }
        if (sent as f64) < elapsed.as_secs_f64() * rate {
            // A device whose queue is full has lost them.
            let _ = batch.send(source.as_fd(), std::iter::repeat_n(frame, BURST));
            sent += BURST as u64;
        }
        came += take(sink);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Frames per second through a pair of boringtuns.
pub fn boringtun(
    program: &Path,
    bytes: usize,
    time: Duration,
    cpus: [Option<usize>; 2],
) -> TestResult<Figures> {
    let site = Site::new(cpus[0])?;
    let keys = [[0x11; 32], [0x22; 32]];
    let public = |key: &[u8; 32]| -> TestResult<String> {
        let key = PrivateKey::from_private_key(&X25519, key).map_err(|_| "no key")?;
        Ok(hex(key.compute_public_key().map_err(|_| "no public key")?.as_ref()))
    };
    let mut running = Vec::new();
    for (at, name) in ["wtwg1", "wtwg2"].into_iter().enumerate() {
        let mut command = Command::new(program);
        command.args(["--foreground", "--disable-drop-privileges", "--threads", "1", name]);
        running.push(site.spawn(at, command)?);
        let socket = PathBuf::from(format!("/var/run/wireguard/{name}.sock"));
        let mut stream =
            until("boringtun's socket", PATIENCE, || Ok(UnixStream::connect(&socket).ok()))?;
        let (own, peer) = (hex(&keys[at]), public(&keys[1 - at])?);
        let endpoint = format!("10.9.1.{}:51820", 2 - at);
        write!(
            stream,
            "set=1\nprivate_key={own}\nlisten_port=51820\npublic_key={peer}\nendpoint={endpoint}\n\
             allowed_ip=0.0.0.0/0\n\n"
        )?;
        let mut said = [0; 64];
        let len = stream.read(&mut said)?;
        if !said[..len].starts_with(b"errno=0") {
            return Err(String::from_utf8_lossy(&said[..len]).into_owned().into());
        }
        site.call(at, "ip", &format!("link set {name} mtu 1420 up"))?;
        site.call(at, "ip", &format!("route add 172.16.{}.0/24 dev {name}", 2 - at))?;
    }
    site.most(&running, bytes, time, cpus[1])
}

/// Frames per second through a pair of strongSwan's daemons, whose ESP is libipsec's. `program` is charon; swanctl is
/// found by its name.
pub fn strongswan(
    program: &Path,
    bytes: usize,
    time: Duration,
    cpus: [Option<usize>; 2],
) -> TestResult<Figures> {
    let site = Site::new(cpus[0])?;
    let folder = std::env::temp_dir().join(format!("dataplane-peers-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = strongswan_in(&folder, &site, program, bytes, time, cpus);
    fs::remove_dir_all(&folder)?;
    result
}

fn strongswan_in(
    folder: &Path,
    site: &Site,
    program: &Path,
    bytes: usize,
    time: Duration,
    cpus: [Option<usize>; 2],
) -> TestResult<Figures> {
    let mut running = Vec::new();
    let uri = |at: usize| format!("unix://{}", folder.join(format!("vici{at}")).display());
    for at in [0, 1] {
        let own = folder.join(format!("charon{at}"));
        let settings = format!(
            "charon {{\n load = random nonce aes sha1 sha2 hmac kdf gcm openssl curve25519 pubkey \
             kernel-libipsec kernel-netlink socket-default vici\n \
             plugins {{ vici {{ socket = {} }} }}\n}}\n",
            uri(at)
        );
        fs::write(own.with_extension("conf"), settings)?;
        let (left, right) = (at + 1, 2 - at);
        let connection = format!(
            "connections {{ peer {{ version = 2\n local_addrs = 10.9.1.{left}\n \
             remote_addrs = 10.9.1.{right}\n proposals = aes128-sha256-x25519\n \
             local {{ auth = psk\n id = g{left} }}\n remote {{ auth = psk\n id = g{right} }}\n \
             children {{ net {{ local_ts = 172.16.{left}.0/24\n remote_ts = 172.16.{right}.0/24\n \
             esp_proposals = aes128gcm16 }} }} }} }}\n\
             secrets {{ ike {{ secret = measured }} }}\n"
        );
        fs::write(own.with_extension("swanctl"), connection)?;
        // A run folder of its own, since one machine has but one charon.pid.
        let mut command = Command::new("unshare");
        let start = format!("mount -t tmpfs none /run && exec {}", program.display());
        command.args(["-m", "sh", "-c", &start]);
        command.env("STRONGSWAN_CONF", own.with_extension("conf"));
        running.push(site.spawn(at, command)?);
        let file = own.with_extension("swanctl");
        let words = format!("--load-all --file {} --uri {}", file.display(), uri(at));
        until("charon", PATIENCE, || Ok(site.call(at, "swanctl", &words).ok()))?;
    }
    site.call(0, "swanctl", &format!("--initiate --child net --uri {}", uri(0)))?;
    site.most(&running, bytes, time, cpus[1])
}
