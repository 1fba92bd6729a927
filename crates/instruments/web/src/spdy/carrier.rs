//! Carries a session over a stream of bytes, no further ahead of it than one round.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use ::spdy::Session;
use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::ROUND;

/// Bytes read at once: a TLS record.
const READ: usize = 16_384;
/// A buffer larger than this is given back when nothing waits.
const KEPT: usize = 16_384;

/// What became of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Some bytes moved.
    Moved,
    /// There was nothing to move: the peer closed its direction, or nothing waits to be written.
    Nothing,
}

/// A transport and what lies between it and the session.
pub(crate) struct Carrier<S> {
    stream: S,
    input: BytesMut,
    /// Frames on their way.
    output: Vec<u8>,
    /// Bytes of them that the transport took.
    taken: usize,
    /// What it took is with the socket too.
    is_flushed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Carrier<S> {
    pub(crate) fn new(stream: S) -> Self {
        Carrier { stream, input: BytesMut::new(), output: Vec::new(), taken: 0, is_flushed: true }
    }

    /// Reads once, for the session. [`Progress::Nothing`]: the peer has closed.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        session: &mut Session,
    ) -> Poll<io::Result<Progress>> {
        if self.input.capacity() - self.input.len() < READ / 2 {
            self.input.reserve(READ);
        }
        let read = pin!(self.stream.read_buf(&mut self.input));
        if ready!(read.poll(cx))? == 0 {
            return Poll::Ready(Ok(Progress::Nothing));
        }
        session.receive(self.input.split().freeze());
        Poll::Ready(Ok(Progress::Moved))
    }

    /// Writes one round of the session's frames, once all before them are with the socket.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        session: &mut Session,
    ) -> Poll<io::Result<Progress>> {
        ready!(self.poll_drain(cx))?;
        if !session.wants_write() {
            if self.output.capacity() > KEPT {
                self.output = Vec::new();
            }
            return Poll::Ready(Ok(Progress::Nothing));
        }
        session.write_to(&mut self.output, ROUND);
        self.is_flushed = false;
        if let Poll::Ready(Err(error)) = self.poll_drain(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(Progress::Moved))
    }

    /// Closes this direction behind what is on its way.
    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.output.get(self.taken..).filter(|rest| !rest.is_empty()) {
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.taken += count;
        }
        self.output.clear();
        self.taken = 0;
        if !self.is_flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spdy::{QUEUE, head, session};
    use crate::{Protocol, Settings};
    use ::spdy::{Priority, Role};
    use std::task::Waker;

    #[test]
    fn a_transport_that_takes_nothing_gets_one_round() {
        let (stream, _peer) = tokio::io::duplex(1000);
        let mut session = session(Role::Client, Protocol::Spdy3, &Settings::default()).unwrap();
        let request = http::Request::post("https://a.test/").body(()).unwrap().into_parts().0;
        let request = head::of_request(&request, None).unwrap();
        let upload = session.open(&request, Priority::LOWEST, false).unwrap();
        let mut body = bytes::Bytes::from(vec![7; QUEUE]);
        session.write(upload, &mut body, true).unwrap();
        let mut carrier = Carrier::new(stream);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(carrier.poll_write(&mut cx, &mut session).is_ready());
        let left = session.queued(upload);
        assert!((QUEUE - ROUND..QUEUE).contains(&left), "{left}");
        for _ in 0..3 {
            assert!(carrier.poll_write(&mut cx, &mut session).is_pending());
        }
        assert_eq!(session.queued(upload), left);
        // What is opened now goes out before the rest of the body.
        session.open(&request, Priority::HIGHEST, true).unwrap();
        assert!(session.wants_write());
    }
}
