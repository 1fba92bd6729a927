//! A member's own identifier and the packets sent under it (IEEE 802.1X-2020 §9.4.2).

use std::collections::VecDeque;

use units::Time;
use wire::mka::MemberIdentifier;

use super::Randomness;
use super::peers::LIFE_TIME;

/// Packets whose times are remembered: a member sends a few a second at most.
const MOST_SENT: usize = 256;

/// Packets within MKA Life Time after which unknown members are no longer answered at once.
const MOST_ANSWERS: usize = 64;

/// A member identifier with its message numbers.
pub(super) struct Identity {
    pub(super) member: MemberIdentifier,
    pub(super) message_number: u32,
    /// Times of the last packets, that of `message_number` last.
    sent: VecDeque<Time>,
}

impl Identity {
    /// A fresh identifier, under which nothing was sent.
    pub(super) fn draw(random: &mut dyn Randomness) -> Self {
        let mut member = MemberIdentifier::default();
        random.fill(&mut member.0);
        Identity { member, message_number: 0, sent: VecDeque::new() }
    }

    /// Counts a packet that leaves now. After its last number the member has a fresh identifier (§9.4.2).
    pub(super) fn count(&mut self, now: Time, random: &mut dyn Randomness) {
        match self.message_number.checked_add(1) {
            Some(next) => self.message_number = next,
            None => *self = Identity { message_number: 1, ..Identity::draw(random) },
        }
        self.sent.push_back(now);
        if self.sent.len() > MOST_SENT {
            self.sent.pop_front();
        }
    }

    /// When the packet of this number left, if that is acceptably recent (§9.4.3): within MKA Life Time.
    pub(super) fn recently_sent(&self, now: Time, message_number: u32) -> Option<Time> {
        let back = usize::try_from(self.message_number.checked_sub(message_number)?).ok()?;
        let sent = *self.sent.get(self.sent.len().checked_sub(1)?.checked_sub(back)?)?;
        (sent + LIFE_TIME >= now).then_some(sent)
    }

    /// Whether few packets were sent within MKA Life Time.
    pub(super) fn is_quiet(&self, now: Time) -> bool {
        let recent = self.sent.iter().rev().take_while(|sent| **sent + LIFE_TIME >= now);
        recent.count() < MOST_ANSWERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Counted(u8);

    impl Randomness for Counted {
        fn fill(&mut self, bytes: &mut [u8]) {
            self.0 += 1;
            bytes.fill(self.0);
        }
    }

    fn seconds(count: u64) -> Time {
        Time::ZERO + Duration::from_secs(count)
    }

    // §9.4.3
    #[test]
    fn a_number_is_recent_for_a_life_time() {
        let mut own = Identity::draw(&mut Counted(0));
        assert_eq!(own.recently_sent(seconds(0), 0), None);
        own.count(seconds(0), &mut Counted(1));
        own.count(seconds(2), &mut Counted(1));
        for (now, first, second) in
            [(2, true, true), (6, true, true), (7, false, true), (9, false, false)]
        {
            let recent = |number| own.recently_sent(seconds(now), number).is_some();
            assert_eq!([recent(1), recent(2)], [first, second], "at {now} s");
            assert_eq!([recent(0), recent(3)], [false; 2], "numbers never sent");
        }
    }

    // §9.4.2
    #[test]
    fn after_the_last_number_the_identifier_is_another() {
        let mut own = Identity::draw(&mut Counted(0));
        own.message_number = u32::MAX - 1;
        own.count(seconds(1), &mut Counted(1));
        let before = own.member;
        assert_eq!(
            (own.message_number, own.recently_sent(seconds(1), u32::MAX)),
            (u32::MAX, Some(seconds(1)))
        );
        own.count(seconds(1), &mut Counted(1));
        assert_ne!(own.member, before);
        assert_eq!(own.message_number, 1);
        assert_eq!(own.recently_sent(seconds(1), u32::MAX), None);
    }

    #[test]
    fn a_number_that_is_no_longer_remembered_is_not_recent() {
        let mut own = Identity::draw(&mut Counted(0));
        (0..=MOST_SENT).for_each(|_| own.count(seconds(1), &mut Counted(1)));
        assert_eq!(own.recently_sent(seconds(1), 1), None);
        assert_eq!(own.recently_sent(seconds(1), 2), Some(seconds(1)));
    }

    #[test]
    fn after_many_packets_a_member_is_not_quiet_for_a_life_time() {
        let mut own = Identity::draw(&mut Counted(0));
        for _ in 0..MOST_ANSWERS {
            assert!(own.is_quiet(seconds(1)));
            own.count(seconds(1), &mut Counted(1));
        }
        assert!(!own.is_quiet(seconds(1)) && !own.is_quiet(seconds(7)));
        assert!(own.is_quiet(seconds(8)));
    }
}
