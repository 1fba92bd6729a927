//! How many round trips the specifications give for a mode: what the fit is held against.
//!
//! Two counts, both from the client's first packet:
//!
//! - `ready`: until the client may give its first request byte to the transport;
//! - `response`: until the first byte of the response arrives (the server thinks no time).
//!
//! | part | round trips | source |
//! |---|---|---|
//! | TCP 3-way handshake before data | 1 | RFC 9293 §3.5 |
//! | the same with data in the SYN | 0 | RFC 7413 §4.2 |
//! | first flight larger than what a SYN holds | 1 | the rest waits for the SYN+ACK (RFC 7413 §4.2.1) |
//! | TLS 1.2, full | 2 | RFC 5246 §7.3 |
//! | TLS 1.2, abbreviated | 1 | RFC 5246 §7.3, RFC 5077 §3.1 |
//! | TLS 1.3 | 1 | RFC 8446 §2 |
//! | HelloRetryRequest | 1 more | RFC 8446 §2.1 |
//! | early data | 0 | RFC 8446 §2.3 |
//! | server's flight larger than the initial window | 1 more | RFC 6928 §2: 10 segments |
//! | TLS's first flights on SYN, SYN+ACK and ACK | 1 less than TLS in sequence | document §3 |
//! | the server's flight larger than 3 times what the SYN brought | 1 more | the same rule for TCP |
//! | QUIC | 1, and 0 with 0-RTT | RFC 9001 §4 |
//! | QUIC server's flight larger than 3 times what it received | 1 more | RFC 9000 §8.1 |

use serde::Serialize;

use crate::mode::{Mode, Security, Transport};

/// Sizes that decide whether a flight waits for an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Bytes of the client's first flight: the ClientHello's records and early data with it.
    pub first_flight: u64,
    /// Bytes of the server's largest flight before the client may answer it: with TCP as TLS
    /// records, with QUIC as UDP payload.
    pub server_flight: u64,
    /// QUIC: bytes of UDP payload that the client sent before the server's flight.
    pub client_datagrams: u64,
    /// Payload bytes of a full segment: MSS less the options in every segment.
    pub segment: u64,
    /// Payload bytes that a SYN can carry besides its options.
    pub syn_payload: u64,
    /// SSLmTCP: bytes of data that rode on the SYN, padding and envelope included.
    pub syn_data: u64,
}

/// Round trips that a mode takes by its specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RoundTrips {
    /// Until the client may send its first request byte.
    pub ready: u32,
    /// Until the first response byte arrives.
    pub response: u32,
}

/// Segments in a TCP initial window (RFC 6928 §2).
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// Data sent to an address that is not validated, as a multiple of the data received from it
/// (RFC 9000 §8.1); SSLmTCP's server keeps to the same.
const AMPLIFICATION_LIMIT: u64 = 3;
/// IPv4 and TCP header of a segment with timestamps (RFC 7323 §2).
const SEGMENT_HEADERS: u64 = 20 + 20 + 12;
/// The same of a SYN or SYN+ACK: MSS, SACK permitted, timestamps and window scale (RFC 9293 §3.2,
/// RFC 2018 §2, RFC 7323 §2), padded.
const SYN_HEADERS: u64 = 20 + 20 + 20;

/// The round trips of `mode` with flights of these sizes.
#[must_use]
pub fn round_trips(mode: Mode, sizes: &Sizes) -> RoundTrips {
    match mode.transport {
        Transport::Quic => quic(mode, sizes),
        Transport::SslmTcp => sslmtcp(mode, sizes),
        _ => tcp(mode, sizes),
    }
}

fn quic(mode: Mode, sizes: &Sizes) -> RoundTrips {
    let limit = AMPLIFICATION_LIMIT * sizes.client_datagrams;
    let validation = u32::from(sizes.server_flight > limit);
    if mode.early_data() {
        RoundTrips { ready: 0, response: 1 + validation }
    } else {
        RoundTrips { ready: 1 + validation, response: 2 + validation }
    }
}

/// SSLmTCP: as TLS in sequence, less the round trip of the TCP handshake.
fn sslmtcp(mode: Mode, sizes: &Sizes) -> RoundTrips {
    // The rest of a hello that no SYN holds waits for the SYN+ACK, and its answer for the rest.
    let last_byte = u32::from(sizes.first_flight > sizes.syn_payload);
    let validation = u32::from(last_byte == 0 && waits_for_validation(sizes));
    let ready = match mode.security {
        Security::Tls13EarlyData => 0,
        security => last_byte + tls_round_trips(security) + validation,
    };
    // Early data is answered before the client's Finished, at the end of the server's flight.
    let response = match mode.security {
        Security::Tls13EarlyData => last_byte + validation + 1,
        _ => ready + 1,
    };
    RoundTrips { ready, response }
}

/// Whether the server's flight, in IP datagrams, is more than a client may draw by one SYN.
fn waits_for_validation(sizes: &Sizes) -> bool {
    let budget = AMPLIFICATION_LIMIT * (SYN_HEADERS + sizes.syn_data);
    let on_syn_ack = sizes.server_flight.min(sizes.syn_payload);
    let behind = sizes.server_flight - on_syn_ack;
    let segments = behind.div_ceil(sizes.segment.max(1));
    let datagrams = SYN_HEADERS + on_syn_ack + behind + segments * SEGMENT_HEADERS;
    datagrams > budget
}

fn tcp(mode: Mode, sizes: &Sizes) -> RoundTrips {
    // When the last byte of the first flight may leave, and when the first byte may.
    let fits_syn = sizes.first_flight <= sizes.syn_payload;
    let first_byte = u32::from(!mode.fast_open());
    let last_byte = u32::from(!(mode.fast_open() && fits_syn));
    let window = u32::from(sizes.server_flight > INITIAL_WINDOW_SEGMENTS * sizes.segment);
    match mode.security {
        Security::Plain | Security::Tls13EarlyData => {
            RoundTrips { ready: first_byte, response: last_byte + 1 }
        }
        security => {
            let ready = last_byte + tls_round_trips(security) + window;
            RoundTrips { ready, response: ready + 1 }
        }
    }
}

/// Round trips of a TLS handshake on an open transport, until the client may send.
fn tls_round_trips(security: Security) -> u32 {
    match security {
        Security::Plain | Security::Tls13EarlyData => 0,
        Security::Tls12Resumed | Security::Tls13 | Security::Tls13Resumed => 1,
        Security::Tls12Rsa | Security::Tls12 | Security::Tls13HelloRetry => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Sizes = Sizes {
        first_flight: 250,
        server_flight: 1_300,
        client_datagrams: 1_200,
        segment: 1_448,
        syn_payload: 1_420,
        syn_data: 1_200,
    };

    fn of(mode: &str, sizes: &Sizes) -> (u32, u32) {
        let counts = round_trips(mode.parse().unwrap(), sizes);
        (counts.ready, counts.response)
    }

    /// The table of docs/results/handshake.md, mode by mode.
    #[test]
    fn small_flights_take_the_textbook_round_trips() {
        for (mode, tcp, tfo) in [
            ("", (1, 2), (0, 1)),
            ("+tls12-rsa", (3, 4), (2, 3)),
            ("+tls12", (3, 4), (2, 3)),
            ("+tls12-resumed", (2, 3), (1, 2)),
            ("+tls13", (2, 3), (1, 2)),
            ("+tls13-hrr", (3, 4), (2, 3)),
            ("+tls13-resumed", (2, 3), (1, 2)),
            ("+tls13-0rtt", (1, 2), (0, 1)),
        ] {
            assert_eq!(of(&format!("tcp{mode}"), &SMALL), tcp, "tcp{mode}");
            assert_eq!(of(&format!("tfo{mode}"), &SMALL), tfo, "tfo{mode}");
            assert_eq!(of(&format!("tfo-nocookie{mode}"), &SMALL), tfo, "tfo-nocookie{mode}");
        }
        assert_eq!(of("quic", &SMALL), (1, 2));
        assert_eq!(of("quic-0rtt", &SMALL), (0, 1));
        for (mode, expected) in [
            ("usertcp+tls12-rsa", (3, 4)),
            ("usertcp+tls13", (2, 3)),
            ("usertcp+tls13-0rtt", (1, 2)),
            ("sslmtcp-paper", (2, 3)),
            ("sslmtcp-tls13", (1, 2)),
            ("sslmtcp-resumed", (1, 2)),
            ("sslmtcp-0rtt", (0, 1)),
        ] {
            assert_eq!(of(mode, &SMALL), expected, "{mode}");
        }
    }

    /// A SYN with 1200 bytes of data is a datagram of 1260 bytes, and draws 3780 at most: the headers
    /// of a SYN+ACK and of two segments behind it, and 3616 bytes of data.
    #[test]
    fn sslmtcp_sends_three_times_what_the_syn_brought_before_the_address_is_known() {
        let sizes = |server_flight| Sizes { syn_payload: 1_440, server_flight, ..SMALL };
        let most = 3 * 1_260 - 60 - 2 * 52;
        assert_eq!(of("sslmtcp-tls13", &sizes(most)), (1, 2));
        assert_eq!(of("sslmtcp-tls13", &sizes(most + 1)), (2, 3));
        assert_eq!(of("sslmtcp-paper", &sizes(most + 1)), (3, 4));
        assert_eq!(of("sslmtcp-0rtt", &sizes(most + 1)), (0, 2));
        // In sequence the address is known before the server's flight.
        assert_eq!(of("usertcp+tls13", &sizes(most + 1)), (2, 3));
    }

    #[test]
    fn a_hello_that_no_syn_holds_makes_sslmtcp_as_slow_as_its_control() {
        let hello = Sizes { first_flight: 1_500, syn_payload: 1_440, syn_data: 1_440, ..SMALL };
        assert_eq!(of("sslmtcp-tls13", &hello), of("usertcp+tls13", &hello));
        // The request may be given at once; its answer waits for the rest of the hello.
        assert_eq!(of("sslmtcp-0rtt", &hello), (0, 2));
    }

    #[test]
    fn a_hello_with_a_post_quantum_share_gains_nothing_by_fast_open() {
        let hello = Sizes { first_flight: 1_500, ..SMALL };
        assert_eq!(of("tfo+tls13", &hello), of("tcp+tls13", &hello));
        // Early data may still be handed over at once, but the answer waits.
        assert_eq!(of("tfo+tls13-0rtt", &hello), (0, 2));
    }

    #[test]
    fn a_long_chain_waits_for_an_acknowledgement() {
        let chain = Sizes { server_flight: 14_481, ..SMALL };
        assert_eq!(of("tcp+tls13", &chain), (3, 4));
        assert_eq!(of("tcp+tls13", &Sizes { server_flight: 14_480, ..SMALL }), (2, 3));
        assert_eq!(of("quic", &Sizes { server_flight: 3_601, ..SMALL }), (2, 3));
        assert_eq!(of("quic", &Sizes { server_flight: 3_600, ..SMALL }), (1, 2));
    }
}
