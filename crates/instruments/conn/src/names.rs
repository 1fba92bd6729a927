//! A name's addresses and its HTTPS record (RFC 9460), asked for at once as browsers do, each answer timed; what does not
//! fit a datagram is asked for again over TCP (RFC 7766), and its time has both. A client that wants to hide a name (ECH) waits for the record before it connects; one that does not, connects at the first address.

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use fault::{Explain, Fault};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::svcb::{SVCB, SvcParamValue};
use hickory_proto::rr::{Name, RData, RecordType};
use serde::Serialize;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use wire::tls::EchConfigList;

use crate::now;

/// The port of DNS.
const PORT: u16 = 53;
/// The longest answer that may come: what most resolvers send without fragments (DNS flag day 2020).
const LONGEST: u16 = 1232;
/// Until a question without an answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// What is asked.
const QUESTIONS: [RecordType; 3] = [RecordType::A, RecordType::AAAA, RecordType::HTTPS];

/// What a name server said, and when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Names {
    /// The name server.
    pub server: SocketAddr,
    /// The name's addresses.
    pub addresses: Vec<IpAddr>,
    /// Until the answer for A came, milliseconds after all three questions went out; null if none came.
    pub a_ms: Option<f64>,
    /// The same for AAAA.
    pub aaaa_ms: Option<f64>,
    /// The same for HTTPS.
    pub https_ms: Option<f64>,
    /// Whether the answer for HTTPS was too long for a datagram, and was asked for again over TCP.
    pub truncated: bool,
    /// The name's HTTPS records, the one to be tried first at the front.
    pub https: Vec<HttpsRecord>,
}

/// An HTTPS record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpsRecord {
    /// 0: the name is another's alias, whose record is to be asked for next; else the lowest first.
    pub priority: u16,
    /// The name that serves, `.` for the name itself.
    pub target: String,
    /// What it says of ECH.
    pub ech: Option<EchRecord>,
}

/// The `ech` of an HTTPS record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EchRecord {
    /// The ECHConfigList as in the record.
    #[serde(skip)]
    pub list: Vec<u8>,
    /// Bytes of `list`.
    pub bytes: usize,
    /// The names that the hellos show outside.
    pub public_names: Vec<String>,
}

impl Names {
    /// The first answer with an address, milliseconds: where a client without ECH goes on.
    #[must_use]
    pub fn address_ms(&self) -> Option<f64> {
        let of = |ms: Option<f64>, is_there: bool| ms.filter(|_| is_there);
        let a = of(self.a_ms, self.addresses.iter().any(IpAddr::is_ipv4));
        let aaaa = of(self.aaaa_ms, self.addresses.iter().any(IpAddr::is_ipv6));
        match (a, aaaa) {
            (Some(a), Some(aaaa)) => Some(a.min(aaaa)),
            (one, other) => one.or(other),
        }
    }

    /// How much longer a client waits that connects with the HTTPS record only, milliseconds, at least 0; `None` if an
    /// answer is missing.
    #[must_use]
    pub fn wait_ms(&self) -> Option<f64> {
        Some((self.https_ms? - self.address_ms()?).max(0.0))
    }

    /// The record's ECH, of the record that is tried first.
    #[must_use]
    pub fn ech(&self) -> Option<&EchRecord> {
        self.https.iter().find_map(|record| record.ech.as_ref())
    }
}

/// Why a name server said nothing of use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamesError {
    /// The system names none.
    #[error("no name server is known")]
    NoServer,
    /// It is no name of DNS.
    #[error("`{0}` is not a name of DNS")]
    NoName(String),
    /// There is no socket.
    #[error("asking the name server {server}: {error}")]
    Socket {
        /// The name server.
        server: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// No answer came in time.
    #[error("the name server {server} gave no answer within {after:?}")]
    Silent {
        /// The name server.
        server: SocketAddr,
        /// After how long.
        after: Duration,
    },
    /// It refused, or does not know the name.
    #[error("the name server {server} says of `{host}`: {says}")]
    Refused {
        /// The name server.
        server: SocketAddr,
        /// The name that was asked for.
        host: String,
        /// The response code, in words.
        says: String,
    },
    /// What it sent cannot be read.
    #[error("the answer of the name server {server} for {question} cannot be read: {problem}")]
    Garbled {
        /// The name server.
        server: SocketAddr,
        /// What it was asked for.
        question: &'static str,
        /// What is wrong.
        problem: String,
    },
}

impl Explain for NamesError {
    fn fault(&self) -> Fault {
        match self {
            NamesError::NoName(_) => Fault::Caller,
            NamesError::NoServer | NamesError::Socket { .. } => Fault::Machine,
            NamesError::Silent { .. } | NamesError::Refused { .. } | NamesError::Garbled { .. } => {
                Fault::Peer
            }
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            NamesError::NoServer => Some("name one".into()),
            NamesError::Silent { .. } => Some("ask another name server".into()),
            _ => None,
        }
    }
}

/// The system's first name server: the `nameserver` of resolv.conf(5).
///
/// # Errors
/// [`NamesError::NoServer`].
pub fn system_server() -> Result<SocketAddr, NamesError> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    server_in(&text).ok_or(NamesError::NoServer)
}

fn server_in(text: &str) -> Option<SocketAddr> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| match (words.next(), words.next()) {
        // An address with a zone is not one for a socket that is not told the interface.
        (Some("nameserver"), Some(address)) => Some((address.parse::<IpAddr>().ok()?, PORT).into()),
        _ => None,
    })
}

/// Asks a name server for A, AAAA and HTTPS at once. Must be called within a tokio runtime.
///
/// # Errors
/// [`NamesError`], if no answer has an address or the HTTPS record cannot be read.
pub async fn ask(server: SocketAddr, host: &str, patience: Duration) -> Result<Names, NamesError> {
    let mut name = Name::from_ascii(host).map_err(|_| NamesError::NoName(host.to_owned()))?;
    name.set_fqdn(true);
    let io = |error| NamesError::Socket { server, error };
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await.map_err(io)?;
    socket.connect(server).await.map_err(io)?;
    let ids = ids().map_err(io)?;
    let questions =
        questions(&name, ids).map_err(|error| NamesError::NoName(format!("{host}: {error}")))?;
    let mut asking = Asking::new(server, host, &name, ids);
    let mut over_tcp = JoinSet::new();
    let deadline = Instant::now() + patience;
    let mut again = Instant::now();
    let started = now();
    let ms = || now().saturating_since(started).as_secs_f64() * 1e3;
    let mut message = [0; LONGEST as usize];
    while asking.open > 0 && Instant::now() < deadline {
        if Instant::now() >= again {
            again = Instant::now() + AGAIN;
            for (at, question) in questions.iter().enumerate() {
                if asking.is_for_udp(at) {
                    // A port that is closed answers by ICMP, which the next call says: asked again all the same.
                    let _ = socket.send(question).await;
                }
            }
        }
        let next = deadline.min(again);
        tokio::select! {
            received = socket.recv(&mut message) => match received {
                Ok(len) => {
                    let bytes = message.get(..len).unwrap_or_default();
                    if let Some(at) = asking.take(bytes, ms(), Carrier::Udp)? {
                        let question = questions.get(at).cloned().unwrap_or_default();
                        over_tcp.spawn(async move { (at, by_tcp(server, &question).await) });
                    }
                }
                Err(_) => sleep_until(next).await,
            },
            Some(Ok((at, answer))) = over_tcp.join_next() => match answer {
                Ok(bytes) => {
                    asking.take(&bytes, ms(), Carrier::Tcp)?;
                    asking.give_up(at);
                }
                Err(_) => asking.give_up(at),
            },
            () = sleep_until(next) => {}
        }
    }
    if let Some(garbled) = asking.take_garbled() {
        return Err(garbled);
    }
    let found = asking.found;
    if found.a_ms.is_none() && found.aaaa_ms.is_none() && found.https_ms.is_none() {
        return Err(NamesError::Silent { server, after: patience });
    }
    Ok(found)
}

/// A question and its answer over TCP, each with its length before it (RFC 7766 §8).
async fn by_tcp(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let len = u16::try_from(question.len()).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(server).await?;
    // In one segment, as servers want it.
    stream.write_all(&[&len.to_be_bytes(), question].concat()).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Returns the number of a question, which a stranger cannot guess (RFC 5452 §4.3).
///
/// # Errors
/// The system has no random bytes.
pub fn random_id() -> io::Result<u16> {
    let mut bytes = [0; 2];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| io::Error::other("the system has no random bytes"))?;
    Ok(u16::from_be_bytes(bytes))
}

/// Numbers of all questions, no two alike, each drawn by itself.
fn ids() -> io::Result<[u16; 3]> {
    loop {
        let ids = [random_id()?, random_id()?, random_id()?];
        if ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2] {
            return Ok(ids);
        }
    }
}

fn questions(name: &Name, ids: [u16; 3]) -> Result<Vec<Vec<u8>>, hickory_proto::ProtoError> {
    let pairs = ids.into_iter().zip(QUESTIONS);
    pairs
        .map(|(id, kind)| {
            let mut question = Message::new(id, MessageType::Query, OpCode::Query);
            question.metadata.recursion_desired = true;
            question.add_query(Query::query(name.clone(), kind));
            let mut edns = Edns::new();
            edns.set_max_payload(LONGEST);
            question.set_edns(edns);
            question.to_vec()
        })
        .collect()
}

impl Names {
    fn of(server: SocketAddr) -> Names {
        let (addresses, https) = (Vec::new(), Vec::new());
        Names {
            server,
            addresses,
            a_ms: None,
            aaaa_ms: None,
            https_ms: None,
            truncated: false,
            https,
        }
    }
}

/// What an answer came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Udp,
    Tcp,
}

/// Questions that wait for their answers.
struct Asking<'a> {
    server: SocketAddr,
    host: &'a str,
    name: &'a Name,
    ids: [u16; 3],
    found: Names,
    /// Of the questions, those asked again over TCP.
    over_tcp: [bool; 3],
    open: usize,
    /// The first message that had a question's number and could not be read, and which question's.
    garbled: Option<(usize, NamesError)>,
}

impl<'a> Asking<'a> {
    fn new(server: SocketAddr, host: &'a str, name: &'a Name, ids: [u16; 3]) -> Self {
        let found = Names::of(server);
        let (over_tcp, open) = ([false; 3], QUESTIONS.len());
        Asking { server, host, name, ids, found, over_tcp, open, garbled: None }
    }

    /// Whether a question is open, and asked in datagrams.
    fn is_for_udp(&mut self, at: usize) -> bool {
        self.time(at).is_none() && self.over_tcp.get(at) == Some(&false)
    }

    /// Takes why an answer could not be read, if none came after it.
    fn take_garbled(&mut self) -> Option<NamesError> {
        let (at, garbled) = self.garbled.take()?;
        self.time(at).is_none().then_some(garbled)
    }

    /// No answer will come.
    fn give_up(&mut self, at: usize) {
        if self.time(at).is_none() {
            self.open = self.open.saturating_sub(1);
        }
    }

    fn time(&mut self, at: usize) -> &mut Option<f64> {
        match at {
            0 => &mut self.found.a_ms,
            1 => &mut self.found.aaaa_ms,
            _ => &mut self.found.https_ms,
        }
    }

    /// Takes an answer; ignores unsolicited ones and what cannot be read. Returns which question is to be asked over TCP, if
    /// this answer was cut off.
    fn take(
        &mut self,
        bytes: &[u8],
        ms: f64,
        carrier: Carrier,
    ) -> Result<Option<usize>, NamesError> {
        let id = bytes.first_chunk().map(|id| u16::from_be_bytes(*id));
        let Some(at) = id.and_then(|id| self.ids.iter().position(|asked| *asked == id)) else {
            return Ok(None);
        };
        if self.time(at).is_some() || (carrier == Carrier::Udp && !self.is_for_udp(at)) {
            return Ok(None);
        }
        let kind = QUESTIONS.get(at).copied().unwrap_or(RecordType::HTTPS);
        let answer = match Message::from_vec(bytes) {
            Ok(answer) => answer,
            // A stranger may have sent it: the answer may still come.
            Err(error) => {
                if self.garbled.is_none() {
                    self.garbled = Some((at, self.garbled(at, error.to_string())));
                }
                return Ok(None);
            }
        };
        let asked = |query: &Query| query.query_type == kind && query.name == *self.name;
        if answer.metadata.message_type != MessageType::Response
            || !answer.queries.iter().any(asked)
        {
            return Ok(None);
        }
        let code = answer.metadata.response_code;
        if code != ResponseCode::NoError {
            let (server, host) = (self.server, self.host.to_owned());
            return Err(NamesError::Refused { server, host, says: code.to_string() });
        }
        if answer.metadata.truncation && carrier == Carrier::Udp {
            self.found.truncated |= kind == RecordType::HTTPS;
            if let Some(over_tcp) = self.over_tcp.get_mut(at) {
                *over_tcp = true;
            }
            return Ok(Some(at));
        }
        *self.time(at) = Some(ms);
        self.open = self.open.saturating_sub(1);
        for record in &answer.answers {
            match &record.data {
                RData::A(address) => self.found.addresses.push(address.0.into()),
                RData::AAAA(address) => self.found.addresses.push(address.0.into()),
                RData::HTTPS(https) => {
                    let read =
                        https_record(&https.0).map_err(|problem| self.garbled(at, problem))?;
                    self.found.https.push(read);
                }
                _ => {}
            }
        }
        self.found.https.sort_by_key(|record| record.priority);
        Ok(None)
    }

    fn garbled(&self, at: usize, problem: String) -> NamesError {
        let question = match at {
            0 => "A",
            1 => "AAAA",
            _ => "HTTPS",
        };
        NamesError::Garbled { server: self.server, question, problem }
    }
}

fn https_record(record: &SVCB) -> Result<HttpsRecord, String> {
    let list = record.svc_params.iter().find_map(|(_, value)| match value {
        SvcParamValue::EchConfigList(list) => Some(&list.0),
        _ => None,
    });
    let ech = list.map(|list| {
        let configs =
            EchConfigList::new_checked(list).map_err(|error| error.to_string())?.configs();
        let public_names = configs.map(|config| config.public_name.to_owned()).collect();
        Ok::<_, String>(EchRecord { list: list.clone(), bytes: list.len(), public_names })
    });
    Ok(HttpsRecord {
        priority: record.svc_priority,
        target: record.target_name.to_ascii(),
        ech: ech.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_server_counts() {
        let text =
            "# nameserver 192.0.2.9\nsearch test\nnameserver fe80::1%eth0\nnameserver 192.0.2.1\n";
        assert_eq!(server_in(text), "192.0.2.1:53".parse().ok());
        assert_eq!(server_in("search test\n"), None);
    }
}
