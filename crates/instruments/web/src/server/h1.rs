//! HTTP/1.1 by hyper: one request at a time, the connection kept.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use super::h1_rules::refusal;
use super::link::{Link, Responding, hyper_failure, too_slow};
use crate::body::{Given, Pieces};
use crate::site::{Answer, RequestHead};
use crate::socket::Gauge;
use crate::{Failure, Protocol};

/// Most bytes given to hyper at once: four TLS records.
const PIECE: usize = 64 * 1024;
/// hyper's buffer cannot be smaller.
const LEAST_BUFFER: usize = 8192;

/// Serves one connection to its end.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    protocol: Protocol,
    gauge: &Gauge,
    link: &Rc<Link>,
) -> Result<(), Failure> {
    let service = service_fn(|request| respond(request, protocol, gauge, link));
    let limit = link.server.settings.max_header_list as usize;
    let connection = http1::Builder::new()
        .max_header_size(limit)
        .max_buf_size((limit + PIECE).max(LEAST_BUFFER))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = link.ending() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    result.map_err(|error| {
        let service = std::error::Error::source(&error);
        match service.and_then(|error| error.downcast_ref::<Failure>()) {
            Some(failure) => failure.clone(),
            None => hyper_failure(&error, protocol),
        }
    })
}

async fn respond(
    request: Request<Incoming>,
    protocol: Protocol,
    gauge: &Gauge,
    link: &Rc<Link>,
) -> Result<Response<Pieces<Outgoing>>, Failure> {
    let (parts, body) = request.into_parts();
    // The next request's head begins with the next byte.
    gauge.mark();
    let refusal = refusal(&parts);
    let (mut responding, mut answer) = {
        let name = link.server_name.borrow();
        let head = RequestHead { parts: &parts, protocol, sni: name.as_deref() };
        let answer = match refusal {
            Some(status) => Answer::closing(status),
            None => link.server.site.answer(&head).conditional(&head),
        };
        (Responding::new(link, link.requests.get(), &head), answer)
    };
    // Where the body of a refused request ends is not certain.
    if refusal.is_none() && !body.is_end_stream() {
        if !upload(body, &mut responding).await? {
            answer = Answer::closing(StatusCode::BAD_REQUEST);
        }
        gauge.mark();
    }
    if !answer.think.is_zero() {
        responding.think(true);
        tokio::time::sleep(answer.think).await;
        responding.think(false);
    }
    let body = answer.body(&parts.method);
    let length = body.remaining();
    let status = answer.status.as_u16();
    // hyper adds `date` itself.
    let head = answer.head(None);
    responding.answered(status, length);
    Ok(head.map(|()| Pieces::new(body, PIECE, Outgoing(Some(responding)))))
}

/// Reads the request's body and counts it. Returns whether its chunks are well formed (RFC 9112 §7.1).
async fn upload(mut body: Incoming, responding: &mut Responding) -> Result<bool, Failure> {
    let limit = responding.link.server.timeouts.upload;
    let deadline = Instant::now() + limit;
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        match timeout_at(deadline, frame).await {
            Err(_) => return Err(too_slow(limit)),
            Ok(None) => break,
            Ok(Some(Err(error))) if is_faulty(&error) => return Ok(false),
            Ok(Some(Err(error))) => return Err(hyper_failure(&error, Protocol::Http1)),
            Ok(Some(Ok(frame))) => responding.received(frame.data_ref().map_or(0, Bytes::len)),
        }
    }
    responding.uploaded();
    Ok(true)
}

/// Whether the bytes of a body break its coding; a connection that ends is another matter.
fn is_faulty(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let kind = source.and_then(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// A response on its way: it is over when its last piece is with hyper.
struct Outgoing(Option<Responding>);

impl Given for Outgoing {
    fn given(&mut self, bytes: usize, last: bool) {
        if let Some(responding) = &mut self.0 {
            responding.gave(bytes, last);
        }
        if last {
            self.0 = None;
        }
    }
}
