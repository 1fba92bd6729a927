//! What a run comes to.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::address::Tried;
use crate::failure::FailureCount;
use crate::latency::Summary;
use crate::options::{Http, Options, Pace};
use crate::tally::Tally;

/// What a run comes to. Times carry their unit in their name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The address that was loaded.
    pub address: String,
    /// Addresses of the server that did not answer, or not in time.
    pub tried: Vec<Tried>,
    /// The name that the certificate had to carry.
    pub server_name: String,
    /// The version of HTTP: `1.1` or `2`.
    pub http: String,
    /// Requests at once on each connection, in HTTP/2.
    pub streams: Option<usize>,
    /// The rate of an open loop, a second, of connections or in HTTP/2 of requests; none for a closed loop.
    pub rate: Option<f64>,
    /// Connections at once.
    pub connections: usize,
    /// How many threads work at once.
    pub threads: usize,
    /// From the first start to the last end.
    pub elapsed_seconds: f64,
    /// Of it, what is measured: without the ramp, and without the wait for the last ones.
    pub measured_seconds: f64,
    /// Connections started, those in the ramp included.
    pub started: u64,
    /// Connections that did all they were to do.
    pub completed: u64,
    /// Connections that failed.
    pub failed: u64,
    /// Connections under way when the run was stopped.
    pub unfinished: u64,
    /// Starts of an open loop that were due and could not be made: all connections were in use. They count as
    /// longer than they waited in `latency.total`.
    pub not_started: u64,
    /// Connections, in HTTP/2 requests, started in the ramp, whose latency is left out.
    pub in_ramp: u64,
    /// Why the run ended early, if it did: nothing had succeeded, and all failures were this one.
    pub stopped_early: Option<FailureCount>,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Completed connections per second, over the time measured.
    pub connections_per_second: f64,
    /// Requests answered per second, over the time measured.
    pub requests_per_second: f64,
    /// Requests whose response came.
    pub requests: u64,
    /// Requests of HTTP/2 that failed. In HTTP/1.1 the connection of a failed request has failed.
    pub requests_failed: u64,
    /// Why requests of HTTP/2 failed, the most frequent first.
    pub request_failures: Vec<FailureCount>,
    /// Requests of HTTP/2 that were sent again, since the server had not looked at them (RFC 9113 §8.7).
    pub requests_retried: u64,
    /// Connections that the server closed after fewer requests than were to be sent.
    pub short_connections: u64,
    /// Bytes received over TCP.
    pub bytes_in: u64,
    /// Bytes sent over TCP.
    pub bytes_out: u64,
    /// Full and resumed handshakes.
    pub handshakes: Handshakes,
    /// What was agreed on, the most frequent first.
    pub agreed: Vec<Agreement>,
    /// Latencies of the connections started after the ramp.
    pub latency: Latencies,
    /// What failed, the most frequent first.
    pub failures: Vec<FailureCount>,
    /// What the generator itself used.
    pub cpu: Cpu,
}

/// Full and resumed handshakes, as the handshakes themselves say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Full handshakes completed.
    pub full: u64,
    /// Resumed handshakes completed.
    pub resumed: u64,
    /// Connections that were to resume.
    pub wanted_resumed: u64,
    /// Of them, those without a ticket at hand: the first ones, and where the server gives too few.
    pub without_ticket: u64,
    /// Of them, those whose ticket the server declined.
    pub declined: u64,
    /// Handshakes completed whose server asked for a client certificate.
    pub asked_for_certificate: u64,
}

/// What a number of handshakes agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// The TLS version agreed on.
    pub version: String,
    /// Cipher suite, by its registered name.
    pub suite: String,
    /// Group; none where TLS 1.2 resumes.
    pub group: Option<String>,
    /// Whether a HelloRetryRequest came first.
    pub hello_retry_request: bool,
    /// How many handshakes.
    pub count: u64,
}

/// The parts of a connection's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From connect(2) to the connection.
    pub tcp_connect: Summary,
    /// From there to the end of the handshake, full and resumed ones together.
    pub tls: Summary,
    /// The same of full handshakes.
    pub tls_full: Summary,
    /// The same of resumed handshakes.
    pub tls_resumed: Summary,
    /// From each request to the first byte of its response.
    pub first_byte: Summary,
    /// From when the connection was due to the end of its last response; in HTTP/2 of each request.
    pub total: Summary,
    /// From when it was due to when it started: what the generator was late.
    pub start_delay: Summary,
}

/// CPU time of the generator's threads, the kernel's part for them included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// All of it.
    pub seconds: f64,
    /// For each connection completed.
    pub us_per_connection: Option<f64>,
    /// For each request answered.
    pub us_per_request: Option<f64>,
    /// How much of the threads' time it is: near 1, the generator itself was the limit.
    pub busy: f64,
}

/// How a run went, beside what its workers counted.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) address: SocketAddr,
    pub(crate) tried: Vec<Tried>,
    /// It was stopped from elsewhere.
    pub(crate) interrupted: bool,
    /// It ended since all failed alike.
    pub(crate) stopped_early: Option<FailureCount>,
}

impl Report {
    pub(crate) fn new(options: &Options, mut tally: Tally, course: Course) -> Report {
        let stopped = course.interrupted || course.stopped_early.is_some();
        let elapsed = tally.ended as f64 / 1e9;
        let ramp = tally.window.0 as f64 / 1e9;
        let end = (tally.window.1 as f64 / 1e9).min(tally.last_finish as f64 / 1e9);
        // A run without failures ends by its clock, though its last connection ended a bit before.
        let end = match options.duration {
            Some(duration) if !stopped && options.count.is_none() => duration.as_secs_f64(),
            _ => end,
        };
        let measured = (end - ramp).max(0.0);
        let per_second = |count: u64| if measured > 0.0 { count as f64 / measured } else { 0.0 };
        tally.agreed.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let agreed = tally.agreed.iter().map(|(agreed, count)| {
            let (version, suite, group) = agreed.names();
            let hello_retry_request = agreed.retry;
            Agreement { version, suite, group, hello_retry_request, count: *count }
        });
        let seconds = tally.cpu_nanos as f64 / 1e9;
        let each = |count: u64| (count > 0).then(|| seconds * 1e6 / count as f64);
        let tls_full = Summary::of(&tally.tls_full);
        let tls_resumed = Summary::of(&tally.tls_resumed);
        let agreed = agreed.collect();
        let mut tls = tally.tls_full;
        tls.merge(&tally.tls_resumed);
        Report {
            address: course.address.to_string(),
            tried: course.tried,
            server_name: options.server_name.clone(),
            http: match options.http {
                Http::One => "1.1".to_owned(),
                Http::Two { .. } => "2".to_owned(),
            },
            streams: options.streams(),
            rate: match options.pace {
                Pace::Closed => None,
                Pace::Open { rate } => Some(rate),
            },
            connections: options.connections(),
            threads: options.workers(),
            elapsed_seconds: elapsed,
            measured_seconds: measured,
            started: tally.started,
            completed: tally.completed,
            failed: tally.failures.total(),
            unfinished: tally.unfinished,
            not_started: tally.not_started,
            in_ramp: tally.in_ramp,
            stopped_early: course.stopped_early,
            interrupted: course.interrupted,
            connections_per_second: per_second(tally.in_window),
            requests_per_second: per_second(tally.requests_in_window),
            requests: tally.requests,
            requests_failed: tally.request_failures.total(),
            request_failures: tally.request_failures.list(),
            requests_retried: tally.retried,
            short_connections: tally.short,
            bytes_in: tally.bytes_in,
            bytes_out: tally.bytes_out,
            handshakes: Handshakes {
                full: tally.full,
                resumed: tally.resumed,
                wanted_resumed: tally.wanted,
                without_ticket: tally.without_ticket,
                declined: tally.declined,
                asked_for_certificate: tally.asked,
            },
            agreed,
            latency: Latencies {
                tcp_connect: Summary::of(&tally.tcp_connect),
                tls: Summary::of(&tls),
                tls_full,
                tls_resumed,
                first_byte: Summary::of(&tally.first_byte),
                total: Summary::of(&tally.total),
                start_delay: Summary::of(&tally.start_delay),
            },
            failures: tally.failures.list(),
            cpu: Cpu {
                seconds,
                us_per_connection: each(tally.completed),
                us_per_request: each(tally.requests),
                busy: if elapsed > 0.0 {
                    seconds / elapsed / options.workers() as f64
                } else {
                    0.0
                },
            },
        }
    }
}
