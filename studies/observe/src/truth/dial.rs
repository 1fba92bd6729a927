//! One connection of a client.

use std::net::SocketAddr;
use std::time::Duration;

use conn::{Failure, Timeline};
use tls::Ticket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::scenario::{SERVER_NAME, Scenario};

/// How long any attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for a ticket.
const TICKET_PATIENCE: Duration = Duration::from_secs(2);

/// The client's means.
#[derive(Clone)]
pub(super) enum Means {
    Tcp(tls::Client),
    Quic(tls::quic::Client),
}

/// One connection to be made.
pub(super) struct Dial {
    pub scenario: Scenario,
    pub server: SocketAddr,
    pub means: Means,
    pub ticket: Option<Ticket>,
    /// How long to wait before it begins.
    pub after: Duration,
    /// Whether it is made for its ticket alone.
    pub priming: bool,
}

/// What the client knows of it.
#[derive(Debug)]
pub(super) struct Dialled {
    pub scenario: Scenario,
    /// Whom it reached out to.
    pub server: SocketAddr,
    /// Its own address; not known of what failed.
    pub local: Option<SocketAddr>,
    pub timeline: Timeline,
    /// What TLS says of itself.
    pub facts: Option<tls::Facts>,
    pub tickets: Vec<Ticket>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Dial {
    pub(super) async fn run(self) -> Dialled {
        tokio::time::sleep(self.after).await;
        let result = match &self.means {
            Means::Tcp(client) if self.scenario == Scenario::Reset => self.reset(client).await,
            Means::Tcp(client) => self.tcp(client).await,
            Means::Quic(client) => self.quic(client).await,
        };
        let (scenario, server) = (self.scenario, self.server);
        match result {
            Ok(outcome) => Dialled {
                scenario,
                server,
                local: Some(outcome.local),
                timeline: outcome.timeline,
                facts: outcome.facts,
                tickets: outcome.tickets,
                failure: None,
            },
            Err(failure) => Dialled {
                scenario,
                server,
                local: None,
                timeline: Timeline::default(),
                facts: None,
                tickets: Vec::new(),
                failure: Some(failure.to_string()),
            },
        }
    }

    async fn tcp(&self, client: &tls::Client) -> conn::Attempt {
        let plan = conn::tcp::ClientPlan {
            tls: Some((client, self.ticket.as_ref())),
            early_data: self.scenario.early_data() && !self.priming,
            think: self.scenario.think(),
            timeout: PATIENCE,
            await_ticket: self.priming.then_some(TICKET_PATIENCE),
            ..conn::tcp::ClientPlan::new(self.server)
        };
        conn::tcp::connect(plan).await
    }

    async fn quic(&self, client: &tls::quic::Client) -> conn::Attempt {
        let plan = conn::quic::ClientPlan {
            tls: (client, self.ticket.as_ref()),
            early_data: self.scenario.early_data() && !self.priming,
            timeout: PATIENCE,
            await_ticket: self.priming.then_some(TICKET_PATIENCE),
            linger: Duration::from_millis(100),
            ..conn::quic::ClientPlan::new(self.server, client, SERVER_NAME)
        };
        conn::quic::connect(plan).await
    }

    /// Sends a ClientHello, waits for the answer, and resets.
    async fn reset(&self, client: &tls::Client) -> conn::Attempt {
        let io = |error: std::io::Error| Failure::Environment {
            call: "a connection to be reset",
            errno: error.raw_os_error().unwrap_or(0),
            error: error.to_string(),
            hint: "",
        };
        let mut session = client.start(None)?;
        let mut hello = Vec::new();
        session.write_tls(&mut hello)?;
        let mut stream = tokio::net::TcpStream::connect(self.server).await.map_err(io)?;
        stream.write_all(&hello).await.map_err(io)?;
        let mut answer = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await;
        if !matches!(read, Ok(Ok(1..))) {
            return Err(Failure::Protocol("did not answer the ClientHello"));
        }
        // A close without lingering is a RST (RFC 9293 §3.10.4).
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).map_err(io)?;
        drop(stream);
        Err(Failure::Protocol("was reset on purpose"))
    }
}
