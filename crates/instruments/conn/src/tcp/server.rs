//! The server: listens and accepts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::serve::serve_connection;
use super::{FastOpen, socket};
use crate::log::ServerLog;
use crate::now;
use crate::{Failure, ServerPlan};

/// How long to wait before accepting again after an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Errors of accept() in a row after which the server gives up.
const ACCEPT_PATIENCE: u32 = 500;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// Listens at `address`: the listener, and where it is.
pub(crate) fn listen(
    address: SocketAddr,
    fast_open: FastOpen,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = socket::listener(address, BACKLOG, fast_open)?;
    let failed = |error| Failure::from_io("listen", "listening", &error);
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local))
}

/// Serves until it is dropped, which also ends the connections being served, or until accept() has
/// failed too often in a row.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<tls::Server>,
    plan: Arc<ServerPlan>,
    log: ServerLog,
) {
    let slots = Arc::new(Semaphore::new(plan.max_connections.max(1)));
    let mut connections = JoinSet::new();
    let mut failures = 0;
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await;
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if failures < ACCEPT_PATIENCE => {
                tracing::warn!(%error, "accept failed");
                failures += 1;
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "accept failed too often: the server stopped");
                return;
            }
        };
        let accepted = now();
        failures = 0;
        let (tls, plan, log) = (tls.clone(), Arc::clone(&plan), log.clone());
        connections.spawn(async move {
            serve_connection(stream, peer, accepted, tls.as_ref(), &plan, &log).await;
            drop(slot);
        });
        while connections.try_join_next().is_some() {}
    }
}
