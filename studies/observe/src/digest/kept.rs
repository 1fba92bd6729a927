//! A fair draw of all handshakes whose times are kept as they are.

use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use siphasher::sip::SipHasher13;
use units::Time;

/// The times of one handshake, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Times {
    pub handshake: f64,
    pub to_data: Option<f64>,
    pub round_trip: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Ticket {
    draw: u64,
    times: Times,
}

impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ticket {}

impl PartialOrd for Ticket {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ticket {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let order = self.draw.cmp(&other.draw);
        order.then_with(|| self.times.handshake.total_cmp(&other.times.handshake))
    }
}

/// Keeps the handshakes with the least draws. A draw is a keyed hash of what names a connection, so
/// that it does not matter in which order, or by how many threads, connections are taken.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    capacity: usize,
    heap: BinaryHeap<Ticket>,
}

impl Kept {
    pub(crate) fn new(capacity: usize) -> Kept {
        Kept { capacity, heap: BinaryHeap::new() }
    }

    pub(crate) fn offer(&mut self, draw: u64, times: Times) {
        if self.heap.len() < self.capacity {
            self.heap.push(Ticket { draw, times });
        } else if let Some(mut greatest) = self.heap.peek_mut()
            && draw < greatest.draw
        {
            *greatest = Ticket { draw, times };
        }
    }

    pub(crate) fn merge(&mut self, other: Kept) {
        for ticket in other.heap {
            self.offer(ticket.draw, ticket.times);
        }
    }

    /// All that are kept, in an order that depends on nothing but them.
    pub(crate) fn times(&self) -> Vec<Times> {
        let mut all: Vec<Ticket> = self.heap.iter().copied().collect();
        all.sort_unstable();
        all.into_iter().map(|ticket| ticket.times).collect()
    }
}

/// The draw of a connection.
pub(crate) fn draw(seed: u64, began: Time, client: SocketAddr) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0x6f62_7365_7276_6521);
    (began.as_nanos(), client).hash(&mut hasher);
    hasher.finish()
}
