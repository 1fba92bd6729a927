//! tshark reads the captures that a run kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use handshake::{Bench, Plan, label};
use record::{Finished, Sample};
use study::Session;

use crate::common::{Follower, Results, intended, name, run_on, sweep, text};
use lab_test::net::sleeping;
use lab_test::{Need, Test, TestResult, skip};

pub fn tests() -> Vec<Test> {
    vec![Test::inside("tshark_sees_what_the_study_says", tshark_agrees)]
}

const FIELDS: [&str; 18] = [
    "tcp.srcport",
    "udp.srcport",
    "tcp.dstport",
    "udp.dstport",
    "tcp.flags",
    "tcp.len",
    "tcp.ack",
    "tcp.options.tfo.cookie",
    "tls.handshake.type",
    "tls.handshake.version",
    "tls.handshake.ciphersuite",
    "tls.handshake.extension.type",
    "tls.handshake.extensions.supported_version",
    "tls.handshake.random",
    "quic.version",
    "quic.long.packet_type",
    "tls.record.content_type",
    "_ws.malformed",
];

/// RFC 8446 §4.1.3: the random of a HelloRetryRequest, its beginning.
const HELLO_RETRY: &str = "cf21ad74e59a6111";

/// One frame: tshark's fields by name.
type Frame = BTreeMap<&'static str, String>;

fn read(file: &Path) -> TestResult<Vec<Frame>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields", "-E", "separator=|"]);
    // Where our own TCP listens, from port 20000: DNP3 is registered there, and tshark's guess by
    // content falls on other protocols now and then.
    command.args(["-d", "tcp.port==20000-20099,tls"]);
    // Our own TCP answers a frame on one processor before the capture's socket has it on another: an
    // acknowledgment then stands in the capture some microseconds before the data. tshark takes such
    // data for a spurious retransmission, and reads none of it unless it is to put segments in order.
    command.args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return skip(Need::Tshark, "there is no tshark; install it to have captures judged");
        }
        output => output?,
    };
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let frame = |line: &str| FIELDS.into_iter().zip(line.split('|').map(str::to_owned)).collect();
    Ok(String::from_utf8(output.stdout)?.lines().map(frame).collect())
}

/// The frames of one connection, by who sent them.
#[derive(Default)]
struct Frames {
    from_client: Vec<Frame>,
    from_server: Vec<Frame>,
}

impl Frames {
    fn hello(frames: &[Frame], kind: &str) -> Option<Frame> {
        frames.iter().find(|f| f["tls.handshake.type"].split(',').any(|t| t == kind)).cloned()
    }

    fn all<'a>(frames: &'a [Frame], field: &'static str) -> impl Iterator<Item = &'a str> {
        frames.iter().flat_map(move |frame| frame[field].split(','))
    }
}

fn tshark_agrees() -> TestResult {
    let mut plan = Plan::new(vec![sweep(&["all"], "5ms", 1)])?;
    plan.seed = 71;
    let results = Results::new(&plan);
    let captures = tempfile::tempdir()?;
    let mut recorder = results.recorder()?;
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let folder = Some(captures.path().to_owned());
    let (none, mut follower) = (Finished::default(), Follower::default());
    let session = Session::new("handshake", &mut recorder, &none, &mut follower);
    run_on(&mut bench, &plan, &mut session.keeping_captures(folder))?;
    drop((recorder, bench));
    let samples = results.samples()?;
    let frames = read(&captures.path().join("cell-0.pcapng"))?;
    for frame in &frames {
        assert_eq!(frame["_ws.malformed"], "", "{frame:?}");
    }

    // The client is who sends the first frame: a SYN, or an Initial.
    let mut connections = BTreeSet::new();
    for frame in &frames {
        let [source, destination] = [port(frame, "src"), port(frame, "dst")];
        if !connections.contains(&[destination.clone(), source.clone()]) {
            connections.insert([source, destination]);
        }
    }
    // Each mode was primed by one connection.
    assert_eq!(connections.len(), 2 * samples.len());
    for sample in &samples {
        let protocol = if intended(sample).starts_with("quic") { "udp" } else { "tcp" };
        let of = |end| text(sample, end).rsplit(':').next().map(|p| format!("{protocol} {p}"));
        let (client, server) = (of(label::CLIENT).unwrap(), of(label::SERVER).unwrap());
        assert!(connections.contains(&[client.clone(), server.clone()]), "{}", name(sample));
        let sent = |from: &str, to: &str| {
            let own = |frame: &&Frame| port(frame, "src") == from && port(frame, "dst") == to;
            frames.iter().filter(own).cloned().collect()
        };
        let of_connection =
            Frames { from_client: sent(&client, &server), from_server: sent(&server, &client) };
        judge(sample, &of_connection);
    }
    Ok(())
}

/// Protocol and port of a frame's source (`src`) or destination (`dst`).
fn port(frame: &Frame, side: &str) -> String {
    let of = |protocol: &str| {
        let number = frame.get(format!("{protocol}.{side}port").as_str())?;
        (!number.is_empty()).then(|| format!("{protocol} {number}"))
    };
    of("tcp").or_else(|| of("udp")).unwrap_or_default()
}

fn judge(sample: &Sample, frames: &Frames) {
    if !intended(sample).starts_with("quic") {
        judge_syn(sample, frames);
    }
    let mode = intended(sample);
    if mode == "sslmtcp-paper" {
        judge_paper(sample, frames);
    } else if mode.contains("tls") || mode.starts_with("quic") || mode.starts_with("sslmtcp") {
        judge_tls(sample, frames);
    } else {
        let mut types = Frames::all(&frames.from_client, "tls.handshake.type");
        assert!(types.all(str::is_empty), "{}", name(sample));
    }
}

fn judge_syn(sample: &Sample, frames: &Frames) {
    let (name, mode) = (name(sample), intended(sample));
    let fast_open = mode.starts_with("tfo");
    let embedded = mode.starts_with("sslmtcp");
    let syn = frames.from_client.iter().find(|f| f["tcp.flags"] == "0x0002").expect(&name);
    let carried: u64 = syn["tcp.len"].parse().unwrap();
    assert_eq!(carried > 0, fast_open || embedded, "{name}");
    let with_cookie = fast_open && !mode.starts_with("tfo-nocookie");
    assert_eq!(!syn["tcp.options.tfo.cookie"].is_empty(), with_cookie, "{name}");
    // RFC 7413 §4.2.2: the SYN+ACK acknowledges the data; numbers are relative.
    let syn_ack = frames.from_server.iter().find(|f| f["tcp.flags"] == "0x0012").expect(&name);
    assert_eq!(syn_ack["tcp.ack"].parse::<u64>().unwrap(), 1 + carried, "{name}");
    let answered: u64 = syn_ack["tcp.len"].parse().unwrap();
    assert_eq!(answered > 0, embedded, "{name}");
}

/// tshark knows no envelope, so that the handshake inside is opaque to it; sizes are as the SSLmTCP paper
/// has them (§4.2), and nothing comes out as another handshake.
fn judge_paper(sample: &Sample, frames: &Frames) {
    let name = name(sample);
    assert_eq!(text(sample, label::VERSION), "tls1.2", "{name}");
    let handshake: Vec<u64> = [(&frames.from_client, "0x0002"), (&frames.from_server, "0x0012")]
        .iter()
        .map(|(frames, flags)| {
            let segment = frames.iter().find(|frame| frame["tcp.flags"] == *flags).expect(&name);
            segment["tcp.len"].parse().unwrap()
        })
        .collect();
    // 20 bytes of header at least, and 1024 of payload, are a segment of 1044 or more.
    assert!(handshake.iter().all(|len| *len >= 1_024), "{handshake:?} {name}");
    let ack = frames.from_client.iter().filter(|frame| frame["tcp.flags"] != "0x0002");
    let longest = ack.filter_map(|frame| frame["tcp.len"].parse::<u64>().ok()).max();
    assert!(longest >= Some(1_024), "{name}");
}

fn judge_tls(sample: &Sample, frames: &Frames) {
    let (name, mode) = (name(sample), intended(sample));
    let quic = mode.starts_with("quic");
    let early = mode.ends_with("0rtt");
    let resumed = early || mode.ends_with("resumed");
    let hello = Frames::hello(&frames.from_client, "1").expect(&name);
    let last = frames.from_server.iter().rev().cloned().collect::<Vec<_>>();
    let server_hello = Frames::hello(&last, "2").expect(&name);
    let extensions = |frame: &Frame| {
        frame["tls.handshake.extension.type"].split(',').map(str::to_owned).collect()
    };
    let (offered, chosen): (BTreeSet<String>, BTreeSet<String>) =
        (extensions(&hello), extensions(&server_hello));

    let suite =
        u16::from_str_radix(server_hello["tls.handshake.ciphersuite"].trim_start_matches("0x"), 16);
    let suite = tls::CipherSuite(suite.unwrap());
    assert_eq!(text(sample, label::SUITE), suite.to_string(), "{name}");

    let retries = Frames::all(&frames.from_server, "tls.handshake.random")
        .filter(|random| random.replace(':', "").starts_with(HELLO_RETRY));
    assert_eq!(retries.count(), usize::from(mode.ends_with("hrr")), "{name}");

    if mode.contains("tls12") {
        assert_eq!(text(sample, label::VERSION), "tls1.2", "{name}");
        assert_eq!(server_hello["tls.handshake.version"], "0x0303", "{name}");
        assert_eq!(server_hello["tls.handshake.extensions.supported_version"], "", "{name}");
        // A full handshake shows its certificate, an abbreviated one has none (RFC 5246 §7.3).
        let mut types = Frames::all(&frames.from_server, "tls.handshake.type");
        assert_eq!(types.any(|kind| kind == "11"), !resumed, "{name}");
        return;
    }
    assert_eq!(text(sample, label::VERSION), "tls1.3", "{name}");
    assert_eq!(server_hello["tls.handshake.extensions.supported_version"], "0x0304", "{name}");
    // 41 is pre_shared_key, 42 early_data (RFC 8446 §4.2).
    assert_eq!((offered.contains("41"), chosen.contains("41")), (resumed, resumed), "{name}");
    assert_eq!(offered.contains("42"), early, "{name}");
    if quic {
        let versions: BTreeSet<&str> =
            Frames::all(&frames.from_client, "quic.version").filter(|v| !v.is_empty()).collect();
        assert_eq!(versions, BTreeSet::from(["0x00000001"]), "{name}");
        // RFC 9000 §17.2: long header type 1 is 0-RTT.
        let mut types = Frames::all(&frames.from_client, "quic.long.packet_type");
        assert_eq!(types.any(|kind| kind == "1"), early, "{name}");
    }
}
