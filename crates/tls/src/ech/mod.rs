//! Encrypted Client Hello (RFC 9849), in memory: a client of rustls or AWS-LC, a server of AWS-LC. rustls has no server with
//! ECH, and OpenSSL has it from 4.0 on. Other libraries take part by [`Endpoint`] and [`exchange`].
//!
//! TLS 1.3 with AES-128-GCM, without tickets: what is counted is the handshake's own.

mod awslc;
mod ffi;
mod key;
mod rustls;
mod visit;

use rustls_pki_types::DnsName;
use units::named;
use wire::tls::EchConfigList;

pub use self::awslc::{Keys, Server};
pub use self::key::RawKey;
pub use self::visit::{Case, Visit, visit};
use crate::error::config;
use crate::{Error, Group, PeerError};

/// Most flights of a handshake: TLS 1.3 has three, and five after a HelloRetryRequest.
const MAX_FLIGHTS: usize = 8;
/// DHKEM(X25519, HKDF-SHA256) and HKDF-SHA256 (IANA HPKE): what both clients know.
const KEM_X25519: u16 = 0x20;
const KDF_SHA256: u16 = 1;
/// What a configuration made here has clients pad names to, if they are shorter: 64 bytes hide most names' lengths.
const LONGEST_NAME: u8 = 64;
/// AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305 (IANA HPKE AEAD Identifiers).
const AEADS: [u16; 3] = [1, 2, 3];

named! {
    /// A library that has ECH as a client.
    pub enum ClientLibrary: "library with ECH" {
        /// rustls over aws-lc-rs.
        Rustls = "rustls",
        /// AWS-LC's libssl, by its C interface.
        AwsLc = "aws-lc",
    }
}

/// What a client sends of ECH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// No ECH extension at all.
    Nothing,
    /// A placeholder of no meaning (GREASE, RFC 9849 §6.2), which browsers send where a server has published nothing.
    Placeholder,
    /// The hello, sealed by one of these configurations (an ECHConfigList).
    Sealed(Vec<u8>),
}

/// What became of a client's offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing was sealed: the handshake is done with the hello that everybody can read.
    NotOffered,
    /// The server opened the sealed hello.
    Accepted,
    /// It could not, and has shown that it is who the public name says: the connection is of no use but for the
    /// configurations to take for the next one (an ECHConfigList). None: ECH is not there any more.
    Rejected(Option<Vec<u8>>),
}

/// A client, for any number of connections.
#[derive(Clone, Debug)]
pub struct Client {
    /// The library that the client runs.
    pub library: ClientLibrary,
    /// The groups offered; the hybrid one has a share of X25519 beside where that follows it, as browsers send.
    pub groups: Vec<Group>,
    /// The root certificates (DER) to trust.
    pub roots: Vec<Vec<u8>>,
}

/// One connection's client or server: bytes in, bytes out. `E` is what its library fails with.
pub trait Endpoint<E = Error> {
    /// Feeds bytes from the peer.
    ///
    /// # Errors
    /// Every error is final. An alert may be waiting: call `write_tls` and send it.
    fn read_tls(&mut self, bytes: &[u8]) -> Result<(), E>;

    /// Appends all that is to go to the peer now.
    ///
    /// # Errors
    /// The library's own failures.
    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<(), E>;

    /// What became of ECH, once the handshake is done or given up; `None` before.
    fn answer(&self) -> Option<Answer>;

    /// A server: the name that the client asks for, inside if it could be opened.
    fn server_name(&self) -> Option<String>;
}

/// Bytes that one side wrote at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Whether the client wrote them; else the server did.
    pub from_client: bool,
    /// How many, with the headers of records.
    pub bytes: usize,
}

/// What one connection came to.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Bytes of the ClientHello, with the headers of its records.
    pub hello: usize,
    /// What went over the wire, in order.
    pub flights: Vec<Flight>,
    /// Round trips until the client may send its request, or knows that it must begin again.
    pub round_trips: usize,
    /// What became of ECH, as the client says.
    pub answer: Answer,
    /// Whether the server says that it opened the sealed hello.
    pub opened: bool,
    /// The name that the server was asked for.
    pub server_name: Option<String>,
}

impl Connection {
    /// Bytes that one side wrote.
    #[must_use]
    pub fn bytes(&self, from_client: bool) -> usize {
        let flights = self.flights.iter().filter(|flight| flight.from_client == from_client);
        flights.map(|flight| flight.bytes).sum()
    }
}

impl Client {
    /// Begins a connection to `name`.
    ///
    /// # Errors
    /// [`PeerError`] for configurations that are damaged or that the library cannot use; [`Error::Caller`] for a name
    /// that is none, no group, or no root.
    pub fn start(&self, name: &str, offer: &Offer) -> Result<Box<dyn Endpoint>, Error> {
        if self.groups.is_empty() || self.roots.is_empty() {
            return Err(config("a client with ECH needs a group and a root"));
        }
        // An address is never sent as a name, so that there is nothing to hide.
        if DnsName::try_from(name).is_err() {
            return Err(config(format!("`{name}` is no DNS name: ECH hides nothing else")));
        }
        if let Offer::Sealed(list) = offer {
            check(list)?;
        }
        match self.library {
            ClientLibrary::Rustls => rustls::start(self, name, offer),
            ClientLibrary::AwsLc => awslc::start(self, name, offer),
        }
    }

    /// Bytes of the ClientHello in TLS records.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn hello_len(&self, name: &str, offer: &Offer) -> Result<usize, Error> {
        let mut hello = Vec::new();
        self.start(name, offer)?.write_tls(&mut hello)?;
        Ok(hello.len())
    }

    /// Bytes of the ClientHello over QUIC, whose transport parameters are of `parameters` bytes; by rustls alone.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn quic_hello_len(
        &self,
        name: &str,
        offer: &Offer,
        parameters: usize,
    ) -> Result<usize, Error> {
        rustls::quic_hello_len(self, name, offer, parameters)
    }

    /// A whole connection to a server, in memory.
    ///
    /// # Errors
    /// As [`Client::start`], and whatever ends the handshake but for ECH that is not accepted.
    pub fn connect(&self, name: &str, offer: &Offer, server: &Server) -> Result<Connection, Error> {
        let (mut here, mut there) = (self.start(name, offer)?, server.accept()?);
        exchange(&mut *here, &mut *there)
    }
}

/// Carries a whole handshake from one side to the other, in memory.
///
/// # Errors
/// Whatever ends the handshake but for ECH that is not accepted; [`PeerError::Misbehaved`] for one without an end.
pub fn exchange<E: From<PeerError>>(
    client: &mut dyn Endpoint<E>,
    server: &mut dyn Endpoint<E>,
) -> Result<Connection, E> {
    let (mut flights, mut round_trips) = (Vec::new(), 0);
    let mut answer = None;
    while flights.len() < MAX_FLIGHTS {
        let mut flight = Vec::new();
        client.write_tls(&mut flight)?;
        if !flight.is_empty() {
            flights.push(Flight { from_client: true, bytes: flight.len() });
            let read = server.read_tls(&flight);
            // Of a client that gives up there comes an alert.
            if !matches!(answer, Some(Answer::Rejected(_))) {
                read?;
            }
        }
        if answer.is_some() {
            break;
        }
        flight.clear();
        server.write_tls(&mut flight)?;
        if flight.is_empty() {
            break;
        }
        flights.push(Flight { from_client: false, bytes: flight.len() });
        round_trips += 1;
        client.read_tls(&flight)?;
        answer = client.answer();
    }
    let hello = flights.first().map_or(0, |flight| flight.bytes);
    let answer =
        answer.ok_or_else(|| PeerError::Misbehaved("the handshake does not end".to_owned()))?;
    let opened = server.answer() == Some(Answer::Accepted);
    let server_name = server.server_name();
    Ok(Connection { hello, flights, round_trips, answer, opened, server_name })
}

/// Whether an ECHConfigList is whole, and has a configuration that every client here can use.
///
/// # Errors
/// [`PeerError::Misbehaved`] for one that is damaged, [`PeerError::Incompatible`] for one of other algorithms.
pub fn check(list: &[u8]) -> Result<(), Error> {
    let list = EchConfigList::new_checked(list)
        .map_err(|error| PeerError::Misbehaved(error.to_string()))?;
    let fits = |(kdf, aead): (u16, u16)| kdf == KDF_SHA256 && AEADS.contains(&aead);
    let usable = list
        .configs()
        .any(|config| config.kem == KEM_X25519 && !config.is_extended && config.suites().any(fits));
    if usable {
        return Ok(());
    }
    Err(PeerError::Incompatible(
        "no ECH configuration of RFC 9849 with X25519 and HKDF-SHA256".to_owned(),
    )
    .into())
}
