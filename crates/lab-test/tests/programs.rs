//! Where a crate's manifest names its test programs, a file of tests that none of them has as a module
//! would never run.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the workspace's crates.
fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
    let members = manifest.lines().filter_map(|line| line.trim().strip_prefix('"'));
    let folders = members.filter_map(|line| line.split_once('"')).map(|(name, _)| root.join(name));
    folders.collect()
}

#[test]
fn every_file_of_tests_is_in_a_program() {
    let mut seen = 0;
    for folder in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let Ok(entries) = fs::read_dir(folder.join("tests")) else { continue };
        if !manifest.contains("autotests = false") {
            continue;
        }
        let files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        let files = || files.iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
        let all: String = files().map(|path| fs::read_to_string(path).expect("text")).collect();
        for path in files() {
            let name = path.file_stem().expect("a name").to_string_lossy();
            let program = manifest.contains(&format!("name = \"{name}\""))
                || manifest.contains(&format!("path = \"tests/{name}.rs\""));
            assert!(
                program || all.contains(&format!("mod {name};")),
                "{} never runs",
                path.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} files were found");
}
