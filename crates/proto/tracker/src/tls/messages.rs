//! Joins handshake messages across record and segment borders. Only the hellos and what the server
//! encrypts of them are kept; of other messages only type and length.

use wire::tls::{HandshakeType, MessageHeader};

/// The longest hello that is joined, bytes: one with post-quantum shares, many tickets and padding
/// stays far below.
const MAX_HELLO: usize = 32 * 1024;

/// The handshake messages of one direction.
#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    header: [u8; 4],
    have: usize,
    /// The message being read and what is left of it.
    current: Option<(MessageHeader, usize)>,
    body: Vec<u8>,
    /// The body of the current message was given up.
    given_up: bool,
}

/// A step through the messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageEvent<'a> {
    /// A message's header is complete.
    Begin(MessageHeader),
    /// A message is complete; its body, if it is a hello of sane length.
    End(MessageHeader, Option<&'a [u8]>),
}

fn is_kept(header: MessageHeader) -> bool {
    let hello = matches!(
        header.kind,
        HandshakeType::CLIENT_HELLO
            | HandshakeType::SERVER_HELLO
            | HandshakeType::HELLO_RETRY_REQUEST_DRAFT
            | HandshakeType::ENCRYPTED_EXTENSIONS
    );
    hello && header.length as usize <= MAX_HELLO
}

impl MessageReader {
    /// Whether the next byte is a message's first.
    pub(crate) const fn is_between(&self) -> bool {
        self.have == 0 && self.current.is_none()
    }

    /// The next event in `input`, from whose front it takes bytes; `None` when it wants more.
    pub(crate) fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Option<MessageEvent<'s>> {
        let Some((header, left)) = self.current else {
            // What was joined has been read: a long hello's room is not kept.
            if self.body.capacity() > 0 {
                self.body = Vec::new();
            }
            while let Some(to) = self.header.get_mut(self.have) {
                let (first, rest) = input.split_first()?;
                *to = *first;
                self.have += 1;
                *input = rest;
            }
            let header = MessageHeader::parse(&self.header);
            self.have = 0;
            self.current = Some((header, header.length as usize));
            self.given_up = false;
            return Some(MessageEvent::Begin(header));
        };
        let (taken, rest) = input.split_at(left.min(input.len()));
        *input = rest;
        let left = left - taken.len();
        if left > 0 {
            self.current = Some((header, left));
            if is_kept(header) && !self.given_up {
                self.body.extend_from_slice(taken);
            }
            return None;
        }
        self.current = None;
        if !is_kept(header) || self.given_up {
            return Some(MessageEvent::End(header, None));
        }
        if self.body.is_empty() {
            return Some(MessageEvent::End(header, Some(taken)));
        }
        self.body.extend_from_slice(taken);
        Some(MessageEvent::End(header, Some(&self.body)))
    }

    /// The message that has begun and is not whole.
    pub(crate) fn unfinished(&self) -> Option<MessageHeader> {
        self.current.map(|(header, _)| header)
    }

    /// Bytes held of a message that is not whole.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.body.capacity()
    }

    /// Gives up the message that is not whole, to save memory: it is not read. Whether there was one.
    pub(crate) fn give_up(&mut self) -> bool {
        let any = self.body.capacity() > 0 && self.current.is_some();
        self.given_up |= any;
        self.release();
        any
    }

    /// Lets go of what is held.
    pub(crate) fn release(&mut self) {
        self.body = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], step: usize) -> Vec<(u8, Option<Vec<u8>>)> {
        let mut reader = MessageReader::default();
        let mut out = Vec::new();
        for mut piece in bytes.chunks(step) {
            while let Some(event) = reader.next(&mut piece) {
                if let MessageEvent::End(header, body) = event {
                    out.push((header.kind.0, body.map(<[u8]>::to_vec)));
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn borders_make_no_difference(
            messages in proptest::collection::vec((0u8..25, proptest::collection::vec(any::<u8>(), 0..50)), 0..6),
            step in 1usize..60,
        ) {
            let mut bytes = Vec::new();
            for (kind, body) in &messages {
                bytes.extend([*kind, 0, 0, body.len() as u8]);
                bytes.extend_from_slice(body);
            }
            let expected: Vec<_> = messages
                .into_iter()
                .map(|(kind, body)| (kind, matches!(kind, 1 | 2 | 6 | 8).then_some(body)))
                .collect();
            prop_assert_eq!(read(&bytes, step), expected);
        }
    }

    #[test]
    fn a_hello_that_was_given_up_is_not_read_and_the_next_one_is() {
        let mut reader = MessageReader::default();
        let mut input = &[1, 0, 0, 4, 9, 9][..];
        assert!(matches!(reader.next(&mut input), Some(MessageEvent::Begin(_))));
        assert_eq!(reader.next(&mut input), None);
        assert!(reader.held_bytes() > 0 && reader.give_up());
        assert_eq!(reader.held_bytes(), 0);
        let mut input = &[9, 9, 1, 0, 0, 1, 7][..];
        assert!(matches!(reader.next(&mut input), Some(MessageEvent::End(_, None))));
        assert!(matches!(reader.next(&mut input), Some(MessageEvent::Begin(_))));
        assert!(matches!(reader.next(&mut input), Some(MessageEvent::End(_, Some([7])))));
        assert!(!reader.give_up());
    }

    #[test]
    fn a_hello_of_16_megabytes_is_not_kept() {
        let mut reader = MessageReader::default();
        let mut input = &[1, 0xff, 0xff, 0xff][..];
        assert!(matches!(reader.next(&mut input), Some(MessageEvent::Begin(_))));
        let mut input = &[0u8; 60_000][..];
        assert_eq!(reader.next(&mut input), None);
        assert_eq!(reader.body.capacity(), 0);
    }
}
