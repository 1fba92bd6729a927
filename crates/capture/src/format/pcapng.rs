//! pcapng: sections of blocks (draft-ietf-opsawg-pcapng).

use units::Time;

use super::{MAX_CAPTURED, Order, Problem, Record, Step, words};

/// Type of the Section Header Block, the same in both byte orders (§4.1).
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// The longest Decryption Secrets Block that is read; longer ones are refused.
pub const MAX_SECRETS: u32 = 16 << 20;
/// Interfaces of a section, at most.
pub const MAX_INTERFACES: usize = 65_536;

/// The longest block that holds a frame, an interface or a section's header. A frame's options,
/// 65535 bytes each, hardly ever exceed some hundred bytes.
const MAX_BLOCK: u32 = 1 << 20;

const INTERFACE_DESCRIPTION: u32 = 1;
/// The Packet Block, obsolete (appendix A).
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// Secrets type of a TLS key log (§4.7).
const TLS_KEY_LOG: u32 = 0x544c_534b;

const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Bytes of a packet block before its frame.
const PACKET_HEADER: usize = 28;

/// How an interface's stamps become nanoseconds since 1970. What is finer than a nanosecond is cut
/// off: exact for resolutions of powers of ten down to a nanosecond; else right to the nanosecond
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    unit: Unit,
    /// if_tsoffset in nanoseconds.
    offset: i128,
}

/// What a timestamp counts: if_tsresol (§4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// So many nanoseconds.
    Nanos(u64),
    /// So many to a nanosecond.
    PerNano(u64),
    /// Seconds divided by 2 so many times.
    Binary(u32),
    /// So fine that no 64 bits of it are a nanosecond.
    Nothing,
}

impl Clock {
    /// Microseconds, as where nothing is said.
    const DEFAULT: Clock = Clock { unit: Unit::Nanos(1_000), offset: 0 };

    /// The time of a stamp; `None` if it lies before 1970 or after 2554.
    #[inline(always)]
    fn time(self, stamp: u64) -> Option<Time> {
        if self.offset == 0
            && let Unit::Nanos(nanos) = self.unit
        {
            return stamp.checked_mul(nanos).map(Time::from_nanos);
        }
        self.time_slowly(stamp)
    }

    #[cold]
    fn time_slowly(self, stamp: u64) -> Option<Time> {
        let stamp = u128::from(stamp);
        let nanos = match self.unit {
            Unit::Nanos(nanos) => stamp * u128::from(nanos),
            Unit::PerNano(units) => stamp / u128::from(units.max(1)),
            Unit::Binary(shift) => (stamp * 1_000_000_000) >> shift,
            Unit::Nothing => 0,
        };
        let nanos = i128::try_from(nanos).ok()? + self.offset;
        u64::try_from(nanos).ok().map(Time::from_nanos)
    }
}

impl Unit {
    fn new(resolution: u8) -> Unit {
        let exponent = u32::from(resolution & 0x7f);
        if resolution & 0x80 != 0 {
            return Unit::Binary(exponent);
        }
        match 9_u32.checked_sub(exponent) {
            Some(coarser) => Unit::Nanos(10_u64.pow(coarser)),
            None => 10_u64.checked_pow(exponent - 9).map_or(Unit::Nothing, Unit::PerNano),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u32,
    /// 0 for no limit.
    snap_len: u32,
    clock: Clock,
}

/// Reads a pcapng file.
///
/// Blocks that hold no frames, interfaces or TLS secrets are passed over. A Simple Packet Block has
/// no time: it takes that of the frame before it.
#[derive(Debug)]
pub struct Reader {
    order: Order,
    /// Of this section.
    interfaces: Vec<Interface>,
    /// Of the sections before.
    interfaces_before: u32,
    /// Of the last frame.
    last: Time,
    /// Frames without a time so far.
    timeless: u64,
    /// Frames with an impossible time so far.
    misdated: u64,
    /// The length of a block that was passed over: it must stand at its end, too.
    tail: Option<u32>,
}

impl Default for Reader {
    fn default() -> Self {
        Reader::new()
    }
}

impl Reader {
    /// A reader at the beginning of a file.
    #[must_use]
    pub const fn new() -> Self {
        Reader {
            order: Order::Little,
            interfaces: Vec::new(),
            interfaces_before: 0,
            last: Time::ZERO,
            timeless: 0,
            misdated: 0,
            tail: None,
        }
    }

    /// See [`super::Reader::frame`]: nearly every block is an Enhanced Packet Block.
    #[inline(always)]
    pub(super) fn frame(&mut self, bytes: &[u8]) -> Option<Record> {
        if self.tail.is_some() {
            return None;
        }
        let header: [u32; 7] = self.order.of_little(words(bytes.first_chunk::<PACKET_HEADER>()?));
        let [kind, len, ..] = header;
        if kind != ENHANCED_PACKET || !(32..=MAX_BLOCK).contains(&len) {
            return None;
        }
        match self.packet(bytes.get(..len as usize)?, header) {
            Ok(Step::Frame(record)) => Some(record),
            _ => None,
        }
    }

    /// See [`super::Reader::step`].
    ///
    /// # Errors
    /// Any [`Problem`] of a block.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        match self.frame(bytes) {
            Some(record) => Ok(Step::Frame(record)),
            None => self.block(bytes),
        }
    }

    /// Reads a block of any kind.
    #[inline(never)]
    fn block(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        if let Some(first) = self.tail {
            let Some(last) = self.order.u32_at(bytes, 0) else { return Ok(Step::Need(4)) };
            self.tail = None;
            return if first == last {
                Ok(Step::Pass(4))
            } else {
                Err(Problem::BlockEnds { first, last })
            };
        }
        if bytes.first_chunk() == Some(&SECTION_HEADER.to_ne_bytes()) {
            return self.section_header(bytes);
        }
        let (Some(kind), Some(len)) = (self.order.u32_at(bytes, 0), self.order.u32_at(bytes, 4))
        else {
            return Ok(Step::Need(8));
        };
        let (least, most) = match kind {
            INTERFACE_DESCRIPTION => (20, MAX_BLOCK),
            PACKET | ENHANCED_PACKET => (32, MAX_BLOCK),
            SIMPLE_PACKET => (16, MAX_BLOCK),
            DECRYPTION_SECRETS => (20, MAX_SECRETS),
            _ => (12, u32::MAX),
        };
        if len < least || len > most || len % 4 != 0 {
            return Err(Problem::BlockLength { kind, len });
        }
        let known = matches!(
            kind,
            INTERFACE_DESCRIPTION | PACKET | ENHANCED_PACKET | SIMPLE_PACKET | DECRYPTION_SECRETS
        );
        if !known {
            self.tail = Some(len);
            return Ok(Step::Part(u64::from(len) - 4));
        }
        let Some(block) = bytes.get(..len as usize) else { return Ok(Step::Need(len as usize)) };
        match kind {
            INTERFACE_DESCRIPTION => self.interface_description(block, len),
            ENHANCED_PACKET | PACKET => {
                let Some(header) = block.first_chunk::<PACKET_HEADER>() else {
                    return Err(Problem::BlockLength { kind, len });
                };
                let mut header: [u32; 7] = self.order.of_little(words(header));
                if kind == PACKET {
                    header[2] = u32::from(self.order.u16_at(block, 8).unwrap_or(0));
                }
                let step = self.packet(block, header)?;
                self.misdated += u64::from(matches!(step, Step::Pass(_)));
                Ok(step)
            }
            SIMPLE_PACKET => self.simple_packet(block, len),
            _ => self.secrets(block, len),
        }
    }

    /// Frames without a time so far: those of Simple Packet Blocks.
    pub(super) fn timeless(&self) -> u64 {
        self.timeless
    }

    /// Frames so far that were passed over, since their times lie before 1970 or after 2554.
    pub(super) fn misdated(&self) -> u64 {
        self.misdated
    }

    /// Holds the length at the block's end against that at its beginning.
    #[inline(always)]
    fn check_ends(&self, block: &[u8], first: u32) -> Result<(), Problem> {
        match block.last_chunk().map(|chunk| self.order.u32(*chunk)) {
            Some(last) if last == first => Ok(()),
            last => Err(Problem::BlockEnds { first, last: last.unwrap_or(0) }),
        }
    }

    // §4.1. The section's length is not needed: it ends where the next one begins.
    fn section_header(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        let Some(magic) = bytes.get(8..).and_then(<[u8]>::first_chunk::<4>) else {
            return Ok(Step::Need(12));
        };
        let order = match *magic {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => return Err(Problem::ByteOrder),
        };
        let len = order.u32_at(bytes, 4).unwrap_or(0);
        if !(28..=MAX_BLOCK).contains(&len) || len % 4 != 0 {
            return Err(Problem::BlockLength { kind: SECTION_HEADER, len });
        }
        let Some(block) = bytes.get(..len as usize) else { return Ok(Step::Need(len as usize)) };
        self.order = order;
        self.check_ends(block, len)?;
        let version = (order.u16_at(block, 12), order.u16_at(block, 14));
        // Minor 2 is to be read as 0 (§4.1).
        let (Some(1), Some(0 | 2)) = version else {
            let (major, minor) = (version.0.unwrap_or(0), version.1.unwrap_or(0));
            return Err(Problem::Version { major, minor });
        };
        let here = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.interfaces_before = self.interfaces_before.saturating_add(here);
        self.interfaces.clear();
        Ok(Step::Pass(u64::from(len)))
    }

    // §4.2.
    fn interface_description(&mut self, block: &[u8], len: u32) -> Result<Step, Problem> {
        self.check_ends(block, len)?;
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(Problem::TooManyInterfaces);
        }
        let link = u32::from(self.order.u16_at(block, 8).unwrap_or(0));
        let snap_len = self.order.u32_at(block, 12).unwrap_or(0);
        let options = block.get(16..block.len().saturating_sub(4)).unwrap_or_default();
        let clock = self.clock(options)?;
        self.interfaces.push(Interface { link, snap_len, clock });
        Ok(Step::Pass(u64::from(len)))
    }

    /// What an interface's options say of its clock (§3.5, §4.2).
    fn clock(&self, mut options: &[u8]) -> Result<Clock, Problem> {
        let mut clock = Clock::DEFAULT;
        while let (Some(code), Some(len)) =
            (self.order.u16_at(options, 0), self.order.u16_at(options, 2))
        {
            if code == 0 {
                break;
            }
            let len = usize::from(len);
            let value = options.get(4..4 + len).ok_or(Problem::Option(code))?;
            match (code, value) {
                (IF_TSRESOL, [resolution]) => clock.unit = Unit::new(*resolution),
                (IF_TSOFFSET, value) => {
                    let seconds = value.try_into().map_err(|_| Problem::Option(code))?;
                    clock.offset = i128::from(self.order.i64(seconds)) * 1_000_000_000;
                }
                (IF_TSRESOL, _) => return Err(Problem::Option(code)),
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(clock)
    }

    // §4.3, and appendix A: an obsolete block has 16 bits for the interface, and 16 for drops. A frame whose
    // time is impossible is passed over.
    #[inline(always)]
    fn packet(&mut self, block: &[u8], header: [u32; 7]) -> Result<Step, Problem> {
        let [kind, len, number, high, low, captured, original_len] = header;
        if captured > MAX_CAPTURED {
            return Err(Problem::FrameLength(captured));
        }
        // With the length at the end behind it.
        if len % 4 != 0 || PACKET_HEADER as u32 + captured.next_multiple_of(4) + 4 > len {
            return Err(Problem::BlockLength { kind, len });
        }
        self.check_ends(block, len)?;
        let interface = self.interfaces.get(number as usize).ok_or(Problem::Interface(number))?;
        let Some(at) = interface.clock.time(u64::from(high) << 32 | u64::from(low)) else {
            return Ok(Step::Pass(u64::from(len)));
        };
        self.last = at;
        Ok(Step::Frame(Record {
            at,
            link: interface.link,
            interface: self.interfaces_before.saturating_add(number),
            start: PACKET_HEADER as u32,
            captured,
            original_len: original_len.max(captured),
            used: len,
        }))
    }

    // §4.4: of the section's first interface, cut by that one's snap length.
    fn simple_packet(&mut self, block: &[u8], len: u32) -> Result<Step, Problem> {
        const START: u32 = 12;
        self.check_ends(block, len)?;
        let interface = *self.interfaces.first().ok_or(Problem::Interface(0))?;
        let original = self.order.u32_at(block, 8).unwrap_or(0);
        let snap = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let captured = original.min(snap).min(len.saturating_sub(START + 4));
        if captured > MAX_CAPTURED {
            return Err(Problem::FrameLength(captured));
        }
        self.timeless += 1;
        Ok(Step::Frame(Record {
            at: self.last,
            link: interface.link,
            interface: self.interfaces_before,
            start: START,
            captured,
            original_len: original,
            used: len,
        }))
    }

    // §4.7.
    fn secrets(&mut self, block: &[u8], len: u32) -> Result<Step, Problem> {
        const START: usize = 16;
        self.check_ends(block, len)?;
        let secrets = self.order.u32_at(block, 12).unwrap_or(0);
        if secrets > len.saturating_sub(START as u32 + 4) {
            return Err(Problem::BlockLength { kind: DECRYPTION_SECRETS, len });
        }
        if self.order.u32_at(block, 8) != Some(TLS_KEY_LOG) {
            return Ok(Step::Pass(u64::from(len)));
        }
        Ok(Step::KeyLog { start: START, len: secrets as usize, used: len as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(resolution: u8, offset: i128) -> Clock {
        Clock { unit: Unit::new(resolution), offset: offset * 1_000_000_000 }
    }

    // §4.2: 10 to the minus it; with the highest bit, 2 to the minus the rest.
    #[test]
    fn every_resolution_is_exact_to_the_nanosecond() {
        let stamp = 1_700_000_000_123_456_789_u64;
        let cases = [
            (0, 1_700_000_000, 1_700_000_000_000_000_000),
            (3, 1_700_000_000_123, 1_700_000_000_123_000_000),
            (6, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
            (9, stamp, stamp),
            (10, stamp, stamp / 10),
            (12, stamp, stamp / 1_000),
            (28, u64::MAX, 1),
            (29, u64::MAX, 0),
            (127, u64::MAX, 0),
            (0x80, 1_700_000_000, 1_700_000_000_000_000_000),
            (0x80 | 10, 1_700_000_000 << 10 | 1, 1_700_000_000_000_976_562),
            (0x80 | 30, (1_700_000_000 << 30) | (1 << 29), 1_700_000_000_500_000_000),
            (0x80 | 32, u64::MAX, (1 << 32) * 1_000_000_000 - 1),
            (0xff, u64::MAX, 0),
        ];
        for (resolution, stamp, nanos) in cases {
            let time = clock(resolution, 0).time(stamp);
            assert_eq!(time, Some(Time::from_nanos(nanos)), "resolution {resolution:#x}");
        }
    }

    #[test]
    fn offsets_are_whole_seconds_of_either_sign() {
        assert_eq!(
            clock(9, 1_700_000_000).time(7),
            Some(Time::from_nanos(1_700_000_000_000_000_007))
        );
        assert_eq!(clock(6, -1).time(1_000_001), Some(Time::from_nanos(1_000)));
        assert_eq!(clock(12, 1).time(1_999), Some(Time::from_nanos(1_000_000_001)));
        assert_eq!(clock(6, -1).time(999_999), None);
        assert_eq!(clock(6, i128::from(i64::MIN)).time(u64::MAX), None);
        assert_eq!(clock(6, i128::from(i64::MAX)).time(u64::MAX), None);
        assert_eq!(clock(0, 0).time(u64::MAX), None);
        assert_eq!(clock(0x80, i128::from(i64::MAX)).time(u64::MAX), None);
    }
}
