//! IMAP (RFC 9051 §6.1.1, §6.2.1; RFC 2595 §3).

use super::{Next, Script, after_word, malformed};
use crate::error::quote_text;
use crate::input::Input;
use crate::{Error, Protocol};

/// The message that is awaited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Awaited {
    #[default]
    Greeting,
    Capability,
    Starttls,
}

#[derive(Debug, Default)]
pub(super) struct Imap {
    awaited: Awaited,
    is_offered: bool,
}

impl Imap {
    fn greeting(&mut self, line: &str) -> Result<Option<Next>, Error> {
        let Some(status) = line.strip_prefix("* ") else {
            return Err(malformed(Protocol::Imap, line));
        };
        if after_word(status, "OK").is_some() {
            self.awaited = Awaited::Capability;
            return Ok(Some(Next::Say(b"a1 CAPABILITY\r\n".to_vec())));
        }
        if after_word(status, "PREAUTH").is_some() {
            return Err(Error::Preauthenticated);
        }
        match after_word(status, "BYE") {
            Some(_) => Err(Error::TurnedAway { reply: quote_text(status) }),
            None => Err(malformed(Protocol::Imap, line)),
        }
    }

    /// A response without a tag (RFC 9051 §7).
    fn untagged(&mut self, data: &str) -> Result<Option<Next>, Error> {
        if after_word(data, "BYE").is_some() {
            return Err(Error::TurnedAway { reply: quote_text(data) });
        }
        if self.awaited == Awaited::Capability
            && let Some(names) = after_word(data, "CAPABILITY")
        {
            let mut names = names.split_whitespace();
            self.is_offered |= names.any(|name| name.eq_ignore_ascii_case("STARTTLS"));
        }
        Ok(None)
    }

    /// The response that ends a command.
    fn tagged(&mut self, line: &str) -> Result<Option<Next>, Error> {
        let tag = if self.awaited == Awaited::Capability { "a1 " } else { "a2 " };
        let Some(status) = line.strip_prefix(tag) else {
            return Err(malformed(Protocol::Imap, line));
        };
        let is_well = after_word(status, "OK").is_some();
        let reply = || quote_text(status);
        match (self.awaited, is_well) {
            (Awaited::Capability, true) if self.is_offered => {
                self.awaited = Awaited::Starttls;
                Ok(Some(Next::Say(b"a2 STARTTLS\r\n".to_vec())))
            }
            (Awaited::Capability, true) => Err(Error::NotOffered { reply: String::new() }),
            (Awaited::Capability, false) => Err(Error::NotOffered { reply: reply() }),
            (_, true) => Ok(Some(Next::Go(Vec::new()))),
            // RFC 9051 §7.1.3: BAD is of an unknown command.
            (_, false) if after_word(status, "BAD").is_some() => {
                Err(Error::NotOffered { reply: reply() })
            }
            (_, false) => Err(Error::Refused { reply: reply() }),
        }
    }
}

impl Script for Imap {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        while let Some(line) = input.line() {
            let next = match (self.awaited, line.strip_prefix("* ")) {
                (Awaited::Greeting, _) => self.greeting(&line)?,
                (_, Some(data)) => self.untagged(data)?,
                (_, None) => self.tagged(&line)?,
            };
            if let Some(next) = next {
                return Ok(next);
            }
        }
        Ok(Next::Wait)
    }

    fn awaited(&self) -> &'static str {
        match self.awaited {
            Awaited::Greeting => "the IMAP greeting",
            Awaited::Capability => "the answer to CAPABILITY",
            Awaited::Starttls => "the answer to STARTTLS",
        }
    }

    /// RFC 9051 §7: a server may send untagged data at any time.
    fn may_come_unasked(&self, rest: &[u8]) -> bool {
        let mut lines = rest.split_inclusive(|byte| *byte == b'\n');
        lines.all(|line| line.starts_with(b"* ") || line == b"*")
    }
}
