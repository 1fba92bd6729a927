//! Wrappings that hide the packets in them, each counted by its name.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::ethernet::EtherType;

macro_rules! wrappings {
    ($($(#[$doc:meta])* $variant:ident: $name:literal),* $(,)?) => {
        /// A wrapping that is not read, because it is encrypted or rare.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Wrapping {
            $($(#[$doc])* $variant,)*
        }

        impl Wrapping {
            /// All wrappings.
            pub const ALL: &[Wrapping] = &[$(Wrapping::$variant),*];

            /// The name, as a reader knows it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Wrapping::$variant => $name,)*
                }
            }
        }
    };
}

wrappings! {
    /// IPsec's ESP (RFC 4303), in UDP too.
    Esp: "IPsec ESP",
    /// MACsec that encrypts (IEEE 802.1AE).
    Macsec: "MACsec",
    /// WireGuard's transport data.
    WireGuard: "WireGuard",
    /// CAPWAP in DTLS (RFC 5415 §4.2).
    Capwap: "CAPWAP in DTLS",
    /// L2TP version 3 in which no frame with IP is found.
    L2tp: "L2TPv3",
    /// PPTP's GRE (RFC 2637).
    Pptp: "PPTP",
    /// TRILL (RFC 6325).
    Trill: "TRILL",
    /// Cisco FabricPath.
    FabricPath: "Cisco FabricPath",
    /// Cisco FabricPath's older form, and other data-center tags.
    DataCenter: "Cisco data-center Ethernet",
    /// B.A.T.M.A.N. advanced, a mesh network's.
    Batman: "B.A.T.M.A.N.",
}

impl Wrapping {
    /// The wrapping that an EtherType announces.
    pub(crate) const fn of_ether_type(ether_type: EtherType) -> Option<Wrapping> {
        match ether_type.0 {
            0x22f3 => Some(Wrapping::Trill),
            0x8903 => Some(Wrapping::FabricPath),
            0x8905 => Some(Wrapping::DataCenter),
            0x4305 => Some(Wrapping::Batman),
            // PPP in GRE (RFC 2637 §4.1).
            0x880b => Some(Wrapping::Pptp),
            _ => None,
        }
    }
}

/// Frames by the wrapping that hides what they carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wrapped([u64; Wrapping::ALL.len()]);

impl Wrapped {
    /// Counts frames.
    pub fn add(&mut self, wrapping: Wrapping, frames: u64) {
        if let Some(count) = self.0.get_mut(wrapping as usize) {
            *count = count.saturating_add(frames);
        }
    }

    /// Adds what another has counted.
    pub fn add_all(&mut self, other: &Wrapped) {
        other.counts().for_each(|(wrapping, frames)| self.add(wrapping, frames));
    }

    /// The frames counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Wrapped) -> Wrapped {
        let mut since = *self;
        for (count, before) in since.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_sub(before);
        }
        since
    }

    /// The wrappings that were seen, with their frames.
    pub fn counts(&self) -> impl Iterator<Item = (Wrapping, u64)> + '_ {
        let all = Wrapping::ALL.iter().copied().zip(self.0);
        all.filter(|(_, frames)| *frames > 0)
    }
}

/// A map of names to frames.
impl Serialize for Wrapped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (wrapping, frames) in self.counts() {
            map.serialize_entry(wrapping.name(), &frames)?;
        }
        map.end()
    }
}

/// Names of another version are passed over.
impl<'de> Deserialize<'de> for Wrapped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = std::collections::BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut wrapped = Wrapped::default();
        for wrapping in Wrapping::ALL {
            wrapped.add(*wrapping, names.get(wrapping.name()).copied().unwrap_or(0));
        }
        Ok(wrapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_json_and_subtract() {
        let mut early = Wrapped::default();
        early.add(Wrapping::Esp, 2);
        let mut late = early;
        late.add(Wrapping::Macsec, 3);
        let text = serde_json::to_string(&late).unwrap();
        assert_eq!(text, r#"{"IPsec ESP":2,"MACsec":3}"#);
        assert_eq!(serde_json::from_str::<Wrapped>(&text).unwrap(), late);
        assert_eq!(serde_json::from_str::<Wrapped>(r#"{"x":1}"#).unwrap(), Wrapped::default());
        let since: Vec<_> = late.since(&early).counts().collect();
        assert_eq!(since, [(Wrapping::Macsec, 3)]);
    }
}
