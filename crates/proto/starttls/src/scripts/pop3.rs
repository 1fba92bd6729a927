//! POP3 (RFC 2595 §4; capabilities: RFC 2449 §5).

use super::{Next, Script, after_word, malformed};
use crate::error::quote_text;
use crate::input::Input;
use crate::{Error, Protocol};

/// The message that is awaited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Awaited {
    #[default]
    Greeting,
    Capabilities,
    /// The lines that follow, up to a dot.
    List,
    Stls,
}

#[derive(Debug, Default)]
pub(super) struct Pop3 {
    awaited: Awaited,
    is_offered: bool,
}

impl Pop3 {
    fn ask(&mut self) -> Next {
        self.awaited = Awaited::Stls;
        Next::Say(b"STLS\r\n".to_vec())
    }

    fn line(&mut self, line: &str) -> Result<Option<Next>, Error> {
        if self.awaited == Awaited::List {
            if line == "." {
                return match self.is_offered {
                    true => Ok(Some(self.ask())),
                    false => Err(Error::NotOffered { reply: String::new() }),
                };
            }
            self.is_offered |= after_word(line, "STLS").is_some();
            return Ok(None);
        }
        let is_well = after_word(line, "+OK").is_some();
        if !is_well && after_word(line, "-ERR").is_none() {
            return Err(malformed(Protocol::Pop3, line));
        }
        let reply = || quote_text(line);
        match (self.awaited, is_well) {
            (Awaited::Greeting, true) => {
                self.awaited = Awaited::Capabilities;
                Ok(Some(Next::Say(b"CAPA\r\n".to_vec())))
            }
            (Awaited::Greeting, false) => Err(Error::TurnedAway { reply: reply() }),
            (Awaited::Capabilities, true) => {
                self.awaited = Awaited::List;
                Ok(None)
            }
            // A server without CAPA may know STLS.
            (Awaited::Capabilities, false) => Ok(Some(self.ask())),
            (_, true) => Ok(Some(Next::Go(Vec::new()))),
            // Listed, it is refused; if not, unknown.
            (_, false) if self.is_offered => Err(Error::Refused { reply: reply() }),
            (_, false) => Err(Error::NotOffered { reply: reply() }),
        }
    }
}

impl Script for Pop3 {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        while let Some(line) = input.line() {
            if let Some(next) = self.line(&line)? {
                return Ok(next);
            }
        }
        Ok(Next::Wait)
    }

    fn awaited(&self) -> &'static str {
        match self.awaited {
            Awaited::Greeting => "the POP3 greeting",
            Awaited::Capabilities | Awaited::List => "the answer to CAPA",
            Awaited::Stls => "the answer to STLS",
        }
    }
}
