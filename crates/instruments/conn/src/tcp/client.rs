//! The client: one connection by plan.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::transfer::{Transfer, info};
use super::{FastOpen, SynData, socket};
use crate::cpu::{CpuScope, Metered};
use crate::layer::Layer;
use crate::now;
use crate::opening::FirstBytes;
use crate::outcome::{KEPT_RESPONSE, Outcome};
use crate::timeline::stamp;
use crate::{Attempt, ClientPlan, Failure, Timeline};

/// How much later than the plan's timeout an attempt with an opening is given up.
const OPENING_GRACE: Duration = Duration::from_millis(100);

/// Makes one connection by `plan`.
pub(crate) async fn connect(
    plan: &ClientPlan,
    fast_open: FastOpen,
    tls: Option<&tls::Client>,
) -> Attempt {
    let mut timeline = Timeline::default();
    let (result, cpu) = Metered::new(attempt(plan, fast_open, tls, &mut timeline)).await;
    let mut outcome = result.map_err(|failure| match failure {
        Failure::TimedOut { after, .. } => {
            Failure::TimedOut { after, timeline: Box::new(timeline) }
        }
        other => other,
    })?;
    outcome.timeline = timeline;
    outcome.cpu = cpu;
    Ok(outcome)
}

async fn attempt(
    plan: &ClientPlan,
    fast_open: FastOpen,
    tls: Option<&tls::Client>,
    timeline: &mut Timeline,
) -> Attempt {
    // What comes before TLS ends by itself, and says then what it waited for.
    let grace = if plan.opening.is_some() { OPENING_GRACE } else { Duration::ZERO };
    let exchanged = exchange(plan, fast_open, tls, timeline);
    let exchanged = timeout(plan.timeout.saturating_add(grace), exchanged).await;
    let mut exchange = match exchanged {
        Ok(result) => result?,
        Err(_) => {
            let timeline = Box::default();
            return Err(Failure::TimedOut { after: plan.timeout, timeline });
        }
    };
    // Before FIN, so that it counts what the exchange took and no more.
    let tcp = exchange.transfer.info()?;
    exchange.end().await;
    let Exchange { transfer, response, response_len, tickets, early_request, .. } = exchange;
    let address = |result: std::io::Result<SocketAddr>| {
        result.map_err(|error| Failure::from_io("getsockname", "closing", &error))
    };
    Ok(Outcome {
        local: address(transfer.stream.local_addr())?,
        remote: plan.server,
        timeline: Timeline::default(),
        facts: transfer.layer.facts(),
        chain: Vec::new(),
        tickets,
        cpu: Duration::ZERO,
        cpu_scope: CpuScope::Connection,
        crypto: None,
        syn_data: match (transfer.syn_bytes, tcp.syn_data_acknowledged) {
            (0, _) => SynData::NotSent,
            (_, true) => SynData::Acknowledged,
            (_, false) => SynData::NotAcknowledged,
        },
        syn_bytes: transfer.syn_bytes,
        early_request,
        response,
        response_len,
        writes: transfer.writes,
        partial_writes: transfer.partial_writes,
        tcp: Some(tcp),
        quic: None,
    })
}

/// How far the request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Waiting,
    /// Given to the layer; on the wire with the next flush.
    Queued,
    /// Given again, since early data was rejected.
    QueuedAgain,
}

struct Exchange<'a> {
    plan: &'a ClientPlan,
    timeline: &'a mut Timeline,
    transfer: Transfer,
    request: Request,
    early_request: bool,
    think_until: Option<Instant>,
    response: Vec<u8>,
    response_len: usize,
    tickets: Vec<tls::Ticket>,
}

async fn exchange<'a>(
    plan: &'a ClientPlan,
    fast_open: FastOpen,
    tls: Option<&tls::Client>,
    timeline: &'a mut Timeline,
) -> Result<Exchange<'a>, Failure> {
    let deadline = Instant::now() + plan.timeout;
    let (stream, deferred) = open(plan.server, fast_open, timeline)?;
    let mut transfer = Transfer::new(stream, Layer::plain());
    if !deferred {
        transfer.established().await?;
        timeline.connected = transfer.connected;
    }
    let mut rest = Vec::new();
    if let Some(opening) = &plan.opening {
        rest = opening.pass(&mut transfer.stream, plan.timeout, deadline).await?;
        timeline.opened = Some(now());
        transfer.first = FirstBytes::behind(tls.and(Some(opening.as_ref())));
    }
    if let Some(client) = tls {
        transfer.layer = Layer::Tls(client.start(plan.ticket.as_ref())?);
    }
    let mut exchange = Exchange {
        plan,
        timeline,
        transfer,
        request: Request::Waiting,
        early_request: false,
        think_until: None,
        response: Vec::new(),
        response_len: 0,
        tickets: Vec::new(),
    };
    if !rest.is_empty() {
        exchange.transfer.take_in(&rest)?;
        exchange.take_data();
    }
    exchange.run().await?;
    Ok(exchange)
}

/// Opens the socket and calls connect(). The flag: connect() returned at once and the SYN is deferred
/// to the first write.
fn open(
    server: SocketAddr,
    fast_open: FastOpen,
    timeline: &mut Timeline,
) -> Result<(TcpStream, bool), Failure> {
    let socket = socket::client(server, fast_open)?;
    timeline.started = Some(now());
    let at_once = match socket.connect(&server.into()) {
        Ok(()) => true,
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => false,
        Err(error) => return Err(Failure::from_io("connect", "connecting", &error)),
    };
    let stream = TcpStream::from_std(socket.into())
        .map_err(|error| Failure::from_io("epoll_ctl", "connecting", &error))?;
    // On loopback an ordinary connect can be over when the call returns.
    let deferred = at_once && fast_open != FastOpen::Off && info(&stream)?.is_connecting();
    Ok((stream, deferred))
}

impl Exchange<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        self.offer_early_data()?;
        loop {
            self.step()?;
            self.flush().await?;
            if self.is_over() {
                return Ok(());
            }
            if !self.wait().await? {
                return Err(self.ended_early());
            }
        }
    }

    /// Gives the request to the session as early data, before the ClientHello is written.
    fn offer_early_data(&mut self) -> Result<(), Failure> {
        let request = &self.plan.request;
        let Layer::Tls(session) = &mut self.transfer.layer else { return Ok(()) };
        if !self.plan.early_data || request.is_empty() {
            return Ok(());
        }
        if session.early_data_room() >= request.len() {
            stamp(&mut self.timeline.ready, now());
        }
        Ok(())
    }

    /// Lets happen what has become possible, short of writing.
    fn step(&mut self) -> Result<(), Failure> {
        let layer = &self.transfer.layer;
        if layer.may_send() {
            stamp(&mut self.timeline.ready, now());
        }
        if layer.is_tls() && !layer.is_handshaking() {
            stamp(&mut self.timeline.handshake_complete, now());
        }
        if self.timeline.ready.is_none() || self.plan.request.is_empty() {
            return Ok(());
        }
        match self.request {
            Request::Waiting => self.queue_request(),
            Request::Queued => self.queue_again_if_rejected(),
            Request::QueuedAgain => Ok(()),
        }
    }

    fn queue_request(&mut self) -> Result<(), Failure> {
        if !self.has_thought() {
            return Ok(());
        }
        let request = &self.plan.request;
        match &mut self.transfer.layer {
            Layer::Tls(session) if !session.may_send() => {
                // Ready by early data. If there is no room any more, it waits for the handshake.
                if session.early_data_room() >= request.len() {
                    session.send_early(request)?;
                    self.early_request = true;
                    self.request = Request::Queued;
                }
            }
            layer => {
                layer.send(request)?;
                self.request = Request::Queued;
            }
        }
        Ok(())
    }

    fn queue_again_if_rejected(&mut self) -> Result<(), Failure> {
        let layer = &mut self.transfer.layer;
        if self.early_request && is_rejected(layer) && layer.may_send() {
            layer.send(&self.plan.request)?;
            self.request = Request::QueuedAgain;
        }
        Ok(())
    }

    /// Whether the think time is over; the first call begins it.
    fn has_thought(&mut self) -> bool {
        if self.plan.think.is_zero() {
            return true;
        }
        let until = *self.think_until.get_or_insert_with(|| Instant::now() + self.plan.think);
        Instant::now() >= until
    }

    /// Writes what is queued; its steps get the time just before the call.
    async fn flush(&mut self) -> Result<(), Failure> {
        let is_first = self.transfer.writes == 0;
        let written = self.transfer.flush().await;
        if let Some(time) = self.transfer.connected {
            stamp(&mut self.timeline.connected, time);
        }
        let Some(time) = written? else { return Ok(()) };
        if is_first && self.transfer.layer.is_tls() {
            stamp(&mut self.timeline.hello_sent, time);
        }
        match self.request {
            Request::Waiting => {}
            Request::Queued => stamp(&mut self.timeline.request_sent, time),
            Request::QueuedAgain => stamp(&mut self.timeline.request_resent, time),
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let layer = &self.transfer.layer;
        let answered = self.plan.request.is_empty()
            || (self.timeline.request_sent.is_some()
                && self.response_len >= self.plan.response_len);
        answered && self.timeline.ready.is_some() && !layer.is_handshaking()
    }

    /// Waits for bytes, or for the end of the think time. `false` at the end of the stream.
    async fn wait(&mut self) -> Result<bool, Failure> {
        let thinking = self.think_until.filter(|_| self.timeline.request_sent.is_none());
        let during = if self.transfer.layer.is_handshaking() {
            "waiting for the handshake"
        } else {
            "waiting for the response"
        };
        let open = match thinking {
            Some(until) => tokio::select! {
                () = sleep_until(until) => return Ok(true),
                read = self.transfer.read(during) => self.or_alert(read)?,
            },
            None => {
                let read = self.transfer.read(during).await;
                self.or_alert(read)?
            }
        };
        self.take_data();
        Ok(open && (!self.transfer.layer.peer_closed() || self.is_over()))
    }

    /// After a TLS error, the alert that says so to the peer goes out.
    fn or_alert(&mut self, read: Result<bool, Failure>) -> Result<bool, Failure> {
        if matches!(read, Err(Failure::Tls(_))) {
            self.transfer.finish();
        }
        read
    }

    fn take_data(&mut self) {
        let data = &self.transfer.data;
        if !data.is_empty() {
            stamp(&mut self.timeline.first_response_byte, now());
            self.response_len += data.len();
            let room = KEPT_RESPONSE.saturating_sub(self.response.len());
            self.response.extend(data.iter().take(room));
        }
        if let Some(ticket) = self.transfer.layer.take_ticket() {
            self.tickets.push(ticket);
        }
    }

    fn ended_early(&self) -> Failure {
        if self.transfer.layer.is_handshaking() {
            Failure::Protocol("closed the connection during the handshake")
        } else {
            Failure::Protocol("closed the connection before the response was whole")
        }
    }

    /// Waits for a ticket if asked to, and closes in order. Nothing that happens here undoes what was
    /// measured, so errors only end it.
    async fn end(&mut self) {
        if let Some(patience) = self.plan.await_ticket {
            let deadline = Instant::now() + patience;
            while self.tickets.is_empty() && self.read_before(deadline).await {}
        }
        self.transfer.layer.close();
        self.timeline.closed = Some(now());
        self.transfer.finish();
        if !self.plan.linger.is_zero() {
            let deadline = Instant::now() + self.plan.linger;
            while self.transfer.discard(deadline).await {}
        }
    }

    async fn read_before(&mut self, deadline: Instant) -> bool {
        let read = tokio::time::timeout_at(deadline, self.transfer.read("closing")).await;
        if let Some(ticket) = self.transfer.layer.take_ticket() {
            self.tickets.push(ticket);
        }
        matches!(read, Ok(Ok(true)))
    }
}

fn is_rejected(layer: &Layer) -> bool {
    layer.facts().is_some_and(|facts| facts.early_data == tls::EarlyData::Rejected)
}
