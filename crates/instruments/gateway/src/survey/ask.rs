//! The machine that asks.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use packet::clock::monotonic;
use tcp::{ConnectOptions, Info, SynData};
use tcpio::{Stack, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::question::{LEAST, Question, SEEN, Seen, filler};
use super::record::{Fate, RECORD_SCHEMA, Record, Way};
use crate::Error;
use crate::device::{Device, Purpose};
use crate::options::{Common, Place};
use crate::serve::give_up_rights;

/// Between two connections.
const PAUSE: Duration = Duration::from_millis(50);
/// What a server says of a question that came changed.
const CHANGED: u16 = u16::MAX;

/// `wiretax gateway survey HOST`.
#[derive(Debug, Clone)]
pub struct SurveyOptions {
    /// Where packets come from and go to.
    pub common: Common,
    /// The machine that answers, as the user names it.
    pub server: String,
    /// Its ports, all at one address.
    pub ports: Vec<SocketAddr>,
    /// Bytes of data on the SYN to try, each [`LEAST`] to [`super::LARGEST`].
    pub sizes: Vec<u16>,
    /// Bytes wanted on the SYN+ACK; the least that a server may send is three times what came.
    pub answer: u16,
    /// Connections for each way, port and size.
    pub repeat: u32,
    /// When a connection is given up.
    pub timeout: Duration,
    /// What the user calls this network.
    pub network: String,
}

/// A machine that is about to ask.
#[derive(Debug)]
pub struct Survey {
    options: SurveyOptions,
    devices: Vec<Device>,
}

impl Survey {
    /// Opens all that needs rights, and gives the rights up. Within a tokio runtime.
    ///
    /// # Errors
    /// A device cannot be opened, or some right cannot be given up.
    pub fn begin(options: SurveyOptions) -> Result<Survey, Error> {
        let devices = open(&options)?;
        give_up_rights()?;
        Ok(Survey { options, devices })
    }

    /// Asks by every way, to every port, with every size; `each` gets a record as it comes. Connections that
    /// fail are records.
    pub async fn ask(self, mut each: impl FnMut(Record)) {
        let Survey { options, devices } = self;
        for (number, to) in options.ports.iter().enumerate() {
            // One device has all ports, or each has one.
            let Some(device) = devices.get(number).or(devices.last()) else { break };
            for _ in 0..options.repeat {
                for way in Way::ALL {
                    for size in &options.sizes {
                        let len = usize::from(*size).max(LEAST);
                        let question = Question { len, answer: options.answer.into() };
                        each(ask(&device.stack, *to, *way, question, &options).await);
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }
        for device in devices {
            device.stack.shutdown().await;
        }
    }
}

/// A stack for all ports: two with one address would reset each other's connections. With a redirect, which
/// takes one port from the kernel, one for each.
fn open(options: &SurveyOptions) -> Result<Vec<Device>, Error> {
    let common = Common { remembers: false, ..options.common.clone() };
    let most = match common.place {
        Place::Redirect { .. } => options.ports.len(),
        Place::Interface { .. } | Place::Tun { .. } => 1,
    };
    let ports = options.ports.iter().take(most);
    ports.map(|to| Device::open(&common, Purpose::Connect(*to))).collect()
}

/// What came of a question.
struct Answered {
    info: Info,
    connect: Duration,
    seen: Seen,
    intact: bool,
}

async fn ask(
    stack: &Stack,
    to: SocketAddr,
    way: Way,
    question: Question,
    options: &SurveyOptions,
) -> Record {
    let count = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut record = Record {
        schema: RECORD_SCHEMA,
        at_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
        network: options.network.clone(),
        server: options.server.clone(),
        port: to.port(),
        way,
        syn_bytes: count(question.len),
        syn_ack_bytes: if way == Way::Plain { 0 } else { count(question.answer) },
        syn: Fate::Failed,
        syn_ack: Fate::Failed,
        connect_ms: None,
        syn_retransmissions: 0,
        failure: None,
    };
    if way == Way::FastOpen {
        // A connection of its own fetches the cookie; without one, the next is as `syn-data`.
        let fetched = exchange(stack, to, Way::Plain, true, question);
        let _ = timeout(options.timeout, fetched).await;
    }
    let asked = exchange(stack, to, way, way == Way::FastOpen, question);
    match timeout(options.timeout, asked).await {
        Ok(Ok(answered)) => fill(&mut record, &answered, question),
        Ok(Err(error)) => record.failure = Some(error.to_string()),
        Err(_) => record.failure = Some(format!("no answer within {:?}", options.timeout)),
    }
    record
}

fn fill(record: &mut Record, answered: &Answered, question: Question) {
    let Answered { info, connect, seen, intact } = answered;
    record.connect_ms = Some(connect.as_secs_f64() * 1e3);
    record.syn_retransmissions = info.syn_retransmissions;
    let plain = record.way == Way::Plain;
    let again = info.syn_retransmissions > 0;
    record.syn = match info.syn_data {
        _ if plain => Fate::NotSent,
        _ if seen.syn == CHANGED => Fate::Changed,
        SynData::Accepted if usize::from(seen.syn) >= info.syn_bytes.min(question.len) => {
            Fate::Carried
        }
        // It was answered only when it came without data, or again.
        _ if again => Fate::Dropped,
        _ => Fate::Stripped,
    };
    record.syn_ack = match record.syn {
        _ if plain || question.answer == 0 => Fate::NotSent,
        // No server answers on a SYN+ACK what it has not read yet.
        Fate::Stripped | Fate::Dropped => Fate::NotSent,
        _ if !intact => Fate::Changed,
        _ if info.syn_ack_bytes > 0 && info.syn_ack_bytes >= usize::from(seen.syn_ack) => {
            Fate::Carried
        }
        _ if seen.syn_ack == 0 => Fate::NotSent,
        _ if again => Fate::Dropped,
        _ => Fate::Stripped,
    };
}

/// One connection: the question, its answer, and what the server says of it.
async fn exchange(
    stack: &Stack,
    to: SocketAddr,
    way: Way,
    cookie: bool,
    question: Question,
) -> std::io::Result<Answered> {
    let bytes = question.bytes();
    let rides = way != Way::Plain;
    let options = ConnectOptions {
        syn_data: if rides { bytes.clone() } else { Vec::new() },
        fast_open_cookie: cookie,
        ..ConnectOptions::default()
    };
    let began = monotonic();
    let mut stream: TcpStream = stack.connect(to, options).map_err(std::io::Error::other)?;
    stream.connected().await?;
    let connect = monotonic().saturating_since(began);
    if !rides {
        stream.write_all(&bytes).await?;
    }
    let mut answer = vec![0; question.answer];
    stream.read_exact(&mut answer).await?;
    let mut seen = [0; SEEN];
    stream.read_exact(&mut seen).await?;
    let info = stream.info().ok_or(std::io::ErrorKind::ConnectionReset)?;
    stream.shutdown().await?;
    let intact = answer.iter().copied().eq(filler(question.answer));
    let seen = Seen::read(&seen).ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(Answered { info, connect, seen, intact })
}
