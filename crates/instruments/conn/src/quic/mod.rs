//! One connection over QUIC version 1 (RFC 9000), by quinn.
//!
//! The transport is pinned, so that a measurement says what it measured: datagrams of 1200 bytes at
//! first, no MTU discovery (its probes would count as the handshake's bytes), no segmentation offload,
//! idle timeout equal to the plan's timeout, no migration. Everything else is quinn's default: CUBIC,
//! initial RTT 333 ms, acknowledgement delay 25 ms, address validation by the handshake (no Retry unless
//! asked for), no NEW_TOKEN.

mod client;
pub(crate) mod messages;
pub mod qlog;
mod server;
pub mod tap;

pub(crate) use client::connect;
pub(crate) use server::{listen, serve};

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quinn::{ConnectionError, ConnectionStats, IdleTimeout, TransportConfig, TransportErrorCode};
use serde::Serialize;

use crate::Failure;

/// QUIC's first datagrams are padded to this (RFC 9000 §14.1), and here stay so.
const DATAGRAM: u16 = 1200;

/// quinn's counters of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QuicInfo {
    /// Smoothed round-trip time, acknowledgement delay taken off.
    pub rtt: Duration,
    /// QUIC packets sent, several of which may be in one datagram.
    pub packets_sent: u64,
    /// Of them, packets taken for lost.
    pub packets_lost: u64,
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// UDP payload bytes received.
    pub bytes_received: u64,
    /// Whether a ticket came that allows 0-RTT.
    pub ticket_allows_early_data: bool,
    /// The group's code point, also when [`tls::Group`] does not know it.
    pub group: Option<u16>,
}

impl QuicInfo {
    fn new(stats: &ConnectionStats, seen: &tap::Seen) -> Self {
        let state = seen.state();
        QuicInfo {
            rtt: stats.path.rtt,
            packets_sent: stats.path.sent_packets,
            packets_lost: stats.path.lost_packets,
            datagrams_sent: stats.udp_tx.datagrams,
            bytes_sent: stats.udp_tx.bytes,
            datagrams_received: stats.udp_rx.datagrams,
            bytes_received: stats.udp_rx.bytes,
            ticket_allows_early_data: state.handshake.ticket_allows_early_data,
            group: state.handshake.group,
        }
    }
}

/// The transport that both ends use.
fn transport(idle_timeout: Duration) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(DATAGRAM)
        .min_mtu(DATAGRAM)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        // A timeout too long for the wire format (2^62 ms) is none.
        .max_idle_timeout(IdleTimeout::try_from(idle_timeout).ok());
    Arc::new(transport)
}

fn endpoint(
    socket: std::net::UdpSocket,
    server: Option<quinn::ServerConfig>,
) -> io::Result<quinn::Endpoint> {
    let runtime = Arc::new(quinn::TokioRuntime);
    quinn::Endpoint::new(quinn::EndpointConfig::default(), server, socket, runtime)
}

impl Failure {
    /// What the end of a QUIC connection means. `after` is the idle timeout.
    #[must_use]
    pub fn from_quic(error: &ConnectionError, after: Duration) -> Self {
        failure(error, after)
    }
}

fn failure(error: &ConnectionError, after: Duration) -> Failure {
    match error {
        ConnectionError::TimedOut => Failure::TimedOut { after, timeline: Box::default() },
        ConnectionError::Reset => Failure::Reset { during: "using QUIC" },
        ConnectionError::TransportError(error) => match alert(error.code) {
            Some(code) => local_alert(code, &error.reason),
            None => Failure::Quic { detail: error.to_string(), peer: true },
        },
        ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
            Some(NO_APPLICATION_PROTOCOL) => {
                Failure::Tls(tls::PeerError::NoApplicationProtocol.into())
            }
            _ => Failure::Quic { detail: error.to_string(), peer: true },
        },
        ConnectionError::VersionMismatch | ConnectionError::ApplicationClosed(_) => {
            Failure::Quic { detail: error.to_string(), peer: true }
        }
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => {
            Failure::Quic { detail: error.to_string(), peer: false }
        }
    }
}

/// `no_application_protocol` (RFC 7301 §3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// RFC 9001 §4.8: a TLS alert is the error 0x0100 + its code.
fn alert(code: TransportErrorCode) -> Option<u8> {
    let code = u64::from(code);
    if code & !0xff == 0x100 { u8::try_from(code & 0xff).ok() } else { None }
}

/// What this side's TLS found wrong, by the alert that it sends.
fn local_alert(code: u8, reason: &str) -> Failure {
    use tls::CertificateFault;
    let fault = match code {
        48 => CertificateFault::UnknownIssuer,
        45 => CertificateFault::Expired,
        42 if reason.contains("not valid for name") => CertificateFault::WrongName,
        42..=44 | 46 => CertificateFault::Other,
        _ => {
            return Failure::Tls(tls::PeerError::Misbehaved(reason.to_owned()).into());
        }
    };
    let detail = reason.to_owned();
    Failure::Tls(tls::Error::Certificate(tls::CertificateError { reason: fault, detail }))
}
