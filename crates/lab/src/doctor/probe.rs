//! What the kernel permits, found by trying it in a scratch process that then ends.
//!
//! The process is forked from one that may have threads, so that it may only make system calls:
//! everything that needs memory is made before.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rtnetlink::LinkVeth;
use rtnetlink::packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use packet::realtime;

use crate::enter::mount;
use crate::netem;

/// The longest that the scratch process may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What is tried, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Trial {
    UserNamespace,
    Maps,
    NetworkNamespace,
    OtherNamespaces,
    Settings,
    PacketSocket,
    Veth,
    Netem,
    Tap,
    Realtime,
    FastOpen,
}

pub(super) const TRIALS: usize = Trial::FastOpen as usize + 1;

/// Not tried, because something before it failed.
const NOT_TRIED: i32 = -1;

/// What came of the trials: 0, an error number, or [`NOT_TRIED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcomes([i32; TRIALS]);

impl Outcomes {
    /// The error number of a trial, 0 if it succeeded; `None` if it was not made.
    pub(super) fn of(&self, trial: Trial) -> Option<i32> {
        self.0.get(trial as usize).copied().filter(|outcome| *outcome != NOT_TRIED)
    }
}

/// Made before the fork.
struct Prepared {
    user_namespace: bool,
    as_user: bool,
    maps: [(&'static CStr, CString); 3],
    veth: Vec<u8>,
    netem: Vec<u8>,
}

/// Makes all trials, as the lab is entered. Leaves nothing behind.
pub(super) fn run(user_namespace: bool, as_user: bool) -> io::Result<Outcomes> {
    // SAFETY: these calls cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let prepared = Prepared {
        user_namespace,
        as_user,
        maps: [
            (c"/proc/self/setgroups", CString::from(c"deny")),
            (c"/proc/self/uid_map", CString::new(format!("0 {uid} 1"))?),
            (c"/proc/self/gid_map", CString::new(format!("0 {gid} 1"))?),
        ],
        veth: veth_request(),
        netem: netem_request(),
    };
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: the child makes system calls only, on memory that was made before, and ends by
    // `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let outcomes = try_all(&prepared);
            // SAFETY: the buffer is as long as stated.
            unsafe {
                libc::write(writer.as_raw_fd(), outcomes.as_ptr().cast(), size_of_val(&outcomes));
                libc::_exit(0)
            }
        }
        child => {
            drop(writer);
            let outcomes = read_outcomes(&reader);
            // SAFETY: the child is ours and not reaped yet.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            outcomes
        }
    }
}

fn read_outcomes(pipe: &OwnedFd) -> io::Result<Outcomes> {
    let deadline = Instant::now() + LIMIT;
    let mut bytes = [0; TRIALS * 4];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut ready = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => break,
        }
    }
    // Written at once, and less than a pipe takes at once.
    if rustix::io::read(pipe, &mut bytes[..])? != bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut outcomes = [NOT_TRIED; TRIALS];
    for (outcome, word) in outcomes.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *outcome = i32::from_ne_bytes(*word);
    }
    Ok(Outcomes(outcomes))
}

/// In the child: system calls only.
fn try_all(prepared: &Prepared) -> [i32; TRIALS] {
    let mut outcomes = [NOT_TRIED; TRIALS];
    let mut note = |trial: Trial, outcome: i32| {
        outcomes[trial as usize] = outcome;
        outcome == 0
    };
    // As the lab hands it on into the user namespace.
    note(Trial::Realtime, if realtime::begin() { 0 } else { errno() });
    // The rest is not to be done at the cost of what the user runs.
    realtime::leave();
    if prepared.user_namespace {
        let made = note(Trial::UserNamespace, unshare(libc::CLONE_NEWUSER));
        // Root does without.
        if made && !note(Trial::Maps, write_maps(&prepared.maps)) || !made && prepared.as_user {
            return outcomes;
        }
    }
    note(Trial::OtherNamespaces, unshare(libc::CLONE_NEWNS | libc::CLONE_NEWPID));
    // Without one of its own, nothing may be tried: it would be the user's network.
    if !note(Trial::NetworkNamespace, unshare(libc::CLONE_NEWNET)) {
        return outcomes;
    }
    let [settings, fast_open] = try_settings();
    note(Trial::Settings, settings);
    note(Trial::FastOpen, fast_open);
    note(Trial::PacketSocket, try_socket(libc::AF_PACKET, libc::SOCK_RAW));
    note(Trial::Veth, ask(&prepared.veth));
    note(Trial::Netem, ask(&prepared.netem));
    note(Trial::Tap, try_tap());
    outcomes
}

/// Writes settings of the namespace in the first process of the new process namespace, with a `/proc` of its
/// own where that is permitted: as the lab has it.
fn try_settings() -> [i32; 2] {
    let Ok((reader, writer)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
        return [errno(); 2];
    };
    let mut bytes = [0; 8];
    // SAFETY: this process has one thread; the child makes system calls only and ends by `_exit`. The buffers
    // are as long as stated.
    unsafe {
        match libc::fork() {
            -1 => [errno(); 2],
            0 => {
                mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE);
                let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                mount(c"proc", c"/proc", Some(c"proc"), quiet);
                let outcomes = [
                    write_file(c"/proc/sys/net/ipv4/tcp_no_metrics_save", c"1"),
                    write_file(c"/proc/sys/net/ipv4/tcp_fastopen", c"1541"),
                ];
                libc::write(writer.as_raw_fd(), outcomes.as_ptr().cast(), size_of_val(&outcomes));
                libc::_exit(0)
            }
            child => {
                drop(writer);
                let read = libc::read(reader.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len());
                libc::waitpid(child, std::ptr::null_mut(), 0);
                if read != bytes.len() as isize {
                    return [libc::EIO; 2];
                }
                let [a, b, c, d, e, f, g, h] = bytes;
                [i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])]
            }
        }
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn unshare(flags: i32) -> i32 {
    // SAFETY: acts on this process alone, which has one thread.
    if unsafe { libc::unshare(flags) } == 0 { 0 } else { errno() }
}

fn write_maps(maps: &[(&CStr, CString); 3]) -> i32 {
    maps.iter().map(|(path, text)| write_file(path, text)).find(|errno| *errno != 0).unwrap_or(0)
}

fn write_file(path: &CStr, text: &CStr) -> i32 {
    let bytes = text.to_bytes();
    // SAFETY: the path ends with a null byte, the buffer is as long as stated, the descriptor is
    // ours.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return errno();
        }
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let outcome = if written == bytes.len() as isize { 0 } else { errno() };
        libc::close(fd);
        outcome
    }
}

fn open_socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd, i32> {
    // SAFETY: plain call; the result is checked before it is owned.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    // SAFETY: a fresh descriptor that nothing else owns.
    if fd < 0 { Err(errno()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

fn try_socket(family: i32, kind: i32) -> i32 {
    open_socket(family, kind, 0).err().unwrap_or(0)
}

fn try_tap() -> i32 {
    // SAFETY: the path ends with a null byte, the request is a valid `ifreq`, the descriptor is
    // ours.
    unsafe {
        let fd = libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if fd < 0 {
            return errno();
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'p' as c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        let outcome = match libc::ioctl(fd, libc::TUNSETIFF, &raw const request) {
            0 => 0,
            _ => errno(),
        };
        libc::close(fd);
        outcome
    }
}

/// Sends a prepared request to the kernel; its answer's error number.
fn ask(request: &[u8]) -> i32 {
    let socket = match open_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE) {
        Ok(socket) => socket,
        Err(errno) => return errno,
    };
    let mut answer = [0u8; 1024];
    // SAFETY: the buffers are as long as stated. The kernel answers before `send` returns, so
    // that nothing is waited for.
    let length = unsafe {
        if libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) < 0 {
            return errno();
        }
        libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT)
    };
    // nlmsghdr (16 bytes), then the negative error number (netlink(7), NLMSG_ERROR).
    match answer.get(16..20).and_then(|word| <[u8; 4]>::try_from(word).ok()) {
        Some(word) if length >= 20 => i32::from_ne_bytes(word).abs(),
        _ => errno(),
    }
}

fn serialized(message: RouteNetlinkMessage) -> Vec<u8> {
    let mut message = NetlinkMessage::from(message);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn veth_request() -> Vec<u8> {
    serialized(RouteNetlinkMessage::NewLink(LinkVeth::new("scratch0", "scratch1").build()))
}

fn netem_request() -> Vec<u8> {
    const TCA_OPTIONS: u16 = 2;
    let mut message = TcMessage::default();
    // The loopback interface is the first of every namespace.
    message.header.index = 1;
    message.header.parent = TcHandle::ROOT;
    message.attributes.push(TcAttribute::Kind("netem".to_owned()));
    let options = DefaultNla::new(TCA_OPTIONS, netem::neutral_options());
    message.attributes.push(TcAttribute::Other(options));
    serialized(RouteNetlinkMessage::NewQueueDiscipline(message))
}
