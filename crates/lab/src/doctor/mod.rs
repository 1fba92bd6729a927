//! What this machine can do, what is missing, and how to get it.

mod host;
mod probe;

use fault::Explain;
use serde::Serialize;

use crate::enter::{Denied, EnterOptions, makes_user_namespace, may_administer};
use probe::{Outcomes, Trial};

/// One thing that the lab needs or can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is, in a few words.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// Whether the lab cannot work without it.
    pub required: bool,
    /// What was found.
    pub detail: String,
    /// What to do if it is not as it should be.
    pub remedy: Option<String>,
}

impl Fact {
    pub(super) fn good(name: &'static str, detail: impl Into<String>) -> Fact {
        Fact { name, ok: true, required: false, detail: detail.into(), remedy: None }
    }

    pub(super) fn bad(
        name: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Fact {
        let remedy = Some(remedy.into());
        Fact { name, ok: false, required: false, detail: detail.into(), remedy }
    }

    fn required(mut self) -> Fact {
        self.required = true;
        self
    }
}

/// Finds out what this machine can do. Works inside and outside the lab and in a process with
/// threads; what it tries, it tries in a process of its own that is gone when this returns.
#[must_use]
pub fn doctor() -> Vec<Fact> {
    let as_user = !may_administer();
    let mut facts = host::facts(as_user);
    match probe::run(makes_user_namespace(&EnterOptions::new()), as_user) {
        Ok(outcomes) => facts.extend(kernel_facts(&outcomes, as_user)),
        Err(error) => facts.push(
            Fact::bad(
                "namespaces",
                format!("a scratch process could not be used: {error}"),
                "raise `ulimit -u`, or see what forbids processes here",
            )
            .required(),
        ),
    }
    facts
}

fn kernel_facts(outcomes: &Outcomes, as_user: bool) -> Vec<Fact> {
    let mut facts = vec![user_namespaces(outcomes, as_user).required()];
    let mut fact = |trial, name, good: &str, bad: &str, remedy: &str| {
        facts.push(match outcomes.of(trial) {
            Some(0) => Fact::good(name, good),
            Some(errno) => Fact::bad(name, format!("{bad} ({})", text(errno)), remedy),
            None => Fact::bad(name, "not tried: it needs what failed above", "see above"),
        });
        facts.len() - 1
    };
    let required = [
        fact(
            Trial::NetworkNamespace,
            "network namespaces",
            "can be made",
            "refused",
            "use a kernel with CONFIG_NET_NS and set user.max_net_namespaces above zero",
        ),
        fact(
            Trial::OtherNamespaces,
            "process and mount namespaces",
            "can be made",
            "refused",
            "use a kernel with CONFIG_PID_NS and set user.max_pid_namespaces above zero",
        ),
        fact(
            Trial::Veth,
            "veth",
            "pairs can be made",
            "refused",
            "load it with `sudo modprobe veth`, or use a kernel with CONFIG_VETH",
        ),
        fact(
            Trial::Settings,
            "network settings",
            "can be set for each namespace",
            "cannot be set",
            READ_ONLY_SETTINGS,
        ),
        fact(
            Trial::PacketSocket,
            "AF_PACKET",
            "raw frames can be sent and captured",
            "refused",
            "load it with `sudo modprobe af_packet`, or use a kernel with CONFIG_PACKET",
        ),
    ];
    fact(
        Trial::Tap,
        "TAP",
        "can be used: less CPU time a frame than veth",
        "cannot be used; veth links are used instead",
        tap_remedy(outcomes.of(Trial::Tap)),
    );
    fact(
        Trial::Realtime,
        "real-time scheduling",
        "granted: frames leave within microseconds of their due time",
        "refused; frames leave tens of microseconds late",
        "run as root, in a container with CAP_SYS_RESOURCE, or add `USER - rtprio 10` to \
         /etc/security/limits.conf and log in again",
    );
    fact(
        Trial::FastOpen,
        "Fast Open settings",
        "can be set for each namespace",
        "cannot be set; Fast Open is not measured",
        "use Linux 4.14 or newer",
    );
    fact(
        Trial::Netem,
        "netem",
        "can be used as a second backend",
        "missing; the link pump is used, which needs none",
        "load it with `sudo modprobe sch_netem` (Fedora, Red Hat: package kernel-modules-extra)",
    );
    for at in required {
        if let Some(fact) = facts.get_mut(at) {
            fact.required = true;
        }
    }
    facts
}

fn user_namespaces(outcomes: &Outcomes, as_user: bool) -> Fact {
    const NAME: &str = "user namespaces";
    let tried = [Trial::UserNamespace, Trial::Maps, Trial::NetworkNamespace];
    let failed = tried.into_iter().filter_map(|trial| outcomes.of(trial)).find(|errno| *errno != 0);
    match failed {
        None if as_user => Fact::good(NAME, "can be made by an ordinary user"),
        None if outcomes.of(Trial::UserNamespace).is_some() => {
            Fact::good(NAME, "can be made: the lab has no rights over the machine")
        }
        _ if !as_user => Fact::good(NAME, "not made: the lab keeps root's rights"),
        None => Fact::good(NAME, "not tried"),
        Some(errno) => {
            let denied = Denied::diagnose(errno);
            Fact::bad(NAME, denied.cause(), denied.remedy().unwrap_or_default())
        }
    }
}

/// The remedy where `/proc/sys` cannot be written.
pub(crate) const READ_ONLY_SETTINGS: &str = "mount /proc/sys writable: run the container with `--privileged` or \
     with `--security-opt systempaths=unconfined`, or run as root with CAP_SYS_ADMIN";

fn tap_remedy(outcome: Option<i32>) -> &'static str {
    match outcome {
        // The device is there: loading its module opens it to nobody.
        Some(libc::EACCES) => {
            "run as root, or let users open /dev/net/tun (`ls -l` says who may; udev gives it mode 0666)"
        }
        _ => "run as root, or load it with `sudo modprobe tun`",
    }
}

/// What an error number means.
fn text(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_may_not_be_opened_is_not_said_to_be_missing() {
        assert!(tap_remedy(Some(libc::EACCES)).contains("/dev/net/tun"));
        assert!(tap_remedy(Some(libc::ENOENT)).contains("modprobe"));
    }

    #[test]
    fn every_fact_that_is_not_ok_has_a_remedy() {
        let facts = doctor();
        assert!(facts.len() >= 12, "{facts:#?}");
        for fact in &facts {
            assert!(!fact.detail.is_empty());
            assert_eq!(fact.ok, fact.remedy.is_none(), "{fact:?}");
        }
        let mut names: Vec<_> = facts.iter().map(|fact| fact.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), facts.len(), "two facts of one name");
    }
}
