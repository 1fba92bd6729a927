//! Which stream is next: strictly by priority, in turns within one (§2.3.3).

use std::collections::VecDeque;

use wire::spdy::{Priority, StreamId};

/// Streams that have something to send, each once.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queues: [VecDeque<StreamId>; Priority::COUNT],
}

impl Scheduler {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// The next stream, which is taken out.
    pub(crate) fn next(&mut self) -> Option<StreamId> {
        self.queues.iter_mut().find_map(VecDeque::pop_front)
    }

    pub(crate) fn push(&mut self, stream: StreamId, priority: Priority) {
        if let Some(queue) = self.queue(priority) {
            queue.push_back(stream);
        }
    }

    /// Puts a stream back whose turn was not used.
    pub(crate) fn put_back(&mut self, stream: StreamId, priority: Priority) {
        if let Some(queue) = self.queue(priority) {
            queue.push_front(stream);
        }
    }

    pub(crate) fn remove(&mut self, stream: StreamId, priority: Priority) {
        if let Some(queue) = self.queue(priority) {
            queue.retain(|other| *other != stream);
        }
    }

    fn queue(&mut self, priority: Priority) -> Option<&mut VecDeque<StreamId>> {
        self.queues.get_mut(usize::from(priority.value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_priority_and_then_in_turns() {
        let mut scheduler = Scheduler::default();
        let ids: Vec<_> = [1, 3, 5].map(StreamId::new).into();
        let (low, high) = (Priority::LOWEST, Priority::new(2).unwrap());
        scheduler.push(ids[0], low);
        scheduler.push(ids[1], high);
        scheduler.push(ids[2], high);
        let mut turns = vec![];
        for _ in 0..3 {
            let next = scheduler.next().unwrap();
            turns.push(next.value());
            scheduler.push(next, high);
        }
        assert_eq!(turns, [3, 5, 3]);
        scheduler.remove(ids[1], high);
        scheduler.remove(ids[2], high);
        assert_eq!(scheduler.next(), Some(ids[0]));
        assert!(scheduler.is_empty() && scheduler.next().is_none());
    }
}
