//! What the capture at the client shows of one connection, as far as the study asks.

use conn::Outcome;
use tracker::{Connection, EarlyData, Resumption, Traffic};
use units::Time;

use crate::mode::Mode;
use crate::sample::Way;
use crate::spec::Sizes;

/// Payload bytes of a full segment: MTU 1500 less IPv4 and TCP header and timestamps (RFC 7323 §2).
const SEGMENT: u64 = 1500 - 20 - 20 - 12;
/// Payload bytes that Linux puts into a SYN at an MTU of 1500: room for all TCP options is kept free.
const SYN_PAYLOAD: u64 = 1500 - 20 - 20 - 40;
/// Payload bytes that our TCP puts into a SYN at an MTU of 1500: it keeps the room of its own options
/// free, 20 bytes (MSS, SACK permitted, timestamps, window scale).
const USER_SYN_PAYLOAD: u64 = 1500 - 20 - 20 - 20;
/// CRYPTO bytes that fit the first QUIC datagram of 1200 bytes, beside headers, frames and tag
/// (RFC 9000 §17.2.2, two connection IDs of 8 and up to 20 bytes).
const QUIC_FIRST_DATAGRAM: u64 = 1_120;
/// UDP payload of a datagram with an Initial (RFC 9000 §14.1).
const QUIC_DATAGRAM: u64 = 1_200;
/// What one byte of early data adds to the first flight: record header, content type, tag.
const EARLY_RECORD: u64 = 5 + 1 + 1 + 16;

/// What the wire shows of one connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WireView {
    pub quic: bool,
    pub first_frame: Option<Time>,
    /// When the client's first application data left it.
    pub request: Option<Time>,
    /// When the server's first application data came to it.
    pub response: Option<Time>,
    /// Frames until then, from and to the client.
    pub up: Traffic,
    pub down: Traffic,
    /// The SYN carried data, and the SYN+ACK acknowledged all of it.
    pub syn_data_taken: bool,
    pub cookie: bool,
    /// Bytes of data on the SYN and on the SYN+ACK; the former whether taken or not.
    pub syn_data: u64,
    pub syn_ack_data: u64,
    /// TLS records on SYN, SYN+ACK and ACK were in the document's envelopes.
    pub enveloped: bool,
    /// Negotiated version; `None` without TLS.
    pub version: Option<u16>,
    pub cipher_suite: Option<u16>,
    pub resumed: bool,
    pub early_data_accepted: bool,
    pub hello_retry: bool,
    pub hello_len: u64,
    pub server_flight: u64,
    pub retransmitted: u64,
}

impl WireView {
    /// The view of a connection whose client saw `outcome`, over such a path.
    pub(crate) fn new(connection: &Connection, outcome: &Outcome, way: Way) -> WireView {
        let mut view = WireView {
            quic: connection.quic.is_some(),
            first_frame: Some(connection.first_frame),
            request: connection.client_data,
            response: connection.server_data,
            up: connection.up_to_response.unwrap_or(connection.up),
            down: connection.down_to_response.unwrap_or(connection.down),
            ..WireView::default()
        };
        if let Some(tcp) = &connection.tcp {
            let fast_open = &tcp.fast_open;
            let all_taken = fast_open.syn_data_acked == fast_open.syn_data;
            let in_part = tcp.syn_data_taken == Some(true);
            view.syn_data_taken = tcp.syn_data > 0 && in_part && all_taken;
            view.cookie = fast_open.cookie_len.is_some();
            view.syn_data = tcp.syn_data.into();
            view.syn_ack_data = tcp.syn_ack_data.into();
            view.enveloped = tcp.enveloped;
            view.retransmitted = tcp.client_retransmitted + tcp.server_retransmitted;
        }
        if let Some(tls) = &connection.tls {
            view.version = tls.version.map(|version| version.0);
            view.cipher_suite = tls.cipher_suite.map(|suite| suite.0);
            view.resumed = tls.resumption != Resumption::None;
            view.hello_retry = tls.hello_retry_request.is_some();
            view.hello_len = u64::from(tls.client_hello_records_len);
            view.server_flight = tls.server_flight_len;
            view.early_data_accepted = tls.early_data == EarlyData::Accepted;
        }
        if view.quic {
            view.early_data_accepted = quic_early_data(connection, outcome, way);
            // Packets behind the handshake are opaque: what the client's application saw decides.
            view.request = None;
            view.response = None;
            view.retransmitted = outcome.quic.map_or(0, |quic| quic.packets_lost);
        }
        view
    }

    /// The sizes that decide how many round trips the specifications give.
    pub(crate) fn sizes(&self, mode: Mode) -> Sizes {
        let early = if mode.early_data() { EARLY_RECORD } else { 0 };
        let hello = self.hello_len.max(1);
        let datagrams = if hello <= QUIC_FIRST_DATAGRAM { 1 } else { 2 };
        Sizes {
            first_flight: hello + early,
            server_flight: self.server_flight,
            client_datagrams: datagrams * QUIC_DATAGRAM,
            segment: SEGMENT,
            syn_payload: match mode.transport.is_user_space() {
                true => USER_SYN_PAYLOAD,
                false => SYN_PAYLOAD,
            },
            syn_data: self.syn_data,
        }
    }

    /// Whether TLS answered data of a SYN as SSLmTCP does: on the SYN+ACK, or, since the SYN did not
    /// hold the whole hello, behind it. A bare SYN+ACK to a whole hello is Fast Open's, unless it is
    /// in an envelope, or the first SYN+ACK was lost: it is sent again without data.
    pub(crate) fn is_embedded(&self) -> bool {
        let hello_in_part = self.hello_len > self.syn_data;
        let sent_again = self.retransmitted > 0;
        let embedded = self.syn_ack_data > 0 || hello_in_part || self.enveloped || sent_again;
        self.syn_data_taken && embedded
    }
}

/// Whether the wire proves that QUIC's early data was accepted: 0-RTT packets were sent, the
/// ServerHello took the pre-shared key, and the response was there sooner than a request in the
/// client's first 1-RTT packet could have been answered over this path. An answer may be late because
/// a frame was lost: under loss the two ends' word stands, else only the fast would count.
fn quic_early_data(connection: &Connection, outcome: &Outcome, way: Way) -> bool {
    let (Some(quic), Some(tls)) = (&connection.quic, &connection.tls) else { return false };
    let Some(answered) = outcome.timeline.first_response_byte else { return false };
    let in_time = quic.client_one_rtt.is_none_or(|sent| answered < sent + way.round_trip())
        || tls.early_data == EarlyData::Likely;
    let undecided = way.lossy && outcome.early_data_accepted();
    quic.zero_rtt_packets > 0 && tls.psk_accepted && (in_time || undecided)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_quantum_hello_fits_no_syn_and_takes_two_datagrams() {
        let mode: Mode = "tfo+tls13".parse().unwrap();
        let view = WireView { hello_len: 1_400, ..WireView::default() };
        assert!(view.sizes(mode).first_flight <= SYN_PAYLOAD);
        let view = WireView { hello_len: 1_450, ..WireView::default() };
        assert!(view.sizes(mode).first_flight > SYN_PAYLOAD);
        assert_eq!(view.sizes(mode).client_datagrams, 2_400);
    }

    #[test]
    fn early_data_counts_to_the_first_flight() {
        let view = WireView { hello_len: 1_400, ..WireView::default() };
        let mode: Mode = "tfo+tls13-0rtt".parse().unwrap();
        assert_eq!(view.sizes(mode).first_flight, 1_423);
    }
}
