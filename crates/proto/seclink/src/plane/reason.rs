//! Why a node drops a frame.

use units::named;

use crate::underlay::Strange;
use crate::{SealError, esp, macsec, vpws, wireguard};

named! {
    /// Why a node drops a frame; of MACsec, the standard's counter (IEEE 802.1AE-2018 §10.7.9).
    pub enum Reason: "reason" {
        /// The buffer has no room for what is added.
        NoRoom = "no-room",
        /// It is shorter than its header.
        TooShort = "too-short",
        /// The key's numbers are used up, or there is none.
        NoKey = "no-key",
        /// The cipher refused to seal.
        Cipher = "cipher-failed",
        /// What is routed carries IP packets of the LAN's own VLAN, and this is none.
        NotIp = "not-ip",
        /// It is for another station, or of another protocol, port, session or network.
        NotForUs = "not-for-us",
        /// A header of the network under the tunnel is cut short or wrong.
        BadHeader = "bad-header",
        /// A frame without a tag.
        MacsecNoTag = "InPktsNoTag",
        /// A tag that is none.
        MacsecBadTag = "InPktsBadTag",
        /// Of no known channel or association.
        MacsecNoAssociation = "InPktsNoSAError",
        /// Below the window.
        MacsecLate = "InPktsLate",
        /// Its integrity check failed.
        MacsecNotValid = "InPktsNotValid",
        /// For key agreement, which is not the data plane's.
        MacsecKeyAgreement = "macsec-key-agreement",
        /// Cut short, or of no length that the ciphers make; or not ESP at all.
        EspMalformed = "esp-malformed",
        /// No association has this index (RFC 4303 §3.4.2).
        EspNoAssociation = "esp-no-association",
        /// Seen before, or below the window (RFC 4303 §3.4.3).
        EspReplayed = "esp-replayed",
        /// Its integrity check failed (RFC 4303 §3.4.4).
        EspNotAuthentic = "esp-not-authentic",
        /// Its padding is wrong.
        EspBadPadding = "esp-bad-padding",
        /// It protects nothing, or what the association is not for.
        EspNothing = "esp-nothing-inside",
        /// No transport data.
        WireGuardMalformed = "wireguard-malformed",
        /// Of another session.
        WireGuardOtherSession = "wireguard-other-session",
        /// Seen before, or too old to tell.
        WireGuardReplayed = "wireguard-replayed",
        /// Its tag is wrong.
        WireGuardNotAuthentic = "wireguard-not-authentic",
        /// Authentic, without an IP packet; a keep-alive too.
        WireGuardNoPacket = "wireguard-no-packet",
        /// No such label, or one that is not the last of its stack.
        NoLabel = "mpls-no-label",
        /// The label has no hop left.
        Expired = "mpls-expired",
        /// Cut short, or without its control word.
        BadPseudowire = "pseudowire-malformed",
        /// The gateway's queue is full.
        GatewayFull = "gateway-full",
    }
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = Reason::ALL.len();
}

impl From<SealError> for Reason {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Exhausted | SealError::NoKey => Reason::NoKey,
            SealError::NoRoom { .. } => Reason::NoRoom,
            SealError::TooShort => Reason::TooShort,
            SealError::Cipher => Reason::Cipher,
        }
    }
}

impl From<Strange> for Reason {
    fn from(strange: Strange) -> Self {
        match strange {
            Strange::NotForUs => Reason::NotForUs,
            Strange::Malformed => Reason::BadHeader,
        }
    }
}

impl From<macsec::Dropped> for Reason {
    fn from(dropped: macsec::Dropped) -> Self {
        match dropped {
            macsec::Dropped::NoTag => Reason::MacsecNoTag,
            macsec::Dropped::BadTag => Reason::MacsecBadTag,
            macsec::Dropped::NoAssociation => Reason::MacsecNoAssociation,
            macsec::Dropped::Late => Reason::MacsecLate,
            macsec::Dropped::NotValid => Reason::MacsecNotValid,
            macsec::Dropped::KeyAgreement => Reason::MacsecKeyAgreement,
        }
    }
}

impl From<esp::Dropped> for Reason {
    fn from(dropped: esp::Dropped) -> Self {
        match dropped {
            esp::Dropped::Malformed => Reason::EspMalformed,
            esp::Dropped::OtherSpi => Reason::EspNoAssociation,
            esp::Dropped::Replayed => Reason::EspReplayed,
            esp::Dropped::NotAuthentic => Reason::EspNotAuthentic,
            esp::Dropped::BadPadding => Reason::EspBadPadding,
            esp::Dropped::Dummy => Reason::EspNothing,
        }
    }
}

impl From<wireguard::Dropped> for Reason {
    fn from(dropped: wireguard::Dropped) -> Self {
        match dropped {
            wireguard::Dropped::Malformed => Reason::WireGuardMalformed,
            wireguard::Dropped::OtherSession => Reason::WireGuardOtherSession,
            wireguard::Dropped::Replayed => Reason::WireGuardReplayed,
            wireguard::Dropped::NotAuthentic => Reason::WireGuardNotAuthentic,
            wireguard::Dropped::NoPacket => Reason::WireGuardNoPacket,
        }
    }
}

impl From<vpws::Dropped> for Reason {
    fn from(dropped: vpws::Dropped) -> Self {
        match dropped {
            vpws::Dropped::NotForUs => Reason::NotForUs,
            vpws::Dropped::NoLabel => Reason::NoLabel,
            vpws::Dropped::Expired => Reason::Expired,
            vpws::Dropped::Malformed => Reason::BadPseudowire,
        }
    }
}
