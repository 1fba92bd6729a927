//! LDAP's StartTLS operation (RFC 4511 §4.14).

use super::{Next, Script, malformed_bytes};
use crate::error::quote_text;
use crate::input::Input;
use crate::{Error, Protocol};

/// Message 1: an ExtendedRequest of 1.3.6.1.4.1.1466.20037.
pub(super) const START_TLS: [u8; 31] =
    *b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";

/// Tags (RFC 4511 §5.1): SEQUENCE, INTEGER, ENUMERATED, OCTET STRING, ExtendedResponse.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const ENUMERATED: u8 = 10;
const OCTET_STRING: u8 = 4;
const EXTENDED_RESPONSE: u8 = 0x78;

#[derive(Debug)]
pub(super) struct Ldap;

impl Script for Ldap {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        let malformed = |bytes: &[u8]| Err(malformed_bytes(Protocol::Ldap, bytes));
        let message = match element(input.rest()) {
            Element::Whole { tag: SEQUENCE, content, rest } => {
                let length = input.rest().len() - rest.len();
                let response = response(content);
                let Some(response) = response else { return malformed(input.rest()) };
                let _ = input.take(length);
                response
            }
            Element::Partial { tag: None | Some(SEQUENCE) } => return Ok(Next::Wait),
            // Enough to name another protocol.
            _ if input.rest().len() < 5 => return Ok(Next::Wait),
            _ => return malformed(input.rest()),
        };
        let Response { id, code, text } = message;
        let reply = quote_text(&format!("{} {text}", name(code)));
        match (id, code) {
            (1, 0) => Ok(Next::Go(Vec::new())),
            // RFC 4511 §4.14.2: protocolError, if the operation is not supported.
            (1, 2) => Err(Error::NotOffered { reply }),
            (1, _) => Err(Error::Refused { reply }),
            // Notice of disconnection (§4.4.1).
            _ => Err(Error::TurnedAway { reply }),
        }
    }

    fn awaited(&self) -> &'static str {
        "the answer to StartTLS"
    }
}

/// Content of an ExtendedResponse.
struct Response {
    id: u8,
    code: u8,
    text: String,
}

/// A message with an ExtendedResponse of message 1, or of message 0 (a notice).
fn response(message: &[u8]) -> Option<Response> {
    let (id, rest) = expect(INTEGER, message)?;
    let (operation, _) = expect(EXTENDED_RESPONSE, rest)?;
    let (code, rest) = expect(ENUMERATED, operation)?;
    let (_matched, rest) = expect(OCTET_STRING, rest)?;
    let (text, _) = expect(OCTET_STRING, rest)?;
    match (id, code) {
        (&[id @ 0..=1], &[code]) => {
            Some(Response { id, code, text: String::from_utf8_lossy(text).into_owned() })
        }
        _ => None,
    }
}

/// An element of BER with a definite length (RFC 4511 §5.1).
enum Element<'a> {
    Whole { tag: u8, content: &'a [u8], rest: &'a [u8] },
    Partial { tag: Option<u8> },
    Wrong,
}

fn element(bytes: &[u8]) -> Element<'_> {
    let Some((&tag, bytes)) = bytes.split_first() else { return Element::Partial { tag: None } };
    let partial = Element::Partial { tag: Some(tag) };
    let Some((&length, bytes)) = bytes.split_first() else { return partial };
    let (length, bytes) = match length {
        0..=0x7f => (usize::from(length), bytes),
        0x81..=0x84 => {
            let Some((digits, bytes)) = bytes.split_at_checked(usize::from(length & 0x7f)) else {
                return partial;
            };
            let length = digits.iter().fold(0, |sum, digit| sum << 8 | u32::from(*digit));
            (usize::try_from(length).unwrap_or(usize::MAX), bytes)
        }
        _ => return Element::Wrong,
    };
    if length > crate::MAX_INPUT {
        return Element::Wrong;
    }
    match bytes.split_at_checked(length) {
        Some((content, rest)) => Element::Whole { tag, content, rest },
        None => partial,
    }
}

/// The content of an element with this tag, and what follows it.
fn expect(wanted: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match element(bytes) {
        Element::Whole { tag, content, rest } if tag == wanted => Some((content, rest)),
        _ => None,
    }
}

/// A result code's name (RFC 4511 §4.1.9).
fn name(code: u8) -> String {
    let name = match code {
        0 => "success",
        1 => "operationsError",
        2 => "protocolError",
        8 => "strongerAuthRequired",
        13 => "confidentialityRequired",
        50 => "insufficientAccessRights",
        51 => "busy",
        52 => "unavailable",
        53 => "unwillingToPerform",
        80 => "other",
        _ => return format!("result {code}"),
    };
    name.to_owned()
}
