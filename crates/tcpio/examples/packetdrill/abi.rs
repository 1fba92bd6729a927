//! The table of functions, in the order of packetdrill's header `packetdrill.h`.
//!
//! `fcntl` and `ioctl` are variadic there with at most one further argument. On Linux an integer or pointer is given
//! to a variadic function in the same register as to any other, on x86-64 and on AArch64.

use std::ffi::{c_int, c_long, c_longlong, c_uint, c_ulong, c_void};

use libc::{
    epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t,
    timeval,
};

type User = *mut c_void;
type Call<F> = Option<F>;

/// `struct packetdrill_interface`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Interface {
    pub userdata: User,
    pub free: Call<unsafe extern "C" fn(User)>,
    pub socket: Call<unsafe extern "C" fn(User, c_int, c_int, c_int) -> c_int>,
    pub bind: Call<unsafe extern "C" fn(User, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub listen: Call<unsafe extern "C" fn(User, c_int, c_int) -> c_int>,
    pub accept: Call<unsafe extern "C" fn(User, c_int, *mut sockaddr, *mut socklen_t) -> c_int>,
    pub connect: Call<unsafe extern "C" fn(User, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub read: Call<unsafe extern "C" fn(User, c_int, *mut c_void, size_t) -> ssize_t>,
    pub readv: Call<unsafe extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t>,
    pub recv: Call<unsafe extern "C" fn(User, c_int, *mut c_void, size_t, c_int) -> ssize_t>,
    pub recvfrom: Call<
        unsafe extern "C" fn(
            User,
            c_int,
            *mut c_void,
            size_t,
            c_int,
            *mut sockaddr,
            *mut socklen_t,
        ) -> ssize_t,
    >,
    pub recvmsg: Call<unsafe extern "C" fn(User, c_int, *mut msghdr, c_int) -> ssize_t>,
    pub write: Call<unsafe extern "C" fn(User, c_int, *const c_void, size_t) -> ssize_t>,
    pub writev: Call<unsafe extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t>,
    pub send: Call<unsafe extern "C" fn(User, c_int, *const c_void, size_t, c_int) -> ssize_t>,
    pub sendto: Call<
        unsafe extern "C" fn(
            User,
            c_int,
            *const c_void,
            size_t,
            c_int,
            *const sockaddr,
            socklen_t,
        ) -> ssize_t,
    >,
    pub sendmsg: Call<unsafe extern "C" fn(User, c_int, *const msghdr, c_int) -> ssize_t>,
    pub fcntl: Call<unsafe extern "C" fn(User, c_int, c_int, c_long) -> c_int>,
    pub ioctl: Call<unsafe extern "C" fn(User, c_int, c_ulong, *mut c_int) -> c_int>,
    pub close: Call<unsafe extern "C" fn(User, c_int) -> c_int>,
    pub shutdown: Call<unsafe extern "C" fn(User, c_int, c_int) -> c_int>,
    pub getsockopt:
        Call<unsafe extern "C" fn(User, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int>,
    pub setsockopt:
        Call<unsafe extern "C" fn(User, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int>,
    pub poll: Call<unsafe extern "C" fn(User, *mut pollfd, nfds_t, c_int) -> c_int>,
    pub netdev_send: Call<unsafe extern "C" fn(User, *const c_void, size_t) -> c_int>,
    pub netdev_receive:
        Call<unsafe extern "C" fn(User, *mut c_void, *mut size_t, *mut c_longlong) -> c_int>,
    pub usleep: Call<unsafe extern "C" fn(User, c_uint) -> c_int>,
    pub gettimeofday: Call<unsafe extern "C" fn(User, *mut timeval, *mut c_void) -> c_int>,
    pub epoll_create: Call<unsafe extern "C" fn(User, c_int) -> c_int>,
    pub epoll_ctl: Call<unsafe extern "C" fn(User, c_int, c_int, c_int, *mut epoll_event) -> c_int>,
    pub epoll_wait:
        Call<unsafe extern "C" fn(User, c_int, *mut epoll_event, c_int, c_int) -> c_int>,
    pub pipe: Call<unsafe extern "C" fn(User, *mut c_int) -> c_int>,
    pub splice: Call<
        unsafe extern "C" fn(
            User,
            c_int,
            *mut loff_t,
            c_int,
            *mut loff_t,
            size_t,
            c_uint,
        ) -> ssize_t,
    >,
}
