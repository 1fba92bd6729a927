//! TLS on our own TCP, whose handshake may carry that of TLS (SSLmTCP), as a stream of plaintext.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use conn::TcpInfo;
use sslmtcp::{ConnectOptions, Destinations, Embedding, Report, SslmTcpStream};
use tls::EarlyData;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::client::TicketsOf;
use crate::gate::Gate;

/// How long a connection with early data waits for more to send before its SYN leaves: HTTP/2 and SPDY write
/// their settings some time before the first request.
const GATHER: Duration = Duration::from_millis(2);
/// Most bytes that wait for the SYN; a SYN has room for less.
const MOST_GATHERED: usize = 4096;

/// Our TCP for a client, and what of the TLS handshake rides in its.
#[derive(Clone)]
pub struct UserTcp {
    /// The TCP to connect by.
    pub stack: tcpio::Stack,
    /// What rides in TCP's handshake. [`Embedding::ZeroRtt`] puts the first request into the SYN where there
    /// is a ticket for it.
    pub embedding: Embedding,
}

impl fmt::Debug for UserTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserTcp").field("embedding", &self.embedding).finish_non_exhaustive()
    }
}

/// What a client's connection is made by.
pub(crate) struct Connecting {
    pub(crate) user: UserTcp,
    pub(crate) server: SocketAddr,
    pub(crate) tls: tls::Client,
    pub(crate) ticket: Option<tls::Ticket>,
    pub(crate) timeout: Duration,
}

impl Connecting {
    /// Whether the first request rides in the SYN.
    pub(crate) fn has_early_data(&self) -> bool {
        let allows = self.ticket.as_ref().is_some_and(tls::Ticket::allows_early_data);
        allows && self.user.embedding == Embedding::ZeroRtt
    }

    pub(crate) async fn connect(
        self,
        early_data: Vec<u8>,
    ) -> Result<SslmTcpStream, sslmtcp::Error> {
        let options = ConnectOptions {
            embedding: self.user.embedding,
            ticket: self.ticket.as_ref(),
            early_data,
            timeout: self.timeout,
            // What one load learns of a server must not change the next.
            destinations: Destinations::new(),
            ..ConnectOptions::default()
        };
        SslmTcpStream::connect_ssl(&self.user.stack, self.server, &self.tls, options).await
    }
}

/// A connection of our TCP. One with early data begins when its first bytes are written: they ride in the
/// SYN.
pub(crate) struct UserStream {
    state: State,
    local: SocketAddr,
    peer: SocketAddr,
    /// Where a client's tickets go.
    tickets: Option<TicketsOf>,
    /// What tells of early data, until the server has answered on it.
    gate: Option<Gate>,
}

enum State {
    Open(SslmTcpStream),
    Gathering(Gathering),
    Connecting(Opening),
    Failed,
}

type Opened = Result<SslmTcpStream, sslmtcp::Error>;

/// The SYN has left.
struct Opening {
    stream: Pin<Box<dyn Future<Output = Opened>>>,
    writer: Option<Waker>,
}

/// The first bytes are awaited.
struct Gathering {
    by: Connecting,
    first: Vec<u8>,
    quiet: Pin<Box<Sleep>>,
    reader: Option<Waker>,
}

impl fmt::Debug for UserStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserStream").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl UserStream {
    /// A connection that is there.
    pub(crate) fn open(stream: SslmTcpStream, tickets: Option<TicketsOf>) -> Self {
        let (local, peer) = (stream.local_addr(), stream.peer_addr());
        UserStream { state: State::Open(stream), local, peer, tickets, gate: None }
    }

    /// A connection whose SYN takes the first bytes with it, or leaves when `gate` says so.
    pub(crate) fn gathering(by: Connecting, tickets: Option<TicketsOf>, gate: Gate) -> Self {
        let peer = by.server;
        let local = match peer {
            SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0u16; 8], 0)),
        };
        let quiet = Box::pin(sleep(GATHER));
        let gathering = Gathering { by, first: Vec::new(), quiet, reader: None };
        let state = State::Gathering(gathering);
        UserStream { state, local, peer, tickets, gate: Some(gate) }
    }

    /// This side's address; unspecified where it is not known yet.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What is known of the connection; `None` before it is there.
    pub(crate) fn report(&self) -> Option<Report> {
        match &self.state {
            State::Open(stream) => Some(stream.report()),
            _ => None,
        }
    }

    /// What our TCP knows; `None` before the connection is there.
    pub(crate) fn tcp_info(&self) -> Option<tcp::Info> {
        match &self.state {
            State::Open(stream) => stream.tcp_info(),
            _ => None,
        }
    }

    pub(crate) fn info(&self) -> Option<TcpInfo> {
        self.tcp_info().as_ref().map(conn::user_tcp::tcp_info)
    }

    /// Goes on to an open connection: when the writer has been quiet, the SYN leaves.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&mut SslmTcpStream>> {
        if let State::Gathering(gathering) = &mut self.state
            && !self.gate.as_ref().is_some_and(|gate| leaves(gate, cx))
        {
            ready!(gathering.poll_quiet(cx));
        }
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Gathering(Gathering { by, first, .. }) => {
                State::Connecting(Opening { stream: Box::pin(by.connect(first)), writer: None })
            }
            other => other,
        };
        if let State::Connecting(opening) = &mut self.state {
            let opened = ready!(opening.stream.as_mut().poll(cx));
            let writer = opening.writer.take();
            let result = match opened {
                Ok(stream) => {
                    self.local = stream.local_addr();
                    self.state = State::Open(stream);
                    Ok(())
                }
                Err(error) => {
                    self.state = State::Failed;
                    self.settle(EarlyData::Rejected);
                    Err(io::Error::other(error))
                }
            };
            if let Some(writer) = writer {
                writer.wake();
            }
            result?;
        }
        match &mut self.state {
            State::Open(stream) => Poll::Ready(Ok(stream)),
            _ => Poll::Ready(Err(gone())),
        }
    }
}

/// Whether the SYN is not to wait for a request; else `cx` is woken when that changes.
fn leaves(gate: &Gate, cx: &Context<'_>) -> bool {
    gate.register(cx.waker());
    gate.is_leaving()
}

impl UserStream {
    /// Looks whether the server has answered on early data.
    fn look_for_an_answer(&mut self) {
        let Some(report) = self.gate.as_ref().and_then(|_| self.report()) else { return };
        match report.facts.early_data {
            EarlyData::Pending => {}
            EarlyData::NotOffered if report.timeline.handshake_complete.is_none() => {}
            answer => self.settle(answer),
        }
    }

    fn settle(&mut self, early_data: EarlyData) {
        if let Some(gate) = self.gate.take() {
            gate.settle(early_data);
        }
    }
}

impl Drop for UserStream {
    fn drop(&mut self) {
        self.settle(EarlyData::Rejected);
    }
}

impl Gathering {
    /// Ready when something was written, and nothing more for a while.
    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.first.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.quiet.as_mut().poll(cx)
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(MOST_GATHERED - self.first.len().min(MOST_GATHERED));
        self.first.extend(bytes.iter().take(taken));
        self.quiet.as_mut().reset(Instant::now() + GATHER);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        taken
    }
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for UserStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = ready!(self.poll_open(cx))?;
        let read = Pin::new(&mut *stream).poll_read(cx, buf);
        if let Some(ticket) = stream.take_ticket()
            && let Some(tickets) = &self.tickets
        {
            tickets.put(ticket);
        }
        match &read {
            Poll::Ready(Err(_)) => self.settle(EarlyData::Rejected),
            _ => self.look_for_an_answer(),
        }
        read
    }
}

impl AsyncWrite for UserStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.state {
            State::Open(stream) => Pin::new(stream).poll_write(cx, bytes),
            State::Gathering(gathering) => match gathering.write(bytes) {
                // Full: the SYN leaves now.
                0 if !bytes.is_empty() => {
                    let stream = ready!(self.poll_open(cx))?;
                    Pin::new(stream).poll_write(cx, bytes)
                }
                taken => Poll::Ready(Ok(taken)),
            },
            State::Connecting(opening) => {
                opening.writer = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Failed => Poll::Ready(Err(gone())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Open(stream) => Pin::new(stream).poll_flush(cx),
            // What was written leaves with the SYN, which the reader sends.
            State::Gathering(_) | State::Connecting(_) => Poll::Ready(Ok(())),
            State::Failed => Poll::Ready(Err(gone())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Open(stream) => Pin::new(stream).poll_shutdown(cx),
            // A connection that is not there yet is given up.
            _ => {
                self.state = State::Failed;
                Poll::Ready(Ok(()))
            }
        }
    }
}
