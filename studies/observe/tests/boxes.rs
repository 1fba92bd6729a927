//! Boxes on the way that do not tolerate some hellos, and clients that come again with less.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use capture::{Live, LiveOptions, Merge};
use lab_test::TestResult;
use lab_test::net::sleeping;
use observe::reading::{Reading, SinkOptions};
use observe::truth::{Population, Said};
use observe::{Fate, Less};
use record::{Outcome, Run};
use serde_json::json;
use study::End;
use tls::{Group, Library, Version};
use wire::tls::ClientHello;

use crate::common::{Until, failed, heard, measure, talk_tls};

/// Payload of one segment at an MTU of 1500 bytes, with timestamps.
const SEGMENT: usize = 1448;
/// Bytes of a record's header and of a message's.
const RECORD: usize = 5;
const MESSAGE: usize = 4;

/// What a box does not tolerate in a hello.
#[derive(Debug, Clone, Copy)]
enum Dislikes {
    /// That it offers TLS 1.3.
    Tls13,
    /// That its record is longer than this, in bytes.
    LongerThan(usize),
}

impl Dislikes {
    fn minds(self, record: &[u8]) -> bool {
        match self {
            Dislikes::LongerThan(bytes) => record.len() > bytes,
            Dislikes::Tls13 => {
                let hello = ClientHello::new_checked(&record[RECORD + MESSAGE..]).unwrap();
                hello.versions().any(wire::tls::Version::is_tls13)
            }
        }
    }
}

/// A box, the server behind it, and the clients that come.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    port: u16,
    dislikes: Dislikes,
    /// What becomes of a hello that it does not tolerate.
    fate: Fate,
    /// Clients that come, one after the other.
    clients: usize,
}

const CASES: [Case; 4] = [
    Case {
        name: "old-reset.test",
        port: 4431,
        dislikes: Dislikes::Tls13,
        fate: Fate::Reset,
        clients: 3,
    },
    Case {
        name: "old-drop.test",
        port: 4432,
        dislikes: Dislikes::Tls13,
        fate: Fate::Silence,
        clients: 1,
    },
    Case {
        name: "short-reset.test",
        port: 4433,
        dislikes: Dislikes::LongerThan(512),
        fate: Fate::Reset,
        clients: 2,
    },
    Case {
        name: "segment-drop.test",
        port: 4434,
        dislikes: Dislikes::LongerThan(SEGMENT),
        fate: Fate::Silence,
        clients: 1,
    },
];

/// Takes two connections of each client: does to the hello what the box does, or has the server answer.
fn stand_in_the_way(listener: TcpListener, case: Case, server: tls::Server) -> io::Result<()> {
    let mut held = Vec::new();
    for _ in 0..2 * case.clients {
        let (mut stream, _) = listener.accept()?;
        let mut hello = vec![0; RECORD];
        stream.read_exact(&mut hello)?;
        hello.resize(RECORD + usize::from(u16::from_be_bytes([hello[3], hello[4]])), 0);
        stream.read_exact(&mut hello[RECORD..])?;
        match (case.dislikes.minds(&hello), case.fate) {
            (false, _) => {
                let session = server.accept().map_err(failed)?;
                talk_tls(stream, session, &hello, false)?;
            }
            // A close without lingering is a RST (RFC 9293 §3.10.4).
            (true, Fate::Reset) => {
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            }
            (true, _) => held.push(stream),
        }
    }
    // Until the clients give up.
    for mut stream in held {
        let _ = stream.read(&mut [0; 16]);
    }
    Ok(())
}

/// A case's clients before and after the box has shown what it does not tolerate.
fn clients(case: Case, identity: &tls::Identity) -> Result<[tls::Client; 2], tls::Error> {
    let trust = tls::Trust::Roots(identity.roots());
    let usual = tls::ClientConfig::new(Library::OpenSsl, case.name, trust);
    let (mut first, mut second) = (usual.clone(), usual);
    match case.dislikes {
        Dislikes::Tls13 => second.versions = vec![Version::Tls12],
        Dislikes::LongerThan(bytes) => {
            // A share of 1216 bytes, and names of protocols that take it beyond a segment.
            first.groups.insert(0, Group::X25519MlKem768);
            if bytes >= SEGMENT {
                first.alpn = (0..20).map(|n| format!("a-protocol/{n:02}").into_bytes()).collect();
            }
        }
    }
    Ok([tls::Client::new(&first)?, tls::Client::new(&second)?])
}

/// A client that comes, meets the box, and comes again with less.
fn come_twice(
    address: (std::net::Ipv4Addr, u16),
    [first, second]: &[tls::Client; 2],
) -> io::Result<()> {
    let mut hello = Vec::new();
    first.start(None).and_then(|mut own| own.write_tls(&mut hello)).map_err(failed)?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    stream.write_all(&hello)?;
    // Reset, or nothing until it has had enough.
    assert!(stream.read(&mut [0; 16]).is_err());
    drop(stream);
    let session = second.start(None).map_err(failed)?;
    talk_tls(TcpStream::connect(address)?, session, &[], true)?;
    Ok(())
}

/// The study's own boxes: what a fallback costs by the samples, and the same fallbacks found in the captures.
pub fn the_studys_boxes_cost_what_the_captures_say() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let visits = ["VersionReset", "VersionDrop", "LengthReset", "LengthDrop"];
    // A name each, by which the captures tell them apart.
    let sweep = |visit: &str| {
        let host = format!("{}.test", visit.to_lowercase());
        json!({ "name": visit, "visit": visit, "host": host, "repeat": 2 })
    };
    let plan = json!({ "seed": 79, "sweeps": visits.map(sweep) });
    assert_eq!(measure(&plan, &results, Some(folder.path().to_owned()), None)?, End::Complete);
    let run = Run::open(&results)?;
    let said = Said::of(&run.samples, &run.manifest).unwrap().ok_or("no samples")?;
    assert!(said.agreement.is_whole(), "{:?}", said.agreement);
    assert!(run.samples.iter().all(|own| own.outcome == Outcome::Completed), "{:?}", run.samples);
    let costs = &said.agreement.fallbacks;
    println!("{}", serde_json::to_string_pretty(costs)?);
    assert_eq!(costs.len(), visits.len() * Population::ALL.len());
    for cost in costs {
        assert_eq!(cost.count, 2, "{cost:?}");
        // The answer of the box and TCP's handshake: no fewer than two of the link's round trips.
        assert!(cost.round_trips >= 2.0, "{cost:?}");
    }
    let files = Population::ALL.iter().map(|own| folder.path().join(format!("{own}.pcapng")));
    let mut source = Merge::open(&files.collect::<Vec<_>>())?;
    let mut reading = Reading::open(SinkOptions::default(), 1000, 1).unwrap();
    reading.files(&mut source, &mut Until(Arc::default())).unwrap();
    let found = observe::findings(&reading.finish().unwrap().sinks.digest);
    let fallbacks: Vec<_> =
        found.fallbacks.iter().map(|row| (row.less, row.fate, row.count)).collect();
    let each = [Less::Version, Less::Length]
        .map(|less| [Fate::Reset, Fate::Silence].map(|f| (less, f, 4)));
    assert_eq!(fallbacks, each.concat(), "{:?}", found.failures);
    Ok(())
}

/// Clients whose first hello a box resets or swallows, for its version or its length, and that come again
/// without TLS 1.3 or with a shorter one.
pub fn clients_that_fall_back_are_counted() -> TestResult {
    let mut lab = lab::Lab::new(sleeping(76))?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &linkmodel::Path::default())?;
    let sources = vec![server.run(|| Live::open(&["link1"], &LiveOptions::default()))??];
    let address = server.addr4()?;

    let names = CASES.map(|case| case.name);
    let identity = Arc::new(tls::Identity::generate(tls::KeyType::EcdsaP256, 1, &names)?);
    let mut config = tls::ServerConfig::new(Library::OpenSsl, Arc::clone(&identity));
    config.versions = vec![Version::Tls12, Version::Tls13];
    let of_server = tls::Server::new(&config)?;
    let mut boxes = Vec::new();
    for case in CASES {
        let listener = server.run(move || TcpListener::bind((address, case.port)))??;
        let of_server = of_server.clone();
        boxes.push(std::thread::spawn(move || stand_in_the_way(listener, case, of_server)));
    }
    let pairs = CASES.map(|case| clients(case, &identity));
    let pairs: Vec<[tls::Client; 2]> = pairs.into_iter().collect::<Result<_, _>>()?;
    let read = heard(sources, SinkOptions::default(), &client, move || {
        let all = CASES.iter().zip(&pairs);
        let mut each = all.flat_map(|(case, pair)| std::iter::repeat_n((case, pair), case.clients));
        each.try_for_each(|(case, pair)| come_twice((address, case.port), pair))
    })?;
    for stands in boxes {
        stands.join().map_err(|_| "a box panicked")??;
    }
    let found = observe::findings(&read.sinks.digest);
    let fallbacks: Vec<_> =
        found.fallbacks.iter().map(|row| (row.less, row.fate, row.count)).collect();
    let expected = [
        (Less::Version, Fate::Reset, 3),
        (Less::Version, Fate::Silence, 1),
        (Less::Length, Fate::Reset, 2),
        (Less::Length, Fate::Silence, 1),
    ];
    assert_eq!(fallbacks, expected, "{:?}", found.failures);
    assert!(found.fallbacks.iter().all(|row| row.lost_ms.is_some()), "{:?}", found.fallbacks);
    assert_eq!(found.cross_names.handshakes, 7);
    Ok(())
}
