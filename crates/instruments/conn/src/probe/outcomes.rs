//! Measured connections as samples, answers and verdicts.

use std::time::Duration;

use tls::NamedGroup;

use super::report::{ProbeSample, Verdict};
use super::tried::{Answer, End, Negotiated};
use crate::{Failure, Outcome};

/// A measured connection as an answer to its hello.
pub(super) fn answer(result: &Result<Outcome, Failure>) -> Answer {
    let ended = |how| Answer::Ended { how, after_tls: false, asked: false };
    let failure = match result {
        Ok(outcome) => return Answer::Completed(outcome.facts.as_ref().and_then(negotiated)),
        Err(failure) => failure,
    };
    match failure {
        Failure::TimedOut { .. } => ended(End::TimedOut),
        Failure::Refused => ended(End::Refused),
        Failure::Reset { .. } => ended(End::Reset),
        Failure::Protocol(_) => ended(End::Closed),
        Failure::Tls(tls::Error::Peer(tls::PeerError::Alert { code, .. })) => {
            Answer::Alert { code: *code, asked: false }
        }
        Failure::Tls(tls::Error::Peer(tls::PeerError::LongMessage)) => Answer::LongMessage,
        Failure::Tls(error @ (tls::Error::Peer(_) | tls::Error::Certificate(_))) => {
            Answer::Broken(error.to_string())
        }
        other => Answer::Untried(other.to_string()),
    }
}

fn negotiated(facts: &tls::Facts) -> Option<Negotiated> {
    Some(Negotiated {
        version: tls::WireVersion(facts.version?.id()),
        cipher_suite: facts.cipher_suite?,
        group: facts.group.map(|group| NamedGroup(group.id())),
        hello_retry_request: facts.hello_retry_request,
        key: None,
        chain_bytes: 0,
    })
}

/// A connection's times and counts.
pub(super) fn sample(outcome: &Outcome) -> ProbeSample {
    let timeline = &outcome.timeline;
    let since_start = |step| timeline.since_start(step).map(millis);
    let (rtt, retransmits) = match (&outcome.tcp, &outcome.quic) {
        (Some(tcp), _) => (Some(tcp.rtt), tcp.retransmits.into()),
        (None, Some(quic)) => (Some(quic.rtt), quic.packets_lost),
        (None, None) => (None, 0),
    };
    ProbeSample {
        connect_ms: since_start(timeline.connected),
        before_tls_ms: timeline.before_tls().map(millis),
        ready_ms: since_start(timeline.ready),
        // A server that speaks first has not answered anything.
        first_byte_ms: timeline
            .request_sent
            .and_then(|_| since_start(timeline.first_response_byte)),
        rtt_ms: rtt.map(millis),
        retransmits,
        cpu_ms: millis(outcome.cpu),
        client_hello_len: outcome.facts.as_ref().map(|facts| facts.client_hello_len),
    }
}

/// A time in milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The verdict on a mode that failed so.
pub(super) fn verdict(failure: &Failure) -> Verdict {
    match failure {
        Failure::TimedOut { after, .. } => {
            Verdict::TimedOut { after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX) }
        }
        // It came, so the server does speak this version; what comes after it was not measured.
        Failure::Tls(tls::Error::Certificate(error)) => Verdict::NotTested {
            reason: format!("it answers, but its certificate is refused: {error}"),
        },
        Failure::Tls(tls::Error::Peer(tls::PeerError::Alert { name, .. })) => {
            Verdict::Refused { reason: format!("the server refused: alert {name}") }
        }
        other => Verdict::Refused { reason: other.to_string() },
    }
}
