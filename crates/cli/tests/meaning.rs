//! What each study's report says in words, and how its tables fit a terminal: of the committed results.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{at_terminal, data, has, run, talk};

/// Committed results: each study, and what has parts that these lack.
const RESULTS: [&str; 11] = [
    "handshake",
    "sslmtcp",
    "observe",
    "link",
    "link-guest",
    "page",
    "roam",
    "roam-changes",
    "roam-engineer",
    "stacks",
    "haproxy",
];

fn results(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results").join(name)
}

/// The report of committed results.
fn html(folder: &Path, name: &str) -> String {
    let results = results(name).display().to_string();
    let file = format!("{name}.html");
    let output = run(folder, &["-q", "report", &results, "--html", &file]);
    assert!(output.status.success(), "{name}: {}", talk(&output));
    fs::read_to_string(folder.join(file)).unwrap()
}

/// What stands in the elements that begin with `tag`, up to their end tags.
fn texts<'a>(html: &'a str, tag: &str, end: &str) -> Vec<&'a str> {
    html.split(tag).skip(1).filter_map(|rest| rest.split_once(end)).map(|(text, _)| text).collect()
}

/// Whether it is a sentence made of measured values.
fn is_sentence_with_figures(text: &str) -> bool {
    text.ends_with('.') && text.len() > 30 && text.chars().any(|c| c.is_ascii_digit())
}

#[test]
fn every_plot_and_figure_says_what_it_means_and_every_caution_whether_the_answer_would_change() {
    let folder = tempfile::tempdir().unwrap();
    for name in RESULTS {
        let html = html(folder.path(), name);
        let drawn = ["<figure class=\"plot\"", "<figure class=\"flame\""];
        let plots: usize = drawn.iter().map(|one| html.matches(one).count()).sum();
        let means = texts(&html, "<p class=\"means\">", "</p>");
        assert_eq!(means.len(), plots, "{name}");
        let odd: Vec<_> = means.iter().filter(|text| !is_sentence_with_figures(text)).collect();
        assert!(odd.is_empty(), "{name}: {odd:#?}");

        let figures = html.matches("<dd class=\"value\">").count();
        let means = texts(&html, "<dd class=\"means\">", "</dd>");
        // Modes of SSLmTCP alone have no mode of today to be held against; in a guest no throughput is measured.
        let carried = figures > 0 || ["sslmtcp", "link-guest"].contains(&name);
        assert!(carried, "{name}: no figure carries its answer");
        assert_eq!(means.len(), figures, "{name}");
        let odd: Vec<_> =
            means.iter().filter(|text| !text.ends_with('.') || text.len() < 20).collect();
        assert!(odd.is_empty(), "{name}: {odd:#?}");

        let (head, _) = html.split_once("</header>").unwrap();
        let cautions = head.matches("role=\"note\"").count();
        let effects = texts(head, "<p class=\"effect\">", "</p>");
        assert_eq!(effects.len(), cautions, "{name}");
        for effect in effects {
            let (lead, why) = effect.split_once(":</strong> ").unwrap();
            assert!(lead.starts_with("<strong>The answer "), "{name}: {effect}");
            assert!(why.ends_with('.') && why.len() > 20, "{name}: {effect}");
        }
    }
}

#[test]
fn no_table_is_wider_than_a_terminal_of_80_columns() {
    if !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in RESULTS {
        let program = env!("CARGO_BIN_EXE_wiretax");
        let results = results(name).display().to_string();
        let line = format!(
            "stty rows 40 cols 80; exec '{program}' -q report '{results}' --html other.html"
        );
        let output = at_terminal(folder.path(), &line).output().unwrap();
        assert!(output.status.success(), "{name}: {}", data(&output));
        let text = data(&output).replace('\r', "");
        assert!(text.contains("──"), "{name} has no table");
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{name}: {wide:#?}");
    }
}
