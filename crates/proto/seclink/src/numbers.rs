//! Numbers that are handed out once each.

/// Hands out the numbers of a key, each once, in order. It cannot be cloned or set back.
///
/// ```compile_fail
/// let mut numbers = seclink::numbers::Numbers::new(1, 9);
/// let number = numbers.take().unwrap();
/// let _ = (number.clone(), numbers.clone()); // Neither is Clone.
/// ```
#[derive(Debug)]
pub struct Numbers {
    next: Option<u64>,
    last: u64,
}

/// A number that no other seal with the same key has. It cannot be cloned or made elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Number(u64);

impl Numbers {
    /// The numbers from `first` to `last`, both among them.
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Self {
        Numbers { next: if first <= last { Some(first) } else { None }, last }
    }

    /// The next number; `None` after the last.
    pub fn take(&mut self) -> Option<Number> {
        let number = self.next?;
        self.next = number.checked_add(1).filter(|next| *next <= self.last);
        Some(Number(number))
    }

    /// The number that is handed out next.
    #[must_use]
    pub const fn peek(&self) -> Option<u64> {
        self.next
    }

    /// How many are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.next.map_or(0, |next| (self.last - next).saturating_add(1))
    }
}

impl Number {
    /// The packet number, for the header and the nonce.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_once_and_after_the_last_there_is_none() {
        let mut numbers = Numbers::new(u64::from(u32::MAX) - 1, u32::MAX.into());
        assert_eq!(numbers.left(), 2);
        let taken: Vec<_> = (0..4).map(|_| numbers.take().map(|number| number.value())).collect();
        assert_eq!(taken, [Some(0xffff_fffe), Some(0xffff_ffff), None, None]);
        assert_eq!((numbers.left(), numbers.peek()), (0, None));
    }

    #[test]
    fn the_largest_number_of_all_is_handed_out_and_none_begins_again() {
        let mut numbers = Numbers::new(u64::MAX, u64::MAX);
        assert_eq!(numbers.take(), Some(Number(u64::MAX)));
        assert_eq!(numbers.take(), None);
        assert_eq!(Numbers::new(2, 1).take(), None);
    }
}
