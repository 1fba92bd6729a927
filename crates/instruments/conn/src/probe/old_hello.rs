//! A hello of our own, for what no library offers any more: SSL 3.0, 3DES, RC4, export suites. Only the
//! answer's first message is read; the handshake never goes on.

use tls::{CipherSuite, ServerChoice, WireVersion};
use wire::tls::{
    Alert, ClientHelloRepr, ContentType, Extension, ExtensionKind, HandshakeType, Messages,
    RecordHeader, Records, ServerHello, body,
};

/// The suites of early PSK, SRP, Kerberos and others need a secret in common.
const NEEDS_SECRET: [&str; 5] = ["PSK", "KRB5", "SRP", "ECCPWD", "GOST"];

/// An alert after which the handshake goes on (RFC 5246 §7.2).
const WARNING: u8 = 1;

/// The first message of a server, as the old hello sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstMessage {
    /// It chose a version and a suite.
    Chose(ServerChoice),
    /// It refused.
    Alert(u8),
}

/// A ClientHello in one record that offers versions up to TLS 1.2 and each suite of IANA's registry that
/// certificates or nothing authenticate.
pub(super) fn old_hello(server_name: Option<&str>, random: [u8; 32]) -> Vec<u8> {
    let cipher_suites = suites();
    let names = server_name.map(body::server_name);
    let groups = body::supported_groups(&[
        0x001d, 0x0017, 0x0018, 0x0019, 0x001e, 0x0016, 0x0015, 0x0013, 0x001a, 0x001b, 0x001c,
        0x0100, 0x0101,
    ]);
    let schemes = body::supported_groups(&[
        0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0203, 0x0201,
        0x0807, 0x0808, 0x0202, 0x0101,
    ]);
    let point_formats = [1, 0];
    let renegotiation = [0];
    let mut extensions = Vec::new();
    if let Some(names) = &names {
        extensions.push(Extension { kind: ExtensionKind(0), data: names });
    }
    extensions.push(Extension { kind: ExtensionKind(10), data: &groups });
    extensions.push(Extension { kind: ExtensionKind(11), data: &point_formats });
    extensions.push(Extension { kind: ExtensionKind(13), data: &schemes });
    extensions.push(Extension { kind: ExtensionKind(0xff01), data: &renegotiation });
    let repr = ClientHelloRepr {
        legacy_version: WireVersion::TLS12.0,
        random,
        session_id: &[],
        cipher_suites,
        extensions,
    };
    let mut message = vec![0; repr.buffer_len()];
    if repr.emit(&mut message).is_err() {
        return Vec::new();
    }
    let header = RecordHeader {
        content_type: ContentType::Handshake,
        legacy_version: WireVersion::TLS10.0,
        length: u16::try_from(message.len()).unwrap_or(u16::MAX),
    };
    [&header.to_bytes()[..], &message].concat()
}

/// The suites offered, obsolete ones too; those of TLS 1.3 not.
fn suites() -> Vec<u16> {
    let wanted = |code: &u16| {
        let Some(name) = CipherSuite(*code).name() else { return false };
        let usable = name.contains("_WITH_") && !name.starts_with("TLS_NULL_");
        usable && !NEEDS_SECRET.iter().any(|needs| name.contains(needs))
    };
    (0..=u16::MAX).filter(wanted).collect()
}

/// The first message in these bytes, once it is whole.
pub(crate) fn first_message(bytes: &[u8]) -> Option<FirstMessage> {
    let mut handshake = Vec::new();
    for (header, payload) in Records::new(bytes) {
        match header.content_type {
            ContentType::Alert => {
                let alert = Alert::parse(payload).ok()?;
                if alert.level == WARNING {
                    continue;
                }
                return Some(FirstMessage::Alert(alert.description));
            }
            ContentType::Handshake => handshake.extend_from_slice(payload),
            _ => return None,
        }
        if let Some(message) = Messages::new(&handshake).next() {
            if message.kind != HandshakeType::SERVER_HELLO {
                return None;
            }
            let hello = ServerHello::new_checked(message.body).ok()?;
            return Some(FirstMessage::Chose(ServerChoice {
                version: hello.version(),
                cipher_suite: CipherSuite(hello.cipher_suite().0),
                group: None,
                hello_retry_request: false,
                session_ticket: false,
            }));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::tls::{ClientHello, MessageHeader};

    #[test]
    fn the_hello_offers_what_no_library_does() {
        let hello = old_hello(Some("server.test"), [7; 32]);
        let view = ClientHello::new_checked(&hello[5 + MessageHeader::LEN..]).unwrap();
        assert_eq!(view.server_name(), Some("server.test"));
        let suites: Vec<u16> = view.cipher_suites().collect();
        for old in [0x0003, 0x0004, 0x0005, 0x0009, 0x000a, 0x0002, 0x002f, 0xc011, 0xc012] {
            assert!(suites.contains(&old), "{old:04x}");
        }
        assert!(!suites.contains(&0x1301) && !suites.contains(&0));
        assert!(hello.len() < 1024, "{}", hello.len());
    }

    #[test]
    fn a_server_hello_and_an_alert_are_read_wherever_they_are_cut() {
        let mut message = vec![2, 0, 0, 38, 3, 0];
        message.extend([9; 32]);
        message.extend([0, 0, 5, 0]);
        let mut bytes = vec![22, 3, 0, 0, 42];
        bytes.extend(&message);
        let Some(FirstMessage::Chose(choice)) = first_message(&bytes) else { panic!() };
        assert_eq!((choice.version, choice.cipher_suite.0), (WireVersion::SSL30, 5));
        for cut in 0..bytes.len() {
            assert_eq!(first_message(&bytes[..cut]), None);
        }
        assert_eq!(first_message(&[21, 3, 3, 0, 2, 2, 40]), Some(FirstMessage::Alert(40)));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = first_message(&bytes);
            let _ = first_message(&[&[22, 3, 3, 0, 60, 2, 0, 0, 38][..], &bytes].concat());
        }
    }
}
