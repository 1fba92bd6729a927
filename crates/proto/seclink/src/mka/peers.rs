//! The other members of a group, as far as they are heard (IEEE 802.1X-2020 §9.4.3).

use std::collections::BTreeMap;
use std::time::Duration;

use units::Time;
use wire::macsec::Sci;
use wire::mka::{KeyIdentifier, MemberIdentifier, Peer};

use super::participant::HELLO_TIME;

/// Lifetime of a peer without a fresh proof, and of a message number as one (Table 9-3, MKA Life Time).
pub(super) const LIFE_TIME: Duration = Duration::from_secs(6);

/// Most members in both lists: they fit a packet.
const MOST_PEERS: usize = 64;

/// Most members that are ever live under one CAK, each restart counted. Further ones are refused.
const MOST_KNOWN: usize = 1 << 16;

/// A member in a list.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    message_number: u32,
    /// Whether it proved to be there now: it named a packet that this side sent a short while ago.
    is_live: bool,
    pub(super) sci: Sci,
    pub(super) priority: u8,
    /// The key that it says to receive with, and to send with.
    pub(super) receives: Option<KeyIdentifier>,
    pub(super) transmits: Option<KeyIdentifier>,
    /// The association number that it says to send with.
    pub(super) association: Option<u8>,
    expires: Time,
}

/// What a packet says of its sender.
pub(super) struct Said {
    pub(super) member: MemberIdentifier,
    pub(super) message_number: u32,
    pub(super) sci: Sci,
    pub(super) priority: u8,
    /// When this side sent the packet that it names, if that was a short while ago.
    pub(super) named: Option<Time>,
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
    /// The member is in the potential list now, and was in none.
    Potential,
    /// Nothing of note.
    None,
}

/// A member that was live at some time under this CAK.
#[derive(Debug)]
struct Known {
    sci: Sci,
    /// The highest that was heard. It is never forgotten, so that no packet counts twice.
    message_number: u32,
}

#[derive(Debug, Default)]
pub(super) struct Peers {
    listed: BTreeMap<MemberIdentifier, Heard>,
    known: BTreeMap<MemberIdentifier, Known>,
}

impl Peers {
    /// Takes what a packet says. It makes its sender live if it names a recent packet of this side's; any other
    /// packet of an unknown sender puts that in the potential list.
    pub(super) fn hear(&mut self, now: Time, said: &Said) -> Change {
        let Said { member, message_number, sci, .. } = *said;
        let last = self.listed.get(&member).map(|heard| (heard.sci, heard.message_number));
        let last = self.known.get(&member).map(|known| (known.sci, known.message_number)).or(last);
        if last.is_some_and(|(owner, last)| message_number <= last || owner != sci) {
            return Change::Old;
        }
        let was_live = self.listed.get(&member).is_some_and(|heard| heard.is_live);
        let is_known = self.known.contains_key(&member);
        let rival = self.live().find(|(other, peer)| *other != member && peer.sci == sci);
        let rival = rival.map(|(other, _)| other);
        // Who was live before displaces nobody: of two lives of a channel it is the earlier one.
        let named = said.named.filter(|_| !(is_known && rival.is_some()));
        if named.is_some() && !is_known && self.known.len() >= MOST_KNOWN {
            return Change::TooMany;
        }
        let was_listed = self.listed.contains_key(&member);
        if !was_listed && self.listed.len() >= MOST_PEERS && !self.drop_oldest_potential() {
            return Change::TooMany;
        }
        let heard = self.listed.entry(member).or_insert_with(|| Heard {
            message_number,
            is_live: false,
            sci,
            priority: said.priority,
            receives: None,
            transmits: None,
            association: None,
            expires: now + LIFE_TIME,
        });
        heard.message_number = message_number;
        heard.priority = said.priority;
        match named {
            Some(sent) => {
                heard.is_live = true;
                heard.expires = (now + LIFE_TIME).min(sent + LIFE_TIME + HELLO_TIME);
            }
            None if !heard.is_live => heard.expires = now + LIFE_TIME,
            None => {}
        }
        let is_live = heard.is_live;
        if is_live {
            self.known.insert(member, Known { sci, message_number });
        }
        match rival {
            // The channel's owner began again (§9.4.2).
            Some(rival) if is_live => drop(self.listed.remove(&rival)),
            _ => {}
        }
        match (is_live && !was_live, was_listed) {
            (true, _) => Change::Live,
            (false, false) => Change::Potential,
            (false, true) => Change::None,
        }
    }

    /// Makes room in the lists. Whether a potential peer could go.
    fn drop_oldest_potential(&mut self) -> bool {
        let potential = self.listed.iter().filter(|(_, heard)| !heard.is_live);
        let oldest = potential.min_by_key(|(_, heard)| heard.expires).map(|(member, _)| *member);
        oldest.and_then(|oldest| self.listed.remove(&oldest)).is_some()
    }

    /// The channel of a member that was heard.
    pub(super) fn sci_of(&self, member: MemberIdentifier) -> Option<Sci> {
        let known = self.known.get(&member).map(|known| known.sci);
        known.or_else(|| self.listed.get(&member).map(|heard| heard.sci))
    }

    pub(super) fn get_live_mut(&mut self, member: MemberIdentifier) -> Option<&mut Heard> {
        self.listed.get_mut(&member).filter(|heard| heard.is_live)
    }

    /// Drops those without a proof for too long. Whether a live one was among them.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let live = self.live().count();
        self.listed.retain(|_, heard| heard.expires > now);
        self.live().count() != live
    }

    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.listed.values().map(|heard| heard.expires).min()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = (MemberIdentifier, &Heard)> {
        self.listed
            .iter()
            .filter(|(_, heard)| heard.is_live)
            .map(|(member, heard)| (*member, heard))
    }

    /// As a list of a packet.
    pub(super) fn listed(&self, live: bool) -> Vec<Peer> {
        let listed = self.listed.iter().filter(|(_, heard)| heard.is_live == live);
        listed
            .map(|(member, heard)| Peer { member: *member, message_number: heard.message_number })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Time {
        Time::ZERO + Duration::from_secs(count)
    }

    fn said(member: u32, message_number: u32, sci: u8, named: Option<Time>) -> Said {
        let [a, b, c, d] = member.to_be_bytes();
        let member = MemberIdentifier([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0]);
        Said { member, message_number, sci: Sci([sci; 8]), priority: 1, named }
    }

    fn live(peers: &Peers) -> Vec<u8> {
        peers.live().map(|(member, _)| member.0[3]).collect()
    }

    #[test]
    fn a_packet_without_proof_keeps_nobody_alive() {
        let mut peers = Peers::default();
        assert_eq!(peers.hear(seconds(1), &said(1, 1, 1, Some(seconds(1)))), Change::Live);
        assert_eq!(peers.hear(seconds(5), &said(1, 2, 1, None)), Change::None);
        assert!(!peers.expire(seconds(6)));
        assert!(peers.expire(seconds(7)));
        // Its numbers still count; a fresh proof brings it back.
        assert_eq!(peers.hear(seconds(8), &said(1, 2, 1, Some(seconds(8)))), Change::Old);
        assert_eq!(peers.hear(seconds(8), &said(1, 3, 1, None)), Change::Potential);
        assert_eq!(peers.hear(seconds(8), &said(1, 4, 1, Some(seconds(8)))), Change::Live);
        // By when its proof was sent, however late it came.
        assert_eq!(peers.hear(seconds(14), &said(1, 5, 1, Some(seconds(8)))), Change::None);
        assert!(!peers.expire(seconds(15)) && peers.expire(seconds(16)));
    }

    #[test]
    fn only_a_proved_newcomer_displaces_and_the_displaced_does_not() {
        let mut peers = Peers::default();
        peers.hear(seconds(1), &said(1, 9, 7, Some(seconds(1))));
        assert_eq!(peers.hear(seconds(1), &said(2, 1, 7, None)), Change::Potential);
        assert_eq!(live(&peers), [1]);
        assert_eq!(peers.hear(seconds(1), &said(2, 2, 7, Some(seconds(1)))), Change::Live);
        assert_eq!(live(&peers), [2]);
        assert_eq!(peers.hear(seconds(2), &said(1, 9, 7, Some(seconds(2)))), Change::Old);
        assert_eq!(peers.hear(seconds(2), &said(1, 10, 7, Some(seconds(2)))), Change::Potential);
        assert_eq!(live(&peers), [2]);
    }

    #[test]
    fn lists_are_bounded_and_potential_peers_make_room() {
        let mut peers = Peers::default();
        for member in 0..1000 {
            let sci = (member % 250) as u8;
            assert_eq!(peers.hear(seconds(1), &said(member, 1, sci, None)), Change::Potential);
        }
        assert_eq!(peers.listed(false).len(), MOST_PEERS);
        for member in 0..MOST_PEERS as u32 {
            let sci = member as u8;
            let said = said(2000 + member, 1, sci, Some(seconds(1)));
            assert_eq!(peers.hear(seconds(1), &said), Change::Live);
        }
        let one_more = said(3000, 1, 200, Some(seconds(1)));
        assert_eq!(peers.hear(seconds(1), &one_more), Change::TooMany);
    }

    #[test]
    fn restarts_without_end_are_refused_and_nothing_is_forgotten() {
        let mut peers = Peers::default();
        for life in 0..MOST_KNOWN as u32 {
            let said = said(life, 5, 1, Some(seconds(1)));
            assert_eq!(peers.hear(seconds(1), &said), Change::Live);
        }
        let next = said(MOST_KNOWN as u32, 1, 1, Some(seconds(1)));
        assert_eq!(peers.hear(seconds(1), &next), Change::TooMany);
        assert_eq!(peers.hear(seconds(1), &said(0, 5, 1, Some(seconds(1)))), Change::Old);
    }
}
