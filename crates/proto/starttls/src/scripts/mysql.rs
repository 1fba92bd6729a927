//! MySQL's and MariaDB's SSLRequest (MySQL's documentation, Connection Phase Packets).

use super::{Next, Script, malformed_bytes};
use crate::error::quote;
use crate::input::Input;
use crate::{Error, Protocol};

/// Capabilities: long passwords, protocol 4.1, TLS, the authentication of 4.1, plugins.
const CAPABILITIES: u32 = 0x1 | 0x200 | CLIENT_SSL as u32 | 0x8000 | 0x8_0000;
/// A server that changes to TLS.
const CLIENT_SSL: u16 = 0x800;
/// Maximum packet size that the client announces, in bytes.
const MAX_PACKET: u32 = 1 << 24;
/// utf8mb4_general_ci.
const CHARACTER_SET: u8 = 45;
/// Bytes from the end of the server's version to its capabilities: thread, salt, filler.
const BEFORE_CAPABILITIES: usize = 4 + 8 + 1;

#[derive(Debug)]
pub(super) struct Mysql;

impl Script for Mysql {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        let malformed = |rest: &[u8]| Err(malformed_bytes(Protocol::Mysql, rest));
        let &[low, middle, high, sequence, ref rest @ ..] = input.rest() else {
            return Ok(Next::Wait);
        };
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        // Nothing that greets is so long; other protocols are known by it, or by the number.
        if sequence != 0 || !(1..=4096).contains(&length) {
            return malformed(input.rest());
        }
        let Some(payload) = rest.get(..length) else { return Ok(Next::Wait) };
        let capabilities = match payload {
            [10, rest @ ..] => capabilities(rest),
            // An error packet: a number, then a text.
            [0xff, _, _, text @ ..] => return Err(Error::TurnedAway { reply: quote(text) }),
            _ => None,
        };
        let Some(capabilities) = capabilities else { return malformed(input.rest()) };
        if capabilities & CLIENT_SSL == 0 {
            return Err(Error::NotOffered { reply: String::new() });
        }
        let _ = input.take(4 + length);
        Ok(Next::Go(request()))
    }

    fn awaited(&self) -> &'static str {
        "the MySQL greeting"
    }
}

/// The lower capabilities of a handshake packet, version 10, behind its version.
fn capabilities(rest: &[u8]) -> Option<u16> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let flags = rest.get(end + 1 + BEFORE_CAPABILITIES..)?;
    Some(u16::from_le_bytes(*flags.first_chunk()?))
}

/// The first half of a handshake response, as packet 1.
fn request() -> Vec<u8> {
    let mut packet = vec![32, 0, 0, 1];
    packet.extend(CAPABILITIES.to_le_bytes());
    packet.extend(MAX_PACKET.to_le_bytes());
    packet.push(CHARACTER_SET);
    packet.extend([0; 23]);
    packet
}
