//! Nodes and links: do they carry what they should, when they should?

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fault::Explain;
use lab::{Backend, Lab, Node};
use linkmodel::Path;

use lab_test::{Need, Scenario, Test, TestResult, judge, skip};

use crate::support::{backend, enter, options, pair};

const WAIT: Duration = Duration::from_secs(10);

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("udp_takes_the_round_trip_time", udp_takes_the_round_trip_time),
        Test::new("tcp_over_ipv4_and_ipv6", tcp_over_ipv4_and_ipv6),
        Test::new("the_sockets_of_a_connection_are_listed_at_both_ends", sockets),
        Test::new("bulk_data_arrives_whole_in_frames_of_the_mtu", bulk),
        Test::new("a_changed_path_is_in_force_at_once", changed_path),
        Test::new("a_chain_of_nodes_routes", chain),
        Test::new("two_labs_in_one_process_do_not_meet", two_labs),
        Test::new("a_panic_in_a_task_is_an_error_and_hangs_nothing", panics),
        Test::new("a_stopped_lab_refuses_politely", stopped),
        Test::new("an_idle_lab_takes_no_processor_time", idle),
        Test::new("a_direct_link_is_a_wire_and_no_more", direct),
        Test::new("the_lab_calibrates_itself_and_is_gone", calibration),
        Test::new("nodes_and_pump_stay_on_their_processors", pinned),
        Test::new("bulk_data_arrives_whole_in_super_segments", super_segments),
        Test::new("a_nodes_cpu_time_is_its_own", cpu_time),
        Test::new("wrong_use_is_named", wrong_use),
        Test::new("two_labs_at_once_do_not_disturb_each_other", two_processes),
        Test::new("tap_links_work_where_they_may", tap),
    ]
}

/// Echoes one datagram after another until the node is stopped.
pub fn echo(node: &Node, address: IpAddr) -> TestResult<SocketAddr> {
    let bound = node.run(move || {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_nonblocking(true)?;
        Ok::<_, std::io::Error>((socket.local_addr()?, socket))
    })??;
    let (address, socket) = bound;
    let task = node.spawn(move || async move {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await?;
            socket.send_to(&buffer[..length], from).await?;
        }
        #[allow(unreachable_code)]
        Ok::<_, std::io::Error>(())
    });
    drop(task);
    Ok(address)
}

/// Sends `count` datagrams and waits for each to come back; the round trip times.
pub fn ping(node: &Node, to: SocketAddr, count: u8) -> TestResult<Vec<Duration>> {
    let times = node.run(move || {
        let local: SocketAddr = match to {
            SocketAddr::V4(_) => "0.0.0.0:0".parse().unwrap(),
            SocketAddr::V6(_) => "[::]:0".parse().unwrap(),
        };
        let socket = UdpSocket::bind(local)?;
        socket.set_read_timeout(Some(WAIT))?;
        (0..count)
            .map(|number| {
                let began = Instant::now();
                socket.send_to(&[number; 100], to)?;
                let mut buffer = [0; 200];
                let length = socket.recv(&mut buffer)?;
                assert_eq!(buffer[..length], [number; 100]);
                Ok::<_, std::io::Error>(began.elapsed())
            })
            .collect::<Result<Vec<_>, _>>()
    })??;
    Ok(times)
}

fn udp_takes_the_round_trip_time() -> TestResult {
    let (lab, client, server, link) = pair("20ms")?;
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let to = echo(&server, address)?;
        for time in ping(&client, to, 5)? {
            assert!(time >= Duration::from_millis(20), "{address}: {time:?}");
        }
    }
    assert_eq!(server.addr4()?, Ipv4Addr::new(10, 77, 1, 2));
    assert_eq!(server.addr6()?.to_string(), "fd77:1::2");
    let stats = link.stats()?;
    println!("{stats:?}");
    assert_eq!(lab.backend(), backend());
    Ok(())
}

fn tcp_over_ipv4_and_ipv6() -> TestResult {
    let (_lab, client, server, _) = pair("4ms")?;
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let listener = server.run(move || TcpListener::bind((address, 0)))??;
        let to = listener.local_addr()?;
        let served = server.spawn(move || async move {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let (mut stream, from) = listener.accept().await?;
            let mut byte = [0];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut byte).await?;
            tokio::io::AsyncWriteExt::write_all(&mut stream, &[byte[0] + 1]).await?;
            Ok::<_, std::io::Error>(from.ip())
        });
        let (answer, took) = client.run(move || {
            let began = Instant::now();
            let mut stream = TcpStream::connect_timeout(&to, WAIT)?;
            stream.set_read_timeout(Some(WAIT))?;
            stream.write_all(&[41])?;
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            Ok::<_, std::io::Error>((byte[0], began.elapsed()))
        })??;
        assert_eq!(answer, 42);
        // One round trip to connect, one for question and answer.
        assert!(took >= Duration::from_millis(8), "{took:?}");
        let from = served.join_within(WAIT)??;
        let expected = match address {
            IpAddr::V4(_) => IpAddr::V4(client.addr4()?),
            IpAddr::V6(_) => IpAddr::V6(client.addr6()?),
        };
        assert_eq!(from, expected);
    }
    Ok(())
}

/// Over either IP version: each end is the other's peer, and what is sent is counted.
fn sockets() -> TestResult {
    let (_lab, client, server, _) = pair("2ms")?;
    assert!(client.tcp_sockets()?.is_empty());
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let listener = server.run(move || TcpListener::bind((address, 0)))??;
        let to = listener.local_addr()?;
        let mut stream = client.run(move || TcpStream::connect_timeout(&to, WAIT))??;
        let (mut served, _) = listener.accept()?;
        stream.write_all(&[7; 5000])?;
        served.read_exact(&mut [0; 5000])?;
        let find = |node: &Node, local: SocketAddr| -> TestResult<lab::TcpSocket> {
            let all = node.tcp_sockets()?;
            let found = all.iter().find(|socket| socket.local == local).cloned();
            found.ok_or_else(|| format!("{local} is not among {all:?}").into())
        };
        let (near, far) = (find(&client, stream.local_addr()?)?, find(&server, to)?);
        assert_eq!((near.remote, far.remote), (to, stream.local_addr()?));
        assert!(near.send_buffer > Some(0) && far.receive_buffer > Some(0), "{near:?} {far:?}");
        // Up to tcpi_bytes_received, at 128.
        let received = far.info.get(128..136).and_then(|bytes| bytes.first_chunk::<8>());
        assert_eq!(received.map(|bytes| u64::from_ne_bytes(*bytes)), Some(5000));
        assert_ne!(near.cookie, far.cookie);
    }
    Ok(())
}

fn bulk() -> TestResult {
    let (_lab, client, server, _) = pair("2ms")?;
    // The Ethernet header and 1500 bytes: no super-segments.
    assert_eq!(transfer(&client, &server)?, 1514);
    Ok(())
}

fn super_segments() -> TestResult {
    enter()?;
    let pump = pump::Options::offload();
    let mut lab = Lab::new(lab::LabOptions { pump, ..options() })?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &Path::symmetric("2ms".parse()?))?;
    assert!(transfer(&client, &server)? > 1514);
    Ok(())
}

/// Sends a megabyte by TCP and compares it; the length of the longest frame.
fn transfer(client: &Node, server: &Node) -> TestResult<usize> {
    let (capture, frames) = client.capture_channel(&lab::CaptureOptions::default(), 10_000)?;
    let address = server.addr4()?;
    let listener = server.run(move || TcpListener::bind((address, 0)))??;
    let to = listener.local_addr()?;
    let data: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    let sent = data.clone();
    let received = server.spawn(move || async move {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (mut stream, _) = listener.accept().await?;
        let mut received = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut received).await?;
        Ok::<_, std::io::Error>(received)
    });
    client.run(move || TcpStream::connect_timeout(&to, WAIT)?.write_all(&sent))??;
    assert!(received.join_within(WAIT)?? == data, "the data was changed on its way");
    let stats = capture.stop()?;
    assert_eq!((stats.kernel_drops, stats.channel_drops), (0, 0));
    Ok(frames.iter().map(|frame| frame.original_len).max().unwrap_or(0))
}

// Nothing may spin: in virtual time, on one processor, it would stop the world.
fn idle() -> TestResult {
    let (_lab, client, server, _) = pair("20ms")?;
    let _capture = client.capture_with(&lab::CaptureOptions::default(), |_| {})?;
    let to = echo(&server, server.addr4()?.into())?;
    ping(&client, to, 1)?;
    let before = process_time();
    std::thread::sleep(Duration::from_secs(1));
    let used = process_time() - before;
    assert!(used < Duration::from_millis(50), "{used:?} in an idle second");
    Ok(())
}

fn direct() -> TestResult {
    enter()?;
    let mut lab = Lab::new(lab::LabOptions { backend: Backend::Direct, ..options() })?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    let slow = Path::symmetric("1ms".parse()?);
    assert!(matches!(lab.connect(&client, &server, &slow), Err(lab::Error::NotDirect)));
    let link = lab.connect(&client, &server, &Path::default())?;
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let to = echo(&server, address)?;
        ping(&client, to, 3)?;
    }
    assert_eq!(transfer(&client, &server)?, 1514);
    assert!(matches!(link.set_path(&slow), Err(lab::Error::NotDirect)));
    assert!(matches!(link.stats(), Err(lab::Error::NoStats)));
    Ok(())
}

fn calibration() -> TestResult {
    enter()?;
    let mut steps = Vec::new();
    let calibration = lab::calibrate(&options(), |done, _| {
        steps.push(done);
        ControlFlow::Continue(())
    })?;
    println!("{calibration:?}");
    assert!(steps.is_sorted() && steps.iter().all(|done| (0.0..=1.0).contains(done)), "{steps:?}");
    let direct = lab::LabOptions { backend: Backend::Direct, ..options() };
    assert!(matches!(
        lab::calibrate(&direct, |_, _| ControlFlow::Continue(())),
        Err(lab::Error::NoStats)
    ));
    Ok(())
}

fn process_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn pinned() -> TestResult {
    enter()?;
    let last = *packet::thread::allowed_cpus().last().ok_or("no processor")?;
    let pump = pump::Options { cpu: Some(last), ..pump::Options::default() };
    let mut lab = Lab::new(lab::LabOptions { node_cpu: Some(0), pump, ..options() })?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &Path::default())?;
    assert_eq!(client.run(packet::thread::allowed_cpus)?, [0]);
    let to = echo(&server, server.addr4()?.into())?;
    ping(&client, to, 1)?;
    let wrong = lab::LabOptions { node_cpu: Some(100_000), ..options() };
    assert!(Lab::new(wrong)?.add_node("x").is_err());
    Ok(())
}

fn changed_path() -> TestResult {
    let (_lab, client, server, link) = pair("1ms")?;
    let to = echo(&server, server.addr4()?.into())?;
    ping(&client, to, 1)?;
    link.set_path(&Path::symmetric("30ms".parse()?))?;
    assert!(ping(&client, to, 1)?[0] >= Duration::from_millis(30));
    let wrong = Path::default().with_rate("1mbit".parse::<units::Rate>()?);
    link.set_path(&wrong)?;
    // 142 bytes of frame at 1 Mbit/s take 1136 us each way.
    assert!(ping(&client, to, 1)?[0] >= Duration::from_micros(2272));
    Ok(())
}

fn chain() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let (client, router, server) =
        (lab.add_node("client")?, lab.add_node("router")?, lab.add_node("server")?);
    let path = Path::symmetric("10ms".parse()?);
    let near = lab.connect(&client, &router, &path)?;
    let far = lab.connect(&router, &server, &path)?;
    router.sysctl("net.ipv4.ip_forward", "1")?;
    router.sysctl("net.ipv6.conf.all.forwarding", "1")?;
    let (net4, net6) = (
        |n| Ipv4Addr::new(10, 77, n, 0).into(),
        |n| std::net::Ipv6Addr::new(0xfd77, n, 0, 0, 0, 0, 0, 0).into(),
    );
    client.add_route(net4(2), 24, near.ends()[1].addr4()?.into())?;
    server.add_route(net4(1), 24, far.ends()[0].addr4()?.into())?;
    client.add_route(net6(2), 64, near.ends()[1].addr6()?.into())?;
    server.add_route(net6(1), 64, far.ends()[0].addr6()?.into())?;
    for address in [IpAddr::V4(server.addr4()?), IpAddr::V6(server.addr6()?)] {
        let to = echo(&server, address)?;
        assert!(ping(&client, to, 1)?[0] >= Duration::from_millis(20));
    }
    Ok(())
}

fn two_labs() -> TestResult {
    enter()?;
    let make = || -> TestResult<_> {
        let mut lab = Lab::new(options())?;
        let (a, b) = (lab.add_node("a")?, lab.add_node("b")?);
        lab.connect(&a, &b, &Path::default())?;
        Ok((lab, a, b))
    };
    let (first_lab, first_a, first_b) = make()?;
    let (_second_lab, second_a, _) = make()?;
    let to = echo(&first_b, first_b.addr4()?.into())?;
    ping(&first_a, to, 1)?;
    // The same address, another world: nobody answers there.
    let silent = second_a.run(move || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(Duration::from_millis(200)))?;
        socket.send(b"anybody?")?;
        socket.recv(&mut [0; 10]).map(|_| ())
    })?;
    assert!(silent.is_err());
    first_lab.shutdown();
    Ok(())
}

fn panics() -> TestResult {
    let (lab, client, server, _) = pair("0")?;
    let error = client.run(|| panic!("out of {}", "cheese")).unwrap_err();
    assert_eq!(error.to_string(), "a task on node client panicked: out of cheese");
    let task = server.spawn(|| async { panic!("no more") });
    assert!(task.join_within(WAIT).unwrap_err().to_string().contains("no more"));
    // Both go on.
    assert_eq!(client.run(|| 5)?, 5);
    assert_eq!(server.spawn(|| async { 6 }).join_within(WAIT)?, 6);
    // A node may use itself.
    let own = client.clone();
    let value = client.run(move || own.read_sysctl("net.ipv4.tcp_no_metrics_save"))??;
    assert_eq!(value, "1");
    let endless = client.spawn(std::future::pending::<()>);
    let began = Instant::now();
    lab.shutdown();
    assert!(matches!(endless.join_within(WAIT), Err(lab::Error::NodeStopped { .. })));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    Ok(())
}

fn stopped() -> TestResult {
    let (lab, client, _server, link) = pair("0")?;
    let capture = client.capture_with(&lab::CaptureOptions::default(), |_| {})?;
    lab.shutdown();
    assert_eq!(capture.stop()?.frames, 0);
    assert!(matches!(client.run(|| 1), Err(lab::Error::NodeStopped { .. })));
    assert!(matches!(
        client.spawn(|| async { 1 }).join_within(WAIT),
        Err(lab::Error::NodeStopped { .. })
    ));
    assert!(link.stats().is_err());
    assert!(client.cpu_time().is_none());
    Ok(())
}

fn cpu_time() -> TestResult {
    let (_lab, client, server, _) = pair("0")?;
    let idle = server.cpu_time().ok_or("no clock")?;
    let before = client.cpu_time().ok_or("no clock")?;
    let used = client.run(|| {
        let clock = packet::clock::ThreadCpuClock::of_current_thread().unwrap();
        let began = clock.read().unwrap();
        while clock.read().unwrap() - began < Duration::from_millis(20) {
            std::hint::black_box(0);
        }
        clock.read().unwrap() - began
    })?;
    assert!(client.cpu_time().ok_or("no clock")? - before >= used);
    assert!(server.cpu_time().ok_or("no clock")? - idle < used);
    Ok(())
}

fn wrong_use() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let a = lab.add_node("a")?;
    let message = |result: Result<(), lab::Error>| result.unwrap_err().in_one_text();
    let mut refused = |name: &str| message(lab.add_node(name).map(drop));
    assert!(refused("a").contains("already"));
    for name in ["", "with space", "a/b", "sixteen-letters-"] {
        assert!(refused(name).contains("letters"), "{name}");
    }
    assert!(message(a.addr4().map(drop)).contains("connect it first"));
    assert!(message(lab.connect(&a, &a, &Path::default()).map(drop)).contains("same node twice"));
    let stranger = Lab::new(options())?.add_node("b")?;
    let error = message(lab.connect(&a, &stranger, &Path::default()).map(drop));
    assert!(error.contains("another lab"), "{error}");
    assert!(message(a.sysctl("kernel.hostname", "x")).contains("net.ipv4.tcp_fastopen"));
    assert!(
        message(a.sysctl("net.ipv4.no_such_thing", "1"))
            .contains("check whether this kernel has the setting")
    );
    let capture = a.capture(std::env::temp_dir().join("never.pcapng")).map(drop);
    assert!(message(capture).contains("no link"));
    Ok(())
}

fn two_processes() -> TestResult {
    let first = Scenario::new("udp_takes_the_round_trip_time").start()?;
    let second = Scenario::new("udp_takes_the_round_trip_time").start()?;
    let third = Scenario::new("tcp_over_ipv4_and_ipv6").start()?;
    judge(first.wait()?)?;
    judge(second.wait()?)?;
    judge(third.wait()?)
}

fn tap() -> TestResult {
    if let Some(reason) = lab::doctor().into_iter().find(|f| f.name == "TAP" && !f.ok) {
        return skip(Need::Tap, reason.detail);
    }
    for scenario in [
        "udp_takes_the_round_trip_time",
        "bulk_data_arrives_whole_in_frames_of_the_mtu",
        "a_chain_of_nodes_routes",
    ] {
        let mut scenario = Scenario::new(scenario);
        scenario.command.env("LAB_TEST_BACKEND", Backend::Tap.to_string());
        judge(scenario.run()?)?;
    }
    Ok(())
}
