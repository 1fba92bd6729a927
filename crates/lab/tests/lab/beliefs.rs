//! What we believe of this kernel. Each test names the belief; where it fails, the measurements
//! that rest on it would be wrong.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use fault::Explain;
use lab::{Backend, Capture, CaptureOptions, Direction, Lab, LabOptions, Node, OwnedFrame};

use crate::frames::{ACK, RST, SYN, Segment, ether_type, segments};
use lab_test::{Need, Test, TestResult, skip};

use crate::links::{echo, ping};
use crate::support::{enter, pair};

const WAIT: Duration = Duration::from_secs(10);
/// TCPI_OPT_SYN_DATA of linux/tcp.h: the SYN's data was acknowledged (client) or taken (server).
const SYN_DATA: u8 = 32;

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("belief_fast_open_gets_a_cookie_then_sends_data_in_the_syn", with_cookie),
        Test::new("belief_cookieless_fast_open_sends_data_in_the_first_syn", cookieless),
        Test::new("belief_the_server_answers_before_the_handshakes_last_ack", early_answer),
        Test::new("belief_a_syn_carries_1420_bytes_at_mtu_1500", syn_capacity),
        Test::new("belief_an_address_that_is_not_ours_draws_no_rst", no_rst),
        Test::new("belief_permanent_neighbours_keep_arp_and_ndp_off_the_link", no_arp),
        Test::new("belief_settings_are_per_namespace", per_namespace),
        Test::new("belief_netem_detection_agrees_with_an_attempt", netem),
        Test::new("belief_the_kernel_forgets_an_rtt_between_connections", no_metrics),
    ]
}

/// What a Fast Open connection was like.
struct Exchange {
    answer: Vec<u8>,
    syn_data_acknowledged: bool,
}

/// A server that answers the first `expect` bytes of one connection with `answer`.
fn serve(
    server: &Node,
    address: IpAddr,
    connections: usize,
    expect: usize,
) -> TestResult<SocketAddr> {
    let listener = server.run(move || {
        let listener = TcpListener::bind((address, 0))?;
        listener.set_nonblocking(true)?;
        let queue: libc::c_int = 16;
        // SAFETY: the value is live and of the stated size.
        let set = unsafe {
            libc::setsockopt(
                listener.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_FASTOPEN,
                (&raw const queue).cast(),
                4,
            )
        };
        if set == 0 { Ok(listener) } else { Err(io::Error::last_os_error()) }
    })??;
    let to = listener.local_addr()?;
    drop(server.spawn(move || async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().await?;
            let mut request = vec![0; expect];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut request).await?;
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"answer").await?;
        }
        Ok::<_, io::Error>(())
    }));
    Ok(to)
}

/// Connects with `data` by MSG_FASTOPEN and reads the answer.
fn fast_open(client: &Node, to: SocketAddr, data: Vec<u8>) -> TestResult<Exchange> {
    let exchange = client.run(move || {
        let address = socket2::SockAddr::from(to);
        let domain = socket2::Domain::for_address(to);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        socket.set_read_timeout(Some(WAIT))?;
        socket.set_write_timeout(Some(WAIT))?;
        let sent = socket.send_to_with_flags(&data, &address, libc::MSG_FASTOPEN)?;
        let mut stream = TcpStream::from(socket);
        io::Write::write_all(&mut stream, &data[sent..])?;
        let mut answer = vec![0; 6];
        stream.read_exact(&mut answer)?;
        let mut info = [0u8; 104];
        let mut length = info.len() as libc::socklen_t;
        // SAFETY: the buffer is as long as stated.
        unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            );
        }
        // tcpi_options is byte 5 of tcp_info.
        Ok::<_, io::Error>(Exchange { answer, syn_data_acknowledged: info[5] & SYN_DATA != 0 })
    })??;
    assert_eq!(exchange.answer, b"answer");
    Ok(exchange)
}

type Capturing = (Capture, Receiver<OwnedFrame>);

fn capture(node: &Node) -> Result<Capturing, lab::Error> {
    node.capture_channel(&CaptureOptions::default(), 10_000)
}

fn captured((capture, frames): Capturing) -> Result<Vec<OwnedFrame>, lab::Error> {
    let stats = capture.stop()?;
    assert_eq!((stats.kernel_drops, stats.channel_drops), (0, 0));
    Ok(frames.into_iter().collect())
}

fn syns(frames: &[OwnedFrame]) -> Vec<Segment> {
    segments(frames).into_iter().filter(Segment::is_syn).collect()
}

// RFC 7413 §3.1: the first connection asks for a cookie, the second sends it with data.
fn with_cookie() -> TestResult {
    let (_lab, client, server, _) = pair("10ms")?;
    client.sysctl("net.ipv4.tcp_fastopen", "1")?;
    server.sysctl("net.ipv4.tcp_fastopen", "2")?;
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let to = serve(&server, address, 2, 100)?;
        let capturing = capture(&client)?;
        assert!(!fast_open(&client, to, vec![1; 100])?.syn_data_acknowledged);
        assert!(fast_open(&client, to, vec![2; 100])?.syn_data_acknowledged);
        let syns = syns(&captured(capturing)?);
        assert_eq!(syns.len(), 2);
        assert_eq!((syns[0].fast_open(), syns[0].payload.len()), (Some(0), 0));
        // RFC 7413 §4.1.1: a cookie has 4 to 16 bytes.
        assert!(matches!(syns[1].fast_open(), Some(4..=16)), "{:?}", syns[1].options);
        assert_eq!(syns[1].payload, [2; 100]);
    }
    Ok(())
}

fn cookieless_pair(rtt: &str) -> TestResult<(Lab, Node, Node)> {
    let (lab, client, server, _) = pair(rtt)?;
    // 0x5: client, without cookie. 0x602: server, for every listener, without cookie.
    client.sysctl("net.ipv4.tcp_fastopen", "0x5")?;
    server.sysctl("net.ipv4.tcp_fastopen", "0x602")?;
    Ok((lab, client, server))
}

fn cookieless() -> TestResult {
    let (_lab, client, server) = cookieless_pair("10ms")?;
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let to = serve(&server, address, 1, 300)?;
        let capturing = capture(&client)?;
        assert!(fast_open(&client, to, vec![3; 300])?.syn_data_acknowledged);
        let syns = syns(&captured(capturing)?);
        assert_eq!(syns.len(), 1);
        assert_eq!((syns[0].fast_open(), &*syns[0].payload), (None, &[3; 300][..]));
    }
    Ok(())
}

fn early_answer() -> TestResult {
    let (_lab, client, server) = cookieless_pair("40ms")?;
    let to = serve(&server, server.addr4()?.into(), 1, 10)?;
    let capturing = capture(&server)?;
    fast_open(&client, to, vec![4; 10])?;
    // What the client sends after its last ACK arrives after it.
    ping(&client, echo(&server, server.addr4()?.into())?, 1)?;
    let segments = segments(&captured(capturing)?);
    let first = |direction, wanted: &dyn Fn(&Segment) -> bool| {
        segments.iter().position(|s| s.direction == direction && wanted(s)).unwrap()
    };
    let syn = first(Direction::Inbound, &|s| s.is_syn());
    let syn_ack = first(Direction::Outbound, &|s| s.flags & (SYN | ACK) == SYN | ACK);
    let answer = first(Direction::Outbound, &|s| s.payload == b"answer");
    let ack = first(Direction::Inbound, &|s| s.flags & (SYN | ACK) == ACK);
    assert_eq!((syn, syn_ack), (0, 1));
    // The kernel sends no data in the SYN-ACK itself.
    assert!(segments[syn_ack].payload.is_empty());
    assert!(answer < ack, "{segments:#?}");
    Ok(())
}

fn syn_capacity() -> TestResult {
    let (_lab, client, server) = cookieless_pair("2ms")?;
    // MTU 1500 less the IP header, 20 bytes of TCP header and the 40 that its options may take.
    let families = [(IpAddr::V4(server.addr4()?), 1420), (IpAddr::V6(server.addr6()?), 1400)];
    for (address, capacity) in families {
        let to = serve(&server, address, 1, 3000)?;
        let capturing = capture(&client)?;
        fast_open(&client, to, vec![5; 3000])?;
        let syns = syns(&captured(capturing)?);
        assert_eq!(syns.iter().map(|s| s.payload.len()).collect::<Vec<_>>(), [capacity]);
    }
    Ok(())
}

fn no_rst() -> TestResult {
    let (_lab, client, server, _) = pair("1ms")?;
    client.add_route("10.99.0.0".parse()?, 24, server.addr4()?.into())?;
    let capturing = capture(&client)?;
    let attempt = |to: SocketAddr| {
        client.run(move || TcpStream::connect_timeout(&to, Duration::from_millis(300)).map(drop))
    };
    // That an address of the server's does draw one shows that the test can fail.
    let refused = attempt((server.addr4()?, 9).into())?.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    let silent = attempt("10.99.0.1:9".parse()?)?.unwrap_err();
    assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
    let frames = captured(capturing)?;
    let back: Vec<_> =
        segments(&frames).into_iter().filter(|s| s.direction == Direction::Inbound).collect();
    assert_eq!(back.len(), 1, "{back:?}");
    assert_eq!(back[0].flags & RST, RST);
    // Nor an ICMP error.
    assert_eq!(frames.iter().filter(|f| f.direction == Direction::Inbound).count(), 1);
    Ok(())
}

fn no_arp() -> TestResult {
    let (_lab, client, server, _) = pair("1ms")?;
    let capturing = (capture(&client)?, capture(&server)?);
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let to = echo(&server, address)?;
        ping(&client, to, 5)?;
    }
    // Long enough for what a kernel sends by itself when an interface comes up: listener reports
    // come within a second (RFC 3810 §9.11), router solicitations too (RFC 4861 §6.3.7).
    std::thread::sleep(Duration::from_millis(1200));
    for frames in [captured(capturing.0)?, captured(capturing.1)?] {
        let types: Vec<_> = frames.iter().map(ether_type).collect();
        assert_eq!(types, [[0x0800; 10], [0x86dd; 10]].concat(), "{frames:x?}");
        assert!(frames[10..].iter().all(|frame| frame.bytes[20] == 17), "not UDP: {frames:x?}");
    }
    Ok(())
}

fn per_namespace() -> TestResult {
    let (_lab, client, server, _) = pair("0")?;
    for key in [
        "net.ipv4.tcp_fastopen",
        "net.ipv4.tcp_no_metrics_save",
        "net.ipv4.tcp_fastopen_blackhole_timeout_sec",
        "net.ipv4.ip_forward",
    ] {
        client.sysctl(key, "1")?;
        server.sysctl(key, "0")?;
        assert_eq!((&*client.read_sysctl(key)?, &*server.read_sysctl(key)?), ("1", "0"), "{key}");
    }
    Ok(())
}

fn netem() -> TestResult {
    enter()?;
    let available = lab::netem_available()?;
    let doctors = lab::doctor().into_iter().find(|fact| fact.name == "netem").ok_or("no fact")?;
    assert_eq!(doctors.ok, available, "{doctors:?}");
    let options = LabOptions { backend: Backend::Netem, ..LabOptions::default() };
    match Lab::new(options) {
        Err(error) => {
            assert!(!available && matches!(error, lab::Error::NoNetem), "{error}");
            assert!(error.in_one_text().contains("modprobe sch_netem"));
        }
        Ok(mut lab) => {
            assert!(available);
            let (a, b) = (lab.add_node("a")?, lab.add_node("b")?);
            let link = lab.connect(&a, &b, &linkmodel::Path::symmetric("20ms".parse()?))?;
            let to = echo(&b, b.addr4()?.into())?;
            assert!(ping(&a, to, 1)?[0] >= Duration::from_millis(20));
            link.set_path(&linkmodel::Path::symmetric("40ms".parse()?))?;
            assert!(ping(&a, to, 1)?[0] >= Duration::from_millis(40));
        }
    }
    // A judge from outside: iproute2, in the namespace of a node.
    let mut lab = Lab::new(LabOptions { backend: Backend::Veth, ..LabOptions::default() })?;
    let node = lab.add_node("judge")?;
    let tc = node.run(|| {
        let arguments = ["qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"];
        Command::new("tc").args(arguments).output()
    })?;
    match tc {
        Ok(output) => assert_eq!(output.status.success(), available, "{output:?}"),
        Err(_) => {
            return skip(
                Need::Ip,
                "checked against an attempt of our own only: tc is not installed",
            );
        }
    }
    Ok(())
}

// With tcp_no_metrics_save a connection does not start with what the one before it learnt.
fn no_metrics() -> TestResult {
    let (_lab, client, server, _) = pair("30ms")?;
    client.sysctl("net.ipv4.tcp_fastopen", "0")?;
    let to = serve(&server, server.addr4()?.into(), 1, 10)?;
    fast_open_off(&client, to)?;
    let metrics = client.run(|| Command::new("ip").args(["tcp_metrics", "show"]).output())?;
    match metrics {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(!text.contains("rtt"), "{text}");
            Ok(())
        }
        Err(_) => skip(Need::Ip, "ip is not installed"),
    }
}

fn fast_open_off(client: &Node, to: SocketAddr) -> TestResult {
    client.run(move || {
        let mut stream = TcpStream::connect_timeout(&to, WAIT)?;
        stream.set_read_timeout(Some(WAIT))?;
        io::Write::write_all(&mut stream, &[0; 10])?;
        stream.read_to_end(&mut Vec::new())
    })??;
    Ok(())
}
