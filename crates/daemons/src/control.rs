//! The control socket of hostapd and wpa_supplicant: a datagram asks, a datagram answers.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::{Daemon, Error};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of the longest answer.
const LONGEST: usize = 1 << 14;

/// Numbers of sockets, whose names must differ in a node.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The control socket of a daemon.
#[derive(Debug)]
pub struct Control {
    socket: UnixDatagram,
    daemon: &'static str,
    node: String,
}

impl Control {
    /// Opens the socket at a path below the daemon's `/run`.
    ///
    /// # Errors
    /// [`Error::Control`].
    pub fn open(daemon: &Daemon, path: &str) -> Result<Control, Error> {
        let path = daemon.running().run_dir().join(path);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // An abstract name, since the daemon does not have our folders. Such names are of a network namespace.
        let open = move || -> io::Result<UnixDatagram> {
            let own = SocketAddr::from_abstract_name(format!("control-{number}"))?;
            let socket = UnixDatagram::bind_addr(&own)?;
            socket.connect(path)?;
            socket.set_read_timeout(Some(LIMIT))?;
            Ok(socket)
        };
        let (name, node) = (daemon.name(), daemon.node().name().to_owned());
        let socket = daemon.node().run(open)?.map_err(|source| Error::Control {
            daemon: name,
            node: node.clone(),
            command: "open its control socket".to_owned(),
            source,
        })?;
        Ok(Control { socket, daemon: name, node })
    }

    /// Asks; what was answered, whatever it is.
    ///
    /// # Errors
    /// [`Error::Control`].
    pub fn ask(&self, command: &str) -> Result<String, Error> {
        let failed = |source| Error::Control {
            daemon: self.daemon,
            node: self.node.clone(),
            command: command.to_owned(),
            source,
        };
        self.socket.send(command.as_bytes()).map_err(failed)?;
        let mut buffer = vec![0; LONGEST];
        loop {
            let len = self.socket.recv(&mut buffer).map_err(failed)?;
            let answer = String::from_utf8_lossy(buffer.get(..len).unwrap_or_default());
            // What was not asked for begins with a level: `<3>`.
            if !answer.starts_with('<') {
                return Ok(answer.trim_end().to_owned());
            }
        }
    }

    /// Orders: the answer must be that it is done.
    ///
    /// # Errors
    /// [`Error::Control`], [`Error::Refused`].
    pub fn order(&self, command: &str) -> Result<(), Error> {
        let answer = self.ask(command)?;
        match answer.as_str() {
            "OK" => Ok(()),
            _ => Err(Error::Refused {
                daemon: self.daemon,
                node: self.node.clone(),
                command: command.to_owned(),
                answer,
            }),
        }
    }

    /// The value of a field of `STATUS`.
    ///
    /// # Errors
    /// [`Error::Control`].
    pub fn status(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(field(&self.ask("STATUS")?, name).map(str::to_owned))
    }
}

/// The value of a line `name=value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "bssid=02:00:00:00:01:00\nfreq=2437\nssid=labB\nwpa_state=COMPLETED\n";
        assert_eq!(field(text, "ssid"), Some("labB"));
        assert_eq!(field(text, "wpa_state"), Some("COMPLETED"));
        assert_eq!(field(text, "state"), None);
    }
}
