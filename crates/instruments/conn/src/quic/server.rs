//! The server: listens, accepts, answers, logs.

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
use crate::clock::{now, thread_cpu};
use crate::log::{DEFAULT_LOG_CAPACITY, ServerLog, ServerRecord};
use crate::timeline::stamp;
use crate::{CpuScope, Failure, Running};

/// How a server answers.
#[derive(Clone)]
pub struct ServerPlan {
    /// Its TLS: rustls, version 1.3. `max_early_data` above 0 accepts
    /// 0-RTT, of any length (RFC 9001 §4.6.1).
    pub tls: tls::ServerConfig,
    /// Bytes that make a request.
    pub request_len: usize,
    /// The response, sent as soon as the request is there.
    pub response: Vec<u8>,
    /// A connection that lives longer is closed; also the idle timeout.
    pub timeout: Duration,
    /// Connections served at once; more are refused.
    pub max_connections: usize,
    /// Whether each client's address is validated by a Retry packet first (RFC 9000 §8.1.2), for one
    /// more round trip.
    pub retry: bool,
    /// How long to wait for the client's CONNECTION_CLOSE after the response, before the connection is
    /// closed and logged.
    pub linger: Duration,
    /// Records that the log holds.
    pub log_capacity: usize,
}

impl ServerPlan {
    /// One byte there, one byte back.
    #[must_use]
    pub fn new(tls: tls::ServerConfig) -> Self {
        ServerPlan {
            tls,
            request_len: 1,
            response: b"!".to_vec(),
            timeout: Duration::from_secs(30),
            max_connections: 1024,
            retry: false,
            linger: Duration::from_secs(5),
            log_capacity: DEFAULT_LOG_CAPACITY,
        }
    }
}

/// A listening server.
pub struct Server {
    endpoint: Endpoint,
    local: SocketAddr,
    plan: Arc<ServerPlan>,
    log: ServerLog,
}

impl Server {
    /// Listens at `address`, and only there, in the calling thread's network namespace. Must be called
    /// within the tokio runtime that will serve.
    ///
    /// # Errors
    /// [`Failure::Environment`] when the address is taken or not there, [`Failure::Tls`] when the
    /// configuration cannot work.
    pub fn bind(address: SocketAddr, plan: ServerPlan) -> Result<Self, Failure> {
        let tls = QuicServerConfig::try_from(tls::quic::server_config(&plan.tls)?)
            .map_err(|error| Failure::Plan(error.to_string()))?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(TappedServer(Arc::new(tls))));
        config.transport_config(transport(plan.timeout)).migration(false);
        let failed = |call| move |error| Failure::from_io(call, "listening", &error);
        let socket = UdpSocket::bind(address).map_err(failed("bind"))?;
        let local = socket.local_addr().map_err(failed("getsockname"))?;
        let endpoint = endpoint(socket, Some(config)).map_err(failed("opening a QUIC endpoint"))?;
        let log = ServerLog::new(plan.log_capacity);
        Ok(Server { endpoint, local, plan: Arc::new(plan), log })
    }

    /// Where it listens; with the port that the kernel chose if 0 was asked for.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A handle to the log of finished connections.
    #[must_use]
    pub fn log(&self) -> ServerLog {
        self.log.clone()
    }

    /// Serves until it is dropped, which also ends the connections being served.
    pub async fn serve(self) {
        let slots = Arc::new(Semaphore::new(self.plan.max_connections.max(1)));
        let mut connections = JoinSet::new();
        while let Some(incoming) = self.endpoint.accept().await {
            let (accepted, cpu) = (now(), thread_cpu());
            while connections.try_join_next().is_some() {}
            if self.plan.retry && !incoming.remote_address_validated() {
                // It fails only for a validated address.
                let _ = incoming.retry();
                continue;
            }
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                incoming.refuse();
                continue;
            };
            let (plan, log) = (Arc::clone(&self.plan), self.log.clone());
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

    /// Serves in a task of the current runtime until the returned guard is dropped.
    #[must_use]
    pub fn spawn(self) -> Running {
        let (address, log) = (self.local, self.log());
        Running::new(address, log, tokio::spawn(self.serve()))
    }
}

async fn serve_connection(incoming: Incoming, plan: &ServerPlan, record: &mut ServerRecord) {
    record.first_bytes = Some(record.accepted);
    let mut seen = None;
    let served = timeout(plan.timeout, serve(incoming, plan, record, &mut seen)).await;
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

async fn serve(
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
    match timeout(plan.linger, connection.closed()).await {
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
