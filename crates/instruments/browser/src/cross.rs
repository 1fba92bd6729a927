//! Cross traffic: another host's download over a lane's link.
//!
//! Behind the lane's client and server stand a host each, joined to them by a link without delay or limit;
//! client and server forward between these and the lane's link. So the download has the link's queue in
//! common with the page and nothing else, and what it carried is counted at its own interfaces.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use lab::{Addresses, Backend, Lab, Link, LinkOptions, Node, Offer, Prefix};
use linkmodel::Path;
use tokio::time::{Instant, sleep};
use units::Bytes;

use crate::Error;

/// How long the download may take to fill the queue.
const FILLING: Duration = Duration::from_secs(30);
/// How long what is left of it, or of connections that were closed, may take to leave the link.
const DRAINING: Duration = Duration::from_secs(10);
/// How often the link is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// The port of the download.
const PORT: u16 = 9;
/// TCP's buffers, so that these do not bind before the queue is full: least, first and most bytes.
const BUFFERS: &str = "4096 131072 67108864";
/// Connections of the download: another host's, not a crowd's.
const FLOWS: usize = 1;

/// What cross traffic carried during a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Crossed {
    /// Whether it had filled the queue, or lost a packet, when the load began.
    pub steady: bool,
    /// Its frame bytes that the link delivered to the server's side.
    pub up: Bytes,
    /// Its frame bytes that the link delivered to the client's side.
    pub down: Bytes,
}

/// The two hosts of a lane's cross traffic.
#[derive(Debug, Clone)]
pub(crate) struct Neighbours {
    /// Behind the client: it downloads.
    near: Node,
    came_down: Counter,
    /// Behind the server: it sends.
    far: Node,
    came_up: Counter,
    server: SocketAddr,
}

impl Neighbours {
    /// Sets them up behind a lane's ends, whose addresses are 10.78.NET.1 and 10.78.NET.2.
    pub(crate) fn new(
        lab: &mut Lab,
        net: u8,
        client: &Node,
        server: &Node,
    ) -> Result<Neighbours, Error> {
        let near = lab.add_node(&format!("near{net}"))?;
        let far = lab.add_node(&format!("far{net}"))?;
        let address = |block: u8, last: u8| Ipv4Addr::new(10, block, net, last);
        let first = join(lab, [&near, client], [address(79, 1), address(79, 2)])?;
        let last = join(lab, [server, &far], [address(80, 1), address(80, 2)])?;
        for (node, network, gateway) in [
            (&near, address(80, 0), address(79, 2)),
            (client, address(80, 0), address(78, 2)),
            (server, address(79, 0), address(78, 1)),
            (&far, address(79, 0), address(80, 1)),
        ] {
            node.add_route(IpAddr::V4(network), 24, IpAddr::V4(gateway))?;
        }
        for node in [client, server] {
            node.sysctl("net.ipv4.ip_forward", "1")?;
        }
        near.sysctl("net.ipv4.tcp_rmem", BUFFERS)?;
        far.sysctl("net.ipv4.tcp_wmem", BUFFERS)?;
        let [near_end, _] = first.ends();
        let [_, far_end] = last.ends();
        Ok(Neighbours {
            came_down: Counter::open(&near, &near_end.interface)?,
            came_up: Counter::open(&far, &far_end.interface)?,
            near,
            far,
            server: SocketAddr::from((address(80, 2), PORT)),
        })
    }

    /// Begins a download and waits until it has filled the queue of `link`, or lost a packet on the way
    /// to the client: for a bounded time.
    pub(crate) async fn begin(&self, link: &Link) -> Result<Download, Error> {
        let dropped = || Ok::<_, Error>(link.stats()?.backward.link.dropped_in_all().frames);
        let before = dropped()?;
        let offer = Offer::at(&self.far, self.server).await?;
        let offer = offer.map_err(|source| Error::CrossTraffic { source })?;
        let flows = offer.download(&self.far, &self.near, FLOWS);
        let until = Instant::now() + FILLING;
        let mut steady = false;
        while !steady && Instant::now() < until {
            sleep(LOOK).await;
            steady = dropped()? > before;
        }
        Ok(Download { flows, steady })
    }

    /// Frame bytes of cross traffic so far: those that came up and those that came down.
    pub(crate) fn carried(&self) -> Option<(Bytes, Bytes)> {
        Some((self.came_up.read()?, self.came_down.read()?))
    }
}

/// Frame bytes that came in at an interface, as the kernel counts them. Clones are the same.
#[derive(Debug, Clone)]
struct Counter {
    /// The table of the interfaces of the namespace in which it was opened: a busy node need not be asked.
    table: Arc<File>,
    interface: String,
}

impl Counter {
    fn open(node: &Node, interface: &str) -> Result<Counter, Error> {
        let opened = node.run(|| File::open("/proc/thread-self/net/dev"))?;
        let table = Arc::new(opened.map_err(|source| Error::CrossTraffic { source })?);
        Ok(Counter { table, interface: interface.to_owned() })
    }

    fn read(&self) -> Option<Bytes> {
        // Three interfaces at most, a line of some 120 bytes each.
        let mut table = [0; 4096];
        let len = self.table.read_at(&mut table, 0).ok()?;
        let table = std::str::from_utf8(table.get(..len)?).ok()?;
        let of = |line: &str| {
            let (name, counters) = line.split_once(':')?;
            let first = || counters.split_whitespace().next()?.parse().ok().map(Bytes);
            (name.trim() == self.interface).then(first)?
        };
        table.lines().find_map(of)
    }
}

/// A download under way.
pub(crate) struct Download {
    flows: lab::Download,
    /// Whether it had filled the queue when it was waited for.
    pub(crate) steady: bool,
}

impl Download {
    /// Ends it, and waits until nothing is left of it on the link, for a bounded time.
    pub(crate) async fn end(self, link: &Link) -> Result<(), Error> {
        for side in self.flows.end() {
            side.await?.map_err(|source| Error::CrossTraffic { source })?;
        }
        settled(link).await
    }
}

/// Waits until nothing is on a link, for a bounded time: what is closed or ended is not counted for the next
/// load then.
pub(crate) async fn settled(link: &Link) -> Result<(), Error> {
    let until = Instant::now() + DRAINING;
    let mut quiet = 0;
    // What arrives may be answered: it is over when two looks find nothing.
    while quiet < 2 && Instant::now() < until {
        sleep(LOOK).await;
        let stats = link.stats()?;
        let empty = stats.forward.in_flight + stats.backward.in_flight == 0;
        quiet = if empty { quiet + 1 } else { 0 };
    }
    Ok(())
}

/// Joins two nodes without delay or limit.
fn join(lab: &mut Lab, [a, b]: [&Node; 2], addresses: [Ipv4Addr; 2]) -> Result<Link, Error> {
    let prefixes = addresses.map(|address| Prefix::new(address, 24).into_iter().collect());
    let options = LinkOptions {
        backend: Backend::Direct,
        addresses: Addresses::Given(prefixes),
        ..LinkOptions::default()
    };
    Ok(lab.connect_with(a, b, &Path::default(), &options)?)
}
