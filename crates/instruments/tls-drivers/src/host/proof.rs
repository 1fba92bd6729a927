//! What the wire shows of a handshake, whatever the libraries say.

use wire::tls::{ContentType, ExtensionKind, HandshakeType, Messages, Records, ServerHello};

/// What the server's first bytes show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The version on the wire.
    pub(crate) version: u32,
    /// The cipher suite.
    pub(crate) cipher_suite: u32,
    /// The group of the key exchange, in TLS 1.3.
    pub(crate) group: Option<u32>,
    /// Whether a session goes on: a pre-shared key that the server took (RFC 8446 §4.2.11), or no
    /// certificate before its ChangeCipherSpec (RFC 5246 §7.3).
    pub(crate) resumed: bool,
    /// Whether the server promises a ticket in TLS 1.2, whose clients have none without (RFC 5077 §3.2).
    pub(crate) ticket: bool,
    /// Whether the server names a session: one that is resumed, or may be (RFC 5246 §7.4.1.3).
    pub(crate) session_id: bool,
}

/// Reads the server's first flight. `None` if it is not there in full, or is another thing than a
/// ServerHello that goes on: a HelloRetryRequest too.
pub(crate) fn look(flight: &[u8]) -> Option<Shown> {
    let mut shown = None;
    for (record, payload) in Records::new(flight) {
        match record.content_type {
            ContentType::Handshake => {
                for message in Messages::new(payload) {
                    match (message.kind, &mut shown) {
                        (HandshakeType::SERVER_HELLO, None) => {
                            let (first, over) = hello(message.body)?;
                            if over {
                                return Some(first);
                            }
                            shown = Some(first);
                        }
                        (HandshakeType::CERTIFICATE, Some(first)) => return Some(*first),
                        _ => {}
                    }
                }
            }
            // TLS 1.2: keys change before any certificate came.
            ContentType::ChangeCipherSpec => {
                return shown.map(|first| Shown { resumed: true, ..first });
            }
            _ => return None,
        }
    }
    None
}

/// A ServerHello, and whether it says all: in TLS 1.2 what follows does.
fn hello(body: &[u8]) -> Option<(Shown, bool)> {
    let hello = ServerHello::new_checked(body).ok()?;
    if hello.is_hello_retry_request() {
        return None;
    }
    let version = u32::from(hello.version().0);
    let shown = Shown {
        version,
        cipher_suite: u32::from(hello.cipher_suite().0),
        group: hello.group().map(u32::from),
        resumed: hello.selected_psk().is_some(),
        ticket: hello.extensions().find(ExtensionKind::SESSION_TICKET).is_some(),
        session_id: !hello.session_id().is_empty(),
    };
    Some((shown, version >= 0x0304))
}
