//! A router that forbids one destination and does not reach another: the kernel tells of it by ICMP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lab::{Backend, Lab, LabOptions};
use linkmodel::Path;
use tcp::{ConnectOptions, IcmpKind, State};

use super::path_mtu::ip;
use lab_test::net::peers::{open_on, stack_options, teach};
use lab_test::net::{WAIT, enter};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![Test::new("icmp_errors_end_an_attempt_or_are_told", icmp)]
}

// RFC 9293 §3.9.2.2: a hard error ends an attempt to connect at once, a soft one is told.
fn icmp() -> TestResult {
    enter()?;
    let options = LabOptions { seed: 7, backend: Backend::Veth, ..LabOptions::default() };
    let mut lab = Lab::new(options)?;
    let ours = lab.add_node("ours")?;
    let router = lab.add_node("router")?;
    lab.connect(&ours, &router, &Path::symmetric("1ms".parse()?))?;
    router.sysctl("net.ipv4.ip_forward", "1")?;
    router.sysctl("net.ipv6.conf.all.forwarding", "1")?;
    teach(&router, &ours)?;
    for (kind, destinations) in [
        ("prohibit", ["198.51.100.1", "2001:db8:5::1"]),
        ("unreachable", ["198.51.100.2", "2001:db8:5::2"]),
    ] {
        for destination in destinations {
            let family = if destination.contains(':') { "-6" } else { "-4" };
            ip(&router, &[family, "route", "add", kind, destination])?;
        }
    }
    let mut options = stack_options(&ours, &router, tcp::Config::default())?;
    let near: [IpAddr; 2] = [router.addr4()?.into(), router.addr6()?.into()];
    options.gateways = near.to_vec();
    let stack = open_on(&ours, options)?;
    for destination in ["198.51.100.1", "2001:db8:5::1"] {
        let (to, stack) = (SocketAddr::new(destination.parse()?, 80), stack.clone());
        let refused = ours.spawn(move || async move {
            let stream = stack.connect(to, ConnectOptions::default())?;
            TestResult::Ok(stream.connected().await.err().map(|error| error.kind()))
        });
        let refused = refused.join_within(WAIT)??;
        assert_eq!(refused, Some(io::ErrorKind::HostUnreachable), "{destination}");
    }
    // Belief: of IPv6 the kernel tells that there is no route (RFC 4443 §3.1).
    for (destination, kind) in [
        ("198.51.100.2", IcmpKind::HostUnreachable),
        ("2001:db8:5::2", IcmpKind::NetworkUnreachable),
    ] {
        let (to, stack) = (SocketAddr::new(destination.parse()?, 80), stack.clone());
        let told = ours.spawn(move || async move {
            let stream = stack.connect(to, ConnectOptions::default())?;
            loop {
                let info = stream.info().ok_or("the attempt is over")?;
                if let Some(kind) = info.icmp_error {
                    return TestResult::Ok((info.state, kind));
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let told = told.join_within(WAIT)??;
        assert_eq!(told, (State::SynSent, kind), "{destination}");
    }
    Ok(())
}
