//! What the sites are joined by: nodes, links, and two pseudowires.

use l2vpn::ends::{self, Side};
use l2vpn::kernel::{Attachment, Crossing, Script, attach, cross};
use lab::{Addresses, Backend, Lab, LinkOptions, Node};
use linkmodel::Path;
use units::Delay;

use crate::Error;
use crate::layout::{Site, label, link};

/// Bytes of the longest packet on every link: Ethernet frames of 1518 bytes and all that is put around them.
const MTU: u32 = 2000;

/// The nodes of a bed.
#[derive(Debug, Clone)]
pub(crate) struct Nodes {
    pub(crate) host: Node,
    pub(crate) sites: [Node; 2],
    pub(crate) far: Node,
    pub(crate) peer: Node,
    /// Where other stations are.
    pub(crate) crowd: Node,
}

impl Nodes {
    pub(crate) fn site(&self, site: Site) -> &Node {
        let [first, second] = &self.sites;
        match site {
            Site::First => first,
            Site::Second => second,
        }
    }
}

/// Makes nodes and links, and joins the sites to the far edge. Links are made in the order of their numbers. `cables`
/// are between the host and these sites.
pub(crate) fn build(lab: &mut Lab, delay: Delay, cables: [bool; 2]) -> Result<Nodes, Error> {
    let host = lab.add_node("host")?;
    let sites = [lab.add_node("ce1")?, lab.add_node("ce2")?];
    let edges = [lab.add_node("pe1")?, lab.add_node("pe2")?];
    let (provider, far_edge) = (lab.add_node("p")?, lab.add_node("pe3")?);
    let (far, peer) = (lab.add_node("ce3")?, lab.add_node("peer")?);
    let crowd = lab.add_node("crowd")?;
    let [ce1, ce2] = &sites;
    let [pe1, pe2] = &edges;
    let rows: [(u8, &Node, &Node); 10] = [
        (link::customer(Site::First), ce1, pe1),
        (link::customer(Site::Second), ce2, pe2),
        (link::provider(Site::First), pe1, &provider),
        (link::provider(Site::Second), pe2, &provider),
        (link::CORE, &provider, &far_edge),
        (link::far(Site::First), &far_edge, &far),
        (link::far(Site::Second), &far_edge, &far),
        (link::PEER, &far, &peer),
        (link::cable(Site::First), ce1, &host),
        (link::cable(Site::Second), ce2, &host),
    ];
    for (number, left, right) in rows {
        let is_delayed = number == link::CORE && delay != Delay::ZERO;
        let path = if is_delayed {
            // As long each way.
            Path::symmetric(Delay::from(delay.duration() * 2))
        } else {
            Path::default()
        };
        let options = LinkOptions {
            backend: if is_delayed { Backend::Netem } else { Backend::Direct },
            mtu: MTU,
            // Neighbours are found, not known: that is part of what is measured.
            arp: true,
            addresses: Addresses::none(),
            macs: Some(ends::macs(number).map(|mac| mac.0)),
            ..LinkOptions::default()
        };
        let made = lab.connect_with(left, right, &path, &options)?;
        debug_assert_eq!(made.number(), number);
    }
    for (site, node) in Site::ALL.into_iter().zip(&edges) {
        edge(site).apply(node)?;
        if !cables[site.index()] {
            sites[site.index()].remove_device(&link::name(link::cable(site)))?;
        }
    }
    middle().apply(&provider)?;
    far_end().apply(&far_edge)?;
    Script::new().apply(&host)?;
    Script::new().apply(&crowd)?;
    Ok(Nodes { host, sites, far, peer, crowd })
}

/// The provider edge of a site.
fn edge(site: Site) -> Script {
    let mut script = Script::new();
    let (customer, provider) = (link::name(link::customer(site)), link::name(link::provider(site)));
    for port in [&customer, &provider] {
        script.tc(format_args!("qdisc add dev {port} clsact"));
    }
    let (out, into) = label::near(site);
    let [source, destination] = ends::macs(link::provider(site));
    let (customer, provider) = (customer.as_str(), provider.as_str());
    attach(&Attachment { customer, provider, out, into, source, destination }, &mut script);
    script
}

/// The provider: swaps upper labels.
fn middle() -> Script {
    let mut script = Script::new();
    script.setting("net.mpls.platform_labels", "1000");
    let mut side = |number: u8, own: Side, labels: &[(u32, u32)]| {
        let interface = link::name(number);
        let (address, next) = (ends::link_ip(number, own), ends::link_ip(number, own.other()));
        let mac = ends::mac(number, own.other());
        let crossing = Crossing { interface: &interface, own: address, next, mac };
        cross(&crossing, labels, &mut script);
    };
    let towards: Vec<(u32, u32)> =
        Site::ALL.iter().map(|site| (label::near(*site).0, label::far(*site).0)).collect();
    side(link::CORE, Side::Left, &towards);
    for site in Site::ALL {
        side(link::provider(site), Side::Right, &[(label::far(site).1, label::near(site).1)]);
    }
    script
}

/// The far provider edge, at which both pseudowires end.
fn far_end() -> Script {
    let mut script = Script::new();
    let provider = link::name(link::CORE);
    let customers = Site::ALL.map(|site| link::name(link::far(site)));
    for port in customers.iter().chain([&provider]) {
        script.tc(format_args!("qdisc add dev {port} clsact"));
    }
    let [destination, source] = ends::macs(link::CORE);
    for (site, customer) in Site::ALL.into_iter().zip(&customers) {
        let (into, out) = label::far(site);
        let (customer, provider) = (customer.as_str(), provider.as_str());
        attach(&Attachment { customer, provider, out, into, source, destination }, &mut script);
    }
    script
}
