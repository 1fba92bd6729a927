//! A member of a group: hears, elects, makes or takes keys, and says so (IEEE 802.1X-2020 §9.4 to §9.10).

mod distribution;

use std::time::Duration;

use units::Time;
use wire::macsec::Sci;
use wire::mka::{
    AGILITY, Basic, Capability, DistributedSak, KeyIdentifier, Known, MemberIdentifier, Repr,
    SakUse, Xpn,
};

use super::identity::Identity;
use super::keys::Keys;
use super::ledger::Ledger;
use super::peers::{Change, Peers, Said};
use super::sak::{Action, Saks};
use super::{Cak, Randomness, Rejected, frame};
use crate::KeyError;
use crate::macsec::{Confidentiality, Suite};

/// How often a member says that it is there (Table 9-3, MKA Hello Time).
pub(super) const HELLO_TIME: Duration = Duration::from_secs(2);

/// The version of MKA that is spoken (802.1X-2020).
const VERSION: u8 = 3;

/// Packet numbers from which on a fresh key is due (Table 9-3, PendingPNExhaustion).
const PENDING_EXHAUSTION: u64 = 0xc000_0000;
/// The same of extended packet numbers.
const PENDING_EXTENDED_EXHAUSTION: u64 = PENDING_EXHAUSTION << 32;

/// Who a member is and what it wants.
#[derive(Debug)]
pub struct Settings {
    /// Its secure channel; the first six bytes are its address.
    pub sci: Sci,
    /// The group's key.
    pub cak: Cak,
    /// The less, the rather it is elected key server; 255: never (§9.5).
    pub priority: u8,
    /// The cipher suite that it distributes as key server.
    pub suite: Suite,
    /// What is encrypted with such keys.
    pub confidentiality: Confidentiality,
}

/// A member of a group.
pub struct Participant {
    sci: Sci,
    priority: u8,
    suite: Suite,
    confidentiality: Confidentiality,
    keys: Keys,
    identity: Identity,
    peers: Peers,
    ledger: Ledger,
    saks: Saks,
    /// The number of the last key that this member made.
    key_number: u32,
    /// The association number of the group's last key.
    association: Option<u8>,
    /// Whether a fresh key is due, should this member be the key server.
    is_key_due: bool,
    /// Whether this member is to have a fresh identifier.
    begins_again: bool,
    /// When the next packet leaves.
    next_hello: Time,
    /// The lowest packet number that this side takes with the latest key.
    lowest_acceptable: u64,
    actions: Vec<Action>,
}

impl Participant {
    /// A member that begins.
    ///
    /// # Errors
    /// The cipher suite has no such confidentiality.
    pub fn new(
        settings: &Settings,
        now: Time,
        random: &mut dyn Randomness,
    ) -> Result<Self, KeyError> {
        let Settings { sci, cak, priority, suite, confidentiality } = settings;
        suite.can(*confidentiality)?;
        Ok(Participant {
            sci: *sci,
            priority: *priority,
            suite: *suite,
            confidentiality: *confidentiality,
            keys: Keys::of(cak)?,
            identity: Identity::draw(random),
            peers: Peers::default(),
            ledger: Ledger::default(),
            saks: Saks::default(),
            key_number: 0,
            association: None,
            is_key_due: false,
            begins_again: false,
            next_hello: now,
            lowest_acceptable: 1,
            actions: Vec::new(),
        })
    }

    /// Whether this member is the key server: of all that are live the one of least priority, then of the lowest
    /// channel (§9.5).
    #[must_use]
    pub fn is_key_server(&self) -> bool {
        self.priority != u8::MAX
            && self.peers.live().all(|(_, peer)| {
                peer.priority == u8::MAX || (self.priority, self.sci) < (peer.priority, peer.sci)
            })
    }

    /// The channels of the members that are live, this one not among them.
    pub fn live_peers(&self) -> impl Iterator<Item = Sci> {
        self.peers.live().map(|(_, peer)| peer.sci)
    }

    /// The key that this side sends with, if there is one.
    #[must_use]
    pub fn transmits_with(&self) -> Option<KeyIdentifier> {
        self.saks.transmits_with().map(|sak| sak.identifier)
    }

    /// Asks for a fresh key: packet numbers are going to end (§9.8), or it has been in use for long enough. Only the
    /// key server makes one.
    pub fn rekey(&mut self, now: Time) {
        self.is_key_due = true;
        self.next_hello = self.next_hello.min(now);
    }

    /// Takes the data plane's packet numbers of an association: the lowest that it accepts, which others are told, and
    /// the next that it sends. Near their end the key server makes a fresh key (§9.8). Only the latest key's count.
    pub fn set_packet_numbers(
        &mut self,
        now: Time,
        association: u8,
        lowest_acceptable: u64,
        next_sent: u64,
    ) {
        let latest = self.saks.latest.as_ref();
        if latest.is_some_and(|latest| latest.parameters.association == association) {
            self.lowest_acceptable = lowest_acceptable;
            self.note_numbers(now, lowest_acceptable.max(next_sent));
        }
    }

    fn note_numbers(&mut self, now: Time, highest: u64) {
        let Some(latest) = &self.saks.latest else { return };
        let pending = match latest.parameters.suite.is_extended() {
            false => PENDING_EXHAUSTION,
            true => PENDING_EXTENDED_EXHAUSTION,
        };
        if highest >= pending && latest.identifier.server == self.identity.member {
            self.rekey(now);
        }
    }

    /// What the data plane has to do, in order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// When [`Participant::poll`] is to be called at the latest.
    #[must_use]
    pub fn next_timeout(&self) -> Time {
        let others = [self.peers.next_expiry(), self.saks.next_retirement()];
        others.into_iter().flatten().fold(self.next_hello, Time::min)
    }

    /// Takes a frame that came.
    ///
    /// # Errors
    /// It is passed over, and why.
    pub fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), Rejected> {
        let (packet, covered) = frame::parse(bytes)?;
        let basic = packet.basic();
        if basic.ckn != self.keys.name() {
            return Err(Rejected::OtherGroup);
        }
        if basic.agility != AGILITY {
            return Err(Rejected::Agility);
        }
        if !self.keys.is_authentic(covered, packet.icv()) {
            return Err(Rejected::NotAuthentic);
        }
        if basic.member == self.identity.member || basic.sci == self.sci {
            // Another member, or an earlier life, with this identifier: it is not unique (§9.4.2).
            let is_ahead = basic.message_number > self.identity.message_number;
            self.begins_again |= basic.member == self.identity.member && is_ahead;
            return Err(Rejected::Own);
        }
        let known: Result<Vec<Known<'_>>, wire::Error> =
            packet.sets().map(|set| Known::parse(&set?)).collect();
        let known = known.map_err(Rejected::Malformed)?;
        self.hear(now, &basic, &known)?;
        for set in &known {
            match set {
                Known::SakUse(used) => self.note_use(now, basic.member, used, &known),
                Known::Sak(sak) => self.take_key(now, &basic, sak, &known)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// When this side sent the latest of its packets that a list names, if that is acceptably recent (§9.4.3).
    fn named_in(&self, now: Time, list: wire::mka::Peers<'_>) -> Option<Time> {
        let own = list.iter().filter(|peer| peer.member == self.identity.member);
        own.filter_map(|peer| self.identity.recently_sent(now, peer.message_number)).max()
    }

    fn hear(&mut self, now: Time, basic: &Basic<'_>, known: &[Known<'_>]) -> Result<(), Rejected> {
        let lists = known.iter().filter_map(|set| match set {
            Known::Live(list) | Known::Potential(list) => Some(*list),
            _ => None,
        });
        let said = Said {
            member: basic.member,
            message_number: basic.message_number,
            sci: basic.sci,
            priority: basic.priority,
            named: lists.filter_map(|list| self.named_in(now, list)).max(),
        };
        match self.peers.hear(now, &said) {
            Change::Old => Err(Rejected::Replayed),
            Change::TooMany => Err(Rejected::TooManyPeers),
            Change::Live => {
                // A fresh key for a fresh member (§9.8), if this side makes it.
                self.is_key_due = true;
                self.next_hello = now;
                Ok(())
            }
            Change::Potential => {
                // It waits to be named; old packets of many lives are not answered one by one.
                if self.identity.is_quiet(now) {
                    self.next_hello = self.next_hello.min(now);
                }
                Ok(())
            }
            Change::None => Ok(()),
        }
    }

    /// What a member says of the keys that it uses.
    fn note_use(
        &mut self,
        now: Time,
        member: MemberIdentifier,
        used: &SakUse,
        known: &[Known<'_>],
    ) {
        let Some(peer) = self.peers.get_live_mut(member) else { return };
        let said = |is_it: bool| is_it.then_some(used.latest.key);
        (peer.receives, peer.transmits) = (said(used.latest.receives), said(used.latest.transmits));
        let in_use = [used.latest, used.old].into_iter().find(|key| key.transmits);
        peer.association = in_use.map(|key| key.association);
        if self.saks.latest.is_none() && used.latest.key != KeyIdentifier::default() {
            // Who makes the next key does not take the number of the one in use.
            self.association = Some(used.latest.association);
        }
        if self.saks.latest.as_ref().is_some_and(|latest| latest.identifier == used.latest.key) {
            let upper = known.iter().find_map(|set| match set {
                Known::Xpn(xpn) => Some(xpn.latest),
                _ => None,
            });
            let lowest =
                u64::from(upper.unwrap_or(0)) << 32 | u64::from(used.latest.lowest_acceptable);
            self.note_numbers(now, lowest);
        }
        self.consider_transmitting(now);
    }

    /// Sends with the latest key as soon as it may: the key server when all receive with it, the others
    /// when the key server sends with it (§9.10).
    fn consider_transmitting(&mut self, now: Time) {
        let Some(latest) = &self.saks.latest else { return };
        if latest.transmits {
            return;
        }
        let identifier = latest.identifier;
        let is_ours = identifier.server == self.identity.member;
        let may = if is_ours {
            let mut live = self.peers.live().peekable();
            live.peek().is_some() && live.all(|(_, peer)| peer.receives == Some(identifier))
        } else {
            self.peers.live().any(|(member, peer)| {
                member == identifier.server && peer.transmits == Some(identifier)
            })
        };
        if !may {
            return;
        }
        self.saks.transmit(now, &mut self.actions);
        self.next_hello = now;
    }

    /// Does what is due, and gives the next packet to be sent, a whole frame. To be called until it gives none.
    pub fn poll(&mut self, now: Time, random: &mut dyn Randomness) -> Option<Vec<u8>> {
        if self.peers.expire(now) {
            self.consider_transmitting(now);
        }
        self.saks.retire(now, &mut self.actions);
        self.saks.sweep(self.sci, &mut self.actions);
        if self.needs_key() {
            self.make_key(now, random);
        }
        if self.next_hello > now {
            return None;
        }
        self.next_hello = now + HELLO_TIME;
        if std::mem::take(&mut self.begins_again) {
            self.identity = Identity::draw(random);
        }
        self.identity.count(now, random);
        self.packet()
    }

    /// This member's packet, as it stands.
    fn packet(&self) -> Option<Vec<u8>> {
        let (live, potential) = (self.peers.listed(true), self.peers.listed(false));
        let distributed = self.to_be_distributed();
        let sak = distributed.as_ref().map(|(sak, wrapped)| DistributedSak {
            association: sak.parameters.association,
            confidentiality: sak.parameters.confidentiality,
            key_number: sak.identifier.number,
            cipher_suite: match sak.parameters.suite {
                Suite::GcmAes128 => None,
                other => Some(other.identifier()),
            },
            wrapped,
        });
        let latest = self.saks.latest.as_ref();
        let lowest = self.lowest_acceptable;
        let repr = Repr {
            basic: Basic {
                version: VERSION,
                priority: self.priority,
                is_key_server: self.is_key_server(),
                wants_macsec: true,
                capability: Capability::ConfidentialityOffsets,
                sci: self.sci,
                member: self.identity.member,
                message_number: self.identity.message_number,
                agility: AGILITY,
                ckn: self.keys.name(),
            },
            live: &live,
            potential: &potential,
            sak_use: latest.map(|latest| SakUse {
                latest: latest.in_use(lowest as u32),
                old: self.saks.old.as_ref().map(|(old, _)| old.in_use(1)).unwrap_or_default(),
                ..SakUse::default()
            }),
            sak,
            xpn: latest
                .filter(|latest| latest.parameters.suite.is_extended())
                .map(|_| Xpn { latest: (lowest >> 32) as u32, ..Xpn::default() }),
        };
        frame::emit(&self.keys, &repr)
    }
}
