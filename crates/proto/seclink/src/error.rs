//! Why a key is none, and why a frame cannot be sealed.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why a key or a setting cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// It has another length than its cipher's keys.
    #[error("a key of {had} bytes, where {cipher} has keys of {needed}")]
    Length {
        /// The cipher's name, or of the protocol that has the key.
        cipher: &'static str,
        /// Bytes of its keys.
        needed: usize,
        /// Bytes of this one.
        had: usize,
    },
    /// It is not written in hexadecimal digits.
    #[error("a key is not written in pairs of hexadecimal digits")]
    NotHex,
    /// The cipher suite cannot do what is asked of it.
    #[error("{cipher} cannot do {what}")]
    Unable {
        /// The cipher suite.
        cipher: &'static str,
        /// What it cannot do.
        what: &'static str,
    },
    /// A number lies outside of its field.
    #[error("{0} is out of range")]
    OutOfRange(&'static str),
}

impl Explain for KeyError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            KeyError::Length { needed, .. } => Some(
                format!("give a key of {} hexadecimal digits", needed.saturating_mul(2)).into(),
            ),
            KeyError::NotHex => Some("write it as 00112233…".into()),
            KeyError::Unable { .. } | KeyError::OutOfRange(_) => None,
        }
    }
}

/// Why a frame was not sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SealError {
    /// The key has no number left: it must be replaced.
    #[error("the key's packet numbers are used up")]
    Exhausted,
    /// There is no key to seal with.
    #[error("there is no key to seal with")]
    NoKey,
    /// The buffer has no room for what is added.
    #[error("the buffer has no room for the {needed} bytes that are added {place} the frame")]
    NoRoom {
        /// Bytes needed there.
        needed: usize,
        /// Before or behind.
        place: &'static str,
    },
    /// There is no whole frame in the slot.
    #[error("the frame is shorter than its header")]
    TooShort,
    /// The cipher refused, as no input of these sizes should make it.
    #[error("the cipher refused to seal")]
    Cipher,
}

impl Explain for SealError {
    fn fault(&self) -> Fault {
        match self {
            SealError::Cipher => Fault::Machine,
            _ => Fault::Caller,
        }
    }
}
