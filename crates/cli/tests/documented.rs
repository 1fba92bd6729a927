//! Each `cargo test` and `cargo bench` in the documents and in comments runs something: the package, the
//! test program and a test with the filter in its name exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// Folders of the workspace's packages, by the package's name.
fn packages() -> BTreeMap<String, PathBuf> {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let members =
        workspace.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once('"'));
    let named = members.filter_map(|(member, _)| {
        let folder = root().join(member);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some((name.trim_matches('"').to_owned(), folder))
    });
    named.collect()
}

/// Files below a folder with one of these endings, less what is built or hidden.
pub fn files_below(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            files_below(&path, endings, found);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one)) {
            found.push(path);
        }
    }
}

/// The commands in a text's code: spans, which a line break may cut, and lines of blocks.
fn commands(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, part) in markdown.split("```").enumerate() {
        let pieces: Vec<String> = match at % 2 {
            1 => part.lines().map(|line| line.split('#').next().unwrap_or("").to_owned()).collect(),
            _ => part.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        };
        for piece in pieces {
            let words = piece.split_whitespace().collect::<Vec<_>>().join(" ");
            for command in ["cargo test", "cargo bench"] {
                if let Some(at) = words.find(command) {
                    found.push(words[at..].to_owned());
                }
            }
        }
    }
    found
}

/// The text of a document; of a source its comments.
fn text_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    if path.extension().is_some_and(|ending| ending == "md") {
        return text;
    }
    let comments = text.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    let comments = comments.map(|line| line.trim_start_matches(['/', '!']));
    comments.collect::<Vec<_>>().join("\n")
}

/// What a command asks of cargo.
#[derive(Default)]
struct Asked {
    package: Option<String>,
    /// `test` or `bench`, and its name.
    program: Option<(&'static str, String)>,
    filter: Option<String>,
}

/// Options of which the next word is the value.
const WITH_VALUE: [&str; 3] = ["--manifest-path", "--features", "--example"];

fn asked(command: &str) -> Asked {
    let mut asked = Asked::default();
    // What stands in brackets is for the reader to fill in.
    let mut words = command.split(' ').skip(2).take_while(|word| !word.starts_with('['));
    while let Some(word) = words.next() {
        match word {
            "-p" => asked.package = words.next().map(str::to_owned),
            "--test" => asked.program = words.next().map(|name| ("test", name.to_owned())),
            "--bench" => asked.program = words.next().map(|name| ("bench", name.to_owned())),
            "--" => {
                // Options of the program itself may follow.
                let first = words.next().filter(|word| !word.starts_with('-'));
                asked.filter = asked.filter.or(first.map(str::to_owned));
                break;
            }
            _ if WITH_VALUE.contains(&word) => drop(words.next()),
            _ if word.starts_with('-') => {}
            filter => asked.filter = Some(filter.to_owned()),
        }
    }
    asked
}

/// The file in which a test program or benchmark of a package begins.
fn beginning(folder: &Path, kind: &str, name: &str) -> Option<PathBuf> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let tables =
        manifest.split("\n[").filter_map(|table| table.strip_prefix(&format!("[{kind}]]")));
    let mut own =
        tables.filter(|table| table.lines().any(|line| line == format!("name = \"{name}\"")));
    let declared = own.next();
    let path =
        declared.and_then(|table| table.lines().find_map(|line| line.strip_prefix("path = ")));
    let usual = if kind == "test" { "tests" } else { "benches" };
    let candidates = match path {
        Some(path) => vec![path.trim_matches('"').to_owned()],
        None if declared.is_none() && manifest.contains(&format!("auto{kind}s = false")) => vec![],
        None if declared.is_none() && manifest.contains(&format!("auto{kind}es = false")) => vec![],
        None => vec![format!("{usual}/{name}.rs"), format!("{usual}/{name}/main.rs")],
    };
    candidates.into_iter().map(|path| folder.join(path)).find(|path| path.is_file())
}

/// Why a command runs nothing; `None` if it runs something.
fn runs_nothing(command: &str, packages: &BTreeMap<String, PathBuf>) -> Option<String> {
    let Asked { package, program, filter } = asked(command);
    // Without a package it is the workspace's, or that of a workspace of its own.
    let package = package?;
    let Some(folder) = packages.get(&package) else {
        return Some(format!("there is no package {package}"));
    };
    let mut sources = Vec::new();
    match &program {
        Some((kind, name)) => {
            let Some(first) = beginning(folder, kind, name) else {
                return Some(format!("{package} has no {kind} program {name}"));
            };
            // Its modules lie beside it.
            files_below(first.parent().unwrap_or(folder), &["rs"], &mut sources);
        }
        None => {
            for part in ["src", "tests", "benches"] {
                files_below(&folder.join(part), &["rs"], &mut sources);
            }
        }
    }
    let texts = sources.iter().map(|path| (path, fs::read_to_string(path).unwrap_or_default()));
    let mut names = texts.flat_map(|(path, text)| {
        let functions = text.match_indices("fn ").filter_map(|(at, _)| {
            let name = text[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            Some(name.to_owned())
        });
        // The tests of `lab-test` are named beside their functions.
        let made = ["Test::new(", "Test::inside("];
        let named = made.iter().flat_map(|made| text.split(made).skip(1)).filter_map(|rest| {
            Some(rest.trim_start().strip_prefix('"')?.split_once('"')?.0.to_owned())
        });
        let module = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        functions.chain(named).chain(module).collect::<Vec<_>>()
    });
    match filter {
        Some(filter) if !names.any(|name| name.contains(&filter)) => {
            Some(format!("no test of {package} has {filter} in its name"))
        }
        None if names.next().is_none() => Some(format!("{package} has no test")),
        _ => None,
    }
}

#[test]
fn every_documented_command_runs_a_test() {
    let packages = packages();
    let mut documents = Vec::new();
    files_below(&root(), &["md", "rs"], &mut documents);
    let (mut checked, mut wrong) = (0, Vec::new());
    // This file has commands that run nothing.
    for path in documents.iter().filter(|path| !path.ends_with("tests/documented.rs")) {
        for command in commands(&text_of(path)) {
            checked += 1;
            let why = runs_nothing(&command, &packages);
            wrong.extend(why.map(|why| format!("{}: `{command}`: {why}", path.display())));
        }
    }
    assert!(checked > 20, "{checked} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_runs_no_test_is_found_out() {
    let packages = packages();
    let why = |command: &str| runs_nothing(command, &packages);
    assert_eq!(why("cargo test -p handshake --test lab tshark"), None);
    assert_eq!(why("cargo bench -p tcpio -- bulk --rounds 3"), None);
    assert_eq!(why("cargo test --workspace --locked"), None);
    // A name beside its function.
    assert_eq!(why("cargo test -p cli --test lab -- a_kill_leaves_no_redirect"), None);
    for (command, says) in [
        ("cargo test -p handshake --test judges wireshark", "no test program judges"),
        ("cargo test -p handshake --test lab wireshrak", "has wireshrak in its name"),
        ("cargo test -p handshaek", "no package handshaek"),
        ("cargo bench -p stats --bench nothing", "no bench program nothing"),
        ("cargo bench -p tcpio -- bukl", "has bukl in its name"),
    ] {
        let why = why(command).unwrap_or_else(|| panic!("{command} is taken for sound"));
        assert!(why.contains(says), "{command}: {why}");
    }
    let text = "so `cargo test -p a --test\nb c` and\n```\ncargo bench -p d   # of\n```\n";
    assert_eq!(commands(text), ["cargo test -p a --test b c", "cargo bench -p d"]);
}
