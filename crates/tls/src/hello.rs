//! Watches the plaintext beginning of a connection for what the libraries do not tell: the size of the
//! ClientHello on the wire, what it offers, and whether a HelloRetryRequest answered it.

use wire::tls::ServerHello;

use crate::offer::{NamedGroup, ServerChoice};
use crate::{CipherSuite, Group};

/// Most bytes of a hello that are kept to be parsed. Real ones are below 2 KiB; a longer one is counted
/// but not parsed.
const MAX_KEPT: usize = 16 * 1024;

const RECORD_HEADER: usize = 5;
const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// Bytes of type and length.
const MESSAGE_HEADER: usize = 4;

/// What a ClientHello offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The groups of its key shares, in order (RFC 8446 §4.2.8).
    pub key_shares: Vec<u16>,
    /// Whether it has an early_data extension (RFC 8446 §4.2.10).
    pub early_data: bool,
    /// Its server_name (RFC 6066 §3).
    pub server_name: Option<String>,
}

impl Offer {
    /// Those of its key shares' groups that have a name here.
    pub(crate) fn known_key_shares(&self) -> Vec<Group> {
        self.key_shares.iter().copied().filter_map(Group::from_id).collect()
    }
}

/// Both directions' first messages.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    client: FirstMessage,
    server: FirstMessage,
    offer: Offer,
    choice: Option<ServerChoice>,
}

impl Watch {
    /// Bytes that go from the client to the server.
    pub(crate) fn client_bytes(&mut self, bytes: &[u8]) {
        if let Some(message) = self.client.feed(bytes) {
            self.offer = parse_client_hello(message).unwrap_or_default();
        }
    }

    /// Bytes that go from the server to the client.
    pub(crate) fn server_bytes(&mut self, bytes: &[u8]) {
        if let Some(message) = self.server.feed(bytes) {
            self.choice = server_choice(message);
        }
    }

    /// Bytes of the first ClientHello on the wire, record headers included; 0 until it is whole.
    pub(crate) fn client_hello_len(&self) -> usize {
        if self.client.done { self.client.wire_len } else { 0 }
    }

    pub(crate) fn offer(&self) -> &Offer {
        &self.offer
    }

    pub(crate) fn hello_retry_request(&self) -> bool {
        self.choice.is_some_and(|choice| choice.hello_retry_request)
    }

    /// The server's choice, once its first message is whole.
    pub(crate) fn choice(&self) -> Option<ServerChoice> {
        self.choice
    }
}

/// The first handshake message of one direction, gathered from records (RFC 8446 §5.1).
#[derive(Debug, Default)]
struct FirstMessage {
    header: Vec<u8>,
    left_in_record: usize,
    message: Vec<u8>,
    message_len: usize,
    wire_len: usize,
    done: bool,
}

impl FirstMessage {
    /// Gives the message when these bytes complete it.
    fn feed(&mut self, mut bytes: &[u8]) -> Option<&[u8]> {
        while !self.done && !bytes.is_empty() {
            if self.left_in_record == 0 {
                bytes = self.read_header(bytes);
                continue;
            }
            let (taken, rest) = bytes.split_at(self.left_in_record.min(bytes.len()));
            bytes = rest;
            self.left_in_record -= taken.len();
            self.read_payload(taken);
            if self.wanted() == Some(self.message_len) && self.left_in_record == 0 {
                self.done = true;
                return Some(&self.message);
            }
        }
        None
    }

    fn read_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let missing = RECORD_HEADER - self.header.len();
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.header.extend_from_slice(taken);
        if let [kind, _, _, high, low] = self.header[..] {
            self.header.clear();
            self.left_in_record = usize::from(u16::from_be_bytes([high, low]));
            self.wire_len += RECORD_HEADER + self.left_in_record;
            // No handshake comes: leave the rest to the library, which refuses it.
            if kind != HANDSHAKE_RECORD || self.left_in_record == 0 || self.wire_len > MAX_KEPT {
                self.give_up();
            }
        }
        rest
    }

    fn read_payload(&mut self, bytes: &[u8]) {
        self.message.extend_from_slice(bytes);
        let wanted = self.wanted().unwrap_or(usize::MAX);
        self.message_len = self.message.len().min(wanted);
    }

    /// The length that the message's header tells (RFC 8446 §4), once it is there.
    fn wanted(&self) -> Option<usize> {
        match self.message[..] {
            [_, a, b, c, ..] => {
                Some(4 + usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX))
            }
            _ => None,
        }
    }

    fn give_up(&mut self) {
        self.done = true;
        self.wire_len = 0;
        self.message = Vec::new();
    }
}

/// Takes fields off the front; `None` when they are cut short.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<usize> {
        self.take(1)?.first().map(|&byte| usize::from(byte))
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(len)
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }
}

/// RFC 8446 §4.1.3, RFC 5246 §7.4.1.3.
fn server_choice(message: &[u8]) -> Option<ServerChoice> {
    let (&SERVER_HELLO, _) = message.split_first()? else { return None };
    let hello = ServerHello::new_checked(message.get(MESSAGE_HEADER..)?).ok()?;
    Some(ServerChoice {
        version: hello.version(),
        cipher_suite: CipherSuite(hello.cipher_suite().0),
        group: hello.group().map(NamedGroup),
        hello_retry_request: hello.is_hello_retry_request(),
        session_ticket: hello.extensions().find(wire::tls::ExtensionKind::SESSION_TICKET).is_some(),
    })
}

/// RFC 8446 §4.1.2.
fn parse_client_hello(message: &[u8]) -> Option<Offer> {
    let mut fields = Fields(message);
    if fields.u8()? != usize::from(CLIENT_HELLO) {
        return None;
    }
    fields.take(3 + 2 + 32)?; // length, legacy_version, random
    fields.vector8()?; // legacy_session_id
    fields.vector16()?; // cipher_suites
    fields.vector8()?; // legacy_compression_methods
    let mut extensions = Fields(fields.vector16()?);
    let mut offer = Offer::default();
    while let Some(kind) = extensions.u16() {
        let body = extensions.vector16()?;
        match kind {
            0 => offer.server_name = server_name(body),
            42 => offer.early_data = true,
            51 => offer.key_shares = key_shares(body)?,
            _ => {}
        }
    }
    Some(offer)
}

/// RFC 6066 §3: the only name type is host_name, 0.
fn server_name(body: &[u8]) -> Option<String> {
    let mut names = Fields(Fields(body).vector16()?);
    match names.u8()? {
        0 => Some(core::str::from_utf8(names.vector16()?).ok()?.to_owned()),
        _ => None,
    }
}

fn key_shares(body: &[u8]) -> Option<Vec<u16>> {
    let mut shares = Fields(Fields(body).vector16()?);
    let mut groups = Vec::new();
    while let Some(group) = shares.u16() {
        shares.vector16()?;
        groups.push(group);
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ClientHello with the given extensions, in one record.
    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
        body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend(extensions);
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        message.extend(body);
        message
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for part in message.chunks(size) {
            out.extend([HANDSHAKE_RECORD, 3, 1]);
            out.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
            out.extend(part);
        }
        out
    }

    const EXTENSIONS: &[u8] = &[
        0, 0, 0, 6, 0, 4, 0, 0, 1, b'a', // server_name "a"
        0, 42, 0, 0, // early_data
        0, 51, 0, 12, 0, 10, 0, 0x1d, 0, 1, 9, 0x11, 0xec, 0, 1, 9, // two key shares
    ];

    #[test]
    fn a_hello_cut_anywhere_is_read_once() {
        let message = hello(EXTENSIONS);
        for size in [1, 3, 4, 5, 50, 1000] {
            let wire = records(&message, size);
            for chunk in [1, 7, 1000] {
                let mut watch = Watch::default();
                for part in wire.chunks(chunk) {
                    assert_eq!(watch.client_hello_len(), 0);
                    watch.client_bytes(part);
                }
                assert_eq!(watch.client_hello_len(), wire.len());
                watch.client_bytes(&[23, 3, 3, 0, 1, 1]);
                assert_eq!(watch.client_hello_len(), wire.len());
                let offer = watch.offer();
                assert_eq!(offer.server_name.as_deref(), Some("a"));
                assert!(offer.early_data);
                assert_eq!(offer.known_key_shares(), [Group::X25519, Group::X25519MlKem768]);
            }
        }
    }

    #[test]
    fn early_data_after_the_hello_is_not_counted() {
        let wire = records(&hello(EXTENSIONS), 1000);
        let mut watch = Watch::default();
        watch.client_bytes(&[wire.clone(), vec![23, 3, 3, 0, 1, 1]].concat());
        assert_eq!(watch.client_hello_len(), wire.len());
    }

    #[test]
    fn other_records_and_endless_hellos_count_as_none() {
        let endless = [CLIENT_HELLO, 0xff, 0xff, 0xff].iter().copied().chain([0; 40_000]);
        for wire in [vec![21, 3, 3, 0, 2, 2, 40], records(&endless.collect::<Vec<_>>(), 4000)] {
            let mut watch = Watch::default();
            watch.client_bytes(&wire);
            assert_eq!((watch.client_hello_len(), watch.offer()), (0, &Offer::default()));
            assert!(watch.client.message.len() <= MAX_KEPT);
        }
    }

    #[test]
    fn hello_retry_request_is_told_by_its_random() {
        let mut message = vec![SERVER_HELLO, 0, 0, 38, 3, 3];
        message.extend(wire::tls::HELLO_RETRY_REQUEST_RANDOM);
        message.extend([0, 0x13, 0x01, 0]); // no session id, a suite, no compression
        for (change, wanted) in [(0, true), (1, false)] {
            let mut message = message.clone();
            message[20] ^= change;
            let mut watch = Watch::default();
            watch.server_bytes(&records(&message, 1000));
            assert_eq!(watch.hello_retry_request(), wanted);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_watched(parts in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..200), 0..8)) {
            let mut watch = Watch::default();
            for part in &parts {
                watch.client_bytes(part);
                watch.server_bytes(part);
            }
            prop_assert!(watch.client.message.len() <= MAX_KEPT);
        }

        #[test]
        fn any_extensions_are_parsed(extensions in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut watch = Watch::default();
            watch.client_bytes(&records(&hello(&extensions), 1000));
            prop_assert!(watch.client_hello_len() > extensions.len());
        }
    }
}
