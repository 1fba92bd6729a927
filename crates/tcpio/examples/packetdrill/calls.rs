//! The functions of the table: C's arguments and results around the host's.

use std::ffi::{c_int, c_longlong, c_uint, c_void};
use std::net::SocketAddr;
use std::time::Duration;

use libc::{iovec, loff_t, msghdr, size_t, sockaddr, socklen_t, ssize_t, timeval};
use units::Time;

use super::abi::Interface;
use super::host::{Descriptor, Host, Socket};
use super::memory::{address, bytes, done, give, host, put_address, room, vectors};
use super::options::{fcntl, getsockopt, ioctl, setsockopt};
use super::poll::{epoll_create, epoll_ctl, epoll_wait, poll};

/// The functions for a host.
pub fn table(userdata: *mut c_void) -> Interface {
    Interface {
        userdata,
        free: Some(free),
        socket: Some(socket),
        bind: Some(bind),
        listen: Some(listen),
        accept: Some(accept),
        connect: Some(connect),
        read: Some(read),
        readv: Some(readv),
        recv: Some(recv),
        recvfrom: Some(recvfrom),
        recvmsg: Some(recvmsg),
        write: Some(write),
        writev: Some(writev),
        send: Some(send),
        sendto: Some(sendto),
        sendmsg: Some(sendmsg),
        fcntl: Some(fcntl),
        ioctl: Some(ioctl),
        close: Some(close),
        shutdown: Some(shutdown),
        getsockopt: Some(getsockopt),
        setsockopt: Some(setsockopt),
        poll: Some(poll),
        netdev_send: Some(netdev_send),
        netdev_receive: Some(netdev_receive),
        usleep: Some(usleep),
        gettimeofday: Some(gettimeofday),
        epoll_create: Some(epoll_create),
        epoll_ctl: Some(epoll_ctl),
        epoll_wait: Some(epoll_wait),
        pipe: Some(pipe),
        splice: Some(splice),
    }
}

unsafe extern "C" fn free(user: *mut c_void) {
    // SAFETY: it was made of a box, and nothing is called after this.
    drop(unsafe { Box::from_raw(user.cast::<Host>()) });
}

unsafe extern "C" fn socket(user: *mut c_void, _: c_int, kind: c_int, _: c_int) -> c_int {
    // SAFETY: `user` is the table's.
    let host = unsafe { host(user) };
    if kind & 0xf != libc::SOCK_STREAM {
        return done(Err(libc::EPROTONOSUPPORT));
    }
    let mut descriptor = Descriptor::new(Socket::Fresh { local: None });
    descriptor.nonblocking = kind & libc::SOCK_NONBLOCK != 0;
    host.act(|world| world.open(descriptor))
}

unsafe extern "C" fn bind(
    user: *mut c_void,
    fd: c_int,
    to: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: `user` is the table's, the address as bind() has it.
    let (host, local) = unsafe { (host(user), address(to, len)) };
    done(local.and_then(|local| host.act(|world| world.bind(fd, local))))
}

unsafe extern "C" fn listen(user: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: `user` is the table's.
    done(unsafe { host(user) }.act(|world| world.listen(fd, backlog)))
}

unsafe extern "C" fn accept(
    user: *mut c_void,
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: `user` is the table's.
    let host = unsafe { host(user) };
    let accepted = host.block(fd, false, |world| {
        let fd = world.accept(fd)?;
        Ok((fd, world.info(fd).map(|info| info.remote)))
    });
    if let Ok((_, Some(peer))) = accepted {
        // SAFETY: the place is as accept() has it.
        unsafe { put_address(peer, into, len) };
    }
    give(accepted, |(fd, _)| fd as ssize_t) as c_int
}

unsafe extern "C" fn connect(
    user: *mut c_void,
    fd: c_int,
    to: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: `user` is the table's, the address as connect() has it.
    let (host, remote) = unsafe { (host(user), address(to, len)) };
    done(remote.and_then(|remote| host.block(fd, false, |world| world.connect(fd, remote, &[]))))
}

/// # Safety
/// `user` is the table's.
unsafe fn receive(user: *mut c_void, fd: c_int, into: &mut [u8], flags: c_int) -> ssize_t {
    if flags & (libc::MSG_PEEK | libc::MSG_OOB) != 0 {
        return give(Err(libc::EOPNOTSUPP), |()| 0);
    }
    // SAFETY: as the caller says.
    let host = unsafe { host(user) };
    let dont_wait = flags & libc::MSG_DONTWAIT != 0;
    let result = host.block(fd, dont_wait, |world| world.read(fd, into));
    give(result, |count| count as ssize_t)
}

/// # Safety
/// `user` is the table's.
unsafe fn transmit(
    user: *mut c_void,
    fd: c_int,
    data: &[u8],
    flags: c_int,
    to: Option<SocketAddr>,
) -> ssize_t {
    // SAFETY: as the caller says.
    let host = unsafe { host(user) };
    if flags & libc::MSG_OOB != 0 {
        return give(Err(libc::EOPNOTSUPP), |()| 0);
    }
    let dont_wait = flags & libc::MSG_DONTWAIT != 0;
    if let (true, Some(to)) = (flags & libc::MSG_FASTOPEN != 0, to) {
        let opened = host.act(|world| world.connect(fd, to, data));
        return match opened {
            Err(libc::EINPROGRESS) if !data.is_empty() => data.len() as ssize_t,
            other => give(other, |()| 0),
        };
    }
    let mut sent = 0;
    let result = host.block(fd, dont_wait, |world| {
        while let Some(rest) = data.get(sent..).filter(|rest| !rest.is_empty()) {
            match world.write(fd, rest) {
                Ok(count) => sent += count,
                // Who does not wait is told what went.
                Err(libc::EAGAIN) if sent > 0 && (dont_wait || world.get(fd)?.nonblocking) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    });
    give(result, |()| sent as ssize_t)
}

unsafe extern "C" fn read(user: *mut c_void, fd: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: the arguments are as read() has them.
    unsafe { receive(user, fd, room(into, len), 0) }
}

unsafe extern "C" fn recv(
    user: *mut c_void,
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the arguments are as recv() has them.
    unsafe { receive(user, fd, room(into, len), flags) }
}

unsafe extern "C" fn recvfrom(
    user: *mut c_void,
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    flags: c_int,
    _: *mut sockaddr,
    _: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the arguments are as recvfrom() has them.
    unsafe { receive(user, fd, room(into, len), flags) }
}

/// # Safety
/// `user` is the table's, the vectors are as readv() has them.
unsafe fn scatter(user: *mut c_void, fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    let total = parts.iter().map(|part| part.iov_len).sum();
    let mut all = vec![0; total];
    // SAFETY: as the caller says.
    let count = unsafe { receive(user, fd, &mut all, flags) };
    let mut rest = all.get(..usize::try_from(count).unwrap_or(0)).unwrap_or_default();
    for part in parts {
        let (head, tail) = rest.split_at(part.iov_len.min(rest.len()));
        // SAFETY: each vector has room for its length.
        let into = unsafe { room(part.iov_base, part.iov_len) };
        into.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
        rest = tail;
    }
    count
}

unsafe extern "C" fn readv(
    user: *mut c_void,
    fd: c_int,
    parts: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: the arguments are as readv() has them.
    unsafe { scatter(user, fd, vectors(parts, count.max(0) as usize), 0) }
}

unsafe extern "C" fn recvmsg(
    user: *mut c_void,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the message is as recvmsg() has it.
    unsafe {
        let parts = vectors((*message).msg_iov, (*message).msg_iovlen);
        scatter(user, fd, parts, flags)
    }
}

unsafe extern "C" fn write(
    user: *mut c_void,
    fd: c_int,
    data: *const c_void,
    len: size_t,
) -> ssize_t {
    // SAFETY: the arguments are as write() has them.
    unsafe { transmit(user, fd, bytes(data, len), 0, None) }
}

unsafe extern "C" fn send(
    user: *mut c_void,
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the arguments are as send() has them.
    unsafe { transmit(user, fd, bytes(data, len), flags, None) }
}

unsafe extern "C" fn sendto(
    user: *mut c_void,
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    // SAFETY: the arguments are as sendto() has them.
    unsafe { transmit(user, fd, bytes(data, len), flags, address(to, to_len).ok()) }
}

/// # Safety
/// The vectors are as writev() has them.
unsafe fn gather(parts: &[iovec]) -> Vec<u8> {
    // SAFETY: each vector has its length of bytes.
    parts.iter().flat_map(|part| unsafe { bytes(part.iov_base, part.iov_len) }).copied().collect()
}

unsafe extern "C" fn writev(
    user: *mut c_void,
    fd: c_int,
    parts: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: the arguments are as writev() has them.
    unsafe { transmit(user, fd, &gather(vectors(parts, count.max(0) as usize)), 0, None) }
}

unsafe extern "C" fn sendmsg(
    user: *mut c_void,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the message is as sendmsg() has it.
    unsafe {
        let data = gather(vectors((*message).msg_iov, (*message).msg_iovlen));
        let to = address((*message).msg_name.cast(), (*message).msg_namelen).ok();
        transmit(user, fd, &data, flags, to)
    }
}

unsafe extern "C" fn close(user: *mut c_void, fd: c_int) -> c_int {
    // SAFETY: `user` is the table's.
    done(unsafe { host(user) }.act(|world| world.close(fd)))
}

unsafe extern "C" fn shutdown(user: *mut c_void, fd: c_int, how: c_int) -> c_int {
    // SAFETY: `user` is the table's.
    done(unsafe { host(user) }.act(|world| world.shutdown(fd, how)))
}

unsafe extern "C" fn netdev_send(user: *mut c_void, packet: *const c_void, len: size_t) -> c_int {
    // SAFETY: packetdrill gives a packet of that length.
    let (host, packet) = unsafe { (host(user), bytes(packet, len)) };
    host.act(|world| world.give(packet));
    0
}

unsafe extern "C" fn netdev_receive(
    user: *mut c_void,
    into: *mut c_void,
    len: *mut size_t,
    time: *mut c_longlong,
) -> c_int {
    // SAFETY: `user` is the table's; `len` says how much room there is.
    let (host, into) = unsafe { (host(user), room(into, *len)) };
    let (at, packet) = host.receive().unwrap_or_default();
    into.iter_mut().zip(&packet).for_each(|(to, from)| *to = *from);
    // SAFETY: packetdrill gives places for both.
    unsafe {
        *len = packet.len().min(into.len());
        *time = micros(at);
    }
    0
}

fn micros(at: Time) -> c_longlong {
    (at.as_nanos() / 1000) as c_longlong
}

unsafe extern "C" fn usleep(user: *mut c_void, time: c_uint) -> c_int {
    // SAFETY: `user` is the table's.
    unsafe { host(user) }.pass(Duration::from_micros(time.into()));
    0
}

unsafe extern "C" fn gettimeofday(user: *mut c_void, into: *mut timeval, _: *mut c_void) -> c_int {
    // SAFETY: `user` is the table's.
    let now = unsafe { host(user) }.act(|world| {
        world.now += Duration::from_micros(1);
        micros(world.now)
    });
    // SAFETY: the place is as gettimeofday() has it.
    unsafe { *into = timeval { tv_sec: now / 1_000_000, tv_usec: now % 1_000_000 } };
    0
}

unsafe extern "C" fn pipe(_: *mut c_void, _: *mut c_int) -> c_int {
    done(Err(libc::ENOSYS))
}

unsafe extern "C" fn splice(
    _: *mut c_void,
    _: c_int,
    _: *mut loff_t,
    _: c_int,
    _: *mut loff_t,
    _: size_t,
    _: c_uint,
) -> ssize_t {
    give(Err(libc::ENOSYS), |()| 0)
}
