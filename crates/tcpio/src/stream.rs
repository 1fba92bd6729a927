//! A connection as a stream of bytes.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tcp::{CloseReason, ConnectionId, Info, State, StreamError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use units::Time;

use crate::engine::Engine;
use crate::shared::{User, closed, failure};
use crate::waiters::Kept;

/// A connection of a stack. Dropping it ends the connection in order, in the background, if all that
/// came was read; if not, a RST tells the peer (RFC 9293 §3.6.1).
///
/// A write is on the wire when it returns, as far as the windows permit.
#[derive(Debug)]
pub struct TcpStream {
    user: User,
    id: ConnectionId,
    local: SocketAddr,
    peer: SocketAddr,
}

impl TcpStream {
    pub(crate) fn new(user: User, id: ConnectionId, local: SocketAddr, peer: SocketAddr) -> Self {
        TcpStream { user, id, local, peer }
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

    /// Waits until a client's SYN is answered, which tells what became of its data.
    ///
    /// # Errors
    /// The connection was refused, timed out, or was reset.
    pub async fn connected(&self) -> io::Result<Info> {
        self.wait(|info| !matches!(info.state, State::SynSent)).await
    }

    /// Waits until the handshake is over: on a server, until the client's address is validated.
    ///
    /// # Errors
    /// As [`TcpStream::connected`].
    pub async fn established(&self) -> io::Result<Info> {
        self.wait(|info| !matches!(info.state, State::SynSent | State::SynReceived)).await
    }

    async fn wait(&self, done: impl Fn(&Info) -> bool) -> io::Result<Info> {
        poll_fn(|cx| {
            self.user.act(|engine, _| {
                let info = engine.endpoint.info(self.id).ok_or_else(|| closed(engine, self.id))?;
                let over = engine.ended
                    || engine.streams.get(&self.id).is_none_or(|waiters| waiters.closed.is_some());
                if done(&info) && !matches!(info.state, State::Closed) {
                    return Poll::Ready(Ok(info));
                }
                if over {
                    return Poll::Ready(Err(closed(engine, self.id)));
                }
                engine.wait_for_step(self.id, cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    /// A server's answer to a SYN with data is written, or there will be none: the SYN-ACK goes
    /// out with what has been written.
    pub fn answer(&self) {
        self.user.act(|engine, now| engine.endpoint.answer(now, self.id));
    }

    /// What TCP knows of the connection; `None` once it is gone.
    #[must_use]
    pub fn info(&self) -> Option<Info> {
        self.user.lock().endpoint.info(self.id)
    }

    /// Bytes that can be written at once.
    #[must_use]
    pub fn room(&self) -> usize {
        self.user.lock().endpoint.writable(self.id)
    }

    /// Keeps `guard` until the connection is over, though the stream is dropped before: a
    /// semaphore's permit, so that connections which are still ending count. In place of what was
    /// kept before.
    pub fn keep(&self, guard: impl Send + 'static) {
        let kept: Kept = Box::new(guard);
        let old = self.user.act(|engine, _| match engine.streams.get_mut(&self.id) {
            Some(waiters) => waiters.kept.replace(kept),
            None => Some(kept),
        });
        drop(old);
    }

    /// Ends the connection at once by a RST.
    pub fn abort(&self) {
        self.user.act(|engine, now| engine.endpoint.abort(now, self.id));
    }

    /// Reads what is there; 0 at the end of the stream.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if nothing is there; why the connection has ended.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.user.act(|engine, now| self.read(engine, now, into))
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; why the connection has ended.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.user.act(|engine, now| self.write(engine, now, data))
    }

    fn read(&self, engine: &mut Engine, now: Time, into: &mut [u8]) -> io::Result<usize> {
        if engine.ended {
            return Err(closed(engine, self.id));
        }
        match engine.endpoint.read(now, self.id, into) {
            // What waits in the ring is taken here rather than by the driver's next turn.
            Err(StreamError::WouldBlock) if engine.is_ready() => {
                engine.turn(now);
                engine.endpoint.read(now, self.id, into)
            }
            other => other,
        }
        .map_err(failure)
    }

    fn write(&self, engine: &mut Engine, now: Time, data: &[u8]) -> io::Result<usize> {
        if engine.ended {
            return Err(closed(engine, self.id));
        }
        engine.endpoint.write(now, self.id, data).map_err(failure)
    }

    /// Tries `act`; if it would block, has the task woken when there is a point in trying again.
    fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Engine, Time) -> io::Result<R>,
        place: impl FnOnce(&mut crate::waiters::Waiters) -> &mut Option<Waker>,
    ) -> Poll<io::Result<R>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let (result, old) = self.user.act(|engine, now| match act(engine, now) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Some(waiters) = engine.streams.get_mut(&self.id) {
                    let place = place(waiters);
                    if !place.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                        // An old waker is dropped outside the lock.
                        return (Poll::Pending, place.replace(cx.waker().clone()));
                    }
                }
                (Poll::Pending, None)
            }
            result => (Poll::Ready(result), None),
        });
        drop(old);
        if result.is_ready() {
            budget.made_progress();
        }
        result
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let space = into.initialize_unfilled();
        let read = |engine: &mut Engine, now| self.read(engine, now, space);
        let len = ready!(self.poll(cx, read, |waiters| &mut waiters.read))?;
        into.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = |engine: &mut Engine, now| self.write(engine, now, data);
        self.poll(cx, write, |waiters| &mut waiters.write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = |engine: &mut Engine, now| {
            let mut total = 0;
            for part in parts.iter().filter(|part| !part.is_empty()) {
                match self.write(engine, now, part) {
                    Ok(len) => {
                        total += len;
                        if len < part.len() {
                            break;
                        }
                    }
                    Err(_) if total > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(total)
        };
        self.poll(cx, write, |waiters| &mut waiters.write)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What was written is on the wire, or waits for the peer: there is nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends this side's stream behind what was written; reading goes on. Waits for the answer to a
    /// SYN, as RFC 9293 §3.10.4 gives up a connection that is closed before that.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.user.act(|engine, now| {
            let state = engine.endpoint.info(self.id).map(|info| info.state);
            if state == Some(State::SynSent) && !engine.ended {
                engine.wait_for_step(self.id, cx.waker());
                return Poll::Pending;
            }
            engine.endpoint.shutdown(now, self.id);
            match engine.streams.get(&self.id).and_then(|waiters| waiters.closed) {
                None | Some(CloseReason::Finished) => Poll::Ready(Ok(())),
                Some(_) => Poll::Ready(Err(closed(engine, self.id))),
            }
        })
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        let waiters = self.user.act(|engine, now| engine.release(now, self.id));
        drop(waiters);
    }
}
