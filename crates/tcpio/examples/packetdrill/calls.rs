//! The functions of the table: C's arguments and results around the host's.

use std::ffi::{c_int, c_long, c_longlong, c_uint, c_ulong, c_void};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use libc::{
    epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t,
    timeval,
};
use units::Time;

use super::abi::Interface;
use super::host::{Descriptor, Errno, Host, Socket};

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

/// # Safety
/// `user` is a table's, and its `free` has not been called.
unsafe fn host<'a>(user: *mut c_void) -> &'a Host {
    // SAFETY: `packetdrill_interface_init` made it of a box that `free` alone takes back.
    unsafe { &*user.cast::<Host>() }
}

/// A result as C has it: -1 and errno.
fn give<T>(result: Result<T, Errno>, ok: impl FnOnce(T) -> ssize_t) -> ssize_t {
    match result {
        Ok(value) => ok(value),
        Err(error) => {
            // SAFETY: errno is the calling thread's own.
            unsafe { *libc::__errno_location() = error };
            -1
        }
    }
}

fn done(result: Result<(), Errno>) -> c_int {
    give(result, |()| 0) as c_int
}

/// # Safety
/// `address` is null or points to `len` bytes of a socket address.
unsafe fn address(address: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    if address.is_null() || (len as usize) < size_of::<libc::sockaddr_in>() {
        return Err(libc::EINVAL);
    }
    // SAFETY: there are at least the bytes of a `sockaddr_in`; no alignment is assumed.
    let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
    match c_int::from(v4.sin_family) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Ok(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 if (len as usize) >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: there are the bytes of a `sockaddr_in6`; no alignment is assumed.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr).to_canonical();
            Ok(SocketAddr::new(ip, u16::from_be(v6.sin6_port)))
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// # Safety
/// `into` is null, or has room for as many bytes as `len` says.
unsafe fn put_address(peer: SocketAddr, into: *mut sockaddr, len: *mut socklen_t) {
    if into.is_null() || len.is_null() {
        return;
    }
    let (bytes, size) = match peer {
        SocketAddr::V4(v4) => {
            let family = (libc::AF_INET as u16).to_ne_bytes();
            let mut bytes = [0; size_of::<libc::sockaddr_in6>()];
            bytes[..2].copy_from_slice(&family);
            bytes[2..4].copy_from_slice(&v4.port().to_be_bytes());
            bytes[4..8].copy_from_slice(&v4.ip().octets());
            (bytes, size_of::<libc::sockaddr_in>())
        }
        SocketAddr::V6(v6) => {
            let family = (libc::AF_INET6 as u16).to_ne_bytes();
            let mut bytes = [0; size_of::<libc::sockaddr_in6>()];
            bytes[..2].copy_from_slice(&family);
            bytes[2..4].copy_from_slice(&v6.port().to_be_bytes());
            bytes[8..24].copy_from_slice(&v6.ip().octets());
            (bytes, size_of::<libc::sockaddr_in6>())
        }
    };
    // SAFETY: the caller has room for `*len` bytes, and no more are written.
    unsafe {
        let room = (*len as usize).min(size);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), into.cast::<u8>(), room);
        *len = size as socklen_t;
    }
}

/// # Safety
/// `data` points to `len` bytes, or `len` is 0.
unsafe fn bytes<'a>(data: *const c_void, len: size_t) -> &'a [u8] {
    if data.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller has that many bytes there.
    unsafe { std::slice::from_raw_parts(data.cast(), len) }
}

/// # Safety
/// `into` points to `len` bytes that may be written, or `len` is 0.
unsafe fn room<'a>(into: *mut c_void, len: size_t) -> &'a mut [u8] {
    if into.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: the caller has room for that many bytes there.
    unsafe { std::slice::from_raw_parts_mut(into.cast(), len) }
}

/// # Safety
/// `parts` points to `count` vectors.
unsafe fn vectors<'a>(parts: *const iovec, count: usize) -> &'a [iovec] {
    if parts.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller has that many vectors there.
    unsafe { std::slice::from_raw_parts(parts, count) }
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
        let parts = vectors((*message).msg_iov, (*message).msg_iovlen as usize);
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
        let data = gather(vectors((*message).msg_iov, (*message).msg_iovlen as usize));
        let to = address((*message).msg_name.cast(), (*message).msg_namelen).ok();
        transmit(user, fd, &data, flags, to)
    }
}

unsafe extern "C" fn fcntl(user: *mut c_void, fd: c_int, command: c_int, value: c_long) -> c_int {
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

unsafe extern "C" fn ioctl(
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

unsafe extern "C" fn close(user: *mut c_void, fd: c_int) -> c_int {
    // SAFETY: `user` is the table's.
    done(unsafe { host(user) }.act(|world| world.close(fd)))
}

unsafe extern "C" fn shutdown(user: *mut c_void, fd: c_int, how: c_int) -> c_int {
    // SAFETY: `user` is the table's.
    done(unsafe { host(user) }.act(|world| world.shutdown(fd, how)))
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

unsafe extern "C" fn getsockopt(
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

unsafe extern "C" fn setsockopt(
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

unsafe extern "C" fn poll(
    user: *mut c_void,
    list: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: the list is as poll() has it.
    let list = unsafe { std::slice::from_raw_parts_mut(list, count as usize) };
    // SAFETY: `user` is the table's.
    let host = unsafe { host(user) };
    let first = list.first().map_or(-1, |entry| entry.fd);
    // Ready, or no time to wait for it: as a call that blocks if its first descriptor could.
    let ready = host.block(first, timeout == 0, |world| {
        let mut ready = 0;
        for entry in list.iter_mut() {
            entry.revents = world.readiness(entry.fd, entry.events);
            ready += c_int::from(entry.revents != 0);
        }
        if ready == 0 && timeout != 0 { Err(libc::EAGAIN) } else { Ok(ready) }
    });
    ready.unwrap_or(0)
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

unsafe extern "C" fn epoll_create(user: *mut c_void, _: c_int) -> c_int {
    let descriptor = Descriptor::new(Socket::Poll(Default::default()));
    // SAFETY: `user` is the table's.
    unsafe { host(user) }.act(|world| world.open(descriptor))
}

unsafe extern "C" fn epoll_ctl(
    user: *mut c_void,
    epoll: c_int,
    command: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: `user` is the table's.
    let host = unsafe { host(user) };
    done(host.act(|world| {
        let Socket::Poll(list) = &mut world.get(epoll)?.socket else { return Err(libc::EINVAL) };
        if command == libc::EPOLL_CTL_DEL {
            return list.remove(&fd).map(|_| ()).ok_or(libc::ENOENT);
        }
        // SAFETY: the event is as epoll_ctl() has it for the other commands.
        list.insert(fd, unsafe { event.read_unaligned() });
        Ok(())
    }))
}

unsafe extern "C" fn epoll_wait(
    user: *mut c_void,
    epoll: c_int,
    into: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: `user` is the table's.
    let host = unsafe { host(user) };
    let ready = host.block(epoll, timeout == 0, |world| {
        let Socket::Poll(list) = &world.get(epoll)?.socket else { return Err(libc::EINVAL) };
        let watched: Vec<_> = list.iter().map(|(fd, event)| (*fd, *event)).collect();
        let mut ready = Vec::new();
        for (fd, event) in watched {
            // The low bits of epoll's events are those of poll().
            let events = world.readiness(fd, event.events as i16);
            if events != 0 {
                ready.push(epoll_event { events: events as u32, u64: event.u64 });
            }
        }
        ready.truncate(most.max(0) as usize);
        if ready.is_empty() && timeout != 0 { Err(libc::EAGAIN) } else { Ok(ready) }
    });
    give(ready, |ready| {
        for (at, event) in ready.iter().enumerate() {
            // SAFETY: there is room for `most` events.
            unsafe { into.add(at).write_unaligned(*event) };
        }
        ready.len() as ssize_t
    }) as c_int
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
