//! A proxy's address and credentials, as a URL has them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use thiserror::Error;
use zeroize::Zeroizing;

units::named! {
    /// How a proxy is asked for a connection.
    pub enum Scheme: "kind of proxy" {
        /// CONNECT (RFC 9110 §9.3.6).
        Http = "http",
        /// SOCKS version 5 (RFC 1928); the proxy resolves names.
        Socks5 = "socks5" | "socks5h" | "socks",
    }
}

impl Scheme {
    /// The default port, as curl has it.
    const fn port(self) -> u16 {
        match self {
            Scheme::Http | Scheme::Socks5 => 1080,
        }
    }
}

/// A user and a password. `Debug` hides both; the password is overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) user: Zeroizing<Vec<u8>>,
    pub(super) password: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// A proxy. `Display` leaves the credentials out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// How it is asked.
    pub scheme: Scheme,
    /// A DNS name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// User and password, if the proxy wants them.
    pub credentials: Option<Credentials>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { scheme, host, port, .. } = self;
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

/// A text that names no proxy. It never quotes the text, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The scheme is missing or unknown.
    #[error("the proxy's scheme is neither http nor socks5")]
    Scheme,
    /// TLS to the proxy itself.
    #[error("TLS to the proxy itself (https://) is not supported")]
    Https,
    /// The host is missing or has characters that no host has.
    #[error("the proxy's host is missing or is no host")]
    Host,
    /// The port is not 1 to 65535.
    #[error("the proxy's port is not a number from 1 to 65535")]
    Port,
    /// A percent sign that no two hexadecimal digits follow.
    #[error("the proxy's user or password has a wrong percent escape")]
    Escape,
    /// User or password is empty or too long (RFC 1929 §2), or the user has a colon (RFC 7617 §2).
    #[error("the proxy's user or password cannot be sent")]
    Credentials,
    /// A path, a query or a fragment follows.
    #[error("something follows the proxy's port")]
    Path,
}

impl Explain for AddressError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            AddressError::Escape => "write `%` as `%25`, `@` as `%40`, `:` as `%3A`",
            AddressError::Credentials => "give 1 to 255 bytes of each, and no colon in the user",
            AddressError::Https => "use the proxy's port without TLS, as http://",
            _ => "write http://HOST:PORT or socks5://USER:PASSWORD@HOST:PORT",
        };
        Some(remedy.into())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Scheme)?;
        if scheme.eq_ignore_ascii_case("https") {
            return Err(AddressError::Https);
        }
        let scheme: Scheme = scheme.parse().map_err(|_| AddressError::Scheme)?;
        // A password with an unescaped `@` is common; a host never has one.
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(self::credentials(credentials)?), rest),
            None => (None, rest),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(AddressError::Path);
        }
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or(AddressError::Port)?,
            None => scheme.port(),
        };
        Ok(Address { scheme, host: host.to_owned(), port, credentials })
    }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), AddressError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest.split_once(']').ok_or(AddressError::Host)?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| AddressError::Host)?;
            match tail.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if tail.is_empty() => (host, None),
                None => return Err(AddressError::Port),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_odd = |byte: u8| !byte.is_ascii_graphic();
    if host.is_empty() || host.len() > 255 || host.bytes().any(is_odd) {
        return Err(AddressError::Host);
    }
    Ok((host, port))
}

fn credentials(text: &str) -> Result<Credentials, AddressError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (unescaped(user)?, unescaped(password)?);
    if user.is_empty() || user.len() > 255 || password.len() > 255 || user.contains(&b':') {
        return Err(AddressError::Credentials);
    }
    Ok(Credentials { user, password })
}

/// Undoes percent encoding (RFC 3986 §2.1).
fn unescaped(text: &str) -> Result<Zeroizing<Vec<u8>>, AddressError> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [] => return Ok(bytes),
            [b'%', high, low, after @ ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
                    return Err(AddressError::Escape);
                };
                bytes.push(u8::try_from(high << 4 | low).map_err(|_| AddressError::Escape)?);
                rest = after;
            }
            [b'%', ..] => return Err(AddressError::Escape),
            [byte, after @ ..] => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_as_people_write_them() {
        for (text, shown) in [
            ("http://proxy.test:3128", "http://proxy.test:3128"),
            ("HTTP://proxy.test:3128/", "http://proxy.test:3128"),
            ("socks5://[::1]:9050", "socks5://[::1]:9050"),
            ("socks5h://192.0.2.1", "socks5://192.0.2.1:1080"),
            ("http://proxy.test", "http://proxy.test:1080"),
            ("http://user:secret@proxy.test:8080", "http://proxy.test:8080"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn a_password_is_unescaped_and_never_shown() {
        let address: Address = "http://us%65r:se@cr:e%25t@proxy.test:1".parse().unwrap();
        let Credentials { user, password } = address.credentials.clone().unwrap();
        assert_eq!((&user[..], &password[..]), (&b"user"[..], &b"se@cr:e%t"[..]));
        for shown in [format!("{address:?}"), address.to_string()] {
            assert!(!shown.contains("se@") && !shown.contains("user"), "{shown}");
        }
        let only_user: Address = "socks5://user@proxy.test".parse().unwrap();
        assert!(only_user.credentials.unwrap().password.is_empty());
    }

    #[test]
    fn wrong_addresses_are_refused_without_a_quote() {
        let long = format!("http://{}:secret@proxy.test", "u".repeat(256));
        for (text, error) in [
            ("proxy.test:3128", AddressError::Scheme),
            ("ftp://proxy.test", AddressError::Scheme),
            ("socks4://proxy.test", AddressError::Scheme),
            ("https://user:secret@proxy.test", AddressError::Https),
            ("http://", AddressError::Host),
            ("http://a b", AddressError::Host),
            ("http://[::1", AddressError::Host),
            ("http://[x]:1", AddressError::Host),
            ("http://[::1]1", AddressError::Port),
            ("http://proxy.test:0", AddressError::Port),
            ("http://proxy.test:65536", AddressError::Port),
            ("http://user:secret@proxy.test:x", AddressError::Port),
            ("http://user:secr%et@proxy.test", AddressError::Escape),
            ("http://user:secret%2@proxy.test", AddressError::Escape),
            ("http://:secret@proxy.test", AddressError::Credentials),
            ("http://us%3Aer:secret@proxy.test", AddressError::Credentials),
            (long.as_str(), AddressError::Credentials),
            ("http://proxy.test:1/x", AddressError::Path),
        ] {
            let found = text.parse::<Address>().unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!found.in_one_text().contains("secr"), "{found}");
        }
    }
}
