//! What a worker counts, without sharing anything; merged at the end.

use hdrhistogram::Histogram;
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use tls::CipherSuite;

use crate::Error;
use crate::failure::{Failure, Failures, Stage};

/// The longest latency told apart: an hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds, three digits exact.
#[derive(Debug)]
pub(crate) struct Latency(pub(crate) Histogram<u64>);

impl Latency {
    fn new() -> Result<Latency, Error> {
        // Below a microsecond the steps are one nanosecond.
        Histogram::new_with_bounds(1, LONGEST, 3)
            .map(Latency)
            .map_err(|cause| Error::System(format!("a histogram cannot be made: {cause}")))
    }

    fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    fn merge(&mut self, other: &Latency) {
        // Both have the same bounds, so that nothing can be out of range.
        let _ = self.0.add(&other.0);
    }
}

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
}

impl Tally {
    /// Counts of what is measured from `ramp` to `end`.
    pub(crate) fn new(ramp: u64, end: u64) -> Result<Tally, Error> {
        Ok(Tally {
            started: 0,
            completed: 0,
            in_window: 0,
            in_ramp: 0,
            unfinished: 0,
            not_started: 0,
            requests: 0,
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
        })
    }

    fn measured(&self, times: &Times) -> bool {
        times.due >= self.window.0
    }

    /// A connection has started.
    pub(crate) fn started(&mut self, times: &Times, wants_resume: bool, has_ticket: bool) {
        self.started += 1;
        self.wanted += u64::from(wants_resume);
        self.without_ticket += u64::from(wants_resume && !has_ticket);
        if self.measured(times) {
            self.start_delay.record(times.started.saturating_sub(times.due));
        } else {
            self.in_ramp += 1;
        }
    }

    /// A handshake is complete.
    pub(crate) fn secured(&mut self, times: &Times, tls: &ClientConnection, offered: bool) {
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
        if self.measured(times) {
            self.tcp_connect.record(times.connected.saturating_sub(times.connecting));
            let took = times.secured.saturating_sub(times.connected);
            let of_kind = if resumed { &mut self.tls_resumed } else { &mut self.tls_full };
            of_kind.record(took);
        }
    }

    /// The first byte of a response is there.
    pub(crate) fn first_byte(&mut self, times: &Times, now: u64) {
        if self.measured(times) {
            self.first_byte.record(now.saturating_sub(times.requested));
        }
    }

    /// A connection has done its work.
    pub(crate) fn completed(&mut self, times: &Times, now: u64) {
        self.completed += 1;
        self.last_finish = self.last_finish.max(now);
        self.in_window += u64::from(now >= self.window.0 && now < self.window.1);
        if self.measured(times) {
            self.total.record(now.saturating_sub(times.due));
        }
    }

    /// A connection has failed.
    pub(crate) fn failed(&mut self, stage: Stage, failure: Failure, now: u64) {
        self.last_finish = self.last_finish.max(now);
        self.failures.add(stage, failure);
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
