//! Records of several surveys as one table: how often data survive, by way, port and size.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Fate, Record, Way};

/// All connections of one way, to one port, with data of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// How they were begun.
    pub way: Way,
    /// The server's TCP port.
    pub port: u16,
    /// Bytes of data on the SYN.
    pub syn_bytes: u16,
    /// Bytes of data wanted on the SYN+ACK.
    pub syn_ack_bytes: u16,
    /// Connections that were made or tried.
    pub connections: u64,
    /// Networks and servers between which they were made.
    pub paths: u64,
    /// Paths on which all survived.
    pub paths_carried: u64,
    /// Connections by what became of the SYN's data.
    pub syn: BTreeMap<Fate, u64>,
    /// Connections by what became of the SYN+ACK's data.
    pub syn_ack: BTreeMap<Fate, u64>,
    /// The median time until the SYN was answered, in milliseconds.
    pub connect_ms: Option<f64>,
}

/// Records as groups, by way, port and size.
#[must_use]
pub fn merge(records: &[Record]) -> Vec<Group> {
    let mut groups: BTreeMap<(Way, u16, u16, u16), Vec<&Record>> = BTreeMap::new();
    for record in records {
        let key = (record.way, record.port, record.syn_bytes, record.syn_ack_bytes);
        groups.entry(key).or_default().push(record);
    }
    groups.into_values().filter_map(|records| group(&records)).collect()
}

fn group(records: &[&Record]) -> Option<Group> {
    let first = records.first()?;
    let path = |record: &&Record| (record.network.clone(), record.server.clone());
    let paths: BTreeSet<_> = records.iter().map(path).collect();
    let broken: BTreeSet<_> =
        records.iter().filter(|record| !record.survived()).map(path).collect();
    let count = |of: fn(&Record) -> Fate| {
        let mut counts = BTreeMap::new();
        for record in records {
            *counts.entry(of(record)).or_default() += 1;
        }
        counts
    };
    let times: Vec<f64> = records.iter().filter_map(|record| record.connect_ms).collect();
    Some(Group {
        way: first.way,
        port: first.port,
        syn_bytes: first.syn_bytes,
        syn_ack_bytes: first.syn_ack_bytes,
        connections: records.len() as u64,
        paths: paths.len() as u64,
        paths_carried: paths.difference(&broken).count() as u64,
        syn: count(|record| record.syn),
        syn_ack: count(|record| record.syn_ack),
        connect_ms: stats::median(&times),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::RECORD_SCHEMA;

    fn record(network: &str, way: Way, syn: Fate) -> Record {
        Record {
            schema: RECORD_SCHEMA,
            at_unix_ms: 0,
            network: network.to_owned(),
            server: "server.test".to_owned(),
            port: 443,
            way,
            syn_bytes: 1_000,
            syn_ack_bytes: 0,
            syn,
            syn_ack: Fate::NotSent,
            connect_ms: Some(10.0),
            syn_retransmissions: 0,
            failure: None,
        }
    }

    #[test]
    fn a_path_carries_data_if_it_always_does() {
        let groups = merge(&[
            record("home", Way::SynData, Fate::Carried),
            record("home", Way::SynData, Fate::Carried),
            record("office", Way::SynData, Fate::Dropped),
            record("office", Way::SynData, Fate::Carried),
            record("office", Way::Plain, Fate::NotSent),
        ]);
        assert_eq!(groups.len(), 2);
        let plain = &groups[0];
        assert_eq!((plain.way, plain.connections, plain.paths_carried), (Way::Plain, 1, 1));
        let data = &groups[1];
        assert_eq!((data.connections, data.paths, data.paths_carried), (4, 2, 1));
        assert_eq!(data.syn, BTreeMap::from([(Fate::Carried, 3), (Fate::Dropped, 1)]));
        assert_eq!(data.connect_ms, Some(10.0));
    }

    #[test]
    fn a_record_is_a_line_that_reads_back() {
        let record = record("", Way::FastOpen, Fate::Stripped);
        let line = serde_json::to_string(&record).unwrap();
        assert!(line.contains("\"way\":\"fast-open\"") && !line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        assert!(!record.survived());
    }
}
