//! One connection seen three times: by the client, by the server, on the wire. What the wire shows
//! decides what the connection was; the other two must not contradict it.

use std::time::Duration;

use conn::{Outcome, ServerRecord};
use units::Time;

use crate::mode::{Mode, Security, Transport};
use crate::wire::WireView;

/// How far the clocks of capture (CLOCK_REALTIME) and nodes (CLOCK_MONOTONIC) may drift apart
/// within a run before causes seem to come after their effects.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(1);

/// One connection, seen three times.
pub(crate) struct Views<'a> {
    pub client: &'a Outcome,
    pub server: Option<&'a ServerRecord>,
    pub wire: Option<&'a WireView>,
    /// Least time from client to server, and back.
    pub one_way: (Duration, Duration),
}

/// What the connection was, by the wire alone. `None` if that is none of the modes.
pub(crate) fn actual_mode(intended: Mode, wire: &WireView) -> Option<Mode> {
    // Who runs the client's TCP is known by its address, which is not the kernel's.
    let user_space = intended.transport.is_user_space();
    let transport = match (wire.quic, wire.syn_data_taken, wire.cookie) {
        (true, _, _) => Transport::Quic,
        (_, false, _) if user_space => Transport::UserTcp,
        (_, true, _) if user_space && wire.is_embedded() => Transport::SslmTcp,
        (_, false, _) => Transport::Tcp,
        (_, true, true) => Transport::TcpFastOpen,
        (_, true, false) => Transport::TcpFastOpenNoCookie,
    };
    let mode = Mode::new(transport, actual_security(wire)?)?;
    // The document's profile, and no other, has envelopes.
    let paper = transport == Transport::SslmTcp && mode.security == Security::Tls12Rsa;
    (paper == wire.enveloped).then_some(mode)
}

fn actual_security(wire: &WireView) -> Option<Security> {
    Some(match wire.version {
        None => Security::Plain,
        Some(0x0303) if wire.resumed => Security::Tls12Resumed,
        Some(0x0303) if is_rsa_key_exchange(wire.cipher_suite?) => Security::Tls12Rsa,
        Some(0x0303) => Security::Tls12,
        Some(0x0304) if wire.early_data_accepted => Security::Tls13EarlyData,
        Some(0x0304) if wire.resumed && wire.hello_retry => return None,
        Some(0x0304) if wire.resumed => Security::Tls13Resumed,
        Some(0x0304) if wire.hello_retry => Security::Tls13HelloRetry,
        Some(0x0304) => Security::Tls13,
        Some(_) => return None,
    })
}

/// TLS_RSA_WITH_…: 0x0001 to 0x000A, AES-CBC, AES-GCM (RFC 5246 §A.5, RFC 5288 §3).
fn is_rsa_key_exchange(suite: u16) -> bool {
    matches!(suite, 0x0001..=0x000a | 0x002f | 0x0035 | 0x003c | 0x003d | 0x009c | 0x009d)
}

impl Views<'_> {
    /// How the views contradict each other: the first contradiction found, or `None`.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let Some(wire) = self.wire else { return Some("not in the capture".to_owned()) };
        let Some(server) = self.server else { return Some("not in the server's log".to_owned()) };
        self.facts(wire, server).or_else(|| self.order(wire, server)).map(str::to_owned)
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
        let (there, back) = self.one_way;
        let answered = timeline.first_response_byte;
        // Each pair: what comes first, what cannot come before it, and what to say if it does.
        let pairs = [
            (timeline.started, wire.first_frame, "a frame before the client began"),
            (timeline.request_sent, wire.request, "the request on the wire before it was sent"),
            (wire.response, answered, "the response read before it was on the wire"),
            (
                timeline.request_sent.map(|time| time + there),
                server.request_received,
                "the request at the server sooner than the path allows",
            ),
            (
                server.response_sent.map(|time| time + back),
                answered,
                "the response at the client sooner than the path allows",
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

    fn wire(change: impl FnOnce(&mut WireView)) -> WireView {
        let mut wire = WireView { version: Some(0x0304), ..WireView::default() };
        change(&mut wire);
        wire
    }

    fn actual(change: impl FnOnce(&mut WireView)) -> String {
        let intended = "tfo+tls13-0rtt".parse().unwrap();
        actual_mode(intended, &wire(change)).unwrap().to_string()
    }

    #[test]
    fn a_connection_is_what_the_wire_shows_not_what_it_was_meant_to_be() {
        assert_eq!(actual(|_| ()), "tcp+tls13");
        assert_eq!(actual(|wire| wire.syn_data_taken = true), "tfo-nocookie+tls13");
        assert_eq!(
            actual(|wire| {
                wire.syn_data_taken = true;
                wire.cookie = true;
                wire.resumed = true;
            }),
            "tfo+tls13-resumed"
        );
        assert_eq!(
            actual(|wire| {
                wire.resumed = true;
                wire.early_data_accepted = true;
            }),
            "tcp+tls13-0rtt"
        );
        assert_eq!(actual(|wire| wire.version = None), "tcp");
        assert_eq!(
            actual(|wire| {
                wire.version = Some(0x0303);
                wire.cipher_suite = Some(0x009c);
            }),
            "tcp+tls12-rsa"
        );
    }

    fn embedded(change: impl FnOnce(&mut WireView)) -> Option<String> {
        let intended = "sslmtcp-paper".parse().unwrap();
        let wire = wire(|wire| {
            (wire.syn_data, wire.hello_len) = (1_200, 300);
            (wire.syn_data_taken, wire.syn_ack_data) = (true, 1_400);
            change(wire);
        });
        actual_mode(intended, &wire).map(|mode| mode.to_string())
    }

    #[test]
    fn sslmtcp_is_data_on_the_syn_ack_and_its_fallback_is_its_control() {
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(embedded(|_| ()), is("sslmtcp-tls13"));
        let early = embedded(|wire| (wire.resumed, wire.early_data_accepted) = (true, true));
        assert_eq!(early, is("sslmtcp-0rtt"));
        assert_eq!(embedded(|wire| wire.resumed = true), is("sslmtcp-resumed"));
        let refused = embedded(|wire| {
            (wire.syn_data_taken, wire.syn_ack_data) = (false, 0);
        });
        assert_eq!(refused, is("usertcp+tls13"));
        // A bare SYN+ACK that takes the hello is a server's with Fast Open.
        assert_eq!(embedded(|wire| wire.syn_ack_data = 0), is("tfo-nocookie+tls13"));
        // Unless the hello is not yet whole.
        let long = embedded(|wire| (wire.syn_ack_data, wire.hello_len) = (0, 1_500));
        assert_eq!(long, is("sslmtcp-tls13"));
    }

    #[test]
    fn the_documents_profile_and_no_other_has_envelopes() {
        let rsa = |wire: &mut WireView| {
            (wire.version, wire.cipher_suite) = (Some(0x0303), Some(0x009c));
        };
        let paper = embedded(|wire| {
            rsa(wire);
            wire.enveloped = true;
        });
        assert_eq!(paper.as_deref(), Some("sslmtcp-paper"));
        assert_eq!(embedded(rsa), None);
        assert_eq!(embedded(|wire| wire.enveloped = true), None);
    }

    #[test]
    fn effects_before_causes_are_found() {
        let at = |ms| Some(Time::from_millis(ms));
        assert!(is_late(at(10), at(5)));
        assert!(!is_late(at(10), at(10)));
        assert!(!is_late(Some(Time::from_micros(10_900)), at(10)));
        assert!(!is_late(None, at(1)));
    }
}
