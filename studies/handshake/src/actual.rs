//! What a connection was, by the wire alone, and the sizes that its round trips depend on.

use testbed::WireView;

use crate::mode::{Mode, Security, Transport};
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
    // The SSLmTCP paper's profile, and no other, has envelopes.
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

impl Sizes {
    /// The sizes that decide how many round trips the specifications give, as the wire shows them.
    pub(crate) fn of(wire: &WireView, mode: Mode) -> Sizes {
        let early = if mode.early_data() { EARLY_RECORD } else { 0 };
        let hello = wire.hello_len.max(1);
        let datagrams = if hello <= QUIC_FIRST_DATAGRAM { 1 } else { 2 };
        Sizes {
            first_flight: hello + early,
            server_flight: wire.server_flight,
            client_datagrams: datagrams * QUIC_DATAGRAM,
            segment: SEGMENT,
            syn_payload: match mode.transport.is_user_space() {
                true => USER_SYN_PAYLOAD,
                false => SYN_PAYLOAD,
            },
            syn_data: wire.syn_data,
        }
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
    fn a_post_quantum_hello_fits_no_syn_and_takes_two_datagrams() {
        let mode: Mode = "tfo+tls13".parse().unwrap();
        let view = WireView { hello_len: 1_400, ..WireView::default() };
        assert!(Sizes::of(&view, mode).first_flight <= SYN_PAYLOAD);
        let view = WireView { hello_len: 1_450, ..WireView::default() };
        assert!(Sizes::of(&view, mode).first_flight > SYN_PAYLOAD);
        assert_eq!(Sizes::of(&view, mode).client_datagrams, 2_400);
    }

    #[test]
    fn early_data_counts_to_the_first_flight() {
        let view = WireView { hello_len: 1_400, ..WireView::default() };
        let mode: Mode = "tfo+tls13-0rtt".parse().unwrap();
        assert_eq!(Sizes::of(&view, mode).first_flight, 1_423);
    }
}
