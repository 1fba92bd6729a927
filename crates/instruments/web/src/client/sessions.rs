//! Connections whose TLS is by sessions: over our TCP, and over the kernel's with early data or OpenSSL.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use conn::now;
use sslmtcp::{Embedding, Report};

use super::plan::ConnectPlan;
use super::state::Facts;
use crate::gate::Gate;
use crate::session::SessionStream;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::user_tcp::{Connecting, UserStream};
use crate::{Failure, Protocol, UserTcp};

/// Most TLS clients kept; with more, all are made again.
const MOST_CLIENTS: usize = 1024;

/// TLS clients by what differs between a browser's connections. A ticket is resumed only by the client that
/// took it, so they are kept.
#[derive(Clone)]
pub(super) struct Clients {
    config: Arc<tls::ClientConfig>,
    made: Arc<Mutex<Made>>,
}

/// By host, protocol, and whether early data may be sent.
type Made = HashMap<(String, Protocol, bool), tls::Client>;

impl Clients {
    pub(super) fn new(config: tls::ClientConfig) -> Clients {
        Clients { config: Arc::new(config), made: Arc::default() }
    }

    fn client(&self, host: &str, protocol: Protocol, early: bool) -> Result<tls::Client, Failure> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (host.to_owned(), protocol, early);
        if let Some(client) = made.get(&key) {
            return Ok(client.clone());
        }
        if made.len() >= MOST_CLIENTS {
            made.clear();
        }
        let config = tls::ClientConfig {
            server_name: host.to_owned(),
            alpn: vec![protocol.alpn().to_vec()],
            early_data: early,
            ..(*self.config).clone()
        };
        let client = tls::Client::new(&config).map_err(conn::Failure::from)?;
        made.insert(key, client.clone());
        Ok(client)
    }

    /// Connects. With early data the connection is there before its SYN has left, which takes the first
    /// request with it; what is wrong then fails the exchanges.
    pub(super) async fn connect(
        &self,
        plan: &ConnectPlan,
        user: &UserTcp,
    ) -> Result<(Socket, Facts, Option<Gate>), Failure> {
        let protocol = plan.protocols.first().copied().unwrap_or(Protocol::Http1);
        let early = user.embedding == Embedding::ZeroRtt;
        let tickets = plan.tickets.as_ref().map(|tickets| tickets.of(&plan.name));
        let connecting = Connecting {
            user: user.clone(),
            server: plan.address,
            tls: self.client(&plan.name, protocol, early)?,
            ticket: tickets.as_ref().and_then(|tickets| tickets.take()),
            timeout: plan.timeouts.connect,
        };
        if connecting.has_early_data() {
            let gate = Gate::new();
            let stream = UserStream::gathering(connecting, tickets, gate.clone());
            let socket = Socket::of_user_tcp(stream);
            let facts = facts(&socket, protocol, None);
            return Ok((socket, facts, Some(gate)));
        }
        let stream = connecting.connect(Vec::new()).await.map_err(conn::user_tcp::failure)?;
        let report = stream.report();
        check_alpn(&report.facts, protocol)?;
        let socket = Socket::of_user_tcp(UserStream::open(stream, tickets));
        let facts = facts(&socket, protocol, Some(report));
        Ok((socket, facts, None))
    }

    /// Whether a session makes the handshake over the kernel's TCP: tokio-rustls lacks what is asked for.
    pub(super) fn secures(&self, plan: &ConnectPlan) -> bool {
        plan.early_data || self.config.library != tls::Library::Rustls
    }

    /// The handshake over the kernel's TCP. With early data the stream is there before the ClientHello has left.
    pub(super) async fn secure(
        &self,
        socket: Socket,
        plan: &ConnectPlan,
        facts: &mut Facts,
    ) -> Result<(Stream, Option<Gate>), Failure> {
        let [protocol] = plan.protocols.as_slice() else {
            return Err(Failure::Plan("a TLS session carries one protocol".to_owned()));
        };
        let tickets = plan.tickets.as_ref().map(|tickets| tickets.of(&plan.name));
        let ticket = tickets.as_ref().and_then(|tickets| tickets.take());
        let client = self.client(&plan.name, *protocol, plan.early_data)?;
        let session = client.start(ticket.as_ref()).map_err(conn::Failure::from)?;
        facts.protocol = *protocol;
        facts.alpn = Some(String::from_utf8_lossy(protocol.alpn()).into_owned());
        if session.early_data_room() > 0 {
            let gate = Gate::new();
            facts.resumed = Some(true);
            let alpn = protocol.alpn();
            let stream =
                SessionStream::with_early_data(socket, session, tickets, gate.clone(), alpn);
            return Ok((Stream::Session(Box::new(stream)), Some(gate)));
        }
        let stream = SessionStream::connect(socket, session, tickets).await;
        let stream = stream
            .map_err(|error| Failure::from_io("connect", "making the TLS handshake", &error))?;
        facts.secured = Some(now());
        let session = stream.facts();
        check_alpn(&session, *protocol)?;
        facts.resumed = Some(session.resumed);
        facts.tls = Some(session);
        Ok((Stream::Session(Box::new(stream)), None))
    }
}

/// The server has to choose what was offered.
fn check_alpn(session: &tls::Facts, protocol: Protocol) -> Result<(), Failure> {
    let alpn = session.alpn.as_deref();
    if Protocol::of_alpn(alpn) == Some(protocol) {
        return Ok(());
    }
    let name = alpn.map(|name| String::from_utf8_lossy(name).into_owned());
    Err(Failure::Alpn(name.unwrap_or("none".to_owned())))
}

/// `report`: of a connection that is there; with early data nothing is known yet but that requests may be
/// sent.
fn facts(socket: &Socket, protocol: Protocol, report: Option<Report>) -> Facts {
    let alpn = Some(String::from_utf8_lossy(protocol.alpn()).into_owned());
    let at = now();
    let steps = report.as_ref().map(|report| report.timeline).unwrap_or_default();
    Facts {
        local: socket.local(),
        peer: socket.peer(),
        protocol,
        started: steps.started.unwrap_or(at),
        connected: steps.connected,
        secured: steps.ready,
        ready: at,
        resumed: Some(report.as_ref().is_none_or(|report| report.facts.resumed)),
        alpn,
        tls: report.map(|report| report.facts),
    }
}
