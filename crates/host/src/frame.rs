//! Frames between a host and its supervisor: four bytes of length (little-endian), one of kind, and as
//! many bytes as the length says.

use std::io::{self, Read, Write};

use thiserror::Error;

/// Bytes of the longest frame, its head not counted. A longer one is rubbish.
pub const LONGEST_FRAME: u32 = 16 << 20;

const HEAD: usize = 5;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A job, in JSON.
    Job = b'J',
    /// Text for people.
    Event = b'E',
    /// A sample, in JSON.
    Sample = b'S',
    /// A length of one byte, a name of as many, and the rest.
    Attachment = b'A',
    /// The answer, in JSON: the job's last frame.
    Done = b'D',
    /// Why there is no answer, as text: the job's last frame.
    Failed = b'F',
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Job, Kind::Event, Kind::Sample, Kind::Attachment, Kind::Done, Kind::Failed];

    fn of(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// One frame of the pipe between a host and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) payload: Vec<u8>,
}

/// Bytes that are no frame.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// It says that it is longer than any may be.
    #[error("a frame of {length} bytes, of at most {LONGEST_FRAME}")]
    TooLong {
        /// Bytes, as it says.
        length: u32,
    },
    /// It is of no known kind.
    #[error("a frame of no known kind: byte {byte:#04x}")]
    Kind {
        /// The byte that stands for it.
        byte: u8,
    },
    /// It ends before it is complete.
    #[error("the last frame is cut short")]
    Cut,
    /// It could not be read.
    #[error("a frame could not be read")]
    Read(#[from] io::Error),
}

/// Reads a frame; `None` where the input ends instead of one. No more memory is taken than there are
/// bytes, whatever the frame says of its length.
pub(crate) fn read(input: &mut impl Read) -> Result<Option<Frame>, FrameError> {
    let mut head = Vec::with_capacity(HEAD);
    input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(None);
    }
    let [a, b, c, d, kind] = *head.as_slice() else { return Err(FrameError::Cut) };
    let length = u32::from_le_bytes([a, b, c, d]);
    let kind = Kind::of(kind).ok_or(FrameError::Kind { byte: kind })?;
    if length > LONGEST_FRAME {
        return Err(FrameError::TooLong { length });
    }
    let mut payload = Vec::new();
    input.by_ref().take(u64::from(length)).read_to_end(&mut payload)?;
    if payload.len() != length as usize {
        return Err(FrameError::Cut);
    }
    Ok(Some(Frame { kind, payload }))
}

/// Writes a frame, and flushes.
///
/// # Errors
/// `InvalidInput` if it is too long for one; what the output refuses.
pub(crate) fn write(output: &mut impl Write, kind: Kind, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let fits = u32::try_from(length).ok().filter(|length| *length <= LONGEST_FRAME);
    let Some(length) = fits else {
        let what = format!("{length} bytes are too long for a frame of at most {LONGEST_FRAME}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    };
    output.write_all(&length.to_le_bytes())?;
    output.write_all(&[kind as u8])?;
    for part in parts {
        output.write_all(part)?;
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        prop::sample::select(Kind::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            frames in prop::collection::vec((kinds(), prop::collection::vec(any::<u8>(), 0..300)), 0..6),
        ) {
            let mut bytes = Vec::new();
            for (kind, payload) in &frames {
                let (first, rest) = payload.split_at(payload.len() / 2);
                write(&mut bytes, *kind, &[first, rest]).unwrap();
            }
            let mut input = bytes.as_slice();
            for (kind, payload) in frames {
                prop_assert_eq!(read(&mut input).unwrap(), Some(Frame { kind, payload }));
            }
            prop_assert!(read(&mut input).unwrap().is_none());
        }

        #[test]
        fn any_bytes_are_frames_or_an_error_and_end(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut input = bytes.as_slice();
            let mut taken = 0;
            while let Ok(Some(frame)) = read(&mut input) {
                taken += HEAD + frame.payload.len();
                prop_assert!(taken <= bytes.len());
            }
        }

        #[test]
        fn a_frame_cut_anywhere_is_an_error(
            payload in prop::collection::vec(any::<u8>(), 0..50), cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            write(&mut bytes, Kind::Sample, &[&payload]).unwrap();
            let at = cut.index(bytes.len());
            let found = read(&mut bytes.get(..at).unwrap());
            prop_assert!(matches!((at, found), (0, Ok(None)) | (1.., Err(FrameError::Cut))));
        }
    }

    /// Counts what is asked for at once: memory is only taken for bytes that came.
    struct Endless {
        given: u64,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(0xff);
            self.given += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_length_beyond_all_bounds_is_refused_before_its_bytes_are_read() {
        let mut head = (LONGEST_FRAME + 1).to_le_bytes().to_vec();
        head.push(Kind::Done as u8);
        let mut endless = Endless { given: 0 };
        let found = read(&mut head.as_slice().chain(&mut endless));
        assert!(
            matches!(found, Err(FrameError::TooLong { length }) if length == LONGEST_FRAME + 1)
        );
        assert_eq!(endless.given, 0);
        let long = vec![0; LONGEST_FRAME as usize + 1];
        assert!(write(&mut Vec::new(), Kind::Done, &[&long]).is_err());
    }
}
