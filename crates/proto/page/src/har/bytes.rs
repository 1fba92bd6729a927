//! A HAR file's bytes as JSON text: unpacked, decoded, and mended where one value is no JSON.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use crate::har::{HarError, MAX_TEXT};

/// RFC 1952 §2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The signature of a ZIP file's first entry (APPNOTE 4.3.7).
const ZIP: [u8; 4] = *b"PK\x03\x04";
/// Most files of an archive: one per response, as Playwright keeps bodies.
const MAX_FILES: usize = 100_000;

pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, HarError> {
    let unpacked = if bytes.starts_with(&GZIP) {
        Cow::Owned(bounded(MultiGzDecoder::new(bytes))?)
    } else if bytes.starts_with(&ZIP) {
        Cow::Owned(from_archive(bytes)?)
    } else {
        Cow::Borrowed(bytes)
    };
    if unpacked.len() > MAX_TEXT {
        return Err(HarError::TooLong(unpacked.len()));
    }
    let decoded = match unpacked {
        Cow::Borrowed(bytes) => decoded(bytes),
        Cow::Owned(bytes) => Cow::Owned(decoded(&bytes).into_owned()),
    };
    Ok(match mended(&decoded) {
        None => decoded,
        Some(mended) => Cow::Owned(mended),
    })
}

fn packed(error: impl std::fmt::Display) -> HarError {
    HarError::Packed(error.to_string())
}

/// All that a decoder gives, one byte more than allowed at most.
fn bounded(from: impl Read) -> Result<Vec<u8>, HarError> {
    let mut bytes = Vec::new();
    from.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(packed)?;
    Ok(bytes)
}

/// Returns the only HAR file of an archive; the bodies beside it are ignored.
fn from_archive(bytes: &[u8]) -> Result<Vec<u8>, HarError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(packed)?;
    if archive.len() > MAX_FILES {
        return Err(packed(format!("it has more than {MAX_FILES} files")));
    }
    let is_har = |name: &str| name.to_ascii_lowercase().ends_with(".har");
    let names: Vec<_> =
        archive.file_names().filter(|name| is_har(name)).map(str::to_owned).take(2).collect();
    let name = match names.as_slice() {
        [name] => name,
        [first, second, ..] => {
            return Err(packed(format!("it holds more than one HAR file: {first}, {second}")));
        }
        [] => return Err(packed("no file in it has a name that ends with .har")),
    };
    bounded(archive.by_name(name).map_err(packed)?)
}

/// UTF-16 by its byte order mark, or by the zero byte beside its first character; else UTF-8. What is
/// neither becomes U+FFFD. The mark itself is left out.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(of_utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(of_utf16(rest, u16::from_be_bytes)),
        [1..=0xff, 0, ..] => Cow::Owned(of_utf16(bytes, u16::from_le_bytes)),
        [0, 1..=0xff, ..] => Cow::Owned(of_utf16(bytes, u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => String::from_utf8_lossy(bytes),
    }
}

fn of_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The text with every value that is no JSON replaced; `None` if there is no such value.
fn mended(text: &str) -> Option<String> {
    let mut mended = String::new();
    // Where the part begins that is not copied yet.
    let mut copied = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let (end, replaced) = match byte {
            b'"' => {
                let end = string_end(bytes, at + 1);
                (end, text.get(at..end).and_then(string))
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                let end = at + bytes.iter().skip(at).take_while(|byte| is_of_word(**byte)).count();
                let valid = text.get(at..end).is_none_or(is_value);
                (end, (!valid).then(|| "null".to_owned()))
            }
            _ => (at + 1, None),
        };
        if let Some(replaced) = replaced {
            mended.push_str(text.get(copied..at).unwrap_or_default());
            mended.push_str(&replaced);
            copied = end;
        }
        at = end;
    }
    (copied > 0).then(|| mended + text.get(copied..).unwrap_or_default())
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn is_value(word: &str) -> bool {
    matches!(word, "true" | "false" | "null") || serde_json::from_str::<f64>(word).is_ok()
}

/// The place behind a string whose content begins at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A string of JSON, its quotes included, with what JSON forbids in it replaced; `None` if that is nothing.
fn string(text: &str) -> Option<String> {
    if !text.contains(|c: char| c == '\\' || c.is_ascii_control()) {
        return None;
    }
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\\' => escape(rest, &mut mended),
            c if c.is_ascii_control() => {
                mended.push(' ');
                1
            }
            c => {
                mended.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    (mended != text).then_some(mended)
}

/// Writes the escape at the beginning of `text`, and returns the number of bytes that it takes.
fn escape(text: &str, to: &mut String) -> usize {
    let mut keep = |length: usize| {
        to.push_str(text.get(..length).unwrap_or(text));
        length
    };
    let valid = text.chars().nth(1).is_some_and(|c| "\"\\/bfnrt".contains(c));
    if valid {
        return keep(2);
    }
    match (unit(text), text.get(6..).and_then(unit)) {
        // A pair of surrogates (RFC 8259 §7).
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => keep(12),
        (Some(0xd800..=0xdfff), _) => {
            to.push(char::REPLACEMENT_CHARACTER);
            6
        }
        (Some(_), _) => keep(6),
        // No escape at all: without the backslash it is the character itself.
        (None, _) => 1,
    }
}

/// The unit of UTF-16 that `\u` and four digits write.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_no_json_are_mended_and_nothing_else() {
        for (text, mend) in [
            (
                r#"{"a": NaN, "b": -Infinity, "c": undefined}"#,
                r#"{"a": null, "b": null, "c": null}"#,
            ),
            (r#"[1e999, -1e999, 007, +1, .5]"#, "[null, null, null, null, null]"),
            (
                r#"["\ud83d", "\udc00x", "\ud83d\n"]"#,
                "[\"\u{fffd}\", \"\u{fffd}x\", \"\u{fffd}\\n\"]",
            ),
            (r#"["\x41", "\'"]"#, r#"["x41", "'"]"#),
            ("[\"a\tb\"]", r#"["a b"]"#),
        ] {
            assert_eq!(mended(text).as_deref(), Some(mend), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(mend).is_ok(), "{mend}");
        }
        for text in [
            r#"{"a": [1, -2.5e3, true, false, null], "NaN": "NaN \" \\", "b": "\ud83d\ude00 \u00e9"}"#,
            "",
        ] {
            assert_eq!(mended(text), None, "{text}");
        }
        // Cut off anywhere, it stays an error.
        for cut in ["{\"a\": \"b\\", "\"\\u12", "\"\\", "{\"a\": N"] {
            let text = mended(cut).unwrap_or(cut.to_owned());
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_err(), "{cut}");
        }
    }

    #[test]
    fn text_is_decoded_by_its_mark_or_its_zeros() {
        let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(unit).collect()
        };
        for bytes in [
            b"{\"e\": \"\xc3\xa9\"}".to_vec(),
            b"\xef\xbb\xbf{\"e\": \"\xc3\xa9\"}".to_vec(),
            utf16("{\"e\": \"\u{e9}\"}", u16::to_le_bytes),
            utf16("\u{feff}{\"e\": \"\u{e9}\"}", u16::to_le_bytes),
            utf16("{\"e\": \"\u{e9}\"}", u16::to_be_bytes),
            utf16("\u{feff}{\"e\": \"\u{e9}\"}", u16::to_be_bytes),
        ] {
            assert_eq!(text(&bytes).unwrap(), "{\"e\": \"\u{e9}\"}", "{bytes:x?}");
        }
        assert_eq!(text(b"\"\xe9\"").unwrap(), "\"\u{fffd}\"");
        assert_eq!(text(b"").unwrap(), "");
    }
}
