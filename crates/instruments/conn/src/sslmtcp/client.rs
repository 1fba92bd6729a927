//! The client: one connection by plan.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use sslmtcp::{ConnectOptions, Destinations, Embedding, Report, SslmTcpStream};
use tcpio::Stack;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, timeout_at};

use super::facts;
use crate::cpu::CpuScope;
use crate::now;
use crate::outcome::{KEPT_RESPONSE, Outcome};
use crate::timeline::stamp;
use crate::{Attempt, ClientPlan, Failure, Timeline};

/// Bytes read in one call.
const READ_SIZE: usize = 16 * 1024;

/// Makes one connection by `plan`.
pub(crate) async fn connect(
    plan: &ClientPlan,
    stack: &Stack,
    embedding: Embedding,
    tls: &tls::Client,
) -> Attempt {
    let started = now();
    let deadline = Instant::now() + plan.timeout;
    let mut timeline = Timeline { started: Some(started), ..Timeline::default() };
    let exchanged = timeout_at(deadline, exchange(plan, stack, embedding, tls, &mut timeline));
    let exchanged = exchanged.await;
    let timed_out = |timeline| Failure::TimedOut { after: plan.timeout, timeline };
    let mut exchange = match exchanged {
        Ok(Ok(exchange)) => exchange,
        // The stack's own patience is the plan's.
        Ok(Err(Failure::TimedOut { .. })) | Err(_) => return Err(timed_out(Box::new(timeline))),
        Ok(Err(failure)) => return Err(failure),
    };
    // Before FIN, so that it counts what the exchange took and no more.
    let report = exchange.stream.report();
    let closed = exchange.end(plan).await;
    Ok(outcome(plan, exchange, report, started, closed))
}

fn outcome(
    plan: &ClientPlan,
    exchange: Exchange,
    report: Report,
    started: units::Time,
    closed: units::Time,
) -> Outcome {
    let Exchange { stream, early_request, request_sent, first_byte, .. } = exchange;
    let steps = stream.report().timeline;
    let timeline = Timeline {
        started: Some(started),
        connected: steps.connected,
        opened: None,
        hello_sent: steps.hello_sent,
        ready: steps.ready,
        request_sent,
        request_resent: steps.request_resent,
        first_response_byte: first_byte,
        handshake_complete: steps.handshake_complete,
        closed: Some(closed),
    };
    let tcp = report.tcp.as_ref().map(facts::tcp_info);
    Outcome {
        local: exchange.local,
        remote: plan.server,
        timeline,
        facts: Some(report.facts),
        chain: Vec::new(),
        tickets: exchange.tickets,
        cpu: report.crypto,
        cpu_scope: CpuScope::TlsLibrary,
        crypto: Some(report.crypto),
        syn_data: report.tcp.as_ref().map(facts::syn_data).unwrap_or_default(),
        syn_bytes: report.tcp.as_ref().map_or(0, |info| info.syn_bytes),
        early_request,
        response: exchange.response,
        response_len: exchange.response_len,
        writes: exchange.writes,
        partial_writes: 0,
        tcp,
        quic: None,
    }
}

struct Exchange {
    stream: SslmTcpStream,
    local: SocketAddr,
    early_request: bool,
    request_sent: Option<units::Time>,
    first_byte: Option<units::Time>,
    response: Vec<u8>,
    response_len: usize,
    tickets: Vec<tls::Ticket>,
    writes: u32,
}

async fn exchange(
    plan: &ClientPlan,
    stack: &Stack,
    embedding: Embedding,
    tls: &tls::Client,
    timeline: &mut Timeline,
) -> Result<Exchange, Failure> {
    let options = ConnectOptions {
        embedding,
        ticket: plan.ticket.as_ref(),
        early_data: if has_early_data(plan) { plan.request.clone() } else { Vec::new() },
        timeout: plan.timeout,
        // What one measurement learns of a server must not change the next.
        destinations: Destinations::new(),
        ..ConnectOptions::default()
    };
    let connecting = SslmTcpStream::connect_ssl(stack, plan.server, tls, options);
    let stream = connecting.await.map_err(facts::failure)?;
    let local = stream.local_addr();
    let mut exchange = Exchange {
        stream,
        local,
        early_request: false,
        request_sent: None,
        first_byte: None,
        response: Vec::new(),
        response_len: 0,
        tickets: Vec::new(),
        writes: 0,
    };
    exchange.send(plan).await?;
    let steps = exchange.stream.report().timeline;
    (timeline.connected, timeline.ready) = (steps.connected, steps.ready);
    exchange.receive(plan).await?;
    Ok(exchange)
}

/// A client that thinks first has no request when the handshake begins.
fn has_early_data(plan: &ClientPlan) -> bool {
    plan.early_data && plan.think.is_zero()
}

impl Exchange {
    /// Sends the request, unless it left as early data.
    async fn send(&mut self, plan: &ClientPlan) -> Result<(), Failure> {
        let failed = |error| facts::io("sending the request", &error);
        if plan.request.is_empty() {
            return self.stream.flush().await.map_err(failed);
        }
        let report = self.stream.report();
        if has_early_data(plan) && report.timeline.request_sent.is_some() {
            // Without room for early data it left with the flight that completes the handshake.
            self.early_request = report.facts.early_data != tls::EarlyData::NotOffered;
            self.request_sent = report.timeline.request_sent;
            return Ok(());
        }
        if !plan.think.is_zero() {
            tokio::time::sleep(plan.think).await;
        }
        self.request_sent = Some(now());
        self.writes += 1;
        self.stream.write_all(&plan.request).await.map_err(failed)?;
        self.stream.flush().await.map_err(failed)
    }

    /// Reads the response, and the rest of the handshake if it came sooner.
    async fn receive(&mut self, plan: &ClientPlan) -> Result<(), Failure> {
        let mut buffer = vec![0; READ_SIZE];
        while !plan.request.is_empty() && self.response_len < plan.response_len {
            let read = self.stream.read(&mut buffer).await;
            let count = read.map_err(|error| facts::io("waiting for the response", &error))?;
            if count == 0 {
                let what = "closed the connection before the response was whole";
                return Err(Failure::Protocol(what));
            }
            stamp(&mut self.first_byte, now());
            self.response_len += count;
            let room = KEPT_RESPONSE.saturating_sub(self.response.len());
            self.response.extend(buffer.iter().take(count.min(room)));
            self.tickets.extend(self.stream.take_ticket());
        }
        Ok(())
    }

    /// Waits for a ticket if asked to, and closes in order; returns when. Nothing that happens here
    /// undoes what was measured, so errors only end it.
    async fn end(&mut self, plan: &ClientPlan) -> units::Time {
        self.tickets.extend(self.stream.take_ticket());
        if let (Some(patience), true) = (plan.await_ticket, self.tickets.is_empty()) {
            let deadline = Instant::now() + patience;
            let stream = &mut self.stream;
            let ticket = timeout_at(deadline, poll_fn(|cx| poll_ticket(stream, cx))).await;
            self.tickets.extend(ticket.ok().flatten());
        }
        let closed = now();
        let deadline = Instant::now() + plan.linger;
        let _ = timeout_at(deadline, self.stream.shutdown()).await;
        let mut buffer = [0; 512];
        while let Ok(Ok(1..)) = timeout_at(deadline, self.stream.read(&mut buffer)).await {}
        closed
    }
}

/// Reads on until there is a ticket; `None` at the end of the stream.
fn poll_ticket(stream: &mut SslmTcpStream, cx: &mut Context<'_>) -> Poll<Option<tls::Ticket>> {
    loop {
        let mut bytes = [0; 512];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = Pin::new(&mut *stream).poll_read(cx, &mut buffer);
        if let Some(ticket) = stream.take_ticket() {
            return Poll::Ready(Some(ticket));
        }
        match read {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
            Poll::Ready(_) => return Poll::Ready(None),
        }
    }
}
