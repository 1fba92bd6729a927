//! The program, on a node of the lab.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use lab::{Event, Node, Program, Ready, Running};

use crate::Error;

/// How long it may take to listen: on a busy machine, some seconds.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// What it writes as it listens; behind it stands where.
const LISTENING: &str = "DevTools listening on ";
/// Its folder, in the `/run` of its own that the lab gives it.
const PROFILE: &str = "/run/profile";

/// Flags of every start. The lab is the sandbox: within its namespaces Chromium's own does not work. One
/// process has all frames, so that one DevTools session sees all requests.
const FLAGS: [&str; 19] = [
    "--headless",
    "--no-sandbox",
    "--remote-debugging-port=0",
    "--remote-debugging-address=127.0.0.1",
    "--user-data-dir=/run/profile",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-breakpad",
    "--mute-audio",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process",
];

/// The versions of HTTP that Chromium speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1, in clear or in TLS as the URLs say.
    V1,
    /// HTTP/2, by ALPN in TLS.
    V2,
    /// HTTP/3, without looking for it: for a certificate of one's own that is the only way.
    V3,
}

/// How it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// What it speaks.
    pub http: Http,
    /// The server's key, which is trusted whatever signed its certificate: SHA-256 of the
    /// SubjectPublicKeyInfo in base64.
    pub key_pin: Option<String>,
    /// Whom it asks for names.
    pub name_server: IpAddr,
}

impl Setting {
    fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = FLAGS.map(str::to_owned).to_vec();
        flags.extend(match self.http {
            Http::V1 => vec!["--disable-http2".to_owned(), "--disable-quic".to_owned()],
            Http::V2 => vec!["--disable-quic".to_owned()],
            Http::V3 => vec!["--enable-quic".to_owned(), "--origin-to-force-quic-on=*".to_owned()],
        });
        let pin = self.key_pin.as_ref();
        flags.extend(pin.map(|pin| format!("--ignore-certificate-errors-spki-list={pin}")));
        flags
    }
}

/// Where DevTools listens, within the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) url: String,
}

impl Address {
    /// From the line that says it: `DevTools listening on ws://127.0.0.1:1234/devtools/browser/…`.
    fn of_line(line: &str) -> Option<Address> {
        let url = line.split_once(LISTENING)?.1.trim();
        let read = url::Url::parse(url).ok().filter(|url| url.scheme() == "ws")?;
        let local = read.host_str() == Some("127.0.0.1");
        Some(Address { port: read.port().filter(|_| local)?, url: url.to_owned() })
    }
}

/// A Chromium that runs on a node. Dropped, it is gone, with all its processes and files.
#[derive(Debug)]
pub struct Chromium {
    pub(crate) address: Address,
    _running: Running,
}

impl Chromium {
    /// Starts the program on a node, and waits until DevTools listens.
    ///
    /// # Errors
    /// It cannot be started, or does not say where DevTools listens.
    pub fn start(node: &Node, program: &Path, setting: &Setting) -> Result<Chromium, Error> {
        let program = Program::new(program)
            .args(setting.flags())
            .env("HOME", PROFILE)
            .env("XDG_RUNTIME_DIR", PROFILE)
            .name_server(setting.name_server)
            .unprivileged()
            .ready_when(Ready::Line(LISTENING.to_owned()), READY_LIMIT);
        let running = node.launch(&program)?;
        let Some(Event::Line { text, .. }) = running.next_line_with(LISTENING, READY_LIMIT) else {
            return Err(Error::NoPort);
        };
        let address = Address::of_line(&text).ok_or(Error::NoPort)?;
        Ok(Chromium { address, _running: running })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_a_local_one() {
        let line = "DevTools listening on ws://127.0.0.1:40123/devtools/browser/ab-cd\r";
        let address = Address::of_line(line).unwrap();
        assert_eq!(
            (address.port, &*address.url),
            (40123, "ws://127.0.0.1:40123/devtools/browser/ab-cd")
        );
        for wrong in [
            "",
            "DevTools listening on",
            "DevTools listening on ws://10.0.0.1:1/x",
            "DevTools listening on http://127.0.0.1:1/",
            "DevTools listening on ws://127.0.0.1/",
        ] {
            assert_eq!(Address::of_line(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn flags_say_the_protocol() {
        let flags = |http| {
            let name_server = [10, 0, 0, 2].into();
            Setting { http, key_pin: Some("abc=".to_owned()), name_server }.flags().join(" ")
        };
        assert!(flags(Http::V1).contains("--disable-http2 --disable-quic"));
        assert!(!flags(Http::V2).contains("--disable-http2"));
        assert!(flags(Http::V3).contains("--origin-to-force-quic-on=*"));
        assert!(flags(Http::V3).contains("--ignore-certificate-errors-spki-list=abc="));
        assert!(flags(Http::V1).contains(PROFILE));
    }
}
