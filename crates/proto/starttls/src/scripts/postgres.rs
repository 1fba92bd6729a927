//! PostgreSQL's SSLRequest (its documentation, §54.2.10 and §54.7).

use super::{Next, Script, malformed_bytes};
use crate::error::{quote, quote_text};
use crate::input::Input;
use crate::{Error, Protocol};

/// A length of 8, and the code 80877103.
pub(super) const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

#[derive(Debug)]
pub(super) struct Postgres;

impl Script for Postgres {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        match input.rest() {
            [] => Ok(Next::Wait),
            // A server that speaks first, and not this protocol.
            other if other.starts_with(b"SSH-") => Err(malformed_bytes(Protocol::Postgres, other)),
            [b'S', ..] => {
                let _ = input.take(1);
                Ok(Next::Go(Vec::new()))
            }
            [b'N', ..] => Err(Error::NotOffered { reply: "N".to_owned() }),
            [b'E', rest @ ..] => failed(rest),
            // HTTP, TLS and others are named by more than their first byte.
            few if few.len() < 5 => Ok(Next::Wait),
            other => Err(malformed_bytes(Protocol::Postgres, other)),
        }
    }

    fn awaited(&self) -> &'static str {
        "the answer to SSLRequest"
    }
}

/// An ErrorResponse: a length, then fields of a type and a string each.
fn failed(rest: &[u8]) -> Result<Next, Error> {
    let Some((length, rest)) = rest.split_first_chunk() else { return Ok(Next::Wait) };
    let length = u32::from_be_bytes(*length) as usize;
    // Servers before 8.0 answer in the old protocol: a bare string.
    if !(4..=crate::MAX_INPUT).contains(&length) {
        return Err(Error::NotOffered { reply: quote(rest) });
    }
    let Some(fields) = rest.get(..length - 4) else { return Ok(Next::Wait) };
    let mut fields = fields.split(|byte| *byte == 0);
    let message = fields.find_map(|field| field.strip_prefix(b"M")).unwrap_or_default();
    Err(Error::TurnedAway { reply: quote_text(&String::from_utf8_lossy(message)) })
}
