//! Hello extensions (RFC 8446 §4.2).

use super::names::is_grease;
use crate::reader::u16s;
use crate::{Error, Reader};

const FORMAT: &str = "TLS extension";

/// An extension's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExtensionKind(pub u16);

impl ExtensionKind {
    /// server_name (RFC 6066).
    pub const SERVER_NAME: ExtensionKind = ExtensionKind(0);
    /// supported_groups (RFC 8446 §4.2.7).
    pub const SUPPORTED_GROUPS: ExtensionKind = ExtensionKind(10);
    /// ec_point_formats (RFC 8422 §5.1.2).
    pub const EC_POINT_FORMATS: ExtensionKind = ExtensionKind(11);
    /// signature_algorithms (RFC 8446 §4.2.3).
    pub const SIGNATURE_ALGORITHMS: ExtensionKind = ExtensionKind(13);
    /// application_layer_protocol_negotiation (RFC 7301).
    pub const ALPN: ExtensionKind = ExtensionKind(16);
    /// session_ticket (RFC 5077).
    pub const SESSION_TICKET: ExtensionKind = ExtensionKind(35);
    /// key_share in TLS 1.3 before draft 23.
    pub const KEY_SHARE_DRAFT: ExtensionKind = ExtensionKind(40);
    /// pre_shared_key: tickets or external keys to resume with (RFC 8446 §4.2.11).
    pub const PRE_SHARED_KEY: ExtensionKind = ExtensionKind(41);
    /// early_data: 0-RTT data follow, or were accepted (RFC 8446 §4.2.10).
    pub const EARLY_DATA: ExtensionKind = ExtensionKind(42);
    /// supported_versions: where TLS 1.3 negotiates its version (RFC 8446 §4.2.1).
    pub const SUPPORTED_VERSIONS: ExtensionKind = ExtensionKind(43);
    /// cookie: a HelloRetryRequest's state, echoed by the client (RFC 8446 §4.2.2).
    pub const COOKIE: ExtensionKind = ExtensionKind(44);
    /// psk_key_exchange_modes: whether resumption has a key exchange too (RFC 8446 §4.2.9).
    pub const PSK_KEY_EXCHANGE_MODES: ExtensionKind = ExtensionKind(45);
    /// key_share: public keys for the key exchange (RFC 8446 §4.2.8).
    pub const KEY_SHARE: ExtensionKind = ExtensionKind(51);
    /// quic_transport_parameters (RFC 9001 §8.2).
    pub const QUIC_TRANSPORT_PARAMETERS: ExtensionKind = ExtensionKind(57);
    /// application_settings, as Chrome sent it until 2023 (draft-vvv-tls-alps).
    pub const APPLICATION_SETTINGS_OLD: ExtensionKind = ExtensionKind(17513);
    /// application_settings, as browsers send it since.
    pub const APPLICATION_SETTINGS: ExtensionKind = ExtensionKind(17613);
    /// encrypted_client_hello (RFC 9849).
    pub const ENCRYPTED_CLIENT_HELLO: ExtensionKind = ExtensionKind(0xfe0d);

    /// Whether it is one of GREASE's.
    #[must_use]
    pub const fn is_grease(self) -> bool {
        is_grease(self.0)
    }
}

/// An extension as it is on the wire (RFC 8446 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Its type's registered number (IANA TLS ExtensionType Values).
    pub kind: ExtensionKind,
    /// Its body, without type and length.
    pub data: &'a [u8],
}

/// A hello's extensions; checked to be whole when made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extensions<'a>(&'a [u8]);

impl<'a> Extensions<'a> {
    /// Checks that `bytes` are whole extensions one after the other.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        while !reader.is_empty() {
            reader.u16()?;
            reader.vec16()?;
        }
        Ok(Extensions(bytes))
    }

    /// Reads the extensions at the end of a hello: none if it ends before them (RFC 5246 §7.4.1.2).
    pub(super) fn at_end(reader: &mut Reader<'a>) -> Result<Self, Error> {
        if reader.is_empty() {
            return Ok(Extensions(&[]));
        }
        let extensions = Self::new_checked(reader.vec16()?)?;
        if reader.is_empty() {
            Ok(extensions)
        } else {
            Err(Error::malformed(FORMAT, "bytes follow the last one"))
        }
    }

    /// The extensions in their order.
    pub fn iter(&self) -> impl Iterator<Item = Extension<'a>> + use<'a> {
        let mut reader = Reader::new(FORMAT, self.0);
        std::iter::from_fn(move || {
            let kind = ExtensionKind(reader.u16().ok()?);
            Some(Extension { kind, data: reader.vec16().ok()? })
        })
    }

    /// The body of the first extension of a kind.
    #[must_use]
    pub fn find(&self, kind: ExtensionKind) -> Option<&'a [u8]> {
        self.iter().find(|extension| extension.kind == kind).map(|extension| extension.data)
    }

    /// The body of key_share, under its number or the one that drafts before 23 used.
    #[must_use]
    pub fn key_share(&self) -> Option<&'a [u8]> {
        self.find(ExtensionKind::KEY_SHARE).or_else(|| self.find(ExtensionKind::KEY_SHARE_DRAFT))
    }
}

/// One key share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyShare<'a> {
    /// Its group's registered number (IANA TLS Supported Groups).
    pub group: u16,
    /// The public value.
    pub key: &'a [u8],
}

/// What a client offers in pre_shared_key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PskOffer {
    /// Number of identities.
    pub identities: usize,
    /// Bytes of the first identity: a ticket.
    pub first_identity_len: usize,
    /// Number of binders, as many as identities.
    pub binders: usize,
}

/// The host name in server_name (RFC 6066 §3), if it is ASCII text.
pub(super) fn host_name(data: &[u8]) -> Option<&str> {
    let mut names = Reader::new(FORMAT, Reader::new(FORMAT, data).vec16().ok()?);
    while !names.is_empty() {
        let kind = names.u8().ok()?;
        let name = names.vec16().ok()?;
        if kind == 0 {
            return std::str::from_utf8(name).ok().filter(|name| name.is_ascii());
        }
    }
    None
}

/// The protocols of an ALPN body, up to a malformed one.
pub(super) fn protocols(data: Option<&[u8]>) -> impl Iterator<Item = &[u8]> {
    let list = data.and_then(|data| Reader::new(FORMAT, data).vec16().ok()).unwrap_or(&[]);
    let mut reader = Reader::new(FORMAT, list);
    std::iter::from_fn(move || reader.vec8().ok())
}

/// The numbers in a list behind a length of one byte.
pub(super) fn list8(data: Option<&[u8]>) -> impl Iterator<Item = u16> + Clone + '_ {
    u16s(data.and_then(|data| Reader::new(FORMAT, data).vec8().ok()).unwrap_or(&[]))
}

/// The numbers in a list behind a length of two bytes.
pub(super) fn list16(data: Option<&[u8]>) -> impl Iterator<Item = u16> + Clone + '_ {
    u16s(data.and_then(|data| Reader::new(FORMAT, data).vec16().ok()).unwrap_or(&[]))
}

/// The shares in a client's key_share body, up to a malformed one.
pub(super) fn key_shares(data: Option<&[u8]>) -> impl Iterator<Item = KeyShare<'_>> {
    let list = data.and_then(|data| Reader::new(FORMAT, data).vec16().ok()).unwrap_or(&[]);
    let mut reader = Reader::new(FORMAT, list);
    std::iter::from_fn(move || {
        let group = reader.u16().ok()?;
        Some(KeyShare { group, key: reader.vec16().ok()? })
    })
}

/// A client's pre_shared_key body (RFC 8446 §4.2.11).
pub(super) fn psk_offer(data: &[u8]) -> Result<PskOffer, Error> {
    let mut reader = Reader::new("TLS pre_shared_key", data);
    let mut identities = Reader::new("TLS pre_shared_key", reader.vec16()?);
    let mut binders = Reader::new("TLS pre_shared_key", reader.vec16()?);
    let mut offer = PskOffer { identities: 0, first_identity_len: 0, binders: 0 };
    while !identities.is_empty() {
        let identity = identities.vec16()?;
        identities.u32()?;
        if offer.identities == 0 {
            offer.first_identity_len = identity.len();
        }
        offer.identities = offer.identities.saturating_add(1);
    }
    while !binders.is_empty() {
        binders.vec8()?;
        offer.binders = offer.binders.saturating_add(1);
    }
    Ok(offer)
}

/// Bodies of extensions, to emit hellos with. Lengths above their field are cut to its low bits,
/// so keep names below 2^16 and lists below their length's range.
pub mod body {
    fn with_length16(bytes: Vec<u8>) -> Vec<u8> {
        let mut out = (bytes.len() as u16).to_be_bytes().to_vec();
        out.extend(bytes);
        out
    }

    /// server_name with one host name.
    #[must_use]
    pub fn server_name(name: &str) -> Vec<u8> {
        let mut entry = vec![0];
        entry.extend(with_length16(name.as_bytes().to_vec()));
        with_length16(entry)
    }

    /// ALPN with these protocols, each below 256 bytes.
    #[must_use]
    pub fn alpn(protocols: &[&[u8]]) -> Vec<u8> {
        let mut list = Vec::new();
        for protocol in protocols {
            list.push(protocol.len() as u8);
            list.extend_from_slice(protocol);
        }
        with_length16(list)
    }

    /// A client's supported_versions, at most 127.
    #[must_use]
    pub fn supported_versions(versions: &[u16]) -> Vec<u8> {
        let mut out = vec![(versions.len() as u8).wrapping_mul(2)];
        out.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
        out
    }

    /// The body of supported_groups with these groups, preferred first (RFC 8446 §4.2.7).
    #[must_use]
    pub fn supported_groups(groups: &[u16]) -> Vec<u8> {
        with_length16(groups.iter().flat_map(|group| group.to_be_bytes()).collect())
    }

    /// A client's key_share.
    #[must_use]
    pub fn key_shares(shares: &[(u16, &[u8])]) -> Vec<u8> {
        let mut list = Vec::new();
        for (group, key) in shares {
            list.extend(key_share(*group, key));
        }
        with_length16(list)
    }

    /// A server's key_share.
    #[must_use]
    pub fn key_share(group: u16, key: &[u8]) -> Vec<u8> {
        let mut out = group.to_be_bytes().to_vec();
        out.extend(with_length16(key.to_vec()));
        out
    }

    /// A client's pre_shared_key with one identity and one binder below 256 bytes.
    #[must_use]
    pub fn pre_shared_key(identity: &[u8], obfuscated_age: u32, binder: &[u8]) -> Vec<u8> {
        let mut entry = with_length16(identity.to_vec());
        entry.extend(obfuscated_age.to_be_bytes());
        let mut out = with_length16(entry);
        let mut binders = vec![binder.len() as u8];
        binders.extend_from_slice(binder);
        out.extend(with_length16(binders));
        out
    }

    /// psk_key_exchange_modes with psk_dhe_ke alone.
    #[must_use]
    pub fn psk_dhe_ke() -> Vec<u8> {
        vec![1, 1]
    }
}
