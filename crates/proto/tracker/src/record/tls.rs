//! Facts of the TLS handshake.

use serde::Serialize;
use units::Time;
use wire::tls::{CipherSuite, Group, Version};

use super::{text, texts};

/// Facts of the TLS handshake.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TlsFacts {
    /// First byte of the ClientHello.
    pub client_hello: Option<Time>,
    /// Last byte of the ClientHello.
    pub client_hello_end: Option<Time>,
    /// Time of the HelloRetryRequest (RFC 8446 §4.1.4); `None`: there was none.
    pub hello_retry_request: Option<Time>,
    /// Last byte of the ClientHello that answered it.
    pub second_client_hello_end: Option<Time>,
    /// First byte of the ServerHello.
    pub server_hello: Option<Time>,
    /// Last byte of the ServerHello.
    pub server_hello_end: Option<Time>,
    /// Last byte of the server's first flight: ServerHelloDone, or its Finished where that comes
    /// first.
    pub server_flight_end: Option<Time>,
    /// The server's Finished.
    pub server_finished: Option<Time>,
    /// The client's Finished: the client may send.
    pub client_finished: Option<Time>,
    /// Length of the ClientHello message with its header, bytes.
    pub client_hello_len: u32,
    /// Length of the records that carried it, headers included, bytes; over QUIC of its CRYPTO
    /// data.
    pub client_hello_records_len: u32,
    /// Length of the second ClientHello message, bytes.
    pub second_client_hello_len: Option<u32>,
    /// Payload bytes that the server sent until the client's Finished, without the overhead of
    /// envelopes; over QUIC until the first 1-RTT packet of either side.
    pub server_flight_len: u64,
    /// Made of both sides' randoms, of the client's alone before a ServerHello: two connections with the same
    /// carry one handshake, seen on both sides of an address translation or of a relay.
    #[serde(skip)]
    pub identity: Option<u64>,
    /// The host name asked for.
    pub server_name: Option<String>,
    /// The application protocols offered.
    pub alpn_offered: Vec<String>,
    /// The application protocol chosen, where TLS shows it: below TLS 1.3, or with keys.
    pub alpn: Option<String>,
    /// The version field of the ClientHello: 0x0303 in TLS 1.3.
    #[serde(serialize_with = "text")]
    pub legacy_version: Option<Version>,
    /// The cipher suites offered, GREASE left out.
    #[serde(serialize_with = "texts")]
    pub cipher_suites: Vec<CipherSuite>,
    /// JA3: the MD5 of what the ClientHello lists, in hexadecimal.
    pub ja3: Option<String>,
    /// JA4, the fingerprint of the ClientHello alone; the other fingerprints of its family are not
    /// computed.
    pub ja4: Option<String>,
    /// The versions offered, GREASE left out.
    #[serde(serialize_with = "texts")]
    pub versions_offered: Vec<Version>,
    /// The version negotiated.
    #[serde(serialize_with = "text")]
    pub version: Option<Version>,
    /// The cipher suite chosen.
    #[serde(serialize_with = "text")]
    pub cipher_suite: Option<CipherSuite>,
    /// The groups supported by the client, GREASE left out.
    #[serde(serialize_with = "texts")]
    pub groups: Vec<Group>,
    /// The groups of the client's first key shares, GREASE left out.
    #[serde(serialize_with = "texts")]
    pub key_shares: Vec<Group>,
    /// The group of the server's key share.
    #[serde(serialize_with = "text")]
    pub group: Option<Group>,
    /// The group that a HelloRetryRequest asked for.
    #[serde(serialize_with = "text")]
    pub retry_group: Option<Group>,
    /// The client offered encrypted_client_hello, in earnest or as GREASE.
    pub ech_offered: bool,
    /// The client offered a pre-shared key (TLS 1.3).
    pub psk_offered: bool,
    /// The server chose it.
    pub psk_accepted: bool,
    /// Bytes of the ticket that the client offered (TLS 1.2); 0 asks for one.
    pub ticket_offered: Option<u32>,
    /// Bytes of the session id that the client sent; TLS 1.3 has one for looks only.
    pub session_id_offered: u8,
    /// The server asked for a certificate; `None` where TLS hides it: TLS 1.3 without keys.
    pub certificate_requested: Option<bool>,
    /// Bytes of another protocol that the client sent before its ClientHello, as STARTTLS and HTTP's
    /// CONNECT have it.
    pub preceded_by: u32,
    /// Whether the session's keys were of use.
    pub keys: KeyUse,
    /// What the session's keys told, where they were given.
    pub decrypted: Option<Decrypted>,
    /// What the session was resumed by, as the wire proves.
    pub resumption: Resumption,
    /// What became of early data.
    pub early_data: EarlyData,
    /// First byte of early data.
    pub early_data_sent: Option<Time>,
    /// Records of early data; over QUIC 0-RTT packets.
    pub early_data_records: u32,
    /// Bytes in these, encryption's overhead included.
    pub early_data_bytes: u64,
    /// NewSessionTicket messages (TLS 1.2), or records taken for them (TLS 1.3), until both sides
    /// have sent application data: then nothing more is read.
    pub tickets: u32,
    /// The server answered the client's certificate, or an empty one, by a record of an alert's size and
    /// sent nothing else: TLS 1.3 without keys.
    pub refused: bool,
    /// The first four alerts until both sides have sent application data.
    pub alerts: Vec<AlertFacts>,
}

impl TlsFacts {
    /// Bytes of its lists and texts.
    pub(crate) fn heap_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        let texts = [&self.server_name, &self.alpn, &self.ja3, &self.ja4];
        let texts: usize = texts.into_iter().map(text).sum();
        let protocols: usize = self.alpn_offered.iter().map(String::capacity).sum();
        texts
            .saturating_add(protocols)
            .saturating_add(self.alpn_offered.capacity().saturating_mul(size_of::<String>()))
            .saturating_add(self.cipher_suites.capacity().saturating_mul(2))
            .saturating_add(self.versions_offered.capacity().saturating_mul(2))
            .saturating_add(self.groups.capacity().saturating_mul(2))
            .saturating_add(self.key_shares.capacity().saturating_mul(2))
            .saturating_add(self.alerts.capacity().saturating_mul(size_of::<AlertFacts>()))
    }
}

/// Whether the keys of a session were of use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyUse {
    /// There were none: none were given, not both of a TLS 1.3 handshake, or it is no TLS 1.3.
    #[default]
    None,
    /// They opened the records: see [`TlsFacts::decrypted`].
    Fit,
    /// They did not open a record, because they are wrong, or one of them or a record is missing: the
    /// rule without keys told this record's facts.
    DoNotFit,
    /// Wiretax cannot decrypt this suite (CCM) or draft (before 25): the rule told the facts.
    NotSupported,
}

/// By what a session was resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// It was not.
    #[default]
    None,
    /// By a pre-shared key: the TLS 1.3 ServerHello chose one.
    Psk,
    /// By a TLS 1.2 ticket: the client sent one, and the server changed cipher without having sent
    /// a certificate (RFC 5077 §3.1).
    Ticket,
    /// By a TLS 1.2 session id: the same without a ticket (RFC 5246 §7.3).
    SessionId,
}

/// What became of early data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyData {
    /// The ClientHello did not announce any.
    #[default]
    NotOffered,
    /// Announced; nothing on the wire decides.
    Offered,
    /// Not taken: no pre-shared key was chosen, the server asked for another hello, or no
    /// EndOfEarlyData came before the client's Finished.
    Rejected,
    /// QUIC only: a pre-shared key was chosen, 0-RTT packets were sent, and the server sent 1-RTT
    /// packets before the client's Finished. Consistent with acceptance, no proof of it.
    Likely,
    /// Taken: TLS over TCP has EndOfEarlyData before the client's Finished.
    Accepted,
}

/// A TLS alert (RFC 8446 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AlertFacts {
    /// The time of it, by the clock of who saw it.
    pub at: Time,
    /// Whether the client sent it.
    pub from_client: bool,
    /// 1 warning, 2 fatal; `None` if encrypted.
    pub level: Option<u8>,
    /// The code; `None` if encrypted.
    pub description: Option<u8>,
    /// The code's name.
    pub name: Option<&'static str>,
}

/// What decryption told of a connection whose keys were given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Decrypted {
    /// The client's Finished, as decryption shows it.
    pub client_finished: Option<Time>,
    /// The client's first application data, as decryption shows it; early data if it was accepted.
    pub client_data: Option<Time>,
    /// The server's first application data, as decryption shows it.
    pub server_data: Option<Time>,
    /// Whether the rule that works without keys had told the same.
    pub rule_agrees: bool,
}
