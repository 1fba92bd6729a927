//! Single frames with the kernel's own time stamps, to measure how long a frame is under way.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use units::Time;

use crate::sys::set_option;
use crate::{Error, PacketSocket};

/// linux/net_tstamp.h: `SOF_TIMESTAMPING_TX_SOFTWARE`, `_RX_SOFTWARE`, `_SOFTWARE`, and
/// `_OPT_TSONLY`, so that a stamp comes without the frame.
const STAMPS: libc::c_int = (1 << 1) | (1 << 3) | (1 << 4) | (1 << 11);

/// What came with a message: bytes of frame, and the kernel's time (CLOCK_REALTIME), if any.
type Stamped = (usize, Option<Time>);

impl PacketSocket {
    /// Asks the kernel to stamp frames in software as they arrive and as they leave
    /// (`SO_TIMESTAMPING`), for [`PacketSocket::receive_stamped`] and
    /// [`PacketSocket::take_send_time`].
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn enable_timestamps(&self) -> Result<(), Error> {
        set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, STAMPS)
            .map_err(|source| Error::System { doing: "asking for kernel timestamps", source })
    }

    /// Reads one frame with the kernel's time of its arrival (CLOCK_REALTIME). `None` if no frame
    /// waits; the time is `None` if the kernel gave none.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn receive_stamped(&self, buffer: &mut [u8]) -> Result<Option<Stamped>, Error> {
        self.message(buffer, 0)
    }

    /// When a sent frame was handed to the device (CLOCK_REALTIME), in the order of sending.
    /// `None` if no stamp waits, as on devices that give none.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn take_send_time(&self) -> Result<Option<Time>, Error> {
        let message = self.message(&mut [0; 64], libc::MSG_ERRQUEUE)?;
        Ok(message.and_then(|(_, stamp)| stamp))
    }

    fn message(&self, buffer: &mut [u8], flags: libc::c_int) -> Result<Option<Stamped>, Error> {
        let mut vector = libc::iovec { iov_base: ptr::null_mut(), iov_len: buffer.len() };
        vector.iov_base = buffer.as_mut_ptr().cast();
        // 512 bytes, aligned as `cmsghdr` asks for.
        let mut control = [0u64; 64];
        // SAFETY: `msghdr` is a C struct of integers and pointers; all zeroes is valid.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = mem::size_of_val(&control) as _;
        let flags = flags | libc::MSG_DONTWAIT;
        // SAFETY: `message` describes `buffer` and `control`, which outlive the call.
        let len = unsafe { libc::recvmsg(self.as_fd().as_raw_fd(), &raw mut message, flags) };
        let Ok(len) = usize::try_from(len) else {
            let source = io::Error::last_os_error();
            return match source.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(Error::System { doing: "receiving a frame", source }),
            };
        };
        Ok(Some((len, software_stamp(&message))))
    }
}

/// The software stamp among a received message's control messages.
fn software_stamp(message: &libc::msghdr) -> Option<Time> {
    // SAFETY: the kernel has set `msg_controllen` to what it wrote, and the CMSG functions stay
    // within that.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: a non-null result of the CMSG functions is a header within the control buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPING {
            // SAFETY: this kind of message holds `struct scm_timestamping`, three timespecs of
            // which the first is the software stamp; it may be unaligned.
            let spec = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            let seconds = u64::try_from(spec.tv_sec).ok()?;
            let nanos = seconds * 1_000_000_000 + u64::try_from(spec.tv_nsec).ok()?;
            return (nanos > 0).then_some(Time::from_nanos(nanos));
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}
