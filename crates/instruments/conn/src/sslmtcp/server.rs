//! The server: listens, answers, logs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sslmtcp::{ListenOptions, SslmTcpListener, SslmTcpStream};
use tcpio::Stack;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::facts;
use crate::clock::now;
use crate::cpu::CpuScope;
use crate::log::{DEFAULT_LOG_CAPACITY, ServerLog, ServerRecord};
use crate::timeline::stamp;
use crate::{Failure, Running};

/// How a server answers. It takes SSLmTCP and ordinary TCP and TLS on one port.
#[derive(Clone)]
pub struct ServerPlan {
    /// The TLS server.
    pub tls: tls::Server,
    /// Bytes that make a request. More are read and ignored.
    pub request_len: usize,
    /// The response, sent as soon as the request is there.
    pub response: Vec<u8>,
    /// A connection that lives longer is closed.
    pub timeout: Duration,
    /// Records that the log holds.
    pub log_capacity: usize,
}

impl ServerPlan {
    /// One byte there, one byte back.
    #[must_use]
    pub fn new(tls: tls::Server) -> Self {
        ServerPlan {
            tls,
            request_len: 1,
            response: b"!".to_vec(),
            timeout: Duration::from_secs(30),
            log_capacity: DEFAULT_LOG_CAPACITY,
        }
    }
}

/// A listening server.
pub struct Server {
    listener: SslmTcpListener,
    local: SocketAddr,
    plan: Arc<ServerPlan>,
    log: ServerLog,
}

impl Server {
    /// Listens at `address` of `stack`. Must be called within the runtime that drives the stack.
    ///
    /// # Errors
    /// [`Failure::Environment`]: the address is not the stack's, or the port is taken.
    pub fn bind(stack: &Stack, address: SocketAddr, plan: ServerPlan) -> Result<Self, Failure> {
        let listener =
            SslmTcpListener::bind(stack, address, plan.tls.clone(), ListenOptions::default())
                .map_err(facts::failure)?;
        let local = listener.local_addr();
        let log = ServerLog::new(plan.log_capacity);
        Ok(Server { listener, local, plan: Arc::new(plan), log })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A handle to the log of finished connections.
    #[must_use]
    pub fn log(&self) -> ServerLog {
        self.log.clone()
    }

    /// Serves until it is dropped, which also ends the connections being served, or until its
    /// stack has ended.
    pub async fn serve(self) {
        let mut connections = JoinSet::new();
        loop {
            let stream = match self.listener.accept().await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::error!(%error, "the server stopped");
                    return;
                }
            };
            let (plan, log) = (Arc::clone(&self.plan), self.log.clone());
            connections.spawn(async move { serve_connection(stream, &plan, &log).await });
            while connections.try_join_next().is_some() {}
        }
    }

    /// Serves in a task of the current runtime until the returned guard is dropped.
    #[must_use]
    pub fn spawn(self) -> Running {
        let (address, log) = (self.local, self.log());
        Running::new(address, log, tokio::spawn(self.serve()))
    }
}

/// Serves `stream` to its end and logs it.
async fn serve_connection(mut stream: SslmTcpStream, plan: &ServerPlan, log: &ServerLog) {
    let accepted = stream.report().timeline.started.unwrap_or_else(now);
    let mut record = ServerRecord::new(stream.peer_addr(), accepted, CpuScope::TlsLibrary);
    let served = tokio::time::timeout(plan.timeout, serve(&mut stream, plan, &mut record)).await;
    record.closed = Some(now());
    record.error = match served {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some(format!("still open after {:?}", plan.timeout)),
    };
    let report = stream.report();
    // The SYN with the hello, or the connection on which it came at once.
    record.hello_received = Some(accepted);
    record.first_bytes = Some(accepted);
    record.handshake_complete = report.timeline.handshake_complete;
    record.facts = Some(report.facts);
    (record.cpu, record.crypto) = (report.crypto, Some(report.crypto));
    log.push(record);
}

async fn serve(
    stream: &mut SslmTcpStream,
    plan: &ServerPlan,
    record: &mut ServerRecord,
) -> Result<(), Failure> {
    let tcp = stream.report().tcp;
    record.syn_data = tcp.is_some_and(|info| info.syn_data == tcp::SynData::Accepted);
    let mut buffer = vec![0; 16 * 1024];
    let mut received = 0usize;
    loop {
        let read = stream.read(&mut buffer).await;
        let count = read.map_err(|error| facts::io("serving", &error))?;
        if count == 0 {
            break;
        }
        received = received.saturating_add(count);
        if record.request_received.is_none() && received >= plan.request_len {
            stamp(&mut record.request_received, now());
            record.early_request = stream.report().timeline.handshake_complete.is_none();
            stamp(&mut record.response_sent, now());
            record.writes += 1;
            let failed = |error| facts::io("sending the response", &error);
            stream.write_all(&plan.response).await.map_err(failed)?;
            stream.flush().await.map_err(failed)?;
        }
    }
    let closed = stream.shutdown().await;
    if received > 0 && record.request_received.is_none() {
        return Err(Failure::Protocol("closed the connection before its request was whole"));
    }
    closed.map_err(|error| facts::io("closing", &error))
}
