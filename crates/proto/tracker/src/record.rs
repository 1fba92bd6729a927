//! What is known of a connection in the end: plain data, serialised as JSON by its field names.
//! Times are in nanoseconds of the capture's clock.

mod class;
mod tls;

use std::fmt::Display;
use std::net::SocketAddr;

use serde::{Serialize, Serializer};
use units::Time;

pub use class::Class;
pub use tls::{AlertFacts, Decrypted, EarlyData, KeyUse, Resumption, TlsFacts};

/// One TCP or QUIC connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Connection {
    /// Its number: connections count from 0 in the order in which they began.
    pub number: u64,
    /// Whether it goes on: an [`Ending`] with this number follows. All below is then as it was when
    /// the handshake was over and both sides had sent application data.
    pub goes_on: bool,
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

/// How a connection ended whose record was given out before: a second, small row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// Number of the connection.
    pub number: u64,
    /// Time of the last frame.
    pub last_frame: Time,
    /// All frames from the client.
    pub up: Traffic,
    /// All frames from the server.
    pub down: Traffic,
    /// How it ended.
    pub end: End,
    /// Whether it was dropped from the table.
    pub dropped: bool,
}

/// What a tracker gives out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A connection's record.
    Connection(Box<Connection>),
    /// How a connection ended whose record was given out before.
    Ending(Ending),
}

/// What carried a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP (RFC 9293).
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
    /// Time of the first SYN.
    pub syn: Option<Time>,
    /// Time of the first SYN+ACK.
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
    /// Whether the SYN or the SYN+ACK was sent again before its acknowledgment: the round trip cannot
    /// be told.
    pub handshake_retransmitted: bool,
    /// Frames of the TCP handshake, or with payload, that were captured again: on another interface, or
    /// behind a router. They count as frames, not as retransmissions; times are those of the first copies.
    pub copies: u64,
    /// Whether the last flight of a side was sent again and never acknowledged.
    pub unanswered: bool,
    /// By how much the clocks of both directions differ, if answers are dated before their questions.
    pub clock_offset: Option<ClockOffset>,
    /// Whether bytes were missing in the reassembled part: lost by the capture or cut by its
    /// snapshot length.
    pub bytes_missing: bool,
}

/// How much is to be added to the server's times so that no answer comes before its question, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockOffset {
    /// At least so much: no server answers before it was asked.
    pub at_least: i64,
    /// At most so much: no client answers before it was asked.
    pub at_most: i64,
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
    /// Time of the first Retry packet (RFC 9000 §17.2.5).
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

/// Why a record may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Uncertain {
    /// The capture began in the middle of the connection.
    MidStream,
    /// The capture ended in the middle of the handshake.
    CaptureEnded,
    /// The connection fell silent in the middle of the handshake, and nothing says that it failed: no FIN,
    /// RST or alert, and no flight that was sent again in vain.
    FellSilent,
    /// Only one direction was captured.
    OneDirection,
    /// The handshake lies beyond [`crate::Limits::stream_bytes`], or bytes were missing: behind a
    /// hole, or acknowledged and never captured.
    BytesMissing,
    /// No ServerHello was read: it is malformed or too long, or over QUIC could not be opened or was
    /// not captured.
    ServerHello,
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
    /// The server's only record after the client's Finished has an alert's size: it may have refused the
    /// client.
    ServerAlert,
    /// Of a suite that Wiretax does not know no sizes follow.
    UnknownSuite,
    /// QUIC's 1-RTT packets hide whether they hold application data.
    QuicData,
    /// Whether QUIC's early data was accepted cannot be seen.
    QuicEarlyData,
}

impl Uncertain {
    /// All of them.
    pub const ALL: [Uncertain; 15] = [
        Uncertain::MidStream,
        Uncertain::CaptureEnded,
        Uncertain::FellSilent,
        Uncertain::OneDirection,
        Uncertain::BytesMissing,
        Uncertain::ServerHello,
        Uncertain::ClientFinished,
        Uncertain::ServerFinished,
        Uncertain::EndOfEarlyData,
        Uncertain::TicketOrData,
        Uncertain::ServerSpeaksFirst,
        Uncertain::ServerAlert,
        Uncertain::UnknownSuite,
        Uncertain::QuicData,
        Uncertain::QuicEarlyData,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Uncertain::MidStream => "mid_stream",
            Uncertain::CaptureEnded => "capture_ended",
            Uncertain::FellSilent => "fell_silent",
            Uncertain::OneDirection => "one_direction",
            Uncertain::BytesMissing => "bytes_missing",
            Uncertain::ServerHello => "server_hello",
            Uncertain::ClientFinished => "client_finished",
            Uncertain::ServerFinished => "server_finished",
            Uncertain::EndOfEarlyData => "end_of_early_data",
            Uncertain::TicketOrData => "ticket_or_data",
            Uncertain::ServerSpeaksFirst => "server_speaks_first",
            Uncertain::ServerAlert => "server_alert",
            Uncertain::UnknownSuite => "unknown_suite",
            Uncertain::QuicData => "quic_data",
            Uncertain::QuicEarlyData => "quic_early_data",
        }
    }
}

pub(crate) fn text<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn texts<T: Display, S: Serializer>(
    values: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_one_name_in_all_results() {
        for reason in Uncertain::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
    }
}
