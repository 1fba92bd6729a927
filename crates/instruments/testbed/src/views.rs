//! One connection seen three times: by the client, by the server, on the wire. What the wire shows
//! decides what the connection was; the other two must not contradict it.

use std::time::Duration;

use conn::{Outcome, ServerRecord};
use tracker::Connection;
use units::Time;

use crate::{Way, WireView};

/// How far the clocks of capture (CLOCK_REALTIME) and nodes (CLOCK_MONOTONIC) may drift apart
/// within a run before causes seem to come after their effects.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(1);

/// One connection, seen three times.
pub struct Views<'a> {
    /// By the client, and its clock.
    pub client: &'a Outcome,
    /// By the server's log, if it is there.
    pub server: Option<&'a ServerRecord>,
    /// By the capture at the client, if it is there.
    pub wire: Option<WireView>,
    /// What the path can do.
    pub way: Way,
}

impl<'a> Views<'a> {
    /// The views of the connection of which the client saw `client` and the server `server`, over such
    /// a path. It is looked for among all connections of a capture at the client.
    #[must_use]
    pub fn new(
        client: &'a Outcome,
        server: Option<&'a ServerRecord>,
        captured: &[Connection],
        way: Way,
    ) -> Views<'a> {
        let own = captured.iter().find(|connection| {
            connection.client == client.local && connection.server == client.remote
        });
        let wire = own.map(|connection| WireView::new(connection, client, way));
        Views { client, server, wire, way }
    }

    /// How the views contradict each other: the first contradiction found, or `None`.
    #[must_use]
    pub fn contradiction(&self) -> Option<&'static str> {
        let Some(wire) = &self.wire else { return Some("not in the capture") };
        let Some(server) = self.server else { return Some("not in the server's log") };
        self.facts(wire, server).or_else(|| self.order(wire, server))
    }

    fn facts(&self, wire: &WireView, server: &ServerRecord) -> Option<&'static str> {
        let says = |facts: &Option<tls::Facts>| {
            facts.as_ref().map(|facts| {
                (
                    facts.version.map(tls::Version::id),
                    facts.cipher_suite.map(|suite| suite.0),
                    facts.resumed,
                    facts.early_data == tls::EarlyData::Accepted,
                    facts.hello_retry_request,
                )
            })
        };
        let (client, server) = (says(&self.client.facts), says(&server.facts));
        let wire = wire.version.map(|version| {
            (
                Some(version),
                wire.cipher_suite,
                wire.resumed,
                wire.early_data_accepted,
                wire.hello_retry,
            )
        });
        if client != server {
            Some("client and server disagree on the handshake")
        } else if client != wire {
            Some("client and capture disagree on the handshake")
        } else {
            None
        }
    }

    fn order(&self, wire: &WireView, server: &ServerRecord) -> Option<&'static str> {
        let timeline = &self.client.timeline;
        let (there, back) = self.way.one_way;
        let answered = timeline.first_response_byte;
        // Each pair: what comes first, what cannot come before it, and what to say if it does.
        let pairs = [
            (timeline.started, wire.first_frame, "a frame before the client began"),
            (timeline.request_sent, wire.request, "the request on the wire before it was sent"),
            (wire.response, answered, "the response read before it was on the wire"),
            (
                timeline.request_sent.map(|time| time + there),
                server.request_received,
                "the request at the server earlier than the path allows",
            ),
            (
                server.response_sent.map(|time| time + back),
                answered,
                "the response at the client earlier than the path allows",
            ),
        ];
        pairs.into_iter().find(|(first, then, _)| is_late(*first, *then)).map(|(_, _, say)| say)
    }
}

/// Whether `first` is later than `then` by more than the clocks may be apart.
fn is_late(first: Option<Time>, then: Option<Time>) -> bool {
    match (first, then) {
        (Some(first), Some(then)) => first > then + CLOCK_TOLERANCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_before_causes_are_found() {
        let at = |ms| Some(Time::from_millis(ms));
        assert!(is_late(at(10), at(5)));
        assert!(!is_late(at(10), at(10)));
        assert!(!is_late(Some(Time::from_micros(10_900)), at(10)));
        assert!(!is_late(None, at(1)));
    }
}
