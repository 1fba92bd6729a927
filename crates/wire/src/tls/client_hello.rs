//! ClientHello (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2).

use super::extension::{
    Extension, ExtensionKind, Extensions, KeyShare, PskOffer, host_name, key_shares, list8, list16,
    protocols, psk_offer,
};
use super::names::{Version, is_grease};
use crate::error::room;
use crate::reader::u16s;
use crate::{Error, Reader};

const FORMAT: &str = "TLS ClientHello";

/// A view of a ClientHello's body: what follows the message header.
#[derive(Debug, Clone, Copy)]
pub struct ClientHello<'a> {
    legacy_version: u16,
    random: &'a [u8; 32],
    session_id: &'a [u8],
    cipher_suites: &'a [u8],
    compression_methods: &'a [u8],
    extensions: Extensions<'a>,
}

impl<'a> ClientHello<'a> {
    /// A view of `body`, if all its vectors are whole. The bodies of single extensions are checked
    /// by their accessors.
    pub fn new_checked(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, body);
        let legacy_version = reader.u16()?;
        let random = reader.array()?;
        let session_id = reader.vec8()?;
        if session_id.len() > 32 {
            return Err(Error::malformed(FORMAT, "its session id is above 32 bytes"));
        }
        let cipher_suites = reader.vec16()?;
        if cipher_suites.len() % 2 != 0 {
            return Err(Error::malformed(FORMAT, "its cipher suites end in half a suite"));
        }
        let compression_methods = reader.vec8()?;
        let extensions = Extensions::at_end(&mut reader)?;
        Ok(ClientHello {
            legacy_version,
            random,
            session_id,
            cipher_suites,
            compression_methods,
            extensions,
        })
    }

    /// The version field; TLS 1.3 says 0x0303 here.
    #[must_use]
    pub const fn legacy_version(&self) -> u16 {
        self.legacy_version
    }

    /// The client's random.
    #[must_use]
    pub const fn random(&self) -> &'a [u8; 32] {
        self.random
    }

    /// The session id, up to 32 bytes.
    #[must_use]
    pub const fn session_id(&self) -> &'a [u8] {
        self.session_id
    }

    /// The cipher suites, GREASE included.
    pub fn cipher_suites(&self) -> impl Iterator<Item = u16> + Clone + use<'a> {
        u16s(self.cipher_suites)
    }

    /// The compression methods.
    #[must_use]
    pub const fn compression_methods(&self) -> &'a [u8] {
        self.compression_methods
    }

    /// All extensions, in the order of the wire.
    #[must_use]
    pub const fn extensions(&self) -> Extensions<'a> {
        self.extensions
    }

    /// The host name asked for.
    #[must_use]
    pub fn server_name(&self) -> Option<&'a str> {
        host_name(self.extensions.find(ExtensionKind::SERVER_NAME)?)
    }

    /// The application protocols offered.
    pub fn alpn(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        protocols(self.extensions.find(ExtensionKind::ALPN))
    }

    /// The versions offered, GREASE left out (RFC 8701 §3.1): from supported_versions, or without
    /// it the version field alone, which then is the highest offered.
    pub fn versions(&self) -> impl Iterator<Item = Version> + use<'a> {
        let listed = self.extensions.find(ExtensionKind::SUPPORTED_VERSIONS);
        let alone = listed.is_none().then_some(self.legacy_version);
        list8(listed).chain(alone).filter(|version| !is_grease(*version)).map(Version)
    }

    /// The groups supported, GREASE left out.
    pub fn groups(&self) -> impl Iterator<Item = u16> + use<'a> {
        list16(self.extensions.find(ExtensionKind::SUPPORTED_GROUPS)).filter(|g| !is_grease(*g))
    }

    /// The point formats: one byte each.
    #[must_use]
    pub fn ec_point_formats(&self) -> &'a [u8] {
        let data = self.extensions.find(ExtensionKind::EC_POINT_FORMATS);
        data.and_then(|data| Reader::new(FORMAT, data).vec8().ok()).unwrap_or(&[])
    }

    /// The signature algorithms, GREASE left out.
    pub fn signature_algorithms(&self) -> impl Iterator<Item = u16> + use<'a> {
        let data = self.extensions.find(ExtensionKind::SIGNATURE_ALGORITHMS);
        list16(data).filter(|algorithm| !is_grease(*algorithm))
    }

    /// The key shares, GREASE left out.
    pub fn key_shares(&self) -> impl Iterator<Item = KeyShare<'a>> + use<'a> {
        key_shares(self.extensions.key_share()).filter(|share| !is_grease(share.group))
    }

    /// The pre-shared keys offered.
    #[must_use]
    pub fn pre_shared_key(&self) -> Option<PskOffer> {
        psk_offer(self.extensions.find(ExtensionKind::PRE_SHARED_KEY)?).ok()
    }

    /// The PSK modes: 0 psk_ke, 1 psk_dhe_ke (RFC 8446 §4.2.9). Without them a server must not
    /// send tickets that the client could use.
    #[must_use]
    pub fn psk_key_exchange_modes(&self) -> Option<&'a [u8]> {
        Reader::new(FORMAT, self.extensions.find(ExtensionKind::PSK_KEY_EXCHANGE_MODES)?)
            .vec8()
            .ok()
    }

    /// Whether early data may follow.
    #[must_use]
    pub fn early_data(&self) -> bool {
        self.extensions.find(ExtensionKind::EARLY_DATA).is_some()
    }

    /// The TLS 1.2 ticket: empty if the client asks for one, `None` if it knows none.
    #[must_use]
    pub fn session_ticket(&self) -> Option<&'a [u8]> {
        self.extensions.find(ExtensionKind::SESSION_TICKET)
    }

    /// Whether the client offers application settings (ALPS), under the old number or the new one.
    #[must_use]
    pub fn application_settings(&self) -> bool {
        let kinds = [ExtensionKind::APPLICATION_SETTINGS, ExtensionKind::APPLICATION_SETTINGS_OLD];
        kinds.into_iter().any(|kind| self.extensions.find(kind).is_some())
    }

    /// Whether encrypted_client_hello is there, genuine or GREASE: they look the same.
    #[must_use]
    pub fn encrypted_client_hello(&self) -> bool {
        self.extensions.find(ExtensionKind::ENCRYPTED_CLIENT_HELLO).is_some()
    }
}

/// A ClientHello to emit: the message with its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHelloRepr<'a> {
    /// The version field.
    pub legacy_version: u16,
    /// The client's random.
    pub random: [u8; 32],
    /// The session id, at most 32 bytes.
    pub session_id: &'a [u8],
    /// The cipher suites.
    pub cipher_suites: Vec<u16>,
    /// The extensions in order; [`super::body`] makes their bodies.
    pub extensions: Vec<Extension<'a>>,
}

impl<'a> ClientHelloRepr<'a> {
    /// What a view shows; the compression methods are taken to be null alone.
    #[must_use]
    pub fn parse(hello: &ClientHello<'a>) -> Self {
        ClientHelloRepr {
            legacy_version: hello.legacy_version,
            random: *hello.random,
            session_id: hello.session_id,
            cipher_suites: hello.cipher_suites().collect(),
            extensions: hello.extensions.iter().collect(),
        }
    }

    /// Bytes that [`ClientHelloRepr::emit`] writes, the message header included.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        self.message().len()
    }

    /// Writes the message to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.session_id.len() > 32 {
            return Err(Error::DoesNotFit { format: FORMAT, field: "session id" });
        }
        if self.cipher_suites.len() > 0x7fff {
            return Err(Error::DoesNotFit { format: FORMAT, field: "cipher suites" });
        }
        let message = self.message();
        if extensions_len(&self.extensions) > 0xffff {
            return Err(Error::DoesNotFit { format: FORMAT, field: "extensions" });
        }
        room(FORMAT, buffer, message.len())?.copy_from_slice(&message);
        Ok(())
    }

    fn message(&self) -> Vec<u8> {
        let mut body = self.legacy_version.to_be_bytes().to_vec();
        body.extend_from_slice(&self.random);
        body.push(self.session_id.len() as u8);
        body.extend_from_slice(self.session_id);
        body.extend((self.cipher_suites.len().saturating_mul(2) as u16).to_be_bytes());
        body.extend(self.cipher_suites.iter().flat_map(|suite| suite.to_be_bytes()));
        body.extend([1, 0]);
        put_extensions(&self.extensions, &mut body);
        message(1, &body)
    }
}

/// Bytes of extensions without the length of their list.
pub(super) fn extensions_len(extensions: &[Extension<'_>]) -> usize {
    extensions.iter().fold(0, |sum, e| sum.saturating_add(4).saturating_add(e.data.len()))
}

/// Appends the list of extensions behind its length.
pub(super) fn put_extensions(extensions: &[Extension<'_>], out: &mut Vec<u8>) {
    out.extend((extensions_len(extensions) as u16).to_be_bytes());
    for extension in extensions {
        out.extend(extension.kind.0.to_be_bytes());
        out.extend((extension.data.len() as u16).to_be_bytes());
        out.extend_from_slice(extension.data);
    }
}

/// A message of a type with its header.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let header =
        super::MessageHeader { kind: super::HandshakeType(kind), length: body.len() as u32 };
    let mut message = header.to_bytes().to_vec();
    message.extend_from_slice(body);
    message
}

#[cfg(test)]
mod tests {
    use super::super::body;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            crate::fuzz::tls_client_hello(&bytes);
        }

        #[test]
        fn a_damaged_hello_does_not_panic(at in 0usize..300, to: u8, cut in 0usize..300) {
            let mut bytes = example();
            let end = bytes.len();
            bytes[at % end] = to;
            crate::fuzz::tls_client_hello(&bytes[4..]);
            crate::fuzz::tls_client_hello(&bytes[4..4 + cut.min(end - 4)]);
        }

        #[test]
        fn emitted_is_parsed_back(
            legacy_version: u16, random: [u8; 32],
            session_id in proptest::collection::vec(any::<u8>(), 0..=32),
            cipher_suites in proptest::collection::vec(any::<u16>(), 0..20),
            bodies in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..30)), 0..9),
        ) {
            let extensions = bodies
                .iter()
                .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
                .collect();
            let repr = ClientHelloRepr {
                legacy_version, random, session_id: &session_id, cipher_suites, extensions,
            };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            let hello = ClientHello::new_checked(&buffer[4..]).unwrap();
            prop_assert_eq!(ClientHelloRepr::parse(&hello), repr);
        }
    }

    fn example() -> Vec<u8> {
        let bodies = [
            (0x1a1a, vec![]),
            (0, body::server_name("example.org")),
            (16, body::alpn(&[b"h2", b"http/1.1"])),
            (43, body::supported_versions(&[0x2a2a, 0x0304, 0x7f17, 0x0303])),
            (10, body::supported_groups(&[0x3a3a, 0x11ec, 0x001d])),
            (51, body::key_shares(&[(0x3a3a, &[0]), (0x001d, &[7; 32])])),
            (45, body::psk_dhe_ke()),
            (42, vec![]),
            (0xfe0d, vec![0]),
            (41, body::pre_shared_key(&[9; 60], 5, &[8; 32])),
        ];
        let repr = ClientHelloRepr {
            legacy_version: 0x0303,
            random: [1; 32],
            session_id: &[2; 32],
            cipher_suites: vec![0x4a4a, 0x1301],
            extensions: bodies
                .iter()
                .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
                .collect(),
        };
        let mut buffer = vec![0; repr.buffer_len()];
        repr.emit(&mut buffer).unwrap();
        buffer
    }

    #[test]
    fn every_accessor_reads_what_was_put_in_and_leaves_grease_out() {
        let bytes = example();
        let hello = ClientHello::new_checked(&bytes[4..]).unwrap();
        assert_eq!(hello.server_name(), Some("example.org"));
        assert_eq!(hello.alpn().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
        let versions: Vec<u16> = hello.versions().map(|version| version.0).collect();
        assert_eq!(versions, [0x0304, 0x7f17, 0x0303]);
        assert_eq!(hello.groups().collect::<Vec<_>>(), [0x11ec, 0x001d]);
        let shares: Vec<_> =
            hello.key_shares().map(|share| (share.group, share.key.len())).collect();
        assert_eq!(shares, [(0x001d, 32)]);
        let offer = PskOffer { identities: 1, first_identity_len: 60, binders: 1 };
        assert_eq!(hello.pre_shared_key(), Some(offer));
        assert_eq!(hello.psk_key_exchange_modes(), Some(&[1][..]));
        assert!(hello.early_data() && hello.encrypted_client_hello());
        assert_eq!(hello.session_ticket(), None);
    }

    #[test]
    fn without_supported_versions_the_field_counts() {
        let repr = ClientHelloRepr {
            legacy_version: 0x0302,
            random: [0; 32],
            session_id: &[],
            cipher_suites: vec![0x002f],
            extensions: vec![],
        };
        let mut buffer = vec![0; repr.buffer_len()];
        repr.emit(&mut buffer).unwrap();
        // SSL 3 and early TLS hellos end before the extensions.
        let bare = &buffer[4..buffer.len() - 2];
        let hello = ClientHello::new_checked(bare).unwrap();
        assert_eq!(hello.versions().collect::<Vec<_>>(), [Version::TLS11]);
    }
}
