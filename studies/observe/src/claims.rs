//! Every figure and claim of GREE 2018, and what the lab's samples say of each.

use stats::Estimate;
use study::{Answer, Claim, Counterpart, with_interval};
use tracker::Class;

use crate::digest::Kind;
use crate::findings::{ClassRow, Findings};
use crate::published;
use crate::truth::Agreement;

const CLAIMS: &str = include_str!("../claims.csv");

/// The claims as a fragment for Markdown.
pub(crate) fn markdown(findings: &Findings, agreement: &Agreement, provenance: &str) -> String {
    study::claims_markdown(provenance, &claims(), &answers(findings, agreement))
}

/// A test reads our own file.
fn claims() -> Vec<Claim> {
    study::claims(CLAIMS).unwrap_or_default()
}

/// What the records say.
type OfFindings = fn(&Findings) -> Option<String>;
/// What comes of the records beside the logs.
type OfAgreement = fn(&Agreement) -> Option<String>;

const OF_FINDINGS: [(&str, OfFindings); 11] = [
    ("The picture: a distribution", distribution),
    ("The picture: the 20 ms bin", bin),
    ("The picture: two modes", modes),
    ("The picture: the cellular mode", cellular),
    ("One round trip less", round_trips),
    ("30 to 60 ms less", saved),
    ("The drafts offered", offered),
    ("Resumption", |findings| classes(findings, &[Class::Resumed], false)),
    ("Next step: 0-RTT", |findings| classes(findings, &[Class::ZeroRtt], false)),
    ("Left open: HelloRetryRequest and QUIC", retry_and_quic),
    ("Left open: finding the modes", confirmed),
];

const OF_AGREEMENT: [(&str, OfAgreement); 3] = [
    ("What is measured", measured),
    ("Next step: resumption across server names", crossed),
    ("Left open: the Finished or the first data", told_apart),
];

fn answers(findings: &Findings, agreement: &Agreement) -> Vec<Answer> {
    let of_findings = OF_FINDINGS.iter().map(|(item, say)| ((*item).to_owned(), say(findings)));
    let others = OF_AGREEMENT.iter().map(|(item, say)| ((*item).to_owned(), say(agreement)));
    of_findings.chain(others).collect()
}

/// The two versions that GREE 2018 compares.
const VERSIONS: [Kind; 2] = [Kind::TLS12, Kind::TLS13];

fn with_ends(of: &Estimate) -> String {
    with_interval((of.value, of.low, of.high), 1)
}

/// One text of several; `None` of none.
fn joined(texts: Vec<String>) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn measured(agreement: &Agreement) -> Option<String> {
    let Agreement { made, recorded, classified, .. } = agreement;
    (*made > 0).then(|| {
        format!("{made} connections, {recorded} with a record, {classified} of these with the class that was made")
    })
}

fn distribution(findings: &Findings) -> Option<String> {
    let curves = findings.curves.iter().filter(|curve| VERSIONS.contains(&curve.kind));
    let counts = curves.map(|curve| format!("{} of {}", curve.to_data.count, curve.kind));
    let counts: Vec<String> = counts.collect();
    (!counts.is_empty())
        .then(|| format!("bins of {} ms, handshakes: {}", findings.bin_ms, counts.join(", ")))
}

fn bin(findings: &Findings) -> Option<String> {
    let all = published::counterparts(findings);
    match all.into_iter().find(|(key, _)| key.ends_with("20 ms bin"))?.1 {
        Counterpart::Ours { value, difference, .. } => Some(format!("{value:.1} % {difference}")),
        _ => None,
    }
}

fn modes(findings: &Findings) -> Option<String> {
    let own = findings.modes.iter().filter(|of| VERSIONS.contains(&of.kind));
    let each = own.filter_map(|of| {
        let places = of.to_data.as_ref()?.modes.iter();
        let places: Vec<String> =
            places.map(|mode| format!("{:.1} ms", mode.place_ms.value)).collect();
        Some(format!("{}: {}, at {}", of.kind, places.len(), places.join(", ")))
    });
    joined(each.collect())
}

fn cellular(findings: &Findings) -> Option<String> {
    let own = findings.modes.iter().filter(|of| VERSIONS.contains(&of.kind));
    let each = own.filter_map(|of| {
        let last = of.to_data.as_ref()?.modes.last()?;
        Some(format!("{} ms by {}", with_ends(&last.place_ms), of.kind))
    });
    joined(each.collect())
}

fn round_trips(findings: &Findings) -> Option<String> {
    let saved = findings.difference.all.found.as_ref()?.saved_round_trips?;
    let saved = with_interval((saved.value, saved.low, saved.high), 2);
    Some(format!("{saved} round trips less, each handshake by its own"))
}

fn saved(findings: &Findings) -> Option<String> {
    let each = findings.difference.by_mode.iter().filter_map(|mode| {
        let saved = with_ends(&mode.compared.found.as_ref()?.saved_ms);
        Some(format!("{saved} ms at a round trip of {:.1} ms", mode.round_trip_ms))
    });
    joined(each.collect())
}

/// The versions offered most. Samples that were recorded before 2026-11-22 do not have them.
fn offered(findings: &Findings) -> Option<String> {
    const SHOWN: usize = 3;
    let names = findings.offered_versions.names.iter().take(SHOWN);
    let each: Vec<String> =
        names.map(|name| format!("{} in {} hellos", name.name, name.count)).collect();
    joined(each)
}

/// How many handshakes were of these classes, and when the first data came.
fn classes(findings: &Findings, wanted: &[Class], quic: bool) -> Option<String> {
    let rows = findings.populations.iter().flat_map(|population| {
        population.classes.iter().map(|row| (population.name.as_str(), row))
    });
    let own = |row: &ClassRow| wanted.contains(&row.class) && row.kind.quic == quic;
    let each = rows.filter(|(_, row)| own(row)).filter_map(|(population, row)| {
        let first = row.to_data_ms?;
        Some(format!("{} by {}, {population}: first data after {first:.1} ms", row.count, row.kind))
    });
    joined(each.collect())
}

fn retry_and_quic(findings: &Findings) -> Option<String> {
    let retried = classes(findings, &[Class::HelloRetry], false);
    let quic = classes(findings, &[Class::Full, Class::ZeroRtt], true);
    joined(
        retried.map(|text| format!("HelloRetryRequest: {text}")).into_iter().chain(quic).collect(),
    )
}

fn confirmed(findings: &Findings) -> Option<String> {
    let modes = findings.modes.iter().filter_map(|of| Some((of.kind, of.to_data.as_ref()?)));
    let each = modes.filter(|(kind, _)| VERSIONS.contains(kind)).map(|(kind, modes)| {
        let density = if modes.confirmed { "has the same" } else { "has others" };
        format!(
            "{kind}: {} by a mixture of distributions, the density {density}",
            modes.modes.len()
        )
    });
    joined(each.collect())
}

fn crossed(agreement: &Agreement) -> Option<String> {
    let each = agreement.crossed.iter().filter_map(|row| {
        let (data, full) = (row.to_data_ms?, row.full_to_data_ms?);
        Some(format!(
            "{}, {}: {} of {} resumed, first data after {data:.1} ms, in full {full:.1} ms",
            row.visit, row.population, row.resumed, row.count
        ))
    });
    joined(each.collect())
}

fn told_apart(agreement: &Agreement) -> Option<String> {
    let doubt: usize = agreement.uncertain.values().sum();
    (agreement.recorded > 0).then(|| {
        format!(
            "by sizes, order and acknowledgments: {doubt} of {} in doubt over TCP",
            agreement.recorded
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digest, Options};
    use crate::findings::findings;

    #[test]
    fn every_claim_has_its_answer() {
        let findings = findings(&Digest::new(Options::default()).unwrap());
        let answers = answers(&findings, &Agreement::of(&[], &findings));
        assert_eq!(study::claims_misfits(&claims(), &answers), Vec::<String>::new());
        assert!(answers.iter().all(|(_, ours)| ours.is_none()));
    }
}
