//! Replies with a code of three digits (RFC 5321 §4.2, RFC 959 §4.2, RFC 3977 §3.2).

use crate::error::quote_text;
use crate::input::Input;

/// A reply, whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub code: u16,
    /// The texts behind the code, line by line.
    pub lines: Vec<String>,
}

impl Reply {
    /// The code and the first text, for people.
    pub fn quoted(&self) -> String {
        let text = self.lines.first().map_or("", String::as_str);
        quote_text(&format!("{} {text}", self.code))
    }
}

/// Lines of a reply that is not whole yet.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    code: Option<u16>,
    lines: Vec<String>,
    /// Whether lines in the middle may lack the code, as in FTP (RFC 959 §4.2).
    is_free_inside: bool,
}

impl Replies {
    pub fn free_inside() -> Self {
        Self { is_free_inside: true, ..Self::default() }
    }

    /// Takes the next whole reply; the error is a line that belongs to none.
    pub fn next(&mut self, input: &mut Input) -> Result<Option<Reply>, String> {
        while let Some(line) = input.line() {
            match (split(&line), self.code) {
                (Some((code, is_last, text)), None) => {
                    self.lines.push(text.to_owned());
                    self.code = Some(code);
                    if is_last {
                        return Ok(self.whole());
                    }
                }
                (Some((code, is_last, text)), Some(first)) if code == first => {
                    self.lines.push(text.to_owned());
                    if is_last {
                        return Ok(self.whole());
                    }
                }
                (_, Some(_)) if self.is_free_inside => self.lines.push(line),
                _ => return Err(line),
            }
        }
        Ok(None)
    }

    fn whole(&mut self) -> Option<Reply> {
        Some(Reply { code: self.code.take()?, lines: std::mem::take(&mut self.lines) })
    }
}

/// Code, whether it is the last line, and text.
fn split(line: &str) -> Option<(u16, bool, &str)> {
    let (digits, rest) = line.split_at_checked(3)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let code = digits.parse().ok()?;
    match rest.chars().next() {
        None => Some((code, true, "")),
        Some(' ') => Some((code, true, rest.get(1..)?)),
        Some('-') => Some((code, false, rest.get(1..)?)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(replies: &mut Replies, text: &str) -> Result<Option<Reply>, String> {
        let mut input = Input::default();
        assert!(input.push(text.as_bytes()));
        replies.next(&mut input)
    }

    #[test]
    fn replies_of_several_lines() {
        let reply = read(&mut Replies::default(), "250-a\r\n250-STARTTLS\r\n250 b\r\n");
        let reply = reply.unwrap().unwrap();
        assert_eq!((reply.code, reply.lines.len()), (250, 3));
        assert_eq!(read(&mut Replies::default(), "250-a\r\n250"), Ok(None));
        assert!(read(&mut Replies::default(), "250-a\r\n251 b\r\n").is_err());
        for wrong in ["25 x\r\n", "+OK\r\n", "2500\r\n", "\r\n", "25\u{e9}\r\n"] {
            assert!(read(&mut Replies::default(), wrong).is_err(), "{wrong:?}");
        }
        let ftp =
            read(&mut Replies::free_inside(), "220-Welcome\r\n  to 220 \r\nFTP\r\n220 end\r\n");
        assert_eq!(ftp.unwrap().unwrap().lines.len(), 4);
    }
}
