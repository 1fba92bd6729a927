//! PUSH_PROMISE (RFC 9113 §8.4), as the client takes it.

use std::future::pending;

use ::h2::client::{PushPromise, PushPromises, PushedResponseFuture, ResponseFuture};

use super::{Connection, Inner};
use crate::client::exchange::Sink;
use crate::client::push::{About, Push, PushLimits, too_large};
use crate::{Failure, Protocol};

/// What is promised with a request.
pub(super) struct Promises {
    connection: Connection,
    /// None where no push is taken, or no more can come.
    promises: Option<PushPromises>,
    limits: PushLimits,
    /// How many more are taken.
    left: u32,
    digest: bool,
}

impl Promises {
    pub(super) fn new(
        connection: &Connection,
        response: &mut ResponseFuture,
        sink: &Sink,
    ) -> Promises {
        let Inner { push, .. } = *connection.0;
        let limits = push.unwrap_or(PushLimits { streams: 0, bytes: 0 });
        Promises {
            connection: connection.clone(),
            promises: push.map(|_| response.push_promises()),
            limits,
            left: limits.streams,
            digest: sink.is_digesting(),
        }
    }

    /// The next that is taken. Others are dropped, which cancels them. Where no more can come it never
    /// resolves.
    pub(super) async fn next(&mut self) -> Push {
        loop {
            let Some(promises) = &mut self.promises else { return pending().await };
            match promises.push_promise().await {
                Some(Ok(promise)) => {
                    if let Some(push) = self.take(promise) {
                        return push;
                    }
                }
                // What is wrong the response says.
                Some(Err(_)) | None => self.promises = None,
            }
        }
    }

    fn take(&mut self, promise: PushPromise) -> Option<Push> {
        self.left = self.left.checked_sub(1)?;
        let (request, response) = promise.into_parts();
        let uri = request.uri();
        let authority = uri.authority()?.as_str().to_owned();
        let path = uri.path_and_query()?.as_str().to_owned();
        let (connection, most) = (self.connection.clone(), self.limits.bytes);
        let about =
            About { protocol: Protocol::Http2, limit: connection.0.limit, digest: self.digest };
        Some(Push::start((authority, path), &about, move |sink| async move {
            let result = receive(response, most, &sink).await;
            // The connection lives as long as what is pushed on it.
            drop(connection);
            result
        }))
    }
}

async fn receive(response: PushedResponseFuture, most: u64, sink: &Sink) -> Result<(), Failure> {
    let during = "waiting for a pushed response";
    let response = response.await.map_err(|error| Failure::from_h2(&error, during))?;
    let (parts, mut body) = response.into_parts();
    sink.head(parts).await;
    while let Some(data) = body.data().await {
        let data = data.map_err(|error| Failure::from_h2(&error, "reading a pushed body"))?;
        if sink.received() + data.len() as u64 > most {
            return Err(too_large());
        }
        sink.data(&data).await;
        // It fails only for more than was received.
        let _ = body.flow_control().release_capacity(data.len());
    }
    Ok(())
}
