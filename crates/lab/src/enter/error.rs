//! Why the lab cannot be entered, and what to do about it.

use std::borrow::Cow;
use std::io;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why the lab cannot be entered.
#[derive(Debug, Error)]
pub enum EnterError {
    /// A process with threads cannot be re-executed into namespaces safely.
    #[error(
        "the lab is entered before any thread is started, and this process has {threads} threads"
    )]
    NotSingleThreaded {
        /// Threads that the process has.
        threads: usize,
    },
    /// The environment says that this process is inside a lab, but no lab started it.
    #[error("the environment variable {variable} is set, but no lab set it for this process")]
    StrayMarker {
        /// The variable's name.
        variable: &'static str,
    },
    /// The system does not let an ordinary user make namespaces.
    #[error("an ordinary user may not make network namespaces here: {0}")]
    UserNamespaces(Denied),
    /// Namespaces are refused although the process may make them.
    #[error("the kernel refused new network, process and mount namespaces")]
    Namespaces(#[source] io::Error),
    /// A step of the set-up failed for a reason of the environment.
    #[error("setting up the lab failed at: {step}")]
    Setup {
        /// What was being done.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Explain for EnterError {
    fn fault(&self) -> Fault {
        match self {
            EnterError::NotSingleThreaded { .. } => Fault::Caller,
            EnterError::StrayMarker { .. }
            | EnterError::UserNamespaces(_)
            | EnterError::Namespaces(_)
            | EnterError::Setup { .. } => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            EnterError::NotSingleThreaded { .. } => Some("enter it first thing in main".into()),
            EnterError::StrayMarker { .. } => Some("unset it".into()),
            EnterError::UserNamespaces(denied) => denied.remedy(),
            EnterError::Namespaces(_) => Some(
                "check that the kernel is built with CONFIG_NET_NS and CONFIG_PID_NS, and that \
                 user.max_net_namespaces and user.max_pid_namespaces are above zero"
                    .into(),
            ),
            EnterError::Setup { .. } => None,
        }
    }
}

/// Which rule of the system forbids user namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{}", self.cause())]
pub enum Denied {
    /// `user.max_user_namespaces` is 0 (a hardened Red Hat, for one).
    MaxUserNamespaces,
    /// `kernel.unprivileged_userns_clone` is 0 (older Debian).
    UnprivilegedClone,
    /// `kernel.apparmor_restrict_unprivileged_userns` is 1 (Ubuntu since 24.04).
    AppArmor,
    /// A seccomp filter is on, as in a container.
    Seccomp,
    /// The kernel has no user namespaces at all.
    NotBuilt,
    /// Refused, and nothing known explains it.
    Unknown {
        /// The number of the error.
        errno: i32,
    },
}

impl Denied {
    /// What forbids them.
    #[must_use]
    pub fn cause(self) -> String {
        match self {
            Denied::MaxUserNamespaces => "user.max_user_namespaces is 0".to_owned(),
            Denied::UnprivilegedClone => "kernel.unprivileged_userns_clone is 0".to_owned(),
            Denied::AppArmor => "AppArmor keeps ordinary users from user namespaces \
                 (kernel.apparmor_restrict_unprivileged_userns is 1)"
                .to_owned(),
            Denied::Seccomp => "a seccomp filter is on, as in a container".to_owned(),
            Denied::NotBuilt => "the kernel is built without CONFIG_USER_NS".to_owned(),
            Denied::Unknown { errno } => format!(
                "the kernel refused ({}), by a chroot or a security module perhaps",
                io::Error::from_raw_os_error(errno)
            ),
        }
    }
}

impl Explain for Denied {
    fn fault(&self) -> Fault {
        Fault::Machine
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Denied::MaxUserNamespaces => {
                "allow them with `sudo sysctl user.max_user_namespaces=15000`, or run with sudo"
            }
            Denied::UnprivilegedClone => {
                "allow them with `sudo sysctl kernel.unprivileged_userns_clone=1`, or run with sudo"
            }
            Denied::AppArmor => {
                "allow them with `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0` (for \
                 all programs, until the next boot) or with an AppArmor profile for this program \
                 that has the rule `userns,`, or run with sudo"
            }
            Denied::Seccomp => {
                "run the container with `--privileged`, or with `--security-opt \
                 seccomp=unconfined --cap-add SYS_ADMIN --cap-add NET_ADMIN`"
            }
            Denied::NotBuilt | Denied::Unknown { .. } => "run with sudo",
        };
        Some(remedy.into())
    }
}

impl Denied {
    /// Finds the rule behind a refusal with error number `errno`.
    #[must_use]
    pub fn diagnose(errno: i32) -> Denied {
        Self::from_settings(errno, setting, seccomp_is_on())
    }

    fn from_settings(errno: i32, read: impl Fn(&str) -> Option<i64>, seccomp: bool) -> Denied {
        if read("/proc/sys/user/max_user_namespaces") == Some(0) {
            Denied::MaxUserNamespaces
        } else if read("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
            Denied::UnprivilegedClone
        } else if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
            Denied::AppArmor
        } else if seccomp {
            Denied::Seccomp
        } else if errno == libc::EINVAL {
            Denied::NotBuilt
        } else {
            Denied::Unknown { errno }
        }
    }
}

fn setting(path: &str) -> Option<i64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn seccomp_is_on() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| {
        line.strip_prefix("Seccomp:").is_some_and(|mode| !matches!(mode.trim(), "0" | ""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_told_from_the_others_and_names_its_remedy() {
        let one = |path: &'static str, value| move |asked: &str| (asked == path).then_some(value);
        let cases = [
            (
                Denied::from_settings(
                    libc::ENOSPC,
                    one("/proc/sys/user/max_user_namespaces", 0),
                    false,
                ),
                Denied::MaxUserNamespaces,
                "sysctl user.max_user_namespaces=",
            ),
            (
                Denied::from_settings(
                    libc::EPERM,
                    one("/proc/sys/kernel/unprivileged_userns_clone", 0),
                    true,
                ),
                Denied::UnprivilegedClone,
                "sysctl kernel.unprivileged_userns_clone=1",
            ),
            (
                Denied::from_settings(
                    libc::EACCES,
                    one("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1),
                    false,
                ),
                Denied::AppArmor,
                "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            ),
            (Denied::from_settings(libc::EPERM, |_| None, true), Denied::Seccomp, "--privileged"),
            (Denied::from_settings(libc::EINVAL, |_| None, false), Denied::NotBuilt, "sudo"),
            (
                Denied::from_settings(libc::EPERM, |_| Some(1_000), false),
                Denied::Unknown { errno: libc::EPERM },
                "sudo",
            ),
        ];
        for (found, expected, remedy) in cases {
            assert_eq!(found, expected);
            assert!(found.remedy().is_some_and(|text| text.contains(remedy)), "{found}");
        }
    }
}
