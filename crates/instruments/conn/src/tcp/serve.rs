//! One connection on the server.

use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::time::timeout;
use units::Time;

use super::transfer::Transfer;
use crate::cpu::{CpuScope, Metered};
use crate::layer::Layer;
use crate::log::{ServerLog, ServerRecord};
use crate::now;
use crate::timeline::stamp;
use crate::{Failure, ServerPlan};

/// Bytes past the request after which the peer is cut off.
const MAX_SURPLUS: usize = 1 << 20;

/// Serves `stream` to its end and logs it.
pub(super) async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    accepted: Time,
    tls: Option<&tls::Server>,
    plan: &ServerPlan,
    log: &ServerLog,
) {
    let mut record = ServerRecord::new(peer, accepted, CpuScope::Connection);
    let served = timeout(plan.timeout, serve(stream, tls, plan, &mut record));
    let (result, cpu) = Metered::new(served).await;
    record.cpu = cpu;
    record.closed = Some(now());
    record.error = match result {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some(format!("still open after {:?}", plan.timeout)),
    };
    log.push(record);
}

async fn serve(
    stream: TcpStream,
    tls: Option<&tls::Server>,
    plan: &ServerPlan,
    record: &mut ServerRecord,
) -> Result<(), Failure> {
    let layer = match tls {
        None => Layer::plain(),
        Some(server) => Layer::Tls(server.accept()?),
    };
    let mut transfer = Transfer::new(stream, layer);
    transfer.connected = Some(record.accepted);
    record.syn_data = transfer.info().is_ok_and(|info| info.syn_data_acknowledged);
    let _ = transfer.stream.set_nodelay(true);
    let mut connection = Connection { plan, record, received: 0, answered: false, transfer };
    let result = connection.run().await;
    connection.transfer.layer.close();
    connection.transfer.finish();
    let Connection { transfer, record, .. } = connection;
    record.facts = transfer.layer.facts();
    record.writes = transfer.writes;
    record.partial_writes = transfer.partial_writes;
    result
}

struct Connection<'a> {
    plan: &'a ServerPlan,
    record: &'a mut ServerRecord,
    transfer: Transfer,
    received: usize,
    answered: bool,
}

impl Connection<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        while self.transfer.read("serving").await? {
            stamp(&mut self.record.first_bytes, now());
            self.take_request()?;
            self.answer()?;
            self.flush().await?;
            if self.transfer.layer.peer_closed() {
                break;
            }
        }
        if self.transfer.layer.is_handshaking() {
            return Err(Failure::Protocol("closed the connection during the handshake"));
        }
        if !self.answered && self.received > 0 {
            return Err(Failure::Protocol("closed the connection before its request was whole"));
        }
        Ok(())
    }

    fn take_request(&mut self) -> Result<(), Failure> {
        let layer = &self.transfer.layer;
        self.received = self.received.saturating_add(self.transfer.data.len());
        if self.received >= self.plan.request_len && self.record.request_received.is_none() {
            stamp(&mut self.record.request_received, now());
            self.record.early_request = layer.is_handshaking();
        }
        if layer.is_tls() && !layer.is_handshaking() {
            stamp(&mut self.record.handshake_complete, now());
        }
        if self.received > self.plan.request_len.saturating_add(MAX_SURPLUS) {
            return Err(Failure::Protocol("sent far more than a request"));
        }
        Ok(())
    }

    /// Queues the response as soon as it may go: to early data, before the client's Finished.
    fn answer(&mut self) -> Result<(), Failure> {
        if self.answered
            || self.record.request_received.is_none()
            || !self.transfer.layer.may_send()
        {
            return Ok(());
        }
        self.transfer.layer.send(&self.plan.response)?;
        self.answered = true;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        let is_first = self.transfer.writes == 0;
        if let Some(time) = self.transfer.flush().await? {
            if is_first && self.transfer.layer.is_tls() {
                stamp(&mut self.record.hello_received, time);
            }
            if self.answered {
                stamp(&mut self.record.response_sent, time);
            }
        }
        Ok(())
    }
}
