//! Why bytes are not the format that they should be, or why a format cannot be emitted.

use fault::{Explain, Fault};
use thiserror::Error;

/// What is wrong with bytes read, or with a representation to be emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// Whoever sent or captured the bytes is at fault: they end before the format does. A capture
    /// with a larger snapshot length has them all.
    #[error("{format}: cut short, {needed} bytes needed where {had} are left")]
    Truncated {
        /// The format that was being read.
        format: &'static str,
        /// Bytes needed for the next field.
        needed: usize,
        /// Bytes that are left.
        had: usize,
    },
    /// Whoever sent the bytes is at fault: a field contradicts the format.
    #[error("{format}: {problem}")]
    Malformed {
        /// The format that was being read.
        format: &'static str,
        /// What contradicts it.
        problem: &'static str,
    },
    /// The caller is at fault: make the buffer at least `buffer_len()` bytes long.
    #[error("{format}: the buffer of {had} bytes is too short to emit {needed} bytes into")]
    BufferTooShort {
        /// The format that was being emitted.
        format: &'static str,
        /// What `buffer_len()` says.
        needed: usize,
        /// The buffer's length.
        had: usize,
    },
    /// The caller is at fault: a field is longer or larger than the format can say.
    #[error("{format}: {field} does not fit its field")]
    DoesNotFit {
        /// The format that was being emitted.
        format: &'static str,
        /// The field that is too large.
        field: &'static str,
    },
}

impl Error {
    /// An [`Error::Malformed`] of these.
    pub(crate) const fn malformed(format: &'static str, problem: &'static str) -> Self {
        Error::Malformed { format, problem }
    }
}

/// The first `needed` bytes of a buffer to emit into.
pub(crate) fn room<'b>(
    format: &'static str,
    buffer: &'b mut [u8],
    needed: usize,
) -> Result<&'b mut [u8], Error> {
    let had = buffer.len();
    buffer.get_mut(..needed).ok_or(Error::BufferTooShort { format, needed, had })
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Truncated { .. } | Error::Malformed { .. } => Fault::Peer,
            Error::BufferTooShort { .. } | Error::DoesNotFit { .. } => Fault::Caller,
        }
    }
}
