//! One stream.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use wire::spdy::{Headers, Priority, StreamId};

use crate::event::Window;
use crate::flow::{ReceiveWindow, SendWindow};

/// What waits to be sent on a stream, in its order.
#[derive(Debug)]
pub(crate) enum Item {
    Data(Bytes),
    /// Headers behind data; compressed when they are sent.
    Headers(Headers),
}

/// This side's direction.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) window: SendWindow,
    pub(crate) items: VecDeque<Item>,
    /// Bytes of data in the items.
    pub(crate) queued: usize,
    /// Nothing is queued behind what is there.
    pub(crate) fin_queued: bool,
    /// The last frame is sent.
    pub(crate) finished: bool,
    /// Frames may be sent: it is this side's stream, or it was replied to.
    pub(crate) replied: bool,
    /// The caller was told that the queue is full.
    pub(crate) was_full: bool,
    /// It stands in the scheduler.
    pub(crate) scheduled: bool,
    /// The window that it waits for, as reported.
    pub(crate) stall: Option<Window>,
}

/// The peer's direction.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) window: ReceiveWindow,
    /// Handed over, and not consumed yet.
    pub(crate) unconsumed: u64,
    /// The SYN_REPLY came, or none is needed.
    pub(crate) replied: bool,
    /// The peer's last frame came.
    pub(crate) finished: bool,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) priority: Priority,
    /// The stream that it was pushed with.
    pub(crate) associated: Option<StreamId>,
    pub(crate) send: Sending,
    pub(crate) receive: Receiving,
}

/// How a stream begins.
pub(crate) struct Begin {
    pub(crate) priority: Priority,
    pub(crate) associated: Option<StreamId>,
    /// This side opened it.
    pub(crate) own: bool,
    /// Only who opened it may send.
    pub(crate) unidirectional: bool,
    /// Who opened it has sent its last frame.
    pub(crate) fin: bool,
}

impl Stream {
    pub(crate) fn new(begin: &Begin, send: SendWindow, receive: ReceiveWindow) -> Self {
        let Begin { own, unidirectional, fin, .. } = *begin;
        // §2.3.2.1: the receiver of a unidirectional stream is half-closed from the beginning.
        let (sent, received) = match own {
            true => (fin, unidirectional),
            false => (unidirectional, fin),
        };
        Stream {
            priority: begin.priority,
            associated: begin.associated,
            send: Sending {
                window: send,
                items: VecDeque::new(),
                queued: 0,
                fin_queued: sent,
                finished: sent,
                replied: own,
                was_full: false,
                scheduled: false,
                stall: None,
            },
            receive: Receiving {
                window: receive,
                unconsumed: 0,
                replied: !own || unidirectional,
                finished: received,
            },
        }
    }

    /// Whether both directions are done with; what came may have to be consumed yet.
    pub(crate) fn is_closed(&self) -> bool {
        self.send.finished && self.receive.finished
    }

    /// Whether it is closed, and all that came is consumed.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed() && self.receive.unconsumed == 0
    }
}

impl Sending {
    /// Whether a frame can be sent now.
    pub(crate) fn can_send(&self, session_shut: bool) -> bool {
        match self.items.front() {
            Some(Item::Headers(_)) => true,
            Some(Item::Data(_)) => !session_shut && !self.window.is_shut(),
            None => self.fin_queued && !self.finished,
        }
    }

    /// The shut window that data wait for.
    pub(crate) fn waits_for(&self, session_shut: bool) -> Option<Window> {
        match self.items.front() {
            Some(Item::Data(_)) if self.window.is_shut() => Some(Window::Stream),
            Some(Item::Data(_)) if session_shut => Some(Window::Session),
            _ => None,
        }
    }

    pub(crate) fn push_data(&mut self, data: Bytes) {
        self.queued += data.len();
        self.items.push_back(Item::Data(data));
    }

    /// Bytes of data at the front, up to the next headers and to `most`.
    pub(crate) fn data_at_front(&self, most: usize) -> usize {
        let mut len = 0_usize;
        for item in &self.items {
            match item {
                Item::Data(data) if len < most => len = len.saturating_add(data.len()),
                _ => break,
            }
        }
        len.min(most)
    }

    /// Moves `count` bytes of data from the front to `out`.
    pub(crate) fn take_data(&mut self, mut count: usize, out: &mut Vec<u8>) {
        while count > 0 {
            let Some(Item::Data(data)) = self.items.front_mut() else { return };
            let part = data.split_to(count.min(data.len()));
            out.extend_from_slice(&part);
            self.queued -= part.len();
            count -= part.len();
            if !data.has_remaining() {
                self.items.pop_front();
            }
        }
    }

    /// Forgets what is queued.
    pub(crate) fn drop_queue(&mut self) {
        self.items.clear();
        self.queued = 0;
    }
}
