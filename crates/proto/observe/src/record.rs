//! What is known of a connection in the end: plain data, serialised as JSON by its field names.
//! Times are in nanoseconds of the capture's clock.

use std::fmt::Display;
use std::net::SocketAddr;

use serde::{Serialize, Serializer};
use units::Time;
use wire::tls::{CipherSuite, Group, Version};

/// One TCP or QUIC connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Connection {
    /// Which transport carried it.
    pub transport: Transport,
    /// Who opened it: sent the SYN, or the first Initial.
    pub client: SocketAddr,
    /// The other one.
    pub server: SocketAddr,
    /// Whether client and server are known by a SYN, a SYN+ACK, a ClientHello or an Initial; if
    /// not, the lower port was taken for the server's.
    pub roles_known: bool,
    /// Time of the first frame.
    pub first_frame: Time,
    /// Time of the last frame.
    pub last_frame: Time,
    /// All frames from the client.
    pub up: Traffic,
    /// All frames from the server.
    pub down: Traffic,
    /// Frames from the client up to the frame that began the first server application data.
    pub up_to_response: Option<Traffic>,
    /// Frames from the server up to and with the frame that began the first server application
    /// data.
    pub down_to_response: Option<Traffic>,
    /// Time at which the client's first application data began. Early data counts if it was
    /// accepted; if it was rejected, what was sent again under the handshake's keys. Without TLS
    /// the first payload.
    pub client_data: Option<Time>,
    /// Time at which the server's first application data began.
    pub server_data: Option<Time>,
    /// TCP's own facts.
    pub tcp: Option<TcpFacts>,
    /// QUIC's own facts.
    pub quic: Option<QuicFacts>,
    /// The TLS handshake, if there was one.
    pub tls: Option<TlsFacts>,
    /// How it ended.
    pub end: End,
    /// Whether it was dropped from the table, [`crate::Limits::connections`] being reached: what
    /// came later is not counted.
    pub dropped: bool,
    /// Why some of this may be wrong; empty if nothing is in doubt.
    pub uncertain: Vec<Uncertain>,
}

impl Connection {
    /// From the SYN or the first Initial until the client's Finished: the handshake time. Its
    /// Finished gone, the client may send.
    #[must_use]
    pub fn handshake_time(&self) -> Option<std::time::Duration> {
        let started = match (&self.tcp, &self.quic) {
            (Some(tcp), _) => tcp.syn?,
            (_, Some(quic)) => quic.client_initial?,
            _ => return None,
        };
        self.tls.as_ref()?.client_finished?.checked_since(started)
    }
}

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// QUIC over UDP.
    Quic,
}

/// Frames in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Number of frames.
    pub frames: u64,
    /// Bytes of these frames on the link, headers included, as the capture states their original
    /// length (Ethernet: without frame check sequence).
    pub bytes: u64,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It was still open when the capture ended or it fell silent.
    #[default]
    Open,
    /// One side at least sent FIN before any RST.
    Fin,
    /// A RST came before any FIN.
    Reset,
}

/// Facts of TCP.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TcpFacts {
    /// First SYN.
    pub syn: Option<Time>,
    /// First SYN+ACK.
    pub syn_ack: Option<Time>,
    /// First acknowledgment of the SYN+ACK.
    pub handshake_ack: Option<Time>,
    /// First payload byte from the client, SYN data included.
    pub client_payload: Option<Time>,
    /// First payload byte from the server.
    pub server_payload: Option<Time>,
    /// Payload bytes from the client, each counted once; data on a SYN that the server did not
    /// take are none.
    pub client_payload_bytes: u64,
    /// Payload bytes from the server, each counted once.
    pub server_payload_bytes: u64,
    /// Segments from the client whose every byte had been captured before, SYN included; also
    /// those that send data of a SYN again which the server did not take.
    pub client_retransmitted: u64,
    /// Segments from the server whose every byte had been captured before, SYN+ACK included.
    pub server_retransmitted: u64,
    /// Segments with payload from the client that came after a later one: reordered, or sent again
    /// after a loss before the capture.
    pub client_out_of_order: u64,
    /// The same of the server.
    pub server_out_of_order: u64,
    /// TCP Fast Open (RFC 7413).
    pub fast_open: FastOpenFacts,
    /// Bytes of data on the first SYN that had any, with or without Fast Open.
    pub syn_data: u32,
    /// Bytes of data on the first SYN+ACK that had any.
    pub syn_ack_data: u32,
    /// Whether the server acknowledged the data on the SYN, at least in part; `None` without such
    /// data, or if no word of the server was captured.
    pub syn_data_taken: Option<bool>,
    /// Whether the TLS records on SYN, SYN+ACK and ACK were wrapped in SSLmTCP's envelopes.
    pub enveloped: bool,
    /// Whether the server's application data was captured before the acknowledgment that ends the
    /// TCP handshake. Telling only where captured at the server: the client acknowledges at once.
    pub server_data_before_ack: bool,
    /// Whether bytes were missing in the reassembled part: lost by the capture or cut by its
    /// snapshot length.
    pub bytes_missing: bool,
}

impl TcpFacts {
    /// From the SYN to the SYN+ACK: the round trip between the capture and the server.
    #[must_use]
    pub fn server_round_trip(&self) -> Option<std::time::Duration> {
        self.syn_ack?.checked_since(self.syn?)
    }

    /// From the SYN+ACK to its acknowledgment: the round trip between the capture and the client.
    #[must_use]
    pub fn client_round_trip(&self) -> Option<std::time::Duration> {
        self.handshake_ack?.checked_since(self.syn_ack?)
    }
}

/// Facts of TCP Fast Open (RFC 7413).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FastOpenFacts {
    /// The SYN asked for a cookie.
    pub cookie_requested: bool,
    /// Bytes of the cookie that the SYN carried.
    pub cookie_len: Option<u8>,
    /// Bytes of the cookie that the SYN+ACK granted.
    pub cookie_granted_len: Option<u8>,
    /// Bytes of data in the first SYN that had any.
    pub syn_data: u32,
    /// How many of these bytes the SYN+ACK acknowledged.
    pub syn_data_acked: u32,
    /// The data went without a cookie.
    pub without_cookie: bool,
}

/// Facts of QUIC. Times are of datagrams; packets beyond Initial are not decrypted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct QuicFacts {
    /// The version of the client's first Initial.
    pub version: u32,
    /// First Initial from the client.
    pub client_initial: Option<Time>,
    /// First Initial from the server.
    pub server_initial: Option<Time>,
    /// First Handshake packet from the client; it may be a mere acknowledgment.
    pub client_handshake: Option<Time>,
    /// First Handshake packet from the server.
    pub server_handshake: Option<Time>,
    /// First 0-RTT packet.
    pub zero_rtt: Option<Time>,
    /// Number of 0-RTT packets.
    pub zero_rtt_packets: u32,
    /// Bytes of 0-RTT packets, headers and tags included.
    pub zero_rtt_bytes: u64,
    /// First 1-RTT packet from the client.
    pub client_one_rtt: Option<Time>,
    /// First 1-RTT packet from the server.
    pub server_one_rtt: Option<Time>,
    /// Number of the server's 1-RTT packets captured before the client's Finished.
    pub server_one_rtt_before_finished: u32,
    /// First Retry.
    pub retry: Option<Time>,
    /// First version negotiation packet.
    pub version_negotiation: Option<Time>,
    /// First CONNECTION_CLOSE in an Initial.
    pub close: Option<Time>,
    /// Its error code; 0x100 + n is TLS alert n.
    pub close_code: Option<u64>,
    /// Initial packets that could not be opened.
    pub undecryptable: u32,
}

/// Facts of the TLS handshake.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TlsFacts {
    /// First byte of the ClientHello.
    pub client_hello: Option<Time>,
    /// Last byte of the ClientHello.
    pub client_hello_end: Option<Time>,
    /// HelloRetryRequest.
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
    /// The host name asked for.
    pub server_name: Option<String>,
    /// The application protocols offered.
    pub alpn_offered: Vec<String>,
    /// The application protocol chosen, where TLS shows it: below TLS 1.3.
    pub alpn: Option<String>,
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
    /// The client offered encrypted_client_hello, in earnest or as GREASE.
    pub ech_offered: bool,
    /// The client offered a pre-shared key (TLS 1.3).
    pub psk_offered: bool,
    /// The server chose it.
    pub psk_accepted: bool,
    /// Bytes of the ticket that the client offered (TLS 1.2); 0 asks for one.
    pub ticket_offered: Option<u32>,
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
    /// The first four alerts until both sides have sent application data.
    pub alerts: Vec<AlertFacts>,
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

/// An alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AlertFacts {
    /// When.
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

/// Why a record may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Uncertain {
    /// The capture began in the middle of the connection.
    MidStream,
    /// Only one direction was captured.
    OneDirection,
    /// The handshake lies beyond [`crate::Limits::stream_bytes`], or bytes were missing.
    BytesMissing,
    /// No record of the client has the size of its Finished; the first of its flight was taken.
    ClientFinished,
    /// The server's Finished could be another record.
    ServerFinished,
    /// A record of EndOfEarlyData's size is all that stands for early data.
    EndOfEarlyData,
    /// A ticket could be application data, or the other way round.
    TicketOrData,
    /// The server seems to speak first.
    ServerSpeaksFirst,
    /// Of a suite that Wiretax does not know no sizes follow.
    UnknownSuite,
    /// QUIC's 1-RTT packets hide whether they hold application data.
    QuicData,
    /// Whether QUIC's early data was accepted cannot be seen.
    QuicEarlyData,
}

fn text<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

fn texts<T: Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}
