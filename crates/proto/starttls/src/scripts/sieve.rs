//! ManageSieve (RFC 5804 §1.7, §2.2).

use super::{Next, Script, after_word, malformed};
use crate::error::quote_text;
use crate::input::Input;
use crate::{Error, MAX_INPUT, Protocol};

#[derive(Debug, Default)]
pub(super) struct Sieve {
    is_asked: bool,
    is_offered: bool,
    /// Bytes of a literal that still have to be skipped (RFC 5804 §4: `{n}` and `{n+}`).
    literal: usize,
    /// Whether the next line goes on behind a literal.
    is_continued: bool,
}

impl Sieve {
    fn line(&mut self, line: &str) -> Result<Option<Next>, Error> {
        let is_continued = std::mem::replace(&mut self.is_continued, false);
        if let Some(length) = literal(line) {
            if length > MAX_INPUT {
                return Err(Error::TooMuch);
            }
            (self.literal, self.is_continued) = (length, true);
        }
        // A continued line is the end of a string, and no response of its own.
        if is_continued {
            return Ok(None);
        }
        if let Some(name) = line.strip_prefix('"') {
            let (name, _) = name.split_once('"').ok_or_else(|| malformed(Protocol::Sieve, line))?;
            self.is_offered |= !self.is_asked && name.eq_ignore_ascii_case("STARTTLS");
            return Ok(None);
        }
        self.response(line)
    }

    /// OK, NO or BYE.
    fn response(&mut self, line: &str) -> Result<Option<Next>, Error> {
        let reply = || quote_text(line);
        if after_word(line, "OK").is_some() {
            if self.is_continued {
                // A text as a literal would hide plaintext behind the go-ahead.
                return Err(malformed(Protocol::Sieve, line));
            }
            return match (self.is_asked, self.is_offered) {
                (true, _) => Ok(Some(Next::Go(Vec::new()))),
                (false, false) => Err(Error::NotOffered { reply: String::new() }),
                (false, true) => {
                    self.is_asked = true;
                    Ok(Some(Next::Say(b"STARTTLS\r\n".to_vec())))
                }
            };
        }
        if after_word(line, "NO").is_some() && self.is_asked {
            return Err(Error::Refused { reply: reply() });
        }
        if after_word(line, "NO").is_some() || after_word(line, "BYE").is_some() {
            return Err(Error::TurnedAway { reply: reply() });
        }
        Err(malformed(Protocol::Sieve, line))
    }
}

impl Script for Sieve {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        loop {
            if self.literal > 0 {
                if input.take(self.literal).is_none() {
                    return Ok(Next::Wait);
                }
                self.literal = 0;
            }
            let Some(line) = input.line() else { return Ok(Next::Wait) };
            if let Some(next) = self.line(&line)? {
                return Ok(next);
            }
        }
    }

    fn awaited(&self) -> &'static str {
        if self.is_asked { "the answer to STARTTLS" } else { "the ManageSieve capabilities" }
    }
}

/// The length of the literal that a line announces at its end.
fn literal(line: &str) -> Option<usize> {
    let (_, digits) = line.strip_suffix('}')?.rsplit_once('{')?;
    let digits = digits.strip_suffix('+').unwrap_or(digits);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(usize::MAX))
}
