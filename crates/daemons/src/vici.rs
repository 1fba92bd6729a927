//! Charon's control protocol (README of strongSwan's vici plugin): packets of a length and a type on a stream, whose
//! messages are trees of sections, values and lists.

use std::io::{self, Read, Write};

const COMMAND: u8 = 0;
const ANSWER: u8 = 1;
/// Bytes of the longest packet that is taken.
const LONGEST: usize = 512 << 10;

const SECTION_START: u8 = 1;
const SECTION_END: u8 = 2;
const KEY_VALUE: u8 = 3;
const LIST_START: u8 = 4;
const LIST_ITEM: u8 = 5;
const LIST_END: u8 = 6;

/// A message that is being written.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// The same with a value.
    pub(crate) fn value(mut self, key: &str, value: &str) -> Message {
        self.0.push(KEY_VALUE);
        self.name(key);
        self.text(value);
        self
    }

    /// The same with a list.
    pub(crate) fn list<T: AsRef<str>>(
        mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
    ) -> Message {
        self.0.push(LIST_START);
        self.name(key);
        for item in items {
            self.0.push(LIST_ITEM);
            self.text(item.as_ref());
        }
        self.0.push(LIST_END);
        self
    }

    /// The same with a section.
    pub(crate) fn section(mut self, name: &str, inside: Message) -> Message {
        self.0.push(SECTION_START);
        self.name(name);
        self.0.extend(inside.0);
        self.0.push(SECTION_END);
        self
    }

    fn name(&mut self, name: &str) {
        let bytes = name.as_bytes();
        let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        self.0.push(len);
        self.0.extend(bytes.iter().take(len.into()));
    }

    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.0.extend(len.to_be_bytes());
        self.0.extend(bytes.iter().take(len.into()));
    }
}

/// Asks, and waits for the answer: the values at its top.
///
/// # Errors
/// The stream ends, or what comes is no answer.
pub(crate) fn ask(
    stream: &mut (impl Read + Write),
    command: &str,
    message: &Message,
) -> io::Result<Vec<(String, String)>> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut packet = Message(vec![COMMAND]);
    packet.name(command);
    packet.0.extend(&message.0);
    let len = u32::try_from(packet.0.len()).map_err(|_| wrong("too long a message"))?;
    stream.write_all(&len.to_be_bytes())?;
    stream.write_all(&packet.0)?;
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
    if len > LONGEST {
        return Err(wrong("too long an answer"));
    }
    let mut answer = vec![0; len];
    stream.read_exact(&mut answer)?;
    match answer.split_first() {
        Some((&ANSWER, body)) => values(body).ok_or_else(|| wrong("an answer that is cut short")),
        _ => Err(wrong("something else than an answer")),
    }
}

/// The values at the top of a message; `None` if it is cut short.
fn values(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut found, mut depth) = (Vec::new(), 0u32);
    while let Some((kind, rest)) = bytes.split_first() {
        bytes = rest;
        match *kind {
            SECTION_START | LIST_START => {
                take(&mut bytes, 1)?;
                depth = depth.checked_add(1)?;
            }
            SECTION_END | LIST_END => depth = depth.checked_sub(1)?,
            KEY_VALUE => {
                let key = text(take(&mut bytes, 1)?);
                let value = text(take(&mut bytes, 2)?);
                if depth == 0 {
                    found.push((key, value));
                }
            }
            LIST_ITEM => {
                take(&mut bytes, 2)?;
            }
            _ => return None,
        }
    }
    Some(found)
}

/// A text behind its length of one or two bytes.
fn take<'a>(bytes: &mut &'a [u8], width: usize) -> Option<&'a [u8]> {
    let (len, rest) = bytes.split_at_checked(width)?;
    let len = len.iter().fold(0usize, |len, byte| len << 8 | usize::from(*byte));
    let (text, rest) = rest.split_at_checked(len)?;
    *bytes = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody who has his answer ready.
    struct Peer {
        said: Vec<u8>,
        answer: io::Cursor<Vec<u8>>,
    }

    impl Read for Peer {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.answer.read(buffer)
        }
    }

    impl Write for Peer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.said.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn peer(answer: &[u8]) -> Peer {
        let framed = [&(answer.len() as u32).to_be_bytes(), answer].concat();
        Peer { said: Vec::new(), answer: io::Cursor::new(framed) }
    }

    #[test]
    fn a_command_is_framed_and_its_answer_read() {
        let inside = Message::default().list("c", ["d"]);
        let message = Message::default().value("a", "xy").section("b", inside);
        let answer = [&[ANSWER][..], &Message::default().value("success", "yes").0].concat();
        let mut peer = peer(&answer);
        let values = ask(&mut peer, "do", &message).unwrap();
        assert_eq!(values, [("success".to_owned(), "yes".to_owned())]);
        let wanted = b"\0\0\0\x17\0\x02do\x03\x01a\0\x02xy\x01\x01b\x04\x01c\x05\0\x01d\x06\x02";
        assert_eq!(peer.said, wanted);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let values = [&[ANSWER][..], &Message::default().value("key", "value").0].concat();
        for wrong in [&[][..], &[7, 1], &[ANSWER, SECTION_END], &[ANSWER, 99], &values[..6]] {
            assert!(ask(&mut peer(wrong), "do", &Message::default()).is_err(), "{wrong:?}");
        }
        let mut huge = Peer { said: Vec::new(), answer: io::Cursor::new(vec![0xff; 4]) };
        assert!(ask(&mut huge, "do", &Message::default()).is_err());
    }
}
