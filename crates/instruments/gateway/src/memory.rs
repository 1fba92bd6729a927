//! Memory of connections that are gone goes back to the system.

use std::time::Duration;

use tcpio::Stack;

/// How often it is looked at. What is free is kept so long at most.
const OFTEN: Duration = Duration::from_secs(5);
/// Bytes beside its buffers that a connection takes, about.
const CONNECTION: usize = 32 << 10;
/// Less than that is not worth the time of the allocator's search.
const WORTH: usize = 16 << 20;

/// Gives memory back whenever the stack's connections have come to need half of it or less. Does not end.
pub(crate) async fn give_back(stack: Stack) {
    let mut peak = Peak::default();
    loop {
        tokio::time::sleep(OFTEN).await;
        let counters = stack.counters();
        let buffers = counters.receive_held + counters.send_held;
        if peak.is_past(buffers + counters.connections * CONNECTION) {
            packet::memory::give_back();
        }
    }
}

/// The most that was needed since memory was given back.
#[derive(Debug, Default)]
struct Peak(usize);

impl Peak {
    /// Notes the need of now, and says whether memory is to be given back.
    fn is_past(&mut self, now: usize) -> bool {
        self.0 = self.0.max(now);
        let free = self.0 - now;
        let is_past = free >= WORTH && free >= now;
        if is_past {
            self.0 = now;
        }
        is_past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_half_of_much_is_free() {
        let mut peak = Peak::default();
        let mebibytes = [0, 10, 0, 100, 60, 50, 40, 35, 60, 31, 30, 0, 0];
        let past = mebibytes.map(|now| peak.is_past(now << 20));
        let at: Vec<usize> = (0..past.len()).filter(|at| past[*at]).collect();
        // 50 of 100; 30 of 60; 0 of 30.
        assert_eq!(at, [5, 10, 11]);
    }
}
