//! TLS: records (RFC 8446 §5.1), handshake messages (§4) and the two hellos with the extensions
//! that Wiretax reads. Nothing here decrypts.
//!
//! [`Records`] cuts a byte stream into records, [`Messages`] a run of handshake bytes into
//! messages, [`ClientHello`] and [`ServerHello`] view the body of one message, [`Ssl2ClientHello`] its
//! older form. Code points are numbers with the names that IANA registered; [`choice`] has those that
//! a handshake can be measured by.

pub mod choice;
mod client_hello;
mod ech;
mod extension;
mod iana;
mod names;
mod record;
mod server_hello;
mod ssl2;
mod suites;

pub use client_hello::{ClientHello, ClientHelloRepr};
pub use ech::{EchConfig, EchConfigList};
pub use extension::{Extension, ExtensionKind, Extensions, KeyShare, PskOffer, body};
pub use names::{CipherSuite, Group, SignatureScheme, SuiteFacts, Version, is_grease};
pub use record::{
    Alert, ContentType, HandshakeType, Message, MessageHeader, Messages, RECORD_HEADER_LEN,
    RecordHeader, Records,
};
pub use server_hello::{
    HELLO_RETRY_REQUEST_RANDOM, HelloRetryRequestDraft, ServerHello, ServerHelloRepr,
};
pub use ssl2::{
    SSL2_HEADER_LEN, Ssl2ClientHello, begins_ssl2_client_hello, ssl2_record_len,
    ssl2_server_version,
};
