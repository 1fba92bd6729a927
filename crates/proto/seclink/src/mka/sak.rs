//! Secure association keys: the latest and the one before (IEEE 802.1X-2020 §9.8, §9.10).

use std::time::Duration;

use units::Time;
use wire::macsec::Sci;
use wire::mka::{KeyIdentifier, SakUseKey};
use zeroize::Zeroizing;

use crate::Secret;
use crate::macsec::{Association, Confidentiality, Extended, Suite};

/// How long the key before is kept (Table 9-3, SAK Retire Time).
pub(super) const RETIRE_TIME: Duration = Duration::from_secs(3);

/// What the data plane has to do. Actions come in the order in which they are to be done.
#[derive(Debug)]
pub enum Action {
    /// Receive from a peer's channel with this key.
    Receive(Sci, Association),
    /// Have this key for sending, but do not send with it yet.
    Prepare(Association),
    /// Send with the key of this association number.
    Transmit(u8),
    /// Drop the key of this association number, of all channels.
    Remove(u8),
    /// Drop a peer's channel: the peer is gone.
    RemovePeer(Sci),
}

/// A key in use.
pub(super) struct Sak {
    pub(super) identifier: KeyIdentifier,
    pub(super) association: u8,
    pub(super) suite: Suite,
    pub(super) confidentiality: Confidentiality,
    pub(super) key: Zeroizing<Vec<u8>>,
    /// All channels of the group when it was distributed: of which extended numbers need the order.
    pub(super) members: Vec<Sci>,
    /// Whether this side sends with it.
    pub(super) transmits: bool,
}

impl Sak {
    /// The key for a channel.
    pub(super) fn association_of(&self, sci: Sci) -> Association {
        let extended = self
            .suite
            .is_extended()
            .then(|| Extended { ssci: ssci(sci, &self.members), salt: salt(self.identifier) });
        Association {
            number: self.association,
            suite: self.suite,
            key: Secret::new(self.key.to_vec()),
            extended,
            confidentiality: self.confidentiality,
        }
    }

    pub(super) fn in_use(&self, lowest_acceptable: u32) -> SakUseKey {
        SakUseKey {
            key: self.identifier,
            association: self.association,
            transmits: self.transmits,
            receives: true,
            lowest_acceptable,
        }
    }
}

/// The short name of a channel: the channels of a group count down from the highest, which is 1 (802.1AE
/// §10.7.13).
fn ssci(sci: Sci, members: &[Sci]) -> u32 {
    let above = members.iter().filter(|member| **member > sci).count();
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
}

impl Saks {
    /// A new key: the one before is kept for a while, unless the new one takes its association number.
    pub(super) fn renew(&mut self, now: Time, sak: Sak, actions: &mut Vec<Action>) {
        self.drop_old(actions);
        let association = sak.association;
        self.old = self.latest.replace(sak).map(|old| (old, now + RETIRE_TIME));
        if self.old.as_ref().is_some_and(|(old, _)| old.association == association) {
            self.drop_old(actions);
        }
    }

    pub(super) fn retire(&mut self, now: Time, actions: &mut Vec<Action>) {
        // Not before the latest is sent with: frames of peers may still come with the one before.
        let is_replaced = self.latest.as_ref().is_some_and(|latest| latest.transmits);
        if is_replaced && self.old.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.drop_old(actions);
        }
    }

    fn drop_old(&mut self, actions: &mut Vec<Action>) {
        if let Some((old, _)) = self.old.take() {
            actions.push(Action::Remove(old.association));
        }
    }

    pub(super) fn next_retirement(&self) -> Option<Time> {
        self.old.as_ref().map(|(_, until)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::mka::MemberIdentifier;

    #[test]
    fn the_highest_channel_has_the_first_short_name() {
        let members = [Sci([1; 8]), Sci([3; 8]), Sci([2; 8])];
        assert_eq!(members.map(|sci| ssci(sci, &members)), [3, 1, 2]);
    }

    #[test]
    fn the_salt_has_the_keys_number_in_its_first_bytes_lower_half_first() {
        let server = MemberIdentifier([0xf0; 12]);
        let salt = salt(KeyIdentifier { server, number: 0x0102_0304 });
        assert_eq!(salt[..5], [0xf3, 0xf4, 0xf1, 0xf2, 0xf0]);
    }
}
