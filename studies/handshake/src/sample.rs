//! From one connection, seen three times, to one sample.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conn::{Attempt, Failure, Outcome as Connected, ServerRecord};
use record::{Outcome, Sample};
use testbed::{Views, Way, WireView};
use tracker::Connection;

use crate::actual::actual_mode;
use crate::mode::{Mode, Transport};
use crate::point::Point;
use crate::spec::{Sizes, round_trips};
use crate::summary::{label, value};

/// The study's name in samples.
pub(crate) const STUDY: &str = "handshake";

/// One connection as everyone saw it.
pub(crate) struct Seen<'a> {
    pub attempt: &'a Attempt,
    pub server: Option<&'a ServerRecord>,
    /// All connections in the capture, this one among them.
    pub connections: &'a [Connection],
}

/// The sample of one connection. `options`: what a command
/// needs beside the point to measure it again.
pub(crate) fn sample(
    point: &Point,
    repeat: u32,
    seed: u64,
    seen: &Seen<'_>,
    way: Way,
    options: &str,
) -> Sample {
    let mut sample = Sample {
        study: STUDY.to_owned(),
        point: point.fields(),
        repeat,
        seed,
        at_unix_ms: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64),
        outcome: Outcome::Completed,
        values: BTreeMap::new(),
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command: format!("{}{options}", point.command(seed, repeat + 1)),
    };
    match seen.attempt {
        Ok(outcome) => completed(&mut sample, point.mode, outcome, seen, way),
        Err(Failure::TimedOut { after, .. }) => {
            sample.outcome = Outcome::TimedOut { after_ms: millis(*after) };
        }
        Err(failure) => {
            sample.outcome = Outcome::Failed { reason: failure.name().to_owned() };
            sample.labels.insert("failure".to_owned(), failure.to_string());
        }
    }
    sample
}

fn completed(sample: &mut Sample, intended: Mode, outcome: &Connected, seen: &Seen<'_>, way: Way) {
    let views = Views::new(outcome, seen.server, seen.connections, way);
    let mut contradiction = views.contradiction();

    client_values(&mut sample.values, outcome);
    if let Some(server) = seen.server {
        server_values(&mut sample.values, server);
    }
    if let Some(wire) = &views.wire {
        match actual_mode(intended, wire) {
            Some(actual) => {
                sample.labels.insert(label::ACTUAL.to_owned(), actual.to_string());
                wire_values(&mut sample.values, actual, wire);
                time_as(actual, &mut sample.values, outcome);
            }
            None => contradiction = contradiction.or(Some("none of the study's modes")),
        }
    }
    labels(&mut sample.labels, outcome);
    let views = contradiction.unwrap_or(label::AGREE);
    sample.labels.insert(label::VIEWS.to_owned(), views.to_owned());
}

fn client_values(values: &mut BTreeMap<String, f64>, outcome: &Connected) {
    let timeline = &outcome.timeline;
    let mut put = |name: &str, duration: Option<Duration>| {
        if let Some(duration) = duration {
            values.insert(name.to_owned(), millis(duration));
        }
    };
    put(value::READY, timeline.time_to_ready());
    put(value::RESPONSE, timeline.time_to_first_response_byte());
    put(value::THINK, timeline.think_time());
    put(value::CONNECT, timeline.since_start(timeline.connected));
    put(value::CLIENT_CPU, Some(outcome.cpu));
    put(value::CLIENT_CRYPTO, outcome.crypto);
    if let Some(facts) = &outcome.facts {
        values.insert(value::HELLO_BYTES.to_owned(), facts.client_hello_len as f64);
    }
}

/// A connection that fell back was not ready when it would have been: what the client gave too early
/// did not count.
fn time_as(actual: Mode, values: &mut BTreeMap<String, f64>, outcome: &Connected) {
    let timeline = &outcome.timeline;
    let Some(first) = timeline.ready else { return };
    let mut ready = first;
    if matches!(actual.transport, Transport::Tcp | Transport::UserTcp) {
        // RFC 7413 §4.2.1: data that a SYN carried in vain is sent again after the SYN+ACK.
        ready = ready.max(timeline.connected.unwrap_or(ready));
    }
    if !actual.early_data() {
        // RFC 8446 §4.2.10: so is early data that was rejected, after the handshake.
        ready = ready.max(timeline.request_resent.unwrap_or(ready));
    }
    if ready == first {
        return;
    }
    values.extend(timeline.since_start(Some(ready)).map(|d| (value::READY.to_owned(), millis(d))));
    values.remove(value::THINK);
}

fn server_values(values: &mut BTreeMap<String, f64>, server: &ServerRecord) {
    values.insert(value::SERVER_CPU.to_owned(), millis(server.cpu));
    if let Some(crypto) = server.crypto {
        values.insert(value::SERVER_CRYPTO.to_owned(), millis(crypto));
    }
    let handshake = match (server.hello_received, server.handshake_complete) {
        (Some(hello), Some(complete)) => complete.checked_since(hello),
        _ => None,
    };
    if let Some(handshake) = handshake {
        values.insert(value::SERVER_HANDSHAKE.to_owned(), millis(handshake));
    }
}

fn wire_values(values: &mut BTreeMap<String, f64>, actual: Mode, wire: &WireView) {
    let since_first =
        |time: Option<units::Time>| Some(millis(time?.checked_since(wire.first_frame?)?));
    let spec = round_trips(actual, &Sizes::of(wire, actual));
    let loaded = |bytes: u64| (bytes > 0).then_some(bytes as f64);
    let all = [
        (value::UP_BYTES, Some(wire.up.bytes as f64)),
        (value::DOWN_BYTES, Some(wire.down.bytes as f64)),
        (value::UP_FRAMES, Some(wire.up.frames as f64)),
        (value::DOWN_FRAMES, Some(wire.down.frames as f64)),
        (value::RETRANSMITTED, Some(wire.retransmitted as f64)),
        (value::SYN_BYTES, loaded(wire.syn_data)),
        (value::SYN_ACK_BYTES, loaded(wire.syn_ack_data)),
        (value::WIRE_REQUEST, since_first(wire.request)),
        (value::WIRE_RESPONSE, since_first(wire.response)),
        (value::SPEC_READY, Some(f64::from(spec.ready))),
        (value::SPEC_RESPONSE, Some(f64::from(spec.response))),
    ];
    values.extend(all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}

fn labels(labels: &mut BTreeMap<String, String>, outcome: &Connected) {
    let mut put = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            labels.insert(name.to_owned(), text);
        }
    };
    let facts = outcome.facts.as_ref();
    put(label::VERSION, facts.and_then(|facts| Some(facts.version?.to_string())));
    put(label::SUITE, facts.and_then(|facts| Some(facts.cipher_suite?.to_string())));
    put("group", facts.and_then(|facts| Some(facts.group?.to_string())));
    put(label::CLIENT, Some(outcome.local.to_string()));
    put(label::SERVER, Some(outcome.remote.to_string()));
    put(label::SYN_DATA, outcome.tcp.map(|_| format!("{:?}", outcome.syn_data).to_lowercase()));
    put(label::CPU_SCOPE, Some(format!("{:?}", outcome.cpu_scope).to_lowercase()));
}

fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}
