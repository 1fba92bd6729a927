//! Devices: neighbours that are asked for, TUN, path MTU messages, refusals.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linkmodel::Path;
use packet::{RingOptions, RxRing, SocketOptions};
use tcpio::{DeviceOptions, Error, InterfaceAddress, Stack, StackOptions};
use tokio::net::{TcpListener, TcpStream};
use wire::ethernet::{self, EtherType};
use wire::{icmpv4, icmpv6, ipv4, ipv6, tcp as segment};

use lab_test::net::WAIT;
use lab_test::net::sides::*;
use lab_test::{Need, Test, TestResult, skip};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("neighbours_find_each_other", neighbours),
        Test::inside("tun_of_plain_packets", || tun(false)),
        Test::inside("tun_with_super_segments", || tun(true)),
        Test::inside("a_path_mtu_message_makes_segments_smaller", || path_mtu(0)),
        Test::inside("an_icmpv6_path_mtu_message_as_well", || path_mtu(1)),
        Test::inside("what_cannot_be_is_refused_with_a_reason", refusals),
    ]
}

/// Switches ARP and neighbour discovery on, which the lab switches off.
fn allow_arp(side: &Side) -> TestResult {
    let name = side.end.interface.clone();
    side.node.run(move || -> TestResult {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
        // SAFETY: `ifreq` is a C struct of integers, arrays and a pointer; all zeroes is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let call = |number, request: &mut libc::ifreq| {
            // SAFETY: these requests read and write an `ifreq`, which outlives the call.
            match unsafe { libc::ioctl(socket.as_raw_fd(), number, std::ptr::from_mut(request)) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        call(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: SIOCGIFFLAGS has filled this member of the union.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru.ifru_flags = flags & !(libc::IFF_NOARP as libc::c_short);
        Ok(call(libc::SIOCSIFFLAGS, &mut request)?)
    })?
}

/// Nobody knows anybody: the kernel asks for us and we ask for it, by either family.
fn neighbours() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    allow_arp(&a)?;
    allow_arp(&b)?;
    for family in 0..2 {
        let (kernel, own) = (at(b.kernel()[family], 7000), at(a.addresses()[family], 7000));
        let (ready, listening) = std::sync::mpsc::channel();
        let there = b.node.spawn(move || async move {
            let listener = TcpListener::bind(kernel).await?;
            ready.send(())?;
            let (stream, _) = listener.accept().await?;
            exchange(stream, 1, 100_000, false).await?;
            exchange(TcpStream::connect(own).await?, 2, 100_000, true).await
        });
        listening.recv_timeout(WAIT)?;
        join(a.with_stack(a.options_asking(), move |stack| async move {
            let listener = stack.listen(own, listen())?;
            exchange(stack.connect(kernel, connect())?, 1, 100_000, true).await?;
            exchange(listener.accept().await?, 2, 100_000, false).await
        }))?;
        join(there)?;
    }
    Ok(())
}

/// The kernel and a stack behind a TUN device of the same node.
fn tun(vnet_header: bool) -> TestResult {
    let net = Net::direct()?;
    let [a, _] = net.sides();
    let address = |text: &str| text.parse::<InterfaceAddress>();
    let device = DeviceOptions::Tun {
        name: "tun%d".to_owned(),
        vnet_header,
        kernel_addresses: vec![address("10.99.0.1/24")?, address("fd99::1/64")?],
    };
    let ours = vec![address("10.99.0.2/24")?, address("fd99::2/64")?];
    join(a.node.spawn(move || async move {
        let stack = match Stack::open(StackOptions::new(device, ours)) {
            Err(Error::Device(error @ packet::Error::NoTun { .. })) => {
                return skip(Need::Tap, error.to_string());
            }
            other => other?,
        };
        for (kernel, own) in [("10.99.0.1", "10.99.0.2"), ("fd99::1", "fd99::2")] {
            let (kernel, own): (IpAddr, IpAddr) = (kernel.parse()?, own.parse()?);
            let there = TcpListener::bind(at(kernel, 7000)).await?;
            let here = stack.listen(at(own, 7000), listen())?;
            let len = 3_000_000;
            let (accepted, connected) = tokio::join!(
                async { exchange(there.accept().await?.0, 1, len, false).await },
                exchange(stack.connect(at(kernel, 7000), connect())?, 1, len, true),
            );
            accepted?;
            connected?;
            let (accepted, connected) = tokio::join!(
                async { exchange(here.accept().await?, 1, len, false).await },
                async { exchange(TcpStream::connect(at(own, 7000)).await?, 1, len, true).await },
            );
            accepted?;
            connected?;
        }
        let sent = stack.info().counters.sent;
        // 12 MB in segments of the MTU would be 8288.
        assert_eq!(vnet_header, sent < 8000, "{sent} packets sent");
        stack.shutdown().await;
        Ok(())
    }))
}

/// The MTU that the made-up router has.
const NARROW: usize = 1300;

/// A router, played by a raw socket on b, tells us that our segments are too long.
fn path_mtu(family: usize) -> TestResult {
    // With a delay, so that segments are under way when the message comes.
    let net = Net::emulated(&Path::symmetric("20ms".parse()?))?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[family], 7000);
    let len = 2_000_000;
    let (ready, listening) = std::sync::mpsc::channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        let (stream, _) = listener.accept().await?;
        exchange(stream, 1, len, false).await
    });
    listening.recv_timeout(WAIT)?;
    let index = b.end.index;
    let ring = b
        .node
        .run(move || RxRing::open(index, &SocketOptions::default(), RingOptions::default()))??;
    let over = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&over);
    let router = std::thread::spawn(move || play_router(ring, &done));
    join(a.with_stack(a.options(), move |stack| async move {
        exchange(stack.connect(target, connect())?, 1, len, true).await
    }))?;
    join(server)?;
    over.store(true, Ordering::Release);
    let lengths = router.join().map_err(|_| "the router panicked")??;
    let last = &lengths[lengths.len() / 2..];
    assert!(lengths.contains(&1500), "no segment was too long at first");
    let long = lengths.iter().rposition(|length| *length > NARROW);
    assert!(
        last.iter().all(|length| *length <= NARROW),
        "of {} segments the {long:?}th was too long",
        lengths.len()
    );
    Ok(())
}

/// Answers the first long segments; returns the IP length of each that had data.
fn play_router(mut ring: RxRing, over: &AtomicBool) -> TestResult<Vec<usize>> {
    let mut lengths = Vec::new();
    while !over.load(Ordering::Acquire) {
        let Some(frame) = ring.receive() else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let bytes = frame.bytes().to_vec();
        drop(frame);
        let Some((length, message)) = complain(&bytes) else { continue };
        lengths.push(length);
        if length > NARROW {
            packet::send(std::os::fd::AsFd::as_fd(ring.socket()), &message)?;
        }
    }
    Ok(lengths)
}

/// For a frame with data: its IP length, and what a router says of the segment behind it, which is
/// under way by then.
fn complain(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let frame = ethernet::Frame::new_checked(bytes).ok()?;
    let mut quoted = frame.payload().to_vec();
    let v4 = frame.ether_type() == EtherType::IPV4;
    let (header, total, payload) = if v4 {
        let packet = ipv4::Packet::new_checked(frame.payload()).ok()?;
        (20, packet.payload_len() + 20, packet.payload())
    } else {
        let packet = ipv6::Packet::new_checked(frame.payload()).ok()?;
        (40, packet.payload_len() + 40, packet.payload())
    };
    let tcp = segment::Segment::new_checked(payload).ok()?;
    if tcp.payload().is_empty() {
        return None;
    }
    let next = tcp.sequence().wrapping_add(tcp.payload().len() as u32);
    quoted[header + 4..header + 8].copy_from_slice(&next.to_be_bytes());
    quoted.truncate(header + 8);
    let mut message = vec![0; 2000];
    ethernet::Repr {
        destination: frame.source(),
        source: frame.destination(),
        ether_type: frame.ether_type(),
    }
    .emit(&mut message)
    .ok()?;
    let body = &mut message[14..];
    let len = if v4 {
        let packet = ipv4::Packet::new_checked(frame.payload()).ok()?;
        let reported = icmpv4::FragmentationNeeded { next_hop_mtu: NARROW as u16, quoted: &quoted };
        ipv4::Repr {
            source: packet.destination(),
            destination: packet.source(),
            protocol: icmpv4::PROTOCOL,
            traffic_class: 0,
            identification: 0,
            dont_fragment: false,
            time_to_live: 64,
            payload_len: reported.buffer_len(),
        }
        .emit(body)
        .ok()?;
        reported.emit(&mut body[20..]).ok()?;
        20 + reported.buffer_len()
    } else {
        let packet = ipv6::Packet::new_checked(frame.payload()).ok()?;
        let reported = icmpv6::Repr::PacketTooBig { mtu: NARROW as u32, quoted: &quoted };
        ipv6::Repr {
            source: packet.destination(),
            destination: packet.source(),
            next_header: icmpv6::PROTOCOL,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            payload_len: reported.buffer_len(),
        }
        .emit(body)
        .ok()?;
        reported.emit(packet.destination(), packet.source(), &mut body[40..]).ok()?;
        40 + reported.buffer_len()
    };
    message.truncate(14 + len);
    Some((total, message))
}

fn refusals() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    // Without a runtime.
    let options = a.options();
    assert!(matches!(Stack::open(options), Err(Error::NoRuntime)));
    let kernel = InterfaceAddress::new(a.kernel()[0], 24)?;
    let target = at(b.kernel()[0], 7000);
    let own = a.addresses()[0];
    let side = a.clone();
    join(side.with_stack(a.options(), move |stack| async move {
        let mut options = a.options();
        options.addresses.push(kernel);
        let error = Stack::open(options).unwrap_err();
        assert!(matches!(&error, Error::OwnedByKernel { .. }), "{error}");
        assert!(error.to_string().contains(&a.end.interface), "{error}");
        let mut options = a.options();
        options.device = DeviceOptions::Interface { name: "nowhere0".into(), vnet_header: false };
        let error = Stack::open(options).unwrap_err();
        assert!(error.to_string().contains("nowhere0"), "{error}");
        let mut options = a.options();
        options.device = DeviceOptions::Interface { name: "lo".into(), vnet_header: false };
        assert!(matches!(Stack::open(options), Err(Error::NotEthernet { .. })));
        // Addresses and ports.
        let far = stack.connect(at("192.0.2.1".parse()?, 80), connect());
        assert!(matches!(far, Err(Error::NoRoute { .. })));
        let itself = stack.connect(at(own, 80), connect());
        assert!(matches!(itself, Err(Error::NoRoute { .. })));
        let other = stack.listen(target, listen());
        assert!(matches!(other, Err(Error::NotOurs { .. })));
        let held = stack.listen(at(own, 80), listen())?;
        let error = stack.listen(at(own, 80), listen()).unwrap_err();
        assert!(matches!(error, Error::Listen(_)), "{error}");
        drop(held);
        drop(stack.listen(at(own, 80), listen())?);
        Ok(())
    }))
}
