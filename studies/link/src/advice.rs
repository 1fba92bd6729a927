//! What to set, and what to change.

use report::{Cell, Column, Row, Table};
use seclink::path::{FrameSize, Topology, largest_frame, largest_segment};
use traffic::Sizes;

use crate::point::Protocol;
use crate::summary::Summary;

/// What providers and hosts have if nobody says otherwise.
const USUAL_MTU: usize = 1500;
/// Ethernet's header and a VLAN tag.
const TAGGED: usize = 18;

/// The protocols of the results on their carriers, each once, in their order: the label, and the paper's path.
fn protocols(summary: &Summary) -> Vec<(String, Topology)> {
    let mut all: Vec<(String, Topology)> = Vec::new();
    for row in &summary.rows {
        let label = row.point.label();
        if !all.iter().any(|(known, _)| *known == label) {
            let Protocol { protection, cipher } = row.point.protocol;
            let carrier = row.point.carrier();
            all.push((label, Topology { protection, cipher, carrier, ..Topology::default() }));
        }
    }
    all
}

/// What to set for each protocol: MTU and segment size of hosts where the provider carries 1500 bytes, and what to ask
/// of him so that hosts may keep 1500.
pub(crate) fn settings(summary: &Summary) -> Table {
    let columns = vec![
        Column::new("Protocol"),
        Column::new("hosts' MTU").unit("bytes"),
        Column::new("TCP segment").unit("bytes"),
        Column::new("access MTU for 1500").unit("bytes"),
        Column::new("core MTU for 1500").unit("bytes"),
        Column::new("carries"),
    ];
    let caption = "What to set: hosts where the provider's access link carries 1500 bytes after Ethernet's header, \
                   or the provider's links so that hosts keep 1500; tagged frames";
    let mut table = Table::new(caption, columns);
    for (label, path) in protocols(summary) {
        let (mtu, segment) = largest_segment(&path, USUAL_MTU);
        let whole = FrameSize::of(&path, USUAL_MTU + TAGGED);
        let carries = if path.carries_ethernet() { "Ethernet" } else { "IP" };
        table.push(Row::new(vec![
            Cell::text(label),
            Cell::count(mtu as u64),
            Cell::count(segment as u64),
            Cell::count(whole.access.saturating_sub(14) as u64),
            Cell::count(whole.core.saturating_sub(14) as u64),
            Cell::text(carries),
        ]));
    }
    table
}

/// What to change, in order of what it gains.
pub(crate) fn changes(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &summary.rows {
        let Sizes::Fixed(size) = row.point.frame else { continue };
        let path = row.point.topology();
        let fits = largest_frame(&path, USUAL_MTU);
        if size > fits {
            let line = format!(
                "A frame of {size} bytes does not fit {} on an access link of {USUAL_MTU} bytes: the longest is {fits}. Set the MTU of hosts to {}.",
                row.point.label(),
                largest_segment(&path, USUAL_MTU).0
            );
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines.extend(slow_ciphers(summary));
    lines
}

/// Where the same protocol with another cipher bears more.
fn slow_ciphers(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &summary.rows {
        let Some(own) = row.throughput_mbps else { continue };
        let better = summary.rows.iter().filter(|other| {
            let like = crate::point::Point { protocol: row.point.protocol, ..other.point.clone() };
            like == row.point && other.point.protocol.protection == row.point.protocol.protection
        });
        let best = better
            .filter_map(|other| Some((other, other.throughput_mbps?)))
            .filter(|(_, theirs)| theirs.low > own.high)
            .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
        if let Some((other, theirs)) = best {
            let times = theirs.value / own.value;
            let (ours, theirs) = (row.point.protocol, other.point.protocol);
            let line = format!(
                "Use {theirs} instead of {ours}: {times:.1} times the throughput at {} bytes per frame.",
                row.point.frame
            );
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    #[test]
    fn every_protocol_has_its_settings() {
        let text = settings(&Summary::of(&samples())).to_text(200);
        // Tagged: 1500 less 4 of the tag, 32 of MACsec.
        for part in ["1464", "1424", "1496", "1536", "1558"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_said() {
        let mut samples = samples();
        for sample in &mut samples {
            sample.point.insert("frame".to_owned(), "1518".to_owned());
        }
        let lines = changes(&Summary::of(&samples));
        assert!(
            lines.iter().any(|line| line.contains("macsec") && line.contains("1482")),
            "{lines:?}"
        );
    }
}
