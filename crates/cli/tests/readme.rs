//! README.md says what the committed results say, and its commands exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{data, run, talk};

/// The checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

#[test]
fn the_figures_are_those_of_the_committed_results() {
    for results in ["docs/results/handshake", "docs/results/observe", "docs/results/stacks"] {
        assert!(root().join(results).join("samples.jsonl").is_file(), "{results} is empty");
        let output = run(&root(), &["figures", "README.md", results, "--check"]);
        assert!(output.status.success(), "{}", talk(&output));
    }
}

#[test]
fn the_pictures_and_documents_that_it_links_to_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let links = readme.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    for (link, _) in links.filter(|(link, _)| !link.contains("://") && !link.starts_with('#')) {
        let file = link.split('#').next().unwrap_or(link);
        assert!(root().join(file).exists(), "README.md links to {link}");
    }
}

/// The command lines in code blocks that begin with `wiretax`, without their comments.
fn command_lines(markdown: &str) -> Vec<Vec<String>> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside && line.trim_start().starts_with("wiretax ") {
            let words = line.split_whitespace().skip(1).take_while(|word| *word != "#");
            found.push(words.map(str::to_owned).collect());
        }
    }
    found
}

#[test]
fn every_command_and_option_in_it_exists() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = command_lines(&readme);
    assert!(lines.len() >= 4, "{lines:?}");
    let mut helps = BTreeMap::new();
    for line in lines {
        let command = line.first().expect("a command").clone();
        let help = helps.entry(command.clone()).or_insert_with(|| {
            let output = run(&root(), &[&command, "--help"]);
            assert!(output.status.success(), "README.md: no command `{command}`");
            data(&output)
        });
        // An option as it stands in a list of options, not in an example.
        let exists = |option: &str| {
            help.lines().any(|line| {
                let mut words = line.split_whitespace().map(|word| word.trim_end_matches(','));
                line.trim_start().starts_with('-') && words.any(|word| word == option)
            })
        };
        for option in line.iter().filter(|word| word.starts_with('-')) {
            let option = option.split('=').next().unwrap_or(option);
            assert!(exists(option), "README.md: `wiretax {command}` has no {option}");
        }
    }
}
