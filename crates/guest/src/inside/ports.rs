//! The devices by which a guest hears and speaks: ports of a PC that QEMU answers, without a driver. QEMU
//! writes each byte before the guest takes its next instruction, so that nothing is lost at the end, and
//! the guest's time does not depend on who reads.
//!
//! `fw_cfg` has the job, there before the machine starts (docs/specs/fw_cfg.rst of QEMU); two `isa-debugcon`
//! take answers and words; `isa-debug-exit` and the reset port of the PIIX end the machine.

use std::io;

/// Takes what the job answers.
pub(crate) const ANSWERS: u16 = 0xe9;
/// Takes what goes to standard error.
pub(crate) const WORDS: u16 = 0xea;
/// Ends QEMU with a status that is not zero.
pub(crate) const FAILED: u16 = 0xf4;
/// Ends QEMU well, which was told not to start the machine again.
const RESET: u16 = 0xcf9;
/// Chooses what `CONFIG` gives.
const CONFIG_SELECT: u16 = 0x510;
const CONFIG: u16 = 0x511;

/// The name under which QEMU has the job.
pub(crate) const JOB: &str = "opt/wiretax/job";
/// The item that lists the others.
const DIRECTORY: u16 = 0x19;
/// Bytes of the directory's entry: size and key (big-endian), two bytes for later, a name ended by zeros.
const ENTRY: usize = 64;
/// Entries that a directory has at most: more than any machine.
const MOST_ENTRIES: usize = 1024;

/// Lets this thread use the ports.
pub(super) fn allow() -> io::Result<()> {
    for (first, count) in [(ANSWERS, 2), (FAILED, 1), (CONFIG_SELECT, 2), (RESET, 1)] {
        permit(first, count)?;
    }
    Ok(())
}

/// The job as it was given to QEMU.
pub(super) fn job() -> io::Result<Vec<u8>> {
    let mut count = [0; 4];
    select(DIRECTORY);
    read(&mut count);
    let count = usize::try_from(u32::from_be_bytes(count)).unwrap_or(0).min(MOST_ENTRIES);
    let mut directory = vec![0; count * ENTRY];
    read(&mut directory);
    let found = find(&directory, JOB);
    let (size, key) = found.ok_or_else(|| io::Error::other("the machine was given no job"))?;
    let mut job = vec![0; size];
    select(key);
    read(&mut job);
    Ok(job)
}

/// Size and key of an item.
fn find(directory: &[u8], name: &str) -> Option<(usize, u16)> {
    directory.chunks_exact(ENTRY).find_map(|entry| {
        let [a, b, c, d, e, f, _, _, text @ ..] = entry else { return None };
        let end = text.iter().position(|byte| *byte == 0)?;
        let size = u32::from_be_bytes([*a, *b, *c, *d]);
        let is_it = text.get(..end)? == name.as_bytes();
        is_it.then_some((usize::try_from(size).ok()?, u16::from_be_bytes([*e, *f])))
    })
}

/// Ends the machine: well, or not. Returns where it does not end.
pub(super) fn end(well: bool) {
    // A full reset (PIIX: bits 1 and 2 of the reset control register).
    if well { put(RESET, 6) } else { put(FAILED, 1) }
}

fn put(port: u16, byte: u8) {
    write(port, &[byte]);
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;
    use std::io;

    use super::{CONFIG, CONFIG_SELECT};

    pub(super) fn permit(first: u16, count: i64) -> io::Result<()> {
        // SAFETY: ioperm(2) changes what this thread may do, and no memory.
        let result = unsafe { libc::syscall(libc::SYS_ioperm, i64::from(first), count, 1i64) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Writes bytes to a port, one after the other.
    pub(in super::super) fn write(port: u16, bytes: &[u8]) {
        // SAFETY: reads the slice and writes no memory. A port that was not permitted is a signal.
        unsafe {
            asm!(
                "rep outsb",
                in("dx") port,
                inout("rcx") bytes.len() => _,
                inout("rsi") bytes.as_ptr() => _,
                options(nostack, readonly, preserves_flags),
            );
        }
    }

    pub(super) fn select(key: u16) {
        // SAFETY: touches no memory.
        unsafe {
            asm!("out dx, ax", in("dx") CONFIG_SELECT, in("ax") key, options(nostack, nomem, preserves_flags));
        }
    }

    pub(super) fn read(bytes: &mut [u8]) {
        // SAFETY: fills the slice and no more.
        unsafe {
            asm!(
                "rep insb",
                in("dx") CONFIG,
                inout("rcx") bytes.len() => _,
                inout("rdi") bytes.as_mut_ptr() => _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Elsewhere no guest is started ([`crate::Error::Architecture`]).
#[cfg(not(target_arch = "x86_64"))]
mod machine {
    use std::io;

    pub(super) fn permit(_: u16, _: i64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(in super::super) fn write(_: u16, _: &[u8]) {}

    pub(super) fn select(_: u16) {}

    pub(super) fn read(_: &mut [u8]) {}
}

pub(super) use machine::write;
use machine::{permit, read, select};

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: u32, key: u16, name: &str) -> Vec<u8> {
        let mut bytes = size.to_be_bytes().to_vec();
        bytes.extend(key.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(name.as_bytes());
        bytes.resize(ENTRY, 0);
        bytes
    }

    #[test]
    fn the_job_is_found_by_its_name() {
        let directory =
            [entry(9, 0x20, "etc/e820"), entry(70_000, 0x2b, JOB), entry(1, 3, "opt/x")].concat();
        assert_eq!(find(&directory, JOB), Some((70_000, 0x2b)));
        assert_eq!(find(&directory, "opt/wiretax"), None);
        assert_eq!(find(&directory[..100], JOB), None);
        assert_eq!(find(&[0xff; 64], JOB), None);
    }
}
