//! A program in the foreground: signals that reach this process are for it.

use std::process::ExitStatus;
use std::sync::OnceLock;
use std::time::Duration;

use super::Running;
use crate::Error;
use crate::enter::Signals;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(20);

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
    /// sends to all of its foreground it has already.
    #[must_use]
    pub fn wait_with(&self, held: &HeldSignals) -> ExitStatus {
        loop {
            while let Some(signal) = held.0.next_to_pass_on() {
                self.signal(signal);
            }
            if let Some(status) = self.wait(LOOK) {
                return status;
            }
        }
    }
}
