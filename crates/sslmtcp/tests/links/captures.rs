//! tshark over captures of every profile.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use sslmtcp::{Carried, ConnectOptions, Embedding, SslmTcpStream};
use tls::{KeyLog, Ticket, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::service::{Site, keys, request, response};
use lab_test::net::WAIT;
use lab_test::net::peers::{PORT, limited};
use lab_test::{Need, Test, TestResult, skip};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("tshark_reads_sequential_tls13", sequential13),
        Test::new("tshark_reads_sequential_tls12_rsa", sequential12),
        Test::new("tshark_reads_the_profile_tls13", tls13),
        Test::new("tshark_reads_the_profile_0rtt", zero_rtt),
        Test::new("tshark_reads_the_profile_paper", paper),
    ]
}

/// Handshake types (RFC 8446 §4, RFC 5246 §7.4).
const CLIENT_HELLO: u32 = 1;
const SERVER_HELLO: u32 = 2;
const END_OF_EARLY_DATA: u32 = 5;
const ENCRYPTED_EXTENSIONS: u32 = 8;
const CERTIFICATE: u32 = 11;
const SERVER_HELLO_DONE: u32 = 14;
const CERTIFICATE_VERIFY: u32 = 15;
const CLIENT_KEY_EXCHANGE: u32 = 16;
const FINISHED: u32 = 20;

/// A frame as tshark reads it.
#[derive(Debug)]
struct Frame {
    syn: bool,
    from_server: bool,
    payload: usize,
    handshake: Vec<u32>,
    /// Content types of the records (RFC 8446 §5.1), as on the wire.
    content: Vec<u32>,
    severity: Vec<u32>,
    malformed: bool,
    message: String,
    /// HTTP that tshark decrypted.
    http: String,
}

/// Severity of an expert's note from which on something is wrong (`PI_ERROR` of Wireshark's
/// epan/proto.h).
const ERROR: u32 = 0x0080_0000;

/// Reads a capture with tshark, as TLS; the port is not one that it knows.
fn tshark(file: &Path, key_log: &Path) -> TestResult<Vec<Frame>> {
    const FIELDS: [&str; 10] = [
        "tcp.flags.syn",
        "tcp.srcport",
        "tcp.len",
        "tls.handshake.type",
        "tls.record.content_type",
        "tls.record.opaque_type",
        "_ws.expert.severity",
        "_ws.malformed",
        "_ws.expert.message",
        "http.request.method",
    ];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file);
    command.args(["-2", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    command.args(["-o", "tls.desegment_ssl_records:TRUE"]);
    command.arg("-o").arg(format!("tls.keylog_file:{}", key_log.display()));
    command.args(["-d", &format!("tcp.port=={PORT},tls"), "-T", "fields", "-E", "separator=;"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return skip(Need::Tshark, "tshark is not installed");
        }
        other => other?,
    };
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    println!("{}\n{text}", FIELDS.join(";"));
    text.lines().map(parse).collect()
}

fn parse(line: &str) -> TestResult<Frame> {
    let mut fields = line.split(';');
    let mut next = || fields.next().unwrap_or_default();
    let numbers = |text: &str| -> TestResult<Vec<u32>> {
        text.split(',').filter(|one| !one.is_empty()).map(|one| Ok(one.parse()?)).collect()
    };
    let syn = next() == "1";
    let from_server = next() == PORT.to_string();
    let payload = next().parse().unwrap_or(0);
    let handshake = numbers(next())?;
    let mut content = numbers(next())?;
    content.extend(numbers(next())?);
    let severity = numbers(next())?;
    let malformed = !next().is_empty();
    let (message, http) = (next().to_owned(), next().to_owned());
    Ok(Frame { syn, from_server, payload, handshake, content, severity, malformed, message, http })
}

/// Nothing in the capture is wrong, as far as tshark can tell.
fn assert_sound(frames: &[Frame]) {
    for (number, frame) in frames.iter().enumerate() {
        assert!(!frame.malformed, "frame {}: {frame:?}", number + 1);
        assert!(frame.severity.iter().all(|s| *s < ERROR), "frame {}: {frame:?}", number + 1);
        assert!(!frame.message.contains("checksum"), "frame {}: {frame:?}", number + 1);
    }
}

/// What one request looked like to tshark.
struct Seen {
    frames: Vec<Frame>,
    carried: Carried,
}

impl Seen {
    /// Handshake types that one side sent, in order.
    fn handshake(&self, from_server: bool) -> Vec<u32> {
        let frames = self.frames.iter().filter(|frame| frame.from_server == from_server);
        frames.flat_map(|frame| frame.handshake.iter().copied()).collect()
    }

    /// Whether tshark could decrypt the request, from the secrets that the client logged.
    fn request_is_read(&self) -> bool {
        self.frames.iter().any(|frame| !frame.from_server && frame.http == "GET")
    }

    fn syn(&self) -> TestResult<&Frame> {
        Ok(self.frames.iter().find(|f| f.syn && !f.from_server).ok_or("no SYN")?)
    }

    fn syn_ack(&self) -> TestResult<&Frame> {
        Ok(self.frames.iter().find(|f| f.syn && f.from_server).ok_or("no SYN-ACK")?)
    }
}

/// Makes a request in a profile, captured at the client; with early data after one that got the
/// ticket.
fn seen(embedding: Embedding, version: Version) -> TestResult<Seen> {
    let folder = tempfile::tempdir()?;
    let (capture_file, key_file) = (folder.path().join("c.pcapng"), folder.path().join("keys"));
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&lines);
    let log = KeyLog::new(move |line| {
        let mut lines = sink.lock().unwrap_or_else(PoisonError::into_inner);
        *lines += line;
        *lines += "\n";
    });
    let site = Site::new()?;
    let keys = keys(version, Some(log))?;
    site.serve(keys.server)?;
    let early = embedding == Embedding::ZeroRtt;
    let mut ticket = None;
    if early {
        ticket = talk(&site, &keys.client, Embedding::Tls13, None)?.1;
        assert!(ticket.is_some(), "no ticket came");
    }
    let capture = site.pair.client.capture(&capture_file)?;
    let (carried, _) = talk(&site, &keys.client, embedding, ticket)?;
    capture.stop()?;
    std::fs::write(&key_file, &*lines.lock().unwrap_or_else(PoisonError::into_inner))?;
    let frames = tshark(&capture_file, &key_file)?;
    assert_sound(&frames);
    assert!(frames.len() >= 6, "{frames:?}");
    Ok(Seen { frames, carried })
}

/// One request and its answer; how it was carried, and the ticket that came.
fn talk(
    site: &Site,
    client: &tls::Client,
    embedding: Embedding,
    ticket: Option<Ticket>,
) -> TestResult<(Carried, Option<Ticket>)> {
    let (stack, to, client) = (site.client.clone(), site.to, client.clone());
    let talking = site.pair.client.spawn(move || async move {
        let early = embedding == Embedding::ZeroRtt;
        let options = ConnectOptions {
            embedding,
            ticket: ticket.as_ref(),
            early_data: if early { request().to_vec() } else { Vec::new() },
            ..ConnectOptions::default()
        };
        let connecting = SslmTcpStream::connect_ssl(&stack, to, &client, options);
        let mut stream = limited("the connection", connecting).await??;
        if !early {
            stream.write_all(request()).await?;
        }
        let mut answer = Vec::new();
        limited("the answer", stream.read_to_end(&mut answer)).await??;
        assert_eq!(String::from_utf8_lossy(&answer), response());
        let carried = stream.report().carried;
        let ticket = stream.take_ticket();
        stream.shutdown().await?;
        TestResult::Ok((carried, ticket))
    });
    talking.join_within(WAIT)?
}

fn sequential13() -> TestResult {
    let seen = seen(Embedding::None, Version::Tls13)?;
    assert_eq!(seen.carried, Carried::Sequential);
    assert_eq!((seen.syn()?.payload, seen.syn_ack()?.payload), (0, 0));
    tls13_messages(&seen);
    assert!(seen.request_is_read());
    Ok(())
}

fn tls13_messages(seen: &Seen) {
    let client = seen.handshake(false);
    assert_eq!(client, [CLIENT_HELLO, FINISHED], "{:?}", seen.frames);
    let server = seen.handshake(true);
    let flight = [SERVER_HELLO, ENCRYPTED_EXTENSIONS, CERTIFICATE, CERTIFICATE_VERIFY, FINISHED];
    assert!(server.starts_with(&flight), "{server:?}");
}

fn tls13() -> TestResult {
    let seen = seen(Embedding::Tls13, Version::Tls13)?;
    assert_eq!(seen.carried, Carried::Embedded);
    assert!(seen.syn()?.payload >= 1200, "{:?}", seen.syn()?);
    assert!(seen.syn_ack()?.payload >= 1024, "{:?}", seen.syn_ack()?);
    assert_eq!(seen.syn()?.content.first(), Some(&22));
    tls13_messages(&seen);
    assert!(seen.request_is_read());
    Ok(())
}

fn zero_rtt() -> TestResult {
    let seen = seen(Embedding::ZeroRtt, Version::Tls13)?;
    assert_eq!(seen.carried, Carried::Embedded);
    assert!(seen.syn()?.payload >= 1200, "{:?}", seen.syn()?);
    // The request is in the SYN: an application data record behind the hello.
    assert!(seen.syn()?.content.contains(&23), "{:?}", seen.syn()?);
    assert_eq!(seen.handshake(false), [CLIENT_HELLO, END_OF_EARLY_DATA, FINISHED]);
    let server = seen.handshake(true);
    assert!(server.starts_with(&[SERVER_HELLO, ENCRYPTED_EXTENSIONS, FINISHED]), "{server:?}");
    assert_eq!(seen.syn()?.http, "GET", "{:?}", seen.syn()?);
    Ok(())
}

fn sequential12() -> TestResult {
    let seen = seen(Embedding::None, Version::Tls12)?;
    assert_eq!(seen.carried, Carried::Sequential);
    assert_eq!(seen.handshake(false), [CLIENT_HELLO, CLIENT_KEY_EXCHANGE, FINISHED]);
    let server = seen.handshake(true);
    assert!(server.starts_with(&[SERVER_HELLO, CERTIFICATE, SERVER_HELLO_DONE]), "{server:?}");
    assert!(seen.request_is_read());
    Ok(())
}

// The envelopes are not TLS: tshark cannot read the records in them, and must not stumble over
// them either. Behind them it reads the server's ChangeCipherSpec and Finished, and the data.
fn paper() -> TestResult {
    let seen = seen(Embedding::Paper, Version::Tls12)?;
    assert_eq!(seen.carried, Carried::Embedded);
    // Document §4.2: at least 1024 bytes of payload.
    assert!(seen.syn()?.payload >= 1024, "{:?}", seen.syn()?);
    assert!(seen.syn_ack()?.payload >= 1024, "{:?}", seen.syn_ack()?);
    let server: Vec<u32> = seen
        .frames
        .iter()
        .filter(|frame| frame.from_server && !frame.syn)
        .flat_map(|frame| frame.content.iter().copied())
        .collect();
    assert!(server.contains(&20) && server.contains(&22) && server.contains(&23), "{server:?}");
    Ok(())
}
