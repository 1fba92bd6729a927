//! Giving up rights once they have been used.

use std::env;
use std::fs;
use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::Error;

/// The user and group `nobody` where the system does not say otherwise.
const NOBODY: Identity = Identity { user: 65_534, group: 65_534 };

/// A user and a group by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// User number, as getuid(2) has it.
    pub user: u32,
    /// Group number, as getgid(2) has it.
    pub group: u32,
}

/// What has become of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Whom it runs as, if it ran as root before.
    pub identity: Option<Identity>,
}

/// Gives up all rights that the process has beyond an ordinary user's, for good: root becomes the
/// user who called sudo, else the real user, else `nobody`; all capabilities go, and no program
/// started later can get any (`no_new_privs`; the bounding set too, where that is allowed). That it
/// worked is read back from the kernel, for every thread.
///
/// In a user namespace that lacks this user, as one with a single user does, root is an ordinary user
/// outside of it, and stays so.
///
/// Call it after everything that needs rights is open, and before any other thread is started:
/// capabilities belong to threads.
///
/// # Errors
/// [`Error::System`] if the kernel refuses; [`Error::RightsKept`] if some right is still there. The process should then end.
pub fn drop_privileges() -> Result<Dropped, Error> {
    let identity = identity_after();
    give_up(identity)?;
    verify(identity)?;
    Ok(Dropped { identity })
}

/// As [`drop_privileges`], for an identity found before and without reading anything back: it makes system
/// calls only, so that it may stand between fork and exec.
///
/// # Errors
/// [`Error::System`] if the kernel refuses.
pub fn give_up(identity: Option<Identity>) -> Result<(), Error> {
    set_no_new_privs(true).map_err(system("setting no_new_privs"))?;
    bound_capabilities();
    if let Some(identity) = identity {
        become_user(identity)?;
    }
    // Kernels before 4.3 have no ambient set.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(system("giving up capabilities"))
}

/// Takes every capability from the bounding set. Without CAP_SETPCAP it stays; then it is
/// `no_new_privs` alone that bounds what is started.
fn bound_capabilities() {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel knows no more of them.
        let Ok(held) = capability_is_in_bounding_set(capability) else { return };
        if held && remove_capability_from_bounding_set(capability).is_err() {
            return;
        }
    }
}

fn system(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> Error {
    move |errno| Error::System { doing, source: errno.into() }
}

/// Whom the process will run as after [`drop_privileges`], if it runs as root now: what it is to write
/// later must be that user's.
#[must_use]
pub fn identity_after() -> Option<Identity> {
    let identity = rustix::process::geteuid().is_root().then(choose)?;
    (has("uid_map", identity.user) && has("gid_map", identity.group)).then_some(identity)
}

/// Returns the identity that root gives its outputs to when nobody called it: it opens them before
/// [`drop_privileges`]. `None` without root, and when a user called root by sudo or a setuid program: what that
/// user may not write, root does not write for him, so outputs are opened after [`drop_privileges`].
#[must_use]
pub fn heir() -> Option<Identity> {
    identity_after().filter(|_| caller().is_none())
}

/// Whether our user namespace has this number, by a map as user_namespaces(7) describes it. One that
/// cannot be read has all.
fn has(map: &str, number: u32) -> bool {
    fs::read_to_string(format!("/proc/self/{map}")).map_or(true, |map| is_mapped(&map, number))
}

fn is_mapped(map: &str, number: u32) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u32>);
        let (Some(Ok(first)), Some(Ok(len))) = (fields.next(), fields.nth(1)) else { return false };
        number.checked_sub(first).is_some_and(|offset| offset < len)
    })
}

/// Who root becomes.
fn choose() -> Identity {
    caller().or_else(|| nobody(&fs::read_to_string("/etc/passwd").ok()?)).unwrap_or(NOBODY)
}

/// The user who called root: by sudo, else by a setuid program.
fn caller() -> Option<Identity> {
    let number = |name| env::var(name).ok()?.parse::<u32>().ok();
    let sudo = number("SUDO_UID").zip(number("SUDO_GID"));
    let real = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    [sudo, Some(real)]
        .into_iter()
        .flatten()
        .find(|(user, group)| *user != 0 && *group != 0 && *user != u32::MAX && *group != u32::MAX)
        .map(|(user, group)| Identity { user, group })
}

/// `nobody` in passwd(5) format.
fn nobody(passwd: &str) -> Option<Identity> {
    let line = passwd.lines().find(|line| line.starts_with("nobody:"))?;
    let mut fields = line.split(':').skip(2);
    let (user, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (user != 0 && group != 0).then_some(Identity { user, group })
}

/// Groups first, then the group, then the user: after that nothing more may be changed.
fn become_user(Identity { user, group }: Identity) -> Result<(), Error> {
    // SAFETY: no groups are read from the null pointer, as their number is zero. The C library
    // makes this and the next calls for all threads.
    if unsafe { libc::setgroups(0, std::ptr::null()) } != 0 {
        return Err(Error::last("giving up root's groups"));
    }
    // SAFETY: no memory is passed.
    if unsafe { libc::setresgid(group, group, group) } != 0 {
        return Err(Error::last("giving up root's group"));
    }
    // SAFETY: no memory is passed.
    if unsafe { libc::setresuid(user, user, user) } != 0 {
        return Err(Error::last("giving up root"));
    }
    Ok(())
}

/// Reads back what every thread may still do, and tries to become root again.
fn verify(identity: Option<Identity>) -> Result<(), Error> {
    let unread = |source: io::Error| Error::System { doing: "reading /proc/self/task", source };
    for task in fs::read_dir("/proc/self/task").map_err(unread)? {
        let status = task.map_err(unread)?.path().join("status");
        let status = match fs::read_to_string(status) {
            Ok(status) => status,
            // A thread that has ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unread(error)),
        };
        if let Some(what) = kept(&status, identity) {
            return Err(Error::RightsKept { what });
        }
    }
    // SAFETY: no memory is passed.
    if identity.is_some() && unsafe { libc::setresuid(0, 0, 0) } == 0 {
        return Err(Error::RightsKept { what: "root, which could be had again" });
    }
    Ok(())
}

/// The right that a thread with this `/proc/PID/status` still has.
fn kept(status: &str, identity: Option<Identity>) -> Option<&'static str> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let all_are = |name, wanted: u32| {
        field(name).is_some_and(|numbers| {
            numbers.split_whitespace().all(|number| number.parse() == Ok(wanted))
        })
    };
    for set in ["CapInh", "CapPrm", "CapEff"] {
        if field(set).is_none_or(|bits| u64::from_str_radix(bits, 16) != Ok(0)) {
            return Some("capabilities");
        }
    }
    if field("CapAmb").is_some_and(|bits| u64::from_str_radix(bits, 16) != Ok(0)) {
        return Some("ambient capabilities");
    }
    if field("NoNewPrivs").is_some_and(|set| set != "1") {
        return Some("the right to gain rights by starting programs");
    }
    match identity {
        Some(Identity { user, group }) => {
            if !all_are("Uid", user) {
                return Some("root");
            }
            if !all_are("Gid", group) || field("Groups").is_some_and(|groups| !groups.is_empty()) {
                return Some("root's groups");
            }
            None
        }
        // The only user there is.
        None if rustix::process::geteuid().is_root() => None,
        // A saved root.
        None => field("Uid")?.split_whitespace().any(|number| number == "0").then_some("root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t \n\
        CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
        CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n";

    #[test]
    fn a_right_that_is_left_is_seen() {
        let identity = Some(Identity { user: 7, group: 8 });
        assert_eq!(kept(CLEAN, identity), None);
        assert_eq!(kept(CLEAN, None), None);
        let with = |from: &str, to: &str| {
            let changed = CLEAN.replace(from, to);
            assert_ne!(changed, CLEAN);
            kept(&changed, identity)
        };
        assert_eq!(
            with("CapPrm:\t0000000000000000", "CapPrm:\t0000000000002000"),
            Some("capabilities")
        );
        assert_eq!(with("CapAmb:\t0", "CapAmb:\t1"), Some("ambient capabilities"));
        assert_eq!(with("Uid:\t7\t7\t7", "Uid:\t7\t7\t0"), Some("root"));
        assert_eq!(with("Gid:\t8", "Gid:\t0"), Some("root's groups"));
        assert_eq!(with("Groups:\t ", "Groups:\t0 "), Some("root's groups"));
        assert!(with("NoNewPrivs:\t1", "NoNewPrivs:\t0").is_some());
        assert_eq!(kept("", identity), Some("capabilities"));
    }

    #[test]
    fn a_namespace_has_the_users_of_its_map() {
        let all = "         0          0 4294967295\n";
        let one = "         0       1000          1\n";
        let some = "0 1000 1\n1 100000 65536\n";
        for (map, number, has) in [
            (all, 65_534, true),
            (one, 0, true),
            (one, 65_534, false),
            (some, 65_534, true),
            (some, 65_537, false),
            ("nonsense", 0, false),
        ] {
            assert_eq!(is_mapped(map, number), has, "{map} {number}");
        }
    }

    #[test]
    fn nobody_is_found_in_passwd() {
        let text = "root:x:0:0:root:/root:/bin/sh\nnobody:x:99:98:n:/:/bin/false\n";
        assert_eq!(nobody(text), Some(Identity { user: 99, group: 98 }));
        assert_eq!(nobody("nobody:x:0:0::/:"), None);
        assert_eq!(nobody("root:x:0:0"), None);
    }
}
