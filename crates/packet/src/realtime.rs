//! Real-time scheduling inside a user namespace.
//!
//! The kernel grants SCHED_RR by rights over the machine, which a user namespace takes away. A thread keeps
//! the scheduling that it has, though, and so do the threads that it starts (sched(7)). So a process with
//! these rights calls [`begin`] before it makes the namespace; the program inside calls [`keep`] first of
//! all, and [`spawn`] then starts its real-time threads.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use crate::thread::leave_realtime;

/// Lowest priority of SCHED_RR: above all ordinary threads, below all other real-time ones. It is handed on,
/// and cannot be raised later.
pub const PRIORITY: u8 = 1;

type Work = Box<dyn FnOnce() + Send>;

/// The thread that keeps the scheduling, and starts the threads that inherit it.
static KEEPER: OnceLock<Sender<Work>> = OnceLock::new();

/// Runs the calling thread, and all that it starts, under SCHED_RR until [`leave`]; returns whether the system
/// grants it.
#[must_use]
pub fn begin() -> bool {
    raise_limit();
    // SAFETY: `sched_param` is a C struct of integers; all zeroes is valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = PRIORITY.into();
    // SAFETY: `parameters` outlives the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) == 0 }
}

/// Raises an ordinary user's limit to [`PRIORITY`], where the administrator permits that.
fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or write one live value. Refused, the rights alone count.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_RTPRIO, &raw mut limit) == 0 && limit.rlim_cur == 0 {
            limit.rlim_cur = PRIORITY.into();
            limit.rlim_max = limit.rlim_max.max(limit.rlim_cur);
            libc::setrlimit(libc::RLIMIT_RTPRIO, &raw const limit);
        }
    }
}

/// Takes the calling thread back to the ordinary scheduler.
pub fn leave() {
    // Always permitted (sched_setscheduler(2)).
    let _ = leave_realtime();
}

/// Keeps an inherited SCHED_RR for the threads of [`spawn`], and takes the calling thread back to the ordinary
/// scheduler, so that nothing else inherits it. Does nothing in a thread without it.
pub fn keep() {
    // SAFETY: no memory is passed; 0 is the calling thread.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_RR {
        return;
    }
    let (sender, works) = channel::<Work>();
    let keeper = Builder::new().name("realtime".to_owned());
    // The program's signals are for its other threads, which may hold them back.
    let kept = without_signals(|| keeper.spawn(move || works.into_iter().for_each(|work| work())));
    // Where no thread is to be had, threads are started without it.
    if kept.is_ok() {
        let _ = KEEPER.set(sender);
    }
    leave();
}

/// Runs `start` with all signals blocked, as the threads that it starts then keep them.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: both sets live as long as the calls; `sigfillset` makes a valid one of the first, and the kernel
    // writes the second before it is read.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}

/// Starts a thread, which may then ask for SCHED_RR at [`PRIORITY`] where [`keep`] has kept it.
///
/// # Errors
/// The system's: no thread can be started.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let thread = Builder::new().name(name.to_owned());
    let Some(keeper) = KEEPER.get() else { return thread.spawn(work) };
    let (started, answer) = channel();
    let start = move || drop(started.send(thread.spawn(work)));
    let gone = || io::Error::other("the thread that starts real-time threads has ended");
    keeper.send(Box::new(start)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}
