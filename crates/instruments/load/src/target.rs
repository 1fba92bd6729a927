//! `https://host:port/path`, or `http` of HTTP/2 with prior knowledge.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use fault::{Explain, Fault};

/// A URL that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Whether it is `http`, without TLS.
    pub plaintext: bool,
    /// The name or address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The path with its query, beginning with `/`.
    pub path: String,
}

/// A text that is no such URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be loaded: {problem}")]
pub struct TargetError {
    text: String,
    problem: String,
}

impl Explain for TargetError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write https://host:port/path".into())
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let wrong = |problem: &str| TargetError { text: shown(text), problem: problem.to_owned() };
        let (plaintext, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (true, rest),
            Some((scheme, _)) => return Err(wrong(&format!("{} is not https", shown(scheme)))),
            None => (false, text),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        // What is not printable ASCII must be percent-encoded (RFC 3986 §2), and would split the request.
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("the path has blanks or other characters that must be %-encoded"));
        }
        if authority.contains('@') {
            return Err(wrong("names and passwords are not supported"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, after) =
                    inner.split_once(']').ok_or_else(|| wrong("the bracket is not closed"))?;
                if host.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(wrong("no IPv6 address is in the brackets"));
                }
                match after.strip_prefix(':') {
                    None if after.is_empty() => (host, None),
                    Some(port) => (host, Some(port)),
                    None => return Err(wrong("something else than a port follows the bracket")),
                }
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(allowed) {
            return Err(wrong("it has no host that can be asked for"));
        }
        let port = match port.map(str::parse::<u16>) {
            None if plaintext => 80,
            None => 443,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(wrong("its port is none")),
        };
        Ok(Target { plaintext, host: host.to_owned(), port, path })
    }
}

/// As much of a text as belongs in a message.
fn shown(text: &str) -> String {
    fault::excerpt(text, 200)
}

impl Target {
    /// What the Host field says (RFC 9110 §7.2).
    #[must_use]
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.plaintext { 80 } else { 443 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// The addresses of the host that `wanted` accepts, in the system's order, each once.
    ///
    /// # Errors
    /// The system's, when the name is not known or has no such address.
    pub fn resolve(&self, wanted: impl Fn(IpAddr) -> bool) -> std::io::Result<Vec<SocketAddr>> {
        let mut addresses = Vec::new();
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            if wanted(address.ip()) && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        match addresses.is_empty() {
            false => Ok(addresses),
            true => {
                let text = "the name has no such address";
                Err(std::io::Error::new(std::io::ErrorKind::NotFound, text))
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.plaintext { "http" } else { "https" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (text, host, port, path, printed) in [
            ("https://a.test", "a.test", 443, "/", "https://a.test/"),
            ("https://a.test:8443/x?y=z#f", "a.test", 8443, "/x?y=z", "https://a.test:8443/x?y=z"),
            ("HTTPS://127.0.0.1:1/", "127.0.0.1", 1, "/", "https://127.0.0.1:1/"),
            ("[::1]:4433?q", "::1", 4433, "/?q", "https://[::1]:4433/?q"),
            ("HTTP://a.test:80/x", "a.test", 80, "/x", "http://a.test/x"),
            ("http://a.test:443", "a.test", 443, "/", "http://a.test:443/"),
            ("localhost:9", "localhost", 9, "/", "https://localhost:9/"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(
                (target.host.as_str(), target.port, target.path.as_str()),
                (host, port, path)
            );
            assert_eq!(target.to_string(), printed);
            assert_eq!(printed.parse::<Target>().unwrap(), target);
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "https://",
            "ftp://a",
            "https://a:0",
            "https://a:x",
            "https://a:99999",
            "https://[::1",
            "https://[a]:1",
            "https://[::1]x",
            "https://u@a",
            "https://a b",
            "https://a/b c",
            "https://a/\r\nX: y",
            "https://a/ü",
            "a\nb",
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert_eq!(error.remedy().as_deref(), Some("write https://host:port/path"), "{text}");
        }
    }
}
