//! Listening to interfaces, in a network namespace.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use capture::{Filter, Live, LiveOptions};
use lab::{Backend, CaptureOptions, Lab, LabOptions, Node, OwnedFrame};
use lab_test::{Test, TestResult};
use linkmodel::Path;
use packet::{PacketSocket, SocketOptions, interface_index};
use units::Time;

const PORT: u16 = 4433;
/// Bytes that the client sends and the server sends back.
const TALK: usize = 20_000;
/// The longest that frames may take to come.
const LIMIT: Duration = Duration::from_secs(20);

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("a_connection_is_seen_frame_by_frame", connection),
        Test::inside("only_what_the_filter_names_is_seen", filtered),
        Test::inside("frames_are_cut_to_the_snap_length", cut),
        Test::inside("loopback_frames_are_seen_once", loopback),
        Test::inside("several_share_the_flows", several),
        Test::inside("what_a_full_ring_loses_is_counted", full_ring),
        Test::inside("frames_before_a_stop_are_all_read", stopped),
    ]
}

fn pair() -> Result<(Lab, Node, Node), lab::Error> {
    pair_on(Backend::default())
}

fn pair_on(backend: Backend) -> Result<(Lab, Node, Node), lab::Error> {
    let mut lab = Lab::new(LabOptions { seed: 5, backend, ..LabOptions::default() })?;
    let client = lab.add_node("client")?;
    let server = lab.add_node("server")?;
    lab.connect(&client, &server, &Path::default())?;
    Ok((lab, client, server))
}

fn listen(node: &Node, interfaces: &'static [&str], options: LiveOptions) -> TestResult<Live> {
    Ok(node.run(move || Live::open(interfaces, &options))??)
}

/// A TCP connection whose server sends back what it gets, and some datagrams.
fn talk(client: &Node, server: &Node) -> TestResult {
    let address = server.addr4()?;
    let listener = server.run(move || TcpListener::bind((address, PORT)))??;
    // The socket stays in its namespace wherever it is used.
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut data = vec![0; TALK];
        stream.read_exact(&mut data)?;
        stream.write_all(&data)
    });
    let receiver = server.run(move || UdpSocket::bind((address, 443)))??;
    let stream = client.run(move || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        // Perhaps QUIC, by its port; not QUIC; perhaps QUIC, by its long header.
        socket.send_to(&[0x40; 30], (address, 443))?;
        socket.send_to(&[0x40; 31], (address, 9))?;
        socket.send_to(&[0xc0; 32], (address, 9))?;
        TcpStream::connect((address, PORT))
    })?;
    let mut stream = stream?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&vec![7; TALK])?;
    stream.read_exact(&mut vec![0; TALK])?;
    drop(stream);
    echo.join().map_err(|_| "the server panicked")??;
    drop(receiver);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    at: Time,
    link: u32,
    bytes: Vec<u8>,
    len: usize,
    interface: u32,
}

/// All frames until the last FIN's acknowledgment and a while of silence.
fn drain(live: &mut Live) -> TestResult<Vec<Seen>> {
    let (mut frames, begun) = (Vec::new(), Instant::now());
    let mut silent = 0;
    // Rings hand over within 50 ms; five times that without a frame is the end.
    while silent < 5 {
        while let Some(frame) = live.next() {
            silent = 0;
            frames.push(Seen {
                at: frame.at,
                link: frame.link,
                bytes: frame.bytes.to_vec(),
                len: frame.original_len,
                interface: frame.interface,
            });
        }
        if !live.wait(Duration::from_millis(100))? {
            silent += 1;
        }
        if begun.elapsed() > LIMIT {
            return Err("frames without end".into());
        }
    }
    Ok(frames)
}

/// Whether the default filter is to let it through, by another way of reading it.
fn wanted(frame: &OwnedFrame) -> bool {
    let bytes = &frame.bytes;
    if bytes[12..14] != [8, 0] {
        return false;
    }
    match bytes[23] {
        6 => true,
        17 => bytes[36..38] == [1, 0xbb] || bytes[42] & 0x80 != 0,
        _ => false,
    }
}

fn check(condition: bool, what: impl FnOnce() -> String) -> TestResult {
    if condition { Ok(()) } else { Err(what().into()) }
}

fn connection() -> TestResult {
    let (_lab, client, server) = pair()?;
    // The lab's own capture, on another kind of ring, is the judge.
    let judge = client.capture_channel(&CaptureOptions::default(), 10_000)?;
    let mut live = listen(&client, &["link1", "lo"], LiveOptions::default())?;
    let before = packet::clock::realtime();
    talk(&client, &server)?;
    let seen = drain(&mut live)?;
    let after = packet::clock::realtime();
    judge.0.stop()?;
    let expected: Vec<OwnedFrame> = judge.1.into_iter().filter(wanted).collect();
    check(expected.len() > 20, || format!("only {} frames in the talk", expected.len()))?;
    let slack = Duration::from_millis(1);
    for (ours, theirs) in seen.iter().zip(&expected) {
        check(ours.bytes[..] == theirs.bytes[..ours.bytes.len().min(theirs.bytes.len())], || {
            format!("{ours:?} is not {theirs:?}")
        })?;
        check(ours.len == theirs.original_len && ours.bytes.len() == ours.len, || {
            format!("{} bytes of {}, not {}", ours.bytes.len(), ours.len, theirs.original_len)
        })?;
        check((ours.link, ours.interface) == (1, 0), || format!("{ours:?}"))?;
        check(ours.at + slack >= before && ours.at <= after + slack, || {
            format!("{} is not between {before} and {after}", ours.at)
        })?;
    }
    check(seen.len() == expected.len(), || {
        format!("{} frames, not {}", seen.len(), expected.len())
    })?;
    check(seen.is_sorted_by_key(|frame| frame.at), || "not in order of time".to_owned())?;
    let statistics = live.statistics()?;
    check((statistics.frames, statistics.drops) == (seen.len() as u64, 0), || {
        format!("{statistics:?} of {} frames", seen.len())
    })?;
    // Counters do not start again.
    check(live.statistics()? == statistics, || "counters started again".to_owned())?;
    check(live.names().eq(["link1", "lo"]), || "other names".to_owned())
}

fn filtered() -> TestResult {
    let (_lab, client, server) = pair()?;
    let mut options = LiveOptions::default();
    options.filter = Filter { ports: vec![443], tunnels: false };
    let mut live = listen(&server, &["link1"], options)?;
    talk(&client, &server)?;
    let seen = drain(&mut live)?;
    check(seen.len() == 1 && seen.iter().all(|frame| frame.len == 14 + 20 + 8 + 30), || {
        format!("{} frames", seen.len())
    })
}

fn cut() -> TestResult {
    let (_lab, client, server) = pair()?;
    let mut options = LiveOptions::default();
    options.snap_len = 100;
    let mut live = listen(&client, &["link1"], options)?;
    talk(&client, &server)?;
    let seen = drain(&mut live)?;
    check(seen.iter().all(|frame| frame.bytes.len() == frame.len.min(100)), || {
        "a frame has another length".to_owned()
    })?;
    // What IP says stays what it was.
    check(seen.iter().any(|frame| frame.len > 1000), || "no full frame".to_owned())?;
    let whole: usize = seen.iter().map(|frame| frame.len).sum();
    check(whole > 2 * TALK, || format!("{whole} bytes of {}", 2 * TALK))
}

fn loopback() -> TestResult {
    let (_lab, client, _server) = pair()?;
    let mut live = listen(&client, &["lo"], LiveOptions::default())?;
    let listener = client.run(|| TcpListener::bind("127.0.0.1:0"))??;
    let address = listener.local_addr()?;
    let stream = client.run(move || TcpStream::connect(address))??;
    let seen = drain(&mut live)?;
    drop(stream);
    // SYN, SYN+ACK, ACK.
    let flags: Vec<u8> = seen.iter().map(|frame| frame.bytes[47]).collect();
    check(flags == [0x02, 0x12, 0x10], || format!("flags {flags:x?}"))
}

/// Each frame comes to one of two, and all frames of a flow to the same.
fn several() -> TestResult {
    let (_lab, client, server) = pair()?;
    let open = || Live::open_several(&["link1"], &LiveOptions::default(), 2);
    let mut both = client.run(open)??;
    let mut whole = listen(&client, &["link1"], LiveOptions::default())?;
    for _ in 0..8 {
        talk(&client, &server)?;
    }
    let expected = drain(&mut whole)?;
    let mut seen = Vec::new();
    let mut flows: Vec<Vec<[u8; 2]>> = Vec::new();
    for live in &mut both {
        let frames = drain(live)?;
        // The client's port is the one that is not the server's.
        let port = |frame: &Seen| match [&frame.bytes[34..36], &frame.bytes[36..38]] {
            [port, other] if other == PORT.to_be_bytes() => Some([port[0], port[1]]),
            [other, port] if other == PORT.to_be_bytes() => Some([port[0], port[1]]),
            _ => None,
        };
        let mut ports: Vec<[u8; 2]> = frames.iter().filter_map(port).collect();
        ports.sort_unstable();
        ports.dedup();
        flows.push(ports);
        seen.extend(frames);
    }
    check(seen.len() == expected.len(), || {
        format!("{} frames, not {}", seen.len(), expected.len())
    })?;
    check(flows[0].len() + flows[1].len() == 8, || format!("{flows:?}"))?;
    check(!flows[0].iter().any(|port| flows[1].contains(port)), || format!("{flows:?}"))
}

/// Sends a small TCP segment for each number, which is its sequence number.
fn send_numbered(numbers: Range<u32>) -> TestResult {
    // Past the queueing discipline no capture would see them.
    let options = SocketOptions { qdisc_bypass: false, ..SocketOptions::default() };
    let socket = PacketSocket::open(interface_index("link1")?, &options)?;
    let mut frame = [0; 66];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&52_u16.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    for number in numbers {
        frame[38..42].copy_from_slice(&number.to_be_bytes());
        while let Err(error) = packet::send(socket.as_fd(), &frame) {
            if error.kind() != ErrorKind::WouldBlock {
                return Err(error.into());
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// What the kernel counts as lost is what was sent and not seen, to the frame.
fn full_ring() -> TestResult {
    const SENT: u32 = 5000;
    // What leaves is seen before the call that sends it returns.
    let (_lab, client, _server) = pair_on(Backend::Direct)?;
    let mut options = LiveOptions::default();
    (options.ring.block_bytes, options.ring.blocks) = (1 << 16, 2);
    let mut live = listen(&client, &["link1"], options)?;
    let number = |frame: &Seen| {
        frame.bytes[38..42].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    client.run(|| send_numbered(0..SENT))??;
    // Nobody has read in the meantime: the first are there, as many as two blocks hold.
    let seen = drain(&mut live)?;
    let kept = seen.len() as u32;
    let statistics = live.statistics()?;
    check(seen.iter().map(number).eq(0..kept), || format!("{kept} frames, not the first"))?;
    check((100..SENT / 2).contains(&kept), || format!("{kept} of {SENT} were kept"))?;
    let (frames, lost) = (u64::from(SENT), u64::from(SENT - kept));
    check((statistics.frames, statistics.drops) == (frames, lost), || {
        format!("{statistics:?}, and {kept} of {SENT} were seen")
    })?;
    // There is room again.
    client.run(|| send_numbered(SENT..SENT + 100))??;
    let seen = drain(&mut live)?;
    check(seen.iter().map(number).eq(SENT..SENT + 100), || format!("{} frames", seen.len()))?;
    let statistics = live.statistics()?;
    check((statistics.frames, statistics.drops) == (frames + 100, lost), || {
        format!("{statistics:?} after 100 more")
    })
}

/// The kernel keeps the last frames back: a capture that stops right after a talk has them all.
fn stopped() -> TestResult {
    const ROUNDS: usize = 25;
    let (_lab, client, server) = pair()?;
    for round in 0..ROUNDS {
        let judge = client.capture_channel(&CaptureOptions::default(), 10_000)?;
        let mut live = listen(&client, &["link1", "lo"], LiveOptions::default())?;
        talk(&client, &server)?;
        let stopped = packet::clock::realtime();
        live.close()?;
        let mut seen = Vec::new();
        while live.wait_for_rest(Instant::now() + LIMIT)? {
            while let Some(frame) = live.next() {
                seen.push(frame.at);
            }
        }
        judge.0.stop()?;
        let before = judge.1.into_iter().filter(wanted).filter(|frame| frame.at < stopped).count();
        check(before > 20 && seen.len() >= before, || {
            format!("round {round}: {} frames, not {before}", seen.len())
        })?;
        let (statistics, left) = (live.statistics()?, live.waiting()?);
        let expected = (seen.len() as u64, 0, 0);
        check((statistics.frames, statistics.drops, left) == expected, || {
            format!("round {round}: {statistics:?}, {left} left of {}", seen.len())
        })?;
        // A closed capture sees nothing more.
        talk(&client, &server)?;
        check(live.statistics()? == statistics, || format!("round {round}: frames after its end"))?;
    }
    Ok(())
}
