//! The lab of page loads: lanes, each with a client, a server and a link between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chromium::{Chromium, Http, Wanted};
use lab::{Addresses, JoinHandle, Lab, LabOptions, Link, LinkOptions, Node, Prefix};
use linkmodel::Path;
use page::Page;
use page::content::Origin;
use pump::QueueWatch;
use tls::{Identity, KeyType, Library, Trust};
use tokio::sync::oneshot;
use web::{
    Bottleneck, Counters, Embedding, Log, Server, ServerPlan, TlsPlan, UserTcp, UserTcpPlan,
};

use crate::cross::{Neighbours, settled};
use crate::drive::Browser;
use crate::fast_open;
use crate::kept::{Keeping, Secrets, Side};
use crate::names::{NameServer, Resolver, Zone};
use crate::setting::{CrossTraffic, Setting};
use crate::site::PageSite;
use crate::user_tcp::UserTcps;
use crate::watch::{Seen, Sides, Told, give_to_their_loads};
use crate::{Error, names};

/// The lane's network has addresses for all hosts of a page, a client and a name server.
const _: () = assert!(Page::MAX_HOSTS + 2 < 255);
/// The first port that a lane's servers listen at. Each has a port of its own: QUIC keeps that of a server
/// that has ended until its connections have drained (RFC 9000 §10.2).
const FIRST_PORT: u16 = 10_000;
/// How many ports there are: what used one long ago is gone.
const PORTS: u16 = 20_000;
/// Bytes of early data that a server takes, where it takes any: a page's request many times over.
const EARLY_DATA: u32 = 16 * 1024;
/// How long names count: longer than a sample takes.
const TTL: Duration = Duration::from_secs(3600);
/// How long what has left the link when connections are closed may take to reach the server's log.
const CLOSING: Duration = Duration::from_millis(100);

/// What is kept between two loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing: a first visit.
    Forget,
    /// Everything but connections.
    Close,
    /// Everything, open connections too.
    Keep,
}

/// A lab of lanes.
#[derive(Debug)]
pub struct Bed {
    lanes: Vec<Lane>,
    /// Ends the nodes when it is dropped: after the lanes.
    lab: Lab,
}

impl Bed {
    /// A lab of so many lanes, for pages of at most so many hosts. The process must be in a lab
    /// already ([`lab::enter`]).
    ///
    /// # Errors
    /// [`Error::TooManyHosts`]; the lab's own.
    pub fn new(options: LabOptions, lanes: usize, hosts: usize) -> Result<Bed, Error> {
        if hosts > Page::MAX_HOSTS {
            return Err(Error::TooManyHosts { hosts, most: Page::MAX_HOSTS });
        }
        let mut lab = Lab::new(options)?;
        let lanes = (0..lanes).map(|number| Lane::new(&mut lab, number, hosts));
        Ok(Bed { lanes: lanes.collect::<Result<_, _>>()?, lab })
    }

    /// Sets what else is on the lanes' links from the next load on. It begins before each load, which waits
    /// until it has filled the queue, and ends with it.
    ///
    /// # Errors
    /// The lab's own.
    pub fn set_cross_traffic(&mut self, kind: CrossTraffic) -> Result<(), Error> {
        for lane in &mut self.lanes {
            if kind == CrossTraffic::Bulk && lane.neighbours.is_none() {
                let made = Neighbours::new(&mut self.lab, lane.net, &lane.client, &lane.server)?;
                lane.neighbours = Some(made);
            }
            lane.cross = kind;
        }
        Ok(())
    }

    /// The lanes, in the order of their numbers.
    pub fn lanes(&mut self) -> &mut [Lane] {
        &mut self.lanes
    }
}

/// A client, a server, and a link between them.
#[derive(Debug)]
pub struct Lane {
    client: Node,
    server: Node,
    link: Link,
    /// When packets last waited on their way to the server, and to the client.
    bottlenecks: Option<[Bottleneck; 2]>,
    /// The third byte of its addresses.
    net: u8,
    cross: CrossTraffic,
    neighbours: Option<Neighbours>,
    /// Addresses of a page's hosts, at the server's end.
    hosts: Vec<Ipv4Addr>,
    /// Our TCP, once it was asked for.
    user_tcp: Option<UserTcps>,
    /// Clients of Fast Open, once it was asked for.
    fast_open: Option<fast_open::Clients>,
    resolver: SocketAddr,
    zone: Zone,
    site: PageSite,
    /// Where servers say their connections' secrets, if they are to.
    secrets: Option<Secrets>,
    serving: Option<Serving>,
    /// Who loads, if not the loader here.
    chromium: Option<(Chromium, Wanted)>,
    /// Servers that were started before.
    served: u16,
}

/// A server that runs on the lane's node.
#[derive(Debug)]
struct Serving {
    log: Log,
    counters: Counters,
    identity: Arc<Identity>,
    port: u16,
    /// Dropped, the server ends.
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Ends the server and its connections.
    fn end(self) -> Result<(), Error> {
        drop(self.end);
        Ok(self.task.join()?)
    }
}

impl Lane {
    fn new(lab: &mut Lab, number: usize, hosts: usize) -> Result<Lane, Error> {
        let net = u8::try_from(number + 1).unwrap_or(u8::MAX);
        let client = lab.add_node(&format!("client{number}"))?;
        let server = lab.add_node(&format!("server{number}"))?;
        let address = |last: u8| Ipv4Addr::new(10, 78, net, last);
        // .1 is the client, .2 the name server, from .3 on the hosts.
        let own: Vec<Ipv4Addr> = (3..=u8::MAX - 1).take(hosts.max(1)).map(address).collect();
        let prefix = |address: Ipv4Addr| Prefix::new(address, 24);
        let first: Vec<Prefix> = prefix(address(1)).into_iter().collect();
        let second = std::iter::once(address(2)).chain(own.iter().copied()).filter_map(prefix);
        let options = LinkOptions {
            addresses: Addresses::Given([first, second.collect()]),
            ..LinkOptions::default()
        };
        let link = lab.connect_with(&client, &server, &Path::default(), &options)?;
        let of = |queue: QueueWatch| Bottleneck::new(move || queue.waits_until());
        let bottlenecks = link.queues().ok().map(|queues| queues.map(of));
        let resolver = SocketAddr::from((address(2), names::PORT));
        let zone = Zone::default();
        let answering = zone.clone();
        let started = server.spawn(move || async move {
            let server = NameServer::start(resolver, answering);
            // It runs as long as the node.
            server.map(std::mem::forget)
        });
        started.join()?.map_err(|source| Error::Names { call: "bind", source })?;
        let site = PageSite::default();
        Ok(Lane {
            client,
            server,
            link,
            bottlenecks,
            net,
            cross: CrossTraffic::None,
            neighbours: None,
            hosts: own,
            user_tcp: None,
            fast_open: None,
            resolver,
            zone,
            site,
            secrets: None,
            serving: None,
            chromium: None,
            served: 0,
        })
    }

    /// The server's node, to capture at.
    #[must_use]
    pub fn server(&self) -> &Node {
        &self.server
    }

    /// Whether servers from the next on say the TLS secrets of their connections, for what is kept.
    pub fn keep_secrets(&mut self, keep: bool) {
        self.secrets = keep.then(Secrets::default);
    }

    /// Keeps the frames that pass an end of the link from now on.
    ///
    /// # Errors
    /// The lab's own.
    pub fn keep_frames(&self, at: Side) -> Result<Keeping, Error> {
        let node = match at {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        Keeping::start(node, self.secrets.clone().unwrap_or_default())
    }

    /// Sets what the link is like from now on, from client to server. Its traces and outages begin anew with
    /// each load.
    ///
    /// # Errors
    /// The lab's own.
    pub fn set_path(&self, path: &Path) -> Result<(), Error> {
        Ok(self.link.set_path(path)?)
    }

    /// Serves a page by a protocol from now on: all of its hosts, each at an address of its own, with
    /// one certificate for all of them. What was served before ends.
    ///
    /// # Errors
    /// The page has too many hosts, or one that is no name; the server cannot be set up so.
    pub fn serve(&mut self, page: &Page, setting: &Setting) -> Result<(), Error> {
        let names = page.hosts();
        if names.len() > self.hosts.len() {
            let (hosts, most) = (names.len(), self.hosts.len());
            return Err(Error::TooManyHosts { hosts, most });
        }
        self.chromium = None;
        if let Some(before) = self.serving.take() {
            before.end()?;
        }
        if setting.embedding().is_some() && self.user_tcp.is_none() {
            let nodes = [&self.client, &self.server];
            self.user_tcp = Some(UserTcps::open(nodes, &self.link, &self.hosts)?);
        }
        if setting.fast_open() && self.fast_open.is_none() {
            let nodes = [&self.client, &self.server];
            self.fast_open = Some(fast_open::Clients::open(self.net, nodes, &self.link)?);
        }
        let hosts = self.user_tcp(setting).map_or(&self.hosts, |(user, _)| &user.hosts);
        let zone: Vec<(String, Ipv4Addr)> =
            names.iter().cloned().zip(hosts.iter().copied()).collect();
        self.zone.set(&zone, TTL).map_err(Error::HostName)?;
        let port = FIRST_PORT + self.served;
        self.served = (self.served + 1) % PORTS;
        let wanted = self.put(page, setting, port)?;
        let certified = certificate_names(names);
        let certified: Vec<&str> = certified.iter().map(String::as_str).collect();
        self.link.set_initial_window(setting.initial_window)?;
        let key = if setting.has_rsa_exchange() { KeyType::Rsa2048 } else { KeyType::EcdsaP256 };
        let identity = Arc::new(Identity::generate(key, 1, &certified)?);
        let plan = self.plan(setting, &identity, port);
        let (end, ended) = oneshot::channel::<()>();
        let (started, start) = std::sync::mpsc::sync_channel(1);
        let task = self.server.spawn(move || async move {
            match Server::start(plan) {
                Err(failure) => drop(started.send(Err(failure))),
                Ok(server) => {
                    let _ = started.send(Ok((server.log(), server.counters())));
                    let _ = ended.await;
                    drop(server);
                }
            }
        });
        let stopped = || lab::Error::NodeStopped { node: self.server.name().to_owned() };
        let (log, counters) = start.recv().map_err(|_| stopped())??;
        self.serving = Some(Serving { log, counters, identity, port, end, task });
        if let (Some(program), Some(wanted)) = (&setting.chromium, wanted) {
            let setting = self.chromium_setting(setting)?;
            self.chromium = Some((Chromium::start(&self.client, program, &setting)?, wanted));
        }
        Ok(())
    }

    /// Puts a page's bodies up: for Chromium, such as it can read.
    fn put(&self, page: &Page, setting: &Setting, port: u16) -> Result<Option<Wanted>, Error> {
        if setting.chromium.is_none() {
            self.site.serve(page, setting.server_push);
            return Ok(None);
        }
        let secure = setting.protocol != web::Protocol::Http1Clear;
        let wanted = Wanted::new(page, Origin { secure, port })?;
        self.site.serve_content(&wanted.page, &wanted.content);
        Ok(Some(wanted))
    }

    fn chromium_setting(&self, setting: &Setting) -> Result<chromium::Setting, Error> {
        let http = match setting.protocol {
            web::Protocol::Http1 | web::Protocol::Http1Clear => Http::V1,
            web::Protocol::Http2 => Http::V2,
            web::Protocol::Http3 => Http::V3,
            _ => return Err(Error::NotByChromium("load by SPDY")),
        };
        let identity = self.serving.as_ref().map(|serving| serving.identity.key_pin());
        let key_pin = identity.transpose()?;
        Ok(chromium::Setting { http, key_pin, name_server: self.resolver.ip() })
    }

    /// Our TCP, where a page is loaded over it.
    fn user_tcp(&self, setting: &Setting) -> Option<(&UserTcps, Embedding)> {
        self.user_tcp.as_ref().zip(setting.embedding())
    }

    fn plan(&self, setting: &Setting, identity: &Arc<Identity>, port: u16) -> ServerPlan {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let mut plan = ServerPlan::new(Arc::new(self.site.clone()));
        plan.settings = setting.settings;
        plan.tcp = setting.tcp();
        plan.quic = setting.quic();
        plan.bottleneck = self.bottlenecks.as_ref().map(|[_, down]| down.clone());
        if setting.protocol == web::Protocol::Http1Clear {
            plan.clear = vec![any];
            return plan;
        }
        let mut config = tls::ServerConfig::new(setting.library(), Arc::clone(identity));
        config.versions = setting.tls_versions();
        config.key_exchange = setting.key_exchange();
        config.key_log = self.secrets.as_ref().map(Secrets::log);
        if setting.embedding() == Some(Embedding::ZeroRtt) || setting.early_data() {
            config.max_early_data = EARLY_DATA;
        }
        let protocols = vec![setting.protocol];
        let user_tcp = self.user_tcp(setting).map(|(user, _)| {
            let addresses = user.hosts.iter().map(|host| SocketAddr::from((*host, port)));
            UserTcpPlan { stack: user.server.clone(), addresses: addresses.collect() }
        });
        let addresses = if user_tcp.is_some() { Vec::new() } else { vec![any] };
        plan.tls = Some(TlsPlan { addresses, config, protocols, user_tcp });
        plan
    }

    /// With Fast Open, an address for a browser that is new, and one for each time that it forgets.
    fn sources(&self, setting: &Setting, visits: &[Before]) -> Result<Vec<IpAddr>, Error> {
        let clients = self.fast_open.as_ref().filter(|_| setting.fast_open());
        let Some(clients) = clients else { return Ok(Vec::new()) };
        let forgets = visits.iter().filter(|before| **before == Before::Forget).count();
        (0..=forgets).map(|_| clients.another()).collect()
    }

    /// Loads the page that is served, once for each of `visits`, in a browser that has never seen it;
    /// what it keeps of the load before is what the visit says. Ends early where `stop` is set.
    ///
    /// # Errors
    /// Nothing is served; the client cannot be set up so.
    pub fn visit(
        &self,
        page: &Page,
        setting: &Setting,
        visits: Vec<Before>,
        stop: Arc<AtomicBool>,
    ) -> Result<JoinHandle<Result<Vec<Seen>, Error>>, Error> {
        let stopped = || lab::Error::NodeStopped { node: self.server.name().to_owned() };
        let serving = self.serving.as_ref().ok_or_else(stopped)?;
        let (link, server) = (self.link.clone(), self.server.clone());
        let neighbours = self.neighbours.clone().filter(|_| self.cross == CrossTraffic::Bulk);
        let (log, counters) = (serving.log.clone(), serving.counters.clone());
        let sides = Sides { link, server, log, counters, neighbours };
        if let Some((chromium, wanted)) = &self.chromium {
            if visits.contains(&Before::Close) {
                return Err(Error::NotByChromium("close its connections and keep the rest"));
            }
            let (address, wanted, limit) = (chromium.address(), wanted.clone(), setting.timeout);
            return Ok(self.client.spawn(move || async move {
                by_chromium(address, wanted, limit, visits, &sides, &stop).await
            }));
        }
        let trust = Trust::Roots(serving.identity.roots());
        let name = page.hosts().first().cloned().unwrap_or_default();
        let mut config = tls::ClientConfig::new(Library::Rustls, &name, trust);
        config.versions = setting.tls_versions();
        let client = web::Client::new(&config)?.with_session_tls(tls::ClientConfig {
            library: setting.library(),
            key_exchange: setting.key_exchange(),
            ..config
        });
        let user_tcp = self.user_tcp(setting);
        let user_tcp =
            user_tcp.map(|(user, embedding)| UserTcp { stack: user.client.clone(), embedding });
        let sources = self.sources(setting, &visits)?;
        let bottleneck = self.bottlenecks.as_ref().map(|[up, _]| up.clone());
        let (resolver, port) = (Resolver::new(self.resolver), serving.port);
        let (page, setting) = (page.clone(), setting.clone());
        Ok(self.client.spawn(move || async move {
            let browser = Browser::new(client, resolver, port, setting);
            let mut browser = browser.with_user_tcp(user_tcp).with_bottleneck(bottleneck);
            let mut sources = sources.into_iter();
            browser.set_source(sources.next());
            let mut all = Vec::with_capacity(visits.len());
            for before in visits {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                match before {
                    Before::Forget => {
                        browser.forget();
                        browser.set_source(sources.next());
                    }
                    Before::Close => browser.close_connections(),
                    Before::Keep => {}
                }
                if before != Before::Keep {
                    settled(&sides.link).await?;
                }
                let seen = sides.watch(async { Ok(browser.told(&page).await) });
                all.push(seen.await?);
            }
            browser.forget();
            settled(&sides.link).await?;
            tokio::time::sleep(CLOSING).await;
            give_to_their_loads(&mut all, sides.log.take_connections());
            Ok(all)
        }))
    }
}

/// Loads a page by Chromium, once for each visit.
async fn by_chromium(
    address: chromium::Address,
    wanted: Wanted,
    limit: Duration,
    visits: Vec<Before>,
    sides: &Sides,
    stop: &AtomicBool,
) -> Result<Vec<Seen>, Error> {
    let mut load = chromium::Load::begin(address, wanted).await?;
    let mut all = Vec::with_capacity(visits.len());
    for before in visits {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if before == Before::Forget {
            load.forget().await?;
            settled(&sides.link).await?;
        }
        let seen = sides.watch(async {
            let visit = match before {
                Before::Forget => load.first(limit).await?,
                Before::Keep | Before::Close => load.again(limit).await?,
            };
            let chromium::Visit { loaded, load_event, fetched, .. } = visit;
            Ok(Told { load_event, fetched, ..Told::of(loaded) })
        });
        all.push(seen.await?);
    }
    load.forget().await?;
    settled(&sides.link).await?;
    tokio::time::sleep(CLOSING).await;
    give_to_their_loads(&mut all, sides.log.take_connections());
    Ok(all)
}

/// The names of a certificate for these hosts: where two or more share a parent, one with a star
/// stands for them, as servers have it.
fn certificate_names(hosts: &[String]) -> Vec<String> {
    let parent = |host: &str| host.split_once('.').map(|(_, rest)| rest.to_owned());
    let mut names: Vec<String> = Vec::new();
    for host in hosts {
        let siblings = hosts.iter().filter(|other| parent(other) == parent(host)).count();
        let name = match parent(host) {
            // A star may not stand right below a top-level domain.
            Some(parent) if siblings > 1 && parent.contains('.') => format!("*.{parent}"),
            _ => host.clone(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_one_parent_share_a_name() {
        let hosts = ["www.a.example", "img.a.example", "b.example", "c.example", "d"];
        let names = certificate_names(&hosts.map(str::to_owned));
        assert_eq!(names, ["*.a.example", "b.example", "c.example", "d"]);
    }
}
