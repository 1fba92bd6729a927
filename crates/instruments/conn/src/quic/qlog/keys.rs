//! Keys of quinn's that note the packets that pass through them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn::crypto::{CryptoError, KeyPair, Keys, PacketKey};
use units::Time;

use super::trace::{Initiator, Level, Packet, Trace};
use crate::now;

/// First packets that wait for their connections, at most.
const WAITING: usize = 64;

/// The keys of one side of a connection.
pub(in crate::quic) struct KeySet {
    trace: Arc<Trace>,
    /// Sets of keys that TLS gave: the handshake's, then the application's.
    given: AtomicU64,
    updates: AtomicU64,
}

impl KeySet {
    pub(in crate::quic) fn new(trace: Arc<Trace>) -> KeySet {
        KeySet { trace, given: AtomicU64::new(0), updates: AtomicU64::new(0) }
    }

    pub(in crate::quic) fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Keys that follow from a Destination Connection ID; the first names the file.
    pub(in crate::quic) fn initial(&self, id: &[u8], keys: Keys, first: Option<&First>) -> Keys {
        self.trace.name(id);
        self.trace.keys(Level::Initial, None);
        for seen in first.map(|first| first.take(id)).unwrap_or_default() {
            let packet = Packet {
                level: Level::Initial,
                number: seen.number,
                header: &seen.header,
                payload: &seen.payload,
                length: seen.length,
            };
            self.trace.packet(Initiator::Remote, seen.at, packet);
        }
        self.watch(keys, Level::Initial)
    }

    /// The next keys that TLS gave.
    pub(in crate::quic) fn next(&self, keys: Keys) -> Keys {
        let level = match self.given.fetch_add(1, Ordering::Relaxed) {
            0 => Level::Handshake,
            _ => Level::OneRtt,
        };
        self.trace.keys(level, None);
        self.watch(keys, level)
    }

    /// The keys of early data: the client seals with them, the server opens.
    pub(in crate::quic) fn early(&self, key: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        self.watched(key, Level::ZeroRtt, None)
    }

    /// Keys for the next key update, made in advance.
    pub(in crate::quic) fn update(
        &self,
        keys: KeyPair<Box<dyn PacketKey>>,
    ) -> KeyPair<Box<dyn PacketKey>> {
        let phase = self.updates.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let noted = Arc::new(AtomicU64::new(phase));
        KeyPair {
            local: self.watched(keys.local, Level::OneRtt, Some(Arc::clone(&noted))),
            remote: self.watched(keys.remote, Level::OneRtt, Some(noted)),
        }
    }

    fn watch(&self, Keys { header, packet }: Keys, level: Level) -> Keys {
        let packet = KeyPair {
            local: self.watched(packet.local, level, None),
            remote: self.watched(packet.remote, level, None),
        };
        Keys { header, packet }
    }

    fn watched(
        &self,
        inner: Box<dyn PacketKey>,
        level: Level,
        update: Option<Arc<AtomicU64>>,
    ) -> Box<dyn PacketKey> {
        Box::new(Watched { inner, level, update, trace: Arc::clone(&self.trace) })
    }
}

/// A key whose packets are noted.
struct Watched {
    inner: Box<dyn PacketKey>,
    level: Level,
    /// The phase of a key update, shared by both directions; 0 once it is noted.
    update: Option<Arc<AtomicU64>>,
    trace: Arc<Trace>,
}

impl Watched {
    /// Notes a key update at its first packet.
    fn note_update(&self) {
        let phase = self.update.as_ref().map_or(0, |phase| phase.swap(0, Ordering::Relaxed));
        if phase > 0 {
            self.trace.keys(self.level, Some(phase));
        }
    }
}

impl PacketKey for Watched {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        self.note_update();
        let end = buf.len().saturating_sub(self.inner.tag_len());
        let (header, payload) = (buf.get(..header_len), buf.get(header_len..end));
        let sealed = Packet {
            level: self.level,
            number: packet,
            header: header.unwrap_or_default(),
            payload: payload.unwrap_or_default(),
            length: buf.len(),
        };
        self.trace.packet(Initiator::Local, now(), sealed);
        self.inner.encrypt(packet, buf, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut bytes::BytesMut,
    ) -> Result<(), CryptoError> {
        let length = header.len() + payload.len();
        let opened = self.inner.decrypt(packet, header, payload);
        match opened {
            Ok(()) => {
                self.note_update();
                let opened = Packet { level: self.level, number: packet, header, payload, length };
                self.trace.packet(Initiator::Remote, now(), opened);
            }
            Err(_) => self.trace.dropped(self.level, length),
        }
        opened
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// First packets of clients: a server opens them before their connections are there.
#[derive(Default)]
pub(in crate::quic) struct First(Mutex<VecDeque<Seen>>);

struct Seen {
    id: Vec<u8>,
    at: Time,
    number: u64,
    header: Vec<u8>,
    payload: Vec<u8>,
    length: usize,
}

impl First {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, seen: Seen) {
        let mut waiting = self.waiting();
        // Those of connections that were refused stay until others push them out.
        if waiting.len() >= WAITING {
            waiting.pop_front();
        }
        waiting.push_back(seen);
    }

    fn take(&self, id: &[u8]) -> Vec<Seen> {
        let mut waiting = self.waiting();
        let (own, others) = waiting.drain(..).partition::<Vec<_>, _>(|seen| seen.id == id);
        waiting.extend(others);
        own
    }
}

/// The keys of a client's first packet at a server, noted in `first` if files are wanted.
pub(in crate::quic) fn first_keys(keys: Keys, id: &[u8], first: &Arc<First>) -> Keys {
    if super::folder().is_none() {
        return keys;
    }
    let Keys { header, packet: KeyPair { local, remote } } = keys;
    let remote = Box::new(FirstKey { inner: remote, id: id.to_vec(), first: Arc::clone(first) });
    Keys { header, packet: KeyPair { local, remote } }
}

struct FirstKey {
    inner: Box<dyn PacketKey>,
    id: Vec<u8>,
    first: Arc<First>,
}

impl PacketKey for FirstKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        self.inner.encrypt(packet, buf, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut bytes::BytesMut,
    ) -> Result<(), CryptoError> {
        let length = header.len() + payload.len();
        self.inner.decrypt(packet, header, payload)?;
        let (id, header, payload) = (self.id.clone(), header.to_vec(), payload.to_vec());
        self.first.put(Seen { id, at: now(), number: packet, header, payload, length });
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
