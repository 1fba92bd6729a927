//! HTTP/3 by h3 on quinn, each request in a task of its own. quinn sends what the most urgent streams have,
//! in turn within one urgency.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::h3::error::{Code, StreamError};
use ::h3::quic;
use ::h3::server::{RequestResolver, RequestStream};
use bytes::{Buf, Bytes};
use conn::{now, quic_tap};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, ZeroRttAccepted};
use tls::EarlyData;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{Instant, timeout, timeout_at};

use super::h3_streams::{self, Streams};
use super::link::{Link, Responding, too_slow};
use super::tcp::sample;
use super::{Shared, date};
use crate::counters::connection_memory;
use crate::flight::{self, busy_until};
use crate::log::{ConnectionRecord, Finish, QuicRecord};
use crate::site::RequestHead;
use crate::tcp_stalls::TcpStalls;
use crate::{Failure, Protocol, QuicSettings};

/// H3_NO_ERROR (RFC 9114 §8.1).
pub(super) const NO_ERROR: u32 = 0x100;
/// How long a connection that is broken off is kept, at least and at most.
const LEAST_MOMENT: Duration = Duration::from_millis(100);
const MOST_MOMENT: Duration = Duration::from_secs(1);
/// Bytes of one DATA frame.
const PIECE: usize = 16 * 1024;

/// quinn's configuration for a server of HTTP/3.
pub(super) fn config(
    tls: &tls::ServerConfig,
    shared: &Shared,
    quic: &QuicSettings,
) -> Result<quinn::ServerConfig, Failure> {
    let alpn = vec![Protocol::Http3.alpn().to_vec()];
    let tls = tls::ServerConfig { alpn, ..tls.clone() };
    let tls = tls::quic::server_config(&tls).map_err(conn::Failure::from)?;
    let crypto =
        QuicServerConfig::try_from(tls).map_err(|error| Failure::Plan(error.to_string()))?;
    let mut config = quinn::ServerConfig::with_crypto(quic_tap::server(crypto));
    let timeouts = &shared.timeouts;
    let idle = timeouts.idle.max(timeouts.stall);
    config.transport_config(crate::quic::transport(&shared.settings, quic, idle)?).migration(false);
    Ok(config)
}

/// Accepts connections until it is dropped, and refuses those beyond the plan's number.
pub(super) async fn accept(endpoint: Endpoint, shared: Rc<Shared>) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(slot) = Arc::clone(&shared.slots).try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        spawn_local(connection(incoming, Rc::clone(&shared), slot));
    }
}

/// One connection from its first datagram to its record.
async fn connection(incoming: Incoming, shared: Rc<Shared>, _slot: OwnedSemaphorePermit) {
    let accepted = now();
    let peer = incoming.remote_address();
    let local_ip = incoming.local_ip();
    let mut held = shared.counters.connection();
    let link = Rc::new(Link::new(shared.number(), Rc::clone(&shared)));
    let (samples, stalls) = (RefCell::new(Vec::new()), Rc::new(TcpStalls::default()));
    let secured = Cell::new(None);
    let mut facts = None;
    let mut last = None;
    let result = match handshake(incoming, &shared).await {
        Err(failure) => {
            shared.counters.handshake_failed();
            Err(failure)
        }
        Ok((quic, complete)) => {
            secured.set(complete.is_none().then(now));
            facts = quic_tap::facts(&quic);
            shared.counters.handshake(facts.as_ref().is_some_and(|facts| facts.resumed));
            held.set_memory(connection_memory(Some(Protocol::Http3)));
            *link.server_name.borrow_mut() =
                facts.as_ref().and_then(|facts| facts.server_name.clone());
            let stats = || Some(QuicRecord::of(&flight::stats(&quic)));
            let streams = Streams::new(shared.counters.clone());
            let _watch = shared.bottleneck.as_ref().map(|bottleneck| {
                let (watched, writes) = (quic.clone(), flight::writes(&quic).unwrap_or_default());
                stalls.watching(bottleneck, writes, move || flight::look(&watched))
            });
            let completing = async {
                if let Some(complete) = complete {
                    complete.await;
                    secured.set(quic.close_reason().is_none().then(now));
                }
                std::future::pending::<()>().await
            };
            let breaking_off = async {
                shared.aborting().await;
                streams.break_off();
            };
            let served = tokio::select! {
                result = serve(&quic, &streams, &link) => result,
                failure = link.watch(|| None) => Err(failure),
                () = sample(shared.sample, &samples, stats) => Ok(()),
                never = link.stalls.watch_unsent(|| busy_until(&quic)) => match never {},
                () = completing => Ok(()),
                () = breaking_off => {
                    let_go(&quic).await;
                    Ok(())
                }
            };
            last = stats();
            quic.close(quinn::VarInt::from_u32(NO_ERROR), b"");
            served
        }
    };
    drop(held);
    if !shared.log.is_on() {
        return;
    }
    shared.log.push_connection(ConnectionRecord {
        connection: link.id,
        peer,
        local: (local_ip.unwrap_or([0, 0, 0, 0].into()), 0).into(),
        protocol: facts.as_ref().map(|_| Protocol::Http3),
        resumed: facts.as_ref().map(|facts| facts.resumed),
        tls: facts,
        accepted,
        secured: secured.get(),
        closed: now(),
        requests: link.requests.get(),
        bytes_received: last.map_or(0, |last| last.bytes_received),
        bytes_sent: last.map_or(0, |last| last.bytes_sent),
        stalled: link.stalled.get(),
        tcp_stalls: stalls.stalls(),
        tcp: None,
        samples: Vec::new(),
        quic: last,
        quic_samples: samples.into_inner(),
        error: result.err().map(|failure| failure.to_string()),
    });
}

/// The handshake: the connection, and what tells of the end where it is used before: with early data.
async fn handshake(
    incoming: Incoming,
    shared: &Shared,
) -> Result<(quinn::Connection, Option<ZeroRttAccepted>), Failure> {
    let (during, after) = ("making the QUIC handshake", shared.timeouts.handshake);
    let lost = |error| Failure::from(conn::Failure::from_quic(&error, after));
    let mut connecting = incoming.accept().map_err(lost)?;
    let handshake = async {
        // The ClientHello is whole, and answered.
        connecting.handshake_data().await?;
        let (quic, complete) = match connecting.into_0rtt() {
            Ok(early) => early,
            Err(connecting) => return Ok((connecting.await?, None)),
        };
        let facts = quic_tap::facts(&quic);
        if facts.is_some_and(|facts| facts.early_data == EarlyData::Accepted) {
            return Ok((quic, Some(complete)));
        }
        // Its answer says nothing on a server.
        complete.await;
        match quic.close_reason() {
            None => Ok((quic, None)),
            Some(error) => Err(error),
        }
    };
    match timeout(after, handshake).await {
        Ok(connected) => connected.map_err(lost),
        Err(_) => Err(Failure::TimedOut { during, after }),
    }
}

async fn serve(
    quic: &quinn::Connection,
    streams: &Streams,
    link: &Rc<Link>,
) -> Result<(), Failure> {
    let mut h3 = ::h3::server::builder()
        .max_field_section_size(link.server.settings.max_header_list.into())
        .send_grease(false)
        .build::<_, Bytes>(h3_streams::Connection::new(quic.clone(), streams.clone()))
        .await
        .map_err(|error| Failure::Http {
            protocol: Protocol::Http3,
            detail: error.to_string(),
            peer: true,
        })?;
    // Dropped with the connection, which ends its requests.
    let mut requests = JoinSet::new();
    let mut ending = pin!(link.ending());
    let mut is_ending = false;
    loop {
        tokio::select! {
            () = &mut ending, if !is_ending => {
                is_ending = true;
                // RFC 9114 §5.2. What is under way is served.
                let _ = h3.shutdown(0).await;
                if requests.is_empty() {
                    return Ok(());
                }
            }
            Some(_) = requests.join_next(), if !requests.is_empty() => {
                if is_ending && requests.is_empty() {
                    drain(quic, link).await;
                    return Ok(());
                }
            }
            accepted = h3.accept() => match accepted {
                Ok(Some(resolver)) => {
                    let quic = quic.clone();
                    requests.spawn_local(request(resolver, quic, Rc::clone(link), streams.clone()));
                }
                Ok(None) => {
                    while requests.join_next().await.is_some() {}
                    return Ok(());
                }
                Err(error) if error.is_h3_no_error() => return Ok(()),
                Err(error) => return Err(ended(quic, link, &error.to_string())),
            },
        }
    }
}

/// Waits until the client is likely to know that its responses were broken off. quinn sends what closes a connection
/// once, and not at all while data wait for the congestion window.
async fn let_go(quic: &quinn::Connection) {
    let moment = (3 * quic.rtt()).clamp(LEAST_MOMENT, MOST_MOMENT);
    let _ = timeout(moment, quic.closed()).await;
}

/// Waits until the client has what it was sent, or closes, for a moment.
async fn drain(quic: &quinn::Connection, link: &Link) {
    let limit = link.server.timeouts.stall.min(Duration::from_secs(5));
    let _ = timeout(limit, quic.closed()).await;
}

/// What ended a connection: quinn knows better than h3.
fn ended(quic: &quinn::Connection, link: &Link, error: &str) -> Failure {
    match quic.close_reason() {
        Some(quinn::ConnectionError::LocallyClosed) | None => {
            Failure::Http { protocol: Protocol::Http3, detail: error.to_owned(), peer: true }
        }
        Some(reason) => conn::Failure::from_quic(&reason, link.server.timeouts.idle).into(),
    }
}

type Resolver = RequestResolver<h3_streams::Connection, Bytes>;

/// Reads one request and answers it.
async fn request(resolver: Resolver, quic: quinn::Connection, link: Rc<Link>, streams: Streams) {
    let limit = link.server.timeouts.head;
    // Dropped when it is late, which resets the stream.
    let Ok(Ok((request, mut stream))) = timeout(limit, resolver.resolve_request()).await else {
        return;
    };
    let (parts, ()) = request.into_parts();
    let name = link.server_name.borrow().clone();
    let head = RequestHead { parts: &parts, protocol: Protocol::Http3, sni: name.as_deref() };
    let number = stream.id().into_inner();
    streams.set_urgency(number, head.priority().urgency);
    let mut responding = Responding::new(&link, number, &head);
    let answer = link.server.site.answer(&head).conditional(&head);
    let result = respond(&mut stream, &quic, &mut responding, &parts.method, answer).await;
    if let Err(stop) = result {
        let finish = match stop {
            Stop::Late => {
                stream.stop_sending(Code::H3_REQUEST_CANCELLED);
                stream.stop_stream(Code::H3_REQUEST_CANCELLED);
                Finish::Reset(too_slow(link.server.timeouts.upload).name().to_owned())
            }
            Stop::Stream(StreamError::RemoteTerminate { code, .. }) => {
                Finish::Reset(code.to_string())
            }
            Stop::Stream(_) => Finish::Broken,
        };
        responding.finish(finish);
    }
}

/// Why a request was not answered.
enum Stop {
    Late,
    Stream(StreamError),
}

impl From<StreamError> for Stop {
    fn from(error: StreamError) -> Self {
        Stop::Stream(error)
    }
}

async fn respond<S>(
    stream: &mut RequestStream<S, Bytes>,
    quic: &quinn::Connection,
    responding: &mut Responding,
    method: &http::Method,
    answer: crate::Answer,
) -> Result<(), Stop>
where
    S: quic::SendStream<Bytes> + quic::RecvStream,
{
    let deadline = Instant::now() + responding.link.server.timeouts.upload;
    while let Some(mut data) =
        timeout_at(deadline, stream.recv_data()).await.map_err(|_| Stop::Late)??
    {
        let bytes = data.remaining();
        data.advance(bytes);
        responding.received(bytes);
    }
    responding.uploaded();
    if !answer.think.is_zero() {
        responding.think(true);
        tokio::time::sleep(answer.think).await;
        responding.think(false);
    }
    let mut body = answer.body(method);
    let length = body.remaining();
    let status = answer.status.as_u16();
    stream.send_response(answer.head(date::now())).await?;
    responding.answered(status, length);
    while body.remaining() > 0 {
        let piece = body.next(PIECE);
        let bytes = piece.len();
        waiting(stream.send_data(piece), quic, responding).await?;
        // Complete only when the end is said, too.
        responding.gave(bytes, false);
    }
    stream.finish().await?;
    responding.finish(Finish::Complete);
    Ok(())
}

/// Waits for `send`, and counts the time for which it is not taken at once: as blocked by quinn's send buffer, or as
/// stalled on a window.
async fn waiting<T>(
    send: impl Future<Output = T>,
    quic: &quinn::Connection,
    responding: &mut Responding,
) -> T {
    let begin = || {
        responding.stalled(true);
        responding.blocked(true);
    };
    let (sent, told) = crate::quic::waiting(send, quic, begin).await;
    if let Some(told) = told {
        let (given, send_buffer) =
            (responding.link.given.get(), responding.link.server.send_buffer);
        match crate::quic::is_window(told, given, send_buffer) {
            true => responding.forget_block(),
            false => responding.forget_stall(),
        }
        responding.stalled(false);
        responding.blocked(false);
    }
    sent
}
