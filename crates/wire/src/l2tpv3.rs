//! Data messages of L2TP version 3 over UDP (RFC 3931 §4.1.2.1), without cookie and sublayer: for an Ethernet
//! pseudowire, a frame behind 8 bytes (RFC 4719).

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "L2TPv3";

/// The port that datagrams go to, that of version 2 (RFC 3931 §4.1.2).
pub const PORT: u16 = 1701;

/// Bytes of the header: flags and version, two reserved bytes, the session's identifier.
pub const HEADER_LEN: usize = 8;

/// The bit T: a control message.
const CONTROL: u16 = 0x8000;
const VERSION: u16 = 3;

/// A view of a data message.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    session: u32,
    payload: &'a [u8],
}

impl<'a> Data<'a> {
    /// A view of `bytes`, a datagram's payload. Flags but T are reserved, and ignored (§4.1.2.1).
    ///
    /// # Errors
    /// It is cut short, a control message, of another version, or of the session 0, which is control's own.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let (flags, _reserved, session) = (reader.u16()?, reader.u16()?, reader.u32()?);
        if flags & 0x000f != VERSION {
            return Err(Error::malformed(FORMAT, "its version is not 3"));
        }
        if flags & CONTROL != 0 || session == 0 {
            return Err(Error::malformed(FORMAT, "it is a control message"));
        }
        Ok(Data { session, payload: reader.rest() })
    }

    /// The receiver's number for the session.
    #[must_use]
    pub const fn session(&self) -> u32 {
        self.session
    }

    /// What the session carries: without a cookie and a sublayer, its frame.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The header of a data message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The receiver's number for the session, not 0.
    pub session: u32,
}

impl Repr {
    /// The header that a message has.
    #[must_use]
    pub const fn parse(message: &Data<'_>) -> Self {
        Repr { session: message.session }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the front of `buffer`.
    ///
    /// # Errors
    /// The session is 0, or the buffer is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.session == 0 {
            return Err(Error::DoesNotFit { format: FORMAT, field: "session" });
        }
        let [a, b] = VERSION.to_be_bytes();
        let [c, d, e, f] = self.session.to_be_bytes();
        room(FORMAT, buffer, HEADER_LEN)?.copy_from_slice(&[a, b, 0, 0, c, d, e, f]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            crate::fuzz::l2tpv3(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            session in 1u32.., payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let repr = Repr { session };
            let mut bytes = vec![0; repr.buffer_len()];
            repr.emit(&mut bytes).unwrap();
            bytes.extend(&payload);
            let message = Data::new_checked(&bytes).unwrap();
            prop_assert_eq!(message.payload(), &payload[..]);
            prop_assert_eq!(Repr::parse(&message), repr);
        }
    }

    #[test]
    fn what_is_no_data_message_is_refused() {
        // A control message; version 2; the session 0; cut short.
        assert!(Data::new_checked(&[0x80, 3, 0, 0, 0, 0, 0, 1]).is_err());
        assert!(Data::new_checked(&[0, 2, 0, 0, 0, 0, 0, 1]).is_err());
        assert!(Data::new_checked(&[0, 3, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Data::new_checked(&[0, 3, 0, 0, 0, 0, 1]).is_err());
        assert!(Repr { session: 0 }.emit(&mut [0; 8]).is_err());
    }
}
