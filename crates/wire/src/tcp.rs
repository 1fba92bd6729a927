//! TCP segments (RFC 9293 §3.1) and their options ([`TcpOption`]).

mod options;

use std::net::IpAddr;

use crate::checksum::Sum;
use crate::error::room;
use crate::{Error, Reader};

pub use options::{FastOpen, MAX_OPTIONS_LEN, OptionList, Options, SackBlocks, TcpOption};

const FORMAT: &str = "TCP";

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// TCP's number in an IP header.
pub const PROTOCOL: u8 = 6;

/// The control bits (RFC 9293 §3.1), and AccECN's bit of the header's fourth word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// PSH: hand the data to the application now (RFC 9293 §3.1).
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment number counts.
    pub const ACK: Flags = Flags(0x10);

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A view of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// A view of `bytes`, if they hold header and options. IP says where the payload ends, so its
    /// length is not checked.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header: &[u8; HEADER_LEN] = reader.array()?;
        let header_len = usize::from(header[12] >> 4).saturating_mul(4);
        let Some(options_len) = header_len.checked_sub(HEADER_LEN) else {
            return Err(Error::malformed(FORMAT, "its data offset is below 20 bytes"));
        };
        let options = reader.take(options_len)?;
        Ok(Segment { header, options, payload: reader.rest() })
    }

    /// The sender's port.
    #[must_use]
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// The receiver's port.
    #[must_use]
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The sequence number of the first byte, or of SYN.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.header[4], self.header[5], self.header[6], self.header[7]])
    }

    /// The next byte that the sender expects, if the ACK flag is set.
    #[must_use]
    pub const fn acknowledgment(&self) -> Option<u32> {
        if self.flags().has(Flags::ACK) {
            let h = self.header;
            Some(u32::from_be_bytes([h[8], h[9], h[10], h[11]]))
        } else {
            None
        }
    }

    /// The control bits.
    #[must_use]
    pub const fn flags(&self) -> Flags {
        Flags(self.header[13])
    }

    /// The window field, not scaled.
    #[must_use]
    pub const fn window(&self) -> u16 {
        u16::from_be_bytes([self.header[14], self.header[15]])
    }

    /// The checksum field.
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[16], self.header[17]])
    }

    /// The urgent pointer.
    #[must_use]
    pub const fn urgent(&self) -> u16 {
        u16::from_be_bytes([self.header[18], self.header[19]])
    }

    /// Bytes of header and options.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN.saturating_add(self.options.len())
    }

    /// Walks the options.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options::new(self.options)
    }

    /// What follows the header, as far as captured.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Header, options and another payload in one piece.
    #[must_use]
    pub fn to_bytes(&self, payload: &[u8]) -> Vec<u8> {
        [&self.header[..], self.options, payload].concat()
    }

    /// TSval, the sender's clock (RFC 7323 §3.2), where the segment has it.
    #[must_use]
    pub fn timestamp(&self) -> Option<u32> {
        self.options().map_while(Result::ok).find_map(|option| match option {
            TcpOption::Timestamps { value, .. } => Some(value),
            _ => None,
        })
    }

    /// Whether the checksum is right; false too for a cut payload, and on the sending machine
    /// where the device fills it in later.
    #[must_use]
    pub fn checksum_ok(&self, src: IpAddr, dst: IpAddr) -> bool {
        let len = self.header_len().saturating_add(self.payload.len()) as u32;
        let sum = Sum::new().plus_pseudo_header(src, dst, PROTOCOL, len);
        sum.plus(self.header).plus(self.options).plus(self.payload).finish() == 0
    }
}

/// A segment's header and the options that Wiretax knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repr<'a> {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The sequence number of the first byte, or of SYN.
    pub sequence: u32,
    /// The acknowledgment number; the ACK flag follows from it.
    pub acknowledgment: Option<u32>,
    /// The control bits other than ACK.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// The options, in the order of the wire.
    pub options: OptionList<'a>,
}

impl<'a> Repr<'a> {
    /// What a segment says; options that Wiretax does not know and those after a malformed one
    /// are left out.
    #[must_use]
    pub fn parse(segment: &Segment<'a>) -> Self {
        Repr {
            source_port: segment.source_port(),
            destination_port: segment.destination_port(),
            sequence: segment.sequence(),
            acknowledgment: segment.acknowledgment(),
            flags: Flags(segment.flags().0 & !Flags::ACK.0),
            window: segment.window(),
            options: OptionList::parse(segment.options()),
        }
    }

    /// Bytes that [`Repr::emit`] writes for `payload_len` bytes of payload.
    #[must_use]
    pub fn buffer_len(&self, payload_len: usize) -> usize {
        self.options.padded_len().saturating_add(HEADER_LEN).saturating_add(payload_len)
    }

    /// Writes header, options and payload to the front of `buffer`, checksum included.
    pub fn emit(
        &self,
        src: IpAddr,
        dst: IpAddr,
        payload: &[u8],
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let options_len = self.options.padded_len();
        if options_len > MAX_OPTIONS_LEN {
            return Err(Error::DoesNotFit { format: FORMAT, field: "options" });
        }
        let total = self.buffer_len(payload.len());
        let buffer = room(FORMAT, buffer, total)?;
        let ack = if self.acknowledgment.is_some() { Flags::ACK } else { Flags(0) };
        let offset = (options_len.saturating_add(HEADER_LEN) / 4) as u8;
        let ([a, b], [c, d]) =
            (self.source_port.to_be_bytes(), self.destination_port.to_be_bytes());
        let [e, f, g, h] = self.sequence.to_be_bytes();
        let [i, j, k, l] = self.acknowledgment.unwrap_or(0).to_be_bytes();
        let [w, x] = self.window.to_be_bytes();
        let mut header = [
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            i,
            j,
            k,
            l,
            offset << 4,
            self.flags.with(ack).0,
            w,
            x,
            0,
            0,
            0,
            0,
        ];
        let mut options = [0; MAX_OPTIONS_LEN];
        self.options.emit(&mut options);
        let options = options.get(..options_len).unwrap_or(&[]);
        let sum = Sum::new().plus_pseudo_header(src, dst, PROTOCOL, total as u32);
        let sum = sum.plus(&header).plus(options).plus(payload).finish();
        [header[16], header[17]] = sum.to_be_bytes();
        for (to, from) in buffer.iter_mut().zip(header.iter().chain(options).chain(payload)) {
            *to = *from;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn list(cookie: [u8; 16])(
            mss: Option<u16>, window_scale: Option<u8>, sack_permitted: bool,
            timestamps: Option<(u32, u32)>,
            sacks in proptest::collection::vec(any::<(u32, u32)>(), 0..2),
            cookie_len in proptest::sample::select(vec![None, Some(0usize), Some(4), Some(8)]),
            experimental: bool,
        ) -> (OptionList<'static>, [u8; 16], Option<(usize, bool)>) {
            let options = OptionList {
                mss, window_scale, sack_permitted, timestamps,
                sack: SackBlocks::new(&sacks), fast_open: None,
            };
            (options, cookie, cookie_len.map(|len| (len, experimental)))
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            crate::fuzz::tcp(&bytes);
            if let Some(offset) = bytes.get_mut(12) {
                *offset |= 0xf0;
            }
            crate::fuzz::tcp(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            ports: (u16, u16), sequence: u32, acknowledgment: Option<u32>, flags: u8, window: u16,
            (mut options, cookie, fast_open) in any::<[u8; 16]>().prop_flat_map(list),
            payload in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            options.fast_open = fast_open.map(|(len, experimental)| FastOpen {
                cookie: &cookie[..len], experimental,
            });
            let repr = Repr {
                source_port: ports.0, destination_port: ports.1, sequence, acknowledgment,
                flags: Flags(flags & !Flags::ACK.0), window, options,
            };
            let (src, dst) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
            let mut buffer = vec![0; repr.buffer_len(payload.len())];
            prop_assume!(options.padded_len() <= MAX_OPTIONS_LEN);
            repr.emit(src, dst, &payload, &mut buffer).unwrap();
            let segment = Segment::new_checked(&buffer).unwrap();
            prop_assert_eq!(Repr::parse(&segment), repr);
            prop_assert_eq!(segment.payload(), &payload[..]);
            prop_assert!(segment.checksum_ok(src, dst));
        }
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        let options = OptionList {
            mss: Some(1460),
            timestamps: Some((1, 2)),
            sack: SackBlocks::new(&[(1, 2), (3, 4), (5, 6), (7, 8)]),
            ..OptionList::default()
        };
        let repr = Repr { options, ..Repr::default() };
        let any = "10.0.0.1".parse().unwrap();
        assert!(matches!(
            repr.emit(any, any, &[], &mut [0; 200]),
            Err(Error::DoesNotFit { field: "options", .. })
        ));
    }
}
