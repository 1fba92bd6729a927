//! A download between two nodes, which keeps the queue on its way full.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;

use futures_util::future::try_join_all;
use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::{JoinHandle, Node};

/// Bytes handed to a socket at once.
const PIECE: usize = 64 * 1024;

/// What waits on a node for who downloads from it.
#[derive(Debug)]
pub struct Offer {
    listener: TcpListener,
    at: SocketAddr,
}

/// A download under way, by connections of the kernel's TCP. Dropped, it ends: its connections are reset, so that
/// nothing of it is sent again.
#[derive(Debug)]
pub struct Download {
    ends: [oneshot::Sender<()>; 2],
    tasks: [JoinHandle<io::Result<()>>; 2],
}

impl Offer {
    /// Listens on a node at an address, whose port may be 0.
    pub fn at(node: &Node, address: SocketAddr) -> JoinHandle<io::Result<Offer>> {
        node.spawn(move || async move {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            fill_queues(&listener)?;
            let at = listener.local_addr()?;
            Ok(Offer { listener, at })
        })
    }

    /// Has another node download from the one that listens, by so many connections.
    #[must_use]
    pub fn download(self, from: &Node, to: &Node, flows: usize) -> Download {
        let Offer { listener, at } = self;
        let (end_sender, ended) = oneshot::channel::<()>();
        let sending = from.spawn(move || async move {
            tokio::select! {
                biased;
                _ = ended => Ok(()),
                done = send(listener, flows) => done,
            }
        });
        let (end_receiver, ended) = oneshot::channel::<()>();
        let receiving = to.spawn(move || async move {
            tokio::select! {
                biased;
                _ = ended => Ok(()),
                done = receive(at, flows) => done,
            }
        });
        Download { ends: [end_sender, end_receiver], tasks: [sending, receiving] }
    }
}

impl Download {
    /// Ends it, and gives what became of its two sides: an error is one that broke before its end. What is left of it on
    /// the link may still come.
    pub fn end(self) -> [JoinHandle<io::Result<()>>; 2] {
        drop(self.ends);
        self.tasks
    }
}

/// Sets a congestion control that sends until it loses a packet, whatever the kernel's default is: BBR would keep the
/// queue short. Accepted connections have it too.
fn fill_queues(socket: &impl AsFd) -> io::Result<()> {
    // Every kernel has Reno; a CUBIC that is a module may not be loaded.
    let set = set_tcp_congestion(socket, "cubic").or_else(|_| set_tcp_congestion(socket, "reno"));
    Ok(set?)
}

/// Sends to who connects.
async fn send(listener: TcpListener, flows: usize) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let flow = || async {
        let (mut stream, _) = listener.accept().await?;
        set_socket_linger(&stream, Some(Duration::ZERO))?;
        let piece = vec![0; PIECE];
        loop {
            stream.write_all(&piece).await?;
        }
    };
    try_join_all((0..flows).map(|_| flow())).await.map(drop::<Vec<()>>)
}

async fn receive(from: SocketAddr, flows: usize) -> io::Result<()> {
    let flow = || async {
        let mut stream = TcpStream::connect(from).await?;
        set_socket_linger(&stream, Some(Duration::ZERO))?;
        let mut piece = vec![0; PIECE];
        while stream.read(&mut piece).await? > 0 {}
        Err(io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    try_join_all((0..flows).map(|_| flow())).await.map(drop::<Vec<()>>)
}
