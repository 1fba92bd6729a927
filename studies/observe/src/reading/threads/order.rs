//! The threads' outputs in the order of the capture.

use std::collections::{BTreeMap, HashMap};

use capture::Progress;
use tracker::{Counters, Output};

use super::{Done, Standing};

/// Puts what the threads give out into one order, and renumbers connections.
pub(super) struct Order {
    /// The batch that is next.
    next: u64,
    /// What has come of it and of later ones.
    waiting: BTreeMap<u64, Vec<Done>>,
    workers: Vec<Numbers>,
    /// Connections that began so far, in all threads.
    begun: u64,
    progress: Progress,
}

/// The connections of one thread.
#[derive(Default)]
struct Numbers {
    /// Connections begun, by its tracker's own count.
    begun: u64,
    /// Of those that are followed: the number in all, by the tracker's.
    of_all: HashMap<u64, u64>,
    counters: Counters,
    active: usize,
}

impl Numbers {
    /// The number of a connection in all; forgotten when nothing more will come of it.
    fn of_all(&mut self, own: u64, ended: bool) -> u64 {
        let number = match ended {
            true => self.of_all.remove(&own),
            false => self.of_all.get(&own).copied(),
        };
        number.unwrap_or(own)
    }
}

impl Order {
    pub(super) fn new(workers: usize) -> Order {
        Order {
            next: 0,
            waiting: BTreeMap::new(),
            workers: (0..workers).map(|_| Numbers::default()).collect(),
            begun: 0,
            progress: Progress::default(),
        }
    }

    pub(super) fn add(&mut self, done: Done) {
        self.waiting.entry(done.batch).or_default().push(done);
    }

    /// The outputs of the next batch, if all threads are through with it.
    pub(super) fn next_batch(&mut self) -> Option<Vec<Output>> {
        let first = self.waiting.first_entry().filter(|entry| *entry.key() == self.next)?;
        if first.get().len() < self.workers.len() {
            return None;
        }
        let all = first.remove();
        self.next += 1;
        self.number(&all);
        let mut outputs = Vec::with_capacity(all.iter().map(|done| done.outputs.len()).sum());
        for done in all {
            let Some(worker) = self.workers.get_mut(done.worker) else { continue };
            (worker.counters, worker.active) = (done.counters, done.active);
            self.progress = done.progress;
            for (index, mut output) in done.outputs {
                let number = match &mut output {
                    Output::Connection(connection) => {
                        let ended = !connection.goes_on;
                        connection.number = worker.of_all(connection.number, ended);
                        connection.number
                    }
                    Output::Ending(ending) => {
                        ending.number = worker.of_all(ending.number, true);
                        ending.number
                    }
                };
                // At the end of all, connections come in the order in which they began.
                let rank = if index == u32::MAX { number } else { 0 };
                outputs.push((index, rank, output));
            }
        }
        // Stable: what one thread gives out at one place stays in its order.
        outputs.sort_by_key(|(index, rank, _)| (*index, *rank));
        Some(outputs.into_iter().map(|(_, _, output)| output).collect())
    }

    /// Gives numbers to the connections that began in a batch.
    fn number(&mut self, all: &[Done]) {
        let begun = all.iter().flat_map(|done| done.begun.iter().map(|at| (*at, done.worker)));
        let mut begun: Vec<(u32, usize)> = begun.collect();
        begun.sort_unstable();
        for (_, worker) in begun {
            let Some(worker) = self.workers.get_mut(worker) else { continue };
            worker.of_all.insert(worker.begun, self.begun);
            worker.begun += 1;
            self.begun += 1;
        }
    }

    /// How things stand after the last batch.
    pub(super) fn standing(&self) -> Standing {
        let mut counters = Counters::default();
        self.workers.iter().for_each(|worker| counters.add(&worker.counters));
        let active = self.workers.iter().map(|worker| worker.active).sum();
        Standing { counters, active, progress: self.progress }
    }
}
