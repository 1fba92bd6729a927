//! NNTP (RFC 4642).

use super::{Next, Script, malformed};
use crate::input::Input;
use crate::reply::{Replies, Reply};
use crate::{Error, Protocol};

/// The message that is awaited.
#[derive(Debug, Clone, Copy, Default)]
enum Awaited {
    #[default]
    Greeting,
    Capabilities,
    /// The lines that follow 101, up to a dot.
    List,
    Starttls,
}

#[derive(Debug, Default)]
pub(super) struct Nntp {
    awaited: Awaited,
    replies: Replies,
    is_offered: bool,
}

impl Nntp {
    fn ask(&mut self) -> Next {
        self.awaited = Awaited::Starttls;
        Next::Say(b"STARTTLS\r\n".to_vec())
    }

    /// Reads the list of capabilities (RFC 3977 §5.2).
    fn list(&mut self, input: &mut Input) -> Result<Next, Error> {
        while let Some(line) = input.line() {
            if line == "." {
                return match self.is_offered {
                    true => Ok(self.ask()),
                    false => Err(Error::NotOffered { reply: String::new() }),
                };
            }
            let word = line.split_whitespace().next();
            self.is_offered |= word.is_some_and(|word| word.eq_ignore_ascii_case("STARTTLS"));
        }
        Ok(Next::Wait)
    }

    fn reply(&mut self, reply: &Reply) -> Result<Next, Error> {
        match (self.awaited, reply.code) {
            (Awaited::Greeting, 200 | 201) => {
                self.awaited = Awaited::Capabilities;
                Ok(Next::Say(b"CAPABILITIES\r\n".to_vec()))
            }
            (Awaited::Greeting, _) | (_, 400) => Err(Error::TurnedAway { reply: reply.quoted() }),
            // An older server knows no CAPABILITIES, and may know STARTTLS.
            (Awaited::Capabilities, 500 | 503) => Ok(self.ask()),
            (Awaited::Starttls, 382) => Ok(Next::Go(Vec::new())),
            (Awaited::Starttls, 500..=503) => Err(Error::NotOffered { reply: reply.quoted() }),
            _ => Err(Error::Refused { reply: reply.quoted() }),
        }
    }
}

impl Script for Nntp {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        if matches!(self.awaited, Awaited::List) {
            return self.list(input);
        }
        let reply = self.replies.next(input);
        let reply = reply.map_err(|line| malformed(Protocol::Nntp, &line))?;
        let Some(reply) = reply else { return Ok(Next::Wait) };
        if matches!((self.awaited, reply.code), (Awaited::Capabilities, 101)) {
            self.awaited = Awaited::List;
            return self.list(input);
        }
        self.reply(&reply)
    }

    fn awaited(&self) -> &'static str {
        match self.awaited {
            Awaited::Greeting => "the NNTP greeting",
            Awaited::Capabilities | Awaited::List => "the list of capabilities",
            Awaited::Starttls => "the answer to STARTTLS",
        }
    }
}
