//! The dialog of each protocol.

mod ftp;
mod imap;
mod ldap;
mod mysql;
mod nntp;
mod pop3;
mod postgres;
mod sieve;
mod smtp;
mod xml;
mod xmpp;

use std::net::IpAddr;

use crate::error::{quote, quote_text};
use crate::input::Input;
use crate::{Error, Protocol};

/// The next step of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// More bytes are needed.
    Wait,
    /// These bytes go out, and an answer is awaited.
    Say(Vec<u8>),
    /// These bytes go out (often none), and TLS begins.
    Go(Vec<u8>),
}

/// A protocol's dialog from the client's side.
pub(crate) trait Script: Send {
    /// Reads from `input` until the next step is known.
    fn read(&mut self, input: &mut Input) -> Result<Next, Error>;

    /// The message that is awaited, for people.
    fn awaited(&self) -> &'static str;

    /// Whether `rest` may come without a command of ours.
    fn may_come_unasked(&self, _rest: &[u8]) -> bool {
        false
    }
}

/// A script, and the bytes that it begins with.
pub(crate) fn begin(protocol: Protocol, name: &str, client: IpAddr) -> (Box<dyn Script>, Vec<u8>) {
    let silently = Vec::new();
    match protocol {
        Protocol::Smtp => (Box::new(smtp::Smtp::new(client)), silently),
        Protocol::Imap => (Box::new(imap::Imap::default()), silently),
        Protocol::Pop3 => (Box::new(pop3::Pop3::default()), silently),
        Protocol::Ftp => (Box::new(ftp::Ftp::default()), silently),
        Protocol::Sieve => (Box::new(sieve::Sieve::default()), silently),
        Protocol::Nntp => (Box::new(nntp::Nntp::default()), silently),
        Protocol::Mysql => (Box::new(mysql::Mysql), silently),
        Protocol::Postgres => (Box::new(postgres::Postgres), postgres::SSL_REQUEST.to_vec()),
        Protocol::Ldap => (Box::new(ldap::Ldap), ldap::START_TLS.to_vec()),
        Protocol::Xmpp | Protocol::XmppServer => {
            (Box::new(xmpp::Xmpp::new(protocol)), xmpp::header(protocol, name))
        }
    }
}

/// A line that the protocol does not allow.
fn malformed(protocol: Protocol, line: &str) -> Error {
    Error::Malformed { protocol, got: quote_text(line) }
}

/// Bytes that the protocol does not allow.
fn malformed_bytes(protocol: Protocol, bytes: &[u8]) -> Error {
    Error::Malformed { protocol, got: quote(bytes) }
}

/// A text after a word, in any case of letters: `OK` of `ok begin`.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    let is_word = start.eq_ignore_ascii_case(word)
        && rest.chars().next().is_none_or(|next| !next.is_ascii_alphanumeric());
    is_word.then(|| rest.trim_start())
}
