//! Each preset against the windows that the SPDY paper read in code and specification, here from the wire:
//! the send window begins with 64 KB, Chromium announces 10 MB and updates when half is consumed, mod_spdy
//! updates at one eighth, Google's server has 1 MB. And tshark beside our chart of the same capture.

use std::path::Path as File;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use browser::{Bed, Before, Kept, Setting, Side, Windows};
use lab_test::net::sleeping;
use lab_test::{Need, TestResult, program, skip};
use linkmodel::Path;
use page::{HostId, Kind, Object, ObjectId, Page, Share};
use sequence::{Chart, Connection, Event, Limits, Reader, text};
use tracker::LinkType;
use units::{Bytes, Delay};
use web::Protocol;

use crate::setting;

const RTT: Duration = Duration::from_millis(20);
const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
/// The most of a SPDY frame that our sessions send, payload: what an update may come late by.
const FRAME: u64 = 16_376;

/// What the paper read of a product's windows.
struct Paper {
    windows: Windows,
    /// What is announced; `None`: the window that it begins with.
    announced: Option<u64>,
    /// The part of the window that is consumed when it is updated.
    part: u64,
    /// Bytes of a body that is some windows long.
    body: u64,
}

const PAPER: [Paper; 3] = [
    Paper { windows: Windows::Chromium, announced: Some(10 * MB), part: 2, body: 12 * MB },
    Paper { windows: Windows::ModSpdy, announced: None, part: 8, body: 512 * KB },
    Paper { windows: Windows::Google, announced: Some(MB), part: 2, body: 3 * MB },
];

/// A page of one exchange, so many bytes each way.
fn exchange(bytes: u64) -> TestResult<Page> {
    let mut object = Object::new(HostId(0), "/", Kind::Document, Bytes(bytes));
    object.upload = Some(Bytes(bytes));
    Ok(Page::new("exchange", vec!["www.page.test".to_owned()], vec![object])?)
}

/// A page of many small exchanges, so many bytes each way.
fn exchanges(count: u32, bytes: u64) -> TestResult<Page> {
    let mut objects = vec![Object::new(HostId(0), "/", Kind::Document, Bytes(bytes))];
    for number in 0..count {
        let path = format!("/{number}");
        let object = Object::new(HostId(0), path, Kind::Fetch, Bytes(bytes));
        let mut object = object.found_by(ObjectId(0), Share::ALL, Delay::ZERO);
        object.upload = Some(Bytes(bytes));
        objects.push(object);
    }
    Ok(Page::new("exchanges", vec!["www.page.test".to_owned()], objects)?)
}

fn chart(kept: &Kept) -> Chart {
    assert_eq!(kept.lost(), 0, "frames are missing");
    let mut reader = Reader::new(Limits::default());
    assert!(reader.add_keys(kept.secrets().as_bytes()) > 0, "no secrets");
    for frame in kept.frames() {
        reader.handle_packet(frame.at, LinkType::Ethernet, &frame.bytes);
    }
    reader.finish()
}

/// The one connection of a chart, read to its end.
fn only(mut chart: Chart) -> TestResult<Connection> {
    assert_eq!((chart.connections.len(), chart.unread.len(), chart.others), (1, 0, 0));
    let connection = chart.connections.pop().ok_or("no connection")?;
    assert_eq!((&connection.gaps[..], connection.left_out), (&[][..], 0));
    println!("{}", text::sentences(&connection).join("\n"));
    Ok(connection)
}

/// Loads a page once: what passed the client's end of the link, and the server's.
fn load(page: &Page, setting: &Setting) -> TestResult<[Kept; 2]> {
    let mut bed = Bed::new(sleeping(14), 1, 1)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.keep_secrets(true);
    lane.serve(page, setting)?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    let keeping = [lane.keep_frames(Side::Client)?, lane.keep_frames(Side::Server)?];
    let stop = Arc::default();
    let seen = lane.visit(page, setting, vec![Before::Forget], stop)?.join()??;
    let loaded = &seen.first().ok_or("no load")?.loaded;
    assert!(loaded.is_complete(), "{:?}", loaded.objects);
    let [client, server] = keeping.map(browser::Keeping::stop);
    Ok([client?, server?])
}

fn by(protocol: Protocol, windows: Windows) -> Setting {
    let settings = windows.settings(protocol);
    let timeout = Duration::from_secs(90);
    Setting { settings, timeout, ..setting(protocol) }
}

/// Both directions, each captured at its sender's end.
fn directions(kept: &[Kept; 2]) -> TestResult<[(&'static str, sequence::Windows); 2]> {
    let [client, server] = kept;
    let (up, down) = (only(chart(client))?, only(chart(server))?);
    Ok([("up", up.client_sends), ("down", down.server_sends)])
}

/// One large body each way by SPDY/3.1: what begins, what is announced, and after how much an update
/// comes, of a stream and of the session.
pub fn presets_have_the_windows_that_the_paper_read() -> TestResult {
    for Paper { windows: preset, announced, part, body } in PAPER {
        let kept = load(&exchange(body)?, &by(Protocol::Spdy31, preset))?;
        let window = announced.unwrap_or(64 * KB);
        for (direction, windows) in directions(&kept)? {
            let what = format!("{preset} {direction}: {windows:?}");
            assert_eq!(windows.data_bytes, body, "{what}");
            assert_eq!((windows.start_bytes, windows.overruns), (65_536, 0), "{what}");
            assert_eq!(windows.connection_start_bytes, Some(65_536), "{what}");
            assert_eq!(windows.announced_bytes.map(u64::from), announced, "{what}");
            assert_eq!(windows.connection_bytes, Some(window as i64), "{what}");
            // Before SETTINGS came nobody can have sent more than a stream begins with.
            assert!(windows.before_settings_bytes <= 65_536, "{what}");
            for updates in [windows.stream_updates, windows.connection_updates] {
                let within = window / part + 1..=window / part + FRAME;
                let (least, largest) = (updates.least_bytes, updates.largest_bytes);
                for bytes in [least, largest] {
                    let bytes = u64::from(bytes.ok_or_else(|| what.clone())?);
                    assert!(within.contains(&bytes), "{bytes} is not in {within:?}; {what}");
                }
                assert!(updates.count >= body / (window / part + FRAME) - 1, "{what}");
            }
        }
    }
    Ok(())
}

/// Many small bodies each way: the session's updates come within one of them after one eighth, which a
/// large body's frames are too long to show.
pub fn mod_spdy_updates_at_one_eighth() -> TestResult {
    const BODY: u64 = 500;
    let setting = by(Protocol::Spdy31, Windows::ModSpdy);
    for (direction, windows) in directions(&load(&exchanges(90, BODY)?, &setting)?)? {
        let updates = windows.connection_updates;
        let within = 8 * KB + 1..=8 * KB + BODY;
        for bytes in [updates.least_bytes, updates.largest_bytes] {
            let bytes = u64::from(bytes.ok_or("no update")?);
            assert!(within.contains(&bytes), "{direction}: {updates:?}");
        }
        let share = updates.median_share.ok_or("no share")?;
        assert!((0.125..0.134).contains(&share) && updates.count >= 4, "{direction}: {updates:?}");
        assert_eq!(windows.stream_updates.count, 0, "{direction}: a stream has less");
    }
    Ok(())
}

/// A window of 64 KB stops a sender that is a round trip away, at the very byte: it was 64 KB that it began
/// with. SPDY/3 has no session that could stop it before.
pub fn a_window_of_64_kb_stops_its_sender() -> TestResult {
    let kept = load(&exchange(MB)?, &by(Protocol::Spdy3, Windows::ModSpdy))?;
    for (direction, windows) in directions(&kept)? {
        let what = format!("{direction}: {windows:?}");
        assert_eq!((windows.announced_bytes, windows.connection_bytes), (None, None), "{what}");
        assert_eq!((windows.overruns, windows.data_bytes), (0, MB), "{what}");
        assert!(windows.shut > 0 && windows.was_nearly_shut(), "{what}");
        assert_eq!(windows.least_stream.map(|least| least.bytes), Some(0), "{what}");
    }
    Ok(())
}

/// A frame as both tell of it: whether the client sent it, type (none: SPDY's data), stream, length.
type Frame = (bool, Option<u64>, u64, u64);

fn ours(connection: &Connection) -> Vec<Frame> {
    let is_spdy = connection.protocol != sequence::Protocol::Http2;
    let of = |event: &Event| {
        let number = match (event.kind.name(), is_spdy) {
            ("DATA", true) => None,
            ("SYN_STREAM", _) | ("HEADERS", false) => Some(1),
            ("SYN_REPLY", _) => Some(2),
            ("RST_STREAM", _) => Some(3),
            ("SETTINGS", _) => Some(4),
            ("PING", _) => Some(6),
            ("GOAWAY", _) => Some(7),
            ("HEADERS", true) | ("WINDOW_UPDATE", false) => Some(8),
            ("WINDOW_UPDATE", true) => Some(9),
            ("DATA", false) => Some(0),
            (other, _) => panic!("{other}"),
        };
        (event.from_client, number, u64::from(event.stream), event.length)
    };
    connection.events.iter().map(of).collect()
}

/// The numbers of a field of a packet.
fn numbers(text: &str) -> Vec<u64> {
    let number = |text: &str| match (text, text.strip_prefix("0x")) {
        ("True", _) => 1,
        ("False", _) => 0,
        (_, Some(digits)) => u64::from_str_radix(digits, 16).unwrap(),
        (digits, None) => digits.parse().unwrap(),
    };
    text.split(',').filter(|text| !text.is_empty()).map(number).collect()
}

/// tshark's frames of a capture that has its secrets in it.
fn theirs(tshark: &str, file: &File, connection: &Connection) -> Vec<Frame> {
    let (port, is_spdy) =
        (connection.server.port(), connection.protocol != sequence::Protocol::Http2);
    let name = if is_spdy { "spdy" } else { "http2" };
    let mut command = Command::new(tshark);
    command.arg("-r").arg(file).args(["-n", "-Y", name, "-T", "fields", "-E", "occurrence=a"]);
    command.args(["-d", &format!("tcp.port=={port},tls")]);
    if is_spdy {
        // HTTP/2 is known by ALPN.
        command.args(["-d", &format!("tls.port=={port},spdy")]);
    }
    command.args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    let bad = ["_ws.malformed"];
    let spdy = ["tcp.srcport", "spdy.length", "spdy.streamid", "spdy.control_bit", "spdy.type"];
    let http2 = ["tcp.srcport", "http2.length", "http2.streamid", "http2.type"];
    let fields = if is_spdy { &spdy[..] } else { &http2[..] };
    command.args(bad.iter().chain(fields).flat_map(|field| ["-e", field]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut frames = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let mut values = line.split('\t');
        assert_eq!(values.next(), Some(""), "malformed: {line}");
        let values: Vec<Vec<u64>> = values.map(numbers).collect();
        let from_client = values[0] != [u64::from(port)];
        let mut streams = values[2].iter().copied();
        if is_spdy {
            let mut types = values[4].iter().copied();
            for (length, is_control) in values[1].iter().zip(&values[3]) {
                let kind = (*is_control == 1).then(|| types.next().unwrap());
                // SETTINGS, PING and GOAWAY are of no stream.
                let stream = match kind {
                    Some(4 | 6 | 7) => 0,
                    _ => streams.next().unwrap(),
                };
                frames.push((from_client, kind, stream, *length));
            }
        } else {
            for (length, kind) in values[1].iter().zip(&values[3]) {
                frames.push((from_client, Some(*kind), streams.next().unwrap(), *length));
            }
        }
        assert_eq!(streams.next(), None, "{line}");
    }
    frames
}

/// tshark reads the same frames, in the same order, off the file that we write.
pub fn tshark_reads_the_same_frames() -> TestResult {
    let Some(tshark) = program("tshark") else { return skip(Need::Tshark, "there is no tshark") };
    let folder = tempfile::tempdir()?;
    for (protocol, windows, version) in [
        (Protocol::Spdy31, Windows::ModSpdy, tls::Version::Tls13),
        (Protocol::Spdy31, Windows::Chromium, tls::Version::Tls12),
        (Protocol::Spdy3, Windows::Google, tls::Version::Tls13),
        (Protocol::Http2, Windows::ModSpdy, tls::Version::Tls13),
        (Protocol::Http2, Windows::Chromium, tls::Version::Tls12),
    ] {
        let setting = Setting { versions: vec![version], ..by(protocol, windows) };
        let [_, kept] = load(&exchanges(12, 40_000)?, &setting)?;
        let file = kept.write(folder.path().join("load.pcapng"))?;
        let connection = only(chart(&kept))?;
        let (ours, theirs) = (ours(&connection), theirs(&tshark, &file, &connection));
        for from_client in [true, false] {
            let side = |frames: &[Frame]| -> Vec<Frame> {
                frames.iter().filter(|frame| frame.0 == from_client).copied().collect()
            };
            let (ours, theirs) = (side(&ours), side(&theirs));
            let differs = ours.iter().zip(&theirs).position(|(one, other)| one != other);
            assert_eq!(differs, None, "{protocol} {from_client}: {ours:?}\n{theirs:?}");
            assert_eq!(ours.len(), theirs.len(), "{protocol} {from_client}");
            assert!(ours.len() > 20, "{protocol} {from_client}");
        }
    }
    Ok(())
}
