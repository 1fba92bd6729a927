//! What is done on one node, in order, as texts for `ip` and `tc`.

use std::fmt::{self, Write};

use lab::Node;
use zeroize::Zeroizing;

use super::program::batch;
use super::wireguard::Tunnel;
use crate::Error;

/// Bytes that no node's script exceeds: one that grew would leave keys in memory that is given back.
const ROOM: usize = 1 << 15;

/// What a node is told. It is not printed: keys are among it.
pub struct Script {
    /// Settings that come first.
    settings: Vec<(String, &'static str)>,
    /// For `ip -batch`; keys are among it.
    ip: Zeroizing<String>,
    /// WireGuard's keys and peers, for devices that `ip` has made.
    tunnels: Vec<Tunnel>,
    /// Settings of devices that `ip` has made.
    of_devices: Vec<(String, &'static str)>,
    /// For `ip -f mpls -batch`.
    mpls: String,
    /// For `tc -batch`.
    tc: String,
}

impl Default for Script {
    fn default() -> Self {
        Script::new()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

impl Script {
    /// One that silences IPv6 and does nothing else.
    #[must_use]
    pub fn new() -> Script {
        let quiet = ["all", "default"].map(|of| (format!("net.ipv6.conf.{of}.disable_ipv6"), "1"));
        Script {
            settings: quiet.to_vec(),
            ip: Zeroizing::new(String::with_capacity(ROOM)),
            tunnels: Vec::new(),
            of_devices: Vec::new(),
            mpls: String::new(),
            tc: String::new(),
        }
    }

    /// Another setting, before devices are made.
    pub fn setting(&mut self, key: &str, value: &'static str) {
        self.settings.push((key.to_owned(), value));
    }

    /// Another setting, after devices are made.
    pub fn setting_of_device(&mut self, key: String, value: &'static str) {
        self.of_devices.push((key, value));
    }

    /// Another line for `ip`.
    pub fn ip(&mut self, line: fmt::Arguments<'_>) {
        write_line(&mut self.ip, line);
    }

    /// Another line for `ip -f mpls`.
    pub fn mpls(&mut self, line: fmt::Arguments<'_>) {
        write_line(&mut self.mpls, line);
    }

    /// Another line for `tc`.
    pub fn tc(&mut self, line: fmt::Arguments<'_>) {
        write_line(&mut self.tc, line);
    }

    /// Another tunnel of WireGuard, whose device `ip` has made.
    pub fn tunnel(&mut self, tunnel: Tunnel) {
        self.tunnels.push(tunnel);
    }

    /// Does it all.
    ///
    /// # Errors
    /// The first that the node or its kernel refuses.
    pub fn apply(self, node: &Node) -> Result<(), Error> {
        for (key, value) in self.settings {
            set(node, &key, value)?;
        }
        batch(node, "ip", &[], &self.ip)?;
        for tunnel in self.tunnels {
            tunnel.configure(node)?;
        }
        for (key, value) in self.of_devices {
            node.sysctl(&key, value)?;
        }
        batch(node, "ip", &["-f", "mpls"], &self.mpls)?;
        batch(node, "tc", &[], &self.tc)
    }
}

/// Sets a setting. A kernel that has no IPv6 has nothing to silence.
fn set(node: &Node, key: &str, value: &str) -> Result<(), Error> {
    match node.sysctl(key, value) {
        Err(lab::Error::Setting { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound && key.contains("ipv6") =>
        {
            Ok(())
        }
        other => Ok(other?),
    }
}

fn write_line(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
impl Script {
    /// The lines of all its parts, `ip` and `tc` before each.
    pub(super) fn lines(&self) -> Vec<String> {
        let part = |text: &str, program: &str| {
            text.lines().map(|line| format!("{program} {line}")).collect::<Vec<_>>()
        };
        [part(&self.ip, "ip"), part(&self.mpls, "ip -f mpls"), part(&self.tc, "tc")].concat()
    }

    pub(super) fn tunnels(&self) -> &[Tunnel] {
        &self.tunnels
    }
}
