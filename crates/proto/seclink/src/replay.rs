//! A window of sequence numbers, each taken once (RFC 4303 §3.4.3), as a ring of words (RFC 6479).

/// Bits of a word.
const WORD: u64 = u64::BITS as u64;

/// The largest window: what a hostile configuration can make it hold is 8 KiB.
pub const MAX_SIZE: u32 = 65_536;

/// Which of the last numbers were seen. Numbers count from 1; 0 is never taken.
#[derive(Debug, Clone)]
pub struct Window {
    /// The highest number seen.
    top: u64,
    /// Numbers at or below `top - size` are too old.
    size: u64,
    /// A bit per number, one word more than the window has.
    words: Box<[u64]>,
}

/// Whether a number may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was not seen yet.
    New,
    /// It was seen.
    Seen,
    /// It is too old to tell.
    TooOld,
}

impl Window {
    /// A window of `size` numbers, from 1 to [`MAX_SIZE`].
    #[must_use]
    pub fn new(size: u32) -> Self {
        let size = u64::from(size.clamp(1, MAX_SIZE));
        let words = size.div_ceil(WORD).saturating_add(1);
        Window { top: 0, size, words: vec![0; usize::try_from(words).unwrap_or(1)].into() }
    }

    /// The highest number seen; 0 before the first.
    #[must_use]
    pub const fn top(&self) -> u64 {
        self.top
    }

    /// How many numbers it has.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Whether `number` may be taken, as far as is known before its packet is authenticated.
    #[must_use]
    pub fn check(&self, number: u64) -> Verdict {
        if number > self.top {
            Verdict::New
        } else if number == 0 || self.top - number >= self.size {
            Verdict::TooOld
        } else {
            let seen = self.word_of(number) & bit(number) != 0;
            if seen { Verdict::Seen } else { Verdict::New }
        }
    }

    /// Takes the number of an authentic packet, if it may be.
    pub fn take(&mut self, number: u64) -> Verdict {
        let verdict = self.check(number);
        if verdict != Verdict::New {
            return verdict;
        }
        if number > self.top {
            self.clear_between(self.top, number);
            self.top = number;
        }
        if let Some(word) = self.index(number / WORD).and_then(|at| self.words.get_mut(at)) {
            *word |= bit(number);
        }
        Verdict::New
    }

    /// Clears the words that come into the window between two numbers.
    fn clear_between(&mut self, from: u64, to: u64) {
        let (from, to) = (from / WORD, to / WORD);
        let count = (to - from).min(self.words.len() as u64);
        for step in 1..=count {
            // The last `count` words up to the new one.
            let number = to - count + step;
            if let Some(word) = self.index(number).and_then(|at| self.words.get_mut(at)) {
                *word = 0;
            }
        }
    }

    fn index(&self, word: u64) -> Option<usize> {
        word.checked_rem(self.words.len() as u64).and_then(|at| usize::try_from(at).ok())
    }

    fn word_of(&self, number: u64) -> u64 {
        let word = self.index(number / WORD).and_then(|at| self.words.get(at));
        // Not reached: the ring has at least two words.
        word.copied().unwrap_or(u64::MAX)
    }
}

const fn bit(number: u64) -> u64 {
    1 << (number % WORD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of all numbers seen.
        #[test]
        fn it_takes_what_a_set_of_all_numbers_would(
            size in 1u32..300,
            steps in proptest::collection::vec(prop_oneof![
                8 => (-400i64..400).boxed(),
                1 => (-100_000i64..100_000).boxed(),
            ], 0..400),
        ) {
            let (mut window, mut seen, mut top) = (Window::new(size), BTreeSet::new(), 0u64);
            for step in steps {
                let number = top.saturating_add_signed(step);
                let expected = if number == 0 || number + u64::from(size) <= top {
                    Verdict::TooOld
                } else if seen.contains(&number) {
                    Verdict::Seen
                } else {
                    Verdict::New
                };
                prop_assert_eq!(window.take(number), expected, "{} at {}", number, top);
                if expected == Verdict::New {
                    seen.insert(number);
                    top = top.max(number);
                }
            }
        }
    }

    #[test]
    fn the_highest_numbers_are_taken_too() {
        let mut window = Window::new(64);
        assert_eq!(window.take(u64::MAX), Verdict::New);
        assert_eq!(window.take(u64::MAX), Verdict::Seen);
        assert_eq!(window.take(u64::MAX - 63), Verdict::New);
        assert_eq!(window.take(u64::MAX - 64), Verdict::TooOld);
    }
}
