//! README.md says what the committed results say, and its commands exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{data, run, talk};

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

fn page_of(study: &str) -> String {
    format!("docs/results/{study}.md")
}

#[test]
fn the_figures_are_those_of_the_committed_results() {
    let of_readme = ["handshake", "observe", "link", "page", "roam", "stacks"];
    let both = |study| [("README.md".to_owned(), study), (page_of(study), study)];
    let beside = [
        (page_of("haproxy"), "haproxy"),
        (page_of("haproxy"), "haproxy-quic"),
        (page_of("stacks"), "stacks-profile"),
        (page_of("stacks"), "stacks-sessions"),
    ];
    let trusted = ["page", "link", "stacks"].map(|study| ("docs/trust.md".to_owned(), study));
    for (page, results) in of_readme.into_iter().flat_map(both).chain(beside).chain(trusted) {
        let results = format!("docs/results/{results}");
        assert!(root().join(&results).join("samples.jsonl").is_file(), "{results} is empty");
        let output = run(&root(), &["figures", &page, &results, "--check"]);
        assert!(output.status.success(), "{page}, {results}: {}", talk(&output));
    }
}

#[test]
fn the_papers_figures_have_those_of_the_committed_results_beside() {
    let papers = [
        "sslmtcp",
        "page-handshakes",
        "observe",
        "haproxy",
        "stacks",
        "stacks-light",
        "stacks-client",
        "stacks-profile",
        "link",
        "roam-paper",
        "page-paper",
        "page-cablelabs",
        "page-windows",
        "page-bus",
    ];
    let papers = papers.map(|name| ("docs/papers.md".to_owned(), name));
    let tables = [
        "page-paper",
        "page-windows",
        "page-grid",
        "page-bus",
        "page-flow",
        "page-uploads",
        "page-push",
        "page-handshakes",
        "page-chromium-3g",
        "page-chromium-5mbit",
        "roam-changes",
        "roam-engineer",
        "haproxy-more",
        "haproxy-series",
    ]
    .map(|name| (format!("docs/results/{name}.md"), name));
    for (page, results) in papers.into_iter().chain(tables) {
        let output =
            run(&root(), &["figures", &page, &format!("docs/results/{results}"), "--check"]);
        assert!(output.status.success(), "{page}: {}", talk(&output));
    }
    let text = fs::read_to_string(root().join("docs/papers.md")).unwrap();
    assert!(
        !text.contains("no counterpart is named") && !text.contains("-->\n<!-- /figures"),
        "a table is empty"
    );
    let empty: Vec<_> = text.lines().filter(|line| line.contains("not in these results")).collect();
    assert!(empty.is_empty(), "nothing of ours stands beside {empty:#?}");
}

/// The rows of the tables of claims in docs/papers.md: item, what the paper says, command, ours.
fn claims() -> Vec<[String; 4]> {
    let text = fs::read_to_string(root().join("docs/papers.md")).unwrap();
    let fragments = text.split("<!-- figures:").skip(1).filter_map(|rest| rest.split_once(" -->"));
    let claims = fragments.filter(|(name, _)| name.ends_with("-claims"));
    let rows = claims.flat_map(|(_, rest)| rest.split(END).next().unwrap_or_default().lines());
    let cells = rows.filter_map(|line| {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        cells.map(str::to_owned).collect::<Vec<_>>().try_into().ok()
    });
    let is_data = |cells: &[String; 4]| cells[0] != "Item" && !cells[0].starts_with("---");
    cells.filter(is_data).collect()
}

const END: &str = "<!-- /figures -->";

#[test]
fn every_claim_has_its_command_and_our_figure() {
    let claims = claims();
    assert!(claims.len() > 90, "{} claims", claims.len());
    for cells in &claims {
        assert!(cells.iter().all(|cell| !cell.trim().is_empty()), "{cells:?}");
        let [_, _, command, _] = cells;
        assert!(command.starts_with('`') && command.ends_with('`'), "{cells:?}");
    }
}

/// The documents for users: README.md and what lies in docs.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("SECURITY.md")];
    for folder in ["docs", "docs/results"] {
        let entries = fs::read_dir(root().join(folder)).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found
}

#[test]
fn the_pictures_and_documents_that_documents_link_to_exist() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (link, _) in links.filter(|(link, _)| !link.contains("://") && !link.starts_with('#')) {
            let file = document.parent().unwrap().join(link.split('#').next().unwrap_or(link));
            assert!(file.exists(), "{} links to {link}", document.display());
        }
    }
}

/// A screen and a half: a reader who opens it sees what it is, and what to type.
#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= 100, "README.md has {lines} lines: what is long belongs into docs");
}

/// The command lines in code blocks that begin with `wiretax`, without their comments.
fn command_lines(markdown: &str) -> Vec<Vec<String>> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside && line.trim_start().starts_with("wiretax ") {
            // What stands in quotes is for other programs.
            let own: Vec<&str> = line.split('\'').step_by(2).collect();
            let own = own.join("quoted");
            let words = own
                .split_whitespace()
                .skip(1)
                .take_while(|word| !["#", "|", "&&", ">", ";"].contains(word));
            found.push(words.map(str::to_owned).collect());
        }
    }
    found
}

#[test]
fn every_command_and_option_in_it_exists() {
    let texts = documents().into_iter().map(|document| fs::read_to_string(document).unwrap());
    // The commands of the claims stand in a table's cells, in code.
    let claims = claims().into_iter().flat_map(|[_, _, command, _]| {
        let spans = command.split('`').skip(1).step_by(2);
        spans.map(|span| format!("```\n{span}\n```\n")).collect::<Vec<_>>()
    });
    let lines: Vec<Vec<String>> =
        texts.chain(claims).flat_map(|text| command_lines(&text)).collect();
    assert!(lines.len() >= 20, "{lines:?}");
    let mut helps = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.iter().take(3).map(String::as_str).collect();
        let words = words.split(|word| word.starts_with('-')).next().unwrap_or_default();
        let mut help = |command: &[&str]| {
            let name = command.join(" ");
            let text = helps.entry(name.clone()).or_insert_with(|| {
                let output = run(&root(), &[command, &["--help"]].concat());
                assert!(output.status.success(), "a document names the command `{name}`");
                data(&output)
            });
            text.clone()
        };
        let Some((first, more)) = words.split_first() else { continue };
        let mut command = vec![*first];
        let mut text = help(&command);
        for word in more {
            // A command below it, in the list that its help has of them.
            let is_below = text.lines().any(|line| {
                line.starts_with("  ") && line.split_whitespace().next() == Some(*word)
            });
            if !is_below {
                break;
            }
            command.push(*word);
            text = help(&command);
        }
        let (command, help) = (command.join(" "), text);
        // An option as it stands in a list of options, not in an example.
        let exists = |option: &str| {
            help.lines().any(|line| {
                let mut words = line.split_whitespace().map(|word| word.trim_end_matches(','));
                line.trim_start().starts_with('-') && words.any(|word| word == option)
            })
        };
        // Behind `--` stands another program.
        let own = line.iter().take_while(|word| *word != "--");
        for option in own.filter(|word| word.starts_with('-')) {
            let option = option.split('=').next().unwrap_or(option);
            assert!(exists(option), "a document says `wiretax {command} {option}`");
        }
    }
}

/// The Rust files below a folder, as one text.
fn sources_below(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text += &sources_below(&path);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text += &fs::read_to_string(path).expect("a source");
        }
    }
    text
}

#[test]
fn unsafe_is_in_the_crates_that_contributing_names_and_forbidden_in_all_others() {
    let rules = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, rule) = rules.split_once("- **`unsafe`** only with").expect("the rule");
    let (_, named) = rule.split_once("and only in ").expect("the list");
    let (named, _) = named.split_once(';').expect("the list's end");
    let named: BTreeSet<&str> = named.split('`').skip(1).step_by(2).collect();
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, list) = workspace.split_once("members = [").expect("the members");
    let (list, _) = list.split_once(']').expect("their end");
    let members = list.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once('"'));
    let members: Vec<&str> = members.map(|(path, _)| path).collect();
    assert!(members.len() > 20, "the workspace's members: {members:?}");
    let mut with_unsafe = BTreeSet::new();
    for member in &members {
        let folder = root().join(member).join("src");
        let top = ["lib.rs", "main.rs"].map(|name| fs::read_to_string(folder.join(name)));
        let top = top.into_iter().find_map(Result::ok).expect("a crate's root");
        if !top.lines().any(|line| line == "#![forbid(unsafe_code)]") {
            let name = member.rsplit('/').next().unwrap_or(member);
            let uses = ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern ", "unsafe("];
            let sources = sources_below(&folder);
            assert!(uses.iter().any(|word| sources.contains(word)), "{name} has none: forbid it");
            with_unsafe.insert(name);
        }
    }
    assert_eq!(with_unsafe, named);
}

/// Calls that end in a panic where the system grants no thread, or where a name is not UTF-8, and what is used instead.
const PANICS: [(&str, &str); 7] = [
    ("thread::spawn(", "thread::Builder"),
    ("scope.spawn(", "spawn_scoped"),
    ("spawn_blocking(", "thread::Builder"),
    ("lookup_host(", "a thread of std"),
    ("enable_steady_tick(", "Progress::tick"),
    ("env::args()", "args_os"),
    ("into_string().unwrap()", "to_string_lossy"),
];

/// Sources below a folder without tests: without files of tests, and of others what comes before `mod tests`.
fn without_tests(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(without_tests(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.ends_with("tests.rs")
        {
            let text = fs::read_to_string(&path).expect("a source");
            let text =
                text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            found.push((path, text));
        }
    }
    found
}

#[test]
fn nothing_panics_where_the_system_grants_no_thread_or_a_name_is_not_utf_8() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, list) = workspace.split_once("members = [").expect("the members");
    let (list, _) = list.split_once(']').expect("their end");
    let members = list.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once('"'));
    for (member, _) in
        members.filter(|(path, _)| !["crates/lab-test", "crates/fuzz-targets"].contains(path))
    {
        for (path, text) in without_tests(&root().join(member).join("src")) {
            for (call, instead) in PANICS {
                assert!(!text.contains(call), "{}: {call}: use {instead}", path.display());
            }
        }
    }
}
