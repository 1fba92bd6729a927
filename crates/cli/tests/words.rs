//! What users read is in plain words: help, documents and errors have none of the worst phrases.

use std::fs;
use std::path::{Path, PathBuf};

use crate::documented::{files_below, root};
use crate::support::{run, talk};

/// Phrases that make one read a sentence twice, and what to write instead.
const WORST: [(&str, &str); 9] = [
    ("cannot be told", "cannot be determined"),
    ("of whom", "of which; or name the party"),
    ("goes on with", "continues with"),
    ("told otherwise", "name the option"),
    ("come what may", "regardless of"),
    ("in vain", "without effect; or what did not happen"),
    ("what else than", "other"),
    ("rubbish", "an invalid answer"),
    ("the same command goes on", "run the same command to resume"),
];

/// Usual English, though one of [`WORST`] begins it.
const USUAL: &str = "cannot be told apart";

/// Where the worst phrases are in a text: `LINE: PHRASE (BETTER)`. A line break may cut a phrase.
fn worst_in(text: &str) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(|line| line.trim().to_lowercase()).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).map_or("", String::as_str);
        let both = format!("{line} {next}").replace(USUAL, "");
        // What begins in the next line is that line's.
        let next = next.replace(USUAL, "");
        for (phrase, better) in WORST {
            if both.contains(phrase) && !next.contains(phrase) {
                found.push(format!("{}: `{phrase}` (better: {better})", at + 1));
            }
        }
    }
    found
}

/// A source with only the texts of its `#[error(…)]` attributes left, each at its line.
fn errors_of(source: &str) -> String {
    let mut inside = false;
    let kept = source.lines().map(|line| {
        inside |= line.trim_start().starts_with("#[error(");
        let shown = if inside { line } else { "" };
        inside &= !line.trim_end().ends_with(")]");
        shown
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The files of `paths` in which `text` has one of the worst phrases, with lines.
fn worst_of(paths: &[PathBuf], text: impl Fn(&str) -> String) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths {
        let read = fs::read_to_string(path).unwrap_or_default();
        let shown = path.strip_prefix(root()).unwrap_or(path).display();
        found.extend(worst_in(&text(&read)).iter().map(|worst| format!("{shown}:{worst}")));
    }
    found
}

/// Markdown files of a folder, not of those in it.
fn documents_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

#[test]
fn documents_are_in_plain_words() {
    let documents = [documents_in(&root()), documents_in(&root().join("docs"))].concat();
    assert!(documents.len() > 10, "{documents:?}");
    let found = worst_of(&documents, str::to_owned);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn errors_are_in_plain_words() {
    let mut sources = Vec::new();
    for part in ["crates", "studies"] {
        files_below(&root().join(part), &["rs"], &mut sources);
    }
    let texts = sources.iter().filter_map(|path| fs::read_to_string(path).ok());
    let errors = texts.map(|text| errors_of(&text).matches("#[error(").count()).sum::<usize>();
    assert!(errors > 300, "only {errors} errors were found");
    let found = worst_of(&sources, errors_of);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Each command's help is in its man page.
#[test]
fn helps_are_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["man", "pages"]);
    assert!(output.status.success(), "{}", talk(&output));
    let mut pages = Vec::new();
    files_below(&folder.path().join("pages"), &["1"], &mut pages);
    assert!(pages.len() > 15, "{pages:?}");
    let found = worst_of(&pages, str::to_owned);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_worst_phrases_are_found_where_they_begin() {
    let text = "It waits\nin vain, come\nwhat may.\nThe two cannot be told apart.\n";
    let found = worst_in(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("2: `come what may`"), "{found:?}");
    assert!(found[1].starts_with("2: `in vain`"), "{found:?}");
    let source = "/// Rubbish.\n#[error(\n    \"gave rubbish\"\n)]\nRubbish,\n";
    let found = worst_in(&errors_of(source));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("3: `rubbish`"), "{found:?}");
}
