//! What a server pushes, as the client takes it.

use std::future::Future;
use std::time::Duration;

use super::exchange::{Exchange, Sink};
use super::plan::Request;
use crate::{Failure, Protocol};

/// What a client takes of what a server pushes. Beyond it a push is cancelled; what waits to be taken is
/// bounded by the flow-control windows too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushLimits {
    /// Pushed streams that are open at once on a connection (SETTINGS_MAX_CONCURRENT_STREAMS), and most
    /// of them with one response.
    pub streams: u32,
    /// Bytes of a pushed body.
    pub bytes: u64,
}

impl Default for PushLimits {
    /// 100 streams, 4 MiB each.
    fn default() -> Self {
        PushLimits { streams: 100, bytes: 4 << 20 }
    }
}

/// A response that the server pushes, and the request that it promises to answer by it. Dropped, it is
/// cancelled, and so is what [`Push::into_exchange`] gives. It ends by itself where it is longer than
/// the limits allow.
#[derive(Debug)]
pub struct Push {
    authority: String,
    path: String,
    exchange: Exchange,
}

impl Push {
    /// Begins to take what is pushed.
    pub(super) fn start<F, R>(
        (authority, path): (String, String),
        about: &About,
        receive: F,
    ) -> Push
    where
        F: FnOnce(Sink) -> R + 'static,
        R: Future<Output = Result<(), Failure>> + 'static,
    {
        let request = Request { digest: about.digest, ..Request::get(&authority, &path) };
        let exchange = Exchange::start(about.protocol, &request, about.limit, receive);
        Push { authority, path, exchange }
    }

    /// The host that the promised request names, with the port if one is said.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Its path with the query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What comes of it: events as of a request, without [`What::Sent`](crate::What::Sent).
    #[must_use]
    pub fn into_exchange(self) -> Exchange {
        self.exchange
    }
}

/// What a push has of the request that it came with.
pub(super) struct About {
    pub(super) protocol: Protocol,
    /// Most time for the whole of it.
    pub(super) limit: Duration,
    /// Whether bodies are hashed.
    pub(super) digest: bool,
}

/// Why a push ends that is longer than the limits allow.
pub(super) fn too_large() -> Failure {
    Failure::TooLarge("the pushed body is larger than the limits allow")
}
