//! Tasks on several threads, whose results do not depend on how many there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// What `task` makes of each item, in their order: on so many threads, of which each takes the next item
/// when it is through with one.
pub(super) fn side_by_side<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    task: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.iter().map(task).collect();
    }
    let next = AtomicUsize::new(0);
    let some = || {
        let mut made = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return made };
            made.push((at, task(item)));
        }
    };
    let mut made = thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            // One that cannot be started leaves its part to the others.
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, some).ok())
            .collect();
        let mut made = some();
        for other in others {
            made.extend(joined(other));
        }
        made
    });
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, made)| made).collect()
}

/// What two tasks make: on more than one thread the second beside the first, which may use threads itself.
pub(super) fn both<A, B: Send>(
    threads: usize,
    first: impl FnOnce() -> A,
    second: impl Fn() -> B + Sync,
) -> (A, B) {
    thread::scope(|scope| {
        let second = &second;
        let beside = threads > 1;
        // One that cannot be started leaves its task to this one.
        let other =
            beside.then(|| thread::Builder::new().spawn_scoped(scope, second).ok()).flatten();
        let first = first();
        (first, other.map_or_else(second, joined))
    })
}

/// What a thread made; its panic is the caller's.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_items_order_on_any_number_of_threads() {
        let items: Vec<u64> = (0..1000).collect();
        for threads in [0, 1, 2, 7, 2000] {
            let made = side_by_side(threads, &items, |item| item * 3);
            assert_eq!(made, items.iter().map(|item| item * 3).collect::<Vec<_>>());
        }
        assert!(side_by_side(4, &[], |item: &u64| *item).is_empty());
    }

    #[test]
    #[should_panic(expected = "the seventh")]
    fn a_panic_of_any_thread_is_the_callers() {
        let items: Vec<u64> = (0..100).collect();
        side_by_side(4, &items, |item| assert!(*item != 7, "the seventh"));
    }
}
