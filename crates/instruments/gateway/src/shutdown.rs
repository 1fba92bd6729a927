//! Ending: first no more connections, then a bounded time for those that are open, then the end.

use std::time::Duration;

use tokio::sync::watch;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Nobody asked for it.
    Running,
    /// No connection is accepted; open ones may go on.
    Draining,
    /// Whatever is open is cut off.
    Now,
}

/// Asks for the end. The gateway follows as long as this lives, and ends at once when it is dropped.
#[derive(Debug)]
pub struct Ending(watch::Sender<Stage>);

/// Sees it come.
#[derive(Debug, Clone)]
pub struct Ended(watch::Receiver<Stage>);

/// The side that asks for the end and the side that sees it, still running.
#[must_use]
pub fn ending() -> (Ending, Ended) {
    let (sender, receiver) = watch::channel(Stage::Running);
    (Ending(sender), Ended(receiver))
}

impl Ending {
    /// Takes the end one stage further, never back.
    pub fn advance(&self, to: Stage) {
        self.0.send_if_modified(|stage| {
            let further = to > *stage;
            *stage = to.max(*stage);
            further
        });
    }
}

impl Ended {
    /// Waits until the end has come as far as `stage`.
    pub async fn reached(&mut self, stage: Stage) {
        // An error says that nobody is left to ask: that is the end too.
        let _ = self.0.wait_for(|now| *now >= stage).await;
    }

    /// Waits for `done`, at most `bound` and not longer than until [`Stage::Now`]. Whether it came.
    pub async fn drained(&mut self, done: impl Future<Output = ()>, bound: Duration) -> bool {
        tokio::select! {
            biased;
            () = done => true,
            () = self.reached(Stage::Now) => false,
            () = tokio::time::sleep(bound) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn stages_only_go_forward() {
        let (ending, mut ended) = ending();
        ending.advance(Stage::Now);
        ending.advance(Stage::Draining);
        block_on(ended.reached(Stage::Now));
    }

    #[test]
    fn draining_is_bounded_by_time_and_by_the_next_stage() {
        block_on(async {
            let (ending, mut ended) = ending();
            let never = std::future::pending;
            assert!(ended.drained(std::future::ready(()), Duration::MAX).await);
            assert!(!ended.drained(never(), Duration::ZERO).await);
            ending.advance(Stage::Now);
            assert!(!ended.drained(never(), Duration::from_secs(3600)).await);
        });
    }

    #[test]
    fn the_end_comes_when_nobody_is_left_to_ask_for_it() {
        let (ending, mut ended) = ending();
        drop(ending);
        block_on(ended.reached(Stage::Now));
    }
}
