//! Fingerprints of a ClientHello: JA3 (Salesforce, 2017) and JA4 (FoxIO, 2023). Both leave GREASE
//! out. They are computed from the hello itself, of which a record keeps only parts.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use md5::{Digest, Md5};
use wire::tls::{ClientHello, ExtensionKind, Version, is_grease};

use crate::record::Transport;

/// Characters of a hash that JA4 keeps.
const JA4_HASH_LEN: usize = 12;

/// JA4's hash of an empty list.
const JA4_EMPTY: &str = "000000000000";

/// The text that JA3 hashes: version field, cipher suites, extensions, groups and point formats in
/// the order of the hello, as decimal numbers.
#[must_use]
pub fn ja3_text(hello: &ClientHello<'_>) -> String {
    let plain = |code: &u16| !is_grease(*code);
    let mut text = hello.legacy_version().to_string();
    decimals(&mut text, hello.cipher_suites().filter(plain));
    decimals(&mut text, extensions(hello));
    decimals(&mut text, hello.groups());
    decimals(&mut text, hello.ec_point_formats().iter().map(|format| u16::from(*format)));
    text
}

/// JA3: the MD5 of [`ja3_text`] in hexadecimal.
#[must_use]
pub fn ja3(hello: &ClientHello<'_>) -> String {
    hexadecimal(&Md5::digest(ja3_text(hello)))
}

/// JA4: protocol, version, whether a name is asked for, number of suites and extensions, ends of
/// the first application protocol; hashes of the sorted suites, and of the sorted extensions with
/// the signature algorithms.
#[must_use]
pub fn ja4(hello: &ClientHello<'_>, transport: Transport) -> String {
    let mut suites: Vec<u16> = hello.cipher_suites().filter(|code| !is_grease(*code)).collect();
    let mut kinds: Vec<u16> = extensions(hello).collect();
    let mut text = String::with_capacity(36);
    text.push(match transport {
        Transport::Tcp => 't',
        Transport::Quic => 'q',
    });
    text.push_str(version(hello));
    text.push(if kinds.contains(&ExtensionKind::SERVER_NAME.0) { 'd' } else { 'i' });
    let [many_suites, many_kinds] = [suites.len().min(99), kinds.len().min(99)];
    // Writing to a String cannot fail.
    let _ = write!(text, "{many_suites:02}{many_kinds:02}");
    text.extend(protocol_ends(hello.alpn().next().unwrap_or(&[])));
    suites.sort_unstable();
    text.push('_');
    text.push_str(&short_hash(&hexadecimals(suites)));
    kinds.retain(|kind| ![ExtensionKind::SERVER_NAME.0, ExtensionKind::ALPN.0].contains(kind));
    kinds.sort_unstable();
    let mut listed = hexadecimals(kinds);
    let algorithms = hexadecimals(hello.signature_algorithms());
    if !algorithms.is_empty() {
        listed.push('_');
        listed.push_str(&algorithms);
    }
    text.push('_');
    text.push_str(&short_hash(&listed));
    text
}

fn extensions<'a>(hello: &ClientHello<'a>) -> impl Iterator<Item = u16> + use<'a> {
    hello.extensions().iter().map(|extension| extension.kind.0).filter(|code| !is_grease(*code))
}

/// The highest version offered, in two characters.
fn version(hello: &ClientHello<'_>) -> &'static str {
    match hello.versions().max() {
        Some(Version::TLS13) => "13",
        Some(Version::TLS12) => "12",
        Some(Version::TLS11) => "11",
        Some(Version::TLS10) => "10",
        Some(Version::SSL30) => "s3",
        Some(Version(0x0002)) => "s2",
        _ => "00",
    }
}

/// The first and the last character of a protocol's name; of its hexadecimal form if one of them is
/// neither letter nor digit.
fn protocol_ends(name: &[u8]) -> [char; 2] {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return ['0', '0'] };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [char::from(*first), char::from(*last)];
    }
    [nibble(first >> 4), nibble(last & 15)]
}

fn nibble(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0')
}

fn decimals(text: &mut String, codes: impl Iterator<Item = u16>) {
    text.push(',');
    for (place, code) in codes.enumerate() {
        let _ = write!(text, "{}{code}", if place == 0 { "" } else { "-" });
    }
}

fn hexadecimals(codes: impl IntoIterator<Item = u16>) -> String {
    let mut text = String::new();
    for code in codes {
        let _ = write!(text, "{}{code:04x}", if text.is_empty() { "" } else { "," });
    }
    text
}

fn short_hash(text: &str) -> String {
    if text.is_empty() {
        return JA4_EMPTY.to_owned();
    }
    let mut hash = hexadecimal(digest(&SHA256, text.as_bytes()).as_ref());
    hash.truncate(JA4_HASH_LEN);
    hash
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [nibble(byte >> 4), nibble(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::tls::{ClientHelloRepr, Extension, body};

    fn message(version: u16, suites: &[u16], bodies: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let repr = ClientHelloRepr {
            legacy_version: version,
            random: [1; 32],
            session_id: &[],
            cipher_suites: suites.to_vec(),
            extensions: bodies
                .iter()
                .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
                .collect(),
        };
        let mut message = vec![0; repr.buffer_len()];
        repr.emit(&mut message).unwrap();
        message.split_off(4)
    }

    /// The two examples of JA3's description.
    #[test]
    fn ja3_as_published() {
        let bodies = [
            (0, body::server_name("example.org")),
            (10, body::supported_groups(&[23, 24, 25])),
            (11, vec![1, 0]),
        ];
        let suites = [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4];
        let bytes = message(769, &suites, &bodies);
        let hello = ClientHello::new_checked(&bytes).unwrap();
        assert_eq!(
            ja3_text(&hello),
            "769,47-53-5-10-49161-49162-49171-49172-50-56-19-4,0-10-11,23-24-25,0"
        );
        assert_eq!(ja3(&hello), "ada70206e40642a3e4461f35503241d5");
        let bytes = message(769, &[4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99], &[]);
        let hello = ClientHello::new_checked(&bytes).unwrap();
        assert_eq!(ja3_text(&hello), "769,4-5-10-9-100-98-3-6-19-18-99,,,");
        assert_eq!(ja3(&hello), "de350869b8c85de67a350c8d186f11e6");
    }

    const CHROME_SUITES: [u16; 16] = [
        0x5a5a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
        0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
    ];

    fn chrome() -> Vec<(u16, Vec<u8>)> {
        let algorithms = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
        let mut bodies = vec![
            (0x1a1a, vec![]),
            (0, body::server_name("example.org")),
            (13, body::supported_groups(&algorithms)),
            (16, body::alpn(&[b"h2", b"http/1.1"])),
            (43, body::supported_versions(&[0x2a2a, 0x0304, 0x0303])),
        ];
        let others = [0x17, 0xff01, 0x0a, 0x0b, 0x23, 0x05, 0x12, 0x33, 0x2d, 0x1b, 0x4469, 0x15];
        bodies.extend(others.map(|kind| (kind, vec![])));
        bodies.push((0xfafa, vec![0]));
        bodies
    }

    /// The example of JA4's description: Chrome.
    #[test]
    fn ja4_as_published() {
        let bytes = message(0x0303, &CHROME_SUITES, &chrome());
        let hello = ClientHello::new_checked(&bytes).unwrap();
        assert_eq!(ja4(&hello, Transport::Tcp), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        assert_eq!(ja4(&hello, Transport::Quic), "q13d1516h2_8daaf6152771_e5627efa2ab1");
    }

    #[test]
    fn ja4_of_a_bare_hello_and_of_a_full_one() {
        let bytes = message(0x0301, &[0x2f], &[]);
        let hello = ClientHello::new_checked(&bytes).unwrap();
        let suites = short_hash("002f");
        assert_eq!(ja4(&hello, Transport::Tcp), format!("t10i010000_{suites}_{JA4_EMPTY}"));
        let many: Vec<(u16, Vec<u8>)> = (0x100..0x180).map(|kind| (kind, vec![])).collect();
        let suites: Vec<u16> = (1..=120).collect();
        let bytes = message(0x0303, &suites, &many);
        let hello = ClientHello::new_checked(&bytes).unwrap();
        assert!(ja4(&hello, Transport::Tcp).starts_with("t12i999900_"));
    }

    /// The cases of JA4's description.
    #[test]
    fn ends_of_a_protocol_name() {
        let cases: [(&[u8], [char; 2]); 8] = [
            (b"", ['0', '0']),
            (b"h2", ['h', '2']),
            (b"x", ['x', 'x']),
            (&[0xab], ['a', 'b']),
            (&[0xab, 0xcd], ['a', 'd']),
            (&[0x30, 0xab], ['3', 'b']),
            (&[0x30, 0x31, 0xab, 0xcd], ['3', 'd']),
            (&[0x30, 0xab, 0xcd, 0x31], ['0', '1']),
        ];
        for (name, expected) in cases {
            assert_eq!(protocol_ends(name), expected, "{name:?}");
        }
    }
}
