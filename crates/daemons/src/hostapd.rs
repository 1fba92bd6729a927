//! Access points: hostapd.

use std::fmt::Write as _;
use std::time::Duration;

use handoff::{Source, What, WifiSecurity};
use lab::{Node, Program, Ready};

use crate::{Control, Daemon, Error, Protection};

/// How long one may take to send its first beacon.
const READY: Duration = Duration::from_secs(20);

/// An access point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessPoint {
    /// The radio's interface.
    pub interface: String,
    /// The bridge that its stations are behind.
    pub bridge: String,
    /// The network's name.
    pub ssid: String,
    /// The channel in the 2.4 GHz band.
    pub channel: u8,
    /// Its name among the network's access points.
    pub name: String,
    /// How stations prove themselves.
    pub protection: Protection,
    /// Whether keys that stations have from other access points are taken (opportunistic key caching).
    pub shares_keys: bool,
    /// Whether it asks for block acknowledgements and aggregates frames (802.11n).
    pub aggregates: bool,
}

impl AccessPoint {
    /// The text of hostapd's configuration file.
    fn file(&self) -> String {
        let AccessPoint { interface, bridge, ssid, channel, name, .. } = self;
        let mut text = format!(
            "interface={interface}\nbridge={bridge}\ndriver=nl80211\nctrl_interface=/run/hostapd\n\
             ssid={ssid}\nhw_mode=g\nchannel={channel}\nieee80211n={}\nwmm_enabled=1\nbeacon_int=100\n\
             nas_identifier={name}\nauth_algs=1\n",
            i32::from(self.aggregates)
        );
        let passphrase = self.protection.passphrase.text();
        if let Some(management) = self.protection.key_management() {
            let _ = write!(text, "wpa=2\nwpa_key_mgmt={management}\nrsn_pairwise=CCMP\n");
        }
        match self.protection.security {
            WifiSecurity::Open => {}
            // It is its own authentication server.
            WifiSecurity::Wpa2EapTls => {
                text += "ieee8021x=1\neap_server=1\neap_user_file=/run/users\nca_cert=/run/authority.pem\n\
                         server_cert=/run/own.pem\nprivate_key=/run/own.key\n";
            }
            WifiSecurity::Wpa2Psk => {
                let _ = writeln!(text, "wpa_passphrase={passphrase}");
            }
            // Protected management frames are a must (IEEE 802.11-2020 §12.4.2).
            WifiSecurity::Wpa3Sae => {
                let _ = write!(text, "ieee80211w=2\nsae_password={passphrase}\n");
            }
        }
        if self.protection.fast_transition {
            text += "mobility_domain=a1b2\nft_over_ds=0\nft_psk_generate_local=1\n";
        }
        if self.protection.extended_key_ids {
            text += "extended_key_id=1\n";
        }
        if self.shares_keys {
            text += "okc=1\n";
        }
        text
    }

    /// Starts it on a node: it sends beacons when this returns.
    ///
    /// # Errors
    /// [`Error::Lab`] with hostapd's last lines.
    pub fn start(&self, node: &Node) -> Result<(Daemon, Control), Error> {
        // To a file that it flushes by lines.
        let program = Program::new("hostapd")
            .args(["-f", "/proc/self/fd/1", "/run/hostapd.conf"])
            .run_file("hostapd.conf", self.file())
            .run_file("users", "* TLS\n")
            .ready_when(Ready::Line("AP-ENABLED".to_owned()), READY);
        let program = match &self.protection.certificates {
            Some(certificates) => certificates.put(&certificates.server, program),
            None => program,
        };
        let daemon = Daemon::start(node, "hostapd", &program, Source::AccessPoint, meaning)?;
        let control = Control::open(&daemon, &format!("hostapd/{}", self.interface))?;
        Ok((daemon, control))
    }
}

/// What a line of hostapd's means.
fn meaning(line: &str) -> Option<What> {
    let (_, event) = line.split_once(": ")?;
    let word = event.split(' ').next()?;
    match word {
        "AP-STA-CONNECTED" => Some(What::Authorized),
        "STA" if event.contains("IEEE 802.11: authenticated") => Some(What::Authenticated),
        "STA" if event.contains("IEEE 802.11: associated") => Some(What::Associated),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Passphrase;

    fn point(security: WifiSecurity, fast_transition: bool) -> AccessPoint {
        let passphrase = Passphrase::new("correct horse");
        AccessPoint {
            interface: "wlan0".to_owned(),
            bridge: "site".to_owned(),
            ssid: "labA".to_owned(),
            channel: 6,
            name: "ap1".to_owned(),
            protection: Protection {
                security,
                fast_transition,
                extended_key_ids: false,
                passphrase,
                certificates: None,
            },
            shares_keys: false,
            aggregates: true,
        }
    }

    #[test]
    fn a_configuration_has_what_its_protection_needs() {
        let has = |point: &AccessPoint, lines: &[&str]| {
            let file = point.file();
            for line in lines {
                assert!(file.lines().any(|has| has == *line), "{line} in {file}");
            }
        };
        let open = point(WifiSecurity::Open, false);
        assert!(!open.file().contains("wpa"));
        has(&open, &["interface=wlan0", "bridge=site", "ssid=labA", "channel=6"]);
        has(&point(WifiSecurity::Wpa2Psk, false), &["wpa=2", "wpa_passphrase=correcthorse"]);
        let lines = ["wpa_key_mgmt=SAE", "ieee80211w=2", "sae_password=correcthorse"];
        has(&point(WifiSecurity::Wpa3Sae, false), &lines);
        let lines = ["wpa_key_mgmt=FT-PSK", "mobility_domain=a1b2", "nas_identifier=ap1"];
        has(&point(WifiSecurity::Wpa2Psk, true), &lines);
        let mut changed = point(WifiSecurity::Wpa3Sae, false);
        has(&changed, &["ieee80211n=1"]);
        changed.protection.extended_key_ids = true;
        changed.aggregates = false;
        has(&changed, &["extended_key_id=1", "ieee80211n=0"]);
    }

    #[test]
    fn its_lines_are_understood() {
        for (line, what) in [
            ("wlan1: AP-STA-CONNECTED 02:00:00:00:02:00", Some(What::Authorized)),
            ("wlan1: STA 02:00:00:00:02:00 IEEE 802.11: authenticated", Some(What::Authenticated)),
            (
                "wlan1: STA 02:00:00:00:02:00 IEEE 802.11: associated (aid 1)",
                Some(What::Associated),
            ),
            ("wlan1: AP-STA-DISCONNECTED 02:00:00:00:02:00", None),
            ("wlan1: AP-ENABLED ", None),
            ("", None),
        ] {
            assert_eq!(meaning(line), what, "{line}");
        }
    }
}
