//! What a test needs of the machine, and what becomes of it where that is missing.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::{Failure, TestResult};

/// Capabilities that are not to be missing, separated by commas, or `all`.
const REQUIRE: &str = "WIRETAX_REQUIRE";

/// A file to which each skipped test adds a line.
const SKIPS: &str = "WIRETAX_SKIPS";

/// What a test may need of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// User and network namespaces.
    Lab,
    /// TUN and TAP devices.
    Tap,
    /// IPv6 in the kernel.
    Ipv6,
    /// Rights that an ordinary user lacks.
    Root,
    /// The program `tshark`.
    Tshark,
    /// The program `openssl`.
    Openssl,
    /// The program `curl`.
    Curl,
    /// The program `nginx`.
    Nginx,
    /// The programs of nghttp2: `nghttp`, `h2load`.
    Nghttp,
    /// ngtcp2's client of HTTP/3, `gtlsclient`.
    Ngtcp2,
    /// The program `nft`, and a kernel that has nftables.
    Nft,
    /// The programs `ip` and `tc`.
    Ip,
    /// The programs of util-linux: `setpriv`, `unshare`, `mount`, `script`.
    UtilLinux,
    /// A C compiler.
    Cc,
    /// The program `valgrind`.
    Valgrind,
    /// Chromium's headless shell.
    Chromium,
    /// Node, with the modules that `scripts/node-judges.sh` installs.
    Node,
    /// aioquic, as `scripts/python-judges.sh` installs it.
    Aioquic,
    /// h2spec, as `scripts/go-judges.sh` builds it.
    H2spec,
    /// QEMU and a kernel, as `make guest` fetches them.
    Guest,
    /// What has to be built or fetched first and is named by a variable of the environment.
    Named,
    /// What only another kernel or another user could do: `all` does not demand it.
    Host,
}

impl Need {
    const ALL: [(Need, &'static str); 22] = [
        (Need::Lab, "lab"),
        (Need::Tap, "tap"),
        (Need::Ipv6, "ipv6"),
        (Need::Root, "root"),
        (Need::Tshark, "tshark"),
        (Need::Openssl, "openssl"),
        (Need::Curl, "curl"),
        (Need::Nginx, "nginx"),
        (Need::Nghttp, "nghttp"),
        (Need::Ngtcp2, "ngtcp2"),
        (Need::Nft, "nft"),
        (Need::Ip, "ip"),
        (Need::UtilLinux, "util-linux"),
        (Need::Cc, "cc"),
        (Need::Valgrind, "valgrind"),
        (Need::Chromium, "chromium"),
        (Need::Node, "node"),
        (Need::Aioquic, "aioquic"),
        (Need::H2spec, "h2spec"),
        (Need::Guest, "guest"),
        (Need::Named, "named"),
        (Need::Host, "host"),
    ];

    /// The capability that a program of the system stands for.
    #[must_use]
    pub fn of_program(program: &str) -> Need {
        match program {
            "tshark" => Need::Tshark,
            "openssl" => Need::Openssl,
            "curl" => Need::Curl,
            "nginx" => Need::Nginx,
            "nghttp" | "h2load" => Need::Nghttp,
            "gtlsclient" => Need::Ngtcp2,
            "nft" => Need::Nft,
            "ip" | "tc" => Need::Ip,
            "setpriv" | "unshare" | "mount" | "script" => Need::UtilLinux,
            "cc" => Need::Cc,
            "valgrind" => Need::Valgrind,
            "chromium-headless-shell" => Need::Chromium,
            "node" | "npm" => Need::Node,
            _ => Need::Host,
        }
    }

    /// Whether these capabilities, as `WIRETAX_REQUIRE` has them, contain this one.
    fn is_in(self, required: &str) -> bool {
        let names = required.split([',', ' ']).filter(|name| !name.is_empty());
        names.into_iter().any(|name| {
            let known = Need::ALL.iter().find(|(_, known)| *known == name);
            match known {
                Some((need, _)) => *need == self,
                None if name == "all" => !matches!(self, Need::Host | Need::Named),
                None => panic!("{REQUIRE}: there is no capability `{name}`; known are {}", all()),
            }
        })
    }
}

fn all() -> String {
    Need::ALL.map(|(_, name)| name).join(", ")
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Need::ALL.iter().find(|(need, _)| need == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// Why a test was not run.
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Ends a test of [`crate::main`] as skipped for the lack of what it needs.
///
/// # Errors
/// Always: the skip, or a failure where this machine is required to have it.
pub fn skip<T>(need: Need, reason: impl Into<String>) -> TestResult<T> {
    let reason = reason.into();
    match refusal(need, &reason) {
        Some(refusal) => Err(refusal),
        None => Err(Box::new(Skip(reason))),
    }
}

/// What an ordinary test says that ends as skipped: use [`crate::skip!`].
///
/// # Panics
/// This machine is required to have it.
pub fn skipped(need: Need, reason: &str) {
    if let Some(refusal) = refusal(need, reason) {
        panic!("{refusal}");
    }
    eprintln!("SKIPPED: {reason}");
    // libtest names each test's thread by the test.
    let thread = std::thread::current();
    note(thread.name().unwrap_or("?"), reason);
}

/// Ends an ordinary test as skipped for the lack of what it needs: `skip!(Need::Ipv6, "reason")`.
#[macro_export]
macro_rules! skip {
    ($need:expr, $($reason:tt)+) => {{
        $crate::skipped($need, &format!($($reason)+));
        return;
    }};
}

fn refusal(need: Need, reason: &str) -> Option<Failure> {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    need.is_in(&required).then(|| format!("{REQUIRE} demands `{need}`, but: {reason}").into())
}

/// Adds a skipped test to the list that `make test` prints at its end.
pub(crate) fn note(test: &str, reason: &str) {
    let Some(list) = std::env::var_os(SKIPS) else { return };
    let binary = std::env::current_exe().unwrap_or_default();
    let binary = binary.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // The name without cargo's hash.
    let binary = binary.rsplit_once('-').map_or(binary.as_str(), |(name, _)| name);
    let file = std::fs::File::options().create(true).append(true).open(list);
    // One write, so that lines of several processes do not mix.
    let line = format!("{binary}: {test}: {}\n", reason.replace('\n', " "));
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("{SKIPS}: {error}");
    }
}

/// Where a program of the system is, in the administrator's folders too.
#[must_use]
pub fn program(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let file = folders.map(|folder| folder.join(name)).find(|file| Path::is_file(file))?;
    Some(file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_capabilities_demands_these() {
        assert!(Need::Tshark.is_in("lab,tshark"));
        assert!(!Need::Curl.is_in("lab,tshark") && !Need::Lab.is_in(""));
        assert!(Need::Curl.is_in("all") && !Need::Host.is_in("all"));
        assert!(Need::Host.is_in("all host"));
    }

    #[test]
    #[should_panic(expected = "there is no capability `thsark`")]
    fn a_misspelled_capability_is_no_silence() {
        let _ = Need::Tshark.is_in("thsark");
    }

    #[test]
    fn names_are_their_own() {
        for (need, name) in Need::ALL {
            assert_eq!(need.to_string(), name);
        }
    }
}
