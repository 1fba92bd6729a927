//! Stations, and members of MACsec's key agreement: wpa_supplicant.

use std::fmt::Write as _;
use std::time::Duration;

use handoff::{Source, What, WifiSecurity};
use lab::{Node, Program, Ready};

use crate::{Control, Daemon, Error, Protection};

/// How long one may take to be ready for commands.
const READY: Duration = Duration::from_secs(20);

/// A network that a station knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Its SSID, which its access points announce.
    pub ssid: String,
    /// How both sides prove themselves.
    pub protection: Protection,
}

/// A station, which wpa_supplicant controls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Station {
    /// The radio's interface.
    pub interface: String,
    /// The networks that it knows, numbered from 0; all are disabled until one is selected.
    pub networks: Vec<Network>,
    /// Frequencies that it looks on, in MHz.
    pub frequencies: Vec<u32>,
    /// Signal in dBm below which it looks for a better access point of its network.
    pub threshold: Option<i32>,
    /// Whether keys are kept and tried at other access points.
    pub keeps_keys: bool,
}

impl Station {
    /// The text of wpa_supplicant's configuration file.
    fn file(&self) -> String {
        let frequencies: Vec<String> = self.frequencies.iter().map(u32::to_string).collect();
        let frequencies = frequencies.join(" ");
        let mut text = format!(
            "ctrl_interface=/run/wpa_supplicant\nap_scan=1\nfreq_list={frequencies}\nokc={}\n",
            i32::from(self.keeps_keys)
        );
        if self.networks.iter().any(|network| network.protection.extended_key_ids) {
            text += "extended_key_id=1\n";
        }
        for Network { ssid, protection } in &self.networks {
            let management = protection.key_management().unwrap_or("NONE");
            let passphrase = protection.passphrase.text();
            let _ = write!(
                text,
                "network={{\n ssid=\"{ssid}\"\n disabled=1\n key_mgmt={management}\n scan_freq={frequencies}\n"
            );
            let _ = match protection.security {
                WifiSecurity::Open => Ok(()),
                WifiSecurity::Wpa2EapTls => write!(
                    text,
                    " eap=TLS\n identity=\"host\"\n ca_cert=\"/run/authority.pem\"\n \
                     client_cert=\"/run/own.pem\"\n private_key=\"/run/own.key\"\n"
                ),
                WifiSecurity::Wpa2Psk => writeln!(text, " psk=\"{passphrase}\""),
                WifiSecurity::Wpa3Sae => {
                    write!(text, " ieee80211w=2\n sae_password=\"{passphrase}\"\n")
                }
            };
            if let Some(threshold) = self.threshold {
                // Every second below it, every five minutes above.
                let _ = writeln!(text, " bgscan=\"simple:1:{threshold}:300\"");
            }
            text += "}\n";
        }
        text
    }

    /// Starts it on a node: it takes commands when this returns, and is not attached to anything.
    ///
    /// # Errors
    /// [`Error::Lab`] with its last lines.
    pub fn start(&self, node: &Node) -> Result<(Daemon, Control), Error> {
        let socket = format!("wpa_supplicant/{}", self.interface);
        let program = program(&self.interface, "nl80211")
            .run_file("wpa.conf", self.file())
            .ready_when(Ready::File(format!("/run/{socket}").into()), READY);
        let certificates =
            self.networks.iter().find_map(|network| network.protection.certificates.as_ref());
        let program = match certificates {
            Some(certificates) => certificates.put(&certificates.client, program),
            None => program,
        };
        let daemon = Daemon::start(node, "wpa_supplicant", &program, Source::Supplicant, meaning)?;
        let control = Control::open(&daemon, &socket)?;
        Ok((daemon, control))
    }
}

/// A member of MACsec's key agreement with a pre-shared key (IEEE 802.1X-2020 §9).
#[derive(Clone)]
pub struct Member {
    /// The interface below MACsec.
    pub interface: String,
    /// The connectivity association key, 32 hexadecimal digits.
    pub cak: String,
    /// Its name, 2 to 64 hexadecimal digits.
    pub ckn: String,
    /// The lowest makes the keys.
    pub priority: u8,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("interface", &self.interface).finish_non_exhaustive()
    }
}

impl Member {
    fn file(&self) -> String {
        let Member { cak, ckn, priority, .. } = self;
        format!(
            "eapol_version=3\nap_scan=0\nnetwork={{\n key_mgmt=NONE\n eapol_flags=0\n macsec_policy=1\n \
             macsec_integ_only=0\n macsec_replay_protect=1\n macsec_replay_window=0\n macsec_port=1\n \
             mka_cak={cak}\n mka_ckn={ckn}\n mka_priority={priority}\n}}\n"
        )
    }

    /// Starts it on a node. The MACsec device comes by itself.
    ///
    /// # Errors
    /// [`Error::Lab`] with its last lines.
    pub fn start(&self, node: &Node) -> Result<Daemon, Error> {
        let program = program(&self.interface, "macsec_linux").run_file("wpa.conf", self.file());
        Daemon::start(node, "wpa_supplicant", &program, Source::Keys, |_| None)
    }
}

/// It writes to a file that it flushes by lines.
fn program(interface: &str, driver: &str) -> Program {
    Program::new("wpa_supplicant").args([
        "-i",
        interface,
        "-D",
        driver,
        "-c",
        "/run/wpa.conf",
        "-f",
        "/proc/self/fd/1",
    ])
}

/// What a line of wpa_supplicant's means. It tells scans to its control socket alone; the kernel tells them too.
fn meaning(line: &str) -> Option<What> {
    let (_, event) = line.split_once(": ")?;
    let begins = |text: &str| event.starts_with(text);
    if begins("SME: Trying to authenticate with ") {
        Some(What::Authenticating)
    } else if begins("Trying to associate with ") {
        Some(What::Associating)
    } else if begins("Associated with ") {
        Some(What::Associated)
    } else if begins("CTRL-EVENT-CONNECTED ") {
        Some(What::Authorized)
    } else if begins("CTRL-EVENT-DISCONNECTED ") {
        Some(What::LinkLost)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Passphrase;

    #[test]
    fn a_station_knows_its_networks() {
        let protection = |security| Protection {
            security,
            fast_transition: false,
            extended_key_ids: false,
            passphrase: Passphrase::new("correcthorse"),
            certificates: None,
        };
        let network = |ssid: &str, security| Network {
            ssid: ssid.to_owned(),
            protection: protection(security),
        };
        let station = Station {
            interface: "wlan2".to_owned(),
            networks: vec![
                network("labA", WifiSecurity::Wpa2Psk),
                network("labB", WifiSecurity::Wpa3Sae),
            ],
            frequencies: vec![2412, 2437],
            threshold: Some(-70),
            keeps_keys: false,
        };
        let file = station.file();
        assert_eq!(file.matches("network={").count(), 2);
        assert!(file.contains("freq_list=2412 2437\n"), "{file}");
        assert!(file.contains(" psk=\"correcthorse\"\n") && file.contains(" sae_password="));
        assert!(file.contains(" bgscan=\"simple:1:-70:300\"\n"));
        assert!(!format!("{station:?}").contains("horse"));
    }

    #[test]
    fn its_lines_are_understood() {
        let bssid = "02:00:00:00:01:00";
        for (line, what) in [
            (
                format!(
                    "wlan2: SME: Trying to authenticate with {bssid} (SSID='labB' freq=2437 MHz)"
                ),
                Some(What::Authenticating),
            ),
            (
                format!("wlan2: Trying to associate with {bssid} (SSID='labB' freq=2437 MHz)"),
                Some(What::Associating),
            ),
            (format!("wlan2: Associated with {bssid}"), Some(What::Associated)),
            (
                format!(
                    "wlan2: CTRL-EVENT-CONNECTED - Connection to {bssid} completed [id=1 id_str=]"
                ),
                Some(What::Authorized),
            ),
            (
                format!(
                    "wlan2: CTRL-EVENT-DISCONNECTED bssid={bssid} reason=3 locally_generated=1"
                ),
                Some(What::LinkLost),
            ),
            ("wlan2: CTRL-EVENT-REGDOM-CHANGE init=CORE type=WORLD".to_owned(), None),
            ("Successfully initialized wpa_supplicant".to_owned(), None),
        ] {
            assert_eq!(meaning(&line), what, "{line}");
        }
    }

    #[test]
    fn a_members_key_is_in_its_file_alone() {
        let member = Member {
            interface: "link1".to_owned(),
            cak: "00112233445566778899aabbccddeeff".to_owned(),
            ckn: "6162".to_owned(),
            priority: 16,
        };
        assert!(member.file().contains(" mka_cak=00112233445566778899aabbccddeeff\n"));
        assert!(!format!("{member:?}").contains("0011"));
    }
}
