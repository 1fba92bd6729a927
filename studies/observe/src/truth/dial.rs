//! One connection of a client.

use std::net::SocketAddr;
use std::time::Duration;

use conn::{ClientPlan, ClientTransport, Failure, Timeline};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::batch::Ends;
use super::boxes::FirstHello;
use super::scenario::Scenario;

/// How long the server may take to answer the ClientHello of a connection that is reset.
const PATIENCE: Duration = Duration::from_secs(10);

/// One connection to be made.
pub(super) struct Dial {
    pub scenario: Scenario,
    pub plan: ClientPlan,
    /// The hello that a box takes, before it.
    pub first: Option<FirstHello>,
    /// How long to wait before it begins: from the end of the one before it, if there is one.
    pub after: Duration,
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
    /// The ends of the connection before it that met a box.
    pub first: Option<Ends>,
    /// What TLS says of itself.
    pub facts: Option<tls::Facts>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Dial {
    /// One client's connections, one after the other.
    pub(super) async fn series(dials: Vec<Dial>) -> Vec<Dialled> {
        let mut dialled = Vec::with_capacity(dials.len());
        for dial in dials {
            dialled.push(dial.run().await);
        }
        dialled
    }

    /// Meets the box, if there is one, and connects: the ends of the one and the outcome of the other.
    async fn connect(self) -> (Option<Ends>, conn::Attempt) {
        let mut met = None;
        if let Some(first) = &self.first {
            match first.send().await {
                Ok(ends) => met = Some(ends),
                Err(failure) => return (None, Err(failure)),
            }
        }
        let server = self.plan.server;
        let attempt = match &self.plan.transport {
            ClientTransport::Tcp { tls: Some(client), .. } if self.scenario == Scenario::Reset => {
                reset(server, client).await
            }
            _ => conn::connect(self.plan).await,
        };
        (met, attempt)
    }

    async fn run(self) -> Dialled {
        tokio::time::sleep(self.after).await;
        let (scenario, server) = (self.scenario, self.plan.server);
        let (first, result) = self.connect().await;
        match result {
            Ok(outcome) => Dialled {
                scenario,
                server,
                local: Some(outcome.local),
                first,
                timeline: outcome.timeline,
                facts: outcome.facts,
                failure: None,
            },
            Err(failure) => Dialled {
                scenario,
                server,
                local: None,
                first,
                timeline: Timeline::default(),
                facts: None,
                failure: Some(failure.to_string()),
            },
        }
    }
}

/// Sends a ClientHello, waits for the answer, and resets.
async fn reset(server: SocketAddr, client: &tls::Client) -> conn::Attempt {
    let io = |error: std::io::Error| Failure::Environment {
        call: "a connection to be reset",
        errno: error.raw_os_error().unwrap_or(0),
        error: error.to_string(),
    };
    let mut session = client.start(None)?;
    let mut hello = Vec::new();
    session.write_tls(&mut hello)?;
    let mut stream = tokio::net::TcpStream::connect(server).await.map_err(io)?;
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
