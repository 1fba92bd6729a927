//! Frame sizes of a trial.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use thiserror::Error;

/// The least frame: it has room for Ethernet, a VLAN tag, IPv4, UDP and a probe.
const LEAST: usize = 64;

/// The longest frame: a jumbo frame of 9000 bytes of IP.
const MOST: usize = 9014;

/// Simple IMIX: 7 packets of 40 bytes, 4 of 576 and 1 of 1500 (as RFC 6985 §3 names it, of IP), here by frame and
/// spread, so that no two long ones follow each other.
const IMIX: [usize; 12] =
    [LEAST, 590, LEAST, LEAST, 590, LEAST, 1514, LEAST, 590, LEAST, LEAST, 590];

/// Frame sizes of a trial, in bytes, without frame check sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All frames have this size.
    Fixed(usize),
    /// A mix of small and large frames, as on the Internet.
    Imix,
}

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a frame size")]
pub struct SizesError(String);

impl Explain for SizesError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(format!("give {LEAST} to {MOST} bytes, without frame check sequence, or imix").into())
    }
}

impl Sizes {
    /// The size of a frame, in bytes.
    #[must_use]
    pub fn of(self, number: u64) -> usize {
        match self {
            Sizes::Fixed(size) => size,
            Sizes::Imix => {
                let at = usize::try_from(number % IMIX.len() as u64).unwrap_or(0);
                IMIX.get(at).copied().unwrap_or(LEAST)
            }
        }
    }

    /// The mean size, in bytes.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Sizes::Fixed(size) => size as f64,
            Sizes::Imix => IMIX.iter().sum::<usize>() as f64 / IMIX.len() as f64,
        }
    }

    /// Frames after which the sizes begin again.
    pub(crate) const fn round(self) -> u64 {
        match self {
            Sizes::Fixed(_) => 1,
            Sizes::Imix => IMIX.len() as u64,
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Fixed(size) => write!(f, "{size}"),
            Sizes::Imix => f.write_str("imix"),
        }
    }
}

impl FromStr for Sizes {
    type Err = SizesError;

    fn from_str(text: &str) -> Result<Self, SizesError> {
        if text.eq_ignore_ascii_case("imix") {
            return Ok(Sizes::Imix);
        }
        let size = text.parse().ok().filter(|size| (LEAST..=MOST).contains(size));
        size.map(Sizes::Fixed).ok_or_else(|| SizesError(text.to_owned()))
    }
}

units::serde_as_text!(Sizes);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_has_its_shares() {
        let count = |size| (0..12).filter(|number| Sizes::Imix.of(*number) == size).count();
        assert_eq!((count(LEAST), count(590), count(1514)), (7, 4, 1));
        assert_eq!((0..12).map(|number| Sizes::Imix.of(number + 12)).collect::<Vec<_>>(), IMIX);
    }

    #[test]
    fn sizes_are_read_and_printed() {
        for text in ["64", "1000", "9014", "imix"] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), text);
        }
        for wrong in ["", "63", "9015", "-1", "1000B", "mix"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
