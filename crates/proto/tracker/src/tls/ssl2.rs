//! Gathers the first record of a stream that speaks SSL 2.0: a client's hello, which TLS may follow,
//! or a server's.

use wire::tls::{SSL2_HEADER_LEN, begins_ssl2_client_hello, ssl2_record_len};

use crate::side::Sender;

/// The longest hello that is gathered: one with two hundred cipher specs stays below.
const MAX_HELLO: usize = 1024;

/// Bytes by which a client's hello is known.
const CLIENT_FRONT: usize = 5;

/// Bytes of a server's hello up to its version.
const SERVER_FRONT: usize = SSL2_HEADER_LEN + 5;

/// What has come of a record.
#[derive(Debug, Default)]
pub(crate) struct Ssl2Reader {
    bytes: Vec<u8>,
}

/// What the stream's front turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ssl2Event<'a> {
    /// More is wanted.
    More,
    /// The record, without its header: a whole one of a client's, the front of a server's.
    Record(&'a [u8]),
    /// It is none.
    NotSsl2,
}

impl Ssl2Reader {
    /// Takes bytes from the front of `input`.
    pub(crate) fn next(&mut self, side: Sender, input: &mut &[u8]) -> Ssl2Event<'_> {
        let front = if side == Sender::Client { CLIENT_FRONT } else { SERVER_FRONT };
        self.take(front, input);
        let Some(first) = self.bytes.first_chunk::<CLIENT_FRONT>() else { return Ssl2Event::More };
        let Some(len) = ssl2_record_len([first[0], first[1]]) else { return Ssl2Event::NotSsl2 };
        let wanted = match side {
            Sender::Client if !begins_ssl2_client_hello(first) => return Ssl2Event::NotSsl2,
            Sender::Client => SSL2_HEADER_LEN + usize::from(len),
            Sender::Server => SERVER_FRONT,
        };
        if wanted > MAX_HELLO {
            return Ssl2Event::NotSsl2;
        }
        self.take(wanted, input);
        match self.bytes.get(SSL2_HEADER_LEN..wanted) {
            Some(record) => Ssl2Event::Record(record),
            None => Ssl2Event::More,
        }
    }

    /// Gathers up to so many bytes in all.
    fn take(&mut self, wanted: usize, input: &mut &[u8]) {
        let left = wanted.saturating_sub(self.bytes.len()).min(input.len());
        if let Some((taken, rest)) = input.split_at_checked(left) {
            self.bytes.extend_from_slice(taken);
            *input = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_no_difference_and_what_follows_is_left() {
        let mut stream = vec![0x80, 12, 1, 3, 0];
        stream.extend([9; 9]);
        stream.extend([22, 3]);
        for step in 1..=stream.len() {
            let mut reader = Ssl2Reader::default();
            let mut found = None;
            for piece in stream.chunks(step) {
                let mut input = piece;
                if let Ssl2Event::Record(record) = reader.next(Sender::Client, &mut input) {
                    found = Some(record.to_vec());
                    break;
                }
            }
            assert_eq!(found.unwrap(), stream[2..14], "{step}");
        }
    }

    #[test]
    fn other_bytes_and_long_hellos_are_reported() {
        for bytes in [[0x80, 12, 2, 3, 0], [0xff, 0xff, 1, 3, 0], *b"hello"] {
            let mut reader = Ssl2Reader::default();
            assert_eq!(reader.next(Sender::Client, &mut &bytes[..]), Ssl2Event::NotSsl2);
        }
    }
}
