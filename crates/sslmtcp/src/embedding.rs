//! Which messages of TLS ride in TCP's handshake.

use units::named;

named! {
    /// How a client carries the TLS handshake. A server takes all of them on one port.
    #[derive(Default)]
    pub enum Embedding: "embedding" {
        /// None of it: TCP, then TLS, over our TCP. The control of every comparison.
        None = "none",
        /// As the SSLmTCP paper has it: ClientHello in the SYN, the server's flight in the SYN+ACK, the
        /// client's in the ACK, each in an envelope of at least 1024 bytes (SSLmTCP paper §4.2). Meant
        /// for TLS 1.2 with RSA key exchange, which only OpenSSL has.
        Paper = "paper",
        /// The first bytes of an ordinary TLS stream ride in the SYN, and the server's answer in the
        /// SYN+ACK. Meant for TLS 1.3: the first request leaves with the ACK.
        #[default]
        Tls13 = "tls13",
        /// As [`Embedding::Tls13`], with a ticket's early data in the SYN too (RFC 8446 §2.3).
        ZeroRtt = "0rtt",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_printed() {
        for &embedding in Embedding::ALL {
            assert_eq!(embedding.to_string().parse(), Ok(embedding));
        }
        assert_eq!("TLS13".parse(), Ok(Embedding::Tls13));
        let error = "sslmtcp".parse::<Embedding>().unwrap_err();
        let remedy = fault::Explain::remedy(&error).unwrap_or_default();
        assert!(remedy.contains("0rtt"), "{error}: {remedy}");
    }
}
