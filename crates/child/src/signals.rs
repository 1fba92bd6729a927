//! Signals of this process and of those that it starts.

use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

type Wish = Box<dyn Fn() -> bool + Send + Sync>;

/// Says whether this process was asked to stop.
static WISH: OnceLock<Wish> = OnceLock::new();

/// Ends every wait for a program as soon as `wish` says so: Ctrl-C does not reach programs of their
/// own process group. The first wish of a process stays.
pub fn stop_when(wish: impl Fn() -> bool + Send + Sync + 'static) {
    let _ = WISH.set(Box::new(wish));
}

/// Whether this process was asked to stop.
#[must_use]
pub fn stopping() -> bool {
    WISH.get().is_some_and(|wish| wish())
}

/// Whether this process ignores a signal: `nohup` and a shell's background jobs begin so.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: reads the present action into a live value; all zeros is a valid one.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Starts a program with no signal ignored or blocked, whatever this process has inherited.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        // SAFETY: system calls on live values. Numbers that cannot be set are refused.
        unsafe {
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(reset) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_known_and_not_passed_on() {
        assert!(!is_ignored(libc::SIGUSR2));
        // SAFETY: nobody sends this signal here.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        assert!(is_ignored(libc::SIGUSR2));
        let mut plain = Command::new("grep");
        plain.args(["SigIgn", "/proc/self/status"]);
        let ignored = |command: &mut Command| {
            let output = command.output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mask = text.trim().rsplit('\t').next().unwrap().to_owned();
            u64::from_str_radix(&mask, 16).unwrap() >> (libc::SIGUSR2 - 1) & 1
        };
        assert_eq!(ignored(&mut plain), 1);
        assert_eq!(ignored(with_default_signals(&mut plain)), 0);
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) };
    }
}
