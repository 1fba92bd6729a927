//! Keeps the frames of a veth in order.
//!
//! What a veth sends waits in a queue of the sending processor. Two frames that a node sends on
//! two processors can so overtake each other: the kernel's SYN+ACK, sent where the SYN was
//! received, by the data that follow it, sent where the program runs. Receive packet steering puts
//! all into one queue.

use std::fs;
use std::io;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Steers what arrives at interfaces that are made from now on in the calling thread's namespace to one
/// processor, or no longer.
///
/// # Errors
/// The kernel has no such setting of a namespace (before Linux 6.3).
pub(crate) fn new_devices(steered: bool) -> io::Result<()> {
    fs::write("/proc/sys/net/core/rps_default_mask", if steered { "1" } else { "0" })
}

/// Steers what arrives at an interface of the calling thread's namespace to one processor.
///
/// # Errors
/// Without `CAP_NET_ADMIN` outside of any user namespace, or without receive packet steering in
/// the kernel: frames may then overtake each other.
pub(crate) fn to_one_processor(interface: &str) -> io::Result<()> {
    // A mount of its own shows the interfaces of this thread's namespace; it is attached nowhere.
    let context = fsopen(c"sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let sysfs = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let file = format!("class/net/{interface}/queues/rx-0/rps_cpus");
    let setting = openat(&sysfs, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // A mask in hexadecimal: the first processor.
    rustix::io::write(&setting, b"1")?;
    Ok(())
}
