//! What the hellos say, over TCP and QUIC alike.

use wire::tls::{
    CipherSuite, ClientHello, Group, HandshakeType, HelloRetryRequestDraft, ServerHello,
    Ssl2ClientHello, Version, is_grease,
};

use super::fingerprint::{ja3, ja4};
use crate::record::{EarlyData, Resumption, TlsFacts, Transport};

/// Entries of a list that a record keeps at most: a hostile hello can list thousands.
const MAX_LIST: usize = 64;
/// Bytes of a host name that a record keeps at most: no name is longer (RFC 1035 §2.3.4).
const MAX_NAME: usize = 255;
/// Cipher suites that a record keeps at most: old libraries list more than a hundred.
const MAX_SUITES: usize = 256;

/// What the hellos say beyond the record: what later messages are judged by.
#[derive(Debug, Default)]
pub(crate) struct HelloWork {
    /// The client named PSK modes: tickets are of use to it (RFC 8446 §4.2.9).
    pub(crate) tickets_useful: bool,
    /// The client offered application settings (ALPS).
    pub(crate) alps: bool,
    /// The client announced early data.
    pub(crate) early_data: bool,
    /// A ClientHello has been read.
    pub(crate) client_hello_seen: bool,
    /// The ServerHello proper has been read.
    pub(crate) server_hello_seen: bool,
    /// The client's random, by which its keys are found.
    pub(crate) random: [u8; 32],
}

/// Takes a ClientHello's body: the first fills the record, a second one answers a
/// HelloRetryRequest. False if it cannot be read.
pub(crate) fn read_client_hello(
    facts: &mut TlsFacts,
    work: &mut HelloWork,
    transport: Transport,
    body: &[u8],
) -> bool {
    let Ok(hello) = ClientHello::new_checked(body) else { return false };
    if work.client_hello_seen {
        return true;
    }
    work.client_hello_seen = true;
    work.random = *hello.random();
    facts.identity = Some(part_of(hello.random()));
    work.early_data = hello.early_data();
    work.alps = hello.application_settings();
    work.tickets_useful = hello.psk_key_exchange_modes().is_some_and(|modes| !modes.is_empty());
    facts.legacy_version = Some(Version(hello.legacy_version()));
    facts.cipher_suites = suites(hello.cipher_suites());
    facts.session_id_offered = hello.session_id().len() as u8;
    facts.ja3 = Some(ja3(&hello));
    facts.ja4 = Some(ja4(&hello, transport));
    // It is ASCII: no character is cut.
    let name = hello.server_name().map(|name| name.get(..MAX_NAME).unwrap_or(name));
    facts.server_name = name.map(str::to_owned);
    facts.alpn_offered = hello.alpn().take(MAX_LIST).map(protocol).collect();
    facts.versions_offered = hello.versions().take(MAX_LIST).collect();
    facts.groups = hello.groups().take(MAX_LIST).map(Group).collect();
    facts.key_shares = hello.key_shares().take(MAX_LIST).map(|share| Group(share.group)).collect();
    facts.ech_offered = hello.encrypted_client_hello();
    facts.psk_offered = hello.pre_shared_key().is_some_and(|offer| offer.identities > 0);
    facts.ticket_offered = hello.session_ticket().map(|ticket| ticket.len() as u32);
    if work.early_data {
        facts.early_data = EarlyData::Offered;
    }
    true
}

/// Takes an SSL 2.0 record that is a ClientHello. False if it cannot be read.
pub(crate) fn read_ssl2_client_hello(
    facts: &mut TlsFacts,
    work: &mut HelloWork,
    record: &[u8],
) -> bool {
    let Ok(hello) = Ssl2ClientHello::new_checked(record) else { return false };
    work.client_hello_seen = true;
    facts.legacy_version = Some(hello.version());
    facts.versions_offered = vec![hello.version()];
    facts.cipher_suites = suites(hello.cipher_suites());
    // 16 bytes in SSL 2.0, up to 32 in what follows it.
    facts.session_id_offered = hello.session_id().len().min(255) as u8;
    true
}

/// Eight bytes of a random that are neither the time nor a sign of a downgrade (RFC 8446 §4.1.3).
fn part_of(random: &[u8; 32]) -> u64 {
    let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, g, h, ..] = *random;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

fn suites(codes: impl Iterator<Item = u16>) -> Vec<CipherSuite> {
    codes.filter(|code| !is_grease(*code)).take(MAX_SUITES).map(CipherSuite).collect()
}

/// An application protocol's name; in hexadecimal behind 0x where it is not UTF-8, as GREASE's is not
/// (RFC 8701 §2).
pub(crate) fn protocol(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(name) => name.to_owned(),
        Err(_) => {
            let digits = name.iter().map(|byte| format!("{byte:02x}"));
            std::iter::once("0x".to_owned()).chain(digits).collect()
        }
    }
}

/// What a message of the server turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerSaid {
    /// Another ClientHello is wanted.
    HelloRetryRequest,
    /// The ServerHello proper.
    ServerHello,
    /// Nothing that can be read.
    Nothing,
}

/// Takes a ServerHello's or HelloRetryRequest's body.
pub(crate) fn read_server_hello(
    facts: &mut TlsFacts,
    work: &mut HelloWork,
    kind: HandshakeType,
    body: &[u8],
) -> ServerSaid {
    if kind == HandshakeType::HELLO_RETRY_REQUEST_DRAFT {
        let Ok(request) = HelloRetryRequestDraft::new_checked(body) else {
            return ServerSaid::Nothing;
        };
        facts.version = Some(request.version());
        facts.retry_group = request.group().map(Group);
        retried(facts, work);
        return ServerSaid::HelloRetryRequest;
    }
    let Ok(hello) = ServerHello::new_checked(body) else { return ServerSaid::Nothing };
    facts.version = Some(hello.version());
    facts.cipher_suite = Some(hello.cipher_suite());
    if hello.is_hello_retry_request() {
        facts.retry_group = hello.group().map(Group);
        retried(facts, work);
        return ServerSaid::HelloRetryRequest;
    }
    work.server_hello_seen = true;
    facts.identity = facts.identity.map(|one| one ^ part_of(hello.random()).rotate_left(32));
    facts.group = hello.group().map(Group);
    facts.alpn = hello.alpn().map(protocol);
    facts.psk_accepted = facts.psk_offered && hello.selected_psk().is_some();
    if facts.psk_accepted {
        facts.resumption = Resumption::Psk;
    } else if facts.early_data == EarlyData::Offered {
        // RFC 8446 §4.2.10: early data needs the first PSK to be chosen.
        facts.early_data = EarlyData::Rejected;
    }
    ServerSaid::ServerHello
}

/// RFC 8446 §4.1.4 and §4.2.10: a server that asks for another hello takes no early data.
fn retried(facts: &mut TlsFacts, work: &mut HelloWork) {
    work.early_data = false;
    if facts.early_data == EarlyData::Offered {
        facts.early_data = EarlyData::Rejected;
    }
}
