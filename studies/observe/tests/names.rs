//! Several names of one server: who asked for which, and sessions that are resumed at another.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use capture::{Live, LiveOptions};
use lab_test::TestResult;
use lab_test::net::sleeping;
use observe::CrossNames;
use observe::reading::SinkOptions;
use observe::truth::{CrossedRow, Said};
use record::Run;
use serde_json::json;
use study::{End, Findings as _};
use tls::{Library, Version};

use crate::common::{failed, heard, measure, talk_tls};

/// Connections by name are those of the plan's shares, in the samples and in the records.
pub fn names_are_counted_as_they_were_asked() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let hosts = ["www.wiretax.test=3", "api.wiretax.test"];
    let plan = json!({ "seed": 77, "sweeps": [
        { "name": "names", "population": "wifi", "visit": ["Tls12", "Tls13"], "host": hosts,
          "pause": "exponential:20ms", "repeat": 8 },
        { "name": "crossed", "visit": ["Tls12CrossName", "Tls13CrossName", "Tls13CrossNameRefused"],
          "host": hosts, "repeat": 4 },
    ] });
    assert_eq!(measure(&plan, &results, None, None)?, End::Complete);
    let run = Run::open(&results)?;
    let said = Said::of(&run.samples, &run.manifest).unwrap().ok_or("no samples")?;
    let agreement = &said.agreement;
    println!("{}", serde_json::to_string_pretty(agreement)?);
    assert!(agreement.is_whole(), "{agreement:?}");
    // Of eight six and two, of four three and one.
    let count = |share_of_8: usize, share_of_4: usize| 2 * share_of_8 + 2 * 3 * share_of_4;
    let hosts: Vec<_> =
        agreement.hosts.iter().map(|row| (row.host.as_str(), row.made, row.recorded)).collect();
    let expected = [("api.wiretax.test", count(2, 1)), ("www.wiretax.test", count(6, 3))];
    assert_eq!(hosts, expected.map(|(host, made)| (host, made, made)));
    for sample in &run.samples {
        assert_eq!(sample.labels["server_name"], sample.point["host"], "{sample:?}");
        assert!(sample.command.contains(&format!(" --host {}", sample.point["host"])));
    }
    for row in &agreement.crossed {
        crossed_as_the_server_permits(row);
    }
    assert_eq!(agreement.crossed.len(), 6);
    assert_eq!(agreement.series.full, 16);
    assert!((1..16).contains(&agreement.series.could_cross), "{:?}", agreement.series);
    let pauses: Vec<_> = agreement.pauses.iter().map(|row| row.pause.as_str()).collect();
    assert_eq!(pauses, ["exponential:20ms"]);
    let put_in = run.samples.iter().filter(|own| own.values.contains_key("pause_ms")).count();
    assert_eq!(agreement.pauses[0].count, put_in);
    let (_, markdown) = said.markdown().unwrap().remove(0);
    assert!(markdown.contains("4 of 4 resumed at another name"), "{markdown}");
    Ok(())
}

fn crossed_as_the_server_permits(row: &CrossedRow) {
    let resumed = if row.visit == "Tls13CrossNameRefused" { 0 } else { 4 };
    assert_eq!((row.count, row.resumed), (4, resumed), "{row:?}");
    // Full handshakes were made by one population alone.
    assert_eq!(row.full_flight_bytes.is_some(), row.population == "wifi");
    if let (Some(sent), Some(full)) = (row.flight_bytes, row.full_flight_bytes)
        && resumed > 0
    {
        assert!(sent < full, "a resumed handshake has no certificate: {row:?}");
    }
}

/// Answers so many connections.
fn answer(listener: TcpListener, server: tls::Server, connections: usize) -> io::Result<()> {
    for _ in 0..connections {
        let (stream, _) = listener.accept()?;
        talk_tls(stream, server.accept().map_err(failed)?, &[], false)?;
    }
    Ok(())
}

/// One address with three names on two servers: one resumes any name's sessions, one only a name's own.
pub fn sessions_of_another_name_are_seen() -> TestResult {
    const NAMES: [&str; 4] = ["a.test", "b.test", "c.test", "d.test"];
    let mut lab = lab::Lab::new(sleeping(78))?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &linkmodel::Path::default())?;
    let sources = vec![server.run(|| Live::open(&["link1"], &LiveOptions::default()))??];
    let address = server.addr4()?;
    let identity = Arc::new(tls::Identity::generate(tls::KeyType::EcdsaP256, 1, &NAMES)?);
    let mut answers = Vec::new();
    for (port, library, connections) in [(4431, Library::OpenSsl, 5), (4432, Library::Rustls, 2)] {
        let listener = server.run(move || TcpListener::bind((address, port)))??;
        let mut config = tls::ServerConfig::new(library, Arc::clone(&identity));
        config.versions = vec![Version::Tls12, Version::Tls13];
        let of_server = tls::Server::new(&config)?;
        answers.push(std::thread::spawn(move || answer(listener, of_server, connections)));
    }
    let client_of = |version: Version| {
        let trust = tls::Trust::Roots(identity.roots());
        let mut config = tls::ClientConfig::new(Library::OpenSsl, NAMES[0], trust);
        config.versions = vec![version];
        tls::Client::new(&config)
    };
    let (newer, older) = (client_of(Version::Tls13)?, client_of(Version::Tls12)?);
    let read = heard(sources, SinkOptions::default(), &client, move || {
        let visit = |port: u16, client: &tls::Client, name: &str, ticket: Option<&tls::Ticket>| {
            let session = client.with_name(name).and_then(|own| own.start(ticket));
            let stream = TcpStream::connect((address, port))?;
            talk_tls(stream, session.map_err(failed)?, &[], true)
        };
        let ticket = visit(4431, &newer, NAMES[0], None)?;
        visit(4431, &newer, NAMES[1], ticket.as_ref())?;
        visit(4431, &newer, NAMES[2], None)?;
        visit(4431, &newer, NAMES[0], None)?;
        visit(4431, &older, NAMES[3], None)?;
        let ticket = visit(4432, &newer, NAMES[0], None)?;
        assert!(ticket.is_some());
        visit(4432, &newer, NAMES[1], ticket.as_ref())?;
        Ok(())
    })?;
    for answers in answers {
        answers.join().map_err(|_| "a server panicked")??;
    }
    let found = observe::findings(&read.sinks.digest);
    let CrossNames {
        handshakes,
        first,
        same_name,
        resumed,
        refused,
        missed_tls13,
        missed_tls12,
        ..
    } = found.cross_names;
    assert_eq!((handshakes, first, same_name), (7, 2, 1), "{:?}", found.cross_names);
    let others = (resumed, refused, missed_tls13, missed_tls12);
    assert_eq!(others, (1, 1, 1, 1), "{:?}", found.cross_names);
    let shown = found.tables();
    assert!(shown.iter().any(|table| table.caption == "Sessions across server names"));
    Ok(())
}
