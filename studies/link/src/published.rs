//! The MACsec paper's figures beside ours.

use seclink::path::Reach;
use study::Counterpart;
use traffic::Sizes;

use crate::point::{Gateway, Network, Offered, Ways};
use crate::summary::{PerHop, Row, Summary};

/// The paper's figures: frame sizes, delay by load, delay by hop.
pub(crate) const FIGURES: &str = include_str!("../published.csv");

/// The paper's IPsec.
const ESP: &str = "esp:aes-cbc-128-sha1";
/// How its machines differ from ours.
const HARDWARE: &str = "hardware there; software on one core here, veth pairs for lines";

/// What stands beside each published figure.
pub(crate) fn counterparts(summary: &Summary) -> Vec<(String, Counterpart)> {
    let figures = study::figures(FIGURES).unwrap_or_default();
    let beside = figures.iter().map(|figure| {
        let counterpart = match figure.item.as_str() {
            "Table 1" => sizes(summary, &figure.row),
            "Table 2" => gateway(summary, &figure.row),
            "Table 3" => load(summary, &figure.row),
            _ => per_hop(summary),
        };
        (figure.key(), counterpart)
    });
    beside.collect()
}

fn not_measured(command: impl Into<String>) -> Counterpart {
    Counterpart::NotMeasured { command: command.into() }
}

/// Rows of the paper's path and frames.
fn rows<'a>(summary: &'a Summary, protocol: &'a str) -> impl Iterator<Item = &'a Row> {
    summary.rows.iter().filter(move |row| {
        row.point.label() == protocol
            && row.point.network == Network::Mpls
            && row.point.hops == 4
            && row.point.reach == Reach::EndToEnd
            && row.point.ways == Ways::One
            && row.point.frame == Sizes::Fixed(1000)
    })
}

fn core_bytes(summary: &Summary, protocol: &str) -> Option<f64> {
    rows(summary, protocol).find_map(|row| row.counted).map(|[_, core]| core)
}

fn sizes(summary: &Summary, row: &str) -> Counterpart {
    let ours = match row {
        "plain 1000" => core_bytes(summary, "plain"),
        "macsec 1000" => core_bytes(summary, "macsec"),
        "esp 1000" => core_bytes(summary, ESP),
        // Bytes of security, of ESP and of MACsec.
        _ => core_bytes(summary, "plain").and_then(|plain| {
            let (esp, macsec) = (core_bytes(summary, ESP)?, core_bytes(summary, "macsec")?);
            (macsec > plain).then(|| (esp - plain) / (macsec - plain))
        }),
    };
    match ours {
        Some(value) => Counterpart::Ours { value, interval: None, difference: String::new() },
        None => not_measured(format!("wiretax link --protocol plain,macsec,{ESP}")),
    }
}

fn is_at(row: &Row, load: &str) -> bool {
    matches!(row.point.load, Offered::Rate(_)) && row.point.load.to_string() == load
}

/// Delay or loss behind a gateway that is slower than its line.
fn gateway(summary: &Summary, row: &str) -> Counterpart {
    let words: Vec<&str> = row.split(' ').collect();
    let load = words.get(1).copied().unwrap_or_default();
    let limited = rows(summary, ESP).find(|row| {
        row.point.gateway.0.is_some_and(|rate| rate.bits_per_second() == 120_000_000)
            && is_at(row, load)
    });
    let command = format!("wiretax link --protocol {ESP} --gateway 120mbit --load {load}");
    let Some(found) = limited else { return not_measured(command) };
    let difference = "our engine, limited to 120mbit".to_owned();
    if words.get(2) == Some(&"lost") {
        return match found.lost {
            Some(lost) => Counterpart::Ours { value: lost * 100.0, interval: None, difference },
            None => not_measured(command),
        };
    }
    match found.median_us {
        Some(delay) => Counterpart::Ours {
            value: delay.value,
            interval: Some((delay.low, delay.high)),
            difference,
        },
        None => not_measured(command),
    }
}

fn load(summary: &Summary, row: &str) -> Counterpart {
    let (protocol, load) = row.split_once(' ').unwrap_or((row, ""));
    let found = rows(summary, protocol)
        .find(|row| row.point.gateway == Gateway(None) && is_at(row, load))
        .and_then(|row| row.median_us);
    match found {
        Some(delay) => Counterpart::Ours {
            value: delay.value,
            interval: Some((delay.low, delay.high)),
            difference: HARDWARE.to_owned(),
        },
        None => not_measured(format!("wiretax link --protocol {protocol} --load {load}")),
    }
}

/// What MACsec on every hop adds to a hop, above plain.
fn per_hop(summary: &Summary) -> Counterpart {
    let of = |protocol: &str, reach: Reach| -> Option<&PerHop> {
        summary.per_hop.iter().find(|one| one.protocol == protocol && one.reach == reach)
    };
    let pair = of("plain", Reach::EndToEnd).zip(of("macsec", Reach::EveryHop));
    match pair {
        Some((plain, macsec)) => Counterpart::Ours {
            value: macsec.slope_us.value - plain.slope_us.value,
            // The slopes' own intervals, one against the other: at least as wide as theirs together.
            interval: Some((
                macsec.slope_us.low - plain.slope_us.high,
                macsec.slope_us.high - plain.slope_us.low,
            )),
            difference: HARDWARE.to_owned(),
        },
        None => not_measured(
            "wiretax link --network direct --reach every-hop --protocol plain,macsec --hops 1,2,4,8 --load 1000pps",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    fn ours(summary: &Summary, key: &str) -> Counterpart {
        let all = counterparts(summary);
        all.into_iter().find(|(known, _)| known == key).unwrap().1
    }

    #[test]
    fn every_figure_has_its_counterpart_or_the_command_that_measures_it() {
        let all = counterparts(&Summary::default());
        assert_eq!(all.len(), study::figures(FIGURES).unwrap().len());
        for (key, counterpart) in all {
            let Counterpart::NotMeasured { command } = counterpart else { panic!("{key}") };
            assert!(command.starts_with("wiretax link "), "{key}: {command}");
        }
    }

    #[test]
    fn what_was_measured_stands_beside() {
        let summary = Summary::of(&samples());
        for (key, expected) in [
            ("Table 1/plain 1000", 1022.0),
            ("Table 1/macsec 1000", 1054.0),
            ("Table 1/esp 1000", 1084.0),
            ("Table 1/esp to macsec", 1.9375),
        ] {
            let Counterpart::Ours { value, .. } = ours(&summary, key) else { panic!("{key}") };
            assert_eq!(value, expected, "{key}");
        }
        let key = "Figure 2/macsec per hop above plain";
        let Counterpart::Ours { value, interval, .. } = ours(&summary, key) else { panic!() };
        assert!((value - 2.0).abs() < 1e-6);
        assert!(interval.is_some_and(|(low, high)| low <= value && value <= high));
    }
}
