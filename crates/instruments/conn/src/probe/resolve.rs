//! From a host to addresses.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::sync::oneshot::{self, Receiver};

use super::report::Dns;
use super::{ProbeError, Target};
use crate::now;

/// Addresses that are tried, at most.
const MAX_ADDRESSES: usize = 4;

/// An address family, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4 or IPv6, as the system orders them.
    #[default]
    Any,
    /// IPv4 addresses only.
    V4,
    /// IPv6 addresses only.
    V6,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Any => "IP",
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

impl Family {
    fn admits(self, address: &SocketAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// The addresses to try, at least one; and how the name was resolved, if the host is a name.
pub(super) async fn resolve(
    target: &Target,
    timeout: Duration,
) -> Result<(Option<Dns>, Vec<SocketAddr>), ProbeError> {
    let (host, port) = target.hop();
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok((None, admitted(target, vec![(address, port).into()])?));
    }
    let unknown = |detail: String| ProbeError::UnknownHost { host: host.to_owned(), detail };
    let started = now();
    let answered = look_up(host.to_owned(), port).map_err(|error| {
        let (host, detail) = (host.to_owned(), error.to_string());
        ProbeError::Thread { host, detail }
    })?;
    let looked_up = tokio::time::timeout(timeout, answered)
        .await
        .map_err(|_| unknown(format!("no answer within {timeout:?}")))?
        .map_err(|error| unknown(error.to_string()))?
        .map_err(|error| unknown(error.to_string()))?;
    let time = now().saturating_since(started);
    let mut addresses = Vec::new();
    for address in looked_up {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(unknown("it has no address".to_owned()));
    }
    let dns = Dns {
        time_ms: time.as_secs_f64() * 1e3,
        addresses: addresses.iter().map(SocketAddr::ip).collect(),
    };
    // With a proxy the name that was looked up is the proxy's, and says nothing of the server.
    let dns = target.proxy.is_none().then_some(dns);
    Ok((dns, admitted(target, addresses)?))
}

/// Asks the system, on a thread that nobody waits for. tokio's own is a panic where there can be no thread.
fn look_up(host: String, port: u16) -> io::Result<Receiver<io::Result<Vec<SocketAddr>>>> {
    let (answer, answered) = oneshot::channel();
    let ask = move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Vec::from_iter);
        // Whoever asked may have given up.
        let _ = answer.send(found);
    };
    std::thread::Builder::new().name("resolver".to_owned()).spawn(ask)?;
    Ok(answered)
}

fn admitted(
    target: &Target,
    mut addresses: Vec<SocketAddr>,
) -> Result<Vec<SocketAddr>, ProbeError> {
    addresses.retain(|address| target.family.admits(address));
    addresses.truncate(MAX_ADDRESSES);
    if addresses.is_empty() {
        let (host, family) = (target.hop().0.to_owned(), target.family);
        return Err(ProbeError::NoAddress { host, family });
    }
    Ok(addresses)
}

/// An IPv6 address may be given in brackets.
pub(super) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_needs_no_dns_and_has_one_family() {
        let patience = Duration::from_secs(5);
        let mut target = Target::new("[::1]");
        let (dns, addresses) = resolve(&target, patience).await.unwrap();
        assert_eq!((dns, addresses), (None, vec!["[::1]:443".parse().unwrap()]));
        target.family = Family::V4;
        let error = resolve(&target, patience).await.unwrap_err();
        assert!(error.to_string().contains("no IPv4 address"), "{error}");
    }
}
