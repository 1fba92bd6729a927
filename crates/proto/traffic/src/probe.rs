//! What each frame of a tester carries.

use units::Time;
use wire::{Error, Reader};

const FORMAT: &str = "probe";

/// Bytes of a probe, at the front of a UDP datagram's payload: few, so that a tagged frame of 64 bytes has room.
pub const PROBE_LEN: usize = 16;

/// The first bytes of a probe, so that nothing else is taken for one.
const MARK: [u8; 2] = *b"wx";

/// Number and time of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The stream that it belongs to: a direction of a trial.
    pub stream: u16,
    /// Its number, from 0 on, without gaps.
    pub number: u32,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
}

impl Probe {
    /// The probe at the front of a payload.
    ///
    /// # Errors
    /// It is cut short, or something else.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, payload);
        if *reader.array::<2>()? != MARK {
            return Err(Error::Malformed { format: FORMAT, problem: "another program's payload" });
        }
        let stream = reader.u16()?;
        let number = reader.u32()?;
        let sent = Time::from_nanos(u64::from_be_bytes(*reader.array()?));
        Ok(Probe { stream, number, sent })
    }

    /// Writes it to the front of a payload.
    ///
    /// # Errors
    /// The payload is shorter than [`PROBE_LEN`].
    pub fn emit(&self, payload: &mut [u8]) -> Result<(), Error> {
        let had = payload.len();
        let buffer = payload.first_chunk_mut::<PROBE_LEN>().ok_or(Error::BufferTooShort {
            format: FORMAT,
            needed: PROBE_LEN,
            had,
        })?;
        let sent = self.sent.as_nanos().to_be_bytes();
        let parts: [&[u8]; 4] =
            [&MARK, &self.stream.to_be_bytes(), &self.number.to_be_bytes(), &sent];
        buffer.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emitted_is_parsed_back(stream: u16, number: u32, nanos: u64, behind in 0usize..9) {
            let probe = Probe { stream, number, sent: Time::from_nanos(nanos) };
            let mut payload = vec![0; PROBE_LEN + behind];
            probe.emit(&mut payload).unwrap();
            prop_assert_eq!(Probe::parse(&payload), Ok(probe));
            prop_assert!(Probe::parse(&payload[..PROBE_LEN - 1]).is_err());
        }
    }

    #[test]
    fn what_another_program_sends_is_no_probe() {
        assert!(Probe::parse(&[0; 64]).is_err());
        let probe = Probe { stream: 1, number: 2, sent: Time::ZERO };
        assert!(probe.emit(&mut [0; PROBE_LEN - 1]).is_err());
    }
}
