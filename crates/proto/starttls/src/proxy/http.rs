//! CONNECT (RFC 9110 §9.3.6; credentials: RFC 7617).

use std::net::Ipv6Addr;

use zeroize::Zeroizing;

use super::base64::encoded;
use super::{Credentials, Error, Next};
use crate::error::{quote, quote_text};
use crate::input::Input;

/// Maximum number of fields in the head of an answer.
const MAX_FIELDS: usize = 128;

pub(super) struct Connect {
    has_credentials: bool,
}

/// The request for a connection.
pub(super) fn request(host: &str, port: u16, credentials: Option<&Credentials>) -> Vec<u8> {
    let target = match host.parse::<Ipv6Addr>() {
        Ok(_) => format!("[{host}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    };
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(Credentials { user, password }) = credentials {
        let pair = Zeroizing::new([user, &b":"[..], password].concat());
        request.extend_from_slice(b"Proxy-Authorization: Basic ");
        request.extend_from_slice(encoded(&pair).as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

impl Connect {
    pub fn new(credentials: Option<&Credentials>) -> Self {
        Self { has_credentials: credentials.is_some() }
    }

    pub fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        loop {
            let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
            let mut response = httparse::Response::new(&mut fields);
            let (length, code, reason) = match response.parse(input.rest()) {
                Ok(httparse::Status::Partial) => return Ok(Next::Wait),
                Ok(httparse::Status::Complete(length)) => {
                    (length, response.code.unwrap_or(0), response.reason.unwrap_or(""))
                }
                Err(_) => {
                    let got = quote(input.rest());
                    return Err(Error::Malformed { expected: "an HTTP proxy", got });
                }
            };
            let reply = quote_text(&format!("{code} {reason}"));
            let _ = input.take(length);
            match code {
                // RFC 9110 §15.2: the final answer follows.
                100..=199 => {}
                // Length fields mean nothing here (§9.3.6): the tunnel begins behind the head.
                200..=299 => return Ok(Next::Made),
                _ => return Err(self.refusal(code, reply)),
            }
        }
    }

    fn refusal(&self, code: u16, reply: String) -> Error {
        match code {
            // Some proxies say 401 of a wrong password.
            401 | 407 if self.has_credentials => Error::WrongCredentials { reply },
            407 => Error::NeedsCredentials { reply },
            403 => Error::Forbidden { reply },
            405 | 501 => Error::NoConnect { reply },
            404 | 502 | 503 => Error::Unreachable { reply },
            408 | 504 => Error::TimedOut { reply },
            _ => Error::Refused { reply },
        }
    }
}
