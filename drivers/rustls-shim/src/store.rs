//! A server's store of sessions outside rustls (`WT_SESSIONS_EXTERNAL`), as `wiretax_store.h` has it for
//! shims in C: one table under one lock for all threads of a context.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use rustls::server::StoresServerSessions;

/// Sessions by their IDs, as the bytes that rustls makes of them.
#[derive(Debug)]
pub struct Store {
    /// The most that it holds; then the oldest gives way.
    most: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<Vec<u8>, Vec<u8>>,
    /// IDs in the order in which they came.
    order: VecDeque<Vec<u8>>,
}

impl Store {
    /// An empty store for so many sessions.
    pub fn new(most: usize) -> Self {
        Self { most, table: Mutex::default() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Table) -> T) -> T {
        work(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl StoresServerSessions for Store {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.with(|table| {
            if table.sessions.insert(key.clone(), value).is_none() {
                table.order.push_back(key);
            }
            while table.order.len() > self.most {
                table.order.pop_front().and_then(|oldest| table.sessions.remove(&oldest));
            }
        });
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.with(|table| table.sessions.get(key).cloned())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        // Its place in the order is given up when its turn comes.
        self.with(|table| table.sessions.remove(key))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_what_is_taken_is_gone() {
        let store = Store::new(2);
        for id in 1..=3u8 {
            assert!(store.put(vec![id], vec![id; 10]));
        }
        assert_eq!((store.get(&[1]), store.get(&[3])), (None, Some(vec![3; 10])));
        assert!(store.put(vec![2], vec![7]) && store.can_cache());
        assert_eq!((store.take(&[2]), store.get(&[2])), (Some(vec![7]), None));
    }
}
