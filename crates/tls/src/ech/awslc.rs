//! AWS-LC, client and server.

use std::sync::Arc;

use super::ffi::{self, Step, failed};
use super::{Answer, Client, Endpoint, LONGEST_NAME, Offer};
use crate::error::config;
use crate::{Error, Group, Identity};

/// A server's key for ECH (X25519, HKDF-SHA256), with what it publishes of it.
#[derive(Debug)]
pub struct Keys {
    keys: ffi::Keys,
    list: Vec<u8>,
}

impl Keys {
    /// A new key, whose hellos show `public_name` outside. `number` is how the server finds it among others.
    ///
    /// # Errors
    /// The name is no DNS name; [`Error::AwsLc`].
    pub fn generate(public_name: &str, number: u8) -> Result<Self, Error> {
        super::key::check_public_name(public_name)?;
        let (keys, list) = ffi::Keys::new(number, public_name, LONGEST_NAME)?;
        super::check(&list)?;
        Ok(Keys { keys, list })
    }

    /// What is published in the name's HTTPS record, an ECHConfigList.
    #[must_use]
    pub fn config_list(&self) -> &[u8] {
        &self.list
    }
}

/// A server of AWS-LC, with ECH or without.
#[derive(Clone, Debug)]
pub struct Server(Arc<ffi::Context>);

impl Server {
    /// Knows one key for ECH, or none, and knows every group.
    ///
    /// # Errors
    /// The identity has no key of its own; [`Error::AwsLc`].
    pub fn new(identity: &Identity, keys: Option<&Keys>) -> Result<Self, Error> {
        let Some((leaf, rest)) = identity.chain_der().split_first() else {
            return Err(config("the server has no certificate"));
        };
        let keys = keys.map(|keys| &keys.keys);
        let mut context =
            ffi::Context::server(&names(Group::ALL), leaf, identity.private_key_der(), keys)?;
        for certificate in rest {
            context.add(true, certificate)?;
        }
        Ok(Server(Arc::new(context)))
    }

    /// Begins a connection; it waits for the ClientHello.
    ///
    /// # Errors
    /// [`Error::AwsLc`].
    pub fn accept(&self) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(Side { connection: self.0.accept()?, end: None, sealed: true }))
    }
}

pub(super) fn start(
    client: &Client,
    name: &str,
    offer: &Offer,
) -> Result<Box<dyn Endpoint>, Error> {
    let mut context = ffi::Context::client(&names(&client.groups))?;
    for root in &client.roots {
        context.add(false, root)?;
    }
    let list = match offer {
        Offer::Sealed(list) => Some(list.as_slice()),
        Offer::Nothing | Offer::Placeholder => None,
    };
    let connection = context.connect(name, list, *offer == Offer::Placeholder)?;
    let mut side = Side { connection, end: None, sealed: list.is_some() };
    side.step()?;
    Ok(Box::new(side))
}

/// The groups as AWS-LC has them in a list.
fn names(groups: &[Group]) -> String {
    let name = |group: &Group| match group {
        Group::X25519 => "X25519",
        Group::Secp256r1 => "P-256",
        Group::X25519MlKem768 => "X25519MLKEM768",
    };
    groups.iter().map(name).collect::<Vec<_>>().join(":")
}

struct Side {
    connection: ffi::Connection,
    end: Option<Answer>,
    /// Whether a hello was or may have been sealed.
    sealed: bool,
}

impl Side {
    fn step(&mut self) -> Result<(), Error> {
        if self.end.is_some() {
            return Ok(());
        }
        match self.connection.step() {
            Step::More => {}
            Step::Done if self.sealed && self.connection.accepted() => {
                self.end = Some(Answer::Accepted)
            }
            Step::Done => self.end = Some(Answer::NotOffered),
            Step::Rejected => self.end = Some(Answer::Rejected(self.connection.retry())),
            Step::Failed => return Err(failed()),
        }
        Ok(())
    }
}

impl Endpoint for Side {
    fn read_tls(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.connection.feed(bytes)?;
        self.step()
    }

    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.connection.take(out);
        Ok(())
    }

    fn answer(&self) -> Option<Answer> {
        self.end.clone()
    }

    fn server_name(&self) -> Option<String> {
        self.connection.name()
    }
}
