//! Descriptors that are ready.

use std::ffi::{c_int, c_void};

use libc::{epoll_event, nfds_t, pollfd, ssize_t};

use super::host::{Descriptor, Socket};
use super::memory::{done, give, host};

pub unsafe extern "C" fn poll(
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

pub unsafe extern "C" fn epoll_create(user: *mut c_void, _: c_int) -> c_int {
    let descriptor = Descriptor::new(Socket::Poll(Default::default()));
    // SAFETY: `user` is the table's.
    unsafe { host(user) }.act(|world| world.open(descriptor))
}

pub unsafe extern "C" fn epoll_ctl(
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

pub unsafe extern "C" fn epoll_wait(
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
