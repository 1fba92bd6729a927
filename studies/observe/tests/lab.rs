//! Records of connections in the lab beside what both ends logged.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capture::{Live, LiveOptions};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use observe::Lab;
use observe::reading::{Reading, SinkOptions, View};
use observe::truth::{Population, Said, Scenario};
use record::{Finished, Manifest, Recorder, Run};
use serde_json::{Value, json};
use study::{End, Findings as _, Options, Session, Study, Watcher};

/// Follows, and stops after so many batches.
struct Follower {
    batches: Cell<u32>,
}

impl Watcher for Follower {
    fn progress(&mut self, _: &str, done: Duration, total: Duration) {
        assert!(done <= total, "{done:?} of {total:?}");
    }
    fn interrupted(&self) -> bool {
        self.batches.set(self.batches.get().saturating_sub(1));
        self.batches.get() == 0
    }
    fn warning(&mut self, what: &str, _: Option<&str>) {
        panic!("{what}");
    }
    fn note(&mut self, _: &str) {}
}

/// Measures a plan into a folder, or what a folder lacks, with at most so many looks whether to stop.
fn measure(plan: &Value, folder: &Path, captures: Option<PathBuf>, looks: u32) -> End {
    let mut plan = Lab.recorded_plan(plan, &Options::none()).unwrap();
    let whole = json!({ "observe": plan.value() });
    let begin = || record::Session::begin(false);
    let (mut recorder, finished) = if folder.join("manifest.json").exists() {
        let resumed = Recorder::resume(folder, &whole, begin()).unwrap();
        (resumed.recorder, resumed.finished)
    } else {
        let recorder = Recorder::create(folder, Manifest::new(whole, begin())).unwrap();
        (recorder, Finished::default())
    };
    let mut follower = Follower { batches: Cell::new(looks) };
    let session = Session::new("observe", &mut recorder, &finished, &mut follower);
    let mut session = session.in_lab(sleeping(plan.seed())).keeping_captures(captures);
    let end = plan.measure(&mut session).unwrap();
    recorder.finish().unwrap();
    end
}

fn connections(run: &Run) -> BTreeSet<String> {
    run.samples.iter().map(record::Sample::key).collect()
}

/// Every connection has a record with the class that was made, in doubt for no reason over TCP, and
/// the round-trip times are those of the links.
fn records_agree_with_the_logs() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    // Enough of two for modes.
    let plan = json!({ "seed": 71, "sweeps": [
        { "name": "each" }, { "name": "more", "visit": ["Tls12", "Tls13"], "repeat": 8 },
    ] });
    assert_eq!(measure(&plan, &results, Some(folder.path().to_owned()), u32::MAX), End::Complete);
    for name in ["wifi", "cellular"] {
        assert!(folder.path().join(format!("{name}.pcapng")).is_file());
    }
    let run = Run::open(&results)?;
    let said = Said::of(&run.samples, &run.manifest).unwrap().ok_or("no samples")?;
    let agreement = &said.agreement;
    println!("{}", serde_json::to_string_pretty(agreement)?);
    let made = (Scenario::ALL.len() + 14) * Population::ALL.len();
    assert_eq!(agreement.made, made);
    assert!(agreement.is_whole(), "{agreement:?}");
    assert!(agreement.uncertain.is_empty(), "{:?}", agreement.uncertain);
    for (at, round_trip) in agreement.round_trips.iter().enumerate() {
        // Never below the link's, and nearest to its own: jitter and load only add.
        let median = round_trip.median_ms.unwrap();
        assert!(median >= round_trip.known_ms, "{round_trip:?}");
        let other = agreement.round_trips[1 - at].known_ms;
        assert!((median - round_trip.known_ms).abs() < (median - other).abs(), "{round_trip:?}");
    }
    // What came first in the logs cannot have come later on the wire.
    for time in agreement.times.iter().take(4) {
        assert!(time.count > 0, "{time:?}");
    }
    assert_eq!(said.findings.handshakes as usize, made);
    assert_eq!(connections(&run).len(), made);
    samples_keep_what_was_offered(&said);
    Ok(())
}

/// What clients offered, alerts and frames are read from the samples alone.
fn samples_keep_what_was_offered(said: &Said) {
    let (findings, populations) = (&said.findings, Population::ALL.len() as u64);
    let count = |chosen: fn(&Scenario) -> bool| {
        Scenario::ALL.iter().filter(|scenario| chosen(scenario)).count() as u64 * populations
    };
    let early = count(|scenario| *scenario == Scenario::Tls13ZeroRtt);
    assert!(early > 0 && findings.offers.early_data_offered >= early, "{:?}", findings.offers);
    let retries = count(|scenario| *scenario == Scenario::Tls13HelloRetry);
    assert_eq!(findings.offers.hello_retry, retries);
    let failed = count(|scenario| scenario.class() == tracker::Class::Failed);
    assert_eq!(findings.failures.total, failed);
    assert!(findings.alerts.total > 0 && findings.suites.total > 0 && findings.groups.total > 0);
    // A TCP connection with TLS has more than ten frames, and no connection has fewer than four.
    assert!(findings.frames.frames > 4 * findings.handshakes, "{:?}", findings.frames);
    let sections = said.sections().unwrap();
    for id in ["offers", "failures"] {
        assert!(sections.iter().any(|section| section.id == id), "{id}");
    }
    assert!(said.tables().iter().any(|table| table.caption == "What was seen"));
    let json = said.json().unwrap();
    assert_eq!(json["observe"]["findings"]["frames"]["lost"], Value::Null);
    assert!(json["observe"]["findings"]["without_tls"].is_null());
    assert!(json["observe"]["findings"]["offers"]["hello_retry"].as_u64() == Some(retries));
}

/// A stop ends it with what was made by then; what is resumed makes the others, and none twice.
fn a_stop_loses_nothing_and_what_follows_repeats_nothing() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let plan = json!({ "seed": 72, "sweeps": [{ "name": "each" }] });
    // Asked before all, and before each batch: the third time it stops, after one batch.
    assert_eq!(measure(&plan, &results, None, 3), End::Interrupted);
    let first = Run::open(&results)?;
    assert_eq!(first.samples.len(), 12);
    assert_eq!(measure(&plan, &results, None, u32::MAX), End::Complete);
    let run = Run::open(&results)?;
    assert_eq!(run.samples.len(), Scenario::ALL.len() * Population::ALL.len());
    assert_eq!(connections(&run).len(), run.samples.len());
    assert_eq!(run.samples[..12], first.samples[..]);
    let said = Said::of(&run.samples, &run.manifest).unwrap().ok_or("no samples")?;
    assert!(said.agreement.is_whole(), "{:?}", said.agreement);
    Ok(())
}

/// JSON lines that can be looked at afterwards.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Follows until all connections have been made, and a while longer.
struct Until(Arc<AtomicBool>);

impl Watcher for Until {
    fn progress(&mut self, _: &str, _: Duration, _: Duration) {}
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn warning(&mut self, what: &str, _: Option<&str>) {
        panic!("{what}");
    }
    fn note(&mut self, _: &str) {}
}

impl View for Until {
    fn now(&mut self, _: String) {}
}

/// Connections of one interface on two threads: each has one record, with a number of its own.
fn two_threads_share_an_interface() -> TestResult {
    const CONNECTIONS: usize = 24;
    let mut lab = lab::Lab::new(sleeping(75))?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &linkmodel::Path::default())?;
    let open = || Live::open_several(&["link1"], &LiveOptions::default(), 2);
    let mut sources = server.run(open)??;
    let address = (server.addr4()?, 4433);
    let listener = server.run(move || TcpListener::bind(address))??;
    let echo = std::thread::spawn(move || -> io::Result<()> {
        for _ in 0..CONNECTIONS {
            let (mut stream, _) = listener.accept()?;
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            stream.write_all(&byte)?;
        }
        Ok(())
    });
    let done = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&done);
    let talk = client.spawn(move || async move {
        let result = (0..CONNECTIONS).try_for_each(|_| {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(&[7])?;
            stream.read_exact(&mut [0])
        });
        // Rings hand over within 50 ms.
        tokio::time::sleep(Duration::from_secs(1)).await;
        said.store(true, Ordering::Relaxed);
        result
    });
    let lines = Lines::default();
    let options = SinkOptions { json: Some(Box::new(lines.clone())), ..SinkOptions::default() };
    let mut reading = Reading::open(options, 1000, sources.len()).unwrap();
    reading.live(&mut sources, None, &mut Until(done)).unwrap();
    let read = reading.finish().unwrap();
    talk.join()??;
    echo.join().map_err(|_| "the server panicked")??;
    assert!(read.counters.add_up(), "{:?}", read.counters);
    assert_eq!(read.counters.connections, CONNECTIONS as u64);
    let text = String::from_utf8(lines.0.lock().unwrap().clone())?;
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: BTreeSet<u64> = rows
        .iter()
        .filter(|row| row["kind"] == "connection")
        .map(|row| {
            // Both directions came to one tracker.
            assert_eq!(row["uncertain"], json!([]), "{row}");
            assert!(row["frames_up"].as_u64() > Some(2) && row["frames_down"].as_u64() > Some(2));
            row["number"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(numbers.len(), CONNECTIONS);
    Ok(())
}

/// What a box on the way does to a hello that offers TLS 1.3.
#[derive(Clone, Copy)]
enum Box13 {
    Resets,
    Swallows,
}

/// Takes connections, reads what comes first, and does what the box does.
fn stand_in_the_way(listener: TcpListener, box13: Box13, count: usize) -> io::Result<()> {
    let mut held = Vec::new();
    for _ in 0..count {
        let (mut stream, _) = listener.accept()?;
        let mut hello = [0; 4096];
        let _ = stream.read(&mut hello)?;
        match box13 {
            Box13::Resets => {
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            }
            Box13::Swallows => held.push(stream),
        }
    }
    // Until the client gives up.
    for mut stream in held {
        let _ = stream.read(&mut [0; 16]);
    }
    Ok(())
}

/// One side of a TLS connection, until it has had a byte of the other.
fn talk_tls(
    mut stream: TcpStream,
    mut session: Box<dyn tls::Session>,
    speaks_first: bool,
) -> io::Result<()> {
    let other = |error: tls::Error| io::Error::other(error.to_string());
    let (mut said, mut got) = (false, Vec::new());
    loop {
        if !said && session.may_send() && (speaks_first || !got.is_empty()) {
            session.send(b"?").map_err(other)?;
            said = true;
        }
        let mut out = Vec::new();
        session.write_tls(&mut out).map_err(other)?;
        stream.write_all(&out)?;
        if said && !got.is_empty() {
            return Ok(());
        }
        let mut bytes = [0; 8192];
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        session.read_tls(&bytes[..count]).map_err(other)?;
        session.receive(&mut got).map_err(other)?;
    }
}

/// Clients whose first hello a box resets or swallows, and that come again without TLS 1.3.
fn clients_that_fall_back_are_counted() -> TestResult {
    const NAME: &str = "behind.wiretax.test";
    const RESETS: usize = 3;
    let mut lab = lab::Lab::new(sleeping(76))?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &linkmodel::Path::default())?;
    let mut sources = vec![server.run(|| Live::open(&["link1"], &LiveOptions::default()))??];
    let address = server.addr4()?;
    let bind = move |port: u16| server.run(move || TcpListener::bind((address, port)));
    let (resets, swallows, real) = (bind(4431)??, bind(4432)??, bind(4433)??);

    let identity = Arc::new(tls::Identity::generate(tls::KeyType::EcdsaP256, 1, &[NAME])?);
    let client_of = |version| {
        let trust = tls::Trust::Roots(identity.roots());
        let mut config = tls::ClientConfig::new(tls::Library::OpenSsl, NAME, trust);
        config.versions = vec![version];
        tls::Client::new(&config)
    };
    let (newer, older) = (client_of(tls::Version::Tls13)?, client_of(tls::Version::Tls12)?);
    let mut config = tls::ServerConfig::new(tls::Library::OpenSsl, Arc::clone(&identity));
    config.versions = vec![tls::Version::Tls12];
    let of_server = tls::Server::new(&config)?;
    let boxes = [
        std::thread::spawn(move || stand_in_the_way(resets, Box13::Resets, RESETS)),
        std::thread::spawn(move || stand_in_the_way(swallows, Box13::Swallows, 1)),
    ];
    let answers = std::thread::spawn(move || -> io::Result<()> {
        for _ in 0..RESETS + 1 {
            let (stream, _) = real.accept()?;
            let session =
                of_server.accept().map_err(|error| io::Error::other(error.to_string()))?;
            talk_tls(stream, session, false)?;
        }
        Ok(())
    });
    let done = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&done);
    let talk = client.spawn(move || async move {
        let result = (0..RESETS + 1).try_for_each(|number| -> io::Result<()> {
            let failed = |error: tls::Error| io::Error::other(error.to_string());
            let mut hello = Vec::new();
            newer.start(None).and_then(|mut own| own.write_tls(&mut hello)).map_err(failed)?;
            let port = if number < RESETS { 4431 } else { 4432 };
            let mut stream = TcpStream::connect((address, port))?;
            stream.set_read_timeout(Some(Duration::from_millis(300)))?;
            stream.write_all(&hello)?;
            // Reset, or nothing until it has had enough.
            assert!(stream.read(&mut [0; 16]).is_err());
            drop(stream);
            let stream = TcpStream::connect((address, 4433))?;
            talk_tls(stream, older.start(None).map_err(failed)?, true)
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        said.store(true, Ordering::Relaxed);
        result
    });
    let mut reading = Reading::open(SinkOptions::default(), 1000, 1).unwrap();
    reading.live(&mut sources, None, &mut Until(done)).unwrap();
    let read = reading.finish().unwrap();
    talk.join()??;
    for box13 in boxes {
        box13.join().map_err(|_| "a box panicked")??;
    }
    answers.join().map_err(|_| "the server panicked")??;
    let found = observe::findings(&read.sinks.digest);
    let fallbacks: Vec<_> =
        found.fallbacks.iter().map(|row| (row.less, row.fate, row.count)).collect();
    let expected = [
        (observe::Less::Version, observe::Fate::Reset, RESETS as u64),
        (observe::Less::Version, observe::Fate::Silence, 1),
    ];
    assert_eq!(fallbacks, expected, "{:?}", found.failures);
    assert!(found.fallbacks.iter().all(|row| row.lost_ms.is_some()), "{:?}", found.fallbacks);
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("clients_that_fall_back_are_counted", clients_that_fall_back_are_counted),
        Test::inside("two_threads_share_an_interface", two_threads_share_an_interface),
        Test::inside("records_agree_with_the_logs", records_agree_with_the_logs),
        Test::inside(
            "a_stop_loses_nothing_and_what_follows_repeats_nothing",
            a_stop_loses_nothing_and_what_follows_repeats_nothing,
        ),
    ])
}
