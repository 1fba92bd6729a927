//! HTTP/3 by h3 on quinn.

use std::cell::RefCell;
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

use super::exchange::{Sink, What};
use super::plan::{ConnectPlan, Request};
use super::state::{Ended, Facts, State};
use crate::body::Body;
use crate::task::Task;
use crate::{Failure, Protocol};

/// Bytes of one DATA frame.
const PIECE: usize = 16 * 1024;

type Sender = SendRequest<h3_quinn::OpenStreams, Bytes>;

#[derive(Clone)]
pub(super) struct Connection(Rc<Inner>);

struct Inner {
    sender: RefCell<Sender>,
    quic: quinn::Connection,
    _endpoint: quinn::Endpoint,
    _driver: Task,
    idle: Duration,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // RFC 9114 §8.1: H3_NO_ERROR. The endpoint's driver sends it when the task is next run.
        self.quic.close(quinn::VarInt::from_u32(0x100), b"");
    }
}

/// Makes a connection of its own endpoint, and begins HTTP/3 on it.
pub(super) async fn connect(
    tls: rustls::ClientConfig,
    plan: &ConnectPlan,
    state: &Rc<State>,
) -> Result<(Connection, Facts), Failure> {
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
    let quic =
        connecting.await.map_err(|error| Failure::from(conn::Failure::from_quic(&error, idle)))?;
    let secured = now();
    let handshake = h3_quinn::Connection::new(quic.clone());
    let (mut driver, sender) = ::h3::client::builder()
        .max_field_section_size(plan.settings.max_header_list.into())
        .send_grease(false)
        .build(handshake)
        .await
        .map_err(|error| failure(&error, &quic, idle, "beginning HTTP/3"))?;
    let tls = quic_tap::facts(&quic);
    let facts = Facts {
        local: SocketAddr::new(
            quic.local_ip().unwrap_or(any.ip()),
            endpoint.local_addr().map_or(0, |local| local.port()),
        ),
        peer: quic.remote_address(),
        protocol: Protocol::Http3,
        started,
        connected: None,
        secured: Some(secured),
        ready: now(),
        resumed: tls.as_ref().map(|facts| facts.resumed),
        alpn: Some("h3".to_owned()),
        tls,
    };
    let (state, watched) = (Rc::clone(state), quic.clone());
    let task = Task::spawn(async move {
        let error = poll_fn(|cx| driver.poll_close(cx)).await;
        state.end(if error.is_h3_no_error() {
            // GOAWAY comes first where the server stops in good order.
            Ended::Closed
        } else {
            Ended::Failed(failure(&error, &watched, idle, "asking"))
        });
    });
    let inner =
        Inner { sender: RefCell::new(sender), quic, _endpoint: endpoint, _driver: task, idle };
    Ok((Connection(Rc::new(inner)), facts))
}

impl Connection {
    pub(super) async fn exchange(
        &self,
        state: &State,
        request: &Request,
        sink: &Sink,
    ) -> Result<(), Failure> {
        let head = request.head(true)?;
        let failed = |during| {
            move |error: StreamError| stream_failure(&error, &self.0.quic, self.0.idle, during)
        };
        // QUIC itself makes a request wait for a free stream.
        let _place = state.enter(|| usize::MAX).await?;
        let mut sender = self.0.sender.borrow().clone();
        let stream = sender.send_request(head).await.map_err(failed("asking"))?;
        sink.say(What::Sent).await;
        let (mut sending, receiving) = stream.split();
        if request.upload == 0 {
            sending.finish().await.map_err(failed("asking"))?;
        }
        let mut reading = pin!(read(receiving, sink));
        if request.upload > 0 {
            let mut upload = pin!(send(sending, request.upload, sink));
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
}

async fn send<S: quic::SendStream<Bytes>>(
    mut stream: RequestStream<S, Bytes>,
    length: u64,
    sink: &Sink,
) -> Result<(), StreamError> {
    let mut body = Body::new(length);
    while body.remaining() > 0 {
        stream.send_data(body.next(PIECE)).await?;
        sink.say(What::Uploaded(length - body.remaining())).await;
    }
    stream.finish().await
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
