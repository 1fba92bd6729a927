//! How the calling thread is scheduled: real time, processor, timer slack.

use std::io;
use std::mem;
use std::time::Duration;

use crate::Error;

/// Runs the calling thread under SCHED_RR at `priority` (1 to 99) from now on; threads that it
/// starts do not inherit it.
///
/// SCHED_RR and not SCHED_FIFO: two FIFO threads of one priority on one processor never yield to
/// each other, so two laboratories on one machine could hang each other.
///
/// # Errors
/// [`Error::Unsupported`] if the system grants no real-time scheduling.
pub fn try_round_robin(priority: u8) -> Result<(), Error> {
    set_scheduler(libc::SCHED_RR, i32::from(priority)).map_err(|source| Error::Unsupported {
        what: "real-time scheduling for this user",
        remedy: "run as root, give the program CAP_SYS_NICE, or raise the user's limit `rtprio` \
                 in /etc/security/limits.conf",
        source,
    })
}

/// Takes the calling thread back to the ordinary scheduler. Always permitted.
///
/// # Errors
/// [`Error::System`].
pub fn leave_realtime() -> Result<(), Error> {
    set_scheduler(libc::SCHED_OTHER, 0)
        .map_err(|source| Error::System { doing: "leaving real-time scheduling", source })
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: `sched_param` is a C struct of integers; all zeroes is valid.
    let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
    parameters.sched_priority = priority;
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` outlives the call; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks the ordinary scheduler for short turns of 0.1 ms, by which a thread that wakes up runs
/// sooner on a busy machine (EEVDF, Linux 6.12 and newer; older kernels ignore it). No privilege is
/// needed.
///
/// # Errors
/// [`Error::System`].
pub fn ask_for_short_slices() -> Result<(), Error> {
    // SAFETY: `sched_attr` is a C struct of integers; all zeroes is valid.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    attributes.size = mem::size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_OTHER as u32;
    // SAFETY: no memory is passed; 0 is the calling thread.
    attributes.sched_nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    attributes.sched_runtime = 100_000;
    // SAFETY: `attributes` outlives the call and states its own size; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(Error::last("asking for short time slices")) }
}

/// Keeps the calling thread on processor `cpu`.
///
/// # Errors
/// [`Error::System`] if there is no such processor or the thread may not run on it.
pub fn pin(cpu: usize) -> Result<(), Error> {
    let doing = "keeping a thread on one processor";
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(Error::System { doing, source: io::ErrorKind::InvalidInput.into() });
    }
    // SAFETY: `cpu_set_t` is a bit mask; all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `cpu` is below CPU_SETSIZE, so the bit lies within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: pointer and length describe `set`; 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set) };
    if result == 0 { Ok(()) } else { Err(Error::last(doing)) }
}

/// The processors on which the calling thread may run, in order. Never empty: if the kernel does
/// not say, processor 0.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: `cpu_set_t` is a bit mask; all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: pointer and length describe `set`, which the kernel fills; 0 is the calling thread.
    let result = unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &raw mut set) };
    if result != 0 {
        return vec![0];
    }
    let cpus: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
        // SAFETY: `cpu` is below CPU_SETSIZE, so the bit lies within the set.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Lets the kernel fire this thread's timers at most `slack` late on purpose (default 50 us, least
/// 1 ns); it saves power by joining timers.
///
/// # Errors
/// [`Error::System`].
pub fn set_timer_slack(slack: Duration) -> Result<(), Error> {
    let nanos = libc::c_ulong::try_from(slack.as_nanos()).unwrap_or(libc::c_ulong::MAX).max(1);
    // SAFETY: no memory is passed.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) };
    if result == 0 { Ok(()) } else { Err(Error::last("setting the timer slack")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned_to_an_allowed_processor() {
        std::thread::spawn(|| {
            let last = *allowed_cpus().last().unwrap();
            pin(last).unwrap();
            assert_eq!(allowed_cpus(), [last]);
            assert!(pin(usize::MAX).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn ordinary_scheduling_and_timer_slack_are_always_granted() {
        std::thread::spawn(|| {
            leave_realtime().unwrap();
            ask_for_short_slices().unwrap();
            set_timer_slack(Duration::from_nanos(1)).unwrap();
        })
        .join()
        .unwrap();
    }
}
