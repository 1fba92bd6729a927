//! Opens all records of a connection, to its end, where its secrets are known: TLS 1.3 (RFC 8446 §5.2)
//! and TLS 1.2 under suites with AEAD (RFC 5246 §6.2.3.3, RFC 5288, RFC 7905). The cryptography is
//! AWS-LC's.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384};
use wire::tls::{CipherSuite, ContentType, HandshakeType, RecordHeader};

use super::MessageEvent;
use super::decrypt::{
    Direction, Keys, Missing, Parts, Start, Suite, Truth, encrypted_extensions, nonce,
};
use crate::keylog::Secrets;
use crate::side::{Pair, Sender};
use crate::streams::Unreadable;

/// What a record held.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opened<'p> {
    /// Bytes of the application.
    Data(&'p [u8]),
    /// The server chose this application protocol, or none; and whether it takes early data.
    Extensions { alpn: Option<String>, early_accepted: bool },
    /// Nothing for the application.
    Nothing,
}

/// What comes of the client's early data (RFC 8446 §4.2.10).
#[derive(Debug)]
enum Early {
    /// There is none, or no more.
    None,
    /// Offered; the server has not said whether it takes it.
    Offered(Option<Keys>),
    /// The server takes it, under these keys.
    Accepted(Keys),
    /// Taken, and its secret is not known.
    Unknown,
    /// Refused: the server passes it over, and so do we.
    Rejected,
}

/// Opens TLS 1.3's records.
#[derive(Debug)]
pub(crate) struct Opener13 {
    suite: Suite,
    sides: Pair<Direction>,
    early: Early,
}

impl Opener13 {
    /// From the connection's secrets, once the hellos settled the rest.
    pub(crate) fn new(secrets: &Secrets, start: Start) -> Result<Self, Unreadable> {
        let parts = Parts::new(secrets, start).map_err(|missing| match missing {
            Missing::Secrets => Unreadable::NoKeys,
            Missing::Support => Unreadable::Suite(start.suite),
        })?;
        let Parts { suite, sides, early_keys } = parts;
        let early = if start.early_offered { Early::Offered(early_keys) } else { Early::None };
        Ok(Opener13 { suite, sides, early })
    }

    /// Whether the client's records must wait: the server has not said what becomes of early data.
    pub(crate) const fn holds(&self, side: Sender) -> bool {
        matches!((side, &self.early), (Sender::Client, Early::Offered(_)))
    }

    /// Takes an encrypted record's payload, which it overwrites.
    pub(crate) fn record<'p>(
        &mut self,
        side: Sender,
        header: RecordHeader,
        payload: &'p mut [u8],
    ) -> Result<Opened<'p>, Unreadable> {
        if side == Sender::Client {
            match &mut self.early {
                Early::None | Early::Offered(_) => {}
                Early::Unknown => return Err(Unreadable::NoKeys),
                Early::Accepted(keys) => {
                    let (kind, content) = keys.open(header, payload).ok_or(Unreadable::Record)?;
                    if kind == ContentType::Handshake
                        && content.first() == Some(&HandshakeType::END_OF_EARLY_DATA.0)
                    {
                        self.early = Early::None;
                    }
                    return Ok(match kind {
                        ContentType::ApplicationData => Opened::Data(content),
                        _ => Opened::Nothing,
                    });
                }
                Early::Rejected => {
                    let mut copy = payload.to_vec();
                    let keys = self.sides.client.keys.as_mut().ok_or(Unreadable::NoKeys)?;
                    if keys.open(header, &mut copy).is_none() {
                        return Ok(Opened::Nothing);
                    }
                    // The handshake's keys are in use: early data is over. It is opened again below.
                    keys.step_back();
                    self.early = Early::None;
                }
            }
        }
        let keys = self.sides[side].keys.as_mut().ok_or(Unreadable::NoKeys)?;
        let (kind, content) = keys.open(header, payload).ok_or(Unreadable::Record)?;
        match kind {
            ContentType::ApplicationData => Ok(Opened::Data(content)),
            ContentType::Handshake => Ok(self.messages(side, content)),
            _ => Ok(Opened::Nothing),
        }
    }

    fn messages(&mut self, side: Sender, mut content: &[u8]) -> Opened<'static> {
        let direction = &mut self.sides[side];
        let (mut rekeyed, mut said) = (None, None);
        while let Some(event) = direction.messages.next(&mut content) {
            let MessageEvent::End(message, body) = event else { continue };
            if (side, message.kind) == (Sender::Server, HandshakeType::ENCRYPTED_EXTENSIONS) {
                let mut truth = Truth::default();
                encrypted_extensions(&mut truth, body.unwrap_or(&[]));
                said = Some((truth.alpn, truth.early_accepted));
            }
            rekeyed = direction.keys_after(message.kind, &self.suite).or(rekeyed);
        }
        if let Some(keys) = rekeyed {
            direction.keys = keys;
        }
        let Some((alpn, early_accepted)) = said else { return Opened::Nothing };
        self.settle_early(early_accepted);
        Opened::Extensions { alpn, early_accepted }
    }

    fn settle_early(&mut self, accepted: bool) {
        if let Early::Offered(keys) = &mut self.early {
            self.early = match (accepted, keys.take()) {
                (true, Some(keys)) => Early::Accepted(keys),
                (true, None) => Early::Unknown,
                (false, _) => Early::Rejected,
            };
        }
    }

    /// Bytes held of messages that are not whole.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.sides.client.messages.held_bytes() + self.sides.server.messages.held_bytes()
    }
}

/// What a suite of TLS 1.2 encrypts and hashes with.
struct Suite12 {
    aead: &'static Algorithm,
    hash: hmac::Algorithm,
    /// Bytes of a nonce that the key block has; the rest is in the record.
    iv_len: usize,
}

/// Bytes of a nonce that a record has with AES-GCM (RFC 5288 §3).
const EXPLICIT: usize = 8;
/// Bytes that an AEAD adds.
const TAG: usize = 16;

impl Suite12 {
    /// Of AES-GCM and ChaCha20-Poly1305 with RSA, DHE or ECDHE (RFC 5288, 5289, 7905).
    fn new(suite: CipherSuite) -> Option<Self> {
        let (aead, hash, iv_len) = match suite.0 {
            0x009c | 0x009e | 0xc02b | 0xc02f => (&AES_128_GCM, HMAC_SHA256, 4),
            0x009d | 0x009f | 0xc02c | 0xc030 => (&AES_256_GCM, HMAC_SHA384, 4),
            0xcca8..=0xccaa => (&CHACHA20_POLY1305, HMAC_SHA256, NONCE_LEN),
            _ => return None,
        };
        Some(Suite12 { aead, hash, iv_len })
    }
}

/// One direction of TLS 1.2.
struct Keys12 {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    /// Whether records have a part of the nonce.
    explicit: bool,
    sequence: u64,
    /// ChangeCipherSpec went by.
    on: bool,
}

impl std::fmt::Debug for Keys12 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys12").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Keys12 {
    fn open<'p>(&mut self, header: RecordHeader, payload: &'p mut [u8]) -> Option<&'p [u8]> {
        let (nonce, sealed) = if self.explicit {
            let (explicit, sealed) = payload.split_at_mut_checked(EXPLICIT)?;
            let mut nonce = self.iv;
            nonce.get_mut(NONCE_LEN - EXPLICIT..)?.copy_from_slice(explicit);
            (nonce, sealed)
        } else {
            (nonce(self.iv, self.sequence), payload)
        };
        // RFC 5246 §6.2.3.3: sequence number, type, version, length of the plaintext.
        let length = u16::try_from(sealed.len().checked_sub(TAG)?).ok()?;
        let [kind, major, minor, ..] = header.to_bytes();
        let mut aad = [0; 13];
        let (number, rest) = aad.split_first_chunk_mut::<8>()?;
        *number = self.sequence.to_be_bytes();
        let [high, low] = length.to_be_bytes();
        rest.copy_from_slice(&[kind, major, minor, high, low]);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let content = self.key.open_in_place(nonce, Aad::from(aad), sealed).ok()?;
        self.sequence = self.sequence.saturating_add(1);
        Some(content)
    }
}

/// Opens TLS 1.2's records.
#[derive(Debug)]
pub(crate) struct Opener12 {
    sides: Pair<Keys12>,
}

impl Opener12 {
    /// From the connection's master secret (RFC 5246 §6.3).
    pub(crate) fn new(
        secrets: &Secrets,
        suite: CipherSuite,
        [client_random, server_random]: [&[u8; 32]; 2],
    ) -> Result<Self, Unreadable> {
        let master = secrets.master.ok_or(Unreadable::NoKeys)?;
        let unsupported = || Unreadable::Suite(suite);
        let parts = Suite12::new(suite).ok_or_else(unsupported)?;
        let key_len = parts.aead.key_len();
        let seed = [&b"key expansion"[..], server_random, client_random].concat();
        let block = p_hash(parts.hash, master.bytes(), &seed, 2 * (key_len + parts.iv_len));
        let mut reader = wire::Reader::new("TLS key block", &block);
        let mut read = || {
            let [client, server] = [reader.take(key_len).ok()?, reader.take(key_len).ok()?];
            let ivs = [reader.take(parts.iv_len).ok()?, reader.take(parts.iv_len).ok()?];
            let keys = |key, from: &[u8]| {
                let mut iv = [0; NONCE_LEN];
                iv.get_mut(..from.len())?.copy_from_slice(from);
                let key = LessSafeKey::new(UnboundKey::new(parts.aead, key).ok()?);
                let explicit = from.len() < NONCE_LEN;
                Some(Keys12 { key, iv, explicit, sequence: 0, on: false })
            };
            Some(Pair { client: keys(client, ivs[0])?, server: keys(server, ivs[1])? })
        };
        Ok(Opener12 { sides: read().ok_or_else(unsupported)? })
    }

    /// The side's records are encrypted from now on.
    pub(crate) fn change_cipher_spec(&mut self, side: Sender) {
        self.sides[side].on = true;
    }

    /// Takes a record's payload, which it overwrites.
    pub(crate) fn record<'p>(
        &mut self,
        side: Sender,
        header: RecordHeader,
        payload: &'p mut [u8],
    ) -> Result<Opened<'p>, Unreadable> {
        let keys = &mut self.sides[side];
        if !keys.on {
            return Ok(Opened::Nothing);
        }
        let content = keys.open(header, payload).ok_or(Unreadable::Record)?;
        Ok(match header.content_type {
            ContentType::ApplicationData => Opened::Data(content),
            _ => Opened::Nothing,
        })
    }
}

/// `len` bytes of P_hash, which is TLS 1.2's pseudorandom function (RFC 5246 §5).
fn p_hash(hash: hmac::Algorithm, secret: &[u8], seed: &[u8], len: usize) -> Vec<u8> {
    let key = hmac::Key::new(hash, secret);
    let mut out = Vec::with_capacity(len.saturating_add(48));
    let mut a = hmac::sign(&key, seed);
    while out.len() < len {
        out.extend_from_slice(hmac::sign(&key, &[a.as_ref(), seed].concat()).as_ref());
        a = hmac::sign(&key, a.as_ref());
    }
    out.truncate(len);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector of TLS 1.2's PRF with SHA-256, as the IETF's TLS working group had it
    /// (mailarchive.ietf.org, "TLS 1.2 PRF test vectors"): secret, seed, label "test label".
    #[test]
    fn the_pseudorandom_function_gives_the_published_bytes() {
        let secret = [
            0x9b, 0xbe, 0x43, 0x6b, 0xa9, 0x40, 0xf0, 0x17, 0xb1, 0x76, 0x52, 0x84, 0x9a, 0x71,
            0xdb, 0x35,
        ];
        let seed = [
            0xa0, 0xba, 0x9f, 0x93, 0x6c, 0xda, 0x31, 0x18, 0x27, 0xa6, 0xf7, 0x96, 0xff, 0xd5,
            0x19, 0x8c,
        ];
        let made = p_hash(HMAC_SHA256, &secret, &[&b"test label"[..], &seed].concat(), 100);
        let begins = [0xe3, 0xf2, 0x29, 0xba, 0x72, 0x7b, 0xe1, 0x7b, 0x8d, 0x12, 0x26, 0x20];
        assert_eq!((made.len(), &made[..12]), (100, &begins[..]));
    }
}
