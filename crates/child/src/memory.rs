//! Files without a name.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// A file in memory. It has no name, so that nothing of it is left, whatever ends this process.
/// Programs that this process starts inherit it.
#[derive(Debug)]
pub struct MemoryFile(File);

impl MemoryFile {
    /// A file that nobody can change; the kernel's lists call it `name`.
    ///
    /// # Errors
    /// The system gives no memory or no descriptor.
    pub fn sealed(name: &str, contents: &[u8]) -> io::Result<MemoryFile> {
        let mut file = MemoryFile::new(name)?;
        file.0.write_all(contents)?;
        let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file.0, all)?;
        Ok(file)
    }

    /// An empty file, to be written by a program.
    ///
    /// # Errors
    /// The system gives no memory or no descriptor.
    pub fn new(name: &str) -> io::Result<MemoryFile> {
        // Where it is not known, it is not needed either: since Linux 6.3 a setting may demand it.
        let made = match memfd_create(name, MemfdFlags::ALLOW_SEALING | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create(name, MemfdFlags::ALLOW_SEALING),
            made => made,
        };
        Ok(MemoryFile(made?.into()))
    }

    /// Its path in this process, and in those that inherit it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Its contents, at most `most` bytes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.rewind()?;
        (&self.0).take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_reads_and_writes_what_it_inherits() {
        let sealed = MemoryFile::sealed("given", b"what is given\n").unwrap();
        let mut taken = MemoryFile::new("taken").unwrap();
        let script = "cat \"$1\" > \"$2\"; echo more >> \"$1\"";
        let status = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([sealed.path(), taken.path()])
            .status();
        assert!(!status.unwrap().success(), "a sealed file cannot be changed");
        assert_eq!(taken.read(100).unwrap(), b"what is given\n");
        assert_eq!(taken.read(4).unwrap(), b"what");
    }
}
