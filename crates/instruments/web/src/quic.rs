//! What client and server of HTTP/3 have in common.

use std::future::{Future, poll_fn};
use std::net::UdpSocket;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quinn::{
    AckFrequencyConfig, ConnectionStats, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt,
};
use serde::{Deserialize, Serialize};

use crate::{Congestion, Failure, QuicRecord, Settings, flight};

/// QUIC's own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicSettings {
    /// Bytes of a datagram's payload at first, at least 1200 (RFC 9000 §14).
    pub datagram: u16,
    /// Whether larger datagrams are tried (RFC 9000 §14.3).
    pub discover_mtu: bool,
    /// Whether the kernel cuts what is given to it at once into datagrams (UDP_SEGMENT): fewer system calls, the same
    /// frames on the link.
    pub segmentation_offload: bool,
    /// Bytes that may be sent and not yet acknowledged, over all streams: the send buffer.
    pub send_window: u64,
    /// The congestion window at the start, in datagrams of that size; quinn's own, 12,000 bytes, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Congestion control, quinn's.
    #[serde(default)]
    pub congestion: Congestion,
    /// Datagrams that the other side is asked to acknowledge at once, where it knows the extension
    /// (draft-ietf-quic-ack-frequency). At 2, as RFC 9000 §13.2.2 has it without the extension, a server
    /// takes 2.6 times the processor time for a large object at 100 Mbit/s.
    #[serde(default = "two")]
    pub acknowledge_every: u16,
}

/// How long fewer datagrams wait for more before they are acknowledged: longer, and the last ones of a flight hold up
/// slow start (over 50 ms and 20 Mbit/s, 25 ms made a page's load 3 % longer, 5 ms less than 1 %).
const WAITS: Duration = Duration::from_millis(5);

/// As RFC 9000 §13.2.2 has it.
const fn two() -> u16 {
    2
}

impl Default for QuicSettings {
    /// Datagrams of 1200 bytes, no discovery, cut by the kernel where it can on any device, 10 MB unacknowledged, CUBIC,
    /// ten acknowledged at once, as Chromium does once it has received a hundred.
    fn default() -> Self {
        QuicSettings {
            datagram: 1200,
            discover_mtu: false,
            segmentation_offload: cuts_on_any_device(),
            send_window: 10_000_000,
            initial_window: None,
            congestion: Congestion::Cubic,
            acknowledge_every: 10,
        }
    }
}

/// Whether the kernel cuts datagrams itself for a device that does no checksums, as emulated links' do: since Linux 6.11;
/// before, such a send fails.
fn cuts_on_any_device() -> bool {
    let uname = rustix::system::uname();
    uname.release().to_str().is_ok_and(is_at_least_6_11)
}

/// Of a kernel's release, as `6.12.9-amd64`.
fn is_at_least_6_11(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (6, 11),
        _ => false,
    }
}

/// The transport of a side that announces `settings`.
pub(crate) fn transport(
    settings: &Settings,
    quic: &QuicSettings,
    idle: Duration,
) -> Result<Arc<TransportConfig>, Failure> {
    if quic.datagram < 1200 {
        return Err(Failure::Plan("a QUIC datagram has at least 1200 bytes".to_owned()));
    }
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(settings.stream_window))
        .receive_window(VarInt::from_u32(settings.connection_window))
        .send_window(quic.send_window)
        .max_concurrent_bidi_streams(VarInt::from_u32(settings.max_concurrent_streams))
        .initial_mtu(quic.datagram)
        .min_mtu(1200)
        .mtu_discovery_config(quic.discover_mtu.then(MtuDiscoveryConfig::default))
        .enable_segmentation_offload(quic.segmentation_offload)
        .ack_frequency_config(acknowledgements(quic.acknowledge_every))
        // A timeout too long for the wire format (2^62 ms) is none.
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        .congestion_controller_factory(quic.congestion.controller(
            quic.initial_window.map(|datagrams| u64::from(datagrams) * u64::from(quic.datagram)),
        ));
    Ok(Arc::new(transport))
}

/// What is asked of the other side: nothing where it does so anyway.
fn acknowledgements(every: u16) -> Option<AckFrequencyConfig> {
    if every <= two() {
        return None;
    }
    let mut asked = AckFrequencyConfig::default();
    asked.ack_eliciting_threshold(VarInt::from(u32::from(every) - 1)).max_ack_delay(Some(WAITS));
    Some(asked)
}

/// An endpoint on `socket`.
pub(crate) fn endpoint(
    socket: UdpSocket,
    server: Option<quinn::ServerConfig>,
) -> Result<quinn::Endpoint, Failure> {
    let runtime = Arc::new(quinn::TokioRuntime);
    quinn::Endpoint::new(quinn::EndpointConfig::default(), server, socket, runtime)
        .map_err(|error| Failure::from_io("opening a QUIC endpoint", "opening the socket", &error))
}

/// Waits for `send`. Where quinn does not take it at once, `begin` is called, and what comes beside says whether the peer
/// was told meanwhile that a window is shut (RFC 9000 §4.1).
pub(crate) async fn waiting<T>(
    send: impl Future<Output = T>,
    quic: &quinn::Connection,
    mut begin: impl FnMut(),
) -> (T, Option<bool>) {
    let mut send = pin!(send);
    let mut before = None;
    let sent = poll_fn(|cx| {
        let polled = send.as_mut().poll(cx);
        if polled.is_pending() && before.is_none() {
            before = Some(times_shut(quic));
            begin();
        }
        polled
    });
    let sent = sent.await;
    (sent, before.map(|before| times_shut(quic) > before))
}

/// How often the peer was told that a window is shut: DATA_BLOCKED and STREAM_DATA_BLOCKED frames.
fn times_shut(quic: &quinn::Connection) -> u64 {
    let sent = flight::stats(quic).frame_tx;
    sent.data_blocked + sent.stream_data_blocked
}

/// Whether it was a window that quinn waited for: the peer was told so, or quinn was given less in all than its send
/// buffer holds. `given` and `send_buffer` in bytes.
pub(crate) fn is_window(told: bool, given: u64, send_buffer: u64) -> bool {
    told || given < send_buffer
}

impl QuicRecord {
    pub(crate) fn of(stats: &ConnectionStats) -> Self {
        QuicRecord {
            rtt: stats.path.rtt,
            min_rtt: stats.path.min_rtt,
            congestion_window: stats.path.cwnd,
            congestion_events: stats.path.congestion_events,
            packets_sent: stats.path.sent_packets,
            packets_lost: stats.path.lost_packets,
            blocked: stats.frame_tx.data_blocked,
            stream_blocked: stats.frame_tx.stream_data_blocked,
            updates: stats.frame_rx.max_data,
            stream_updates: stats.frame_rx.max_stream_data,
            bytes_sent: stats.udp_tx.bytes,
            bytes_received: stats.udp_rx.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_buffer_that_may_be_full_is_no_window_unless_the_peer_was_told() {
        assert!(is_window(false, 999, 1000) && !is_window(false, 1000, 1000));
        assert!(is_window(true, 999, 1000) && is_window(true, 5000, 1000));
    }

    #[test]
    fn a_kernel_s_release_says_whether_it_cuts() {
        for release in ["6.11.0", "6.18.44-fc-v657", "7.0", "6.12.9-amd64"] {
            assert!(is_at_least_6_11(release), "{release}");
        }
        for release in ["6.1.0-44-cloud-amd64", "5.15", "6.10.99", "", "6", "x.y"] {
            assert!(!is_at_least_6_11(release), "{release}");
        }
    }
}
