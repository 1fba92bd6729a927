//! Waiting for several descriptors, or for a time, by `ppoll`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

/// A set of descriptors to wait for. No allocation once it is made.
///
/// It keeps descriptor numbers only: forget them ([`Poller::clear`]) before closing them.
#[derive(Debug, Default)]
pub struct Poller {
    entries: Vec<libc::pollfd>,
}

/// What a descriptor has to say after [`Poller::wait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// It can be read.
    pub readable: bool,
    /// It has an error, which stays until it is taken ([`crate::PacketSocket::take_error`]).
    pub error: bool,
}

impl Poller {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Poller::default()
    }

    /// Forgets all descriptors.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds a descriptor; the result is its place for [`Poller::readiness`].
    pub fn add(&mut self, fd: BorrowedFd<'_>) -> usize {
        self.entries.push(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        self.entries.len() - 1
    }

    /// Stops waiting for the descriptor at `place`, one that is broken for good.
    pub fn disable(&mut self, place: usize) {
        if let Some(entry) = self.entries.get_mut(place) {
            // ppoll(2): negative descriptors are passed over.
            entry.fd = -1;
            entry.revents = 0;
        }
    }

    /// Waits until a descriptor can be read or has an error, or `timeout` has passed; for ever if
    /// there is none. True if a descriptor is ready; a signal ends the wait early with false.
    ///
    /// # Errors
    /// The kernel's, for lack of memory.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let spec = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
        });
        let spec = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
        let count = self.entries.len() as libc::nfds_t;
        // SAFETY: pointer and count describe `entries`; `spec` is null or outlives the call.
        let ready = unsafe { libc::ppoll(self.entries.as_mut_ptr(), count, spec, ptr::null()) };
        if ready >= 0 {
            return Ok(ready > 0);
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted {
            for entry in &mut self.entries {
                entry.revents = 0;
            }
            return Ok(false);
        }
        Err(error)
    }

    /// What the last wait found of the descriptor at `place`.
    #[must_use]
    pub fn readiness(&self, place: usize) -> Readiness {
        let events = self.entries.get(place).map_or(0, |entry| entry.revents);
        Readiness {
            readable: events & libc::POLLIN != 0,
            error: events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn tells_which_descriptor_is_ready() {
        let (empty, _writer) = io::pipe().unwrap();
        let (full, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"x").unwrap();
        let mut poller = Poller::new();
        let (empty, full) = (poller.add(empty.as_fd()), poller.add(full.as_fd()));
        assert!(poller.wait(None).unwrap());
        assert!(!poller.readiness(empty).readable && poller.readiness(full).readable);
        poller.disable(full);
        assert!(!poller.wait(Some(Duration::ZERO)).unwrap());
    }

    #[test]
    fn a_closed_pipe_is_an_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        let mut poller = Poller::new();
        let place = poller.add(reader.as_fd());
        assert!(poller.wait(None).unwrap());
        assert!(poller.readiness(place).error);
    }
}
