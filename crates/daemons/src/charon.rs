//! IKEv2: strongSwan's charon, told what to do by its control socket, so that keys are in no file.

use std::io;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use handoff::{Source, What};
use lab::{Node, Program, Ready};

use crate::vici::{self, Message};
use crate::{Daemon, Error};

/// What charon loads at run time.
pub const PLUGINS: [&str; 9] = [
    "random",
    "nonce",
    "openssl",
    "hmac",
    "kdf",
    "drbg",
    "kernel-netlink",
    "socket-default",
    "vici",
];

/// Where packages put a plugin, without the slash in front.
#[must_use]
pub fn plugin(name: &str) -> String {
    format!("usr/lib/ipsec/plugins/libstrongswan-{name}.so")
}

/// How long an exchange may take, with all that is sent again.
const LIMIT: Duration = Duration::from_secs(60);

/// One end of a security association between two who share a key (RFC 7296).
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its name in charon's configuration.
    pub name: String,
    /// This end's address; `None` for whatever is right.
    pub local: Option<Ipv4Addr>,
    /// The other end's; `None` for anyone.
    pub remote: Option<Ipv4Addr>,
    /// What this end is called.
    pub own_id: String,
    /// What the other is called.
    pub peer_id: String,
    /// What both know.
    pub key: String,
    /// Whether the association moves with its ends' addresses (RFC 4555).
    pub mobike: bool,
    /// What is protected at this end: networks, or `dynamic` for an address that the other gives.
    pub own_networks: String,
    /// What is protected at the other.
    pub peer_networks: String,
    /// Whether this end asks for an address.
    pub asks_address: bool,
    /// The pool that this end gives addresses of.
    pub pool: Option<(String, String)>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Connection {
    fn message(&self) -> Message {
        let side = |id: &str| Message::default().value("auth", "psk").value("id", id);
        let child = Message::default()
            .list("local_ts", [&self.own_networks])
            .list("remote_ts", [&self.peer_networks])
            .list("esp_proposals", ["aes128gcm16"])
            .value("mode", "tunnel");
        let any = |address: Option<Ipv4Addr>| address.map_or("%any".to_owned(), |a| a.to_string());
        let mut all = Message::default()
            .value("version", "2")
            .list("local_addrs", [any(self.local)])
            .list("remote_addrs", [any(self.remote)])
            .list("proposals", ["aes128gcm16-prfsha256-x25519"])
            .value("mobike", if self.mobike { "yes" } else { "no" })
            .section("local", side(&self.own_id))
            .section("remote", side(&self.peer_id))
            .section("children", Message::default().section("net", child));
        if self.asks_address {
            all = all.list("vips", ["0.0.0.0"]);
        }
        if let Some((name, _)) = &self.pool {
            all = all.list("pools", [name]);
        }
        Message::default().section(&self.name, all)
    }

    fn secret(&self) -> Message {
        Message::default()
            .value("type", "IKE")
            .value("data", &self.key)
            .list("owners", [&self.own_id, &self.peer_id])
    }
}

/// A charon, strongSwan's IKE daemon, on a node.
#[derive(Debug)]
pub struct Charon {
    daemon: Daemon,
}

const CONFIGURATION: &str = "  retransmit_timeout = 1\n  retransmit_base = 1.5\n  retransmit_tries = 6\n\
  keep_alive = 0\n  filelog {\n    stderr {\n      default = 1\n      flush_line = yes\n    }\n  }\n}\n";

impl Charon {
    /// Starts it on a node: it takes commands when this returns.
    ///
    /// # Errors
    /// [`Error::Lab`] with its last lines.
    pub fn start(node: &Node) -> Result<Charon, Error> {
        let load = PLUGINS.join(" ");
        let text = format!("charon {{\n  load_modular = no\n  load = {load}\n{CONFIGURATION}");
        let program = Program::new("charon")
            .env("STRONGSWAN_CONF", "/run/strongswan.conf")
            .run_file("strongswan.conf", text)
            .ready_when(Ready::File("/run/charon.vici".into()), Duration::from_secs(30));
        let daemon = Daemon::start(node, "charon", &program, Source::Keys, meaning)?;
        Ok(Charon { daemon })
    }

    /// The process, and what it says.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Takes a connection, which it offers from now on.
    ///
    /// # Errors
    /// [`Error::Control`], [`Error::Refused`].
    pub fn load(&self, connection: &Connection) -> Result<(), Error> {
        if let Some((name, addresses)) = &connection.pool {
            let pool =
                Message::default().section(name, Message::default().value("addrs", addresses));
            self.order("load-pool", &pool)?;
        }
        self.order("load-shared", &connection.secret())?;
        self.order("load-conn", &connection.message())
    }

    /// Brings a connection up: it protects when this returns.
    ///
    /// # Errors
    /// [`Error::Control`], [`Error::Refused`].
    pub fn initiate(&self, connection: &str) -> Result<(), Error> {
        let limit = LIMIT.as_millis().to_string();
        let what = Message::default().value("child", "net").value("ike", connection);
        self.order("initiate", &what.value("timeout", &limit))
    }

    fn order(&self, command: &'static str, message: &Message) -> Result<(), Error> {
        let (daemon, node) = ("charon", self.daemon.node().name().to_owned());
        let path = self.daemon.running().run_dir().join("charon.vici");
        let said = ask(path, command, message);
        let said = said.map_err(|source| Error::Control {
            daemon,
            node: node.clone(),
            command: command.to_owned(),
            source,
        })?;
        let value = |key| said.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        match value("success").map(String::as_str) {
            Some("yes") => Ok(()),
            _ => Err(Error::Refused {
                daemon,
                node,
                command: command.to_owned(),
                answer: value("errmsg").cloned().unwrap_or_default(),
            }),
        }
    }
}

fn ask(path: PathBuf, command: &str, message: &Message) -> io::Result<Vec<(String, String)>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(LIMIT))?;
    vici::ask(&mut stream, command, message)
}

/// What a line of charon's log means: `11[IKE] CHILD_SA net{1} established with SPIs …`.
fn meaning(line: &str) -> Option<What> {
    // What answers an address change: nothing else is informed of here.
    if line.contains("[ENC] parsed INFORMATIONAL response ") {
        return Some(What::SecurityDone);
    }
    let (_, said) = line.split_once("[IKE] ")?;
    let begins = |text: &str| said.starts_with(text);
    let address_change = said.contains("requesting address change using MOBIKE");
    if begins("initiating IKE_SA ") || address_change || begins("reauthenticating IKE_SA ") {
        Some(What::SecurityStarted)
    } else if begins("CHILD_SA ") && said.contains(" established with SPIs ") {
        Some(What::SecurityDone)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_log_is_understood() {
        for (line, what) in [
            ("06[IKE] initiating IKE_SA host[1] to 10.51.1.2", Some(What::SecurityStarted)),
            (
                "09[IKE] CHILD_SA net{1} established with SPIs c1_i c2_o and TS 10.60.0.1/32 === 10.52.0.0/24",
                Some(What::SecurityDone),
            ),
            ("12[IKE] requesting address change using MOBIKE", Some(What::SecurityStarted)),
            (
                "07[ENC] parsed INFORMATIONAL response 2 [ N(NATD_S_IP) N(NATD_D_IP) ]",
                Some(What::SecurityDone),
            ),
            ("12[NET] sending packet: from 10.50.1.1[500] to 10.51.1.2[500] (272 bytes)", None),
            ("", None),
        ] {
            assert_eq!(meaning(line), what, "{line}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let connection = Connection {
            name: "edge1".to_owned(),
            local: None,
            remote: Some(Ipv4Addr::new(10, 51, 1, 2)),
            own_id: "ce1".to_owned(),
            peer_id: "ce3".to_owned(),
            key: "secret".to_owned(),
            mobike: false,
            own_networks: "10.50.1.0/24".to_owned(),
            peer_networks: "10.52.0.0/24".to_owned(),
            asks_address: false,
            pool: None,
        };
        assert!(!format!("{connection:?}").contains("secret"));
    }
}
