//! What the kernel says of a TCP connection (TCP_INFO).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use serde::Serialize;

/// `TCPI_OPT_SYN_DATA` (linux/tcp.h): the SYN-ACK acknowledged data in the SYN.
const OPT_SYN_DATA: u8 = 32;
/// `TCP_SYN_SENT` (linux/tcp_states.h).
const STATE_SYN_SENT: u8 = 2;
/// `tcpi_min_rtt` before the first measurement.
const UNKNOWN: u32 = u32::MAX;

/// Why Fast Open did not work on a client, as the kernel says (`tcpi_fastopen_client_fail`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FastOpenFailure {
    /// There was no cookie yet: the SYN asked for one.
    CookieUnavailable,
    /// The SYN-ACK did not acknowledge the data.
    DataNotAcknowledged,
    /// The SYN was retransmitted, without data.
    SynRetransmitted,
}

/// TCP_INFO, as far as it is used. What an older kernel does not report is zero or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TcpInfo {
    /// Data in the SYN was acknowledged by the SYN-ACK (RFC 7413); on a server: was taken.
    pub syn_data_acknowledged: bool,
    /// Why Fast Open did not work, on a client that tried.
    pub fast_open_failure: Option<FastOpenFailure>,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rtt_variation: Duration,
    /// Smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// Segments retransmitted, SYN included.
    pub retransmits: u32,
    /// Largest segment sent, bytes.
    pub send_mss: u32,
    /// Congestion window, in segments of `send_mss`.
    pub congestion_window: u32,
    /// Payload bytes written by the application that were never sent yet.
    pub unsent: u32,
    /// Time with data to send or unacknowledged. The kernel counts this and its parts in jiffies: 1, 4 or
    /// 10 ms.
    pub busy: Duration,
    /// Of it, time limited by the peer's receive window.
    pub receive_window_limited: Duration,
    /// Of it, time limited by the size of the send buffer.
    pub send_buffer_limited: Duration,
    /// Payload bytes sent, retransmitted ones included.
    pub bytes_sent: u64,
    /// Of them, retransmitted ones.
    pub bytes_sent_again: u64,
    /// The window that the peer announced last, scaled, bytes; `None` from a kernel older than 5.4, and of our TCP.
    pub send_window: Option<u32>,
    /// Payload bytes acknowledged by the peer; a SYN of this side's counts as one.
    pub bytes_acknowledged: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Segments sent, retransmitted ones and those without data included (`tcpi_segs_out`).
    pub segments_sent: u32,
    /// Segments received, those without data included (`tcpi_segs_in`).
    pub segments_received: u32,
    /// `TCP_ESTABLISHED` (1), `TCP_SYN_SENT` (2), ...
    pub state: u8,
}

impl TcpInfo {
    /// Reads TCP_INFO of `socket`.
    ///
    /// # Errors
    /// Those of getsockopt: it is no TCP socket.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut buffer = [0u8; 256];
        let mut len = buffer.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to the buffer and sets `len` to their number;
        // both live through the call.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                buffer.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self::parse(buffer.get(..len as usize).unwrap_or(&buffer)))
    }

    /// Reads a `struct tcp_info` as the kernel lays it out. Its fields never move; new ones come at the end.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let word = |at: usize| {
            let field = bytes.get(at..at + 4).and_then(|field| field.try_into().ok());
            u32::from_ne_bytes(field.unwrap_or_default())
        };
        let long = |at: usize| {
            let field = bytes.get(at..at + 8).and_then(|field| field.try_into().ok());
            u64::from_ne_bytes(field.unwrap_or_default())
        };
        let micros = |at: usize| Duration::from_micros(word(at).into());
        let long_micros = |at: usize| Duration::from_micros(long(at));
        // delivery_rate_app_limited:1, fastopen_client_fail:2
        let client_fail = if cfg!(target_endian = "little") { byte(7) >> 1 } else { byte(7) >> 5 };
        TcpInfo {
            state: byte(0),
            syn_data_acknowledged: byte(5) & OPT_SYN_DATA != 0,
            fast_open_failure: match client_fail & 3 {
                1 => Some(FastOpenFailure::CookieUnavailable),
                2 => Some(FastOpenFailure::DataNotAcknowledged),
                3 => Some(FastOpenFailure::SynRetransmitted),
                _ => None,
            },
            send_mss: word(16),
            rtt: micros(68),
            rtt_variation: micros(72),
            retransmits: word(100),
            congestion_window: word(80),
            unsent: word(144),
            busy: long_micros(168),
            receive_window_limited: long_micros(176),
            send_buffer_limited: long_micros(184),
            bytes_acknowledged: long(120),
            bytes_received: long(128),
            segments_sent: word(136),
            segments_received: word(140),
            min_rtt: (bytes.len() >= 152 && word(148) != UNKNOWN).then(|| micros(148)),
            bytes_sent: long(200),
            bytes_sent_again: long(208),
            send_window: (bytes.len() >= 232).then(|| word(228)),
        }
    }

    /// Payload bytes sent and not acknowledged, in order or not.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let sent = self.bytes_sent.saturating_sub(self.bytes_sent_again);
        sent.saturating_sub(self.bytes_acknowledged)
    }

    /// Whether the SYN-ACK is still to come; so too while the SYN waits for the first bytes (Fast Open).
    #[must_use]
    pub fn is_connecting(&self) -> bool {
        self.state == STATE_SYN_SENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::mem::offset_of;

    #[test]
    fn offsets_are_those_of_the_c_header() {
        assert_eq!(offset_of!(libc::tcp_info, tcpi_options), 5);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_snd_mss), 16);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_rtt), 68);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_rttvar), 72);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_snd_cwnd), 80);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_total_retrans), 100);
    }

    #[test]
    fn a_short_struct_of_an_old_kernel_gives_zeros() {
        let mut bytes = [0u8; 104];
        bytes[5] = 32;
        bytes[7] = 2 << 1;
        bytes[68..72].copy_from_slice(&1500u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        assert!(info.syn_data_acknowledged);
        assert_eq!(info.rtt, Duration::from_micros(1500));
        assert_eq!((info.min_rtt, info.bytes_sent, info.send_window), (None, 0, None));
        if cfg!(target_endian = "little") {
            assert_eq!(info.fast_open_failure, Some(FastOpenFailure::DataNotAcknowledged));
        }
    }

    proptest! {
        #[test]
        fn any_length_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = TcpInfo::parse(&bytes);
        }
    }
}
