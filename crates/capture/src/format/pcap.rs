//! pcap: a header of 24 bytes, then records (draft-ietf-opsawg-pcap).

use units::Time;

use super::{MAX_CAPTURED, Order, Problem, Record, Step, words};

/// Bytes of the file's header.
const FILE_HEADER: usize = 24;
/// Bytes of a record's header.
const RECORD_HEADER: usize = 16;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Reads a pcap file. Stamps are in micro- or nanoseconds, so that nothing of them is lost.
#[derive(Debug)]
pub struct Reader {
    order: Order,
    /// Nanoseconds of a stamp's fraction.
    unit: u64,
    /// Known once the file's header is read.
    link: Option<u32>,
}

impl Reader {
    /// The reader for a file that begins so; `None` if it is no pcap file.
    #[must_use]
    pub fn recognise(magic: [u8; 4]) -> Option<Self> {
        let reader = |order, unit| Some(Reader { order, unit, link: None });
        match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (MICROSECONDS, _) => reader(Order::Little, 1_000),
            (NANOSECONDS, _) => reader(Order::Little, 1),
            (_, MICROSECONDS) => reader(Order::Big, 1_000),
            (_, NANOSECONDS) => reader(Order::Big, 1),
            _ => None,
        }
    }

    /// As [`super::Reader::frame`] says.
    #[inline(always)]
    pub(super) fn frame(&self, bytes: &[u8]) -> Option<Record> {
        let link = self.link?;
        let header = bytes.first_chunk::<RECORD_HEADER>()?;
        let [seconds, fraction, captured, original_len] = self.order.of_little(words(header));
        if captured > MAX_CAPTURED {
            return None;
        }
        let used = RECORD_HEADER as u32 + captured;
        if bytes.len() < used as usize {
            return None;
        }
        // A fraction of a second or more is added as it is, as libpcap does.
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit;
        Some(Record {
            at: Time::from_nanos(nanos),
            link,
            interface: 0,
            start: RECORD_HEADER as u32,
            captured,
            original_len: original_len.max(captured),
            used,
        })
    }

    /// See [`super::Reader::step`].
    ///
    /// # Errors
    /// [`Problem::Version`], [`Problem::FrameLength`].
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        if self.link.is_none() {
            return self.file_header(bytes);
        }
        if let Some(record) = self.frame(bytes) {
            return Ok(Step::Frame(record));
        }
        let Some(header) = bytes.first_chunk::<RECORD_HEADER>() else {
            return Ok(Step::Need(RECORD_HEADER));
        };
        match self.order.u32_at(header, 8).unwrap_or(0) {
            captured if captured > MAX_CAPTURED => Err(Problem::FrameLength(captured)),
            captured => Ok(Step::Need(RECORD_HEADER + captured as usize)),
        }
    }

    #[cold]
    fn file_header(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        let Some(header) = bytes.first_chunk::<FILE_HEADER>() else {
            return Ok(Step::Need(FILE_HEADER));
        };
        let major = self.order.u16_at(header, 4).unwrap_or(0);
        let minor = self.order.u16_at(header, 6).unwrap_or(0);
        // Before 2.4 a record's two lengths stood in the other order, and not in all of them.
        if major != 2 || minor < 4 {
            return Err(Problem::Version { major, minor });
        }
        // Above bit 25: the length of the frame check sequence, which IP's own length leaves out.
        let link = self.order.u32_at(header, 20).unwrap_or(0) & 0x03ff_ffff;
        self.link = Some(link);
        Ok(Step::Pass(FILE_HEADER as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(order: fn(u32) -> [u8; 4], magic: u32, link: u32) -> Vec<u8> {
        let half = |first: u16, second: u16| {
            let [a, b, c, d] = order(u32::from(first) << 16 | u32::from(second));
            // Two numbers of 16 bits: in little order the halves change places.
            if order(1)[0] == 1 { [c, d, a, b] } else { [a, b, c, d] }
        };
        [order(magic), half(2, 4), order(0), order(0), order(65_535), order(link)].concat()
    }

    fn record(order: fn(u32) -> [u8; 4], stamp: (u32, u32), bytes: &[u8], len: u32) -> Vec<u8> {
        let head = [order(stamp.0), order(stamp.1), order(bytes.len() as u32), order(len)];
        [head.concat(), bytes.to_vec()].concat()
    }

    #[test]
    fn both_orders_and_both_resolutions_are_exact() {
        for order in [u32::to_le_bytes as fn(u32) -> [u8; 4], u32::to_be_bytes] {
            for (magic, nanos) in [(MICROSECONDS, 999_999_000), (NANOSECONDS, 999_999)] {
                // FCS bits above the link type are not part of it.
                let header = file(order, magic, 0x4400_0065);
                let mut reader = Reader::recognise(*header.first_chunk().unwrap()).unwrap();
                assert_eq!(reader.step(&header), Ok(Step::Pass(24)));
                let record = record(order, (u32::MAX, 999_999), b"frame", 60);
                let Ok(Step::Frame(found)) = reader.step(&record) else { panic!() };
                assert_eq!(found.at.as_nanos(), u64::from(u32::MAX) * 1_000_000_000 + nanos);
                assert_eq!((found.link, found.original_len), (101, 60));
                assert_eq!(&record[found.start as usize..found.used as usize], b"frame");
                assert_eq!(found.captured, 5);
                assert_eq!(found.used as usize, record.len());
                for cut in 0..record.len() {
                    let Ok(Step::Need(need)) = reader.step(&record[..cut]) else { panic!() };
                    assert!(need > cut && need <= record.len());
                }
            }
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        let header = file(u32::to_le_bytes, MICROSECONDS, 1);
        let mut reader = Reader::recognise(*header.first_chunk().unwrap()).unwrap();
        reader.step(&header).unwrap();
        let mut bytes = record(u32::to_le_bytes, (0, 0), &[], 0);
        bytes[8..12].copy_from_slice(&(MAX_CAPTURED + 1).to_le_bytes());
        assert_eq!(reader.step(&bytes), Err(Problem::FrameLength(MAX_CAPTURED + 1)));
        bytes[8..12].copy_from_slice(&MAX_CAPTURED.to_le_bytes());
        assert_eq!(reader.step(&bytes), Ok(Step::Need(16 + MAX_CAPTURED as usize)));
    }

    #[test]
    fn archaic_versions_are_refused() {
        let mut header = file(u32::to_le_bytes, MICROSECONDS, 1);
        header[6] = 2;
        let mut reader = Reader::recognise(*header.first_chunk().unwrap()).unwrap();
        assert_eq!(reader.step(&header), Err(Problem::Version { major: 2, minor: 2 }));
    }
}
