//! Captures at a node: to a file, to a channel, to a function.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use packet::capture::{Capture as Ring, Captured, Direction};
use packet::clock::RealtimeOffset;
use packet::{RingOptions, RingStatistics};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use units::Time;

use crate::Error;
use crate::node::Node;
use crate::pcapng::CaptureFile;

/// How long the ring is left to fill before it is looked at again. A reader that woke at every
/// frame would take its processor from what is measured; at 10 ms the default ring holds 1.6
/// million frames per second.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// How long the last frames may take to be written.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How a capture is made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureOptions {
    /// The number of the link to capture at; the node's first if not given.
    pub link: Option<u8>,
    /// The ring between the kernel and the reader.
    pub ring: RingOptions,
    /// Noted in a file as what made it; this process's own arguments if not given.
    pub command: Option<String>,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions { link: None, ring: Ring::RING, command: None }
    }
}

/// A frame that a channel was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedFrame {
    /// When it passed: CLOCK_REALTIME.
    pub at: Time,
    /// Its direction at the node.
    pub direction: Direction,
    /// The Ethernet frame, cut to what the ring keeps.
    pub bytes: Box<[u8]>,
    /// Its length before it was cut.
    pub original_len: usize,
}

impl From<&Captured<'_>> for OwnedFrame {
    fn from(frame: &Captured<'_>) -> Self {
        OwnedFrame {
            at: frame.at,
            direction: frame.direction,
            bytes: frame.bytes.into(),
            original_len: frame.original_len,
        }
    }
}

/// What a capture has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureStats {
    /// Frames that were handed on.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Frames that found the ring full.
    pub kernel_drops: u64,
    /// Frames that found the channel full.
    pub channel_drops: u64,
    /// The clocks at the capture's start: takes its stamps to CLOCK_MONOTONIC.
    pub clocks_at_start: RealtimeOffset,
    /// The clocks at its end.
    pub clocks_at_stop: RealtimeOffset,
    /// The file, if it was written to one.
    pub file: Option<PathBuf>,
}

impl CaptureStats {
    /// How far CLOCK_REALTIME was moved against CLOCK_MONOTONIC during the capture. Stamps cannot
    /// be taken from one to the other better than this.
    #[must_use]
    pub fn clock_step(&self) -> Duration {
        let at = self.clocks_at_stop.to_realtime(packet::clock::monotonic());
        let (a, b) = (self.clocks_at_start.to_monotonic(at), self.clocks_at_stop.to_monotonic(at));
        Duration::from_nanos(a.signed_nanos_since(b).unsigned_abs())
    }
}

/// Where frames go.
enum Sink {
    File {
        file: Box<CaptureFile>,
        path: PathBuf,
    },
    /// The file that could not be written: frames are counted, the run goes on.
    Failed {
        path: PathBuf,
        source: io::Error,
    },
    Function(Box<dyn FnMut(&Captured<'_>) + Send>),
}

impl Sink {
    fn take(&mut self, frame: &Captured<'_>) {
        match self {
            Sink::Failed { .. } => {}
            Sink::Function(function) => function(frame),
            Sink::File { file, path } => {
                if let Err(source) = file.write(frame) {
                    // Dropping the file removes what was written of it.
                    *self = Sink::Failed { path: std::mem::take(path), source };
                }
            }
        }
    }

    fn finish(self, counted: (Time, RingStatistics)) -> Result<Option<PathBuf>, Error> {
        match self {
            Sink::Function(_) => Ok(None),
            Sink::Failed { path, source } => Err(Error::CaptureFile { path, source }),
            Sink::File { file, path } => match file.finish(Some(counted)) {
                Ok(path) => Ok(Some(path)),
                Err(source) => Err(Error::CaptureFile { path, source }),
            },
        }
    }
}

/// What a capture's owner and its thread share.
#[derive(Debug)]
struct Control {
    /// Readable when the capture is to end.
    stop: OwnedFd,
    /// Whether its file is to be kept then.
    keep: AtomicBool,
}

/// A running capture at a node. [`Capture::stop`] ends it; dropped, it ends too, and its file is
/// removed.
#[derive(Debug)]
#[must_use = "a capture that is dropped is thrown away"]
pub struct Capture {
    control: Arc<Control>,
    result: mpsc::Receiver<Result<CaptureStats, Error>>,
    channel_drops: Arc<AtomicU64>,
}

impl Capture {
    /// Ends the capture. All frames that passed the node before the call are in it.
    ///
    /// # Errors
    /// [`Error::CaptureFile`] if the file could not be written: it is removed.
    /// [`Error::CaptureStuck`] if that does not end.
    pub fn stop(self) -> Result<CaptureStats, Error> {
        self.control.keep.store(true, Ordering::Release);
        self.ask_to_stop();
        match self.result.recv_timeout(STOP_LIMIT) {
            Ok(result) => {
                let mut stats = result?;
                stats.channel_drops = self.channel_drops.load(Ordering::Relaxed);
                Ok(stats)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Error::CaptureStuck { limit: STOP_LIMIT }),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(Error::Panicked {
                node: "capture".to_owned(),
                message: "the function that was given the frames panicked".to_owned(),
            }),
        }
    }

    fn ask_to_stop(&self) {
        // An eventfd is only full after 2^64 - 2 writes.
        let _ = rustix::io::write(&self.control.stop, &1u64.to_ne_bytes());
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.ask_to_stop();
    }
}

impl Node {
    /// Captures what passes the node's first link, in both directions, to a pcapng file with
    /// stamps in nanoseconds of CLOCK_REALTIME. The file has its name when the capture stops, the names of
    /// the nodes, comments at the frames with which handshakes were done and first bytes came, and how many
    /// frames were lost.
    ///
    /// # Errors
    /// [`Error::NoLink`], [`Error::CaptureFile`], [`Error::Packet`].
    pub fn capture(&self, path: impl AsRef<Path>) -> Result<Capture, Error> {
        self.capture_file(path, &CaptureOptions::default())
    }

    /// As [`Node::capture`], with options.
    ///
    /// # Errors
    /// As [`Node::capture`].
    pub fn capture_file(
        &self,
        path: impl AsRef<Path>,
        options: &CaptureOptions,
    ) -> Result<Capture, Error> {
        let path = path.as_ref().to_path_buf();
        let command = options.command.clone().unwrap_or_else(own_command);
        let end = self.end_of(options.link)?;
        let file = CaptureFile::create(&path, &end, &self.named_ends(), &command)
            .map_err(|source| Error::CaptureFile { path: path.clone(), source })?;
        self.start_capture(options, Sink::File { file: Box::new(file), path })
    }

    /// Captures to a function, which runs on the capture's own thread and gets frames some 10 ms
    /// after they passed. While it works, the ring fills.
    ///
    /// # Errors
    /// [`Error::NoLink`], [`Error::Packet`].
    pub fn capture_with(
        &self,
        options: &CaptureOptions,
        function: impl FnMut(&Captured<'_>) + Send + 'static,
    ) -> Result<Capture, Error> {
        self.start_capture(options, Sink::Function(Box::new(function)))
    }

    /// Captures to a channel of at most `capacity` frames; those that find it full are dropped
    /// and counted.
    ///
    /// # Errors
    /// As [`Node::capture_with`].
    pub fn capture_channel(
        &self,
        options: &CaptureOptions,
        capacity: usize,
    ) -> Result<(Capture, mpsc::Receiver<OwnedFrame>), Error> {
        let (sender, receiver) = mpsc::sync_channel(capacity);
        let drops = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&drops);
        let mut capture = self.capture_with(options, move |frame| {
            if sender.try_send(frame.into()).is_err() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        capture.channel_drops = drops;
        Ok((capture, receiver))
    }

    /// Writes frames that were captured at the node's first link to a pcapng file, behind the TLS secrets
    /// of their connections in the format of SSLKEYLOGFILE. Who reads the file reads the connections. A link of
    /// this name is replaced itself.
    ///
    /// # Errors
    /// [`Error::NoLink`]; [`Error::CaptureFile`] if it could not be written: it is removed.
    pub fn write_capture(
        &self,
        path: impl AsRef<Path>,
        frames: &[OwnedFrame],
        secrets: &[u8],
    ) -> Result<PathBuf, Error> {
        let (path, end) = (path.as_ref(), self.first_end()?);
        let write = || {
            let names = self.named_ends();
            let mut file = CaptureFile::create_in_place_of(path, &end, &names, &own_command())?;
            if !secrets.is_empty() {
                file.secrets(secrets)?;
            }
            for OwnedFrame { at, direction, bytes, original_len } in frames {
                let (at, direction, original_len) = (*at, *direction, *original_len);
                file.write(&Captured { at, direction, bytes, original_len })?;
            }
            file.finish(None)
        };
        write().map_err(|source| Error::CaptureFile { path: path.to_path_buf(), source })
    }

    fn end_of(&self, link: Option<u8>) -> Result<crate::End, Error> {
        let Some(number) = link else { return self.first_end() };
        let interface = format!("link{number}");
        let no_link = || Error::NoLink { node: self.name().to_owned() };
        self.ends().into_iter().find(|end| end.interface == interface).ok_or_else(no_link)
    }

    fn start_capture(&self, options: &CaptureOptions, sink: Sink) -> Result<Capture, Error> {
        let (index, ring) = (self.end_of(options.link)?.index, options.ring);
        // The socket belongs to the namespace in which it is opened, wherever it is read.
        let ring = self.run(move || Ring::open(index, ring))??;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::Thread(errno.into()))?;
        let control = Arc::new(Control { stop: event, keep: AtomicBool::new(false) });
        let (result_sender, result) = mpsc::channel();
        let limit = options.ring.frames as usize;
        let reader = Reader { ring, limit, sink, control: Arc::clone(&control) };
        thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || {
                // If nobody waits for the result, the capture was dropped.
                let _ = result_sender.send(reader.run());
            })
            .map_err(Error::Thread)?;
        Ok(Capture { control, result, channel_drops: Arc::new(AtomicU64::new(0)) })
    }
}

/// The capture's thread.
struct Reader {
    ring: Ring,
    limit: usize,
    sink: Sink,
    control: Arc<Control>,
}

impl Reader {
    fn run(mut self) -> Result<CaptureStats, Error> {
        let mut stats = CaptureStats {
            frames: 0,
            bytes: 0,
            kernel_drops: 0,
            channel_drops: 0,
            clocks_at_start: RealtimeOffset::measure(),
            clocks_at_stop: RealtimeOffset::measure(),
            file: None,
        };
        while !self.wait() {
            self.drain(&mut stats);
        }
        // What was sent before the stop is in the ring by now: one ring's worth at most.
        self.drain(&mut stats);
        stats.clocks_at_stop = RealtimeOffset::measure();
        let counted = self.ring.statistics()?;
        stats.kernel_drops = counted.drops;
        let counted = (packet::clock::realtime(), counted);
        // Closed before the file is completed: nothing more is buffered meanwhile.
        let Reader { ring, sink, control, .. } = self;
        drop(ring);
        if control.keep.load(Ordering::Acquire) {
            stats.file = sink.finish(counted)?;
        }
        Ok(stats)
    }

    fn drain(&mut self, stats: &mut CaptureStats) {
        let Reader { ring, sink, limit, .. } = self;
        ring.drain(*limit, |frame| {
            stats.frames += 1;
            stats.bytes += frame.original_len as u64;
            sink.take(&frame);
        });
    }

    /// Waits for a frame and then a while for more, or for the stop; true if it has come.
    fn wait(&self) -> bool {
        let ring = PollFd::from_borrowed_fd(self.ring.as_fd(), PollFlags::IN);
        let stop = || PollFd::new(&self.control.stop, PollFlags::IN);
        let mut both = [stop(), ring];
        // An interrupted wait is a wake-up without an event.
        let _ = poll(&mut both, None);
        let [stopped, received] = both;
        if !stopped.revents().is_empty() {
            return true;
        }
        if received.revents().contains(PollFlags::ERR) {
            // The interface went down. Asking takes the error away, which would else end every
            // wait at once; should it come up again, the capture goes on.
            let _ = rustix::net::sockopt::socket_error(self.ring.as_fd());
        }
        let mut only_stop = [stop()];
        matches!(poll(&mut only_stop, Some(&PAUSE)), Ok(1))
    }
}

fn own_command() -> String {
    let arguments: Vec<_> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    arguments.join(" ")
}
