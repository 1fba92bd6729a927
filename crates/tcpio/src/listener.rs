//! Listening for connections.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tcp::ListenerId;

use crate::shared::User;
use crate::stream::TcpStream;
use crate::waiters::Waiters;

/// A port that takes connections. Dropping it ends the listening, not the connections accepted.
#[derive(Debug)]
pub struct TcpListener {
    user: User,
    id: ListenerId,
    local: SocketAddr,
}

impl TcpListener {
    pub(crate) fn new(user: User, id: ListenerId, local: SocketAddr) -> Self {
        TcpListener { user, id, local }
    }

    /// The address that was listened on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The next connection: established, or half open with data that an admitted SYN brought, for
    /// [`TcpStream::answer`].
    ///
    /// # Errors
    /// The stack has been shut down.
    pub async fn accept(&self) -> io::Result<TcpStream> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// As [`TcpListener::accept`], as a step of a future. Several tasks may wait at once.
    ///
    /// # Errors
    /// As [`TcpListener::accept`].
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let accepted = self.user.act(|engine, _| {
            if engine.ended {
                return Poll::Ready(Err(crate::Error::Closed.into()));
            }
            while let Some(id) = engine.endpoint.accept(self.id) {
                // One that has ended since has nothing to say.
                if let Some(info) = engine.endpoint.info(id) {
                    engine.streams.insert(id, Waiters::default());
                    return Poll::Ready(Ok((id, info.local, info.remote)));
                }
            }
            if engine.is_closing() {
                return Poll::Ready(Err(crate::Error::Closed.into()));
            }
            if let Some(waiting) = engine.listeners.get_mut(&self.id)
                && !waiting.iter().any(|waker| waker.will_wake(cx.waker()))
            {
                waiting.push(cx.waker().clone());
            }
            Poll::Pending
        });
        accepted.map_ok(|(id, local, remote)| TcpStream::new(self.user.clone(), id, local, remote))
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        let waiting = self.user.act(|engine, now| {
            engine.endpoint.unlisten(now, self.id);
            engine.listeners.remove(&self.id)
        });
        drop(waiting);
    }
}
