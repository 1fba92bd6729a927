//! SOCKS version 5 (RFC 1928), user and password (RFC 1929).

use std::net::IpAddr;

use super::{Credentials, Error, Next};
use crate::error::quote;
use crate::input::Input;

const VERSION: u8 = 5;
/// Methods (RFC 1928 §3).
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;

/// The answer that is awaited.
#[derive(Debug, Clone, Copy)]
enum Awaited {
    Method,
    Password,
    Connection,
}

pub(super) struct Socks5 {
    awaited: Awaited,
    host: String,
    port: u16,
    credentials: Option<Credentials>,
}

impl Socks5 {
    pub fn new(host: &str, port: u16, credentials: Option<Credentials>) -> Self {
        Self { awaited: Awaited::Method, host: host.to_owned(), port, credentials }
    }

    /// The methods that the client offers.
    pub fn greeting(&self) -> Vec<u8> {
        match self.credentials {
            Some(_) => vec![VERSION, 2, NO_AUTHENTICATION, PASSWORD],
            None => vec![VERSION, 1, NO_AUTHENTICATION],
        }
    }

    pub fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        match self.awaited {
            Awaited::Method => self.method(input),
            Awaited::Password => self.password(input),
            Awaited::Connection => connection(input),
        }
    }

    fn method(&mut self, input: &mut Input) -> Result<Next, Error> {
        match (input.rest(), &self.credentials) {
            ([] | [VERSION], _) => return Ok(Next::Wait),
            ([VERSION, NONE_ACCEPTABLE, ..], None) => {
                return Err(Error::NeedsCredentials { reply: String::new() });
            }
            ([VERSION, NONE_ACCEPTABLE, ..], Some(_)) => {
                let reply = "it accepts neither a password nor none".to_owned();
                return Err(Error::Refused { reply });
            }
            ([VERSION, NO_AUTHENTICATION, ..], _) => {
                let _ = input.take(2);
                return Ok(self.ask());
            }
            ([VERSION, PASSWORD, ..], Some(credentials)) => {
                let message = login(credentials);
                let _ = input.take(2);
                self.awaited = Awaited::Password;
                return Ok(Next::Say(message));
            }
            _ => {}
        }
        Err(malformed(input.rest()))
    }

    /// RFC 1929 §2: a status of 0 is success. Some proxies send 5 as the version.
    fn password(&mut self, input: &mut Input) -> Result<Next, Error> {
        match input.rest() {
            [] | [1 | VERSION] => Ok(Next::Wait),
            [1 | VERSION, 0, ..] => {
                let _ = input.take(2);
                Ok(self.ask())
            }
            [1 | VERSION, _, ..] => Err(Error::WrongCredentials { reply: String::new() }),
            other => Err(malformed(other)),
        }
    }

    /// The request (RFC 1928 §4): a name is the proxy's to resolve.
    fn ask(&mut self) -> Next {
        self.awaited = Awaited::Connection;
        let mut message = vec![VERSION, 1, 0];
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => {
                message.push(1);
                message.extend(address.octets());
            }
            Ok(IpAddr::V6(address)) => {
                message.push(4);
                message.extend(address.octets());
            }
            Err(_) => {
                message.push(3);
                // `Tunnel::new` admits no longer name.
                message.push(u8::try_from(self.host.len()).unwrap_or(u8::MAX));
                message.extend(self.host.bytes().take(255));
            }
        }
        message.extend(self.port.to_be_bytes());
        Next::Say(message)
    }
}

/// The message of RFC 1929 §2; `Address` holds no longer texts.
fn login(credentials: &Credentials) -> Vec<u8> {
    let mut message = vec![1];
    for part in [&credentials.user, &credentials.password] {
        message.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
        message.extend(part.iter().take(255));
    }
    message
}

/// The reply (RFC 1928 §6).
fn connection(input: &mut Input) -> Result<Next, Error> {
    let length = match input.rest() {
        [VERSION, 0, _, 1, ..] => 4 + 4 + 2,
        [VERSION, 0, _, 4, ..] => 4 + 16 + 2,
        [VERSION, 0, _, 3, length, ..] => 4 + 1 + usize::from(*length) + 2,
        // A refusal is known by its code: some proxies cut what follows.
        [VERSION, code, ..] if *code != 0 => return Err(refusal(*code)),
        [] | [VERSION] | [VERSION, 0] | [VERSION, 0, _] | [VERSION, 0, _, 3] => {
            return Ok(Next::Wait);
        }
        other => return Err(malformed(other)),
    };
    Ok(if input.take(length).is_some() { Next::Made } else { Next::Wait })
}

fn refusal(code: u8) -> Error {
    let reply = |text: &str| format!("{text} (SOCKS reply {code})");
    match code {
        1 => Error::Refused { reply: reply("general failure") },
        2 => Error::Forbidden { reply: reply("not allowed by its rules") },
        3 => Error::Unreachable { reply: reply("the network cannot be reached") },
        4 => Error::Unreachable { reply: reply("the host cannot be reached or is not known") },
        5 => Error::Unreachable { reply: reply("connection refused") },
        6 => Error::TimedOut { reply: reply("TTL expired") },
        7 => Error::Refused { reply: reply("command not supported") },
        8 => Error::Refused { reply: reply("address type not supported") },
        _ => Error::Refused { reply: reply("unknown reply") },
    }
}

fn malformed(got: &[u8]) -> Error {
    Error::Malformed { expected: "a SOCKS5 proxy", got: quote(got) }
}
