//! A hop with a smaller MTU behind the first: the kernel as a router tells of it by ICMP.

use std::io;
use std::net::IpAddr;
use std::process::Command;

use lab::{Backend, Lab, LabOptions, Node};
use linkmodel::Path;
use tcp::ConnectOptions;
use tokio::io::AsyncWriteExt;

use lab_test::net::pattern::{check, check_end, send};
use lab_test::net::peers::{FAMILIES, Family, open_on, our_addresses, stack_options, teach};
use lab_test::net::segments::Watch;
use lab_test::net::{WAIT, enter};
use lab_test::{Need, Test, TestResult, skip};

pub fn tests() -> Vec<Test> {
    vec![Test::new("icmp_lowers_the_path_mtu", icmp)]
}

const LEN: usize = 2_000_000;
/// The narrow hop: the least that IPv6 allows (RFC 8200 §5).
const NARROW: usize = 1280;

/// Runs `ip` in a node.
pub(super) fn ip(node: &Node, arguments: &[&str]) -> TestResult {
    let owned: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    let output = node.run(move || Command::new("ip").args(owned).output())?;
    match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            skip(Need::Ip, "ip is not installed")
        }
        Err(error) => Err(error.into()),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

// RFC 1191, RFC 8201: our stack's 1500-byte packets do not fit the router's second link. The router
// says so, and we send smaller ones; nothing is lost for good.
fn icmp() -> TestResult {
    enter()?;
    let options = LabOptions { seed: 7, backend: Backend::Veth, ..LabOptions::default() };
    let mut lab = Lab::new(options)?;
    let ours = lab.add_node("ours")?;
    let router = lab.add_node("router")?;
    let server = lab.add_node("server")?;
    let path = Path::symmetric("1ms".parse()?);
    lab.connect(&ours, &router, &path)?;
    lab.connect(&router, &server, &path)?;
    router.sysctl("net.ipv4.ip_forward", "1")?;
    router.sysctl("net.ipv6.conf.all.forwarding", "1")?;
    // Only what the router sends is narrow: the server still says that it takes 1460 bytes.
    ip(&router, &["link", "set", "dev", "link2", "mtu", &NARROW.to_string()])?;
    teach(&router, &ours)?;
    let router_far = router.ends().into_iter().nth(1).ok_or("the router has one link only")?;
    let (v4, v6) = our_addresses(&ours)?;
    server.add_route(v4.into(), 32, router_far.addr4()?.into())?;
    server.add_route(v6.into(), 128, router_far.addr6()?.into())?;

    let mut options = stack_options(&ours, &router, tcp::Config::default())?;
    let near: [IpAddr; 2] = [router.addr4()?.into(), router.addr6()?.into()];
    options.gateways = near.to_vec();
    let stack = open_on(&ours, options)?;
    for family in FAMILIES {
        let ip = match family {
            Family::V4 => IpAddr::V4(server.addr4()?),
            Family::V6 => IpAddr::V6(server.addr6()?),
        };
        let watch = Watch::at(&ours)?;
        let listener = server.spawn(move || tokio::net::TcpListener::bind((ip, 0)));
        let listener = listener.join_within(WAIT)??;
        let to = listener.local_addr()?;
        let received = server.spawn(move || async move {
            let (mut stream, _) = listener.accept().await?;
            check(&mut stream, 1, LEN).await?;
            TestResult::Ok(check_end(&mut stream).await?)
        });
        let stack = stack.clone();
        let sent = ours.spawn(move || async move {
            let mut stream = stack.connect(to, ConnectOptions::default())?;
            stream.connected().await?;
            send(&mut stream, 1, LEN).await?;
            TestResult::Ok(stream.shutdown().await?)
        });
        sent.join_within(WAIT)??;
        received.join_within(WAIT)?.map_err(|error| format!("{family:?}: {error}"))?;
        let segments = watch.segments()?;
        let lens: Vec<_> = segments.iter().filter(|s| !s.inbound()).map(|s| s.ip_len).collect();
        // It began with what its own link takes, and ended with what the path takes.
        assert!(lens.contains(&1500), "{family:?}: {:?}", lens.iter().max());
        let last_large = lens.iter().rposition(|len| *len > NARROW).ok_or("none was too long")?;
        assert!(last_large < lens.len() / 2, "too long to the end: {last_large}/{}", lens.len());
        assert!(lens[last_large..].contains(&NARROW), "{family:?}");
    }
    Ok(())
}
