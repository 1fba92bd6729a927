//! ServerHello and HelloRetryRequest (RFC 8446 §4.1.3 and §4.1.4, RFC 5246 §7.4.1.3, drafts).

use super::client_hello::{extensions_len, message, put_extensions};
use super::extension::{Extension, ExtensionKind, Extensions, protocols};
use super::names::{CipherSuite, Version};
use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "TLS ServerHello";

/// The random that makes a ServerHello a HelloRetryRequest: SHA-256 of "HelloRetryRequest"
/// (RFC 8446 §4.1.3).
pub const HELLO_RETRY_REQUEST_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// A view of a ServerHello's body: what follows the message header.
#[derive(Debug, Clone, Copy)]
pub struct ServerHello<'a> {
    legacy_version: u16,
    random: &'a [u8; 32],
    session_id: &'a [u8],
    cipher_suite: u16,
    extensions: Extensions<'a>,
}

impl<'a> ServerHello<'a> {
    /// A view of `body`, if all its vectors are whole.
    ///
    /// Drafts of TLS 1.3 before 22 state their version in the version field and have neither
    /// session id nor compression method.
    pub fn new_checked(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, body);
        let legacy_version = reader.u16()?;
        let random = reader.array()?;
        let old_draft = matches!(Version(legacy_version).draft(), Some(..22));
        let session_id = if old_draft { &[] } else { reader.vec8()? };
        if session_id.len() > 32 {
            return Err(Error::malformed(FORMAT, "its session id is above 32 bytes"));
        }
        let cipher_suite = reader.u16()?;
        if !old_draft {
            reader.u8()?;
        }
        let extensions = Extensions::at_end(&mut reader)?;
        Ok(ServerHello { legacy_version, random, session_id, cipher_suite, extensions })
    }

    /// The version field; TLS 1.3 says 0x0303 here.
    #[must_use]
    pub const fn legacy_version(&self) -> u16 {
        self.legacy_version
    }

    /// The version negotiated: supported_versions if it is there, else the version field.
    #[must_use]
    pub fn version(&self) -> Version {
        let chosen = self.extensions.find(ExtensionKind::SUPPORTED_VERSIONS);
        let chosen = chosen.and_then(|data| Reader::new(FORMAT, data).u16().ok());
        Version(chosen.unwrap_or(self.legacy_version))
    }

    /// The server's random.
    #[must_use]
    pub const fn random(&self) -> &'a [u8; 32] {
        self.random
    }

    /// Whether this is a HelloRetryRequest.
    #[must_use]
    pub fn is_hello_retry_request(&self) -> bool {
        *self.random == HELLO_RETRY_REQUEST_RANDOM
    }

    /// The session id: in TLS 1.2 the client's own says that its session is resumed.
    #[must_use]
    pub const fn session_id(&self) -> &'a [u8] {
        self.session_id
    }

    /// The cipher suite chosen.
    #[must_use]
    pub const fn cipher_suite(&self) -> CipherSuite {
        CipherSuite(self.cipher_suite)
    }

    /// All extensions, in the order of the wire.
    #[must_use]
    pub const fn extensions(&self) -> Extensions<'a> {
        self.extensions
    }

    /// The group chosen: of the server's key share, or that a HelloRetryRequest asks for.
    #[must_use]
    pub fn group(&self) -> Option<u16> {
        Reader::new(FORMAT, self.extensions.key_share()?).u16().ok()
    }

    /// Which of the client's pre-shared keys was accepted (RFC 8446 §4.2.11).
    #[must_use]
    pub fn selected_psk(&self) -> Option<u16> {
        Reader::new(FORMAT, self.extensions.find(ExtensionKind::PRE_SHARED_KEY)?).u16().ok()
    }

    /// The application protocol chosen; TLS 1.3 encrypts it elsewhere.
    #[must_use]
    pub fn alpn(&self) -> Option<&'a [u8]> {
        protocols(self.extensions.find(ExtensionKind::ALPN)).next()
    }
}

/// A view of HelloRetryRequest as drafts before 22 had it: a message of type 6.
#[derive(Debug, Clone, Copy)]
pub struct HelloRetryRequestDraft<'a> {
    version: u16,
    extensions: Extensions<'a>,
}

impl<'a> HelloRetryRequestDraft<'a> {
    /// A view of `body`: a version, since draft 19 a cipher suite, and extensions.
    pub fn new_checked(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new("TLS HelloRetryRequest", body);
        let version = reader.u16()?;
        if matches!(Version(version).draft(), Some(19..)) {
            reader.u16()?;
        }
        Ok(HelloRetryRequestDraft { version, extensions: Extensions::at_end(&mut reader)? })
    }

    /// The draft chosen.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.version)
    }

    /// The group asked for.
    #[must_use]
    pub fn group(&self) -> Option<u16> {
        Reader::new(FORMAT, self.extensions.key_share()?).u16().ok()
    }
}

/// A ServerHello to emit: the message with its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHelloRepr<'a> {
    /// The version field; no draft before 22.
    pub legacy_version: u16,
    /// The server's random.
    pub random: [u8; 32],
    /// The session id, at most 32 bytes.
    pub session_id: &'a [u8],
    /// The cipher suite chosen.
    pub cipher_suite: u16,
    /// The extensions in order.
    pub extensions: Vec<Extension<'a>>,
}

impl<'a> ServerHelloRepr<'a> {
    /// What a view shows.
    #[must_use]
    pub fn parse(hello: &ServerHello<'a>) -> Self {
        ServerHelloRepr {
            legacy_version: hello.legacy_version,
            random: *hello.random,
            session_id: hello.session_id,
            cipher_suite: hello.cipher_suite,
            extensions: hello.extensions.iter().collect(),
        }
    }

    /// Bytes that [`ServerHelloRepr::emit`] writes, the message header included.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        self.message().len()
    }

    /// Writes the message to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.session_id.len() > 32 {
            return Err(Error::DoesNotFit { format: FORMAT, field: "session id" });
        }
        if extensions_len(&self.extensions) > 0xffff {
            return Err(Error::DoesNotFit { format: FORMAT, field: "extensions" });
        }
        let message = self.message();
        room(FORMAT, buffer, message.len())?.copy_from_slice(&message);
        Ok(())
    }

    fn message(&self) -> Vec<u8> {
        let mut body = self.legacy_version.to_be_bytes().to_vec();
        body.extend_from_slice(&self.random);
        body.push(self.session_id.len() as u8);
        body.extend_from_slice(self.session_id);
        body.extend(self.cipher_suite.to_be_bytes());
        body.push(0);
        put_extensions(&self.extensions, &mut body);
        message(2, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            crate::fuzz::tls_server_hello(&bytes);
            if let [major, minor, ..] = &mut bytes[..] {
                (*major, *minor) = (0x7f, *minor % 30);
            }
            crate::fuzz::tls_server_hello(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            minor: u8, random: [u8; 32], cipher_suite: u16,
            session_id in proptest::collection::vec(any::<u8>(), 0..=32),
            bodies in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..30)), 0..9),
        ) {
            let extensions = bodies
                .iter()
                .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
                .collect();
            let repr = ServerHelloRepr {
                legacy_version: 0x0300 | u16::from(minor), random, session_id: &session_id,
                cipher_suite, extensions,
            };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            let hello = ServerHello::new_checked(&buffer[4..]).unwrap();
            prop_assert_eq!(ServerHelloRepr::parse(&hello), repr);
        }
    }

    #[test]
    fn a_hello_retry_request_names_its_group() {
        let repr = ServerHelloRepr {
            legacy_version: 0x0303,
            random: HELLO_RETRY_REQUEST_RANDOM,
            session_id: &[],
            cipher_suite: 0x1301,
            extensions: vec![
                Extension { kind: ExtensionKind::SUPPORTED_VERSIONS, data: &[3, 4] },
                Extension { kind: ExtensionKind::KEY_SHARE, data: &[0, 0x17] },
            ],
        };
        let mut buffer = vec![0; repr.buffer_len()];
        repr.emit(&mut buffer).unwrap();
        let hello = ServerHello::new_checked(&buffer[4..]).unwrap();
        assert!(hello.is_hello_retry_request());
        assert_eq!((hello.version(), hello.group()), (Version::TLS13, Some(0x17)));
    }

    #[test]
    fn a_draft_before_22_has_no_session_id() {
        let mut body = vec![0x7f, 0x13];
        body.extend([5; 32]);
        body.extend([0x13, 0x02, 0, 8, 0, 40, 0, 4, 0, 0x1d, 0, 0]);
        let hello = ServerHello::new_checked(&body).unwrap();
        assert_eq!(hello.version().draft(), Some(19));
        assert_eq!((hello.cipher_suite().0, hello.group()), (0x1302, Some(0x1d)));
    }
}
