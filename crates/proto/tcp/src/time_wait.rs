//! Connections in TIME-WAIT: what little must be known of them (RFC 9293 §3.6.1).

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use units::{SeqNumber, Time};

use crate::secrets::Key;

/// Local and remote address of a connection.
pub(crate) type Tuple = (SocketAddr, SocketAddr);

/// One connection's last numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    /// SND.NXT.
    pub send_next: SeqNumber,
    /// RCV.NXT.
    pub receive_next: SeqNumber,
    /// TS.Recent, if timestamps were used.
    pub timestamp: Option<u32>,
    until: Time,
    number: u64,
}

/// A table of bounded size; the oldest make room.
#[derive(Debug)]
pub(crate) struct TimeWait {
    entries: HashMap<Tuple, Last, Key>,
    order: VecDeque<(Time, u64, Tuple)>,
    limit: usize,
    numbers: u64,
}

impl TimeWait {
    pub(crate) fn new(limit: usize, key: Key) -> Self {
        let entries = HashMap::with_hasher(key);
        TimeWait { entries, order: VecDeque::new(), limit, numbers: 0 }
    }

    pub(crate) fn insert(
        &mut self,
        now: Time,
        tuple: Tuple,
        (send_next, receive_next, timestamp): (SeqNumber, SeqNumber, Option<u32>),
        wait: Duration,
    ) {
        self.numbers = self.numbers.wrapping_add(1);
        let (number, until) = (self.numbers, now + wait);
        let last = Last { send_next, receive_next, timestamp, until, number };
        self.entries.insert(tuple, last);
        self.order.push_back((until, number, tuple));
        while self.order.len() > self.limit {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, number, tuple)) = self.order.pop_front() else { return };
        if self.entries.get(&tuple).is_some_and(|last| last.number == number) {
            self.entries.remove(&tuple);
        }
    }

    /// Begins the wait of an entry again. Its place in the queue stays, so that a peer that does
    /// this often takes no other's.
    pub(crate) fn begin_again(&mut self, now: Time, tuple: &Tuple, wait: Duration) {
        if let Some(last) = self.entries.get_mut(tuple) {
            last.until = now + wait;
        }
    }

    /// Forgets those whose time is over.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some((until, number, tuple)) = self.order.front().copied()
            && until <= now
        {
            let last = self.entries.get(&tuple).filter(|last| last.number == number);
            match last.map(|last| last.until).filter(|until| now < *until) {
                // It has begun again meanwhile.
                Some(until) => {
                    self.order.pop_front();
                    self.order.push_back((until, number, tuple));
                }
                None => self.forget_oldest(),
            }
        }
    }

    pub(crate) fn get(&self, now: Time, tuple: &Tuple) -> Option<&Last> {
        self.entries.get(tuple).filter(|last| now < last.until)
    }

    pub(crate) fn remove(&mut self, tuple: &Tuple) {
        self.entries.remove(tuple);
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.order.front().map(|(until, ..)| *until)
    }
}
