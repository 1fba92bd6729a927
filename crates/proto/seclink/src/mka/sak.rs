//! Secure association keys: the latest and the one before (IEEE 802.1X-2020 §9.8, §9.10).

use std::collections::BTreeSet;
use std::time::Duration;

use units::Time;
use wire::macsec::Sci;
use wire::mka::{KeyIdentifier, MemberIdentifier, SakUseKey};
use zeroize::Zeroizing;

use super::ledger::FirstUse;
use crate::macsec::{
    Association, Confidentiality, Extended, ReceiveAssociation, Suite, TransmitAssociation,
};
use crate::{KeyError, Secret};

/// How long the key before is kept (Table 9-3, SAK Retire Time).
pub(super) const RETIRE_TIME: Duration = Duration::from_secs(3);

/// An order to the data plane. Orders are in the sequence in which they are to be carried out.
///
/// A key leaves key agreement as an association for one channel, to receive or to send with, and never twice: neither
/// can be copied, and packet numbers begin where no other association of the key did.
#[derive(Debug)]
pub enum Action {
    /// Receive from a peer's channel with this key.
    Receive(Sci, ReceiveAssociation),
    /// Have this key for sending ([`Transmit::prepare`](crate::macsec::Transmit::prepare)), but do not send with it
    /// yet.
    Prepare(TransmitAssociation),
    /// Send with the key of this association number.
    Transmit(u8),
    /// Drop the key of this association number, of all channels.
    Remove(u8),
    /// Drop a peer's channel: the peer is gone, and so are its keys.
    RemovePeer(Sci),
}

/// A key as it was made or distributed.
pub(super) struct Parameters {
    pub(super) association: u8,
    pub(super) suite: Suite,
    pub(super) confidentiality: Confidentiality,
    pub(super) key: Zeroizing<Vec<u8>>,
    /// All members of the group that it was made for, this side and the key server among them.
    pub(super) members: Vec<(MemberIdentifier, Sci)>,
}

/// A key in use.
pub(super) struct Sak {
    pub(super) identifier: KeyIdentifier,
    pub(super) parameters: Parameters,
    /// Whether this side sends with it.
    pub(super) transmits: bool,
}

impl Sak {
    /// Puts a key to its first and only use: the association of the own channel to send with, those of the other
    /// members to receive with.
    pub(super) fn begin(
        first: FirstUse,
        parameters: Parameters,
        own: Sci,
    ) -> Result<(Self, Vec<Action>), KeyError> {
        let sak = Sak { identifier: first.identifier(), parameters, transmits: false };
        let channels = sak.parameters.members.iter().map(|(_, sci)| *sci);
        let receive = channels.filter(|sci| *sci != own).map(|sci| {
            let association = ReceiveAssociation::new(sak.association_of(sci), sci)?;
            Ok(Action::Receive(sci, association))
        });
        let mut actions = receive.collect::<Result<Vec<_>, KeyError>>()?;
        let transmit = TransmitAssociation::new(sak.association_of(own), own, 1)?;
        actions.push(Action::Prepare(transmit));
        Ok((sak, actions))
    }

    /// The key for a channel.
    fn association_of(&self, sci: Sci) -> Association {
        let Parameters { association, suite, confidentiality, key, members } = &self.parameters;
        let extended = suite
            .is_extended()
            .then(|| Extended { ssci: ssci(sci, members), salt: salt(self.identifier) });
        Association {
            number: *association,
            suite: *suite,
            key: Secret::new(key.to_vec()),
            extended,
            confidentiality: *confidentiality,
        }
    }

    fn has_channel(&self, sci: Sci) -> bool {
        self.parameters.members.iter().any(|(_, member)| *member == sci)
    }

    pub(super) fn in_use(&self, lowest_acceptable: u32) -> SakUseKey {
        SakUseKey {
            key: self.identifier,
            association: self.parameters.association,
            transmits: self.transmits,
            receives: true,
            lowest_acceptable,
        }
    }
}

/// The short name of a channel: the channels of a group count down from the highest, which is 1 (802.1AE
/// §10.7.13).
fn ssci(sci: Sci, members: &[(MemberIdentifier, Sci)]) -> u32 {
    let above = members.iter().filter(|(_, member)| *member > sci).count();
    u32::try_from(above).unwrap_or(u32::MAX).saturating_add(1)
}

/// The salt of a key: the key server's identifier, and in its first bytes by exclusive or the key's number, its
/// lower half first (802.1AE §10.7.8).
fn salt(key: KeyIdentifier) -> [u8; 12] {
    let mut salt = key.server.0;
    let number = key.number.rotate_left(16).to_be_bytes();
    salt.iter_mut().zip(number).for_each(|(byte, number)| *byte ^= number);
    salt
}

/// The keys of a participant.
#[derive(Default)]
pub(super) struct Saks {
    pub(super) latest: Option<Sak>,
    pub(super) old: Option<(Sak, Time)>,
    /// Channels that are received from.
    channels: BTreeSet<Sci>,
}

impl Saks {
    /// Has a new key. The one that is sent with is kept for a while, unless the new one takes its association
    /// number.
    pub(super) fn renew(&mut self, now: Time, sak: Sak, actions: &mut Vec<Action>) {
        self.channels.extend(sak.parameters.members.iter().map(|(_, sci)| *sci));
        let association = sak.parameters.association;
        let is_unused = self.latest.as_ref().is_some_and(|latest| !latest.transmits);
        let is_old_used = self.old.as_ref().is_some_and(|(old, _)| old.transmits);
        match self.latest.replace(sak) {
            // Nobody sends with a key that was replaced before all had it.
            Some(latest) if is_unused && is_old_used => {
                actions.push(Action::Remove(latest.parameters.association));
            }
            latest => {
                self.drop_old(actions);
                self.old = latest.map(|latest| (latest, now));
            }
        }
        if let Some((old, until)) = &mut self.old {
            *until = now + RETIRE_TIME;
            if old.parameters.association == association {
                self.drop_old(actions);
            }
        }
    }

    pub(super) fn retire(&mut self, now: Time, actions: &mut Vec<Action>) {
        // Not before the latest is sent with: frames of peers may still come with the one before.
        let is_replaced = self.latest.as_ref().is_some_and(|latest| latest.transmits);
        if is_replaced && self.old.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.drop_old(actions);
        }
    }

    /// Drops channels of which there is no key left. A channel outlives its peer's liveness, so that the packet
    /// numbers of a peer that comes back go on where they were.
    pub(super) fn sweep(&mut self, own: Sci, actions: &mut Vec<Action>) {
        let (latest, old) = (self.latest.as_ref(), self.old.as_ref().map(|(old, _)| old));
        let is_in_use = |sci| [latest, old].into_iter().flatten().any(|sak| sak.has_channel(sci));
        self.channels.retain(|sci| {
            let stays = is_in_use(*sci);
            if !stays && *sci != own {
                actions.push(Action::RemovePeer(*sci));
            }
            stays
        });
    }

    fn drop_old(&mut self, actions: &mut Vec<Action>) {
        if let Some((old, _)) = self.old.take() {
            actions.push(Action::Remove(old.parameters.association));
        }
    }

    /// Sends with the latest key. From now on the one before is kept for SAK Retire Time (§12.4).
    pub(super) fn transmit(&mut self, now: Time, actions: &mut Vec<Action>) {
        let Some(latest) = &mut self.latest else { return };
        latest.transmits = true;
        actions.push(Action::Transmit(latest.parameters.association));
        if let Some((old, until)) = &mut self.old {
            (old.transmits, *until) = (false, now + RETIRE_TIME);
        }
    }

    /// The key that this side sends with.
    pub(super) fn transmits_with(&self) -> Option<&Sak> {
        let old = self.old.as_ref().map(|(old, _)| old);
        [self.latest.as_ref(), old].into_iter().flatten().find(|sak| sak.transmits)
    }

    /// When the key before is dropped; `None` while the latest is not sent with.
    pub(super) fn next_retirement(&self) -> Option<Time> {
        self.latest.as_ref().filter(|latest| latest.transmits)?;
        self.old.as_ref().map(|(_, until)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_channel_has_the_first_short_name() {
        let members = [1, 3, 2].map(|byte| (MemberIdentifier([byte; 12]), Sci([byte; 8])));
        assert_eq!(members.map(|(_, sci)| ssci(sci, &members)), [3, 1, 2]);
    }

    #[test]
    fn the_salt_has_the_keys_number_in_its_first_bytes_lower_half_first() {
        let server = MemberIdentifier([0xf0; 12]);
        let salt = salt(KeyIdentifier { server, number: 0x0102_0304 });
        assert_eq!(salt[..5], [0xf3, 0xf4, 0xf1, 0xf2, 0xf0]);
    }
}
