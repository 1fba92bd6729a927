//! The endpoint, its sockets and its time.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tcp::{
    Checksum, CloseReason, Config, ConnectError, ConnectOptions, ConnectionId, Endpoint, EventKind,
    IcmpKind, Info, ListenOptions, ListenerId, State, StreamError,
};
use units::Time;

/// A call's error.
pub type Errno = i32;

/// packetdrill's addresses of the host under test.
const LOCAL_V4: &str = "192.168.0.1";
const LOCAL_V6: &str = "fd3d:a0b:17d6::1";
/// Descriptors are numbered from here, beside those of packetdrill's own.
const FIRST_DESCRIPTOR: i32 = 1 << 16;
/// A thread whose call has ended is given this much real time before virtual time passes.
const GRACE: Duration = Duration::from_millis(2);
/// Nothing is waited for longer, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

pub enum Socket {
    Fresh { local: Option<SocketAddr> },
    Listening(ListenerId),
    Connection(ConnectionId),
    Poll(BTreeMap<i32, libc::epoll_event>),
}

pub struct Descriptor {
    pub socket: Socket,
    pub nonblocking: bool,
    pub fast_open: bool,
    /// SO_LINGER without time.
    pub resets: bool,
    /// The error that ended the connection has been told.
    pub told: bool,
}

impl Descriptor {
    pub fn new(socket: Socket) -> Self {
        Descriptor { socket, nonblocking: false, fast_open: false, resets: false, told: false }
    }
}

pub struct World {
    pub endpoint: Endpoint,
    pub now: Time,
    pub descriptors: BTreeMap<i32, Descriptor>,
    next: i32,
    sent: VecDeque<(Time, Vec<u8>)>,
    buffer: Vec<u8>,
    /// Calls that wait; one of them has ended since time passed last.
    waiting: u32,
    ended: bool,
}

/// A host under test: the table's `userdata`.
pub struct Host {
    world: Mutex<World>,
    changed: Condvar,
}

impl Host {
    pub fn new(flags: &str) -> Self {
        let world = World {
            endpoint: Endpoint::new(config(flags), [7; 32]),
            // packetdrill takes a time of 0 for none.
            now: Time::from_millis(1_000_000),
            descriptors: BTreeMap::new(),
            next: FIRST_DESCRIPTOR,
            sent: VecDeque::new(),
            buffer: vec![0; 70_000],
            waiting: 0,
            ended: false,
        };
        Host { world: Mutex::new(world), changed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the world, and has calls that wait try again.
    pub fn act<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        let mut world = self.lock();
        let result = act(&mut world);
        world.collect();
        drop(world);
        self.changed.notify_all();
        result
    }

    /// Acts until that no longer fails by EAGAIN, if `fd` blocks.
    pub fn block<R>(
        &self,
        fd: i32,
        dont_wait: bool,
        mut act: impl FnMut(&mut World) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let mut world = self.lock();
        let mut waited = false;
        loop {
            let result = act(&mut world);
            world.collect();
            let waits = !dont_wait && world.descriptors.get(&fd).is_some_and(|it| !it.nonblocking);
            if !matches!(result, Err(libc::EAGAIN | libc::EINPROGRESS)) || !waits {
                world.ended |= waited;
                drop(world);
                self.changed.notify_all();
                return result;
            }
            waited = true;
            world.waiting += 1;
            world = self.changed.wait(world).unwrap_or_else(PoisonError::into_inner);
            world.waiting -= 1;
        }
    }

    /// Lets virtual time pass. A thread whose call has ended looks at the clock before.
    pub fn pass(&self, time: Duration) {
        let world = self.lock();
        let yields = world.waiting > 0 || world.ended;
        drop(world);
        if yields {
            std::thread::sleep(GRACE);
        }
        self.act(|world| {
            world.ended = false;
            let end = world.now + time;
            world.advance(end);
        });
    }

    /// The next packet, with its time.
    pub fn receive(&self) -> Option<(Time, Vec<u8>)> {
        self.act(|world| {
            world.collect();
            let end = world.now + PATIENCE;
            while world.sent.is_empty() && world.step(end) {}
            world.sent.pop_front()
        })
    }
}

/// The endpoint that the flags want; Nagle's algorithm is a kernel's default.
fn config(flags: &str) -> Config {
    let mut config = Config { nagle: true, ..Config::default() };
    for (name, value) in flags.split(',').filter_map(|word| word.split_once('=')) {
        let number: u16 = value.trim().parse().unwrap_or(0);
        match name.trim() {
            "nagle" => config.nagle = number != 0,
            "sack" => config.sack = number != 0,
            "timestamps" => config.timestamps = number != 0,
            "window_scale" => config.window_scale = number != 0,
            "wscale" => config.receive_buffer = usize::from(u16::MAX) << number.min(14),
            "mtu" => config.mtu = number.max(576),
            _ => {}
        }
    }
    config
}

impl World {
    /// Takes what the endpoint sends and tells.
    fn collect(&mut self) {
        loop {
            let mut more = false;
            while let Some(event) = self.endpoint.poll_event() {
                more = true;
                // A kernel answers a SYN with data at once.
                if matches!(event.kind, EventKind::Incoming(_)) {
                    self.endpoint.answer(self.now, event.connection);
                }
            }
            while let Some(transmit) = self.endpoint.poll_transmit(self.now, &mut self.buffer) {
                more = true;
                let packet = self.buffer.get(..transmit.len).unwrap_or_default().to_vec();
                self.sent.push_back((self.now, packet));
            }
            if !more {
                return;
            }
        }
    }

    /// Fires the next timers if they are due until `end`.
    fn step(&mut self, end: Time) -> bool {
        let Some(next) = self.endpoint.next_timeout().filter(|at| *at <= end) else { return false };
        self.now = self.now.max(next);
        self.endpoint.handle_timeout(self.now);
        self.collect();
        true
    }

    fn advance(&mut self, end: Time) {
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    pub fn give(&mut self, packet: &[u8]) {
        let _ignored = self.endpoint.handle_packet(self.now, packet, Checksum::Verify);
    }

    pub fn open(&mut self, descriptor: Descriptor) -> i32 {
        let fd = self.next;
        self.next += 1;
        self.descriptors.insert(fd, descriptor);
        fd
    }

    pub fn get(&mut self, fd: i32) -> Result<&mut Descriptor, Errno> {
        self.descriptors.get_mut(&fd).ok_or(libc::EBADF)
    }

    /// The connection of a descriptor, or the error that a socket without one has.
    pub fn connection(&self, fd: i32) -> Result<ConnectionId, Errno> {
        match self.descriptors.get(&fd).map(|it| &it.socket) {
            Some(Socket::Connection(id)) => Ok(*id),
            Some(_) => Err(libc::ENOTCONN),
            None => Err(libc::EBADF),
        }
    }

    pub fn info(&self, fd: i32) -> Option<Info> {
        self.endpoint.info(self.connection(fd).ok()?)
    }

    pub fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<(), Errno> {
        match &mut self.get(fd)?.socket {
            Socket::Fresh { local } => *local = Some(address),
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    }

    pub fn listen(&mut self, fd: i32, backlog: i32) -> Result<(), Errno> {
        let descriptor = self.get(fd)?;
        let local = match descriptor.socket {
            Socket::Fresh { local: Some(local) } => local,
            Socket::Listening(_) => return Ok(()),
            _ => return Err(libc::EINVAL),
        };
        let options = ListenOptions {
            backlog: usize::try_from(backlog).unwrap_or(0) + 1,
            admit: if descriptor.fast_open { |_| true } else { |_| false },
            cookies: descriptor.fast_open,
        };
        let listener = self.endpoint.listen(local, options).map_err(|_| libc::EADDRINUSE)?;
        self.get(fd)?.socket = Socket::Listening(listener);
        Ok(())
    }

    pub fn accept(&mut self, fd: i32) -> Result<i32, Errno> {
        let Socket::Listening(listener) = self.get(fd)?.socket else { return Err(libc::EINVAL) };
        let id = self.endpoint.accept(listener).ok_or(libc::EAGAIN)?;
        Ok(self.open(Descriptor::new(Socket::Connection(id))))
    }

    /// Opens, or says how far the opening is.
    pub fn connect(&mut self, fd: i32, remote: SocketAddr, data: &[u8]) -> Result<(), Errno> {
        let now = self.now;
        let descriptor = self.get(fd)?;
        let local = match descriptor.socket {
            Socket::Fresh { local } => local,
            Socket::Connection(id) => {
                return match self.endpoint.info(id).map(|info| info.state) {
                    Some(State::SynSent | State::SynReceived) => Err(libc::EAGAIN),
                    Some(State::Closed) | None => Err(self.take_error(fd)),
                    Some(_) => Ok(()),
                };
            }
            _ => return Err(libc::EINVAL),
        };
        let options = ConnectOptions {
            syn_data: data.to_vec(),
            fast_open_cookie: descriptor.fast_open || !data.is_empty(),
            ..ConnectOptions::default()
        };
        let default = if remote.is_ipv4() { LOCAL_V4 } else { LOCAL_V6 };
        let own = default.parse::<IpAddr>().map_err(|_| libc::EINVAL)?;
        let local = match local {
            Some(local) if !local.ip().is_unspecified() => local,
            Some(local) => SocketAddr::new(own, local.port()),
            None => SocketAddr::new(own, 0),
        };
        let id =
            self.endpoint.connect(now, local, remote, options).map_err(|error| match error {
                ConnectError::NoPort(_) => libc::EADDRNOTAVAIL,
                ConnectError::TooMany(_) => libc::ENOBUFS,
                _ => libc::EINVAL,
            })?;
        self.get(fd)?.socket = Socket::Connection(id);
        Err(libc::EINPROGRESS)
    }

    pub fn read(&mut self, fd: i32, into: &mut [u8]) -> Result<usize, Errno> {
        let id = self.connection(fd)?;
        match self.endpoint.read(self.now, id, into) {
            Ok(count) => Ok(count),
            Err(StreamError::WouldBlock) => Err(libc::EAGAIN),
            Err(StreamError::Closed(_)) if self.get(fd)?.told => Ok(0),
            Err(_) => Err(self.take_error(fd)),
        }
    }

    pub fn write(&mut self, fd: i32, data: &[u8]) -> Result<usize, Errno> {
        let id = self.connection(fd).map_err(|error| match error {
            libc::ENOTCONN => libc::EPIPE,
            other => other,
        })?;
        match self.endpoint.write(self.now, id, data) {
            Ok(count) => Ok(count),
            Err(StreamError::WouldBlock) => Err(libc::EAGAIN),
            Err(StreamError::Closed(_)) if !self.get(fd)?.told => Err(self.take_error(fd)),
            Err(_) => Err(libc::EPIPE),
        }
    }

    pub fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let descriptor = self.descriptors.remove(&fd).ok_or(libc::EBADF)?;
        match descriptor.socket {
            Socket::Listening(listener) => self.endpoint.unlisten(self.now, listener),
            Socket::Connection(id) => {
                if descriptor.resets {
                    self.endpoint.abort(self.now, id);
                }
                self.endpoint.release(self.now, id);
            }
            Socket::Fresh { .. } | Socket::Poll(_) => {}
        }
        Ok(())
    }

    pub fn shutdown(&mut self, fd: i32, how: i32) -> Result<(), Errno> {
        let id = self.connection(fd)?;
        match self.info(fd).map(|info| info.state) {
            None | Some(State::Closed | State::TimeWait) => return Err(libc::ENOTCONN),
            Some(_) if how != libc::SHUT_RD => self.endpoint.shutdown(self.now, id),
            Some(_) => {}
        }
        Ok(())
    }

    /// The error that ended a connection.
    pub fn error(&self, fd: i32) -> Option<Errno> {
        match self.endpoint.close_reason(self.connection(fd).ok()?)? {
            CloseReason::Finished => None,
            CloseReason::Refused | CloseReason::Unreachable(IcmpKind::PortUnreachable) => {
                Some(libc::ECONNREFUSED)
            }
            CloseReason::Reset => Some(libc::ECONNRESET),
            CloseReason::TimedOut => Some(libc::ETIMEDOUT),
            CloseReason::Aborted => Some(libc::ECONNABORTED),
            CloseReason::Unreachable(IcmpKind::ProtocolUnreachable) => Some(libc::ENOPROTOOPT),
            CloseReason::Unreachable(IcmpKind::NetworkUnreachable) => Some(libc::ENETUNREACH),
            CloseReason::Unreachable(_) => Some(libc::EHOSTUNREACH),
        }
    }

    fn take_error(&mut self, fd: i32) -> Errno {
        let error = self.error(fd).unwrap_or(libc::ENOTCONN);
        if let Some(descriptor) = self.descriptors.get_mut(&fd) {
            descriptor.told = true;
        }
        error
    }

    /// The error as SO_ERROR tells it: once.
    pub fn pending_error(&mut self, fd: i32) -> Errno {
        match (self.error(fd), self.descriptors.get_mut(&fd)) {
            (Some(error), Some(descriptor)) if !descriptor.told => {
                descriptor.told = true;
                error
            }
            _ => 0,
        }
    }

    /// Events of `wanted` (POLLIN and so on) that a descriptor has, and errors.
    pub fn readiness(&self, fd: i32, wanted: i16) -> i16 {
        let Some(descriptor) = self.descriptors.get(&fd) else { return libc::POLLNVAL };
        if let Socket::Listening(_) = descriptor.socket {
            return 0;
        }
        let Some(info) = self.info(fd) else { return 0 };
        let over = matches!(info.state, State::Closed | State::TimeWait);
        let opening = matches!(info.state, State::SynSent | State::SynReceived);
        let finished =
            over || matches!(info.state, State::CloseWait | State::LastAck | State::Closing);
        let id = self.connection(fd);
        let readable = id.map_or(0, |id| self.endpoint.readable(id));
        let writable = id.map_or(0, |id| self.endpoint.writable(id));
        let mut events = 0;
        if finished || readable > 0 {
            events |= (libc::POLLIN | (libc::POLLRDHUP * i16::from(finished))) & wanted;
        }
        if over || !opening && writable > 0 {
            events |= libc::POLLOUT & wanted;
        }
        if over {
            events |= libc::POLLHUP;
        }
        if over && !descriptor.told && self.error(fd).is_some() {
            events |= libc::POLLERR;
        }
        events
    }
}
