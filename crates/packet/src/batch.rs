//! Many frames by one system call.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;

/// Sends frames in batches by `sendmmsg`; holds only the memory that describes a batch.
pub struct SendBatch {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
}

// SAFETY: the pointers inside point only into `vectors`, which moves along, and to frames while
// `send` runs.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// A sender of at most `capacity` frames by one system call (the kernel takes 1024).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, 1024);
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: `mmsghdr` is a C struct of integers and pointers; all zeroes is valid.
        let header: libc::mmsghdr = unsafe { mem::zeroed() };
        let mut vectors = vec![empty; capacity].into_boxed_slice();
        let mut headers = vec![header; capacity].into_boxed_slice();
        for (header, vector) in headers.iter_mut().zip(vectors.iter_mut()) {
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        SendBatch { headers, vectors }
    }

    /// Sends `frames`, at most as many as the batch holds, by one system call.
    ///
    /// Returns how many the kernel took, which may be fewer than given: the next one is then
    /// refused by the next call, with its reason.
    ///
    /// # Errors
    /// The kernel's refusal of the first frame; none was sent.
    pub fn send<'f>(
        &mut self,
        fd: BorrowedFd<'_>,
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (vector, frame) in self.vectors.iter_mut().zip(frames) {
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` headers each point to one vector of `self.vectors`, which
        // describes a frame that is borrowed until this function returns; the kernel only reads
        // from it.
        let sent = unsafe {
            libc::sendmmsg(fd.as_raw_fd(), self.headers.as_mut_ptr(), count, libc::MSG_DONTWAIT)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendBatch").field("capacity", &self.headers.len()).finish()
    }
}

/// Reads one frame into `buffer` without waiting; `None` if none waits. Works on sockets and TAP
/// devices.
///
/// # Errors
/// The kernel's, such as `ENETDOWN`.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::io::read(fd, buffer) {
        Ok(len) => Ok(Some(len)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Writes one frame without waiting. Works on sockets and TAP devices.
///
/// # Errors
/// The kernel's, such as `EAGAIN` if its queue is full or `EIO` if a TAP device is down.
pub fn send(fd: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    rustix::io::write(fd, frame).map(|_| ()).map_err(io::Error::from)
}
