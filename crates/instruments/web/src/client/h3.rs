//! HTTP/3 by h3 on quinn.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::h3::client::{RequestStream, SendRequest};
use ::h3::error::{ConnectionError, StreamError};
use ::h3::quic;
use bytes::{Buf, Bytes};
use conn::{now, quic_tap};
use quinn::crypto::rustls::QuicClientConfig;
use tls::EarlyData;
use tokio::sync::Notify;

use super::exchange::{Sink, What};
use super::plan::{ConnectPlan, Request};
use super::state::{Ended, Facts, State};
use crate::body::Body;
use crate::flight::{self, busy_until};
use crate::gate::Gate;
use crate::quic::is_window;
use crate::stalls::{Stalls, Wait};
use crate::task::Task;
use crate::tcp_stalls::Look;
use crate::{Failure, Protocol};

/// Bytes of one DATA frame.
const PIECE: usize = 16 * 1024;

type Sender = SendRequest<h3_quinn::OpenStreams, Bytes>;
type Driver = ::h3::client::Connection<h3_quinn::Connection, Bytes>;

#[derive(Clone)]
pub(super) struct Connection(Rc<Inner>);

struct Inner {
    /// That of streams which the server knows: another after it has refused early data.
    sender: Rc<RefCell<Sender>>,
    quic: quinn::Connection,
    _endpoint: quinn::Endpoint,
    _driver: Task,
    idle: Duration,
    gate: Option<Gate>,
    uploads: Uploads,
}

/// What the requests' bodies of a connection share.
struct Uploads {
    stalls: Rc<Stalls>,
    /// Bytes of them that were given to quinn.
    given: Cell<u64>,
    /// Bytes that quinn takes and has not sent, or that are not acknowledged.
    send_buffer: u64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        quic_tap::note_metrics(&self.quic);
        // RFC 9114 §8.1: H3_NO_ERROR. The endpoint's driver sends it when the task is next run.
        self.quic.close(quinn::VarInt::from_u32(0x100), b"");
    }
}

/// Makes a connection of its own endpoint, and begins HTTP/3 on it. With a ticket that allows early data it is
/// there at once, and the gate tells what the server makes of that.
pub(super) async fn connect(
    tls: rustls::ClientConfig,
    plan: &ConnectPlan,
    state: &Rc<State>,
) -> Result<(Connection, Facts, Option<Gate>), Failure> {
    let idle = plan.timeouts.idle;
    let crypto = QuicClientConfig::try_from(Arc::new(tls))
        .map_err(|error| Failure::Plan(error.to_string()))?;
    let mut config = quinn::ClientConfig::new(quic_tap::client(crypto));
    config.transport_config(crate::quic::transport(&plan.settings, &plan.quic, idle)?);
    let any: SocketAddr = match plan.address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let failed = |call| move |error| Failure::from_io(call, "opening the socket", &error);
    let socket = UdpSocket::bind(any).map_err(failed("bind"))?;
    let endpoint = crate::quic::endpoint(socket, None)?;
    let started = now();
    let connecting = endpoint
        .connect_with(config, plan.address, &plan.name)
        .map_err(|error| Failure::Plan(format!("QUIC: {error}")))?;
    let lost = |error| Failure::from(conn::Failure::from_quic(&error, idle));
    // Only where the TLS configuration allows early data.
    let (quic, accepted) = match connecting.into_0rtt() {
        Ok((quic, accepted)) => (quic, Some(accepted)),
        Err(connecting) => (connecting.await.map_err(lost)?, None),
    };
    let gate = accepted.is_some().then(Gate::new);
    let secured = accepted.is_none().then(now);
    let most_head = plan.settings.max_header_list.into();
    let (driver, sender) = begin(&quic, most_head)
        .await
        .map_err(|error| failure(&error, &quic, idle, "beginning HTTP/3"))?;
    let tls = quic_tap::facts(&quic).filter(|_| accepted.is_none());
    let facts = Facts {
        local: SocketAddr::new(
            quic.local_ip().unwrap_or(any.ip()),
            endpoint.local_addr().map_or(0, |local| local.port()),
        ),
        peer: quic.remote_address(),
        protocol: Protocol::Http3,
        started,
        connected: None,
        secured,
        ready: now(),
        resumed: match accepted {
            Some(_) => Some(true),
            None => tls.as_ref().map(|facts| facts.resumed),
        },
        alpn: Some("h3".to_owned()),
        tls,
    };
    let sender = Rc::new(RefCell::new(sender));
    let early = accepted.zip(gate.clone());
    let stalls = Stalls::new(plan.bottleneck.clone());
    let uploads = Uploads {
        stalls: Rc::clone(&stalls),
        given: Cell::new(0),
        send_buffer: plan.quic.send_window,
    };
    let (state, watched, senders) = (Rc::clone(state), quic.clone(), Rc::clone(&sender));
    let task = Task::spawn(async move {
        let driving = drive(driver, early, &watched, most_head, &senders);
        let error = stalls.watching(driving, || busy_until(&watched)).await;
        state.end(if error.is_h3_no_error() {
            // GOAWAY comes first where the server stops in good order.
            Ended::Closed
        } else {
            Ended::Failed(failure(&error, &watched, idle, "asking"))
        });
    });
    let gated = gate.clone();
    let inner =
        Inner { sender, quic, _endpoint: endpoint, _driver: task, idle, gate: gated, uploads };
    Ok((Connection(Rc::new(inner)), facts, gate))
}

/// Begins HTTP/3 on a connection: control streams and SETTINGS.
async fn begin(
    quic: &quinn::Connection,
    most_head: u64,
) -> Result<(Driver, Sender), ConnectionError> {
    ::h3::client::builder()
        .max_field_section_size(most_head)
        .send_grease(false)
        .build(h3_quinn::Connection::new(quic.clone()))
        .await
}

/// Drives HTTP/3 to its end. Where the server refuses early data, none of its streams is left (RFC 9001 §4.6.2):
/// it begins anew, and `sender` is another one.
async fn drive(
    mut driver: Driver,
    early: Option<(quinn::ZeroRttAccepted, Gate)>,
    quic: &quinn::Connection,
    most_head: u64,
    sender: &RefCell<Sender>,
) -> ConnectionError {
    if let Some((accepted, gate)) = early {
        let settled = Settling(&gate);
        let accepted = tokio::select! {
            biased;
            accepted = accepted => accepted,
            error = poll_fn(|cx| driver.poll_close(cx)) => return error,
        };
        if accepted {
            gate.settle(EarlyData::Accepted);
        } else {
            // Before the server's streams come, which it would take.
            drop(driver);
            match begin(quic, most_head).await {
                Ok((anew, requests)) => {
                    driver = anew;
                    *sender.borrow_mut() = requests;
                }
                Err(error) => return error,
            }
        }
        drop(settled);
    }
    poll_fn(|cx| driver.poll_close(cx)).await
}

/// Dropped, it settles the gate: requests that wait learn of the end, too.
struct Settling<'a>(&'a Gate);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        if self.0.is_pending() {
            self.0.settle(EarlyData::Rejected);
        }
    }
}

impl Connection {
    /// A request that went as early data is made again if the server has refused that.
    pub(super) async fn exchange(
        &self,
        state: &State,
        request: &Request,
        sink: &Sink,
    ) -> Result<(), Failure> {
        // QUIC itself makes a request wait for a free stream.
        let _place = state.enter(|| usize::MAX).await?;
        let sent = Cell::new(false);
        let Some(gate) = &self.0.gate else { return self.ask(request, sink, &sent).await };
        if gate.is_pending() && !self.is_refused() {
            let early = gate.enter();
            let result = {
                let ask = pin!(self.ask(request, sink, &sent));
                tokio::select! {
                    biased;
                    () = gate.refused() => None,
                    result = ask => Some(result),
                }
            };
            drop(early);
            if let Some(result) = result
                && (result.is_ok() || gate.settled().await != EarlyData::Rejected)
            {
                return result;
            }
        }
        // A refused stream of quinn 0.11.12, when it is dropped, takes the waker of the stream that has its number
        // now: all of them go before the first of these begins.
        gate.after_refused().await;
        self.ask(request, sink, &sent).await
    }

    /// What keeps its data back.
    pub(super) fn look(&self) -> Option<Look> {
        flight::look(&self.0.quic)
    }

    /// What is told when it sends data, or would.
    pub(super) fn writes(&self) -> Option<Arc<Notify>> {
        flight::writes(&self.0.quic)
    }

    /// Whether the server's answer on early data is here, and a refusal.
    fn is_refused(&self) -> bool {
        quic_tap::facts(&self.0.quic).is_some_and(|facts| facts.early_data == EarlyData::Rejected)
    }

    /// `sent`: whether it is said that the request was.
    async fn ask(&self, request: &Request, sink: &Sink, sent: &Cell<bool>) -> Result<(), Failure> {
        let head = request.head(true)?;
        let failed = |during| {
            move |error: StreamError| stream_failure(&error, &self.0.quic, self.0.idle, during)
        };
        let mut sender = self.0.sender.borrow().clone();
        let stream = sender.send_request(head).await.map_err(failed("asking"))?;
        if !sent.replace(true) {
            sink.say(What::Sent).await;
        }
        let (mut sending, receiving) = stream.split();
        if request.upload == 0 {
            sending.finish().await.map_err(failed("asking"))?;
        }
        let mut reading = pin!(read(receiving, sink));
        if request.upload > 0 {
            let mut upload = pin!(self.send(sending, request.upload, sink));
            tokio::select! {
                biased;
                result = &mut reading => {
                    return result.map_err(failed("waiting for the response"));
                }
                result = &mut upload => {
                    // What made the upload fail is the response's to say.
                    drop(result);
                }
            }
        }
        reading.await.map_err(failed("waiting for the response"))
    }

    /// Sends a request's body as the windows allow.
    async fn send<S: quic::SendStream<Bytes>>(
        &self,
        mut stream: RequestStream<S, Bytes>,
        length: u64,
        sink: &Sink,
    ) -> Result<(), StreamError> {
        let Inner { quic, uploads: Uploads { stalls, given, send_buffer }, .. } = &*self.0;
        let mut wait = Wait::new(stalls);
        let mut body = Body::new(length);
        while body.remaining() > 0 {
            let piece = body.next(PIECE);
            let bytes = piece.len() as u64;
            let begin = || wait.begin(now);
            let (sent, told) = crate::quic::waiting(stream.send_data(piece), quic, begin).await;
            sent?;
            if told.is_some_and(|told| !is_window(told, given.get(), *send_buffer)) {
                wait.forget();
            }
            if let Some(stall) = wait.end(now) {
                sink.stalled(stall);
            }
            given.set(given.get() + bytes);
            sink.say(What::Uploaded(length - body.remaining())).await;
        }
        stream.finish().await
    }
}

async fn read<S: quic::RecvStream>(
    mut stream: RequestStream<S, Bytes>,
    sink: &Sink,
) -> Result<(), StreamError> {
    let (parts, ()) = stream.recv_response().await?.into_parts();
    sink.head(parts).await;
    while let Some(mut data) = stream.recv_data().await? {
        while data.has_remaining() {
            let chunk = data.chunk();
            let length = chunk.len();
            sink.data(chunk).await;
            data.advance(length);
        }
    }
    Ok(())
}

/// What ended a connection: quinn knows better than h3.
fn failure(
    error: &ConnectionError,
    quic: &quinn::Connection,
    idle: Duration,
    during: &'static str,
) -> Failure {
    match quic.close_reason() {
        Some(quinn::ConnectionError::ApplicationClosed(close)) => Failure::Broken {
            during,
            detail: format!(
                "the peer closed it with the code {:#x}",
                close.error_code.into_inner()
            ),
        },
        Some(quinn::ConnectionError::LocallyClosed) | None => {
            Failure::Http { protocol: Protocol::Http3, detail: error.to_string(), peer: true }
        }
        Some(reason) => conn::Failure::from_quic(&reason, idle).into(),
    }
}

fn stream_failure(
    error: &StreamError,
    quic: &quinn::Connection,
    idle: Duration,
    during: &'static str,
) -> Failure {
    match error {
        StreamError::ConnectionError { 0: error, .. } => failure(error, quic, idle, during),
        StreamError::RemoteTerminate { code, .. } => {
            Failure::StreamReset { code: code.to_string(), peer: true }
        }
        StreamError::HeaderTooBig { .. } => {
            Failure::TooLarge("the head is larger than the settings allow")
        }
        StreamError::RemoteClosing { .. } => {
            Failure::Broken { during, detail: "the peer sent GOAWAY".to_owned() }
        }
        other => Failure::Http { protocol: Protocol::Http3, detail: other.to_string(), peer: true },
    }
}
