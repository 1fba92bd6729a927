//! A process that keeps rights which this one gives up.

use std::io::{self, Read, Write};
use std::mem;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

/// A process with the rights that this one had, for one piece of work. It ends with this process,
/// whatever ends that.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    process: Option<Pid>,
}

impl Keeper {
    /// Starts the process, which waits. Call it before any other thread is started. Without
    /// [`Keeper::finish`], `work` is dropped there.
    ///
    /// # Errors
    /// The system has no process or no socket to spare.
    pub fn begin(work: impl FnOnce() -> io::Result<()>) -> io::Result<Keeper> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: no memory is passed, and no other thread holds a lock that the copy would wait for.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(ours);
                keep(theirs, work)
            }
            process => {
                // The copy has it: here it would be undone.
                mem::forget(work);
                Ok(Keeper { stream: ours, process: Pid::from_raw(process) })
            }
        }
    }

    /// Has the work done, and waits for its end.
    ///
    /// # Errors
    /// Its own, or the process has been killed.
    pub fn finish(mut self) -> io::Result<()> {
        let mut answer = [0; size_of::<i32>()];
        let asked = self.stream.write_all(&[0]).and_then(|()| self.stream.read_exact(&mut answer));
        asked.map_err(|_| io::Error::other("the process that keeps the rights has ended"))?;
        match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // A later keeper has a copy of the descriptor, so closing ours would tell nothing.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(process) = self.process {
            while matches!(waitpid(Some(process), WaitOptions::empty()), Err(Errno::INTR)) {}
        }
    }
}

/// The process: works if asked, and ends.
fn keep(mut stream: UnixStream, work: impl FnOnce() -> io::Result<()>) -> ! {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: no memory is passed. The measuring process decides when it ends.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let serve = AssertUnwindSafe(move || {
        if stream.read_exact(&mut [0]).is_ok() {
            let errno = work().err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
            let _ = stream.write_all(&errno.unwrap_or(0).to_ne_bytes());
        }
    });
    let _ = catch_unwind(serve);
    // SAFETY: no memory is passed; what this copy has of the other's state is not to be undone.
    unsafe { libc::_exit(0) }
}
