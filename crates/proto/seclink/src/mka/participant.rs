//! A member of a group: hears, elects, makes or takes keys, and says so (IEEE 802.1X-2020 §9.4 to §9.10).

use std::borrow::Cow;
use std::time::Duration;

use fault::{Explain, Fault};
use thiserror::Error;
use units::Time;
use wire::macsec::Sci;
use wire::mka::{
    AGILITY, Basic, Capability, DistributedSak, KeyIdentifier, Known, MemberIdentifier, Repr,
    SakUse, Xpn,
};

use super::frame;
use super::keys::Keys;
use super::peers::{Change, Peers, Said};
use super::sak::{Action, Sak, Saks};
use super::{Cak, Randomness};
use crate::KeyError;
use crate::macsec::{Confidentiality, Suite};

/// How often a member says that it is there (Table 9-3, MKA Hello Time).
const HELLO_TIME: Duration = Duration::from_secs(2);

/// The version of MKA that is spoken (802.1X-2020).
const VERSION: u8 = 3;

/// Bytes of the nonce of which a key is made.
const NONCE_LEN: usize = 32;

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
    /// It is this member's own, back by a loop.
    #[error("this side's own packet came back")]
    Own,
    /// It was heard before, or after one that followed it.
    #[error("a packet that was sent before one already heard")]
    Replayed,
    /// The group has more members than are remembered.
    #[error("more members than are remembered")]
    TooManyPeers,
    /// It distributes a key and is not the key server.
    #[error("a key from a member that is not the key server")]
    NotKeyServer,
    /// It distributes a key to a member that was not heard here yet, whose channel is not known so far.
    #[error("a key for a group of which a member was not heard yet")]
    UnknownMember,
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
            _ => None,
        }
    }
}

/// A member of a group.
pub struct Participant {
    sci: Sci,
    priority: u8,
    suite: Suite,
    confidentiality: Confidentiality,
    keys: Keys,
    member: MemberIdentifier,
    message_number: u32,
    peers: Peers,
    saks: Saks,
    /// The number of the last key that this member made.
    key_number: u32,
    /// The association number of the group's last key.
    association: Option<u8>,
    /// Whether a fresh key is due, should this member be the key server.
    is_key_due: bool,
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
        let mut member = MemberIdentifier::default();
        random.fill(&mut member.0);
        Ok(Participant {
            sci: *sci,
            priority: *priority,
            suite: *suite,
            confidentiality: *confidentiality,
            keys: Keys::of(cak)?,
            member,
            message_number: 0,
            peers: Peers::default(),
            saks: Saks::default(),
            key_number: 0,
            association: None,
            is_key_due: false,
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
        let current = [self.saks.latest.as_ref(), self.saks.old.as_ref().map(|(old, _)| old)];
        current.into_iter().flatten().find(|sak| sak.transmits).map(|sak| sak.identifier)
    }

    /// Asks for a fresh key: packet numbers are going to end (§9.8), or it has been in use for long enough. Only the
    /// key server makes one.
    pub fn rekey(&mut self, now: Time) {
        self.is_key_due = true;
        self.next_hello = self.next_hello.min(now);
    }

    /// The lowest packet number that the data plane takes with the latest key, to be said to others.
    pub fn set_lowest_acceptable(&mut self, number: u64) {
        self.lowest_acceptable = number;
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
        if basic.member == self.member {
            return Err(Rejected::Own);
        }
        let known: Result<Vec<Known<'_>>, wire::Error> =
            packet.sets().map(|set| Known::parse(&set?)).collect();
        let known = known.map_err(Rejected::Malformed)?;
        self.hear(now, &basic, &known)?;
        for set in &known {
            match set {
                Known::SakUse(used) => self.note_use(now, basic.member, used),
                Known::Sak(sak) => {
                    let live = known.iter().filter_map(|set| match set {
                        Known::Live(peers) => Some(peers.iter().map(|peer| peer.member)),
                        _ => None,
                    });
                    let members: Vec<MemberIdentifier> = live.flatten().collect();
                    self.take_key(now, &basic, sak, &members)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn hear(&mut self, now: Time, basic: &Basic<'_>, known: &[Known<'_>]) -> Result<(), Rejected> {
        let names_us = known.iter().any(|set| match set {
            Known::Live(peers) | Known::Potential(peers) => {
                // A number that was never sent is nobody's hearing (§9.4.3).
                let is_us = |peer: wire::mka::Peer| {
                    peer.member == self.member && peer.message_number <= self.message_number
                };
                peers.iter().any(is_us)
            }
            _ => false,
        });
        let said = Said {
            member: basic.member,
            message_number: basic.message_number,
            sci: basic.sci,
            priority: basic.priority,
            names_us,
        };
        match self.peers.hear(now, &said) {
            Change::Old => Err(Rejected::Replayed),
            Change::TooMany => Err(Rejected::TooManyPeers),
            Change::Live => {
                // A fresh key for a fresh member (§9.8), if this side makes it; until then the latest.
                self.is_key_due = true;
                if let Some(latest) = &self.saks.latest
                    && latest.members.contains(&basic.sci)
                {
                    let key = latest.association_of(basic.sci);
                    self.actions.push(Action::Receive(basic.sci, key));
                }
                self.next_hello = now;
                Ok(())
            }
            Change::None => {
                if !names_us {
                    // It waits to be named.
                    self.next_hello = self.next_hello.min(now);
                }
                Ok(())
            }
        }
    }

    /// What a member says of the keys that it uses.
    fn note_use(&mut self, now: Time, member: MemberIdentifier, used: &SakUse) {
        let Some(peer) = self.peers.get_mut(member) else { return };
        let said = |is_it: bool| is_it.then_some(used.latest.key);
        (peer.receives, peer.transmits) = (said(used.latest.receives), said(used.latest.transmits));
        if self.saks.latest.is_none() && used.latest.key != KeyIdentifier::default() {
            // Who makes the next key does not take the number of the one in use.
            self.association = Some(used.latest.association);
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
        let is_ours = identifier.server == self.member;
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
        if let Some(latest) = &mut self.saks.latest {
            latest.transmits = true;
            self.actions.push(Action::Transmit(latest.association));
        }
        if let Some((old, _)) = &mut self.saks.old {
            old.transmits = false;
        }
        self.next_hello = now;
    }

    /// A key from another member, which is taken if that one is the key server (§9.8.2). `live`: its live peers.
    fn take_key(
        &mut self,
        now: Time,
        basic: &Basic<'_>,
        sak: &DistributedSak<'_>,
        live: &[MemberIdentifier],
    ) -> Result<(), Rejected> {
        let identifier = KeyIdentifier { server: basic.member, number: sak.key_number };
        if self.saks.latest.as_ref().is_some_and(|latest| latest.identifier == identifier) {
            return Ok(());
        }
        let is_live = self.peers.live().any(|(member, _)| member == basic.member);
        if !is_live || !self.is_elected(basic.member) {
            return Err(Rejected::NotKeyServer);
        }
        let suite = match sak.cipher_suite {
            None => Some(Suite::GcmAes128),
            Some(identifier) => Suite::of_identifier(identifier),
        };
        let suite = suite.ok_or(Rejected::BadKey)?;
        let key = self.keys.unwrap(sak.wrapped).filter(|key| key.len() == suite.key_len());
        let key = key.ok_or(Rejected::BadKey)?;
        let sci_of = |member: &MemberIdentifier| match *member == self.member {
            true => Some(self.sci),
            false => self.peers.get(*member).map(|peer| peer.sci),
        };
        let members: Option<Vec<Sci>> = [basic.member].iter().chain(live).map(sci_of).collect();
        let members = members.ok_or(Rejected::UnknownMember)?;
        let association = sak.association;
        let sak = Sak {
            identifier,
            association,
            suite,
            confidentiality: sak.confidentiality,
            key,
            members,
            transmits: false,
        };
        self.install(now, sak);
        Ok(())
    }

    /// Whether a member would be elected key server of all that are live.
    fn is_elected(&self, member: MemberIdentifier) -> bool {
        let own = (self.member, self.priority, self.sci);
        let peers = self.peers.live().map(|(member, peer)| (member, peer.priority, peer.sci));
        let candidates = peers.chain([own]).filter(|(_, priority, _)| *priority != u8::MAX);
        let elected = candidates.min_by_key(|(_, priority, sci)| (*priority, *sci));
        elected.is_some_and(|(elected, _, _)| elected == member)
    }

    /// Has a new latest key, for all channels of the group.
    fn install(&mut self, now: Time, sak: Sak) {
        self.association = Some(sak.association);
        self.lowest_acceptable = 1;
        self.saks.renew(now, sak, &mut self.actions);
        if let Some(sak) = &self.saks.latest {
            let others = sak.members.iter().filter(|sci| **sci != self.sci);
            let receive = others.map(|sci| Action::Receive(*sci, sak.association_of(*sci)));
            self.actions.extend(receive);
            self.actions.push(Action::Prepare(sak.association_of(self.sci)));
        }
        self.next_hello = now;
    }

    /// Does what is due, and gives the next packet to be sent, a whole frame. To be called until it gives none.
    pub fn poll(&mut self, now: Time, random: &mut dyn Randomness) -> Option<Vec<u8>> {
        let live: Vec<Sci> = self.live_peers().collect();
        if self.peers.expire(now) {
            let left: Vec<Sci> = self.live_peers().collect();
            let gone = live.into_iter().filter(|sci| !left.contains(sci));
            self.actions.extend(gone.map(Action::RemovePeer));
            self.consider_transmitting(now);
        }
        self.saks.retire(now, &mut self.actions);
        if self.is_key_due && self.is_key_server() && self.live_peers().next().is_some() {
            self.make_key(now, random);
        }
        if self.next_hello > now {
            return None;
        }
        self.next_hello = now + HELLO_TIME;
        // A member that ran out of numbers would begin again as another (§9.4.2).
        match self.message_number.checked_add(1) {
            Some(next) => self.message_number = next,
            None => {
                random.fill(&mut self.member.0);
                self.message_number = 1;
            }
        }
        self.packet()
    }

    fn make_key(&mut self, now: Time, random: &mut dyn Randomness) {
        self.is_key_due = false;
        let mut nonce = zeroize::Zeroizing::new([0; NONCE_LEN]);
        random.fill(&mut *nonce);
        let members: Vec<MemberIdentifier> =
            self.peers.live().map(|(member, _)| member).chain([self.member]).collect();
        let number = self.key_number.saturating_add(1);
        let key = self.keys.sak(&*nonce, &members, number, self.suite.key_len());
        let Some(key) = key else { return };
        self.key_number = number;
        let members = self.live_peers().chain([self.sci]).collect();
        let association = self.association.map_or(0, |last| last.wrapping_add(1) & 3);
        self.install(
            now,
            Sak {
                identifier: KeyIdentifier { server: self.member, number },
                association,
                suite: self.suite,
                confidentiality: self.confidentiality,
                key,
                members,
                transmits: false,
            },
        );
    }

    /// The wrapped latest key, where this member made it and not all receive with it yet.
    fn to_be_distributed(&self) -> Option<(&Sak, Vec<u8>)> {
        let latest = self.saks.latest.as_ref()?;
        let is_ours = latest.identifier.server == self.member && self.is_key_server();
        let is_wanted = self.peers.live().any(|(_, peer)| peer.receives != Some(latest.identifier));
        let wrapped = (is_ours && is_wanted).then(|| self.keys.wrap(&latest.key))??;
        Some((latest, wrapped))
    }

    /// This member's packet, as it stands.
    fn packet(&self) -> Option<Vec<u8>> {
        let (live, potential) = (self.peers.listed(true), self.peers.listed(false));
        let distributed = self.to_be_distributed();
        let sak = distributed.as_ref().map(|(sak, wrapped)| DistributedSak {
            association: sak.association,
            confidentiality: sak.confidentiality,
            key_number: sak.identifier.number,
            cipher_suite: (sak.suite != Suite::GcmAes128).then(|| sak.suite.identifier()),
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
                member: self.member,
                message_number: self.message_number,
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
                .filter(|latest| latest.suite.is_extended())
                .map(|_| Xpn { latest: (lowest >> 32) as u32, ..Xpn::default() }),
        };
        frame::emit(&self.keys, &repr)
    }
}
