//! FTP (RFC 4217 §4).

use super::{Next, Script, malformed};
use crate::input::Input;
use crate::reply::Replies;
use crate::{Error, Protocol};

#[derive(Debug)]
pub(super) struct Ftp {
    is_greeted: bool,
    replies: Replies,
}

impl Default for Ftp {
    fn default() -> Self {
        Self { is_greeted: false, replies: Replies::free_inside() }
    }
}

impl Script for Ftp {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        loop {
            let reply = self.replies.next(input);
            let reply = reply.map_err(|line| malformed(Protocol::Ftp, &line))?;
            let Some(reply) = reply else { return Ok(Next::Wait) };
            return match (self.is_greeted, reply.code) {
                // RFC 959 §4.2: ready in some minutes; the greeting follows.
                (false, 120) => continue,
                (false, 220) => {
                    self.is_greeted = true;
                    Ok(Next::Say(b"AUTH TLS\r\n".to_vec()))
                }
                (false, _) | (true, 421) => Err(Error::TurnedAway { reply: reply.quoted() }),
                (true, 234) => Ok(Next::Go(Vec::new())),
                // RFC 4217 §4, RFC 2228 §3: the command or its argument is unknown.
                (true, 500 | 501 | 502 | 504 | 530) => {
                    Err(Error::NotOffered { reply: reply.quoted() })
                }
                (true, _) => Err(Error::Refused { reply: reply.quoted() }),
            };
        }
    }

    fn awaited(&self) -> &'static str {
        if self.is_greeted { "the answer to AUTH TLS" } else { "the FTP greeting" }
    }
}
