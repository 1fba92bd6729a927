//! Boxes on the way that do not tolerate a client's hello: the client comes again with less, to where no box is.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use conn::Failure;
use lab::Node;
use record::Sample;
use serde::Serialize;
use testbed::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracker::{Class, Connection};

use super::batch::Ends;
use super::sample::{VISIT, label, value};
use super::scenario::Scenario;
use crate::digest::{Fate, Less};

/// How long a client waits for an answer to its first hello.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

/// What a box does not tolerate, and what it does then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Intolerance {
    /// What the client's second hello has less of.
    pub less: Less,
    /// What becomes of the first one.
    pub fate: Fate,
}

/// A client's first hello, and the box that it meets.
pub(super) struct FirstHello {
    pub server: SocketAddr,
    pub client: tls::Client,
    pub fate: Fate,
}

impl FirstHello {
    /// Sends it and waits for what becomes of it. The ends of its connection.
    pub(super) async fn send(&self) -> Result<Ends, Failure> {
        let mut hello = Vec::new();
        self.client.start(None)?.write_tls(&mut hello)?;
        let mut stream = TcpStream::connect(self.server).await.map_err(failed)?;
        let local = stream.local_addr().map_err(failed)?;
        stream.write_all(&hello).await.map_err(failed)?;
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 64])).await;
        match (read, self.fate) {
            (Ok(Err(_)), Fate::Reset) | (Err(_), Fate::Silence) => Ok((local, self.server.port())),
            _ => Err(Failure::Protocol("did not do to a hello what the box does")),
        }
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::Environment {
        call: "a connection that meets a box",
        errno: error.raw_os_error().unwrap_or(0),
        error: error.to_string(),
    }
}

/// Sets up a box on the servers' node, until that ends. Its port.
pub(super) fn set_up(server: &Node, fate: Fate) -> Result<u16, Error> {
    let any = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let bound = server.spawn(move || async move {
        let listener = TcpListener::bind(any).await?;
        let port = listener.local_addr()?.port();
        tokio::task::spawn_local(stand_in_the_way(listener, fate));
        io::Result::Ok(port)
    });
    Ok(bound.join()?.map_err(failed)?)
}

async fn stand_in_the_way(listener: TcpListener, fate: Fate) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::task::spawn_local(meet(stream, fate));
    }
}

/// Reads what comes; resets the connection, or says nothing until the client has gone.
async fn meet(mut stream: TcpStream, fate: Fate) {
    let mut bytes = [0; 4096];
    while let Ok(1..) = stream.read(&mut bytes).await {
        if fate == Fate::Reset {
            // A close without lingering is a RST (RFC 9293 §3.10.4).
            let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            return;
        }
    }
}

/// Puts what the first hello cost into the sample of the connection that came of the second one: what is wrong,
/// if it is not as the box should have it.
pub(super) fn note(
    sample: &mut Sample,
    first: Option<&Connection>,
    second: &Connection,
) -> Option<String> {
    let Some(first) = first else {
        return Some("its first hello is not in the capture".to_owned());
    };
    let hello = |own: &Connection| own.tls.as_ref().and_then(|tls| tls.client_hello);
    let answered = first.tls.as_ref().is_some_and(|tls| tls.server_hello.is_some());
    if answered || first.class() != Some(Class::Failed) {
        return Some("its first hello was answered".to_owned());
    }
    let lost = hello(second)?.checked_since(hello(first)?)?;
    sample.values.insert(value::FALLBACK.to_owned(), lost.as_secs_f64() * 1e3);
    None
}

/// What it cost clients to come again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FallbackCost {
    /// The population of clients.
    pub population: String,
    /// What they did, and what the box did to it.
    pub visit: String,
    /// Fallbacks that the medians are of.
    pub count: usize,
    /// Median from the first hello to the second, in ms.
    pub lost_ms: f64,
    /// The same in round-trip times of the link.
    pub round_trips: f64,
}

/// What fallbacks cost, by population and box.
pub(super) fn costs(samples: &[&Sample]) -> Vec<FallbackCost> {
    let mut rows: BTreeMap<(&str, Scenario), Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples
        .iter()
        .filter(|own| own.labels.get(label::STATE).is_some_and(|state| state == label::RECORDED))
    {
        let visit = sample.point.get(VISIT).and_then(|visit| visit.parse::<Scenario>().ok());
        let value = |name: &str| sample.values.get(name).copied();
        let both = value(value::FALLBACK).zip(value(value::KNOWN_RTT).filter(|rtt| *rtt > 0.0));
        let population = sample.point.get("population").map_or("", String::as_str);
        if let (Some(visit), Some((lost, rtt))) = (visit, both) {
            rows.entry((population, visit)).or_default().push((lost, lost / rtt));
        }
    }
    let row = |((population, visit), all): ((&str, Scenario), Vec<(f64, f64)>)| {
        let (lost, trips): (Vec<f64>, Vec<f64>) = all.iter().copied().unzip();
        Some(FallbackCost {
            population: population.to_owned(),
            visit: visit.to_string(),
            count: all.len(),
            lost_ms: stats::median(&lost)?,
            round_trips: stats::median(&trips)?,
        })
    };
    rows.into_iter().filter_map(row).collect()
}
