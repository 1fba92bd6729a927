//! A TCP stream that several owners look at: the protocol moves bytes, the log reads TCP_INFO. Ours brings
//! TLS, and its bytes are plaintext.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};

use conn::{FastOpen, TcpInfo, now};
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use units::Time;

use crate::tcp_stalls::Look;
use crate::user_tcp::UserStream;
use crate::{Congestion, Failure};

/// Options of a TCP socket. The congestion window at the start is the route's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSettings {
    /// SO_SNDBUF in bytes, which the kernel doubles; `None` lets the kernel tune it.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in bytes, which the kernel doubles; `None` lets the kernel tune it. The window that TCP
    /// announces comes of it.
    pub receive_buffer: Option<usize>,
    /// TCP_NODELAY: small segments do not wait for acknowledgements.
    pub no_delay: bool,
    /// TCP_NOTSENT_LOWAT in bytes: the socket takes more only while less than this is unsent. Without
    /// it the kernel's buffer fills, and an urgent response waits behind all that is in it.
    pub not_sent_low_water: Option<u32>,
    /// TCP_CONGESTION; `None` leaves what this machine has.
    pub congestion: Option<Congestion>,
    /// Data in the SYN (RFC 7413), on both sides alike. Both network namespaces have to allow it
    /// (`net.ipv4.tcp_fastopen`).
    #[serde(default)]
    pub fast_open: FastOpen,
}

impl Default for TcpSettings {
    fn default() -> Self {
        TcpSettings {
            send_buffer: None,
            receive_buffer: None,
            no_delay: true,
            not_sent_low_water: None,
            congestion: None,
            fast_open: FastOpen::Off,
        }
    }
}

impl TcpSettings {
    /// Sets the options; buffers must be set before the handshake, since the window's scale is said there
    /// (RFC 7323 §2.2).
    pub(crate) fn apply(&self, socket: SockRef<'_>) -> Result<(), Failure> {
        let failed =
            |call| move |error: io::Error| Failure::from_io(call, "opening the socket", &error);
        if let Some(bytes) = self.send_buffer {
            socket.set_send_buffer_size(bytes).map_err(failed("setsockopt SO_SNDBUF"))?;
        }
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes).map_err(failed("setsockopt SO_RCVBUF"))?;
        }
        if let Some(bytes) = self.not_sent_low_water {
            let set = socket.set_tcp_notsent_lowat(bytes);
            set.map_err(failed("setsockopt TCP_NOTSENT_LOWAT"))?;
        }
        if let Some(congestion) = self.congestion {
            congestion.apply(&socket)?;
        }
        socket.set_tcp_nodelay(self.no_delay).map_err(failed("setsockopt TCP_NODELAY"))
    }
}

/// A TCP stream with counts. Clones are the same stream.
#[derive(Debug, Clone)]
pub(crate) struct Socket(Rc<Inner>);

/// A [`Socket`] that is looked at for as long as others have it.
#[derive(Debug, Clone)]
pub(crate) struct WeakSocket(Weak<Inner>);

impl WeakSocket {
    /// [`Socket::look`], while it is there.
    pub(crate) fn look(&self) -> Option<Look> {
        Socket(self.0.upgrade()?).look()
    }

    /// [`Gauge::writes`], while it is there.
    pub(crate) fn writes(&self) -> Option<Arc<Notify>> {
        Some(self.0.upgrade()?.gauge.writes())
    }
}

#[derive(Debug)]
struct Inner {
    stream: RefCell<Carrier>,
    local: SocketAddr,
    peer: SocketAddr,
    gauge: Gauge,
}

/// Whose TCP it is.
#[derive(Debug)]
enum Carrier {
    Kernel(TcpStream),
    Ours(Box<UserStream>),
}

/// Calls the same method of whichever TCP it is.
macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut *$self.0.stream.borrow_mut() {
            Carrier::Kernel($stream) => $call,
            Carrier::Ours($stream) => $call,
        }
    };
}

/// What passed through a stream.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    read: Cell<u64>,
    written: Cell<u64>,
    /// The last write was not taken.
    blocked: Cell<bool>,
    /// Told of each write, taken or not.
    writes: Arc<Notify>,
    /// When the first byte came since [`Gauge::mark`].
    first_read: Cell<Option<Instant>>,
}

impl Gauge {
    /// Bytes read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read.get()
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.get()
    }

    /// What is told of each write (`notify_waiters`), whether the transport takes it or not.
    pub(crate) fn writes(&self) -> Arc<Notify> {
        Arc::clone(&self.writes)
    }

    /// Whether the transport did not take the last write.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.get()
    }

    /// When the first byte came since the mark.
    pub(crate) fn first_read(&self) -> Option<Instant> {
        self.first_read.get()
    }

    /// Waits for a first byte again.
    pub(crate) fn mark(&self) {
        self.first_read.set(None);
    }

    fn count_read(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.read.set(self.read.get() + bytes as u64);
        if self.first_read.get().is_none() {
            self.first_read.set(Some(Instant::now()));
        }
    }

    fn count_written(&self, result: &Poll<io::Result<usize>>) {
        match result {
            Poll::Ready(Ok(bytes)) => {
                self.written.set(self.written.get() + *bytes as u64);
                self.blocked.set(false);
            }
            Poll::Ready(Err(_)) => self.blocked.set(false),
            Poll::Pending => self.blocked.set(true),
        }
        self.writes.notify_waiters();
    }
}

impl Socket {
    /// A connection with `peer`, which the kernel does not say while the SYN is still to leave.
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr) -> io::Result<Self> {
        let local = stream.local_addr()?;
        Ok(Self::of(Carrier::Kernel(stream), local, peer))
    }

    pub(crate) fn of_user_tcp(stream: UserStream) -> Self {
        let (local, peer) = (stream.local(), stream.peer());
        Self::of(Carrier::Ours(Box::new(stream)), local, peer)
    }

    fn of(carrier: Carrier, local: SocketAddr, peer: SocketAddr) -> Self {
        let stream = RefCell::new(carrier);
        Socket(Rc::new(Inner { stream, local, peer, gauge: Gauge::default() }))
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.0.local
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    pub(crate) fn gauge(&self) -> &Gauge {
        &self.0.gauge
    }

    /// TCP_INFO as it is now.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        match &*self.0.stream.borrow() {
            Carrier::Kernel(stream) => TcpInfo::of(stream.as_fd()).ok(),
            Carrier::Ours(stream) => stream.info(),
        }
    }

    /// Up to when it had bytes that it had not sent: now, if it has any.
    pub(crate) fn unsent_until(&self) -> Option<Time> {
        self.info().filter(|info| info.unsent > 0).map(|_| now())
    }

    /// What keeps its bytes back; `None` while it has none to send.
    pub(crate) fn look(&self) -> Option<Look> {
        match &*self.0.stream.borrow() {
            Carrier::Kernel(stream) => {
                let info = TcpInfo::of(stream.as_fd()).ok()?;
                Look::of_kernel(&info, self.gauge().is_blocked())
            }
            Carrier::Ours(stream) => stream.tcp_info().as_ref().and_then(Look::of_user_tcp),
        }
    }

    /// The same stream, without keeping it open.
    pub(crate) fn downgrade(&self) -> WeakSocket {
        WeakSocket(Rc::downgrade(&self.0))
    }

    /// What SSLmTCP says, on a connection of our TCP.
    pub(crate) fn report(&self) -> Option<sslmtcp::Report> {
        match &*self.0.stream.borrow() {
            Carrier::Kernel(_) => None,
            Carrier::Ours(stream) => stream.report(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = each!(self, stream => Pin::new(stream).poll_read(cx, buf));
        self.0.gauge.count_read(buf.filled().len() - before);
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = each!(self, stream => Pin::new(stream).poll_write(cx, bytes));
        self.0.gauge.count_written(&polled);
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = each!(self, stream => Pin::new(stream).poll_write_vectored(cx, slices));
        self.0.gauge.count_written(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
