//! What a load is told, and what it asks for.

use std::net::IpAddr;
use std::time::Duration;

use units::Time;

use crate::cache::{Storage, Validator};
use crate::memory::{Carries, Certificate, ConnectionId};
use crate::page::{HostId, ObjectId, Urgency};

/// What happened. What is told of an object or a connection of which nothing is expected is passed
/// over and counted: [`Load::ignored`](crate::Load::ignored).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A name's addresses came.
    Resolved {
        /// The host whose name it is.
        host: HostId,
        /// The addresses; those of other hosts with the same may share a connection.
        addresses: Vec<IpAddr>,
        /// For how long they count; `None`: as the policy says.
        valid_for: Option<Duration>,
    },
    /// A name has no address, or the resolver failed.
    NotResolved {
        /// The host whose name it is.
        host: HostId,
    },
    /// A connection can carry requests.
    Ready {
        /// The connection that it is about.
        connection: ConnectionId,
        /// What is known of it now.
        ready: Ready,
    },
    /// A ticket for resumption came from a host.
    Ticket {
        /// The host that it is about.
        host: HostId,
    },
    /// The server allows another number of requests at once (`SETTINGS_MAX_CONCURRENT_STREAMS`,
    /// `MAX_STREAMS`).
    Limit {
        /// On which connection.
        connection: ConnectionId,
        /// Requests at once, those under way among them.
        limit: usize,
    },
    /// The server wants no further requests on a connection (`GOAWAY`); what is under way ends.
    GoAway {
        /// The connection that it is about.
        connection: ConnectionId,
    },
    /// A connection could not be opened, or is gone, and with it the requests on it.
    Closed {
        /// The connection that it is about.
        connection: ConnectionId,
    },
    /// A request has been sent, with its body.
    Sent {
        /// Of which object.
        object: ObjectId,
    },
    /// More of a request's body has been sent.
    Uploaded {
        /// Of which object.
        object: ObjectId,
        /// How many bytes more.
        bytes: u64,
    },
    /// The head of a response came.
    Head {
        /// Of which object.
        object: ObjectId,
        /// The status code (RFC 9110 §15).
        status: u16,
        /// Whether and how it may be stored.
        storage: Option<Storage>,
    },
    /// More of a response's body came.
    Body {
        /// Of which object.
        object: ObjectId,
        /// How many bytes more.
        bytes: u64,
    },
    /// A response is complete.
    Complete {
        /// Of which object.
        object: ObjectId,
        /// Whether its connection can carry another request.
        reusable: bool,
    },
    /// A request failed and its connection did not, or only for HTTP/1.1.
    Failed {
        /// Of which object.
        object: ObjectId,
        /// Whether the server said that it has not begun it (`REFUSED_STREAM`, `H3_REQUEST_REJECTED`,
        /// or beyond the last in a `GOAWAY`), so that it may be sent again (RFC 9113 §8.7).
        refused: bool,
    },
    /// The head of a response names an object that will be needed (`Link` with `rel=preload`): a server's
    /// hint.
    Hinted {
        /// Of which object the response is.
        by: ObjectId,
        /// The target of the link, absolute or relative to that object's address.
        target: Box<str>,
    },
    /// The server pushes a response (SPDY draft 3.1 §3.3, RFC 9113 §8.4). Answered by [`Action::Take`] or
    /// [`Action::Refuse`].
    Pushed {
        /// On which connection.
        connection: ConnectionId,
        /// Its number, which no other push of the load has.
        push: PushId,
        /// The host that the promised request names, perhaps with a port.
        host: Box<str>,
        /// Its path and query.
        path: Box<str>,
    },
    /// It is [`Load::wakeup`](crate::Load::wakeup)'s time.
    Wake,
}

/// The number of a push within a load, given by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushId(pub u64);

/// What is known of a connection once it can carry requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// When TCP was connected and TLS began; `None` where the two are one (QUIC) or there is no TLS.
    pub tcp: Option<Time>,
    /// How it carries requests.
    pub carries: Carries,
    /// The other end's address, for coalescing; `None`: it is not coalesced.
    pub address: Option<IpAddr>,
    /// The other end's certificate.
    pub certificate: Certificate,
    /// Whether the handshake was a resumption.
    pub resumed: bool,
}

/// What the caller is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Find a name's addresses; answered by [`Event::Resolved`] or [`Event::NotResolved`].
    Resolve {
        /// The host's number: [`Page::host`](crate::Page::host) has its name.
        host: HostId,
    },
    /// Open a connection; answered by [`Event::Ready`] or [`Event::Closed`].
    Open {
        /// Its number from now on.
        connection: ConnectionId,
        /// To which host.
        host: HostId,
        /// Whether there is a ticket to resume with.
        ticket: bool,
    },
    /// Send the request for an object; answered by events of it, the last of which is
    /// [`Event::Complete`] or [`Event::Failed`], or [`Event::Closed`] of the connection.
    Send {
        /// What to ask for: [`Page::object`](crate::Page::object).
        object: ObjectId,
        /// On which connection. It may be one to another host.
        connection: ConnectionId,
        /// How urgent it is.
        urgency: Urgency,
        /// Whether it may be interleaved with others as urgent.
        incremental: bool,
        /// What a stored response is to be checked by: the answer may be 304.
        validator: Option<Validator>,
    },
    /// Take a push: what comes of it is told as events of this object, as if it had been asked for.
    Take {
        /// The push that it is about.
        push: PushId,
        /// The object that it is.
        object: ObjectId,
    },
    /// Cancel a push that is of no use. No event answers it.
    Refuse {
        /// The push that it is about.
        push: PushId,
    },
    /// Close a connection. No event answers it, and none of it is looked at any more.
    Close {
        /// The connection that it is about.
        connection: ConnectionId,
    },
}
