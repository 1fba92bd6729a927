//! HPACK's Huffman code (RFC 7541 §5.2, Appendix B). The code is canonical: codes of one length ascend with
//! their symbols, and follow those of the length before. The lengths say all.

/// Bits of each symbol's code; the last is EOS.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const EOS: u16 = 256;
/// The longest code, in bits.
const LONGEST: usize = 30;

/// The codes of one length: the first of them, how many there are, and where their symbols begin.
#[derive(Clone, Copy)]
struct Codes {
    first: u32,
    count: u32,
    symbols: usize,
}

struct Tables {
    /// The symbol and the length of a code of at most 8 bits, by the next 8 bits; length 0 if it is longer.
    short: [(u8, u8); 256],
    by_length: [Codes; LONGEST + 1],
    /// Symbols by length, then by number.
    symbols: [u16; 257],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut made = Tables {
        short: [(0, 0); 256],
        by_length: [Codes { first: 0, count: 0, symbols: 0 }; LONGEST + 1],
        symbols: [0; 257],
    };
    let (mut code, mut place, mut length) = (0u32, 0, 1);
    while length <= LONGEST {
        code <<= 1;
        made.by_length[length] = Codes { first: code, count: 0, symbols: place };
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                made.symbols[place] = symbol as u16;
                if length <= 8 {
                    let (from, span) = ((code as usize) << (8 - length), 1 << (8 - length));
                    let mut at = from;
                    while at < from + span {
                        made.short[at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                made.by_length[length].count += 1;
                place += 1;
                code += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    made
}

/// Decodes a string, byte by byte into `take`. Returns `None` of a string that is not encoded so: EOS in it,
/// or padding that is not the first bits of EOS, or longer than 7 bits (RFC 7541 §5.2).
pub(super) fn decode(encoded: &[u8], mut take: impl FnMut(u8)) -> Option<()> {
    let (mut bits, mut have) = (0u64, 0u32);
    for byte in encoded {
        bits = bits << 8 | u64::from(*byte);
        have += 8;
        while have >= 8 {
            let next = (bits >> (have - 8)) as u8;
            match TABLES.short.get(usize::from(next)) {
                Some((symbol, length @ 1..)) => {
                    take(*symbol);
                    have -= u32::from(*length);
                }
                _ => match long(bits, have)? {
                    Some((symbol, length)) => {
                        take(symbol);
                        have -= length;
                    }
                    None => break,
                },
            }
        }
    }
    while have > 0 && have < 8 {
        let ones = 0xff_u64 >> have;
        let next = ((bits << (8 - have)) | ones) as u8;
        let (symbol, length) = TABLES.short.get(usize::from(next))?;
        if *length == 0 || u32::from(*length) > have {
            break;
        }
        take(*symbol);
        have -= u32::from(*length);
    }
    let ones = (1u64 << have.min(8)) - 1;
    (have < 8 && bits & ones == ones).then_some(())
}

/// The code of more than 8 bits that the last `have` of `bits` begin with: its symbol and length; the inner
/// `None` where more bits are needed.
fn long(bits: u64, have: u32) -> Option<Option<(u8, u32)>> {
    for length in 9..=LONGEST as u32 {
        if length > have {
            return Some(None);
        }
        let code = ((bits >> (have - length)) & ((1 << length) - 1)) as u32;
        let codes = TABLES.by_length.get(length as usize)?;
        let at = code.checked_sub(codes.first).filter(|at| *at < codes.count);
        if let Some(at) = at {
            let symbol = *TABLES.symbols.get(codes.symbols + at as usize)?;
            return if symbol == EOS { None } else { Some(Some((symbol as u8, length))) };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(encoded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(encoded, |byte| text.push(byte)).map(|()| text)
    }

    /// The code of a symbol, by the lengths alone.
    fn code(symbol: usize) -> (u32, u32) {
        let length = usize::from(LENGTHS[symbol]);
        let codes = TABLES.by_length[length];
        let before = (0..symbol).filter(|other| usize::from(LENGTHS[*other]) == length).count();
        (codes.first + before as u32, length as u32)
    }

    fn encode(text: &[u8]) -> Vec<u8> {
        let mut bits = String::new();
        for byte in text {
            let (code, length) = code(usize::from(*byte));
            bits += &format!("{code:0length$b}", length = length as usize);
        }
        while !bits.len().is_multiple_of(8) {
            bits.push('1');
        }
        bits.as_bytes()
            .chunks(8)
            .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
            .collect()
    }

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        // RFC 7541 §C.4.1, §C.4.2, §C.6.1.
        let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(text(&host).unwrap(), b"www.example.com");
        assert_eq!(text(&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]).unwrap(), b"no-cache");
        assert_eq!(text(&[0x64, 0x02]).unwrap(), b"302");
        assert_eq!(text(&[]).unwrap(), b"");
        // Appendix B: some codes as they are printed there.
        for (symbol, printed) in [
            (0, (0x1ff8, 13)),
            (b'0' as usize, (0x0, 5)),
            (b'\\' as usize, (0x7fff0, 19)),
            (255, (0x3ffffee, 26)),
            (256, (0x3fff_ffff, 30)),
        ] {
            assert_eq!(code(symbol), printed, "{symbol}");
        }
    }

    #[test]
    fn wrong_padding_and_eos_are_refused() {
        for wrong in [
            // Padding of zeros, of 8 bits, and EOS.
            &[0b0000_0000][..],
            &[0b0000_0111, 0xff],
            &[0xff],
            &[0xff, 0xff, 0xff, 0xff],
            &[0xff, 0xff, 0xff, 0xfc],
        ] {
            assert_eq!(text(wrong), None, "{wrong:x?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(text(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = text(&bytes);
        }
    }
}
