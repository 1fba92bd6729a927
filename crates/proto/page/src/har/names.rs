//! The names of hosts and the paths of objects, as a page has them: each its own.

use std::collections::{HashMap, HashSet};
use std::net::Ipv6Addr;

use url::{Host, Url};

use crate::page::Page;

/// Most characters of a host's name: with what may stand before it, it is a name yet (RFC 1035 §2.3.4).
const MOST_NAME: usize = 220;
/// Characters that a path that is cut leaves for a query more.
const ROOM: usize = 40;

/// The names of a page's hosts.
#[derive(Default)]
pub(super) struct Names {
    by_host: HashMap<(String, Option<u16>), String>,
    taken: HashSet<String>,
}

impl Names {
    /// The name of a URL's host, with the port before it if it is not the usual one; `None` if it has no
    /// host. Two hosts never have the same name.
    pub(super) fn of(&mut self, url: &Url) -> Option<String> {
        let host = url.host()?;
        let key = (host.to_string(), url.port());
        if let Some(name) = self.by_host.get(&key) {
            return Some(name.clone());
        }
        let name = match host {
            Host::Domain(domain) => of_domain(domain),
            // A browser takes an address in place of a name for itself, and asks no name server.
            Host::Ipv4(address) => format!("ip-{}", address.to_string().replace('.', "-")),
            Host::Ipv6(address) => of_ipv6(address),
        };
        let name = match url.port() {
            Some(port) => format!("port-{port}.{name}"),
            None => name,
        };
        let others = (2u32..).map(|number| format!("other-{number}.{name}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        let name = names.find(|name| !self.taken.contains(name))?;
        self.taken.insert(name.clone());
        self.by_host.insert(key, name.clone());
        Some(name)
    }
}

/// A name of letters, digits and hyphens alone, of the last labels if it is too long.
fn of_domain(domain: &str) -> String {
    let letter = |c: char| {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }
    };
    let name: String = domain.chars().map(letter).collect();
    let mut labels = Vec::new();
    let mut length = 0;
    for label in name.rsplit('.') {
        let label: String = label.trim_matches('-').chars().take(63).collect();
        // What was cut may end with a hyphen.
        let label = label.trim_end_matches('-').to_owned();
        length += label.len() + 1;
        if length > MOST_NAME {
            break;
        }
        if !label.is_empty() {
            labels.push(label);
        }
    }
    labels.reverse();
    if labels.is_empty() { "host".to_owned() } else { labels.join(".") }
}

/// The address in all its digits.
fn of_ipv6(address: Ipv6Addr) -> String {
    let segments = address.segments().map(|segment| format!("{segment:04x}"));
    format!("ip6-{}", segments.join("-"))
}

/// Gives the hosts with the fewest objects one common name, so that [`Page::MAX_HOSTS`] are left. `own`, the
/// host of the page itself, keeps its name. Returns the number of hosts that share the name.
pub(super) fn merged<'a>(hosts: impl Iterator<Item = &'a mut String>, own: &str) -> usize {
    let mut hosts: Vec<&mut String> = hosts.collect();
    let mut objects: HashMap<String, usize> = HashMap::new();
    for host in &hosts {
        *objects.entry((**host).clone()).or_default() += 1;
    }
    if objects.len() <= Page::MAX_HOSTS {
        return 0;
    }
    let mut by_use: Vec<(&String, usize)> =
        objects.iter().map(|(host, count)| (host, *count)).collect();
    by_use.sort_by_key(|(host, count)| (*host != own, std::cmp::Reverse(*count), *host));
    let few: HashSet<&String> =
        by_use.into_iter().skip(Page::MAX_HOSTS - 1).map(|(host, _)| host).collect();
    let common = (0u32..).map(|number| format!("merged-{number}.invalid"));
    let mut common = common.filter(|name| !objects.contains_key(name));
    let common = common.next().unwrap_or_default();
    for host in &mut hosts {
        if few.contains(*host) {
            **host = common.clone();
        }
    }
    few.len()
}

/// The paths of a page's objects.
#[derive(Default)]
pub(super) struct Paths {
    taken: HashSet<(u32, String)>,
}

impl Paths {
    /// The path with a query more where another object of the host has it already. `at` is the object's
    /// number.
    pub(super) fn distinct(&mut self, host: u32, path: String, at: usize) -> String {
        if self.taken.insert((host, path.clone())) {
            return path;
        }
        let path = if path.len() + ROOM > Page::MAX_PATH { cut(&path) } else { path };
        let separator = if path.contains('?') { '&' } else { '?' };
        for number in 0u32.. {
            let more = if number == 0 { String::new() } else { format!("-{number}") };
            let other = format!("{path}{separator}again={at}{more}");
            if self.taken.insert((host, other.clone())) {
                return other;
            }
        }
        path
    }
}

/// A path that can be asked for, and how many of its characters are left out.
pub(super) fn shortened(path: String) -> (String, usize) {
    if path.len() <= Page::MAX_PATH {
        return (path, 0);
    }
    let short = cut(&path);
    let left = path.len() - short.len();
    (short, left)
}

/// The beginning of a path. The mark at its end keeps it from ending with `.` or `..`, which browsers leave out.
fn cut(path: &str) -> String {
    let mut short: String = path.chars().take(Page::MAX_PATH - ROOM).collect();
    // No half of `%20`.
    if let Some(at) = short.rfind('%').filter(|at| short.len() - at < 3) {
        short.truncate(at);
    }
    short.push('~');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_name_of_its_own() {
        let mut names = Names::default();
        let long = format!("https://{}/", ["a".repeat(60).as_str(); 4].join("."));
        for (url, name) in [
            ("https://WWW.example/", "www.example"),
            ("https://www.example:8443/", "port-8443.www.example"),
            ("http://127.0.0.1/", "ip-127-0-0-1"),
            ("http://127.0.0.1:8080/", "port-8080.ip-127-0-0-1"),
            ("http://ip-127-0-0-1/", "other-2.ip-127-0-0-1"),
            ("http://[::1]/", "ip6-0000-0000-0000-0000-0000-0000-0000-0001"),
            ("http://[::]/", "ip6-0000-0000-0000-0000-0000-0000-0000-0000"),
            ("http://[::]:81/", "port-81.ip6-0000-0000-0000-0000-0000-0000-0000-0000"),
            ("http://my-site.example/", "my-site.example"),
            ("http://my_site.example/", "other-2.my-site.example"),
            ("http://_my-site.example/", "other-3.my-site.example"),
            ("http://_/", "host"),
            ("http://127.0.0.1/again", "ip-127-0-0-1"),
            (long.as_str(), [["a"; 60].concat().as_str(); 3].join(".").as_str()),
        ] {
            assert_eq!(names.of(&Url::parse(url).unwrap()).unwrap(), name, "{url}");
        }
    }

    #[test]
    fn paths_that_are_cut_stay_distinct_and_can_be_asked_for() {
        let mut paths = Paths::default();
        let (long, left) = shortened(format!("/?{}", "%20".repeat(4_000)));
        assert_eq!(long.len() + left, 12_002);
        assert!(long.ends_with("%20~"), "{long}");
        assert_eq!(paths.distinct(0, long.clone(), 1), long);
        let again = paths.distinct(0, long.clone(), 9_999);
        assert!(again.ends_with("~&again=9999") && again.len() <= Page::MAX_PATH, "{again}");
        assert_eq!(paths.distinct(1, long.clone(), 3), long);
        assert_eq!(paths.distinct(0, "/a?again=5".into(), 3), "/a?again=5");
        assert_eq!(paths.distinct(0, "/a".into(), 4), "/a");
        assert_eq!(paths.distinct(0, "/a".into(), 5), "/a?again=5-1");
    }
}
