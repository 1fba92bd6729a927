//! What a worker counts, without sharing anything; merged at the end.

use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use tls::CipherSuite;

use crate::Error;
use crate::failure::{Alike, Failure, Failures, Kind, Stage};
use crate::h2::{Stream, code};
use crate::latency::Latency;

/// The moments of a connection, in nanoseconds since the start of the run.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Times {
    /// When it was meant to start.
    pub(crate) due: u64,
    /// When it did.
    pub(crate) started: u64,
    /// connect(2) is called.
    pub(crate) connecting: u64,
    /// The connection stands.
    pub(crate) connected: u64,
    /// The handshake is complete.
    pub(crate) secured: u64,
    /// The present request was handed over.
    pub(crate) requested: u64,
}

/// How far a connection was whose end nobody has seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Censored {
    pub(crate) stage: Stage,
    /// Its handshake was to resume a session.
    pub(crate) offered: bool,
    /// It waited for the first byte of a response.
    pub(crate) waits: bool,
    /// The load is made of connections.
    pub(crate) unit: bool,
}

/// What was agreed on in a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) version: Option<ProtocolVersion>,
    pub(crate) suite: Option<rustls::CipherSuite>,
    pub(crate) group: Option<rustls::NamedGroup>,
    pub(crate) retry: bool,
}

impl Agreed {
    pub(crate) fn names(&self) -> (String, String, Option<String>) {
        let version = match self.version {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
            other => format!("{other:?}"),
        };
        let suite =
            self.suite.map(|suite| CipherSuite(suite.into()).to_string()).unwrap_or_default();
        (version, suite, self.group.map(|group| format!("{group:?}").to_lowercase()))
    }
}

/// What a worker counted.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) started: u64,
    pub(crate) completed: u64,
    /// Completed within the time that is measured.
    pub(crate) in_window: u64,
    /// Started in the ramp, and so left out of the latencies.
    pub(crate) in_ramp: u64,
    pub(crate) unfinished: u64,
    pub(crate) not_started: u64,
    pub(crate) requests: u64,
    /// Requests answered within the time that is measured.
    pub(crate) requests_in_window: u64,
    /// Requests of HTTP/2 that failed, and why.
    pub(crate) request_failures: Failures,
    /// Requests of HTTP/2 that the server had not looked at, and that were sent again.
    pub(crate) retried: u64,
    /// Handshakes whose server asked for a certificate.
    pub(crate) asked: u64,
    /// What all failures have in common, while nothing has succeeded.
    pub(crate) alike: Alike,
    /// Connections that the server ended after fewer requests than were to be sent.
    pub(crate) short: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) full: u64,
    pub(crate) resumed: u64,
    /// Meant to resume, over all started.
    pub(crate) wanted: u64,
    /// Meant to resume, with no ticket to do it by.
    pub(crate) without_ticket: u64,
    /// Offered a ticket and got a full handshake.
    pub(crate) declined: u64,
    pub(crate) agreed: Vec<(Agreed, u64)>,
    pub(crate) failures: Failures,
    pub(crate) tcp_connect: Latency,
    pub(crate) tls_full: Latency,
    pub(crate) tls_resumed: Latency,
    pub(crate) first_byte: Latency,
    pub(crate) total: Latency,
    pub(crate) start_delay: Latency,
    pub(crate) cpu_nanos: u64,
    pub(crate) last_finish: u64,
    /// When the worker ended.
    pub(crate) ended: u64,
    /// The ramp's end, and the end of the run if it has one.
    pub(crate) window: (u64, u64),
    /// Connections of the ramp count: they are all that there are.
    kept: bool,
}

impl Tally {
    /// Counts of what is measured from `ramp` to `end`; `kept` if connections are kept to the end.
    pub(crate) fn new(ramp: u64, end: u64, kept: bool) -> Result<Tally, Error> {
        Ok(Tally {
            started: 0,
            completed: 0,
            in_window: 0,
            in_ramp: 0,
            unfinished: 0,
            not_started: 0,
            requests: 0,
            requests_in_window: 0,
            request_failures: Failures::default(),
            retried: 0,
            asked: 0,
            alike: Alike::default(),
            short: 0,
            bytes_in: 0,
            bytes_out: 0,
            full: 0,
            resumed: 0,
            wanted: 0,
            without_ticket: 0,
            declined: 0,
            agreed: Vec::new(),
            failures: Failures::default(),
            tcp_connect: Latency::new()?,
            tls_full: Latency::new()?,
            tls_resumed: Latency::new()?,
            first_byte: Latency::new()?,
            total: Latency::new()?,
            start_delay: Latency::new()?,
            cpu_nanos: 0,
            last_finish: 0,
            ended: 0,
            window: (ramp, end),
            kept,
        })
    }

    fn measured(&self, due: u64) -> bool {
        due >= self.window.0
    }

    /// Whether a connection's own times count.
    fn measures(&self, times: &Times) -> bool {
        self.kept || self.measured(times.due)
    }

    fn is_in_window(&self, now: u64) -> bool {
        now >= self.window.0 && now < self.window.1
    }

    /// A connection has started.
    pub(crate) fn started(&mut self, wants_resume: bool, has_ticket: bool) {
        self.started += 1;
        self.wanted += u64::from(wants_resume);
        self.without_ticket += u64::from(wants_resume && !has_ticket);
    }

    /// What the load is made of has started: a connection, or in HTTP/2 a request.
    pub(crate) fn unit_started(&mut self, due: u64, started: u64) {
        if self.measured(due) {
            self.start_delay.record(started.saturating_sub(due));
        } else {
            self.in_ramp += 1;
        }
    }

    /// A connection without TLS stands.
    pub(crate) fn connected(&mut self, times: &Times) {
        if self.measures(times) {
            self.tcp_connect.record(times.connected.saturating_sub(times.connecting));
        }
    }

    /// A handshake is complete.
    pub(crate) fn secured(
        &mut self,
        times: &Times,
        tls: &ClientConnection,
        offered: bool,
        asked: bool,
    ) {
        self.asked += u64::from(asked);
        let kind = tls.handshake_kind();
        let resumed = kind == Some(HandshakeKind::Resumed);
        if resumed {
            self.resumed += 1;
        } else {
            self.full += 1;
            self.declined += u64::from(offered);
        }
        let agreed = Agreed {
            version: tls.protocol_version(),
            suite: tls.negotiated_cipher_suite().map(|suite| suite.suite()),
            group: tls.negotiated_key_exchange_group().map(|group| group.name()),
            retry: kind == Some(HandshakeKind::FullWithHelloRetryRequest),
        };
        match self.agreed.iter_mut().find(|(known, _)| *known == agreed) {
            Some((_, count)) => *count += 1,
            None => self.agreed.push((agreed, 1)),
        }
        if self.measures(times) {
            self.connected(times);
            let took = times.secured.saturating_sub(times.connected);
            let of_kind = if resumed { &mut self.tls_resumed } else { &mut self.tls_full };
            of_kind.record(took);
        }
    }

    /// The first byte of a response is there.
    pub(crate) fn first_byte(&mut self, due: u64, requested: u64, now: u64) {
        if self.measured(due) {
            self.first_byte.record(now.saturating_sub(requested));
        }
    }

    /// A response is whole.
    pub(crate) fn answered(&mut self, now: u64) {
        self.requests += 1;
        self.requests_in_window += u64::from(self.is_in_window(now));
        self.last_finish = self.last_finish.max(now);
    }

    /// What was due has been done: all of a connection, or in HTTP/2 a request.
    pub(crate) fn unit_completed(&mut self, due: u64, now: u64) {
        if self.measured(due) {
            self.total.record(now.saturating_sub(due));
        }
    }

    /// A connection has done its work.
    pub(crate) fn completed(&mut self, now: u64) {
        self.completed += 1;
        self.last_finish = self.last_finish.max(now);
        self.in_window += u64::from(self.is_in_window(now));
    }

    /// A connection has failed.
    pub(crate) fn failed(&mut self, stage: Stage, failure: Failure, now: u64) {
        self.last_finish = self.last_finish.max(now);
        self.note(stage, &failure);
        self.failures.add(stage, failure);
    }

    /// A request of HTTP/2 has failed by itself.
    pub(crate) fn request_failed(&mut self, failure: Failure, now: u64) {
        self.last_finish = self.last_finish.max(now);
        self.note(Stage::Response, &failure);
        self.request_failures.add(Stage::Response, failure);
    }

    fn note(&mut self, stage: Stage, failure: &Failure) {
        if self.requests == 0 {
            self.alike.add(stage, failure);
        }
    }

    /// Requests of HTTP/2 have failed with their connection, or since there was none.
    pub(crate) fn request_lost(&mut self) {
        let text = "its connection ended before the response";
        self.request_failures.add(Stage::Response, Failure::new(Kind::ClosedEarly, text));
    }

    /// The server has reset the stream of a request.
    pub(crate) fn request_reset(&mut self, error: u32, now: u64) {
        let failure = match code::name(error) {
            Some(name) => Failure::new(Kind::StreamReset, name),
            None => Failure::new(Kind::StreamReset, format!("code {error}")),
        };
        self.request_failed(failure, now);
    }

    /// A request of HTTP/2 was watched until this time without an end.
    pub(crate) fn request_censored(&mut self, stream: &Stream, until: u64) {
        if self.measured(stream.due) {
            self.total.censor(until.saturating_sub(stream.due));
            if stream.status == 0 {
                self.first_byte.censor(until.saturating_sub(stream.started));
            }
        }
    }

    /// What was due at this time had not even started by another, so many times.
    pub(crate) fn never_started(&mut self, due: u64, until: u64, count: u64) {
        if self.measured(due) {
            self.total.censor_many(until.saturating_sub(due), count);
        }
    }

    /// A connection was watched until this time without an end.
    pub(crate) fn censored(&mut self, times: &Times, until: u64, place: &Censored) {
        if self.measures(times) {
            let since = |time: u64| until.saturating_sub(time);
            match place.stage {
                Stage::Connect => self.tcp_connect.censor(since(times.connecting)),
                Stage::Tls => {
                    self.tcp_connect.record(times.connected.saturating_sub(times.connecting));
                    let of_kind =
                        if place.offered { &mut self.tls_resumed } else { &mut self.tls_full };
                    of_kind.censor(since(times.connected));
                }
                Stage::Response if place.waits => self.first_byte.censor(since(times.requested)),
                Stage::Response => {}
            }
        }
        if place.unit && self.measured(times.due) {
            self.total.censor(until.saturating_sub(times.due));
        }
    }

    /// Takes in what another worker counted.
    pub(crate) fn merge(&mut self, other: Tally) {
        self.started += other.started;
        self.completed += other.completed;
        self.in_window += other.in_window;
        self.in_ramp += other.in_ramp;
        self.unfinished += other.unfinished;
        self.not_started += other.not_started;
        self.requests += other.requests;
        self.requests_in_window += other.requests_in_window;
        self.request_failures.merge(other.request_failures);
        self.retried += other.retried;
        self.asked += other.asked;
        self.short += other.short;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.full += other.full;
        self.resumed += other.resumed;
        self.wanted += other.wanted;
        self.without_ticket += other.without_ticket;
        self.declined += other.declined;
        for (agreed, count) in other.agreed {
            match self.agreed.iter_mut().find(|(known, _)| *known == agreed) {
                Some((_, known)) => *known += count,
                None => self.agreed.push((agreed, count)),
            }
        }
        self.failures.merge(other.failures);
        self.tcp_connect.merge(&other.tcp_connect);
        self.tls_full.merge(&other.tls_full);
        self.tls_resumed.merge(&other.tls_resumed);
        self.first_byte.merge(&other.first_byte);
        self.total.merge(&other.total);
        self.start_delay.merge(&other.start_delay);
        self.cpu_nanos += other.cpu_nanos;
        self.last_finish = self.last_finish.max(other.last_finish);
        self.ended = self.ended.max(other.ended);
    }
}
