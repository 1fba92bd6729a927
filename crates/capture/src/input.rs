//! Where a capture's bytes come from: files and pipes, compressed or not.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::window::Window;

/// Bytes of compressed data read at once.
const COMPRESSED_BUFFER: usize = 128 * 1024;

/// Counts what is read.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(to)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// A stream and how much of it was read.
pub(crate) struct Input {
    pub(crate) stream: Box<dyn Read + Send>,
    pub(crate) read: Arc<AtomicU64>,
    /// Its length, if it is a file.
    pub(crate) total: Option<u64>,
    /// The file that it is, from its beginning; not standard input, which may stand anywhere.
    pub(crate) file: Option<Arc<File>>,
}

impl Input {
    pub(crate) fn new(stream: impl Read + Send + 'static, total: Option<u64>) -> Self {
        let read = Arc::new(AtomicU64::new(0));
        let stream = Box::new(Counted { inner: stream, read: Arc::clone(&read) });
        Input { stream, read, total, file: None }
    }

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let opened = child::Input::open(path)?;
        let file = Arc::clone(opened.file());
        let input = Input::of_file(opened)?;
        // Files of no length are what the kernel makes up as they are read.
        let plain = input.total.is_some_and(|total| total > 0);
        Ok(Input { file: plain.then_some(file), ..input })
    }

    /// Standard input, past the buffer of [`std::io::stdin`].
    pub(crate) fn stdin() -> io::Result<Self> {
        Input::of_file(child::Input::of(File::from(io::stdin().as_fd().try_clone_to_owned()?))?)
    }

    fn of_file(file: child::Input) -> io::Result<Self> {
        let metadata = file.file().metadata()?;
        let total = metadata.is_file().then_some(metadata.len());
        // A hint only; pipes refuse it.
        let _ = rustix::fs::fadvise(file.file(), 0, None, rustix::fs::Advice::Sequential);
        Ok(Input::new(file, total))
    }
}

/// Decompresses what the window sees, if its first four bytes say that it is compressed; whether it is.
pub(crate) fn decompress(window: Window) -> io::Result<(Window, bool)> {
    let inside = match window.bytes() {
        // RFC 1952 §2.3.1. Members follow one another (§2.2).
        [0x1f, 0x8b, ..] => window.inside(|stream| {
            let buffered = BufReader::with_capacity(COMPRESSED_BUFFER, stream);
            Ok(Box::new(MultiGzDecoder::new(buffered)))
        })?,
        // RFC 8878 §3.1.1 and, for frames to be skipped, §3.1.2. Frames follow one another.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            window.inside(|stream| {
                let buffered = BufReader::with_capacity(COMPRESSED_BUFFER, stream);
                Ok(Box::new(zstd::stream::read::Decoder::with_buffer(buffered)?))
            })?
        }
        _ => return Ok((window, false)),
    };
    Ok((inside, true))
}
