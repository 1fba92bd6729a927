//! What became of a load, and when.

use std::fmt;
use std::time::Duration;

use units::{Bytes, Delay};

use crate::memory::ConnectionId;
use crate::page::ObjectId;
use crate::share::Share;

/// Why an object did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Its host's name has no address.
    Name,
    /// No connection to its host could be opened.
    Connection,
    /// Its request or its response broke off, or the server refused it twice.
    Request,
    /// The load was ended before.
    Unfinished,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing told of it: what would have failed, or the load was ended before.
    #[default]
    Unreached,
    /// It came from the network.
    Fetched,
    /// It came from the cache after the server had said that it is unchanged.
    Validated,
    /// It came from the cache.
    Fresh,
    /// It did not come.
    Failed(Failure),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Name => "its host's name has no address",
            Failure::Connection => "no connection to its host could be opened",
            Failure::Request => "its request or its response broke off",
            Failure::Unfinished => "the load ended before it was complete",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Unreached => f.write_str("the browser never asked for it"),
            Outcome::Fetched => f.write_str("it came from the network"),
            Outcome::Validated => f.write_str("it was in the cache, unchanged"),
            Outcome::Fresh => f.write_str("it was in the cache"),
            Outcome::Failed(failure) => failure.fmt(f),
        }
    }
}

/// From when to when, counted from the load's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub begin: Delay,
    /// When it ended.
    pub end: Delay,
}

impl Span {
    /// How much of it lies within another.
    fn within(self, begin: Duration, end: Duration) -> Duration {
        self.end.duration().min(end).saturating_sub(self.begin.duration().max(begin))
    }
}

/// The opening of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// When it began.
    pub begin: Delay,
    /// When TCP was connected, if TLS came after it.
    pub tcp: Option<Delay>,
    /// When it could carry requests.
    pub ready: Delay,
}

/// What happened to an object, in times since the load's begin. What is `None` did not happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Another object told of it.
    pub found: Option<Delay>,
    /// The computation after that was done: the browser wants it.
    pub queued: Option<Delay>,
    /// A server's hint told of it before the page did.
    pub hinted: Option<Delay>,
    /// The server pushed it: when its promise came.
    pub pushed: Option<Delay>,
    /// The page had told of it and the computation after that was done. As `queued`, unless a hint let
    /// it be asked for before.
    pub reached: Option<Delay>,
    /// The browser no longer held it back for more important ones.
    pub released: Option<Delay>,
    /// The look-up of its host's name, if this object was the first that needed it.
    pub dns: Option<Span>,
    /// The opening of its connection, if it was the first on it.
    pub connect: Option<Opening>,
    /// Its request was handed to a connection, the last time if more than once.
    pub sending: Option<Delay>,
    /// Its request had been sent.
    pub sent: Option<Delay>,
    /// The first byte of the response came.
    pub first_byte: Option<Delay>,
    /// It was there, or had failed.
    pub end: Option<Delay>,
    /// On which connection.
    pub connection: Option<ConnectionId>,
    /// What became of it.
    pub outcome: Outcome,
    /// The response's status.
    pub status: Option<u16>,
    /// Bytes of body that came.
    pub received: Bytes,
    /// Bytes of body that were sent.
    pub uploaded: Bytes,
    /// How often it was asked for.
    pub requests: u32,
}

/// How long an object spent on what, as HAR 1.2 divides it: all but `ssl`, which is a part of
/// `connect`, add up to the time from `queued` to `end`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// Held back, or waiting for a connection.
    pub blocked: Delay,
    /// Finding the name's addresses.
    pub dns: Delay,
    /// Opening the connection, TLS included.
    pub connect: Delay,
    /// The part of `connect` after TCP was open: TLS; zero where there is no TCP.
    pub ssl: Delay,
    /// Sending the request.
    pub send: Delay,
    /// Waiting for the first byte.
    pub wait: Delay,
    /// Receiving the rest.
    pub receive: Delay,
}

impl Timeline {
    /// How long it spent on what; `None` if it was never wanted or has no end.
    #[must_use]
    pub fn phases(&self) -> Option<Phases> {
        let (queued, end) = (self.queued?.duration(), self.end?.duration());
        // Each point is no earlier than the one before it, whatever order the events had.
        let at = |point: Option<Delay>, before: Duration, missing: Duration| {
            point.map_or(missing, Delay::duration).clamp(before, end.max(before))
        };
        let sending = at(self.sending, queued, end);
        let sent = at(self.sent, sending, sending);
        let first_byte = at(self.first_byte, sent, end);
        let (mut dns, mut named) = (Duration::ZERO, queued);
        if let Some(span) = self.dns {
            dns = span.within(queued, sending);
            named = span.end.duration().clamp(queued, sending);
        }
        let (mut connect, mut ssl) = (Duration::ZERO, Duration::ZERO);
        // A connection may open during the look-up, by another name's address: that time counts once.
        if let Some(Opening { begin, tcp, ready }) = self.connect {
            connect = Span { begin, end: ready }.within(named, sending);
            ssl = tcp.map_or(ssl, |tcp| Span { begin: tcp, end: ready }.within(named, sending));
        }
        let blocked = (sending - queued).saturating_sub(dns).saturating_sub(connect);
        Some(Phases {
            blocked: blocked.into(),
            dns: dns.into(),
            connect: connect.into(),
            ssl: ssl.into(),
            send: (sent - sending).into(),
            wait: (first_byte - sent).into(),
            receive: (end.max(first_byte) - first_byte).into(),
        })
    }
}

/// What happened to a connection, in times since the load's begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionTimeline {
    /// The number that [`Action::Open`](crate::Action::Open) gave it.
    pub id: ConnectionId,
    /// The host to which it was opened.
    pub host: String,
    /// Its opening; `None` if it was kept from a load before, or was never ready.
    pub opening: Option<Opening>,
    /// Whether it was kept from a load before.
    pub kept: bool,
    /// Whether it carries many requests at once.
    pub multiplexed: bool,
    /// Whether its handshake was a resumption.
    pub resumed: bool,
    /// Requests that it carried in this load.
    pub requests: u32,
    /// When it was closed in this load.
    pub closed: Option<Delay>,
}

/// Bytes of a body that came, or were sent, at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, since the load's begin.
    pub at: Delay,
    /// Of which object.
    pub object: ObjectId,
    /// Bytes of body.
    pub bytes: u64,
}

/// Progress, bounded: beyond the bound the rest of an object counts when it ends.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    list: Vec<Arrival>,
}

impl Progress {
    /// Most entries that are kept one by one.
    const MOST: usize = 1 << 20;

    /// Notes these bytes; gives back what has to be noted at the object's end.
    pub(crate) fn note(&mut self, at: Delay, object: ObjectId, bytes: u64) -> u64 {
        if let Some(last) =
            self.list.last_mut().filter(|last| last.object == object && last.at == at)
        {
            last.bytes = last.bytes.saturating_add(bytes);
            return 0;
        }
        if self.list.len() >= Progress::MOST {
            return bytes;
        }
        if bytes > 0 {
            self.list.push(Arrival { at, object, bytes });
        }
        0
    }

    /// Notes what was left of an object at its end: once for each object, so that this is bounded too.
    pub(crate) fn end(&mut self, at: Delay, object: ObjectId, bytes: u64) {
        if bytes > 0 {
            self.list.push(Arrival { at, object, bytes });
        }
    }

    pub(crate) fn into_list(self) -> Vec<Arrival> {
        self.list
    }
}

/// What became of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What happened to each object, in the page's order.
    pub objects: Vec<Timeline>,
    /// The connections that were opened or used, in the order of their numbers.
    pub connections: Vec<ConnectionTimeline>,
    /// The bodies of responses as they came, in order of time.
    pub arrivals: Vec<Arrival>,
    /// The bodies of requests as they were sent, in order of time.
    pub uploads: Vec<Arrival>,
}

impl Loaded {
    /// Page load time: until everything was fetched, or had failed, and was found where it was fetched
    /// ahead.
    #[must_use]
    pub fn load_time(&self) -> Delay {
        let ends = self.objects.iter().filter_map(|object| object.end.max(object.reached));
        ends.max().unwrap_or_default()
    }

    /// Whether everything was fetched or in the cache.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let there = [Outcome::Fetched, Outcome::Validated, Outcome::Fresh];
        self.objects.iter().all(|object| there.contains(&object.outcome))
    }

    /// When the first byte of a response came.
    #[must_use]
    pub fn first_byte(&self) -> Option<Delay> {
        self.objects.iter().filter_map(|object| object.first_byte).min()
    }

    /// When this share of the bytes of all responses' bodies had come; `None` if none came.
    #[must_use]
    pub fn bytes_by(&self, share: Share) -> Option<Delay> {
        let wanted = share.of(self.bytes().count());
        let mut come = 0u64;
        let enough = self.arrivals.iter().find(|arrival| {
            come = come.saturating_add(arrival.bytes);
            come >= wanted
        });
        enough.map(|arrival| arrival.at)
    }

    /// Bytes of bodies that came.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.arrivals.iter().fold(0, |sum, arrival| sum.saturating_add(arrival.bytes)))
    }

    /// How many requests were made, those that were made again included.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.objects.iter().map(|object| object.requests).sum()
    }

    /// Objects that came by server push and were needed.
    pub fn pushed(&self) -> impl Iterator<Item = &Timeline> {
        let of_use = |object: &&Timeline| object.pushed.is_some() && object.reached.is_some();
        self.objects.iter().filter(of_use)
    }

    /// How many connections became ready in this load.
    #[must_use]
    pub fn connections_opened(&self) -> usize {
        self.connections.iter().filter(|connection| connection.opening.is_some()).count()
    }

    /// The body of one object as it came.
    pub fn progress(&self, object: ObjectId) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().filter(move |arrival| arrival.object == object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection to a server that another name led to opens while this name is looked up.
    #[test]
    fn a_look_up_beside_the_opening_counts_once() {
        let at = |millis| Delay::from(Duration::from_millis(millis));
        let timeline = Timeline {
            queued: Some(at(10)),
            dns: Some(Span { begin: at(20), end: at(60) }),
            connect: Some(Opening { begin: at(30), tcp: Some(at(50)), ready: at(90) }),
            sending: Some(at(100)),
            sent: Some(at(100)),
            first_byte: Some(at(140)),
            end: Some(at(150)),
            ..Timeline::default()
        };
        let phases = timeline.phases().unwrap();
        assert_eq!((phases.dns, phases.connect, phases.ssl), (at(40), at(30), at(30)));
        assert_eq!((phases.blocked, phases.wait, phases.receive), (at(20), at(40), at(10)));
    }
}
