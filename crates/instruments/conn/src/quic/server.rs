//! The server: listens, accepts, answers.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, ReadError, VarInt, ZeroRttAccepted};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use units::Time;

use super::tap::{Seen, TappedServer};
use super::{endpoint, failure, transport};
use crate::log::{ServerLog, ServerRecord};
use crate::timeline::stamp;
use crate::{CpuScope, Failure, ServerPlan};
use crate::{now, thread_cpu};

/// How long to wait for the client's CONNECTION_CLOSE after the response, before the connection is
/// closed and logged.
const LINGER: Duration = Duration::from_secs(5);

/// Listens at `address`: the endpoint, and where it is.
pub(crate) fn listen(
    address: SocketAddr,
    tls: &tls::ServerConfig,
    idle_timeout: Duration,
) -> Result<(Endpoint, SocketAddr), Failure> {
    let tls = QuicServerConfig::try_from(tls::quic::server_config(tls)?)
        .map_err(|error| Failure::Plan(error.to_string()))?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(TappedServer::new(tls)));
    config.transport_config(transport(idle_timeout)).migration(false);
    let failed = |call| move |error| Failure::from_io(call, "listening", &error);
    let socket = UdpSocket::bind(address).map_err(failed("bind"))?;
    let local = socket.local_addr().map_err(failed("getsockname"))?;
    let endpoint = endpoint(socket, Some(config)).map_err(failed("opening a QUIC endpoint"))?;
    Ok((endpoint, local))
}

/// Serves until it is dropped, which also ends the connections being served.
pub(crate) async fn serve(endpoint: Endpoint, retry: bool, plan: Arc<ServerPlan>, log: ServerLog) {
    let slots = Arc::new(Semaphore::new(plan.max_connections.max(1)));
    let mut connections = JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        let (accepted, cpu) = (now(), thread_cpu());
        while connections.try_join_next().is_some() {}
        if retry && !incoming.remote_address_validated() {
            // It fails only for a validated address.
            let _ = incoming.retry();
            continue;
        }
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (plan, log) = (Arc::clone(&plan), log.clone());
        connections.spawn(async move {
            let mut record =
                ServerRecord::new(incoming.remote_address(), accepted, CpuScope::Thread);
            serve_connection(incoming, &plan, &mut record).await;
            record.cpu = thread_cpu().saturating_sub(cpu);
            record.closed = Some(now());
            log.push(record);
            drop(slot);
        });
    }
}

async fn serve_connection(incoming: Incoming, plan: &ServerPlan, record: &mut ServerRecord) {
    record.first_bytes = Some(record.accepted);
    let mut seen = None;
    let served = timeout(plan.timeout, serve_request(incoming, plan, record, &mut seen)).await;
    record.error = match served {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some(format!("still open after {:?}", plan.timeout)),
    };
    let Some(seen) = seen else { return };
    let state = seen.state();
    record.hello_received = state.first_flight;
    record.handshake_complete = state.complete;
    record.facts = Some(state.handshake.facts.clone());
}

async fn serve_request(
    incoming: Incoming,
    plan: &ServerPlan,
    record: &mut ServerRecord,
    seen: &mut Option<Arc<Seen>>,
) -> Result<(), Failure> {
    let lost = |error: ConnectionError| failure(&error, plan.timeout);
    let connecting = incoming.accept().map_err(lost)?;
    // A server's connection can always be used before the handshake is over: that is 0.5-RTT.
    let (connection, complete) = match connecting.into_0rtt() {
        Ok(both) => both,
        Err(_) => return Err(Failure::Protocol("gave no connection to use early")),
    };
    let data = connection.handshake_data().and_then(|data| data.downcast::<Arc<Seen>>().ok());
    let handshake = seen.insert(data.map_or_else(Seen::new, |seen| *seen));
    match answer(&connection, plan, record, handshake).await {
        Ok(()) => {}
        // A client that only makes the handshake closes without a request.
        Err(Stop::Closed(ConnectionError::ApplicationClosed(_)))
            if record.request_received.is_none() =>
        {
            return Ok(());
        }
        Err(Stop::Closed(error)) => return Err(lost(error)),
        Err(Stop::Failed(failure)) => return Err(failure),
    }
    finish(&connection, complete, plan).await
}

/// Why a request was not answered.
enum Stop {
    Closed(ConnectionError),
    Failed(Failure),
}

async fn answer(
    connection: &Connection,
    plan: &ServerPlan,
    record: &mut ServerRecord,
    seen: &Seen,
) -> Result<(), Stop> {
    let (mut send, mut receive) = connection.accept_bi().await.map_err(Stop::Closed)?;
    let mut buffer = [0; 4096];
    let mut received = 0;
    while received < plan.request_len {
        match receive.read(&mut buffer).await {
            Ok(Some(count)) => received += count,
            Ok(None) => {
                let failure = Failure::Protocol("ended the stream before its request was whole");
                return Err(Stop::Failed(failure));
            }
            Err(ReadError::ConnectionLost(error)) => return Err(Stop::Closed(error)),
            Err(_) => return Err(Stop::Failed(Failure::Protocol("reset the stream"))),
        }
    }
    let time = now();
    stamp(&mut record.request_received, time);
    // 1-RTT packets cannot be read before the client's Finished (RFC 9001 §5.7): it came as 0-RTT.
    record.early_request = seen.state().complete.is_none_or(|complete: Time| complete > time);
    record.response_sent = Some(now());
    if send.write_all(&plan.response).await.is_err() {
        return Err(Stop::Failed(Failure::Protocol("did not take the response")));
    }
    let _ = send.finish();
    Ok(())
}

/// Waits for the end of the handshake and the client's close.
async fn finish(
    connection: &Connection,
    complete: ZeroRttAccepted,
    plan: &ServerPlan,
) -> Result<(), Failure> {
    complete.await;
    match timeout(LINGER, connection.closed()).await {
        Ok(ConnectionError::ApplicationClosed(close))
            if close.error_code == VarInt::from_u32(0) =>
        {
            Ok(())
        }
        Ok(error) => Err(failure(&error, plan.timeout)),
        Err(_) => {
            connection.close(VarInt::from_u32(0), b"");
            Ok(())
        }
    }
}
