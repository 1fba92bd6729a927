//! A fair draw of values, of which at most so many are kept.

use std::collections::BinaryHeap;

use crate::digest::Add;

/// Values that were drawn: those with the least draws.
#[derive(Debug, Clone, Default)]
pub(super) struct Drawn {
    /// Draws, and the values' bits: of numbers that are not negative these order as they do.
    heap: BinaryHeap<(u64, u64)>,
}

impl Drawn {
    /// Offers a value, not negative, with its draw; at most `room` are kept.
    pub(super) fn offer(&mut self, draw: u64, value: f64, room: usize) {
        let offered = (draw, value.to_bits());
        if self.heap.len() < room {
            self.heap.push(offered);
        } else if let Some(mut greatest) = self.heap.peek_mut()
            && offered < *greatest
        {
            *greatest = offered;
        }
    }

    /// The values, from the least.
    pub(super) fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> =
            self.heap.iter().map(|(_, bits)| f64::from_bits(*bits)).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }
}

impl Add for Drawn {
    fn add(&mut self, other: &Self) {
        self.heap.extend(other.heap.iter().copied());
    }
}
