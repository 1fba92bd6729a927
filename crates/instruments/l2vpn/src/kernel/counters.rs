//! What the kernel counts of what it drops.

use std::collections::BTreeMap;

use lab::Node;
use seclink::path::{Protection, Topology};

use super::program::must;
use crate::Error;

/// MACsec's counters of frames that went nowhere (IEEE 802.1AE-2006 §10.7.9, whose names the kernel has).
const MACSEC_DROPS: [&str; 9] = [
    "InPktsNoTag",
    "InPktsBadTag",
    "InPktsNoSCI",
    "InPktsOverrun",
    "InPktsLate",
    "InPktsInvalid",
    "InPktsNotValid",
    "InPktsNotUsingSA",
    "OutPktsTooLong",
];

/// Whatever a node has dropped, by name; counters of 0 are left out.
///
/// # Errors
/// [`Error::Counters`], [`Error::Program`].
pub(super) fn of(node: &Node, topology: &Topology) -> Result<BTreeMap<String, u64>, Error> {
    let mut all = BTreeMap::new();
    if matches!(topology.protection, Protection::MacSec | Protection::MacSecVxlan) {
        let shown = must(node, "ip", &["-s", "macsec", "show"], "")?;
        for (name, count) in macsec(&shown) {
            if MACSEC_DROPS.contains(&name) {
                *all.entry(name.to_owned()).or_default() += count;
            }
        }
    }
    if matches!(topology.protection, Protection::Esp | Protection::L2tp) {
        add(&mut all, xfrm(&read(node, "xfrm_stat")?));
    }
    add(&mut all, devices(&read(node, "dev")?));
    if topology.gateway.is_some() {
        let dropped = queues(&must(node, "tc", &["-s", "qdisc", "show"], "")?);
        add(&mut all, [("netem dropped".to_owned(), dropped)]);
    }
    all.retain(|_, count| *count > 0);
    Ok(all)
}

fn add(all: &mut BTreeMap<String, u64>, more: impl IntoIterator<Item = (String, u64)>) {
    for (name, count) in more {
        *all.entry(name).or_default() += count;
    }
}

/// A file of the node's own /proc/net.
fn read(node: &Node, name: &str) -> Result<String, Error> {
    let path = format!("/proc/thread-self/net/{name}");
    let read = node.run(move || std::fs::read_to_string(path))?;
    let wrong = |error: std::io::Error| Error::Counters {
        node: node.name().to_owned(),
        problem: error.to_string(),
    };
    read.map_err(wrong)
}

/// Counters in what `ip -s macsec show` prints: a line of names behind `stats:`, then one of numbers. Those of single
/// associations are left out, since their channel's have them in.
fn macsec(lines: &[String]) -> Vec<(&str, u64)> {
    let mut all = Vec::new();
    let mut of_association = false;
    for (line, next) in lines.iter().zip(lines.iter().skip(1)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["stats:", names @ ..] if !of_association => {
                let numbers = next.split_whitespace().map(|number| number.parse::<u64>());
                let named = names.iter().copied().zip(numbers);
                all.extend(named.filter_map(|(name, number)| Some((name, number.ok()?))));
            }
            // `0: PN 1, state on, key …`
            [number, "PN" | "XPN", ..] if number.ends_with(':') => of_association = true,
            ["TXSC:" | "RXSC:", ..] => of_association = false,
            [number, ..] if number.ends_with(':') && !line.starts_with(' ') => {
                of_association = false;
            }
            _ => {}
        }
    }
    all
}

/// Lines of a name and a number, all of them of what was dropped (Documentation/networking/xfrm_proc.rst).
fn xfrm(text: &str) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let (name, number) = line.split_once(char::is_whitespace)?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Errors and drops of all devices in /proc/net/dev.
fn devices(text: &str) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for (device, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
        let numbers: Vec<u64> =
            numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let names = [(2, "rx_errors"), (3, "rx_dropped"), (10, "tx_errors"), (11, "tx_dropped")];
        let device = device.trim();
        all.extend(names.into_iter().filter_map(|(at, name)| {
            numbers.get(at).map(|count| (format!("{device} {name}"), *count))
        }));
    }
    all
}

/// Frames that all queueing disciplines dropped: ` Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)`.
fn queues(lines: &[String]) -> u64 {
    let dropped = |line: &String| {
        let (_, rest) = line.split_once("(dropped ")?;
        rest.split(',').next()?.trim().parse::<u64>().ok()
    };
    lines.iter().filter_map(dropped).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn macsecs_counters_are_counted_once() {
        let shown = lines(
            "5: sec1: protect on validate strict sc off sa off encrypt on send_sci on\n    \
                 cipher suite: GCM-AES-128, using ICV length 16\n    \
                 TXSC: 0200000001010001 on SA 0\n    \
                 stats: OutPktsUntagged InPktsNoTag InPktsBadTag\n                   \
                                      0           3            4\n        \
                     0: PN 5, state on, key 01000000000000000000000000000000\n        \
                     stats: OutPktsProtected OutPktsEncrypted\n                          0                4\n    \
                 RXSC: 0200000001020001, state on\n    \
                 stats: InPktsOK InPktsLate InPktsNotValid\n               7          8              9\n        \
                     0: PN 1, state on, key 02000000000000000000000000000000\n        \
                     stats: InPktsOK InPktsNotValid\n               7              9\n",
        );
        let expected = [
            ("OutPktsUntagged", 0),
            ("InPktsNoTag", 3),
            ("InPktsBadTag", 4),
            ("InPktsOK", 7),
            ("InPktsLate", 8),
            ("InPktsNotValid", 9),
        ];
        assert_eq!(macsec(&shown), expected);
    }

    #[test]
    fn other_counters_are_read_by_their_lines() {
        let text = "XfrmInError             \t0\nXfrmInStateSeqError     \t12\n";
        assert_eq!(xfrm(text)[1], ("XfrmInStateSeqError".to_owned(), 12));
        let text = "head|er\n  wg1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let found = devices(text);
        assert_eq!(found[0], ("wg1 rx_errors".to_owned(), 3));
        assert_eq!(found[3], ("wg1 tx_dropped".to_owned(), 12));
        let text = " Sent 9 bytes 1 pkt (dropped 5, overlimits 0 requeues 0)\nqdisc\n\
                    Sent 9 bytes 1 pkt (dropped 2, overlimits 0 requeues 0)";
        assert_eq!(queues(&lines(text)), 7);
    }
}
