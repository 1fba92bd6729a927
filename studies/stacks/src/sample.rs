//! From what a host answered to one sample.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use record::{Outcome, Sample};
use tls_drivers::hosts::{Counted, HostFailure};
use tls_drivers::{Extent, Locks, Reply, Side, Workload};

use crate::convert;
use crate::point::Point;
use crate::profile::profiles;

/// The study's name in samples.
pub const STUDY: &str = "stacks";

/// Names of the values in a sample.
pub mod value {
    /// Connections that ended well in a second (of a chain: end to end).
    pub const RATE: &str = "connections_per_s";
    /// CPU time of the server's side, a connection.
    pub const SERVER_CPU: &str = "server_cpu_us";
    /// CPU time of the client's side, a connection.
    pub const CLIENT_CPU: &str = "client_cpu_us";
    /// Share of connections that the wire shows to be resumed.
    pub const RESUMED: &str = "resumed_share";
    /// Connections that ended well.
    pub const DONE: &str = "connections";
    /// Connections that failed.
    pub const FAILED: &str = "failed_connections";
    /// Connections where a library said other than the wire did.
    pub const MISREPORTED: &str = "misreported_connections";
    /// Connections before the measured time, of a runtime.
    pub const WARM_UP: &str = "warm_up_connections";
    /// Wall time of what was measured, in ms.
    pub const WALL: &str = "wall_ms";
    /// Payload that one core of the sender's side encrypts.
    pub const SERVER_GBIT: &str = "server_gbit_per_core_s";
    /// Payload that one core of the other side decrypts.
    pub const CLIENT_GBIT: &str = "client_gbit_per_core_s";
    /// Payload by wall time.
    pub const GBIT: &str = "gbit_per_s";
    /// Rwlocks taken for reading, a connection, on the server's side.
    pub const SERVER_READ: &str = "server_read_locks";
    /// Rwlocks taken for writing.
    pub const SERVER_WRITE: &str = "server_write_locks";
    /// Mutexes and spin locks taken.
    pub const SERVER_MUTEX: &str = "server_mutexes";
    /// Acquisitions that had to wait.
    pub const SERVER_CONTENDED: &str = "server_contended";
    /// The same on the client's side.
    pub const CLIENT_READ: &str = "client_read_locks";
    /// Rwlocks taken for writing.
    pub const CLIENT_WRITE: &str = "client_write_locks";
    /// Mutexes and spin locks taken.
    pub const CLIENT_MUTEX: &str = "client_mutexes";
    /// Acquisitions that had to wait.
    pub const CLIENT_CONTENDED: &str = "client_contended";
    /// Instructions of the server's side, a handshake.
    pub const SERVER_INSTRUCTIONS: &str = "server_instructions";
    /// Atomic read-modify-write instructions of the server's side, a handshake.
    pub const SERVER_ATOMICS: &str = "server_atomics";
    /// Instructions of the client's side, a handshake.
    pub const CLIENT_INSTRUCTIONS: &str = "client_instructions";
    /// Atomic read-modify-write instructions of the client's side, a handshake.
    pub const CLIENT_ATOMICS: &str = "client_atomics";
    /// Of the server's instructions, those for signatures and key agreement.
    pub const SERVER_PUBLIC_KEY: &str = "server_instructions_public_key";
    /// Those for encryption.
    pub const SERVER_SYMMETRIC: &str = "server_instructions_symmetric";
    /// Those for hashes and key derivation.
    pub const SERVER_HASH: &str = "server_instructions_hash";
    /// Those of locks and counts of references.
    pub const SERVER_LOCKS: &str = "server_instructions_locks";
    /// Those for memory asked for and given back.
    pub const SERVER_ALLOCATION: &str = "server_instructions_allocation";
    /// Those for finding implementations and passing parameters to them.
    pub const SERVER_PROVIDER: &str = "server_instructions_provider_fetch";
    /// Those for messages, records and certificates.
    pub const SERVER_RECORDS: &str = "server_instructions_records";
    /// Those for nothing that the rule knows, the harness among them.
    pub const SERVER_OTHER: &str = "server_instructions_other";
    /// The same of the client's instructions.
    pub const CLIENT_PUBLIC_KEY: &str = "client_instructions_public_key";
    /// Those for encryption.
    pub const CLIENT_SYMMETRIC: &str = "client_instructions_symmetric";
    /// Those for hashes and key derivation.
    pub const CLIENT_HASH: &str = "client_instructions_hash";
    /// Those of locks and counts of references.
    pub const CLIENT_LOCKS: &str = "client_instructions_locks";
    /// Those for memory asked for and given back.
    pub const CLIENT_ALLOCATION: &str = "client_instructions_allocation";
    /// Those for finding implementations and passing parameters to them.
    pub const CLIENT_PROVIDER: &str = "client_instructions_provider_fetch";
    /// Those for messages, records and certificates.
    pub const CLIENT_RECORDS: &str = "client_instructions_records";
    /// Those for nothing that the rule knows.
    pub const CLIENT_OTHER: &str = "client_instructions_other";
    /// Heap bytes of an idle connection at the server.
    pub const SERVER_IDLE: &str = "server_idle_bytes";
    /// Heap bytes of a connection at the server in the middle of its handshake.
    pub const SERVER_HANDSHAKING: &str = "server_handshaking_bytes";
    /// Heap bytes of an idle connection at the client.
    pub const CLIENT_IDLE: &str = "client_idle_bytes";
    /// Heap bytes of a connection at the client in the middle of its handshake.
    pub const CLIENT_HANDSHAKING: &str = "client_handshaking_bytes";
    /// Time that the hypervisor took from the machine's processors meanwhile, in steps of 10 ms.
    pub const STOLEN: &str = "stolen_ms";
    /// Wall time of all threads in which they had work and did not run.
    pub const WAITED: &str = "waited_ms";
    /// Legs behind a chain's proxies that were full handshakes.
    pub const FULL_LEGS: &str = "full_legs";
    /// Slices of the point that were not measured after this one failed.
    pub const LEFT_OUT: &str = "slices_left_out";
    /// Energy of the processor while it ran, where it can be read.
    pub const JOULES: &str = "processor_joules";
}

/// The name of a value or of a failure as it is today: earlier results have some under another.
pub(crate) fn current(name: &str) -> &str {
    match name {
        "lied_connections" => value::MISREPORTED,
        "lied" => "misreported",
        other => other,
    }
}

/// Names of the labels in a sample.
pub mod label {
    /// The server's library, in its own words.
    pub const VERSION: &str = "server_version";
    /// Flags that it was built with.
    pub const FLAGS: &str = "server_build_flags";
    /// CPU features that it uses.
    pub const FEATURES: &str = "server_cpu_features";
    /// Bits of its functions, decimal.
    pub const FUNCTIONS: &str = "server_functions";
    /// The client's library, in its own words.
    pub const CLIENT_VERSION: &str = "client_version";
    /// Why it failed, in full.
    pub const FAILURE: &str = "failure";
    /// Call sites of the server's locks, the most frequent first, as JSON.
    pub const SITES: &str = "server_lock_sites";
    /// Where the server's instructions went, as JSON: [`crate::Profile`].
    pub const PROFILE: &str = "server_profile";
}

/// What a measurement came to.
pub(crate) enum Answer {
    /// The host's last word.
    Reply(Box<Reply>),
    /// Counts of instructions.
    Counted(Box<Counted>),
    /// The host gave no answer that can be used.
    Failure(HostFailure),
}

/// What a measurement says of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was measured.
    Good,
    /// The library cannot do this, and will not next time.
    Impossible,
    /// It failed, and may succeed the next time.
    Bad,
    /// The host died or hung: the library is not to be trusted.
    Broken,
}

/// Milliseconds since 1970-01-01 UTC.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A sample without anything measured.
fn empty(point: &Point, extent: Extent, repeat: u32, seed: u64) -> Sample {
    Sample {
        study: STUDY.to_owned(),
        point: point.fields(),
        repeat,
        seed,
        at_unix_ms: now_ms(),
        outcome: Outcome::Completed,
        values: BTreeMap::new(),
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command: point.command(extent, repeat + 1),
    }
}

/// The sample of one measurement.
pub(crate) fn sample(
    point: &Point,
    extent: Extent,
    repeat: u32,
    seed: u64,
    answer: &Answer,
) -> (Sample, Verdict) {
    let mut sample = empty(point, extent, repeat, seed);
    let verdict = match answer {
        Answer::Reply(reply) => match reply.as_ref() {
            Reply::Done(outcome) => done(&mut sample, point, outcome),
            Reply::Unsupported(why) => fail(&mut sample, "unsupported", why, Verdict::Impossible),
            Reply::Failed(why) => fail(&mut sample, "failed", why, Verdict::Bad),
        },
        Answer::Counted(counted) => {
            counts(&mut sample, counted);
            Verdict::Good
        }
        Answer::Failure(HostFailure::Hung(after)) => {
            let text = HostFailure::Hung(*after).to_string();
            let verdict = fail(&mut sample, "hung", &text, Verdict::Broken);
            sample.outcome = Outcome::TimedOut { after_ms: after.as_secs_f64() * 1e3 };
            verdict
        }
        Answer::Failure(failure) => {
            fail(&mut sample, failure.name(), &failure.to_string(), Verdict::Broken)
        }
    };
    (sample, verdict)
}

fn fail(sample: &mut Sample, name: &str, why: &str, verdict: Verdict) -> Verdict {
    sample.outcome = Outcome::Failed { reason: name.to_owned() };
    sample.labels.insert(label::FAILURE.to_owned(), printable(why));
    verdict
}

/// A library's own words, made harmless: they are printed.
pub(crate) fn printable(text: &str) -> String {
    const MOST: usize = 500;
    text.chars().take(MOST).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

fn counts(sample: &mut Sample, counted: &Counted) {
    let values = [
        (value::SERVER_INSTRUCTIONS, Some(counted.server_instructions)),
        (value::SERVER_ATOMICS, counted.server_atomics),
        (value::CLIENT_INSTRUCTIONS, counted.client_instructions),
        (value::CLIENT_ATOMICS, counted.client_atomics),
    ];
    put(sample, values);
    profiles(sample, counted);
}

/// Keeps the values that are there and finite.
pub(crate) fn put<const N: usize>(sample: &mut Sample, values: [(&str, Option<f64>); N]) {
    for (name, value) in values {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            sample.values.insert(name.to_owned(), value);
        }
    }
}

fn done(sample: &mut Sample, point: &Point, outcome: &tls_drivers::Outcome) -> Verdict {
    let done = outcome.done as f64;
    let wall_s = outcome.wall_ns as f64 / 1e9;
    let each = |ns: u64| (outcome.done > 0).then(|| ns as f64 / 1e3 / done);
    put(
        sample,
        [
            (value::DONE, Some(done)),
            (value::FAILED, Some(outcome.failed as f64)),
            (value::MISREPORTED, Some(outcome.misreported as f64)),
            (value::WALL, Some(wall_s * 1e3)),
            (value::WAITED, outcome.waited_ns.map(|ns| ns as f64 / 1e6)),
            (value::WARM_UP, point.warm_up().map(f64::from)),
        ],
    );
    // What is timed while locks are counted means nothing.
    let timed = point.locks != Locks::Count;
    match point.workload {
        Workload::Bulk { .. } if timed => bulk(sample, outcome),
        Workload::Bulk { .. } | Workload::Footprint { .. } => {}
        _ => {
            if timed {
                put(
                    sample,
                    [
                        (value::RATE, Some(done / wall_s)),
                        (value::SERVER_CPU, each(outcome.server.cpu_ns)),
                        (value::CLIENT_CPU, each(outcome.client.cpu_ns)),
                    ],
                );
            }
            let chain = matches!(point.workload, Workload::Chain { .. });
            let of = outcome.full_legs + if chain { outcome.resumed } else { outcome.done };
            let share = (of > 0).then(|| outcome.resumed as f64 / of as f64);
            let full_legs = chain.then_some(outcome.full_legs as f64);
            put(sample, [(value::RESUMED, share), (value::FULL_LEGS, full_legs)]);
        }
    }
    convert::locks(sample, outcome);
    convert::memory(sample, outcome);
    // The same in each of many slices.
    if sample.repeat == 0 {
        described(sample, &outcome.server, &outcome.client);
    }
    judge(sample, point, outcome)
}

fn bulk(sample: &mut Sample, outcome: &tls_drivers::Outcome) {
    let gbit = |ns: u64| (ns > 0).then(|| outcome.bytes as f64 * 8.0 / ns as f64);
    put(
        sample,
        [
            (value::SERVER_GBIT, gbit(outcome.server.cpu_ns)),
            (value::CLIENT_GBIT, gbit(outcome.client.cpu_ns)),
            (value::GBIT, gbit(outcome.wall_ns)),
        ],
    );
}

fn described(sample: &mut Sample, server: &Side, client: &Side) {
    let of = &server.described;
    let labels = [
        (label::VERSION, of.version.as_str()),
        (label::FLAGS, of.build_flags.as_str()),
        (label::FEATURES, of.cpu_features.as_str()),
        (label::CLIENT_VERSION, client.described.version.as_str()),
    ];
    for (name, text) in labels {
        sample.labels.insert(name.to_owned(), printable(text));
    }
    sample.labels.insert(label::FUNCTIONS.to_owned(), of.functions.to_string());
}

/// One in so many legs behind a chain's proxies may be a full handshake: where threads share ports, one
/// that gets more connections at once than ever before has no tickets for them yet.
const FULL_LEGS_IN: u64 = 100;

/// Whether what was measured is what was asked for.
fn judge(sample: &mut Sample, point: &Point, outcome: &tls_drivers::Outcome) -> Verdict {
    let name = |what: &str| {
        outcome.failure.as_deref().map_or(String::new(), |why| format!("{what}: {why}"))
    };
    if outcome.misreported > 0 {
        let text = format!(
            "misreported resumption: on {} of {} connections the library says other than the wire shows",
            outcome.misreported, outcome.done
        );
        return fail(sample, "misreported", &text, Verdict::Bad);
    }
    if outcome.done == 0 || outcome.failed > 0 {
        let all = outcome.done + outcome.failed;
        let text = name(&format!("{} of {all} connections failed", outcome.failed));
        let text = if text.is_empty() { "no connection ended well".to_owned() } else { text };
        return fail(sample, "connections failed", &text, Verdict::Bad);
    }
    let (resumed, of, what) = match point.workload {
        Workload::Full => (outcome.resumed == 0, outcome.done, "connections"),
        Workload::Resume => (outcome.resumed >= outcome.done, outcome.done, "connections"),
        Workload::Chain { proxies } => {
            // The client's leg and one behind each proxy.
            let legs = outcome.done.saturating_mul(proxies as u64 + 1);
            let (resumed, full) = (outcome.resumed, outcome.full_legs);
            let shown = resumed.saturating_add(full) >= legs;
            (shown && full.saturating_mul(FULL_LEGS_IN) <= legs, legs, "legs")
        }
        Workload::Bulk { .. } | Workload::Footprint { .. } => (true, outcome.done, ""),
    };
    if !resumed {
        let text = format!("the wire shows {} of {of} {what} resumed", outcome.resumed);
        return fail(sample, "not as asked", &text, Verdict::Bad);
    }
    Verdict::Good
}
