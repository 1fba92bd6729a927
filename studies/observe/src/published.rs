//! GREE 2018's figures, and ours beside them.

use std::ops::Range;

use study::{Counterpart, Figure, PublishedError};

use crate::digest::Kind;
use crate::findings::Findings;

/// What GREE 2018 states.
pub(crate) const PUBLISHED: &str = include_str!("../published.csv");

/// Name of the publication: GREE 2018.
pub(crate) const SOURCE: &str = "GREE, 2018";

/// The key of the share that GREE 2018 states, and the bin that it is of, in ms.
const SHARE: (&str, Range<f64>) = ("TLS 1.3/share of handshakes in the 20 ms bin", 20.0..30.0);

/// What measures all of these.
const COMMAND: &str = "wiretax observe lab";

/// All of them.
pub(crate) fn figures() -> Result<Vec<Figure>, PublishedError> {
    study::figures(PUBLISHED)
}

/// The share that GREE 2018 states, in percent, and where its bin begins, in ms.
pub(crate) fn share() -> Option<(f64, f64)> {
    let (key, bin) = SHARE;
    let figure = figures().ok()?.into_iter().find(|figure| figure.key() == key)?;
    Some((bin.start, figure.value?))
}

/// What stands beside each figure.
pub(crate) fn counterparts(findings: &Findings) -> Vec<(String, Counterpart)> {
    let mut all = vec![(SHARE.0.to_owned(), share_between(findings, Kind::TLS13, &SHARE.1))];
    for (item, kind) in [("TLS 1.3", Kind::TLS13), ("TLS 1.2", Kind::TLS12)] {
        for end in ["from", "to"] {
            let key = format!("{item}/second (cellular) mode: {end}");
            all.push((key, last_mode(findings, kind)));
        }
    }
    let modes = findings.difference.by_mode.iter();
    let mut saved: Vec<_> =
        modes.filter_map(|mode| Some(mode.compared.found.as_ref()?.saved_ms)).collect();
    saved.sort_by(|a, b| a.value.total_cmp(&b.value));
    let ends = [("from", saved.first(), "nearest"), ("to", saved.last(), "farthest")];
    for (end, saved, clients) in ends {
        let ours = saved.map(|saved| Counterpart::Ours {
            value: saved.value,
            interval: Some((saved.low, saved.high)),
            difference: format!("the {clients} clients"),
        });
        let key = format!("TLS 1.2 less TLS 1.3/saving: {end}");
        all.push((key, ours.unwrap_or_else(not_measured)));
    }
    all
}

fn not_measured() -> Counterpart {
    Counterpart::NotMeasured { command: COMMAND.to_owned() }
}

fn share_between(findings: &Findings, kind: Kind, range: &Range<f64>) -> Counterpart {
    let curve = findings.curves.iter().find(|curve| curve.kind == kind);
    let Some(curve) = curve.filter(|curve| curve.to_data.count > 0) else { return not_measured() };
    let from = |at: usize| at as f64 * findings.bin_ms;
    let fits = |edge: f64| (edge / findings.bin_ms).fract() == 0.0;
    if !(fits(range.start) && fits(range.end)) {
        let reason = format!("bins of {} ms do not make one of 10 ms", findings.bin_ms);
        return Counterpart::None { reason };
    }
    let bins = curve.to_data.percent.iter().enumerate();
    let inside = bins.filter(|(at, _)| range.contains(&from(*at)));
    Counterpart::Ours {
        value: inside.map(|(_, percent)| percent).sum(),
        interval: None,
        difference: format!("of {} handshakes", curve.to_data.count),
    }
}

fn last_mode(findings: &Findings, kind: Kind) -> Counterpart {
    let of = findings.modes.iter().find(|of| of.kind == kind);
    let modes = of.and_then(|of| of.to_data.as_ref()).filter(|modes| modes.modes.len() > 1);
    modes.and_then(|modes| modes.modes.last()).map_or_else(not_measured, |mode| Counterpart::Ours {
        value: mode.place_ms.value,
        interval: Some((mode.place_ms.low, mode.place_ms.high)),
        difference: "the last mode found".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digest, Options};
    use crate::findings::findings;

    #[test]
    fn every_figure_has_its_counterpart() {
        let figures = figures().unwrap();
        let findings = findings(&Digest::new(Options::default()).unwrap());
        let counterparts = counterparts(&findings);
        let keys: Vec<String> = figures.iter().map(Figure::key).collect();
        assert_eq!(keys, counterparts.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
        assert!(figures.iter().all(|figure| figure.document == SOURCE && figure.value.is_some()));
        assert!(counterparts.iter().all(|(_, ours)| *ours == not_measured()));
    }

    #[test]
    fn the_share_is_drawn_at_its_bin() {
        assert_eq!(share(), Some((20.0, 15.7)));
    }
}
