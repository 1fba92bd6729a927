//! Names by DNS over UDP (RFC 1035): a server for a page's hosts, and a browser's stub resolver.
//! Messages are read and written by `hickory-proto`.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::timeout;

/// The port of DNS.
pub const PORT: u16 = 53;
/// The longest message over UDP without EDNS (RFC 1035 §4.2.1).
const LONGEST: usize = 512;
/// Until a question is asked again, and again: Chromium's `kDnsDefaultFallbackPeriod` is 1 s, and each
/// further attempt waits twice as long.
const PATIENCE: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// The addresses of names. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Zone(Arc<Mutex<HashMap<Name, (Ipv4Addr, u32)>>>);

impl Zone {
    /// Replaces all names: each has one address, which counts for `ttl`.
    ///
    /// # Errors
    /// The name that is none.
    pub fn set(&self, names: &[(String, Ipv4Addr)], ttl: Duration) -> Result<(), String> {
        let seconds = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
        let entry = |(name, address): &(String, Ipv4Addr)| {
            absolute(name).map(|name| (name, (*address, seconds))).ok_or_else(|| name.clone())
        };
        let all = names.iter().map(entry).collect::<Result<_, _>>()?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
        Ok(())
    }

    /// The answer to a message, if it deserves one.
    fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        let question = Message::from_vec(message).ok()?;
        if question.metadata.message_type != MessageType::Query {
            return None;
        }
        let (id, code) = (question.metadata.id, question.metadata.op_code);
        let [query] = question.queries.as_slice() else {
            return Message::error_msg(id, code, ResponseCode::FormErr).to_vec().ok();
        };
        let mut answer = Message::response(id, code);
        answer.metadata.recursion_desired = question.metadata.recursion_desired;
        answer.metadata.recursion_available = true;
        answer.add_query(query.clone());
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&query.name.to_lowercase()) {
            Some((address, ttl))
                if query.query_class == DNSClass::IN && query.query_type == RecordType::A =>
            {
                let data = RData::A(A(*address));
                answer.add_answer(Record::from_rdata(query.name.clone(), *ttl, data));
            }
            // The name is there, and has nothing of this type (RFC 2308 §2.2).
            Some(_) => {}
            None => answer.metadata.response_code = ResponseCode::NXDomain,
        }
        answer.to_vec().ok()
    }
}

/// A name server that runs until it is dropped.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    task: AbortHandle,
}

impl NameServer {
    /// Answers at `address` for the names of `zone`, in a task of the current
    /// [`tokio::task::LocalSet`].
    ///
    /// # Errors
    /// The address is taken or not there.
    pub fn start(address: SocketAddr, zone: Zone) -> io::Result<NameServer> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        let address = socket.local_addr()?;
        let task = spawn_local(async move {
            let mut message = [0; LONGEST];
            loop {
                // An ICMP error of an answer before is none of the next question's.
                let Ok((len, client)) = socket.recv_from(&mut message).await else { continue };
                let answer = message.get(..len).and_then(|message| zone.answer(message));
                if let Some(answer) = answer {
                    let _ = socket.send_to(&answer, client).await;
                }
            }
        });
        Ok(NameServer { address, task: task.abort_handle() })
    }

    /// Where it answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Addresses of a name, and how long they count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The addresses, as the name server gave them.
    pub addresses: Vec<IpAddr>,
    /// The least time to live among the answers.
    pub valid_for: Duration,
}

/// Asks a name server, without a cache: the browser has one.
#[derive(Debug, Clone, Copy)]
pub struct Resolver {
    server: SocketAddr,
}

impl Resolver {
    /// Asks this server.
    #[must_use]
    pub fn new(server: SocketAddr) -> Resolver {
        Resolver { server }
    }

    /// The addresses of a name; `None` if it has none, or nobody answered in 7 s.
    ///
    /// # Errors
    /// There is no socket, or the system has no random bytes.
    pub async fn resolve(&self, name: &str) -> io::Result<Option<Found>> {
        let Some(name) = absolute(name) else { return Ok(None) };
        let any: IpAddr = if self.server.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(self.server).await?;
        let id = conn::names::random_id()?;
        let mut question = Message::new(id, MessageType::Query, OpCode::Query);
        question.metadata.recursion_desired = true;
        question.add_query(Query::query(name.clone(), RecordType::A));
        let question = question.to_vec().map_err(io::Error::other)?;
        for patience in PATIENCE {
            // A port that is closed answers by ICMP, which the next call says: asked again all the same.
            let _ = socket.send(&question).await;
            let answer = timeout(patience, answer_to(&socket, id, &name)).await;
            if let Ok(found) = answer {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// Waits for the answer to a question; ignores garbled and unsolicited ones.
async fn answer_to(socket: &UdpSocket, id: u16, name: &Name) -> Option<Found> {
    let mut message = [0; LONGEST];
    loop {
        let Ok(len) = socket.recv(&mut message).await else {
            // Not answered there: the caller's patience decides.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let Some(answer) = message.get(..len).and_then(|m| Message::from_vec(m).ok()) else {
            continue;
        };
        let is_ours = answer.metadata.id == id
            && answer.metadata.message_type == MessageType::Response
            && answer
                .queries
                .iter()
                .any(|query| query.name == *name && query.query_type == RecordType::A);
        if is_ours {
            return found(&answer);
        }
    }
}

fn found(answer: &Message) -> Option<Found> {
    let of = |record: &Record| match &record.data {
        RData::A(address) => Some((IpAddr::V4(address.0), record.ttl)),
        _ => None,
    };
    let records: Vec<(IpAddr, u32)> = answer.answers.iter().filter_map(of).collect();
    let valid_for = records.iter().map(|(_, ttl)| *ttl).min()?;
    Some(Found {
        addresses: records.into_iter().map(|(address, _)| address).collect(),
        valid_for: Duration::from_secs(valid_for.into()),
    })
}

/// A host's name from the root, in lower case.
fn absolute(name: &str) -> Option<Name> {
    let mut name = Name::from_ascii(name).ok()?.to_lowercase();
    name.set_fqdn(true);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> Zone {
        let zone = Zone::default();
        let names = [("WWW.example".to_owned(), Ipv4Addr::new(10, 0, 0, 7))];
        zone.set(&names, Duration::from_secs(300)).unwrap();
        zone
    }

    fn asked(name: &str, kind: RecordType) -> Message {
        let mut question = Message::new(7, MessageType::Query, OpCode::Query);
        question.add_query(Query::query(absolute(name).unwrap(), kind));
        let answer = zone().answer(&question.to_vec().unwrap()).unwrap();
        Message::from_vec(&answer).unwrap()
    }

    #[test]
    fn a_known_name_has_its_address_and_time_to_live() {
        let answer = asked("www.Example", RecordType::A);
        let found = found(&answer).unwrap();
        assert_eq!(found.addresses, [IpAddr::from([10, 0, 0, 7])]);
        assert_eq!(found.valid_for, Duration::from_secs(300));
        assert_eq!(answer.metadata.id, 7);
    }

    #[test]
    fn what_is_not_there_is_told_apart() {
        let other = asked("other.example", RecordType::A);
        assert_eq!(other.metadata.response_code, ResponseCode::NXDomain);
        // Of the name there is an address of IPv4 alone.
        let ipv6 = asked("www.example", RecordType::AAAA);
        assert_eq!(ipv6.metadata.response_code, ResponseCode::NoError);
        assert!(ipv6.answers.is_empty() && found(&ipv6).is_none());
    }

    #[test]
    fn strangers_bytes_get_an_error_or_nothing() {
        let zone = zone();
        assert!(zone.answer(b"").is_none() && zone.answer(&[0xff; 512]).is_none());
        let response = Message::response(7, OpCode::Query).to_vec().unwrap();
        assert!(zone.answer(&response).is_none(), "an answer is not answered");
        let none = Message::new(9, MessageType::Query, OpCode::Query).to_vec().unwrap();
        let answer = Message::from_vec(&zone.answer(&none).unwrap()).unwrap();
        assert_eq!(answer.metadata.response_code, ResponseCode::FormErr);
    }

    #[tokio::test]
    async fn strays_before_the_answer_are_ignored_and_numbers_differ() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let resolver = Resolver::new(socket.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut ids, mut bytes) = (Vec::new(), [0; LONGEST]);
            for _ in 0..3 {
                let (len, from) = socket.recv_from(&mut bytes).await.unwrap();
                let question = Message::from_vec(&bytes[..len]).unwrap();
                let id = question.metadata.id;
                let answer = zone().answer(&bytes[..len]).unwrap();
                let to = |id: u16, name: &str, kind| {
                    let mut stray = Message::response(id, OpCode::Query);
                    stray.add_query(Query::query(absolute(name).unwrap(), kind));
                    stray.to_vec().unwrap()
                };
                let garbage = [&id.to_be_bytes()[..], &[0xff; 40]].concat();
                let strays = [
                    garbage,
                    to(id ^ 1, "www.example", RecordType::A),
                    to(id, "other.example", RecordType::A),
                    to(id, "www.example", RecordType::AAAA),
                ];
                for message in strays.iter().chain([&answer]) {
                    socket.send_to(message, from).await.unwrap();
                }
                ids.push(id);
            }
            ids
        });
        for _ in 0..3 {
            let found = resolver.resolve("www.example").await.unwrap().unwrap();
            assert_eq!(found.addresses, [IpAddr::from([10, 0, 0, 7])]);
        }
        let ids = serving.await.unwrap();
        let steps: Vec<u16> = ids.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        // By chance once in 2^32.
        assert_ne!(steps, [1, 1], "{ids:?}");
    }

    #[test]
    fn names_that_are_none_are_named() {
        let long = format!("{}.example", "a".repeat(64));
        let names = [(long.clone(), Ipv4Addr::LOCALHOST)];
        assert_eq!(Zone::default().set(&names, Duration::ZERO), Err(long));
    }
}
