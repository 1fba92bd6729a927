//! When each step of a connection happened, by the client's clock.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::Time;

/// The steps of one connection on the client, by CLOCK_MONOTONIC. A step that did not happen is `None`.
///
/// Without Fast Open and early data: `started <= connected <= hello_sent <= ready <= request_sent <=
/// first_response_byte <= closed`. With Fast Open, `connected` (the SYN-ACK) comes after what rode in
/// the SYN; with early data, `ready` comes just before `hello_sent`, which then equals `request_sent`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Just before `connect()`, or before the QUIC endpoint was told to connect.
    pub started: Option<Time>,
    /// TCP: the SYN-ACK was seen. QUIC has no such step.
    pub connected: Option<Time>,
    /// The proxy and STARTTLS are done, and TLS may begin; `None` without either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Time>,
    /// The ClientHello was given to the transport: just before the system call, since on an emulated
    /// link the call itself may deliver the packet. QUIC: the connection was created; its first
    /// datagram leaves as soon as the runtime comes to it.
    pub hello_sent: Option<Time>,
    /// The first request byte may be given to the transport: TCP without TLS: connected (at once when
    /// it can ride in the SYN); TLS: the client's Finished goes out with it or before it; early data:
    /// the ClientHello with it is ready to be written.
    pub ready: Option<Time>,
    /// The request was given to the transport, measured as `hello_sent` is.
    pub request_sent: Option<Time>,
    /// The request was given again, since the server rejected early data.
    pub request_resent: Option<Time>,
    /// The first response byte was read and decrypted.
    pub first_response_byte: Option<Time>,
    /// Both Finished are done on this side.
    pub handshake_complete: Option<Time>,
    /// This side's end (close_notify and FIN, or CONNECTION_CLOSE) was given to the transport.
    pub closed: Option<Time>,
}

impl Timeline {
    /// From `started` to `step`; `None` if either did not happen.
    #[must_use]
    pub fn since_start(&self, step: Option<Time>) -> Option<Duration> {
        step?.checked_since(self.started?)
    }

    /// From TCP's handshake to when TLS may begin: the proxy's answer and STARTTLS; `None` without either.
    #[must_use]
    pub fn before_tls(&self) -> Option<Duration> {
        self.opened?.checked_since(self.connected?)
    }

    /// The handshake time of the SSLmTCP paper and of GREE 2018: from the start to when the first request byte may go.
    #[must_use]
    pub fn time_to_ready(&self) -> Option<Duration> {
        self.since_start(self.ready)
    }

    /// From the start to the first response byte.
    #[must_use]
    pub fn time_to_first_response_byte(&self) -> Option<Duration> {
        self.since_start(self.first_response_byte)
    }

    /// Between `ready` and the request: the think time as it turned out.
    #[must_use]
    pub fn think_time(&self) -> Option<Duration> {
        self.request_sent?.checked_since(self.ready?)
    }
}

/// Stamps a step once; the first time stays.
pub(crate) fn stamp(step: &mut Option<Time>, time: Time) {
    step.get_or_insert(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_both_ends() {
        let at = |ms| Some(Time::from_millis(ms));
        let mut timeline = Timeline { started: at(10), ready: at(31), ..Timeline::default() };
        assert_eq!(timeline.time_to_ready(), Some(Duration::from_millis(21)));
        assert_eq!(timeline.time_to_first_response_byte(), None);
        assert_eq!(timeline.think_time(), None);
        stamp(&mut timeline.request_sent, Time::from_millis(33));
        stamp(&mut timeline.request_sent, Time::from_millis(99));
        assert_eq!(timeline.think_time(), Some(Duration::from_millis(2)));
    }
}
