//! The protocols that carry a page.

use units::named;

named! {
    /// A version of HTTP and what lies under it.
    pub enum Protocol: "protocol" {
        /// HTTP/1.1 over TCP (RFC 9112).
        Http1Clear = "http/1.1-clear",
        /// HTTP/1.1 over TLS.
        Http1 = "http/1.1",
        /// SPDY/3 over TLS: streams have windows, the session has none.
        Spdy3 = "spdy/3",
        /// SPDY/3.1 over TLS: the session has a window too.
        Spdy31 = "spdy/3.1",
        /// HTTP/2 over TLS (RFC 9113).
        Http2 = "h2",
        /// HTTP/3 over QUIC (RFC 9114).
        Http3 = "h3",
    }
}

impl Protocol {
    /// Its name in ALPN (RFC 7301); empty where there is no TLS.
    #[must_use]
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::Http1Clear => b"",
            Protocol::Http1 => b"http/1.1",
            Protocol::Spdy3 => b"spdy/3",
            Protocol::Spdy31 => b"spdy/3.1",
            Protocol::Http2 => b"h2",
            Protocol::Http3 => b"h3",
        }
    }

    /// What a name in ALPN means over TCP; none negotiated is HTTP/1.1.
    pub(crate) fn of_alpn(name: Option<&[u8]>) -> Option<Protocol> {
        let Some(name) = name else { return Some(Protocol::Http1) };
        let over_tcp = [Protocol::Http1, Protocol::Spdy3, Protocol::Spdy31, Protocol::Http2];
        over_tcp.into_iter().find(|protocol| protocol.alpn() == name)
    }

    /// Whether one connection carries many exchanges at once.
    #[must_use]
    pub fn is_multiplexed(self) -> bool {
        !matches!(self, Protocol::Http1Clear | Protocol::Http1)
    }

    /// Whether it runs over TCP.
    #[must_use]
    pub fn is_over_tcp(self) -> bool {
        self != Protocol::Http3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpn_names_over_tcp_are_found_again() {
        for protocol in [Protocol::Http1, Protocol::Spdy3, Protocol::Spdy31, Protocol::Http2] {
            assert_eq!(Protocol::of_alpn(Some(protocol.alpn())), Some(protocol));
        }
        assert_eq!(Protocol::of_alpn(None), Some(Protocol::Http1));
        // HTTP/3 is not for TCP (RFC 9114 §3.1), and no name is the empty one.
        assert_eq!(Protocol::of_alpn(Some(b"h3")), None);
        assert_eq!(Protocol::of_alpn(Some(b"")), None);
    }
}
