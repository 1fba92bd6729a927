//! A data rate that says which bytes it counts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{ParseError, number_and_unit, whole};

const QUANTITY: &str = "rate";
const EXAMPLE: &str = "10mbit, 1.5gbit/ip or 500kbit/wire";

/// Which bytes of a packet a [`Rate`] counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CountedBytes {
    /// The Ethernet frame from destination address to payload, without frame check sequence:
    /// what packet captures show. Written without a suffix, or `/eth`.
    #[default]
    Ethernet,
    /// The IP packet alone. Written `/ip`.
    Ip,
    /// Everything that occupies the medium: the Ethernet frame padded to 60 bytes, 4 bytes of
    /// frame check sequence, 8 of preamble, 12 of gap (IEEE 802.3 §4.4.2). Written `/wire`.
    Wire,
}

impl CountedBytes {
    /// Length of the Ethernet header: destination, source, EtherType.
    const ETHERNET_HEADER: u64 = 14;

    /// How many bytes of an Ethernet frame of `frame_len` bytes (header included, frame check
    /// sequence not) are counted.
    #[must_use]
    pub const fn of_frame(self, frame_len: usize) -> u64 {
        let frame_len = frame_len as u64;
        match self {
            CountedBytes::Ethernet => frame_len,
            CountedBytes::Ip => frame_len.saturating_sub(Self::ETHERNET_HEADER),
            CountedBytes::Wire => (if frame_len < 60 { 60 } else { frame_len }) + 4 + 8 + 12,
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            CountedBytes::Ethernet => "",
            CountedBytes::Ip => "/ip",
            CountedBytes::Wire => "/wire",
        }
    }
}

/// A data rate in bit/s, with the bytes that it counts. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    bits_per_second: u64,
    counted: CountedBytes,
}

impl Rate {
    /// A rate of `bits_per_second`; `None` if that is zero.
    #[must_use]
    pub const fn new(bits_per_second: u64, counted: CountedBytes) -> Option<Self> {
        if bits_per_second == 0 { None } else { Some(Rate { bits_per_second, counted }) }
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// Which bytes the rate counts.
    #[must_use]
    pub const fn counted(self) -> CountedBytes {
        self.counted
    }

    /// How long an Ethernet frame of `frame_len` bytes (header included, frame check sequence
    /// not) occupies the link, rounded up to 1 ns.
    #[must_use]
    pub const fn time_to_send(self, frame_len: usize) -> Duration {
        let bits = self.counted.of_frame(frame_len) as u128 * 8;
        let nanos = (bits * 1_000_000_000).div_ceil(self.bits_per_second as u128);
        Duration::from_nanos(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem| ParseError {
            text: text.to_owned(),
            quantity: QUANTITY,
            problem,
            example: EXAMPLE,
        };
        let (amount, counted) = match text.split_once('/') {
            None => (text, CountedBytes::Ethernet),
            Some((amount, "eth")) => (amount, CountedBytes::Ethernet),
            Some((amount, "ip")) => (amount, CountedBytes::Ip),
            Some((amount, "wire")) => (amount, CountedBytes::Wire),
            Some(_) => return Err(error("the bytes it counts are not /eth, /ip or /wire")),
        };
        let (number, unit) = number_and_unit(amount, QUANTITY, EXAMPLE)?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "bit" => 1,
            "kbit" => 1_000,
            "mbit" => 1_000_000,
            "gbit" => 1_000_000_000,
            "" => return Err(error("it has no unit")),
            _ => return Err(error("its unit is not bit, kbit, mbit or gbit (per second)")),
        };
        let bits_per_second = whole(number, scale, text, QUANTITY, EXAMPLE)?;
        Rate::new(bits_per_second, counted).ok_or_else(|| error("it is zero"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amount, unit) = match self.bits_per_second {
            n if n % 1_000_000_000 == 0 => (n / 1_000_000_000, "gbit"),
            n if n % 1_000_000 == 0 => (n / 1_000_000, "mbit"),
            n if n % 1_000 == 0 => (n / 1_000, "kbit"),
            n => (n, "bit"),
        };
        write!(f, "{amount}{unit}{}", self.counted.suffix())
    }
}

crate::serde_as_text!(Rate);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn a_rate_says_which_bytes_it_counts() {
        // 1514-byte frame: 1514, 1500 and 1538 bytes at 1 Mbit/s.
        assert_eq!(rate("1mbit").time_to_send(1514), Duration::from_micros(12_112));
        assert_eq!(rate("1mbit/ip").time_to_send(1514), Duration::from_micros(12_000));
        assert_eq!(rate("1mbit/wire").time_to_send(1514), Duration::from_micros(12_304));
        // The smallest frame is padded on the wire: 84 bytes in all.
        assert_eq!(rate("1mbit/wire").time_to_send(42), Duration::from_micros(672));
    }

    #[test]
    fn time_to_send_is_rounded_up() {
        assert_eq!(rate("3gbit").time_to_send(1), Duration::from_nanos(3));
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, problem) in [
            ("10", "no unit"),
            ("0mbit", "zero"),
            ("10mbps", "unit is not"),
            ("10mbit/tcp", "/eth, /ip or /wire"),
            ("fast", "begin with a number"),
        ] {
            let message = text.parse::<Rate>().unwrap_err().to_string();
            assert!(message.contains(problem), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bits in 1u64..1 << 63, which in 0..3) {
            let counted = [CountedBytes::Ethernet, CountedBytes::Ip, CountedBytes::Wire];
            let rate = Rate::new(bits, counted[which as usize]).unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}
