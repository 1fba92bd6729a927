//! DHCP clients: dhcpcd.

use std::fs;
use std::io;

use handoff::{Source, What};
use lab::{Node, Program};

use crate::{Daemon, Error};

/// A DHCP client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its interface: one that has several crashes now and then (9.4.1).
    pub interface: String,
    /// Whether it asks for an answer at once (RFC 4039).
    pub rapid_commit: bool,
    /// Whether it looks for others who have its address (RFC 5227).
    pub checks: bool,
}

impl Client {
    fn file(&self) -> String {
        let rapid = if self.rapid_commit { "option rapid_commit\n" } else { "" };
        let checks = if self.checks { "" } else { "noarp\n" };
        format!(
            "ipv4only\nnoipv4ll\nnodelay\nscript /dev/null\noption subnet_mask, routers, broadcast_address\n\
             require dhcp_server_identifier\n{rapid}{checks}"
        )
    }

    /// Starts it on a node: it asks for addresses as soon as an interface carries.
    ///
    /// # Errors
    /// [`Error::Lab`] with its last lines.
    pub fn start(&self, node: &Node) -> Result<Daemon, Error> {
        let program = Program::new("dhcpcd")
            .args(["--nobackground", "--debug", "--config", "/run/dhcpcd.conf"])
            .args([&self.interface])
            .run_file("dhcpcd.conf", self.file());
        Daemon::start(node, "dhcpcd", &program, Source::Dhcp, meaning)
    }
}

/// Forgets the leases of a client, but for that of the network it is on: each attachment elsewhere begins anew. They
/// are in its `/run`, which its folder is a link to.
///
/// # Errors
/// The folder cannot be read.
pub fn forget(client: &Daemon, but_for: Option<&str>) -> io::Result<()> {
    for entry in fs::read_dir(client.running().run_dir())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kept = but_for.is_some_and(|ssid| name.ends_with(&format!("-{ssid}.lease")));
        if name.ends_with(".lease") && !kept {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// What a line of dhcpcd's means.
fn meaning(line: &str) -> Option<What> {
    let (_, said) = line.split_once(": ")?;
    let begins = |text: &str| said.starts_with(text);
    if begins("soliciting a DHCP lease") || begins("rebinding lease of ") {
        Some(What::DhcpStarted)
    } else if begins("acknowledged ") {
        Some(What::DhcpBound)
    } else if begins("probing address ") || begins("probing for ") {
        Some(What::DuplicateCheckStarted)
    } else if begins("DAD completed for ") {
        Some(What::DuplicateCheckDone)
    } else if begins("adding IP address ") {
        Some(What::AddressSet)
    } else if begins("adding default route ") {
        Some(What::RouteSet)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_are_understood() {
        for (line, what) in [
            ("wlan2: soliciting a DHCP lease", Some(What::DhcpStarted)),
            ("wlan2: rebinding lease of 10.50.0.117", Some(What::DhcpStarted)),
            ("wlan2: offered 10.50.0.117 from 10.50.0.1", None),
            ("wlan2: acknowledged 10.50.0.117 from 10.50.0.1", Some(What::DhcpBound)),
            ("wlan2: probing address 10.50.0.117/24", Some(What::DuplicateCheckStarted)),
            ("wlan2: DAD completed for 10.50.0.117", Some(What::DuplicateCheckDone)),
            (
                "wlan2: adding IP address 10.50.0.117/24 broadcast 10.50.0.255",
                Some(What::AddressSet),
            ),
            ("wlan2: adding default route via 10.50.0.1", Some(What::RouteSet)),
            ("wlan2: carrier lost", None),
            ("dhcpcd-9.4.1 starting", None),
        ] {
            assert_eq!(meaning(line), what, "{line}");
        }
    }

    #[test]
    fn a_client_is_told_what_to_leave_out() {
        let client = Client { interface: "wlan2".to_owned(), rapid_commit: false, checks: true };
        assert!(!client.file().contains("noarp") && !client.file().contains("rapid"));
        let client = Client { rapid_commit: true, checks: false, ..client };
        assert!(client.file().ends_with("option rapid_commit\nnoarp\n"));
    }
}
