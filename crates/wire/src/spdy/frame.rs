//! Whole frames.

use super::{
    FLAG_CLEAR_SETTINGS, FLAG_FIN, FLAG_UNIDIRECTIONAL, FORMAT, FrameType, GoAwayStatus,
    HEADER_LEN, Header, MAX_LENGTH, MAX_WINDOW, Priority, RstStatus, Setting, Settings, StreamId,
};
use crate::{Error, Reader};

/// A frame. Header blocks are as they stand in the frame: compressed (§2.6.10.1). Reserved bits and
/// flags that the draft does not define are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A piece of a stream (§2.2.2).
    Data {
        /// The stream it belongs to, never 0.
        stream: StreamId,
        /// Its sender's last frame on the stream.
        fin: bool,
        /// The part of the payload that is there.
        payload: &'a [u8],
    },
    /// Opens a stream (§2.6.1).
    SynStream {
        /// The new stream.
        stream: StreamId,
        /// The stream that it belongs to, if it is pushed; else [`StreamId::SESSION`].
        associated: StreamId,
        /// Its priority, 0 (highest) to 7 in SPDY/3.
        priority: Priority,
        /// Its sender's last frame on the stream.
        fin: bool,
        /// Only its sender may send on the stream.
        unidirectional: bool,
        /// The compressed header block.
        block: &'a [u8],
    },
    /// Accepts a stream (§2.6.2).
    SynReply {
        /// The stream it belongs to.
        stream: StreamId,
        /// Its sender's last frame on the stream.
        fin: bool,
        /// The compressed header block.
        block: &'a [u8],
    },
    /// Ends a stream abnormally (§2.6.3).
    RstStream {
        /// The stream it belongs to.
        stream: StreamId,
        /// The status that says why it ends.
        status: RstStatus,
    },
    /// How the frame's sender wants to receive (§2.6.4).
    Settings {
        /// The client forgets what it has persisted.
        clear: bool,
        /// Its entries, in the order of the wire.
        entries: Settings<'a>,
    },
    /// A ping, or the answer to one (§2.6.5).
    Ping {
        /// Odd for the client's, even for the server's.
        id: u32,
    },
    /// No new streams (§2.6.6).
    GoAway {
        /// The last stream of the receiver that the sender accepted.
        last_good: StreamId,
        /// The status that says why it ends.
        status: GoAwayStatus,
    },
    /// More headers (§2.6.7).
    Headers {
        /// The stream it belongs to.
        stream: StreamId,
        /// Its sender's last frame on the stream.
        fin: bool,
        /// The compressed header block.
        block: &'a [u8],
    },
    /// Widens the window of a stream, or in SPDY/3.1 of the session (§2.6.8).
    WindowUpdate {
        /// The stream; [`StreamId::SESSION`] for the session.
        stream: StreamId,
        /// By how many bytes; 1 to 2^31 - 1 are legal.
        delta: u32,
    },
    /// A client certificate (draft 3 §2.6.9); proof and certificates are not taken apart.
    Credential {
        /// Where it goes in the vector of certificates.
        slot: u16,
        /// Proof and certificates.
        body: &'a [u8],
    },
    /// A control frame of a type that the drafts do not have.
    Unknown {
        /// Its type, one that SPDY/3 does not define here.
        kind: FrameType,
    },
}

impl<'a> Frame<'a> {
    /// The frame that a header and the data behind it are.
    ///
    /// # Errors
    /// The data have another length than the header says, or than frames of this type have.
    pub fn parse(header: Header, data: &'a [u8]) -> Result<Self, Error> {
        if data.len() != header.length() {
            return Err(Error::Truncated {
                format: FORMAT,
                needed: header.length(),
                had: data.len(),
            });
        }
        let (kind, flags) = match header {
            Header::Control { kind, flags, .. } => (kind, flags),
            Header::Data { stream, flags, .. } => {
                return Ok(Frame::Data { stream, fin: flags & FLAG_FIN != 0, payload: data });
            }
        };
        let fin = flags & FLAG_FIN != 0;
        let mut reader = Reader::new(FORMAT, data);
        let frame = match kind {
            FrameType::SYN_STREAM => {
                let (stream, associated) = (stream_id(&mut reader)?, stream_id(&mut reader)?);
                let [priority, _slot] = *reader.array()?;
                let priority = Priority(priority >> 5);
                let unidirectional = flags & FLAG_UNIDIRECTIONAL != 0;
                let block = reader.rest();
                return Ok(Frame::SynStream {
                    stream,
                    associated,
                    priority,
                    fin,
                    unidirectional,
                    block,
                });
            }
            FrameType::SYN_REPLY => {
                return Ok(Frame::SynReply {
                    stream: stream_id(&mut reader)?,
                    fin,
                    block: reader.rest(),
                });
            }
            FrameType::HEADERS => {
                return Ok(Frame::Headers {
                    stream: stream_id(&mut reader)?,
                    fin,
                    block: reader.rest(),
                });
            }
            FrameType::CREDENTIAL => {
                return Ok(Frame::Credential { slot: reader.u16()?, body: reader.rest() });
            }
            FrameType::SETTINGS => {
                let clear = flags & FLAG_CLEAR_SETTINGS != 0;
                return Ok(Frame::Settings { clear, entries: Settings::new_checked(data)? });
            }
            FrameType::RST_STREAM => {
                let stream = stream_id(&mut reader)?;
                Frame::RstStream { stream, status: RstStatus(reader.u32()?) }
            }
            FrameType::PING => Frame::Ping { id: reader.u32()? },
            FrameType::GOAWAY => {
                let last_good = stream_id(&mut reader)?;
                Frame::GoAway { last_good, status: GoAwayStatus(reader.u32()?) }
            }
            FrameType::WINDOW_UPDATE => {
                let stream = stream_id(&mut reader)?;
                Frame::WindowUpdate { stream, delta: reader.u32()? & MAX_WINDOW }
            }
            kind => return Ok(Frame::Unknown { kind }),
        };
        // §2.6.3, §2.6.5, §2.6.6, §2.6.8: these have one length.
        match reader.is_empty() {
            true => Ok(frame),
            false => {
                Err(Error::malformed(FORMAT, "a control frame is longer than its type allows"))
            }
        }
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// Its data are longer than 24 bits can say, or it is [`Frame::Unknown`]. `out` is as it was.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_LEN]);
        let (kind, flags) = self.emit_data(out);
        let length = out.len().saturating_sub(start + HEADER_LEN);
        let header = match (*self, kind) {
            (Frame::Data { stream, .. }, _) => {
                Some(Header::Data { stream, flags, length: length as u32 })
            }
            (_, kind) if kind.is_known() => {
                Some(Header::Control { kind, flags, length: length as u32 })
            }
            _ => None,
        };
        let place = out.get_mut(start..).and_then(|rest| rest.first_chunk_mut());
        let (Some(header), Some(place), 0..=MAX_LENGTH) = (header, place, length) else {
            out.truncate(start);
            return Err(Error::DoesNotFit { format: FORMAT, field: "the frame" });
        };
        *place = header.to_bytes();
        Ok(())
    }

    /// Appends what follows the header; the type (0 of a data frame) and the flags.
    fn emit_data(&self, out: &mut Vec<u8>) -> (FrameType, u8) {
        let mut put = |number: u32| out.extend_from_slice(&number.to_be_bytes());
        match *self {
            Frame::Data { fin, payload, .. } => {
                out.extend_from_slice(payload);
                (FrameType(0), u8::from(fin))
            }
            Frame::SynStream { stream, associated, priority, fin, unidirectional, block } => {
                put(stream.value());
                put(associated.value());
                out.extend_from_slice(&[priority.0 << 5, 0]);
                out.extend_from_slice(block);
                let unidirectional = if unidirectional { FLAG_UNIDIRECTIONAL } else { 0 };
                (FrameType::SYN_STREAM, u8::from(fin) | unidirectional)
            }
            Frame::SynReply { stream, fin, block } => {
                put(stream.value());
                out.extend_from_slice(block);
                (FrameType::SYN_REPLY, u8::from(fin))
            }
            Frame::Headers { stream, fin, block } => {
                put(stream.value());
                out.extend_from_slice(block);
                (FrameType::HEADERS, u8::from(fin))
            }
            Frame::RstStream { stream, status } => {
                put(stream.value());
                put(status.0);
                (FrameType::RST_STREAM, 0)
            }
            Frame::Settings { clear, entries } => {
                put(entries.iter().len() as u32);
                entries.iter().for_each(|entry| out.extend_from_slice(&entry.to_bytes()));
                (FrameType::SETTINGS, if clear { FLAG_CLEAR_SETTINGS } else { 0 })
            }
            Frame::Ping { id } => {
                put(id);
                (FrameType::PING, 0)
            }
            Frame::GoAway { last_good, status } => {
                put(last_good.value());
                put(status.0);
                (FrameType::GOAWAY, 0)
            }
            Frame::WindowUpdate { stream, delta } => {
                put(stream.value());
                put(delta & MAX_WINDOW);
                (FrameType::WINDOW_UPDATE, 0)
            }
            Frame::Credential { slot, body } => {
                out.extend_from_slice(&slot.to_be_bytes());
                out.extend_from_slice(body);
                (FrameType::CREDENTIAL, 0)
            }
            Frame::Unknown { .. } => (FrameType(0), 0),
        }
    }

    /// Appends a SETTINGS frame of these entries.
    ///
    /// # Errors
    /// There are more than 24 bits of length can say. `out` is as it was.
    pub fn emit_settings(clear: bool, entries: &[Setting], out: &mut Vec<u8>) -> Result<(), Error> {
        let length = 4 + entries.len().saturating_mul(Setting::LEN);
        if length > MAX_LENGTH {
            return Err(Error::DoesNotFit { format: FORMAT, field: "the number of settings" });
        }
        let flags = if clear { FLAG_CLEAR_SETTINGS } else { 0 };
        let header = Header::Control { kind: FrameType::SETTINGS, flags, length: length as u32 };
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
        entries.iter().for_each(|entry| out.extend_from_slice(&entry.to_bytes()));
        Ok(())
    }
}

fn stream_id(reader: &mut Reader<'_>) -> Result<StreamId, Error> {
    reader.u32().map(StreamId::new)
}

/// Walks the frames of one direction of a session. What is no frame, or cut short, gives one error
/// and ends the walk.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// A walk from the first byte of a frame.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Frames { reader: Reader::new(FORMAT, bytes) }
    }

    fn read(&mut self) -> Result<Frame<'a>, Error> {
        let header = Header::parse(self.reader.array()?)?;
        Frame::parse(header, self.reader.take(header.length())?)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = self.read();
        if frame.is_err() {
            self.reader = Reader::new(FORMAT, &[]);
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SettingId;
    use super::*;
    use proptest::prelude::*;

    /// A frame of each type and its bytes, by the figures of §2.2 and §2.6.
    fn vectors() -> Vec<(Frame<'static>, &'static [u8])> {
        let stream = StreamId::new(5);
        let priority = Priority::new(3).unwrap();
        vec![
            (
                Frame::Data { stream, fin: true, payload: b"ab" },
                &[0, 0, 0, 5, 1, 0, 0, 2, b'a', b'b'],
            ),
            (
                Frame::SynStream {
                    stream,
                    associated: StreamId::new(3),
                    priority,
                    fin: true,
                    unidirectional: true,
                    block: &[9],
                },
                &[0x80, 3, 0, 1, 3, 0, 0, 11, 0, 0, 0, 5, 0, 0, 0, 3, 0x60, 0, 9],
            ),
            (
                Frame::SynReply { stream, fin: false, block: &[9] },
                &[0x80, 3, 0, 2, 0, 0, 0, 5, 0, 0, 0, 5, 9],
            ),
            (
                Frame::RstStream { stream, status: RstStatus::CANCEL },
                &[0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 5],
            ),
            (Frame::Ping { id: 0x8000_0001 }, &[0x80, 3, 0, 6, 0, 0, 0, 4, 0x80, 0, 0, 1]),
            (
                Frame::GoAway { last_good: stream, status: GoAwayStatus::INTERNAL_ERROR },
                &[0x80, 3, 0, 7, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 2],
            ),
            (
                Frame::Headers { stream, fin: true, block: &[9] },
                &[0x80, 3, 0, 8, 1, 0, 0, 5, 0, 0, 0, 5, 9],
            ),
            (
                Frame::WindowUpdate { stream: StreamId::SESSION, delta: 0x0102_0304 },
                &[0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 0, 1, 2, 3, 4],
            ),
            (Frame::Credential { slot: 2, body: &[7] }, &[0x80, 3, 0, 10, 0, 0, 0, 3, 0, 2, 7]),
        ]
    }

    #[test]
    fn a_frame_of_each_type_is_emitted_and_read_back() {
        for (frame, bytes) in vectors() {
            let mut out = vec![];
            frame.emit(&mut out).unwrap();
            assert_eq!(out, bytes, "{frame:?}");
            assert_eq!(Frames::new(bytes).collect::<Vec<_>>(), [Ok(frame)]);
        }
    }

    #[test]
    fn frames_are_no_longer_and_no_shorter_than_their_type_allows() {
        for (frame, bytes) in vectors() {
            let fixed = matches!(bytes[3], 3 | 6 | 7 | 9) && bytes[0] == 0x80;
            let mut longer = bytes.to_vec();
            longer[7] += 1;
            longer.push(0);
            assert_eq!(Frames::new(&longer).all(|frame| frame.is_ok()), !fixed, "{frame:?}");
            let mut shorter = bytes[..9].to_vec();
            shorter[7] = 1;
            let data = matches!(frame, Frame::Data { .. });
            assert_eq!(Frames::new(&shorter).all(|frame| frame.is_ok()), data, "{frame:?}");
        }
    }

    #[test]
    fn settings_have_flags_and_as_many_entries_as_they_say() {
        let entries = [
            Setting { persist: true, ..Setting::new(SettingId::CURRENT_CWND, 32) },
            Setting {
                persisted: true,
                ..Setting::new(SettingId::INITIAL_WINDOW_SIZE, 0x0010_0000)
            },
        ];
        let mut bytes = vec![];
        Frame::emit_settings(true, &entries, &mut bytes).unwrap();
        let figure = [
            0x80, 3, 0, 4, 1, 0, 0, 20, 0, 0, 0, 2, 1, 0, 0, 5, 0, 0, 0, 32, 2, 0, 0, 7, 0, 0x10,
            0, 0,
        ];
        assert_eq!(bytes, figure);
        let Some(Ok(frame @ Frame::Settings { clear: true, entries: read })) =
            Frames::new(&bytes).next()
        else {
            panic!("SETTINGS with the flag to clear");
        };
        assert_eq!(read.iter().collect::<Vec<_>>(), entries);
        let mut again = vec![];
        frame.emit(&mut again).unwrap();
        assert_eq!(again, bytes);
        bytes[11] = 3;
        assert!(matches!(Frames::new(&bytes).next(), Some(Err(Error::Malformed { .. }))));
    }

    #[test]
    fn frames_of_unknown_types_are_passed_over() {
        let bytes = [0x80, 3, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0];
        let frames: Vec<_> = Frames::new(&bytes).map(Result::unwrap).collect();
        let fin = Frame::Data { stream: StreamId::new(1), fin: true, payload: &[] };
        assert_eq!(frames, [Frame::Unknown { kind: FrameType(5) }, fin]);
        assert!(frames[0].emit(&mut vec![]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_read_is_emitted_alike(kind in 1u8..11, flags in 0u8..4, data in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = vec![0x80, 3, 0, kind, flags, 0, 0, data.len() as u8];
            bytes.extend(&data);
            if let Some(Ok(frame)) = Frames::new(&bytes).next() {
                let mut out = vec![];
                if frame.emit(&mut out).is_ok() {
                    prop_assert_eq!(Frames::new(&out).next(), Some(Ok(frame)));
                }
            }
        }
    }
}
