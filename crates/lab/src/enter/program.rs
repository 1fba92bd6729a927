//! The program, executed again inside.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::init::Marker;
use super::{EnterError, Entered, MARKER, single_threaded};

/// Checks that the lab's init started this process, and removes the marks of it.
///
/// Returns, too, the network namespace outside, where the program may use it.
pub(super) fn arrive(marker: &OsStr) -> Result<(Entered, Option<OwnedFd>), EnterError> {
    let stray = || EnterError::StrayMarker { variable: MARKER };
    let marker = marker.to_str().and_then(Marker::parse).ok_or_else(stray)?;
    let pipe = inherited_pipe(marker.fd).ok_or_else(stray)?;
    let mut token = [0; 16];
    // SAFETY: a buffer of the stated length; `inherited_pipe` made sure that nothing blocks.
    let read = unsafe { libc::read(pipe.as_raw_fd(), token.as_mut_ptr().cast(), token.len()) };
    if read != token.len() as isize || token != marker.token {
        return Err(stray());
    }
    single_threaded()?;
    // Programs that this one starts are not inside by this token.
    // SAFETY: the process has one thread, as was just checked.
    unsafe { std::env::remove_var(MARKER) };
    name_process();
    let network = marker.network.map(|fd| {
        // SAFETY: init, which alone can have written this marker, left it open for this process.
        let network = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain call on a descriptor that lives.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        network
    });
    let Marker { user_namespace, own_proc, outer, .. } = marker;
    let entered = Entered { user_namespace, own_proc, outer };
    Ok((entered, network))
}

/// The descriptor, if it is a pipe with something to read. Nothing else is touched: a stray
/// variable must not take a descriptor away from its owner.
fn inherited_pipe(fd: i32) -> Option<OwnedFd> {
    // SAFETY: all zeros is a valid `stat`; the call only fills it.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above; a wrong descriptor is an error, not a fault.
    let is_pipe = unsafe { libc::fstat(fd, &raw mut stat) } == 0
        && stat.st_mode & libc::S_IFMT == libc::S_IFIFO;
    let mut event = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live element; does not wait.
    let ready = is_pipe && unsafe { libc::poll(&raw mut event, 1, 0) } == 1;
    if !ready || event.revents & libc::POLLIN == 0 {
        return None;
    }
    // SAFETY: a pipe that init left open for this process alone.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives the process the program's name: executed by way of /proc, it would be called `exe`.
fn name_process() {
    let name = std::env::args_os()
        .next()
        .and_then(|path| Path::new(&path).file_name().map(OsStr::to_owned))
        .and_then(|name| CString::new(name.as_bytes()).ok());
    if let Some(name) = name {
        // SAFETY: a string that ends with a null byte; the kernel takes 15 bytes of it.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}
