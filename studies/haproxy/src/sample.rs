//! A run as a sample.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use haproxy::Built;
use record::{Outcome, Sample};

use crate::plan::Run;

/// The study's name in samples.
pub const STUDY: &str = "haproxy";

/// Names of the values of a sample.
pub mod value {
    /// Connections per second, end to end.
    pub const PER_SECOND: &str = "connections_per_second";
    /// CPU time of HAProxy (of the process under test alone) a connection, the kernel's with it.
    pub const SERVER_CPU: &str = "server_cpu_us";
    /// The kernel's share of it.
    pub const KERNEL: &str = "server_kernel_share";
    /// Processors that HAProxy kept busy.
    pub const SERVER_BUSY: &str = "server_processors";
    /// CPU time of the load generator a connection.
    pub const CLIENT_CPU: &str = "client_cpu_us";
    /// Share of the generator's handshakes that were resumed.
    pub const CLIENT_RESUMED: &str = "client_resumed_share";
    /// Share of handshakes with clients that HAProxy counted as resumed, over all proxies.
    pub const FRONT_RESUMED: &str = "front_resumed_share";
    /// The same, with servers.
    pub const BACK_RESUMED: &str = "back_resumed_share";
    /// Handshakes that HAProxy took part in, on either side, a connection.
    pub const HANDSHAKES: &str = "handshakes_per_connection";
    /// Responses that HAProxy counted, over all proxies, a connection.
    pub const ANSWERED: &str = "answered_per_connection";
    /// Median time of a connection.
    pub const P50: &str = "total_p50_ms";
    /// 99 % of connections took no longer.
    pub const P99: &str = "total_p99_ms";
    /// Connections that succeeded.
    pub const COMPLETED: &str = "completed";
    /// Connections that failed.
    pub const FAILED: &str = "failed";
}

/// Names of the labels of a sample.
pub mod label {
    /// HAProxy's version, as it prints it.
    pub const HAPROXY: &str = "haproxy";
    /// Debian's version of its source.
    pub const SOURCE: &str = "source";
    /// The library that it says it runs on.
    pub const RUNS_ON: &str = "runs_on";
    /// Whether there is a build with light locks: `yes` or `no`.
    pub const LIGHT: &str = "light_locks";
}

pub(crate) fn sample(
    run: &Run,
    built: &Built,
    ended: Result<(), String>,
    values: BTreeMap<String, f64>,
) -> Sample {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Sample {
        study: STUDY.to_owned(),
        point: run.point.fields(),
        repeat: run.repeat,
        seed: 0,
        at_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        outcome: match ended {
            Ok(()) => Outcome::Completed,
            Err(reason) => Outcome::Failed { reason },
        },
        values,
        labels: labels(built),
        attachments: Vec::new(),
        command: run.command.clone(),
    }
}

/// What a build says of itself, for the report of samples whose builds are elsewhere or gone.
pub(crate) fn labels(built: &Built) -> BTreeMap<String, String> {
    let light = if built.light { "yes" } else { "no" };
    let labels = [
        (label::HAPROXY, built.haproxy.as_str()),
        (label::SOURCE, &built.debian),
        (label::RUNS_ON, &built.runs_on),
        (label::LIGHT, light),
    ];
    labels.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}
