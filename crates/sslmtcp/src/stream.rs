//! A secure connection as a stream of plaintext.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::inner::Inner;
use crate::wakers::{Role, Wakers};
use crate::{ConnectOptions, Error, Report};

/// How long the last flight of a client's handshake waits for a request, if the caller neither
/// writes, flushes nor reads.
const HOLD: Duration = Duration::from_millis(5);

/// A TLS connection on our TCP, of either side and whatever way it came about.
///
/// Reads and writes are of plaintext. [`AsyncWrite::poll_shutdown`] sends close_notify and FIN;
/// reading goes on until the peer's. A stream that ends without close_notify is an error of kind
/// [`io::ErrorKind::UnexpectedEof`]: data may be missing (RFC 8446 §6.1). Dropping it ends TCP in
/// order, without close_notify.
///
/// After a handshake that rode in TCP's, the client's Finished waits for the first write, and both
/// ride in the ACK of the SYN+ACK. Reading or flushing first sends it without.
pub struct SslmTcpStream {
    inner: Arc<Mutex<Inner>>,
    wakers: Arc<Wakers>,
    local: SocketAddr,
    peer: SocketAddr,
}

impl fmt::Debug for SslmTcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SslmTcpStream");
        out.field("local", &self.local).field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl SslmTcpStream {
    pub(crate) fn new(inner: Inner) -> Self {
        let (local, peer) = (inner.tcp.local_addr(), inner.tcp.peer_addr());
        let holding = inner.carrier.is_holding();
        let inner = Arc::new(Mutex::new(inner));
        let wakers = Arc::new(Wakers::default());
        if holding {
            tokio::spawn(release_later(Arc::downgrade(&inner), Arc::clone(&wakers)));
        }
        Self { inner, wakers, local, peer }
    }

    /// Connects to `remote` with the TLS handshake in TCP's, as far as server and path let it, and
    /// after it otherwise: the SSLmTCP paper's connect_ssl(). Resolves when application data may be
    /// sent; with early data, as soon as the SYN is out.
    ///
    /// # Errors
    /// [`Error::Tls`]: the certificate does not verify, nothing in common, or a ticket of another
    /// client; [`Error::Stack`], [`Error::Tcp`], [`Error::TimedOut`].
    pub async fn connect_ssl(
        stack: &tcpio::Stack,
        remote: SocketAddr,
        client: &tls::Client,
        options: ConnectOptions<'_>,
    ) -> Result<Self, Error> {
        crate::connect::connect(stack, remote, client, options).await.map(Self::new)
    }

    /// This side's address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// What is known of the connection so far.
    #[must_use]
    pub fn report(&self) -> Report {
        self.lock().report()
    }

    /// What TCP knows, without what [`SslmTcpStream::report`] says beside; `None` once the connection is gone.
    #[must_use]
    pub fn tcp_info(&self) -> Option<tcp::Info> {
        self.lock().tcp.info()
    }

    /// The newest ticket that arrived, once; on a client. Tickets arrive with what is read.
    #[must_use]
    pub fn take_ticket(&self) -> Option<tls::Ticket> {
        self.lock().carrier.take_ticket()
    }

    /// Bytes that TCP takes at once. Beyond it a write holds plaintext as records until TCP has room.
    #[must_use]
    pub fn room(&self) -> usize {
        self.lock().room()
    }

    /// Keeps `guard` until TCP's connection is over: [`tcpio::TcpStream::keep`].
    pub fn keep(&self, guard: impl Send + 'static) {
        self.lock().tcp.keep(guard);
    }

    /// Ends the connection at once by a RST.
    pub fn abort(&self) {
        self.lock().tcp.abort();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll<R>(
        &self,
        role: Role,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Inner, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        // Before trying: what happens in between wakes.
        self.wakers.register(role, cx.waker());
        let waker = Waker::from(Arc::clone(&self.wakers));
        call(&mut self.lock(), &mut Context::from_waker(&waker))
    }
}

/// Sends the last flight of a client's handshake if the caller does nothing for a while.
async fn release_later(inner: std::sync::Weak<Mutex<Inner>>, wakers: Arc<Wakers>) {
    tokio::time::sleep(HOLD).await;
    let Some(inner) = inner.upgrade() else { return };
    let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
    if inner.carrier.is_holding() {
        let waker = Waker::from(wakers);
        // A failure is told to whoever reads or writes next.
        let _ = inner.release(&mut Context::from_waker(&waker));
    }
}

impl AsyncRead for SslmTcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(Role::Reader, cx, |inner, cx| inner.poll_read(cx, into))
    }
}

impl AsyncWrite for SslmTcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(Role::Writer, cx, |inner, cx| inner.poll_write(cx, data))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Role::Writer, cx, Inner::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Role::Writer, cx, Inner::poll_shutdown)
    }
}
