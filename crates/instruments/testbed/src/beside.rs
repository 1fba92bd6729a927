//! A download beside what is measured: it keeps the queue of the link to a client full.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lab::JoinHandle;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::{Error, Testbed};

/// How long the download may take to fill the queue.
const FILLING: Duration = Duration::from_secs(30);
/// How often the link is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes handed to the socket at once.
const PIECE: usize = 64 * 1024;

/// A download under way, over the kernel's TCP. It ends when this is dropped.
pub struct Download {
    ends: [oneshot::Sender<()>; 2],
    tasks: [JoinHandle<io::Result<()>>; 2],
    steady: bool,
}

impl<V: Copy + Ord + Display> Testbed<V> {
    /// Begins a download to a client's node and waits, for a bounded time, until it has filled the queue of
    /// the client's link: until a frame on the way to the client was dropped.
    ///
    /// # Errors
    /// The lab's own; [`Error::Beside`].
    pub fn download(&self, client: usize) -> Result<Download, Error> {
        let dropped = || -> Result<u64, Error> {
            Ok(self.link_stats(client)?.backward.link.dropped_in_all().frames)
        };
        let before = dropped()?;
        let address = SocketAddr::from((self.server_address(client)?, 0));
        let listening = self.server().spawn(move || async move {
            let listener = TcpListener::bind(address).await?;
            let at = listener.local_addr()?;
            Ok::<_, io::Error>((listener.into_std()?, at))
        });
        let (listener, at) = listening.join()?.map_err(|source| Error::Beside { source })?;
        let (end_server, ended) = oneshot::channel::<()>();
        let sending = self.server().spawn(move || async move {
            tokio::select! {
                biased;
                _ = ended => Ok(()),
                done = send(listener) => done,
            }
        });
        let (end_client, ended) = oneshot::channel::<()>();
        let receiving = self.client(client)?.spawn(move || async move {
            tokio::select! {
                biased;
                _ = ended => Ok(()),
                done = receive(at) => done,
            }
        });
        let until = Instant::now() + FILLING;
        let mut steady = false;
        while !steady && Instant::now() < until {
            std::thread::sleep(LOOK);
            steady = dropped()? > before;
        }
        Ok(Download { ends: [end_server, end_client], tasks: [sending, receiving], steady })
    }
}

impl Download {
    /// Whether it had filled the queue when it was waited for.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.steady
    }

    /// Ends it; what is left of it on the link may still come.
    ///
    /// # Errors
    /// [`Error::Beside`]: it broke before its end.
    pub fn end(self) -> Result<(), Error> {
        drop(self.ends);
        for task in self.tasks {
            task.join()?.map_err(|source| Error::Beside { source })?;
        }
        Ok(())
    }
}

/// Sends to who connects, until it is dropped: then the connection is reset, so that nothing of it is sent
/// again.
async fn send(listener: std::net::TcpListener) -> io::Result<()> {
    let (mut stream, _) = TcpListener::from_std(listener)?.accept().await?;
    reset_at_the_end(&stream)?;
    let piece = vec![0; PIECE];
    loop {
        stream.write_all(&piece).await?;
    }
}

async fn receive(from: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(from).await?;
    reset_at_the_end(&stream)?;
    let mut piece = vec![0; PIECE];
    while stream.read(&mut piece).await? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}

fn reset_at_the_end(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
}
