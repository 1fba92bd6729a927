//! A window's size, or what decides on it; the congestion window at the start.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use thiserror::Error;
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

/// How many packets a side may send at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct InitialWindow(u32);

impl InitialWindow {
    /// TCP's (RFC 6928) and QUIC's (RFC 9002 §7.2).
    pub const USUAL: InitialWindow = InitialWindow(10);
    /// More than any link here holds.
    const MOST: u32 = 1000;

    /// The number, where it is not the usual one.
    pub(crate) fn packets(self) -> Option<u32> {
        (self != InitialWindow::USUAL).then_some(self.0)
    }
}

impl Default for InitialWindow {
    fn default() -> Self {
        InitialWindow::USUAL
    }
}

impl fmt::Display for InitialWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is no initial window. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a number of packets")]
pub struct BadInitialWindow(String);

impl Explain for BadInitialWindow {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write 1 to 1000, as 3, 10 or 32".into())
    }
}

impl FromStr for InitialWindow {
    type Err = BadInitialWindow;

    fn from_str(text: &str) -> Result<InitialWindow, BadInitialWindow> {
        let packets = text.parse().ok().filter(|n| (1..=InitialWindow::MOST).contains(n));
        packets.map(InitialWindow).ok_or_else(|| BadInitialWindow(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_windows_are_counted_in_packets() {
        assert_eq!("10".parse(), Ok(InitialWindow::USUAL));
        assert_eq!(InitialWindow::USUAL.packets(), None);
        assert_eq!("3".parse::<InitialWindow>().unwrap().packets(), Some(3));
        for wrong in ["0", "1001", "-1", "3.5", "", "auto"] {
            assert!(wrong.parse::<InitialWindow>().is_err(), "{wrong}");
        }
    }
}
