//! Names of connections and listeners, what happens to them, and what goes wrong.

use std::borrow::Cow;
use std::net::SocketAddr;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::info::IcmpKind;

/// A connection of an [`Endpoint`](crate::Endpoint). Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A listener of an [`Endpoint`](crate::Endpoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u32);

/// Something happened to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The connection that it happened to.
    pub connection: ConnectionId,
    /// What happened to it.
    pub kind: EventKind,
}

/// What happened to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// [`Endpoint::accept`](crate::Endpoint::accept) has one for this listener.
    Incoming(ListenerId),
    /// Client: the SYN-ACK came; [`Info::syn_data`](crate::Info::syn_data) says what became of the
    /// SYN's data.
    Connected,
    /// Client: the SYN's data were not taken and are withdrawn; the stream begins anew. Comes before
    /// [`EventKind::Connected`].
    SynDataRefused,
    /// Server: the handshake is over, the client's address is validated.
    Established,
    /// There is more to read.
    Readable,
    /// There is room to write again.
    Writable,
    /// The peer has sent its FIN: nothing comes after what can be read.
    PeerFinished,
    /// The connection is over.
    Closed(CloseReason),
}

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// Both sides have closed.
    Finished,
    /// The peer reset it.
    Reset,
    /// The peer refused it: RST for the SYN.
    Refused,
    /// The peer did not answer.
    TimedOut,
    /// This side reset it.
    Aborted,
    /// An ICMP error ended the attempt, or was the last sign of a path that fell silent
    /// (RFC 9293 §3.9.2.2).
    Unreachable(IcmpKind),
}

/// Why nothing could be read or written. The caller's to deal with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StreamError {
    /// Nothing to read, or no room to write, for now.
    #[error("not now: an event says when")]
    WouldBlock,
    /// This side has closed its direction.
    #[error("nothing can be written after this side has closed its direction")]
    Shutdown,
    /// The connection is over.
    #[error("the connection is over: {}", reason(*.0))]
    Closed(CloseReason),
    /// There is no such connection any more.
    #[error("no such connection")]
    Unknown,
}

fn reason(reason: CloseReason) -> Cow<'static, str> {
    match reason {
        CloseReason::Finished => "both sides have closed".into(),
        CloseReason::Reset => "the peer reset it".into(),
        CloseReason::Refused => "the peer refused it".into(),
        CloseReason::TimedOut => "the peer did not answer in time".into(),
        CloseReason::Aborted => "this side reset it".into(),
        CloseReason::Unreachable(kind) => format!("ICMP says: {kind}").into(),
    }
}

/// Why a connection could not be begun. The caller's to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The addresses are of different families, unspecified or not unicast.
    #[error("{local} cannot connect to {remote}")]
    Address {
        /// This side's address and port.
        local: SocketAddr,
        /// The peer's address and port.
        remote: SocketAddr,
    },
    /// There is a connection between the two already, or no port is free.
    #[error("no port of {0} is free towards that peer")]
    NoPort(SocketAddr),
    /// More data for the SYN than the send buffer may hold.
    #[error("{len} bytes for the SYN are more than the send buffer's {limit}")]
    SynData {
        /// Bytes of [`ConnectOptions::syn_data`](crate::ConnectOptions::syn_data).
        len: usize,
        /// The bytes that [`Config::send_buffer`](crate::Config::send_buffer) allows.
        limit: usize,
    },
    /// The endpoint has as many connections as it may.
    #[error("there are {0} connections, the most allowed")]
    TooMany(usize),
}

/// Why nothing listens. The caller's to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ListenError {
    /// A listener is there already.
    #[error("a listener is on {0} already")]
    InUse(SocketAddr),
    /// Port 0 cannot be listened on.
    #[error("port 0 names no port")]
    NoPort,
}

impl Explain for StreamError {
    fn fault(&self) -> Fault {
        match self {
            StreamError::WouldBlock | StreamError::Shutdown | StreamError::Unknown => Fault::Caller,
            StreamError::Closed(_) => Fault::Peer,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            StreamError::Closed(
                CloseReason::Refused | CloseReason::Unreachable(IcmpKind::PortUnreachable),
            ) => Some("check whether a server is listening there".into()),
            StreamError::Closed(CloseReason::Unreachable(IcmpKind::Prohibited)) => {
                Some("check the firewalls on the path".into())
            }
            StreamError::Closed(CloseReason::Unreachable(_)) => {
                Some("check the address and the routes to it".into())
            }
            _ => None,
        }
    }
}

impl Explain for ConnectError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            ConnectError::Address { .. } => "give unicast addresses of one family",
            ConnectError::NoPort(_) => "close connections or give another address",
            ConnectError::SynData { .. } => "write the rest later",
            ConnectError::TooMany(_) => "close some or allow more",
        };
        Some(remedy.into())
    }
}

impl Explain for ListenError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            ListenError::InUse(_) => Some("give another port".into()),
            ListenError::NoPort => Some("give one from 1 to 65535".into()),
        }
    }
}

/// Why a packet was ignored. The peer's or the path's fault, or no fault at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Ignored {
    /// It is no whole IP packet, or a fragment.
    #[error("not a whole IP packet")]
    NotIp,
    /// It carries something else, and no ICMP error about a segment.
    #[error("not TCP")]
    NotTcp,
    /// Its TCP header is malformed.
    #[error("malformed TCP segment")]
    Malformed,
    /// Its checksum is wrong.
    #[error("wrong checksum")]
    Checksum,
    /// It belongs to no connection.
    #[error("no connection or listener")]
    NoConnection,
    /// A table is full.
    #[error("no room")]
    NoRoom,
    /// It lies outside the window, or contradicts the state.
    #[error("not acceptable")]
    Unacceptable,
}
