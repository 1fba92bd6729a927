//! The way out of a lab: a node that forwards to the machine's own network.
//!
//! A veth pair joins the node and the network outside, and both sides hide the addresses before them.
//! Nothing of it outlives the process: the pair goes with the node, and outside the table of nftables
//! belongs to a program `nft` that ends with the lab (its flag `owner`, Linux 5.12).

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::address::Prefix;
use crate::device::{in_namespace, on_thread_in};
use crate::node::Node;
use crate::{Error, enter, netlink};

/// The name of the node's device.
const INSIDE: &str = "outside";
/// Bytes of the longest IP packet on the way out.
const MTU: u32 = 1500;
/// How long `nft` may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A way out of a lab. It is closed when this is dropped, and when this process ends, whatever ends it.
#[derive(Debug)]
pub struct Outside {
    nft: Child,
    /// Open as long as `nft` is to live.
    commands: Option<ChildStdin>,
    interface: String,
}

impl Outside {
    /// The interface of the machine's network that leads to the lab.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.interface
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        drop(self.commands.take());
        // It has ended already, or ends now: either is well.
        let _ = self.nft.kill();
        let _ = self.nft.wait();
    }
}

/// The names and addresses of one way out, drawn so that two labs do not meet.
struct Names {
    table: String,
    interface: String,
    /// Of the two ends of the veth pair.
    outer: Ipv4Addr,
    inner: Ipv4Addr,
}

/// Networks of which the way out takes four addresses that no route leads to: the one for benchmarks
/// (RFC 2544), then private ones. The space shared by carriers (RFC 6598) is Tailscale's.
const NETWORKS: [(Ipv4Addr, u32); 3] = [
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];
/// So many draws of addresses from each network.
const DRAWS: u32 = 16;
/// A route to a larger part of all addresses, in bits, is a default route and takes none of them.
const LARGEST: u8 = 8;

impl Names {
    /// Draws names, and addresses beside the networks that routes lead to; `None` if there are none.
    fn of(drawn: u32, taken: &[(Ipv4Addr, u8)]) -> Option<Names> {
        let is_free = |address: &u32| {
            taken.iter().filter(|(_, length)| *length >= LARGEST).all(|(network, length)| {
                // No prefix is longer than four addresses.
                let host_bits = 32 - u32::from(*length).min(30);
                (network.to_bits() ^ address).checked_shr(host_bits) != Some(0)
            })
        };
        // Odd, so that each draw differs from the others.
        let draw = |(network, length): (Ipv4Addr, u32), nth: u32| {
            let within = drawn.wrapping_add(nth.wrapping_mul(0x9e37_79b1)) & (u32::MAX >> length);
            network.to_bits() | (within & !3)
        };
        let mut all = NETWORKS.into_iter().flat_map(|of| (0..DRAWS).map(move |nth| draw(of, nth)));
        let free = all.find(is_free)?;
        Some(Names {
            table: format!("wiretax_{drawn:08x}"),
            interface: format!("wtx{drawn:08x}"),
            outer: Ipv4Addr::from_bits(free | 1),
            inner: Ipv4Addr::from_bits(free | 2),
        })
    }
}

impl Node {
    /// Makes the node forward IPv4 between its links and the machine's own network, behind the machine's
    /// own address. Nodes behind it need a route to it.
    ///
    /// # Errors
    /// [`Error::NoWayOut`] if the program is not root outside of the lab, if the machine does not forward, or
    /// if there is no `nft`; what the kernel refuses.
    pub fn open_outside(&self) -> Result<Outside, Error> {
        let outer = enter::outer_network().ok_or_else(|| {
            no_way("it is made by root alone", Some("run with sudo, or leave out --outside"))
        })?;
        on_thread_in(outer, forwards)?;
        let drawn = enter::token().map_err(|error| no_way(error.to_string(), None))?;
        let [a, b, c, d, ..] = drawn;
        let taken = in_namespace(outer, |handle| async move { netlink::networks(&handle).await })?;
        let names = Names::of(u32::from_be_bytes([a, b, c, d]), &taken).ok_or_else(|| {
            no_way("this machine has routes to all networks that it could take", None)
        })?;
        self.join_outside(&names)?;
        let table = outer_table(&names);
        let (nft, commands) = on_thread_in(outer, move || keep_table(&table))?;
        let outside = Outside { nft, commands: Some(commands), interface: names.interface.clone() };
        // In the node the table goes with the node.
        let own = own_table();
        self.run(move || load_table(&own))??;
        Ok(outside)
    }

    /// Joins the node to the network outside by a veth pair, with addresses and routes.
    fn join_outside(&self, names: &Names) -> Result<(), Error> {
        let outer =
            enter::outer_network().ok_or_else(|| no_way("it is made by root alone", None))?;
        let prefix = |address: Ipv4Addr| {
            Prefix::new(address, 30).ok_or_else(|| no_way("an address makes no sense", None))
        };
        let (theirs, ours) = (prefix(names.outer)?, prefix(names.inner)?);
        let name = names.interface.clone();
        self.netlink(move |handle| async move {
            netlink::create_veth(&handle, &name, INSIDE, MTU).await?;
            netlink::move_to(&handle, &name, outer).await
        })?;
        let name = names.interface.clone();
        in_namespace(outer, move |handle| async move {
            netlink::add_address_to(handle.clone(), name.clone(), theirs).await?;
            netlink::set_up(handle, name, true).await
        })?;
        let name = names.interface.clone();
        on_thread_in(outer, move || {
            fs::write(forwarding(&name), "1")
                .map_err(|error| no_way(format!("forwarding of {name} is refused: {error}"), None))
        })?;
        self.netlink(move |handle| async move {
            netlink::add_address_to(handle.clone(), INSIDE.to_owned(), ours).await?;
            netlink::set_up(handle, INSIDE.to_owned(), true).await
        })?;
        self.sysctl("net.ipv4.ip_forward", "1")?;
        self.add_route(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, IpAddr::V4(names.outer))
    }
}

fn no_way(problem: impl Into<String>, remedy: Option<&'static str>) -> Error {
    Error::NoWayOut { problem: problem.into(), remedy: remedy.map(Into::into) }
}

fn forwarding(interface: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{interface}/forwarding")
}

/// Checks that the machine forwards what comes in by its default route's interface: an answer to the lab.
fn forwards() -> Result<(), Error> {
    let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    let Some(interface) = default_interface(&routes) else {
        return Err(no_way("this machine has no default route", None));
    };
    let setting = fs::read_to_string(forwarding(interface)).unwrap_or_default();
    if setting.trim() == "1" {
        return Ok(());
    }
    let problem = format!("this machine does not forward what comes in by {interface}");
    let remedy = format!("allow it with `sudo sysctl net.ipv4.conf.{interface}.forwarding=1`");
    Err(Error::NoWayOut { problem, remedy: Some(remedy.into()) })
}

/// The interface of the default route in the kernel's table (/proc/net/route).
fn default_interface(routes: &str) -> Option<&str> {
    routes.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (interface, destination) = (fields.next()?, fields.next()?);
        (destination == "00000000").then_some(interface)
    })
}

/// A table outside that hides the node's address behind the machine's, and lets nobody beyond the machine
/// connect to it.
fn outer_table(Names { table, interface, inner, .. }: &Names) -> String {
    format!(
        "add table ip {table} {{ flags owner; }}\n\
         add chain ip {table} guard {{ type filter hook forward priority 0; }}\n\
         add rule ip {table} guard oifname \"{interface}\" ct state established,related accept\n\
         add rule ip {table} guard oifname \"{interface}\" drop\n\
         add chain ip {table} out {{ type nat hook postrouting priority 100; }}\n\
         add rule ip {table} out ip saddr {inner} masquerade\n\
         list table ip {table}\n"
    )
}

/// A table in the node that hides what is behind it.
fn own_table() -> String {
    format!(
        "add table ip wiretax\n\
         add chain ip wiretax out {{ type nat hook postrouting priority 100; }}\n\
         add rule ip wiretax out oifname \"{INSIDE}\" masquerade\n"
    )
}

fn start(arguments: &[&str]) -> Result<Child, Error> {
    let mut nft = Command::new("nft");
    nft.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    nft.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_way(
            "the program nft is not on this machine",
            Some("install the package nftables, or leave out --outside"),
        ),
        _ => no_way(format!("nft cannot be run: {error}"), None),
    })
}

/// Has an `nft` make a table that lives as long as it does.
fn keep_table(table: &str) -> Result<(Child, ChildStdin), Error> {
    let mut nft = start(&["-i"])?;
    let pipes = (nft.stdin.take(), nft.stdout.take());
    let (Some(mut commands), Some(shown)) = pipes else {
        return Err(no_way("nft has no pipes", None));
    };
    let written = commands.write_all(table.as_bytes()).and_then(|()| commands.flush());
    let (seen, made) = mpsc::channel();
    std::thread::Builder::new()
        .name("nft".to_owned())
        .spawn(move || {
            let mut lines = BufReader::new(shown).lines().map_while(Result::ok);
            if shows_table(&mut lines) {
                let _ = seen.send(());
            }
            // What else it writes, its prompt at least, must find a reader: SIGPIPE would end it, and the table with it.
            lines.for_each(drop);
        })
        .map_err(Error::Thread)?;
    if written.is_ok() && made.recv_timeout(LIMIT).is_ok() {
        return Ok((nft, commands));
    }
    drop(commands);
    // Either it has ended, or it is to.
    let _ = nft.kill();
    Err(refused(nft))
}

/// Whether it lists the table with its rule: before that it may echo each command that it reads, and none is carried out
/// by then. A connection whose first packet comes before the rule is never hidden: conntrack decides once.
fn shows_table(lines: impl Iterator<Item = String>) -> bool {
    // No command says this.
    let mut listed = lines.skip_while(|line| !line.contains("policy accept"));
    listed.any(|line| line.contains("masquerade"))
}

/// Has `nft` load a table into the calling thread's network namespace.
fn load_table(table: &str) -> Result<(), Error> {
    let mut nft = start(&["-f", "-"])?;
    if let Some(mut input) = nft.stdin.take() {
        // If it reads nothing, it says why itself.
        let _ = input.write_all(table.as_bytes());
    }
    match nft.wait() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(refused(nft)),
    }
}

/// What an `nft` that has ended said.
fn refused(mut nft: Child) -> Error {
    let mut said = String::new();
    if let Some(errors) = nft.stderr.take() {
        let _ = errors.take(4096).read_to_string(&mut said);
    }
    let _ = nft.wait();
    let first = said.lines().next().unwrap_or("it does not say why").to_owned();
    no_way(
        format!("nft cannot make its table: {first}"),
        Some(
            "check that the kernel has nf_tables with NAT (CONFIG_NFT_NAT, CONFIG_NFT_MASQ) and is Linux 5.12 or later",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_routes_interface_is_found() {
        let table = "Iface\tDestination\tGateway\nlo\t0000007F\t0\neth0\t00000000\t0102A8C0\n";
        assert_eq!(default_interface(table), Some("eth0"));
        assert_eq!(default_interface("Iface\tDestination\n"), None);
    }

    #[test]
    fn a_table_is_there_when_it_is_listed_and_not_when_its_commands_are_echoed() {
        let table = outer_table(&Names::of(1, &[]).unwrap());
        let shows = |text: &str| shows_table(text.lines().map(str::to_owned));
        let echoed: String = table.lines().map(|line| format!("nft> {line}\n")).collect();
        assert!(!shows(&echoed));
        let listed = "table ip wiretax_1 { # progname nft\n\tflags owner\n\n\tchain out {\n\t\ttype nat hook \
                      postrouting priority srcnat; policy accept;\n\t\tip saddr 198.18.0.2 masquerade\n\t}\n}\n";
        assert!(shows(&(echoed + listed)));
    }

    #[test]
    fn both_ends_are_in_one_network_that_no_route_leads_to() {
        let everywhere = (Ipv4Addr::UNSPECIFIED, 0);
        let benchmarks = (Ipv4Addr::new(198, 18, 0, 0), 15);
        let half = (Ipv4Addr::new(198, 18, 0, 0), 16);
        let single = (Ipv4Addr::new(172, 31, 255, 253), 32);
        for drawn in [0, u32::MAX, 0x0102_0304, 0xdead_beef] {
            for (taken, networks) in [
                (vec![], 198..199),
                (vec![everywhere], 198..199),
                (vec![half, everywhere], 198..199),
                (vec![benchmarks, everywhere, single], 172..173),
                (vec![benchmarks, (Ipv4Addr::new(172, 16, 0, 0), 12)], 192..193),
            ] {
                let names = Names::of(drawn, &taken).unwrap();
                assert!(names.interface.len() <= 15, "{}", names.interface);
                let (outer, inner) = (names.outer.to_bits(), names.inner.to_bits());
                assert!(networks.contains(&names.outer.octets()[0]), "{}", names.outer);
                assert_eq!((outer & !3, outer & 3, inner & 3), (inner & !3, 1, 2));
                for (network, length) in taken.iter().filter(|(_, length)| *length > 0) {
                    let shift = 32 - u32::from(*length).min(30);
                    assert_ne!(outer >> shift, network.to_bits() >> shift, "{}", names.outer);
                }
            }
        }
        let all = NETWORKS.map(|(network, length)| (network, length as u8));
        assert!(Names::of(7, &all).is_none());
    }
}
