//! Connections in TIME-WAIT: what little must be known of them (RFC 9293 §3.6.1).

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use units::{SeqNumber, Time};

use crate::secrets::Key;

/// Local and remote address of a connection.
pub(crate) type Tuple = (SocketAddr, SocketAddr);

/// Least time between two ACKs for segments that carry nothing (RFC 5961 §7).
const ACK_INTERVAL: Duration = Duration::from_millis(100);

/// One connection's last numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Final {
    /// SND.NXT.
    pub send_next: SeqNumber,
    /// RCV.NXT.
    pub receive_next: SeqNumber,
    /// TS.Recent, if timestamps were used.
    pub timestamp: Option<u32>,
    /// The window field.
    pub window: u16,
}

/// One connection in TIME-WAIT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub numbers: Final,
    until: Time,
    number: u64,
    /// When a segment that carries nothing was answered last.
    acked: Option<Time>,
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

    pub(crate) fn insert(&mut self, now: Time, tuple: Tuple, numbers: Final, wait: Duration) {
        self.numbers = self.numbers.wrapping_add(1);
        let (number, until) = (self.numbers, now + wait);
        let last = Last { numbers, until, number, acked: None };
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

    /// Begins the wait of an entry again, with the timestamp that its peer's FIN had. Its place in the
    /// queue stays, so that a peer that does this often takes no other's.
    pub(crate) fn begin_again(
        &mut self,
        now: Time,
        tuple: &Tuple,
        wait: Duration,
        stamp: Option<u32>,
    ) {
        let Some(last) = self.entries.get_mut(tuple) else { return };
        last.until = now + wait;
        if let (Some(recent), Some(stamp)) = (&mut last.numbers.timestamp, stamp)
            && stamp.wrapping_sub(*recent) as i32 > 0
        {
            *recent = stamp;
        }
    }

    /// Whether a segment that carries nothing may be answered now (RFC 5961 §7).
    pub(crate) fn may_acknowledge(&mut self, now: Time, tuple: &Tuple) -> bool {
        let Some(last) = self.entries.get_mut(tuple) else { return false };
        let may = last.acked.is_none_or(|at| now.saturating_since(at) >= ACK_INTERVAL);
        if may {
            last.acked = Some(now);
        }
        may
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
