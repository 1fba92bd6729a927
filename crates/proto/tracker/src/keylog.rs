//! Secrets of TLS connections, as programs write them to the file that `SSLKEYLOGFILE` names
//! (RFC 9850): lines of a label, the client's random and a secret, in hexadecimal.
//!
//! Editors and shells change such files, so more is read than RFC 9850 §2 has: a byte order mark, UTF-16,
//! line ends of any system, several spaces or tabs, digits of either case.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The longest secret: a SHA-384 hash.
const SECRET_MAX: usize = 48;
/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A secret of one direction and epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    bytes: [u8; SECRET_MAX],
    len: usize,
}

impl Secret {
    /// A secret of at most 48 bytes.
    pub(crate) fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; SECRET_MAX];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Secret { bytes, len: from.len() })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.len)
    }
}

/// The secrets of a connection, so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Secrets {
    pub(crate) client_early: Option<Secret>,
    pub(crate) client_handshake: Option<Secret>,
    pub(crate) server_handshake: Option<Secret>,
    pub(crate) client_traffic: Option<Secret>,
    pub(crate) server_traffic: Option<Secret>,
    /// TLS 1.2's master secret.
    pub(crate) master: Option<Secret>,
}

/// What the lines of a [`KeyLog`] were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyLogCounters {
    /// Secrets that were kept.
    pub taken: u64,
    /// Blank lines, comments and labels that are of no use here: TLS 1.2's, where only TLS 1.3 is read.
    pub ignored: u64,
    /// Lines that cannot be read.
    pub malformed: u64,
    /// Secrets of further connections, once there were as many as allowed.
    pub over_limit: u64,
}

/// The secrets of TLS connections by their clients' randoms.
#[derive(Debug, Clone)]
pub struct KeyLog {
    /// Whether TLS 1.2's master secrets are taken too.
    tls12: bool,
    secrets: BTreeMap<[u8; 32], Secrets>,
    connections: usize,
    counters: KeyLogCounters,
}

impl KeyLog {
    /// An empty log that takes the TLS 1.3 secrets of so many connections at most: about 400 bytes each.
    #[must_use]
    pub const fn new(connections: usize) -> Self {
        let counters = KeyLogCounters { taken: 0, ignored: 0, malformed: 0, over_limit: 0 };
        KeyLog { tls12: false, secrets: BTreeMap::new(), connections, counters }
    }

    /// The same for TLS 1.2's master secrets too (the label `CLIENT_RANDOM`).
    #[must_use]
    pub(crate) const fn with_tls12(mut self) -> Self {
        self.tls12 = true;
        self
    }

    /// Takes the lines of a text, which may be a part of a file that ends with a line. UTF-16 is known by its
    /// byte order mark.
    pub fn read(&mut self, text: &[u8]) {
        let text = of_utf16(text);
        for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
            if !line.is_empty() {
                self.read_line(line);
            }
        }
    }

    /// Takes a line, with or without its end.
    pub fn read_line(&mut self, line: &[u8]) {
        // Files that were joined have a byte order mark in their middle.
        let line = line.trim_ascii();
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            self.counters.ignored += 1;
            return;
        }
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words = [words.next(), words.next(), words.next(), words.next()];
        let [Some(label), Some(random), Some(secret), None] = words else {
            self.counters.malformed += 1;
            return;
        };
        let Some(place) = place(label).filter(|_| self.tls12 || label != MASTER) else {
            self.counters.ignored += 1;
            return;
        };
        let read = || {
            let mut bytes = [0; SECRET_MAX];
            let random: [u8; 32] = hexadecimal(random, &mut bytes)?.try_into().ok()?;
            let secret = Secret::new(hexadecimal(secret, &mut bytes)?)?;
            // SHA-256's and SHA-384's: TLS 1.3 has no other hashes. A master secret has 48 bytes
            // (RFC 5246 §8.1).
            let fits = secret.len == 48 || (secret.len == 32 && label != MASTER);
            fits.then_some((random, secret))
        };
        let Some((random, secret)) = read() else {
            self.counters.malformed += 1;
            return;
        };
        if self.secrets.len() >= self.connections && !self.secrets.contains_key(&random) {
            self.counters.over_limit += 1;
            return;
        }
        self.counters.taken += 1;
        *place(self.secrets.entry(random).or_default()) = Some(secret);
    }

    /// What its lines were.
    #[must_use]
    pub const fn counters(&self) -> KeyLogCounters {
        self.counters
    }

    /// Connections of which it has secrets.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.secrets.len()
    }

    /// The secrets of the connection with this client random.
    pub(crate) fn find(&self, random: &[u8; 32]) -> Option<&Secrets> {
        self.secrets.get(random)
    }
}

/// The text in ASCII where it is UTF-16 with a byte order mark; else as it is. A character beyond ASCII
/// becomes 0xff, which no secret has.
fn of_utf16(text: &[u8]) -> Cow<'_, [u8]> {
    let (units, order): (_, fn([u8; 2]) -> u16) = match text {
        [0xff, 0xfe, units @ ..] => (units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] => (units, u16::from_be_bytes),
        _ => return Cow::Borrowed(text),
    };
    let (units, _) = units.as_chunks::<2>();
    let ascii = |unit: &[u8; 2]| match order(*unit) {
        // A mark in the middle.
        0xfeff => b'\n',
        unit => u8::try_from(unit).unwrap_or(0xff),
    };
    Cow::Owned(units.iter().map(ascii).collect())
}

/// The label of TLS 1.2's master secret.
const MASTER: &[u8] = b"CLIENT_RANDOM";

/// Which secret a label names.
fn place(label: &[u8]) -> Option<fn(&mut Secrets) -> &mut Option<Secret>> {
    Some(match label {
        b"CLIENT_EARLY_TRAFFIC_SECRET" => |secrets| &mut secrets.client_early,
        b"CLIENT_HANDSHAKE_TRAFFIC_SECRET" => |secrets| &mut secrets.client_handshake,
        b"SERVER_HANDSHAKE_TRAFFIC_SECRET" => |secrets| &mut secrets.server_handshake,
        b"CLIENT_TRAFFIC_SECRET_0" => |secrets| &mut secrets.client_traffic,
        b"SERVER_TRAFFIC_SECRET_0" => |secrets| &mut secrets.server_traffic,
        MASTER => |secrets| &mut secrets.master,
        _ => return None,
    })
}

fn hexadecimal<'o>(text: &[u8], out: &'o mut [u8; SECRET_MAX]) -> Option<&'o [u8]> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let out = out.get_mut(..pairs.len())?;
    for (to, [high, low]) in out.iter_mut().zip(pairs) {
        *to = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(label: &str, random: u8, secret: &str) -> String {
        format!("{label} {} {secret}\n", format!("{random:02x}").repeat(32))
    }

    #[test]
    fn labels_of_tls_1_3_are_taken_and_others_passed_over() {
        let text = [
            "# a comment\n\n".to_owned(),
            line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 1, &"aB".repeat(32)),
            line("SERVER_TRAFFIC_SECRET_0", 1, &"01".repeat(48)).replace('\n', "\r\n"),
            line("CLIENT_RANDOM", 1, &"01".repeat(48)),
            line("CLIENT_TRAFFIC_SECRET_0", 2, &"01".repeat(47)),
            line("CLIENT_TRAFFIC_SECRET_0", 2, &"0g".repeat(32)),
            line("CLIENT_TRAFFIC_SECRET_0", 2, "0"),
            line("CLIENT_TRAFFIC_SECRET_0", 3, &"77".repeat(32)),
            "CLIENT_TRAFFIC_SECRET_0\n".to_owned(),
        ]
        .concat();
        let mut log = KeyLog::new(1);
        log.read(text.as_bytes());
        let expected = KeyLogCounters { taken: 2, ignored: 2, malformed: 4, over_limit: 1 };
        assert_eq!((log.counters(), log.connections()), (expected, 1));
        let secrets = log.find(&[1; 32]).unwrap();
        assert_eq!(secrets.client_handshake.unwrap().bytes(), [0xab; 32]);
        assert_eq!(secrets.server_traffic.unwrap().bytes(), [1; 48]);
        assert!(secrets.client_traffic.is_none() && log.find(&[3; 32]).is_none());
        assert!(!format!("{log:?}").contains("171, 171"), "a secret is shown");
    }

    #[test]
    fn master_secrets_are_taken_where_they_are_asked_for() {
        let mut log = KeyLog::new(2).with_tls12();
        log.read(line("CLIENT_RANDOM", 1, &"01".repeat(48)).as_bytes());
        log.read(line("CLIENT_RANDOM", 2, &"01".repeat(32)).as_bytes());
        let expected = KeyLogCounters { taken: 1, malformed: 1, ..KeyLogCounters::default() };
        assert_eq!(log.counters(), expected);
        assert_eq!(log.find(&[1; 32]).unwrap().master.unwrap().bytes(), [1; 48]);
    }

    #[test]
    fn files_that_editors_and_shells_changed_are_read() {
        let lines = [
            line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 1, &"ab".repeat(48)),
            line("SERVER_HANDSHAKE_TRAFFIC_SECRET", 1, &"cd".repeat(48)),
        ];
        let plain = lines.concat();
        let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            let text = format!("\u{feff}{text}");
            text.encode_utf16().flat_map(bytes).collect()
        };
        let crlf = plain.replace('\n', "\r\n");
        let changed: Vec<(&str, Vec<u8>)> = vec![
            ("byte order mark", format!("\u{feff}{plain}").into()),
            ("joined files", lines.map(|line| format!("\u{feff}{line}")).concat().into()),
            ("mark and CRLF", format!("\u{feff}{crlf}").into()),
            ("CRLF", crlf.clone().into()),
            ("CR", plain.replace('\n', "\r").into()),
            ("many spaces", plain.replace(' ', &" ".repeat(200)).into()),
            ("tabs", plain.replace(' ', "\t").into()),
            ("indented", plain.replace("CLIENT", " \t CLIENT").replace('\n', " \t\n").into()),
            ("upper case", plain.replace("ab", "AB").replace("cd", "Cd").into()),
            ("no last line end", plain.trim_end().into()),
            ("blank lines", plain.replace('\n', "\n\n").into()),
            ("UTF-16, little-endian", utf16(&crlf, u16::to_le_bytes)),
            ("UTF-16, big-endian", utf16(&plain, u16::to_be_bytes)),
        ];
        for (what, text) in changed {
            let mut log = KeyLog::new(1);
            log.read(&text);
            let counters = log.counters();
            assert_eq!((counters.taken, counters.malformed), (2, 0), "{what}");
            let secrets = log.find(&[1; 32]).unwrap();
            assert_eq!(secrets.client_handshake.unwrap().bytes(), [0xab; 48], "{what}");
            assert_eq!(secrets.server_handshake.unwrap().bytes(), [0xcd; 48], "{what}");
        }
    }

    proptest! {
        #[test]
        fn any_lines_do_no_harm(text in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut log = KeyLog::new(4);
            log.read(&text);
            let labelled = [&b"SERVER_TRAFFIC_SECRET_0 "[..], &text].concat();
            log.read(&labelled);
            prop_assert!(log.connections() <= 4);
        }
    }
}
