//! The MACsec paper's figures beside ours.

use handoff::Direction;
use study::Counterpart;

use crate::summary::{Row, Summary};

/// The paper's figures: frames lost in its Tables 5 to 7, outages in its Figure 8.
pub(crate) const FIGURES: &str = include_str!("../published.csv");

/// What stands beside each published figure.
pub(crate) fn counterparts(summary: &Summary) -> Vec<(String, Counterpart)> {
    let figures = study::figures(FIGURES).unwrap_or_default();
    let beside = figures.iter().map(|figure| {
        let (scenario, rate) = figure.row.split_once(' ').unwrap_or((&figure.row, ""));
        let row = summary.plain(scenario, rate);
        let ours = match figure.item.as_str() {
            "Figure 8" => row.and_then(outage),
            _ => row.and_then(lost),
        };
        let command = || format!("wiretax roam --scenario {scenario} --rate {rate}");
        let ours = ours.unwrap_or_else(|| Counterpart::NotMeasured { command: command() });
        (figure.key(), ours)
    });
    beside.collect()
}

/// The outage in the direction that was cut off longer.
fn outage(row: &Row) -> Option<Counterpart> {
    let ours = row.outage_ms?;
    let way = |direction: Direction| {
        row.way(direction)
            .outage_ms
            .map_or_else(|| "none".to_owned(), |own| format!("{:.0}", own.value))
    };
    let difference =
        format!("virtual time; up {} ms, down {} ms", way(Direction::Up), way(Direction::Down));
    Some(Counterpart::Ours { value: ours.value, interval: Some((ours.low, ours.high)), difference })
}

/// Frames lost in that direction.
fn lost(row: &Row) -> Option<Counterpart> {
    let direction = row.longer();
    let value = row.way(direction).lost?;
    let outage = row.outage_ms?.value;
    let difference = format!("{direction}; {outage:.0} ms by the rate");
    Some(Counterpart::Ours { value, interval: None, difference })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    #[test]
    fn every_figure_has_its_counterpart_or_the_command_that_measures_it() {
        let all = counterparts(&Summary::default());
        assert_eq!(all.len(), study::figures(FIGURES).unwrap().len());
        for (key, counterpart) in all {
            let Counterpart::NotMeasured { command } = counterpart else { panic!("{key}") };
            assert!(command.starts_with("wiretax roam --scenario "), "{key}: {command}");
        }
    }

    #[test]
    fn what_was_measured_stands_beside() {
        let all = counterparts(&Summary::of(&samples()));
        let ours = |key: &str| match all.iter().find(|(known, _)| known == key) {
            Some((_, Counterpart::Ours { value, .. })) => *value,
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(ours("Figure 8/ipsec-different-ssid 1000pps"), 1110.0);
        assert_eq!(ours("Table 7/macsec-same-ssid 2000pps"), 620.0);
        let missing = all.iter().find(|(key, _)| key == "Table 7/macsec-same-ssid 3000pps");
        assert!(matches!(missing, Some((_, Counterpart::NotMeasured { .. }))));
    }
}
