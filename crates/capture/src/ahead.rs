//! Plain files that are read before their turn, a block at a time, by threads that have nothing else to do.
//!
//! `pread` into buffers that are used again, not a mapping: a file that somebody cuts short while it is read
//! ends there, where a mapping would end the process (SIGBUS).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 512 * 1024;
/// Bytes before a block's own, for the record that begins in the block before: with a frame of 64 KiB, as
/// captures of hosts that leave segmentation to the device have them, and some.
pub(crate) const HEAD: usize = 68 * 1024;
/// Blocks of a file that are read ahead at most.
const BLOCKS: usize = 4;
/// Buffers that others still look at, of which one may be free again.
const LENT: usize = 32;

/// A block of a file.
pub(crate) struct Block {
    pub(crate) buffer: Arc<[u8]>,
    /// Its bytes are those from [`HEAD`] to here.
    pub(crate) end: usize,
}

enum Slot {
    /// Somebody reads it.
    Reading,
    Read(io::Result<Block>),
}

struct State {
    /// Where the next block begins of which nobody has begun to read.
    next: u64,
    /// The number of the first of `slots`.
    first: u64,
    /// The blocks before `next` that the window has not had.
    slots: VecDeque<Slot>,
    lent: Vec<Arc<[u8]>>,
    /// The file's end was seen, or an error.
    ended: bool,
}

/// What is read ahead of one file.
pub(crate) struct Blocks {
    file: Arc<File>,
    /// Bytes that the window has had, and those before.
    read: Arc<AtomicU64>,
    state: Mutex<State>,
    /// A block was read.
    arrived: Condvar,
}

/// A block that is to be read by whoever has this.
struct Claim<'a> {
    blocks: &'a Blocks,
    number: u64,
    offset: u64,
    buffer: Option<Arc<[u8]>>,
    read: Option<io::Result<Block>>,
}

impl Blocks {
    /// Those of a file from `offset` on; `read` counts the bytes that are taken.
    pub(crate) fn new(file: Arc<File>, offset: u64, read: Arc<AtomicU64>) -> Blocks {
        let slots = VecDeque::with_capacity(BLOCKS);
        let state = State { next: offset, first: 0, slots, lent: Vec::new(), ended: false };
        Blocks { file, read, state: Mutex::new(state), arrived: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is done while it is locked is done whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next block that nobody reads, if there is one and not too many wait.
    fn claim(&self, state: &mut State) -> Option<Claim<'_>> {
        if state.ended || state.slots.len() >= BLOCKS {
            return None;
        }
        let number = state.first + state.slots.len() as u64;
        let offset = state.next;
        state.next = offset.saturating_add(BLOCK as u64);
        state.slots.push_back(Slot::Reading);
        let is_free = |lent: &mut Arc<[u8]>| Arc::get_mut(lent).is_some();
        let free = state.lent.iter_mut().position(is_free);
        let buffer = free.map(|at| state.lent.swap_remove(at));
        Some(Claim { blocks: self, number, offset, buffer, read: None })
    }

    /// Reads a block if there is one to be read; whether there was.
    fn help(&self) -> bool {
        let mut state = self.state();
        let claim = self.claim(&mut state);
        drop(state);
        claim.is_some_and(Claim::fill)
    }

    fn put(&self, number: u64, read: io::Result<Block>) {
        let mut state = self.state();
        // A block that is not full is the last.
        state.ended |= !matches!(&read, Ok(block) if block.end == HEAD + BLOCK);
        let at = number.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
        if let Some(slot) = at.and_then(|at| state.slots.get_mut(at)) {
            *slot = Slot::Read(read);
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// The file's next block, or `None` at its end. While another thread reads it, this one reads a later
    /// one.
    pub(crate) fn take(&self) -> io::Result<Option<Block>> {
        let mut state = self.state();
        loop {
            if let Some(Slot::Read(_)) = state.slots.front() {
                break;
            }
            if let Some(claim) = self.claim(&mut state) {
                drop(state);
                claim.fill();
                state = self.state();
            } else if state.slots.is_empty() {
                return Ok(None);
            } else {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let Some(Slot::Read(read)) = state.slots.pop_front() else { return Ok(None) };
        state.first += 1;
        if !matches!(&read, Ok(block) if block.end == HEAD + BLOCK) {
            // Nothing comes after it, also where the file has grown since.
            state.slots.clear();
            (state.ended, state.first) = (true, u64::MAX);
        }
        drop(state);
        let block = read?;
        self.read.fetch_add((block.end - HEAD) as u64, Ordering::Relaxed);
        Ok((block.end > HEAD).then_some(block))
    }

    /// Takes a buffer back that others may still look at.
    pub(crate) fn give_back(&self, buffer: Arc<[u8]>) {
        let mut state = self.state();
        if buffer.len() == HEAD + BLOCK && state.lent.len() < LENT {
            state.lent.push(buffer);
        }
    }
}

impl Claim<'_> {
    /// Reads the block.
    fn fill(mut self) -> bool {
        let mut buffer = self.buffer.take().unwrap_or_else(|| zeros(HEAD + BLOCK));
        let room = Arc::get_mut(&mut buffer).and_then(|all| all.get_mut(HEAD..));
        let read = room.map(|room| read_all(&self.blocks.file, room, self.offset));
        self.read = read.map(|len| len.map(|len| Block { buffer, end: HEAD + len }));
        true
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Nothing was read only where the thread has panicked: nobody is to wait for it.
        let read = self.read.take().unwrap_or_else(|| Err(io::Error::other("nobody reads it")));
        self.blocks.put(self.number, read);
    }
}

/// Reads until there is no room or the file ends; how many bytes.
fn read_all(file: &File, room: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = room.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(len as u64)) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// A buffer of so many zero bytes.
pub(crate) fn zeros(len: usize) -> Arc<[u8]> {
    vec![0; len].into()
}

/// Reads the files of a [`crate::Merge`] before their turn: for threads that have nothing else to do.
#[derive(Debug, Default)]
pub struct ReadAhead {
    files: Mutex<Vec<Weak<Blocks>>>,
}

impl ReadAhead {
    fn files(&self) -> MutexGuard<'_, Vec<Weak<Blocks>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, blocks: &Arc<Blocks>) {
        let mut files = self.files();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(blocks));
    }

    /// Reads a block of one of the files that are open, half a MiB of it. False if none is to be read: all
    /// are compressed or pipes, or enough is read ahead.
    pub fn help(&self) -> bool {
        // Few files are open at once; those behind the first wait for their time.
        for number in 0.. {
            let files = self.files();
            let Some(file) = files.get(number) else { return false };
            let blocks = file.upgrade();
            drop(files);
            if blocks.is_some_and(|blocks| blocks.help()) {
                return true;
            }
        }
        false
    }
}
