//! Frames as they pass an interface.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use packet::{BlockFrames, BlockRing, BlockRingOptions, Fanout, SocketOptions, interface_index};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Time;

use crate::filter::Header;
use crate::{Error, Filter, Frame};

/// Bytes of a frame that are kept if nothing else is said: hellos, certificate chains and the
/// records behind, also where the kernel has joined several segments into one.
const SNAP_LEN: u32 = 16 * 1024;

/// Time between two looks for frames that the kernel keeps back.
const LOOK: Duration = Duration::from_millis(10);

/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;
/// LINKTYPE_RAW.
const RAW_IP: u32 = 101;

/// How interfaces are listened to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveOptions {
    /// Which frames the kernel hands over.
    pub filter: Filter,
    /// Bytes of each that are kept, at most; 262144 and more are as many as there are.
    pub snap_len: u32,
    /// Also frames for other stations, where the interface filters them.
    pub promiscuous: bool,
    /// Memory between the kernel and us, for each interface.
    pub ring: BlockRingOptions,
}

impl Default for LiveOptions {
    /// All TCP, and UDP that may be QUIC; 16 KiB of each frame; not promiscuous; 32 MiB, 50 ms.
    fn default() -> Self {
        LiveOptions {
            filter: Filter::default(),
            snap_len: SNAP_LEN,
            promiscuous: false,
            ring: BlockRingOptions::default(),
        }
    }
}

/// What was seen since opening, at all interfaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveStatistics {
    /// Frames that passed the filters, lost ones included.
    pub frames: u64,
    /// Frames lost because a ring was full: read faster, or make the ring larger.
    pub drops: u64,
    /// Times that an interface went down. Should it come up again, its frames are seen again.
    pub went_down: u64,
}

#[derive(Debug)]
struct Interface {
    name: String,
    ring: BlockRing,
    link: u32,
}

/// Listening to one or several interfaces.
///
/// [`Live::next`] until it has none, then [`Live::wait`], and so on. Both directions are seen; on the
/// loopback interface, where all that goes out comes in again, once.
/// Frames of several interfaces come by time as far as they are there; one that its ring still
/// keeps back ([`BlockRingOptions::retire`]) may be later than those of others.
///
/// A VLAN tag that the network device took off is not put back.
#[derive(Debug)]
pub struct Live {
    interfaces: Vec<Interface>,
    went_down: u64,
}

impl Live {
    /// Opens the interfaces, in the calling thread's network namespace. Frames that pass from now
    /// on are seen. [`crate::drop_privileges`] may follow.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] without CAP_NET_RAW; [`Error::NoInterface`], [`Error::Interface`],
    /// [`Error::InterfaceKind`], [`Error::TooManyPorts`].
    pub fn open<S: AsRef<str>>(interfaces: &[S], options: &LiveOptions) -> Result<Live, Error> {
        let mut one = Live::open_several(interfaces, options, 1)?;
        one.pop().ok_or(Error::NoInterface)
    }

    /// Opens the interfaces so many times, for as many threads: each frame comes to one of them, all
    /// frames of a flow in both directions to the same ([`packet::Fanout`]). Each has a ring of its own.
    ///
    /// # Errors
    /// As [`Live::open`].
    pub fn open_several<S: AsRef<str>>(
        interfaces: &[S],
        options: &LiveOptions,
        count: usize,
    ) -> Result<Vec<Live>, Error> {
        if interfaces.is_empty() {
            return Err(Error::NoInterface);
        }
        let mut several: Vec<Live> = Vec::with_capacity(count);
        for _ in 0..count.max(1) {
            let mut opened = Vec::with_capacity(interfaces.len());
            for (number, name) in interfaces.iter().enumerate() {
                let name = name.as_ref();
                let first = several.first().and_then(|live| live.interfaces.get(number));
                let fanout = match first {
                    _ if count <= 1 => Fanout::Alone,
                    None => Fanout::Begin,
                    Some(first) => {
                        let group = first.ring.socket().fanout_group();
                        Fanout::Join(group.map_err(|source| of_interface(name, source))?)
                    }
                };
                opened.push(Interface::open(name, options, fanout)?);
            }
            several.push(Live { interfaces: opened, went_down: 0 });
        }
        Ok(several)
    }

    /// The names of the interfaces, by their numbers ([`Frame::interface`]).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.interfaces.iter().map(|interface| interface.name.as_str())
    }

    /// A frame that has passed; `None` if there is none for now. Never waits.
    // Not an iterator: what it hands out lies in the kernel's ring.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        self.next_batch()?.next()
    }

    /// The same, several frames at once: those of one interface that come before the others'. Those
    /// that are not taken come again. `None` if there is none for now. Never waits.
    pub fn next_batch(&mut self) -> Option<LiveFrames<'_>> {
        let mut times: Vec<(Time, usize)> = Vec::with_capacity(self.interfaces.len());
        for (number, interface) in self.interfaces.iter_mut().enumerate() {
            times.extend(interface.ring.next_time().map(|time| (time, number)));
        }
        times.sort_unstable();
        let (_, number) = *times.first()?;
        // Of two frames of one time, that of the interface named first comes first.
        let until = times.get(1).map_or(Time::MAX, |(time, other)| {
            if number < *other { *time + Duration::from_nanos(1) } else { *time }
        });
        let interface = self.interfaces.get_mut(number)?;
        let link = interface.link;
        Some(LiveFrames { frames: interface.ring.receive_before(until), link, number })
    }

    /// Waits until a frame may be there, at most `timeout`; true if one may. A signal ends it early.
    ///
    /// # Errors
    /// [`Error::Wait`], [`Error::Interface`].
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            let mut waited: Vec<_> = self
                .interfaces
                .iter()
                .map(|one| PollFd::from_borrowed_fd(one.ring.as_fd(), PollFlags::IN))
                .collect();
            match poll(&mut waited, timeout.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
                Ok(_) => {}
                Err(errno) => return Err(Error::Wait(errno.into())),
            }
            let events: Vec<_> = waited.iter().map(PollFd::revents).collect();
            if self.take_errors(&events)? {
                return Ok(true);
            }
        }
    }

    /// Takes errors away, which would else end every wait at once; whether there are frames.
    fn take_errors(&mut self, events: &[PollFlags]) -> Result<bool, Error> {
        let mut frames = false;
        for (interface, events) in self.interfaces.iter().zip(events) {
            frames |= events.contains(PollFlags::IN);
            if !events.contains(PollFlags::ERR) {
                continue;
            }
            match interface.ring.socket().take_error() {
                None => {}
                Some(error)
                    if error.raw_os_error() == Some(rustix::io::Errno::NETDOWN.raw_os_error()) =>
                {
                    self.went_down += 1;
                }
                Some(source) => return Err(interface.failed("listening", source)),
            }
        }
        Ok(frames)
    }

    /// Lets no further frame in: [`Live::wait_for_rest`] and [`Live::next_batch`] have what passed before.
    ///
    /// # Errors
    /// [`Error::Interface`].
    pub fn close(&mut self) -> Result<(), Error> {
        self.interfaces.iter_mut().try_for_each(|interface| {
            let closed = interface.ring.close();
            closed.map_err(|source| interface_error(&interface.name, source))
        })
    }

    /// Waits, after [`Live::close`], until a frame is there; false once none is left. The kernel keeps the
    /// last ones back for [`BlockRingOptions::retire`]; after `end` they count as lost. A signal does not end
    /// it.
    ///
    /// # Errors
    /// [`Error::Wait`], [`Error::Interface`].
    pub fn wait_for_rest(&mut self, end: Instant) -> Result<bool, Error> {
        loop {
            if self.interfaces.iter_mut().any(|one| one.ring.next_time().is_some()) {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= end || self.waiting()? == 0 {
                return Ok(false);
            }
            self.wait((end - now).min(LOOK))?;
        }
    }

    /// Frames that passed and were not handed out yet. One system call an interface.
    ///
    /// # Errors
    /// [`Error::Interface`].
    pub fn waiting(&mut self) -> Result<u64, Error> {
        self.interfaces.iter_mut().try_fold(0, |sum, interface| {
            let waiting = interface.ring.waiting();
            Ok(sum + waiting.map_err(|source| interface_error(&interface.name, source))?)
        })
    }

    /// Counts since opening. One system call an interface.
    ///
    /// # Errors
    /// [`Error::Interface`].
    pub fn statistics(&mut self) -> Result<LiveStatistics, Error> {
        let mut sum = LiveStatistics { went_down: self.went_down, ..LiveStatistics::default() };
        for interface in &mut self.interfaces {
            let one = interface.ring.statistics();
            let one = one.map_err(|source| interface_error(&interface.name, source))?;
            sum.frames += one.frames;
            sum.drops += one.drops;
        }
        Ok(sum)
    }
}

/// Frames that have passed an interface, in the kernel's ring.
#[derive(Debug)]
pub struct LiveFrames<'a> {
    frames: BlockFrames<'a>,
    link: u32,
    number: usize,
}

impl<'a> Iterator for LiveFrames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        let frame = self.frames.next()?;
        Some(Frame {
            at: frame.at,
            link: self.link,
            bytes: frame.bytes,
            original_len: frame.original_len.max(frame.bytes.len()),
            interface: self.number as u32,
            source: 0,
        })
    }
}

impl Interface {
    fn open(name: &str, options: &LiveOptions, fanout: Fanout) -> Result<Interface, Error> {
        let error = |source| of_interface(name, source);
        let index = interface_index(name).map_err(error)?;
        let socket = SocketOptions {
            ignore_outgoing: false,
            qdisc_bypass: false,
            promiscuous: options.promiscuous,
            fanout,
            ..SocketOptions::default()
        };
        let filter = |kind| {
            let header = kind_of(kind).map(|(header, _)| header);
            let header = header.ok_or(Opening::Kind(kind))?;
            options.filter.program(header, options.snap_len).map_err(Opening::Filter)
        };
        let ring =
            BlockRing::open(index, &socket, options.ring, filter).map_err(
                |failed| match failed {
                    Opening::Packet(source) => of_interface(name, source),
                    Opening::Filter(error) => error,
                    Opening::Kind(kind) => {
                        Error::InterfaceKind { interface: name.to_owned(), kind }
                    }
                },
            )?;
        let link = kind_of(ring.hardware_kind()).map_or(ETHERNET, |(_, link)| link);
        Ok(Interface { name: name.to_owned(), ring, link })
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> Error {
        interface_error(&self.name, packet::Error::System { doing, source })
    }
}

fn interface_error(name: &str, source: packet::Error) -> Error {
    Error::Interface { interface: name.to_owned(), source }
}

/// Why an interface cannot be opened.
enum Opening {
    Packet(packet::Error),
    Filter(Error),
    Kind(u16),
}

impl From<packet::Error> for Opening {
    fn from(error: packet::Error) -> Self {
        Opening::Packet(error)
    }
}

fn of_interface(name: &str, source: packet::Error) -> Error {
    match source {
        packet::Error::RawSocketsForbidden { .. } => Error::NotPermitted { source },
        source => interface_error(name, source),
    }
}

/// What frames of an interface begin with, by its ARPHRD number, and their LINKTYPE.
fn kind_of(hardware: u16) -> Option<(Header, u32)> {
    match hardware {
        // ARPHRD_ETHER; ARPHRD_LOOPBACK, which has the same header.
        1 | 772 => Some((Header::Ethernet, ETHERNET)),
        // ARPHRD_NONE (TUN, WireGuard), PPP, IP in IP in its three kinds.
        65_534 | 512 | 768 | 769 | 776 => Some((Header::Ip, RAW_IP)),
        _ => None,
    }
}
