//! What to change: how to switch a mode on, in the words of the servers that engineers run.

use serde::Serialize;

use crate::mode::{Mode, Security, Transport};

/// A piece of configuration that switches something on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// What is configured: `nginx`, `HAProxy`, `sysctl`.
    pub of: &'static str,
    /// The lines, ready to be pasted.
    pub lines: &'static str,
}

/// Something that a mode needs switched on, beside a server that speaks TLS 1.2 over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Ingredient {
    /// TLS 1.3.
    Tls13,
    /// Session tickets that are honoured.
    Resumption,
    /// Requests as early data.
    EarlyData,
    /// QUIC, as HTTP/3.
    Quic,
    /// TCP Fast Open with cookies.
    FastOpen,
    /// TCP Fast Open without cookies.
    FastOpenNoCookie,
    /// SSLmTCP, by a pair of gateways.
    SslmTcp,
}

impl Ingredient {
    /// All, in the order to switch them on.
    pub const ALL: [Ingredient; 7] = [
        Ingredient::Tls13,
        Ingredient::Resumption,
        Ingredient::EarlyData,
        Ingredient::Quic,
        Ingredient::FastOpen,
        Ingredient::FastOpenNoCookie,
        Ingredient::SslmTcp,
    ];

    /// What a mode needs.
    #[must_use]
    pub fn of(mode: Mode) -> Vec<Ingredient> {
        let security: &[Ingredient] = match mode.security {
            Security::Plain | Security::Tls12Rsa | Security::Tls12 => &[],
            Security::Tls12Resumed => &[Ingredient::Resumption],
            Security::Tls13 | Security::Tls13HelloRetry => &[Ingredient::Tls13],
            Security::Tls13Resumed => &[Ingredient::Tls13, Ingredient::Resumption],
            Security::Tls13EarlyData => {
                &[Ingredient::Tls13, Ingredient::Resumption, Ingredient::EarlyData]
            }
        };
        let transport: &[Ingredient] = match mode.transport {
            Transport::Tcp | Transport::UserTcp => &[],
            Transport::TcpFastOpen => &[Ingredient::FastOpen],
            Transport::TcpFastOpenNoCookie => &[Ingredient::FastOpenNoCookie],
            Transport::Quic => &[Ingredient::Quic],
            Transport::SslmTcp => &[Ingredient::SslmTcp],
        };
        [security, transport].concat()
    }

    /// Its name, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Ingredient::Tls13 => "TLS 1.3",
            Ingredient::Resumption => "Session resumption",
            Ingredient::EarlyData => "Early data (0-RTT)",
            Ingredient::Quic => "QUIC (HTTP/3)",
            Ingredient::FastOpen => "TCP Fast Open",
            Ingredient::FastOpenNoCookie => "TCP Fast Open without cookies",
            Ingredient::SslmTcp => "SSLmTCP",
        }
    }

    /// The settings that switch it on.
    #[must_use]
    pub fn settings(self) -> &'static [Setting] {
        match self {
            Ingredient::Tls13 => &[
                Setting {
                    of: "nginx",
                    lines: "ssl_protocols TLSv1.2 TLSv1.3;\n\
                            ssl_ecdh_curve X25519MLKEM768:X25519:prime256v1;",
                },
                Setting {
                    of: "HAProxy",
                    lines: "ssl-default-bind-options ssl-min-ver TLSv1.2\n\
                            ssl-default-bind-curves X25519MLKEM768:X25519:P-256",
                },
            ],
            Ingredient::Resumption => &[
                Setting {
                    of: "nginx",
                    lines: "ssl_session_cache shared:tls:10m;\nssl_session_timeout 1d;\n\
                            ssl_session_tickets on;",
                },
                Setting {
                    of: "HAProxy",
                    lines: "tune.ssl.cachesize 100000\ntune.ssl.lifetime 86400",
                },
            ],
            Ingredient::EarlyData => &[
                Setting {
                    of: "nginx",
                    lines: "ssl_early_data on;\nproxy_set_header Early-Data $ssl_early_data;",
                },
                Setting {
                    of: "HAProxy",
                    lines: "bind :443 ssl crt /etc/haproxy/site.pem allow-0rtt\n\
                            http-request wait-for-handshake if ! METH_GET",
                },
            ],
            Ingredient::Quic => &[
                Setting {
                    of: "nginx",
                    lines: "listen 443 quic reuseport;\nlisten 443 ssl;\nhttp3 on;\n\
                            add_header Alt-Svc 'h3=\":443\"; ma=86400' always;",
                },
                Setting {
                    of: "HAProxy",
                    lines: "bind quic4@:443 ssl crt /etc/haproxy/site.pem alpn h3\n\
                            http-response set-header alt-svc \"h3=\\\":443\\\"; ma=86400\"",
                },
                // RFC 9460 §7.1: without it a first visit learns of HTTP/3 only from its answer.
                Setting { of: "DNS", lines: "example.org. 3600 IN HTTPS 1 . alpn=h3,h2" },
            ],
            Ingredient::FastOpen => &[
                Setting {
                    of: "sysctl",
                    lines: "net.ipv4.tcp_fastopen = 3   # 1: as a client, 2: as a server",
                },
                Setting { of: "nginx", lines: "listen 443 ssl fastopen=256;" },
                Setting { of: "HAProxy", lines: "bind :443 ssl crt /etc/haproxy/site.pem tfo" },
            ],
            Ingredient::FastOpenNoCookie => &[Setting {
                of: "sysctl",
                lines: "net.ipv4.tcp_fastopen = 0x602   # on the server\n\
                        net.ipv4.tcp_fastopen = 0x5     # on the client",
            }],
            Ingredient::SslmTcp => &[Setting {
                of: "wiretax",
                lines: "# at the server; `wiretax gateway --help` has certificates and rights\n\
                        wiretax gateway serve --listen 192.0.2.10:443 --to 127.0.0.1:80 --redirect \\\n  \
                        --certificate chain.pem --key key.pem\n\
                        # at the client\n\
                        wiretax gateway connect --listen 127.0.0.1:8080 --to 192.0.2.10:443 \\\n  \
                        --server-name example.org --redirect",
            }],
        }
    }

    /// What can go wrong with it.
    #[must_use]
    pub fn caution(self) -> &'static str {
        match self {
            Ingredient::Tls13 => {
                "Put the groups first that your clients offer a key share for, or some pay a \
                 HelloRetryRequest: one round trip more (RFC 8446 §4.1.4). X25519MLKEM768 needs \
                 OpenSSL 3.5 or later behind the server."
            }
            Ingredient::Resumption => {
                "Only returning clients benefit, and only if every server behind the name shares \
                 the ticket keys; rotate these at least daily."
            }
            Ingredient::EarlyData => {
                "Early data can be replayed (RFC 8446 §8): let only requests through that may \
                 happen twice, and answer the others with 425 (RFC 8470)."
            }
            Ingredient::Quic => {
                "UDP port 443 must be open; clients behind networks that drop it stay on TCP. With \
                 Alt-Svc alone the first visit goes over TCP: the HTTPS record tells clients \
                 before it. A certificate chain above about 3.6 kB costs a round trip (RFC 9000 §8.1)."
            }
            Ingredient::FastOpen => {
                "A first visit still takes the full handshake: it fetches the cookie. Browsers \
                 leave Fast Open off, so it serves programs of your own on both sides. A plain \
                 request in a SYN can arrive twice (RFC 7413 §2.1); a ClientHello may."
            }
            Ingredient::FastOpenNoCookie => {
                "Without cookies anyone can make the server work and answer by forged SYNs: only \
                 between hosts of one network that drops forged addresses (RFC 7413 §6.2)."
            }
            Ingredient::SslmTcp => {
                "Both ends are programs of yours: browsers know nothing of it, and TLS ends at the \
                 gateway. A middlebox that drops data on a SYN costs the first connection a second \
                 (see the fallbacks); an ordinary peer costs no round trip."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ingredient_is_needed_by_a_mode_and_can_be_switched_on() {
        for ingredient in Ingredient::ALL {
            let needed = |mode: &Mode| Ingredient::of(*mode).contains(&ingredient);
            assert!(Mode::all().iter().any(needed), "{ingredient:?}");
            assert!(!ingredient.settings().is_empty(), "{ingredient:?}");
        }
    }

    #[test]
    fn a_mode_needs_what_it_is_made_of() {
        let of = |mode: &str| Ingredient::of(mode.parse().unwrap());
        assert_eq!(of("tcp+tls12"), []);
        assert_eq!(of("quic"), [Ingredient::Tls13, Ingredient::Quic]);
        assert_eq!(
            of("tfo+tls13-0rtt"),
            [
                Ingredient::Tls13,
                Ingredient::Resumption,
                Ingredient::EarlyData,
                Ingredient::FastOpen
            ]
        );
    }
}
