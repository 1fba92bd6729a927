//! WireGuard's messages (the WireGuard paper §5.4; numbers are little-endian).

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "WireGuard";

/// Bytes of the handshake's first message (§5.4.2).
pub const INITIATION_LEN: usize = 148;
/// Bytes of its second (§5.4.3).
pub const RESPONSE_LEN: usize = 92;
/// Bytes of a cookie reply (§5.4.7).
pub const COOKIE_REPLY_LEN: usize = 64;
/// Bytes of transport data before the ciphertext (§5.4.6).
pub const DATA_HEADER_LEN: usize = 16;
/// Bytes of the authentication tag behind it.
pub const TAG_LEN: usize = 16;
/// What the plaintext of transport data is padded to a multiple of.
pub const BLOCK_LEN: usize = 16;

/// A message, by its type (the WireGuard paper §5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// The handshake's first message.
    Initiation {
        /// The sender's index: what the peer's messages name as their receiver.
        sender: u32,
        /// Ephemeral key, static key and time, encrypted, and the two MACs.
        rest: &'a [u8; INITIATION_LEN - 8],
    },
    /// The handshake's second message.
    Response {
        /// The sender's index.
        sender: u32,
        /// The sender's index in the message that it answers.
        receiver: u32,
        /// Ephemeral key, an empty AEAD and the two MACs.
        rest: &'a [u8; RESPONSE_LEN - 12],
    },
    /// The answer of a host under load.
    CookieReply {
        /// The sender's index in the message that it answers.
        receiver: u32,
        /// Nonce and encrypted cookie.
        rest: &'a [u8; COOKIE_REPLY_LEN - 8],
    },
    /// A packet, encrypted.
    Data {
        /// The index of the receiver's session.
        receiver: u32,
        /// Counts up for each packet of the session.
        counter: u64,
        /// Ciphertext with its tag: at least 16 bytes.
        sealed: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// The message that a datagram's payload is.
    ///
    /// # Errors
    /// It is of no known type, its reserved bytes are not 0, or it has another length than its type.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let [kind, reserved @ ..] = *reader.array::<4>()?;
        if reserved != [0; 3] {
            return Err(Error::malformed(FORMAT, "its reserved bytes are not 0"));
        }
        let mut index = || reader.array().map(|bytes| u32::from_le_bytes(*bytes));
        let message = match kind {
            1 => Message::Initiation { sender: index()?, rest: reader.array()? },
            2 => Message::Response { sender: index()?, receiver: index()?, rest: reader.array()? },
            3 => Message::CookieReply { receiver: index()?, rest: reader.array()? },
            4 => {
                let receiver = index()?;
                let counter = u64::from_le_bytes(*reader.array()?);
                let sealed = reader.take(reader.rest().len())?;
                if sealed.len() < TAG_LEN {
                    let had = sealed.len();
                    return Err(Error::Truncated { format: FORMAT, needed: TAG_LEN, had });
                }
                Message::Data { receiver, counter, sealed }
            }
            _ => return Err(Error::malformed(FORMAT, "its type is not 1 to 4")),
        };
        if !reader.is_empty() {
            return Err(Error::malformed(FORMAT, "it is longer than its type"));
        }
        Ok(message)
    }
}

/// The header of transport data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRepr {
    /// The index of the receiver's session.
    pub receiver: u32,
    /// Counts up for each packet of the session.
    pub counter: u64,
}

impl DataRepr {
    /// Bytes that [`DataRepr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        DATA_HEADER_LEN
    }

    /// Writes the header to the front of `buffer`.
    ///
    /// # Errors
    /// The buffer is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let buffer = room(FORMAT, buffer, DATA_HEADER_LEN)?;
        let (head, counter) = buffer.split_at_mut(8);
        let [a, b, c, d] = self.receiver.to_le_bytes();
        head.copy_from_slice(&[4, 0, 0, 0, a, b, c, d]);
        counter.copy_from_slice(&self.counter.to_le_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(
            kind in 0u8..6, bytes in proptest::collection::vec(any::<u8>(), 0..160),
        ) {
            crate::fuzz::wireguard(&bytes);
            crate::fuzz::wireguard(&[&[kind, 0, 0, 0][..], &bytes].concat());
        }

        #[test]
        fn emitted_is_parsed_back(
            receiver: u32, counter: u64, sealed in proptest::collection::vec(any::<u8>(), 16..50),
        ) {
            let mut bytes = vec![0; DATA_HEADER_LEN];
            DataRepr { receiver, counter }.emit(&mut bytes).unwrap();
            bytes.extend(&sealed);
            let message = Message::Data { receiver, counter, sealed: &sealed };
            prop_assert_eq!(Message::new_checked(&bytes), Ok(message));
        }
    }

    #[test]
    fn each_type_has_its_length() {
        for (kind, len) in [(1, INITIATION_LEN), (2, RESPONSE_LEN), (3, COOKIE_REPLY_LEN), (4, 32)]
        {
            let mut bytes = vec![0; len];
            bytes[0] = kind;
            assert!(Message::new_checked(&bytes).is_ok(), "{kind}");
            assert!(Message::new_checked(&bytes[..len - 1]).is_err(), "{kind}");
            bytes.push(0);
            assert_eq!(Message::new_checked(&bytes).is_ok(), kind == 4, "{kind}");
            bytes[2] = 1;
            assert!(Message::new_checked(&bytes).is_err(), "{kind}");
        }
    }
}
