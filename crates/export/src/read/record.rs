//! What is read of a row.

use serde::Deserialize;

/// What is read of a connection's row: what [`crate::Row`] has under the same names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Which run of the program saw it.
    pub run: String,
    /// Its number within the run.
    pub number: u64,
    /// The client's address, as far as it was not hidden.
    pub client: String,
    /// The client's network.
    pub client_network: String,
    /// The host name asked for.
    pub sni: Option<String>,
    /// `tcp` or `quic`.
    pub transport: String,
    /// The version negotiated.
    pub version: Option<String>,
    /// `full`, `resumed`, `zero_rtt`, `hello_retry` or `failed`; `None` without TLS.
    pub class: Option<String>,
    /// The client offered a pre-shared key (TLS 1.3).
    pub psk_offered: Option<bool>,
    /// The client sent a ticket (TLS 1.2).
    pub ticket_offered: Option<bool>,
    /// The first frame, nanoseconds since the Unix epoch.
    pub first_frame: u64,
    /// First byte of the ClientHello, nanoseconds since the Unix epoch.
    pub client_hello: Option<u64>,
    /// From SYN or first Initial to the client's Finished, nanoseconds.
    pub handshake: Option<u64>,
    /// From ClientHello to the client's Finished, nanoseconds.
    pub tls_handshake: Option<u64>,
    /// From ClientHello to the client's first application data, nanoseconds.
    pub hello_to_data: Option<u64>,
    /// The round trip by the transport's handshake, nanoseconds.
    pub round_trip: Option<u64>,
    /// `tls_handshake` over `round_trip`.
    pub tls_round_trips: Option<f64>,
    /// Why some of this may be wrong.
    pub uncertain: Vec<String>,
}

impl Record {
    /// Whether the client brought a ticket or a pre-shared key.
    #[must_use]
    pub fn brought_ticket(&self) -> bool {
        self.psk_offered == Some(true) || self.ticket_offered == Some(true)
    }
}
