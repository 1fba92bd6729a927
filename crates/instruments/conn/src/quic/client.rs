//! The client: one connection by plan.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint, ReadError, RecvStream, VarInt, WriteError, ZeroRttAccepted};
use tokio::time::timeout;

use super::tap::{Seen, TappedClient};
use super::{QuicInfo, endpoint, failure, transport};
use crate::outcome::{KEPT_RESPONSE, Outcome};
use crate::timeline::stamp;
use crate::{Attempt, ClientPlan, CpuScope, Failure, SynData, Timeline};
use crate::{now, thread_cpu};

/// Makes one connection by `plan`, from a UDP port of its own.
///
/// The CPU time is that of the calling thread ([`CpuScope::Thread`]), since quinn works in tasks of its
/// own: right on a current-thread runtime, if nothing else runs there meanwhile.
pub(crate) async fn connect(plan: &ClientPlan, client: &tls::quic::Client) -> Attempt {
    let mut timeline = Timeline::default();
    let cpu = thread_cpu();
    let seen = Seen::new();
    let tls::quic::Started { tls, tickets } = client.start(plan.ticket.as_ref())?;
    let (endpoint, local) = open(plan.server)?;
    let tls = TappedClient { inner: quic_config(plan, &tls)?, seen: Arc::clone(&seen) };
    let exchange = exchange(plan, &endpoint, tls, client.server_name(), &mut timeline);
    let exchanged = timeout(plan.timeout, exchange).await;
    let exchanged = exchanged.unwrap_or_else(|_| {
        Err(Failure::TimedOut { after: plan.timeout, timeline: Box::default() })
    });
    {
        let state = seen.state();
        timeline.hello_sent = state.first_flight;
        timeline.handshake_complete = state.complete;
    }
    let exchanged = match exchanged {
        Ok(exchanged) => exchanged,
        Err(failure) => {
            endpoint.close(VarInt::from_u32(0), b"");
            drain(&endpoint, plan.linger).await;
            return Err(match failure {
                Failure::TimedOut { .. } => {
                    Failure::TimedOut { after: plan.timeout, timeline: Box::new(timeline) }
                }
                other => other,
            });
        }
    };
    if let Some(patience) = plan.await_ticket {
        let _ = timeout(patience, seen.ticket()).await;
    }
    let stats = exchanged.connection.stats();
    let info = QuicInfo::new(&stats, &seen);
    seen.note_metrics(&stats);
    timeline.closed = Some(now());
    exchanged.connection.close(VarInt::from_u32(0), b"");
    drain(&endpoint, plan.linger).await;
    let (facts, chain) = {
        let handshake = &mut seen.state().handshake;
        (handshake.facts.clone(), std::mem::take(&mut handshake.chain))
    };
    Ok(Outcome {
        local,
        remote: plan.server,
        timeline,
        facts: Some(facts),
        chain,
        tickets: tickets.take_ticket().into_iter().collect(),
        cpu: thread_cpu().saturating_sub(cpu),
        cpu_scope: CpuScope::Thread,
        crypto: None,
        syn_data: SynData::NotSent,
        syn_bytes: 0,
        early_request: exchanged.early_request,
        response: exchanged.response,
        response_len: exchanged.response_len,
        writes: 0,
        partial_writes: 0,
        tcp: None,
        quic: Some(info),
    })
}

/// An endpoint bound to the address that packets to `server` leave from, so that a capture can be
/// searched for it.
fn open(server: SocketAddr) -> Result<(Endpoint, SocketAddr), Failure> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let failed = |call| move |error| Failure::from_io(call, "opening the socket", &error);
    // Connecting a UDP socket sends nothing; it only chooses the source address.
    let route = UdpSocket::bind((any, 0)).map_err(failed("bind"))?;
    route.connect(server).map_err(failed("connect"))?;
    let source = route.local_addr().map_err(failed("getsockname"))?;
    drop(route);
    let socket = UdpSocket::bind((source.ip(), 0)).map_err(failed("bind"))?;
    let local = socket.local_addr().map_err(failed("getsockname"))?;
    let endpoint = endpoint(socket, None).map_err(failed("opening a QUIC endpoint"))?;
    Ok((endpoint, local))
}

/// Lets quinn's tasks send what is due; not longer than `patience`.
async fn drain(endpoint: &Endpoint, patience: Duration) {
    let _ = timeout(patience, endpoint.wait_idle()).await;
}

/// The TLS of one connection, that offers early data only if the plan says so.
fn quic_config(
    plan: &ClientPlan,
    tls: &rustls::ClientConfig,
) -> Result<Arc<QuicClientConfig>, Failure> {
    let mut tls = tls.clone();
    tls.enable_early_data = plan.early_data;
    let config = QuicClientConfig::try_from(tls);
    config.map(Arc::new).map_err(|error| Failure::Plan(error.to_string()))
}

struct Exchanged {
    connection: Connection,
    early_request: bool,
    response: Vec<u8>,
    response_len: usize,
}

async fn exchange(
    plan: &ClientPlan,
    endpoint: &Endpoint,
    tls: TappedClient,
    server_name: &str,
    timeline: &mut Timeline,
) -> Result<Exchanged, Failure> {
    let seen = Arc::clone(&tls.seen);
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(transport(plan.timeout));
    timeline.started = Some(now());
    let connecting = endpoint
        .connect_with(config, plan.server, server_name)
        .map_err(|error| Failure::Plan(error.to_string()))?;
    let (connection, accepted) = match connecting.into_0rtt() {
        Ok((connection, accepted)) => (connection, Some(accepted)),
        Err(connecting) => {
            let connection = connecting.await.map_err(|error| failure(&error, plan.timeout))?;
            (connection, None)
        }
    };
    timeline.ready = Some(now());
    if !plan.think.is_zero() && !plan.request.is_empty() {
        tokio::time::sleep(plan.think).await;
    }
    let early_request = seen.state().complete.is_none() && !plan.request.is_empty();
    let mut exchanged =
        Exchanged { connection, early_request, response: Vec::new(), response_len: 0 };
    if !plan.request.is_empty() {
        exchanged.ask(plan, accepted, timeline).await?;
    } else if let Some(accepted) = accepted {
        accepted.await;
        if let Some(error) = exchanged.connection.close_reason() {
            return Err(failure(&error, plan.timeout));
        }
    }
    Ok(exchanged)
}

impl Exchanged {
    async fn ask(
        &mut self,
        plan: &ClientPlan,
        accepted: Option<ZeroRttAccepted>,
        timeline: &mut Timeline,
    ) -> Result<(), Failure> {
        let answered = self.request_and_response(plan, timeline, false).await;
        let accepted = match accepted {
            Some(accepted) => accepted.await,
            None => true,
        };
        let answered = match answered {
            Err(StreamError::ZeroRttRejected) if !accepted => {
                self.request_and_response(plan, timeline, true).await
            }
            other => other,
        };
        answered.map_err(|error| error.into_failure(plan.timeout))
    }

    /// One stream: the request there, the response back.
    async fn request_and_response(
        &mut self,
        plan: &ClientPlan,
        timeline: &mut Timeline,
        again: bool,
    ) -> Result<(), StreamError> {
        let (mut send, mut receive) = self.connection.open_bi().await.map_err(StreamError::Lost)?;
        let sent = if again { &mut timeline.request_resent } else { &mut timeline.request_sent };
        stamp(sent, now());
        send.write_all(&plan.request).await?;
        let _ = send.finish();
        self.read_response(plan, &mut receive, timeline).await
    }

    async fn read_response(
        &mut self,
        plan: &ClientPlan,
        stream: &mut RecvStream,
        timeline: &mut Timeline,
    ) -> Result<(), StreamError> {
        let mut buffer = [0; 4096];
        while self.response_len < plan.response_len {
            let Some(count) = stream.read(&mut buffer).await? else {
                return Err(StreamError::TooShort);
            };
            if count > 0 {
                stamp(&mut timeline.first_response_byte, now());
            }
            self.response_len += count;
            let room = KEPT_RESPONSE.saturating_sub(self.response.len());
            self.response.extend(buffer.iter().take(count.min(room)));
        }
        Ok(())
    }
}

/// How a stream fails.
enum StreamError {
    ZeroRttRejected,
    Lost(quinn::ConnectionError),
    Broken,
    TooShort,
}

impl StreamError {
    fn into_failure(self, after: Duration) -> Failure {
        match self {
            StreamError::Lost(error) => failure(&error, after),
            StreamError::Broken => Failure::Protocol("reset the stream"),
            StreamError::ZeroRttRejected | StreamError::TooShort => {
                Failure::Protocol("ended the stream before the response was whole")
            }
        }
    }
}

impl From<WriteError> for StreamError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ZeroRttRejected => StreamError::ZeroRttRejected,
            WriteError::ConnectionLost(error) => StreamError::Lost(error),
            WriteError::Stopped(_) | WriteError::ClosedStream => StreamError::Broken,
        }
    }
}

impl From<ReadError> for StreamError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ZeroRttRejected => StreamError::ZeroRttRejected,
            ReadError::ConnectionLost(error) => StreamError::Lost(error),
            _ => StreamError::Broken,
        }
    }
}
