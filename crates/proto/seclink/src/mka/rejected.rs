//! Why packets of key agreement are passed over.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why a packet is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Rejected {
    /// It is no packet of key agreement.
    #[error("no packet of MACsec's key agreement")]
    NotMka,
    /// It contradicts its format.
    #[error("{0}")]
    Malformed(wire::Error),
    /// It is of a group with another key.
    #[error("a packet of a group with a key of another name")]
    OtherGroup,
    /// Its algorithms are not known.
    #[error("a packet with unknown algorithms")]
    Agility,
    /// It was not made with the group's key.
    #[error("a packet whose ICV is wrong: another key under the same name, or a forgery")]
    NotAuthentic,
    /// It is of this member's own channel: back by a loop, from an earlier life, or of a second member with this
    /// channel.
    #[error("a packet of this side's own channel")]
    Own,
    /// It was heard before, or after one that followed it.
    #[error("a packet that was sent before one already heard")]
    Replayed,
    /// The group has too many members at once, or had too many under this CAK.
    #[error("more members than are remembered")]
    TooManyPeers,
    /// It distributes a key and is not the key server.
    #[error("a key from a member that is not the key server")]
    NotKeyServer,
    /// It distributes a key to a member that was not heard here yet, whose channel is not known so far.
    #[error("a key for a group of which a member was not heard yet")]
    UnknownMember,
    /// It distributes a key, but its live list lacks this member with a recent message number (§9.8.2).
    #[error("a key for a group without this member")]
    NotNamed,
    /// Two members of the key's group have the same channel: their packet numbers would collide.
    #[error("a key for two members with one channel")]
    SharedChannel,
    /// Its key was in use before under this CAK, or its number is not above the key server's last.
    #[error("a key that was in use before")]
    UsedKey,
    /// The ledger of used keys is full: no further key can be proved fresh.
    #[error("more keys than are remembered under one CAK")]
    TooManyKeys,
    /// Its key cannot be unwrapped or is of an unknown cipher suite.
    #[error("a key that cannot be unwrapped, or of an unknown cipher suite")]
    BadKey,
}

impl Explain for Rejected {
    fn fault(&self) -> Fault {
        Fault::Peer
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Rejected::NotAuthentic => Some("give both ends the same CAK under this name".into()),
            Rejected::TooManyKeys => Some("give the group a fresh CAK".into()),
            Rejected::TooManyPeers => Some("have fewer members, or give them a fresh CAK".into()),
            Rejected::SharedChannel => Some("give each member an SCI of its own".into()),
            _ => None,
        }
    }
}
