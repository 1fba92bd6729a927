//! EAP over LANs, and in it MACsec's key agreement (IEEE 802.1X-2020 §11): packets as views, and parameter
//! sets that are parsed and emitted.
//!
//! Nothing here is believed: who reads a packet checks its ICV first (§9.4.1).

#[cfg(test)]
mod set_tests;
mod sets;

pub use sets::{
    Confidentiality, DistributedSak, KeyIdentifier, Known, Peer, Peers, Repr, SakUse, SakUseKey,
    Xpn,
};

use crate::ethernet::Address;
use crate::macsec::Sci;
use crate::{Error, Reader};

pub(crate) const FORMAT: &str = "MKA";
const EAPOL: &str = "EAPOL";

/// Bytes of an EAPOL header (§11.3).
pub const EAPOL_HEADER_LEN: usize = 4;

/// The group address that MKA goes to: bridges of 802.1D do not forward it (§11.1.1, the PAE address).
pub const DESTINATION: Address = Address([0x01, 0x80, 0xc2, 0x00, 0x00, 0x03]);

/// EAPOL's type of a packet of MKA (§11.3.2).
pub const EAPOL_MKA: u8 = 5;

/// The version of EAPOL that 802.1X-2010 and later say.
pub const EAPOL_VERSION: u8 = 3;

/// The one algorithm agility value: AES-CMAC for ICVs and keys (Table 11-8).
pub const AGILITY: u32 = 0x0080_c201;

/// Bytes of the ICV with that.
pub const ICV_LEN: usize = 16;

/// Bytes of the name of a CAK at most (§9.3.1).
pub const MAX_CKN: usize = 32;

/// Bytes of a basic parameter set's body without the name (Figure 11-8).
const BASIC_LEN: usize = 28;

/// A view of an EAPOL packet.
#[derive(Debug, Clone, Copy)]
pub struct Eapol<'a> {
    version: u8,
    kind: u8,
    body: &'a [u8],
}

impl<'a> Eapol<'a> {
    /// A view of `bytes`, a frame's payload. What is behind its length is padding.
    ///
    /// # Errors
    /// It is cut short.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(EAPOL, bytes);
        let (version, kind) = (reader.u8()?, reader.u8()?);
        Ok(Eapol { version, kind, body: reader.vec16()? })
    }

    /// The protocol version.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The packet type: 0 an EAP packet, 1 a start, 2 a logoff, 3 a key, [`EAPOL_MKA`], ….
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// What is in it.
    #[must_use]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// Writes an EAPOL header to the front of `buffer`.
///
/// # Errors
/// The body is longer than 65,535 bytes, or the buffer is too short.
pub fn emit_eapol(buffer: &mut [u8], kind: u8, body_len: usize) -> Result<(), Error> {
    let too_long = Error::DoesNotFit { format: EAPOL, field: "body" };
    let [a, b] = u16::try_from(body_len).map_err(|_| too_long)?.to_be_bytes();
    crate::error::room(EAPOL, buffer, EAPOL_HEADER_LEN)?.copy_from_slice(&[
        EAPOL_VERSION,
        kind,
        a,
        b,
    ]);
    Ok(())
}

/// How a member of a group is called, drawn at random for each life of the member (§9.4.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberIdentifier(pub [u8; 12]);

/// What a member can do for MACsec (Table 11-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// No MACsec.
    None,
    /// Integrity without confidentiality.
    Integrity,
    /// Integrity, and confidentiality from the first byte.
    Confidentiality,
    /// Integrity, and confidentiality from the first byte, the 30th or the 50th.
    ConfidentialityOffsets,
}

impl Capability {
    const ALL: [Capability; 4] = [
        Capability::None,
        Capability::Integrity,
        Capability::Confidentiality,
        Capability::ConfidentialityOffsets,
    ];
}

/// A basic parameter set: who says it (Figure 11-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basic<'a> {
    /// The version of MKA.
    pub version: u8,
    /// The less, the rather it is elected key server; 255 never is.
    pub priority: u8,
    /// Whether it believes that it is the key server.
    pub is_key_server: bool,
    /// Whether it wants MACsec.
    pub wants_macsec: bool,
    /// What it can do.
    pub capability: Capability,
    /// Its secure channel.
    pub sci: Sci,
    /// Who it is.
    pub member: MemberIdentifier,
    /// Counts its packets up from 1.
    pub message_number: u32,
    /// Which algorithms, [`AGILITY`].
    pub agility: u32,
    /// The name of the CAK: 1 to [`MAX_CKN`] bytes.
    pub ckn: &'a [u8],
}

/// A view of a packet of MKA.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    basic: Basic<'a>,
    sets: &'a [u8],
    icv: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, an EAPOL packet's body whose last `icv_len` bytes are its ICV (§11.11).
    ///
    /// # Errors
    /// It is cut short, no multiple of 4 bytes long, or its name has no length that one can have.
    pub fn new_checked(bytes: &'a [u8], icv_len: usize) -> Result<Self, Error> {
        if !bytes.len().is_multiple_of(4) {
            return Err(Error::malformed(FORMAT, "its length is not a multiple of 4"));
        }
        let had = bytes.len();
        let split = had.checked_sub(icv_len).and_then(|at| bytes.split_at_checked(at));
        let (content, icv) =
            split.ok_or(Error::Truncated { format: FORMAT, needed: icv_len, had })?;
        let mut reader = Reader::new(FORMAT, content);
        let [version, priority, flags, low] = *reader.array::<4>()?;
        let body = sets::body_len(flags, low);
        let sci = Sci(*reader.array()?);
        let member = MemberIdentifier(*reader.array()?);
        let (message_number, agility) = (reader.u32()?, reader.u32()?);
        let ckn_len = body.checked_sub(BASIC_LEN).filter(|len| (1..=MAX_CKN).contains(len));
        let ckn_len =
            ckn_len.ok_or(Error::malformed(FORMAT, "a key's name of 0 or over 32 bytes"))?;
        let ckn = reader.take(ckn_len)?;
        reader.take(sets::padding(ckn_len))?;
        let [none, integrity, confidentiality, offsets] = Capability::ALL;
        let capability = match flags >> 4 & 3 {
            0 => none,
            1 => integrity,
            2 => confidentiality,
            _ => offsets,
        };
        let (is_key_server, wants_macsec) = (flags & 0x80 != 0, flags & 0x40 != 0);
        let basic = Basic {
            version,
            priority,
            is_key_server,
            wants_macsec,
            capability,
            sci,
            member,
            message_number,
            agility,
            ckn,
        };
        Ok(Packet { basic, sets: reader.rest(), icv })
    }

    /// Who says it.
    #[must_use]
    pub const fn basic(&self) -> Basic<'a> {
        self.basic
    }

    /// The parameter sets behind the basic one, up to an ICV indicator (§11.11.1). After an error there is no
    /// further one.
    pub fn sets(&self) -> impl Iterator<Item = Result<Set<'a>, Error>> + use<'a> {
        let mut reader = Reader::new(FORMAT, self.sets);
        std::iter::from_fn(move || {
            // The body of an ICV indicator is the ICV, which is no longer here.
            if matches!(reader.rest().first(), None | Some(&Set::ICV_INDICATOR)) {
                return None;
            }
            let set = Set::read(&mut reader);
            if set.is_err() {
                reader = Reader::new(FORMAT, &[]);
            }
            Some(set)
        })
    }

    /// The integrity check value, over the frame from its destination address up to here (§9.4.1).
    #[must_use]
    pub const fn icv(&self) -> &'a [u8] {
        self.icv
    }
}

/// A parameter set, as yet of any kind (Figure 11-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// Its kind (Table 11-7).
    pub kind: u8,
    /// Its second byte, which each kind uses as it likes.
    pub second: u8,
    /// The upper half of its third byte, likewise.
    pub flags: u8,
    /// What follows its four-byte header, as long as that says.
    pub body: &'a [u8],
}

impl<'a> Set<'a> {
    /// Members heard, who have heard the sender.
    pub const LIVE_PEERS: u8 = 1;
    /// Members heard, who may not have heard the sender yet.
    pub const POTENTIAL_PEERS: u8 = 2;
    /// Which keys are in use.
    pub const SAK_USE: u8 = 3;
    /// A new key, wrapped.
    pub const DISTRIBUTED_SAK: u8 = 4;
    /// The upper halves of extended packet numbers.
    pub const XPN: u8 = 8;
    /// An ICV follows.
    pub const ICV_INDICATOR: u8 = 255;

    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let [kind, second, third, low] = *reader.array::<4>()?;
        let len = sets::body_len(third, low);
        let body = reader.take(len)?;
        // The last set's padding may be left out where a maker counts it to the ICV.
        let padding = sets::padding(len).min(reader.rest().len());
        reader.take(padding)?;
        Ok(Set { kind, second, flags: third >> 4, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(ckn: &[u8]) -> Vec<u8> {
        let len = 28 + ckn.len();
        let mut bytes = vec![3, 16, 0xe0 | (len >> 8) as u8, len as u8];
        bytes.extend([2, 0, 0, 0, 0, 1, 0, 1]);
        bytes.extend([7; 12]);
        bytes.extend([0, 0, 0, 9]);
        bytes.extend(AGILITY.to_be_bytes());
        bytes.extend(ckn);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_basic_set_says_who_sends() {
        let bytes = [basic(&[0xab; 5]), vec![0x11; 16]].concat();
        let packet = Packet::new_checked(&bytes, ICV_LEN).unwrap();
        let basic = packet.basic();
        assert_eq!((basic.version, basic.priority, basic.message_number), (3, 16, 9));
        assert!(basic.is_key_server && basic.wants_macsec);
        assert_eq!(basic.capability, Capability::Confidentiality);
        assert_eq!((basic.ckn, basic.member), (&[0xab; 5][..], MemberIdentifier([7; 12])));
        assert_eq!(packet.icv(), [0x11; 16]);
        assert_eq!(packet.sets().count(), 0);
    }

    #[test]
    fn names_of_no_byte_or_of_33_are_refused() {
        for (len, is_good) in [(0, false), (1, true), (32, true), (33, false)] {
            let bytes = [basic(&vec![1; len]), vec![0; 16]].concat();
            assert_eq!(Packet::new_checked(&bytes, ICV_LEN).is_ok(), is_good, "{len}");
        }
        let odd = [basic(&[1; 4]), vec![0; 17]].concat();
        assert!(Packet::new_checked(&odd, ICV_LEN).is_err());
    }

    #[test]
    fn sets_end_at_the_icv_indicator_and_at_what_is_cut() {
        let live = [&[1, 0, 0, 16][..], &[5; 16]].concat();
        let end = [255, 0, 0, 16];
        let whole = [basic(&[1; 4]), live.clone(), end.to_vec(), vec![0; 16]].concat();
        let packet = Packet::new_checked(&whole, ICV_LEN).unwrap();
        let sets: Vec<_> = packet.sets().map(Result::unwrap).collect();
        assert_eq!(sets, [Set { kind: 1, second: 0, flags: 0, body: &[5; 16] }]);
        let cut = [basic(&[1; 4]), live[..16].to_vec(), vec![0; 16]].concat();
        let packet = Packet::new_checked(&cut, ICV_LEN).unwrap();
        let sets: Vec<_> = packet.sets().collect();
        assert!(matches!(sets[..], [Err(_)]));
    }
}
