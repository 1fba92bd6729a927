//! What is counted of a handshake's messages. The lab's samples keep it, so that a report that is
//! rendered again has all that the first one had.

use serde::{Deserialize, Serialize};
use tracker::{Class, Connection, EarlyData, Resumption, TlsFacts};
use wire::tls::{CipherSuite, Group, Version};

use super::Digest;
use super::names::{alert_name, bounded, failure, offers_tls13, set};
use super::tallies::Offers;
use super::top::Add;

/// Application protocols of one ClientHello that are counted.
const PROTOCOLS: usize = 32;

/// What a client offered, what was agreed, and the alerts. Versions, suites and groups by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Messages {
    versions: Vec<u16>,
    suite: Option<u16>,
    group: Option<u16>,
    /// The groups of the first key shares, of a client that offers TLS 1.3.
    key_shares: Option<Vec<u16>>,
    protocols: Vec<String>,
    /// Whether the client sent it, and its name.
    alerts: Vec<(bool, String)>,
    /// Why the handshake failed, if it did.
    failure: Option<String>,
    offers: Offers,
}

impl Messages {
    /// What a record has of them.
    pub(crate) fn of(connection: &Connection, tls: &TlsFacts, class: Class) -> Messages {
        let shares = || tls.key_shares.iter().map(|group| group.0).collect();
        let alert = |alert: &tracker::AlertFacts| {
            (alert.from_client, alert_name(alert.name, alert.description))
        };
        Messages {
            versions: tls.versions_offered.iter().map(|version| version.0).collect(),
            suite: tls.cipher_suite.map(|suite| suite.0),
            group: tls.group.map(|group| group.0),
            key_shares: offers_tls13(tls).then(shares),
            protocols: tls.alpn_offered.iter().take(PROTOCOLS).map(|name| bounded(name)).collect(),
            alerts: tls.alerts.iter().map(alert).collect(),
            failure: (class == Class::Failed).then(|| failure(connection, tls)),
            offers: offers(tls, class),
        }
    }
}

fn offers(tls: &TlsFacts, class: Class) -> Offers {
    let resumed12 = matches!(tls.resumption, Resumption::Ticket | Resumption::SessionId);
    let taken = matches!(tls.early_data, EarlyData::Accepted | EarlyData::Likely);
    Offers {
        psk_offered: u64::from(tls.psk_offered),
        psk_accepted: u64::from(tls.psk_accepted),
        ticket_offered: u64::from(tls.ticket_offered.is_some_and(|bytes| bytes > 0)),
        resumed_tls12: u64::from(resumed12),
        early_data_offered: u64::from(tls.early_data != EarlyData::NotOffered),
        early_data_taken: u64::from(taken && class != Class::Failed),
        early_data_rejected: u64::from(tls.early_data == EarlyData::Rejected),
        hello_retry: u64::from(tls.hello_retry_request.is_some()),
        ech_offered: u64::from(tls.ech_offered),
        certificate_requested: u64::from(tls.certificate_requested == Some(true)),
        certificate_request_hidden: u64::from(tls.certificate_requested.is_none()),
        preceded: u64::from(tls.preceded_by > 0),
    }
}

impl Digest {
    pub(super) fn count_messages(&mut self, messages: &Messages) {
        for version in &messages.versions {
            self.offered_versions.count(*version);
        }
        let mut versions: Vec<Version> = messages.versions.iter().copied().map(Version).collect();
        versions.sort_unstable_by(|a, b| b.cmp(a));
        versions.dedup();
        self.offered_sets.count(set(&versions));
        if let Some(suite) = messages.suite {
            self.suites.count(CipherSuite(suite).to_string());
        }
        if let Some(group) = messages.group {
            self.groups.count(Group(group).to_string());
        }
        if let Some(shares) = &messages.key_shares {
            let shares: Vec<Group> = shares.iter().copied().map(Group).collect();
            self.key_shares.count(set(&shares));
        }
        for protocol in &messages.protocols {
            self.alpn.count(bounded(protocol));
        }
        for (from_client, name) in &messages.alerts {
            self.alerts.count((*from_client, bounded(name)));
        }
        if let Some(failure) = &messages.failure {
            self.failures.count(bounded(failure));
        }
        self.offers.add(&messages.offers);
    }
}
