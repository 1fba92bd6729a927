//! One connection: TLS's carriage on our TCP, with its times.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use packet::clock::monotonic;
use tcp::SynData;
use tcpio::TcpStream;
use tls::{EarlyData, Session};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use units::Time;

use crate::meter::Metered;
use crate::report::stamp;
use crate::{Carried, Carrier, CarrierError, Embedding, Error, Report, SEND_LIMIT, Timeline};

/// The engine of real connections.
pub(crate) type Tls = Metered<Box<dyn Session>>;

/// Read from TCP in one call at most.
const READ_AT_ONCE: usize = 64 << 10;

thread_local! {
    /// Where TCP's bytes are before TLS takes them: no connection needs a buffer of its own.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The buffer of a reader that has had all of it, for whoever is next.
    static PLAINTEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct Inner {
    pub(crate) tcp: TcpStream,
    pub(crate) carrier: Carrier<Tls>,
    pub(crate) embedding: Embedding,
    pub(crate) carried: Carried,
    pub(crate) timeline: Timeline,
    /// Decrypted, of which the reader has had the first `read`.
    plaintext: Vec<u8>,
    read: usize,
    /// What the peer's stream ended by, once it did: told to every later reader.
    end: Option<Result<(), Error>>,
    /// Why nothing can be written any more.
    broken: Option<Error>,
    /// The first read has given its task turn to a write that may come.
    yielded: bool,
    /// A client's SYN is not answered yet.
    connecting: bool,
    /// A client's first request is queued.
    pub(crate) asked: bool,
    /// It rode in the SYN, and the handshake is not over.
    pub(crate) early: bool,
    shut: bool,
}

impl Inner {
    /// A client whose SYN is out.
    pub(crate) fn client(
        tcp: TcpStream,
        carrier: Carrier<Tls>,
        embedding: Embedding,
        carried: Carried,
        timeline: Timeline,
    ) -> Self {
        let mut inner = Self::new(tcp, carrier, embedding, carried, timeline);
        inner.connecting = true;
        inner
    }

    /// A server's connection.
    pub(crate) fn server(
        tcp: TcpStream,
        carrier: Carrier<Tls>,
        embedding: Embedding,
        carried: Carried,
        timeline: Timeline,
    ) -> Self {
        Self::new(tcp, carrier, embedding, carried, timeline)
    }

    fn new(
        tcp: TcpStream,
        carrier: Carrier<Tls>,
        embedding: Embedding,
        carried: Carried,
        timeline: Timeline,
    ) -> Self {
        Inner {
            tcp,
            carrier,
            embedding,
            carried,
            timeline,
            plaintext: Vec::new(),
            read: 0,
            end: None,
            broken: None,
            yielded: false,
            connecting: false,
            asked: false,
            early: false,
            shut: false,
        }
    }

    /// Waits for the answer to a client's SYN, and goes on by it.
    pub(crate) fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if !self.connecting {
            return Poll::Ready(Ok(()));
        }
        let connected = {
            let connected = std::pin::pin!(self.tcp.connected());
            ready!(connected.poll(cx))
        };
        let info = connected.map_err(|error| self.fail(Error::tcp("connecting", &error)))?;
        let now = monotonic();
        self.connecting = false;
        stamp(&mut self.timeline.connected, now);
        let accepted = info.syn_data == SynData::Accepted;
        self.note_carried(info.syn_data);
        let answered = self.carrier.syn_answered(now, accepted);
        stamp(&mut self.timeline.hello_sent, now);
        self.check(answered)?;
        // Early data in sequence may go now.
        self.note_progress();
        match self.flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn note_carried(&mut self, syn_data: SynData) {
        if self.carried == Carried::Pending {
            self.carried = match syn_data {
                SynData::Accepted => Carried::Embedded,
                SynData::BlackHole => Carried::BlackHole,
                _ => Carried::Refused,
            };
        }
    }

    /// Takes what TCP has, for TLS; `false` at the end of the stream.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        ready!(self.poll_connected(cx))?;
        match &self.end {
            Some(Ok(())) => return Poll::Ready(Ok(false)),
            Some(Err(error)) => return Poll::Ready(Err(error.clone())),
            None => {}
        }
        let filled = SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(READ_AT_ONCE, 0);
            let mut buffer = ReadBuf::new(scratch);
            match ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut buffer)) {
                Ok(()) => Poll::Ready(self.take(buffer.filled())),
                Err(error) => Poll::Ready(Err(self.fail(Error::tcp("reading", &error)))),
            }
        });
        let more = ready!(filled);
        // What TLS answers by itself leaves as far as TCP has room; the rest with the next call.
        if let Poll::Ready(Err(error)) = self.flush(cx) {
            return Poll::Ready(Err(more.err().unwrap_or(error)));
        }
        Poll::Ready(more)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        if bytes.is_empty() {
            let end = self.carrier.read_end().map_err(Error::from);
            self.end = Some(end.clone());
            return end.map(|()| false);
        }
        let read = self.carrier.read(monotonic(), bytes);
        if self.plaintext.capacity() == 0 {
            self.plaintext = PLAINTEXT.take();
        }
        let received = self.carrier.receive(&mut self.plaintext);
        self.note_progress();
        self.check(read)?;
        self.check(received.map(drop))?;
        if self.carrier.peer_closed() {
            // RFC 8446 §6.1: what comes behind close_notify is ignored.
            self.end = Some(Ok(()));
        }
        Ok(true)
    }

    /// Stamps what has become true.
    pub(crate) fn note_progress(&mut self) {
        let now = monotonic();
        if self.carrier.is_ready() {
            stamp(&mut self.timeline.ready, now);
        }
        if !self.carrier.is_handshaking() {
            stamp(&mut self.timeline.handshake_complete, now);
        }
        if !self.plaintext.is_empty() {
            stamp(&mut self.timeline.first_byte, now);
        }
        self.note_request(now);
    }

    fn note_request(&mut self, now: Time) {
        if self.asked && self.timeline.ready.is_some() {
            stamp(&mut self.timeline.request_sent, now);
        }
        if self.early && self.timeline.handshake_complete.is_some() {
            self.early = false;
            if self.carrier.facts().early_data == EarlyData::Rejected {
                stamp(&mut self.timeline.request_resent, now);
            }
        }
    }

    /// Gives TCP what waits for it.
    pub(crate) fn flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.connecting {
            return Poll::Pending;
        }
        while !self.carrier.outgoing().is_empty() {
            let outgoing = self.carrier.outgoing();
            match Pin::new(&mut self.tcp).poll_write(cx, outgoing) {
                Poll::Ready(Ok(len)) => self.carrier.consume(len),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(self.fail(Error::tcp("writing", &error))));
                }
                Poll::Pending => {
                    // The peer may never read: no more is held than what waits.
                    self.carrier.shrink();
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Bytes that TCP takes at once.
    pub(crate) fn room(&self) -> usize {
        if self.carrier.outgoing().is_empty() { self.tcp.room() } else { 0 }
    }

    fn check(&mut self, result: Result<(), CarrierError>) -> Result<(), Error> {
        result.map_err(|error| self.fail(error.into()))
    }

    /// Notes a failure that is final.
    fn fail(&mut self, error: Error) -> Error {
        if self.end.is_none() {
            self.end = Some(Err(error.clone()));
        }
        self.broken.get_or_insert(error).clone()
    }

    /// Gives decrypted bytes to the reader; whether there were any.
    fn give(&mut self, into: &mut ReadBuf<'_>) -> bool {
        let unread = self.plaintext.get(self.read..).unwrap_or_default();
        let len = unread.len().min(into.remaining());
        into.put_slice(unread.get(..len).unwrap_or_default());
        self.read += len;
        if self.read >= self.plaintext.len() {
            self.read = 0;
            self.plaintext.clear();
            if self.plaintext.capacity() > 0 {
                PLAINTEXT.set(std::mem::take(&mut self.plaintext));
            }
        }
        len > 0
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 || self.give(into) {
            return Poll::Ready(Ok(()));
        }
        if self.carrier.is_holding() {
            if !self.yielded {
                // The first request may come in this very turn of the task, and Finished goes
                // with it.
                self.yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.release(cx)?;
        }
        loop {
            match self.poll_fill(cx) {
                Poll::Ready(Ok(true)) if self.give(into) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {
                    // An idle connection holds no buffers.
                    self.carrier.shrink();
                    return Poll::Pending;
                }
            }
        }
    }

    /// The last flight of a client's handshake leaves without a request.
    pub(crate) fn release(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let released = self.carrier.release(monotonic());
        self.check(released)?;
        match self.flush(cx) {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(error) = &self.broken {
            return Poll::Ready(Err(error.clone().into()));
        }
        if self.shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            // What waits for TCP goes first: a peer that does not read has one write's records wait.
            if !self.connecting {
                ready!(self.flush(cx))?;
            }
            // Less would make short records.
            let len = match self.carrier.send_room() >= SEND_LIMIT / 2 {
                true => self.send(cx, data)?,
                false => 0,
            };
            if len > 0 {
                return Poll::Ready(Ok(len));
            }
            // Full: TCP must take some, or the server answer early data.
            if !self.carrier.early_data_pending() {
                return Poll::Pending;
            }
            ready!(self.poll_fill(cx))?;
        }
    }

    fn send(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Result<usize, Error> {
        let now = monotonic();
        let sent = self.carrier.send(now, data);
        let len = sent.map_err(|error| self.fail(error.into()))?;
        stamp(&mut self.timeline.request_sent, now);
        match self.flush(cx) {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(len),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(error) = &self.broken {
            return Poll::Ready(Err(error.clone().into()));
        }
        if self.carrier.is_holding() {
            self.release(cx)?;
        }
        // Data behind early data wait for the server's answer.
        while self.carrier.has_waiting() {
            if !ready!(self.poll_fill(cx))? {
                break;
            }
        }
        if self.connecting {
            // The SYN has all there is to send.
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Ok(ready!(self.flush(cx))?))
    }

    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.is_some() {
            return Pin::new(&mut self.tcp).poll_shutdown(cx);
        }
        if !self.shut {
            self.shut = true;
            let closed = self.carrier.close(monotonic());
            self.check(closed)?;
        }
        while self.carrier.is_closing() {
            if !ready!(self.poll_fill(cx))? {
                break;
            }
        }
        ready!(self.flush(cx))?;
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }

    pub(crate) fn report(&self) -> Report {
        Report {
            embedding_asked: self.embedding,
            carried: self.carried,
            facts: self.carrier.facts(),
            timeline: self.timeline,
            tcp: self.tcp.info(),
            crypto: self.carrier.engine().spent(),
        }
    }
}
