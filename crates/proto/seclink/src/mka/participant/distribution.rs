//! Keys of a group: made, distributed, taken (IEEE 802.1X-2020 §9.8).

use std::collections::BTreeSet;

use units::Time;
use wire::macsec::Sci;
use wire::mka::{Basic, DistributedSak, KeyIdentifier, Known, MemberIdentifier};

use super::Participant;
use crate::macsec::Suite;
use crate::mka::identity::Identity;
use crate::mka::sak::{Parameters, Sak};
use crate::mka::{Randomness, Rejected};

/// Bytes of the nonce of which a key is made.
const NONCE_LEN: usize = 32;

impl Participant {
    /// Takes a key from the key server, if that names this member as live (§9.8.2).
    pub(super) fn take_key(
        &mut self,
        now: Time,
        basic: &Basic<'_>,
        sak: &DistributedSak<'_>,
        known: &[Known<'_>],
    ) -> Result<(), Rejected> {
        let identifier = KeyIdentifier { server: basic.member, number: sak.key_number };
        if self.saks.latest.as_ref().is_some_and(|latest| latest.identifier == identifier) {
            return Ok(());
        }
        let is_live = self.peers.live().any(|(member, _)| member == basic.member);
        if !is_live || !self.is_elected(basic.member) {
            return Err(Rejected::NotKeyServer);
        }
        let live = known.iter().filter_map(|set| match set {
            Known::Live(list) => Some(*list),
            _ => None,
        });
        if !live.clone().any(|list| self.named_in(now, list).is_some()) {
            return Err(Rejected::NotNamed);
        }
        let suite = match sak.cipher_suite {
            None => Some(Suite::GcmAes128),
            Some(identifier) => Suite::of_identifier(identifier),
        };
        let suite = suite.filter(|suite| suite.can(sak.confidentiality).is_ok());
        let suite = suite.ok_or(Rejected::BadKey)?;
        let key = self.keys.unwrap(sak.wrapped).filter(|key| key.len() == suite.key_len());
        let key = key.ok_or(Rejected::BadKey)?;
        let channel_of = |member: MemberIdentifier| match member == self.identity.member {
            true => Some((member, self.sci)),
            false => self.peers.sci_of(member).map(|sci| (member, sci)),
        };
        let members = live.flat_map(|list| list.iter()).map(|peer| peer.member);
        let members: Option<Vec<_>> =
            std::iter::once(basic.member).chain(members).map(channel_of).collect();
        let members = members.ok_or(Rejected::UnknownMember)?;
        let channels: BTreeSet<Sci> = members.iter().map(|(_, sci)| *sci).collect();
        if channels.len() != members.len() {
            return Err(Rejected::SharedChannel);
        }
        let (association, confidentiality) = (sak.association, sak.confidentiality);
        let parameters = Parameters { association, suite, confidentiality, key, members };
        let taken = self.install(now, identifier, parameters);
        if taken == Err(Rejected::UsedKey) {
            // The key server was gone from here and is back with a key of before. For a fresh member it makes a fresh
            // key.
            self.begins_again = true;
            self.next_hello = now;
        }
        taken
    }

    /// Whether a member would be elected key server of all that are live.
    fn is_elected(&self, member: MemberIdentifier) -> bool {
        let own = (self.identity.member, self.priority, self.sci);
        let peers = self.peers.live().map(|(member, peer)| (member, peer.priority, peer.sci));
        let candidates = peers.chain([own]).filter(|(_, priority, _)| *priority != u8::MAX);
        let elected = candidates.min_by_key(|(_, priority, sci)| (*priority, *sci));
        elected.is_some_and(|(elected, _, _)| elected == member)
    }

    /// Has a new latest key, for all channels of the group, unless it was ever in use.
    fn install(
        &mut self,
        now: Time,
        identifier: KeyIdentifier,
        parameters: Parameters,
    ) -> Result<(), Rejected> {
        let mark = self.keys.mark(&parameters.key).ok_or(Rejected::BadKey)?;
        let first = self.ledger.first_use(identifier, mark)?;
        let begun = Sak::begin(first, parameters, self.sci);
        let (sak, begin) = begun.map_err(|_| Rejected::BadKey)?;
        self.association = Some(sak.parameters.association);
        self.lowest_acceptable = 1;
        self.saks.renew(now, sak, &mut self.actions);
        self.actions.extend(begin);
        self.next_hello = now;
        Ok(())
    }

    /// Whether this member has to make a key (§9.8): on request, for a member that came, in place of another server's, or
    /// where the latest can no longer be distributed.
    pub(super) fn needs_key(&self) -> bool {
        if !self.is_key_server() || self.peers.live().next().is_none() {
            return false;
        }
        let Some(latest) = &self.saks.latest else { return true };
        let is_ours = latest.identifier.server == self.identity.member;
        self.is_key_due || !is_ours || (self.is_wanted(latest) && !self.is_for_the_live(latest))
    }

    /// Whether a live member does not receive with this key.
    fn is_wanted(&self, sak: &Sak) -> bool {
        self.peers.live().any(|(_, peer)| peer.receives != Some(sak.identifier))
    }

    /// Whether this key was made for the members that are live, and for no other. Short names of channels follow from
    /// the live list of the packet that distributes a key: it must be the same in all of them (§9.10).
    fn is_for_the_live(&self, sak: &Sak) -> bool {
        let made_for: BTreeSet<_> =
            sak.parameters.members.iter().map(|(member, _)| *member).collect();
        made_for == self.live_members().map(|(member, _)| member).collect()
    }

    /// The association number of the next key: the one after the last that no live member sends with. So the keys in use
    /// stay until the next is sent with, also those of a group that was apart.
    fn next_association(&self) -> u8 {
        let own = self.saks.transmits_with().map(|sak| sak.parameters.association);
        let of_peers = self.peers.live().filter_map(|(_, peer)| peer.association);
        let in_use: BTreeSet<u8> = of_peers.chain(own).collect();
        let next = self.association.map_or(0, |last| last.wrapping_add(1));
        let mut candidates = (0..4).map(|further| next.wrapping_add(further) & 3);
        candidates.find(|candidate| !in_use.contains(candidate)).unwrap_or(next & 3)
    }

    /// This member and the live ones, with their channels.
    fn live_members(&self) -> impl Iterator<Item = (MemberIdentifier, Sci)> {
        let own = (self.identity.member, self.sci);
        self.peers.live().map(|(member, peer)| (member, peer.sci)).chain([own])
    }

    pub(super) fn make_key(&mut self, now: Time, random: &mut dyn Randomness) {
        let Some(number) = self.key_number.checked_add(1) else {
            // Key numbers rise under an identifier: after the last one this member needs another (§9.8).
            (self.identity, self.key_number) = (Identity::draw(random), 0);
            return;
        };
        let mut nonce = zeroize::Zeroizing::new([0; NONCE_LEN]);
        random.fill(&mut *nonce);
        let members: Vec<_> = self.live_members().collect();
        let named: Vec<MemberIdentifier> = members.iter().map(|(member, _)| *member).collect();
        let key = self.keys.sak(&*nonce, &named, number, self.suite.key_len());
        let Some(key) = key else { return };
        let parameters = Parameters {
            association: self.next_association(),
            suite: self.suite,
            confidentiality: self.confidentiality,
            key,
            members,
        };
        let identifier = KeyIdentifier { server: self.identity.member, number };
        self.key_number = number;
        // Without room in the ledger there is no further key: the members keep the one they have.
        self.is_key_due = self.install(now, identifier, parameters).is_err();
    }

    /// The wrapped latest key, where this member made it for those who are live and not all receive with it yet.
    pub(super) fn to_be_distributed(&self) -> Option<(&Sak, Vec<u8>)> {
        let latest = self.saks.latest.as_ref()?;
        let is_ours = latest.identifier.server == self.identity.member && self.is_key_server();
        let is_due = is_ours && self.is_wanted(latest) && self.is_for_the_live(latest);
        let wrapped = is_due.then(|| self.keys.wrap(&latest.parameters.key))??;
        Some((latest, wrapped))
    }
}
