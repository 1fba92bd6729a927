//! Two of each thing: the client's and the server's.

use std::ops::{Index, IndexMut};

/// Who sent a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// Who opened the connection.
    Client,
    /// The other one.
    Server,
}

impl Sender {
    /// The other one.
    pub(crate) const fn peer(self) -> Self {
        match self {
            Sender::Client => Sender::Server,
            Sender::Server => Sender::Client,
        }
    }
}

/// The client's and the server's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pair<T> {
    pub(crate) client: T,
    pub(crate) server: T,
}

impl<T> Index<Sender> for Pair<T> {
    type Output = T;
    fn index(&self, sender: Sender) -> &T {
        match sender {
            Sender::Client => &self.client,
            Sender::Server => &self.server,
        }
    }
}

impl<T> IndexMut<Sender> for Pair<T> {
    fn index_mut(&mut self, sender: Sender) -> &mut T {
        match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        }
    }
}
