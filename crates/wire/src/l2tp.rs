//! L2TP version 2 (RFC 2661) over UDP: PPP frames in a tunnel.

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "L2TP";

/// The port that datagrams go to (RFC 2661 §8.1).
pub const PORT: u16 = 1701;

/// Bytes of a data message's header without options.
pub const HEADER_LEN: usize = 6;

const CONTROL: u16 = 0x8000;
const LENGTH: u16 = 0x4000;
const SEQUENCE: u16 = 0x0800;
const OFFSET: u16 = 0x0200;
const PRIORITY: u16 = 0x0100;
const VERSION: u16 = 2;

/// A view of a message (RFC 2661 §3.1).
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    flags: u16,
    length: Option<u16>,
    tunnel: u16,
    session: u16,
    sequence: Option<(u16, u16)>,
    payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// A view of `bytes`, a datagram's payload.
    ///
    /// # Errors
    /// It is cut short, of another version, or its length contradicts it.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let flags = reader.u16()?;
        if flags & 0x000f != VERSION {
            return Err(Error::malformed(FORMAT, "its version is not 2"));
        }
        let is_control = flags & CONTROL != 0;
        if is_control && (flags & LENGTH == 0 || flags & SEQUENCE == 0) {
            return Err(Error::malformed(FORMAT, "a control message without length or numbers"));
        }
        let length = if flags & LENGTH == 0 { None } else { Some(reader.u16()?) };
        let (tunnel, session) = (reader.u16()?, reader.u16()?);
        let sequence = match flags & SEQUENCE {
            0 => None,
            _ => Some((reader.u16()?, reader.u16()?)),
        };
        if flags & OFFSET != 0 {
            let padding = reader.u16()?;
            reader.take(usize::from(padding))?;
        }
        let before = bytes.len().saturating_sub(reader.rest().len());
        let payload = match length {
            None => reader.rest(),
            Some(length) => {
                let after = usize::from(length).checked_sub(before);
                let after =
                    after.ok_or(Error::malformed(FORMAT, "its length ends in its header"))?;
                reader.take(after)?
            }
        };
        Ok(Message { flags, length, tunnel, session, sequence, payload })
    }

    /// Whether it is about the tunnel rather than a frame in it.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.flags & CONTROL != 0
    }

    /// The receiver's number for the tunnel.
    #[must_use]
    pub const fn tunnel(&self) -> u16 {
        self.tunnel
    }

    /// The receiver's number for the session.
    #[must_use]
    pub const fn session(&self) -> u16 {
        self.session
    }

    /// This message's number and the next one that is expected, if it has them.
    #[must_use]
    pub const fn sequence(&self) -> Option<(u16, u16)> {
        self.sequence
    }

    /// Attributes of a control message, or a PPP frame.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The header of a data message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The receiver's number for the tunnel.
    pub tunnel: u16,
    /// The receiver's number for the session.
    pub session: u16,
    /// Bytes behind the header, if the header is to say its length.
    pub payload_len: Option<u16>,
    /// This message's number and the next one that is expected, if they are to be there.
    pub sequence: Option<(u16, u16)>,
    /// Whether it goes before others (a keep-alive of PPP).
    pub priority: bool,
}

impl Repr {
    /// The header that a data message has, without an offset.
    #[must_use]
    pub fn parse(message: &Message<'_>) -> Self {
        let payload_len = u16::try_from(message.payload.len()).unwrap_or(u16::MAX);
        Repr {
            tunnel: message.tunnel,
            session: message.session,
            payload_len: message.length.map(|_| payload_len),
            sequence: message.sequence,
            priority: message.flags & PRIORITY != 0,
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        let length = if self.payload_len.is_some() { 2 } else { 0 };
        let sequence = if self.sequence.is_some() { 4 } else { 0 };
        HEADER_LEN + length + sequence
    }

    /// Writes the header to the front of `buffer`.
    ///
    /// # Errors
    /// Header and payload are longer than 65,535 bytes, or the buffer is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let len = self.buffer_len();
        let mut flags = VERSION;
        let mut fields = [0u16; 6];
        let mut count = 1;
        let mut push = |value: u16| {
            if let Some(field) = fields.get_mut(count) {
                *field = value;
                count += 1;
            }
        };
        if let Some(payload_len) = self.payload_len {
            let whole = usize::from(payload_len).saturating_add(len);
            let too_long = Error::DoesNotFit { format: FORMAT, field: "length" };
            push(u16::try_from(whole).map_err(|_| too_long)?);
            flags |= LENGTH;
        }
        push(self.tunnel);
        push(self.session);
        if let Some((own, next)) = self.sequence {
            push(own);
            push(next);
            flags |= SEQUENCE;
        }
        if self.priority {
            flags |= PRIORITY;
        }
        fields[0] = flags;
        let bytes = room(FORMAT, buffer, len)?.as_chunks_mut::<2>().0;
        bytes.iter_mut().zip(fields).for_each(|(pair, field)| *pair = field.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            crate::fuzz::l2tp(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            tunnel: u16, session: u16, has_length: bool, sequence: Option<(u16, u16)>,
            priority: bool, payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let payload_len = has_length.then_some(payload.len() as u16);
            let repr = Repr { tunnel, session, payload_len, sequence, priority };
            let mut bytes = vec![0; repr.buffer_len()];
            repr.emit(&mut bytes).unwrap();
            bytes.extend(&payload);
            let message = Message::new_checked(&bytes).unwrap();
            prop_assert_eq!(message.payload(), &payload[..]);
            prop_assert_eq!(Repr::parse(&message), repr);
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        // Version 3; a control message without its length; a length that ends in the header.
        assert!(Message::new_checked(&[0x00, 0x03, 0, 1, 0, 1]).is_err());
        assert!(Message::new_checked(&[0x80, 0x02, 0, 1, 0, 1]).is_err());
        assert!(Message::new_checked(&[0x40, 0x02, 0, 4, 0, 1, 0, 1]).is_err());
        // An offset that is longer than the datagram.
        assert!(Message::new_checked(&[0x02, 0x02, 0, 1, 0, 1, 0xff, 0xff]).is_err());
    }
}
