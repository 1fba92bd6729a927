//! QUIC on quinn as h3 asks for it, with a priority for each response: h3-quinn's streams keep quinn's to
//! themselves, so that a server on them cannot say what goes first (RFC 9218 §10).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::h3::error::Code;
use ::h3::quic::{
    self, ConnectionErrorIncoming as ConnectionError, StreamErrorIncoming as StreamError, StreamId,
    WriteBuf,
};
use bytes::{Buf, Bytes};
use quinn::{ReadError, VarInt, WriteError};
use tokio::io::ReadBuf;

use crate::counters::Counters;

/// Bytes of a request that are read at once.
const READ: usize = 16 * 1024;

/// What a connection's streams share. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    counters: Counters,
    /// Urgencies of responses, until their streams take them over.
    urgencies: Rc<RefCell<HashMap<u64, u8>>>,
    /// Who closes the connection is not h3.
    is_breaking_off: Rc<Cell<bool>>,
}

impl Streams {
    /// Streams whose bytes `counters` has.
    pub(super) fn new(counters: Counters) -> Self {
        Streams { counters, urgencies: Rc::default(), is_breaking_off: Rc::default() }
    }

    /// Says how urgent the response on `stream` is: 0 goes first. What quinn has of it in hand goes as it was.
    pub(super) fn set_urgency(&self, stream: u64, urgency: u8) {
        self.urgencies.borrow_mut().insert(stream, urgency);
    }

    /// From now on h3 closes nothing: it would do so as soon as it is dropped.
    pub(super) fn break_off(&self) {
        self.is_breaking_off.set(true);
    }

    fn take_urgency(&self, stream: u64) -> Option<u8> {
        let mut urgencies = self.urgencies.borrow_mut();
        if urgencies.is_empty() { None } else { urgencies.remove(&stream) }
    }
}

/// A future of quinn's that is under way.
type Pending<T> = Option<Pin<Box<dyn Future<Output = Result<T, quinn::ConnectionError>>>>>;

/// The result of the future under way, or of one begun now.
fn poll_next<T, F>(
    pending: &mut Pending<T>,
    quic: &quinn::Connection,
    begin: impl FnOnce(quinn::Connection) -> F,
    cx: &mut Context<'_>,
) -> Poll<Result<T, quinn::ConnectionError>>
where
    F: Future<Output = Result<T, quinn::ConnectionError>> + 'static,
{
    let future = pending.get_or_insert_with(|| Box::pin(begin(quic.clone())));
    let result = ready!(future.as_mut().poll(cx));
    *pending = None;
    Poll::Ready(result)
}

/// Opens streams; h3's own go by the usual priority.
pub(super) struct Opener {
    quic: quinn::Connection,
    streams: Streams,
    bidirectional: Pending<(quinn::SendStream, quinn::RecvStream)>,
    sending: Pending<quinn::SendStream>,
}

impl Opener {
    fn new(quic: quinn::Connection, streams: Streams) -> Self {
        Opener { quic, streams, bidirectional: None, sending: None }
    }

    fn stream(&self, (send, receive): (quinn::SendStream, quinn::RecvStream)) -> Stream {
        Stream {
            send: SendHalf::new(send, self.streams.clone()),
            receive: ReceiveHalf(receive, self.streams.counters.clone()),
        }
    }
}

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Stream;
    type SendStream = SendHalf;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stream, StreamError>> {
        let open = |quic: quinn::Connection| async move { quic.open_bi().await };
        let opened =
            ready!(poll_next(&mut self.bidirectional, &self.quic, open, cx)).map_err(lost)?;
        Poll::Ready(Ok(self.stream(opened)))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendHalf, StreamError>> {
        let open = |quic: quinn::Connection| async move { quic.open_uni().await };
        let opened = ready!(poll_next(&mut self.sending, &self.quic, open, cx)).map_err(lost)?;
        Poll::Ready(Ok(SendHalf::new(opened, self.streams.clone())))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        if !self.streams.is_breaking_off.get() {
            self.quic.close(varint(code.value()), reason);
        }
    }
}

pub(super) struct Connection {
    opener: Opener,
    requests: Pending<(quinn::SendStream, quinn::RecvStream)>,
    receiving: Pending<quinn::RecvStream>,
}

impl Connection {
    pub(super) fn new(quic: quinn::Connection, streams: Streams) -> Self {
        Connection { opener: Opener::new(quic, streams), requests: None, receiving: None }
    }
}

impl quic::OpenStreams<Bytes> for Connection {
    type BidiStream = Stream;
    type SendStream = SendHalf;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stream, StreamError>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendHalf, StreamError>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.close(code, reason);
    }
}

impl quic::Connection<Bytes> for Connection {
    type RecvStream = ReceiveHalf;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ReceiveHalf, ConnectionError>> {
        let accept = |quic: quinn::Connection| async move { quic.accept_uni().await };
        let accepted = ready!(poll_next(&mut self.receiving, &self.opener.quic, accept, cx));
        let counters = &self.opener.streams.counters;
        Poll::Ready(accepted.map(|stream| ReceiveHalf(stream, counters.clone())).map_err(ended))
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectionError>> {
        let accept = |quic: quinn::Connection| async move { quic.accept_bi().await };
        let accepted =
            ready!(poll_next(&mut self.requests, &self.opener.quic, accept, cx)).map_err(ended)?;
        Poll::Ready(Ok(self.opener.stream(accepted)))
    }

    fn opener(&self) -> Opener {
        Opener::new(self.opener.quic.clone(), self.opener.streams.clone())
    }
}

/// A request and its response.
pub(super) struct Stream {
    send: SendHalf,
    receive: ReceiveHalf,
}

impl quic::RecvStream for Stream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::SendStream<Bytes> for Stream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamError> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

/// The sending half.
pub(super) struct SendHalf {
    stream: quinn::SendStream,
    streams: Streams,
    writing: Option<WriteBuf<Bytes>>,
    is_finished: bool,
}

impl SendHalf {
    fn new(stream: quinn::SendStream, streams: Streams) -> Self {
        SendHalf { stream, streams, writing: None, is_finished: false }
    }

    fn number(&self) -> u64 {
        self.stream.id().into()
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        self.streams.take_urgency(self.number());
        if !self.is_finished {
            // quinn would say that a broken response ends here, and send first what it holds of it.
            quic::SendStream::reset(self, Code::H3_REQUEST_CANCELLED.value());
        }
    }
}

impl quic::SendStream<Bytes> for SendHalf {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if let Some(urgency) = self.streams.take_urgency(self.number()) {
            // One that is closed needs none.
            let _ = self.stream.set_priority(-i32::from(urgency));
        }
        if let Some(writing) = &mut self.writing {
            while writing.has_remaining() {
                let stream = Pin::new(&mut self.stream);
                let written =
                    ready!(stream.poll_write(cx, writing.chunk())).map_err(not_written)?;
                writing.advance(written);
                self.streams.counters.wrote(written as u64);
            }
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamError> {
        if self.writing.is_some() {
            let error = "a stream was given data before it had taken those before";
            return Err(StreamError::ConnectionErrorIncoming {
                connection_error: ConnectionError::InternalError(error.to_owned()),
            });
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let finished = self.stream.finish();
        self.is_finished = true;
        Poll::Ready(finished.map_err(|error| StreamError::Unknown(Box::new(error))))
    }

    fn reset(&mut self, code: u64) {
        // One that is closed needs none.
        let _ = self.stream.reset(varint(code));
        self.is_finished = true;
    }

    fn send_id(&self) -> StreamId {
        id(self.number())
    }
}

/// The receiving half.
pub(super) struct ReceiveHalf(quinn::RecvStream, Counters);

impl quic::RecvStream for ReceiveHalf {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        let mut scratch = [0; READ];
        let mut read = ReadBuf::new(&mut scratch);
        ready!(self.0.poll_read_buf(cx, &mut read)).map_err(not_read)?;
        let read = read.filled();
        self.1.read(read.len() as u64);
        Poll::Ready(Ok((!read.is_empty()).then(|| Bytes::copy_from_slice(read))))
    }

    fn stop_sending(&mut self, code: u64) {
        // One that has ended needs none.
        let _ = self.0.stop(varint(code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id().into())
    }
}

/// A stream's number, which QUIC keeps below 2^62 (RFC 9000 §2.1).
fn id(number: u64) -> StreamId {
    StreamId::try_from(number).unwrap_or_else(|_| unreachable!("QUIC has no stream {number}"))
}

fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn ended(error: quinn::ConnectionError) -> ConnectionError {
    match error {
        quinn::ConnectionError::ApplicationClosed(close) => {
            ConnectionError::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        quinn::ConnectionError::TimedOut => ConnectionError::Timeout,
        other => ConnectionError::Undefined(Arc::new(other)),
    }
}

fn lost(error: quinn::ConnectionError) -> StreamError {
    StreamError::ConnectionErrorIncoming { connection_error: ended(error) }
}

fn not_read(error: ReadError) -> StreamError {
    match error {
        ReadError::Reset(code) => StreamError::StreamTerminated { error_code: code.into_inner() },
        ReadError::ConnectionLost(error) => lost(error),
        other => StreamError::Unknown(Box::new(other)),
    }
}

fn not_written(error: WriteError) -> StreamError {
    match error {
        WriteError::Stopped(code) => {
            StreamError::StreamTerminated { error_code: code.into_inner() }
        }
        WriteError::ConnectionLost(error) => lost(error),
        other => StreamError::Unknown(Box::new(other)),
    }
}
