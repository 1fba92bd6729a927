//! TLS by a [`tls::Session`] on a socket, as a stream of plaintext: it sends and takes early data, and has
//! either library. tokio-rustls has no early data on the server, and on the client it sends none with what
//! is written after a flush.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tls::{EarlyData, Session};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::client::TicketsOf;
use crate::gate::Gate;
use crate::socket::Socket;

/// Bytes read from the socket at once.
const READ: usize = 16 * 1024;
/// Most plaintext taken at once.
const PIECE: usize = 64 * 1024;
/// Most plaintext that leaves as early data; it is kept until the server has answered on it.
const MOST_EARLY: usize = 4096;
/// How long the first flight waits for a request.
const HOLD: Duration = Duration::from_millis(20);

/// A connection. [`AsyncRead`] and [`AsyncWrite`] are of plaintext.
pub(crate) struct SessionStream {
    socket: Socket,
    session: Box<dyn Session>,
    input: Vec<u8>,
    /// Plaintext that came, and how much of it was read.
    plaintext: Vec<u8>,
    read: usize,
    /// Records on their way, and how much of them the socket took.
    output: Vec<u8>,
    taken: usize,
    is_closed: bool,
    /// A client's early data, until the server has answered on it.
    early: Option<Early>,
    /// Where a client's tickets go.
    tickets: Option<TicketsOf>,
}

/// A client's early data.
struct Early {
    gate: Gate,
    /// What was written, in case that the server refuses it.
    written: Vec<u8>,
    most: usize,
    /// Something was written since a request was asked for.
    has_request: bool,
    /// The first flight is with the session.
    has_left: bool,
    hold: Pin<Box<Sleep>>,
    /// Who has more to write.
    writer: Option<Waker>,
    alpn: &'static [u8],
}

impl SessionStream {
    fn new(socket: Socket, session: Box<dyn Session>, tickets: Option<TicketsOf>) -> Self {
        SessionStream {
            socket,
            session,
            input: vec![0; READ],
            plaintext: Vec::new(),
            read: 0,
            output: Vec::new(),
            taken: 0,
            is_closed: false,
            early: None,
            tickets,
        }
    }

    /// Makes a client's handshake.
    pub(crate) async fn connect(
        socket: Socket,
        session: Box<dyn Session>,
        tickets: Option<TicketsOf>,
    ) -> io::Result<Self> {
        Self::new(socket, session, tickets).handshake().await
    }

    /// Makes a server's handshake, as far as it goes before data may be sent: with early data, its own flight.
    pub(crate) async fn accept(socket: Socket, session: Box<dyn Session>) -> io::Result<Self> {
        Self::new(socket, session, None).handshake().await
    }

    /// A client's connection that is there before its handshake has begun: the ClientHello leaves with the
    /// first request, when `gate` says so, or after [`HOLD`]. `alpn` is what the request is made for: another protocol of the
    /// server is an error.
    pub(crate) fn with_early_data(
        socket: Socket,
        session: Box<dyn Session>,
        tickets: Option<TicketsOf>,
        gate: Gate,
        alpn: &'static [u8],
    ) -> Self {
        let most = session.early_data_room().min(MOST_EARLY);
        let early = Early {
            gate,
            written: Vec::new(),
            most,
            has_request: false,
            has_left: false,
            hold: Box::pin(sleep(HOLD)),
            writer: None,
            alpn,
        };
        let mut stream = Self::new(socket, session, tickets);
        stream.early = Some(early);
        stream
    }

    /// What is known of the connection so far.
    pub(crate) fn facts(&self) -> tls::Facts {
        self.session.facts()
    }

    /// Whether Finished of either side is missing.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    async fn handshake(mut self) -> io::Result<Self> {
        poll_fn(|cx| self.poll_handshake(cx)).await?;
        Ok(self)
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(cx))?;
            if self.session.may_send() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_receive(cx))?;
        }
    }

    /// Writes what the session has.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while let Some(rest) = self.output.get(self.taken..).filter(|rest| !rest.is_empty()) {
                let count = ready!(Pin::new(&mut self.socket).poll_write(cx, rest))?;
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.taken += count;
            }
            self.output.clear();
            self.taken = 0;
            if self.session.write_tls(&mut self.output).map_err(failed)? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Reads once, for the session; what it answers goes out as far as the socket takes it.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let first_read = self.socket.gauge().first_read();
        let mut into = ReadBuf::new(&mut self.input);
        let polled = Pin::new(&mut self.socket).poll_read(cx, &mut into);
        let count = into.filled().len();
        let result = match ready!(polled) {
            Ok(()) if count == 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(()) => self.take(count),
            Err(error) => Err(error),
        };
        if self.plaintext.is_empty() && first_read.is_none() {
            // Records of the handshake are no request's beginning.
            self.socket.gauge().mark();
        }
        let sent = self.poll_send(cx);
        let result = match (result, sent) {
            (Ok(()), Poll::Ready(Err(error))) => Err(error),
            (result, _) => result,
        };
        if result.is_err()
            && let Some(early) = self.early.take()
        {
            // Requests that wait for the handshake learn of its end.
            early.settle(EarlyData::Rejected);
        }
        Poll::Ready(result)
    }

    /// Gives the session what was read.
    fn take(&mut self, count: usize) -> io::Result<()> {
        let records = self.input.get(..count).unwrap_or_default();
        self.session.read_tls(records).map_err(failed)?;
        self.session.receive(&mut self.plaintext).map_err(failed)?;
        if let Some(tickets) = &self.tickets
            && let Some(ticket) = self.session.take_ticket()
        {
            tickets.put(ticket);
        }
        self.settle_early_data()
    }

    /// The server may have answered on early data. What it refused is sent again, before all that follows.
    fn settle_early_data(&mut self) -> io::Result<()> {
        let Some(early) = &self.early else { return Ok(()) };
        let facts = self.session.facts();
        match facts.early_data {
            EarlyData::NotOffered | EarlyData::Pending if self.session.is_handshaking() => {
                return Ok(());
            }
            EarlyData::Accepted => {}
            _ if facts.alpn.as_deref() != Some(early.alpn) => {
                // What was written is for that protocol and no other.
                return Err(failed(tls::PeerError::NoApplicationProtocol.into()));
            }
            _ => self.session.send(&early.written).map_err(failed)?,
        }
        if let Some(early) = self.early.take() {
            early.settle(facts.early_data);
        }
        Ok(())
    }

    /// Gives plaintext that came; `false` if there is none.
    fn give(&mut self, into: &mut ReadBuf<'_>) -> bool {
        let waiting = self.plaintext.get(self.read..).unwrap_or_default();
        let given = waiting.get(..into.remaining().min(waiting.len())).unwrap_or_default();
        if given.is_empty() {
            return false;
        }
        into.put_slice(given);
        self.read += given.len();
        if self.read == self.plaintext.len() {
            self.plaintext.clear();
            self.read = 0;
        }
        true
    }

    /// Has the first flight leave if it is time. `flushed`: what was written is meant to go out. `true` while
    /// it waits.
    fn waits(&mut self, flushed: bool) -> io::Result<bool> {
        let Some(early) = self.early.as_mut().filter(|early| !early.has_left) else {
            return Ok(false);
        };
        let is_full = early.written.len() >= early.most;
        if !(early.gate.is_leaving() || is_full || flushed && early.has_request) {
            return Ok(true);
        }
        early.has_left = true;
        if !early.written.is_empty() {
            self.session.send_early(&early.written).map_err(failed)?;
        }
        // The reader waits for the answer from now on.
        early.gate.wake();
        Ok(false)
    }

    /// Takes plaintext as early data.
    fn write_early(&mut self, cx: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Some(early) = &mut self.early else { return Poll::Pending };
        let room = early.most.saturating_sub(early.written.len());
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        if taken.is_empty() || early.has_left && self.session.early_data_room() < taken.len() {
            // The rest follows the handshake.
            early.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if early.has_left {
            self.session.send_early(taken).map_err(failed)?;
        }
        early.written.extend_from_slice(taken);
        early.has_request |= early.gate.is_asked();
        Poll::Ready(Ok(taken.len()))
    }
}

impl Early {
    fn settle(self, early_data: EarlyData) {
        self.gate.settle(early_data);
        if let Some(writer) = self.writer {
            writer.wake();
        }
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        if let Some(early) = self.early.take() {
            early.settle(EarlyData::Rejected);
        }
    }
}

fn failed(error: tls::Error) -> io::Error {
    io::Error::other(error)
}

impl AsyncRead for SessionStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(early) = &mut this.early {
            early.gate.register(cx.waker());
            // A connection that is not used yet makes its handshake all the same.
            if !early.has_left && early.hold.as_mut().poll(cx).is_ready() {
                early.gate.leave();
            }
        }
        if this.waits(false)? {
            return Poll::Pending;
        }
        if let Poll::Ready(Err(error)) = this.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        loop {
            if into.remaining() == 0 || this.give(into) || this.session.peer_closed() {
                return Poll::Ready(Ok(()));
            }
            ready!(this.poll_receive(cx))?;
        }
    }
}

impl AsyncWrite for SessionStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let written = if this.early.is_some() {
            let written = this.write_early(cx, bytes);
            if this.waits(false)? {
                return written;
            }
            written
        } else {
            ready!(this.poll_send(cx))?;
            let piece = bytes.get(..bytes.len().min(PIECE)).unwrap_or_default();
            this.session.send(piece).map_err(failed)?;
            Poll::Ready(Ok(piece.len()))
        };
        // As far as the socket takes it now.
        match this.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => written,
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut slices = slices.iter().filter(|slice| !slice.is_empty());
        let Some(first) = slices.next() else { return Poll::Ready(Ok(0)) };
        let Some(second) = slices.next() else { return self.poll_write(cx, first) };
        // Together, so that a frame's head and body share a record.
        let mut joined = first.to_vec();
        for slice in std::iter::once(second).chain(slices) {
            let room = PIECE.saturating_sub(joined.len());
            joined.extend(slice.iter().take(room));
        }
        self.poll_write(cx, &joined)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.waits(true)? {
            return Poll::Ready(Ok(()));
        }
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let is_there = this.early.as_ref().is_none_or(|early| early.has_left);
        if is_there && !this.is_closed {
            this.is_closed = true;
            this.session.close();
        }
        if is_there {
            ready!(this.poll_send(cx))?;
        }
        match ready!(Pin::new(&mut this.socket).poll_shutdown(cx)) {
            // The peer may have closed it already.
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}
