//! Records of connections in the lab beside what both ends logged.

mod boxes;
mod common;
mod names;

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use capture::{Live, LiveOptions};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use observe::reading::SinkOptions;
use observe::truth::{Population, Said, Scenario};
use record::Run;
use serde_json::{Value, json};
use study::{End, Findings as _};

use crate::common::{heard, measure};

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
    assert_eq!(measure(&plan, &results, Some(folder.path().to_owned()), None)?, End::Complete);
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
    // Servers, tickets, the first batch, the second.
    assert_eq!(measure(&plan, &results, None, Some(4))?, End::Interrupted);
    let first = Run::open(&results)?;
    assert_eq!(first.samples.len(), 12);
    assert_eq!(measure(&plan, &results, None, None)?, End::Complete);
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

/// Connections of one interface on two threads: each has one record, with a number of its own.
fn two_threads_share_an_interface() -> TestResult {
    const CONNECTIONS: usize = 24;
    let mut lab = lab::Lab::new(sleeping(75))?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &linkmodel::Path::default())?;
    let open = || Live::open_several(&["link1"], &LiveOptions::default(), 2);
    let sources = server.run(open)??;
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
    let lines = Lines::default();
    let options = SinkOptions { json: Some(Box::new(lines.clone())), ..SinkOptions::default() };
    let read = heard(sources, options, &client, move || {
        (0..CONNECTIONS).try_for_each(|_| {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(&[7])?;
            stream.read_exact(&mut [0])
        })
    })?;
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

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside(
            "clients_that_fall_back_are_counted",
            boxes::clients_that_fall_back_are_counted,
        ),
        Test::inside(
            "the_studys_boxes_cost_what_the_captures_say",
            boxes::the_studys_boxes_cost_what_the_captures_say,
        ),
        Test::inside(
            "names_are_counted_as_they_were_asked",
            names::names_are_counted_as_they_were_asked,
        ),
        Test::inside("sessions_of_another_name_are_seen", names::sessions_of_another_name_are_seen),
        Test::inside("two_threads_share_an_interface", two_threads_share_an_interface),
        Test::inside("records_agree_with_the_logs", records_agree_with_the_logs),
        Test::inside(
            "a_stop_loses_nothing_and_what_follows_repeats_nothing",
            a_stop_loses_nothing_and_what_follows_repeats_nothing,
        ),
    ])
}
