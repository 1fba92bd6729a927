//! What the hellos say, over TCP and QUIC alike.

use wire::tls::{ClientHello, Group, HandshakeType, HelloRetryRequestDraft, ServerHello};

use crate::record::{EarlyData, Resumption, TlsFacts};

/// Entries of a list that a record keeps at most: a hostile hello can list thousands.
const MAX_LIST: usize = 64;

/// What the hellos say beyond the record: what later messages are judged by.
#[derive(Debug, Default)]
pub(crate) struct HelloWork {
    /// The client named PSK modes: tickets are of use to it (RFC 8446 §4.2.9).
    pub(crate) tickets_useful: bool,
    /// The client announced early data.
    pub(crate) early_data: bool,
    /// A ClientHello has been read.
    pub(crate) client_hello_seen: bool,
}

/// Takes a ClientHello's body: the first fills the record, a second one answers a
/// HelloRetryRequest. False if it cannot be read.
pub(crate) fn read_client_hello(facts: &mut TlsFacts, work: &mut HelloWork, body: &[u8]) -> bool {
    let Ok(hello) = ClientHello::new_checked(body) else { return false };
    if work.client_hello_seen {
        return true;
    }
    work.client_hello_seen = true;
    work.early_data = hello.early_data();
    work.tickets_useful = hello.psk_key_exchange_modes().is_some_and(|modes| !modes.is_empty());
    facts.server_name = hello.server_name().map(str::to_owned);
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

fn protocol(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
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
        retried(facts, work);
        return ServerSaid::HelloRetryRequest;
    }
    let Ok(hello) = ServerHello::new_checked(body) else { return ServerSaid::Nothing };
    facts.version = Some(hello.version());
    facts.cipher_suite = Some(hello.cipher_suite());
    facts.group = hello.group().map(Group);
    facts.alpn = hello.alpn().map(protocol);
    if hello.is_hello_retry_request() {
        retried(facts, work);
        return ServerSaid::HelloRetryRequest;
    }
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
