//! The byte stream cut into control frames and pieces of data frames.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use wire::spdy::{FLAG_FIN, HEADER_LEN, Header, StreamId};

/// Pieces of data below this are copied, so that they do not keep a large buffer of the caller's.
const COPY_BELOW: usize = 1024;

/// What comes next in the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A whole control frame.
    Control(Header, Bytes),
    /// A data frame begins; its payload follows in pieces.
    DataFrame { stream: StreamId, fin: bool, length: usize },
    /// A piece of the payload of the data frame that began last.
    Data { data: Bytes, last: bool },
    /// A control frame longer than is taken; the first word of its data, which names the stream.
    TooLarge(Header, StreamId),
    /// A control frame of another version.
    BadVersion,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Header,
    Control(Header),
    Data {
        left: usize,
    },
    /// A control frame that is passed over.
    Skip {
        left: usize,
    },
    TooLarge(Header),
    /// Nothing can be read any more.
    Lost,
}

/// What was received and not yet taken.
#[derive(Debug)]
pub(crate) struct Input {
    chunks: VecDeque<Bytes>,
    state: State,
    /// The beginning of a header or of a control frame whose end is in a later chunk.
    partial: Vec<u8>,
    max_control: usize,
}

impl Input {
    pub(crate) fn new(max_control: usize) -> Self {
        Input { chunks: VecDeque::new(), state: State::Header, partial: Vec::new(), max_control }
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() && !matches!(self.state, State::Lost) {
            self.chunks.push_back(bytes);
        }
    }

    /// Forgets what is left: the session is over.
    pub(crate) fn stop(&mut self) {
        self.state = State::Lost;
        self.chunks.clear();
        self.partial = Vec::new();
    }

    pub(crate) fn next(&mut self) -> Option<Piece> {
        loop {
            match self.state {
                State::Lost => return None,
                State::Header => {
                    let bytes = self.whole(HEADER_LEN)?;
                    let header = match bytes.first_chunk().map(Header::parse) {
                        Some(Ok(header)) => header,
                        _ => {
                            self.stop();
                            return Some(Piece::BadVersion);
                        }
                    };
                    if let Some(piece) = self.begin(header) {
                        return Some(piece);
                    }
                }
                State::Control(header) => {
                    let data = self.whole(header.length())?;
                    self.state = State::Header;
                    return Some(Piece::Control(header, data));
                }
                State::TooLarge(header) => {
                    let word = self.whole(4)?;
                    self.stop();
                    let stream = word.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
                    return Some(Piece::TooLarge(header, StreamId::new(stream)));
                }
                State::Data { left } => {
                    let data = self.some(left)?;
                    let left = left.saturating_sub(data.len());
                    self.state = if left == 0 { State::Header } else { State::Data { left } };
                    let data = match data.len() {
                        ..COPY_BELOW => Bytes::copy_from_slice(&data),
                        _ => data,
                    };
                    return Some(Piece::Data { data, last: left == 0 });
                }
                State::Skip { left } => {
                    let left = left.saturating_sub(self.some(left)?.len());
                    self.state = if left == 0 { State::Header } else { State::Skip { left } };
                }
            }
        }
    }

    fn begin(&mut self, header: Header) -> Option<Piece> {
        let length = header.length();
        match header {
            Header::Data { stream, flags, .. } => {
                self.state = if length == 0 { State::Header } else { State::Data { left: length } };
                return Some(Piece::DataFrame { stream, fin: flags & FLAG_FIN != 0, length });
            }
            // Passed over without memory, but reported, so that it is counted.
            Header::Control { kind, .. } if !kind.is_known() => {
                self.state = if length == 0 { State::Header } else { State::Skip { left: length } };
                let empty = Header::Control { kind, flags: 0, length: 0 };
                return Some(Piece::Control(empty, Bytes::new()));
            }
            Header::Control { .. } if length <= self.max_control => {
                self.state = State::Control(header);
            }
            Header::Control { .. } => self.state = State::TooLarge(header),
        }
        None
    }

    /// The next `count` bytes, once all are there.
    fn whole(&mut self, count: usize) -> Option<Bytes> {
        if self.partial.is_empty() {
            if count == 0 {
                return Some(Bytes::new());
            }
            let front = self.chunks.front_mut()?;
            if front.len() >= count {
                let taken = front.split_to(count);
                self.drop_empty();
                return Some(taken);
            }
        }
        while self.partial.len() < count {
            let needed = count - self.partial.len();
            let more = self.some(needed)?;
            self.partial.extend_from_slice(&more);
        }
        Some(Bytes::from(std::mem::take(&mut self.partial)))
    }

    /// At most `count` bytes, as many as the first chunk has.
    fn some(&mut self, count: usize) -> Option<Bytes> {
        let front = self.chunks.front_mut()?;
        let taken = front.split_to(count.min(front.len()));
        self.drop_empty();
        Some(taken)
    }

    fn drop_empty(&mut self) {
        if self.chunks.front().is_some_and(|front| !front.has_remaining()) {
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::spdy::{Frame, FrameType};

    fn pieces(input: &mut Input) -> Vec<Piece> {
        std::iter::from_fn(|| input.next()).collect()
    }

    #[test]
    fn a_control_frame_waits_for_its_end_and_data_do_not() {
        let mut bytes = vec![];
        Frame::Ping { id: 7 }.emit(&mut bytes).unwrap();
        let stream = StreamId::new(1);
        Frame::Data { stream, fin: true, payload: b"abcd" }.emit(&mut bytes).unwrap();
        let mut input = Input::new(8192);
        input.push(Bytes::copy_from_slice(&bytes[..10]));
        assert_eq!(pieces(&mut input), []);
        input.push(Bytes::copy_from_slice(&bytes[10..22]));
        let header = Header::Control { kind: FrameType::PING, flags: 0, length: 4 };
        assert_eq!(
            pieces(&mut input),
            [
                Piece::Control(header, Bytes::from_static(&[0, 0, 0, 7])),
                Piece::DataFrame { stream, fin: true, length: 4 },
                Piece::Data { data: Bytes::from_static(b"ab"), last: false },
            ]
        );
        input.push(Bytes::copy_from_slice(&bytes[22..]));
        assert_eq!(
            pieces(&mut input),
            [Piece::Data { data: Bytes::from_static(b"cd"), last: true }]
        );
    }

    #[test]
    fn what_is_unknown_is_passed_over_whatever_its_length() {
        let mut input = Input::new(8192);
        let header = Header::Control { kind: FrameType(0x77), flags: 0, length: 1 << 20 };
        input.push(Bytes::copy_from_slice(&header.to_bytes()));
        assert_eq!(pieces(&mut input).len(), 1);
        for _ in 0..16 {
            assert_eq!(pieces(&mut input), []);
            input.push(Bytes::from(vec![0; 1 << 16]));
        }
        assert_eq!(pieces(&mut input), []);
        input.push(Bytes::from_static(&[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]));
        assert_eq!(pieces(&mut input).len(), 1);
    }
}
