//! System calls of scripts, on the endpoint.

use std::net::SocketAddr;

use tcp::{CloseReason, ConnectError, ConnectOptions, IcmpKind, ListenOptions, State, StreamError};

use super::addresses::{self, PORT};
use super::packet::Flow;
use super::script::{Call, parse_number};
use super::settings::option_value;
use super::verdict::Failure;
use super::world::{Descriptor, Socket, World};

/// A call's result: a number, or the name of an error.
pub type Outcome = Result<i64, &'static str>;

/// Errors that ICMP messages become.
const UNREACHABLE: [&str; 4] = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOPROTOOPT"];
/// Most bytes that a call moves at a time.
const MOST: usize = 16 << 20;

impl World {
    /// Makes a call and compares its result; returns false if it has to wait.
    pub fn call(&mut self, call: &Call) -> Result<bool, Failure> {
        self.collect();
        let outcome = self.perform(call)?;
        self.collect();
        if let Err(error @ ("EAGAIN" | "EINPROGRESS")) = outcome
            && call.error.as_deref() != Some(error)
        {
            return Ok(false);
        }
        let Some(expected) = call.result else { return Ok(true) };
        let fits = match (outcome, &call.error) {
            (Ok(number), _) => number == expected,
            (Err(error), Some(wanted)) => expected == -1 && error == wanted,
            (Err(_), None) => expected == -1,
        };
        if fits {
            return Ok(true);
        }
        let wanted = call.error.as_deref().unwrap_or("");
        let got = outcome.map_or_else(|error| format!("-1 {error}"), |number| number.to_string());
        let reason = format!("{}() returns {got}, {expected} {wanted} is expected", call.name);
        Err(Failure::Wrong(reason.trim_end().to_owned()))
    }

    fn perform(&mut self, call: &Call) -> Result<Outcome, Failure> {
        let argument = |at: usize| call.arguments.get(at).map_or("", String::as_str);
        let number = |at: usize| parse_number(argument(at)).unwrap_or(0);
        let size = |at: usize| usize::try_from(number(at)).unwrap_or(0).min(MOST);
        let fd = number(0);
        Ok(match call.name.as_str() {
            "socket" => self.socket(call)?,
            "bind" => Ok(0),
            "listen" => self.listen(fd, number(1)),
            "accept" | "accept4" => self.accept(fd, call),
            "connect" => self.connect(fd, &[], call),
            "read" | "recv" | "recvfrom" => {
                refuse_flags(argument(3))?;
                self.read(fd, size(2))
            }
            "readv" => self.read(fd, sizes(argument(1))),
            "recvmsg" => {
                refuse_flags(argument(2))?;
                self.read(fd, sizes(argument(1)))
            }
            "write" | "send" => {
                refuse_flags(argument(3))?;
                self.write(fd, size(2))
            }
            "writev" => self.write(fd, sizes(argument(1))),
            "sendmsg" if self.opens(fd, argument(2)) => {
                self.send_with_syn(fd, sizes(argument(1)), call)
            }
            "sendmsg" => {
                refuse_flags(argument(2))?;
                self.write(fd, sizes(argument(1)))
            }
            "sendto" if self.opens(fd, argument(3)) => self.send_with_syn(fd, size(2), call),
            "sendto" => {
                refuse_flags(argument(3))?;
                self.write(fd, size(2))
            }
            "close" => self.close(fd),
            "shutdown" => self.shutdown(fd, argument(1)),
            "fcntl" => self.fcntl(fd, argument(1), argument(2)),
            "setsockopt" => self.set_option(fd, call)?,
            "getsockopt" => self.get_option(fd, argument(2), call)?,
            "ioctl" => self.ioctl(fd, argument(1), argument(2))?,
            "poll" => self.poll(argument(0), call)?,
            "epoll_create" | "epoll_create1" => {
                self.open(call, Descriptor::new(Socket::Poll(Default::default())))
            }
            "epoll_ctl" => self.watch(fd, argument(1), number(2), argument(3)),
            "epoll_wait" => self.wait(fd, argument(1), call)?,
            other => return Err(Failure::Unread(format!("the call {other}()"))),
        })
    }

    /// The script gives descriptors their numbers.
    fn open(&mut self, call: &Call, descriptor: Descriptor) -> Outcome {
        let fd = call.result.filter(|result| *result >= 0).unwrap_or(1000);
        self.descriptors.insert(fd, descriptor);
        Ok(fd)
    }

    fn socket(&mut self, call: &Call) -> Result<Outcome, Failure> {
        let kind = call.arguments.get(1).map_or("", String::as_str);
        if !kind.contains("SOCK_STREAM") {
            return Err(Failure::Unread(format!("sockets of {kind}")));
        }
        if call.arguments.get(2).is_some_and(|protocol| protocol.contains("MPTCP")) {
            return Err(Failure::Unread("MPTCP".into()));
        }
        let mut descriptor = Descriptor::new(Socket::Fresh);
        descriptor.nonblocking = kind.contains("SOCK_NONBLOCK");
        Ok(self.open(call, descriptor))
    }

    fn listen(&mut self, fd: i64, backlog: i64) -> Outcome {
        let Some(descriptor) = self.descriptors.get_mut(&fd) else { return Err("EBADF") };
        if matches!(descriptor.socket, Socket::Listening(_)) {
            return Ok(0);
        }
        let (ours, _) = addresses::pair(self.settings.ipv6);
        let options = ListenOptions {
            backlog: usize::try_from(backlog).unwrap_or(0) + 1,
            admit: if descriptor.fast_open { |_| true } else { |_| false },
            cookies: descriptor.fast_open,
        };
        let listener =
            self.endpoint.listen((ours, PORT).into(), options).map_err(|_| "EADDRINUSE")?;
        descriptor.socket = Socket::Listening(listener);
        self.listener = Some(listener);
        Ok(0)
    }

    fn accept(&mut self, fd: i64, call: &Call) -> Outcome {
        let Some(Descriptor { socket: Socket::Listening(listener), .. }) =
            self.descriptors.get(&fd)
        else {
            return Err("EINVAL");
        };
        let id = self.endpoint.accept(*listener).ok_or("EAGAIN")?;
        let mut descriptor = Descriptor::new(Socket::Connection(id));
        let nonblocking = call.arguments.get(3).is_some_and(|flags| flags.contains("NONBLOCK"));
        descriptor.nonblocking = nonblocking;
        self.open(call, descriptor)
    }

    fn connect(&mut self, fd: i64, data: &[u8], call: &Call) -> Outcome {
        let Some(descriptor) = self.descriptors.get(&fd).cloned() else { return Err("EBADF") };
        if let Socket::Connection(id) = descriptor.socket {
            let state = self.endpoint.info(id).map(|info| info.state);
            return match state {
                Some(State::SynSent | State::SynReceived) => {
                    Err(if call.error.as_deref() == Some("EALREADY") {
                        "EALREADY"
                    } else {
                        "EAGAIN"
                    })
                }
                Some(State::Closed) => Err(self.take_error(fd).unwrap_or("ECONNABORTED")),
                // A call that waited returns 0; one that is made again finds the connection.
                _ if call.error.as_deref() == Some("EISCONN") => Err("EISCONN"),
                _ => Ok(0),
            };
        }
        let (ours, theirs) = addresses::pair(self.settings.ipv6);
        let remote: SocketAddr = (theirs, PORT).into();
        let fast_open = call.name != "connect" || descriptor.fast_open;
        let options = ConnectOptions {
            syn_data: data.to_vec(),
            fast_open_cookie: fast_open,
            ..ConnectOptions::default()
        };
        let id = self.endpoint.connect(self.now, (ours, 0).into(), remote, options).map_err(
            |error| match error {
                ConnectError::NoPort(_) => "EADDRNOTAVAIL",
                ConnectError::TooMany(_) => "ENOBUFS",
                _ => "EINVAL",
            },
        )?;
        let cookies = self.flow.take().map(|flow| flow.cookies).unwrap_or_default();
        // The port is seen with the SYN.
        self.flow = Some(Flow { cookies, ..Flow::new((ours, 0).into(), remote) });
        if let Some(descriptor) = self.descriptors.get_mut(&fd) {
            descriptor.socket = Socket::Connection(id);
        }
        Err("EINPROGRESS")
    }

    /// Whether a call sends and opens (RFC 7413): by its flag, or on a socket that has Fast Open and is not open.
    fn opens(&self, fd: i64, flags: &str) -> bool {
        let named = flags.contains("MSG_FASTOPEN") || flags.contains("0x20000000");
        let fresh = self
            .descriptors
            .get(&fd)
            .is_some_and(|it| it.fast_open && matches!(it.socket, Socket::Fresh));
        named || fresh
    }

    /// Sends the data that the script expects on the SYN with it, and the rest afterwards. Without a cookie a kernel
    /// sends none, and takes none or all.
    fn send_with_syn(&mut self, fd: i64, len: usize, call: &Call) -> Outcome {
        match self.descriptors.get(&fd).map(|it| &it.socket) {
            Some(Socket::Fresh) => {}
            _ => return self.write(fd, len),
        }
        let taken = call.result.and_then(|sent| usize::try_from(sent).ok()).unwrap_or(0).min(len);
        let on_syn = self.next_syn.unwrap_or(taken).min(taken);
        // A refusal that the endpoint remembers takes the data off the SYN by itself.
        match self.connect(fd, &vec![0; on_syn], call) {
            Err("EINPROGRESS") if taken > 0 => {}
            other => return other,
        }
        if taken > on_syn {
            self.write(fd, taken - on_syn)?;
        }
        Ok(taken as i64)
    }

    fn read(&mut self, fd: i64, len: usize) -> Outcome {
        let Some(Descriptor { socket, told, .. }) = self.descriptors.get(&fd) else {
            return Err("EBADF");
        };
        let Socket::Connection(id) = *socket else { return Err("ENOTCONN") };
        let told = *told;
        let mut buffer = vec![0; len];
        match self.endpoint.read(self.now, id, &mut buffer) {
            Ok(count) => Ok(count as i64),
            Err(StreamError::WouldBlock) => Err("EAGAIN"),
            Err(StreamError::Closed(_)) if told => Ok(0),
            Err(StreamError::Closed(_)) => Err(self.take_error(fd).unwrap_or("ENOTCONN")),
            Err(_) => Err("ENOTCONN"),
        }
    }

    /// A socket that waits takes all; another as much as there is room for.
    fn write(&mut self, fd: i64, len: usize) -> Outcome {
        let Some(Descriptor { socket, told, .. }) = self.descriptors.get(&fd) else {
            return Err("EBADF");
        };
        let Socket::Connection(id) = *socket else { return Err("EPIPE") };
        let told = *told;
        match self.endpoint.write(self.now, id, &vec![0; len]) {
            Ok(count) => Ok(count as i64),
            Err(StreamError::WouldBlock) => Err("EAGAIN"),
            Err(StreamError::Shutdown) => Err("EPIPE"),
            Err(_) if told => Err("EPIPE"),
            Err(_) => Err(self.take_error(fd).unwrap_or("EPIPE")),
        }
    }

    fn close(&mut self, fd: i64) -> Outcome {
        let Some(descriptor) = self.descriptors.remove(&fd) else { return Err("EBADF") };
        match descriptor.socket {
            Socket::Listening(listener) => {
                self.endpoint.unlisten(self.now, listener);
                self.listener = self.listener.filter(|other| *other != listener);
            }
            Socket::Connection(id) => {
                let info = self.endpoint.info(id);
                if let (Some(flow), Some(info)) = (&mut self.flow, info) {
                    flow.closed |= (flow.local, flow.remote) == (info.local, info.remote);
                }
                if descriptor.resets {
                    self.endpoint.abort(self.now, id);
                }
                self.endpoint.release(self.now, id);
            }
            Socket::Fresh | Socket::Poll(_) => {}
        }
        Ok(0)
    }

    fn shutdown(&mut self, fd: i64, how: &str) -> Outcome {
        let Some(descriptor) = self.descriptors.get(&fd) else { return Err("EBADF") };
        let Socket::Connection(id) = descriptor.socket else { return Err("ENOTCONN") };
        let state = self.endpoint.info(id).map(|info| info.state);
        if matches!(state, None | Some(State::Closed | State::TimeWait)) {
            return Err("ENOTCONN");
        }
        if how != "SHUT_RD" {
            self.endpoint.shutdown(self.now, id);
        }
        Ok(0)
    }

    fn fcntl(&mut self, fd: i64, command: &str, flags: &str) -> Outcome {
        let Some(descriptor) = self.descriptors.get_mut(&fd) else { return Err("EBADF") };
        match command {
            "F_GETFL" => Ok(if descriptor.nonblocking { 0x802 } else { 2 }),
            _ => {
                descriptor.nonblocking = flags.contains("O_NONBLOCK");
                Ok(0)
            }
        }
    }

    fn set_option(&mut self, fd: i64, call: &Call) -> Result<Outcome, Failure> {
        let name = call.arguments.get(2).map_or("", String::as_str);
        let text = call.arguments.get(3).map_or("", String::as_str);
        let value = option_value(call).unwrap_or(0);
        let Some(descriptor) = self.descriptors.get_mut(&fd) else { return Ok(Err("EBADF")) };
        match name {
            "TCP_FASTOPEN" | "TCP_FASTOPEN_CONNECT" => descriptor.fast_open = value != 0,
            "SO_LINGER" => {
                let off = text.contains("onoff=0")
                    || text.contains("onoff=1") && !text.contains("linger=0");
                descriptor.resets = !off;
            }
            // These are the endpoint's, or of no matter to segments.
            "SO_REUSEADDR" | "SO_REUSEPORT" | "TCP_NODELAY" | "SO_KEEPALIVE" | "TCP_KEEPIDLE"
            | "TCP_KEEPINTVL" | "TCP_KEEPCNT" | "TCP_LINGER2" | "TCP_SYNCNT" | "TCP_CONGESTION"
            | "TCP_MAXSEG" | "SO_SNDBUF" | "SO_RCVBUF" | "SO_SNDBUFFORCE" | "SO_RCVBUFFORCE"
            | "IP_MTU_DISCOVER" | "IP_RECVERR" | "IPV6_V6ONLY" | "SO_PRIORITY" | "SO_DEBUG" => {}
            other => return Err(Failure::Unread(format!("the socket option {other}"))),
        }
        Ok(Ok(0))
    }

    fn get_option(&mut self, fd: i64, name: &str, call: &Call) -> Result<Outcome, Failure> {
        let is = match name {
            "SO_ERROR" => self.take_error(fd).unwrap_or("0").to_owned(),
            // Buffers are each host's own.
            "SO_RCVBUF" | "SO_SNDBUF" => {
                self.but.insert("buffers");
                return Ok(Ok(0));
            }
            "TCP_MAXSEG" => self.info(fd).map_or(0, |info| info.segment_size).to_string(),
            other => return Err(Failure::Unread(format!("getsockopt() of {other}"))),
        };
        let wanted = call.arguments.get(3).map_or("", String::as_str).trim_matches(['[', ']']);
        if wanted != "..." && wanted != is {
            // Kernels differ in the number for an ICMP error.
            if UNREACHABLE.contains(&wanted) && UNREACHABLE.contains(&is.as_str()) {
                self.but.insert("error numbers");
                return Ok(Ok(0));
            }
            return Err(Failure::Wrong(format!("{name} is {is}, {wanted} is expected")));
        }
        Ok(Ok(0))
    }

    fn ioctl(&mut self, fd: i64, request: &str, expected: &str) -> Result<Outcome, Failure> {
        let Some(info) = self.info(fd) else { return Ok(Err("EINVAL")) };
        let is = match request {
            "SIOCINQ" | "FIONREAD" => self.readable(fd) as u64,
            "SIOCOUTQ" | "TIOCOUTQ" => info.in_flight + info.unsent,
            "SIOCOUTQNSD" => info.unsent,
            "FIONBIO" => {
                let on = expected.trim_matches(['[', ']']) != "0";
                self.descriptors.entry(fd).and_modify(|it| it.nonblocking = on);
                return Ok(Ok(0));
            }
            other => return Err(Failure::Unread(format!("ioctl() of {other}"))),
        };
        let wanted = expected.trim_matches(['[', ']']);
        if wanted != "..." && wanted != is.to_string() {
            return Err(Failure::Wrong(format!("{request} is {is}, {wanted} is expected")));
        }
        Ok(Ok(0))
    }

    pub fn info(&self, fd: i64) -> Option<tcp::Info> {
        match self.descriptors.get(&fd)?.socket {
            Socket::Connection(id) => self.endpoint.info(id),
            _ => None,
        }
    }

    pub fn readable(&self, fd: i64) -> usize {
        match self.descriptors.get(&fd).map(|it| &it.socket) {
            Some(Socket::Connection(id)) => self.endpoint.readable(*id),
            _ => 0,
        }
    }

    pub fn room(&self, fd: i64) -> bool {
        match self.descriptors.get(&fd).map(|it| &it.socket) {
            Some(Socket::Connection(id)) => {
                // One that has shut down writes at once, and fails.
                self.endpoint.writable(*id) > 0
                    || self.info(fd).is_some_and(|info| info.unsent == 0)
            }
            _ => false,
        }
    }

    /// The error that ended a connection; it is told once.
    fn take_error(&mut self, fd: i64) -> Option<&'static str> {
        let error = self.error(fd)?;
        let told = &mut self.descriptors.get_mut(&fd)?.told;
        (!std::mem::replace(told, true)).then_some(error)
    }

    pub fn error(&self, fd: i64) -> Option<&'static str> {
        let Socket::Connection(id) = self.descriptors.get(&fd)?.socket else { return None };
        // Bytes that wait are not touched: the error is that of a writer.
        let info = self.endpoint.info(id)?;
        if !matches!(info.state, State::Closed) {
            return None;
        }
        match self.endpoint.close_reason(id)? {
            CloseReason::Refused | CloseReason::Unreachable(IcmpKind::PortUnreachable) => {
                Some("ECONNREFUSED")
            }
            CloseReason::Reset => Some("ECONNRESET"),
            CloseReason::TimedOut => Some("ETIMEDOUT"),
            CloseReason::Aborted => Some("ECONNABORTED"),
            CloseReason::Unreachable(IcmpKind::ProtocolUnreachable) => Some("ENOPROTOOPT"),
            CloseReason::Unreachable(IcmpKind::NetworkUnreachable) => Some("ENETUNREACH"),
            CloseReason::Unreachable(_) => Some("EHOSTUNREACH"),
            CloseReason::Finished => None,
        }
    }
}

/// Flags of send() and recv() that change what is sent or read.
fn refuse_flags(flags: &str) -> Result<(), Failure> {
    const KNOWN: [&str; 6] = ["0", "", "MSG_DONTWAIT", "MSG_NOSIGNAL", "...", "MSG_TRUNC"];
    match flags.split('|').map(str::trim).find(|flag| !KNOWN.contains(flag)) {
        Some(flag) => Err(Failure::Unread(format!("the flag {flag}"))),
        None => Ok(()),
    }
}

/// Bytes of the buffers `{..., 1000}` in a vector or a message.
fn sizes(text: &str) -> usize {
    let buffers = text.split('{').filter_map(|part| part.split_once('}'));
    let len = |buffer: &str| parse_number(buffer.rsplit(',').next()?.trim());
    let total: i64 = buffers.filter_map(|(buffer, _)| len(buffer)).sum();
    usize::try_from(total).unwrap_or(0).min(MOST)
}
