//! The parameter sets of MKA that carry keys and who is there (IEEE 802.1X-2020 §11.11.1).

use super::{Basic, Capability, EAPOL_HEADER_LEN, FORMAT, MemberIdentifier, Set};
use crate::error::room;
use crate::{Error, Reader};

/// Bytes of a set's head.
const HEAD_LEN: usize = 4;
/// Bytes of a member in a list of peers.
const PEER_LEN: usize = 16;
/// Bytes of the body of the set that says which keys are in use.
const SAK_USE_LEN: usize = 40;
/// Bytes of a distributed key's body before the wrapped key, for the default cipher suite.
const SAK_HEAD_LEN: usize = 4;
/// Bytes of the same where a cipher suite is named.
const NAMED_SAK_HEAD_LEN: usize = 12;
/// Bytes of the body of a distributed key of the default suite: a number, and 128 bits wrapped.
const DEFAULT_SAK_LEN: usize = SAK_HEAD_LEN + 24;

/// Bytes of a body, in the lower half of a set's third byte and in its fourth.
pub(super) const fn body_len(third: u8, low: u8) -> usize {
    u16::from_be_bytes([third & 0x0f, low]) as usize
}

/// Bytes of padding behind a body.
pub(super) const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}

/// A member that was heard, and the number of its last packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The member's identifier.
    pub member: MemberIdentifier,
    /// The number of the last packet heard of it.
    pub message_number: u32,
}

/// The members of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peers<'a>(&'a [[u8; PEER_LEN]]);

impl<'a> Peers<'a> {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Peer> + use<'a> {
        self.0.iter().map(|&[m @ .., a, b, c, d]| Peer {
            member: MemberIdentifier(m),
            message_number: u32::from_be_bytes([a, b, c, d]),
        })
    }
}

/// A key's name: its maker and that one's number for it (§9.8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct KeyIdentifier {
    /// The key server that made it.
    pub server: MemberIdentifier,
    /// Its number for the key.
    pub number: u32,
}

/// A key in use, the latest or the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SakUseKey {
    /// The key's identifier.
    pub key: KeyIdentifier,
    /// Its association number, below 4.
    pub association: u8,
    /// Whether the sender of the packet sends with it.
    pub transmits: bool,
    /// Whether it receives with it.
    pub receives: bool,
    /// The lowest packet number that it would take.
    pub lowest_acceptable: u32,
}

/// Which keys are in use (Figure 11-10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SakUse {
    /// The latest key.
    pub latest: SakUseKey,
    /// The one before.
    pub old: SakUseKey,
    /// Whether frames are sent without protection.
    pub plain_transmit: bool,
    /// Whether such frames are taken.
    pub plain_receive: bool,
    /// Whether the lowest packet numbers bound how late a frame may be.
    pub delay_protect: bool,
}

units::named! {
    /// From which byte on user data are encrypted (Table 11-6; IEEE 802.1AE §10.7.24, §10.7.25).
    #[derive(Default)]
    pub enum Confidentiality: "confidentiality" {
        /// Never: integrity alone.
        None = "integrity",
        /// From the first.
        #[default]
        All = "0",
        /// From the 31st: so that IPv4 headers can be read under way.
        Offset30 = "30",
        /// From the 51st: IPv6.
        Offset50 = "50",
    }
}

/// A key, wrapped by the key server (Figures 11-11 and 11-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistributedSak<'a> {
    /// The association number that it is for, below 4.
    pub association: u8,
    /// What is encrypted.
    pub confidentiality: Confidentiality,
    /// The key server's number for it.
    pub key_number: u32,
    /// The cipher suite (802.1AE Table 14-1), if it is another than GCM-AES-128.
    pub cipher_suite: Option<u64>,
    /// The key, by AES key wrap (RFC 3394): 24 or 40 bytes.
    pub wrapped: &'a [u8],
}

/// The upper halves of the lowest packet numbers, with extended packet numbers (Figure 11-16).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Xpn {
    /// Seconds for which liveness is suspended (802.1Xck).
    pub suspension: u8,
    /// Of the latest key.
    pub latest: u32,
    /// Of the one before.
    pub old: u32,
}

/// A parameter set that is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<'a> {
    /// Members heard, who have heard the sender.
    Live(Peers<'a>),
    /// Members heard, who may not have heard it yet.
    Potential(Peers<'a>),
    /// Which keys are in use.
    SakUse(SakUse),
    /// A new key.
    Sak(DistributedSak<'a>),
    /// The key server asks to go without MACsec.
    NoSak,
    /// Upper halves of packet numbers.
    Xpn(Xpn),
    /// Another kind: passed over (§11.11.3).
    Other,
}

impl<'a> Known<'a> {
    /// What a set says.
    ///
    /// # Errors
    /// Its body has no length that its kind can have.
    pub fn parse(set: &Set<'a>) -> Result<Self, Error> {
        let Set { kind, second, flags, body } = *set;
        Ok(match kind {
            Set::LIVE_PEERS => Known::Live(peers(body)?),
            Set::POTENTIAL_PEERS => Known::Potential(peers(body)?),
            Set::SAK_USE if body.is_empty() => Known::SakUse(SakUse::default()),
            Set::SAK_USE => Known::SakUse(sak_use(second, flags, body)?),
            Set::DISTRIBUTED_SAK if body.is_empty() => Known::NoSak,
            Set::DISTRIBUTED_SAK => Known::Sak(distributed_sak(second, body)?),
            Set::XPN => {
                let mut reader = Reader::new(FORMAT, body);
                let (latest, old) = (reader.u32()?, reader.u32()?);
                Known::Xpn(Xpn { suspension: second, latest, old })
            }
            _ => Known::Other,
        })
    }
}

fn peers(body: &[u8]) -> Result<Peers<'_>, Error> {
    match body.as_chunks::<PEER_LEN>() {
        (peers, []) => Ok(Peers(peers)),
        _ => Err(Error::malformed(
            FORMAT,
            "the length of a list of peers is not a multiple of 16 bytes",
        )),
    }
}

fn sak_use(second: u8, flags: u8, body: &[u8]) -> Result<SakUse, Error> {
    let mut reader = Reader::new(FORMAT, body);
    let mut key = |bits: u8| {
        let server = MemberIdentifier(*reader.array()?);
        let (number, lowest_acceptable) = (reader.u32()?, reader.u32()?);
        Ok(SakUseKey {
            key: KeyIdentifier { server, number },
            association: bits >> 2 & 3,
            transmits: bits & 2 != 0,
            receives: bits & 1 != 0,
            lowest_acceptable,
        })
    };
    Ok(SakUse {
        latest: key(second >> 4)?,
        old: key(second & 0x0f)?,
        plain_transmit: flags & 8 != 0,
        plain_receive: flags & 4 != 0,
        delay_protect: flags & 1 != 0,
    })
}

fn distributed_sak(second: u8, body: &[u8]) -> Result<DistributedSak<'_>, Error> {
    let mut reader = Reader::new(FORMAT, body);
    let key_number = reader.u32()?;
    let cipher_suite = match body.len() {
        DEFAULT_SAK_LEN => None,
        _ => Some(u64::from_be_bytes(*reader.array()?)),
    };
    let wrapped = reader.rest();
    if !matches!(wrapped.len(), 24 | 40) {
        return Err(Error::malformed(FORMAT, "a wrapped key of neither 24 nor 40 bytes"));
    }
    let confidentiality = match second >> 4 & 3 {
        0 => Confidentiality::None,
        1 => Confidentiality::All,
        2 => Confidentiality::Offset30,
        _ => Confidentiality::Offset50,
    };
    Ok(DistributedSak {
        association: second >> 6,
        confidentiality,
        key_number,
        cipher_suite,
        wrapped,
    })
}

/// A packet to be sent, without its ICV.
#[derive(Debug, Clone, Copy)]
pub struct Repr<'a> {
    /// Who says it.
    pub basic: Basic<'a>,
    /// Members heard, who have heard the sender.
    pub live: &'a [Peer],
    /// Members heard, who may not have heard it yet.
    pub potential: &'a [Peer],
    /// Which keys are in use.
    pub sak_use: Option<SakUse>,
    /// A new key.
    pub sak: Option<DistributedSak<'a>>,
    /// Upper halves of packet numbers.
    pub xpn: Option<Xpn>,
}

impl Repr<'_> {
    /// Bytes that [`Repr::emit`] writes: a multiple of 4.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let list = |peers: &[Peer]| match peers.len() {
            0 => 0,
            count => HEAD_LEN.saturating_add(count.saturating_mul(PEER_LEN)),
        };
        let ckn = self.basic.ckn.len();
        let basic = HEAD_LEN + super::BASIC_LEN + ckn + padding(ckn);
        let sak = self.sak.map_or(0, |sak| HEAD_LEN.saturating_add(sak.body_len()));
        basic
            .saturating_add(list(self.live))
            .saturating_add(list(self.potential))
            .saturating_add(self.sak_use.map_or(0, |_| HEAD_LEN + SAK_USE_LEN))
            .saturating_add(sak)
            .saturating_add(self.xpn.map_or(0, |_| HEAD_LEN + 8))
    }

    /// Bytes of an EAPOL packet with it and an ICV of `icv_len`.
    #[must_use]
    pub fn eapol_len(&self, icv_len: usize) -> usize {
        self.buffer_len().saturating_add(icv_len).saturating_add(EAPOL_HEADER_LEN)
    }

    /// Writes the parameter sets to the front of `buffer`.
    ///
    /// # Errors
    /// A name of no byte or of more than 32, an association number above 3, a wrapped key of another length
    /// than 24 or 40 bytes, more than 255 peers; or the buffer is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        self.check()?;
        let mut writer = Writer(room(FORMAT, buffer, self.buffer_len())?);
        self.emit_basic(&mut writer);
        emit_peers(&mut writer, Set::LIVE_PEERS, self.live);
        emit_peers(&mut writer, Set::POTENTIAL_PEERS, self.potential);
        if let Some(used) = &self.sak_use {
            used.emit(&mut writer);
        }
        if let Some(sak) = &self.sak {
            sak.emit(&mut writer);
        }
        if let Some(Xpn { suspension, latest, old }) = self.xpn {
            writer.head(Set::XPN, suspension, 0, 8);
            writer.put(&latest.to_be_bytes());
            writer.put(&old.to_be_bytes());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |field| Err(Error::DoesNotFit { format: FORMAT, field });
        if !(1..=super::MAX_CKN).contains(&self.basic.ckn.len()) {
            return wrong("name of the key");
        }
        if self.live.len() > MOST_PEERS || self.potential.len() > MOST_PEERS {
            return wrong("list of peers");
        }
        let used = self.sak_use.iter().flat_map(|used| [used.latest, used.old]);
        let mut associations =
            used.map(|key| key.association).chain(self.sak.map(|sak| sak.association));
        if associations.any(|association| association > 3) {
            return wrong("association number");
        }
        if self.sak.is_some_and(|sak| !sak.is_wrapped_well()) {
            return wrong("wrapped key");
        }
        Ok(())
    }

    fn emit_basic(&self, writer: &mut Writer<'_>) {
        let Basic { version, priority, is_key_server, wants_macsec, capability, ckn, .. } =
            self.basic;
        let capability = match capability {
            Capability::None => 0,
            Capability::Integrity => 1,
            Capability::Confidentiality => 2,
            Capability::ConfidentialityOffsets => 3,
        };
        let flags = u8::from(is_key_server) << 3 | u8::from(wants_macsec) << 2 | capability;
        writer.head(version, priority, flags, super::BASIC_LEN.saturating_add(ckn.len()));
        writer.put(&self.basic.sci.0);
        writer.put(&self.basic.member.0);
        writer.put(&self.basic.message_number.to_be_bytes());
        writer.put(&self.basic.agility.to_be_bytes());
        writer.put(ckn);
        writer.zeros(padding(ckn.len()));
    }
}

/// Peers in a list at most: 4095 bytes have room for as many.
const MOST_PEERS: usize = 255;

fn emit_peers(writer: &mut Writer<'_>, kind: u8, peers: &[Peer]) {
    if peers.is_empty() {
        return;
    }
    writer.head(kind, 0, 0, peers.len().saturating_mul(PEER_LEN));
    for Peer { member, message_number } in peers {
        writer.put(&member.0);
        writer.put(&message_number.to_be_bytes());
    }
}

impl SakUse {
    fn emit(&self, writer: &mut Writer<'_>) {
        let bits = |key: &SakUseKey| {
            key.association << 2 | u8::from(key.transmits) << 1 | u8::from(key.receives)
        };
        let flags = u8::from(self.plain_transmit) << 3
            | u8::from(self.plain_receive) << 2
            | u8::from(self.delay_protect);
        writer.head(Set::SAK_USE, bits(&self.latest) << 4 | bits(&self.old), flags, SAK_USE_LEN);
        for key in [&self.latest, &self.old] {
            writer.put(&key.key.server.0);
            writer.put(&key.key.number.to_be_bytes());
            writer.put(&key.lowest_acceptable.to_be_bytes());
        }
    }
}

impl DistributedSak<'_> {
    fn body_len(&self) -> usize {
        let head = match self.cipher_suite {
            None => SAK_HEAD_LEN,
            Some(_) => NAMED_SAK_HEAD_LEN,
        };
        head.saturating_add(self.wrapped.len())
    }

    /// Without a named suite a key has 128 bits.
    fn is_wrapped_well(&self) -> bool {
        match self.cipher_suite {
            None => self.wrapped.len() == 24,
            Some(_) => matches!(self.wrapped.len(), 24 | 40),
        }
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let confidentiality = match self.confidentiality {
            Confidentiality::None => 0,
            Confidentiality::All => 1,
            Confidentiality::Offset30 => 2,
            Confidentiality::Offset50 => 3,
        };
        let second = self.association << 6 | confidentiality << 4;
        writer.head(Set::DISTRIBUTED_SAK, second, 0, self.body_len());
        writer.put(&self.key_number.to_be_bytes());
        if let Some(suite) = self.cipher_suite {
            writer.put(&suite.to_be_bytes());
        }
        writer.put(self.wrapped);
    }
}

/// What is left of a buffer that was made long enough before.
struct Writer<'b>(&'b mut [u8]);

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some((front, rest)) = std::mem::take(&mut self.0).split_at_mut_checked(bytes.len()) {
            front.copy_from_slice(bytes);
            self.0 = rest;
        }
    }

    fn zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.put(&[0]);
        }
    }

    fn head(&mut self, kind: u8, second: u8, flags: u8, len: usize) {
        let [high, low] = (len as u16).to_be_bytes();
        self.put(&[kind, second, flags << 4 | high & 0x0f, low]);
    }
}
