//! SMTP (RFC 3207).

use std::net::IpAddr;

use super::{Next, Script, malformed};
use crate::input::Input;
use crate::reply::Replies;
use crate::{Error, Protocol};

/// The reply that is awaited.
#[derive(Debug, Clone, Copy)]
enum Awaited {
    Greeting,
    Ehlo,
    Starttls,
}

#[derive(Debug)]
pub(super) struct Smtp {
    awaited: Awaited,
    replies: Replies,
    ehlo: String,
}

impl Smtp {
    pub fn new(client: IpAddr) -> Self {
        // RFC 5321 §4.1.3: a client without a name gives its address.
        let ehlo = match client {
            IpAddr::V4(address) => format!("EHLO [{address}]\r\n"),
            IpAddr::V6(address) => format!("EHLO [IPv6:{address}]\r\n"),
        };
        Self { awaited: Awaited::Greeting, replies: Replies::default(), ehlo }
    }
}

impl Script for Smtp {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        let reply = self.replies.next(input);
        let reply = reply.map_err(|line| malformed(Protocol::Smtp, &line))?;
        let Some(reply) = reply else { return Ok(Next::Wait) };
        match (self.awaited, reply.code) {
            (Awaited::Greeting, 220) => {
                self.awaited = Awaited::Ehlo;
                Ok(Next::Say(self.ehlo.clone().into_bytes()))
            }
            (Awaited::Greeting, _) | (_, 421) => Err(Error::TurnedAway { reply: reply.quoted() }),
            (Awaited::Ehlo, 250) => {
                // RFC 3207 §4; keywords are in any case (RFC 5321 §2.4). The first line is the greeting.
                let keywords = reply.lines.iter().skip(1);
                let mut keywords = keywords.filter_map(|line| line.split_whitespace().next());
                if !keywords.any(|word| word.eq_ignore_ascii_case("STARTTLS")) {
                    return Err(Error::NotOffered { reply: String::new() });
                }
                self.awaited = Awaited::Starttls;
                Ok(Next::Say(b"STARTTLS\r\n".to_vec()))
            }
            (Awaited::Starttls, 220) => Ok(Next::Go(Vec::new())),
            // The command is unknown (RFC 5321 §4.2.4).
            (Awaited::Ehlo | Awaited::Starttls, 500 | 502) => {
                Err(Error::NotOffered { reply: reply.quoted() })
            }
            (Awaited::Ehlo, _) => Err(Error::TurnedAway { reply: reply.quoted() }),
            (Awaited::Starttls, _) => Err(Error::Refused { reply: reply.quoted() }),
        }
    }

    fn awaited(&self) -> &'static str {
        match self.awaited {
            Awaited::Greeting => "the SMTP greeting",
            Awaited::Ehlo => "the answer to EHLO",
            Awaited::Starttls => "the answer to STARTTLS",
        }
    }
}
