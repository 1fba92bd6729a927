//! Where things are in a guest: paths without the slash in front.

/// What the kernel starts.
pub(crate) const INIT: &str = "init";
/// Where programs lie.
pub(crate) const PROGRAMS: &str = "usr/bin";
/// Where shared libraries lie.
pub(crate) const LIBRARIES: &str = "usr/lib";
/// The list of modules. Where it is, this is a guest of ours.
pub(crate) const LIST: &str = "usr/lib/guest-modules/list";

/// The file of a module.
pub(crate) fn module(name: &str) -> String {
    format!("usr/lib/guest-modules/{name}.ko")
}
