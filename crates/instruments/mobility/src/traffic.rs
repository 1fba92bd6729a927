//! Numbered frames between the host and its peer, by an exact schedule, from one thread.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

use ::traffic::{Load, Probe, Schedule, Sizes};
use handoff::{Event, Received, Source, Stream, What};
use lab::Node;
use packet::clock::monotonic;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::{Probability, Time};

use crate::stream::Arrivals;
use crate::{Error, tcp};

/// The UDP port of both.
const PORT: u16 = 7000;
/// Bytes of a frame, its Ethernet header among them.
pub(crate) const FRAME: u32 = 1000;
/// Bytes before a datagram's payload: Ethernet, IP, UDP.
const HEADERS: u32 = 14 + 20 + 8;
/// How long frames are waited for once the last has left.
const GRACE: Duration = Duration::from_millis(500);
/// The kernel counts the processor's idle time in these.
const TICKS_PER_SECOND: f64 = 100.0;

/// The sockets of both ends.
#[derive(Debug)]
pub(crate) struct Ends {
    host: UdpSocket,
    peer: UdpSocket,
    to: SocketAddrV4,
    /// Where the host was last heard from.
    back: Option<SocketAddr>,
    /// Numbers of streams, so that what comes late is not taken for another's.
    next: u16,
    /// The host's and the peer's end of a connection, where frames go by TCP.
    connection: Option<tcp::Connection>,
}

/// What came of a trial.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) up: Stream,
    pub(crate) down: Stream,
    pub(crate) events: Vec<Event>,
    pub(crate) busy: Probability,
}

/// One direction that is being sent and taken.
struct Way {
    stream: u16,
    schedule: Schedule,
    sent: u64,
    last: Time,
    arrivals: Arrivals,
}

impl Ends {
    pub(crate) fn open(host: &Node, peer: &Node, to: Ipv4Addr) -> Result<Ends, Error> {
        let open = |node: &Node| -> Result<UdpSocket, Error> {
            let opened = node.run(|| {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
                socket.set_nonblocking(true)?;
                io::Result::Ok(socket)
            })?;
            opened.map_err(failed("opening a socket for the frames"))
        };
        let to = SocketAddrV4::new(to, PORT);
        Ok(Ends { host: open(host)?, peer: open(peer)?, to, back: None, next: 1, connection: None })
    }

    /// Sends frames both ways for a while, and takes what comes. Times are since `began`.
    pub(crate) fn run(
        &mut self,
        per_second: u32,
        lasting: Duration,
        began: Time,
    ) -> Result<Outcome, Error> {
        let slack = packet::thread::set_timer_slack(Duration::from_nanos(1));
        slack.map_err(|error| failed("asking for exact timers")(io::Error::other(error)))?;
        let start = monotonic();
        let load = Load::Frames(per_second.into());
        let schedule = Schedule::lasting(start, load, Sizes::Fixed(FRAME as usize), lasting);
        let way =
            |stream| Way { stream, schedule, sent: 0, last: start, arrivals: Arrivals::default() };
        let (mut up, mut down) = (way(self.next), way(self.next.wrapping_add(1)));
        self.next = self.next.wrapping_add(2);
        let mut events = Vec::new();
        let idle_before = idle()?;
        let (mut payload, mut buffer) = (vec![0; (FRAME - HEADERS) as usize], vec![0; 2048]);
        loop {
            let now = monotonic();
            if let Some(connection) = &mut self.connection {
                by_tcp(connection, [&mut up, &mut down], now, began, &mut payload);
            }
            while let Some(probe) = up.due(now) {
                // What cannot be sent is lost: there is no way, no address or no link.
                send(&self.host, &probe, &mut payload, Some(self.to.into()));
            }
            while let Some(probe) = down.due(now) {
                send(&self.peer, &probe, &mut payload, self.back);
            }
            while let Some((probe, _)) = take(&self.host, &mut buffer)? {
                down.took(&probe, began);
            }
            while let Some((probe, from)) = take(&self.peer, &mut buffer)? {
                up.took(&probe, began);
                if self.back.replace(from) != Some(from) {
                    self.redirected(from, began, &mut events);
                }
            }
            let next = match (up.next(), down.next()) {
                (None, None) => schedule.end() + GRACE,
                (up, down) => up.unwrap_or(Time::MAX).min(down.unwrap_or(Time::MAX)),
            };
            let now = monotonic();
            if next <= now {
                if up.next().is_none() && down.next().is_none() {
                    break;
                }
                continue;
            }
            self.wait(next.saturating_since(now))?;
        }
        let elapsed = monotonic().saturating_since(start).as_secs_f64();
        let idled = (idle()? - idle_before) / elapsed;
        let busy = Probability::new((1.0 - idled).clamp(0.0, 1.0)).unwrap_or(Probability::ONE);
        let begin = since(start, began);
        let stream = |way: &Way| way.arrivals.stream(way.sent, (begin, since(way.last, began)));
        Ok(Outcome { up: stream(&up), down: stream(&down), events, busy })
    }

    /// Notes that the host was heard from elsewhere: from now on it is answered there.
    fn redirected(&self, from: SocketAddr, began: Time, events: &mut Vec<Event>) {
        let at = since(monotonic(), began);
        let detail = format!("the first frame from {}", from.ip());
        events.push(Event { at, source: Source::Control, what: What::Bound, detail });
        let detail = format!("frames go to {}", from.ip());
        events.push(Event { at, source: Source::Control, what: What::Redirected, detail });
    }

    /// Has frames go by a connection from now on, or by datagrams again.
    pub(crate) fn connect(&mut self, connection: Option<tcp::Connection>) {
        self.connection = connection;
    }

    /// Waits for frames, or for a while.
    fn wait(&self, limit: Duration) -> Result<(), Error> {
        let ends = self.connection.iter().flat_map(|both| [&both.host, &both.peer]);
        let sockets = [self.host.as_fd(), self.peer.as_fd()].into_iter();
        let sockets = sockets.chain(ends.map(|end| end.stream().as_fd()));
        let mut polled: Vec<PollFd<'_>> =
            sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)).collect();
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut polled, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(failed("waiting for frames")(error.into())),
        }
    }

    /// Whether both hear each other within a short while.
    pub(crate) fn hear_each_other(&mut self) -> Result<bool, Error> {
        let outcome = self.run(50, Duration::from_millis(200), monotonic())?;
        Ok(outcome.up.received > 0 && outcome.down.received > 0)
    }

    /// Forgets where the host is.
    pub(crate) fn forget(&mut self) {
        self.back = None;
    }
}

impl Way {
    /// The next frame, if it is time for it.
    fn due(&mut self, now: Time) -> Option<Probe> {
        let due = self.next()?;
        if due > now {
            return None;
        }
        let number = u32::try_from(self.sent).ok()?;
        self.sent += 1;
        self.last = monotonic();
        Some(Probe { stream: self.stream, number, sent: self.last })
    }

    /// When the next frame leaves; `None` after the last.
    fn next(&self) -> Option<Time> {
        (self.sent < self.schedule.frames()).then(|| self.schedule.time_of(self.sent))
    }

    fn took(&mut self, probe: &Probe, began: Time) {
        if probe.stream == self.stream {
            let (sent, at) = (since(probe.sent, began), since(monotonic(), began));
            self.arrivals.add(Received { number: probe.number.into(), sent, at });
        }
    }
}

/// The time since another.
pub(crate) fn since(time: Time, began: Time) -> Time {
    Time::ZERO + time.saturating_since(began)
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Traffic { doing, source }
}

fn send(socket: &UdpSocket, probe: &Probe, payload: &mut [u8], to: Option<SocketAddr>) {
    let Some(to) = to else { return };
    if probe.emit(payload).is_ok() {
        // What cannot be sent is lost.
        let _ = socket.send_to(payload, to);
    }
}

/// A frame that has come, and from where.
fn take(socket: &UdpSocket, buffer: &mut [u8]) -> Result<Option<(Probe, SocketAddr)>, Error> {
    loop {
        match socket.recv_from(buffer) {
            Ok((len, from)) => {
                if let Ok(probe) = Probe::parse(buffer.get(..len).unwrap_or_default()) {
                    return Ok(Some((probe, from)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            // A router's word that an earlier frame went nowhere.
            Err(error) if is_routers(&error) => {}
            Err(error) => return Err(failed("taking frames")(error)),
        }
    }
}

fn is_routers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | Interrupted | NetworkUnreachable)
}

/// Sends what is due by a connection, and takes what has come by it.
fn by_tcp(
    tcp::Connection { host, peer, .. }: &mut tcp::Connection,
    [up, down]: [&mut Way; 2],
    now: Time,
    began: Time,
    payload: &mut [u8],
) {
    while let Some(probe) = up.due(now) {
        host.send(&probe, payload);
    }
    while let Some(probe) = down.due(now) {
        peer.send(&probe, payload);
    }
    host.flush();
    peer.flush();
    while let Some(probe) = host.take(payload.len()) {
        down.took(&probe, began);
    }
    while let Some(probe) = peer.take(payload.len()) {
        up.took(&probe, began);
    }
}

/// Seconds for which the processor had nothing to do since it was switched on.
fn idle() -> Result<f64, Error> {
    let text = fs::read_to_string("/proc/stat").map_err(failed("reading the processor's time"))?;
    Ok(idle_of(&text))
}

/// Of the first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, …
fn idle_of(text: &str) -> f64 {
    let mut fields = text.lines().next().unwrap_or_default().split_whitespace().skip(4);
    let mut next = || fields.next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (next() + next()) / TICKS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::traffic::PROBE_LEN;

    #[test]
    fn idle_time_is_read() {
        assert_eq!(idle_of("cpu  10 0 20 1234 66 0 3 0 0 0\ncpu0 1 2 3\n"), 13.0);
        assert_eq!(idle_of(""), 0.0);
    }

    #[test]
    fn a_frame_has_room_for_its_probe() {
        assert!((FRAME - HEADERS) as usize >= PROBE_LEN);
    }
}
