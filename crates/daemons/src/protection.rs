//! How a station and an access point prove themselves to each other.

use std::fmt;

use handoff::WifiSecurity;
use lab::Program;

/// A passphrase or password of 8 to 63 characters. It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(String);

impl Passphrase {
    /// Of this text: letters and digits alone are kept.
    #[must_use]
    pub fn new(text: &str) -> Passphrase {
        Passphrase(text.chars().filter(char::is_ascii_alphanumeric).take(63).collect())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

/// A network's protection, as its stations and access points share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// How stations prove themselves.
    pub security: WifiSecurity,
    /// Whether fast BSS transition is on offer (IEEE 802.11-2020 §13).
    pub fast_transition: bool,
    /// Whether a station takes frames by its new key before it answers for it (extended key IDs).
    pub extended_key_ids: bool,
    /// What both know.
    pub passphrase: Passphrase,
    /// What they show each other, for WPA2-Enterprise.
    pub certificates: Option<Certificates>,
}

/// Certificates of both sides and their keys, in PEM. They are not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificates {
    /// The authority of both.
    pub authority: String,
    /// The authentication server's certificate and its private key.
    pub server: (String, String),
    /// The station's certificate and its private key.
    pub client: (String, String),
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

impl Certificates {
    /// Puts the authority and one side's own into a program's `/run`.
    pub(crate) fn put(&self, own: &(String, String), program: Program) -> Program {
        let (certificate, key) = own;
        program
            .run_file("authority.pem", self.authority.as_bytes())
            .run_file("own.pem", certificate.as_bytes())
            .run_file("own.key", key.as_bytes())
    }
}

impl Protection {
    /// The word for its key management; `None` for none.
    pub(crate) fn key_management(&self) -> Option<&'static str> {
        Some(match (self.security, self.fast_transition) {
            (WifiSecurity::Open, _) => return None,
            (WifiSecurity::Wpa2Psk, false) => "WPA-PSK",
            (WifiSecurity::Wpa2Psk, true) => "FT-PSK",
            (WifiSecurity::Wpa3Sae, false) => "SAE",
            (WifiSecurity::Wpa3Sae, true) => "FT-SAE",
            (WifiSecurity::Wpa2EapTls, false) => "WPA-EAP",
            (WifiSecurity::Wpa2EapTls, true) => "FT-EAP",
        })
    }
}
