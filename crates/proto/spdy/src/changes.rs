//! The bounded list of changes of windows, until the caller takes them.

use std::collections::VecDeque;

use wire::spdy::StreamId;

use crate::event::Change;
use crate::stream::Stream;

/// Changes that are kept if nobody takes them; then the oldest go.
const KEPT: usize = 4096;

#[derive(Debug)]
pub(crate) struct Changes {
    list: VecDeque<Change>,
    trace: bool,
    lost: u64,
}

impl Changes {
    pub(crate) fn new(trace: bool) -> Self {
        Changes { list: VecDeque::new(), trace, lost: 0 }
    }

    pub(crate) fn next(&mut self) -> Option<Change> {
        self.list.pop_front()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    pub(crate) fn send_window(&mut self, stream: Option<StreamId>, size: i64) {
        if self.trace {
            self.push(Change::SendWindow { stream, size });
        }
    }

    pub(crate) fn receive_window(&mut self, stream: Option<StreamId>, size: i64) {
        if self.trace {
            self.push(Change::ReceiveWindow { stream, size });
        }
    }

    /// Compares what a stream waits for with what was reported.
    pub(crate) fn stall(&mut self, id: StreamId, stream: &mut Stream, session_shut: bool) {
        let waits = stream.send.waits_for(session_shut);
        if waits == stream.send.stall {
            return;
        }
        if let Some(window) = stream.send.stall {
            self.push(Change::StallEnded { stream: id, window });
        }
        if let Some(window) = waits {
            self.push(Change::StallBegan { stream: id, window });
        }
        stream.send.stall = waits;
    }

    fn push(&mut self, change: Change) {
        if self.list.len() >= KEPT {
            self.list.pop_front();
            self.lost = self.lost.saturating_add(1);
        }
        self.list.push_back(change);
    }
}
