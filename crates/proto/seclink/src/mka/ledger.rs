//! The ledger of keys that this member ever sent with (IEEE 802.1X-2020 §9.8): none comes back under the CAK.

use std::collections::{BTreeMap, BTreeSet};

use wire::mka::{KeyIdentifier, MemberIdentifier};

use super::Rejected;

/// Most keys that one CAK gives: 2.5 years with a fresh key every five minutes.
const MOST_KEYS: usize = 1 << 18;

/// The keys of a CAK's life. It forgets none: when full, it refuses every further key.
#[derive(Default)]
pub(super) struct Ledger {
    /// The highest number of each key server: a server's numbers rise (§9.8).
    numbers: BTreeMap<MemberIdentifier, u32>,
    /// Marks of the keys themselves, should a server repeat one under another number.
    keys: BTreeSet<u64>,
}

/// The right to make a key usable for sending. The ledger gives one per key; its use consumes it.
#[derive(Debug)]
pub(super) struct FirstUse(KeyIdentifier);

impl FirstUse {
    pub(super) const fn identifier(&self) -> KeyIdentifier {
        self.0
    }
}

impl Ledger {
    /// Enters a key by its identifier and its mark.
    pub(super) fn first_use(
        &mut self,
        identifier: KeyIdentifier,
        mark: u64,
    ) -> Result<FirstUse, Rejected> {
        self.first_use_within(MOST_KEYS, identifier, mark)
    }

    fn first_use_within(
        &mut self,
        most: usize,
        identifier: KeyIdentifier,
        mark: u64,
    ) -> Result<FirstUse, Rejected> {
        let KeyIdentifier { server, number } = identifier;
        let last = self.numbers.get(&server).copied().unwrap_or(0);
        if number <= last || self.keys.contains(&mark) {
            return Err(Rejected::UsedKey);
        }
        if self.keys.len() >= most {
            return Err(Rejected::TooManyKeys);
        }
        self.numbers.insert(server, number);
        self.keys.insert(mark);
        Ok(FirstUse(identifier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(server: u8, number: u32) -> KeyIdentifier {
        KeyIdentifier { server: MemberIdentifier([server; 12]), number }
    }

    #[test]
    fn a_key_is_first_used_once_by_its_name_and_by_its_bytes() {
        let mut ledger = Ledger::default();
        assert!(ledger.first_use(key(1, 3), 30).is_ok());
        for (identifier, mark) in
            [(key(1, 3), 31), (key(1, 2), 32), (key(1, 4), 30), (key(2, 1), 30)]
        {
            let said = ledger.first_use(identifier, mark).err();
            assert_eq!(said, Some(Rejected::UsedKey), "{identifier:?}, {mark}");
        }
        assert!(ledger.first_use(key(2, 1), 33).is_ok());
        assert!(ledger.first_use(key(1, 4), 34).is_ok());
    }

    #[test]
    fn a_full_ledger_refuses_and_forgets_nothing() {
        let mut ledger = Ledger::default();
        for number in 1..=4 {
            assert!(ledger.first_use_within(4, key(1, number), number.into()).is_ok());
        }
        let mut said = |identifier, mark| ledger.first_use_within(4, identifier, mark).err();
        assert_eq!(said(key(1, 5), 5), Some(Rejected::TooManyKeys));
        assert_eq!(said(key(2, 1), 6), Some(Rejected::TooManyKeys));
        assert_eq!(said(key(1, 1), 7), Some(Rejected::UsedKey));
        assert_eq!(said(key(2, 1), 1), Some(Rejected::UsedKey));
    }
}
