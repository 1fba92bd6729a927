//! tshark's dissector on a conversation of two of our sessions, written as TCP in clear.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use lab_test::{Need, program, skip};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use spdy::{
    Config, Event, GoAwayStatus, Headers, Priority, Role, RstStatus, Session, Setting, SettingId,
    Version,
};
use units::Time;
use wire::spdy::{Frame, Frames};

/// The port that Wireshark takes for SPDY in clear.
const PORT: u16 = 6121;
const CLIENT_PORT: u16 = 40_000;
/// Payload of a segment: frames are cut anywhere.
const SEGMENT: usize = 1000;

/// One direction of the connection.
struct Side {
    address: u8,
    port: u16,
    sent: Vec<u8>,
    sequence: u32,
    headers: Vec<(String, String)>,
}

/// The connection, written to a capture.
struct Capture {
    writer: PcapWriter<std::fs::File>,
    packets: u32,
    sides: [Side; 2],
}

const SYN: u8 = 2;
const ACK: u8 = 16;

impl Capture {
    fn new(path: &Path) -> Capture {
        let header = PcapHeader { datalink: DataLink::RAW, ..PcapHeader::default() };
        let file = std::fs::File::create(path).unwrap();
        let side =
            |address, port| Side { address, port, sent: vec![], sequence: 1000, headers: vec![] };
        let mut capture = Capture {
            writer: PcapWriter::with_header(file, header).unwrap(),
            packets: 0,
            sides: [side(1, CLIENT_PORT), side(2, PORT)],
        };
        capture.packet(0, SYN, &[]);
        capture.packet(1, SYN | ACK, &[]);
        capture.packet(0, ACK, &[]);
        capture
    }

    fn bytes(&mut self, from: usize, bytes: &[u8]) {
        self.sides[from].sent.extend_from_slice(bytes);
        for payload in bytes.chunks(SEGMENT) {
            self.packet(from, ACK, payload);
        }
    }

    /// A packet of IPv4 and TCP (RFC 791 §3.1, RFC 9293 §3.1); the checksums are not looked at.
    fn packet(&mut self, from: usize, flags: u8, payload: &[u8]) {
        let acknowledged = self.sides[1 - from].sequence;
        let (source, destination) = (&self.sides[from], &self.sides[1 - from]);
        let length = 40 + payload.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([10, 0, 0, source.address, 10, 0, 0, destination.address]);
        packet.extend(source.port.to_be_bytes());
        packet.extend(destination.port.to_be_bytes());
        packet.extend(source.sequence.to_be_bytes());
        packet.extend(acknowledged.to_be_bytes());
        packet.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);
        self.packets += 1;
        let time = Duration::from_millis(u64::from(self.packets));
        let record = PcapPacket::new(time, packet.len() as u32, &packet);
        self.writer.write_packet(&record).unwrap();
        self.sides[from].sequence += payload.len() as u32 + u32::from(flags & SYN != 0);
    }

    fn header_pairs(&mut self, from: usize, headers: &Headers) -> Headers {
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        let pairs = headers.iter().map(|(name, value)| (name.to_owned(), text(value)));
        self.sides[from].headers.extend(pairs);
        headers.clone()
    }
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    Headers::from_pairs(pairs.iter().copied()).unwrap()
}

fn resource(method: Option<&str>, path: &str) -> Headers {
    let url =
        [(":scheme", "https"), (":host", "example.org"), (":path", path), (":version", "HTTP/1.1")];
    let accept = ("accept-encoding", "gzip,deflate,sdch");
    let agent = ("user-agent", "a judge's friend");
    let method = method.map_or((":status", "200"), |method| (":method", method));
    headers(&[&[method][..], &url, &[accept, agent]].concat())
}

/// Carries all that waits, both ways, until nothing does.
fn carry(capture: &mut Capture, sessions: &mut [Session; 2]) -> Vec<Event> {
    let mut events = vec![];
    while sessions.iter().any(Session::wants_write) {
        for from in [0, 1] {
            let mut out = vec![];
            sessions[from].write_to(&mut out, 5000);
            capture.bytes(from, &out);
            let to = &mut sessions[1 - from];
            to.receive(Bytes::from(out));
            while let Some(event) = to.poll_event(Time::ZERO) {
                if let Event::Data { stream, data, .. } = &event {
                    to.consume(*stream, data.len());
                }
                events.push(event);
            }
        }
    }
    events
}

/// A conversation with a frame of every type that our sessions send.
fn conversation(capture: &mut Capture, version: Version) {
    let persist = Setting { persist: true, ..Setting::new(SettingId::CURRENT_CWND, 32) };
    let config = |settings| Config { settings, send_queue: 1 << 20, ..Config::default() };
    let mut sessions = [
        Session::new(Role::Client, version, config(vec![])).unwrap(),
        Session::new(Role::Server, version, config(vec![persist])).unwrap(),
    ];
    let mut streams = vec![];
    for (number, path) in ["/", "/style.css", "/a?b=c"].into_iter().enumerate() {
        let request = capture.header_pairs(0, &resource(Some("GET"), path));
        let priority = Priority::new(number as u8).unwrap();
        streams.push(sessions[0].open(&request, priority, true).unwrap());
    }
    let request = capture.header_pairs(0, &resource(Some("POST"), "/upload"));
    let upload = sessions[0].open(&request, Priority::LOWEST, false).unwrap();
    sessions[0].write(upload, &mut Bytes::from(vec![b'u'; 300_000]), true).unwrap();
    sessions[0].ping(Time::ZERO).unwrap();
    carry(capture, &mut sessions);
    let mut pushed = resource(None, "/pushed.js");
    // Which §3.3.1 does not ask for, but npm's client.
    pushed.push(":method", b"GET").unwrap();
    let pushed = capture.header_pairs(1, &pushed);
    let push = sessions[1].push(streams[0], &pushed, Priority::LOWEST, false).unwrap();
    for stream in &streams {
        let reply =
            capture.header_pairs(1, &headers(&[(":status", "200 OK"), (":version", "HTTP/1.1")]));
        sessions[1].reply(*stream, &reply, false).unwrap();
        sessions[1].write(*stream, &mut Bytes::from(vec![b'd'; 30_000]), false).unwrap();
    }
    carry(capture, &mut sessions);
    let trailer = capture.header_pairs(1, &headers(&[("x-trailer", "end")]));
    sessions[1].headers(streams[0], &trailer, true).unwrap();
    sessions[1].write(streams[1], &mut Bytes::new(), true).unwrap();
    sessions[1].write(push, &mut Bytes::from_static(b"script"), true).unwrap();
    sessions[0].reset(streams[2], RstStatus::CANCEL).unwrap();
    sessions[1].ping(Time::ZERO).unwrap();
    carry(capture, &mut sessions);
    sessions.iter_mut().for_each(|session| session.go_away(GoAwayStatus::OK));
    carry(capture, &mut sessions);
}

/// What must not be in a packet, then what is compared.
const BAD: usize = 6;
const FIELDS: [&str; BAD + 4] = [
    "_ws.malformed",
    "_ws.expert.message",
    "spdy.inflation_failed",
    "spdy.malformed.frame_data",
    "spdy.malformed.setting_frame",
    "spdy.type.invalid",
    "tcp.srcport",
    "spdy.type",
    "spdy.header.name",
    "spdy.header.value",
];

/// tshark's fields of each packet; several values of one are separated by `\u{1}`.
fn dissected(tshark: &str, file: &Path) -> Vec<Vec<String>> {
    let decode = format!("tcp.port=={PORT},spdy");
    let mut command = Command::new(tshark);
    command.arg("-r").arg(file).args(["-d", &decode, "-Y", "spdy", "-T", "fields"]);
    command.args(["-E", "occurrence=a", "-E", "aggregator=\u{1}", "-E", "separator=/t"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// The values of a field in a direction, in the order of the wire.
fn values(packets: &[Vec<String>], port: u16, field: &str) -> Vec<String> {
    let at = FIELDS.iter().position(|name| *name == field).unwrap();
    let port = port.to_string();
    let texts = packets.iter().filter(|packet| packet[BAD] == port).map(|packet| &packet[at]);
    let texts = texts.filter(|text| !text.is_empty());
    texts.flat_map(|text| text.split('\u{1}')).map(str::to_owned).collect()
}

#[test]
fn tshark_finds_nothing_malformed_and_the_same_headers() {
    let Some(tshark) = program("tshark") else { skip!(Need::Tshark, "there is no tshark") };
    let folder = tempfile::tempdir().unwrap();
    for version in Version::ALL {
        let file = folder.path().join("spdy.pcap");
        let mut capture = Capture::new(&file);
        conversation(&mut capture, version);
        let packets = dissected(&tshark, &file);
        for packet in &packets {
            assert!(packet[..BAD].iter().all(String::is_empty), "{version:?}: {packet:?}");
        }
        for side in &capture.sides {
            let names = values(&packets, side.port, "spdy.header.name");
            let texts = values(&packets, side.port, "spdy.header.value");
            let theirs: Vec<_> = names.into_iter().zip(texts).collect();
            assert_eq!(theirs, side.headers, "{version:?}");

            let types: Vec<_> = Frames::new(&side.sent)
                .filter_map(|frame| match frame.unwrap() {
                    Frame::Data { .. } => None,
                    Frame::SynStream { .. } => Some("1"),
                    Frame::SynReply { .. } => Some("2"),
                    Frame::RstStream { .. } => Some("3"),
                    Frame::Settings { .. } => Some("4"),
                    Frame::Ping { .. } => Some("6"),
                    Frame::GoAway { .. } => Some("7"),
                    Frame::Headers { .. } => Some("8"),
                    Frame::WindowUpdate { .. } => Some("9"),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(values(&packets, side.port, "spdy.type"), types, "{version:?}");
        }
    }
}
