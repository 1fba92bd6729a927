//! Handshake messages of TLS 1.3, as QUIC's CRYPTO frames carry them: enough of them to say what was
//! negotiated. quinn tells neither the group nor whether a session was resumed, and the messages do.

use tls::{CipherSuite, EarlyData, Facts, Group, Library, Version};

/// Longest message that is looked into: chains of certificates are well below it.
const MAX_MESSAGE: usize = 1 << 17;

/// Handshake types (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const NEW_SESSION_TICKET: u8 = 4;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;

/// Extension types (RFC 8446 §4.2).
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const KEY_SHARE: u16 = 51;

/// The random of a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// What the messages of one handshake say, both directions.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub facts: Facts,
    /// The group's code point, also when [`Group`] does not know it.
    pub group: Option<u16>,
    /// The server's certificates (DER), the leaf first.
    pub chain: Vec<Vec<u8>>,
    /// How many NewSessionTicket messages came.
    pub tickets: u32,
    /// Whether the newest ticket allows early data.
    pub ticket_allows_early_data: bool,
}

impl Handshake {
    pub fn new() -> Self {
        Handshake {
            facts: Facts {
                library: Library::Rustls,
                version: None,
                cipher_suite: None,
                group: None,
                resumed: false,
                early_data: EarlyData::NotOffered,
                hello_retry_request: false,
                alpn: None,
                server_name: None,
                key_shares: Vec::new(),
                client_hello_len: 0,
                certificates: 0,
                ticket_promised: false,
            },
            group: None,
            chain: Vec::new(),
            tickets: 0,
            ticket_allows_early_data: false,
        }
    }

    /// Takes note of one message. What cannot be read is left out: judging it is the library's task.
    fn message(&mut self, kind: u8, body: &[u8]) {
        let _ = match kind {
            CLIENT_HELLO => self.client_hello(body),
            SERVER_HELLO => self.server_hello(body),
            ENCRYPTED_EXTENSIONS => self.encrypted_extensions(body),
            CERTIFICATE => self.certificate(body),
            NEW_SESSION_TICKET => self.new_session_ticket(body),
            _ => Some(()),
        };
    }

    /// RFC 8446 §4.1.2
    fn client_hello(&mut self, body: &[u8]) -> Option<()> {
        let is_first = self.facts.client_hello_len == 0;
        if is_first {
            self.facts.client_hello_len = body.len() + HEADER;
        }
        let mut body = Cursor(body);
        body.take(2 + 32)?;
        body.vector(1)?;
        body.vector(2)?;
        body.vector(1)?;
        for (kind, data) in body.extensions()? {
            match kind {
                SERVER_NAME => self.facts.server_name = server_name(data),
                KEY_SHARE if is_first => self.facts.key_shares = key_shares(data),
                EARLY_DATA if is_first => self.facts.early_data = EarlyData::Pending,
                _ => {}
            }
        }
        Some(())
    }

    /// RFC 8446 §4.1.3
    fn server_hello(&mut self, body: &[u8]) -> Option<()> {
        let mut body = Cursor(body);
        body.take(2)?;
        let is_retry = body.take(32)? == RETRY_RANDOM;
        body.vector(1)?;
        let suite = body.number(2)? as u16;
        body.take(1)?;
        if is_retry {
            self.facts.hello_retry_request = true;
            // RFC 8446 §4.2.10: a client must not send early data after a HelloRetryRequest.
            if self.facts.early_data == EarlyData::Pending {
                self.facts.early_data = EarlyData::Rejected;
            }
            return Some(());
        }
        self.facts.version = Some(Version::Tls13);
        self.facts.cipher_suite = Some(CipherSuite(suite));
        for (kind, data) in body.extensions()? {
            match kind {
                PRE_SHARED_KEY => self.facts.resumed = true,
                KEY_SHARE => {
                    self.group = Cursor(data).number(2).map(|group| group as u16);
                    self.facts.group = self.group.and_then(Group::from_id);
                }
                _ => {}
            }
        }
        Some(())
    }

    /// RFC 8446 §4.3.1
    fn encrypted_extensions(&mut self, body: &[u8]) -> Option<()> {
        let mut accepted = false;
        for (kind, data) in Cursor(body).extensions()? {
            match kind {
                EARLY_DATA => accepted = true,
                ALPN => {
                    let protocol = Cursor(Cursor(data).vector(2)?).vector(1)?;
                    self.facts.alpn = Some(protocol.to_vec());
                }
                _ => {}
            }
        }
        if self.facts.early_data == EarlyData::Pending {
            self.facts.early_data =
                if accepted { EarlyData::Accepted } else { EarlyData::Rejected };
        }
        Some(())
    }

    /// RFC 8446 §4.4.2
    fn certificate(&mut self, body: &[u8]) -> Option<()> {
        let mut body = Cursor(body);
        body.vector(1)?;
        let mut list = Cursor(body.vector(3)?);
        while !list.0.is_empty() {
            self.chain.push(list.vector(3)?.to_vec());
            list.vector(2)?;
        }
        self.facts.certificates = self.chain.len();
        Some(())
    }

    /// RFC 8446 §4.6.1
    fn new_session_ticket(&mut self, body: &[u8]) -> Option<()> {
        self.tickets += 1;
        let mut body = Cursor(body);
        body.take(4 + 4)?;
        body.vector(1)?;
        body.vector(2)?;
        let early = body.extensions()?.find(|(kind, _)| *kind == EARLY_DATA);
        self.ticket_allows_early_data = early.is_some();
        Some(())
    }
}

/// The DNS name of a client's server_name extension (RFC 6066 §3).
fn server_name(data: &[u8]) -> Option<String> {
    let mut list = Cursor(Cursor(data).vector(2)?);
    list.take(1)?;
    String::from_utf8(list.vector(2)?.to_vec()).ok()
}

/// The known groups of a client's key_share extension (RFC 8446 §4.2.8).
fn key_shares(data: &[u8]) -> Vec<Group> {
    let mut shares = Cursor(Cursor(data).vector(2).unwrap_or_default());
    std::iter::from_fn(|| {
        let group = shares.number(2)? as u16;
        shares.vector(2)?;
        Some(group)
    })
    .filter_map(Group::from_id)
    .collect()
}

/// Type and length (RFC 8446 §4).
const HEADER: usize = 4;

/// One direction's bytes, cut anywhere, put together to messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    partial: Vec<u8>,
    /// Bytes still to come of a message that is too long to be looked into.
    skip: usize,
}

impl Messages {
    /// Feeds `bytes`; every message that is whole goes to `handshake`.
    pub fn feed(&mut self, mut bytes: &[u8], handshake: &mut Handshake) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            let missing = self.missing();
            let (now, later) = bytes.split_at(missing.min(bytes.len()));
            self.partial.extend_from_slice(now);
            bytes = later;
            if self.partial.len() < HEADER {
                continue;
            }
            let len = self.body_len();
            if len > MAX_MESSAGE {
                self.skip = len;
                self.partial.clear();
            } else if self.partial.len() == HEADER + len {
                if let Some((header, body)) = self.partial.split_at_checked(HEADER) {
                    handshake.message(header.first().copied().unwrap_or(0), body);
                }
                self.partial.clear();
            }
        }
    }

    /// Bytes until the header or, after that, the message is whole.
    fn missing(&self) -> usize {
        match self.partial.len() {
            have @ 0..HEADER => HEADER - have,
            have => (HEADER + self.body_len()).saturating_sub(have),
        }
    }

    fn body_len(&self) -> usize {
        self.partial.get(1..HEADER).and_then(|len| Cursor(len).number(3)).unwrap_or(0)
    }
}

/// A reader of TLS presentation language (RFC 8446 §3): big-endian numbers, vectors with a length first.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of `width` bytes, at most 4.
    fn number(&mut self, width: usize) -> Option<usize> {
        Some(self.take(width)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A vector whose length takes `width` bytes.
    fn vector(&mut self, width: usize) -> Option<&'a [u8]> {
        let len = self.number(width)?;
        self.take(len)
    }

    /// The extensions, to the first that is cut off.
    fn extensions(&mut self) -> Option<impl Iterator<Item = (u16, &'a [u8])> + use<'a>> {
        let mut list = Cursor(self.vector(2)?);
        Some(std::iter::from_fn(move || {
            let kind = list.number(2)? as u16;
            Some((kind, list.vector(2)?))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[kind], &len[1..], body].concat()
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        let len = u16::try_from(data.len()).unwrap();
        [&kind.to_be_bytes()[..], &len.to_be_bytes(), data].concat()
    }

    fn extensions(list: &[Vec<u8>]) -> Vec<u8> {
        let list = list.concat();
        [&u16::try_from(list.len()).unwrap().to_be_bytes()[..], &list].concat()
    }

    fn client_hello(list: &[Vec<u8>]) -> Vec<u8> {
        let body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &extensions(list)];
        message(CLIENT_HELLO, &body.concat())
    }

    fn server_hello(random: [u8; 32], list: &[Vec<u8>]) -> Vec<u8> {
        let body = [&[3, 3][..], &random, &[0], &[0x13, 1], &[0], &extensions(list)];
        message(SERVER_HELLO, &body.concat())
    }

    fn read(flights: &[Vec<u8>], cut: usize) -> Handshake {
        let (mut messages, mut handshake) = (Messages::default(), Handshake::new());
        for piece in flights.concat().chunks(cut) {
            messages.feed(piece, &mut handshake);
        }
        handshake
    }

    /// A resumed handshake with early data accepted, however it is cut.
    #[test]
    fn a_resumed_handshake_is_read_in_any_pieces() {
        let share = [&[0, 0x1d][..], &[0, 2], &[9, 9]].concat();
        let hello = client_hello(&[
            extension(SERVER_NAME, b"\0\x07\0\0\x04a.bc"),
            extension(
                KEY_SHARE,
                &[&[0, 12, 0, 0x1d, 0, 2, 7, 7][..], &[0, 0x17, 0, 2, 8, 8]].concat(),
            ),
            extension(EARLY_DATA, &[]),
            extension(PRE_SHARED_KEY, &[1]),
        ]);
        let flights = [
            hello.clone(),
            server_hello(
                [1; 32],
                &[extension(KEY_SHARE, &share), extension(PRE_SHARED_KEY, &[0, 0])],
            ),
            message(
                ENCRYPTED_EXTENSIONS,
                &extensions(&[extension(ALPN, b"\0\x03\x02h3"), extension(EARLY_DATA, &[])]),
            ),
            message(20, &[5; 32]),
        ];
        for cut in 1..=flights.concat().len() {
            let handshake = read(&flights, cut);
            let facts = &handshake.facts;
            assert!(facts.resumed, "cut {cut}");
            assert_eq!(facts.early_data, EarlyData::Accepted, "cut {cut}");
            assert_eq!(facts.group, Some(Group::X25519), "cut {cut}");
            assert_eq!(facts.alpn.as_deref(), Some(&b"h3"[..]), "cut {cut}");
            assert_eq!(facts.client_hello_len, hello.len(), "cut {cut}");
            assert_eq!(facts.server_name.as_deref(), Some("a.bc"));
            assert_eq!(facts.key_shares, [Group::X25519, Group::Secp256r1]);
            assert_eq!(facts.certificates, 0);
        }
    }

    #[test]
    fn a_full_handshake_with_retry_and_chain_and_ticket() {
        let certificates = [&[0, 0, 3][..], b"abc", &[0, 0], &[0, 0, 2], b"de", &[0, 0]].concat();
        let list = [&[0, 0, 0, certificates.len() as u8][..], &certificates].concat();
        let ticket = [&[0; 8][..], &[1, 0], &[0, 1, 8]].concat();
        let early = extensions(&[extension(EARLY_DATA, &[0xff; 4])]);
        let handshake = read(
            &[
                client_hello(&[]),
                server_hello(RETRY_RANDOM, &[extension(KEY_SHARE, &[0, 0x17])]),
                client_hello(&[]),
                server_hello([1; 32], &[extension(KEY_SHARE, &[0, 0x18, 0, 0])]),
                message(ENCRYPTED_EXTENSIONS, &[0, 0]),
                message(CERTIFICATE, &list),
                message(NEW_SESSION_TICKET, &[&ticket[..], &early].concat()),
            ],
            11,
        );
        assert!(handshake.facts.hello_retry_request && !handshake.facts.resumed);
        assert_eq!(handshake.facts.early_data, EarlyData::NotOffered);
        assert_eq!((handshake.group, handshake.facts.group), (Some(0x18), None));
        assert_eq!(handshake.chain, [b"abc".to_vec(), b"de".to_vec()]);
        assert_eq!(handshake.tickets, 1);
        assert!(handshake.ticket_allows_early_data);
    }

    #[test]
    fn a_message_too_long_is_skipped_and_the_next_one_read() {
        let long = vec![0; MAX_MESSAGE + 1];
        let flights = [message(CERTIFICATE, &long), client_hello(&[])];
        let handshake = read(&flights, 1000);
        assert!(handshake.chain.is_empty());
        assert!(handshake.facts.client_hello_len > 0);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), cut in 1usize..50) {
            let _ = read(&[bytes], cut);
        }

        #[test]
        fn no_body_panics(kind in 0u8..12, body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&[message(kind, &body)], 64);
        }
    }
}
