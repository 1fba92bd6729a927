//! What a capture at the client shows of one connection.

use conn::Outcome;
use tracker::{Connection, EarlyData, Resumption, Traffic};
use units::Time;

use crate::Way;

/// What the wire shows of one connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WireView {
    /// It is QUIC, not TCP.
    pub quic: bool,
    /// Its first frame.
    pub first_frame: Option<Time>,
    /// When the client's first application data left it.
    pub request: Option<Time>,
    /// When the server's first application data came to it.
    pub response: Option<Time>,
    /// Frames from the client until then.
    pub up: Traffic,
    /// Frames to the client until then.
    pub down: Traffic,
    /// The SYN carried data, and the SYN+ACK acknowledged all of it.
    pub syn_data_taken: bool,
    /// The SYN carried a Fast Open cookie.
    pub cookie: bool,
    /// Bytes of data on the SYN, whether taken or not.
    pub syn_data: u64,
    /// Bytes of data on the SYN+ACK.
    pub syn_ack_data: u64,
    /// TLS records on SYN, SYN+ACK and ACK were in the SSLmTCP paper's envelopes.
    pub enveloped: bool,
    /// Negotiated version, its code point; `None` without TLS.
    pub version: Option<u16>,
    /// Negotiated cipher suite, its code point.
    pub cipher_suite: Option<u16>,
    /// An earlier session was resumed.
    pub resumed: bool,
    /// The server took early data.
    pub early_data_accepted: bool,
    /// The server sent a HelloRetryRequest.
    pub hello_retry: bool,
    /// Bytes of the records with the first ClientHello.
    pub hello_len: u64,
    /// Bytes of the server's first flight.
    pub server_flight: u64,
    /// Segments sent again by either end; over QUIC packets that the client took for lost.
    pub retransmitted: u64,
}

impl WireView {
    /// The view of a connection whose client saw `outcome`, over such a path.
    #[must_use]
    pub fn new(connection: &Connection, outcome: &Outcome, way: Way) -> WireView {
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

    /// Whether TLS answered data of a SYN as SSLmTCP does: on the SYN+ACK, or, since the SYN did not
    /// hold the whole hello, behind it. A bare SYN+ACK to a whole hello is Fast Open's, unless it is
    /// in an envelope, or the first SYN+ACK was lost: it is sent again without data.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
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
