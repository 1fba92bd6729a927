//! Power of samples: the smallest difference that they could show, and the repeats that the margin needs.

use report::{Caution, Inline, Note};
use stats::claims::{Leaders, Ranked, Ranking, percent, placebo};
use study::Findings;
use units::counted;

/// Most rankings that are described one by one.
const SHOWN: usize = 6;

/// Returns a sentence for each ranking behind an answer.
pub fn sentences(findings: &dyn Findings) -> Vec<String> {
    let rankings = findings.rankings();
    let (shown, rest) = rankings.split_at(rankings.len().min(SHOWN));
    let mut sentences: Vec<String> =
        shown.iter().map(|(title, ranking)| sentence(title, &ranking.verdict())).collect();
    if !rest.is_empty() {
        sentences.push(format!("{} are not described.", counted(rest.len(), "further ranking")));
    }
    sentences
}

/// Returns the same for a report; `None` without a ranking.
pub fn caution(findings: &dyn Findings) -> Option<Caution> {
    let text = sentences(findings).join(" ");
    let note = || Note::info(Inline::new().text(&text));
    (!text.is_empty()).then(|| {
        note().answer_stands("smaller differences may exist that these samples cannot show.")
    })
}

/// Largest number of repeats that is written out.
const MOST_REPEATS: usize = 10_000;

/// Returns a number of repeats in words.
fn repeats(needed: usize) -> String {
    match needed {
        0..=MOST_REPEATS => counted(needed, "repeat"),
        _ => format!("more than {}", counted(MOST_REPEATS, "repeat")),
    }
}

/// Draws of labels for a ranking's rate of false claims.
const DRAWS: u32 = 1000;

/// Returns a table of the rankings for Markdown, with each one's rate of false claims: how often it names a winner
/// when labels are drawn at random within pairs. `None` without a ranking.
pub fn markdown(findings: &dyn Findings) -> Option<String> {
    let head = "| ranking | comparisons | difference shown | repeats for 5 % | false claims |\n|---|---|---|---|---|\n";
    let row = |(title, ranking): &(String, Ranking)| {
        let ranked = ranking.verdict();
        let known = |text: Option<String>| text.unwrap_or_else(|| "too few repeats".to_owned());
        format!(
            "| {title} | {} | {} | {} | {:.1} % |\n",
            ranking.comparisons(),
            known(ranked.detectable().map(percent)),
            known(ranked.pairs_for_margin().map(repeats)),
            placebo(ranking, DRAWS, 1).rate() * 100.0
        )
    };
    let rows: String = findings.rankings().iter().map(row).collect();
    (!rows.is_empty()).then(|| head.to_owned() + &rows)
}

fn sentence(title: &str, ranked: &Ranked<'_>) -> String {
    let tested = counted(ranked.ranking().comparisons(), "comparison");
    let margin = percent(stats::claims::MARGIN);
    match (ranked.detectable(), ranked.pairs_for_margin(), &ranked.leaders) {
        (_, _, Leaders::TooFew { pairs, needed }) => {
            format!("{title}: {pairs} of {needed} repeats that the first of {tested} needs.")
        }
        (Some(least), Some(needed), _) => format!(
            "{title}: these samples show differences of {} or more ({tested}); {margin} needs {}.",
            percent(least),
            repeats(needed)
        ),
        _ => format!("{title}: {tested}."),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stats::claims::{ALPHA, Placebo};
    use study::Options;

    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::options::Colour;
    use crate::studies::{Questions, Results};

    /// Most rankings of a folder: a study with hundreds of groups does not need all of them.
    const RANKINGS: usize = 12;
    /// Committed results with rankings.
    const FOLDERS: [&str; 5] = ["page", "page-paper", "page-handshakes", "link", "stacks"];

    fn rankings(folder: &str) -> Vec<(String, Ranking)> {
        let folder = format!("{}/../../docs/results/{folder}", env!("CARGO_MANIFEST_DIR"));
        let questions = Questions::of(&Options::none()).unwrap();
        let quiet = Diagnostics::new(true, Colour::Auto);
        let results = Results::read(Path::new(&folder), &questions, &quiet).unwrap();
        results.found.iter().flat_map(|found| found.findings.rankings()).take(RANKINGS).collect()
    }

    #[test]
    fn with_labels_at_random_committed_samples_rarely_have_a_winner() {
        for folder in FOLDERS {
            let mut all = Placebo { drawn: 0, named: 0 };
            for (at, (title, ranking)) in rankings(folder).iter().enumerate() {
                assert!(ranking.len() > 1, "{folder}: {title}");
                let one = placebo(ranking, DRAWS, at as u64);
                assert!(one.at_least() <= ALPHA, "{folder}, {title}: {one:?}");
                all = all.and(one);
            }
            assert!(all.drawn >= DRAWS && all.rate() <= ALPHA, "{folder}: {all:?}");
        }
    }

    #[test]
    fn each_ranking_says_what_it_could_have_shown() {
        for (title, ranking) in rankings("stacks") {
            let said = sentence(&title, &ranking.verdict());
            assert!(said.contains("these samples show differences of "), "{said}");
        }
    }
}
