//! Links with options of their own, nodes with a processor of their own.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use lab::{Addresses, Backend, Error, Lab, Link, LinkOptions, Node, NodeOptions, Prefix};
use lab_test::{Need, Scenario, Test, TestResult, judge, skip};
use linkmodel::Path;

use crate::links::{echo, ping};
use crate::support::{enter, options};

type Made<T> = TestResult<T>;

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_link_has_the_mtu_that_it_was_given", mtu),
        Test::new("links_of_every_backend_live_in_one_lab", backends),
        Test::new("neighbours_are_found_by_arp_where_that_is_on", arp),
        Test::new("addresses_are_probed_for_duplicates_where_that_is_on", dad),
        Test::new("a_link_has_none_one_or_many_addresses", addresses),
        Test::new("a_link_that_is_down_has_no_carrier_and_loses_what_is_under_way", down_and_up),
        Test::new("a_direct_link_that_was_down_has_its_addresses_again", direct_down_and_up),
        Test::new("nodes_have_processors_of_their_own", processors),
        Test::new("tap_links_are_taken_down_and_have_large_frames_too", tap),
    ]
}

fn pair_with(lab: &mut Lab, path: &Path, options: &LinkOptions) -> Made<(Node, Node, Link)> {
    let number = lab_size(lab);
    let (a, b) = (lab.add_node(&format!("a{number}"))?, lab.add_node(&format!("b{number}"))?);
    let link = lab.connect_with(&a, &b, path, options)?;
    Ok((a, b, link))
}

/// A number that no pair of this lab has yet.
fn lab_size(lab: &mut Lab) -> usize {
    (0..).find(|n| lab.add_node(&format!("n{n}")).is_ok()).unwrap_or(0)
}

/// Sends datagrams of `bytes` from one node to the other; those that come back.
fn exchange(from: &Node, to: SocketAddr, bytes: usize) -> Made<std::io::Result<usize>> {
    Ok(from.run(move || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        // Not to be fragmented: what does not fit is refused.
        let discover: libc::c_int = libc::IP_PMTUDISC_DO;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
        let size = size_of_val(&discover) as libc::socklen_t;
        // SAFETY: an option of one int, which is live.
        let set = unsafe {
            let value = (&raw const discover).cast();
            libc::setsockopt(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, value, size)
        };
        assert_eq!(set, 0);
        socket.send_to(&vec![7; bytes], to)?;
        socket.recv(&mut vec![0; 70_000])
    })?)
}

/// Echoes datagrams of any size.
fn echo_large(node: &Node) -> Made<SocketAddr> {
    let address = node.addr4()?;
    let socket = node.run(move || {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_nonblocking(true)?;
        Ok::<_, std::io::Error>(socket)
    })??;
    let at = socket.local_addr()?;
    drop(node.spawn(move || async move {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let mut buffer = vec![0; 70_000];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await?;
            socket.send_to(&buffer[..length], from).await?;
        }
        #[allow(unreachable_code)]
        Ok::<_, std::io::Error>(())
    }));
    Ok(at)
}

fn mtu() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let most = if lab.backend() == Backend::Tap { 65_521 } else { 65_535 };
    for mtu in [68, 1500, 9000, most] {
        let options = LinkOptions { mtu, ..LinkOptions::default() };
        let (a, b, link) = pair_with(&mut lab, &Path::symmetric("1ms".parse()?), &options)?;
        let to = echo_large(&b)?;
        // An IPv4 header of 20 bytes and a UDP header of 8.
        let fits = mtu as usize - 28;
        assert_eq!(exchange(&a, to, fits)??, fits);
        let refused = exchange(&a, to, fits + 1)?.unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE), "MTU {mtu}");
        assert_eq!(link.ends()[0].addr6().is_ok(), mtu >= 1280);
        let stats = link.stats()?;
        assert_eq!((stats.forward.pump.given, stats.backward.pump.given), (1, 1), "MTU {mtu}");
    }
    for mtu in [67, most + 1] {
        let options = LinkOptions { mtu, ..LinkOptions::default() };
        let refused = pair_with(&mut lab, &Path::default(), &options).map(drop).unwrap_err();
        assert!(refused.to_string().contains(&format!("not {mtu}")), "{refused}");
    }
    Ok(())
}

fn backends() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    for backend in [Backend::Veth, Backend::Direct, Backend::Netem] {
        let options = LinkOptions { backend, mtu: 9000, ..LinkOptions::default() };
        let made = pair_with(&mut lab, &Path::default(), &options);
        if backend == Backend::Netem && !lab::netem_available()? {
            let error = made.map(drop).unwrap_err();
            assert!(matches!(error.downcast_ref(), Some(lab::Error::NoNetem)), "{error}");
            continue;
        }
        let (a, b, link) = made?;
        assert_eq!(exchange(&a, echo_large(&b)?, 8000)??, 8000);
        assert_eq!(link.stats().is_ok(), backend == Backend::Veth);
    }
    Ok(())
}

fn arp() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let options = LinkOptions { arp: true, ..LinkOptions::default() };
    let (a, b, _link) = pair_with(&mut lab, &Path::symmetric("1ms".parse()?), &options)?;
    let (capture, frames) = b.capture_channel(&lab::CaptureOptions::default(), 1000)?;
    for address in [IpAddr::V4(b.addr4()?), IpAddr::V6(b.addr6()?)] {
        ping(&a, echo(&b, address)?, 2)?;
    }
    capture.stop()?;
    let frames: Vec<_> = frames.iter().collect();
    let of_type = |kind: [u8; 2]| move |f: &&lab::OwnedFrame| f.bytes.get(12..14) == Some(&kind);
    assert!(frames.iter().filter(of_type([0x08, 0x06])).count() >= 2, "question and answer");
    // ICMPv6 135: neighbour solicitation (RFC 4861 §4.3).
    let asks =
        frames.iter().filter(of_type([0x86, 0xdd])).filter(|f| f.bytes.get(54) == Some(&135));
    assert!(asks.count() >= 1);
    Ok(())
}

fn dad() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let options = LinkOptions { arp: true, dad: true, ..LinkOptions::default() };
    let (a, b, link) = pair_with(&mut lab, &Path::default(), &options)?;
    // The link works at once, so that the probes must have gone before.
    ping(&a, echo(&b, b.addr6()?.into())?, 1)?;
    let stats = link.stats()?;
    let (there, back) = (stats.forward.pump.given, stats.backward.pump.given);
    assert!(there >= 3 && back >= 3, "a probe, a solicitation, a datagram: {there}, {back}");
    let alone = LinkOptions { arp: false, ..options };
    assert!(pair_with(&mut lab, &Path::default(), &alone).is_err());
    Ok(())
}

fn addresses() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let prefixes =
        |list: &[&str]| list.iter().map(|p| p.parse()).collect::<Result<Vec<Prefix>, _>>();
    let bare = LinkOptions { addresses: Addresses::none(), ..LinkOptions::default() };
    let (a, _, link) = pair_with(&mut lab, &Path::default(), &bare)?;
    assert!(link.ends().iter().all(|end| end.addresses.is_empty()));
    assert!(matches!(a.addr4(), Err(Error::NoAddress { family: "IPv4", .. })));
    assert!(matches!(a.addr6(), Err(Error::NoAddress { family: "IPv6", .. })));
    let ends = [
        prefixes(&["192.0.2.1/31", "198.51.100.1/24", "2001:db8::1/64", "2001:db8:1::1/64"])?,
        prefixes(&["192.0.2.0/31", "198.51.100.2/24", "2001:db8::2/64", "2001:db8:1::2/64"])?,
    ];
    let addresses = Addresses::Given(ends.clone());
    let macs = Some([[2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2]]);
    let many = LinkOptions { addresses, macs, ..LinkOptions::default() };
    let (a, b, link) = pair_with(&mut lab, &Path::default(), &many)?;
    for (end, (node, mac)) in link.ends().iter().zip([&a, &b].into_iter().zip([1, 2])) {
        assert_eq!(end.mac, [2, 0, 0, 0, 9, mac]);
        assert!(node.devices()?.iter().any(|device| device.mac == end.mac));
    }
    for address in ends[1].iter().map(|prefix| prefix.address()) {
        ping(&a, echo(&b, address)?, 1)?;
    }
    assert_eq!(link.ends()[0].addresses, ends[0]);
    assert_eq!(a.addr4()?.to_string(), "192.0.2.1");
    assert_eq!(b.addr6()?.to_string(), "2001:db8::2");
    Ok(())
}

/// Whether the node's kernel says that it has a carrier on its first link.
fn has_carrier(node: &Node) -> Made<bool> {
    let name = node.ends().remove(0).interface;
    // SIOCGIFFLAGS gives IFF_RUNNING.
    Ok(node.run(move || interface_flags(&name))? & libc::IFF_RUNNING != 0)
}

fn interface_flags(name: &str) -> libc::c_int {
    // SAFETY: plain calls; the request is a valid `ifreq` that names the interface.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        assert_eq!(libc::ioctl(fd, libc::SIOCGIFFLAGS, &raw mut request), 0);
        libc::close(fd);
        libc::c_int::from(request.ifr_ifru.ifru_flags)
    }
}

fn down_and_up() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    // Long enough that what is sent before the link goes down is under way then.
    let slow = Path::symmetric("600ms".parse()?);
    let (a, b, link) = pair_with(&mut lab, &slow, &LinkOptions::default())?;
    let to = b.run({
        let address = b.addr4()?;
        move || UdpSocket::bind((address, 0))
    })??;
    let at = to.local_addr()?;
    let send = move |text: &'static [u8]| {
        move || UdpSocket::bind("0.0.0.0:0")?.send_to(text, at).map(drop)
    };
    assert!(has_carrier(&a)? && has_carrier(&b)?);
    a.run(send(b"under way"))??;
    link.down()?;
    assert!(!has_carrier(&a)? && !has_carrier(&b)?);
    // The kernel takes it and drops it: the socket is told nothing.
    a.run(send(b"into the void"))??;
    link.down()?;
    link.up()?;
    assert!(has_carrier(&a)? && has_carrier(&b)?);
    a.run(send(b"again"))??;
    to.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut text = [0; 20];
    let length = to.recv(&mut text)?;
    assert_eq!(&text[..length], b"again");
    let forward = link.stats()?.forward;
    assert_eq!((forward.pump.taken, forward.pump.given, forward.pump.refused), (2, 1, 1));
    // Addresses and neighbours stayed: IPv6 too.
    link.set_path(&Path::default())?;
    ping(&a, echo(&b, b.addr6()?.into())?, 1)?;
    Ok(())
}

fn direct_down_and_up() -> TestResult {
    enter()?;
    let mut lab = Lab::new(options())?;
    let options = LinkOptions { backend: Backend::Direct, ..LinkOptions::default() };
    let (a, b, link) = pair_with(&mut lab, &Path::default(), &options)?;
    link.down()?;
    assert!(!has_carrier(&a)? && !has_carrier(&b)?);
    link.up()?;
    for address in [IpAddr::V4(b.addr4()?), IpAddr::V6(b.addr6()?)] {
        ping(&a, echo(&b, address)?, 1)?;
    }
    Ok(())
}

fn processors() -> TestResult {
    enter()?;
    let allowed = packet::thread::allowed_cpus();
    let [first, .., last] = allowed[..] else {
        return skip(Need::Host, "one processor may be used");
    };
    let mut lab = Lab::new(lab::LabOptions { node_cpu: Some(first), ..options() })?;
    let own = lab.add_node_with("own", NodeOptions { cpu: Some(last) })?;
    let usual = lab.add_node("usual")?;
    assert_eq!(own.run(packet::thread::allowed_cpus)?, [last]);
    assert_eq!(usual.run(packet::thread::allowed_cpus)?, [first]);
    Ok(())
}

fn tap() -> TestResult {
    if let Some(reason) = lab::doctor().into_iter().find(|f| f.name == "TAP" && !f.ok) {
        return skip(Need::Tap, reason.detail);
    }
    for scenario in [
        "a_link_has_the_mtu_that_it_was_given",
        "a_link_that_is_down_has_no_carrier_and_loses_what_is_under_way",
        "addresses_are_probed_for_duplicates_where_that_is_on",
    ] {
        let mut scenario = Scenario::new(scenario);
        scenario.command.env("LAB_TEST_BACKEND", Backend::Tap.to_string());
        judge(scenario.run()?)?;
    }
    Ok(())
}
