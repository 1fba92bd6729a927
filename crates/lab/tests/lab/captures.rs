//! Captures: exactly what was sent, when it was sent, in files that others read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fault::Explain;
use lab::{CaptureOptions, Direction, OwnedFrame};
use lab_test::{Need, Test, TestResult, skip};
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::links::{echo, ping};
use crate::support::pair;

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_capture_holds_exactly_the_frames_sent", exactly),
        Test::new("a_capture_file_is_read_back", file),
        Test::new("tshark_reads_a_capture_file", tshark),
        Test::new("comments_say_what_happened_with_a_frame", comments),
        Test::new("a_full_disk_costs_the_capture_and_not_the_run", full_disk),
        Test::new("a_dropped_capture_leaves_no_file", dropped),
        Test::new("a_full_channel_is_counted", full_channel),
    ]
}

/// The number in a datagram's first two bytes.
fn number(frame: &OwnedFrame) -> u16 {
    // Ethernet, IPv4 without options, UDP.
    u16::from_be_bytes([frame.bytes[42], frame.bytes[43]])
}

fn exactly() -> TestResult {
    const COUNT: u16 = 3000;
    let (_lab, client, server, _) = pair("2ms")?;
    let at_client = client.capture_channel(&CaptureOptions::default(), 10_000)?;
    let at_server = server.capture_channel(&CaptureOptions::default(), 10_000)?;
    let address = server.addr4()?;
    // Never read: it only keeps the kernel from answering that nobody listens.
    let receiver = server.run(move || UdpSocket::bind((address, 0)))??;
    let to = receiver.local_addr()?;
    let before = packet::clock::monotonic();
    client.run(move || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        for number in 0..COUNT {
            let mut data = [0; 64];
            data[..2].copy_from_slice(&number.to_be_bytes());
            socket.send_to(&data, to)?;
            // Not faster than the pump takes them from its port.
            if number % 50 == 49 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok::<_, std::io::Error>(())
    })??;
    // The sender's capture is stopped at once: nothing that was sent may be missing.
    let sent_stats = at_client.0.stop()?;
    let after = packet::clock::monotonic();
    let received = (0..COUNT)
        .map(|_| at_server.1.recv_timeout(Duration::from_secs(10)))
        .collect::<Result<Vec<_>, _>>()?;
    let received_stats = at_server.0.stop()?;
    let sent: Vec<_> = at_client.1.into_iter().collect();
    for (stats, frames, direction) in
        [(&sent_stats, sent, Direction::Outbound), (&received_stats, received, Direction::Inbound)]
    {
        assert_eq!((stats.kernel_drops, stats.channel_drops), (0, 0));
        assert_eq!(stats.frames, u64::from(COUNT));
        let numbers: Vec<_> = frames.iter().map(number).collect();
        assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
        assert!(frames.iter().all(|frame| frame.direction == direction));
        assert!(frames.iter().all(|frame| frame.original_len == 14 + 20 + 8 + 64));
        assert!(frames.is_sorted_by_key(|frame| frame.at));
        if direction == Direction::Outbound {
            assert!(stats.clock_step() < Duration::from_millis(1));
            let stamp = |frame: &OwnedFrame| stats.clocks_at_start.to_monotonic(frame.at);
            let slack = Duration::from_millis(1);
            assert!(stamp(&frames[0]) + slack >= before);
            assert!(stamp(&frames[frames.len() - 1]) <= after + slack);
        }
    }
    Ok(())
}

fn file() -> TestResult {
    let (_lab, client, server, _) = pair("0")?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("client.pcapng");
    let partial = || -> std::io::Result<bool> {
        let names = std::fs::read_dir(folder.path())?.flatten().map(|entry| entry.file_name());
        Ok(names.into_iter().any(|name| name.to_string_lossy().ends_with(".partial")))
    };
    let mut options = CaptureOptions::default();
    options.command = Some("the command".to_owned());
    let capture = client.capture_file(&path, &options)?;
    assert!(!path.exists());
    let to = echo(&server, server.addr4()?.into())?;
    ping(&client, to, 3)?;
    let stats = capture.stop()?;
    assert!(!partial()?);
    assert_eq!(stats.file.as_deref(), Some(&*path));
    assert_eq!((stats.frames, stats.kernel_drops), (6, 0));
    let mut reader = PcapNgReader::new(File::open(&path)?)?;
    assert!(format!("{:?}", reader.section()).contains("the command"));
    let (mut flags, mut stamps, mut interfaces) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut statistics) = (String::new(), String::new());
    while let Some(block) = reader.next_block() {
        match block? {
            Block::InterfaceDescription(interface) => interfaces.push(format!("{interface:?}")),
            Block::EnhancedPacket(packet) => {
                assert_eq!(packet.data.len(), 142);
                flags.push(format!("{:?}", packet.options));
                stamps.push(packet.timestamp);
            }
            Block::NameResolution(block) => names = format!("{block:?}"),
            Block::InterfaceStatistics(block) => statistics = format!("{:?}", block.options),
            other => panic!("{other:?}"),
        }
    }
    assert!(names.contains("client") && names.contains("server"), "{names}");
    assert_eq!(statistics, "[IsbIfRecv(6), IsbIfDrop(0)]");
    assert!(interfaces[0].contains("link1") && interfaces[0].contains("IfTsResol(9)"));
    assert_eq!(flags.len(), 6);
    for (at, flags) in flags.iter().enumerate() {
        // Out and in by turns.
        assert_eq!(flags, if at % 2 == 0 { "[Flags(2)]" } else { "[Flags(1)]" });
    }
    assert!(stamps.is_sorted());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    assert!(now - stamps[0] < Duration::from_secs(60), "{stamps:?} but it is {now:?}");
    Ok(())
}

fn tshark() -> TestResult {
    if Command::new("tshark").arg("--version").output().is_err() {
        return skip(Need::Tshark, "tshark is not installed");
    }
    let (_lab, client, server, _) = pair("5ms")?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("client.pcapng");
    let capture = client.capture(&path)?;
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let to = echo(&server, address)?;
        ping(&client, to, 2)?;
    }
    capture.stop()?;
    let fields =
        ["-T", "fields", "-e", "frame.protocols", "-e", "frame.time_delta", "-e", "udp.length"];
    // Without the user's own settings, which the user of the test may not even read.
    let home = ["HOME", "XDG_CONFIG_HOME"].map(|variable| (variable, folder.path()));
    let output =
        Command::new("tshark").arg("-n").arg("-r").arg(&path).args(fields).envs(home).output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 8, "{text}");
    for (at, row) in rows.iter().enumerate() {
        // What it takes the payload for follows from the ports, which are drawn.
        assert!(row[0].contains(":udp"), "{text}");
        assert_eq!(row[2], "108", "{text}");
        if at % 2 == 1 {
            // The answer, a round trip later, in seconds with nine digits.
            let delta: f64 = row[1].parse()?;
            assert!((0.005..1.0).contains(&delta), "{text}");
        }
    }
    Ok(())
}

/// What tshark says of a file.
fn asked(path: &Path, arguments: &[&str]) -> TestResult<String> {
    // Without the user's own settings, which the user of the test may not even read.
    let home = ["HOME", "XDG_CONFIG_HOME"].map(|variable| (variable, "/nonexistent"));
    let output = Command::new("tshark").arg("-r").arg(path).args(arguments).envs(home).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn comments() -> TestResult {
    if Command::new("tshark").arg("--version").output().is_err() {
        return skip(Need::Tshark, "tshark is not installed");
    }
    let (_lab, client, server, _) = pair("1ms")?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("client.pcapng");
    let capture = client.capture(&path)?;
    let address = server.addr4()?;
    let listener = server.run(move || TcpListener::bind((address, 0)))??;
    let to = listener.local_addr()?;
    // Sockets stay in their namespaces wherever they are used.
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut data = [0; 5];
        stream.read_exact(&mut data)?;
        stream.write_all(&data)
    });
    let mut stream = client.run(move || TcpStream::connect(to))??;
    let local = stream.local_addr()?;
    stream.write_all(b"hello")?;
    stream.read_exact(&mut [0; 5])?;
    drop(stream);
    answering.join().map_err(|_| "the server panicked")??;
    capture.stop()?;
    let fields = ["-T", "fields", "-e", "tcp.flags.str", "-e", "tcp.len", "-e", "frame.comment"];
    let text = asked(&path, &[&["-n"], &fields[..]].concat())?;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let comment = |row: &[&str]| row.get(2).map(|text| (*text).to_owned()).unwrap_or_default();
    let said: Vec<String> = rows.iter().map(|row| comment(row)).collect();
    let happened: Vec<&String> = said.iter().filter(|text| !text.is_empty()).collect();
    let expected = [
        format!("{local}: TCP handshake done"),
        format!("{local}: first byte of the request"),
        format!("{local}: first byte of the response"),
    ];
    assert!(happened.iter().copied().eq(&expected), "{text}");
    // The first two frames are SYN and SYN+ACK, and what has comments of data has data.
    assert!(said[0].is_empty() && said[1].is_empty() && said[2] == expected[0], "{text}");
    for (row, said) in rows.iter().zip(&said).filter(|(_, said)| said.contains("first byte")) {
        assert_eq!(row[1], "5", "{said}");
    }
    // Names of the nodes, from the file alone.
    let options = ["-N", "n", "-T", "fields", "-e", "ip.src_host", "-c", "1"];
    assert_eq!(asked(&path, &options)?.trim(), "client");
    Ok(())
}

fn full_disk() -> TestResult {
    let (_lab, client, server, _) = pair("0")?;
    let folder = tempfile::tempdir()?;
    let target = std::ffi::CString::new(folder.path().to_str().unwrap())?;
    // SAFETY: all strings end with a null byte. The mount is of this lab's mount namespace.
    let mounted = unsafe {
        let size = c"size=65536";
        libc::mount(c"none".as_ptr(), target.as_ptr(), c"tmpfs".as_ptr(), 0, size.as_ptr().cast())
    };
    assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
    let path = folder.path().join("client.pcapng");
    let capture = client.capture(&path)?;
    let to = echo(&server, server.addr4()?.into())?;
    for _ in 0..40 {
        // 8000 frames of 142 bytes: more than the writer's buffer and the disk.
        assert_eq!(ping(&client, to, 100)?.len(), 100);
    }
    let error = capture.stop().unwrap_err();
    assert!(
        matches!(&error, lab::Error::CaptureFile { source, .. }
        if source.kind() == std::io::ErrorKind::StorageFull),
        "{error:?}"
    );
    assert!(error.in_one_text().contains("free space"));
    assert_eq!(fs::read_dir(folder.path())?.count(), 0, "something was left behind");
    let nowhere = client.capture("/nonexistent/folder/x.pcapng").unwrap_err();
    assert!(nowhere.to_string().contains("/nonexistent/folder/x.pcapng"));
    // SAFETY: as above.
    unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    Ok(())
}

fn dropped() -> TestResult {
    let (lab, client, _server, _) = pair("0")?;
    let folder = tempfile::tempdir()?;
    drop(client.capture(folder.path().join("x.pcapng"))?);
    lab.shutdown();
    lab_test::until("the file to go", Duration::from_secs(5), || {
        Ok((fs::read_dir(folder.path())?.count() == 0).then_some(()))
    })
}

fn full_channel() -> TestResult {
    let (_lab, client, server, _) = pair("0")?;
    let (capture, frames) = client.capture_channel(&CaptureOptions::default(), 4)?;
    let to = echo(&server, server.addr4()?.into())?;
    ping(&client, to, 5)?;
    let stats = capture.stop()?;
    assert_eq!((stats.frames, stats.channel_drops), (10, 6));
    assert_eq!(frames.into_iter().count(), 4);
    Ok(())
}
