//! Opens TLS 1.3's records where the session's secrets are known (RFC 8446 §5.2, §7.1, §7.3), until
//! both sides' first application data: what the rule without keys guesses is then known. The
//! cryptography is AWS-LC's.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use aws_lc_rs::hkdf::{self, HKDF_SHA256, HKDF_SHA384, Prk};
use units::Time;
use wire::tls::{
    Alert, CipherSuite, ContentType, ExtensionKind, Extensions, HandshakeType, RECORD_HEADER_LEN,
    RecordHeader, Version,
};

use super::{Encrypted, Mark, MessageEvent, MessageReader, protocol};
use crate::keylog::{Secret, Secrets};
use crate::label::expand_label;
use crate::record::AlertFacts;
use crate::side::{Pair, Sender};

/// Alerts kept at most.
const MAX_ALERTS: usize = 4;

/// KeyUpdate (RFC 8446 §4.6.3).
const KEY_UPDATE: HandshakeType = HandshakeType(24);

/// What a suite encrypts and hashes with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suite {
    aead: &'static Algorithm,
    hash: hkdf::Algorithm,
    hash_len: usize,
}

impl Suite {
    fn new(suite: CipherSuite) -> Option<Self> {
        let (aead, hash, hash_len) = match suite.0 {
            0x1301 => (&AES_128_GCM, HKDF_SHA256, 32),
            0x1302 => (&AES_256_GCM, HKDF_SHA384, 48),
            0x1303 => (&CHACHA20_POLY1305, HKDF_SHA256, 32),
            _ => return None,
        };
        Some(Suite { aead, hash, hash_len })
    }

    fn expand(&self, secret: &Secret, label: &str, out: &mut [u8]) -> Option<()> {
        expand_label(&Prk::new_less_safe(self.hash, secret.bytes()), label, out)
    }
}

/// The keys of one direction and epoch.
pub(super) struct Keys {
    secret: Secret,
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Keys {
    /// RFC 8446 §7.3.
    fn new(suite: &Suite, secret: Secret, sequence: u64) -> Option<Self> {
        if secret.bytes().len() != suite.hash_len {
            return None;
        }
        let mut key = [0; 32];
        let key = key.get_mut(..suite.aead.key_len())?;
        suite.expand(&secret, "key", key)?;
        let mut iv = [0; NONCE_LEN];
        suite.expand(&secret, "iv", &mut iv)?;
        let key = LessSafeKey::new(UnboundKey::new(suite.aead, key).ok()?);
        Some(Keys { secret, key, iv, sequence })
    }

    /// The keys after a KeyUpdate (RFC 8446 §7.2).
    fn update(&self, suite: &Suite) -> Option<Self> {
        let mut next = [0; 48];
        let next = next.get_mut(..suite.hash_len)?;
        suite.expand(&self.secret, "traffic upd", next)?;
        Keys::new(suite, Secret::new(next)?, 0)
    }

    /// Forgets that a record was opened: it is opened again.
    pub(super) fn step_back(&mut self) {
        self.sequence = self.sequence.saturating_sub(1);
    }

    /// Opens a record's payload: the type inside, and what it holds.
    pub(super) fn open<'p>(
        &mut self,
        header: RecordHeader,
        payload: &'p mut [u8],
    ) -> Option<(ContentType, &'p [u8])> {
        let nonce = Nonce::assume_unique_for_key(nonce(self.iv, self.sequence));
        let aad: [u8; RECORD_HEADER_LEN] = header.to_bytes();
        let inner = self.key.open_in_place(nonce, Aad::from(aad), payload).ok()?;
        self.sequence = self.sequence.saturating_add(1);
        // RFC 8446 §5.4: zeros behind the type are padding.
        let end = inner.iter().rposition(|byte| *byte != 0)?;
        let (content, rest) = inner.split_at_checked(end)?;
        Some((ContentType::from_number(*rest.first()?)?, content))
    }
}

/// RFC 8446 §5.3, and RFC 7905 §2 for TLS 1.2.
pub(super) fn nonce(mut iv: [u8; NONCE_LEN], sequence: u64) -> [u8; NONCE_LEN] {
    for (to, from) in iv.iter_mut().rev().zip(sequence.to_be_bytes().iter().rev()) {
        *to ^= from;
    }
    iv
}

/// The records of one direction.
#[derive(Debug)]
pub(super) struct Direction {
    /// None once the Finished went by and the secret of what follows is not known.
    pub(super) keys: Option<Keys>,
    /// The secret after Finished.
    next: Option<Secret>,
    pub(super) messages: MessageReader,
}

impl Direction {
    fn new(suite: &Suite, handshake: Secret, next: Option<Secret>) -> Option<Self> {
        Some(Direction {
            keys: Some(Keys::new(suite, handshake, 0)?),
            next,
            messages: MessageReader::default(),
        })
    }

    /// The keys that count after a message, if it changes them (RFC 8446 §4.4.4, §4.6.3): none where their secret
    /// is not known.
    pub(super) fn keys_after(
        &mut self,
        message: HandshakeType,
        suite: &Suite,
    ) -> Option<Option<Keys>> {
        match message {
            HandshakeType::FINISHED => {
                Some(self.next.take().and_then(|secret| Keys::new(suite, secret, 0)))
            }
            KEY_UPDATE => Some(self.keys.as_ref().and_then(|keys| keys.update(suite))),
            _ => None,
        }
    }
}

/// What the keys told.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// A record could be opened: the keys fit.
    pub(crate) fits: bool,
    pub(crate) server_finished: Option<Time>,
    pub(crate) client_finished: Option<Encrypted>,
    /// Of accepted early data or after the Finished.
    pub(crate) client_data: Option<Mark>,
    pub(crate) server_data: Option<Mark>,
    /// Records of early data behind the ServerHello.
    pub(crate) early_first: Option<Mark>,
    pub(crate) early_accepted: bool,
    pub(crate) certificate_requested: Option<bool>,
    pub(crate) alpn: Option<String>,
    pub(crate) tickets: u32,
    pub(crate) alerts: Vec<AlertFacts>,
}

/// What the hellos settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) suite: CipherSuite,
    pub(crate) version: Version,
    pub(crate) early_offered: bool,
    /// Records of early data that came before the ServerHello, all of them.
    pub(crate) early_records: u32,
}

/// Whether there are keys of use.
pub(crate) enum Found {
    /// Those of both sides.
    Keys(Box<Decryption>),
    /// Not both secrets of the handshake.
    None,
    /// There are, but the suite or the draft is not supported.
    NotSupported,
}

/// What a connection's records are opened with from its ServerHello on.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) suite: Suite,
    pub(super) sides: Pair<Direction>,
    /// The client's early keys, where it offers early data.
    pub(super) early_keys: Option<Keys>,
}

/// What is missing to open records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Both secrets of the handshake.
    Secrets,
    /// Support of the suite or of the draft.
    Support,
}

impl Parts {
    /// From a connection's secrets. One whose handshake fails has no secrets of traffic.
    pub(super) fn new(secrets: &Secrets, start: Start) -> Result<Parts, Missing> {
        let Secrets { client_early, client_traffic, server_traffic, .. } = *secrets;
        let (Some(client), Some(server)) = (secrets.client_handshake, secrets.server_handshake)
        else {
            return Err(Missing::Secrets);
        };
        // Before draft 25 what is authenticated beside the content was another.
        let old = matches!(start.version.draft(), Some(..25)) || !start.version.is_tls13();
        let suite = Suite::new(start.suite).filter(|_| !old).ok_or(Missing::Support)?;
        let client = Direction::new(&suite, client, client_traffic).ok_or(Missing::Support)?;
        let server = Direction::new(&suite, server, server_traffic).ok_or(Missing::Support)?;
        let early = client_early.filter(|_| start.early_offered);
        let early_keys =
            early.and_then(|secret| Keys::new(&suite, secret, start.early_records.into()));
        Ok(Parts { suite, sides: Pair { client, server }, early_keys })
    }
}

/// Opens the records of one connection.
#[derive(Debug)]
pub(crate) struct Decryption {
    suite: Suite,
    sides: Pair<Direction>,
    /// The client's early keys while early data may come.
    early_keys: Option<Keys>,
    /// Early data may come: a record that cannot be opened is some.
    early: bool,
    /// A record could not be opened.
    failed: bool,
    pub(crate) truth: Truth,
}

impl Decryption {
    /// The keys of a connection, from its secrets.
    pub(crate) fn begin(secrets: &Secrets, start: Start) -> Found {
        let Parts { suite, sides, early_keys } = match Parts::new(secrets, start) {
            Ok(parts) => parts,
            Err(Missing::Secrets) => return Found::None,
            Err(Missing::Support) => return Found::NotSupported,
        };
        Found::Keys(Box::new(Decryption {
            suite,
            sides,
            early_keys,
            early: start.early_offered,
            failed: false,
            truth: Truth::default(),
        }))
    }

    /// Whether nothing more is to be found.
    pub(crate) fn is_done(&self) -> bool {
        self.failed
            || (self.truth.server_data.is_some()
                && (self.truth.client_data.is_some() || self.truth.early_accepted))
    }

    /// Bytes held of messages that are not whole.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.sides.client.messages.held_bytes() + self.sides.server.messages.held_bytes()
    }

    /// Gives up what is held, to save memory: the rest cannot be opened without it.
    pub(crate) fn give_up(&mut self) {
        self.failed = true;
        self.sides.client.messages.release();
        self.sides.server.messages.release();
    }

    /// Whether this side's records are wanted.
    pub(crate) fn wants(&self, side: Sender) -> bool {
        !self.failed
            && match side {
                Sender::Client => self.truth.client_data.is_none(),
                Sender::Server => self.truth.server_data.is_none(),
            }
    }

    /// What the keys told; `None` if they did not fit.
    pub(crate) fn into_truth(self) -> Option<Truth> {
        Some(self.truth).filter(|_| !self.failed)
    }

    /// Takes a record's payload, which it may overwrite.
    pub(crate) fn record(
        &mut self,
        side: Sender,
        header: RecordHeader,
        record: Encrypted,
        payload: &mut Vec<u8>,
    ) {
        if side == Sender::Client && self.early && self.early_record(header, record, payload) {
            return;
        }
        let direction = &mut self.sides[side];
        let opened = direction.keys.as_mut().and_then(|keys| keys.open(header, payload));
        let Some((kind, content)) = opened else {
            self.failed = true;
            return;
        };
        self.truth.fits = true;
        self.content(side, kind, content, record);
    }

    /// Tries a record of the client as early data. True if it was that.
    fn early_record(
        &mut self,
        header: RecordHeader,
        record: Encrypted,
        payload: &mut Vec<u8>,
    ) -> bool {
        let mut copy = payload.clone();
        if let Some(keys) = &mut self.early_keys
            && let Some((kind, content)) = keys.open(header, &mut copy)
        {
            self.truth.fits = true;
            match kind {
                ContentType::ApplicationData => {
                    self.truth.early_first.get_or_insert(record.begin);
                }
                ContentType::Handshake
                    if content.first() == Some(&HandshakeType::END_OF_EARLY_DATA.0) =>
                {
                    self.early = false;
                }
                _ => {}
            }
            return true;
        }
        copy.clone_from(payload);
        if let Some(keys) = &mut self.sides[Sender::Client].keys
            && keys.open(header, &mut copy).is_some()
        {
            // The handshake's keys are in use: early data is over. It is opened again below.
            keys.step_back();
            self.early = false;
            return false;
        }
        self.truth.early_first.get_or_insert(record.begin);
        true
    }

    fn content(&mut self, side: Sender, kind: ContentType, content: &[u8], record: Encrypted) {
        match kind {
            ContentType::ApplicationData => {
                let truth = &mut self.truth;
                let data = match side {
                    Sender::Client => &mut truth.client_data,
                    Sender::Server => &mut truth.server_data,
                };
                data.get_or_insert(record.begin);
            }
            ContentType::Alert => {
                if let Ok(alert) = Alert::parse(content)
                    && self.truth.alerts.len() < MAX_ALERTS
                {
                    self.truth.alerts.push(AlertFacts {
                        at: record.end,
                        from_client: side == Sender::Client,
                        level: Some(alert.level),
                        description: Some(alert.description),
                        name: alert.name(),
                    });
                }
            }
            ContentType::Handshake => self.messages(side, content, record),
            _ => {}
        }
    }

    fn messages(&mut self, side: Sender, mut content: &[u8], record: Encrypted) {
        let direction = &mut self.sides[side];
        let truth = &mut self.truth;
        let mut rekeyed = None;
        while let Some(event) = direction.messages.next(&mut content) {
            let MessageEvent::End(message, body) = event else { continue };
            match (side, message.kind) {
                (Sender::Server, HandshakeType::ENCRYPTED_EXTENSIONS) => {
                    encrypted_extensions(truth, body.unwrap_or(&[]));
                }
                (Sender::Server, HandshakeType::CERTIFICATE_REQUEST) => {
                    // Asked for after the handshake, it is no part of it.
                    truth.certificate_requested.get_or_insert(truth.server_finished.is_none());
                }
                (Sender::Server, HandshakeType::NEW_SESSION_TICKET) => {
                    truth.tickets = truth.tickets.saturating_add(1);
                }
                (_, HandshakeType::FINISHED) => {
                    if side == Sender::Client {
                        truth.client_finished.get_or_insert(record);
                    } else {
                        truth.server_finished.get_or_insert(record.end);
                        truth.certificate_requested.get_or_insert(false);
                    }
                }
                _ => {}
            }
            rekeyed = direction.keys_after(message.kind, &self.suite).or(rekeyed);
        }
        if let Some(keys) = rekeyed {
            direction.keys = keys;
        }
    }
}

/// RFC 8446 §4.3.1: the protocol chosen, and whether early data is taken.
pub(super) fn encrypted_extensions(truth: &mut Truth, body: &[u8]) {
    let list = wire::Reader::new("TLS EncryptedExtensions", body).vec16();
    let Ok(extensions) = list.and_then(Extensions::new_checked) else { return };
    truth.early_accepted = extensions.find(ExtensionKind::EARLY_DATA).is_some();
    truth.alpn = extensions.find(ExtensionKind::ALPN).and_then(|data| {
        let list = wire::Reader::new("TLS ALPN", data).vec16().ok()?;
        let name = wire::Reader::new("TLS ALPN", list).vec8().ok()?;
        Some(protocol(name))
    });
}
