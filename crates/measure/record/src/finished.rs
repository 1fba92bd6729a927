//! What a resumed run need not measure again.

use std::collections::{BTreeMap, BTreeSet};

use crate::Sample;
use crate::sample::cell_name;

/// The (point, repeat) pairs that are recorded. A cell's name is held once, so that ten million
/// samples of a thousand cells take little more than their repeat numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    cells: BTreeMap<String, BTreeSet<u32>>,
    count: u64,
}

impl Finished {
    /// Whether a sample is recorded for this place and repeat, whatever its outcome: a failure is a
    /// result, and measuring it again until it succeeds would hide it.
    #[must_use]
    pub fn contains(&self, study: &str, point: &BTreeMap<String, String>, repeat: u32) -> bool {
        self.cells.get(&cell_name(study, point)).is_some_and(|repeats| repeats.contains(&repeat))
    }

    /// How many different samples are recorded.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether any sample of a study is recorded.
    #[must_use]
    pub fn has_study(&self, study: &str) -> bool {
        let name = cell_name(study, &BTreeMap::new());
        let own = |cell: &String| {
            cell.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.cells.keys().any(own)
    }

    /// Each cell's name ([`Sample::cell`]) with the number of its samples.
    pub fn cells(&self) -> impl Iterator<Item = (&str, usize)> {
        self.cells.iter().map(|(cell, repeats)| (cell.as_str(), repeats.len()))
    }

    pub(crate) fn insert(&mut self, sample: &Sample) {
        if self.cells.entry(sample.cell()).or_default().insert(sample.repeat) {
            self.count += 1;
        }
    }
}
