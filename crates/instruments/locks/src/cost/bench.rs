//! The rounds, run by two pinned threads.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use stats::{Confidence, Estimate, Sample};

use super::{CostError, Operation};

/// Rounds that a median is of, and the fewest that will do.
const ROUNDS: usize = 201;
const NEEDED: usize = 21;
/// All rounds end by then, so that a busy machine is told of and not waited for.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Operations of a round of one thread.
const ALONE: u32 = 2_000;
/// Turns of a round of two, each thread half of them.
const TURNS: u32 = 1_000;
/// A round in which both do what they can.
const FIGHT: Duration = Duration::from_micros(400);
/// Longer than any undisturbed round.
const ROUND_MAX: Duration = Duration::from_millis(20);

pub(super) struct Measured {
    pub alone: Estimate,
    pub handed: Estimate,
    pub fought: Estimate,
    pub rounds: usize,
    pub left_out: usize,
}

/// A value on cache lines of its own (two, since processors fetch them in pairs).
#[repr(align(128))]
struct Apart<T>(T);

/// What the operation works on.
struct Subject {
    rwlock: Apart<UnsafeCell<libc::pthread_rwlock_t>>,
    mutex: Apart<UnsafeCell<libc::pthread_mutex_t>>,
    word: Apart<AtomicU64>,
}

// SAFETY: the locks are only touched by the C library's functions (or those in their place), which
// are made for use by several threads.
unsafe impl Sync for Subject {}

impl Subject {
    fn new() -> Self {
        Self {
            rwlock: Apart(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER)),
            mutex: Apart(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)),
            word: Apart(AtomicU64::new(0)),
        }
    }

    #[inline]
    fn run(&self, operation: Operation) {
        let (rwlock, mutex) = (self.rwlock.0.get(), self.mutex.0.get());
        // SAFETY: initialised by their initialisers, never moved while borrowed; each is unlocked by
        // the thread that locked it.
        unsafe {
            match operation {
                Operation::Read => {
                    libc::pthread_rwlock_rdlock(rwlock);
                    libc::pthread_rwlock_unlock(rwlock);
                }
                Operation::Write => {
                    libc::pthread_rwlock_wrlock(rwlock);
                    libc::pthread_rwlock_unlock(rwlock);
                }
                Operation::Mutex => {
                    libc::pthread_mutex_lock(mutex);
                    libc::pthread_mutex_unlock(mutex);
                }
                Operation::FetchAdd => {
                    self.word.0.fetch_add(1, SeqCst);
                }
            }
        }
    }
}

/// What both threads do in a round.
#[derive(Clone, Copy, PartialEq)]
enum Round {
    /// Turns with nothing in them: the cost of taking turns.
    Empty,
    /// Turns with an operation in each.
    Turns,
    /// Each what it can.
    Fight,
    /// No more rounds.
    End,
}

impl Round {
    fn from(number: u32) -> Self {
        [Round::Empty, Round::Turns, Round::Fight]
            .get(number as usize)
            .copied()
            .unwrap_or(Round::End)
    }
}

/// What the two threads share beside the subject.
struct Table {
    operation: Operation,
    subject: Subject,
    turn: Apart<AtomicU32>,
    /// The number of the round that the second thread may run, and what it is.
    opened: Apart<AtomicU32>,
    round: AtomicU32,
    ready: Apart<AtomicU32>,
    finished: AtomicU32,
    broken: AtomicBool,
    operations: AtomicU64,
    disturbed: AtomicBool,
}

/// How often the kernel has taken this thread off its processor.
fn taken_off() -> i64 {
    // SAFETY: all zero is a valid value, and the kernel writes one of that type.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

fn allowed_processors() -> Vec<usize> {
    // SAFETY: all zero is an empty set; the size is its own; CPU_ISSET stays inside.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

fn pin(cpu: usize) {
    // SAFETY: as above; `cpu` is smaller than CPU_SETSIZE.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

impl Table {
    /// This thread's part of a round: `me` is 0 or 1.
    fn play(&self, round: Round, me: u32) {
        let before = taken_off();
        // Both begin at once.
        self.ready.0.fetch_add(1, SeqCst);
        let begun = Instant::now();
        self.wait(begun, || self.ready.0.load(Relaxed) >= 2);
        let begun = Instant::now();
        match round {
            Round::Empty => self.turns(me, begun, || {}),
            Round::Turns => self.turns(me, begun, || self.subject.run(self.operation)),
            Round::Fight => self.fight(begun),
            Round::End => {}
        }
        if taken_off() != before {
            self.disturbed.store(true, SeqCst);
        }
    }

    /// Spins until `done`, or until the round is broken off.
    #[inline]
    fn wait(&self, begun: Instant, done: impl Fn() -> bool) {
        let mut spins = 0_u32;
        while !done() && !self.broken.load(Relaxed) {
            spin_loop();
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(4096) && begun.elapsed() > ROUND_MAX {
                self.broken.store(true, SeqCst);
            }
        }
    }

    fn turns(&self, me: u32, begun: Instant, operation: impl Fn()) {
        for turn in (me..TURNS).step_by(2) {
            self.wait(begun, || self.turn.0.load(SeqCst) == turn);
            operation();
            self.turn.0.store(turn + 1, SeqCst);
        }
    }

    fn fight(&self, begun: Instant) {
        let mut operations = 0;
        while begun.elapsed() < FIGHT {
            for _ in 0..16 {
                self.subject.run(self.operation);
            }
            operations += 16;
        }
        self.operations.fetch_add(operations, SeqCst);
    }

    /// One round of both, from the first thread; its time per turn or operation in nanoseconds, or
    /// nothing if it was disturbed.
    fn lead(&self, number: u32, round: Round) -> Option<f64> {
        self.round.store(round as u32, SeqCst);
        self.turn.0.store(0, SeqCst);
        self.ready.0.store(0, SeqCst);
        self.finished.store(0, SeqCst);
        self.operations.store(0, SeqCst);
        self.broken.store(false, SeqCst);
        self.disturbed.store(false, SeqCst);
        self.opened.0.store(number, SeqCst);
        // Meet first, so that its coming late is no part of the time.
        let called = Instant::now();
        self.wait(called, || self.ready.0.load(Relaxed) >= 1);
        let begun = Instant::now();
        self.play(round, 0);
        self.wait(begun, || self.finished.load(SeqCst) == 1);
        let took = begun.elapsed().as_nanos() as f64;
        // Whatever happened, the other is out before the next round is laid out.
        while self.finished.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let well = !self.broken.load(SeqCst) && !self.disturbed.load(SeqCst);
        let done = match round {
            Round::Fight => self.operations.load(SeqCst) as f64,
            _ => f64::from(TURNS),
        };
        (well && done > 0.0).then_some(took / done)
    }

    fn follow(&self) {
        let mut seen = 0;
        loop {
            let number = self.opened.0.load(SeqCst);
            if number == seen {
                std::thread::yield_now();
                continue;
            }
            seen = number;
            let round = Round::from(self.round.load(SeqCst));
            if round == Round::End {
                return;
            }
            self.play(round, 1);
            self.finished.store(1, SeqCst);
        }
    }
}

fn alone(subject: &Subject, operation: Operation) -> Option<f64> {
    let before = taken_off();
    let begun = Instant::now();
    for _ in 0..ALONE {
        subject.run(operation);
    }
    let took = begun.elapsed().as_nanos() as f64 / f64::from(ALONE);
    (taken_off() == before).then_some(took)
}

pub(super) fn run(
    operation: Operation,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, CostError> {
    let processors = allowed_processors();
    let &[first, second, ..] = processors.as_slice() else {
        return Err(CostError::Processors(processors.len()));
    };
    let table = Table {
        operation,
        subject: Subject::new(),
        turn: Apart(AtomicU32::new(0)),
        opened: Apart(AtomicU32::new(0)),
        round: AtomicU32::new(Round::End as u32),
        ready: Apart(AtomicU32::new(0)),
        finished: AtomicU32::new(0),
        broken: AtomicBool::new(false),
        operations: AtomicU64::new(0),
        disturbed: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let follow = || {
            pin(second);
            table.follow();
        };
        let lead = || {
            pin(first);
            rounds(&table, stop)
        };
        let thread = std::thread::Builder::new;
        thread().spawn_scoped(scope, follow).map_err(CostError::Start)?;
        // A thread of its own, so that the caller's stays where it may run.
        let leader = thread().spawn_scoped(scope, lead).map_err(CostError::Start);
        let measured = leader.map(std::thread::ScopedJoinHandle::join);
        table.round.store(Round::End as u32, SeqCst);
        table.opened.0.store(u32::MAX, SeqCst);
        measured?.unwrap_or(Err(CostError::Busy { done: 0, needed: NEEDED }))
    })
}

fn rounds(table: &Table, stop: &dyn Fn() -> bool) -> Result<Measured, CostError> {
    let begun = Instant::now();
    let (mut single, mut handed, mut fought) = (Vec::new(), Vec::new(), Vec::new());
    let (mut number, mut left_out) = (0, 0);
    let mut next = |round| {
        number += 1;
        table.lead(number, round)
    };
    while fought.len().min(handed.len()).min(single.len()) < ROUNDS && begun.elapsed() < TIME_MAX {
        if stop() {
            return Err(CostError::Stopped);
        }
        // In turns, so that a change of the machine's speed touches all alike.
        match alone(&table.subject, table.operation) {
            Some(time) => single.push(time),
            None => left_out += 1,
        }
        match (next(Round::Empty), next(Round::Turns)) {
            (Some(empty), Some(full)) => handed.push(full - empty),
            _ => left_out += 1,
        }
        match next(Round::Fight) {
            Some(time) => fought.push(time),
            None => left_out += 1,
        }
    }
    let done = fought.len().min(handed.len()).min(single.len());
    if done < NEEDED {
        return Err(CostError::Busy { done, needed: NEEDED });
    }
    let median = |times: Vec<f64>| -> Result<Estimate, CostError> {
        Ok(Sample::from_vec(times)?.median_estimate(Confidence::C95))
    };
    Ok(Measured {
        alone: median(single)?,
        handed: median(handed)?,
        fought: median(fought)?,
        rounds: done,
        left_out,
    })
}
