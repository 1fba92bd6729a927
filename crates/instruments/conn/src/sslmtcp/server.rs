//! The server: listens and answers.

use std::net::SocketAddr;
use std::sync::Arc;

use sslmtcp::{ListenOptions, SslmTcpListener, SslmTcpStream};
use tcpio::Stack;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::facts;
use crate::cpu::CpuScope;
use crate::log::{ServerLog, ServerRecord};
use crate::now;
use crate::timeline::stamp;
use crate::{Failure, ServerPlan};

/// Listens at `address` of `stack`. Must be called within the runtime that drives the stack.
pub(crate) fn listen(
    stack: &Stack,
    address: SocketAddr,
    tls: tls::Server,
) -> Result<SslmTcpListener, Failure> {
    SslmTcpListener::bind(stack, address, tls, ListenOptions::default()).map_err(facts::failure)
}

/// Serves until it is dropped, which also ends the connections being served, or until its stack has
/// ended.
pub(crate) async fn serve(listener: SslmTcpListener, plan: Arc<ServerPlan>, log: ServerLog) {
    let slots = Arc::new(Semaphore::new(plan.max_connections.max(1)));
    let mut connections = JoinSet::new();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await;
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::error!(%error, "the server stopped");
                return;
            }
        };
        let (plan, log) = (Arc::clone(&plan), log.clone());
        connections.spawn(async move {
            serve_connection(stream, &plan, &log).await;
            drop(slot);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Serves `stream` to its end and logs it.
async fn serve_connection(mut stream: SslmTcpStream, plan: &ServerPlan, log: &ServerLog) {
    let accepted = stream.report().timeline.started.unwrap_or_else(now);
    let mut record = ServerRecord::new(stream.peer_addr(), accepted, CpuScope::TlsLibrary);
    let served = tokio::time::timeout(plan.timeout, answer(&mut stream, plan, &mut record)).await;
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

async fn answer(
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
