//! The other members of a group, as far as they are heard (IEEE 802.1X-2020 §9.4.3).

use std::collections::BTreeMap;
use std::time::Duration;

use units::Time;
use wire::macsec::Sci;
use wire::mka::{KeyIdentifier, MemberIdentifier, Peer};

/// After so long without a packet a member is gone (Table 9-3, MKA Life Time).
pub(super) const LIFE_TIME: Duration = Duration::from_secs(6);

/// Members that are remembered at most: what a hostile holder of the CAK can make this side keep.
pub(super) const MOST_PEERS: usize = 64;

/// A member that was heard.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) message_number: u32,
    /// Whether it has heard this side: it names this side's identifier.
    pub(super) is_live: bool,
    pub(super) sci: Sci,
    pub(super) priority: u8,
    /// The key that it says to receive with, and to send with.
    pub(super) receives: Option<KeyIdentifier>,
    pub(super) transmits: Option<KeyIdentifier>,
    expires: Time,
}

/// What a packet says of its sender.
pub(super) struct Said {
    pub(super) member: MemberIdentifier,
    pub(super) message_number: u32,
    pub(super) sci: Sci,
    pub(super) priority: u8,
    /// Whether it names this side.
    pub(super) names_us: bool,
}

/// What hearing a packet changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It was sent before one that was heard.
    Old,
    /// There are too many members.
    TooMany,
    /// The member is live now, and was not.
    Live,
    /// Nothing of note.
    None,
}

#[derive(Debug, Default)]
pub(super) struct Peers(BTreeMap<MemberIdentifier, Heard>);

impl Peers {
    pub(super) fn hear(&mut self, now: Time, said: &Said) -> Change {
        let known = self.0.get(&said.member);
        if known.is_some_and(|known| said.message_number <= known.message_number) {
            return Change::Old;
        }
        if known.is_none() && self.0.len() >= MOST_PEERS {
            return Change::TooMany;
        }
        let was_live = known.is_some_and(|known| known.is_live);
        // A member of the same channel that began again has another identifier: the old one is gone.
        self.0.retain(|member, heard| *member == said.member || heard.sci != said.sci);
        let heard = self.0.entry(said.member).or_insert_with(|| Heard {
            message_number: 0,
            is_live: false,
            sci: said.sci,
            priority: said.priority,
            receives: None,
            transmits: None,
            expires: now,
        });
        heard.message_number = said.message_number;
        heard.priority = said.priority;
        heard.is_live |= said.names_us;
        heard.expires = now + LIFE_TIME;
        if heard.is_live && !was_live { Change::Live } else { Change::None }
    }

    pub(super) fn get(&self, member: MemberIdentifier) -> Option<&Heard> {
        self.0.get(&member)
    }

    pub(super) fn get_mut(&mut self, member: MemberIdentifier) -> Option<&mut Heard> {
        self.0.get_mut(&member)
    }

    /// Drops those that were not heard for too long. Whether a live one was among them.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let live = self.live().count();
        self.0.retain(|_, heard| heard.expires > now);
        self.live().count() != live
    }

    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.0.values().map(|heard| heard.expires).min()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = (MemberIdentifier, &Heard)> {
        self.0.iter().filter(|(_, heard)| heard.is_live).map(|(member, heard)| (*member, heard))
    }

    /// As a list of a packet.
    pub(super) fn listed(&self, live: bool) -> Vec<Peer> {
        let listed = self.0.iter().filter(|(_, heard)| heard.is_live == live);
        listed
            .map(|(member, heard)| Peer { member: *member, message_number: heard.message_number })
            .collect()
    }
}
