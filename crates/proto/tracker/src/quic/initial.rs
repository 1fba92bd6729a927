//! Opens Initial packets: their keys follow from the client's first Destination Connection ID
//! (RFC 9001 §5.2, RFC 9369 §3.3.1), so that anyone may. The cryptography is rustls's.

use std::fmt;

use crate::side::Sender;
use rustls::Side;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Keys};
use wire::quic::{LongPacket, MAX_CID_LEN, Version};

/// Bytes sampled for header protection (RFC 9001 §5.4.2).
const SAMPLE_LEN: usize = 16;

/// The keys of a connection's Initial packets in both directions.
pub(super) struct InitialKeys {
    version: Version,
    destination: ([u8; MAX_CID_LEN], usize),
    keys: Keys,
}

impl fmt::Debug for InitialKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitialKeys").field("version", &self.version).finish_non_exhaustive()
    }
}

impl InitialKeys {
    /// The keys that follow from a client's first Destination Connection ID; `None` for a version
    /// other than 1 and 2.
    pub(super) fn new(version: Version, destination: &[u8]) -> Option<Self> {
        let quic_version = match version {
            Version::V1 => rustls::quic::Version::V1,
            Version::V2 => rustls::quic::Version::V2,
            _ => return None,
        };
        let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
        let mut kept = [0; MAX_CID_LEN];
        kept.get_mut(..destination.len())?.copy_from_slice(destination);
        // As a server would have them: the remote keys are the client's.
        let keys = suite.keys(destination, Side::Server, quic_version);
        Some(InitialKeys { version, destination: (kept, destination.len()), keys })
    }

    /// The keys of the same connection in another version.
    pub(super) fn with_version(&self, version: Version) -> Option<Self> {
        let (bytes, len) = &self.destination;
        Self::new(version, bytes.get(..*len)?)
    }

    /// Their version.
    pub(super) const fn version(&self) -> Version {
        self.version
    }

    /// The keys under which a side sends.
    pub(super) const fn of(&self, side: Sender) -> &DirectionalKeys {
        match side {
            Sender::Client => &self.keys.remote,
            Sender::Server => &self.keys.local,
        }
    }
}

/// Undoes header protection and opens the packet: its number and its frames, in `scratch`.
pub(super) fn open<'s>(
    keys: &DirectionalKeys,
    packet: &LongPacket<'_>,
    largest: Option<u64>,
    scratch: &'s mut Vec<u8>,
) -> Option<(u64, &'s [u8])> {
    scratch.clear();
    scratch.extend_from_slice(packet.bytes());
    let offset = packet.packet_number_offset();
    // RFC 9001 §5.4.2: the sample is taken as if the packet number had four bytes.
    let (head, tail) = scratch.split_at_mut_checked(offset.checked_add(4)?)?;
    let sample = tail.get(..SAMPLE_LEN)?;
    let (first, rest) = head.split_first_mut()?;
    let number = rest.get_mut(offset.checked_sub(1)?..)?;
    keys.header.decrypt_in_place(sample, first, number).ok()?;
    let number_len = usize::from(*first & 3) + 1;
    let truncated =
        number.iter().take(number_len).fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let number = full_number(truncated, number_len, largest);
    let (header, payload) = scratch.split_at_mut_checked(offset.checked_add(number_len)?)?;
    let payload = keys.packet.decrypt_in_place(number, header, payload).ok()?;
    Some((number, payload))
}

/// The packet number whose low bytes are `truncated`, nearest to the one expected next
/// (RFC 9000 §A.3).
fn full_number(truncated: u64, len: usize, largest: Option<u64>) -> u64 {
    let expected = largest.map_or(0, |largest| largest.saturating_add(1));
    let window = 1u64 << (8 * len.min(4));
    let candidate = (expected & !(window - 1)) | truncated;
    if candidate.saturating_add(window / 2) <= expected {
        candidate.saturating_add(window)
    } else if candidate > expected.saturating_add(window / 2) && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::full_number;

    #[test]
    fn rfc_9000_packet_number() {
        // RFC 9000 §A.3.
        assert_eq!(full_number(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(full_number(0, 1, None), 0);
        assert_eq!(full_number(0x00, 1, Some(0xff)), 0x100);
    }
}
