//! XMPP (RFC 6120 §4.7, §5).

use super::xml::{Kind, Tag, next_tag};
use super::{Next, Script, malformed_bytes};
use crate::error::{quote, quote_text};
use crate::input::Input;
use crate::{Error, Protocol};

const STARTTLS: &str = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";

/// Where the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the server's `<stream:stream>`.
    Start,
    /// Before or within its `<stream:features>`.
    Features,
    /// Before `<proceed/>` or `<failure/>`.
    Answer,
    /// Behind `<proceed>`, before `</proceed>`.
    Proceeding,
    /// Within an element that ends the stream.
    Failing,
}

#[derive(Debug)]
pub(super) struct Xmpp {
    protocol: Protocol,
    at: At,
    is_within_features: bool,
    is_offered: bool,
}

/// The header of the client's stream to the server `name` (RFC 6120 §4.7).
pub(super) fn header(protocol: Protocol, name: &str) -> Vec<u8> {
    let namespace = match protocol {
        Protocol::XmppServer => "jabber:server",
        _ => "jabber:client",
    };
    format!(
        "<?xml version='1.0'?><stream:stream to='{}' version='1.0' xml:lang='en' \
         xmlns='{namespace}' xmlns:stream='http://etherx.jabber.org/streams'>",
        escaped(name)
    )
    .into_bytes()
}

fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

impl Xmpp {
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, at: At::Start, is_within_features: false, is_offered: false }
    }

    fn tag(&mut self, tag: &Tag) -> Result<Option<Next>, Error> {
        let (name, kind) = (tag.name.as_str(), tag.kind);
        match (self.at, name, kind) {
            (At::Start, "xml", Kind::Declaration) => Ok(None),
            (At::Start, "stream", Kind::Open) => {
                self.at = At::Features;
                Ok(None)
            }
            (At::Features, "features", Kind::Open) => {
                self.is_within_features = true;
                Ok(None)
            }
            (At::Features, "features", Kind::Close | Kind::Empty) => self.features(),
            (At::Features, "error", _) if !self.is_within_features => Ok(self.fail()),
            (At::Features, _, _) if self.is_within_features => {
                self.is_offered |= name == "starttls" && kind != Kind::Close;
                Ok(None)
            }
            (At::Answer, "proceed", Kind::Empty) | (At::Proceeding, "proceed", Kind::Close) => {
                Ok(Some(Next::Go(Vec::new())))
            }
            (At::Answer, "proceed", Kind::Open) => {
                self.at = At::Proceeding;
                Ok(None)
            }
            (At::Answer, "failure", _) => Err(Error::Refused { reply: "failure".to_owned() }),
            (At::Answer, "error", Kind::Open) => Ok(self.fail()),
            // The first element within an error names the condition (RFC 6120 §4.9.2).
            (At::Failing, condition, _) => Err(Error::TurnedAway { reply: quote_text(condition) }),
            (_, "stream", Kind::Close) => Err(Error::Closed { awaited: self.awaited() }),
            _ => Err(malformed_bytes(self.protocol, name.as_bytes())),
        }
    }

    fn fail(&mut self) -> Option<Next> {
        self.at = At::Failing;
        None
    }

    fn features(&mut self) -> Result<Option<Next>, Error> {
        if !self.is_offered {
            return Err(Error::NotOffered { reply: String::new() });
        }
        self.at = At::Answer;
        Ok(Some(Next::Say(STARTTLS.as_bytes().to_vec())))
    }
}

impl Script for Xmpp {
    fn read(&mut self, input: &mut Input) -> Result<Next, Error> {
        while let Some(tag) = next_tag(input) {
            let tag = tag.map_err(|()| malformed_bytes(self.protocol, input.rest()))?;
            let may_be_text = self.is_within_features && self.at == At::Features;
            if !may_be_text && !tag.text.trim().is_empty() {
                let error =
                    Error::Malformed { protocol: self.protocol, got: quote(tag.text.as_bytes()) };
                return Err(error);
            }
            if let Some(next) = self.tag(&tag)? {
                return Ok(next);
            }
        }
        // Other protocols are named soon, and not when their time is over.
        let rest = input.rest();
        let is_other =
            rest.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|b| *b != b'<');
        if self.at == At::Start && is_other && rest.len() >= 5 {
            return Err(malformed_bytes(self.protocol, rest));
        }
        Ok(Next::Wait)
    }

    fn awaited(&self) -> &'static str {
        match self.at {
            At::Start => "the server's XMPP stream",
            At::Features | At::Failing => "the stream's features",
            At::Answer | At::Proceeding => "the answer to starttls",
        }
    }
}
