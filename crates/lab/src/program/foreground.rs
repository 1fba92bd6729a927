//! A program in the foreground: signals that reach this process are for it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::Running;
use crate::Error;
use crate::enter::Signals;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program may run on after SIGTERM. Shells at a terminal ignore it.
const GRACE: Duration = Duration::from_secs(5);
/// A SIGTERM this soon after the first is the same wish, sent to several processes.
const SAME_WISH: Duration = Duration::from_millis(500);

/// Signals as they were blocked before they were held: programs start so.
static BEFORE: OnceLock<libc::sigset_t> = OnceLock::new();

/// The signals to be blocked in a program that is started, where this process holds some.
pub(super) fn mask_of_programs() -> Option<libc::sigset_t> {
    BEFORE.get().copied()
}

/// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2, held so that they do not end this process but
/// are passed on to a program.
#[derive(Debug)]
pub struct HeldSignals(Signals);

impl HeldSignals {
    /// Holds them from now on, in this thread and in those that it starts: call it before a lab is made.
    ///
    /// # Errors
    /// [`Error::Netlink`] if the kernel refuses.
    pub fn hold() -> Result<HeldSignals, Error> {
        let refused = |source| Error::Netlink { doing: "holding signals".to_owned(), source };
        let signals = Signals::block().map_err(refused)?;
        BEFORE.get_or_init(|| signals.before());
        Ok(HeldSignals(signals))
    }
}

impl Running {
    /// Waits for the program's end, and passes on to it the signals that were held. What the terminal
    /// sends to all of its foreground it has already. A program that runs on for 5 s after SIGTERM, or until
    /// a second one, is killed with all that it has started, and counts as ended by SIGTERM.
    #[must_use]
    pub fn wait_with(&self, held: &HeldSignals) -> ExitStatus {
        let mut asked: Option<Instant> = None;
        let mut limit = GRACE;
        loop {
            while let Some(signal) = held.0.next_to_pass_on() {
                self.signal(signal);
                if signal == libc::SIGTERM {
                    let first = *asked.get_or_insert_with(Instant::now);
                    if first.elapsed() > SAME_WISH {
                        limit = Duration::ZERO;
                    }
                }
            }
            if let Some(status) = self.wait(LOOK) {
                return status;
            }
            if asked.is_some_and(|first| first.elapsed() > limit) {
                self.shared().kill();
                self.shared().wait_gone();
                return ExitStatus::from_raw(libc::SIGTERM);
            }
        }
    }
}
