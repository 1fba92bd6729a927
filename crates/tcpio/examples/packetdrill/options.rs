//! Options of sockets and descriptors.

use std::ffi::{c_int, c_long, c_ulong, c_void};

use libc::{socklen_t, ssize_t};

use super::memory::{bytes, done, give, host};

pub unsafe extern "C" fn fcntl(
    user: *mut c_void,
    fd: c_int,
    command: c_int,
    value: c_long,
) -> c_int {
    // SAFETY: `user` is the table's.
    let result = unsafe { host(user) }.act(|world| {
        let descriptor = world.get(fd)?;
        match command {
            libc::F_GETFL if descriptor.nonblocking => Ok(libc::O_RDWR | libc::O_NONBLOCK),
            libc::F_GETFL => Ok(libc::O_RDWR),
            libc::F_SETFL => {
                descriptor.nonblocking = value & c_long::from(libc::O_NONBLOCK) != 0;
                Ok(0)
            }
            _ => Err(libc::EINVAL),
        }
    });
    give(result, |flags| flags as ssize_t) as c_int
}

pub unsafe extern "C" fn ioctl(
    user: *mut c_void,
    fd: c_int,
    request: c_ulong,
    value: *mut c_int,
) -> c_int {
    // SAFETY: `user` is the table's.
    let result = unsafe { host(user) }.act(|world| {
        let info = world.info(fd).ok_or(libc::EINVAL)?;
        let id = world.connection(fd)?;
        match request {
            libc::FIONREAD => Ok(world.endpoint.readable(id) as u64),
            libc::TIOCOUTQ => Ok(info.in_flight + info.unsent),
            _ => Err(libc::EINVAL),
        }
    });
    if let (Ok(count), false) = (result, value.is_null()) {
        // SAFETY: the place is as ioctl() has it for these requests.
        unsafe { *value = count as c_int };
    }
    done(result.map(|_| ()))
}

/// The fields of `struct tcp_info` that are known, with zeros between (linux/tcp.h).
fn tcp_info(info: &tcp::Info) -> [u8; 104] {
    let mut bytes = [0; 104];
    let segment = info.segment_size.max(1) as u64;
    // TCP_ESTABLISHED is 1, and so on (include/net/tcp_states.h).
    bytes[0] = match info.state {
        tcp::State::Established => 1,
        tcp::State::SynSent => 2,
        tcp::State::SynReceived => 3,
        tcp::State::FinWait1 => 4,
        tcp::State::FinWait2 => 5,
        tcp::State::TimeWait => 6,
        tcp::State::Closed => 7,
        tcp::State::CloseWait => 8,
        tcp::State::LastAck => 9,
        tcp::State::Closing => 11,
    };
    let rtt = info.smoothed_rtt.map_or(0, |rtt| rtt.as_micros() as u64);
    for (at, value) in [
        (8, info.rto.as_micros() as u64),
        (16, segment),
        (24, info.in_flight.div_ceil(segment)),
        (68, rtt),
        (80, info.congestion_window / segment),
        (100, info.retransmissions),
    ] {
        bytes[at..at + 4].copy_from_slice(&(value as u32).to_ne_bytes());
    }
    bytes
}

pub unsafe extern "C" fn getsockopt(
    user: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    into: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: `user` is the table's.
    let result = unsafe { host(user) }.act(|world| match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => Ok(world.pending_error(fd).to_ne_bytes().to_vec()),
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {
            world.info(fd).map(|info| tcp_info(&info).to_vec()).ok_or(libc::ENOTCONN)
        }
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
            let info = world.info(fd).ok_or(libc::ENOTCONN)?;
            Ok((info.segment_size as c_int).to_ne_bytes().to_vec())
        }
        _ => Err(libc::ENOPROTOOPT),
    });
    if let (Ok(value), false) = (&result, into.is_null() || len.is_null()) {
        // SAFETY: the place has room for `*len` bytes, and no more are written.
        unsafe {
            let count = (*len as usize).min(value.len());
            std::ptr::copy_nonoverlapping(value.as_ptr(), into.cast(), count);
            *len = count as socklen_t;
        }
    }
    done(result.map(|_| ()))
}

pub unsafe extern "C" fn setsockopt(
    user: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the arguments are as setsockopt() has them.
    let (host, value) = unsafe { (host(user), bytes(value, len as usize)) };
    let number = |at: usize| {
        let bytes = value.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, c_int::from_ne_bytes)
    };
    done(host.act(|world| {
        let descriptor = world.get(fd)?;
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                descriptor.resets = number(0) != 0 && number(4) == 0;
            }
            // TCP_FASTOPEN and TCP_FASTOPEN_CONNECT (linux/tcp.h)
            (libc::IPPROTO_TCP, 23 | 30) => descriptor.fast_open = number(0) != 0,
            (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_REUSEPORT | libc::SO_DEBUG) => {}
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER | libc::IP_RECVERR) => {}
            // The endpoint has these once for all connections: `--so_flags` names them.
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {}
            _ => return Err(libc::ENOPROTOOPT),
        }
        Ok(())
    }))
}
