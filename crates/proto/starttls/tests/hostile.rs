//! Any bytes from a server or a proxy.

use proptest::prelude::*;
use starttls::fuzz;

/// Words of all protocols, so that random texts go far.
const WORDS: [&[u8]; 22] = [
    b"220 x\r\n",
    b"250-x\r\n",
    b"250 STARTTLS\r\n",
    b"* OK x\r\n",
    b"* CAPABILITY STARTTLS\r\n",
    b"a1 OK\r\n",
    b"a2 OK\r\n",
    b"+OK\r\n",
    b"STLS\r\n",
    b".\r\n",
    b"234 x\r\n",
    b"S",
    b"N",
    b"<stream:stream>",
    b"<stream:features>",
    b"<starttls/>",
    b"</stream:features>",
    b"<proceed/>",
    b"\"STARTTLS\"\r\n",
    b"OK\r\n",
    b"HTTP/1.1 200 x\r\n\r\n",
    b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0",
];

proptest! {
    #[test]
    fn no_bytes_break_a_dialog(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz::dialog(&bytes);
        fuzz::proxy(&bytes);
    }

    #[test]
    fn no_words_break_a_dialog(
        choice in any::<u8>(),
        cut in 1_u8..20,
        words in proptest::collection::vec(0..WORDS.len(), 0..8),
    ) {
        let mut bytes = vec![choice, cut];
        bytes.extend(words.iter().flat_map(|at| WORDS[*at]));
        fuzz::dialog(&bytes);
        fuzz::proxy(&bytes);
    }
}
