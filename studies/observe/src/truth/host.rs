//! The names that clients ask servers for, and each one's share of the connections.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use fault::{Explain, Fault};
use study::{PlanError, Sweep, UnknownValue};
use testbed::SERVER_NAME;
use thiserror::Error;

/// Name of the axis in samples.
pub(super) const HOST: &str = "host";
/// Longest name and longest label (RFC 1035 §2.3.4).
const NAME: usize = 253;
const LABEL: usize = 63;
/// Most names of a sweep: each has connections of its own that fetch tickets.
const HOSTS: usize = 32;
/// Most shares of a name.
const SHARES: u32 = 1000;

/// A server's name, as clients ask for it (RFC 6066 §3). Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Arc<str>);

impl Host {
    /// The name as in the hello.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for Host {
    fn default() -> Self {
        Host(SERVER_NAME.into())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text that is no name of a host. The caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a host name has labels of letters, digits and hyphens, and is not an address")]
pub struct NoHost;

impl Explain for NoHost {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write it like www.wiretax.test, with =3 behind it for three shares".into())
    }
}

impl FromStr for Host {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Host, NoHost> {
        let name = text.to_ascii_lowercase();
        // An address is no server name (RFC 6066 §3), nor is a name whose last label is a number.
        let number = name.rsplit('.').next().is_some_and(|last| last.bytes().all(is_digit));
        let fits = !name.is_empty() && name.len() <= NAME && name.split('.').all(is_label);
        if number || !fits { Err(NoHost) } else { Ok(Host(name.into())) }
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_label(label: &str) -> bool {
    let letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let edges = label.starts_with('-') || label.ends_with('-');
    (1..=LABEL).contains(&label.len()) && letters && !edges
}

/// The names of a sweep with their shares: `www.wiretax.test=3` has three, a name alone one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shares(Vec<(Host, u32)>);

impl Shares {
    /// Takes the shares out of a sweep's list, so that its words are names alone.
    pub(super) fn take(sweep: &mut Sweep) -> Result<Shares, PlanError> {
        let Some(words) = sweep.lists.get_mut(HOST) else {
            return Ok(Shares(vec![(Host::default(), 1)]));
        };
        let mut shares: Vec<(Host, u32)> = Vec::new();
        for word in words.iter_mut() {
            let (host, count) = read(word).map_err(|(why, remedy)| {
                let word = word.clone();
                UnknownValue { axis: HOST, word, why, remedy }
            })?;
            if shares.iter().any(|(own, _)| *own == host) {
                return Err(out_of_range(sweep, format!("`{HOST}` has {host} twice")));
            }
            *word = host.to_string();
            shares.push((host, count));
        }
        if shares.len() > HOSTS {
            let what =
                format!("`{HOST}` has {} names, and at most {HOSTS} are supported", shares.len());
            return Err(out_of_range(sweep, what));
        }
        Ok(Shares(shares))
    }

    /// How many of so many connections are to a host: whole ones by its share, and of what is left over one
    /// each to those that lack most, the first before the others. All together are all connections.
    pub(super) fn of(&self, host: &Host, connections: u32) -> u32 {
        let all: u64 = self.0.iter().map(|(_, shares)| u64::from(*shares)).sum();
        let parts = |shares: u32| u64::from(shares) * u64::from(connections);
        let whole = |shares: u32| parts(shares).checked_div(all).unwrap_or_default();
        let rest = |shares: u32| parts(shares).checked_rem(all).unwrap_or_default();
        let given: u64 = self.0.iter().map(|(_, shares)| whole(*shares)).sum();
        let left = u64::from(connections).saturating_sub(given);
        let Some(at) = self.0.iter().position(|(own, _)| own == host) else { return 0 };
        let Some((_, own)) = self.0.get(at) else { return 0 };
        // Who is served before it of what is left over.
        let before = self.0.iter().enumerate().filter(|(other, (_, shares))| {
            rest(*shares) > rest(*own) || (rest(*shares) == rest(*own) && *other < at)
        });
        let one_more = rest(*own) > 0 && (before.count() as u64) < left;
        u32::try_from(whole(*own)).unwrap_or(u32::MAX).saturating_add(u32::from(one_more))
    }
}

fn out_of_range(sweep: &Sweep, what: String) -> PlanError {
    PlanError::OutOfRange { sweep: sweep.name.clone(), what }
}

/// What is wrong, and what to do about it.
type Wrong = (String, Option<Cow<'static, str>>);

fn read(word: &str) -> Result<(Host, u32), Wrong> {
    let (name, shares) = word.split_once('=').map_or((word, None), |(n, s)| (n, Some(s)));
    let host: Host = name.trim().parse().map_err(|e: NoHost| (e.to_string(), e.remedy()))?;
    let Some(shares) = shares else { return Ok((host, 1)) };
    let count = shares.trim().parse().ok().filter(|count| (1..=SHARES).contains(count));
    let wrong = || (format!("a name has 1 to {SHARES} shares"), NoHost.remedy());
    Ok((host, count.ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(words: &[&str]) -> Result<Shares, PlanError> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let lists = [(HOST.to_owned(), words)].into();
        let mut sweep = Sweep { name: "demo".to_owned(), lists, ..Sweep::default() };
        let shares = Shares::take(&mut sweep)?;
        let names: Vec<String> = shares.0.iter().map(|(host, _)| host.to_string()).collect();
        assert_eq!(sweep.lists[HOST], names);
        Ok(shares)
    }

    fn split(words: &[&str], connections: u32) -> Vec<u32> {
        let shares = shares(words).unwrap();
        shares.0.iter().map(|(host, _)| shares.of(host, connections)).collect()
    }

    #[test]
    fn names_have_exactly_their_shares() {
        let words = ["www.wiretax.test=3", "api.wiretax.test", "IMG.wiretax.test = 2"];
        assert_eq!(split(&words, 12), [6, 2, 4]);
        // 15, 5 and 10 sixths: 2, 0 and 1, and one each to the two that lack most.
        assert_eq!(split(&words, 5), [2, 1, 2]);
        assert_eq!(split(&words, 1), [1, 0, 0]);
        assert_eq!(split(&["a.test", "b.test"], 3), [2, 1]);
        assert_eq!(split(&["a.test"], 7), [7]);
        for connections in 0..50 {
            assert_eq!(split(&words, connections).iter().sum::<u32>(), connections);
        }
        assert_eq!(shares(&["a.test"]).unwrap().of(&Host::default(), 9), 0);
        let mut without = Sweep::default();
        assert_eq!(Shares::take(&mut without).unwrap().of(&Host::default(), 9), 9);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for wrong in ["", "a b", "-a.test", "a..test", "192.0.2.1", "a.test=0", "a.test=x", "a_b"] {
            let error = shares(&[wrong]).unwrap_err();
            assert!(error.remedy().is_some(), "{wrong}");
            assert!(error.to_string().contains("`host`"), "{error}");
        }
        assert!(shares(&["a.test", "A.test=2"]).unwrap_err().to_string().contains("twice"));
        let many: Vec<String> = (0..33).map(|n| format!("h{n}.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(shares(&many).is_err() && shares(&many[..32]).is_ok());
        assert!(format!("{}.test", "x".repeat(64)).parse::<Host>().is_err());
    }
}
