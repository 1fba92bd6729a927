//! Opens Initial packets: their keys follow from the client's first Destination Connection ID
//! (RFC 9001 §5.2, RFC 9369 §3.3.1), so that anyone may. The cryptography is AWS-LC's.

use std::fmt;

use aws_lc_rs::aead::quic::{AES_128, HeaderProtectionKey};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use wire::quic::{LongPacket, MAX_CID_LEN, Version};

use crate::label::expand_label;
use crate::side::Sender;

/// Bytes sampled for header protection (RFC 9001 §5.4.2).
const SAMPLE_LEN: usize = 16;

/// The salt of version 1 (RFC 9001 §5.2), and of drafts 33 and 34.
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
/// The salt of version 2 (RFC 9369 §3.3.1).
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];
/// The salt of drafts 29 to 32 (draft-ietf-quic-tls-29 §5.2).
const SALT_29: [u8; 20] = [
    0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0,
    0x43, 0x90, 0xa8, 0x99,
];
/// The salt of drafts 23 to 28 (draft-ietf-quic-tls-23 §5.2).
const SALT_23: [u8; 20] = [
    0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65,
    0xbe, 0xf9, 0xf5, 0x02,
];

/// What a version derives keys with: its salt, and the labels of key, IV and header protection.
type Derivation = (&'static [u8; 20], [&'static str; 3]);

fn derivation(version: Version) -> Option<Derivation> {
    const LABELS: [&str; 3] = ["quic key", "quic iv", "quic hp"];
    Some(match (version, version.draft()) {
        (Version::V1, _) | (_, Some(33 | 34)) => (&SALT_V1, LABELS),
        (Version::V2, _) => (&SALT_V2, ["quicv2 key", "quicv2 iv", "quicv2 hp"]),
        (_, Some(29..=32)) => (&SALT_29, LABELS),
        (_, Some(23..=28)) => (&SALT_23, LABELS),
        _ => return None,
    })
}

/// The keys under which one side sends its Initial packets.
pub(super) struct Keys {
    packet: LessSafeKey,
    iv: [u8; NONCE_LEN],
    header: HeaderProtectionKey,
}

impl Keys {
    /// RFC 9001 §5.1 and §5.2.
    fn new(initial: &Prk, side: &str, [key, iv, hp]: [&str; 3]) -> Option<Self> {
        let mut secret = [0; 32];
        expand_label(initial, side, &mut secret)?;
        let secret = Prk::new_less_safe(HKDF_SHA256, &secret);
        let (mut packet, mut header, mut nonce) = ([0; 16], [0; 16], [0; NONCE_LEN]);
        expand_label(&secret, key, &mut packet)?;
        expand_label(&secret, iv, &mut nonce)?;
        expand_label(&secret, hp, &mut header)?;
        Some(Keys {
            packet: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &packet).ok()?),
            iv: nonce,
            header: HeaderProtectionKey::new(&AES_128, &header).ok()?,
        })
    }
}

/// The keys of a connection's Initial packets in both directions.
pub(super) struct InitialKeys {
    version: Version,
    destination: ([u8; MAX_CID_LEN], usize),
    client: Keys,
    server: Keys,
}

impl fmt::Debug for InitialKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitialKeys").field("version", &self.version).finish_non_exhaustive()
    }
}

impl InitialKeys {
    /// The keys that follow from a client's first Destination Connection ID; `None` for a version
    /// that is not known.
    pub(super) fn new(version: Version, destination: &[u8]) -> Option<Self> {
        let (salt, labels) = derivation(version)?;
        let mut kept = [0; MAX_CID_LEN];
        kept.get_mut(..destination.len())?.copy_from_slice(destination);
        let initial = Salt::new(HKDF_SHA256, salt).extract(destination);
        Some(InitialKeys {
            version,
            destination: (kept, destination.len()),
            client: Keys::new(&initial, "client in", labels)?,
            server: Keys::new(&initial, "server in", labels)?,
        })
    }

    /// The keys of the same connection in another version.
    pub(super) fn with_version(&self, version: Version) -> Option<Self> {
        Self::new(version, self.destination())
    }

    /// The version whose salt they were made with.
    pub(super) const fn version(&self) -> Version {
        self.version
    }

    /// The Destination Connection ID that they follow from.
    pub(super) fn destination(&self) -> &[u8] {
        let (bytes, len) = &self.destination;
        bytes.get(..*len).unwrap_or(&[])
    }

    /// The keys under which a side sends.
    pub(super) const fn of(&self, side: Sender) -> &Keys {
        match side {
            Sender::Client => &self.client,
            Sender::Server => &self.server,
        }
    }
}

/// Undoes header protection and opens the packet: its number and its frames, in `scratch`.
pub(super) fn open<'s>(
    keys: &Keys,
    packet: &LongPacket<'_>,
    largest: Option<u64>,
    scratch: &'s mut Vec<u8>,
) -> Option<(u64, &'s [u8])> {
    scratch.clear();
    scratch.extend_from_slice(packet.bytes());
    let offset = packet.packet_number_offset();
    // RFC 9001 §5.4.2: the sample is taken as if the packet number had four bytes.
    let (head, tail) = scratch.split_at_mut_checked(offset.checked_add(4)?)?;
    let mask = keys.header.new_mask(tail.get(..SAMPLE_LEN)?).ok()?;
    let [first_mask, number_mask @ ..] = mask;
    let (first, rest) = head.split_first_mut()?;
    // RFC 9001 §5.4.1: of a long header the low four bits.
    *first ^= first_mask & 0x0f;
    let number_len = usize::from(*first & 3) + 1;
    let number = rest.get_mut(offset.checked_sub(1)?..)?.get_mut(..number_len)?;
    let mut truncated = 0u64;
    for (byte, mask) in number.iter_mut().zip(number_mask) {
        *byte ^= mask;
        truncated = truncated << 8 | u64::from(*byte);
    }
    let number = full_number(truncated, number_len, largest);
    let (header, payload) = scratch.split_at_mut_checked(offset.checked_add(number_len)?)?;
    let mut nonce = keys.iv;
    for (to, from) in nonce.iter_mut().rev().zip(number.to_be_bytes().iter().rev()) {
        *to ^= from;
    }
    let nonce = Nonce::assume_unique_for_key(nonce);
    let payload = keys.packet.open_in_place(nonce, Aad::from(header), payload).ok()?;
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
