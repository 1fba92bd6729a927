//! One connection that only looks: a hello, the server's answer, the certificates.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tls::{Error, PeerError, Session, Witness};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::old_hello::{FirstMessage, first_message};
use super::report::OfferReport;
use super::speaker::Speaker;
use super::tried::{Answer, End, Negotiated, group_name};
use crate::Failure;
use crate::opening::{FirstBytes, Opened, Opening, open};

/// The first bytes of a server that are kept.
const KEPT: usize = 1024;
/// How long to wait for a verdict on the client's certificate, or its lack.
const AFTERWARDS: Duration = Duration::from_millis(500);
/// How long a server may take to speak first.
const GREETING: Duration = Duration::from_secs(1);

/// Outcome of one connection.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    /// The server's answer.
    pub answer: Answer,
    /// The server's certificates (DER), leaf first; known of some failed handshakes too.
    pub chain: Vec<Vec<u8>>,
    /// Details of a completed handshake.
    pub offer: Option<OfferReport>,
    /// Whether the server asked for a client certificate.
    pub asked: bool,
}

/// The way to a server: an address, and what is said there before TLS.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a> {
    /// The server's address, or its proxy's.
    pub address: SocketAddr,
    /// The dialogs before TLS.
    pub opening: Option<&'a Opening>,
}

/// Makes a handshake by `config`, for at most `patience`, and closes.
///
/// # Errors
/// The [`Failure`] of the TCP connection, of the proxy or of STARTTLS. Whatever happens later is an [`Answer`].
pub(super) async fn visit(
    way: Way<'_>,
    config: tls::ClientConfig,
    patience: Duration,
) -> Result<Visit, Failure> {
    let Opened { stream, rest, first: check } = open(way.address, way.opening, patience).await?;
    let witness = Witness::default();
    let config = tls::ClientConfig { witness: Some(witness.clone()), ..config };
    let session = match tls::Client::new(&config).and_then(|client| client.start(None)) {
        Ok(session) => session,
        Err(error) => return Ok(Visit::untried(error.to_string())),
    };
    let port = way.address.port();
    let first = Vec::new();
    let mut look =
        Look { stream, session, witness, port, first, check, injected: None, ended: None };
    look.ended = match timeout(patience, look.shake_hands(&rest)).await {
        Ok(ended) => Some(ended),
        // The time ended while nothing but a refusal could have come.
        Err(_) if !look.session.is_handshaking() => Some(Ended::Done),
        Err(_) => None,
    };
    if let Some(injected) = look.injected.take() {
        return Err(injected);
    }
    Ok(look.finish().await)
}

impl Visit {
    fn untried(detail: String) -> Self {
        Visit { answer: Answer::Untried(detail), chain: Vec::new(), offer: None, asked: false }
    }
}

/// How the handshake went.
enum Ended {
    Done,
    AlertAfterwards(u8),
    EndAfterwards(End),
    End(End),
    Failed(Error),
    Untried(String),
}

struct Look {
    stream: TcpStream,
    session: Box<dyn Session>,
    witness: Witness,
    port: u16,
    /// The first bytes that came.
    first: Vec<u8>,
    /// The check of what comes behind STARTTLS.
    check: FirstBytes,
    /// Plaintext that came there.
    injected: Option<Failure>,
    ended: Option<Ended>,
}

impl Look {
    /// Makes the handshake; `rest` came with a proxy's answer.
    async fn shake_hands(&mut self, rest: &[u8]) -> Ended {
        if let Err(ended) = self.take(rest).await {
            return ended;
        }
        loop {
            if let Err(error) = self.send().await {
                return error;
            }
            if !self.session.is_handshaking() {
                break;
            }
            if let Err(ended) = self.read().await {
                return ended;
            }
        }
        if self.asked() {
            return self.listen_afterwards().await;
        }
        Ended::Done
    }

    /// A server of TLS 1.3 refuses a client without a certificate only after the client's Finished.
    async fn listen_afterwards(&mut self) -> Ended {
        let answered = timeout(AFTERWARDS, async {
            // A server hands out tickets when it is content.
            while self.session.take_ticket().is_none() {
                self.read().await?;
            }
            Ok(())
        });
        match answered.await {
            Ok(Err(Ended::Failed(Error::Peer(PeerError::Alert { code, .. })))) => {
                Ended::AlertAfterwards(code)
            }
            Ok(Err(Ended::End(how))) => Ended::EndAfterwards(how),
            _ => Ended::Done,
        }
    }

    async fn send(&mut self) -> Result<(), Ended> {
        let mut flight = Vec::new();
        let written = self.session.write_tls(&mut flight);
        written.map_err(|error| Ended::Untried(error.to_string()))?;
        self.stream.write_all(&flight).await.map_err(|error| ended(&error))
    }

    async fn read(&mut self) -> Result<(), Ended> {
        let mut buffer = vec![0; 16 * 1024];
        let count = self.stream.read(&mut buffer).await.map_err(|error| ended(&error))?;
        if count == 0 {
            return Err(Ended::End(End::Closed));
        }
        self.take(buffer.get(..count).unwrap_or_default()).await
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        if let Err(injected) = self.check.check(bytes) {
            let said = injected.to_string();
            self.injected = Some(injected);
            return Err(Ended::Untried(said));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let room = KEPT.saturating_sub(self.first.len());
        self.first.extend(bytes.iter().take(room));
        let read = self.session.read_tls(bytes);
        if read.is_err() {
            // The alert that says why.
            let _ = self.send().await;
        }
        read.map_err(Ended::Failed)
    }

    fn asked(&self) -> bool {
        self.witness.notes().asked_for_certificate
    }

    async fn finish(mut self) -> Visit {
        self.session.close();
        let _ = timeout(AFTERWARDS, self.send()).await;
        let _ = self.stream.shutdown().await;
        let notes = self.witness.notes();
        let asked = notes.asked_for_certificate;
        let answer = self.answer(asked, &notes.chain);
        let offer = answer.is_completed().then(|| self.report());
        Visit { answer, chain: notes.chain, offer, asked }
    }

    fn answer(&self, asked: bool, chain: &[Vec<u8>]) -> Answer {
        let spoke = Speaker::of(&self.first, self.port);
        let negotiated = self.session.server_choice().map(|choice| Negotiated {
            key: key_of(chain),
            chain_bytes: chain.iter().map(Vec::len).sum(),
            ..Negotiated::of(choice)
        });
        let ended = |how| match spoke {
            Some(speaker) => Answer::Spoke(speaker),
            None => Answer::Ended { how, after_tls: !self.first.is_empty(), asked },
        };
        match &self.ended {
            None => ended(End::TimedOut),
            Some(Ended::Done) => match negotiated {
                Some(negotiated) => Answer::Completed(Some(negotiated)),
                None => Answer::Broken("a handshake without a ServerHello".to_owned()),
            },
            Some(Ended::AlertAfterwards(code)) => Answer::Alert { code: *code, asked: true },
            Some(Ended::EndAfterwards(how)) => {
                Answer::Ended { how: *how, after_tls: true, asked: true }
            }
            Some(Ended::End(how)) => ended(*how),
            Some(Ended::Untried(detail)) => Answer::Untried(detail.clone()),
            Some(Ended::Failed(error)) => failed(error, spoke, asked),
        }
    }

    fn report(&self) -> OfferReport {
        let facts = self.session.facts();
        let choice = self.session.server_choice();
        OfferReport {
            version: choice.map_or_else(String::new, |it| it.version.to_string()),
            cipher_suite: choice.map_or_else(String::new, |it| it.cipher_suite.to_string()),
            group: choice.and_then(|it| it.group).map(group_name),
            hello_retry_request: facts.hello_retry_request,
            alpn: facts.alpn.map(|alpn| String::from_utf8_lossy(&alpn).into_owned()),
            client_hello_len: facts.client_hello_len,
        }
    }
}

/// The leaf's key for people.
fn key_of(chain: &[Vec<u8>]) -> Option<String> {
    let chain = tls::chain::Chain::from_der(chain.get(..1)?).ok()?;
    chain.certificates().first().map(|leaf| leaf.key.clone())
}

fn failed(error: &Error, spoke: Option<Speaker>, asked: bool) -> Answer {
    match (error, spoke) {
        (Error::Peer(PeerError::Alert { code, .. }), _) => Answer::Alert { code: *code, asked },
        (Error::Peer(PeerError::LongMessage), _) => Answer::LongMessage,
        (_, Some(speaker)) => Answer::Spoke(speaker),
        (Error::Caller(_) | Error::NoRoots { .. }, None) => Answer::Untried(error.to_string()),
        (other, None) => Answer::Broken(other.to_string()),
    }
}

fn ended(error: &io::Error) -> Ended {
    match Failure::from_io("recv or send", "looking", error) {
        Failure::Reset { .. } => Ended::End(End::Reset),
        Failure::Refused => Ended::End(End::Refused),
        other => Ended::Untried(other.to_string()),
    }
}

/// Sends the old hello, and reads the first message.
///
/// # Errors
/// As [`visit`].
pub(super) async fn visit_old(
    way: Way<'_>,
    hello: &[u8],
    patience: Duration,
) -> Result<Visit, Failure> {
    let Opened { mut stream, rest: mut first, .. } =
        open(way.address, way.opening, patience).await?;
    let exchange = async {
        stream.write_all(hello).await?;
        let mut buffer = vec![0; 4096];
        while first_message(&first).is_none() && first.len() < 4 * KEPT {
            match stream.read(&mut buffer).await? {
                0 => break,
                count => first.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
        Ok(())
    };
    let ending = match timeout(patience, exchange).await {
        Ok(Ok(())) => Ended::End(End::Closed),
        Ok(Err(error)) => ended(&error),
        Err(_) => Ended::End(End::TimedOut),
    };
    let answer = match (first_message(&first), Speaker::of(&first, way.address.port()), ending) {
        (Some(FirstMessage::Chose(choice)), ..) => Answer::Chose(Negotiated::of(choice)),
        (Some(FirstMessage::Alert(code)), ..) => Answer::Alert { code, asked: false },
        (None, Some(speaker), _) => Answer::Spoke(speaker),
        (None, None, Ended::End(how)) => {
            Answer::Ended { how, after_tls: !first.is_empty(), asked: false }
        }
        (None, None, Ended::Untried(detail)) => Answer::Untried(detail),
        (None, None, _) => Answer::Untried("no answer".to_owned()),
    };
    Ok(Visit { answer, chain: Vec::new(), offer: None, asked: false })
}

/// Listens for a greeting, then asks in plain HTTP (`HEAD /`); `None` if neither brought a byte.
pub(super) async fn listen(address: SocketAddr, host: &str, patience: Duration) -> Option<Speaker> {
    let patience = patience.min(GREETING);
    let mut stream = open(address, None, patience).await.ok()?.stream;
    let mut buffer = vec![0; KEPT];
    let mut count = match timeout(patience, stream.read(&mut buffer)).await {
        Ok(read) => read.ok()?,
        Err(_) => 0,
    };
    if count == 0 {
        count = ask(&mut stream, host, &mut buffer, patience).await?;
    }
    Speaker::of(buffer.get(..count)?, address.port())
}

async fn ask(
    stream: &mut TcpStream,
    host: &str,
    buffer: &mut [u8],
    patience: Duration,
) -> Option<usize> {
    let request = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let exchange = async {
        stream.write_all(request.as_bytes()).await.ok()?;
        stream.read(buffer).await.ok()
    };
    timeout(patience, exchange).await.ok()?
}
