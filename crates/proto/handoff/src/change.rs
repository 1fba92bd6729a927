//! What an engineer can change to shorten an outage.

use units::named;

use crate::{Address, Scenario};

named! {
    /// One change of a scenario, to be measured beside the scenario without it.
    #[derive(Default)]
    pub enum Change: "change" {
        /// Nothing is changed.
        #[default]
        None = "none",
        /// The station looks only on the channels of its networks.
        ScanList = "scan-list",
        /// The station looks on all channels.
        AllChannels = "all-channels",
        /// DHCP in two messages in place of four (RFC 4039).
        RapidCommit = "rapid-commit",
        /// No duplicate address detection (RFC 5227).
        NoDuplicateDetection = "no-dad",
        /// Duplicate address detection (RFC 5227).
        DuplicateDetection = "dad",
        /// The address is kept: no DHCP.
        KeptAddress = "kept-address",
        /// Neighbours are known for good: no ARP.
        FixedNeighbours = "fixed-neighbours",
        /// Whoever gets an address says so at once (gratuitous ARP).
        Announce = "announce",
        /// The bridge of the sites learns again at once.
        BridgeLearning = "bridge-learning",
        /// Keys from an earlier visit are kept.
        KeyReuse = "key-reuse",
        /// Fast BSS transition (IEEE 802.11-2020 §13).
        FastTransition = "fast-transition",
        /// A second radio is attached before the first leaves.
        MakeBeforeBreak = "make-before-break",
        /// The edge of a site answers ARP for who is behind the core (RFC 1027).
        ProxyArp = "proxy-arp",
        /// A station takes frames by its new key before it answers for it (IEEE 802.11-2020 §9.4.2.24.4: extended key IDs).
        ExtendedKeyIds = "extended-key-ids",
        /// Access points ask for no block acknowledgements: frames are not aggregated.
        NoAggregation = "no-aggregation",
    }
}

impl Change {
    /// The scenario with it.
    #[must_use]
    pub fn of(self, mut scenario: Scenario) -> Scenario {
        let measures = &mut scenario.measures;
        match self {
            Change::None => {}
            Change::ScanList => measures.scan_list = true,
            Change::AllChannels => measures.scan_list = false,
            Change::RapidCommit => scenario.address = Address::DhcpRapidCommit,
            Change::NoDuplicateDetection => measures.no_duplicate_detection = true,
            Change::DuplicateDetection => measures.no_duplicate_detection = false,
            Change::KeptAddress => scenario.address = Address::Kept,
            Change::FixedNeighbours => measures.fixed_neighbours = true,
            Change::Announce => measures.announce = true,
            Change::BridgeLearning => measures.bridge_learning = true,
            Change::KeyReuse => measures.key_reuse = true,
            Change::FastTransition => scenario.fast_transition = true,
            Change::MakeBeforeBreak => measures.make_before_break = true,
            Change::ProxyArp => measures.proxy_arp = true,
            Change::ExtendedKeyIds => measures.extended_key_ids = true,
            Change::NoAggregation => measures.no_aggregation = true,
        }
        scenario
    }

    /// What to do, as an imperative.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Change::None => "change nothing",
            Change::ScanList => "let the station scan only the channels of its networks",
            Change::AllChannels => "let the station scan all channels",
            Change::RapidCommit => "switch on DHCP rapid commit",
            Change::NoDuplicateDetection => "switch off duplicate address detection",
            Change::DuplicateDetection => "switch on duplicate address detection",
            Change::KeptAddress => "keep the address, without DHCP",
            Change::FixedNeighbours => "give the host fixed neighbours",
            Change::Announce => "let the host announce its address by gratuitous ARP",
            Change::BridgeLearning => "make the bridge of the sites learn the host's place at once",
            Change::KeyReuse => "reuse keys of access points (PMKSA caching)",
            Change::FastTransition => "switch on 802.11r",
            Change::MakeBeforeBreak => "attach a second radio before the first leaves",
            Change::ProxyArp => "switch on proxy ARP at the edge",
            Change::ExtendedKeyIds => "switch on extended key IDs on stations and access points",
            Change::NoAggregation => "switch off frame aggregation (802.11n) on access points",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WifiSecurity;

    #[test]
    fn every_change_changes_something() {
        let mut scenario = Scenario::named("macsec-same-ssid").unwrap();
        for change in Change::ALL.iter().copied().filter(|change| *change != Change::None) {
            scenario.measures.no_duplicate_detection = change == Change::DuplicateDetection;
            scenario.measures.scan_list = change == Change::AllChannels;
            scenario.security = match change {
                Change::KeyReuse => WifiSecurity::Wpa3Sae,
                _ => WifiSecurity::Wpa2Psk,
            };
            let changed = change.of(scenario.clone());
            assert_ne!(changed, scenario, "{change}");
            assert_eq!(changed.check(), Ok(()), "{change}");
            assert!(!change.advice().is_empty());
        }
        assert_eq!(Change::None.of(scenario.clone()), scenario);
    }
}
