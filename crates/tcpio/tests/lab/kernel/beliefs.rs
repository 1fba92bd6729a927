//! What we believe of the kernel's TCP where our design rests on it, tried with segments made by
//! hand. Each test names the belief.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use linkmodel::Path;
use packet::{PacketSocket, SocketOptions};
use wire::tcp::{Flags, OptionList, Repr};

use lab_test::net::peers::{our_addresses, teach};
use lab_test::net::segments::{Segment, frame, parse};
use lab_test::net::{Pair, WAIT, pair};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("belief_a_fast_open_client_takes_data_on_the_syn_ack", taken),
        Test::new("belief_a_client_without_syn_data_discards_data_on_the_syn_ack", discarded),
        Test::new("belief_a_packet_to_an_address_on_our_nodes_link_draws_no_rst", no_rst),
    ]
}

/// What the kernel acknowledges of a SYN-ACK with data, beyond the SYN.
fn acknowledged(data_on_syn: bool) -> TestResult<u32> {
    let Pair { lab: _lab, client, server, .. } = pair(&Path::symmetric("4ms".parse()?))?;
    client.sysctl("net.ipv4.tcp_fastopen", "0x5")?;
    teach(&client, &server)?;
    let our_ip = IpAddr::V4(our_addresses(&server)?.0);
    let end = server.ends().into_iter().next().ok_or("no link")?;
    let (index, mac) = (end.index, end.mac);
    let peer_mac = client.ends().into_iter().next().ok_or("no link")?.mac;
    let to = SocketAddr::from((our_ip, 7777));
    // Open before the SYN comes.
    let wire = server.run(move || PacketSocket::open(index, &SocketOptions::default()))??;
    // The client connects; its socket stays open until the test ends.
    let socket = client.run(move || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        let address = socket2::SockAddr::from(to);
        let started = if data_on_syn {
            socket.send_to_with_flags(&[9; 300], &address, libc::MSG_FASTOPEN).map(drop)
        } else {
            socket.connect(&address)
        };
        match started {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok::<_, io::Error>(socket),
        }
    });
    // The server: one SYN-ACK with data, by hand, and the first answer to it.
    let served = server.run(move || {
        let syn = receive(&wire, |s| s.is_syn() && s.destination_port == 7777)?;
        let sequence = 1_000_000;
        let segment = Repr {
            source_port: 7777,
            destination_port: syn.source_port,
            sequence,
            acknowledgment: Some(syn.sequence.wrapping_add(1 + syn.payload.len() as u32)),
            flags: Flags::SYN,
            window: 60_000,
            options: OptionList { mss: Some(1460), ..OptionList::default() },
        };
        let answer = frame((mac, peer_mac), (syn.destination, syn.source), &segment, &[5; 500])?;
        packet::send(std::os::fd::AsFd::as_fd(&wire), &answer)?;
        let ack = receive(&wire, |s| s.acknowledgment.is_some())?;
        let acknowledged = ack.acknowledgment.ok_or("no acknowledgment")?;
        TestResult::Ok(acknowledged.wrapping_sub(sequence + 1))
    });
    let _socket = socket??;
    served?
}

/// The next segment of a kind.
fn receive(socket: &PacketSocket, wanted: impl Fn(&Segment) -> bool) -> TestResult<Segment> {
    let until = Instant::now() + WAIT;
    let mut buffer = [0; 2048];
    while Instant::now() < until {
        let fd = std::os::fd::AsFd::as_fd(socket);
        match packet::receive(fd, &mut buffer)? {
            Some(len) => {
                let found = parse(&buffer[..len], lab::Direction::Inbound);
                if let Some(found) = found.filter(|s| wanted(s)) {
                    return Ok(found);
                }
            }
            None => std::thread::sleep(std::time::Duration::from_micros(200)),
        }
    }
    Err("waited in vain for a segment".into())
}

fn taken() -> TestResult {
    assert_eq!(acknowledged(true)?, 500);
    Ok(())
}

fn discarded() -> TestResult {
    assert_eq!(acknowledged(false)?, 0);
    Ok(())
}

// The kernel of our stack's node sees our packets too. The address is not its own, and it does not
// forward: it keeps silent, and our connections are not reset by it.
fn no_rst() -> TestResult {
    let Pair { lab: _lab, client, server, .. } = pair(&Path::symmetric("1ms".parse()?))?;
    assert_eq!(server.read_sysctl("net.ipv4.ip_forward")?, "0");
    assert_eq!(server.read_sysctl("net.ipv6.conf.all.forwarding")?, "0");
    teach(&client, &server)?;
    let watch = lab_test::net::segments::Watch::at(&client)?;
    let (v4, v6) = our_addresses(&server)?;
    for ip in [IpAddr::V4(v4), IpAddr::V6(v6)] {
        let to = SocketAddr::from((ip, 9));
        let tried = client.run(move || {
            std::net::TcpStream::connect_timeout(&to, std::time::Duration::from_millis(200))
        })?;
        assert_eq!(tried.map(drop).unwrap_err().kind(), io::ErrorKind::TimedOut, "{ip}");
    }
    let segments = watch.segments()?;
    assert_eq!(segments.iter().filter(|s| s.is_syn()).count(), 2);
    assert!(segments.iter().all(|s| !s.inbound()), "{segments:?}");
    Ok(())
}
