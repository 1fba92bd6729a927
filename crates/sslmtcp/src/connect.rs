//! The client: one connection, with every way to fall back.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use packet::clock::{monotonic, thread_cpu};
use tcpio::Stack;
use tls::Ticket;

use crate::inner::Inner;
use crate::meter::Metered;
use crate::{Carried, Carrier, CarrierError, Destinations, Embedding, Error, Plan, Timeline};

/// TCP's header with the longest options (RFC 9293 §3.1).
const TCP_HEADER: usize = 60;

/// How long a server that took an envelope may be silent, once TCP is connected, before it is taken
/// for one that knows no SSLmTCP; and this many round trips at least.
const SILENCE: Duration = Duration::from_millis(500);
const SILENT_ROUND_TRIPS: u32 = 3;

/// How to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions<'a> {
    /// What rides in TCP's handshake.
    pub embedding: Embedding,
    /// The session to resume. A TLS 1.3 ticket is used up by the attempt.
    pub ticket: Option<&'a Ticket>,
    /// The first request, which an attacker can replay to other servers than ours (RFC 8446 §8). With
    /// [`Embedding::ZeroRtt`] and a ticket that has room for all of it, it rides in the SYN, with
    /// [`Embedding::None`] it goes behind the ClientHello once TCP is connected;
    /// rejected, it is sent again after the handshake. Otherwise it is as `first_request`.
    pub early_data: Vec<u8>,
    /// A request that leaves together with the flight that completes the client's handshake. Behind
    /// `early_data` if there are both. At most [`tls::MAX_BUFFERED`] bytes.
    pub first_request: Option<Vec<u8>>,
    /// How long to wait until application data may be sent. With early data that is at once.
    pub timeout: Duration,
    /// Whether to ask for Fast Open cookies and use them (RFC 7413): with one, a server spends a
    /// flight of any size on the SYN.
    pub fast_open_cookie: bool,
    /// The stack's MTU in bytes, or less: what the SYN carries fits into it.
    pub mtu: u16,
    /// Which servers take envelopes for stream data. By default one memory for the process.
    pub destinations: Destinations,
}

impl Default for ConnectOptions<'_> {
    /// The `tls13` profile, no ticket, 10 s.
    fn default() -> Self {
        Self {
            embedding: Embedding::default(),
            ticket: None,
            early_data: Vec::new(),
            first_request: None,
            timeout: Duration::from_secs(10),
            fast_open_cookie: false,
            mtu: 1500,
            destinations: Destinations::default(),
        }
    }
}

/// Makes one connection.
pub(crate) async fn connect(
    stack: &Stack,
    remote: SocketAddr,
    client: &tls::Client,
    options: ConnectOptions<'_>,
) -> Result<Inner, Error> {
    let after = options.timeout;
    match tokio::time::timeout(after, attempt(stack, remote, client, &options)).await {
        Ok(result) => result,
        Err(_) => Err(Error::TimedOut { after }),
    }
}

async fn attempt(
    stack: &Stack,
    remote: SocketAddr,
    client: &tls::Client,
    options: &ConnectOptions<'_>,
) -> Result<Inner, Error> {
    let now = monotonic();
    let mut timeline = Timeline { started: Some(now), ..Timeline::default() };
    let remembered =
        options.embedding == Embedding::Paper && options.destinations.contains(now, remote);
    let carried = match options.embedding {
        Embedding::None => Carried::Sequential,
        _ if remembered => Carried::Remembered,
        _ => Carried::Pending,
    };
    let mut inner = begin(stack, remote, client, options, carried, timeline)?;
    match ready(&mut inner).await {
        Err(Error::Carrier(CarrierError::PlainPeer)) => {}
        other => return other.map(|()| inner),
    }
    // It took the envelope for the beginning of its stream, and has served nothing.
    inner.tcp.abort();
    options.destinations.insert(monotonic(), remote);
    tracing::debug!(%remote, "took an envelope for stream data; connecting again without");
    timeline.connected = inner.timeline.connected;
    drop(inner);
    let mut inner = begin(stack, remote, client, options, Carried::Reconnected, timeline)?;
    ready(&mut inner).await?;
    Ok(inner)
}

/// Sends the SYN.
fn begin(
    stack: &Stack,
    remote: SocketAddr,
    client: &tls::Client,
    options: &ConnectOptions<'_>,
    carried: Carried,
    mut timeline: Timeline,
) -> Result<Inner, Error> {
    let embedding = match carried {
        Carried::Pending => options.embedding,
        _ => Embedding::None,
    };
    let ip_header = if remote.is_ipv4() { 20 } else { 40 };
    let began = thread_cpu();
    let session = client.start(options.ticket)?;
    let engine = Metered::new(session, thread_cpu().saturating_sub(began));
    let plan = Plan {
        embedding,
        early_data: options.early_data.clone(),
        request: options.first_request.clone().unwrap_or_default(),
        syn_room: usize::from(options.mtu).saturating_sub(ip_header + TCP_HEADER),
    };
    let asked = !(plan.early_data.is_empty() && plan.request.is_empty());
    let mut carrier = Carrier::client(monotonic(), engine, plan)?;
    let syn_data = carrier.syn();
    let now = monotonic();
    if !syn_data.is_empty() {
        timeline.hello_sent = Some(now);
        if carrier.is_ready() {
            timeline.ready = Some(now);
            timeline.request_sent = asked.then_some(now);
        }
    }
    let tcp = stack.connect(
        remote,
        tcp::ConnectOptions {
            syn_data,
            // The stream begins afresh, without padding or envelope.
            if_refused: tcp::IfRefused::Withdraw,
            fast_open_cookie: options.fast_open_cookie,
            ..tcp::ConnectOptions::default()
        },
    )?;
    let early = carrier.early_data_pending();
    let mut inner = Inner::client(tcp, carrier, options.embedding, carried, timeline);
    inner.asked = asked;
    inner.early = early;
    Ok(inner)
}

/// Waits until application data may be sent.
async fn ready(inner: &mut Inner) -> Result<(), Error> {
    if inner.timeline.ready.is_some() {
        return Ok(());
    }
    poll_fn(|cx| inner.poll_connected(cx)).await?;
    if inner.carrier.awaits_envelope() {
        first_bytes(inner).await?;
    }
    while !inner.carrier.is_ready() {
        if !poll_fn(|cx| inner.poll_fill(cx)).await? {
            return Err(Error::Carrier(CarrierError::Truncated));
        }
    }
    // What waits behind full buffers leaves with the first write or read.
    poll_fn(|cx| inner.flush(cx)).await
}

/// Waits for the answer to an envelope that the server has taken. One that knows SSLmTCP answers in
/// the SYN+ACK, or soon after it (a signature takes milliseconds).
async fn first_bytes(inner: &mut Inner) -> Result<(), Error> {
    let plain = Err(Error::Carrier(CarrierError::PlainPeer));
    let round_trip = inner.tcp.info().and_then(|info| info.smoothed_rtt).unwrap_or_default();
    let patience = SILENCE.max(round_trip * SILENT_ROUND_TRIPS);
    let filled = async {
        while inner.carrier.awaits_envelope() {
            poll_fn(|cx| inner.poll_fill(cx)).await?;
        }
        Ok(())
    };
    match tokio::time::timeout(patience, filled).await {
        // It reset the connection, at a loss with the envelope.
        Err(_) | Ok(Err(Error::Tcp { .. })) => plain,
        Ok(result) => result,
    }
}
