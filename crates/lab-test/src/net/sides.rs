//! A stack of ours on each of two nodes, or the kernel's TCP on one: what either side needs to know.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lab::{Backend, End, Lab, LabOptions, Link, Node};
use linkmodel::Path;
use tcpio::{DeviceOptions, InterfaceAddress, MacAddr, Stack, StackOptions};
use tokio::io::{AsyncRead, AsyncWrite};

use super::pattern;
use crate::TestResult;
use crate::net::WAIT;

/// Two nodes and a link.
pub struct Net {
    pub a: Node,
    pub b: Node,
    pub link: Link,
    _lab: Lab,
}

/// One side: a node and its end of the link.
#[derive(Clone)]
pub struct Side {
    pub node: Node,
    pub end: End,
    pub peer: End,
}

impl Net {
    /// A veth pair between two nodes and nothing else, offloads off.
    pub fn direct() -> TestResult<Net> {
        Net::new(Backend::Direct, &Path::default())
    }

    /// An emulated link.
    pub fn emulated(path: &Path) -> TestResult<Net> {
        Net::new(Backend::Veth, path)
    }

    fn new(backend: Backend, path: &Path) -> TestResult<Net> {
        let mut lab = Lab::new(LabOptions { seed: 7, backend, ..LabOptions::default() })?;
        let (a, b) = (lab.add_node("a")?, lab.add_node("b")?);
        let link = lab.connect(&a, &b, path)?;
        Ok(Net { a, b, link, _lab: lab })
    }

    pub fn sides(&self) -> [Side; 2] {
        let [first, second] = self.link.ends().clone();
        [
            Side { node: self.a.clone(), end: first.clone(), peer: second.clone() },
            Side { node: self.b.clone(), end: second, peer: first },
        ]
    }
}

impl Side {
    /// The addresses of a stack on this side: the kernel's with 100 more at the end.
    pub fn addresses(&self) -> [IpAddr; 2] {
        ours(&self.end)
    }

    /// The kernel's addresses on this side.
    pub fn kernel(&self) -> [IpAddr; 2] {
        let v4 = self.end.addr4().expect("an IPv4 address");
        [v4.into(), self.end.addr6().unwrap_or(std::net::Ipv6Addr::LOCALHOST).into()]
    }

    /// A stack on this side that knows its neighbours.
    pub fn options(&self) -> StackOptions {
        let mac = MacAddr { 0: self.peer.mac };
        let peer = Side { end: self.peer.clone(), ..self.clone() };
        let known = [peer.kernel(), peer.addresses()].concat();
        StackOptions {
            neighbours: known.into_iter().map(|address| (address, mac)).collect(),
            ..self.options_asking()
        }
    }

    /// A stack on this side that has to ask for its neighbours.
    pub fn options_asking(&self) -> StackOptions {
        let device =
            DeviceOptions::Interface { name: self.end.interface.clone(), vnet_header: false };
        let [v4, v6] = self.addresses();
        let addresses = [(v4, 24), (v6, 64)];
        let addresses =
            addresses.map(|(address, len)| InterfaceAddress::new(address, len).unwrap());
        StackOptions::new(device, addresses.to_vec())
    }

    /// Runs `work` on the node with a stack opened there, and waits for it.
    pub fn with_stack<T, F>(
        &self,
        options: StackOptions,
        work: impl FnOnce(Stack) -> F + Send + 'static,
    ) -> lab::JoinHandle<TestResult<T>>
    where
        T: Send + 'static,
        F: Future<Output = TestResult<T>> + 'static,
    {
        self.node.spawn(move || async move {
            let stack = Stack::open(options)?;
            tokio::time::timeout(WAIT, work(stack)).await?
        })
    }
}

fn ours(end: &End) -> [IpAddr; 2] {
    let [a, b, c, d] = end.addr4().expect("an IPv4 address").octets();
    let mut v6 = end.addr6().unwrap_or(std::net::Ipv6Addr::LOCALHOST).segments();
    v6[7] += 0x100;
    [IpAddr::from([a, b, c, d + 100]), IpAddr::from(v6)]
}

/// What a step on the other node gave, within the patience.
pub fn join<T: Send + 'static>(handle: lab::JoinHandle<TestResult<T>>) -> TestResult<T> {
    handle.join_within(WAIT + Duration::from_secs(5))?
}

/// Reads a stream to its end and compares every byte.
pub async fn receive(mut from: impl AsyncRead + Unpin, seed: u64, len: usize) -> TestResult {
    pattern::check(&mut from, seed, len).await?;
    Ok(pattern::check_end(&mut from).await?)
}

/// Both ways at once: what `seed` gives goes out, what `seed + 1` gives comes in.
pub async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    seed: u64,
    len: usize,
    client: bool,
) -> TestResult {
    let (out, back) = if client { (seed, seed + 1) } else { (seed + 1, seed) };
    Ok(pattern::exchange(stream, out, back, len).await?)
}

/// Default options for a listener.
pub fn listen() -> tcp::ListenOptions {
    tcp::ListenOptions::default()
}

/// Default options for a client.
pub fn connect() -> tcp::ConnectOptions {
    tcp::ConnectOptions::default()
}

/// An address with a port.
pub fn at(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}

/// Waits for `done`, looking again and again.
pub async fn until(what: &str, mut done: impl FnMut() -> bool) -> TestResult {
    let give_up = tokio::time::Instant::now() + WAIT;
    while !done() {
        if tokio::time::Instant::now() > give_up {
            return Err(format!("never: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
