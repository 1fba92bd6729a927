//! What a run comes to.

use serde::{Deserialize, Serialize};

use crate::failure::FailureCount;
use crate::options::{Options, Pace};
use crate::tally::{Latency, Tally};

/// What a run comes to. Times carry their unit in their name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The address that was loaded.
    pub address: String,
    /// The name that the certificate had to carry.
    pub server_name: String,
    /// The rate of an open loop, a second; none for a closed loop.
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
    /// Connections under way when the run was interrupted.
    pub unfinished: u64,
    /// Starts of an open loop that were due and could not be made: all connections were in use.
    pub not_started: u64,
    /// Connections started in the ramp, whose latency is left out.
    pub in_ramp: u64,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Completed connections per second, over the time measured.
    pub connections_per_second: f64,
    /// Requests whose response came.
    pub requests: u64,
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
    /// From when the connection was due to the end of its last response.
    pub total: Summary,
    /// From when it was due to when it started: what the generator was late.
    pub start_delay: Summary,
}

/// A distribution of times, by a histogram of three digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many times were measured.
    pub count: u64,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Minimum, in microseconds.
    pub min_us: f64,
    /// Median, in microseconds.
    pub p50_us: f64,
    /// 90 % are not above it.
    pub p90_us: f64,
    /// 99 % are not above it.
    pub p99_us: f64,
    /// 99.9 % are not above it.
    pub p999_us: f64,
    /// 99.99 % are not above it.
    pub p9999_us: f64,
    /// Maximum, in microseconds.
    pub max_us: f64,
}

/// CPU time of the generator's threads, the kernel's part for them included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// All of it.
    pub seconds: f64,
    /// For each connection completed.
    pub us_per_connection: Option<f64>,
    /// How much of the threads' time it is: near 1, the generator itself was the limit.
    pub busy: f64,
}

impl Summary {
    fn of(latency: &Latency) -> Summary {
        let histogram = &latency.0;
        if histogram.is_empty() {
            return Summary::default();
        }
        let us = |nanos: u64| nanos as f64 / 1e3;
        let quantile = |share: f64| us(histogram.value_at_quantile(share));
        Summary {
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            min_us: us(histogram.min()),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            p9999_us: quantile(0.9999),
            max_us: us(histogram.max()),
        }
    }
}

impl Report {
    pub(crate) fn new(options: &Options, mut tally: Tally, stopped: bool) -> Report {
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
        let tls_full = Summary::of(&tally.tls_full);
        let tls_resumed = Summary::of(&tally.tls_resumed);
        let agreed = agreed.collect();
        let mut tls = tally.tls_full;
        let _ = tls.0.add(&tally.tls_resumed.0);
        Report {
            address: options.address.to_string(),
            server_name: options.server_name.clone(),
            rate: match options.pace {
                Pace::Closed => None,
                Pace::Open { rate } => Some(rate),
            },
            connections: options.connections,
            threads: options.threads.min(options.connections),
            elapsed_seconds: elapsed,
            measured_seconds: measured,
            started: tally.started,
            completed: tally.completed,
            failed: tally.failures.total(),
            unfinished: tally.unfinished,
            not_started: tally.not_started,
            in_ramp: tally.in_ramp,
            interrupted: stopped,
            connections_per_second: per_second(tally.in_window),
            requests: tally.requests,
            short_connections: tally.short,
            bytes_in: tally.bytes_in,
            bytes_out: tally.bytes_out,
            handshakes: Handshakes {
                full: tally.full,
                resumed: tally.resumed,
                wanted_resumed: tally.wanted,
                without_ticket: tally.without_ticket,
                declined: tally.declined,
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
                us_per_connection: (tally.completed > 0)
                    .then(|| seconds * 1e6 / tally.completed as f64),
                busy: if elapsed > 0.0 {
                    seconds / elapsed / options.threads.min(options.connections) as f64
                } else {
                    0.0
                },
            },
        }
    }
}
