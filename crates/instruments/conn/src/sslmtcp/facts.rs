//! What our TCP and SSLmTCP say, in the terms of this crate.

use std::io;
use std::time::Duration;

use crate::Failure;
use crate::tcp::{SynData, TcpInfo};

/// What TCP_INFO would say. What our TCP does not count is zero or `None`.
#[must_use]
pub fn tcp_info(info: &tcp::Info) -> TcpInfo {
    TcpInfo {
        // Our TCP does not say these.
        congestion_window: 0,
        busy: Duration::ZERO,
        receive_window_limited: Duration::ZERO,
        send_buffer_limited: Duration::ZERO,
        unsent: u32::try_from(info.unsent).unwrap_or(u32::MAX),
        syn_data_acknowledged: info.syn_data == tcp::SynData::Accepted,
        fast_open_failure: None,
        rtt: info.smoothed_rtt.unwrap_or_default(),
        rtt_variation: Duration::ZERO,
        min_rtt: None,
        retransmits: u32::try_from(info.retransmissions)
            .unwrap_or(u32::MAX)
            .saturating_add(info.syn_retransmissions),
        send_mss: u32::try_from(info.segment_size).unwrap_or(u32::MAX),
        bytes_sent: 0,
        bytes_sent_again: 0,
        send_window: None,
        bytes_acknowledged: info.bytes_acked,
        bytes_received: info.bytes_received,
        segments_sent: 0,
        segments_received: 0,
        state: 0,
    }
}

/// What became of data in the SYN. A destination remembered as a black hole was sent none.
pub(super) fn syn_data(info: &tcp::Info) -> SynData {
    match info.syn_data {
        tcp::SynData::None => SynData::NotSent,
        tcp::SynData::Accepted => SynData::Acknowledged,
        tcp::SynData::BlackHole if info.syn_bytes == 0 => SynData::NotSent,
        _ => SynData::NotAcknowledged,
    }
}

/// A failure of SSLmTCP.
#[must_use]
pub fn failure(error: sslmtcp::Error) -> Failure {
    match error {
        sslmtcp::Error::Tls(error) => Failure::Tls(error),
        sslmtcp::Error::TimedOut { after } => Failure::TimedOut { after, timeline: Box::default() },
        sslmtcp::Error::Tcp { during, kind, .. } => of_kind(during, kind, &error.to_string()),
        sslmtcp::Error::Carrier(_) => Failure::Protocol("broke the TLS stream off, or its framing"),
        other => environment("connect", &other.to_string()),
    }
}

/// A failure of a read or write.
#[must_use]
pub fn io(during: &'static str, error: &io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<sslmtcp::Error>());
    match inner {
        Some(inner) => failure(inner.clone()),
        None => of_kind(during, error.kind(), &error.to_string()),
    }
}

fn of_kind(during: &'static str, kind: io::ErrorKind, detail: &str) -> Failure {
    match kind {
        io::ErrorKind::ConnectionRefused => Failure::Refused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => Failure::Reset { during },
        io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => Failure::Unreachable { detail: detail.to_owned() },
        io::ErrorKind::UnexpectedEof => Failure::Protocol("cut its stream off"),
        _ => environment(during, detail),
    }
}

/// This machine's fault.
pub(super) fn environment(call: &'static str, error: &str) -> Failure {
    Failure::Environment { call, errno: 0, error: error.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fault::{Explain, Fault};

    #[test]
    fn a_failure_keeps_whose_fault_it_is() {
        let during = "connecting";
        for (kind, name, fault) in [
            (io::ErrorKind::ConnectionRefused, "refused", Fault::Peer),
            (io::ErrorKind::ConnectionReset, "reset", Fault::Peer),
            (io::ErrorKind::TimedOut, "unreachable", Fault::Machine),
            (io::ErrorKind::UnexpectedEof, "protocol", Fault::Peer),
            (io::ErrorKind::Other, "environment", Fault::Machine),
        ] {
            let of_tcp = sslmtcp::Error::Tcp { during, kind, detail: "x".to_owned() };
            let failure = io("reading", &io::Error::from(of_tcp));
            assert_eq!((failure.name(), failure.fault()), (name, fault), "{failure}");
            let plain = io("reading", &io::Error::from(kind));
            assert_eq!(plain.name(), name, "{plain}");
        }
        let late = sslmtcp::Error::TimedOut { after: Duration::from_secs(1) };
        assert_eq!(failure(late).name(), "timed-out");
    }
}
