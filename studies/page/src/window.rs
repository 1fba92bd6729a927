//! A window's size, or what decides on it.

use std::fmt;
use std::str::FromStr;

use units::Bytes;

/// A window's size; without one, the preset's or the kernel's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window(pub Option<Bytes>);

/// How the window that something else decides on is written.
pub(crate) const AUTO: &str = "auto";

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => bytes.fmt(f),
            None => f.write_str(AUTO),
        }
    }
}

impl FromStr for Window {
    type Err = units::ParseError;

    fn from_str(text: &str) -> Result<Window, units::ParseError> {
        if text == AUTO { Ok(Window(None)) } else { Ok(Window(Some(text.parse()?))) }
    }
}

impl Window {
    /// Its bytes, if it has a size, up to the largest window that a protocol can announce.
    pub(crate) fn bytes(self) -> Option<u32> {
        let most = u32::MAX >> 1;
        self.0.map(|bytes| u32::try_from(bytes.count()).unwrap_or(most).min(most))
    }
}
