//! A connection's bytes in memory: one queue each way, no kernel.

use std::cell::RefCell;
use std::rc::Rc;

use crate::driver::{Io, Transport};

/// The most that waits in one direction: beyond it the sender waits.
const ROOM: usize = 1 << 20;

/// The bytes of one direction.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    read: usize,
    moved: u64,
    ended: bool,
}

impl Queue {
    fn put(&mut self, bytes: &[u8]) -> Io {
        let room = ROOM - (self.bytes.len() - self.read).min(ROOM);
        if room == 0 {
            return Io::Again;
        }
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or(bytes);
        self.bytes.extend_from_slice(taken);
        self.moved += taken.len() as u64;
        Io::Moved(taken.len())
    }

    fn take(&mut self, into: &mut [u8]) -> Io {
        let waiting = self.bytes.get(self.read..).unwrap_or_default();
        if waiting.is_empty() {
            return if self.ended { Io::End } else { Io::Again };
        }
        let len = waiting.len().min(into.len());
        for (to, from) in into.iter_mut().zip(waiting) {
            *to = *from;
        }
        self.read += len;
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        }
        Io::Moved(len)
    }

    fn reset(&mut self) {
        self.bytes.clear();
        (self.read, self.ended) = (0, false);
    }
}

/// Both directions of a connection; used again for the next.
#[derive(Default)]
pub(crate) struct Wires {
    to_server: RefCell<Queue>,
    to_client: RefCell<Queue>,
}

impl Wires {
    /// Makes it ready for another connection.
    pub(crate) fn reset(&self) {
        self.to_server.borrow_mut().reset();
        self.to_client.borrow_mut().reset();
    }

    /// Bytes that ever moved, both ways: as long as this grows, something goes on.
    pub(crate) fn moved(&self) -> u64 {
        self.to_server.borrow().moved + self.to_client.borrow().moved
    }

    /// Looks at what waits for the client.
    pub(crate) fn waiting_for_client<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        let queue = self.to_client.borrow();
        look(queue.bytes.get(queue.read..).unwrap_or_default())
    }
}

/// One side's end.
pub(crate) struct End {
    wires: Rc<Wires>,
    server: bool,
}

impl End {
    pub(crate) fn new(wires: &Rc<Wires>, server: bool) -> Self {
        Self { wires: Rc::clone(wires), server }
    }
}

impl Transport for End {
    fn recv(&self, bytes: &mut [u8]) -> Io {
        let from = if self.server { &self.wires.to_server } else { &self.wires.to_client };
        from.borrow_mut().take(bytes)
    }

    fn send(&self, bytes: &[u8]) -> Io {
        let to = if self.server { &self.wires.to_client } else { &self.wires.to_server };
        to.borrow_mut().put(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_order_and_room_is_bounded() {
        let wires = Rc::new(Wires::default());
        let (client, server) = (End::new(&wires, false), End::new(&wires, true));
        let mut got = [0; 4];
        assert_eq!(server.recv(&mut got), Io::Again);
        assert_eq!(client.send(b"hello"), Io::Moved(5));
        assert_eq!(server.recv(&mut got), Io::Moved(4));
        assert_eq!(&got, b"hell");
        assert_eq!(client.send(&vec![0; 2 * ROOM]), Io::Moved(ROOM - 1));
        assert_eq!(client.send(b"x"), Io::Again);
        assert_eq!(wires.moved(), ROOM as u64 + 4);
        wires.reset();
        assert_eq!(server.recv(&mut got), Io::Again);
        assert_eq!(server.send(b"y"), Io::Moved(1));
        assert_eq!(wires.waiting_for_client(<[u8]>::to_vec), b"y");
    }
}
