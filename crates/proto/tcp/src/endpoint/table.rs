//! Where connections are kept: by number, by addresses, by their next timeout.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use units::Time;

use crate::connection::Connection;
use crate::event::ConnectionId;
use crate::secrets::Key;
use crate::time_wait::Tuple;

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    /// Boxed: a free slot is small.
    connection: Option<Box<Connection>>,
}

/// The table of connections.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_tuple: HashMap<Tuple, u32, Key>,
    /// At least one entry for each connection that waits, no later than its timeout.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Table {
    pub(super) fn new(key: Key) -> Self {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            by_tuple: HashMap::with_hasher(key),
            timers: BinaryHeap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len().saturating_sub(self.free.len())
    }

    /// Whether no connection holds its addresses.
    pub(super) fn has_none_live(&self) -> bool {
        self.by_tuple.is_empty()
    }

    pub(super) fn insert(&mut self, connection: Connection) -> ConnectionId {
        let tuple = (connection.local, connection.remote);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let mut generation = 0;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.generation = slot.generation.wrapping_add(1);
            generation = slot.generation;
            slot.connection = Some(Box::new(connection));
        }
        self.by_tuple.insert(tuple, index);
        ConnectionId { index, generation }
    }

    /// The live connection of these addresses.
    pub(super) fn find(&self, tuple: &Tuple) -> Option<u32> {
        self.by_tuple.get(tuple).copied()
    }

    pub(super) fn contains(&self, tuple: &Tuple) -> bool {
        self.by_tuple.contains_key(tuple)
    }

    pub(super) fn at_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.connection.as_deref_mut()
    }

    /// The current name of what is at `index`.
    pub(super) fn id(&self, index: u32) -> Option<ConnectionId> {
        let slot = self.slots.get(index as usize)?;
        slot.connection.as_ref()?;
        Some(ConnectionId { index, generation: slot.generation })
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.index as usize)?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.index as usize)?;
        let same = slot.generation == id.generation;
        slot.connection.as_deref_mut().filter(|_| same)
    }

    /// All connections' names.
    pub(super) fn ids(&self) -> Vec<ConnectionId> {
        (0..self.slots.len() as u32).filter_map(|index| self.id(index)).collect()
    }

    /// Gives the addresses of a connection free; whether it had them.
    pub(super) fn detach(&mut self, index: u32) -> bool {
        let Some(connection) = self.at_mut(index) else { return false };
        let tuple = (connection.local, connection.remote);
        if self.by_tuple.get(&tuple) != Some(&index) {
            return false;
        }
        self.by_tuple.remove(&tuple);
        true
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.detach(index);
        if let Some(slot) = self.slots.get_mut(index as usize)
            && slot.connection.take().is_some()
        {
            self.free.push(index);
        }
    }

    /// Sees to it that a connection's timeout is not missed.
    pub(super) fn schedule(&mut self, index: u32) {
        let Some(connection) = self.at_mut(index) else { return };
        let Some(at) = connection.next_timeout() else { return };
        if connection.scheduled.is_some_and(|scheduled| scheduled <= at) {
            return;
        }
        connection.scheduled = Some(at);
        self.timers.push(Reverse((at, index)));
        // Entries of connections that are gone, or were put earlier since, are few; not under attack.
        if self.timers.len() > 64 + 4 * self.slots.len() {
            self.rebuild_timers();
        }
    }

    fn rebuild_timers(&mut self) {
        self.timers.clear();
        for index in 0..self.slots.len() as u32 {
            let Some(connection) = self.at_mut(index) else { continue };
            connection.scheduled = connection.next_timeout();
            if let Some(at) = connection.scheduled {
                self.timers.push(Reverse((at, index)));
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn timers_len(&self) -> usize {
        self.timers.len()
    }

    /// A connection whose entry is due. It is to be scheduled again.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<u32> {
        let Reverse((at, _)) = self.timers.peek()?;
        if *at > now {
            return None;
        }
        let Reverse((at, index)) = self.timers.pop()?;
        if let Some(connection) = self.at_mut(index)
            && connection.scheduled == Some(at)
        {
            connection.scheduled = None;
        }
        Some(index)
    }
}
