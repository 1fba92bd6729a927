//! Our stack on one node, the kernel on the other, and how they meet.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use lab::{JoinHandle, Node};
use tcpio::{DeviceOptions, InterfaceAddress, Stack, StackOptions, TcpStream};
use tokio::net as kernel_net;

use crate::net::{Pair, WAIT};
use crate::{Failure, TestResult};

/// The port of every listener of ours.
pub const PORT: u16 = 7000;

/// Which of IP's versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

pub const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// Who opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    Ours,
    Kernel,
}

pub const OPENERS: [Opener; 2] = [Opener::Ours, Opener::Kernel];

/// The addresses that our stack takes at a node's end: the kernel's with 100 added.
pub fn our_addresses(node: &Node) -> TestResult<(Ipv4Addr, Ipv6Addr)> {
    let (v4, v6) = (node.addr4()?.octets(), node.addr6()?.segments());
    let mut ours = v6;
    ours[7] += 0x100;
    Ok((Ipv4Addr::new(v4[0], v4[1], v4[2], v4[3] + 100), ours.into()))
}

/// What our stack on `node` needs to know to talk with `peer` over their link.
pub fn stack_options(node: &Node, peer: &Node, tcp: tcp::Config) -> TestResult<StackOptions> {
    let (v4, v6) = our_addresses(node)?;
    let here = node.ends().into_iter().next().ok_or("the node has no link")?;
    let there = peer.ends().into_iter().next().ok_or("the peer has no link")?;
    let (peer_v4, peer_v6) = our_addresses(peer)?;
    let mac = tcpio::MacAddr { 0: there.mac };
    let device = DeviceOptions::Interface { name: here.interface, vnet_header: false };
    let mut options = StackOptions::new(
        device,
        vec![InterfaceAddress::new(v4.into(), 24)?, InterfaceAddress::new(v6.into(), 64)?],
    );
    options.neighbours =
        [peer.addr4()?.into(), peer.addr6()?.into(), peer_v4.into(), peer_v6.into()]
            .map(|address: IpAddr| (address, mac))
            .to_vec();
    options.tcp = tcp;
    options.seed = Some([7; 32]);
    Ok(options)
}

/// Gives the kernel of `peer` the way to our addresses on `node`. The lab's interfaces have no
/// ARP: it goes by way of the neighbour that the kernel knows.
pub fn teach(peer: &Node, node: &Node) -> TestResult {
    let (v4, v6) = our_addresses(node)?;
    peer.add_route(v4.into(), 32, node.addr4()?.into())?;
    peer.add_route(v6.into(), 128, node.addr6()?.into())?;
    Ok(())
}

/// Opens our stack on `node`'s runtime.
pub fn open_on(node: &Node, options: StackOptions) -> TestResult<Stack> {
    Ok(node.spawn(move || async move { Stack::open(options) }).join_within(WAIT)??)
}

/// Our stack on the server node, the kernel on the client node.
pub struct Meeting {
    pub pair: Pair,
    pub stack: Stack,
    /// The node of our stack.
    pub ours: Node,
    /// The node whose kernel is the peer.
    pub kernel: Node,
}

/// What both sides of a connection are doing.
pub struct Both<A, B> {
    pub ours: JoinHandle<TestResult<A>>,
    pub kernel: JoinHandle<TestResult<B>>,
}

impl<A, B> Both<A, B> {
    /// Waits for both. If both failed, ours is reported first.
    pub fn join(self) -> TestResult<(A, B)> {
        let ours = self.ours.join_within(WAIT).map_err(Failure::from).and_then(|result| result);
        let kernel = self.kernel.join_within(WAIT).map_err(Failure::from).and_then(|r| r);
        match (ours, kernel) {
            (Ok(ours), Ok(kernel)) => Ok((ours, kernel)),
            (Err(ours), Err(kernel)) => {
                Err(format!("our side: {ours}; the kernel's: {kernel}").into())
            }
            (Err(ours), Ok(_)) => Err(format!("our side: {ours}").into()),
            (Ok(_), Err(kernel)) => Err(format!("the kernel's side: {kernel}").into()),
        }
    }
}

impl Meeting {
    pub fn new(pair: Pair) -> TestResult<Meeting> {
        Meeting::with(pair, tcp::Config::default())
    }

    pub fn with(pair: Pair, config: tcp::Config) -> TestResult<Meeting> {
        let (ours, kernel) = (pair.server.clone(), pair.client.clone());
        teach(&kernel, &ours)?;
        let stack = open_on(&ours, stack_options(&ours, &kernel, config)?)?;
        Ok(Meeting { pair, stack, ours, kernel })
    }

    /// The address of this family at our end.
    pub fn our_ip(&self, family: Family) -> TestResult<IpAddr> {
        let (v4, v6) = our_addresses(&self.ours)?;
        Ok(if family == Family::V4 { v4.into() } else { v6.into() })
    }

    /// The kernel's address.
    pub fn kernel_ip(&self, family: Family) -> TestResult<IpAddr> {
        Ok(match family {
            Family::V4 => self.kernel.addr4()?.into(),
            Family::V6 => self.kernel.addr6()?.into(),
        })
    }

    /// Where we listen.
    pub fn our_socket(&self, family: Family, port: u16) -> TestResult<SocketAddr> {
        Ok((self.our_ip(family)?, port).into())
    }

    /// A listener of ours at `port`.
    pub fn listen(
        &self,
        family: Family,
        port: u16,
        options: tcp::ListenOptions,
    ) -> TestResult<tcpio::TcpListener> {
        let (stack, address) = (self.stack.clone(), self.our_socket(family, port)?);
        let listening = self.ours.spawn(move || async move { stack.listen(address, options) });
        Ok(listening.join_within(WAIT)??)
    }

    /// A listener of the kernel's, at a port of its choice.
    pub fn kernel_listen(
        &self,
        family: Family,
    ) -> TestResult<(kernel_net::TcpListener, SocketAddr)> {
        let ip = self.kernel_ip(family)?;
        let listener = self.kernel.spawn(move || kernel_net::TcpListener::bind((ip, 0)));
        let listener = listener.join_within(WAIT)??;
        let address = listener.local_addr()?;
        Ok((listener, address))
    }

    /// Connects the two and starts what each does with its end. Connections at the same time need
    /// ports of their own.
    pub fn meet<A, B, FA, FB>(
        &self,
        (family, opener, port): (Family, Opener, u16),
        ours: impl FnOnce(TcpStream) -> FA + Send + 'static,
        kernel: impl FnOnce(kernel_net::TcpStream) -> FB + Send + 'static,
    ) -> TestResult<Both<A, B>>
    where
        A: Send + 'static,
        B: Send + 'static,
        FA: Future<Output = TestResult<A>> + 'static,
        FB: Future<Output = TestResult<B>> + 'static,
    {
        match opener {
            Opener::Kernel => {
                let listener = self.listen(family, port, tcp::ListenOptions::default())?;
                let address = self.our_socket(family, port)?;
                Ok(Both {
                    ours: self.ours.spawn(move || async move {
                        let stream = listener.accept().await?;
                        ours(stream).await
                    }),
                    kernel: self.kernel.spawn(move || async move {
                        kernel(kernel_net::TcpStream::connect(address).await?).await
                    }),
                })
            }
            Opener::Ours => {
                let (listener, address) = self.kernel_listen(family)?;
                let stack = self.stack.clone();
                Ok(Both {
                    ours: self.ours.spawn(move || async move {
                        let stream = stack.connect(address, tcp::ConnectOptions::default())?;
                        stream.connected().await?;
                        ours(stream).await
                    }),
                    kernel: self.kernel.spawn(move || async move {
                        let (stream, _) = listener.accept().await?;
                        kernel(stream).await
                    }),
                })
            }
        }
    }
}

/// A future with the time limit of a step.
pub async fn limited<T>(what: &str, work: impl Future<Output = T>) -> TestResult<T> {
    limited_to(WAIT, what, work).await
}

async fn limited_to<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = T>,
) -> TestResult<T> {
    let done = tokio::time::timeout(limit, work).await;
    done.map_err(|_| format!("waited {} s in vain for: {what}", limit.as_secs()).into())
}
