//! Who on the link has which Ethernet address: a cache that asks, waits and forgets.
//!
//! It follows RFC 4861 §7.3 for both families, in a simpler form: an address is asked for three
//! times, one second apart; one that is known is used at once, and asked for again by unicast when
//! it is used after 30 s. What nobody asked for never replaces what is known (stricter than RFC 826
//! and RFC 4861 §7.2.5, which let any host on the link take over any address): a claim that differs
//! makes us ask, and the answer counts. Pure: time is an argument.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use units::Time;
use wire::ethernet::Address;

/// RETRANS_TIMER (RFC 4861 §10).
const RETRY: Duration = Duration::from_secs(1);
/// MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT (RFC 4861 §10).
const TRIES: u8 = 3;
/// REACHABLE_TIME (RFC 4861 §10).
const REACHABLE: Duration = Duration::from_secs(30);
/// Neighbours known at most, permanent ones apart.
const MAX_ENTRIES: usize = 1024;
/// Frames that wait for one neighbour, and bytes that wait for all.
const MAX_HELD: usize = 8;
const MAX_HELD_BYTES: usize = 512 << 10;

/// How it came that a neighbour tells its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It answers what we asked.
    Answer,
    /// It asks us for something, and tells its address to be answered.
    Question,
}

/// Somebody to ask for an Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Solicitation {
    pub(crate) address: IpAddr,
    /// Whom to send it to; everyone concerned if not known.
    pub(crate) to: Option<Address>,
}

#[derive(Debug, Clone, Copy)]
struct Asking {
    tries: u8,
    again: Time,
}

#[derive(Debug)]
enum Entry {
    Permanent(Address),
    Unknown { asking: Asking, held: VecDeque<Box<[u8]>> },
    Known { link: Address, stale: Time, asking: Option<Asking> },
}

/// Hardware addresses of neighbours, and what waits for them.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    entries: HashMap<IpAddr, Entry>,
    permanent: usize,
    held_bytes: usize,
    questions: VecDeque<Solicitation>,
    released: VecDeque<(Address, Box<[u8]>)>,
    timeout: Option<Time>,
    /// The last that was found and until when it needs no other look: bulk transfers ask for the
    /// same one again and again.
    last: Option<(IpAddr, Address, Time)>,
}

impl Neighbours {
    pub(crate) fn new(permanent: &[(IpAddr, Address)]) -> Self {
        let entries: HashMap<_, _> =
            permanent.iter().map(|(ip, link)| (*ip, Entry::Permanent(*link))).collect();
        Neighbours { permanent: entries.len(), entries, ..Neighbours::default() }
    }

    /// The Ethernet address of `address`. If it is not known, it is asked for from now on, and a
    /// frame to it may be given to [`Neighbours::hold`].
    pub(crate) fn lookup(&mut self, now: Time, address: IpAddr) -> Option<Address> {
        if let Some((last, link, until)) = self.last
            && last == address
            && now < until
        {
            return Some(link);
        }
        self.look(now, address)
    }

    fn look(&mut self, now: Time, address: IpAddr) -> Option<Address> {
        match self.entries.get_mut(&address) {
            Some(Entry::Permanent(link)) => {
                self.last = Some((address, *link, Time::MAX));
                Some(*link)
            }
            Some(Entry::Known { link, stale, asking }) => {
                let link = *link;
                if now < *stale {
                    self.last = Some((address, link, *stale));
                } else if asking.is_none() {
                    *asking = Some(Asking { tries: 1, again: now + RETRY });
                    self.ask(now, address, Some(link));
                }
                Some(link)
            }
            Some(Entry::Unknown { .. }) => None,
            None => {
                self.make_room();
                let asking = Asking { tries: 1, again: now + RETRY };
                self.entries.insert(address, Entry::Unknown { asking, held: VecDeque::new() });
                self.ask(now, address, None);
                None
            }
        }
    }

    fn ask(&mut self, now: Time, address: IpAddr, to: Option<Address>) {
        // Bounded: one question for each entry in one second at most, and taken at once.
        if self.questions.len() < MAX_ENTRIES {
            self.questions.push_back(Solicitation { address, to });
        }
        self.timeout = Some(self.timeout.map_or(now + RETRY, |at| at.min(now + RETRY)));
    }

    /// Keeps a frame until `address` is known. Of too many the oldest is lost
    /// (RFC 1122 §2.3.2.2: keep at least the latest), and TCP sends it again.
    pub(crate) fn hold(&mut self, address: IpAddr, frame: &[u8]) {
        let Some(Entry::Unknown { held, .. }) = self.entries.get_mut(&address) else { return };
        if held.len() == MAX_HELD
            && let Some(oldest) = held.pop_front()
        {
            self.held_bytes = self.held_bytes.saturating_sub(oldest.len());
        }
        if self.held_bytes.saturating_add(frame.len()) <= MAX_HELD_BYTES {
            self.held_bytes += frame.len();
            held.push_back(frame.into());
        }
    }

    /// A neighbour says that `address` is at `link`.
    pub(crate) fn learn(&mut self, now: Time, address: IpAddr, link: Address, claim: Claim) {
        // Nobody's address is a group's (IEEE 802.3 §3.2.3).
        if link.0[0] & 1 != 0 || address.is_unspecified() || address.is_multicast() {
            return;
        }
        let fresh = now + REACHABLE;
        match self.entries.get_mut(&address) {
            Some(Entry::Permanent(_)) => {}
            Some(Entry::Unknown { held, .. }) => {
                // RFC 826 takes a question as well as an answer; RFC 4861 §7.2.3 does not call it
                // reachable for that.
                for frame in std::mem::take(held) {
                    self.held_bytes = self.held_bytes.saturating_sub(frame.len());
                    self.released.push_back((link, frame));
                }
                let stale = if claim == Claim::Answer { fresh } else { now };
                self.entries.insert(address, Entry::Known { link, stale, asking: None });
            }
            Some(Entry::Known { link: known, stale, asking }) => match (claim, asking.is_some()) {
                (Claim::Answer, true) => {
                    (*known, *stale, *asking) = (link, fresh, None);
                    self.last = None;
                }
                _ if *known == link => {}
                // Somebody else says to have the address: ask all.
                (_, false) => {
                    *asking = Some(Asking { tries: 1, again: now + RETRY });
                    *stale = now;
                    self.last = None;
                    self.ask(now, address, None);
                }
                (Claim::Question, true) => {}
            },
            None if claim == Claim::Question => {
                self.make_room();
                self.entries.insert(address, Entry::Known { link, stale: now, asking: None });
            }
            None => {}
        }
    }

    /// Makes room for one more entry.
    fn make_room(&mut self) {
        if self.entries.len() - self.permanent.min(self.entries.len()) < MAX_ENTRIES {
            return;
        }
        // The one that was confirmed or asked for longest ago.
        let age = |(address, entry): (&IpAddr, &Entry)| match entry {
            Entry::Permanent(_) => None,
            Entry::Unknown { asking, .. } => Some((asking.again, *address)),
            Entry::Known { stale, .. } => Some((*stale, *address)),
        };
        if let Some((_, oldest)) = self.entries.iter().filter_map(age).min() {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, address: IpAddr) {
        if let Some(Entry::Unknown { held, .. }) = self.entries.remove(&address) {
            let bytes: usize = held.iter().map(|frame| frame.len()).sum();
            self.held_bytes = self.held_bytes.saturating_sub(bytes);
        }
        self.last = None;
    }

    /// When [`Neighbours::handle_timeout`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timeout
    }

    /// Asks again, and forgets who does not answer.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.timeout.is_none_or(|at| now < at) {
            return;
        }
        let mut silent = Vec::new();
        let mut next: Option<Time> = None;
        for (address, entry) in &mut self.entries {
            let (asking, to) = match entry {
                Entry::Unknown { asking, .. } => (asking, None),
                Entry::Known { link, asking: Some(asking), .. } => (asking, Some(*link)),
                _ => continue,
            };
            if asking.again <= now {
                if asking.tries == TRIES {
                    silent.push(*address);
                    continue;
                }
                asking.tries += 1;
                asking.again = now + RETRY;
                self.questions.push_back(Solicitation { address: *address, to });
            }
            next = Some(next.map_or(asking.again, |at| at.min(asking.again)));
        }
        for address in silent {
            self.remove(address);
        }
        self.timeout = next;
    }

    /// Whom to ask next.
    pub(crate) fn poll_question(&mut self) -> Option<Solicitation> {
        self.questions.pop_front()
    }

    /// The next frame whose neighbour has become known.
    pub(crate) fn poll_released(&mut self) -> Option<(Address, Box<[u8]>)> {
        self.released.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Address = Address([2, 0x77, 0, 0, 1, 2]);
    const THIEF: Address = Address([2, 0x66, 0, 0, 6, 6]);

    fn peer() -> IpAddr {
        "10.77.1.2".parse().unwrap()
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn question(to: Option<Address>) -> Option<Solicitation> {
        Some(Solicitation { address: peer(), to })
    }

    /// A cache that knows the peer since `now`.
    fn knowing(now: Time) -> Neighbours {
        let mut cache = Neighbours::default();
        assert_eq!(cache.lookup(now, peer()), None);
        assert_eq!(cache.poll_question(), question(None));
        cache.learn(now, peer(), LINK, Claim::Answer);
        cache
    }

    #[test]
    fn an_answer_releases_what_waits() {
        let mut cache = Neighbours::default();
        assert_eq!(cache.lookup(at(0), peer()), None);
        assert_eq!(cache.poll_question(), question(None));
        for number in 0..10u8 {
            cache.hold(peer(), &[number]);
        }
        cache.learn(at(0), peer(), LINK, Claim::Answer);
        assert_eq!(cache.lookup(at(0), peer()), Some(LINK));
        let released: Vec<_> = std::iter::from_fn(|| cache.poll_released()).collect();
        assert_eq!(released.first(), Some(&(LINK, Box::from([2u8]))));
        assert_eq!((released.len(), cache.held_bytes), (MAX_HELD, 0));
    }

    #[test]
    fn three_questions_a_second_apart_and_then_it_is_forgotten() {
        let mut cache = Neighbours::default();
        cache.lookup(at(0), peer());
        cache.hold(peer(), &[1]);
        for second in 0..3 {
            assert_eq!(cache.poll_question(), question(None));
            assert_eq!(cache.poll_question(), None);
            assert_eq!(cache.next_timeout(), Some(at(second + 1)));
            cache.handle_timeout(at(second + 1));
        }
        assert_eq!((cache.next_timeout(), cache.poll_question()), (None, None));
        assert!(cache.entries.is_empty() && cache.held_bytes == 0);
        // It is asked for anew when it is wanted again.
        assert_eq!(cache.lookup(at(9), peer()), None);
        assert_eq!(cache.poll_question(), question(None));
    }

    #[test]
    fn a_neighbour_used_after_half_a_minute_is_asked_by_unicast_and_used_meanwhile() {
        let mut cache = knowing(at(0));
        assert_eq!(cache.lookup(at(29), peer()), Some(LINK));
        assert_eq!(cache.poll_question(), None);
        assert_eq!(cache.lookup(at(30), peer()), Some(LINK));
        assert_eq!(cache.poll_question(), question(Some(LINK)));
        assert_eq!(cache.lookup(at(30), peer()), Some(LINK));
        assert_eq!(cache.poll_question(), None);
        cache.learn(at(30), peer(), LINK, Claim::Answer);
        assert_eq!(cache.lookup(at(59), peer()), Some(LINK));
        assert_eq!(cache.poll_question(), None);
    }

    #[test]
    fn unasked_claims_replace_nothing() {
        let mut cache = knowing(at(0));
        cache.learn(at(1), peer(), THIEF, Claim::Question);
        assert_eq!(cache.lookup(at(1), peer()), Some(LINK));
        // But they make us ask everybody, and the answer counts.
        assert_eq!(cache.poll_question(), question(None));
        cache.learn(at(1), peer(), LINK, Claim::Answer);
        assert_eq!(cache.lookup(at(2), peer()), Some(LINK));
        cache.learn(at(3), peer(), THIEF, Claim::Answer);
        assert_eq!(cache.lookup(at(3), peer()), Some(LINK));
    }

    #[test]
    fn an_answer_that_nobody_asked_for_is_not_kept() {
        let mut cache = Neighbours::default();
        cache.learn(at(0), peer(), LINK, Claim::Answer);
        assert!(cache.entries.is_empty());
        cache.learn(at(0), peer(), Address([0xff; 6]), Claim::Question);
        assert!(cache.entries.is_empty());
        // Who asks us is to be answered.
        cache.learn(at(0), peer(), LINK, Claim::Question);
        assert_eq!(cache.lookup(at(0), peer()), Some(LINK));
        assert_eq!(cache.poll_question(), question(Some(LINK)));
    }

    #[test]
    fn a_permanent_neighbour_stays() {
        let mut cache = Neighbours::new(&[(peer(), LINK)]);
        for claim in [Claim::Answer, Claim::Question] {
            cache.learn(at(0), peer(), THIEF, claim);
        }
        assert_eq!(cache.lookup(at(1_000_000), peer()), Some(LINK));
        assert_eq!((cache.poll_question(), cache.next_timeout()), (None, None));
    }

    #[test]
    fn the_cache_is_bounded_and_permanent_neighbours_survive() {
        let mut cache = Neighbours::new(&[(peer(), LINK)]);
        for number in 0..5000u32 {
            let address = IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a4e_0000 + number));
            cache.lookup(at(u64::from(number)), address);
            cache.hold(address, &[0; 4000]);
        }
        assert_eq!(cache.entries.len(), MAX_ENTRIES + 1);
        assert!(cache.held_bytes <= MAX_HELD_BYTES && cache.questions.len() <= MAX_ENTRIES);
        assert_eq!(cache.lookup(at(5000), peer()), Some(LINK));
    }
}
