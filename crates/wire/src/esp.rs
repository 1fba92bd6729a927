//! ESP (RFC 4303), and in UDP datagrams (RFC 3948).

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "ESP";

/// ESP's number in an IP header.
pub const PROTOCOL: u8 = 50;

/// The port of ESP in UDP, which it shares with IKE (RFC 3948 §2).
pub const UDP_PORT: u16 = 4500;

/// Bytes of the header: security parameters index and sequence number.
pub const HEADER_LEN: usize = 8;

/// Bytes of a trailer without its padding: pad length and next header.
pub const TRAILER_LEN: usize = 2;

/// The next header of a dummy packet, which a receiver drops (RFC 4303 §2.6).
pub const NO_NEXT_HEADER: u8 = 59;

/// A view of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    spi: u32,
    sequence: u32,
    rest: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, an IP packet's payload.
    ///
    /// # Errors
    /// It is cut short, or its index is 0, which is never sent (RFC 4303 §2.1).
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let (spi, sequence) = (reader.u32()?, reader.u32()?);
        if spi == 0 {
            return Err(Error::malformed(FORMAT, "its security parameters index is 0"));
        }
        Ok(Packet { spi, sequence, rest: reader.rest() })
    }

    /// The security parameters index.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }

    /// The sequence number; with extended numbers its lower half.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Initialisation vector, ciphertext and ICV.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// A header as its values: SPI and sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The security parameters index, not 0.
    pub spi: u32,
    /// The sequence number; with extended numbers its lower half.
    pub sequence: u32,
}

impl Repr {
    /// The header that a packet has.
    #[must_use]
    pub const fn parse(packet: &Packet<'_>) -> Self {
        Repr { spi: packet.spi, sequence: packet.sequence }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the front of `buffer`.
    ///
    /// # Errors
    /// The index is 0, or the buffer is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.spi == 0 {
            return Err(Error::DoesNotFit { format: FORMAT, field: "security parameters index" });
        }
        let header = u64::from(self.spi) << 32 | u64::from(self.sequence);
        room(FORMAT, buffer, HEADER_LEN)?.copy_from_slice(&header.to_be_bytes());
        Ok(())
    }
}

/// Bytes of padding before the trailer, so that payload and trailer end on a multiple of `block`, which is at
/// least 4 and at most 256 (RFC 4303 §2.4).
#[must_use]
pub const fn padding(payload: usize, block: usize) -> usize {
    let unpadded = payload.wrapping_add(TRAILER_LEN);
    match unpadded.checked_rem(block) {
        None | Some(0) => 0,
        Some(over) => block.wrapping_sub(over),
    }
}

/// Writes padding (1, 2, 3, …) and trailer to the front of `buffer`.
///
/// # Errors
/// More than 255 bytes of padding, or the buffer is too short.
pub fn emit_trailer(buffer: &mut [u8], padding: usize, next_header: u8) -> Result<(), Error> {
    let too_much = Error::DoesNotFit { format: FORMAT, field: "padding" };
    let pad_len = u8::try_from(padding).map_err(|_| too_much)?;
    let buffer = room(FORMAT, buffer, padding.saturating_add(TRAILER_LEN))?;
    let (pad, trailer) = buffer.split_at_mut(padding);
    pad.iter_mut().zip(1u8..).for_each(|(byte, number)| *byte = number);
    trailer.copy_from_slice(&[pad_len, next_header]);
    Ok(())
}

/// Payload and next header of a decrypted packet, whose padding is as it should be (RFC 4303 §2.4).
///
/// # Errors
/// There is less than the padding says, or the padding is not 1, 2, 3, ….
pub fn strip_trailer(plaintext: &[u8]) -> Result<(&[u8], u8), Error> {
    let had = plaintext.len();
    let truncated = |needed| Error::Truncated { format: FORMAT, needed, had };
    let (rest, &[pad_len, next_header]) =
        plaintext.split_last_chunk::<TRAILER_LEN>().ok_or(truncated(TRAILER_LEN))?;
    let at = rest.len().checked_sub(usize::from(pad_len));
    let (payload, pad) = at
        .and_then(|at| rest.split_at_checked(at))
        .ok_or(truncated(TRAILER_LEN.saturating_add(usize::from(pad_len))))?;
    if !pad.iter().copied().eq(1..=pad_len) {
        return Err(Error::malformed(FORMAT, "its padding is not 1, 2, 3, …"));
    }
    Ok((payload, next_header))
}

/// What a datagram of port 4500 holds (RFC 3948 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// An ESP packet.
    Esp(&'a [u8]),
    /// An IKE message, behind four bytes of zero.
    Ike(&'a [u8]),
    /// One byte, to keep a NAT's mapping alive.
    KeepAlive,
}

impl<'a> Datagram<'a> {
    /// What a datagram's payload is.
    ///
    /// # Errors
    /// It is too short for any of them.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        if let [0xff] = bytes {
            return Ok(Datagram::KeepAlive);
        }
        let mut reader = Reader::new(FORMAT, bytes);
        Ok(match reader.u32()? {
            0 => Datagram::Ike(reader.rest()),
            _ => Datagram::Esp(bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            crate::fuzz::esp(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(spi in 1u32.., sequence: u32) {
            let repr = Repr { spi, sequence };
            let mut buffer = [0; HEADER_LEN];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Packet::new_checked(&buffer).unwrap()), repr);
        }

        #[test]
        fn a_trailer_ends_on_a_block_and_is_stripped_again(
            payload in proptest::collection::vec(any::<u8>(), 0..80), next_header: u8,
            block in prop_oneof![Just(4usize), Just(8), Just(16)],
        ) {
            let padding = padding(payload.len(), block);
            prop_assert!(padding < block);
            let mut bytes = payload.clone();
            bytes.resize(payload.len() + padding + TRAILER_LEN, 0);
            prop_assert_eq!(bytes.len() % block, 0);
            emit_trailer(&mut bytes[payload.len()..], padding, next_header).unwrap();
            prop_assert_eq!(strip_trailer(&bytes).unwrap(), (&payload[..], next_header));
        }
    }

    #[test]
    fn wrong_padding_is_refused() {
        assert!(strip_trailer(&[9, 1, 3, 2, 4]).is_err());
        assert!(strip_trailer(&[1, 2, 3, 4]).is_err());
        assert!(strip_trailer(&[4]).is_err());
    }

    #[test]
    fn what_is_in_udp_is_told_by_its_first_bytes() {
        assert_eq!(Datagram::new_checked(&[0xff]), Ok(Datagram::KeepAlive));
        assert_eq!(Datagram::new_checked(&[0, 0, 0, 0, 7]), Ok(Datagram::Ike(&[7])));
        assert_eq!(Datagram::new_checked(&[0, 0, 0, 1, 7]), Ok(Datagram::Esp(&[0, 0, 0, 1, 7])));
        assert!(Datagram::new_checked(&[1]).is_err());
    }
}
