//! A site with our stacks at both ends, servers and clients of TLS on them and on the kernel's TCP.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sslmtcp::{
    ConnectOptions, Destinations, Embedding, ListenOptions, Report, SslmTcpListener, SslmTcpStream,
};
use tcpio::Stack;
use tls::{Session, Ticket};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::common::{REQUEST, RESPONSE};
use lab_test::TestResult;
use lab_test::net::peers::{Family, PORT, limited, open_on, our_addresses, stack_options, teach};
use lab_test::net::{Pair, WAIT, pair};

/// The round trip time of every site: long beside what a busy machine adds.
pub const RTT: Duration = Duration::from_millis(80);

/// Our stacks on both nodes; each node's kernel knows the way to the other's stack too.
pub struct Site {
    pub pair: Pair,
    pub client: Stack,
    pub server: Stack,
}

impl Site {
    pub fn new(rtt: Duration) -> TestResult<Site> {
        let pair = pair(&linkmodel::Path::symmetric(rtt.into()))?;
        teach(&pair.client, &pair.server)?;
        teach(&pair.server, &pair.client)?;
        let config = tcp::Config::default;
        let client = open_on(&pair.client, stack_options(&pair.client, &pair.server, config())?)?;
        let server = open_on(&pair.server, stack_options(&pair.server, &pair.client, config())?)?;
        Ok(Site { pair, client, server })
    }

    /// Our server's address.
    pub fn address(&self, family: Family, port: u16) -> TestResult<SocketAddr> {
        let (v4, v6) = our_addresses(&self.pair.server)?;
        let ip: IpAddr = if family == Family::V4 { v4.into() } else { v6.into() };
        Ok((ip, port).into())
    }

    /// The address of the server node's kernel.
    pub fn kernel_address(&self, family: Family) -> TestResult<IpAddr> {
        Ok(match family {
            Family::V4 => self.pair.server.addr4()?.into(),
            Family::V6 => self.pair.server.addr6()?.into(),
        })
    }

    pub fn listen(
        &self,
        to: SocketAddr,
        server: tls::Server,
        options: ListenOptions,
    ) -> TestResult<SslmTcpListener> {
        let stack = self.server.clone();
        let listening = self
            .pair
            .server
            .spawn(move || async move { SslmTcpListener::bind(&stack, to, server, options) });
        Ok(listening.join_within(WAIT)??)
    }

    /// Serves at [`PORT`] of both families until the scenario ends.
    pub fn serve(&self, family: Family, server: &tls::Server, port: u16) -> TestResult<SocketAddr> {
        let to = self.address(family, port)?;
        let listener = self.listen(to, server.clone(), ListenOptions::default())?;
        drop(self.pair.server.spawn(move || async move {
            while let Ok(stream) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        }));
        Ok(to)
    }

    /// One exchange by our client, as told by what it was asked for.
    pub fn ask(&self, to: SocketAddr, client: &tls::Client, how: Ask) -> TestResult<Asked> {
        let (stack, client) = (self.client.clone(), client.clone());
        let asked = self.pair.client.spawn(move || async move {
            limited("the exchange", ask(&stack, to, &client, how)).await?
        });
        asked.join_within(WAIT)?
    }
}

/// How our client asks.
#[derive(Clone)]
pub struct Ask {
    pub embedding: Embedding,
    pub ticket: Option<Ticket>,
    pub first_request: bool,
    pub destinations: Destinations,
}

impl Ask {
    pub fn new(embedding: Embedding) -> Ask {
        Ask { embedding, ticket: None, first_request: false, destinations: Destinations::new() }
    }

    pub fn with(self, ticket: Ticket) -> Ask {
        Ask { ticket: Some(ticket), ..self }
    }
}

/// What came of it.
pub struct Asked {
    /// When the connection was ready.
    pub early: Report,
    /// When the answer was there.
    pub report: Report,
    pub ticket: Option<Ticket>,
}

impl Asked {
    /// Whole round trips until ready, and until the answer's first byte.
    pub fn round_trips(&self, rtt: Duration) -> (u128, u128) {
        let timeline = &self.report.timeline;
        let whole = |step| timeline.since_start(step).expect("a step").as_nanos() / rtt.as_nanos();
        (whole(timeline.ready), whole(timeline.first_byte))
    }
}

async fn ask(stack: &Stack, to: SocketAddr, client: &tls::Client, how: Ask) -> TestResult<Asked> {
    let zero_rtt = how.embedding == Embedding::ZeroRtt;
    let options = ConnectOptions {
        embedding: how.embedding,
        ticket: how.ticket.as_ref(),
        early_data: if zero_rtt { REQUEST.to_vec() } else { Vec::new() },
        first_request: how.first_request.then(|| REQUEST.to_vec()),
        destinations: how.destinations,
        ..ConnectOptions::default()
    };
    let mut stream = SslmTcpStream::connect_ssl(stack, to, client, options).await?;
    let early = stream.report();
    if !zero_rtt && !how.first_request {
        stream.write_all(REQUEST).await?;
    }
    let mut got = vec![0; RESPONSE.len()];
    stream.read_exact(&mut got).await?;
    assert_eq!(got, RESPONSE);
    stream.shutdown().await?;
    got.clear();
    stream.read_to_end(&mut got).await?;
    assert!(got.is_empty(), "more than the answer");
    Ok(Asked { early, report: stream.report(), ticket: stream.take_ticket() })
}

/// Reads a request, writes the answer, and ends in order.
pub async fn answer(mut stream: SslmTcpStream) -> TestResult<Report> {
    let mut got = vec![0; REQUEST.len()];
    stream.read_exact(&mut got).await?;
    assert_eq!(got, REQUEST);
    stream.write_all(RESPONSE).await?;
    stream.shutdown().await?;
    got.clear();
    stream.read_to_end(&mut got).await?;
    assert!(got.is_empty(), "more than a request");
    Ok(stream.report())
}

/// The same exchange by a TLS session over any stream.
pub async fn exchange<S>(
    mut stream: S,
    mut session: Box<dyn Session>,
    send: &[u8],
    wanted: &[u8],
) -> TestResult
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !send.is_empty() {
        session.send(send)?;
    }
    let mut got = Vec::new();
    let mut chunk = vec![0; 1 << 14];
    let mut out = Vec::new();
    while got.len() < wanted.len() {
        session.write_tls(&mut out)?;
        stream.write_all(&out).await?;
        out.clear();
        let len = stream.read(&mut chunk).await?;
        if len == 0 {
            return Err("the stream ended before the data were whole".into());
        }
        let read = session.read_tls(&chunk[..len]);
        if read.is_err() {
            session.write_tls(&mut out)?;
            stream.write_all(&out).await?;
        }
        read?;
        session.receive(&mut got)?;
    }
    assert_eq!(got, wanted);
    if send.is_empty() {
        session.send(RESPONSE)?;
    }
    session.close();
    session.write_tls(&mut out)?;
    stream.write_all(&out).await?;
    stream.shutdown().await?;
    while stream.read(&mut chunk).await? > 0 {}
    Ok(())
}

/// The port of each case, so that they do not meet.
pub fn port(case: usize) -> u16 {
    PORT + u16::try_from(case).expect("a few cases")
}
