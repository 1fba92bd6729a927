//! A program that runs: what it writes, how it ends.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packet::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Time;

use crate::enter::Report;

/// Events that wait to be read; of more, the oldest are dropped and counted.
const MOST_EVENTS: usize = 4096;
/// Bytes of a line; a longer one is several.
const LONGEST_LINE: usize = 8192;
/// Lines that errors show.
const LAST_LINES: usize = 10;
/// How long a killed program may take to be gone.
const END_LIMIT: Duration = Duration::from_secs(10);
/// How long its output may stay open once it is gone, held by a process that it was passed to.
const LINGER: Duration = Duration::from_secs(1);

/// Where a program wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// To its standard output.
    Out,
    /// To its standard error.
    Err,
}

/// Something that a program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It wrote a line.
    Line {
        /// When it was read: CLOCK_MONOTONIC, as all times of the lab.
        at: Time,
        /// Where it was written.
        stream: Stream,
        /// The line without its end; what is not UTF-8 is replaced. One of more than 8,192 bytes comes
        /// in pieces.
        text: String,
    },
    /// It has ended, and all that it had started. Nothing comes after this.
    Ended {
        /// When that was noticed: CLOCK_MONOTONIC.
        at: Time,
        /// How. A program that was killed as its owner wanted ended by SIGKILL.
        status: ExitStatus,
    },
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    lost: u64,
    last: VecDeque<String>,
    line_seen: bool,
    status: Option<ExitStatus>,
    /// The guard's number is still its own.
    alive: bool,
    /// The reader has ended: nothing of the program is left.
    done: bool,
}

/// What a program's handle, its reader and its node share.
pub(crate) struct Shared {
    guard: libc::pid_t,
    /// Closed, it ends the program.
    life_line: Mutex<Option<OwnedFd>>,
    state: Mutex<State>,
    news: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the program and all that it has started.
    pub(crate) fn kill(&self) {
        drop(self.life_line.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Waits until nothing of it is left, for a bounded time; false if something is.
    pub(crate) fn wait_gone(&self) -> bool {
        self.wait_until(END_LIMIT, |state| state.done)
    }

    fn wait_until(&self, limit: Duration, reached: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while !reached(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// A program that runs inside a node. It is killed when this is dropped, with all that it has
/// started; when the drop returns, nothing of it is left.
pub struct Running {
    name: String,
    shared: Arc<Shared>,
    /// The mount that is the program's /run.
    run: OwnedFd,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Running {
    /// The next event: a line, or the program's end. `None` if nothing happens within `limit`, and
    /// after the end.
    #[must_use]
    pub fn next_event(&self, limit: Duration) -> Option<Event> {
        self.shared.wait_until(limit, |state| !state.events.is_empty() || state.done);
        self.shared.lock().events.pop_front()
    }

    /// The next line that contains `text`; those before it are dropped. `None` if none comes within
    /// `limit` or before the program's end.
    #[must_use]
    pub fn next_line_with(&self, text: &str, limit: Duration) -> Option<Event> {
        let deadline = Instant::now() + limit;
        loop {
            match self.next_event(deadline.saturating_duration_since(Instant::now()))? {
                Event::Line { text: line, at, stream } if line.contains(text) => {
                    return Some(Event::Line { at, stream, text: line });
                }
                Event::Line { .. } => {}
                Event::Ended { .. } => return None,
            }
        }
    }

    /// Events that were dropped, because 4,096 waited to be read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lock().lost
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        let state = self.shared.lock();
        state.status.filter(|_| state.done)
    }

    /// Waits for its end; `None` if it still runs after `limit`.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        self.shared.wait_until(limit, |state| state.done);
        self.status()
    }

    /// Sends it SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 or SIGUSR2; nothing else reaches it. A
    /// program that has ended takes none.
    pub fn signal(&self, signal: i32) {
        let state = self.shared.lock();
        if state.alive {
            // SAFETY: a number that is the guard's own as long as `alive` is set, and a signal.
            unsafe { libc::kill(self.shared.guard, signal) };
        }
    }

    /// Where this process finds what the program has in its `/run`: sockets, for one. As long as this
    /// handle lives, the program's end notwithstanding.
    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.run.as_raw_fd()))
    }

    pub(super) fn line_seen(&self) -> bool {
        self.shared.lock().line_seen
    }

    pub(super) fn last_lines(&self) -> Vec<String> {
        self.shared.lock().last.iter().cloned().collect()
    }

    /// Waits until something happens, or for a while.
    pub(super) fn wait_for_news(&self, limit: Duration) {
        let state = self.shared.lock();
        // Woken for nothing is woken early: the caller looks again.
        drop(self.shared.news.wait_timeout(state, limit));
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.kill();
        if !self.shared.wait_gone() {
            tracing::warn!(program = self.name, "a killed program is still there");
        }
    }
}

/// The pipes of a program that was started. One in the foreground has this process's streams.
pub(super) struct Pipes {
    pub(super) out: Option<OwnedFd>,
    pub(super) err: Option<OwnedFd>,
    /// Says how it ended.
    pub(super) report: OwnedFd,
}

/// Takes charge of a program that was started. A line that contains `ready` is noted.
pub(super) fn attend(
    name: String,
    guard: Child,
    pipes: Pipes,
    life_line: OwnedFd,
    run: OwnedFd,
    ready: Option<String>,
) -> io::Result<Running> {
    let shared = Arc::new(Shared {
        // Process numbers fit: the kernel's limit is 2^22.
        guard: guard.id().cast_signed(),
        life_line: Mutex::new(Some(life_line)),
        state: Mutex::new(State { alive: true, ..State::default() }),
        news: Condvar::new(),
    });
    let reader =
        Reader { shared: Arc::clone(&shared), lines: [Lines::default(), Lines::default()], ready };
    // If there is no thread to be had, dropping the handle's life line ends the program.
    std::thread::Builder::new().name(name.clone()).spawn(move || reader.run(guard, &pipes))?;
    Ok(Running { name, shared, run })
}

/// The thread that reads what the program writes.
struct Reader {
    shared: Arc<Shared>,
    lines: [Lines; 2],
    ready: Option<String>,
}

impl Reader {
    fn run(mut self, mut guard: Child, pipes: &Pipes) {
        let status = self.read(pipes);
        // Process 1 of the program's namespace is gone, and the guard about to be.
        self.shared.lock().alive = false;
        // It fails only if somebody else has waited for the guard.
        let _ = guard.wait();
        let ended = Event::Ended { at: clock::monotonic(), status };
        let mut state = self.shared.lock();
        state.status = Some(status);
        push(&mut state, ended);
        state.done = true;
        drop(state);
        self.shared.news.notify_all();
    }

    /// Reads all pipes to their ends; how the program ended.
    fn read(&mut self, pipes: &Pipes) -> ExitStatus {
        let fds = [pipes.out.as_ref(), pipes.err.as_ref(), Some(&pipes.report)];
        let mut open = fds.map(|fd| fd.is_some());
        let mut reported = Vec::new();
        let mut deadline = None;
        let mut buffer = vec![0; 64 << 10];
        while open.contains(&true) {
            // What is left of its output cannot be awaited for ever once the program is gone.
            if !open[2] && Instant::now() > *deadline.get_or_insert(Instant::now() + LINGER) {
                break;
            }
            for (place, fd) in ready_of(fds, open, !open[2]) {
                match rustix::io::read(fd, &mut *buffer) {
                    Ok(0) => open[place] = false,
                    Ok(read) if place == 2 => {
                        reported.extend_from_slice(buffer.get(..read).unwrap_or_default());
                        reported.truncate(Report::LENGTH);
                    }
                    Ok(read) => self.take(place, buffer.get(..read).unwrap_or_default()),
                    Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                    Err(_) => open[place] = false,
                }
            }
        }
        for place in 0..2 {
            if let Some(rest) = self.lines[place].rest() {
                self.line(place, rest);
            }
        }
        let killed = ExitStatus::from_raw(libc::SIGKILL);
        match <[u8; Report::LENGTH]>::try_from(reported).map(Report::from_bytes) {
            Ok(Report::Ended(status)) => ExitStatus::from_raw(status),
            Ok(Report::Failed(..)) | Err(_) => killed,
        }
    }

    fn take(&mut self, place: usize, bytes: &[u8]) {
        let lines = self.lines[place].take(bytes);
        for line in lines {
            self.line(place, line);
        }
    }

    fn line(&self, place: usize, text: String) {
        let stream = if place == 0 { Stream::Out } else { Stream::Err };
        let mut state = self.shared.lock();
        state.line_seen |= self.ready.as_ref().is_some_and(|ready| text.contains(ready));
        if state.last.len() == LAST_LINES {
            state.last.pop_front();
        }
        state.last.push_back(fault::excerpt(&text, 200));
        push(&mut state, Event::Line { at: clock::monotonic(), stream, text });
        drop(state);
        self.shared.news.notify_all();
    }
}

fn push(state: &mut State, event: Event) {
    if state.events.len() == MOST_EVENTS {
        state.events.pop_front();
        state.lost += 1;
    }
    state.events.push_back(event);
}

/// Those descriptors that can be read or are at their end, with their places; waits for one, for a
/// bounded time if `hurry` is set.
fn ready_of(fds: [Option<&OwnedFd>; 3], open: [bool; 3], hurry: bool) -> Vec<(usize, &OwnedFd)> {
    let places = fds.into_iter().enumerate().filter(|(place, _)| open[*place]);
    let places: Vec<_> = places.filter_map(|(place, fd)| Some((place, fd?))).collect();
    let mut polled: Vec<PollFd<'_>> =
        places.iter().map(|(_, fd)| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)).collect();
    let short = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    // An interrupted wait is a wake-up without an event.
    let _ = poll(&mut polled, hurry.then_some(&short));
    let ready = places.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
    ready.map(|(place, _)| *place).collect()
}

/// Bytes cut into lines.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, whole) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            for part in piece.chunks(LONGEST_LINE) {
                if self.begun.len() + part.len() > LONGEST_LINE {
                    lines.extend(self.rest());
                }
                self.begun.extend_from_slice(part);
            }
            if whole {
                lines.push(self.rest().unwrap_or_default());
            }
        }
        lines
    }

    /// What of a line has come so far.
    fn rest(&mut self) -> Option<String> {
        if self.begun.is_empty() {
            return None;
        }
        let line = String::from_utf8_lossy(&self.begun).trim_end_matches('\r').to_owned();
        self.begun.clear();
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_reads_end_and_are_bounded() {
        let mut lines = Lines::default();
        assert!(lines.take(b"on").is_empty());
        assert_eq!(lines.take(b"e\ntwo\r\n\nthr"), ["one", "two", ""]);
        assert_eq!(lines.take(b"\xff\n"), ["thr\u{fffd}"]);
        assert_eq!(lines.rest(), None);
        let long = lines.take(&vec![b'x'; 3 * LONGEST_LINE]);
        assert!(long.iter().all(|line| line.len() <= LONGEST_LINE), "{}", long.len());
        let more = lines.take(b"\n");
        assert_eq!(long.iter().chain(&more).map(String::len).sum::<usize>(), 3 * LONGEST_LINE);
    }

    #[test]
    fn events_that_nobody_reads_are_bounded_and_counted() {
        let mut state = State::default();
        for number in 0..MOST_EVENTS + 5 {
            let text = number.to_string();
            push(&mut state, Event::Line { at: Time::ZERO, stream: Stream::Out, text });
        }
        assert_eq!((state.events.len(), state.lost), (MOST_EVENTS, 5));
    }
}
