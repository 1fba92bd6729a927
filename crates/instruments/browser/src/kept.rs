//! What passes a lane, kept whole, with the TLS secrets of its connections.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lab::{CaptureOptions, Node, OwnedFrame};

use crate::Error;

/// Bytes of frames that are kept at most.
const MOST: usize = 128 << 20;

/// The secrets of a lane's TLS connections, as its servers say them. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Arc<Mutex<String>>);

impl Secrets {
    /// Where a server puts them.
    pub(crate) fn log(&self) -> tls::KeyLog {
        let Secrets(lines) = self.clone();
        tls::KeyLog::new(move |line| {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push_str(line);
            lines.push('\n');
        })
    }

    fn lines(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Frames so far.
#[derive(Debug, Default)]
struct Held {
    frames: Vec<OwnedFrame>,
    bytes: usize,
    left_out: u64,
}

/// An end of a lane's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that the browser is at.
    Client,
    /// The end that the servers are at.
    Server,
}

/// Frames are kept from now on, at one end of a lane's link.
#[derive(Debug)]
#[must_use = "what is dropped is not kept"]
pub struct Keeping {
    capture: lab::Capture,
    held: Arc<Mutex<Held>>,
    secrets: Secrets,
    node: Node,
}

impl Keeping {
    pub(crate) fn start(node: &Node, secrets: Secrets) -> Result<Keeping, Error> {
        let held = Arc::new(Mutex::new(Held::default()));
        let filled = Arc::clone(&held);
        let capture = node.capture_with(&CaptureOptions::default(), move |frame| {
            let mut held = filled.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = held.bytes.saturating_add(frame.bytes.len());
            if bytes > MOST {
                held.left_out = held.left_out.saturating_add(1);
            } else {
                held.bytes = bytes;
                held.frames.push(frame.into());
            }
        })?;
        Ok(Keeping { capture, held, secrets, node: node.clone() })
    }

    /// Ends it: all that passed until now is kept.
    ///
    /// # Errors
    /// The lab's own.
    pub fn stop(self) -> Result<Kept, Error> {
        let Keeping { capture, held, secrets, node } = self;
        let dropped = capture.stop()?.kernel_drops;
        let held = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
        let Held { frames, left_out, .. } = held;
        Ok(Kept { frames, secrets: secrets.lines(), lost: dropped.saturating_add(left_out), node })
    }
}

/// What passed a lane.
#[derive(Debug)]
pub struct Kept {
    frames: Vec<OwnedFrame>,
    secrets: String,
    lost: u64,
    node: Node,
}

impl Kept {
    /// The frames, in order of time.
    #[must_use]
    pub fn frames(&self) -> &[OwnedFrame] {
        &self.frames
    }

    /// The secrets of all TLS connections that the lane's server has had, in the format of SSLKEYLOGFILE.
    #[must_use]
    pub fn secrets(&self) -> &str {
        &self.secrets
    }

    /// Frames that the kernel dropped, or that were more than 128 MiB.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes frames and secrets to a pcapng file, which then has all that it needs to be read.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<PathBuf, Error> {
        Ok(self.node.write_capture(path, &self.frames, self.secrets.as_bytes())?)
    }
}
