//! Texts of strangers, fit for a terminal, a page and the line that quotes them.

use std::borrow::Cow;

/// The stand-in for a character that steers.
const INSTEAD: char = char::REPLACEMENT_CHARACTER;

/// Whether a character could steer a terminal or reorder the text around it.
///
/// These are the control characters except line feed and tab, the bidirectional controls of UAX #9,
/// the line and paragraph separators, and the byte order mark.
#[must_use]
pub const fn steers(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{8}'
            | '\u{B}'..='\u{1F}'
            | '\u{7F}'..='\u{9F}'
            | '\u{61C}'
            | '\u{200E}'
            | '\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2066}'..='\u{206F}'
            | '\u{FEFF}'
    )
}

/// Replaces each character that [`steers`] by U+FFFD, so that it is seen and does nothing.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    replaced(text, |c| if steers(c) { INSTEAD } else { c })
}

/// As [`plain`], on one line: line breaks and tabs become spaces.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    replaced(text, in_line)
}

/// The first `most` characters as [`one_line`] shows them; `…` marks a cut.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> String {
    let mut rest = text.chars();
    let mut out: String = rest.by_ref().take(most).map(in_line).collect();
    if rest.next().is_some() {
        out.push('…');
    }
    out
}

/// A text as a cell of a spreadsheet, which takes it for no formula: `'` stands before what begins one.
/// Not for numbers.
#[must_use]
pub fn cell(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

fn in_line(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' => ' ',
        c if steers(c) => INSTEAD,
        c => c,
    }
}

fn replaced(text: &str, by: impl Fn(char) -> char) -> Cow<'_, str> {
    if text.chars().all(|c| by(c) == c) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().map(by).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_shown_and_not_obeyed() {
        let text = "a\u{1b}[31mb\u{9b}2J\u{202e}c\0\x7f\u{feff}\u{2028}\r\té\n";
        let shown =
            "a\u{fffd}[31mb\u{fffd}2J\u{fffd}c\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\té\n";
        assert_eq!(plain(text), shown);
        assert!((0..0x20).all(|c| matches!(c, 9 | 10) || steers(char::from(c))));
        assert!((0x7f..0xa0).all(|c| steers(char::from(c))));
        assert!(matches!(plain("as it is: äöü\t…\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(one_line("a\nb\tc\r\nd\u{2029}e"), "a b c  d\u{fffd}e");
        assert_eq!(excerpt("a\nbcdef", 4), "a bc…");
        assert_eq!(excerpt("äbc", 3), "äbc");
        assert_eq!(excerpt("", 3), "");
    }

    #[test]
    fn a_cell_begins_no_formula() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(cell(text), format!("'{text}"));
        }
        for text in ["", "a=1", "example.org", "'=1", " =1", "1-1"] {
            assert_eq!(cell(text), text);
        }
    }
}
